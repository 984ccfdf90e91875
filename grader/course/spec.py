"""What an author specifies: lessons, exercises, cases, properties, mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from grader.worker.values import Observation, Part

SEED = 7  # of the inputs; the notebook and `grader grade` share it, so that their verdicts agree


@dataclass(frozen=True, eq=False)
class Case:
    """One experiment: inputs, and how the learner's object is exercised with them.

    key:     short and unique in its exercise; properties name cases by it.
    title:   what the learner reads: 'the three-token table', 'scores of 1000'.
    args, kwargs: inputs; arrays, `Tensor`s, numbers, strings, None, tuples and dicts of those.
             They are copied for every run.
    probe:   'call' calls the learner's function, 'module' builds a module with given weights and runs it, 'answer' takes a
             value as it is; 'probes.NAME' is a function of probes.py in the lesson's folder, 'shared.probes.NAME' of shared/.
    options: what else the probe needs (weights for a module, which gradients to take). 'shown': of arguments that it adds to the call,
             name and text, as a learner would write them; they are told with the others.
    names:   what to call args where they are shown; by default the exercise's parameter names.
    stage:   'values', or 'extremes' for what is judged last (large scores, empty rows, half precision).
    raises:  the exception this case must raise, by its name ('ValueError'); None: it must return.
    dtype:   the allowed type names of every array part; None: the exercise's rule.
    rtol, atol: None: the exercise's.
    show:    False where the input is too large to be shown.
    costly:  True where it takes many times as long as the exercise's others: a diagnosis looks at it last,
        and seeks no pair of mistakes where such cases alone fail.
    watched: False where forbidden operations need not be looked for, since another case of the same kind looks for them: whoever computes
        that one without them has no need of them here. Looking takes as long as computing.
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
    costly: bool = False
    watched: bool = True
    reading: Callable[[Case, Mapping[str, Part]], dict[str, Part]] | None = None


UNTRIED = ""  # what the check of a property returns where it is not told


@dataclass(frozen=True)
class Property:
    """Something that every right answer has, stated so that its failure teaches.

    title: the claim, 'each row of weights sums to 1'.
    check: called with the observed arrays, a dict name -> ndarray for each of `cases`
           (after the cases themselves: check(case_1, parts_1, case_2, parts_2, ...)); with no
           `cases` it is called for each case of stage 'values' as check(case, parts).
           Returns None where the property holds, UNTRIED where these results do not show whether it does, as where other
           numbers are wrong first, else one sentence with the numbers at fault.
    """

    title: str
    check: Callable[..., str | None]
    cases: tuple[str, ...] = ()


@dataclass(frozen=True)
class MistakeText:
    """What is said of a mistake, wherever it turns up.

    sentence: what the learner reads first; why: the mistake at length, in Markdown;
    wrong, right: code, a few lines each; issue: a public 'owner/repo#number' or ''.
    """

    id: str
    sentence: str
    why: str
    wrong: str = ""
    right: str = ""
    issue: str = ""


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
    result_names: of what is returned: ('result',), or ('output', 'weights') for a pair.
    result_type: 'ndarray', 'tensor', 'number' (a float in any of its forms), 'answer' (a list,
               tuple or array of numbers) or 'any': the type that each returned part must have.
    dtype:     allowed type names; () allows float32, float64 and integers.
    cases:     draws the cases from a seeded generator, smallest first.
    mistakes:  at least three; one that may be made in several ways stands here several times.
    hints:     a question; where to look; code with a blank.
    forbids:   names of groups in grader/source/policy.py. Whatever it is, no cell may reach what looks on; 'tampering' asks for that
               alone, and an exercise with a probe of its own that forbids nothing else has it.
    requires:  names of rules in grader/source/policy.py that must hold.
    texts:     what is said of those mistakes that only this exercise knows.
    difficulty: 1 for practice, whose formula stands above it, to 3 for what makes one think.
    indistinguishable: pairs of ids that no case can tell apart, so that a verdict names both; each text has to fit both.
    unused_parameters: those that a right answer may leave unused.
    process:   'own' where it could end the notebook's process: `check` then judges its text in a worker, as `grader grade` does.
    pair_runs: of pairs of mistakes on cases, how many a diagnosis makes where a run takes longer than it usually does, or less: a
               count and no clock, so that a verdict is the same on every machine. With few, one case tells which pairs may be.
    libraries: those without which it cannot be judged, beside NumPy and torch.
    course, lesson, further: where it belongs, and whether it is of the further part; the course fills them in.
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
    kind: Literal["function", "class", "answer"] = "function"
    difficulty: int | None = None
    result_names: tuple[str, ...] = ("result",)
    result_type: str = "ndarray"
    dtype: tuple[str, ...] = ()
    properties: tuple[Property, ...] = ()
    texts: tuple[MistakeText, ...] = ()
    forbids: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    indistinguishable: tuple[tuple[str, str], ...] = ()
    unused_parameters: tuple[str, ...] = ()
    process: Literal["notebook", "own"] = "notebook"
    pair_runs: int | None = None
    libraries: tuple[str, ...] = ()
    compare: Callable[[Case, Observation, Observation], str | None] | None = None
    rtol: float = 1e-4
    atol: float = 1e-5
    course: Any = field(default=None, repr=False)  # the Course, which imports this module, and fills itself in
    lesson: str = ""
    further: bool = False


@dataclass(frozen=True, eq=False)
class Lesson:
    """What stands in a lesson's lesson.toml, and its exercises.

    name: '01_three_tokens', the name of its folder and of its notebooks; texts: mistakes that only it knows.

    outcome: what one can do after it, as 'we can …' goes on.
    extra_data: a module of solutions/shared/data/ whose `load()` the solved notebook runs for real, an extra for all others, or ''.
    """

    name: str
    title: str
    question: str
    exercises: tuple[Exercise, ...]
    texts: tuple[MistakeText, ...] = ()
    outcome: str = ""
    extra_data: str = ""
    course: Any = field(default=None, repr=False)  # the Course, which imports this module, and fills itself in
