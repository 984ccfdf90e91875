"""What separates right from wrong where no mistake is proven: each symptom a sentence that holds word for word of what was observed.

Nothing is run: the cases, the reference's results and the candidate's are all there is. A symptom is held back where too few cases
show it, or too few speak against it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

from grader.course import references
from grader.course.spec import Case, Exercise
from grader.judging import wording
from grader.judging.compare import close, differences, flatten, gradient_scale, is_wrong, numbers, tolerances
from grader.judging.findings import Finding
from grader.worker.values import Observation, Part, leaves

PROOF = 3  # cases on either side
RESULTS = ("returned", "gradient")
FEW = 4  # numbers, of which fewer are equal in another order by chance


class Symptom(NamedTuple):
    """id: of the text that `explain` shows. sentence: what was observed, in words."""

    id: str
    sentence: str


class Compared(NamedTuple):
    """What one case gave. same(right, theirs): whether two arrays are equal within the tolerance of a part."""

    case: Case
    expected: Observation
    right: Mapping[str, Part]
    theirs: Mapping[str, Part] | None  # None where it failed, or gave another number of things
    wrong: bool
    same: Callable[[Part, np.ndarray, np.ndarray], bool]
    raw: Observation


def symptoms(
    exercise: Exercise, cases: Sequence[Case], expected: Sequence[Observation], actual: Mapping[int, Observation]
) -> list[Symptom]:
    """Those that were observed, the plainest first. actual: by the case's position."""
    if exercise.kind == "answer" or exercise.compare is not None:
        return []
    compared = [_compared(exercise, cases[i], expected[i], one) for i, one in actual.items() if cases[i].raises is None]
    wrong = [one for one in compared if one.wrong]
    for rule in (_inside_a_tuple, _only_beside):
        if found := rule(exercise, compared, wrong):
            return [found]
    if len(wrong) < PROOF:
        return []
    for rule in (_other_shape, _other_places, _size_as_factor):
        if found := rule(exercise, compared, wrong):
            return [found]
    return [found for rule in (_right_only_where, _right_places, _right_parts) if (found := rule(exercise, compared))]


def _compared(exercise: Exercise, case: Case, expected: Observation, actual: Observation) -> Compared:
    right, theirs = flatten(exercise, expected), flatten(exercise, actual)
    assert not isinstance(right, Finding)
    given = None if actual.failure or isinstance(theirs, Finding) or right.keys() - theirs.keys() else theirs
    scale = gradient_scale(right)

    def same(part: Part, one: np.ndarray, other: np.ndarray) -> bool:
        return close(one.astype(np.float64), other.astype(np.float64), *tolerances(exercise, case, part.role, scale))

    return Compared(case, expected, right, given, is_wrong(exercise, case, expected, actual), same, actual)


def _named_pairs(one: Compared, roles: Sequence[str]) -> Iterator[tuple[str, Part, np.ndarray, np.ndarray]]:
    """A case's parts with the arrays of both sides."""
    for name, part in one.right.items() if one.theirs is not None else ():
        right, theirs = numbers(part).array, numbers(one.theirs[name]).array  # type: ignore[index]
        if part.role in roles and right is not None and theirs is not None:
            yield name, part, right, theirs


def _pairs(one: Compared, roles: Sequence[str] = ("returned",)) -> Iterator[tuple[Part, np.ndarray, np.ndarray]]:
    return (pair for _, *pair in _named_pairs(one, roles))  # type: ignore[misc]


def _shown(
    wrong: Sequence[Compared], shows: Callable[[Compared, Part, np.ndarray, np.ndarray], bool], apart: int = PROOF
) -> bool:
    """Whether every part that differs in a wrong case shows it, in enough of the cases."""
    proofs = 0
    for one in wrong:
        pairs = list(_pairs(one))
        if not pairs:
            return False
        different = [(part, a, b) for part, a, b in pairs if not one.same(part, a, b)]
        if not all(shows(one, *pair) for pair in different):
            return False
        proofs += bool(different)
    return proofs >= apart


# --- what came back -------------------------------------------------------------------------------


def _inside_a_tuple(exercise: Exercise, compared: Sequence[Compared], wrong: Sequence[Compared]) -> Symptom | None:
    """The right thing, and others beside it."""
    if len(exercise.parts) > 1 or len(wrong) < len(compared) or len(compared) < PROOF:
        return None
    common: set[int] | None = None
    for one in compared:
        parts = [(part, one.raw.parts.get(name)) for name, part in one.raw.parts.items() if part.role == "returned"]
        expected = [part for part in one.right.values() if part.role == "returned"]
        if len(parts) != 1 or len(expected) != 1 or parts[0][0].kind != "sequence" or expected[0].array is None:
            return None
        items = [numbers(item).array for item in parts[0][0].items]
        at = {
            i for i, array in enumerate(items) if array is not None and one.same(expected[0], expected[0].array, array)
        }
        common = at if common is None else common & at
    if not common:
        return None
    return Symptom("RS22", f"The right result is item {min(common)} of what came back; it should come back alone.")


