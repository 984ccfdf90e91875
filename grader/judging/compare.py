"""Compares what was observed with what was expected: type, then shape, then dtype, then numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from grader.course.spec import Case, Exercise
from grader.judging.findings import ORDER, Finding, Kind
from grader.worker.values import Observation, Part

# the kinds of parts that an exercise's `container` allows
CONTAINERS = {
    "ndarray": ("ndarray",),
    "tensor": ("tensor",),
    "number": ("number", "ndarray", "tensor"),
    "answer": ("sequence", "ndarray", "tensor"),
}


def flatten(exercise: Exercise, observation: Observation) -> dict[str, Part] | Finding:
    """The parts by name, a returned pair taken apart as the exercise names it.

    Returns a Finding where something else than the asked number of things was returned.
    """
    flat: dict[str, Part] = {}
    for name, part in observation.parts.items():
        if part.role != "returned":
            flat[name] = part
        elif len(exercise.parts) == 1:
            flat[name if part.of else exercise.parts[0]] = part
        elif part.kind != "sequence" or len(part.items) != len(exercise.parts):
            return Finding("count", name, part.role, part.of, actual=part, names=exercise.parts)
        else:
            call = f" of the {part.of}" if part.of else ""
            for title, item in zip(exercise.parts, part.items, strict=True):
                flat[title + call] = replace(item, role="returned", of=part.of)
    return flat


def raises_as_asked(case: Case, actual: Observation) -> bool:
    """Whether a case must raise, and what was observed raised just that."""
    return bool(case.raises and actual.failure and actual.failure.is_a(case.raises))


def same_numbers(expected: Part, actual: Part) -> bool:
    """Whether two parts hold the same numbers, whatever holds them; looser than any exercise's own tolerance."""
    one, other = numbers(expected), numbers(actual)
    if one.array is None or other.array is None:
        return False
    return close(one.array.astype(np.float64), other.array.astype(np.float64), rtol=1e-4, atol=1e-5)


def compare(exercise: Exercise, case: Case, expected: Mapping[str, Part], actual: Mapping[str, Part]) -> list[Finding]:
    """Every difference between a candidate's parts and the reference's, in the order of judging."""
    found = []
    scale = gradient_scale(expected)
    for name, part in expected.items():
        if name not in actual:
            found.append(Finding("absent", name, part.role, part.of, part))
            continue
        finding = _compare_part(exercise, case, name, part, actual[name], scale)
        if finding:
            found.append(finding)
    return sorted(found, key=lambda finding: ORDER.index(finding.stage))


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


def _compare_part(
    exercise: Exercise, case: Case, name: str, expected: Part, actual: Part, scale: float
) -> Finding | None:
    role, of = expected.role, expected.of
    if exercise.container in ("answer", "number"):
        expected, actual = numbers(expected), numbers(actual)

    def found(kind: Kind, **more: object) -> Finding:
        return Finding(kind, name, role, of, expected, actual, **more)  # type: ignore[arg-type]

    if expected.array is None or expected.kind == "bool":
        kind = _plain_difference(expected, actual)
        return found(kind) if kind else None
    if not _is_held_as_asked(exercise, role, expected, actual):
        return found("cut" if role == "gradient" and actual.kind == "none" else "type")
    if actual.shape != expected.shape:
        return found("shape")
    allowed = case.dtype or exercise.dtype
    # Autograd gives a gradient its input's type, and numbers typed in as an answer may have any.
    if role != "gradient" and exercise.container != "answer" and not _is_right_dtype(expected, actual, allowed):
        return found("dtype", allowed=allowed)
    numeric = _numeric_difference(expected.array, actual.array, *tolerances(exercise, case, role, scale))
    return found(**numeric) if numeric else None  # type: ignore[arg-type]


def _plain_difference(expected: Part, actual: Part) -> Kind | None:
    """Of what is no array: a claim, a text, None, a tuple."""
    if actual.kind != expected.kind or len(actual.items) != len(expected.items):
        return "type"
    if expected.kind == "bool" and bool(actual.array) != bool(expected.array):
        return "flag"
    return "text" if expected.kind in ("text", "other") and actual.text != expected.text else None


def numbers(part: Part) -> Part:
    """A list or tuple of numbers as one array, for answers; anything else unchanged."""
    if part.kind != "sequence" or any(item.array is None or item.shape != () for item in part.items):
        return part
    if any(item.kind == "bool" for item in part.items):
        return part
    return Part(
        "ndarray",
        np.array([item.array.astype(np.float64) for item in part.items]),
        "float64",
        role=part.role,
        of=part.of,
    )


def allowed_kinds(exercise: Exercise, role: str, expected: Part) -> tuple[str, ...]:
    """The kinds of parts that may hold what is expected."""
    if role == "gradient":
        return "tensor", "ndarray"
    if expected.shape == () and exercise.container in ("ndarray", "tensor", "number"):
        return CONTAINERS["number"]
    return CONTAINERS.get(exercise.container, (expected.kind,))


def _is_held_as_asked(exercise: Exercise, role: str, expected: Part, actual: Part) -> bool:
    return actual.kind in allowed_kinds(exercise, role, expected) and actual.array is not None


def _is_right_dtype(expected: Part, actual: Part, allowed: tuple[str, ...]) -> bool:
    if allowed:
        return actual.dtype in allowed or (
            actual.kind == "number" and actual.array.dtype.kind == "f" and "float64" in allowed
        )
    if expected.array.dtype.kind == "b" or actual.dtype == "bool":
        return expected.array.dtype.kind == "b" and actual.dtype == "bool"
    return actual.dtype not in ("float16", "bfloat16")


def _numeric_difference(expected: np.ndarray, actual: np.ndarray, rtol: float, atol: float) -> dict[str, object] | None:
    if expected.dtype == actual.dtype and expected.tobytes() == actual.tobytes():
        return None  # often, and for a tenth of what follows
    one, other = _float64(expected), _float64(actual)
    if not np.isfinite(other).all() and np.isfinite(one).all():
        return {"kind": "finite", "bad": int((~np.isfinite(other)).sum())}
    if close(one, other, rtol, atol):
        return None
    gap, flat = largest_difference(one, other)
    return {"kind": "numbers", "gap": gap, "at": tuple(int(i) for i in np.unravel_index(flat, one.shape))}


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


def largest_difference(expected: np.ndarray, actual: np.ndarray) -> tuple[float, int]:
    """The largest absolute difference (inf where only one is finite) and its flat index."""
    if expected.size == 0:
        return 0.0, 0
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(_float64(actual) - _float64(expected)).reshape(-1)
    if not np.isfinite(difference).all():
        same = ((actual == expected) | (np.isnan(actual) & np.isnan(expected))).reshape(-1)
        difference = np.where(same, 0.0, np.where(np.isnan(difference), np.inf, difference))
    at = int(difference.argmax())
    return float(difference[at]), at


def _float64(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64, copy=False)
