"""Mistakes that any exercise may hold, told by what became of a right result: rounded, one item's for all, off by one.

Other mistakes are patches of one exercise's reference and are run. These need no run: what a learner's code would have
returned is made of the reference's own results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import numpy as np

from grader.course.spec import Case, Exercise
from grader.judging.compare import Compared, close, has_kind, numbers, tolerances
from grader.worker.values import Observation, Part, leaves

PROOF = 3  # results that must be reproduced and are not the reference's
AXES = (0, 1, -2, -1)
ENDS = (0, -1)
SWAPPED = ((-1, -2), (0, 1), (1, 2))  # axes that are exchanged
NUMBERS = ("returned", "value")  # roles
Variants = Iterable[tuple[object, np.ndarray]]  # each with its name, the same in all cases: (axis, way)
Outcome = Callable[[np.ndarray], Variants]  # what a right array becomes
Pair = tuple[np.ndarray, np.ndarray]  # expected, actual
Results = Mapping[int, Mapping[str, Pair]]  # by case and part
Close = Callable[[int, np.ndarray, np.ndarray], bool]  # whether two arrays are equal within a case's tolerance


def symptom(exercise: Exercise, observed: Mapping[int, Compared]) -> str:
    """The id of the mistake that shows in what was observed, by the case's position; '' for none, or where a result is missing."""
    if exercise.kind == "answer":
        return ""
    compared = {i: one for i, one in observed.items() if one.case.raises is None}
    # The sentence of an exercise's own comparison tells what came back, its own mistakes what was accepted or changed.
    if exercise.compare is not None:
        fails = any(one.actual.failure or one.differences for one in compared.values())
        beside = _beside_the_result(observed) if compared and not fails else ""
        return beside if beside == "RS14" else ""
    if not compared or not all(one.theirs for one in compared.values()):
        return ""
    results: dict[int, dict[str, Pair]] = {
        i: {
            name: (right.astype(np.float64), theirs.astype(np.float64)) for name, _, right, theirs in one.pairs(NUMBERS)
        }
        for i, one in compared.items()
    }
    broken = {id for i, one in compared.items() for id in _broken_claims(one, results[i])}
    if "" in broken:
        return ""

    def equal(i: int, one: np.ndarray, other: np.ndarray) -> bool:
        return close(one, other, *tolerances(exercise, observed[i].case, "returned", 1.0))

    wrong = {name for i, pairs in results.items() for name, pair in pairs.items() if not equal(i, *pair)}
    if not wrong:
        beside = _beside_the_result(observed)
        return beside if not broken else broken.pop() if len(broken) == 1 and not beside else ""
    if broken:
        return ""
    results = {
        i: {name: pairs[name] for name in wrong & pairs.keys()} for i, pairs in results.items() if wrong & pairs.keys()
    }
    if all(_truncated(observed[i].actual, pairs, equal, i) for i, pairs in results.items()):
        return "RS17"
    returned = [one for one in observed[next(iter(results))].right.values() if one.role == "returned"]
    claims = any(part.array is not None and part.array.dtype.kind == "b" for part in returned)
    for id in OF_CLAIMS if claims else OUTCOMES:
        if _shows(OUTCOMES[id], ONE_PROOF.get(id, PROOF), results, equal):
            return id
    return _from_another_call(observed, results, equal)


def _broken_claims(one: Compared, pairs: Mapping[str, Pair]) -> Iterator[str]:
    """Of each claim that does not hold the id of the mistake that it proves, '' for none; what holds no numbers proves none, either."""
    for name, part in one.right.items():
        if name in pairs or part.role == "gradient" or _same_claim(numbers(part), numbers(one.theirs[name])):
            continue
        yield part.text if part.role == "flag" else ""


def _same_claim(one: Part, other: Part) -> bool:
    if one.array is None or other.array is None:
        return one.array is other.array and one.kind == other.kind and one.text == other.text
    return one.kind == other.kind and bool(np.array_equal(one.array, other.array))


def _shows(outcome: Outcome, needed: int, results: Results, equal: Close) -> bool:
    """Whether one variant explains every result, and enough of those that are wrong."""
    every = [(i, *pair) for i, pairs in results.items() for pair in pairs.values()]
    first, right, theirs = next(one for one in every if not equal(*one))
    # What does not explain the first wrong one explains none; of the others' variants most are never made.
    for variant in [name for name, predicted in outcome(right) if equal(first, predicted, theirs)]:
        proofs = 0
        for i, right, theirs in every:
            predicted = dict(outcome(right)).get(variant, right)
            if not equal(i, predicted, theirs):
                break
            proofs += not equal(i, predicted, right)
        else:
            if proofs >= needed:
                return True
    return False


