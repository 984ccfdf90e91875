"""nbgrader.csv: the long table that `nbgrader export` writes, a row for each lesson and learner, for scripts that read those.

`assignment` is the lesson, `student_id` the learner's folder. Nothing is taken off for being late, so raw_score is score; when something
was handed in is not known here, so timestamp and duedate are empty. A lesson that could not be graded in whole has no row: nbgrader
itself writes 0 where nothing was handed in, and a reader would take an empty score for that.

Source: nbgrader, nbgrader/plugins/export.py (CsvExportPlugin).
"""

from __future__ import annotations

from collections.abc import Iterator

from grader.judging.verdict import Report
from grader.reports import sheet
from grader.reports.books import Books, identifier
from grader.reports.room import ClassSummary

COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
)
ALONE = Books()


def render(report: Report, books: Books = ALONE) -> str:
    """The CSV."""
    return sheet.write(rows(ClassSummary(report), books))


def rows(room: ClassSummary, books: Books) -> Iterator[list[sheet.Cell]]:
    """The heading, then the lessons in order, the learners within each."""
    yield list(COLUMNS)
    for name in room.lessons:
        for label, one in zip(room.labels, room.report.submissions, strict=True):
            person = books.enrolled.of(label) if books.enrolled else None
            lesson = next((lesson for lesson in one.lessons if lesson.name == name), None)
            if lesson is None or lesson.score is None or (books.enrolled and not person):
                continue
            about = [*reversed(person.first_last), person["email"]] if person else ["", "", ""]
            yield [
                name,
                "",
                "",
                identifier(person.key) if person else label,
                *about,
                lesson.score,
                0,
                lesson.score,
                lesson.max_score,
            ]
