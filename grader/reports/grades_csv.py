"""grades.csv: a row a learner, the score of each lesson, the total, and the status of each exercise.

`learner` is the name of the learner's folder (or notebook); beside it stands a person's `name` where a roster tells it. An empty
cell: that learner was not asked for it, or, for a score or a total, an exercise could not be graded; its status and the message
say which.
"""

from __future__ import annotations

from grader.reports import sheet, text
from grader.reports.class_summary import ClassSummary
from grader.reports.report import Report
from grader.submission.roster import Roster
from grader.util.words import join_names


def render(report: Report, roster: Roster | None = None) -> str:
    """The table as CSV; its first row names the columns. before: the total without the penalty."""
    summary = ClassSummary(report, roster)
    exercises = [column.exercise for column in summary.columns]
    points = ["total", "max", "before", "penalty"]
    name = ["name"] * any(summary.people)
    rows: list[list[sheet.Cell]] = [
        ["learner", *name, *summary.lessons, *points, *exercises, "late", "by_hand", "message"]
    ]
    for (label, submission), person, verdicts in zip(summary.learners, summary.people, summary.verdicts, strict=True):
        scores = {lesson.name: lesson.score for lesson in submission.lessons}
        sentence = f"No score: {join_names(submission.ungraded)} could not be graded." if submission.ungraded else ""
        row: list[sheet.Cell] = [label, *[person] * len(name), *(scores.get(name) for name in summary.lessons)]
        row += [submission.score, submission.max_score, submission.unpenalized_score, submission.penalty]
        row += [verdicts[column].status if column in verdicts else None for column in summary.columns]
        row += ["late" if submission.late else "", " ".join(text.hand_marks(submission))]
        rows.append([*row, f"{sentence} {submission.message}".strip()])
    return sheet.write(rows)
