"""Mistakes that any exercise may hold, told by what became of a right result: rounded, one item's for all, off by one.

Other mistakes are patches of one exercise's reference and are run. These need no run: what a learner's code would have
returned is made of the reference's own results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from grader.course.spec import Case, Exercise
from grader.judging.compare import close, flatten, numbers, raises_as_asked, tolerances
from grader.judging.findings import Finding
from grader.worker.values import Observation, Part

PROOF = 3  # results that must be reproduced and are not the reference's
ENDS = {"first": 0, "last": -1}
AXES = (0, 1, -2, -1)
Way = tuple[object, ...]  # which of several ways, the same in all cases: ('axis', 0, 'first')
Results = Mapping[int, Mapping[str, tuple[np.ndarray, np.ndarray]]]  # by case and part: expected, actual
Made = Mapping[int, Mapping[str, Mapping[Way, np.ndarray]]]  # by case, part and way: what becomes of the right array


@dataclass(frozen=True)
class Outcome:
    """ways: of a right array, what it becomes, by way. proof: how many results must show it."""

    id: str
    ways: Callable[[np.ndarray], Iterator[tuple[Way, np.ndarray]]]
    proof: int = PROOF


def found(
    exercise: Exercise, cases: Sequence[Case], expected: Sequence[Observation], actual: Mapping[int, Observation]
) -> list[str]:
    """The ids of the mistakes that what was observed shows, by the case's position; at most one, and [] where any result is missing."""
    if exercise.kind == "answer" or exercise.compare is not None:
        return []
    if any(actual[i].failure for i in actual if cases[i].raises is None):
        return []
    results = {i: _results(exercise, expected[i], actual[i]) for i in actual if cases[i].raises is None}
    if not results or any(part is None for part in results.values()):
        return []
    near = {i: partial(_near, exercise, cases[i]) for i in results}
    wrong = {name for i, parts in results.items() for name, both in parts.items() if not near[i](*both)}
    if not wrong:
        return _beside_the_result(cases, results, actual)
    there = {
        i: {name: parts[name] for name in wrong if name in parts}
        for i, parts in results.items()
        if wrong & parts.keys()
    }
    if all(_cut(exercise, actual[i], parts, near[i]) for i, parts in there.items()):
        return ["RS17"]
    for outcome in OUTCOMES_OF_CLAIMS if _claims(exercise, expected[next(iter(results))]) else OUTCOMES:
        made = {
            i: {name: dict(outcome.ways(right)) for name, (right, _) in parts.items()} for i, parts in there.items()
        }
        ways = dict.fromkeys(way for parts in made.values() for becomes in parts.values() for way in becomes)
        if any(_proofs(way, made, there, near) >= outcome.proof for way in ways):
            return [outcome.id]
    return _from_another_call(cases, there, near)


def _claims(exercise: Exercise, expected: Observation) -> bool:
    """Whether True and False are returned: among so few values much is equal by chance."""
    parts = flatten(exercise, expected)
    return not isinstance(parts, Finding) and any(
        part.array is not None and part.array.dtype.kind == "b" for part in parts.values() if part.role == "returned"
    )


def _results(
    exercise: Exercise, expected: Observation, actual: Observation
) -> dict[str, tuple[np.ndarray, np.ndarray]] | None:
    """The arrays that were returned, both sides by name; None where one is missing, or a claim does not hold."""
    right, theirs = flatten(exercise, expected), flatten(exercise, actual)
    if isinstance(right, Finding) or isinstance(theirs, Finding):
        return None
    both: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name, part in right.items():
        if part.role == "gradient":
            continue
        other = numbers(theirs[name]) if name in theirs else None
        mine = numbers(part)
        if other is None or (mine.array is None) != (other.array is None):
            return None
        if mine.array is None or part.role == "flag":
            if not _same_claim(mine, other):
                return None
            continue
        both[name] = mine.array.astype(np.float64), other.array.astype(np.float64)
    return both


def _same_claim(one: Part, other: Part) -> bool:
    if one.array is None:
        return one.kind == other.kind and one.text == other.text
    return one.kind == other.kind and bool(np.array_equal(one.array, other.array))


def _near(exercise: Exercise, case: Case, one: np.ndarray, other: np.ndarray) -> bool:
    return close(one, other, *tolerances(exercise, case, "returned", 1.0))


def _proofs(way: Way, made: Made, there: Results, near: Mapping[int, Callable[..., bool]]) -> int:
    """How many results show that way and are not right; 0 where one result is another."""
    proofs = 0
    for i, parts in there.items():
        for name, (right, theirs) in parts.items():
            becomes = made[i][name].get(way, right)
            if not near[i](becomes, theirs):
                return 0
            proofs += not near[i](becomes, right)
    return proofs


def _cut(
    exercise: Exercise,
    actual: Observation,
    parts: Mapping[str, tuple[np.ndarray, np.ndarray]],
    near: Callable[..., bool],
) -> bool:
    """Whether each part is right, or stands in whole numbers that are the right ones without what follows the point.

    1.0 may have been 0.99999999 before float32 rounded it, which leaves 0.
    """
    theirs = flatten(exercise, actual)
    return all(
        near(right, got)
        or right.shape == got.shape
        and numbers(theirs[name]).array.dtype.kind in "iu"
        and ((np.trunc(right) == got) | (np.trunc(right * (1 - 1e-6)) == got)).all()
        for name, (right, got) in parts.items()
    )