def _only_beside(exercise: Exercise, compared: Sequence[Compared], wrong: Sequence[Compared]) -> Symptom | None:
    """What comes back is right, and something else that was asked for is not."""
    beside: list[str] = []
    for one in wrong:
        if one.theirs is None or one.raw.modified or not all(one.same(*pair) for pair in _pairs(one, RESULTS)):
            return None
        finding = differences(exercise, one.case, one.expected, one.raw)[0]
        if finding.role in RESULTS:  # of another type, or another kind of number
            return None
        beside.append(wording.headline(exercise, finding))
    if not beside or not any(True for one in compared for _ in _pairs(one)):
        return None
    return Symptom("RS24", f"What comes back is right in every experiment. {beside[0]}")


def _other_shape(exercise: Exercise, compared: Sequence[Compared], wrong: Sequence[Compared]) -> Symptom | None:
    def shows(one: Compared, part: Part, right: np.ndarray, theirs: np.ndarray) -> bool:
        return (
            right.shape != theirs.shape
            and right.size == theirs.size
            and one.same(part, right, theirs.reshape(right.shape))
        )

    if not _shown(wrong, shows):
        return None
    return Symptom("RS23", "The numbers are right and in the right order; their shape is another than was asked for.")


def _other_places(exercise: Exercise, compared: Sequence[Compared], wrong: Sequence[Compared]) -> Symptom | None:
    def shows(one: Compared, part: Part, right: np.ndarray, theirs: np.ndarray) -> bool:
        if (
            right.size != theirs.size
            or right.size < FEW
            or right.dtype.kind == "b"
            or len(np.unique(right)) < right.size / 2
        ):
            return False
        return one.same(part, np.sort(right, axis=None), np.sort(theirs, axis=None))

    if not _shown(wrong, shows):
        return None
    return Symptom(
        "RS20", "The right numbers came back, each of them, and some in other places than where they belong."
    )


def _size_as_factor(exercise: Exercise, compared: Sequence[Compared], wrong: Sequence[Compared]) -> Symptom | None:
    sizes = [_sizes(exercise, one.case) for one in wrong]
    for what in sizes[0]:
        values = [of_case.get(what, 0) for of_case in sizes]
        if min(values) < 1 or len(set(values)) < 2:
            continue
        for said, factor in _FACTORS.items():
            by = {one.case.key: factor(value) for one, value in zip(wrong, values, strict=True)}

            def shows(
                one: Compared, part: Part, right: np.ndarray, theirs: np.ndarray, by: Mapping[str, float] = by
            ) -> bool:
                return bool(right.any()) and one.same(part, right * by[one.case.key], theirs)

            if _shown(wrong, shows):
                return Symptom("RS21", f"Every part that differs is the right one {said} {what}.")
    return None


_FACTORS: Mapping[str, Callable[[float], float]] = {
    "times": lambda n: n,
    "divided by": lambda n: 1 / n,
    "times the root of": math.sqrt,
    "divided by the root of": lambda n: 1 / math.sqrt(n),
}


# --- where it is right ----------------------------------------------------------------------------


def _right_parts(exercise: Exercise, compared: Sequence[Compared]) -> Symptom | None:
    """Which parts are right everywhere, and which are not."""
    agree: dict[str, bool] = {}
    for one in compared:
        if one.theirs is None or one.raw.modified:
            return None
        for name, part, right, theirs in _named_pairs(one, RESULTS):
            what = wording.subject(exercise, Finding("numbers", name, part.role, part.of))
            agree[what] = agree.get(what, True) and one.same(part, right, theirs)
    agreeing, others = ([what for what, agrees in agree.items() if agrees is which] for which in (True, False))
    if not agreeing or not others:
        return None
    return Symptom("RS18", f"Right in every experiment: {', '.join(agreeing)}. Wrong: {', '.join(others)}.")


def _right_places(exercise: Exercise, compared: Sequence[Compared]) -> Symptom | None:
    """Where in a result of many numbers no wrong one stands, though most others are wrong."""
    wrong = [one for one in compared if one.wrong]
    cases = [[(one, *pair) for pair in _pairs(one) if not one.same(*pair)] for one in wrong]
    pairs = [pair for pairs in cases for pair in pairs]
    if len(cases) < PROOF or not all(cases) or any(right.shape != theirs.shape for *_, right, theirs in pairs):
        return None
    for said, places in _PLACES.items():
        shares, telling = [], 0  # where all numbers are 0 or 1, they are right by themselves
        for one, part, right, theirs in pairs:
            at = places(right)
            if at is None or at.all() or not at.any():
                break
            if not one.same(part, right[at], theirs[at]):
                break
            off = [one.same(part, a, b) for a, b in zip(right[~at], theirs[~at], strict=True)]
            shares.append(off.count(False) / len(off))
            telling += bool(np.ptp(right[at].astype(float)))
        else:
            if telling >= PROOF and sum(shares) > len(shares) / 2:
                return Symptom("RS25", f"In every experiment {said} is right; the wrong numbers stand elsewhere.")
    return None


