"""What any exercise may get wrong, read off what was observed: rounded, one item's for all, right only where two lengths are equal.

An exercise's own mistakes are run. These need no run: the cases, the reference's results and the candidate's are all there is.
`outcome` names a mistake by which the reference's results became the candidate's. Where none is proven, `symptoms` tells what
separates right from wrong: each a sentence that is literally true of what was observed. Their texts: course/outcome_texts.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from grader.course.spec import Case, Exercise
from grader.judging import wording
from grader.judging.compare import PROOF, Compared, Pair, as_array, has_kind
from grader.judging.where_right import RESULTS, Array, Symptom, right_experiments, right_parts, right_places, sizes_of
from grader.worker.values import leaves

FEW = 4  # numbers, of which fewer are equal in another order by chance
AXES = (0, 1, -2, -1)
ENDS = (0, -1)
SWAPPED = ((-1, -2), (0, 1), (1, 2))  # axes that are exchanged
NUMBERS = ("returned", "value")  # roles
Change = Callable[[Array], Array]  # what a right array becomes: itself where it has no such axis
Test = Callable[[Pair], bool]  # whether it explains what came back of one part


def outcome(exercise: Exercise, observed: Iterable[Compared]) -> str:
    """The id of the mistake that explains all that was observed, in the cases' order; '' for none, or where a result is missing."""
    if exercise.kind == "answer":
        return ""
    every = list(observed)
    compared, beside = [one for one in every if one.case.raises is None], _beside_the_result(every)
    # The sentence of an exercise's own comparison tells what came back, its own mistakes what was accepted or changed.
    if exercise.compare is not None:
        fails = any(one.actual.failure or one.differences for one in compared)
        return beside if beside == "RS14" and compared and not fails else ""
    if not compared or not all(one.theirs for one in compared):
        return ""
    pairs = [pair for one in compared for pair in one.pairs(NUMBERS)]
    names = {pair.name for pair in pairs if pair.differs}
    broken = {id for one in compared for id in _broken_claims(one)}
    if not names:
        ids = broken | ({beside} - {""})
        return ids.pop() if len(ids) == 1 else ""
    return "" if broken else _explanation([pair for pair in pairs if pair.name in names])


def _broken_claims(one: Compared) -> Iterator[str]:
    """Of each claim that does not hold the id of the mistake that it proves, '' for none; what holds no numbers proves none, either."""
    numeric = {pair.name for pair in one.pairs(NUMBERS)}
    for finding in one.differences:
        if finding.role != "gradient" and finding.part not in numeric:
            yield one.right[finding.part].text if finding.role == "flag" else ""


def _explanation(pairs: Sequence[Pair]) -> str:
    """The mistake that holds of all results. pairs: in the cases' order, those that are right in some of them included."""
    # What does not hold of the first wrong one holds of none: of the others most are never tried.
    wrong_first = sorted(pairs, key=lambda pair: not pair.differs)
    proofs = sum(pair.differs for pair in pairs)
    claims = any(part.role == "returned" and has_kind(part, "b") for part in pairs[0].one.right.values())
    changes = {id: map(_becomes, changes) for id, changes in CHANGES.items()}
    for id, tests in {"RS17": [_truncated], **changes, **_of_other_calls(pairs)}.items():
        may_be = (proofs >= PROOF or id in ONE_PROOF) and (not claims or id in OF_CLAIMS)
        if may_be and any(all(map(test, wrong_first)) for test in tests):
            return id
    return ""


def symptoms(exercise: Exercise, observed: Iterable[Compared]) -> list[Symptom]:
    """Those that were observed, the plainest first. Held back is what fewer than PROOF cases show, or fewer than that speak against."""
    if exercise.kind == "answer" or exercise.compare is not None:
        return []
    every = [one for one in observed if one.case.raises is None]
    compared = [one for one in every if any(part.role != "flag" for part in one.right.values())]
    wrong = [one for one in compared if one.wrong]
    whole = _only_beside(every) or (_inside_a_tuple(wrong) if len(wrong) == len(compared) >= PROOF else None)
    if whole or len(wrong) < PROOF:
        return [whole] if whole else []
    different = [pair for one in wrong for pair in one.pairs() if pair.differs]
    if len({pair.one.case.key for pair in different}) >= PROOF and all(one.theirs for one in wrong):
        for id, test in IN_ANOTHER_ORDER.items():
            if all(map(test, different)):
                return [(id, exercise.course.mistake_text(id).sentence)]
        if by_size := _size_as_factor(different):
            return [by_size]
    # Cases that only extremes show are few and much alike: where in them a right number stands is chance.
    places = right_places(wrong) if any(one.case.stage == "values" for one in wrong) else None
    return [one for one in (right_experiments(compared), places, right_parts(compared)) if one]


