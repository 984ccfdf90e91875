"""grades.csv: a row a learner, the score of each lesson, the total, and the status of each exercise.

`learner` is the name of the learner's folder (or notebook). An empty cell: that learner was not asked for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from grader.model import Report
from grader.reports import sheet
from grader.reports.room import Room


def render(report: Report) -> str:
    """The table as CSV; its first row names the columns."""
    return sheet.write(rows(Room(report)))


def rows(room: Room) -> Iterator[list[sheet.Cell]]:
    """learner, each lesson's score, total, max, each exercise's status, message."""
    yield ["learner", *room.lessons, "total", "max", *(column.exercise for column in room.columns), "message"]
    for label, one, mine in zip(room.labels, room.report.submissions, room.verdicts, strict=True):
        scores = {lesson.name: lesson.score for lesson in one.lessons}
        judged = [mine.get((column.lesson, column.exercise)) for column in room.columns]
        yield [
            label, *(scores.get(name) for name in room.lessons), one.score, one.max_score,
            *(None if found is None else found.status for found in judged), one.message,
        ]  # fmt: skip
