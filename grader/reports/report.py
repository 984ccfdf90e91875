"""What every report is made of: the verdicts of a lesson, of a submission, of a class, and the points that they give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from grader.judging.verdict import Verdict
from grader.util.records import NOT_STORED


def plain(number: float) -> float:
    """The number, an int where it is whole, so that it is shown without '.0'."""
    return int(number) if float(number).is_integer() else number


def hundredths(points: float) -> float:
    """Points rounded to 2 decimals."""
    return plain(round(points, 2))


@dataclass(frozen=True)
class HandMark:
    """What a person says of an exercise. points: in place of the automatic ones; None: a comment alone."""

    points: float | None
    comment: str = ""


@dataclass(frozen=True)
class LessonReport:
    """The verdicts of one notebook, in the lesson's order. notes: sentences on the notebook itself.

    points:  of each exercise, as the course or an instructor's weights have them.
    partial: whether an exercise that failed earns the share of its cases that agreed; else it earns nothing.
    code:    of each exercise that was handed in, the learner's cell. hand_marks: what a person gave, by exercise.
    follow_through: of those that pass with the course's answers to others, which others, and the share of the points that this earns.
    score: None where an exercise could not be graded. No number can stand for that: what failed is ours, and any sum
    or table that takes it for 0 fails in its tests.
    """

    name: str
    verdicts: tuple[Verdict, ...]
    points: Mapping[str, float]
    notes: tuple[str, ...] = ()
    partial: bool = field(default=False, metadata=NOT_STORED)
    code: Mapping[str, str] = field(default_factory=dict)
    hand_marks: Mapping[str, HandMark] = field(default_factory=dict, metadata=NOT_STORED)
    follow_through: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    @property
    def ungraded(self) -> tuple[str, ...]:
        """The exercises that have no points, since they could not be graded."""
        return tuple(verdict.exercise for verdict in self.verdicts if self.points_of(verdict) is None)

    @cached_property  # a class's page asks for it once for each exercise of the course
    def score(self) -> float | None:
        return None if self.ungraded else hundredths(sum(self.points_of(verdict) or 0 for verdict in self.verdicts))

    def points_of(self, verdict: Verdict) -> float | None:
        """The points of one of its verdicts; None where it could not be graded, and nobody marked it by hand."""
        mark = self.hand_marks.get(verdict.exercise)
        return self.automatic_points(verdict) if mark is None or mark.points is None else hundredths(mark.points)

    def automatic_points(self, verdict: Verdict) -> float | None:
        """The points without marks by hand."""
        if verdict.status == "could_not_grade":
            return None
        agreed, cases = verdict.cases
        share = 1.0 if verdict.passed else agreed / cases if self.partial and cases else 0.0
        _, followed = self.follow_through.get(verdict.exercise, ("", 0.0))
        return hundredths(self.points[verdict.exercise] * max(share, followed))

    @property
    def max_score(self) -> float:
        return hundredths(sum(self.points.values()))


@dataclass(frozen=True)
class SubmissionReport:
    """One learner's result. message: what to fix where a notebook could not be read, else ''.

    attention: sentences for whoever grades, on what to look at before the marks are used. late: what the platform says of the time
    when it was handed in, where that was too late; else ''. penalty: the points that this costs, as far as there are so many. score: None
    where an exercise could not be graded; unpenalized_score: without the penalty.
    """

    name: str
    path: str
    lessons: tuple[LessonReport, ...]
    message: str = ""
    attention: tuple[str, ...] = ()
    late: str = field(default="", metadata=NOT_STORED)
    penalty: float = field(default=0, metadata=NOT_STORED)

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        return tuple(verdict for lesson in self.lessons for verdict in lesson.verdicts)

    @cached_property
    def ungraded(self) -> tuple[str, ...]:
        return tuple(name for lesson in self.lessons for name in lesson.ungraded)

    @cached_property
    def unpenalized_score(self) -> float | None:
        return None if self.ungraded else hundredths(sum(lesson.score or 0 for lesson in self.lessons))

    @cached_property
    def score(self) -> float | None:
        return None if self.unpenalized_score is None else hundredths(self.unpenalized_score - self.penalty)

    @cached_property
    def max_score(self) -> float:
        return hundredths(sum(lesson.max_score for lesson in self.lessons))


@dataclass(frozen=True)
class Report:
    """What every renderer starts from. isolation: 'process', the level that held while grading.

    own_seeds: whether each learner's inputs were drawn with a seed of their own, which `seed` and the learner's name give.
    notes: sentences on all of them, such as which lessons were taken. not_graded: (name, why) of what lies beside the learners' work.
    """

    submissions: tuple[SubmissionReport, ...]
    seed: int
    course: str = "attention"
    isolation: str = "process"
    notes: tuple[str, ...] = ()
    not_graded: tuple[tuple[str, str], ...] = ()
    own_seeds: bool = False
