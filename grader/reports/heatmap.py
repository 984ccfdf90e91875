"""A small matrix as SVG: its numbers in colored cells, legible in light and dark themes.

Colors follow Okabe and Ito (2008) as the course's figures do: blue below zero, orange above; shades of one
color where nothing is negative. Numbers, hatching and outlines say all that the colors say.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from grader.judging.verdict import Table
from grader.reports.tables import format_cells, number, part_of, title_of
from grader.reports.text import clean
from grader.util.colors import RAMPS, luminance

INK, PAPER, INFINITE, MISSING = "#1A1A1A", "#FFFFFF", "#D0D0D0", "#EFEFEF"
CELL, CHARACTER, MARGIN = 27, 7.3, 20  # pixels: a cell's height, a digit's width, room for the row and column numbers


@dataclass(frozen=True)
class Scale:
    """Which color a number has. kind: a key of RAMPS; low, high: the ends of its range."""

    kind: str
    low: float
    high: float

    def colour(self, value: float) -> tuple[int, int, int]:
        """Red, green and blue of a finite number, each 0 to 255."""
        ramp = _ramp(self.kind)
        place = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0) * (len(ramp) - 1)
        index = min(int(place), len(ramp) - 2)
        return tuple(round(a + (b - a) * (place - index)) for a, b in zip(ramp[index], ramp[index + 1], strict=True))  # type: ignore[return-value]


def shared_scale(tables: Sequence[Table]) -> Scale:
    """One scale for the tables that are compared: 0 to 1, 0 to the largest, or diverging around 0."""
    numbers = np.concatenate([np.zeros(0), *(table.cells.astype(np.float64).ravel() for table in tables)])
    finite = numbers[np.isfinite(numbers)]
    reach = min(float(np.abs(finite).max(initial=0.0)), 1e300) or 1.0
    if (finite < 0).any() or any(table.role == "difference" for table in tables):
        return Scale("diverging", -reach, reach)
    return Scale("weights", 0.0, 1.0) if reach <= 1 else Scale("values", 0.0, reach)


def svg(table: Table, scale: Scale | None) -> str:
    """The table, which has entries, as an SVG element with a spoken description; without a scale its cells stay uncolored."""
    rows = format_cells(table)
    wide = max(34.0, CHARACTER * max(len(text) for row in rows for text in row) + 14)
    height, width = table.cells.shape
    top, left = (MARGIN if width > 1 else 4), (MARGIN + 2 if height > 1 else 2)
    more_rows, more_columns = (table.first[i] + table.cells.shape[i] < table.total[i] for i in (0, 1))
    size = (left + wide * width + (16 if more_columns else 3), top + CELL * height + (14 if more_rows else 3))
    (top_row, left_column), shapes = table.first, []
    if width > 1:
        shapes += [_faint(left + (i + 0.5) * wide, 9, str(left_column + i)) for i in range(width)]
    if height > 1:
        shapes += [_faint(9, top + (i + 0.5) * CELL, str(top_row + i)) for i in range(height)]
    for (row, column), value in np.ndenumerate(table.cells):
        box = (left + column * wide, top + row * CELL, wide, CELL)
        shapes.append(_cell(box, float(value), rows[row][column], scale))
    if table.mark:
        shapes.append(_outline(left + table.mark[1] * wide, top + table.mark[0] * CELL, wide))
    if more_columns:
        shapes.append(_faint(left + wide * width + 9, top + CELL * height / 2, "…"))
    if more_rows:
        shapes.append(_faint(left + wide * width / 2, top + CELL * height + 7, "⋮"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{html.escape(spoken(table), quote=True)}" '
        f'width="{size[0]:g}" height="{size[1]:g}" viewBox="0 0 {size[0]:g} {size[1]:g}" '
        f'style="font: 12px system-ui, sans-serif; font-variant-numeric: tabular-nums; max-width: 100%">'
        f"{''.join(shapes)}</svg>"
    )


def image(table: Table, scale: Scale | None) -> str:
    """The same as an <img>, on paper of its own. Of an SVG element a notebook that is not trusted leaves a row of digits."""
    opening, _, inner = svg(table, scale).partition(">")
    picture = f'{opening} color="{INK}"><rect width="100%" height="100%" rx="3" fill="{PAPER}"/>{inner}'
    data = base64.b64encode(picture.encode()).decode()
    return f'<img alt="{html.escape(spoken(table), quote=True)}" src="data:image/svg+xml;base64,{data}" style="max-width: 100%">'


def spoken(table: Table) -> str:
    """The table in words, row by row, for screen readers."""
    part = f", {part_of(table)}" if part_of(table) else ""
    rows = format_cells(table)
    several, mark = len(rows) > 1, ""
    parts = [
        f"row {number}: {', '.join(row)}" if several else ", ".join(row)
        for number, row in enumerate(rows, table.first[0])
    ]
    if table.mark and table.cells.size > 1:
        row, column = (a + b for a, b in zip(table.mark, table.first, strict=True))
        mark = f". The largest difference is {f'in row {row}, column' if several else 'at'} {column}"
    return clean(f"{title_of(table)}{part}: {'; '.join(parts)}{mark}.", 4000)


@cache
def _ramp(kind: str) -> tuple[tuple[int, int, int], ...]:
    return tuple(tuple(bytes.fromhex(stop[1:])) for stop in RAMPS[kind])  # type: ignore[misc]


@lru_cache(4096)
def _ink(colour: tuple[int, int, int]) -> str:
    """Dark or white text, whichever has more contrast."""
    light = luminance([part / 255 for part in colour])
    return INK if (light + 0.05) / (0.0103 + 0.05) >= 1.05 / (light + 0.05) else PAPER


def _cell(box: tuple[float, float, float, float], value: float, label: str, scale: Scale | None) -> str:
    x, y, wide, high = box
    shape = f'x="{x:g}" y="{y:g}" width="{wide - 1.5:g}" height="{high - 1.5:g}" rx="1.5"'
    middle = (x + (wide - 1.5) / 2, y + (high - 1.5) / 2)
    if np.isnan(value):
        return f'<rect {shape} fill="{MISSING}"/>{_hatching(box)}{_label(middle, label, INK, chip=True)}'
    if scale is None:
        edge = 'fill="none" stroke="currentColor" stroke-opacity=".22"'
        return f"<rect {shape} {edge}/>{_label(middle, label, 'currentColor')}"
    if np.isinf(value):
        return f'<rect {shape} fill="{INFINITE}"/>{_label(middle, label, INK)}'
    colour = scale.colour(value)
    # The hairline keeps pale cells visible on white paper.
    fill = f'fill="rgb{colour}" stroke="#8A8A8A" stroke-opacity=".45" stroke-width=".8"'
    return f"<rect {shape} {fill}/>{_label(middle, label, _ink(colour))}"


def _outline(x: float, y: float, wide: float) -> str:
    """Two rings, of the theme's text color and dark: one of them stands out from any cell on any background."""
    ring = f'<rect x="{x - 1:g}" y="{y - 1:g}" width="{wide + 0.5:g}" height="{CELL + 0.5:g}" rx="2" fill="none"'
    return f'{ring} stroke="currentColor" stroke-width="3.4"/>{ring} stroke="{INK}" stroke-width="1.8"/>'


