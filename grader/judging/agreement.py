"""How many cases of a failing exercise agree: what an instructor may give part of its points for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from grader.course.spec import Exercise
from grader.judging.baseline import Baseline
from grader.judging.compare import is_wrong, named_parts, numbers
from grader.judging.evidence import Reading
from grader.worker.values import Observation, Part


def agreeing(exercise: Exercise, baseline: Baseline, actual: Mapping[int, Observation]) -> tuple[int, int]:
    """How many cases agree, each by itself, and how many there are.

    A case agrees where its numbers do, its inputs are left alone, and no property fails that is stated of it alone or of
    it together with another case that agrees. What never ran, because the process ended before it, does not agree.
    """
    cases = baseline.cases
    right = {i for i, one in actual.items() if not is_wrong(exercise, cases[i], baseline.expected[i], one)}
    by_key = {cases[i].key: i for i in sorted(right) if cases[i].stage == "values" and cases[i].raises is None}
    agreed = set(right)
    for rule in exercise.properties:
        if not by_key.keys() >= set(rule.needs):
            continue
        for group in [tuple(by_key[key] for key in rule.needs)] if rule.needs else [(i,) for i in by_key.values()]:
            arguments = ((cases[i], Reading(arrays(named_parts(exercise, actual[i])))) for i in group)
            if rule.check(*(argument for pair in arguments for argument in pair)):
                agreed -= set(group)
    return len(agreed), len(cases)


def arrays(parts: Mapping[str, Part]) -> dict[str, np.ndarray]:
    """What a property looks at: each part's numbers, as float64 where they are not booleans."""
    values = {name: numbers(part).array for name, part in parts.items()}
    return {
        name: array.astype(np.float64) if array.dtype.kind != "b" else array
        for name, array in values.items()
        if array is not None
    }
