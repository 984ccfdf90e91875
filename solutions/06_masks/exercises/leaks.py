"""A test for causality: does any output depend on a later token?"""

from collections.abc import Mapping
from functools import lru_cache
from itertools import product

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch
from grader.course.readings import ContractError
from grader.worker.values import Observation, Part

MOST_CALLS, PART = 2000, "answer"
# As in the probe, which needs torch.
TIGHT = (
    "a causal mask of −∞",
    "each row computed by itself",
    "each token normalized first, then a causal mask",
    "no attention at all, each token by itself",
    "only the past, without the token itself",
    "a causal mask, rounded around the sum of all tokens",
    "a causal mask, rounded around the tokens' length",
    "a causal mask, rounded around the largest number",
)
LEAKY = (
    "no mask",
    "the triangle is off by one: each token sees the next",
    "the triangle is the other one: each token sees itself and what follows",
    "the offset counts from the wrong corner: each token sees two more",
    "heads are cut from the tokens",
    "a normalization over the tokens comes before the mask",
    "the mean over the tokens is removed before the mask",
    "the mask comes after softmax",
    "softmax over the queries, then the mask",
    "hidden scores are −9, not −∞",
    "a hundred-thousandth of the tokens' mean is added",
    "a little of the tokens' mean is added",
    "a little of the last token is added",
    "the last token reaches the first",
    "the first two tokens see each other",
    "the first three tokens see each other",
    "the first half of the tokens see each other",
    "from the third on, each token sees the next",
    "from the fifth on, each token sees the next",
    "the last three tokens see each other",
    "tokens beyond the fifth reach the first five",
    "tokens beyond the sixth reach the first six",
    "tokens beyond the seventh reach the first seven",
    "only numbers beyond 4 reach earlier tokens",
    "only numbers beyond 5 reach earlier tokens",
    "only numbers beyond 6 reach the first token",
    "only numbers beyond 7 reach the first two tokens",
    "later tokens reach the first as whole numbers",
    "each token normalized first, no mask",
    "each token normalized first, the triangle off by one",
    "each token's mean removed first, the triangle off by one",
    "the second of two heads has no mask",
    "the last feature of later tokens reaches the first",
    "all features but the first are normalized over the tokens",
    "no mask, and each output normalized",
    "the triangle off by one, and each output's mean removed",
    "the third token reaches the first alone",
    "what the first output gains, the second loses",
    "the direction of what follows, whatever its sign, reaches a token",
    "what follows moves a token by two millionths",
    "what follows moves the first token by two millionths",
    "the last token moves all others by two millionths",
)
SIZED = "changed[t] += size * change / change.abs().max()"
BEFORE = "(attention(changed)[:t] - base[:t]).abs()"
MOVED = f"if {BEFORE}.max() > 1e-07:"
LAST, LUCK = "for t in (len(x) - 1,):", ((1.0, 1), (5.0, 1), (4.0, 2), (7.0, 4), (6.0, 1), (4.0, 5), (2.0, 2), (5.0, 6))
TOKENS, SIZES = "for t in range(1, len(x)):", "for size in (2.0, 10.0):"


