"""How many cases of a failing exercise agree: what an instructor may give part of its points for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from grader.course.spec import Exercise
from grader.judging.baseline import Baseline
from grader.judging.compare import compare, flatten, numbers, raises_as_asked
from grader.judging.evidence import Reading
from grader.judging.findings import Finding
from grader.worker.values import Observation, Part


def agreeing(exercise: Exercise, baseline: Baseline, actual: Mapping[int, Observation]) -> tuple[int, int]:
    """How many cases agree, each by itself, and how many there are.

    A case agrees where its numbers do, its inputs are left alone, and no property fails that is stated of it alone or of
    it together with another case that agrees. What never ran, because the process ended before it, does not agree.
    """
    parts = {i: found for i, one in actual.items() if (found := _agreed(exercise, baseline, i, one)) is not None}
    agreed = set(parts)
    by_key = {
        baseline.cases[i].key: i
        for i in parts
        if baseline.cases[i].stage == "values" and baseline.cases[i].raises is None
    }
    for held in exercise.properties:
        together = [tuple(by_key[key] for key in held.needs)] if by_key.keys() >= set(held.needs) else []
        for group in together if held.needs else [(i,) for i in by_key.values()]:
            if held.check(*(each for i in group for each in (baseline.cases[i], Reading(arrays(parts[i]))))):
                agreed -= set(group)
    return len(agreed), len(baseline.cases)


def arrays(parts: Mapping[str, Part]) -> dict[str, np.ndarray]:
    """What a property looks at: each part's numbers, as float64 where they are not booleans."""
    found = {name: numbers(part) for name, part in parts.items()}
    return {
        name: part.array.astype(np.float64) if part.array.dtype.kind != "b" else part.array
        for name, part in found.items()
        if part.array is not None
    }


def _agreed(exercise: Exercise, baseline: Baseline, i: int, observation: Observation) -> dict[str, Part] | None:
    """The parts of a case that agrees; None for one that does not."""
    case = baseline.cases[i]
    if case.raises is not None or observation.failure is not None:
        return {} if raises_as_asked(case, observation) and not observation.modified else None
    parts = flatten(exercise, observation)
    if isinstance(parts, Finding) or observation.modified:
        return None
    if exercise.compare is not None:
        return None if exercise.compare(case, baseline.expected[i], observation) else parts
    return None if compare(exercise, case, baseline.parts[i], parts) else parts
