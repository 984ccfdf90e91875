"""What separates right from wrong where no mistake is proven: each symptom a sentence that is literally true of what was observed.

Nothing is run: the cases, the reference's results and the candidate's are all there is. A symptom is held back where fewer than
PROOF cases show it, or fewer than that speak against it.
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations

import numpy as np

from grader.course import references
from grader.course.spec import Exercise
from grader.judging import wording
from grader.judging.compare import Compared, Finding, numbers
from grader.judging.evidence import arrays
from grader.judging.outcomes import PROOF
from grader.util.words import join_names
from grader.worker.values import Part

FEW = 4  # numbers, of which fewer are equal in another order by chance; and names in a sentence
RESULTS = ("returned", "gradient")
Array = np.ndarray
Symptom = tuple[str, str]  # the id of the text that `explain` shows, and what was observed, in words
Shows = Callable[[Compared, Part, Array, Array], bool]
# Each wrong case, with the parts in which it differs.
Different = Sequence[tuple[Compared, Sequence[tuple[Part, Array, Array]]]]


def symptoms(exercise: Exercise, observed: Iterable[Compared]) -> list[Symptom]:
    """Those that were observed, the plainest first."""
    if exercise.kind == "answer" or exercise.compare is not None:
        return []
    every = [one for one in observed if one.case.raises is None]
    compared = [one for one in every if any(part.role != "flag" for part in one.right.values())]
    wrong = [one for one in compared if one.wrong]
    whole = _only_beside(every) or (_inside_a_tuple(wrong) if len(wrong) == len(compared) >= PROOF else None)
    if whole or len(wrong) < PROOF:
        return [whole] if whole else []
    different = [(one, [pair[1:] for pair in one.pairs() if not one.same(*pair[1:])]) for one in wrong]
    proven = sum(bool(pairs) for _, pairs in different) >= PROOF and all(one.theirs for one in wrong)
    for id, shows in (("RS23", _in_another_shape), ("RS20", _in_other_places)) if proven else ():
        if _shown(different, shows):
            return [(id, exercise.course.mistake_text(id).sentence)]
    by_size = _size_as_factor(different) if proven else None
    # Cases that only extremes show are few and much alike: where in them a right number stands is chance.
    places = _right_places(wrong) if any(one.case.stage == "values" for one in wrong) else None
    located = (_right_only_where(compared), places, _right_parts(compared))
    return [by_size] if by_size else [one for one in located if one]


def _shown(different: Different, shows: Shows) -> bool:
    """Whether every part that differs shows it."""
    return all(shows(one, *pair) for one, pairs in different for pair in pairs)


# --- what came back -------------------------------------------------------------------------------


def _only_beside(every: Sequence[Compared]) -> Symptom | None:
    """What comes back is right, and something else that was asked for is not."""
    beside = []
    for one in every:
        if not one.theirs or one.actual.modified or not all(one.same(*pair[1:]) for pair in one.pairs(RESULTS)):
            return None
        findings = one.differences if one.wrong else []
        if any(finding.role != "flag" for finding in findings) and not any(one.pairs()):
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
        items = [numbers(item).array for item in actual[0].items]
        common &= {i for i, item in enumerate(items) if item is not None and one.same(right[0], right[0].array, item)}
    if not common:
        return None
    return "RS22", f"The right result is item {min(common)} of what came back; it should come back alone."


def _in_another_shape(one: Compared, part: Part, right: Array, theirs: Array) -> bool:
    return right.shape != theirs.shape and right.size == theirs.size and one.same(part, right.ravel(), theirs.ravel())


def _in_other_places(one: Compared, part: Part, right: Array, theirs: Array) -> bool:
    if right.size < FEW or right.dtype.kind == "b" or len(np.unique(right)) < right.size / 2:
        return False
    return one.same(part, np.sort(right, axis=None), np.sort(theirs, axis=None))


_FACTORS: Mapping[str, Callable[[float], float]] = {
    "times": float,
    "divided by": lambda n: 1 / n,
    "times the root of": math.sqrt,
    "divided by the root of": lambda n: n**-0.5,
}


def _is_multiplied(by: Mapping[str, float], one: Compared, part: Part, right: Array, theirs: Array) -> bool:
    return one.same(part, right * by[one.case.key], theirs)


def _size_as_factor(different: Different) -> Symptom | None:
    sizes = [_sizes(one) for one, _ in different]
    for what in sizes[0]:
        values = [of_case.get(what, 0) for of_case in sizes]
        if min(values) < 1 or len(set(values)) < 2:
            continue
        for operation, factor in _FACTORS.items():
            by = {one.case.key: factor(value) for (one, _), value in zip(different, values, strict=True)}
            if _shown(different, partial(_is_multiplied, by)):
                return "RS21", f"What differs is the right result {operation} {what}."
    return None


# --- where it is right ----------------------------------------------------------------------------


def _right_parts(compared: Sequence[Compared]) -> Symptom | None:
    """Which parts are right everywhere, also where others are wrong, and which are not. Gradients alone say little: many are constant."""
    agree: dict[str, bool] = {}
    returned: set[str] = set()
    beside: Counter[str] = Counter()  # in how many wrong cases each is right
    for one in compared:
        if not one.theirs or one.actual.modified:
            return None
        for name, part, right, theirs in one.pairs(RESULTS):
            what = wording.subject(one.exercise, Finding("numbers", name, part.role, part.of))
            returned |= {what} if part.role == "returned" else set()
            same = one.same(part, right, theirs)
            agree[what], beside[what] = agree.get(what, True) and same, beside[what] + (same and one.wrong)
    good = [what for what, right in agree.items() if right and beside[what] >= PROOF]
    bad = [what for what, right in agree.items() if not right]
    if not bad or returned.isdisjoint(good):
        return None
    return "RS18", f"Right in every experiment: {join_names(good, FEW)}. Wrong: {join_names(bad, FEW)}."


def _right_places(wrong: Sequence[Compared]) -> Symptom | None:
    """Where in a result no wrong number stands, though most others are wrong."""
    pairs = [(one, *pair) for one in wrong for pair in one.pairs() if not one.same(*pair[1:])]
    if len({one.case.key for one, *_ in pairs}) < len(wrong) or any(a.shape != b.shape for *_, a, b in pairs):
        return None
    agree = [one.agree(part, a, b) for one, _, part, a, b in pairs]
    for name, places in _PLACES.items():
        here = [at for *_, right, _ in pairs if (at := places(right)) is not None and not at.all()]
        if len(here) < len(pairs) or not all(right[at].all() for at, right in zip(here, agree, strict=True)):
            continue
        off = [1 - right[~at].mean() for at, right in zip(here, agree, strict=True)]
        # Where all numbers are 0, they are right by themselves.
        telling = [at.any() and np.ptp(right[at] * 1.0) > 0 for at, (*_, right, _) in zip(here, pairs, strict=True)]
        if sum(telling) >= PROOF and sum(off) > len(off) / 2:
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


def _right_only_where(compared: Sequence[Compared]) -> Symptom | None:
    """One thing that all cases of one side have, and none of the other. Of ordinary inputs: what extremes show is in their numbers."""
    extremes = [one for one in compared if one.case.stage != "values"]
    compared = [one for one in compared if one.case.stage == "values"]
    wrong = [one.wrong for one in compared]
    if len(wrong) >= PROOF and not any(wrong):
        many = sum(one.wrong for one in extremes)
        sentence = f"It is right in all {len(wrong)} experiments with ordinary inputs, and wrong in {many} of the {len(extremes)} others."
        return "RS19", sentence
    it = "With ordinary inputs it" if extremes else "It"
    counts = {True: sum(wrong), False: len(wrong) - sum(wrong)}
    # Of sizes there are so many that three cases agree by chance.
    for facts_of, enough in ((_facts, PROOF), (_facts_of_sizes, PROOF + 1)):
        facts = [dict(facts_of(one)) for one in compared] if min(counts.values()) >= enough else []
        for what in dict.fromkeys(what for of_case in facts for what in of_case):
            holds = [
                of_case.get(what, False if " is True" in what or " is False" in what else None) for of_case in facts
            ]
            side = next((side for side in (True, False) if holds == [one is side for one in wrong]), None)
            if side is not None:
                here, there = ("wrong", "right") if side else ("right", "wrong")
                where = f"is {here} in all {counts[side]} experiments in which {what}"
                return "RS19", f"{it} {where}, and {there} in the {counts[not side]} others."
    return None


def _facts(one: Compared) -> Iterator[tuple[str, bool]]:
    """What may be said of a case's inputs beside their sizes."""
    values = dict(_values(one))
    yield from ((f"`{name}` is {value}", True) for name, value in values.items() if isinstance(value, bool))
    for name, parameter in inspect.signature(references.reference(one.exercise)).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            yield f"`{name}` is given", values.get(name) is not None
    yield from ((f"`{name}` has more than two axes", array.ndim > 2) for name, array in arrays(_values(one)))


def _facts_of_sizes(one: Compared) -> Iterator[tuple[str, bool]]:
    sizes = _sizes(one).items()
    yield from ((f"{what} is 1", size == 1) for what, size in sizes)
    yield from ((f"{what} equals {other}", size == its) for (what, size), (other, its) in combinations(sizes, 2))


def _values(one: Compared) -> list[tuple[str, object]]:
    """The inputs by name, those with which a module is made among them."""
    names = inspect.signature(references.reference(one.exercise)).parameters
    options = dict(zip(names, one.case.options.get("init", ()), strict=False)) | one.case.options.get("init_kwargs", {})
    return [*wording.named_inputs(one.case), *options.items()]


def _sizes(one: Compared) -> dict[str, int]:
    """Lengths and whole numbers, by what they are called."""
    lengths = {
        f"the length of `{name}` along axis {axis}": size
        for name, array in arrays(_values(one))
        for axis, size in enumerate(array.shape)
    }
    return lengths | {f"`{name}`": value for name, value in _values(one) if type(value) is int}