def _hatching(box: tuple[float, float, float, float]) -> str:
    """Diagonals drawn one by one: a shared pattern would vanish with the output that defines it."""
    x, y, wide, high = box[0], box[1], box[2] - 1.5, box[3] - 1.5
    strokes = []
    for start in np.arange(4 - high, wide, 7):
        left, right = max(start, 0.0), min(start + high, wide)
        low, up = y + high - (left - start), y + high - (right - start)
        strokes.append(f"M{x + left:.1f} {low:.1f}L{x + right:.1f} {up:.1f}")
    return f'<path d="{"".join(strokes)}" stroke="#7A7A7A" stroke-width="1"/>'


def _label(middle: tuple[float, float], label: str, ink: str, chip: bool = False) -> str:
    x, y = middle
    text = html.escape(clean(label).replace("-", "−") if "e" not in label else clean(label))
    half = CHARACTER * len(label) / 2 + 2
    behind = f'<rect x="{x - half:g}" y="{y - 8:g}" width="{2 * half:g}" height="16" fill="{MISSING}"/>' if chip else ""
    return f'{behind}<text x="{x:g}" y="{y:g}" dy=".35em" text-anchor="middle" fill="{ink}">{text}</text>'


def _faint(x: float, y: float, text: str) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" dy=".35em" text-anchor="middle" fill="currentColor" fill-opacity=".6" '
        f'font-size="10.5">{text}</text>'
    )


def legend(scale: Scale) -> str:
    """What the colors of a scale say, in words."""
    if scale.kind == "diverging":
        return f"blue below 0, orange above, up to ±{number(scale.high)}"
    return f"white is 0, the darkest {number(scale.high)}"