def _read(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    calls, result = int(parts["calls of attention"].array), parts["result"]
    if calls > MOST_CALLS:
        raise ContractError(f"attention was called {calls:,} times; at most {MOST_CALLS:,} calls are allowed.")
    if result.kind != "bool":
        what = {"tensor": "a tensor", "none": "None", "ndarray": "an array or a number of NumPy"}.get(
            result.kind, f"a {result.kind}"
        )
        raise ContractError(f"What came back is {what}; True or False was asked for (bool(…) makes one of a tensor).")
    return {PART: Part("bool", result.array, "bool")}


def _judge(case: Case, expected: Observation, got: Observation) -> str | None:
    name, said = case.options["candidate"], bool(got.parts[PART].array)
    if said == (name in LEAKY):
        return None
    if name not in LEAKY:
        return f"leaks said True for an attention that does not leak ({name}). Differences up to 1e-9 are rounding."
    x = case.args[0].array
    return f"leaks said False for an attention that leaks: {name}.{_moved(name, x.tobytes(), x.shape)}"


@lru_cache(256)  # every mistake that says False is compared
def _moved(name: str, numbers: bytes, shape: tuple[int, int]) -> str:
    """An output of a candidate that a later token moves, as a sentence; '' where a change of one number shows none."""
    import torch

    from ..probes_leaks import CANDIDATES  # with torch, which is not there for every lesson

    x = torch.from_numpy(np.frombuffer(numbers).reshape(shape).copy())
    attention = CANDIDATES[name]
    before = attention(x)
    for t, feature in product(range(1, len(x)), range(x.shape[1])):
        changed = x.clone()
        changed[t, feature] += 10
        moved = (attention(changed) - before)[:t].abs().amax(dim=-1)
        if moved.max() > 1e-6:
            i = int(moved.argmax())
            return f" Token {t} changed by 10 in feature {feature}, output {i} moved by {moved[i]:.2g}."
    return ""


@exercise(
    points=3, minutes=22, difficulty=3, result_names=(PART,), result_type="any", forbids=("tampering",), pair_runs=30
)
class leaks:
    """Test whether any output of an attention depends on a later token."""

    compare = _judge

    def cases(rng):
        def case(key: str, name: str, t: int, d: int, **more) -> Case:
            kind = "leaks" if name in LEAKY else "does not leak"
            x = Tensor(rng.normal(size=(t, d)))
            return Case(
                key,
                f"an attention that {kind}: {name}",
                (x,),
                probe="probes_leaks.on_candidates",
                reading=_read,
                names=("x",),
                options={"candidate": name, **more},
                show=False,
                costly=t > 9,
            )

        for number, name in enumerate((*TIGHT, *LEAKY)):
            t = 9 if "seventh" in name else 6 + number % 3
            yield case(
                f"candidate-{number}",
                name,
                t,
                4 + number % 3,
                **({"by_name": ("attention", "x")} if number == 1 else {}),
            )
        yield case("two", "the triangle is off by one: each token sees the next", 2, 4)
        yield case("two-tight", "a causal mask of −∞", 2, 5)
        yield case("long", "the last token reaches the first", 20, 6)
        yield case("long-tight", "no attention at all, each token by itself", 64, 4)

    hints = (
        "Which token do you change, and which outputs must then stay exactly as they were? Is one token enough, and one kind of change?",
        "Keep attention(x). For each token t from 1 on, change x[t] in a copy by random numbers, some small and some large, and compare "
        "the outputs before t with those you kept. Adding the same number to every feature can be undone by a normalization, and a "
        "large change can open a gate that a small one leaves shut.",
        "```python\nbase = attention(x)\nfor t in range(1, len(x)):\n    for size in ____:\n        changed = x.clone()\n"
        "        changed[t] += ____\n"
        "        if (attention(changed)[____] - base[____]).abs().max() > ____:\n            return True\nreturn False\n```",
    )

    mistakes = {
        "LK1": mistake(
            patch(TOKENS, LAST),
            *(  # which gates the last token happens to open depends on its random numbers
                patch(TOKENS, LAST, SIZES, f"for size in ({size},):", "seed(0)", f"seed({seed})") for size, seed in LUCK
            ),
            patch(TOKENS, "for t in (max(len(x) // 2, 1),):", SIZES, "for size in [10.0] * 4:"),
            patch(TOKENS, "for t in range(1, min(len(x), 4)):"),
            patch(TOKENS, "for t in (1,):"),
            patch(TOKENS, "for t in range(1, len(x) - 1):"),
            says="""Not every later token was changed: only one, the first few, or all but the last; a leak may come from
            any, `range(1, len(x))`.""",
            why="""Where the first tokens see each other, or heads are cut from the tokens, the last one may be hidden well,
            and some leaks come from the last one alone: `range` leaves its end out, and the last token is `len(x) - 1`.
            Others begin at a certain length, beyond the size of a mask, a block or a window. Change every token but the
            first, one at a time.""",
        ),
        "LK2": mistake(
            patch(BEFORE, "(attention(changed)[:1] - base[:1]).abs()"),
            patch(BEFORE, "(attention(changed)[t - 1:t] - base[t - 1:t]).abs()", SIZES, "for size in [10.0] * 4:"),
            says="Only one output was compared; a leak may reach any output before the changed token.",
            why="""Where each token sees the next one, a change of token 5 reaches output 4, and not output 0; where the last token
            reaches the first, it is output 0 alone.""",
        ),
        "LK4": mistake(
            patch(SIZED, "changed[t] += size"),
            patch(SIZED, "changed[t, 0] += size"),
            patch(SIZED, "changed[t, 0] += size * change[0]"),
            says="""Only one feature was changed, or all by the same number; a leak may come from any feature, so change each
            by another number.""",
            why="""LayerNorm subtracts from each token the mean of its features. If all of them grow by the same number,
            nothing is left of the change, and no leak can show. A head that forgot the mask sees only its own slice of each
            token: where that slice begins at feature 2, a change of feature 0 does not reach it.""",
        ),
        "LK5": mistake(
            patch(SIZES, "for size in (1.0, 1.0, 1.0):"),
            patch(SIZES, "for size in (0.1, 0.5, 1.0, 2.0):"),
            patch(SIZED, "changed[t] += change"),
            patch(SIZES, "for size in (0.001,):"),
            patch(
                "base = attention(x)",
                "base = attention(x)\n    return bool(torch.autograd.functional.jacobian(attention, x).abs()"
                ".sum(dim=(1, 3)).triu(1).max() > 1e-09)",
            ),
            says="No large changes of a token were tried (a derivative's are small, too), or one size alone; some leaks need larger ones: "
            "try sizes up to 10.",
            why="""A threshold, a saturated softmax or a clipped score can hide a small change. A derivative says what an
            infinitely small change does: a threshold that is not reached has the derivative 0.""",
        ),
        "FF8": (
            patch("> 1e-07", "> 0.01"),
            patch("> 1e-07", "> 0.001"),
            patch(MOVED, "if not torch.allclose(attention(changed)[:t], base[:t], atol=0.001):"),
            patch("> 1e-07", "> 5e-06"),
            patch("> 1e-07", "> 1e-05"),
            patch(MOVED, "if not torch.allclose(attention(changed)[:t], base[:t]):"),
        ),
        "FF9": (patch("> 1e-07", "> 0"), patch(MOVED, "if not torch.equal(attention(changed)[:t], base[:t]):")),
        "LK8": mistake(
            patch(BEFORE, "(attention(changed)[:t + 1] - base[:t + 1]).abs()"),
            patch(BEFORE, "(attention(changed) - base).abs()"),
            patch(BEFORE, "(attention(changed)[t:] - base[t:]).abs()"),
            patch(TOKENS, "for t in (0,):", BEFORE, "(attention(changed)[1:] - base[1:]).abs()"),
            says="""Outputs that may move were compared: that of the changed token, or later ones; only the outputs before it
            must not move.""",
            why="""A token may see itself and its past: information may flow forward, and a leak is information that flows
            back. With output t among the outputs compared, every attention seems to leak; if token 0 is changed, no output
            is left to compare.""",
        ),
        "LK14": mistake(
            patch(BEFORE, "(attention(changed)[:t] - base[:t]).sum().abs()"),
            patch(BEFORE, "(attention(changed)[:t] - base[:t]).mean().abs()"),
            says="The differences were added up, and they may cancel; take their absolute values first.",
            why="Behind a LayerNorm the features of each output sum to 0, before the change and after it, whatever has moved.",
        ),
    }
