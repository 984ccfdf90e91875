"""What judging yields: verdicts, and the reports that are made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from grader.util.records import NOT_STORED

Status = Literal[
    "passed", "failed", "error", "timeout", "memory", "forbidden", "not_started", "missing", "could_not_grade"
]


Statuses: tuple[str, ...] = Status.__args__  # type: ignore[attr-defined]
SET_LATER = NOT_STORED  # when all reports are put together
FAILING = ("failed", "error", "timeout", "memory")  # written and allowed, and it does not pass


@dataclass(frozen=True, eq=False)
class Table:
    """What is shown of an array: at most 8 × 8 of its numbers. role: 'input', 'expected', 'actual', 'difference' (actual − expected), or
    'run' for one of two.

    name: of the input or the part, '' for the only thing that the exercise returns. dtype, shape: of the whole array.
    cells: rows and columns; a vector is one row, a number one cell. index: leading indices of the slice that is shown.
    first: row and column of the slice at which cells begin. mark: the cell with the largest difference, None where there is none to mark.
    largest: the largest finite magnitude of the whole array.
    """

    name: str
    role: str
    cells: np.ndarray
    dtype: str
    shape: tuple[int, ...]
    index: tuple[int, ...] = ()
    first: tuple[int, int] = (0, 0)
    mark: tuple[int, int] | None = None
    largest: float = 0.0

    @property
    def total(self) -> tuple[int, int]:
        """Rows and columns of the whole slice."""
        rows, columns = (1, 1, *self.shape)[-2:]
        return rows, columns


class Line(NamedTuple):
    """A line of the learner's code.

    number: its number in its cell, 0 where that is not known. function: what it belongs to where that is not the exercise, else ''.
    """

    text: str
    number: int = 0
    function: str = ""


@dataclass(frozen=True, eq=False)
class Verdict:
    """The judgement of one exercise, complete enough for any report; renderers add nothing.

    headline:   what failed (or that it passed), one sentence.
    experiment: what was tried, one sentence ('' where nothing ran).
    line:       the learner's own line at fault, where one is known.
    details:    further sentences: the shapes at hand, what was expected.
    case:       key of the failing case, '' where there is none.
    tables:     input, expected, actual and difference of the smallest failing case.
    mistakes:   ids that reproduce the learner's output, most likely first; a pair that only
                together reproduces it is one entry 'SM1+SD1'.
    sentences:  one for each entry of `mistakes`.
    slip:       a beginner's error that was proven beside the catalogue, one sentence; '' for none.
    printed, warned: what the learner's code printed in the failing case, and the warnings that it raised.
    verified:   what was verified, in the order of judging (also for a failure: what held before it).
    cases:      (how many agreed, of how many); (0, 0) where that was not counted.
    max_difference: of all numbers from the reference's, as a part of those above 1.
    next_step:  where to look next. next_exercise: after a pass; of another lesson, also which.
    """

    exercise: str
    status: Status
    headline: str
    stage: str = ""
    experiment: str = ""
    details: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    mistakes: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    verified: tuple[str, ...] = ()
    max_difference: float | None = None
    next_step: str = ""
    next_exercise: str = ""
    case: str = ""
    line: Line | None = None
    slip: str = ""
    printed: str = ""
    warned: tuple[str, ...] = ()
    seconds: float = 0.0
    cases: tuple[int, int] = (0, 0)

    @property
    def passed(self) -> bool:
        return self.status == "passed"


def hundredths(points: float) -> float:
    """Points rounded to 2 decimals; a whole number is an int, so that it is shown without '.0'."""
    rounded = round(points, 2)
    return int(rounded) if rounded == int(rounded) else rounded


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
    partial: bool = field(default=False, metadata=SET_LATER)
    code: Mapping[str, str] = field(default_factory=dict)
    hand_marks: Mapping[str, HandMark] = field(default_factory=dict, metadata=SET_LATER)
    follow_through: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    @property
    def ungraded(self) -> tuple[str, ...]:
        """The exercises that have no points, since they could not be graded."""
        return tuple(v.exercise for v in self.verdicts if v.status == "could_not_grade" and self.points_of(v) is None)

    @cached_property  # a class's page asks for it once for each exercise of the course
    def score(self) -> float | None:
        return None if self.ungraded else hundredths(sum(self.points_of(v) or 0 for v in self.verdicts))

    def points_of(self, verdict: Verdict) -> float | None:
        """The points of one of its verdicts; None where it could not be graded, and nobody marked it by hand."""
        given = self.hand_marks.get(verdict.exercise)
        return self.automatic_points(verdict) if given is None or given.points is None else hundredths(given.points)

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
    late: str = field(default="", metadata=SET_LATER)
    penalty: float = field(default=0, metadata=SET_LATER)

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
