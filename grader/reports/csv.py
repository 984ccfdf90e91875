"""grades.csv: a row a learner, the score of each lesson, the total, and the status of each exercise.

`learner` is the name of the learner's folder (or notebook). An empty cell: that learner was not asked for it, or, for a
score or a total, an exercise could not be graded; its status and the message say which.
"""

from __future__ import annotations

from collections.abc import Iterator

from grader.judging.verdict import Report, SubmissionReport
from grader.reports import sheet, text
from grader.reports.room import ClassSummary


def render(report: Report) -> str:
    """The table as CSV; its first row names the columns."""
    return sheet.write(rows(ClassSummary(report)))


def rows(room: ClassSummary) -> Iterator[list[sheet.Cell]]:
    """The heading, then a row a learner. before: the total without the penalty."""
    yield [
        "learner",
        *room.lessons,
        "total",
        "max",
        "before",
        "penalty",
        *(column.exercise for column in room.columns),
        "late",
        "by_hand",
        "message",
    ]
    for label, one, mine in zip(room.labels, room.report.submissions, room.verdicts, strict=True):
        scores = {lesson.name: lesson.score for lesson in one.lessons}
        judged = [mine.get((column.lesson, column.exercise)) for column in room.columns]
        yield [
            label,
            *(scores.get(name) for name in room.lessons),
            one.score,
            one.max_score,
            one.before,
            one.penalty,
            *(None if found is None else found.status for found in judged),
            "late" if one.late else "",
            " ".join(text.by_hand(one)),
            message(one),
        ]


def message(one: SubmissionReport) -> str:
    """What stands in place of a number, and what to fix."""
    ours = f"No score: {text.listed(one.ungraded)} could not be graded." if one.ungraded else ""
    return f"{ours} {one.message}".strip()
