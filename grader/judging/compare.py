"""Compares what was observed with what was expected: type, then shape, then dtype, then numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from grader.course.spec import Case, Exercise
from grader.worker.values import Observation, Part

CONTAINERS = {
    "ndarray": ("a NumPy array", ("ndarray",)),
    "tensor": ("a torch tensor", ("tensor",)),
    "number": ("a number", ("number", "ndarray", "tensor")),
    "answer": ("a list, tuple or array of numbers", ("sequence", "ndarray", "tensor")),
}
_KINDS = {
    "ndarray": "a NumPy array", "tensor": "a torch tensor", "number": "a single number", "bool": "a single True or False",
    "none": "None", "text": "a text",
}  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """The first difference. stage: 'type', 'shape', 'dtype', 'finite' or 'values'; part: its name."""

    stage: str
    part: str
    sentence: str


def flatten(exercise: Exercise, observation: Observation) -> dict[str, Part] | Problem:
    """The parts by name, a returned pair taken apart as the exercise names it.

    Returns a Problem where something else than the asked number of things was returned.
    """
    flat: dict[str, Part] = {}
    for name, part in observation.parts.items():
        if name not in ("result", "second call") or len(exercise.parts) == 1:
            flat[exercise.parts[0] if name == "result" else name] = part
            continue
        if part.kind != "sequence" or len(part.items) != len(exercise.parts):
            wanted = f"{len(exercise.parts)} things were asked for: ({', '.join(exercise.parts)})"
            return Problem("type", name, f"{said(part).capitalize()} was returned; {wanted}.")
        prefix = "" if name == "result" else f"{name}: "
        flat |= {prefix + title: item for title, item in zip(exercise.parts, part.items, strict=True)}
    return flat


def said(part: Part) -> str:
    """What a part is, in words: 'a NumPy array of shape (2, 3)'."""
    if part.kind == "sequence":
        return f"a {part.text or 'tuple'} of {len(part.items)}"
    if part.kind == "other":
        return f"an object of type {part.text}" if " " not in part.text else f"{'an' if part.text[:1] in 'aeiou' else 'a'} {part.text}"
    words = _KINDS[part.kind]
    return f"{words} of shape {part.shape}" if part.kind in ("ndarray", "tensor") else words


def compare(exercise: Exercise, case: Case, expected: dict[str, Part], got: dict[str, Part]) -> list[Problem]:
    """Every difference between a candidate's parts and the reference's, in the order of judging."""
    problems = []
    scale = gradient_scale(expected)
    for name, want in expected.items():
        if name not in got:
            problems.append(Problem("type", name, f"{_it_is(name)} missing."))
            continue
        problem = _compare_part(exercise, case, name, want, got[name], scale)
        if problem:
            problems.append(problem)
    order = ("type", "shape", "dtype", "finite", "values")
    return sorted(problems, key=lambda problem: order.index(problem.stage))


def gradient_scale(expected: Mapping[str, Part]) -> float:
    """By how much the absolute tolerance of gradients grows: their rounding is that of the largest one, not of each entry.

    The bias of a key layer has a gradient of exactly 0: what comes is the rounding of sums over the others.
    """
    largest = [np.abs(part.array).max() for name, part in expected.items()
               if name.startswith("gradient") and part.array is not None and part.array.size]  # fmt: skip
    return max(1.0, 2.0 * float(max(largest))) if largest else 1.0


def _the(name: str) -> str:
    return name[:1].upper() + name[1:] if name.startswith(("the ", "a ", "another ", "what ")) else f"The {name}"


def _it_is(name: str) -> str:
    return f"{_the(name)} {_verb(name, 'is', 'are')}"


def _verb(name: str, one: str, many: str) -> str:
    """The form of a verb that goes with a part's name: 'the weights differ', 'the gradient of weights differs'."""
    noun = name.rpartition(": ")[2].partition(" ")[0]
    return many if noun in ("weights", "ids", "shapes", "calls", "numbers") else one


def _compare_part(exercise: Exercise, case: Case, name: str, want: Part, got: Part, scale: float) -> Problem | None:
    if exercise.container in ("answer", "number"):
        want, got = numbers(want), numbers(got)
    if want.array is None or want.kind == "bool":
        return _compare_plain(name, want, got)
    problem = _container(exercise, name, want, got)
    if problem:
        return problem
    if got.shape != want.shape:
        return Problem("shape", name, f"{_the(name)} {_verb(name, 'has', 'have')} shape {got.shape}; {want.shape} was asked for.")
    allowed = case.dtype or exercise.dtype
    # Autograd gives a gradient its input's type, and numbers typed in as an answer may have any.
    if not name.startswith("gradient") and exercise.container != "answer":
        problem = _dtype(name, want, got, allowed)
        if problem:
            return problem
    return _numbers(name, want.array, got.array, *tolerances(exercise, case, name, scale))


def _compare_plain(name: str, want: Part, got: Part) -> Problem | None:
    if want.kind == "sequence":
        same = got.kind == "sequence" and len(got.items) == len(want.items)
        return None if same else Problem("type", name, f"{_it_is(name)} {said(got)}; {said(want)} was asked for.")
    if got.kind != want.kind:
        return Problem("type", name, f"{_it_is(name)} {said(got)}; {said(want)} was asked for.")
    if want.kind == "bool" and bool(got.array) != bool(want.array):
        return Problem("values", name, f"'{name}' is {bool(got.array)}; {bool(want.array)} was asked for.")
    if want.kind in ("text", "other") and got.text != want.text:
        return Problem("values", name, f"{_it_is(name)} {got.text!r}; {want.text!r} was asked for.")
    return None


