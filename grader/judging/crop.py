"""Which part of a verdict's arrays is shown, and large arrays cut down to it: a report holds no more than it shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from grader.judging.compare import gaps
from grader.judging.verdict import Cut, Table

SIDE = 8  # rows and columns that are shown; more cannot be checked by hand
HAIR = float(np.finfo(np.float64).tiny)  # a difference within the tolerance that can be seen, written ~0
TINY, SLICES = 32, 4  # numbers and slices of an array that is shown whole though it has more than two axes
NEAR = 10  # the first slice is shown in which something differs by a tenth of the largest difference or more
MAX_WHOLE = 1_000  # numbers of an array that is kept whole


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