def _truncated(actual: Observation, pairs: Mapping[str, Pair], equal: Close, i: int) -> bool:
    """Whether each part is right, or stands in whole numbers that are the right ones without what follows the point.

    1.0 may have been 0.99999999 before float32 rounded it, which leaves 0.
    """
    return all(
        equal(i, right, theirs)
        or right.shape == theirs.shape
        and has_kind(numbers(actual.parts[name]), "iu")
        and bool(((np.trunc(right) == theirs) | (np.trunc(right * (1 - 1e-6)) == theirs)).all())
        for name, (right, theirs) in pairs.items()
    )


def _from_another_call(observed: Mapping[int, Compared], results: Results, equal: Close) -> str:
    """RS9: the result of an earlier call with inputs of the same shapes. RS10: the same result for all inputs."""
    first = next(iter(results.values()))
    if (
        len(results) >= PROOF
        and all(np.isfinite(theirs).all() for _, theirs in first.values())
        and all(
            name in first and equal(i, first[name][1], theirs)
            for i, pairs in results.items()
            for name, (_, theirs) in pairs.items()
        )
    ):
        return "RS10"
    proofs = 0  # one is enough: numbers are not equal to those of another call by chance
    sizes = {i: _sizes(observed[i].case) for i in results}
    for i, pairs in results.items():
        right = all(equal(i, *pair) for pair in pairs.values())
        earlier: Mapping[str, Pair] = next((results[j] for j in results if j < i and sizes[j] == sizes[i]), {})
        repeated = all(name in earlier and equal(i, earlier[name][0], theirs) for name, (_, theirs) in pairs.items())
        if not right and not repeated:
            return ""
        proofs += not right
    return "RS9" if proofs else ""


def _sizes(case: Case) -> tuple[object, ...]:
    inputs = [getattr(value, "array", value) for _, value in leaves([("", case.args), *case.kwargs.items()])]
    return case.probe, *(value.shape if isinstance(value, np.ndarray) else repr(value) for value in inputs)


def _beside_the_result(observed: Mapping[int, Compared]) -> str:
    """RS16: inputs are changed. RS15: invalid inputs are not refused. RS14: they are, by another exception than was asked for."""
    accepted = [one.actual for one in observed.values() if one.case.raises is not None and one.wrong]
    if any(one.actual.modified for one in observed.values() if one.case.raises is None):
        return "" if accepted else "RS16"
    if accepted:
        failures = [one.failure for one in accepted]
        if not any(failures):
            return "RS15"
        if all(failure and failure.kind == "exception" for failure in failures):
            return "RS14"
    return ""


# --- what a right array becomes ------------------------------------------------------------------


def _along(*changes: Callable[[np.ndarray, int], np.ndarray]) -> Outcome:
    """What each change makes of an array along each axis of AXES that it has, and that is not empty."""
    return lambda right: (
        ((axis, way), change(right, axis))
        for axis in AXES
        if -right.ndim <= axis < right.ndim and right.shape[axis]
        for way, change in enumerate(changes)
    )


def _one_for_all(right: np.ndarray, axis: int, end: int) -> np.ndarray:
    return np.broadcast_to(right.take([end], axis), right.shape)


def _left_out(right: np.ndarray, axis: int, end: int) -> np.ndarray:
    rest = right.copy()
    np.moveaxis(rest, axis, 0)[end] = 0
    return rest


def _alone(right: np.ndarray, axis: int, end: int) -> np.ndarray:
    alone = np.zeros_like(right)
    np.moveaxis(alone, axis, 0)[end] = right.take(end, axis)
    return alone


def _around(right: np.ndarray, axis: int, end: int) -> np.ndarray:
    """Each one place away from this end of the axis; what leaves at the other comes in here."""
    return np.roll(right, -1 if end else 1, axis)


def _shifted(right: np.ndarray, axis: int, end: int) -> np.ndarray:
    """The same; zeros come in."""
    return _left_out(_around(right, axis, end), axis, end)


def _at_both_ends(*changes: Callable[..., np.ndarray]) -> Outcome:
    return _along(*(partial(change, end=end) for change in changes for end in ENDS))


OUTCOMES: dict[str, Outcome] = {
    "RS1": lambda right: ((digits, np.round(right, digits)) for digits in range(7)),
    "RS2": _at_both_ends(_one_for_all),
    "RS3": lambda right: [((), -right)],
    "RS4": _at_both_ends(_left_out, _alone),
    "RS5": _at_both_ends(_around, _shifted),
    "RS6": _along(np.flip),
    "RS7": lambda right: ((axes, right.swapaxes(*axes)) for axes in SWAPPED if right.ndim > max(1, *axes)),
    "RS8": lambda right: [((), right.squeeze())],
    "RS11": _along(np.cumsum),
    "RS12": _along(lambda right, axis: right / right.shape[axis], lambda right, axis: right * right.shape[axis]),
}
ONE_PROOF = {"RS8": 1}
OF_CLAIMS = ("RS7", "RS8")  # where True and False are returned: among so few values much is equal by chance
