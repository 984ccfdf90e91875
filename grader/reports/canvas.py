"""canvas.csv: what Canvas' gradebook imports (Grades → Import), one assignment, a row a learner.

Canvas finds a student by `ID`, else `SIS User ID`, else `SIS Login ID`. The name of a learner's folder is taken for
the login: name the folders by it, or fill in one of the other columns from the gradebook's own export. Where
no assignment has the column's name, Canvas asks whether to make one.

A learner with an exercise that could not be graded has no row. An empty cell would not do: Canvas takes it for a change
and clears the grade that is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from grader.judging.verdict import Report
from grader.reports import sheet
from grader.reports.room import ClassSummary, plain, scaled

COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POSSIBLE = "    Points Possible"  # with these four spaces, as Canvas exports it


def render(report: Report, max_points: float | None = None, assignment: str = "") -> str:
    """The CSV. max_points: each total is scaled to it in proportion, rounded to 2 decimals; None: the course's points.

    assignment: its name in Canvas; by default the course's.
    """
    return sheet.write(rows(ClassSummary(report), max_points, assignment or report.course))


def rows(room: ClassSummary, max_points: float | None, assignment: str) -> Iterator[list[sheet.Cell]]:
    """The heading, the row of points possible, and a row a learner who has a score."""
    learners = room.report.submissions
    most = plain(max_points) if max_points is not None else max((one.max_score for one in learners), default=0)
    yield [*COLUMNS, assignment]
    yield [sheet.Verbatim(POSSIBLE), "", "", "", "", most]
    for label, one in zip(room.labels, learners, strict=True):
        if not one.ungraded:
            yield [label, "", "", label, "", scaled(one, max_points)]
