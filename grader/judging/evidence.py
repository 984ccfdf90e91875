"""The arrays that a verdict shows: what went in, and what its headline speaks of: both sides and their difference, or two runs.

Of each array only the part that is shown goes into a verdict: at most SIDE rows and columns, and of more than two axes one slice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from grader.course.spec import Case
from grader.judging.compare import Comparison, as_array, gaps, same_numbers
from grader.judging.verdict import Table
from grader.judging.wording import named_inputs
from grader.worker.values import Part, leaves

MOST_WEIGHTS = 96  # numbers of a module's weights that are shown with its experiment
MOST_SLICED = 48  # numbers of an input that is shown slice by slice
SIDE = 8  # rows and columns that are shown; more cannot be checked by hand
HAIR = float(np.finfo(np.float64).tiny)  # a difference within the tolerance that can be seen, written ~0
TINY, SLICES = 32, 4  # numbers and slices of an array that is shown whole though it has more than two axes
NEAR = 10  # the first slice is shown in which something differs by a tenth of the largest difference or more
PRINTED_PRECISION = 5e-5  # of a number: what its four digits show


class Whole(NamedTuple):
    """An array of which a Table shows a part. mark: the index of a difference of its own; () for none."""

    name: str
    array: np.ndarray
    role: str
    dtype: str = ""
    mark: tuple[int, ...] = ()


class TrackedArrays(dict[str, Any]):
    """The arrays of one case for a property's check, which remembers what of them was read last: that is what it speaks of."""

    last = ""

    def __getitem__(self, name: str) -> Any:
        self.last = name
        return super().__getitem__(name)


def inputs(case: Case) -> tuple[Table, ...]:
    """The arrays that went in, where they are small enough to be shown."""
    return make_tables(_inputs(case))


def of_property(group: Sequence[Comparison], name: str) -> tuple[Table, ...]:
    """The part that a property speaks of, or the two runs that it compares."""
    return (runs(group[0], group[1], name) if len(group) == 2 else ()) or tables(group[-1], name)


def tables(comparison: Comparison, name: str = "") -> tuple[Table, ...]:
    """What may be shown of a case: an answer's expected numbers, or how far off these are, would be the answer; and where many results
    are right, the reference's is one of them."""
    is_answer, compares = comparison.exercise.kind == "answer", comparison.exercise.compare is not None
    roles = (
        ("actual",) if is_answer else ("input", "actual") if compares else ("input", "expected", "actual", "difference")
    )
    return make_tables([whole for whole in _arrays_of(comparison, name) if whole.role in roles])


def _arrays_of(comparison: Comparison, name: str) -> list[Whole]:
    """The inputs, and of one part what was expected, what came back, and the difference; one within the tolerance is shown as 0.

    name: the part; where none of that name was expected, the first that differs. Where both numbers of a difference within the tolerance
    are written otherwise, it is shown as a hair's breadth (~0).
    """
    parts, results = comparison.expected.parts, comparison.actual.parts
    if name not in parts:
        candidates = (key for key in parts if key in results and not same_numbers(parts[key], results[key]))
        name = next(candidates, next(iter(parts)))
    expected, actual = parts[name], as_array(results[name]) if name in results else None
    if expected.kind == "bool":
        return []  # a claim is told in words
    arrays = [part for whole in _inputs(comparison.case) for part in _slices(whole, expected.shape or ())]
    if actual is not None and results[name].kind != expected.kind and same_numbers(expected, actual):
        return arrays  # a list where an array was expected: the numbers are not what is at fault
    title = title_of(parts, name)
    if expected.array is not None:
        arrays.append(Whole(title, expected.array, "expected", expected.dtype))
    if actual is not None and actual.array is not None:
        arrays.append(Whole(title, actual.array, "actual", actual.dtype))
        if expected.array is not None and actual.shape == expected.shape and actual.array.dtype.kind != "b":
            difference = _difference(expected.array, actual.array, *comparison.tolerance(expected))
            arrays.append(Whole(title, difference, "difference"))
    return arrays