def _from_another_call(cases: Sequence[Case], there: Results, near: Mapping[int, Callable[..., bool]]) -> list[str]:
    """RS9: the result of an earlier call with inputs of the same shapes. RS10: the same result for all inputs."""
    first = there[next(iter(there))]
    numbers_came = all(np.isfinite(theirs).all() for _, theirs in first.values())
    if (
        len(there) >= PROOF
        and numbers_came
        and all(
            name in first and near[i](first[name][1], theirs)
            for i, parts in there.items()
            for name, (_, theirs) in parts.items()
        )
    ):
        return ["RS10"]
    proofs = 0  # one is enough: numbers are not equal to those of another call by chance
    for i, parts in there.items():
        right = all(near[i](*part) for part in parts.values())
        earlier = [j for j in there if j < i and _sizes(cases[j]) == _sizes(cases[i])]
        other = there[earlier[0]] if earlier else {}
        again = all(name in other and near[i](other[name][0], theirs) for name, (_, theirs) in parts.items())
        if not right and not again:
            return []
        proofs += not right
    return ["RS9"] if proofs else []


def _sizes(case: Case) -> tuple[object, ...]:
    arrays = [getattr(value, "array", value) for value in (*case.args, *case.kwargs.values())]
    return case.probe, *(value.shape if isinstance(value, np.ndarray) else repr(value) for value in arrays)


def _beside_the_result(cases: Sequence[Case], results: Results, actual: Mapping[int, Observation]) -> list[str]:
    """What is amiss where all numbers are right."""
    refusals = [i for i in actual if cases[i].raises is not None]
    amiss = [i for i in refusals if not raises_as_asked(cases[i], actual[i])]
    changed = [i for i in results if actual[i].modified]
    if changed:
        return [] if amiss else ["RS16"]
    if amiss and len(amiss) == len(refusals):
        raised = [actual[i].failure for i in amiss]
        if not any(raised):
            return ["RS15"]
        if all(failure and failure.kind == "exception" for failure in raised):
            return ["RS14"]
    return []


def _rounded(right: np.ndarray) -> Iterator[tuple[Way, np.ndarray]]:
    for digits in range(7):
        yield (digits,), np.round(right, digits)


def _axes(right: np.ndarray) -> list[int]:
    return [axis for axis in AXES if -right.ndim <= axis < right.ndim]


def _position(right: np.ndarray, axis: int, at: int) -> tuple[int | slice, ...]:
    """The index of everything at one position of an axis."""
    return tuple(at if i == axis % right.ndim else slice(None) for i in range(right.ndim))


def _one_for_all(right: np.ndarray) -> Iterator[tuple[Way, np.ndarray]]:
    for axis in _axes(right):
        for end, at in ENDS.items():
            if right.shape[axis]:
                yield (axis, end), np.broadcast_to(right.take([at], axis), right.shape)


def _ends_early(right: np.ndarray) -> Iterator[tuple[Way, np.ndarray]]:
    for axis in _axes(right):
        for end, at in ENDS.items():
            alone, without = np.zeros_like(right), right.copy()
            one = _position(right, axis, at)
            if right.shape[axis]:
                alone[one], without[one] = right[one], 0
            yield (axis, end, "left out"), without
            yield (axis, end, "alone"), alone


def _shifted(right: np.ndarray) -> Iterator[tuple[Way, np.ndarray]]:
    for axis in _axes(right):
        for by in (1, -1):
            rolled = np.roll(right, by, axis)
            yield (axis, by, "around"), rolled
            empty = rolled.copy()
            at = 0 if by == 1 else -1
            if right.shape[axis]:
                empty[_position(right, axis, at)] = 0
            yield (axis, by), empty


def _reversed(right: np.ndarray) -> Iterator[tuple[Way, np.ndarray]]:
    for axis in _axes(right):
        yield (axis,), np.flip(right, axis)


def _piled_up(right: np.ndarray) -> Iterator[tuple[Way, np.ndarray]]:
    for axis in _axes(right):
        yield (axis,), np.cumsum(right, axis)


def _exchanged(right: np.ndarray) -> Iterator[tuple[Way, np.ndarray]]:
    if right.ndim >= 2:
        yield ("last",), right.swapaxes(-1, -2)
        yield ("first",), right.swapaxes(0, 1)
    if right.ndim >= 3:
        yield ("second",), right.swapaxes(1, 2)


def _factors(right: np.ndarray) -> Iterator[tuple[Way, np.ndarray]]:
    for axis in _axes(right):
        length = max(right.shape[axis], 1)
        yield (axis, "divided"), right / length
        yield (axis, "multiplied"), right * length


def _negated(right: np.ndarray) -> Iterator[tuple[Way, np.ndarray]]:
    yield (), -right


def _squeezed(right: np.ndarray) -> Iterator[tuple[Way, np.ndarray]]:
    yield (), right.squeeze()


OUTCOMES = (
    Outcome("RS1", _rounded),
    Outcome("RS2", _one_for_all),
    Outcome("RS3", _negated),
    Outcome("RS4", _ends_early),
    Outcome("RS5", _shifted),
    Outcome("RS6", _reversed),
    Outcome("RS7", _exchanged),
    Outcome("RS8", _squeezed, proof=1),
    Outcome("RS11", _piled_up),
    Outcome("RS12", _factors),
)
OUTCOMES_OF_CLAIMS = tuple(outcome for outcome in OUTCOMES if outcome.id in ("RS7", "RS8"))
