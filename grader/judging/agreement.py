"""Properties of an exercise's results, and how many cases of a failing one agree: what an instructor may give part of its points for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from grader.course.spec import Case, Exercise, Property
from grader.judging.baseline import Baseline
from grader.judging.compare import is_wrong, numbers
from grader.judging.evidence import Reading
from grader.worker.values import Observation, Part


def count_agreeing(exercise: Exercise, baseline: Baseline, actual: Mapping[int, Observation]) -> tuple[int, int]:
    """How many cases agree, each by itself, and how many there are.

    A case agrees where its numbers do, its inputs are left alone, and no property fails that is stated of it alone or of
    it together with another case that agrees. What never ran, because the process ended before it, does not agree.
    """
    cases = baseline.cases
    right = {i for i, one in actual.items() if not is_wrong(exercise, cases[i], baseline.expected[i], one)}
    by_key = {cases[i].key: i for i in sorted(right) if cases[i].stage == "values" and cases[i].raises is None}
    agreed = set(right)
    for rule in exercise.properties:
        for group in case_groups(rule, by_key):
            if find_violation(rule, [(cases[i], actual[i].parts) for i in group])[0]:
                agreed -= set(group)
    return len(agreed), len(cases)


def case_groups(rule: Property, by_key: Mapping[str, int]) -> list[tuple[int, ...]]:
    """The cases that a property is stated of together, or each by itself; none where one of them is missing."""
    if not rule.cases:
        return [(i,) for i in by_key.values()]
    return [tuple(by_key[key] for key in rule.cases)] if by_key.keys() >= set(rule.cases) else []


def find_violation(rule: Property, results: Sequence[tuple[Case, Mapping[str, Part]]]) -> tuple[str | None, str]:
    """(what the property's check returns, the part that it speaks of)."""
    arguments: list[Case | Reading] = []
    reading = Reading()
    for case, parts in results:
        values = {name: array for name, part in parts.items() if (array := numbers(part).array) is not None}
        floats = {name: one if one.dtype.kind == "b" else one.astype(np.float64) for name, one in values.items()}
        reading = Reading(floats)
        arguments += case, reading
    return rule.check(*arguments), reading.last
