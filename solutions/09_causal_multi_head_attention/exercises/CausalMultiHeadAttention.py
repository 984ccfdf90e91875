"""Causal attention of many heads in one module: its mask, its dropout, its fused projection."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, mistake, patch

from ...shared.library import (
    ROW_MAXIMUM,
    batch_independence,
    earlier_inputs,
    fused_shapes,
    random_parameters,
    scale_mistakes,
    softmax_by_hand,
)
from .. import readings

LAYERS = ("qkv", "proj")


def _case(
    key: str,
    title: str,
    x: np.ndarray,
    state: dict[str, np.ndarray],
    *init: Any,
    probe: str = "module",
    grad: bool = False,
    options: dict[str, Any] | None = None,
    **more: Any,
) -> Case:
    """init: what follows d_model among the sizes; options: further ones of the probe."""
    built = {
        "init": (x.shape[-1], *init),
        "state": state,
        "linear": LAYERS,
        "no_bias": LAYERS,
        "gradients": grad,
        **(options or {}),
    }
    return Case(key, title, (Tensor(x.astype(np.float32), None, grad),), probe=probe, options=built, **more)


def _companions(rng: np.random.Generator) -> Iterator[Case]:
    state = random_parameters(rng, fused_shapes(6))
    x = rng.normal(size=(2, 5, 6)).astype(np.float32)
    later = x.copy()
    later[0, 3:] += 2
    later[1, 3:] -= 1
    yield _case("before", "five tokens, twice", x, state, 2, 7)
    yield _case("after", "the same, tokens 3 and 4 changed", later, state, 2, 7)
    other = later.copy()
    other[0] = rng.normal(size=(5, 6))
    yield _case("other item", "the same, the first item of the batch replaced", other, state, 2, 7)


def _dropout(rng: np.random.Generator) -> Iterator[Case]:
    """Weights of the module through which every attention weight can be read twice in the output.

    Token j is the j-th unit vector, and its value in each head is e_j written twice: the output of query i then
    holds, head by head, row i of the weights, and the same row once more.
    """
    for key, p, t, heads in (("a", 0.3, 4, 2), ("b", 0.2, 3, 3), ("c", 0.6, 4, 2)):
        d = 2 * t * heads
        state = {"qkv.weight": np.zeros((3 * d, d), np.float32), "proj.weight": np.eye(d, dtype=np.float32)}
        state["qkv.weight"][: 2 * d] = 0.6 * rng.normal(size=(2 * d, d))
        for row in range(d):
            state["qkv.weight"][2 * d + row, row % t] = 1
        x = np.tile(np.eye(t, d), (120, 1, 1))
        yield _case(
            f"dropout-{key}",
            f"dropout={p} with {heads} heads, in evaluation and in training",
            x,
            state,
            heads,
            t + 1,
            p,
            probe="probes.dropout",
            show=False,
            atol=0.1,
            reading=readings.dropout,
        )


def _large(rng: np.random.Generator) -> Iterator[Case]:
    """Scores of 0 and ±10,000 in every row, and halves beside them, which float32 holds exactly; heads of four numbers.

    Token 1 asks for the high scores, which lie in its future, and sees the low ones alone; token 4 scores all keys near 0.
    """
    asked = np.array([100, 100, -100, 100, 0, -100])
    found = np.array([-200, -200, 200, 200, 0, -200])
    for i, (b, heads) in enumerate(((2, 2), (1, 3), (2, 2))):
        d, t = 4 * heads, len(asked)
        state = random_parameters(rng, fused_shapes(d), 0.3)
        w_q, w_k, w_v = np.split(state["qkv.weight"], 3)  # views
        w_q[:], w_k[:], w_v[:, :2] = 0, 0, 0
        w_q[0::4, 0], w_q[1::4, 2] = 1, 1
        for h in range(heads):
            w_k[4 * h, 1] = (-1) ** h  # what is high for one head is low for the next
            w_k[4 * h + 1, 3 + h] = 1
        x = rng.normal(size=(b, t, d))
        x[..., 0], x[..., 1], x[..., 2] = asked, found, 1
        x[..., 3 : 3 + heads] = rng.integers(-2, 3, size=(b, t, heads))
        yield _case(
            f"large-{i}", "scores of 0 and ±10,000", x, state, heads, t + 2, stage="extremes", atol=5e-3, rtol=1e-3
        )


HIDE = "scores = scores.masked_fill(self.hidden[:t, :t], -torch.inf)"
ADDED = "scores = scores + torch.zeros_like(scores).masked_fill(self.hidden[:t, :t], {})"
SOFTMAX = "weights = torch.softmax(scores, dim=-1)"
ONE_SUM = "weights = weights / weights.sum(dim=-1, keepdim=True)"
SPLIT = "split = self.qkv(x).view(b, t, 3, self.num_heads, -1)\n        q, k, v = split.permute(2, 0, 3, 1, 4)"
DEALT = ("3, self.num_heads, -1", "3, -1, self.num_heads", "2, 0, 3, 1, 4", "2, 0, 4, 1, 3")
THIRDS = "q, k, v = (part.{} for part in self.qkv(x).chunk(3, dim=-1))"
SCALE = " / math.sqrt(q.shape[-1])"
TOO_LONG = """if t > self.max_len:
            raise ValueError(f'T = {t} is longer than max_len = {self.max_len}')"""
UNEVEN = """if d_model % num_heads:
            raise ValueError(f'd_model = {d_model} is not divisible by num_heads = {num_heads}')"""
FINITE = patch("-torch.inf", "-1000000000.0")
NO_DROPOUT = patch("self.dropout(weights)", "weights")


@exercise(
    kind="class",
    points=4,
    minutes=25,
    difficulty=3,
    result_type="tensor",
    result_names=("output",),
    forbids=("attention",),
)
class CausalMultiHeadAttention:
    """Write causal attention of many heads, with one projection for q, k and v, and dropout."""

    def cases(rng):
        """Values and gradients, another mode and precision, dropout, large scores, what should be refused."""

        def case(key: str, title: str, shape: tuple[int, ...], heads: int, max_len: int, **more: Any) -> Case:
            state = random_parameters(rng, fused_shapes(shape[-1]), 0.7 if heads < 5 else 0.4)
            return _case(key, title, rng.normal(size=shape), state, heads, max_len, **more)

        saved = {"probe": "probes.attention", "reading": readings.attention}
        yield case("small", "three tokens, two heads of two numbers", (1, 3, 4), 2, 5, **saved)
        yield case("sizes", "all sizes different, three heads", (2, 5, 12), 3, 7, grad=True)
        yield case("full", "as many tokens as max_len: ten, four items, six heads", (4, 10, 12), 6, 10, **saved)
        yield case("seen-again", "the same sizes, new numbers", (2, 5, 12), 3, 7)
        yield case("two", "two heads of four numbers", (3, 4, 8), 2, 9, grad=True, **saved)
        before = {
            "probe": "shared.probes.after_earlier_calls",
            "options": {"earlier": ((np.ones((2, 4, 3), np.float32),),)},
        }
        yield case("one-head", "one head, after a call in which it had other weights", (2, 4, 3), 1, 6, **before)
        yield case("one-token", "one token, more items than max_len", (5, 1, 4), 2, 4)
        yield case("room", "room for twice as many tokens", (2, 4, 6), 2, 8, grad=True)
        earlier = earlier_inputs(rng, (1, 2, 8), (2, 3, 8))
        yield case(
            "training",
            "in training mode, without dropout, heads of one number, after calls with two and three other tokens",
            (2, 3, 8),
            8,
            5,
            probe="shared.probes.after_earlier_calls",
            grad=True,
            options={"mode": "train", "earlier": earlier},
        )
        yield from _companions(rng)
        yield from _dropout(rng)
        yield from _large(rng)
        for t, max_len in ((6, 5), (4, 2), (9, 3)):
            x = rng.normal(size=(2, t, 4))
            yield _case(
                f"long-{t}",
                f"{t} tokens, max_len {max_len}",
                x,
                random_parameters(rng, fused_shapes(4)),
                2,
                max_len,
                raises="ValueError",
            )
        for d_model, heads in ((8, 3), (6, 4), (5, 2)):
            x = Tensor(rng.normal(size=(1, 3, d_model)).astype(np.float32))
            yield Case(
                f"uneven-{d_model}",
                f"{heads} heads do not divide d_model {d_model}",
                (x,),
                probe="module",
                raises="ValueError",
                options={"init": (d_model, heads, 4)},
            )

    @holds("a later token changes no earlier output", cases=("before", "after"))
    def past_is_fixed(_, first, __, second):
        moved = np.abs(first["output"][:, :3] - second["output"][:, :3]).max(axis=(0, 2))
        at = int(moved.argmax())
        return None if moved[at] < 1e-4 else f"output {at} moved by {moved[at]:.3g} when only tokens 3 and 4 changed."

    apart = batch_independence("after", "other item")

    hints = (
        "The fused projection gives 3 · d_model numbers a token. Which of them are q, and which of those belong to head 0?",
        "`self.qkv(x).view(B, T, 3, num_heads, d_head)` names the axes in the order in which the numbers lie; `permute` moves them. An "
        "`nn.Dropout` of the module follows its mode.",
        "q, k, v = self.qkv(x).view(B, T, 3, ____, ____).permute(____)  # each (B, num_heads, T, d_head)\n"
        "scores = q @ k.mT / math.sqrt(____)\nweights = self.dropout(torch.softmax(scores.masked_fill(____, -torch.inf), dim=-1))\n"
        "return self.proj((weights @ v).transpose(____).reshape(B, T, d_model))",
    )

    mistakes = {
        **scale_mistakes(),
        "SD3": patch("q.shape[-1]", "d_model"),
        "SD4": patch("q.shape[-1]", "self.num_heads"),
        "SD6": patch(SCALE, "", SOFTMAX, SOFTMAX + SCALE),
        "SD8": (patch("q, k, v =", "k, q, v ="), patch("self.dropout(weights)", "self.dropout(weights).mT")),
        "SM1": patch("dim=-1", "dim=-2"),
        "SM2": (
            patch("dim=-1", "dim=0"),
            patch("dim=-1", "dim=1"),
            patch("dim=-1", "dim=0") + FINITE,
            patch("dim=-1", "dim=1") + FINITE,
        ),
        "SM3": (
            softmax_by_hand("scores - scores.max()", "e.sum()"),
            softmax_by_hand("scores - scores.amax(dim=(0, 2, 3), keepdim=True)", "e.sum(dim=(0, 2, 3), keepdim=True)"),
        ),
        "SM4": softmax_by_hand(ROW_MAXIMUM, "e.sum(dim=-1)"),
        "SM5": softmax_by_hand("scores"),
        "SM6": (
            softmax_by_hand("scores - scores.max()"),
            softmax_by_hand("scores - scores.amax(dim=(-2, -1), keepdim=True)"),
        ),
        "MH1": tuple(patch(SPLIT, THIRDS.format(f"{cut}(b, self.num_heads, t, -1)")) for cut in ("reshape", "view")),
        "MH2": patch("heads.transpose(1, 2)", "heads"),
        "MH3": patch("2, 0, 3, 1, 4", "2, 0, 1, 3, 4", HIDE, "pass", "heads.transpose(1, 2)", "heads"),
        "MH4": patch("reshape", "view"),
        "MH5": patch("self.dropout(weights)", "F.dropout(weights, self.dropout.p)"),
        "MK1": patch("triu(diagonal=1)", "tril()"),
        "MK2": patch(HIDE, "pass", SOFTMAX, f"{SOFTMAX} * ~self.hidden[:t, :t]"),
        "MK3": patch(HIDE, "scores = scores * ~self.hidden[:t, :t]"),
        "MK4": (patch("-torch.inf", "-10000.0"), patch(HIDE, ADDED.format("-10000.0")), patch("-torch.inf", "-1000.0")),
        "MK5": patch(HIDE, "scores = scores + self.hidden[:t, :t].to(scores) * -torch.inf"),
        "MK6": patch(HIDE, "scores = scores + ~self.hidden[:t, :t]"),
        "MK7": tuple(
            patch("diagonal=1", "diagonal=0") + way
            for way in (
                patch(),
                patch(HIDE, ADDED.format("-torch.inf")),
                FINITE,
                patch(HIDE, ADDED.format("-1000000000.0")),
            )
        ),
        "MK8": patch("diagonal=1", "diagonal=2"),
        "MK13": (
            patch(HIDE, "pass"),
            *(
                patch(HIDE, f"if {seldom}:\n            {HIDE}")
                for seldom in ("self.training", "not self.training", "t == self.max_len")
            ),
        ),
        "DT3": patch("self.register_buffer('hidden', hidden, persistent=False)", "self.hidden = hidden"),
        "MU21": patch(HIDE, "pass", SOFTMAX, f"{SOFTMAX} * ~self.hidden[:t, :t]\n        {ONE_SUM}"),
        "BW3": patch("dropout(weights)", "dropout(weights.detach())"),
        "PJ2": (
            patch("3 * d_model, bias=False", "3 * d_model", "(d_model, d_model, bias=False", "(d_model, d_model"),
            patch("(d_model, d_model, bias=False", "(d_model, d_model"),
        ),
        "PJ3": patch("3, self.num_heads, -1", "self.num_heads, 3, -1", "2, 0, 3, 1, 4", "3, 0, 2, 1, 4"),
        "CM1": mistake(
            NO_DROPOUT,
            patch("self.dropout(weights)", "F.dropout(weights, training=self.training)"),
            says="The argument dropout has no effect: pass it on to what drops attention weights in training.",
            why="""A value that `__init__` takes and `forward` never uses looks harmless: every test without dropout passes. Keep an
            `nn.Dropout(dropout)` in the module and send the weights through it before they meet v. `F.dropout` and `nn.Dropout`
            without a probability drop half of the weights. A block takes the argument for its attention, whose default is 0.0; with
            `self.attn.eval()` in forward the dropout is there and never acts, since `block.train()` sets the mode of all its parts.""",
        ),
        "CM2": mistake(
            NO_DROPOUT + patch("self.proj(merged)", "self.proj(self.dropout(merged))"),
            NO_DROPOUT
            + patch(
                "scores = q @ k.mT / math.sqrt(q.shape[-1])", "scores = self.dropout(q @ k.mT / math.sqrt(q.shape[-1]))"
            ),
            NO_DROPOUT + patch(HIDE, HIDE.replace("scores = ", "scores = self.dropout(") + ")"),
            patch("self.dropout(weights) @ v", "weights @ self.dropout(v)"),
            patch("self.proj(merged)", "self.dropout(self.proj(merged))"),
            patch("self.proj(merged)", "self.proj(self.dropout(merged))"),
            says="""Dropout acts at another place, or at one more; it should act on the attention weights, after softmax, and on
            nothing else.""",
            why="""Dropping a weight hides a whole token from one query and head. A number that is dropped from the output hides one
            feature of what came back, and a number dropped from v is missing for every query. A score that is dropped becomes 0,
            which does not take its key away, since softmax makes e⁰ of it; where the mask has put −∞ before, −∞ · 0 is NaN. Many
            models drop behind the heads or in the branches of a block, too, with a probability for each. Here there is one `dropout`.""",
        ),
        "CM5": mistake(
            patch("nn.Dropout(dropout)", "nn.Dropout(1 - dropout)"),
            says="What is kept and what is dropped are exchanged: dropout is the share of weights that should be dropped.",
            why="""`nn.Dropout(p)` and `F.dropout(weights, p)` take the probability that a number is dropped. With 1 − dropout in its place
            the default of 0.0 drops everything in training. TensorFlow's first versions asked for the share that is kept, `keep_prob`,
            and code written after them still says 1 − p.""",
        ),
        "CM4": mistake(
            patch(
                "heads = self.dropout(weights)",
                """if self.training:
            weights = weights * (torch.rand_like(weights) >= self.dropout.p)
        heads = weights""",
            ),
            patch(
                "heads = self.dropout(weights)",
                """weights = self.dropout(weights)
        weights = weights / weights.sum(dim=-1, keepdim=True).clamp_min(1e-09)
        heads = weights""",
            ),
            says="The weights that dropout keeps should be multiplied by 1/(1 − p), and by nothing else.",
            why="""A share p of the weights is missing on average, so without the factor the output would be smaller in training than
            in evaluation. `nn.Dropout` divides what stays by 1 − p. The sum of a dropped row then differs from 1, and that is meant:
            on average over many steps it is 1. Divided by its own sum, a row gets a factor that depends on what was dropped.""",
        ),
        "CM7": (
            patch(TOO_LONG, ""),
            patch(TOO_LONG, "", "self.hidden[:t, :t]", "torch.ones(t, t, dtype=torch.bool).triu(diagonal=1)"),
        ),
        "MU1": (
            patch(UNEVEN, ""),
            patch(
                UNEVEN,
                "",
                SPLIT,
                THIRDS.format("view(b, t, self.num_heads, d_model // self.num_heads).transpose(1, 2)"),
            ),
        ),
        "CM9": patch("persistent=False", "persistent=True"),
        "MU2": patch("self.proj(merged)", "merged"),
        "MU31": patch("q, k, v =", "v, k, q ="),
        "MA1": (
            patch("triu(diagonal=1)", "tril(diagonal=-1)"),
            patch("triu(diagonal=1)", "tril()", HIDE, ADDED.format("-torch.inf")),
        ),
        "MU4": (patch(*DEALT), patch(*DEALT, "heads.transpose(1, 2).reshape", "heads.permute(0, 2, 3, 1).reshape")),
    }
