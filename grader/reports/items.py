"""Item analysis: what each exercise tells of a class, from who solved it.

Solved: how many passed, of those who could be graded. Who handed in nothing readable of a lesson tells nothing of its exercises, and
is left out of them. Attempted: how many changed the stub, whatever came of it; how often somebody
checked an answer is not in what is handed in. Discrimination: the correlation of passing an exercise (0 or 1) with the share of
points on all the others, the corrected point-biserial correlation, from -1 to 1. The exercise itself is left out of the score,
or it would correlate with itself. Source: Lord and Novick 1968, Statistical Theories of Mental Test Scores, section 15.4.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from statistics import StatisticsError, correlation

from grader.reports.class_summary import ATTEMPTED, ClassSummary, Column, likeliest
from grader.reports.report import LessonReport, SubmissionReport
from grader.reports.text import STATUS_WORDS

FEWEST = 20  # learners; below that two standard errors are nearly half of all that the number can be


@dataclass(frozen=True)
class Item:
    """An exercise of a class. graded: who could be graded; discrimination: None where the class is small or all did alike."""

    column: Column
    passed: int
    attempted: int
    graded: int
    discrimination: float | None
    other_statuses: str
    frequent_mistakes: str


def items(summary: ClassSummary) -> list[Item]:
    """The exercises, those that fewest passed first."""
    rows = []
    for column in summary.columns:
        submissions, pairs = summary.report.submissions, summary.verdicts_on(column)
        verdicts = [verdict for learner, verdict in pairs if _lesson(submissions[learner], column) is not None]
        tally: Counter[str] = Counter(verdict.status for verdict in verdicts)
        mistakes = Counter(id for verdict in verdicts for id, _ in likeliest(verdict))
        item = Item(
            column,
            tally["passed"],
            sum(tally[status] for status in ATTEMPTED),
            tally.total() - tally["could_not_grade"],
            discrimination(summary, column),
            ", ".join(f"{count} {STATUS_WORDS[status]}" for status, count in tally.most_common() if status != "passed"),
            ", ".join(f"{id} ({count})" for id, count in mistakes.most_common(2)),
        )
        rows.append(item)
    return sorted(rows, key=lambda item: item.passed / max(item.graded, 1))


def discrimination(summary: ClassSummary, column: Column) -> float | None:
    """Of learners who have a score; None for fewer than FEWEST, and where all did alike here or on everything else."""
    solved, elsewhere = [], []
    for learner, verdict in summary.verdicts_on(column):
        submission = summary.report.submissions[learner]
        report = _lesson(submission, column)
        if report is None or submission.ungraded:
            continue
        lessons = [lesson for lesson in submission.lessons if was_handed_in(lesson)]
        others = sum(lesson.max_score for lesson in lessons) - report.points[column.exercise]
        if others <= 0:
            continue
        solved.append(float(verdict.passed))
        elsewhere.append((sum(lesson.score or 0 for lesson in lessons) - (report.points_of(verdict) or 0)) / others)
    if len(solved) < FEWEST:
        return None
    try:
        return correlation(solved, elsewhere)
    except StatisticsError:  # no spread
        return None


def was_handed_in(lesson: LessonReport) -> bool:
    """Whether any exercise of a lesson was there to be graded; an unreadable notebook has none."""
    return any(verdict.status != "missing" for verdict in lesson.verdicts)


def _lesson(submission: SubmissionReport, column: Column) -> LessonReport | None:
    """A learner's lesson that an exercise is of, None where they did not hand it in."""
    return next((lesson for lesson in filter(was_handed_in, submission.lessons) if lesson.name == column.lesson), None)


def remark(summary: ClassSummary) -> str:
    """How to read the discrimination, or why it isn't shown."""
    graded = (submission for submission in summary.report.submissions if not submission.ungraded)
    count = sum(any(map(was_handed_in, submission.lessons)) for submission in graded)
    if count < FEWEST:
        return (
            f"How well an exercise tells learners apart (its discrimination) is not shown for {count} with a score: "
            f"below {FEWEST} it is mostly chance."
        )
    return (
        "Discrimination: the correlation of passing an exercise with the score on all the others, from −1 to 1. Around 0 or below, "
        "learners who do well elsewhere do no better here, and the exercise deserves a look; a dash means that all had the same result, "
        f"or that fewer than {FEWEST} handed the lesson in. "
        f"With {count} learners a value is known to about ±{2 / math.sqrt(count - 1):.1f}."
    )
