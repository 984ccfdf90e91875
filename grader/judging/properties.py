"""Properties of an exercise's results: which hold, which fails first, and in how many cases of a failing exercise all is as it should be:
what an instructor may give part of its points for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from grader.course.spec import UNTRIED, Case, Exercise, Property
from grader.judging import wording
from grader.judging.compare import Comparison, Finding, as_array
from grader.judging.evidence import TrackedArrays


def first_violation(
    exercise: Exercise, comparisons: Mapping[int, Comparison], wrong: int | None, not_finite: Collection[Comparison]
) -> tuple[list[str], tuple[int, ...], Finding | None]:
    """The titles of the properties that hold until one does not; that one's cases, by position, and what it says; (), None for none.

    wrong: the first case of wrong numbers; what later ones show comes after it. not_finite: cases of NaN or infinite entries, which
    are told as such; a property that they break is none that holds.
    """
    verified: list[str] = []
    by_key = {comparison.case.key: i for i, comparison in comparisons.items()}
    for rule in exercise.properties:
        shows = False  # of what is half done some cases show nothing
        for group in _case_groups(rule, by_key):
            sentence, part = _find_violation(rule, [comparisons[i] for i in group])
            shows = shows or sentence != UNTRIED
            if sentence and (wrong is None or group[-1] <= wrong):
                return verified, group, Finding("property", part=part, claim=rule.title, sentence=sentence)
            if sentence:
                break
        else:
            if shows and not any(_speaks_against(rule, comparison) for comparison in not_finite):
                verified.append(rule.title)
    return verified, (), None


def undisputed(
    exercise: Exercise, verified: Sequence[str], finding: Finding, fault: Comparison | None
) -> tuple[str, ...]:
    """What was verified, without what the case at fault speaks against: it held where it was tried, but the fault is shown right
    beside it. A result of another shape has no property, nor has an exception. fault: None where that case never ran."""
    stopped = finding.kind == "failure" and fault is not None and fault.case.stage == "values"
    if fault is None or (fault.actual.failure is not None and not stopped):
        return tuple(verified)
    broken = {wording.FORM_AS_EXPECTED} if finding.stage in ("type", "shape", "dtype") else set()
    for rule in exercise.properties:
        if rule.title in verified and (stopped or finding.kind == "shape" or _speaks_against(rule, fault)):
            broken.add(rule.title)
    return tuple(title for title in verified if title not in broken)


def count_agreeing(exercise: Exercise, comparisons: Mapping[int, Comparison]) -> int:
    """How many cases agree, each by itself.

    A case agrees where its numbers do, its inputs are left alone, and no property fails that is stated of it alone or of
    it together with another case that agrees. What never ran, because the process ended before it, does not agree.
    """
    agreeing = {i for i, comparison in comparisons.items() if not comparison.wrong}
    cases = {i: comparisons[i].case for i in agreeing}
    by_key = {case.key: i for i, case in cases.items() if case.stage == "values" and case.raises is None}
    for rule in exercise.properties:
        for group in _case_groups(rule, by_key):
            if _find_violation(rule, [comparisons[i] for i in group])[0]:
                agreeing -= set(group)
    return len(agreeing)


def _case_groups(rule: Property, by_key: Mapping[str, int]) -> list[tuple[int, ...]]:
    """The cases that a property is stated of together, or each by itself; none where one of them is missing."""
    if not rule.cases:
        return [(i,) for i in by_key.values()]
    return [tuple(by_key[key] for key in rule.cases)] if by_key.keys() >= set(rule.cases) else []


def _find_violation(rule: Property, group: Sequence[Comparison]) -> tuple[str | None, str]:
    """(what the property's check returns, the part that it speaks of)."""
    arguments: list[Case | TrackedArrays] = []
    arrays = TrackedArrays()
    for comparison in group:
        parts = {name: as_array(part).array for name, part in comparison.actual.parts.items()}
        arrays = TrackedArrays(
            (name, array if array.dtype.kind == "b" else array.astype(np.float64))
            for name, array in parts.items()
            if array is not None
        )
        arguments += comparison.case, arrays
    return rule.check(*arguments), arrays.last


def _speaks_against(rule: Property, comparison: Comparison) -> bool:
    """Whether a case that is wrong, or of NaN or infinite entries, breaks a property, or is one of those that it compares."""
    if rule.cases:
        return comparison.case.key in rule.cases
    try:
        return bool(_find_violation(rule, [comparison])[0])
    except Exception:  # not written for NaN, or for another shape
        return True
