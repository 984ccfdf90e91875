"""Lesson 06: what follows from what its probes saw of attention with a mask, and of a module that keeps one."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from grader.course.declare import Case
from grader.course.readings import ContractError, flag, numbers
from grader.worker.values import Part

Parts = Mapping[str, Part]


def output_alone(case: Case, parts: Parts) -> dict[str, Part]:
    """The output and the gradients; the weights are left aside, whose dtype is free in half precision."""
    result = parts["result"]
    if result.kind != "sequence" or len(result.items) != 2:
        raise ContractError(f"A {result.text or result.kind} was returned; expected two things: (output, weights).")
    return {"output": result.items[0]} | {name: part for name, part in parts.items() if name != "result"}


def none_is_zero(case: Case, parts: Parts) -> dict[str, Part]:
    """As it came; a gradient may be None where no row sees a key, and is zeros then."""
    shapes = dict(zip(case.names, (tensor.array.shape for tensor in case.args), strict=True))
    return {name: _or_zeros(part, shapes) for name, part in parts.items()}


def _or_zeros(part: Part, shapes: Mapping[str, tuple[int, ...]]) -> Part:
    if part.role != "gradient" or part.kind != "none":
        return part
    return replace(part, kind="ndarray", array=np.zeros(shapes[part.of], np.float32), dtype="float32")


def buffer(case: Case, parts: Parts) -> dict[str, Part]:
    """How a module keeps its mask: as a buffer, outside of state_dict, and on the device that the module is on."""
    buffers = numbers(parts["buffers"]).reshape(-1, 2)
    masks = buffers[buffers[:, 0] >= case.options["max_len"] ** 2]
    return {
        "the mask is a buffer": flag(len(buffers)),
        "a buffer holds the mask for max_len tokens": flag(len(masks)),
        "the mask is saved in state_dict": flag(masks[:, 1].any()),
        "everything follows the module to another device": flag(not parts["behind"].text),
    }
