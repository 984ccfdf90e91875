"""Where a wrong answer is right: in which parts of a result, in which places, in which experiments. Each is true of what was observed."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from grader.course import references
from grader.judging import wording
from grader.judging.compare import PROOF, Compared, Finding
from grader.judging.evidence import arrays
from grader.util.words import join_names

FEW = 4  # names in a sentence
RESULTS = ("returned", "gradient")
Array = np.ndarray
Symptom = tuple[str, str]  # the id of the text that `explain` shows, and what was observed, in words


def right_parts(compared: Sequence[Compared]) -> Symptom | None:
    """Which parts are right everywhere, also where others are wrong, and which are not. Gradients alone say little: many are constant."""
    agree: dict[str, bool] = {}
    returned: set[str] = set()
    beside: Counter[str] = Counter()  # in how many wrong cases each is right
    for one in compared:
        if not one.theirs or one.actual.modified:
            return None
        for pair in one.pairs(RESULTS):
            part, same = pair.part, not pair.differs
            what = wording.subject(one.exercise, Finding("numbers", pair.name, part.role, part.of))
            returned |= {what} if part.role == "returned" else set()
            agree[what], beside[what] = agree.get(what, True) and same, beside[what] + (same and one.wrong)
    good = [what for what, right in agree.items() if right and beside[what] >= PROOF]
    bad = [what for what, right in agree.items() if not right]
    if not bad or returned.isdisjoint(good):
        return None
    return "RS18", f"Right in every experiment: {join_names(good, FEW)}. Wrong: {join_names(bad, FEW)}."


def right_places(wrong: Sequence[Compared]) -> Symptom | None:
    """Where in a result no wrong number stands, though most others are wrong."""
    pairs = [pair for one in wrong for pair in one.pairs() if pair.differs]
    every_one = len({pair.one.case.key for pair in pairs}) == len(wrong)
    if not every_one or any(pair.right.shape != pair.theirs.shape for pair in pairs):
        return None
    agree = [pair.one.agree(pair.part, pair.right, pair.theirs) for pair in pairs]
    for name, places in _PLACES.items():
        here = [at for pair in pairs if (at := places(pair.right)) is not None and not at.all()]
        if len(here) < len(pairs) or not all(right[at].all() for at, right in zip(here, agree, strict=True)):
            continue
        off = [1 - right[~at].mean() for at, right in zip(here, agree, strict=True)]
        # Where all numbers are 0, they are right by themselves.
        telling = [at.any() and np.ptp(pair.right[at] * 1.0) > 0 for at, pair in zip(here, pairs, strict=True)]
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


def right_experiments(compared: Sequence[Compared]) -> Symptom | None:
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
    sizes = sizes_of(one).items()
    yield from ((f"{what} is 1", size == 1) for what, size in sizes)
    yield from ((f"{what} equals {other}", size == its) for (what, size), (other, its) in combinations(sizes, 2))


def _values(one: Compared) -> list[tuple[str, object]]:
    """The inputs by name, those with which a module is made among them."""
    names = inspect.signature(references.reference(one.exercise)).parameters
    options = dict(zip(names, one.case.options.get("init", ()), strict=False)) | one.case.options.get("init_kwargs", {})
    return [*wording.named_inputs(one.case), *options.items()]


def sizes_of(one: Compared) -> dict[str, int]:
    """Lengths and whole numbers, by what they are called."""
    lengths = {
        f"the length of `{name}` along axis {axis}": size
        for name, array in arrays(_values(one))
        for axis, size in enumerate(array.shape)
    }
    return lengths | {f"`{name}`": value for name, value in _values(one) if type(value) is int}