def _slices(whole: Whole, result: tuple[int, ...]) -> list[Whole]:
    """An input of few numbers in all its slices, by their indices, where a result of other axes may hold numbers of each of them."""
    array, lead = whole.array, whole.array.shape[:-2]
    if array.ndim == len(result) or math.prod(lead) < 2 or array.size > MOST_SLICED:
        return [whole]
    names = {index: f"{whole.name}[{', '.join(map(str, index))}]" for index in np.ndindex(lead)}
    return [whole._replace(name=name, array=array[index]) for index, name in names.items()]


def runs(before: Comparison, after: Comparison, name: str) -> tuple[Table, ...]:
    """Two runs that are compared: of each the inputs that the other had otherwise, and the part, with what changed marked."""
    first, second = (dict(arrays(named_inputs(case))) for case in (before.case, after.case))
    changes = [
        (key, first[key], second[key])
        for key in first
        if key in second and not np.array_equal(first[key], second[key], equal_nan=True)
    ]
    pairs = [whole for change in changes for whole in _pair(*change, "input")]
    old, new = (
        as_array(parts[name]).array if name in parts else None for parts in (before.actual.parts, after.actual.parts)
    )
    if old is not None and new is not None:
        same_inputs = [
            i
            for i in range(len(old) if old.ndim > 2 else 0)
            if all(
                old_input.shape == new_input.shape
                and old_input.shape[:1] == old.shape[:1]
                and np.array_equal(old_input[i], new_input[i], equal_nan=True)
                for _, old_input, new_input in changes
            )
        ]
        pairs += _pair(title_of(before.expected.parts, name) or "result", old, new, "run", same_inputs)
    return make_tables(pairs)


def _pair(name: str, first: np.ndarray, second: np.ndarray, role: str, items: Sequence[int] = ()) -> list[Whole]:
    """items: those whose inputs did not change: one of them that changed all the same is what a claim speaks of."""
    marks = ((i, *index) for i in items if first.shape == second.shape and (index := place(first[i], second[i])))
    mark = next(marks, None) or place(first, second) or ()
    runs = {"first": first, "second": second}
    return [Whole(f"{name}, {ordinal} run", array, role, mark=mark) for ordinal, array in runs.items()]


def title_of(expected: Mapping[str, Part], name: str) -> str:
    """The part's name, '' for the only thing that the exercise returns."""
    return "" if [key for key, part in expected.items() if part.role == "returned"] == [name] else name