def _at(axis: int, index: int) -> Callable[[np.ndarray], np.ndarray | None]:
    def places(array: np.ndarray) -> np.ndarray | None:
        if array.ndim <= axis:
            return None
        return np.indices(array.shape)[axis] == index % array.shape[axis]

    return places


def _around(holds: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray | None]:
    """Of the last two axes."""
    return lambda array: None if array.ndim < 2 else holds(*np.indices(array.shape)[-2:])


_PLACES: Mapping[str, Callable[[np.ndarray], np.ndarray | None]] = {
    **{f"what stands at index {index} along axis {axis}": _at(axis, index) for axis in range(4) for index in (0, -1)},
    "the diagonal": _around(np.equal),
    "all but the diagonal": _around(np.not_equal),
    "what stands on and below the diagonal": _around(np.greater_equal),
    "what stands on and above the diagonal": _around(np.less_equal),
}


def _right_only_where(exercise: Exercise, compared: Sequence[Compared]) -> Symptom | None:
    """One thing that all cases of one side have, and none of the other."""
    wrong = [one.wrong for one in compared]
    if min(sum(wrong), len(wrong) - sum(wrong)) < PROOF:
        return None
    flags = [
        {f"`{name}` is {value}": True for name, value in _values(exercise, one.case) if isinstance(value, (bool, str))}
        for one in compared
    ]
    only_true = {what for of_case in flags for what in of_case}  # elsewhere they are not so
    facts = [of_case | dict(_facts(exercise, one.case)) for of_case, one in zip(flags, compared, strict=True)]
    for what in dict.fromkeys(what for of_case in facts for what in of_case):
        holds = [of_case.get(what, False if what in only_true else None) for of_case in facts]
        if None in holds:
            continue
        if holds == wrong:
            return Symptom(
                "RS19",
                f"It is wrong in all {sum(wrong)} experiments in which {what}, and right in the {len(wrong) - sum(wrong)} others.",
            )
        if holds == [not each for each in wrong]:
            return Symptom(
                "RS19",
                f"It is right in all {len(wrong) - sum(wrong)} experiments in which {what}, and wrong in the {sum(wrong)} others.",
            )
    return None


def _facts(exercise: Exercise, case: Case) -> Iterator[tuple[str, bool]]:
    """What may be said of a case's inputs, the plainest first."""
    sizes = _sizes(exercise, case)
    for what, size in sizes.items():
        yield f"{what} is 1", size == 1
    for name in _optional(exercise):
        yield f"`{name}` is given", any(name == given and value is not None for given, value in _values(exercise, case))
    for name, array in _arrays(exercise, case):
        yield f"`{name}` has more than two axes", array.ndim > 2
    for (one, size), (other, its) in combinations(sizes.items(), 2):
        yield f"{one} equals {other}", size == its
    for (one, size), (other, its) in combinations(sizes.items(), 2):
        yield f"{one} is at most {other}", size <= its
        yield f"{one} is at least {other}", size >= its
    for (one, size), (other, its) in permutations(sizes.items(), 2):
        yield f"{one} is a multiple of {other}", its > 0 and size % its == 0
    for name, value in _values(exercise, case):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            yield f"`{name}` is negative", value < 0
            yield f"`{name}` is above 0", value > 0
    yield "the inputs are no extremes", case.stage == "values"


def _values(exercise: Exercise, case: Case) -> list[tuple[str, object]]:
    """The inputs by name, those with which a module is made among them."""
    made = dict(zip(_parameters(exercise), case.options.get("init", ()), strict=False)) | case.options.get(
        "init_kwargs", {}
    )
    return [*wording.named(case), *made.items()]


def _arrays(exercise: Exercise, case: Case) -> list[tuple[str, np.ndarray]]:
    found = ((name, getattr(value, "array", value)) for name, value in leaves(_values(exercise, case)))
    return [(name, value) for name, value in found if isinstance(value, np.ndarray)]


def _sizes(exercise: Exercise, case: Case) -> dict[str, int]:
    """Lengths and whole numbers, by what they are called."""
    sizes: dict[str, int] = {}
    for name, array in _arrays(exercise, case):
        sizes |= {f"the length of `{name}` along axis {axis}": size for axis, size in enumerate(array.shape)}
    ints = (
        (name, value)
        for name, value in _values(exercise, case)
        if isinstance(value, int) and not isinstance(value, bool)
    )
    return sizes | {f"`{name}`": value for name, value in ints}


def _parameters(exercise: Exercise) -> list[str]:
    """Of a module's __init__; of a function its own."""
    return [name for name in inspect.signature(references.reference(exercise)).parameters if name != "self"]


def _optional(exercise: Exercise) -> list[str]:
    signature = inspect.signature(references.reference(exercise))
    return [name for name, one in signature.parameters.items() if one.default is not inspect.Parameter.empty]
