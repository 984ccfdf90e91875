"""Names the mistake behind a wrong answer: the one whose own output is the learner's output.

A name is given only when the mistake reproduces what was observed on at least three cases where the
reference does not. One mistake that fits every case goes first; then one that any exercise may hold (outcomes.py);
then one that fits wherever there are results, since the words of an exception depend on how a thing is written; then
two at once that fit every case; then one that fits every ordinary case, while large scores and the like may show a
further slip. Where the learner's parameters are called otherwise than the exercise's, the cases that show it are left
aside, and the same is tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from grader.course import references
from grader.course.patches import Edit, Patch, joined
from grader.course.readings import seen
from grader.course.spec import Case, Exercise
from grader.judging import outcomes
from grader.judging.compare import close, compare, flatten, gradient_scale, numbers, raises_as_asked, tolerances
from grader.judging.findings import Finding
from grader.worker.observe import observe, same_random_state
from grader.worker.values import Observation, Part

# Of pairs on cases: counts and no clock, so that a verdict is the same on every machine. A module costs many times what a function does.
MOST_RUNS = {"function": 150, "class": 90}
Key = tuple[int, ...]  # positions in exercise.mistakes
Alike = Callable[[Case, Observation, Observation], bool]


class Diagnosis:
    """The mistakes of one exercise, each run at most once on each of its cases, and kept.

    cases, expected, inputs: the drawn cases, the reference's observations and the cases' inputs, in the same order.
    """

    def __init__(
        self,
        exercise: Exercise,
        cases: Sequence[Case],
        expected: Sequence[Observation],
        inputs: Sequence[Mapping[str, Part]],
    ) -> None:
        self.exercise = exercise
        self.cases = tuple(cases)
        self.expected = tuple(expected)
        self.inputs = tuple(inputs)
        self._order = [mistake.id for mistake in exercise.mistakes]
        self._edits: dict[Key, tuple[Edit, ...]] = {}
        self._built: dict[Key, Any] = {}
        self._seen: dict[tuple[Key, int], Observation] = {}
        self._wrong: dict[tuple[Key, int], bool] = {}
        self._runs = 0
        self._needed = 1 if exercise.kind == "answer" else outcomes.PROOF

    def mistakes(self, actual: Mapping[int, Observation]) -> list[tuple[str, ...]]:
        """The mistakes that fit, each as a tuple of one id or two.

        actual: what was observed of the candidate, by the case's position; cases may be missing.
        """
        with same_random_state(one_thread=True):
            found = self._mistakes(actual)
            rest = {i: shown for i, shown in actual.items() if shown.failure is None or shown.failure.kind != "call"}
            return found or (self._mistakes(rest) if len(rest) < len(actual) else [])

    def _mistakes(self, actual: Mapping[int, Observation]) -> list[tuple[str, ...]]:
        failing = {i for i, shown in actual.items() if self._fails(i, shown)}  # what is right is no mistake's own
        # What is cheap comes first, and of that what fails: most mistakes end there.
        everywhere = sorted(actual, key=lambda i: (self.cases[i].costly, i not in failing))
        found = self._singles(actual, failing, everywhere)
        if found or self.exercise.kind == "answer":
            return found
        found = [(id,) for id in outcomes.found(self.exercise, self.cases, self.expected, actual)]
        found = found or self._singles(actual, failing, everywhere, _alike) or self._pairs(actual, failing, everywhere)
        if found:
            return found
        ordinary = [i for i in everywhere if self.cases[i].stage == "values" and self.cases[i].raises is None]
        return self._singles(actual, failing, ordinary) or self._singles(actual, failing, ordinary, _alike)

    def _singles(
        self, actual: Mapping[int, Observation], failing: Collection[int], at: list[int], alike: Alike | None = None
    ) -> list[tuple[str, ...]]:
        if sum(i in failing for i in at) < self._needed:
            return []
        keys = [(number,) for number in range(len(self.exercise.mistakes))]
        return list(dict.fromkeys(self._ids(key) for key in keys if self._fits(key, actual, at, alike)))

    def _pairs(
        self, actual: Mapping[int, Observation], failing: Collection[int], at: list[int]
    ) -> list[tuple[str, ...]]:
        ends = [i for i in at if i in failing]
        if len(ends) < self._needed:
            return []
        ends = [i for i in ends if not self.cases[i].costly]
        if not ends:
            return []  # to try pairs on costly cases would take too long
        found: dict[tuple[str, ...], None] = {}
        enough = self._runs + MOST_RUNS[self.exercise.kind]
        for key in self._candidates(actual, dict.fromkeys((ends[0], ends[-1]))):
            ids = self._ids(key)
            if ids[0] == ids[1] or ids in found or not self._combine(key):
                continue
            if self._fits(key, actual, at):
                found[ids] = None
            if len(found) == 2 or self._runs >= enough:
                break
        return list(found)

    def _candidates(self, actual: Mapping[int, Observation], failing: Iterable[int]) -> list[Key]:
        """Pairs that may be behind it, the likeliest first: those of which one member alone shows most of what is wrong.

        failing: the cases by which members are chosen.
        """
        patches = [
            n for n, one in enumerate(self.exercise.mistakes) if isinstance(one.wrong, Patch) and "+" not in one.id
        ]
        members = [n for n in patches if all(self._may_take_part((n,), i, actual[i]) for i in failing)]
        shows = {n: {(i, what) for i in failing for what in self._shown((n,), i, actual[i])} for n in members}
        changes = {n for n in members if any(self._is_wrong((n,), i) for i in failing)}
        pairs = [pair for pair in combinations(members, 2) if changes & set(pair)]
        return sorted(pairs, key=lambda pair: -len(shows[pair[0]] | shows[pair[1]]))

    def _shown(self, key: Key, i: int, actual: Observation) -> set[str]:
        """What is wrong in what was observed and comes from a mistake alone just so: names of parts, or '' for a failure."""
        alone = self._observation(key, i)
        if alone.failure or actual.failure:
            return {""} if _same_failure(alone, actual) else set()
        return {
            name
            for name, (right, mine, theirs) in self._parts(i, alone, actual).items()
            if self._same_part(i, mine, theirs) and not self._same_part(i, right, theirs)
        }

    def _may_take_part(self, key: Key, i: int, actual: Observation) -> bool:
        """Whether a mistake can be one of two behind what was observed: alone, it disturbs nothing that is right there."""
        alone = self._observation(key, i)
        if not self._is_wrong(key, i):
            return True
        if alone.failure or actual.failure:
            return bool(actual.failure)  # in other words too: a second mistake may change the shapes that they tell
        for right, mine, theirs in self._parts(i, alone, actual).values():
            if self._same_part(i, right, theirs) and not self._same_part(i, right, mine):
                return False
            if numbers(mine).shape not in (numbers(right).shape, numbers(theirs).shape):
                return False
        return True

    def _parts(self, i: int, alone: Observation, actual: Observation) -> dict[str, tuple[Part, Part, Part]]:
        """The parts that are there in the reference's, a mistake's and the learner's observation of a case, by name."""
        three = [flatten(self.exercise, seen) for seen in (self.expected[i], alone, actual)]
        if any(isinstance(flat, Finding) for flat in three):  # not as many things as were expected
            three = [seen.parts for seen in (self.expected[i], alone, actual)]
        return {
            name: tuple(parts[name] for parts in three) for name in three[0] if all(name in parts for parts in three)
        }

    def _ids(self, key: Key) -> tuple[str, ...]:
        if len(key) == 1:
            return tuple(self.exercise.mistakes[key[0]].id.split("+"))
        return tuple(sorted((self.exercise.mistakes[number].id for number in key), key=self._order.index))

    def _combine(self, key: Key) -> bool:
        """Whether the two patches of a key can be made together; then they are."""
        if key not in self._edits:
            one, other = (self._edits_of(number) for number in key)
            both = joined(one, other)
            self._edits[key] = both or ()
            if both:
                try:
                    self._built[key] = references.patched(self.exercise, both)
                except Exception:  # together they may be no Python, or a class that cannot be made
                    self._edits[key] = ()
        return bool(self._edits[key])

    def _edits_of(self, number: int) -> tuple[Edit, ...]:
        if (number,) not in self._edits:
            self._edits[number,] = references.edits_of(self.exercise, self.exercise.mistakes[number].wrong)
        return self._edits[number,]

    def _build(self, key: Key) -> Any:
        if key not in self._built:
            (number,) = key
            self._built[key] = references.wrong(self.exercise, self.exercise.mistakes[number])
        return self._built[key]

    def _fits(self, key: Key, actual: Mapping[int, Observation], at: list[int], alike: Alike | None = None) -> bool:
        """alike: whether two observations that differ count all the same, where a third that does not differ proves the mistake, too."""
        proofs, apart = 0, 0
        for i in at:
            self._runs += 1  # also where what it showed is kept from before
            mistake = self._observation(key, i)
            if self._same(i, mistake, actual[i]):
                proofs += self._is_wrong(key, i)
            elif alike is None or not alike(self.cases[i], mistake, actual[i]):
                return False
            else:
                apart += 1
        return proofs >= self._needed or (proofs > 0 and proofs + apart >= self._needed)

    def _observation(self, key: Key, i: int) -> Observation:
        if (key, i) not in self._seen:
            self._seen[key, i] = seen(self.cases[i], self.inputs[i], observe(self._build(key), self.cases[i]))
        return self._seen[key, i]

    def _fails(self, i: int, actual: Observation) -> bool:
        return differs(self.exercise, self.cases[i], self.expected[i], actual)

    def _is_wrong(self, key: Key, i: int) -> bool:
        if (key, i) not in self._wrong:
            self._wrong[key, i] = self._fails(i, self._observation(key, i))
        return self._wrong[key, i]

    def _same(self, i: int, mistake: Observation, actual: Observation) -> bool:
        if all(raises_as_asked(self.cases[i], shown) for shown in (mistake, actual)):
            return True  # both raise as asked, in whatever words
        if mistake.failure or actual.failure:
            return _same_failure(mistake, actual)
        if set(mistake.modified) != set(actual.modified):
            return False
        if mistake.parts.keys() != actual.parts.keys():
            return False
        scale = gradient_scale(mistake.parts)
        return all(self._same_part(i, part, actual.parts[name], scale) for name, part in mistake.parts.items())

    def _same_part(self, i: int, one: Part, other: Part, scale: float | None = None) -> bool:
        if scale is None:
            scale = gradient_scale(self.expected[i].parts)
        picky = bool(self.cases[i].dtype or self.exercise.dtype)
        return _same_part(one, other, *tolerances(self.exercise, self.cases[i], one.role, scale), picky)


