"""Chooses what of an array is shown: at most 8 × 8 numbers, and of more than two axes one slice.

Text tables and heat maps show the same view, so that they agree number for number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.judging.evidence import HAIR, is_whole, largest, matrix_shape, part, place_of, window
from grader.judging.verdict import Table

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
        return matrix_shape(self.table.shape)

    @property
    def written(self) -> list[list[str]]:
        """The cells as text."""
        noise = 0.0
        if self.table.role == "difference":
            of_all = NOISE * (self.table.cut.largest if self.table.cut else largest(self.table.array))
            noise = float(np.fmax(of_all, HAIR))  # beside NaN, the largest is NaN
        return [[number(value, noise) for value in row] for row in self.cells]

    @property
    def title(self) -> str:
        """Name, shape and type: 'expected weights (2, 3) float64'."""
        name, role = self.table.name, self.table.role
        if role == "difference":
            return "difference, got − expected"
        side = {"expected": f"expected {name}", "actual": f"got {name}"}.get(role, name).strip()
        dtype = self.table.dtype or self.table.array.dtype.name if role == "actual" else ""
        return f"{side} {tuple(self.table.shape)} {dtype}".strip()

    @property
    def cut(self) -> str:
        """Which part is shown, in words; '' where everything is, and of an array without entries."""
        if self.cells.size == 0:
            return ""
        parts = [f"slice [{', '.join(map(str, self.index))}]"] if self.index else []
        for axis, word in enumerate(("rows", "columns")):
            start, shown, total = self.first[axis], self.cells.shape[axis], self.total[axis]
            if shown < total:
                parts.append(f"{word} {start} to {start + shown - 1} of {total}")
        return ", ".join(parts)


def by_content(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is made of a verdict's tables, made once for all that hold the same: in a class they come back with many learners."""
    results: dict[tuple, Any] = {}

    def of(tables: Sequence[Table], *how: Any) -> Any:
        key = how
        for one in tables:
            key += (one.name, one.role, one.dtype, one.cut, one.mark)
            key += (one.array.dtype.str, one.array.shape, one.array.tobytes())
        if key not in results:
            if len(results) >= 1_000:
                results.clear()
            results[key] = function(tables, *how)
        return results[key]

    return of


def views(tables: Sequence[Table]) -> tuple[View, ...]:
    """One view for each table; those of expected, actual and difference show the same part.

    With more than two axes, the first slice whose difference comes near the largest is shown; of a tiny table every slice.
    """
    tables = tuple(table for table in tables if isinstance(table.array, np.ndarray))
    at, shape = place_of(tables)
    parts = [view for table in tables for view in _views(table, at, shape)]
    if len(parts) > len(tables):  # slice by slice, each with its expected, actual and difference
        parts.sort(key=lambda view: (view.table.role != "input", view.index if view.table.role != "input" else ()))
    return tuple(parts)


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


def _views(table: Table, at: tuple[int, ...] | None, shape: tuple[int, ...] | None) -> list[View]:
    """A table as one view; a tiny one of more than two axes as one for each of its slices, so that it is shown whole."""
    if 0 in table.shape:
        return [View(table, np.zeros((0, 0)), (), (0, 0), None)]
    marked = table.mark or (at if table.role in ("actual", "difference") else None)
    if table.cut is not None:
        return [View(table, table.array, table.cut.at, table.cut.first, _mark(marked, table.cut.first))]
    lead = table.shape[:-2]
    if table.role != "input" and is_whole(table.shape):
        slices = [(index, marked if marked and marked[: len(lead)] == index else None) for index in np.ndindex(*lead)]
        top = (0, 0)
        return [View(table, part(table.array, index, top), index, top, _mark(mark, top)) for index, mark in slices]
    index, first = window(table, at, shape)
    return [View(table, part(table.array, index, first), index, first, _mark(marked, first))]


def _mark(at: tuple[int, ...] | None, first: tuple[int, int]) -> tuple[int, int] | None:
    """The cell of a view that begins at `first`."""
    if not at:
        return None
    row, column = (0, 0, *at)[-2:]
    return row - first[0], column - first[1]
