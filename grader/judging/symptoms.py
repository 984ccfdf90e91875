"""What any exercise may get wrong, read off what was observed: rounded, one item's for all, right only where two lengths are equal.

An exercise's own mistakes are run. These need no run: the cases, the reference's results and the candidate's are all there is.
`outcome` names a mistake by which the reference's results became the candidate's. Where none is proven, `find_symptoms` tells what
separates right from wrong: each a sentence that is literally true of what was observed. Their texts: course/outcome_texts.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from grader.course import outcome_texts
from grader.course.spec import Case, Exercise
from grader.judging import wording
from grader.judging.compare import PROOF, Comparison, Finding, Pair, as_array, has_kind
from grader.judging.where_right import RESULTS, Array, Symptom, right_experiments, right_parts, right_places, sizes_of
from grader.worker.values import leaves

SYMPTOM_IDS = frozenset(text.id for text in outcome_texts.SYMPTOMS)
FEW = 4  # numbers, of which fewer are equal in another order by chance
AXES = (0, 1, -2, -1)
ENDS = (0, -1)
SWAPPED = ((-1, -2), (0, 1), (1, 2))  # axes that are exchanged
NUMBERS = ("returned", "value")  # roles
Change = Callable[[Array], Array]  # what a right array becomes: itself where it has no such axis
Test = Callable[[Pair], bool]  # whether it explains what came back of one part


def outcome(exercise: Exercise, comparisons: Iterable[Comparison]) -> str:
    """The id of the mistake that explains all that was observed, in the cases' order; '' for none, or where a result is missing."""
    if exercise.kind == "answer":
        return ""
    comparisons = list(comparisons)
    results, side_effect = [result for result in comparisons if result.case.raises is None], _side_effect(comparisons)
    # The sentence of an exercise's own comparison tells what came back, its own mistakes what was accepted or changed.
    if exercise.compare is not None:
        fails = any(result.actual.failure or result.differences for result in results)
        return side_effect if side_effect == "RS14" and results and not fails else ""
    if not results or not all(result.complete for result in results):
        return ""
    pairs = [pair for result in results for pair in result.pairs(NUMBERS)]
    names = {pair.name for pair in pairs if pair.differs}
    broken = {id for result in results for id in _broken_claims(result)}
    if not names:
        ids = broken | ({side_effect} - {""})
        return ids.pop() if len(ids) == 1 else ""
    return "" if broken else _explanation([pair for pair in pairs if pair.name in names])


def _broken_claims(comparison: Comparison) -> Iterator[str]:
    """Of each claim that does not hold the id of the mistake that it proves, '' for none; what holds no numbers proves none, either."""
    numeric = {pair.name for pair in comparison.pairs(NUMBERS)}
    for finding in comparison.differences:
        if finding.role != "gradient" and finding.part not in numeric:
            yield comparison.expected.parts[finding.part].text if finding.role == "flag" else ""


def _explanation(pairs: Sequence[Pair]) -> str:
    """The mistake that holds of all results. pairs: in the cases' order, those that are right in some of them included."""
    # What does not hold of the first wrong one holds of none: of the others most are never tried.
    wrong_first = sorted(pairs, key=lambda pair: not pair.differs)
    proofs = sum(pair.differs for pair in pairs)
    parts = pairs[0].comparison.expected.parts.values()
    claims = any(part.role == "returned" and has_kind(part, "b") for part in parts)
    changes = {id: map(_becomes, changes) for id, changes in CHANGES.items()}
    for id, tests in {"RS17": [_is_truncated], **changes, **_of_other_calls(pairs)}.items():
        possible = (proofs >= PROOF or id in ONE_PROOF) and (not claims or id in OF_CLAIMS)
        if possible and any(all(map(test, wrong_first)) for test in tests):
            return id
    return ""


