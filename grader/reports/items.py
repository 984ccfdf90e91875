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

from grader.judging.verdict import LessonReport, SubmissionReport
from grader.reports import text
from grader.reports.class_summary import ATTEMPTED, ClassSummary, Column, likeliest

FEWEST = 20  # learners; below that two standard errors are nearly half of all that the number can be


@dataclass(frozen=True)
class Item:
    """An exercise of a class. graded: who could be graded; discrimination: None where the class is small or all did alike."""

    column: Column
    passed: int
    attempted: int
    graded: int
    discrimination: float | None
    otherwise: str
    worst: str


def items(room: ClassSummary) -> list[Item]:
    """The exercises, those that fewest passed first."""
    rows = []
    for column in room.columns:
        submissions = room.report.submissions
        verdicts = [
            verdict for who, verdict in room.verdicts_on(column) if _lesson(submissions[who], column) is not None
        ]
        met: Counter[str] = Counter(verdict.status for verdict in verdicts)
        mistakes = Counter(id for verdict in verdicts for id, _ in likeliest(verdict))
        item = Item(
            column,
            met["passed"],
            sum(met[status] for status in ATTEMPTED),
            met.total() - met["could_not_grade"],
            discrimination(room, column),
            ", ".join(f"{count} {text.WORDS[status]}" for status, count in met.most_common() if status != "passed"),
            ", ".join(f"{id} ({count})" for id, count in mistakes.most_common(2)),
        )
        rows.append(item)
    return sorted(rows, key=lambda one: one.passed / max(one.graded, 1))


def discrimination(room: ClassSummary, column: Column) -> float | None:
    """Of learners who have a score; None for fewer than FEWEST, and where all did alike here or on everything else."""
    solved, elsewhere = [], []
    for who, verdicts in room.verdicts_on(column):
        one = room.report.submissions[who]
        lesson = _lesson(one, column)
        if lesson is None or one.ungraded:
            continue
        there = [each for each in one.lessons if handed_in(each)]
        others = sum(each.max_score for each in there) - lesson.points[column.exercise]
        if others <= 0:
            continue
        solved.append(float(verdicts.passed))
        elsewhere.append((sum(each.score or 0 for each in there) - (lesson.points_of(verdicts) or 0)) / others)
    if len(solved) < FEWEST:
        return None
    try:
        return correlation(solved, elsewhere)
    except StatisticsError:  # no spread
        return None


def handed_in(lesson: LessonReport) -> bool:
    """Whether any exercise of a lesson was there to be graded; an unreadable notebook has none."""
    return any(verdict.status != "missing" for verdict in lesson.verdicts)


def _lesson(one: SubmissionReport, column: Column) -> LessonReport | None:
    """A learner's lesson that an exercise is of, None where they did not hand it in."""
    return next((lesson for lesson in one.lessons if lesson.name == column.lesson and handed_in(lesson)), None)


def remark(room: ClassSummary) -> str:
    """How to read the discrimination, or why it isn't shown."""
    count = sum(not one.ungraded and any(map(handed_in, one.lessons)) for one in room.report.submissions)
    if count < FEWEST:
        return (
            f"How well an exercise tells learners apart (its discrimination) is not shown for {count} with a score: "
            f"below {FEWEST} it is mostly chance."
        )
    return (
        "Discrimination: the correlation of passing an exercise with the score on all the others, from −1 to 1. Around 0 or below, "
        "learners who do well elsewhere do no better here, and the exercise deserves a look; a dash means that all had the same result. "
        f"With {count} learners a value is known to about ±{2 / math.sqrt(count - 1):.1f}."
    )