# --- what a right array becomes ------------------------------------------------------------------


def _becomes(change: Change) -> Test:
    return lambda pair: pair.is_theirs(change(pair.right.astype(np.float64)))


def _along(*changes: Callable[[Array, int], Array]) -> list[Change]:
    """Each change along each axis of AXES; an array that lacks it, or is empty, stays as it is."""

    def along(right: Array, axis: int, change: Callable[[Array, int], Array]) -> Array:
        return change(right, axis) if -right.ndim <= axis < right.ndim and right.shape[axis] else right

    return [partial(along, axis=axis, change=change) for axis in AXES for change in changes]


def _at_both_ends(*changes: Callable[..., Array]) -> list[Change]:
    return _along(*(partial(change, end=end) for change in changes for end in ENDS))


def _rounded(right: Array, digits: int) -> Array:
    return right.round(digits)


def _exchange(right: Array, axes: tuple[int, int]) -> Array:
    return right.swapaxes(*axes) if right.ndim > max(1, *axes) else right


def _one_for_all(right: Array, axis: int, end: int) -> Array:
    return np.broadcast_to(right.take([end], axis), right.shape)


def _left_out(right: Array, axis: int, end: int) -> Array:
    rest = right.copy()
    np.moveaxis(rest, axis, 0)[end] = 0
    return rest


def _alone(right: Array, axis: int, end: int) -> Array:
    alone = np.zeros_like(right)
    np.moveaxis(alone, axis, 0)[end] = right.take(end, axis)
    return alone


def _around(right: Array, axis: int, end: int) -> Array:
    """Each one place away from this end of the axis; what leaves at the other comes in here."""
    return np.roll(right, -1 if end else 1, axis)


def _shifted(right: Array, axis: int, end: int) -> Array:
    """The same; zeros come in."""
    return _left_out(_around(right, axis, end), axis, end)


# Of each id the ways in which it shows, of which one explains all results; the plainest id first.
CHANGES: dict[str, list[Change]] = {
    "RS1": [partial(_rounded, digits=digits) for digits in range(7)],
    "RS2": _at_both_ends(_one_for_all),
    "RS3": [np.negative],
    "RS4": _at_both_ends(_left_out, _alone),
    "RS5": _at_both_ends(_around, _shifted),
    "RS6": _along(np.flip),
    "RS7": [partial(_exchange, axes=axes) for axes in SWAPPED],
    "RS8": [np.squeeze],
    "RS11": _along(np.cumsum),
    "RS12": _along(lambda right, axis: right / right.shape[axis], lambda right, axis: right * right.shape[axis]),
}
ONE_PROOF = ("RS8", "RS9", "RS17")  # numbers are not equal to those of another call by chance
# Where True and False are returned: among so few values much is equal by chance.
OF_CLAIMS = ("RS7", "RS8", "RS9", "RS10")


def _truncated(pair: Pair) -> bool:
    """Whether they are right, or stand in whole numbers that are the right ones without what follows the point.

    1.0 may have been 0.99999999 before float32 rounded it, which leaves 0.
    """
    right, theirs = pair.right, pair.theirs
    if not pair.differs or right.shape != theirs.shape or theirs.dtype.kind not in "iu":
        return not pair.differs
    return bool(((np.trunc(right) == theirs) | (np.trunc(right * (1 - 1e-6)) == theirs)).all())


