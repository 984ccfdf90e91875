"""Lesson 02: what its softmaxes share: cases, a property, and mistakes with the maximum, the sum and their axes."""

from collections.abc import Iterator, Mapping

import numpy as np

from grader.course.declare import Case, Property, patch
from grader.course.patches import Patch

Array = np.ndarray
FLOAT32_AT_1E4 = 2e-3  # neighbouring float32 numbers near 10000 are 1e-3 apart; exp makes of it a relative error


def first_cases(rng: np.random.Generator) -> Iterator[Case]:
    rows = np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 1.0]])
    yield Case("small", "one row of three", (rows[0],))
    yield Case("rows", "two rows of three", (rows,))
    yield Case("columns", "the same, along axis 0", (rows, 0))
    yield Case("seen-again", "the same shape, new numbers", (rng.normal(size=(2, 3)),))
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
        return None if abs(worst - 1) < 1e-4 else f"along axis {axis} a sum is {worst:.4g}."

    return Property("along the axis the weights sum to 1", check)


WEIGHTS = ("[number / sum(e) for number in e]", "np.array(e) / sum(e)")  # of a list the division by 0 raises, of an array it does not
LOST = "keepdims=False"


def top(axis: str = "axis", keep: str = "keepdims=True") -> Patch:
    """The maximum taken otherwise."""
    return patch(".max(axis=axis, keepdims=True)", f".max(axis={axis}, {keep})")


def total(axis: str = "axis", keep: str = "keepdims=True") -> Patch:
    """The sum taken otherwise."""
    return patch(".sum(axis=axis, keepdims=True)", f".sum(axis={axis}, {keep})")


def both(axis: str) -> Patch:
    return top(axis) + total(axis)


def common(x: str) -> dict[str, Patch | tuple[Patch, ...]]:
    """Mistakes in any softmax of the array that the reference calls x."""
    return {
        "SM3": (both("None"), total("None")),
        "SM4": (total(keep=LOST), total(keep=LOST) + top(keep=LOST)),
        "SM5": patch(f"{x} - top", x),
        "SM6": top("None"),
        "SX1": (both("-1"), total("-1")),
        "SX4": patch(".max(", ".mean("),
        "SX10": patch(".max(", ".min("),
        "SX23": patch(f"{x}.max(", f"np.abs({x}).max("),
        "SX25": top(keep="initial=0, keepdims=True"),
        "SX26": top(keep=LOST),
        "SX27": (total("0"), both("0"), both("-2"), *(patch("axis: int=-1", f"axis: int={axis}") for axis in (0, -2))),
    }


def by_math(x: str, less: str = "0.0", result: str = "grown / total", weights: tuple[str, ...] = WEIGHTS) -> tuple[Patch, ...]:
    """Slice by slice with math.exp, which raises where np.exp gives ∞.

    x, result: what the reference calls its input, and what it returns. less: is subtracted from every number.
    weights: ways to make the result of a slice's exponents `s`, a list, and of their exponentials `e`.
    """
    return tuple(patch(f"return {result}", f"""import math

    def of_slice(numbers):
        s = [float(number) - {less} for number in numbers]
        e = [math.exp(number) for number in s]
        return {way}
    made = np.apply_along_axis(of_slice, axis, {x})
    return made.astype({x}.dtype if {x}.dtype.kind == 'f' else float)""") for way in weights)
