"""Heads over ranks: each rank attends with its own heads, and one sum puts the parts together."""

from dataclasses import replace
from typing import Any

import numpy as np

from grader.course.declare import UNTRIED, Case, Tensor, exercise, holds, mistake, patch

from ...shared.library import on_another_device, scale_mistakes, softmax_by_hand
from .. import readings
from ..readings import OUTPUT

SPLIT = "q, k, v = (part.unflatten(-1, (num_local_heads, -1)).transpose(1, 2) for part in (x @ qkv_shard.mT).chunk(3, dim=-1))"
HIDE = "scores = scores.masked_fill(future, -math.inf)"
MERGED = "merged = (weights @ v).transpose(1, 2).flatten(2)"
PARTIAL, RETURN = "partial = merged @ proj_shard.mT", "return all_reduce(partial)"
SIZE = "x.shape[-1] // proj_shard.shape[1]"  # the number of ranks, which only the shards tell


@exercise(points=3, minutes=12, difficulty=2, result_type="tensor", forbids=("attention",), pair_runs=30)
class tensor_parallel_attention:
    """Attend with this rank's heads, and add up over the ranks, once, what the heads contribute to the output."""

    def cases(rng):
        def case(
            key: str,
            title: str,
            shape: tuple[int, int, int],
            heads: int,
            size: int,
            *,
            dtype: str = "float32",
            scale: float = 0.7,
            level: float = 0.0,
            stage: Any = "values",
            watched: bool = True,
            **options: Any,
        ) -> Case:
            """level: what is added to all scores. watched: False where an answer goes the way that it goes in a case before, which shows
            whether by ready-made operators."""
            d_model = shape[-1]
            x, proj = rng.normal(size=shape), rng.normal(size=(d_model, d_model))
            qkv = scale * rng.normal(size=(3, d_model, d_model))
            if key == "small":
                x, proj, qkv = (rng.integers(-2, 3, size=part.shape).astype(float) for part in (x, proj, qkv))
            if level:  # the first number of every head's q and k is the same for all tokens
                root = np.sqrt(abs(level)) * (d_model / heads) ** 0.25
                x[..., 0] = 1
                qkv[:2, :: d_model // heads] = 0
                qkv[0, :: d_model // heads, 0], qkv[1, :: d_model // heads, 0] = root, root * np.sign(level)
            rows = tuple(Tensor(part.reshape(-1, d_model), dtype) for part in np.split(qkv, size, axis=1))
            columns = tuple(Tensor(part, dtype) for part in np.split(proj, size, axis=1))
            return Case(
                key,
                title,
                (Tensor(x, dtype), rows, columns),
                probe="probes.heads",
                reading=readings.heads,
                names=("x", "qkv_shard", "proj_shard"),
                options={"num_local_heads": heads // size, **options},
                stage=stage,
                watched=watched,
                rtol=5e-3 if stage == "extremes" else None,
                atol=5e-3 if stage == "extremes" else None,
            )

        yield case("small", "two ranks with a head of one number each", (1, 2, 2), 2, 2)
        yield case("sizes", "three ranks with two heads of four numbers each", (2, 5, 24), 6, 3)
        yield case("seen-again", "the same sizes, new numbers", (2, 5, 24), 6, 3, watched=False)
        yield case("square", "as many tokens as local heads and numbers in a head", (2, 3, 18), 6, 2)
        yield case("four", "four ranks with one head of two numbers each", (3, 4, 8), 4, 4, watched=False)
        yield case("many heads", "two ranks with three heads of one number each", (1, 7, 6), 6, 2)
        yield case("alone", "one rank with both heads", (2, 4, 6), 2, 1)
        yield case("alone again", "one rank with all three heads", (1, 5, 12), 3, 1, watched=False)
        yield case("one head", "one rank with one head", (3, 2, 5), 1, 1)
        yield case("one token", "one token, two items", (2, 1, 6), 2, 2)
        yield case("long", "eighteen tokens", (1, 18, 8), 4, 2)
        yield case("double", "float64", (2, 3, 12), 6, 3, dtype="float64", watched=False)
        yield case("named", "all inputs passed by name", (2, 3, 8), 4, 2, by_name=True, watched=False)
        for i in range(3):
            title = "scores in the thousands, two ranks with two heads each"
            more = {"stage": "extremes", "watched": i == 0}
            yield case(f"large-{i}", title, (1, 5, 12), 4, 2, scale=9.0, **more)
            yield case(f"low-{i}", "scores near −9,998, two ranks", (1, 4, 12), 4, 2, level=-9998.0, **more)
        for key in ("elsewhere", "elsewhere again", "elsewhere once more"):
            title = "two ranks, and others on another machine, whose parts add up to the same"
            yield case(key, title, (1, 2, 6), 2, 2, watched=False, elsewhere=True)
        shared = case("sizes", "one of two ranks with two heads each", (2, 3, 8), 4, 2, watched=False)
        x, rows, columns = shared.args
        yield replace(
            on_another_device(shared),
            args=(x, rows[0], columns[0]),
            probe="probes.heads_on_device",
            options={"num_local_heads": 2},
        )

    @holds("every rank calls all_reduce exactly once")
    def once(case, parts):
        return readings.miscounted("all_reduce", 1, parts)

    @holds("every rank returns the same output")
    def same(case, parts):
        first, *others = (parts[OUTPUT.format(rank)] for rank in range(len(case.args[1])))
        gaps = [np.abs(other - first).max() if other.shape == first.shape else np.inf for other in others]
        if not gaps:
            return UNTRIED
        worst = int(np.argmax(gaps))
        if gaps[worst] < 1e-3 * max(1.0, np.abs(first).max()):
            return None
        return f"ranks 0 and {worst + 1} differ by up to {gaps[worst]:.3g}."

    hints = (
        "The output of the whole module is a sum over its heads (each head meets its own columns of proj). Which terms of that sum can "
        "this rank compute?",
        "With the shards for weights, everything up to the output is lesson 09's forward pass with num_local_heads heads. The result has "
        "the full shape (B, T, d_model) and lacks the other ranks' terms. One call of all_reduce adds them.",
        "q, k, v = (x @ qkv_shard.mT).chunk(3, dim=-1)  # each (B, T, num_local_heads · d_head)\n"
        "…  # split into num_local_heads heads; causal weights; merge\n"
        "partial = ____ @ proj_shard.mT  # (B, T, d_model)\nreturn all_reduce(____)",
    )

    mistakes = {
        **scale_mistakes(),
        "SM1": patch("torch.softmax(scores, dim=-1)", "torch.softmax(scores, dim=-2)"),
        "SM5": softmax_by_hand("scores", indent=4),
        "SM6": softmax_by_hand("scores - scores.max()", indent=4),
        "SD8": patch("q, k, v = ", "k, q, v = "),
        "MH1": patch(
            SPLIT,
            "b, t, _ = x.shape\n"
            "    q, k, v = (part.reshape(b, num_local_heads, t, -1) for part in (x @ qkv_shard.mT).chunk(3, dim=-1))",
        ),
        "MH2": patch(MERGED, "merged = (weights @ v).reshape(x.shape[0], x.shape[1], -1)"),
        "MK1": patch("triu(1)", "tril()"),
        "MK3": patch(HIDE, "scores = scores.masked_fill(future, 0)"),
        "MK4": (patch("-math.inf", "-10000.0"), patch("-math.inf", "-1000.0")),
        "MK7": (patch("triu(1)", "triu()"), patch("triu(1)", "triu()", "-math.inf", "-1000000000.0")),
        "MK8": patch("triu(1)", "triu(2)"),
        "TA3": mistake(
            patch(PARTIAL, "partial = all_reduce(merged) @ proj_shard.mT", RETURN, "return partial"),
            patch(PARTIAL, "partial = all_reduce(merged) @ proj_shard.mT"),
            says="The heads' results were summed over the ranks before proj; sum after it.",
            why="""On rank 0 column 0 of `merged` belongs to head 0, on rank 1 to another head. Their sum means nothing. After proj_shard
            every rank has contributions to the same d_model numbers, and those may be added.""",
        ),
        "TA5": mistake(
            patch(RETURN, f"return all_reduce(partial) / ({SIZE})"),
            says="The mean over the ranks was taken; their parts should be added.",
            why="""Gradients of copies of one model are averaged, since every rank computes the same thing on other data. Here every rank
            has other heads, that is, other terms of one sum.""",
        ),
        "TA6": mistake(
            patch(RETURN, "all_reduce(partial)\n    return partial"),
            says="all_reduce was called, and what it returned was not used: here it returns the sum as a new tensor.",
            why="""`torch.distributed.all_reduce` writes the sum into the tensor that it is given. This exercise's all_reduce leaves it
            alone and returns the sum.""",
        ),
        "TA7": mistake(
            patch(RETURN, f"if {SIZE} == 1:\n        return partial\n    return all_reduce(partial)"),
            says="With a single rank all_reduce was left out; it should be called there, too.",
            why="""The sum over one rank is the tensor itself. Code without a special case is the same on one device and on a thousand,
            and a collective that some call and others skip is how programs come to wait forever.""",
        ),
        "SD3": patch("math.sqrt(q.shape[-1])", "math.sqrt(x.shape[-1])"),
        "SD4": patch("math.sqrt(q.shape[-1])", "math.sqrt(num_local_heads)"),
        "MU4": patch(
            "unflatten(-1, (num_local_heads, -1)).transpose(1, 2)",
            "unflatten(-1, (-1, num_local_heads)).movedim(-1, 1)",
        ),
        "TB33": (patch(RETURN, "return all_reduce(partial) + x"), patch(RETURN, "return all_reduce(partial + x)")),
        "PJ3": patch(
            SPLIT, "q, k, v = (x @ qkv_shard.mT).unflatten(-1, (num_local_heads, 3, -1)).permute(3, 0, 2, 1, 4)"
        ),
        "TA10": mistake(
            patch(
                RETURN,
                "return sum(all_reduce(part) for part in [head @ columns.mT for head, columns in "
                "zip((weights @ v).unbind(1), proj_shard.chunk(num_local_heads, dim=1))])",
            ),
            patch(RETURN, "return torch.stack([all_reduce(item) for item in partial])"),
            says="all_reduce was called several times, for one piece each; put together what is local first, and call it once.",
            why="""The result is right, and the cost is not. Every call waits for the slowest rank and pays the time that a message takes
            however short it is. One call of the whole (B, T, d_model) sends the sum of this rank's heads once.""",
        ),
        "TA15": mistake(
            *(
                patch("math.sqrt(q.shape[-1])", f"math.sqrt(x.shape[-1] {divided} num_local_heads)")
                for divided in ("/", "//")
            ),
            patch("math.sqrt(q.shape[-1])", "math.sqrt(proj_shard.shape[1])"),
            says="""The scores were divided by √(d_model / num_local_heads), or by the root of this rank's share of d_model; divide by
            √d_head.""",
            why="""d_head is d_model / num_heads, and a rank has only num_local_heads of these. What it does have is the width of its own q,
            k and v: proj_shard has num_local_heads · d_head columns. The scale makes up for a sum over the d_head numbers of one head;
            otherwise the result depends on the number of ranks.""",
        ),
        "TA16": mistake(
            *(
                patch(SPLIT, "q, k, v = (part[:, None] for part in (x @ qkv_shard.mT).chunk(3, dim=-1))", *scale)
                for scale in ((), ("math.sqrt(q.shape[-1])", "math.sqrt(q.shape[-1] // num_local_heads)"))
            ),
            says="The rank's numbers were taken for one head; they should be split into num_local_heads heads.",
            why="""Each head has scores of its own, from its own d_head numbers. One dot product over all of them adds the scores of
            different heads, so that they share one set of weights. Where a rank has a single head, nothing shows it.""",
        ),
        "TA17": mistake(
            patch(
                RETURN,
                "parts = globals().setdefault('parts', [])\n"
                "    parts.append(partial)\n"
                "    all_reduce(partial)\n"
                f"    return sum(parts[-({SIZE}):])",
            ),
            says="The parts were added up in memory that all ranks share, such as a global variable; the sum should come from all_reduce.",
            why="""The check runs ranks as threads of one process, which share their variables. Real ranks are processes, on several
            devices or machines: each has variables of its own, and what others have computed comes through a collective alone. In the
            case shown, some ranks are on another machine, and their part of the sum is in no variable here.""",
        ),
        "MK13": patch(HIDE, "pass"),
    }