def _of_other_calls(pairs: Sequence[Pair]) -> dict[str, list[Test]]:
    """RS10: the same result for all inputs. RS9: the result of an earlier call with inputs of the same shapes."""
    first = {pair.name: pair.theirs for pair in pairs if pair.one is pairs[0].one}
    earlier: dict[object, Array] = {}
    for pair in pairs:
        earlier.setdefault((pair.name, _shapes(pair.one.case)), pair.right)

    def constant(pair: Pair) -> bool:
        return pair.name in first and bool(np.isfinite(pair.theirs).all()) and pair.is_theirs(first[pair.name])

    def repeated(pair: Pair) -> bool:
        return not pair.differs or pair.is_theirs(earlier[pair.name, _shapes(pair.one.case)])

    enough = len({pair.one.case.key for pair in pairs}) >= PROOF
    return {"RS10": [constant] if enough else [], "RS9": [repeated]}


def _shapes(case: Case) -> tuple[object, ...]:
    inputs = [getattr(value, "array", value) for _, value in leaves([("", case.args), *case.kwargs.items()])]
    return case.probe, *(value.shape if isinstance(value, np.ndarray) else repr(value) for value in inputs)


def _beside_the_result(every: Sequence[Compared]) -> str:
    """RS16: inputs are changed. RS15: invalid inputs are not refused. RS14: they are, by another exception than was asked for."""
    accepted = [one.actual for one in every if one.case.raises is not None and one.wrong]
    if any(one.actual.modified for one in every if one.case.raises is None):
        return "" if accepted else "RS16"
    if accepted:
        failures = [one.failure for one in accepted]
        if not any(failures):
            return "RS15"
        if all(failure and failure.kind == "exception" for failure in failures):
            return "RS14"
    return ""


# --- what came back where no mistake is proven ------------------------------------------------------


def _only_beside(every: Sequence[Compared]) -> Symptom | None:
    """What comes back is right, and something else that was asked for is not."""
    beside = []
    for one in every:
        if not one.theirs or one.actual.modified or any(pair.differs for pair in one.pairs(RESULTS)):
            return None
        findings = one.differences if one.wrong else []
        if any(finding.role != "flag" for finding in findings) and not one.pairs():
            return None  # what differs may be all that came back
        beside += findings
    if not beside or any(finding.role in RESULTS for finding in beside):  # of another type, or another kind of number
        return None
    return ("RS24", f"What comes back is right in every experiment. {wording.headline(every[0].exercise, beside[0])}")


def _inside_a_tuple(wrong: Sequence[Compared]) -> Symptom | None:
    """The right thing, and others beside it."""
    common: set[int] = set(range(FEW))
    for one in wrong:
        right, actual = (
            [part for part in parts.values() if part.role == "returned"] for parts in (one.right, one.actual.parts)
        )
        if len(right) != 1 or right[0].array is None or len(actual) != 1 or actual[0].kind != "sequence":
            return None
        items = [as_array(item).array for item in actual[0].items]
        common &= {i for i, item in enumerate(items) if item is not None and one.same(right[0], right[0].array, item)}
    if not common:
        return None
    return "RS22", f"The right result is item {min(common)} of what came back; it should come back alone."


def _in_another_shape(pair: Pair) -> bool:
    right, theirs = pair.right, pair.theirs
    return right.shape != theirs.shape and pair.one.same(pair.part, right.ravel(), theirs.ravel())


def _in_other_places(pair: Pair) -> bool:
    right, theirs = pair.right, pair.theirs
    if right.size < FEW or right.dtype.kind == "b" or len(np.unique(right)) < right.size / 2:
        return False
    return pair.one.same(pair.part, np.sort(right, axis=None), np.sort(theirs, axis=None))


IN_ANOTHER_ORDER: Mapping[str, Test] = {"RS23": _in_another_shape, "RS20": _in_other_places}
FACTORS: Mapping[str, Callable[[float], float]] = {
    "times": float,
    "divided by": lambda n: 1 / n,
    "times the root of": math.sqrt,
    "divided by the root of": lambda n: n**-0.5,
}


def _size_as_factor(different: Sequence[Pair]) -> Symptom | None:
    sizes = [sizes_of(pair.one) for pair in different]
    for what in sizes[0]:
        values = [its.get(what, 0) for its in sizes]
        if min(values) < 1 or len(set(values)) < 2:
            continue
        for operation, factor in FACTORS.items():
            if all(pair.is_theirs(pair.right * factor(value)) for pair, value in zip(different, values, strict=True)):
                return "RS21", f"What differs is the right result {operation} {what}."
    return None
