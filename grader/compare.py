"""Compares what was observed with what was expected: type, then shape, then dtype, then numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grader.model import Case, Exercise, Observation, Part

FLOATS = ("float32", "float64")
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
        return f"an object of type {part.text}" if " " not in part.text else f"a {part.text}"
    words = _KINDS[part.kind]
    return f"{words} of shape {part.shape}" if part.kind in ("ndarray", "tensor") else words


def compare(exercise: Exercise, case: Case, expected: dict[str, Part], got: dict[str, Part]) -> list[Problem]:
    """Every difference between a candidate's parts and the reference's, in the order of judging."""
    problems = []
    for name, want in expected.items():
        if name not in got:
            problems.append(Problem("type", name, f"The {name} is missing."))
            continue
        problem = _compare_part(exercise, case, name, want, got[name])
        if problem:
            problems.append(problem)
    order = ("type", "shape", "dtype", "finite", "values")
    return sorted(problems, key=lambda problem: order.index(problem.stage))


def _compare_part(exercise: Exercise, case: Case, name: str, want: Part, got: Part) -> Problem | None:
    if exercise.container in ("answer", "number"):
        want, got = numbers(want), numbers(got)
    if want.array is None or want.kind == "bool":
        return _compare_plain(name, want, got)
    problem = _container(exercise, name, want, got)
    if problem:
        return problem
    if got.shape != want.shape:
        return Problem("shape", name, f"The {name} has shape {got.shape}; {want.shape} was asked for.")
    allowed = case.dtype or exercise.dtype
    if not name.startswith("gradient"):  # autograd gives a gradient its input's type
        problem = _dtype(name, want, got, allowed)
        if problem:
            return problem
    return _numbers(exercise, case, name, want.array, got.array)


def _compare_plain(name: str, want: Part, got: Part) -> Problem | None:
    if want.kind == "sequence":
        same = got.kind == "sequence" and len(got.items) == len(want.items)
        return None if same else Problem("type", name, f"The {name} is {said(got)}; {said(want)} was asked for.")
    if got.kind != want.kind:
        return Problem("type", name, f"The {name} is {said(got)}; {said(want)} was asked for.")
    if want.kind == "bool" and bool(got.array) != bool(want.array):
        return Problem("values", name, f"'{name}' is {bool(got.array)}; {bool(want.array)} was asked for.")
    if want.kind in ("text", "other") and got.text != want.text:
        return Problem("values", name, f"The {name} is {got.text!r}; {want.text!r} was asked for.")
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
            return Problem("type", name, f"No gradient reaches {source}: the graph is cut on the way from it to the result.")
        kinds, words = ("tensor", "ndarray"), "a tensor"
    if got.kind in kinds and got.array is not None:
        return None
    return Problem("type", name, f"The {name} is {said(got)}; {words} was asked for.")


def _dtype(name: str, want: Part, got: Part, allowed: tuple[str, ...]) -> Problem | None:
    if allowed:
        if got.dtype in allowed or (got.kind == "number" and got.array.dtype.kind == "f" and "float64" in allowed):
            return None
        return Problem("dtype", name, f"The {name} is {got.dtype}; {' or '.join(allowed)} was asked for.")
    if want.array.dtype.kind == "b":
        return None if got.dtype == "bool" else Problem("dtype", name, f"The {name} is {got.dtype}; bool was asked for.")
    if got.dtype == "bool":
        return Problem("dtype", name, f"The {name} is bool; numbers were asked for.")
    if got.dtype in ("float16", "bfloat16"):
        return Problem("dtype", name, f"The {name} is {got.dtype}, which is too coarse here; float32 or float64 was asked for.")
    return None


def _numbers(exercise: Exercise, case: Case, name: str, want: np.ndarray, got: np.ndarray) -> Problem | None:
    want64, got64 = _float64(want), _float64(got)
    if not np.isfinite(got64).all() and np.isfinite(want64).all():
        bad = int((~np.isfinite(got64)).sum())
        kinds = " and ".join(word for word, seen in (("NaN", np.isnan(got64)), ("infinite", np.isinf(got64))) if seen.any())
        return Problem("finite", name, f"The {name} has {bad} of {got64.size} entries that are {kinds}.")
    if close(want64, got64, *tolerances(exercise, case)):
        return None
    largest = largest_difference(want64, got64)
    where = "" if want64.ndim == 0 else f" at {tuple(int(i) for i in np.unravel_index(largest[1], want64.shape))}"
    return Problem("values", name, f"The {name} differs from what was expected by up to {largest[0]:.4g}{where}.")


def tolerances(exercise: Exercise, case: Case) -> tuple[float, float]:
    """(rtol, atol) of a case."""
    rtol = exercise.rtol if case.rtol is None else case.rtol
    return rtol, exercise.atol if case.atol is None else case.atol


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