def _difference(expected: np.ndarray, actual: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        expected, actual = expected.astype(np.float64), actual.astype(np.float64)
        difference, size = actual - expected, np.abs(expected)
        within = (expected == actual) | (np.isfinite(expected) & (np.abs(difference) <= atol + rtol * size))
        hair = np.where(np.abs(difference) > PRINTED_PRECISION * size, HAIR, 0.0)
        return np.where(within, hair, difference)


def arrays(inputs: Iterable[tuple[str, object]]) -> list[tuple[str, np.ndarray]]:
    """Those among inputs, what tuples and dicts hold among them, by name."""
    values = ((name, getattr(value, "array", value)) for name, value in leaves(inputs))
    return [(name, value) for name, value in values if isinstance(value, np.ndarray)]


def _inputs(case: Case) -> list[Whole]:
    """The inputs, and a module's weights where they are few: a reader should be able to work the result out."""
    if not case.show:
        return []
    weights = {name: np.asarray(array) for name, array in case.options.get("state", {}).items()}
    if sum(array.size for array in weights.values()) > MOST_WEIGHTS:
        weights = {}
    return [Whole(name, array, "input") for name, array in (*arrays(named_inputs(case)), *weights.items())]


# --- which part is shown -------------------------------------------------------------------------


def make_tables(arrays: Sequence[Whole]) -> tuple[Table, ...]:
    """A table of each; those of expected, actual and difference show the same part.

    With more than two axes, the first slice whose difference comes near the largest is shown; of a tiny array every slice.
    """
    spot, shape = _spot_of(arrays)
    tables = [table for whole in arrays for table in _tables(whole, spot, shape)]
    if len(tables) > len(arrays):  # slice by slice, each with its expected, actual and difference
        tables.sort(key=lambda table: (table.role != "input", table.index if table.role != "input" else ()))
    return tuple(tables)


def _spot_of(arrays: Sequence[Whole]) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Where expected and actual differ most, and the shape of these; None, None where nothing differs."""
    by_role = {whole.role: whole.array for whole in arrays}
    expected, actual = by_role.get("expected"), by_role.get("actual")
    if expected is None or actual is None or expected.shape != actual.shape:
        return None, None
    spot = place(expected, actual, by_role.get("difference"), 1 if _is_tiny(expected.shape) else NEAR)
    return spot, None if spot is None else expected.shape


def _tables(whole: Whole, spot: tuple[int, ...] | None, shape: tuple[int, ...] | None) -> list[Table]:
    """One table; of a tiny array of more than two axes one for each of its slices, so that it is shown whole.

    spot: the place of the largest difference, but for an array with its own; shape: of the arrays that it is a place of.
    """
    array, role = whole.array, whole.role
    spot, shape = (whole.mark, array.shape) if whole.mark else (spot, shape)
    mark = spot if whole.mark or role in ("actual", "difference") else None
    dtype = whole.dtype or array.dtype.name
    largest = float(np.abs(array[np.isfinite(array)].astype(np.float64)).max(initial=0.0))

    def table(matrix: np.ndarray, index: tuple[int, ...] = (), center: tuple[int, ...] | None = None) -> Table:
        """Of a slice, or of no entries, the part around a center, or its beginning."""
        matrix = np.atleast_2d(matrix)
        row, column = map(_start, matrix.shape, (0, 0, *(center or ()))[-2:])
        mark_row, mark_column = (0, 0, *(mark or ()))[-2:]
        cell = (mark_row - row, mark_column - column) if mark and mark[: len(index)] == index else None
        cells = matrix[row : row + SIDE, column : column + SIDE].copy()
        return Table(whole.name, role, cells, dtype, array.shape, index, (row, column), cell, largest)

    if array.size == 0:
        return [table(np.zeros((0, 0)))]
    if role != "input" and _is_tiny(array.shape):
        return [table(array[index], index) for index in np.ndindex(array.shape[:-2])]
    index = _slice_at(array.shape, spot, shape)
    return [table(array[index], index, spot if whole.mark or role != "input" else None)]


def _is_tiny(shape: tuple[int, ...]) -> bool:
    """Whether all slices of an array of more than two axes are shown."""
    return 1 < math.prod(shape[:-2]) <= SLICES and math.prod(shape) <= TINY and max(shape[-2:]) <= SIDE


def _slice_at(own: tuple[int, ...], spot: tuple[int, ...] | None, shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """The leading indices of the slice that is shown of an array of shape `own`: of the spot, or the first."""
    lead = own[:-2]
    if spot is not None and shape is not None and len(shape) == len(own):
        axes = tuple(zip(lead, shape[:-2], spot, strict=False))
        if all(size in (1, most) for size, most, _ in axes):  # a mask for all heads, say
            return tuple(i if size == most else 0 for size, most, i in axes)
    return (0,) * len(lead)


def _start(size: int, spot: int) -> int:
    """Where a window of SIDE begins that holds the spot: at 0 where it can."""
    return 0 if spot < SIDE else min(spot - SIDE // 2, size - SIDE)


def place(
    expected: np.ndarray, actual: np.ndarray, difference: np.ndarray | None = None, near: int = NEAR
) -> tuple[int, ...] | None:
    """The index of the largest difference within the first slice that comes near it; None where nothing differs.

    difference: as a verdict shows it; what is within the tolerance there counts as equal. near: how much
    smaller than the largest one it may be.
    """
    if expected.shape != actual.shape or expected.size == 0:
        return None
    gap = gaps(expected.astype(np.float64), actual.astype(np.float64))
    if difference is not None and difference.shape == gap.shape:
        gap = np.where(np.abs(difference) <= HAIR, 0.0, gap)
    if not gap.any():
        return None
    lead: tuple[int, ...] = ()
    if gap.ndim > 2:
        largest = gap.max(axis=(-2, -1))
        first = int(np.argmax(largest >= largest.max() / near))
        lead = tuple(int(i) for i in np.unravel_index(first, largest.shape))
        gap = gap[lead]
    return (*lead, *(int(i) for i in np.unravel_index(int(np.argmax(gap)), gap.shape)))
