"""What each mistake of an exercise shows on its cases: run once, and kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from grader.course import references
from grader.course.patches import Patch, join_edits
from grader.course.readings import with_readings
from grader.course.spec import Case, Exercise
from grader.judging.compare import Comparison, as_array, close, gradient_scale, has_kind, raises_as_asked, tolerances
from grader.worker.observe import observe
from grader.worker.values import Observation, Part

Key = tuple[int, ...]  # positions in exercise.mistakes: one, or two that are made together
Ids = tuple[str, ...]


@dataclass(eq=False)
class MistakeRuns:
    """The mistakes of one exercise, each run at most once on each of its cases, and kept.

    cases, expected, inputs: the cases, the reference's observations and the cases' inputs, in the same order.
    """

    exercise: Exercise
    cases: Sequence[Case]
    expected: Sequence[Observation]
    inputs: Sequence[Mapping[str, Part]]

    def __post_init__(self) -> None:
        self._edits = cache(lambda number: references.edits_of(self.exercise, self.exercise.mistakes[number].wrong))
        self.object = cache(self._build)
        self.cache: dict[tuple[Key, int], Comparison] = {}
        mistakes = enumerate(self.exercise.mistakes)
        numbers = {mistake.wrong: number for number, mistake in mistakes if isinstance(mistake.wrong, Patch)}
        self.likes = {number: numbers[patch.like] for patch, number in numbers.items() if patch.like in numbers}

    def compare(self, i: int, observation: Observation) -> Comparison:
        """What a case showed of somebody's object, beside what the reference shows."""
        actual = with_readings(self.exercise, self.cases[i], self.inputs[i], observation)
        return Comparison(self.exercise, self.cases[i], self.expected[i], actual)

    def keep(self, number: int, observations: Iterable[Observation]) -> None:
        """Spares the runs of a mistake that has been observed on the cases. number: its position in exercise.mistakes."""
        for i, observation in enumerate(observations):
            self.cache[(number,), i] = self.compare(i, observation)

    def proofs(self, number: int) -> int:
        """On how many cases a mistake differs from the reference. number: its position in exercise.mistakes."""
        return sum(self.show((number,), i).wrong for i in range(len(self.cases)))

    def show(self, key: Key, i: int) -> Comparison:
        """What a mistake, or two, show in case i."""
        if not self.cases[i].costly:
            key = tuple(self.likes.get(number, number) for number in key)
        if (key, i) not in self.cache:
            self.cache[key, i] = self.compare(i, observe(self.object(key), self.cases[i], trusted=True))
        return self.cache[key, i]

    def same(self, i: int, mistake: Observation, actual: Observation) -> bool:
        """Whether two observations of case i agree in all, within its tolerance."""
        if all(raises_as_asked(self.cases[i], observation) for observation in (mistake, actual)):
            return True  # both raise as asked, in whatever words
        if mistake.failure or actual.failure:
            return same_failure(mistake, actual)
        if set(mistake.modified) != set(actual.modified) or mistake.parts.keys() != actual.parts.keys():
            return False
        scale = gradient_scale(mistake.parts)
        return all(self.same_part(i, part, actual.parts[name], scale) for name, part in mistake.parts.items())

    def same_part(self, i: int, expected: Part, actual: Part, scale: float | None = None) -> bool:
        """Whether two parts agree, within the tolerance of case i. scale: of gradients; by default that of the reference's."""
        scale = gradient_scale(self.expected[i].parts) if scale is None else scale
        rtol, atol = tolerances(self.exercise, self.cases[i], expected.role, scale)
        expected, actual = as_array(expected), as_array(actual)
        if expected.kind == "sequence" or actual.kind == "sequence":
            if expected.kind != actual.kind or len(expected.items) != len(actual.items):
                return False
            return all(self.same_part(i, *pair, scale) for pair in zip(expected.items, actual.items, strict=True))
        if expected.array is None or actual.array is None:
            return expected.kind == actual.kind and expected.text == actual.text
        if (self.cases[i].dtype or self.exercise.dtype) and expected.dtype != actual.dtype:
            return False
        if any((expected.kind == kind) != (actual.kind == kind) for kind in ("tensor", "bool")):
            return False
        if has_kind(expected, "b") != has_kind(actual, "b"):
            return False
        return close(expected.array.astype(np.float64), actual.array.astype(np.float64), rtol, atol)

    def proves(self, key: Key, i: int, actual: Observation) -> bool:
        """Whether a mistake shows in a case what was observed, in numbers and not in an exception alone."""
        mistake = self.show(key, i)
        return mistake.wrong and actual.failure is None and self.same(i, mistake.actual, actual)

    def ids(self, key: Key) -> Ids:
        """The ids behind a key, in the exercise's order."""
        mistakes = self.exercise.mistakes
        if len(key) == 1:
            return tuple(mistakes[key[0]].id.split("+"))
        order = [mistake.id for mistake in mistakes]
        return tuple(sorted((mistakes[number].id for number in key), key=order.index))

    def _build(self, key: Key) -> Any:
        """The object that shows a mistake, or two; None where the patches of two do not go together."""
        if len(key) == 1:
            return references.wrong(self.exercise, self.exercise.mistakes[key[0]])
        edits = join_edits(self._edits(key[0]), self._edits(key[1]))
        try:
            return references.patch_reference(self.exercise, edits) if edits else None
        except Exception:  # together they may be no Python, or a class that cannot be made
            return None


def breaks_contract(observation: Observation) -> bool:
    return observation.failure is not None and observation.failure.kind == "contract"


def same_failure(mistake: Observation, actual: Observation) -> bool:
    """Whether both ended in one and the same exception, or broke one and the same contract.

    Of a kind of ContractError two are the same fault, whatever numbers their sentences give.
    """
    first, second = mistake.failure, actual.failure
    if first is None or second is None or (first.kind, first.type) != (second.kind, second.type):
        return False
    if first.kind == "contract" and first.type != "ContractError":
        return True
    return first.kind in ("exception", "call", "contract") and first.message == second.message
