"""Lesson 19: what follows from what its probes saw of ranks, of what they called, and of what they kept."""

from collections.abc import Mapping

import numpy as np

from grader.course.declare import Case, Tensor
from grader.course.readings import ContractError, flag, numbers, overlap
from grader.worker.values import Part

Parts = Mapping[str, Part]
OUTPUT, CALLS, ENDED = "output of rank {}", "calls of {} by each rank", "every rank comes to its end"
SHARED = "a shard shares memory with the whole weight"
MOST_CALLS = 16  # as in probes.py
GATHERED, HOARDED = "a tensor holds keys of more than one chunk", "chunks are kept after they were passed on"


def shard(case: Case, parts: Parts) -> dict[str, Part]:
    """The two shards, and whether they are views of the weights."""
    given, back = (numbers(parts[name]).reshape(-1, 2) for name in ("given", "back"))
    return {"result": parts["result"], SHARED: flag(any(overlap(one, other) for one in given for other in back))}


def heads(case: Case, parts: Parts) -> dict[str, Part]:
    """Every rank's output, and how often it called all_reduce."""
    return _ranks(case, parts, "all_reduce", case.args[0])


def ring(case: Case, parts: Parts) -> dict[str, Part]:
    """Every rank's output, how often it called exchange, and whether it kept to chunks."""
    found = _ranks(case, parts, "exchange", case.args[0][0])
    _, _, held, gathered, late, sent = numbers(parts["ranks"], (6, len(case.args[0])))
    found[HOARDED] = flag((held > 1).any() or (sent > 1).any() or late.any())
    if case.options.get("chunked"):
        found[GATHERED] = flag(gathered.any())
    return found


def miscounted(name: str, wanted: int, parts: Mapping[str, np.ndarray]) -> str | None:
    """For a property: where some rank did not call a collective `wanted` times, who called it how often."""
    ended, calls = bool(parts[ENDED]), parts[CALLS.format(name)].astype(int).tolist()
    if ended and all(number == wanted for number in calls):
        return None
    said = (
        f"{_counted(name, calls)}; with {len(calls)} rank{'s' if len(calls) > 1 else ''} it should be {_times(wanted)}."
    )
    if ended:
        return said
    if max(calls) > MOST_CALLS:
        return f"a rank called {name} without end and was stopped: {said}"
    return f"ranks wait for one another forever: {said}"


def _counted(name: str, calls: list[int]) -> str:
    """'rank 0 called exchange once, ranks 1 and 2 called it twice'."""
    groups: dict[int, list[str]] = {}
    for rank, number in enumerate(calls):
        groups.setdefault(number, []).append(str(rank))
    said = []
    for number, ranks in groups.items():
        who = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(ranks[:-1])} and {ranks[-1]}"
        what = "it" if said else name
        said.append(f"{who} called {what} {_times(number)}" if number else f"{who} never called {what}")
    return ", ".join(said)


def _times(number: int) -> str:
    return ("never", "once", "twice")[number] if number < 3 else f"{number} times"


def _ranks(case: Case, parts: Parts, name: str, like: Tensor) -> dict[str, Part]:
    """The outputs, and how often each rank called a collective. like: what an output has the shape of.

    Where a rank did not come to its end, the properties tell why (see `miscounted`); zeros stand for the outputs that are missing.
    """
    calls, returned, *_ = numbers(parts["ranks"]).reshape(-1, len(case.args[1]))
    found = {OUTPUT.format(rank): parts[OUTPUT.format(rank)] for rank in range(len(calls))}
    for rank in np.flatnonzero(~returned.astype(bool)):
        found[OUTPUT.format(rank)] = Part("tensor", np.zeros(like.array.shape, np.float32), "float32")
    found |= {CALLS.format(name): Part("tensor", calls.astype(np.int64), "int64"), ENDED: flag(returned.all())}
    if case.stage == "extremes" and not returned.all():  # no property is asked there
        raise ContractError(
            f"{_counted(name, calls.astype(int).tolist())}, and ranks did not come to their end.".capitalize()
        )
    return found
