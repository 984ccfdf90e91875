"""Names the mistake behind a wrong answer: the one whose own output is the learner's output.

A name is given only when the mistake reproduces what was observed on at least three cases where the
reference does not. One mistake that fits every case goes first; then two at once that fit every case; then
one that fits every ordinary case, while large scores and the like may show a further slip. Where the learner's
parameters are called otherwise than the exercise's, the cases that show it are left aside, and the same is tried again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from grader.compare import Problem, close, compare, flatten, gradient_scale, numbers, tolerances
from grader.model import Case, Exercise, Observation, Part
from grader.seen import seen
from grader.worker.observe import observe, same_random_state
from grader.worker.values import Failure

PROOF = 3  # cases that a mistake must reproduce before it is named


class Diagnosis:
    """The mistakes of one exercise, run once on its cases and kept.

    cases, expected, inputs: the drawn cases, the reference's observations and the cases' inputs, in the same order.
    """

    def __init__(
        self, exercise: Exercise, cases: Sequence[Case], expected: Sequence[Observation], inputs: Sequence[Mapping[str, Part]]
    ) -> None:
        self.exercise = exercise
        self.cases = tuple(cases)
        self.expected = tuple(expected)
        self.inputs = tuple(inputs)
        self._built: dict[tuple[str, ...], Any] = {(key,): wrong for key, wrong in _variants(exercise)}
        self._seen: dict[tuple[tuple[str, ...], int], Observation] = {}
        self._wrong: dict[tuple[tuple[str, ...], int], bool] = {}

    def mistakes(self, got: Mapping[int, Observation]) -> list[tuple[str, ...]]:
        """The mistakes that fit, each as a tuple of one id or two.

        got: what was observed of the candidate, by the case's position; cases may be missing.
        """
        with same_random_state():
            found = self._mistakes(got)
            rest = {i: shown for i, shown in got.items() if not called_otherwise(shown.failure)}
            return found or (self._mistakes(rest) if len(rest) < len(got) else [])

    def _mistakes(self, got: Mapping[int, Observation]) -> list[tuple[str, ...]]:
        everywhere = [i for i in got]
        found = self._singles(got, everywhere)
        if found or self.exercise.kind == "answer":
            return found
        found = self._pairs([mistake.id for mistake in self.exercise.mistakes], got, everywhere)
        if found:
            return found
        ordinary = [i for i in got if self.cases[i].stage == "values" and self.cases[i].raises is None]
        return self._singles(got, ordinary)

    def _singles(self, got: Mapping[int, Observation], at: list[int]) -> list[tuple[str, ...]]:
        keys = [key for key, _ in _variants(self.exercise) if self._fits((key,), got, at)]
        return list(dict.fromkeys((key.partition("#")[0],) for key in keys))

    def _pairs(self, singles: list[str], got: Mapping[int, Observation], at: list[int]) -> list[tuple[str, ...]]:
        if self.exercise.combine is None:
            return []
        # No clock bounds this search: a verdict must not depend on the machine's mood. Most pairs fall at the first case.
        pairs = combinations(dict.fromkeys(singles), 2)
        return [pair for pair in pairs if self._build(pair) is not None and self._fits(pair, got, at)][:2]

    def _build(self, ids: tuple[str, ...]) -> Any:
        if ids not in self._built:
            try:
                self._built[ids] = self.exercise.combine(frozenset(ids))
            except (KeyError, ValueError):
                self._built[ids] = None
        return self._built[ids]

    def _fits(self, ids: tuple[str, ...], got: Mapping[int, Observation], at: list[int]) -> bool:
        needed = 1 if self.exercise.kind == "answer" else PROOF
        proofs = 0
        for i in at:
            if not self._same(i, self._observation(ids, i), got[i]):
                return False
            proofs += self._is_wrong(ids, i)
        return proofs >= needed

    def _observation(self, ids: tuple[str, ...], i: int) -> Observation:
        if (ids, i) not in self._seen:
            self._seen[ids, i] = seen(self.cases[i], self.inputs[i], observe(self._build(ids), self.cases[i]))
        return self._seen[ids, i]

    def _is_wrong(self, ids: tuple[str, ...], i: int) -> bool:
        if (ids, i) not in self._wrong:
            self._wrong[ids, i] = differs(self.exercise, self.cases[i], self.expected[i], self._observation(ids, i))
        return self._wrong[ids, i]

    def _same(self, i: int, mistake: Observation, got: Observation) -> bool:
        raises = self.cases[i].raises
        if raises and all(shown.failure and shown.failure.is_a(raises) for shown in (mistake, got)):
            return True  # both raise as asked, in whatever words
        if mistake.failure or got.failure:
            return _same_failure(mistake, got)
        if set(mistake.modified) != set(got.modified):
            return False
        if mistake.parts.keys() != got.parts.keys():
            return False
        picky = bool(self.cases[i].dtype or self.exercise.dtype)
        scale = gradient_scale(mistake.parts)
        return all(
            _same_part(part, got.parts[name], *tolerances(self.exercise, self.cases[i], name, scale), picky)
            for name, part in mistake.parts.items()
        )


def called_otherwise(failure: Failure | None) -> bool:
    """Whether it was the call that failed, before a line of the learner's ran: the parameters are not those of the exercise."""
    return failure is not None and failure.type == "TypeError" and not failure.line and "argument" in failure.message


