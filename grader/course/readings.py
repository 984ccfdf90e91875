"""What a candidate showed, as the judge reads it: which inputs it changed, and what follows from what a probe sent.

A probe sends what it saw. What that means is decided here, where no name can be bound to something else by a cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from grader.course.spec import Case, Exercise
from grader.worker.observe import observe
from grader.worker.probes import ContractError
from grader.worker.values import Failure, Observation, Part

__all__ = ["IN_PART", "ContractError", "describe_part", "flag", "inputs", "numbers", "overlap", "with_readings"]

UNNAMED = "unnamed"
IN_PART = "in part"  # a part that a reading adds where a candidate was run in part alone: what it showed is judged, and names no mistake


def inputs(case: Case) -> Mapping[str, Part]:
    """The inputs that can be changed in place, by name, as a candidate gets them."""
    return observe(None, replace(case, probe="answer")).after


def with_readings(exercise: Exercise, case: Case, before: Mapping[str, Part], observation: Observation) -> Observation:
    """The observation with `modified`, and with the parts that the case's `reading` makes of those that came, named as by the exercise.

    before: the case's `inputs`.
    """
    if observation.failure is not None:
        return observation
    modified = tuple(name for name, part in before.items() if not _same(part, observation.after.get(name)))
    try:
        parts = observation.parts if case.reading is None else case.reading(case, observation.parts)
    except ContractError as error:
        failure = Failure("contract", type(error).__name__, str(error))
    except Exception as error:  # a worker may send anything
        sentence = f"What came back cannot be read: {type(error).__name__}: {error}."
        failure = Failure("contract", "ContractError", sentence)
    else:
        return replace(observation, parts=name_parts(exercise.result_names, parts), modified=modified)
    return Observation(failure=failure, calls=observation.calls, digest=observation.digest)


def name_parts(result_names: tuple[str, ...], parts: Mapping[str, Part]) -> dict[str, Part]:
    """The parts, a returned pair taken apart as the exercise names it.

    The first that is another number of things is called UNNAMED.
    """
    flat: dict[str, Part] = {}
    for name, part in parts.items():
        if part.role != "returned":
            flat[name] = part
        elif len(result_names) == 1:
            flat[name if part.of else result_names[0]] = part
        elif len(part.items) != len(result_names):
            flat[name if UNNAMED in flat else UNNAMED] = part
        else:
            call = f" of the {part.of}" if part.of else ""
            for title, item in zip(result_names, part.items, strict=True):
                flat[title + call] = replace(item, role="returned", of=part.of)
    return flat


def flag(value: Any, id: str = "") -> Part:
    """True or False as a part. id: of the mistake that it proves where it alone is not as it should be."""
    return Part("bool", np.array(bool(value)), "bool", text=id, role="flag")


def numbers(part: Part, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """A part's numbers. Raises ContractError where it has none, or another shape than is asked for."""
    if part.array is None or (shape is not None and part.array.shape != shape):
        raise ContractError(
            f"A part of kind {part.kind} and shape {part.shape} came back; expected {shape or 'numbers'}."
        )
    return part.array


def overlap(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two stretches of memory, each the addresses at which it begins and ends, have a byte in common."""
    return bool(first[0] < second[1] and second[0] < first[1])


def describe_part(part: Part) -> str:
    """What a part is that holds no numbers: 'None', "the text 'ab'", 'dict'."""
    if part.kind == "text":
        return f"the text {part.text!r}"
    return "None" if part.kind == "none" else part.text or part.kind


def _same(before: Part, after: Part | None) -> bool:
    """Whether an input was left as it was; another NaN is the same NaN."""
    if after is None or (after.kind, after.dtype, after.shape) != (before.kind, before.dtype, before.shape):
        return False
    if before.array is None or after.array is None or before.array.tobytes() == after.array.tobytes():
        return True
    return np.array_equal(before.array, after.array, equal_nan=before.array.dtype.kind == "f")
