"""Lesson 02: what its softmaxes share: cases, a property, and mistakes with the maximum, the sum and their axes."""

from collections.abc import Iterator, Mapping

import numpy as np

from grader.course.declare import Case, Property, mistake, patch
from grader.course.patches import Patch

Array = np.ndarray
FLOAT32_AT_1E4 = 2e-3  # neighbouring float32 numbers near 10000 are 1e-3 apart; exp makes of it a relative error


def first_cases(rng: np.random.Generator) -> Iterator[Case]:
    rows = np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 1.0]])
    yield Case("small", "one row of three", (rows[0],))
    yield Case("rows", "two rows of three", (rows,))
    yield Case("columns", "two rows of three, along axis 0", (rows, 0))
    yield Case("seen-again", "two rows of three, new numbers", (rng.normal(size=(2, 3)),))
    yield Case("square", "as many rows as columns", (rng.normal(size=(4, 4)),))


def rows_apart(rng: np.random.Generator) -> Array:
    return np.array([[0.0, 1.0, 0.5], [-5000.0, -5001.0, -5000.5]]) + rng.integers(0, 3, size=(2, 3))


def worst_sum(case: Case, weights: Array) -> tuple[int, float]:
    """The axis that a case asks for, and the sum along it that is farthest from 1."""
    at = len(case.names) - 1  # axis is the last parameter
    axis = case.args[at] if len(case.args) > at else case.kwargs.get("axis", -1)
    totals = np.ravel(weights.sum(axis=axis))
    return axis, float(totals[np.abs(totals - 1).argmax()])


def sums_to_1() -> Property:
    def check(case: Case, parts: Mapping[str, Array]) -> str | None:
        axis, worst = worst_sum(case, parts["result"])
        if abs(worst - 1) < 1e-4:
            return None
        said = f"{worst:.4g}"
        return f"along axis {axis} a sum is {said if said != '1' else f'{worst:.7g}'}."

    return Property("along the axis the weights sum to 1", check)


WEIGHTS = (
    "[number / sum(e) for number in e]",
    "np.array(e) / sum(e)",
)  # of a list the division by 0 raises, of an array it does not
LOST = "keepdims=False"


def top(axis: str = "axis", keep: str = "keepdims=True") -> Patch:
    """The maximum taken otherwise."""
    return patch(".max(axis=axis, keepdims=True)", f".max(axis={axis}, {keep})")


def total(axis: str = "axis", keep: str = "keepdims=True") -> Patch:
    """The sum taken otherwise."""
    return patch(".sum(axis=axis, keepdims=True)", f".sum(axis={axis}, {keep})")


def both(axis: str) -> Patch:
    return top(axis) + total(axis)


def softmax_mistakes(x: str) -> dict[str, Patch | tuple[Patch, ...]]:
    """Mistakes in any softmax of the array that the reference calls x."""
    return {
        "SM3": (both("None"), total("None")),
        "SM4": (total(keep=LOST), total(keep=LOST) + top(keep=LOST), top(keep=LOST)),
        "SM5": (patch(f"{x} - top", x), patch(".max(", ".mean("), patch(".max(", ".min(")),
        "SM6": top("None"),
        "SX1": mistake(
            both("-1"),
            total("-1"),
            total("0"),
            both("0"),
            both("-2"),
            *(patch("axis: int=-1", f"axis: int={axis}") for axis in (0, -2)),
            says="""The sum ran along another axis than the one asked for; it should run along `axis`, and where none is
            named along the last.""",
            why="""A fixed axis in the code, the last or the first, is right only for calls that happen to ask for it. Asked
            for axis=0, the columns have to sum to 1, and along the last axis the rows still do. With `axis=0` in the code,
            or as the default, it is the other way round, and a single row gets the weight 1 everywhere. For as many rows as
            columns no shape shows it.""",
        ),
        "SX53": (top("-1"), top("0")),
        "SX25": (top(keep="initial=0, keepdims=True"), patch(f"{x}.max(", f"np.abs({x}).max(")),
    }


def with_math_exp(
    x: str, less: str = "0.0", result: str = "grown / total", weights: tuple[str, ...] = WEIGHTS
) -> tuple[Patch, ...]:
    """Slice by slice with math.exp, which raises where np.exp gives ∞.

    x, result: what the reference calls its input, and what it returns. less: is subtracted from every number.
    weights: ways to make the result of a slice's exponents `s`, a list, and of their exponentials `e`.
    """
    return tuple(
        patch(
            f"return {result}",
            f"""import math

    def of_slice(numbers):
        s = [float(number) - {less} for number in numbers]
        e = [math.exp(number) for number in s]
        return {way}
    made = np.apply_along_axis(of_slice, axis, {x})
    return made.astype({x}.dtype if {x}.dtype.kind == 'f' else float)""",
        )
        for way in weights
    )


def loss_inputs(rng: np.random.Generator) -> Iterator[tuple[str, str, tuple[Array, Array]]]:
    """(key, title, (scores, targets)) of ordinary predictions; a target is the position of the right answer."""

    def told(key: str, title: str, *shape: int, scores: Array | None = None) -> tuple[str, str, tuple[Array, Array]]:
        scores = rng.normal(size=shape) if scores is None else scores
        return key, title, (scores, rng.integers(0, shape[-1], shape[:-1]))

    rows = np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 1.0]])
    yield "small", "one row of three, target 1", (rows[0], np.array(1))
    yield "rows", "two rows of three, targets 2 and 0", (rows, np.array([2, 0]))
    yield "seen-again", "the same shape, targets 1 and 2", (rng.normal(size=(2, 3)), np.array([1, 2]))
    yield "square", "as many rows as entries", (rng.normal(size=(4, 4)), np.array([3, 0, 0, 2]))
    yield told("cube", "three dimensions", 2, 3, 5)
    yield told("deep", "four dimensions", 2, 3, 5, 4)
    yield told("whole", "whole numbers", 3, 4, scores=rng.integers(-3, 4, (3, 4)))
    yield told("float32", "float32 scores", 5, 6, scores=rng.normal(size=(5, 6)).astype(np.float32))
    yield told("one", "a single entry in each row", 3, 1)
    yield told("long", "twenty rows of seven", 20, 7)
    scores, targets = rng.normal(size=(4, 19)) * 3, rng.integers(0, 19, 4).astype(np.int32)
    yield "int32", "targets of type int32", (scores, targets)


def loss_extremes(rng: np.random.Generator) -> Iterator[tuple[str, str, tuple[Array, Array]]]:
    """The same for large scores, and for rows that lie far from one another."""
    # exp(−720) is not yet 0, and exp(720) is infinite already: what overflows differs here from what underflows.
    yield "below", "0 and −720, the lower one right", (np.array([0.0, -720.0, -3.0]), np.array(1))
    yield "lost", "ten thousand and minus ten thousand, the lower one right", (np.array([1e4, -1e4]), np.array(1))
    yield "far-small", "0 and minus ten thousand, in float32", (np.array([[0.0, -1e4, 3.0]], np.float32), np.array([1]))
    x = rng.integers(-100, 101, (3, 4)) * 100.0
    x[:, 0], x[:, 1] = 1e4, -1e4
    yield "large", "entries of ten thousand and minus ten thousand", (x, np.array([1, 0, 2]))
    for i in range(3):
        yield f"apart-{i}", "rows far from one another", (rows_apart(rng), np.array([i, 0]))