def _variants(exercise: Exercise) -> list[tuple[str, Any]]:
    """(key, implementation) of every mistake; the second one of an id has the key 'PJ1#2'.

    One mistake may be written in ways that fail differently: a weight left untransposed raises where
    it is copied in place, and only gives wrong numbers where it replaces the parameter.
    """
    counts: dict[str, int] = {}
    keyed = []
    for mistake in exercise.mistakes:
        counts[mistake.id] = counts.get(mistake.id, 0) + 1
        key = mistake.id if counts[mistake.id] == 1 else f"{mistake.id}#{counts[mistake.id]}"
        keyed.append((key, mistake.wrong))
    return keyed


def differs(exercise: Exercise, case: Case, expected: Observation, got: Observation) -> bool:
    """True where an observation is not what the case asks for."""
    if case.raises is not None:
        return got.failure is None or not got.failure.is_a(case.raises)
    if got.failure or got.modified:
        return True
    if exercise.compare is not None:
        return exercise.compare(case, expected, got) is not None
    want, have = flatten(exercise, expected), flatten(exercise, got)
    return isinstance(have, Problem) or isinstance(want, Problem) or bool(compare(exercise, case, want, have))


def _same_failure(mistake: Observation, got: Observation) -> bool:
    one, other = mistake.failure, got.failure
    if one is None or other is None or one.kind != other.kind or one.kind not in ("exception", "contract"):
        return False
    return one.type == other.type and one.message == other.message


def _same_part(mistake: Part, got: Part, rtol: float, atol: float, picky: bool) -> bool:
    mistake, got = numbers(mistake), numbers(got)
    if mistake.kind == "sequence" or got.kind == "sequence":
        return (
            mistake.kind == got.kind
            and len(mistake.items) == len(got.items)
            and all(_same_part(a, b, rtol, atol, picky) for a, b in zip(mistake.items, got.items, strict=True))
        )
    if mistake.array is None or got.array is None:
        return mistake.kind == got.kind and mistake.text == got.text
    if picky and mistake.dtype != got.dtype:
        return False
    if (mistake.kind == "tensor") != (got.kind == "tensor") or (mistake.kind == "bool") != (got.kind == "bool"):
        return False
    if (mistake.array.dtype.kind == "b") != (got.array.dtype.kind == "b"):
        return False
    return close(mistake.array.astype(np.float64), got.array.astype(np.float64), rtol, atol)
