"""Lesson 19: what follows from what its probes saw of ranks, of what they called, and of what they kept."""

from collections.abc import Mapping

import numpy as np

from grader.course.declare import Case
from grader.course.readings import flag, meet, numbers
from grader.worker.values import Part

Parts = Mapping[str, Part]
CALLS = "calls of {} by each rank"
GATHERED = "a tensor holds keys of more than one chunk"
HOARDED = "more than two chunks are held at once"
SHARED = "what comes back shares memory with the whole weights"


def shard(case: Case, parts: Parts) -> dict[str, Part]:
    """The two shards, and whether they are views of the weights."""
    given, back = (numbers(parts[name]).reshape(-1, 2) for name in ("given", "back"))
    return {"result": parts["result"], SHARED: flag(any(meet(one, other) for one in given for other in back))}


def heads(case: Case, parts: Parts) -> dict[str, Part]:
    """Every rank's output, and how often it called all_reduce."""
    return {**_outputs(parts), CALLS.format("all_reduce"): _tensor(parts["calls"])}


def ring(case: Case, parts: Parts) -> dict[str, Part]:
    """Every rank's output, how often it called exchange, and whether it kept to chunks."""
    gathered = int(numbers(parts["largest"])[0]) >= whole(case)
    return {
        **_outputs(parts),
        CALLS.format("exchange"): _tensor(parts["calls"]),
        GATHERED: flag(gathered),
        HOARDED: flag((numbers(parts["held"]) > 1).any()),
    }


def whole(case: Case) -> int:
    """How many numbers a tensor with all keys of every item and head has at the least: the keys, or a row's scores for each query."""
    b, h, t, d = case.args[1][0].array.shape
    return b * h * len(case.args[1]) * t * min(t, d)


def _outputs(parts: Parts) -> dict[str, Part]:
    return {name: part for name, part in parts.items() if name.startswith("output of rank ")}


def _tensor(part: Part) -> Part:
    return Part("tensor", numbers(part).astype(np.int64), "int64")
