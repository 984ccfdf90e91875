"""moodle.csv: what Moodle imports (Grades → Import → CSV file), one grade item, a row a learner.

The name of a learner's folder says who it is: it is the `Username`, and the `Email address` where it has an '@'.
In Moodle choose "Map from" Email address or Username accordingly, and map the last column to the grade item.
Moodle matches addresses letter by letter.

A learner with an exercise that could not be graded has no row. An empty cell would not do: Moodle takes it for "no grade"
and overwrites what is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from grader.judging.verdict import Report
from grader.reports import sheet
from grader.reports.room import ClassSummary, scaled


def render(report: Report, max_points: float | None = None, item: str = "") -> str:
    """The CSV. max_points: each total is scaled to it in proportion, rounded to 2 decimals; None: the course's points.

    item: the grade item's heading; by default the course's name.
    """
    return sheet.write(rows(ClassSummary(report), max_points, item or report.course))


def rows(room: ClassSummary, max_points: float | None, item: str) -> Iterator[list[sheet.Cell]]:
    """The heading and a row a learner who has a score."""
    yield ["Username", "Email address", item]
    for label, one in zip(room.labels, room.report.submissions, strict=True):
        if not one.ungraded:
            yield [label, label if "@" in label else "", scaled(one, max_points)]
