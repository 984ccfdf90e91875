"""Lesson 18: what follows from what its probes saw of what an answer left of its inputs."""

from collections.abc import Collection, Mapping

import numpy as np

from grader.course.declare import Case
from grader.course.readings import flag, numbers
from grader.worker.values import Part

Parts = Mapping[str, Part]


def contributions(case: Case, parts: Parts) -> dict[str, Part]:
    """The result, and whether the module, x and torch are as they were."""
    return {
        "result": parts["result"],
        "the module's weights are as they were": flag(_same(parts["weights"], case.options["state"].values())),
        "the module's parameters are the same objects as before": flag(_same_objects(parts)),
        "the module's parameters require gradients, as before": flag(numbers(parts["trainable"]).all()),
        "x requires a gradient after the call": parts["x requires a gradient"],
        "a hook is left on the module": flag(numbers(parts["hooks"])),
        "the module is in eval mode": flag(not numbers(parts["training"]).any()),
        "torch records gradients after the call": parts["recording"],
    }


def rollout(case: Case, parts: Parts) -> dict[str, Part]:
    """The result, and whether the list and its tensors are as they were."""
    layers = [tensor.array for tensor in case.args[0]]
    same = _same_objects(parts) and _same(parts["layers"], layers)
    return {"result": parts["result"], "the list and its weights are as they were": flag(same)}


def _same_objects(parts: Parts) -> bool:
    return np.array_equal(numbers(parts["before"]), numbers(parts["after"]))


def _same(left: Part, given: Collection[np.ndarray]) -> bool:
    """Whether tensors hold the float32 numbers that they were given, bit by bit."""
    wanted = [np.asarray(array, np.float32).tobytes() for array in given]
    return [numbers(part).tobytes() for part in left.items] == wanted
