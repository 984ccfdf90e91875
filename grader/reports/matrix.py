"""Learners × exercises as a table: a sign for the eye, the word for a screen reader, no meaning by colour alone."""

from __future__ import annotations

from collections import Counter

from grader.reports.room import ClassSummary
from grader.reports.templating import render

# One sign a status, no two alike, each drawn by common fonts.
SIGNS = {
    "passed": "✓",
    "failed": "✗",
    "error": "!",
    "timeout": "T",
    "memory": "M",
    "forbidden": "⊘",
    "not_started": "·",
    "missing": "–",
    "could_not_grade": "?",
}


def table(room: ClassSummary) -> str:
    """The legend and the table; it scrolls in its own box, names and headings stay."""
    if not room.columns:
        return "<p>No exercise was graded.</p>"
    lessons = Counter(column.lesson for column in room.columns)
    before = (None, *(column.lesson for column in room.columns))
    return render(
        "matrix.html",
        signs=SIGNS,
        met={judged.status for mine in room.verdicts for judged in mine.values()},
        few=_fits(lessons),
        lessons=list(lessons.items()),
        columns=[(column, column.lesson != last) for column, last in zip(room.columns, before, strict=False)],
        rows=list(zip(range(len(room.labels)), room.labels, room.report.submissions, room.verdicts, strict=True)),
    )


def _fits(lessons: Counter[str]) -> bool:
    """Whether there is room for every lesson's whole name above its columns, in characters of a page's width."""
    return sum(max(len(name), 4 * count) for name, count in lessons.items()) <= 90
