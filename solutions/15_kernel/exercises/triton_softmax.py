"""A row of softmax a program."""

from __future__ import annotations

import numpy as np

from grader.course.declare import Tensor, exercise, holds, mistake, patch

from ..shared import HALF, case, compiled, normal

OFFSETS = "offsets = tl.program_id(0) * n + columns"
LOAD = "scores = tl.load(x + offsets, mask=mask, other=-float('inf')).to(tl.float32)"
EXPS = "p = tl.exp(scores - tl.max(scores, axis=0))"
WEIGHTS = "p / tl.sum(p, axis=0)"
LAUNCH = "softmax_kernel[rows,](x, out, n, BLOCK=triton.next_power_of_2(n))"
ZERO = patch(LOAD, LOAD.replace("-float('inf')", "0.0"))
WIDE = patch("triton.next_power_of_2(n)", "2048")  # one block for all lengths
PADDED = patch(
    LOAD, LOAD.replace("-float('inf')", "0.0"), EXPS, EXPS.replace("tl.exp(", "tl.where(mask, tl.exp(") + ", 0.0)"
)
NO_SHIFT = patch(EXPS, "p = tl.exp(scores)")


def _rows(*rows: list[float]) -> tuple[Tensor]:
    return (Tensor(np.array(rows, np.float32)),)


def _extremes(rng):
    """Rows at the ends of the range, and rows whose largest entry is neither the first nor the last."""
    near = rng.normal(size=(2, 5))
    yield "scores near 10,000 and near −10,000", near / 2 + np.array([[9998.0], [-9998.0]])
    far = np.array(
        [[-9000.0, 9000, 8999, -9000, 0], [100.0, -300, 301, 300.5, -100], [-500.0, -400, -399, -401, -9000]]
    )
    yield "scores far apart, the largest in the middle", far
    yield "rows of 70 below −1,000", rng.normal(size=(2, 70)) - 1000
    yield "rows at levels of their own", near[[0, 1, 0]] + np.array([[5000.0], [-5000], [0]])
    yield "a row of eight, far apart", np.array([[-9000.0, 9000, 8999, -9000, 0, 8998, 300, -300]])


