"""Compares what was observed with what was expected: type, then shape, then dtype, then numbers.

What is wrong is data: judging/wording.py makes sentences of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from grader.course.readings import UNNAMED
from grader.course.spec import Case, Exercise
from grader.worker.values import Failure, Observation, Part, Role

# Each kind with the stage of judging that it belongs to, in the order of judging.
STAGES = {
    "count": "type",  # another number of things was returned
    "absent": "type",  # a part is missing
    "type": "type",
    "cut": "type",  # no gradient arrives
    "shape": "shape",
    "dtype": "dtype",
    "finite": "finite",  # NaN or infinite entries
    "flag": "values",
    "text": "values",
    "numbers": "values",
    "compared": "values",  # an exercise's own comparison
    "unwritten": "attempted",  # only a part is there
    "failure": "runs",  # no result
    "property": "properties",
    "raises": "properties",  # an input that should be refused is not
    "modified": "inputs",  # changed in place
}
ORDER = ("type", "shape", "dtype", "finite", "values")
NO_PART = Part("none")
PROOF = 3  # cases, or results: as many show a mistake that is named


@dataclass(frozen=True, eq=False)
class Finding:
    """One thing that is not as it should be.

    kind: a key of STAGES.
    part: the name of the part, role and of: what it is, as in `Part`. expected, actual: its two sides; NO_PART where it is of no part.
    allowed: the dtypes that are.
    claim: a property's title, the exception that should be raised, the case for which nothing is written, or the inputs that were changed.
    sentence: the author's own, of a comparison or a property.
    failure: what was raised.
    """

    kind: str
    part: str = ""
    role: Role = "value"
    of: str = ""
    expected: Part = NO_PART
    actual: Part = NO_PART
    allowed: tuple[str, ...] = ()
    claim: str = ""
    sentence: str = ""
    failure: Failure | None = None

    @property
    def stage(self) -> str:
        return STAGES[self.kind]


# the kinds of parts that an exercise's `result_type` allows
RESULT_KINDS = {
    "ndarray": ("ndarray",),
    "tensor": ("tensor",),
    "number": ("number", "ndarray", "tensor"),
    "answer": ("sequence", "ndarray", "tensor"),
}


def raises_as_asked(case: Case, actual: Observation) -> bool:
    """Whether a case must raise, and what was observed raised just that."""
    return bool(case.raises and actual.failure and actual.failure.is_a(case.raises))


def same_numbers(expected: Part, actual: Part) -> bool:
    """Whether two parts hold the same numbers, whatever holds them; looser than any exercise's own tolerance."""
    expected, actual = as_array(expected), as_array(actual)
    if expected.array is None or actual.array is None:
        return False
    return close(expected.array.astype(np.float64), actual.array.astype(np.float64), rtol=1e-4, atol=1e-5)


