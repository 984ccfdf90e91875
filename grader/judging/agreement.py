"""Properties of an exercise's results, and how many cases of a failing one agree: what an instructor may give part of its points for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from grader.course.spec import Case, Exercise, Property
from grader.judging.compare import Compared, numbers
from grader.judging.evidence import Reading


def count_agreeing(exercise: Exercise, compared: Mapping[int, Compared]) -> int:
    """How many cases agree, each by itself.

    A case agrees where its numbers do, its inputs are left alone, and no property fails that is stated of it alone or of
    it together with another case that agrees. What never ran, because the process ended before it, does not agree.
    """
    right = {i: one for i, one in compared.items() if not one.wrong}
    by_key = {one.case.key: i for i, one in right.items() if one.case.stage == "values" and one.case.raises is None}
    agreed = set(right)
    for rule in exercise.properties:
        for group in case_groups(rule, by_key):
            if find_violation(rule, [right[i] for i in group])[0]:
                agreed -= set(group)
    return len(agreed)


def case_groups(rule: Property, by_key: Mapping[str, int]) -> list[tuple[int, ...]]:
    """The cases that a property is stated of together, or each by itself; none where one of them is missing."""
    if not rule.cases:
        return [(i,) for i in by_key.values()]
    return [tuple(by_key[key] for key in rule.cases)] if by_key.keys() >= set(rule.cases) else []


def find_violation(rule: Property, group: Sequence[Compared]) -> tuple[str | None, str]:
    """(what the property's check returns, the part that it speaks of)."""
    arguments: list[Case | Reading] = []
    reading = Reading()
    for one in group:
        values = {name: array for name, part in one.actual.parts.items() if (array := numbers(part).array) is not None}
        floats = {
            name: array if array.dtype.kind == "b" else array.astype(np.float64) for name, array in values.items()
        }
        reading = Reading(floats)
        arguments += one.case, reading
    return rule.check(*arguments), reading.last
