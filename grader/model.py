"""The course as data: lessons, exercises, cases, mistakes; and what judging yields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from grader.worker.values import Observation, Part, Tensor

__all__ = [
    "Case", "Cut", "Exercise", "Lesson", "Mistake", "MistakeText", "Observation", "Part", "Property",
    "Statuses", "Table", "Tensor", "Verdict", "LessonReport", "SubmissionReport", "Report",
]

Kind = Literal["function", "class", "answer"]
Status = Literal[
    "passed", "failed", "error", "timeout", "memory", "forbidden", "not_started", "missing", "could_not_grade"
]
Statuses: tuple[str, ...] = Status.__args__  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class Case:
    """One experiment: inputs, and how the learner's object is exercised with them.

    key:     short and unique in its exercise; properties name cases by it.
    title:   what the learner reads: 'the three-token table', 'scores of 1000'.
    args, kwargs: inputs; arrays, `Tensor`s, numbers, strings, None, tuples and dicts of those.
             They are copied for every run.
    probe:   a function of grader/worker/probes.py; 'call' calls the learner's function.
    options: what else the probe needs (weights for a module, which gradients to take).
    names:   what to call args where they are shown; by default the exercise's parameter names.
    stage:   'values', or 'extremes' for what is judged last (large scores, empty rows, half precision).
    raises:  the exception this case must raise, by its name ('ValueError'); None: it must return.
    dtype:   the allowed type names of every array part; None: the exercise's rule.
    rtol, atol: None: the exercise's.
    show:    False where the input is too large to be shown.
    reading: makes of what the probe sent (parts by name) the parts that are compared: what is decided is decided here and
             not beside the learner's code. Called with (case, parts); ContractError says what is amiss. None: as they came.
    """

    key: str
    title: str
    args: tuple = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    probe: str = "call"
    options: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    stage: Literal["values", "extremes"] = "values"
    raises: str | None = None
    dtype: tuple[str, ...] | None = None
    rtol: float | None = None
    atol: float | None = None
    show: bool = True
    reading: Callable[[Case, Mapping[str, Part]], dict[str, Part]] | None = None


@dataclass(frozen=True)
class Property:
    """Something that every right answer has, stated so that its failure teaches.

    title: the claim, 'each row of weights sums to 1'.
    check: called with the observed arrays, a dict name -> ndarray for each case in `needs`
           (after the cases themselves: check(case_1, parts_1, case_2, parts_2, ...)); with no
           `needs` it is called for each case of stage 'values' as check(case, parts).
           Returns None where the property holds, else one sentence with the numbers at fault.
    """

    title: str
    check: Callable[..., str | None]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class MistakeText:
    """What is said of a mistake, wherever it turns up.

    sentence: what the learner reads first; why: the mistake at length, in Markdown;
    wrong, right: code, a few lines each; evidence: a public 'owner/repo#number' or ''.
    """

    id: str
    sentence: str
    why: str
    wrong: str = ""
    right: str = ""
    evidence: str = ""


@dataclass(frozen=True)
class Mistake:
    """A mistake that learners make. wrong: a `Patch` of the reference, or the object that stands where the reference stands.

    id: 'SM4', or 'SM4+SM5' for two at once whose patches would change the same words and so do not combine by themselves.
    """

    id: str
    wrong: Any


@dataclass(frozen=True, eq=False)
class Exercise:
    """The one specification of an exercise.

    task:      one sentence.
    parts:     names of what is returned: ('result',), or ('output', 'weights') for a pair.
    container: 'ndarray', 'tensor', 'number' (a float in any of its forms), 'answer' (a list,
               tuple or array of numbers) or 'any': the type that each returned part must have.
    dtype:     allowed type names; () allows float32, float64 and integers.
    cases:     draws the cases from a seeded generator, smallest first.
    mistakes:  wrong implementations, at least three. `combine` builds one with several of their
               ids at once, or raises KeyError for a pair that cannot be combined.
    hints:     a question; where to look; code with a blank.
    forbids:   names of groups in grader/allowed.py, or dotted names that may not be called.
    requires:  names of rules in grader/allowed.py that must hold.
    texts:     what is said of those mistakes that only this exercise knows.
    compare:   replaces the comparison with the reference where the contract leaves room: called
               with (case, expected, got), both observations; returns None or what differs.
    """

    name: str
    task: str
    points: int
    minutes: int
    cases: Callable[[np.random.Generator], Sequence[Case]]
    mistakes: tuple[Mistake, ...]
    hints: tuple[str, str, str]
    kind: Kind = "function"
    parts: tuple[str, ...] = ("result",)
    container: str = "ndarray"
    dtype: tuple[str, ...] = ()
    properties: tuple[Property, ...] = ()
    combine: Callable[[frozenset[str]], Any] | None = None
    texts: tuple[MistakeText, ...] = ()
    forbids: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    compare: Callable[[Case, Observation, Observation], str | None] | None = None
    rtol: float = 1e-4
    atol: float = 1e-5


@dataclass(frozen=True, eq=False)
class Lesson:
    """name: '01_three_tokens', also the name of its files; texts: mistakes that only it knows.

    outcome: what one can do after it, as 'we can …' goes on.
    """

    name: str
    title: str
    question: str
    exercises: tuple[Exercise, ...]
    texts: tuple[MistakeText, ...] = ()
    outcome: str = ""


@dataclass(frozen=True)
class Cut:
    """Where a part of an array lies. shape: of the whole; index: of the slice; first: row and column at which it begins.

    largest: the largest finite magnitude of the whole.
    """

    shape: tuple[int, ...]
    index: tuple[int, ...]
    first: tuple[int, int]
    largest: float


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers to be shown. role: 'input', 'expected', 'got' or 'difference' (got − expected).

    cut: of a large array, whose shown part alone is in `array` as rows and columns; None where it is whole.
    """

    name: str
    array: np.ndarray
    role: str
    dtype: str = ""
    cut: Cut | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the whole array."""
        return self.array.shape if self.cut is None else self.cut.shape


@dataclass(frozen=True, eq=False)
class Verdict:
    """The judgement of one exercise, complete enough for any report; renderers add nothing.

    headline:   what failed (or that it passed), one sentence.
    experiment: what was tried, one sentence ('' where nothing ran).
    details:    further sentences: the learner's own line, the shapes at hand, what was wanted.
    tables:     input, expected, got and difference of the smallest failing case.
    mistakes:   ids that reproduce the learner's output, most likely first; a pair that only
                together reproduces it is one entry 'SM1+SD1'.
    sentences:  one for each entry of `mistakes`.
    verified:   what was verified, in the order of judging (also for a failure: what held before it).
    look:       where to look next.
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
    look: str = ""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return self.status == "passed"

    def __bool__(self) -> bool:
        return self.passed


