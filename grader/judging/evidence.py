"""The arrays that a verdict shows: what went in, and of one part both sides and their difference."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from grader.course.spec import Case
from grader.judging.compare import numbers
from grader.judging.crop import cut
from grader.judging.verdict import Table
from grader.judging.wording import named
from grader.worker.values import Part


def inputs(case: Case) -> tuple[Table, ...]:
    """The arrays that went in, where they are small enough to be shown."""
    return cut(_inputs(case))


def tables(case: Case, expected: Mapping[str, Part], actual: Mapping[str, Part], name: str = "") -> tuple[Table, ...]:
    """The inputs, and of one part what was expected, what came back, and the difference.

    name: the part; where none of that name was expected, the first that differs.
    """
    if name not in expected:
        name = next((key for key in expected if key in actual and _unequal(expected[key], actual[key])), next(iter(expected)))
    one, other = expected[name], numbers(actual[name]) if name in actual else None
    shown = _inputs(case)
    if name in actual and actual[name].kind != one.kind and _same_numbers(one, other):
        return cut(shown)  # a list where an array was expected: the numbers are not what is at fault
    returned = [key for key, part in expected.items() if part.role == "returned"]
    title = "" if returned == [name] else name
    if one.array is not None:
        shown.append(Table(title, one.array, "expected", one.dtype))
    if other is not None and other.array is not None:
        shown.append(Table(title, other.array, "actual", other.dtype))
        if one.array is not None and other.shape == one.shape and other.array.dtype.kind != "b":
            with np.errstate(invalid="ignore"):
                difference = other.array.astype(np.float64) - one.array.astype(np.float64)
            shown.append(Table(title, difference, "difference"))
    return cut(shown)


def _inputs(case: Case) -> list[Table]:
    if not case.show:
        return []
    arrays = ((name, getattr(value, "array", value)) for name, value in named(case))
    return [Table(name, array, "input") for name, array in arrays if isinstance(array, np.ndarray)]


def _same_numbers(expected: Part, actual: Part | None) -> bool:
    if actual is None or expected.array is None or actual.array is None or expected.shape != actual.shape:
        return False
    return np.allclose(expected.array, actual.array, rtol=1e-6, atol=1e-9, equal_nan=True)


def _unequal(expected: Part, actual: Part) -> bool:
    actual = numbers(actual)
    if expected.array is None or actual.array is None or expected.shape != actual.shape:
        return True
    return not np.allclose(expected.array, actual.array, rtol=1e-4, atol=1e-5, equal_nan=True)
