"""Where a wrong answer is right: in which parts of a result, in which places, in which experiments. Each is true of what was observed."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from grader.course import references
from grader.judging import wording
from grader.judging.compare import PROOF, Comparison, Finding
from grader.judging.evidence import arrays
from grader.util.words import join_names

FEW = 4  # names in a sentence
RESULTS = ("returned", "gradient")
Array = np.ndarray
Symptom = tuple[str, str]  # the id of the text that `explain` shows, and what was observed, in words


def right_parts(comparisons: Sequence[Comparison]) -> Symptom | None:
    """Which parts are right everywhere, also where others are wrong, and which are not. Gradients alone say little: many are constant."""
    agreement: dict[str, bool] = {}
    results: set[str] = set()
    proofs: Counter[str] = Counter()  # in how many wrong cases each is right
    for comparison in comparisons:
        if not comparison.complete or comparison.actual.modified:
            return None
        for pair in comparison.pairs(RESULTS):
            part, same = pair.part, not pair.differs
            subject = wording.subject(comparison.exercise, Finding("numbers", pair.name, part.role, part.of))
            results |= {subject} if part.role == "returned" else set()
            agreement[subject] = agreement.get(subject, True) and same
            proofs[subject] += same and comparison.wrong
    right = [subject for subject, agrees in agreement.items() if agrees and proofs[subject] >= PROOF]
    wrong = [subject for subject, agrees in agreement.items() if not agrees]
    if not wrong or results.isdisjoint(right):
        return None
    return "RS18", f"Right in every experiment: {join_names(right, FEW)}. Wrong: {join_names(wrong, FEW)}."


def right_places(wrong: Sequence[Comparison]) -> Symptom | None:
    """Where in a result no wrong number stands, though most others are wrong."""
    pairs = [pair for comparison in wrong for pair in comparison.pairs() if pair.differs]
    keys = {pair.comparison.case.key for pair in pairs}
    if len(keys) < len(wrong) or any(pair.expected.shape != pair.actual.shape for pair in pairs):
        return None
    agreement = [pair.comparison.agree(pair.part, pair.expected, pair.actual) for pair in pairs]
    for name, place in _PLACES.items():
        masks = [mask for pair in pairs if (mask := place(pair.expected)) is not None and not mask.all()]
        if len(masks) < len(pairs) or not all(right[mask].all() for mask, right in zip(masks, agreement, strict=True)):
            continue
        errors = [1 - right[~mask].mean() for mask, right in zip(masks, agreement, strict=True)]
        # Where all numbers are 0, they are right by themselves.
        proofs = [mask.any() and np.ptp(pair.expected[mask] * 1.0) > 0 for mask, pair in zip(masks, pairs, strict=True)]
        if sum(proofs) >= PROOF and sum(errors) > len(errors) / 2:
            elsewhere = "on it" if name == "all but the diagonal" else "elsewhere"
            return "RS25", f"In every experiment {name} is right; the wrong numbers stand {elsewhere}."
    return None


def _end(axis: int, index: int) -> Callable[[Array], Array | None]:
    return lambda array: np.indices(array.shape)[axis] == index % array.shape[axis] if axis < array.ndim else None


def _beside(holds: Callable[[Array, Array], Array]) -> Callable[[Array], Array | None]:
    """Of the last two axes, where neither is of length 1: a row has no diagonal."""
    return lambda array: holds(*np.indices(array.shape)[-2:]) if array.ndim > 1 and min(array.shape[-2:]) > 1 else None


_PLACES: Mapping[str, Callable[[Array], Array | None]] = {
    **{
        f"the {end} entry along axis {axis}": _end(axis, index)
        for axis in range(4)
        for end, index in (("first", 0), ("last", -1))
    },
    "the diagonal": _beside(np.equal),
    "all but the diagonal": _beside(np.not_equal),
    "what stands on and below the diagonal": _beside(np.greater_equal),
    "what stands on and above the diagonal": _beside(np.less_equal),
}


def right_experiments(comparisons: Sequence[Comparison]) -> Symptom | None:
    """One thing that all cases of one side have, and none of the other. Of ordinary inputs: what extremes show is in their numbers."""
    extremes = [comparison.wrong for comparison in comparisons if comparison.case.stage != "values"]
    ordinary = [comparison for comparison in comparisons if comparison.case.stage == "values"]
    wrong = [comparison.wrong for comparison in ordinary]
    if len(wrong) >= PROOF and not any(wrong):
        others = f"wrong in {sum(extremes)} of the {len(extremes)} others"
        return "RS19", f"It is right in all {len(wrong)} experiments with ordinary inputs, and {others}."
    subject = "With ordinary inputs it" if extremes else "It"
    counts = {True: sum(wrong), False: len(wrong) - sum(wrong)}
    # Of sizes there are so many that three cases agree by chance.
    for facts_of, minimum in ((_facts, PROOF), (_facts_of_sizes, PROOF + 1)):
        cases = [dict(facts_of(comparison)) for comparison in ordinary] if min(counts.values()) >= minimum else []
        for fact in dict.fromkeys(fact for facts in cases for fact in facts):
            default = False if " is True" in fact or " is False" in fact else None
            holds = [facts.get(fact, default) for facts in cases]
            side = next((side for side in (True, False) if holds == [is_wrong is side for is_wrong in wrong]), None)
            if side is not None:
                result, opposite = ("wrong", "right") if side else ("right", "wrong")
                where = f"is {result} in all {counts[side]} experiments in which {fact}"
                return "RS19", f"{subject} {where}, and {opposite} in the {counts[not side]} others."
    return None


def _facts(comparison: Comparison) -> Iterator[tuple[str, bool]]:
    """What may be said of a case's inputs beside their sizes."""
    values = dict(_values(comparison))
    yield from ((f"`{name}` is {value}", True) for name, value in values.items() if isinstance(value, bool))
    for name, parameter in inspect.signature(references.reference(comparison.exercise)).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            yield f"`{name}` is given", values.get(name) is not None
    yield from ((f"`{name}` has more than two axes", array.ndim > 2) for name, array in arrays(_values(comparison)))


def _facts_of_sizes(comparison: Comparison) -> Iterator[tuple[str, bool]]:
    sizes = sizes_of(comparison)
    yield from ((f"{name} is 1", size == 1) for name, size in sizes.items())
    yield from ((f"{first} equals {second}", sizes[first] == sizes[second]) for first, second in combinations(sizes, 2))


def _values(comparison: Comparison) -> list[tuple[str, object]]:
    """The inputs by name, those with which a module is made among them."""
    case, names = comparison.case, inspect.signature(references.reference(comparison.exercise)).parameters
    options = dict(zip(names, case.options.get("init", ()), strict=False)) | case.options.get("init_kwargs", {})
    return [*wording.named_inputs(case), *options.items()]


def sizes_of(comparison: Comparison) -> dict[str, int]:
    """Lengths and whole numbers, by what they are called."""
    values = _values(comparison)
    lengths = {
        f"the length of `{name}` along axis {axis}": size
        for name, array in arrays(values)
        for axis, size in enumerate(array.shape)
    }
    return lengths | {f"`{name}`": value for name, value in values if type(value) is int}
