"""Writes what a verdict shows of arrays: their titles, which part it is, and the numbers.

Text tables and heat maps are made of the same words, so that they agree number for number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from grader.judging.evidence import HAIR
from grader.judging.verdict import Table

NOISE = 1e-6  # a difference this small beside the table's largest one is rounding, and written ~0


def format_cells(table: Table) -> list[list[str]]:
    """The cells as text."""
    noise = max(NOISE * table.largest, HAIR) if table.role == "difference" else 0.0
    return [[number(value, noise) for value in row] for row in table.cells]


def title_of(table: Table) -> str:
    """Name, shape and type: 'expected weights (2, 3) float64'."""
    name, role = table.name, table.role
    if role == "difference":
        return "difference, got − expected"
    side = {"expected": f"expected {name}", "actual": f"got {name}"}.get(role, name).strip()
    return f"{side} {tuple(table.shape)} {table.dtype if role == 'actual' else ''}".strip()


def part_of(table: Table) -> str:
    """Which part is shown, in words; '' where everything is, and of an array without entries."""
    if table.cells.size == 0:
        return ""
    parts = [f"slice [{', '.join(map(str, table.index))}]"] if table.index else []
    for axis, word in enumerate(("rows", "columns")):
        start, size, total = table.first[axis], table.cells.shape[axis], table.total[axis]
        if size < total:
            parts.append(f"{word} {start} to {start + size - 1} of {total}")
    return ", ".join(parts)


def caption(table: Table) -> str:
    """Its title, and which part is shown."""
    part = part_of(table)
    return f"{title_of(table)} ({part})" if part else title_of(table)


def by_content(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is made of a verdict's tables, made once for all that hold the same: in a class they come back with many learners."""
    results: dict[tuple, Any] = {}

    def cached(tables: Sequence[Table], *arguments: Any) -> Any:
        key = arguments
        for table in tables:
            key += (table.name, table.role, table.dtype, table.shape, table.index, table.first, table.mark)
            key += (table.largest, table.cells.dtype.str, table.cells.shape, table.cells.tobytes())
        if key not in results:
            if len(results) >= 1_000:
                results.clear()
            results[key] = function(tables, *arguments)
        return results[key]

    return cached


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