def differs(exercise: Exercise, case: Case, expected: Observation, actual: Observation) -> bool:
    """True where an observation is not what the case asks for."""
    if case.raises is not None:
        return not raises_as_asked(case, actual)
    if actual.failure or actual.modified:
        return True
    if exercise.compare is not None:
        return exercise.compare(case, expected, actual) is not None
    parts = flatten(exercise, actual)
    return isinstance(parts, Finding) or bool(compare(exercise, case, flatten(exercise, expected), parts))


def _alike(case: Case, mistake: Observation, actual: Observation) -> bool:
    """Both end in an exception, in whatever words: how it is raised depends on how a thing is written. Where a case must
    raise and neither does so as asked, it does not matter what they do in its place."""
    ended = [shown.failure is not None and shown.failure.kind == "exception" for shown in (mistake, actual)]
    if case.raises is None:
        return all(ended)
    return not any(raises_as_asked(case, shown) for shown in (mistake, actual))


def _same_failure(mistake: Observation, actual: Observation) -> bool:
    one, other = mistake.failure, actual.failure
    if one is None or other is None or one.kind != other.kind or one.kind not in ("exception", "call", "contract"):
        return False
    return one.type == other.type and one.message == other.message


def _same_part(mistake: Part, actual: Part, rtol: float, atol: float, picky: bool) -> bool:
    mistake, actual = numbers(mistake), numbers(actual)
    if mistake.kind == "sequence" or actual.kind == "sequence":
        return (
            mistake.kind == actual.kind
            and len(mistake.items) == len(actual.items)
            and all(_same_part(a, b, rtol, atol, picky) for a, b in zip(mistake.items, actual.items, strict=True))
        )
    if mistake.array is None or actual.array is None:
        return mistake.kind == actual.kind and mistake.text == actual.text
    if picky and mistake.dtype != actual.dtype:
        return False
    if (mistake.kind == "tensor") != (actual.kind == "tensor") or (mistake.kind == "bool") != (actual.kind == "bool"):
        return False
    if (mistake.array.dtype.kind == "b") != (actual.array.dtype.kind == "b"):
        return False
    return close(mistake.array.astype(np.float64), actual.array.astype(np.float64), rtol, atol)
