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
from grader.judging.compare import Compared, as_array, close, gradient_scale, has_kind, raises_as_asked, tolerances
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
        self.shown: dict[tuple[Key, int], Compared] = {}
        places = {one.wrong: n for n, one in enumerate(self.exercise.mistakes) if isinstance(one.wrong, Patch)}
        self.likes = {n: places[patch.like] for patch, n in places.items() if patch.like in places}

    def compare(self, i: int, observation: Observation) -> Compared:
        """What a case showed of somebody's object, beside what the reference shows."""
        seen = with_readings(self.exercise, self.cases[i], self.inputs[i], observation)
        return Compared(self.exercise, self.cases[i], self.expected[i], seen)

    def keep(self, number: int, observations: Iterable[Observation]) -> None:
        """Spares the runs of a mistake that has been observed on the cases. number: its position in exercise.mistakes."""
        for i, observation in enumerate(observations):
            self.shown[(number,), i] = self.compare(i, observation)

    def proofs(self, number: int) -> int:
        """On how many cases a mistake differs from the reference. number: its position in exercise.mistakes."""
        return sum(self.show((number,), i).wrong for i in range(len(self.cases)))

    def show(self, key: Key, i: int) -> Compared:
        """What a mistake, or two, show in case i."""
        if not self.cases[i].costly:
            key = tuple(self.likes.get(number, number) for number in key)
        if (key, i) not in self.shown:
            self.shown[key, i] = self.compare(i, observe(self.object(key), self.cases[i], trusted=True))
        return self.shown[key, i]

    def same(self, i: int, mistake: Observation, actual: Observation) -> bool:
        """Whether two observations of case i agree in all, within its tolerance."""
        if all(raises_as_asked(self.cases[i], one) for one in (mistake, actual)):
            return True  # both raise as asked, in whatever words
        if mistake.failure or actual.failure:
            return same_failure(mistake, actual)
        if set(mistake.modified) != set(actual.modified) or mistake.parts.keys() != actual.parts.keys():
            return False
        scale = gradient_scale(mistake.parts)
        return all(self.same_part(i, part, actual.parts[name], scale) for name, part in mistake.parts.items())

    def same_part(self, i: int, one: Part, other: Part, scale: float | None = None) -> bool:
        """Whether two parts agree, within the tolerance of case i. scale: of gradients; by default that of the reference's."""
        scale = gradient_scale(self.expected[i].parts) if scale is None else scale
        rtol, atol = tolerances(self.exercise, self.cases[i], one.role, scale)
        one, other = as_array(one), as_array(other)
        if one.kind == "sequence" or other.kind == "sequence":
            if one.kind != other.kind or len(one.items) != len(other.items):
                return False
            return all(self.same_part(i, *pair, scale) for pair in zip(one.items, other.items, strict=True))
        if one.array is None or other.array is None:
            return one.kind == other.kind and one.text == other.text
        if (self.cases[i].dtype or self.exercise.dtype) and one.dtype != other.dtype:
            return False
        if any((one.kind == kind) != (other.kind == kind) for kind in ("tensor", "bool")):
            return False
        if has_kind(one, "b") != has_kind(other, "b"):
            return False
        return close(one.array.astype(np.float64), other.array.astype(np.float64), rtol, atol)

    def proves(self, key: Key, i: int, actual: Observation) -> bool:
        """Whether a mistake shows in a case what was observed, in numbers and not in an exception alone."""
        alone = self.show(key, i)
        return alone.wrong and actual.failure is None and self.same(i, alone.actual, actual)

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
    """Whether both ended in one and the same exception, or broke one and the same contract."""
    one, other = mistake.failure, actual.failure
    if one is None or other is None or one.kind != other.kind or one.kind not in ("exception", "call", "contract"):
        return False
    if one.kind == "contract" and one.type != "ContractError":  # a kind of its own, see readings.py
        return one.type == other.type
    return one.type == other.type and one.message == other.message
