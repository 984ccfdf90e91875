"""The arrays that a verdict shows: what went in, and what its headline speaks of: both sides and their difference, or two runs.

Large arrays are cut down to the part that is shown: a report holds no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from grader.course.spec import Case
from grader.judging.compare import Compared, gaps, numbers, same_numbers
from grader.judging.verdict import Cut, Table
from grader.judging.wording import named_inputs
from grader.worker.values import Part, leaves

MOST_WEIGHTS = 96  # numbers of a module's weights that are shown with its experiment
MOST_SLICED = 48  # numbers of an input that is shown slice by slice
SIDE = 8  # rows and columns that are shown; more cannot be checked by hand
HAIR = float(np.finfo(np.float64).tiny)  # a difference within the tolerance that can be seen, written ~0
TINY, SLICES = 32, 4  # numbers and slices of an array that is shown whole though it has more than two axes
NEAR = 10  # the first slice is shown in which something differs by a tenth of the largest difference or more
MAX_WHOLE = 1_000  # numbers of an array that is kept whole
WRITTEN = 5e-5  # of a number: what its four digits show


class Reading(dict[str, Any]):
    """The arrays of one case for a property's check, which remembers what of them was read last: that is what it speaks of."""

    last = ""

    def __getitem__(self, name: str) -> Any:
        self.last = name
        return super().__getitem__(name)


def inputs(case: Case) -> tuple[Table, ...]:
    """The arrays that went in, where they are small enough to be shown."""
    return cut(_inputs(case))


def of_property(group: Sequence[Compared], name: str) -> tuple[Table, ...]:
    """The part that a property speaks of, or the two runs that it compares."""
    return (runs(group[0], group[1], name) if len(group) == 2 else ()) or tables(group[-1], name)


def tables(one: Compared, name: str = "") -> tuple[Table, ...]:
    """What may be shown of _tables(): an answer's expected numbers, or how far off these are, would be the answer; and where many results
    are right, the reference's is one of them."""
    is_answer, compares = one.exercise.kind == "answer", one.exercise.compare is not None
    roles = (
        ("actual",) if is_answer else ("input", "actual") if compares else ("input", "expected", "actual", "difference")
    )
    return tuple(table for table in _tables(one, name) if table.role in roles)


def _tables(one: Compared, name: str) -> tuple[Table, ...]:
    """The inputs, and of one part what was expected, what came back, and the difference; one within the tolerance is shown as 0.

    name: the part; where none of that name was expected, the first that differs. Where both numbers of a difference within the tolerance
    are written otherwise, it is shown as a hair's breadth (~0).
    """
    expected, actual = one.right, one.actual.parts
    if name not in expected:
        differing = (key for key in expected if key in actual and not same_numbers(expected[key], actual[key]))
        name = next(differing, next(iter(expected)))
    right, theirs = expected[name], numbers(actual[name]) if name in actual else None
    if right.kind == "bool":
        return ()  # a claim is told in words
    shown = [part for table in _inputs(one.case) for part in _slices(table, right.shape or ())]
    if theirs is not None and actual[name].kind != right.kind and same_numbers(right, theirs):
        return cut(shown)  # a list where an array was expected: the numbers are not what is at fault
    title = title_of(expected, name)
    if right.array is not None:
        shown.append(Table(title, right.array, "expected", right.dtype))
    if theirs is not None and theirs.array is not None:
        shown.append(Table(title, theirs.array, "actual", theirs.dtype))
        if right.array is not None and theirs.shape == right.shape and theirs.array.dtype.kind != "b":
            shown.append(Table(title, _difference(right.array, theirs.array, *one.tolerance(right)), "difference"))
    return cut(shown)


def _slices(table: Table, result: tuple[int, ...]) -> list[Table]:
    """An input of few numbers in all its slices, by their indices, where a result of other axes may hold numbers of each of them."""
    lead = table.array.shape[:-2]
    if table.array.ndim == len(result) or math.prod(lead) < 2 or table.array.size > MOST_SLICED:
        return [table]
    return [
        replace(table, name=f"{table.name}[{', '.join(map(str, at))}]", array=table.array[at])
        for at in np.ndindex(lead)
    ]


def runs(before: Compared, after: Compared, name: str) -> tuple[Table, ...]:
    """Two runs that are compared: of each the inputs that the other had otherwise, and the part, with what changed marked."""
    first, second = (dict(arrays(named_inputs(one.case))) for one in (before, after))
    changed = [
        (key, first[key], second[key])
        for key in first
        if key in second and not np.array_equal(first[key], second[key], equal_nan=True)
    ]
    shown = [table for key, *arrays in changed for table in _pair(key, arrays[0], arrays[1], "input")]
    one, other = (
        numbers(parts[name]).array if name in parts else None for parts in (before.actual.parts, after.actual.parts)
    )
    if one is not None and other is not None:
        unchanged = [
            i
            for i in range(len(one) if one.ndim > 2 else 0)
            if all(
                here.shape == there.shape
                and here.shape[:1] == one.shape[:1]
                and np.array_equal(here[i], there[i], equal_nan=True)
                for _, here, there in changed
            )
        ]
        shown += _pair(title_of(before.right, name) or "result", one, other, "run", unchanged)
    return cut(shown)