@dataclass(frozen=True)
class LessonReport:
    """The verdicts of one notebook, in the lesson's order. notes: sentences on the notebook itself.

    score: None where an exercise could not be graded. No number can stand for that: what failed is ours, and any sum
    or table that takes it for 0 fails in its tests.
    """

    name: str
    verdicts: tuple[Verdict, ...]
    points: Mapping[str, int]
    notes: tuple[str, ...] = ()

    @property
    def ungraded(self) -> tuple[str, ...]:
        """The exercises that could not be graded."""
        return tuple(v.exercise for v in self.verdicts if v.status == "could_not_grade")

    @property
    def score(self) -> int | None:
        return None if self.ungraded else sum(self.points[v.exercise] for v in self.verdicts if v.passed)

    def earned(self, judged: Verdict) -> int | None:
        """The points of one of its verdicts; None where it could not be graded."""
        return None if judged.status == "could_not_grade" else self.points[judged.exercise] if judged.passed else 0

    @property
    def max_score(self) -> int:
        return sum(self.points.values())


@dataclass(frozen=True)
class SubmissionReport:
    """One learner's result. message: what to mend where a notebook could not be read, else ''.

    score: None where an exercise could not be graded.
    """

    name: str
    path: str
    lessons: tuple[LessonReport, ...]
    message: str = ""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Those of all lessons, in order."""
        return tuple(verdict for lesson in self.lessons for verdict in lesson.verdicts)

    @property
    def ungraded(self) -> tuple[str, ...]:
        """The exercises that could not be graded."""
        return tuple(name for lesson in self.lessons for name in lesson.ungraded)

    @property
    def score(self) -> int | None:
        return None if self.ungraded else sum(lesson.score or 0 for lesson in self.lessons)

    @property
    def max_score(self) -> int:
        return sum(lesson.max_score for lesson in self.lessons)


@dataclass(frozen=True)
class Report:
    """What every renderer starts from. isolation: 'process', the level that held while grading.

    notes: sentences on all of them, such as which lessons were taken.
    """

    submissions: tuple[SubmissionReport, ...]
    seed: int
    course: str = "attention"
    isolation: str = "process"
    notes: tuple[str, ...] = ()
