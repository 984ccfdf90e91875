"""Chooses what of an array is shown: at most 8 × 8 numbers, and of more than two axes one slice.

Text tables and heat maps show the same view, so that they agree number for number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grader.model import Table

SIDE = 8  # rows and columns of a view; more cannot be checked by hand
NOISE = 1e-6  # a difference this small beside the table's largest one is rounding, and written ~0


@dataclass(frozen=True, eq=False)
class View:
    """What is shown of one table.

    cells: 2-D; a vector is one row, a number one cell. index: the leading indices of the slice shown.
    first: row and column of the array at which cells begin. mark: the cell (row, column within
    cells) with the largest difference, None where there is none to mark.
    """

    table: Table
    cells: np.ndarray
    index: tuple[int, ...]
    first: tuple[int, int]
    mark: tuple[int, int] | None

    @property
    def total(self) -> tuple[int, int]:
        """Rows and columns of the whole slice."""
        return _as_matrix_shape(self.table.array.shape)

    @property
    def written(self) -> list[list[str]]:
        """The cells as text."""
        noise = 0.0
        if self.table.role == "difference":
            finite = np.abs(self.table.array[np.isfinite(self.table.array)])
            noise = NOISE * float(finite.max(initial=0.0))
        return [[number(value, noise) for value in row] for row in self.cells]

    @property
    def title(self) -> str:
        """Name, shape and type: 'expected weights (2, 3) float64'."""
        name, role = self.table.name, self.table.role
        said = {"input": name, "difference": "difference, got − expected"}.get(role, f"{role} {name}")
        if role in ("expected", "got") and name == "result":
            said = role
        shape = f" {tuple(self.table.array.shape)}" if role != "difference" else ""
        return f"{said}{shape}{' ' + self.dtype if role == 'got' else ''}".strip()

    @property
    def dtype(self) -> str:
        return self.table.dtype or self.table.array.dtype.name

    @property
    def cut(self) -> str:
        """Which part is shown, in words; '' where everything is."""
        said = []
        if self.index:
            said.append(f"slice [{', '.join(map(str, self.index))}]")
        for word, start, shown, total in zip(
            ("rows", "columns"), self.first, self.cells.shape, self.total, strict=True
        ):
            if shown < total:
                said.append(f"{word} {start} to {start + shown - 1} of {total}")
        return ", ".join(said)


def content(tables: Sequence[Table]) -> tuple:
    """What tables hold, as a key: equal where every report shows the same of them."""
    return tuple(
        (one.name, one.role, one.dtype, one.array.dtype.str, one.array.shape, one.array.tobytes()) for one in tables
    )


def views(tables: Sequence[Table]) -> tuple[View, ...]:
    """One view for each table; those of expected, got and difference show the same part.

    With more than two axes, the first slice whose difference comes near the largest is shown.
    """
    tables = tuple(table for table in tables if isinstance(table.array, np.ndarray))
    by_role = {table.role: table.array for table in tables}
    at = _place(by_role.get("expected"), by_role.get("got"))
    shape = by_role["expected"].shape if at is not None else None
    return tuple(_view(table, at, shape) for table in tables)


def number(value: object, noise: float = 0.0) -> str:
    """A number with four significant digits; '~0' where it is not zero but at most `noise`."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    value = float(value)  # type: ignore[arg-type]
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if 0 < abs(value) <= noise:
        return "~0"
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return format(value, ".4g")


def _place(expected: np.ndarray | None, got: np.ndarray | None) -> tuple[int, ...] | None:
    """The index of the largest difference within the first slice that comes near it."""
    if expected is None or got is None or expected.shape != got.shape or expected.size == 0:
        return None
    want, have = expected.astype(np.float64), got.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(have - want)
    same = (have == want) | (np.isnan(have) & np.isnan(want))
    gap = np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))
    if not gap.any():
        return None
    if gap.ndim > 2:
        largest = gap.max(axis=(-2, -1))
        first = int(np.argmax(largest >= largest.max() / 10))
        lead = tuple(int(i) for i in np.unravel_index(first, largest.shape))
        gap = gap[lead]
    else:
        lead = ()
    return (*lead, *(int(i) for i in np.unravel_index(int(np.argmax(gap)), gap.shape)))


def _as_matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    return (1, 1) if not shape else (1, shape[0]) if len(shape) == 1 else (shape[-2], shape[-1])


def _view(table: Table, at: tuple[int, ...] | None, shape: tuple[int, ...] | None) -> View:
    array = table.array
    lead = array.shape[:-2]
    index = at[: len(lead)] if at is not None and shape is not None and shape[:-2] == lead else (0,) * len(lead)
    if 0 in array.shape:
        return View(table, np.zeros((0, 0)), (), (0, 0), None)
    matrix = array[index].reshape(_as_matrix_shape(array.shape))
    place = None
    if at is not None and table.role != "input":
        place = (0, 0, *at)[-2:]
    first = tuple(_start(size, place[axis] if place else 0) for axis, size in enumerate(matrix.shape))
    cells = matrix[first[0] : first[0] + SIDE, first[1] : first[1] + SIDE]
    mark = (place[0] - first[0], place[1] - first[1]) if place and table.role != "expected" else None
    return View(table, cells, tuple(index), first, mark)


def _start(size: int, place: int) -> int:
    """Where a window of SIDE begins that holds `place`: at 0 where it can."""
    return 0 if place < SIDE else min(place - SIDE // 2, size - SIDE)