def _pair(name: str, first: np.ndarray, second: np.ndarray, role: str, items: Sequence[int] = ()) -> list[Table]:
    """items: those whose inputs did not change: one of them that changed all the same is what a claim speaks of."""
    marks = ((i, *at) for i in items if first.shape == second.shape and (at := place(first[i], second[i])))
    mark = next(marks, None) or place(first, second) or ()
    runs = {"first": first, "second": second}
    return [Table(f"{name}, {which} run", array, role, mark=mark) for which, array in runs.items()]


def title_of(expected: Mapping[str, Part], name: str) -> str:
    """The part's name, '' for the only thing that the exercise returns."""
    return "" if [key for key, part in expected.items() if part.role == "returned"] == [name] else name


def _difference(expected: np.ndarray, actual: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        one, other = expected.astype(np.float64), actual.astype(np.float64)
        difference = other - one
        within = (one == other) | (np.isfinite(one) & (np.abs(difference) <= atol + rtol * np.abs(one)))
        hair = np.where(np.abs(difference) > WRITTEN * np.abs(one), HAIR, 0.0)
        return np.where(within, hair, difference)


def arrays(inputs: Iterable[tuple[str, object]]) -> list[tuple[str, np.ndarray]]:
    """Those among inputs, what tuples and dicts hold among them, by name."""
    values = ((name, getattr(value, "array", value)) for name, value in leaves(inputs))
    return [(name, value) for name, value in values if isinstance(value, np.ndarray)]


def _inputs(case: Case) -> list[Table]:
    """The inputs, and a module's weights where they are few: a reader should be able to work the result out."""
    if not case.show:
        return []
    weights = {name: np.asarray(array) for name, array in case.options.get("state", {}).items()}
    if sum(array.size for array in weights.values()) > MOST_WEIGHTS:
        weights = {}
    return [Table(name, array, "input") for name, array in (*arrays(named_inputs(case)), *weights.items())]


# --- which part is shown -------------------------------------------------------------------------


def cut(tables: Sequence[Table]) -> tuple[Table, ...]:
    """The tables of a verdict, those with more than MAX_WHOLE numbers cut to the part that is shown."""
    if all(table.array.size <= MAX_WHOLE for table in tables):
        return tuple(tables)
    at, shape = place_of(tables)
    return tuple(table if table.array.size <= MAX_WHOLE else _cut(table, at, shape) for table in tables)


def place_of(tables: Sequence[Table]) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Where expected and actual differ most, in the whole arrays, and the shape of these; None, None where nothing differs."""
    by_role = {table.role: table for table in tables}
    expected, actual, difference = (by_role.get(role) for role in ("expected", "actual", "difference"))
    if expected is None or actual is None or expected.shape != actual.shape:
        return None, None
    near = 1 if is_whole(expected.shape) else NEAR
    at = place(expected.array, actual.array, None if difference is None else difference.array, near)
    if at is None:
        return None, None
    if expected.cut is not None:
        within = (at[0] + expected.cut.first[0], at[1] + expected.cut.first[1])  # what is cut has rows and columns
        at = (*expected.cut.at, *within[2 - min(len(expected.shape), 2) :])
    return at, expected.shape


def is_whole(shape: tuple[int, ...]) -> bool:
    """Whether all slices of an array of more than two axes are shown."""
    return 1 < math.prod(shape[:-2]) <= SLICES and math.prod(shape) <= TINY and max(shape[-2:]) <= SIDE


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


def window(
    table: Table, at: tuple[int, ...] | None, shape: tuple[int, ...] | None
) -> tuple[tuple[int, ...], tuple[int, int]]:
    """Which slice of an array with entries is shown, and from which row and column on: around `at`, or at its beginning.

    at: the place of the largest difference, but for a table with its own; shape: of the arrays that it is a place of.
    """
    at, shape = (table.mark, table.shape) if table.mark else (at, shape)
    lead = table.array.shape[:-2]
    index = (0,) * len(lead)
    if at is not None and shape is not None and len(shape) == len(table.array.shape):
        axes = tuple(zip(lead, shape[:-2], at, strict=False))
        if all(size in (1, most) for size, most, _ in axes):  # a mask for all heads, say
            index = tuple(i if size == most else 0 for size, most, i in axes)
    spot = (0, 0, *at)[-2:] if at is not None and (table.role != "input" or table.mark) else (0, 0)
    rows, columns = matrix_shape(table.array.shape)
    return tuple(index), (_start(rows, spot[0]), _start(columns, spot[1]))


def part(array: np.ndarray, index: tuple[int, ...], first: tuple[int, int]) -> np.ndarray:
    """What is shown, as rows and columns."""
    matrix = array[index].reshape(matrix_shape(array.shape))
    return matrix[first[0] : first[0] + SIDE, first[1] : first[1] + SIDE]


def matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a slice; a vector is one row, a number one cell."""
    return (1, 1) if not shape else (1, shape[0]) if len(shape) == 1 else (shape[-2], shape[-1])


def largest(array: np.ndarray) -> float:
    """The largest finite magnitude of an array, 0 for none."""
    finite = array[np.isfinite(array)].astype(np.float64)
    return float(np.abs(finite).max(initial=0.0))


def _cut(table: Table, at: tuple[int, ...] | None, shape: tuple[int, ...] | None) -> Table:
    index, first = window(table, at, shape)
    return replace(
        table,
        array=part(table.array, index, first).copy(),
        cut=Cut(table.array.shape, index, first, largest(table.array)),
    )


def _start(size: int, spot: int) -> int:
    """Where a window of SIDE begins that holds the spot: at 0 where it can."""
    return 0 if spot < SIDE else min(spot - SIDE // 2, size - SIDE)