def numbers(part: Part) -> Part:
    """A list or tuple of numbers as one array, for answers; anything else unchanged."""
    if part.kind != "sequence" or any(item.array is None or item.shape != () for item in part.items):
        return part
    if any(item.kind == "bool" for item in part.items):
        return part
    return Part("ndarray", np.array([item.array.astype(np.float64) for item in part.items]), "float64")


def _container(exercise: Exercise, name: str, want: Part, got: Part) -> Problem | None:
    container = exercise.container
    kinds: tuple[str, ...]
    if container == "any":
        words, kinds = said(want), (want.kind,)
    else:
        words, kinds = CONTAINERS[container]
    if want.shape == () and container in ("ndarray", "tensor", "number"):
        kinds, words = ("number", "ndarray", "tensor"), "a number"
    if name.startswith("gradient"):
        if got.kind == "none":
            source = name.removeprefix("gradient of ")
            sentence = f"No gradient reaches {source}: the result does not depend on it, or the graph is cut on the way to it."
            return Problem("type", name, sentence)
        kinds, words = ("tensor", "ndarray"), "a tensor"
    if got.kind in kinds and got.array is not None:
        return None
    if got.kind == "other" and "with shape" in got.text:  # an array that is not read: too large, or of complex numbers
        words += f" of shape {want.shape}"
    mixed = ", not all of them numbers" if got.kind == "sequence" and container == "answer" else ""
    return Problem("type", name, f"{_it_is(name)} {said(got)}{mixed}; {words} was asked for.")


def _dtype(name: str, want: Part, got: Part, allowed: tuple[str, ...]) -> Problem | None:
    wanted = _wrong_dtype(want, got, allowed)
    return Problem("dtype", name, f"{_it_is(name)} {got.dtype}{wanted}") if wanted else None


def _wrong_dtype(want: Part, got: Part, allowed: tuple[str, ...]) -> str:
    """How a sentence on a dtype that is not right ends; '' for one that is."""
    if allowed:
        right = got.dtype in allowed or (got.kind == "number" and got.array.dtype.kind == "f" and "float64" in allowed)
        return "" if right else f"; {' or '.join(allowed)} was asked for."
    if want.array.dtype.kind == "b":
        return "" if got.dtype == "bool" else "; bool was asked for."
    if got.dtype == "bool":
        return "; numbers were asked for."
    coarse = got.dtype in ("float16", "bfloat16")
    return ", which is too coarse here; float32 or float64 was asked for." if coarse else ""


def _numbers(name: str, want: np.ndarray, got: np.ndarray, rtol: float, atol: float) -> Problem | None:
    if want.dtype == got.dtype and want.tobytes() == got.tobytes():
        return None  # often, and for a tenth of what follows
    want64, got64 = _float64(want), _float64(got)
    if not np.isfinite(got64).all() and np.isfinite(want64).all():
        bad = int((~np.isfinite(got64)).sum())
        kinds = " and ".join(word for word, seen in (("NaN", np.isnan(got64)), ("infinite", np.isinf(got64))) if seen.any())
        return Problem("finite", name, f"{_the(name)} {_verb(name, 'has', 'have')} {bad} of {got64.size} entries that are {kinds}.")
    if close(want64, got64, rtol, atol):
        return None
    largest = largest_difference(want64, got64)
    where = "" if want64.ndim == 0 else f" at {tuple(int(i) for i in np.unravel_index(largest[1], want64.shape))}"
    whole = f"; {got.dtype.name} keeps whole numbers only" if got.dtype.kind in "iu" and (want64 != np.round(want64)).any() else ""
    differs = f"{_the(name)} {_verb(name, 'differs', 'differ')} from what was expected by up to {largest[0]:.4g}{where}{whole}."
    return Problem("values", name, differs)


def tolerances(exercise: Exercise, case: Case, name: str, scale: float) -> tuple[float, float]:
    """(rtol, atol) of a case's part of that name; scale: the case's `gradient_scale`."""
    rtol = exercise.rtol if case.rtol is None else case.rtol
    atol = exercise.atol if case.atol is None else case.atol
    return rtol, atol * scale if name.startswith("gradient") else atol


def close(want: np.ndarray, got: np.ndarray, rtol: float, atol: float) -> bool:
    """Same shape and numbers within the tolerance of np.allclose; NaN equals NaN, an infinity itself."""
    if want.shape != got.shape:
        return False
    size = np.abs(_float64(want))
    if not np.isfinite(size).all():
        return bool(np.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True))
    # A fifth of what allclose takes: it looks for NaN and infinities once more. Beside finite numbers they fail here too.
    with np.errstate(invalid="ignore", over="ignore"):
        return bool((np.abs(_float64(got) - _float64(want)) <= atol + rtol * size).all())


def largest_difference(want: np.ndarray, got: np.ndarray) -> tuple[float, int]:
    """The largest absolute difference (inf where only one is finite) and its flat index."""
    if want.size == 0:
        return 0.0, 0
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(_float64(got) - _float64(want)).reshape(-1)
    if not np.isfinite(difference).all():
        same = ((got == want) | (np.isnan(got) & np.isnan(want))).reshape(-1)
        difference = np.where(same, 0.0, np.where(np.isnan(difference), np.inf, difference))
    at = int(difference.argmax())
    return float(difference[at]), at


def _float64(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64, copy=False)
