"""Rows as CSV that a spreadsheet opens as text and numbers, never as formulas."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence

from grader.reports import text

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")  # what a spreadsheet may take a cell's beginning for
Cell = str | int | float | None


class Verbatim(str):
    """The course's own text, to be written as it is."""


def write(rows: Iterable[Sequence[Cell]]) -> str:
    """The rows as CSV, lines ending in '\\n'. Text is quoted, so that a ';' or tab in it separates nothing."""
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    for row in rows:
        # None is an empty cell.
        writer.writerow(
            [guard(cell) if isinstance(cell, str) and not isinstance(cell, Verbatim) else cell for cell in row]
        )
    return file.getvalue()


def guard(value: str) -> str:
    """Text for one cell: one line, and with an apostrophe before what a spreadsheet would compute.

    Full-width signs ('＝') count as their plain ones: some spreadsheets compute those, too. Spaces before a sign count
    as nothing, for a spreadsheet may trim them.
    """
    begins = value[:1]
    line = text.one_line(value, 2_000)
    first = unicodedata.normalize("NFKC", line[:1])[:1]
    return f"'{line}" if begins in ("\t", "\r", "\n") or first in FORMULA and first else line