@exercise(
    points=3,
    minutes=10,
    difficulty=2,
    result_type="tensor",
    forbids=("attention", "table"),
    process="own",
    pair_runs=0,
    libraries=("triton",),
)
class triton_softmax:
    """Turn each row of a matrix into weights by a kernel of your own, one row a program."""

    def cases(rng):
        yield case("small", "a row of three", _rows([0.0, float(np.log(2)), 0.0]))
        yield case("sizes", "two rows of five", normal(rng, (2, 5)))
        yield case("seen again", "the same sizes, new numbers", normal(rng, (2, 5)))
        yield case("one row", "a row of seven", normal(rng, (1, 7)))
        yield case("power of two", "three rows of eight", normal(rng, (3, 8)))
        yield case("square", "four rows of four", normal(rng, (4, 4)), options={"by_name": True})
        yield case("one column", "four rows of one", normal(rng, (4, 1)))
        yield case("below zero", "all entries below −3", (Tensor((rng.normal(size=(3, 6)) - 6).astype(np.float32)),))
        yield case("many rows", "nineteen rows", normal(rng, (19, 3)), show=False)
        yield case("wide", "two rows of 70", normal(rng, (2, 70)), show=False)
        hidden = rng.normal(size=(3, 5)).astype(np.float32)
        hidden[[0, 0, 1, 2, 2, 2], [0, 4, 2, 1, 2, 4]] = -np.inf
        yield case("hidden", "some entries are −∞", (Tensor(hidden),))
        for key, shape in (("half", (2, 3)), ("half again", (3, 9)), ("half wide", (1, 150))):
            yield case(key, "float16", normal(rng, shape, dtype=np.float16), show=shape[1] < 100, **HALF)
        for key, title in (("widest", "a row of 1,100"), ("widest again", "the same size, new numbers")):
            yield case(key, title, normal(rng, (1, 1100)), show=False)
        late = rng.normal(size=(1, 1100)).astype(np.float32)
        late[:, :1030] = -np.inf  # a row in blocks: the maximum of the first ones is −∞, and −∞ − (−∞) is NaN
        yield case("late", "a row of 1,100 that begins with 1,030 times −∞", (Tensor(late),), show=False)
        for number, (title, x) in enumerate(_extremes(rng)):
            yield case(
                f"large-{number}",
                title,
                (Tensor(x.astype(np.float32)),),
                stage="extremes",
                show=x.shape[1] < 10,
                rtol=2e-3,
            )
        yield compiled(rng, (3, 9))

    @holds("each row sums to 1")
    def sums(case, parts):
        sums = parts["result"].astype(np.float64).sum(axis=-1)
        worst = int(np.abs(sums - 1).argmax())
        return None if abs(sums[worst] - 1) < 2e-2 else f"row {worst} sums to {sums[worst]:.4g}."

    hints = (
        "Which lanes of a block hold no entry of the row? What must such a lane count as in the maximum, and in the sum?",
        "The row of program i begins at i · n. Load with `other=-float('inf')`: no maximum is below "
        "it, and its exponential is 0. Compute in "
        "float32 whatever the input's type is.",
        "offsets = tl.program_id(0) * ____ + columns\nscores = tl.load(x + offsets, mask=____, other=____).to(tl.float32)\n"
        "p = tl.exp(scores - ____)\ntl.store(out + offsets, p / ____, mask=____)",
    )

    mistakes = {
        "KN20": mistake(
            NO_SHIFT,
            NO_SHIFT + WIDE,
            says="The row's maximum was not subtracted, so that large scores overflow: exp(89) is already too large for float32.",
            why="""softmax(x) = softmax(x − c) for any c. With c = the row's maximum the largest exponential is exp(0) = 1, and the sum
            is at least 1: nothing overflows, and nothing is divided by 0.""",
        ),
        "KN21": mistake(
            ZERO,
            ZERO + WIDE,
            ZERO + NO_SHIFT,
            ZERO + NO_SHIFT + WIDE,
            says="The lanes beyond the row count as scores of 0, and get weight: load them as −∞ (`other=-float('inf')`).",
            why="""A row of five in a block of eight has three lanes too many. A score of 0 is a score like others: its exponential
            goes into the sum. exp(−∞) is 0.""",
        ),
        "KN22": mistake(
            PADDED,
            PADDED + WIDE,
            says="The maximum was taken over the lanes beyond the row, too, which count as 0: where a row lies far below 0, all of its "
            "exponentials become 0.",
            why="""Any number may be subtracted in exact arithmetic. In float32 the exponentials of a row near −1,000 are 0 unless the row's
            own maximum is subtracted, and 0 / 0 is NaN. `other=-float('inf')` keeps lanes without an entry out of the maximum.""",
        ),
        "KN23": mistake(
            patch(OFFSETS, "offsets = tl.program_id(0) * BLOCK + columns"),
            says="Rows were taken to lie BLOCK apart; they lie n apart.",
            why="""The tensor is contiguous: row i begins at entry i · n. The block is larger than the row, as a rule, and what it has
            too much is masked; it moves no row.""",
        ),
        "TT14": (
            patch(WEIGHTS, "p"),
            patch(WEIGHTS, "p / n"),
            patch(WEIGHTS, "p / BLOCK"),
            patch(WEIGHTS, "p / BLOCK") + WIDE,
        ),
        "KN33": mistake(
            patch("tl.exp(scores", "tl.exp2(scores"),
            says="2 was taken to the power of the scores, not e.",
            why="`tl.exp2` is the faster instruction. With it, the scores have to be multiplied by log₂ e = 1.4427 first.",
        ),
        "KN34": mistake(
            patch(LAUNCH, LAUNCH.replace("triton.next_power_of_2(n)", "max(1, triton.next_power_of_2(n + 1) // 2)")),
            *(
                patch(LAUNCH, LAUNCH.replace("triton.next_power_of_2(n)", str(block)))
                for block in (1024, 512, 256, 128, 64)
            ),
            says="The block is smaller than the row, so that its last entries are left out: take the next power of two.",
            why="A block has a power of two of lanes. It has to be n at least: `triton.next_power_of_2(n)`.",
        ),
        "KN35": mistake(
            patch("tl.max(scores, axis=0)", "tl.min(scores, axis=0)"),
            patch("scores - tl.max(scores, axis=0)", "scores + tl.max(scores, axis=0)"),
            patch("scores - tl.max(scores, axis=0)", "tl.max(scores, axis=0) - scores"),
            says="The exponent should be the score minus the row's maximum, so that the largest is 0; here it is something else.",
            why="exp(x − max) is at most 1. Added, the other way round, or with the minimum, exponentials overflow, or turn upside down.",
        ),
        "KN69": mistake(
            patch(LOAD, LOAD.replace(", other=-float('inf')", "")),
            says="Masked lanes have no `other=`, and hold whatever is there; say what they count as: scores as −∞, values as 0.",
            why="""Only with `other` does Triton promise a number. Its interpreter takes 0, a compiled kernel what the register held; the
            check puts NaN there. With −∞ (`other=-float('inf')`) a lane beyond the row is never the maximum, and adds 0 to the sum. Of
            values, in attention, such a lane has the weight 0, but 0 times NaN is NaN, and it goes into every output of the tile.""",
        ),
        "MK4": (
            *(
                patch("other=-float('inf')", f"other={fill}") + more
                for fill in ("-1000.0", "-100.0")
                for more in (patch(), WIDE)
            ),
        ),
    }