def find_symptoms(exercise: Exercise, comparisons: Iterable[Comparison]) -> list[Symptom]:
    """Those that were observed, the plainest first. Held back is what fewer than PROOF cases show, or fewer than that speak against."""
    if exercise.kind == "answer" or exercise.compare is not None:
        return []
    comparisons = [comparison for comparison in comparisons if comparison.case.raises is None]
    results = [result for result in comparisons if any(part.role != "flag" for part in result.expected.parts.values())]
    wrong = [result for result in results if result.wrong]
    plainest = _only_beside(comparisons) or (_inside_a_tuple(wrong) if len(wrong) == len(results) >= PROOF else None)
    if plainest or len(wrong) < PROOF:
        return [plainest] if plainest else []
    pairs = [pair for result in wrong for pair in result.pairs() if pair.differs]
    if len({pair.comparison.case.key for pair in pairs}) >= PROOF and all(result.complete for result in wrong):
        for id, test in IN_ANOTHER_ORDER.items():
            if all(map(test, pairs)):
                return [(id, exercise.course.mistake_text(id).sentence)]
        if factor := _size_as_factor(pairs):
            return [factor]
    # Cases that only extremes show are few and much alike: where in them a right number stands is chance.
    places = right_places(wrong) if any(result.case.stage == "values" for result in wrong) else None
    return list(filter(None, (right_experiments(results), places, right_parts(results))))


# --- what a right array becomes ------------------------------------------------------------------


def _becomes(change: Change) -> Test:
    return lambda pair: pair.matches(change(pair.expected.astype(np.float64)))


def _along(*changes: Callable[[Array, int], Array]) -> list[Change]:
    """Each change along each axis of AXES; an array that lacks it, or is empty, stays as it is."""

    def along(right: Array, axis: int, change: Callable[[Array, int], Array]) -> Array:
        return change(right, axis) if -right.ndim <= axis < right.ndim and right.shape[axis] else right

    return [partial(along, axis=axis, change=change) for axis in AXES for change in changes]


def _at_both_ends(*changes: Callable[..., Array]) -> list[Change]:
    return _along(*(partial(change, end=end) for change in changes for end in ENDS))


def _exchange(right: Array, axes: tuple[int, int]) -> Array:
    return right.swapaxes(*axes) if right.ndim > max(1, *axes) else right


def _repeat(right: Array, axis: int, end: int) -> Array:
    return np.broadcast_to(right.take([end], axis), right.shape)


def _leave_out(right: Array, axis: int, end: int) -> Array:
    rest = right.copy()
    np.moveaxis(rest, axis, 0)[end] = 0
    return rest


def _isolate(right: Array, axis: int, end: int) -> Array:
    item = np.zeros_like(right)
    np.moveaxis(item, axis, 0)[end] = right.take(end, axis)
    return item


def _rotate(right: Array, axis: int, end: int) -> Array:
    """Each one place away from this end of the axis; what leaves at the other comes in here."""
    return np.roll(right, -1 if end else 1, axis)


def _shift(right: Array, axis: int, end: int) -> Array:
    """The same; zeros come in."""
    return _leave_out(_rotate(right, axis, end), axis, end)


# Of each id the ways in which it shows, of which one explains all results; the plainest id first.
CHANGES: dict[str, list[Change]] = {
    "RS1": [partial(np.ndarray.round, decimals=digits) for digits in range(7)],
    "RS2": _at_both_ends(_repeat),
    "RS3": [np.negative],
    "RS4": _at_both_ends(_leave_out, _isolate),
    "RS5": _at_both_ends(_rotate, _shift),
    "RS6": _along(np.flip),
    "RS7": [partial(_exchange, axes=axes) for axes in SWAPPED],
    "RS8": [np.squeeze],
    "RS11": _along(np.cumsum),
    "RS12": _along(lambda right, axis: right / right.shape[axis], lambda right, axis: right * right.shape[axis]),
}
ONE_PROOF = ("RS8", "RS9", "RS17")  # numbers are not equal to those of another call by chance
# Where True and False are returned: among so few values much is equal by chance.
OF_CLAIMS = ("RS7", "RS8", "RS9", "RS10")


def _is_truncated(pair: Pair) -> bool:
    """Whether they are right, or stand in whole numbers that are the right ones without what follows the point.

    1.0 may have been 0.99999999 before float32 rounded it, which leaves 0.
    """
    expected, actual = pair.expected, pair.actual
    if not pair.differs or expected.shape != actual.shape or actual.dtype.kind not in "iu":
        return not pair.differs
    return bool(((np.trunc(expected) == actual) | (np.trunc(expected * (1 - 1e-6)) == actual)).all())


