"""What a verdict tells of a run: the experiment in a line, the tables, a failure in the learner's own terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grader.course.spec import Case, Exercise
from grader.judging import exceptions
from grader.judging.compare import numbers
from grader.judging.crop import cut
from grader.judging.verdict import Table
from grader.worker.values import Failure, Part, Tensor


def experiment(exercise: Exercise, case: Case) -> str:
    """The case as a call: 'Scores of 1000: softmax_rows(scores (3, 3) float64)'; '' for an answer."""
    if exercise.kind == "answer":
        return ""
    shapes = ", ".join(_said_input(name, value) for name, value in _named(case))
    call = f"{exercise.name}({shapes})" if shapes else f"{exercise.name}()"
    return f"{case.title[:1].upper()}{case.title[1:]}: {call}"


def wanted(parts: Mapping[str, Part]) -> tuple[str, ...]:
    """A line with the shapes that were to come; none where nothing has a shape."""
    said = ", ".join(f"{name} {part.shape}" for name, part in parts.items() if part.shape is not None)
    return (f"Wanted: {said}.",) if said else ()


def by_name(case: Case) -> tuple[str, ...]:
    """A line with the parameters' names, where inputs are passed by them."""
    if "by_name" not in case.options:
        return ()
    return (f"Here the inputs are passed by name; the parameters are to be called {', '.join(case.options['by_name'])}, in this order.",)


def inputs(case: Case) -> tuple[Table, ...]:
    """The arrays that went in, where they are small enough to be shown."""
    return cut(_inputs(case))


def tables(case: Case, want: Mapping[str, Part], have: Mapping[str, Part], name: str = "") -> tuple[Table, ...]:
    """The inputs, and of one part what was expected, what came, and the difference.

    name: the part; where none of that name was wanted, the first that differs.
    """
    if name not in want:
        name = next((key for key in want if key in have and _unequal(want[key], have[key])), next(iter(want)))
    expected, got = want[name], numbers(have[name]) if name in have else None
    shown = _inputs(case)
    if name in have and have[name].kind != expected.kind and _same_numbers(expected, got):
        return cut(shown)  # a list where an array was asked for: the numbers are not what is at fault
    if expected.array is not None:
        shown.append(Table(name, expected.array, "expected", expected.dtype))
    if got is not None and got.array is not None:
        shown.append(Table(name, got.array, "got", got.dtype))
        if expected.array is not None and got.shape == expected.shape and got.array.dtype.kind != "b":
            with np.errstate(invalid="ignore"):
                difference = got.array.astype(np.float64) - expected.array.astype(np.float64)
            shown.append(Table(name, difference, "difference"))
    return cut(shown)


def failure(exercise: Exercise, failed: Failure) -> tuple[str, tuple[str, ...]]:
    """(headline, details) of a failure, in the learner's terms: their line, the shapes at hand there."""
    name = exercise.name
    if failed.kind == "timeout":
        headline = failed.message or f"{name} did not finish in the time an exercise has."
        return headline, ("Look for a loop that never ends, or for work that grows with every call.",)
    if failed.kind == "memory":
        return failed.message or f"{name} asked for more memory than an exercise has.", (
            "Look for an array that is far larger than the inputs, or a list that keeps growing.",
        )
    if failed.kind == "died":
        return failed.message or f"The process ended while {name} ran.", ()
    if failed.kind == "invalid":
        return f"{name} gave no valid answer: {failed.message or 'what came back cannot be read'}", ()
    if failed.kind == "contract":
        return failed.message, ()
    details = []
    if failed.line:
        at = f" (line {failed.line_number} of its cell)" if failed.line_number else ""
        owner = failed.function.partition(".")[0]
        within = f" in `{owner}`" if owner not in ("", name) else ""
        details.append(f"Your line{within}{at}: {failed.line}")
    if failed.shapes:
        details.append("At hand there: " + ", ".join(f"{name} {said}" for name, said in failed.shapes) + ".")
    said = exceptions.on(failed.type, failed.message)
    if said:
        details.append(said)
    message = f": {failed.message}" if failed.message else ""
    return f"{name} raised {failed.type}{message}", tuple(details)


def _inputs(case: Case) -> list[Table]:
    if not case.show:
        return []
    arrays = ((name, getattr(value, "array", value)) for name, value in _named(case))
    return [Table(name, array, "input") for name, array in arrays if isinstance(array, np.ndarray)]


def _named(case: Case) -> list[tuple[str, Any]]:
    names = [*case.names, *(f"argument {i + 1}" for i in range(len(case.names), len(case.args)))]
    return [*zip(names, case.args, strict=False), *case.kwargs.items()]


def _said_input(name: str, value: Any) -> str:
    array = value.array if isinstance(value, Tensor) else value
    if isinstance(array, np.ndarray):
        dtype = value.dtype if isinstance(value, Tensor) and value.dtype else array.dtype.name
        return f"{name} {array.shape} {dtype}"
    return f"{name}={value!r}" if isinstance(value, (int, float, str, bool, type(None))) else name


def _same_numbers(want: Part, have: Part | None) -> bool:
    if have is None or want.array is None or have.array is None or want.shape != have.shape:
        return False
    return np.allclose(want.array, have.array, rtol=1e-6, atol=1e-9, equal_nan=True)


def _unequal(want: Part, have: Part) -> bool:
    have = numbers(have)
    if want.array is None or have.array is None or want.shape != have.shape:
        return True
    return not np.allclose(want.array, have.array, rtol=1e-4, atol=1e-5, equal_nan=True)