@dataclass(frozen=True, eq=False)
class Comparison:
    """What one case showed of a candidate, beside what it should show."""

    exercise: Exercise
    case: Case
    expected: Observation
    actual: Observation

    @cached_property
    def differences(self) -> list[Finding]:
        """Every difference, in the order of judging; of a case that asks for no exception."""
        if part := self.actual.parts.get(UNNAMED):
            return [Finding("count", UNNAMED, part.role, part.of, actual=part)]
        if self.exercise.compare is not None:
            sentence = self.exercise.compare(self.case, self.expected, self.actual)
            return [Finding("compared", self.exercise.result_names[0], sentence=sentence)] if sentence else []
        findings = [
            self._difference(name, part, self.actual.parts[name])
            if name in self.actual.parts
            else Finding("absent", name, part.role, part.of, part)
            for name, part in self.expected.parts.items()
        ]
        return sorted(filter(None, findings), key=lambda finding: ORDER.index(finding.stage))

    def _difference(self, name: str, expected: Part, actual: Part) -> Finding | None:
        exercise, role, of = self.exercise, expected.role, expected.of
        if exercise.result_type in ("answer", "number"):
            expected, actual = as_array(expected), as_array(actual)

        def finding(kind: str, **data: Any) -> Finding:
            return Finding(kind, name, role, of, expected, actual, **data)

        if expected.array is None or expected.kind == "bool":
            kind = _plain_difference(expected, actual)
            return finding(kind) if kind else None
        if actual.kind not in allowed_kinds(exercise, role, expected) or actual.array is None:
            return finding("cut" if role == "gradient" and actual.kind == "none" else "type")
        if actual.shape != expected.shape:
            return finding("shape")
        allowed = self.case.dtype or exercise.dtype
        # Autograd gives a gradient its input's type, and numbers typed in as an answer may have any.
        if role != "gradient" and exercise.result_type != "answer" and not _is_right_dtype(expected, actual, allowed):
            return finding("dtype", allowed=allowed)
        difference = _numeric_difference(expected.array, actual.array, *self.tolerance(expected))
        return finding(difference) if difference else None

    @cached_property
    def wrong(self) -> bool:
        """Whether it is not what the case asks for."""
        if self.case.raises is not None:
            return not raises_as_asked(self.case, self.actual)
        return bool(self.actual.failure or self.actual.modified or self.differences)

    @property
    def complete(self) -> bool:
        """Whether each part that was expected came back."""
        return self.actual.failure is None and self.actual.parts.keys() >= self.expected.parts.keys()

    def pairs(self, roles: Sequence[str] = ("returned",)) -> list[Pair]:
        """Of the parts of these roles that hold numbers both sides."""
        return [pair for pair in self._pairs if pair.part.role in roles]

    @cached_property
    def _pairs(self) -> list[Pair]:
        pairs = []
        for name, part in self.expected.parts.items() if self.complete else ():
            expected, actual = as_array(part).array, as_array(self.actual.parts[name])
            if expected is not None and (actual.kind == "none" or actual.array is not None):
                array = np.full(expected.shape, np.nan) if actual.array is None else actual.array  # no gradient arrives
                pairs.append(Pair(self, name, part, expected, array))
        return pairs

    def tolerance(self, part: Part) -> tuple[float, float]:
        """Relative and absolute."""
        return tolerances(self.exercise, self.case, part.role, self._scale)

    @cached_property
    def _scale(self) -> float:
        return gradient_scale(self.expected.parts)

    def agree(self, part: Part, expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
        """Which numbers of two arrays of one shape are equal within the part's tolerance."""
        return np.isclose(actual.astype(np.float64), expected.astype(np.float64), *self.tolerance(part), equal_nan=True)

    def same(self, part: Part, expected: np.ndarray, actual: np.ndarray) -> bool:
        """Whether two arrays are equal within the part's tolerance, their shapes, too."""
        return close(expected, actual, *self.tolerance(part))


@dataclass(frozen=True, eq=False)
class Pair:
    """The numbers of one part of a case. part: the reference's."""

    comparison: Comparison
    name: str
    part: Part
    expected: np.ndarray
    actual: np.ndarray

    @cached_property
    def differs(self) -> bool:
        return not self.matches(self.expected)

    def matches(self, array: np.ndarray) -> bool:
        """Whether the candidate's numbers are these, within the part's tolerance."""
        return self.comparison.same(self.part, array, self.actual)


def gradient_scale(expected: Mapping[str, Part]) -> float:
    """By how much the absolute tolerance of gradients grows: their rounding is that of the largest one, not of each entry.

    The bias of a key layer has a gradient of exactly 0: what comes is the rounding of sums over the others.
    """
    largest = [
        np.abs(part.array).max()
        for part in expected.values()
        if part.role == "gradient" and part.array is not None and part.array.size
    ]
    return max(1.0, 2.0 * float(max(largest))) if largest else 1.0


def _plain_difference(expected: Part, actual: Part) -> str:
    """Of what is no array: a claim, a text, None, a tuple; '' for none."""
    if actual.kind != expected.kind or len(actual.items) != len(expected.items):
        return "type"
    if expected.kind == "bool" and bool(actual.array) != bool(expected.array):
        return "flag"
    return "text" if expected.kind in ("text", "other") and actual.text != expected.text else ""


def as_array(part: Part) -> Part:
    """A list or tuple of numbers as one array, for answers; anything else unchanged."""
    arrays = [item.array for item in part.items if item.array is not None and item.shape == () and item.kind != "bool"]
    if part.kind != "sequence" or len(arrays) < len(part.items):
        return part
    array = np.array([array.astype(np.float64) for array in arrays])
    return Part("ndarray", array, "float64", role=part.role, of=part.of)


def allowed_kinds(exercise: Exercise, role: str, expected: Part) -> tuple[str, ...]:
    """The kinds of parts that may hold what is expected."""
    if role == "gradient":
        return "tensor", "ndarray"
    if expected.shape == () and exercise.result_type in ("ndarray", "tensor", "number"):
        return RESULT_KINDS["number"]
    return RESULT_KINDS.get(exercise.result_type, (expected.kind,))


def _is_right_dtype(expected: Part, actual: Part, allowed: tuple[str, ...]) -> bool:
    if allowed:
        return actual.dtype in allowed or (actual.kind == "number" and has_kind(actual, "f") and "float64" in allowed)
    if has_kind(expected, "b") or actual.dtype == "bool":
        return has_kind(expected, "b") and actual.dtype == "bool"
    return actual.dtype not in ("float16", "bfloat16")


def has_kind(part: Part, kinds: str) -> bool:
    """Whether its numbers are of one of NumPy's kinds, 'b', 'i', 'u' or 'f'."""
    return part.array is not None and part.array.dtype.kind in kinds


def _numeric_difference(expected: np.ndarray, actual: np.ndarray, rtol: float, atol: float) -> str:
    """'finite', 'numbers', or '' where the numbers agree."""
    if expected.dtype == actual.dtype and expected.tobytes() == actual.tobytes():
        return ""  # often, and for a tenth of what follows
    if not np.isfinite(actual).all() and np.isfinite(expected).all():
        return "finite"
    return "" if close(expected, actual, rtol, atol) else "numbers"


def tolerances(exercise: Exercise, case: Case, role: str, scale: float) -> tuple[float, float]:
    """(rtol, atol) of a case's part of that role; scale: the case's `gradient_scale`."""
    rtol = exercise.rtol if case.rtol is None else case.rtol
    atol = exercise.atol if case.atol is None else case.atol
    return rtol, atol * scale if role == "gradient" else atol


def close(expected: np.ndarray, actual: np.ndarray, rtol: float, atol: float) -> bool:
    """Same shape and numbers within the tolerance of np.allclose; NaN equals NaN, an infinity itself."""
    if expected.shape != actual.shape:
        return False
    size = np.abs(_float64(expected))
    if not np.isfinite(size).all():
        return bool(np.allclose(actual, expected, rtol=rtol, atol=atol, equal_nan=True))
    # A fifth of what allclose takes: it looks for NaN and infinities once more. Beside finite numbers they fail here too.
    with np.errstate(invalid="ignore", over="ignore"):
        return bool((np.abs(_float64(actual) - _float64(expected)) <= atol + rtol * size).all())


def gaps(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """The absolute differences of two arrays of one shape, inf where only one is finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(_float64(actual) - _float64(expected))
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    return np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))


def largest_difference(comparisons: Iterable[Comparison]) -> float:
    """Of all numbers of all cases from the reference's; all of them have passed."""
    expected, actual = [np.zeros(1)], [np.zeros(1)]
    for comparison in comparisons:
        for name, part in comparison.expected.parts.items() if comparison.case.raises is None else ():
            right, array = part.array, as_array(comparison.actual.parts[name]).array
            if right is not None and array is not None and right.shape == array.shape and not has_kind(part, "b"):
                expected.append(right.ravel())
                actual.append(array.ravel())
    # Each array by itself would take ten times as long.
    return largest_relative_difference(np.concatenate(expected), np.concatenate(actual))


def largest_relative_difference(expected: np.ndarray, actual: np.ndarray) -> float:
    """The largest difference, as a part of numbers above 1: beside 20,000, a difference of 0.002 is rounding."""
    size = np.maximum(1.0, np.abs(np.where(np.isfinite(expected), _float64(expected), 1.0)))
    return float(gaps(expected / size, actual / size).max(initial=0.0))


def _float64(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64, copy=False)