def _of_other_calls(pairs: Sequence[Pair]) -> dict[str, list[Test]]:
    """RS10: the same result for all inputs. RS9: the result of an earlier call with inputs of the same shapes."""
    first = {pair.name: pair.actual for pair in pairs if pair.comparison is pairs[0].comparison}
    earlier: dict[object, Array] = {}
    for pair in pairs:
        earlier.setdefault((pair.name, _shapes(pair.comparison.case)), pair.expected)

    def constant(pair: Pair) -> bool:
        return pair.name in first and bool(np.isfinite(pair.actual).all()) and pair.matches(first[pair.name])

    def repeated(pair: Pair) -> bool:
        return not pair.differs or pair.matches(earlier[pair.name, _shapes(pair.comparison.case)])

    count = len({pair.comparison.case.key for pair in pairs})
    return {"RS10": [constant] if count >= PROOF else [], "RS9": [repeated]}


def _shapes(case: Case) -> tuple[object, ...]:
    inputs = [getattr(value, "array", value) for _, value in leaves([("", case.args), *case.kwargs.items()])]
    return case.probe, *(value.shape if isinstance(value, np.ndarray) else repr(value) for value in inputs)


def _side_effect(comparisons: Sequence[Comparison]) -> str:
    """RS16: inputs are changed. RS15: invalid inputs are not refused. RS14: they are, by another exception than was asked for."""
    invalid = [comparison for comparison in comparisons if comparison.case.raises is not None]
    failures = [comparison.actual.failure for comparison in invalid if comparison.wrong]
    if any(comparison.actual.modified for comparison in comparisons if comparison.case.raises is None):
        return "" if failures else "RS16"
    if failures and not any(failures):
        return "RS15"
    return "RS14" if failures and all(failure and failure.kind == "exception" for failure in failures) else ""


# --- what came back where no mistake is proven ------------------------------------------------------


def _only_beside(comparisons: Sequence[Comparison]) -> Symptom | None:
    """What comes back is right, and something else that was asked for is not."""
    findings: list[Finding] = []
    for comparison in comparisons:
        pairs = comparison.pairs(RESULTS)
        if not comparison.complete or comparison.actual.modified or any(pair.differs for pair in pairs):
            return None
        differences = comparison.differences if comparison.wrong else []
        if any(finding.role != "flag" for finding in differences) and not comparison.pairs():
            return None  # what differs may be all that came back
        findings += differences
    if not findings or any(finding.role in RESULTS for finding in findings):  # of another type, or kind of number
        return None
    headline = wording.headline(comparisons[0].exercise, findings[0])
    return "RS24", f"What comes back is right in every experiment. {headline}"


def _inside_a_tuple(wrong: Sequence[Comparison]) -> Symptom | None:
    """The right thing, and others beside it."""
    positions = set(range(FEW))
    for result in wrong:
        expected, actual = (
            [part for part in observation.parts.values() if part.role == "returned"]
            for observation in (result.expected, result.actual)
        )
        if len(expected) != 1 or expected[0].array is None or len(actual) != 1 or actual[0].kind != "sequence":
            return None
        items = enumerate(as_array(item).array for item in actual[0].items)
        positions &= {i for i, item in items if item is not None and result.same(expected[0], expected[0].array, item)}
    if not positions:
        return None
    return "RS22", f"The right result is item {min(positions)} of what came back; it should come back alone."


def _in_another_shape(pair: Pair) -> bool:
    expected, actual = pair.expected, pair.actual
    return expected.shape != actual.shape and pair.comparison.same(pair.part, expected.ravel(), actual.ravel())


def _in_other_places(pair: Pair) -> bool:
    expected = pair.expected
    if expected.size < FEW or expected.dtype.kind == "b" or len(np.unique(expected)) < expected.size / 2:
        return False
    return pair.comparison.same(pair.part, np.sort(expected, axis=None), np.sort(pair.actual, axis=None))


IN_ANOTHER_ORDER: Mapping[str, Test] = {"RS23": _in_another_shape, "RS20": _in_other_places}
FACTORS: Mapping[str, Callable[[float], float]] = {
    "times": float,
    "divided by": lambda n: 1 / n,
    "times the root of": math.sqrt,
    "divided by the root of": lambda n: n**-0.5,
}


def _size_as_factor(pairs: Sequence[Pair]) -> Symptom | None:
    all_sizes = [sizes_of(pair.comparison) for pair in pairs]
    for name in all_sizes[0]:
        sizes = [case_sizes.get(name, 0) for case_sizes in all_sizes]
        if min(sizes) < 1 or len(set(sizes)) < 2:
            continue
        for operation, factor in FACTORS.items():
            if all(pair.matches(pair.expected * factor(size)) for pair, size in zip(pairs, sizes, strict=True)):
                return "RS21", f"What differs is the right result {operation} {name}."
    return None
