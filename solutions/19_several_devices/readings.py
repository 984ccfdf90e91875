"""Lesson 19: what follows from what its probes saw of ranks, of what they called, and of what they kept."""

from collections.abc import Iterable, Mapping

import numpy as np

from grader.course.declare import Case
from grader.course.readings import ContractError, flag, meet, numbers
from grader.worker.values import Part

Parts = Mapping[str, Part]
OUTPUT, CALLS = "output of rank {}", "calls of {} by each rank"
SHARED = "a shard shares memory with the whole weight"
MOST_CALLS = 16  # as in probes.py
GATHERED, HOARDED = "a tensor holds keys of more than one chunk", "chunks are kept after they were passed on"


def shard(case: Case, parts: Parts) -> dict[str, Part]:
    """The two shards, and whether they are views of the weights."""
    given, back = (numbers(parts[name]).reshape(-1, 2) for name in ("given", "back"))
    return {"result": parts["result"], SHARED: flag(any(meet(one, other) for one in given for other in back))}


def heads(case: Case, parts: Parts) -> dict[str, Part]:
    """Every rank's output, and how often it called all_reduce."""
    return _ranks(parts, "all_reduce", "every rank calls it exactly once")


def ring(case: Case, parts: Parts) -> dict[str, Part]:
    """Every rank's output, how often it called exchange, and whether it kept to chunks. Option `chunked`: sizes by which a tensor of
    all keys is told from what one chunk needs."""
    found = _ranks(parts, "exchange", f"every rank calls it world_size − 1 times, here {_times(len(case.args[0]) - 1)}")
    found[HOARDED] = flag((numbers(parts["held"]) > 1).any())
    if case.options.get("chunked"):
        found[GATHERED] = flag(int(numbers(parts["largest"])[0]) >= all_keys(case))
    return found


def all_keys(case: Case) -> int:
    """How many numbers a tensor of all keys has at the least: the keys themselves, or a chunk's scores for all of them."""
    b, h, t, d = case.args[1][0].array.shape
    return b * h * len(case.args[1]) * t * min(t, d)


def counted(name: str, calls: Iterable[int]) -> str:
    """'rank 0 called exchange once, ranks 1 and 2 called it twice'."""
    groups: dict[int, list[str]] = {}
    for rank, number in enumerate(calls):
        groups.setdefault(int(number), []).append(str(rank))
    said = []
    for number, ranks in groups.items():
        who = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(ranks[:-1])} and {ranks[-1]}"
        what = "it" if said else name
        said.append(f"{who} called {what} {_times(number)}" if number else f"{who} never called {what}")
    return ", ".join(said)


def _times(number: int) -> str:
    return ("never", "once", "twice")[number] if number < 3 else f"{number} times"


def _ranks(parts: Parts, name: str, law: str) -> dict[str, Part]:
    """The outputs and the number of calls. Raises ContractError where a rank did not come to its end."""
    calls, returned = (numbers(parts[of]).ravel() for of in ("calls", "returned"))
    if not returned.all():
        said = f"{counted(name, calls)}; {law}."
        if calls.max() > MOST_CALLS:
            raise ContractError(f"A rank called {name} without end and was stopped: {said}")
        raise ContractError(f"Ranks wait for one another forever: {said}")
    outputs = {of: part for of, part in parts.items() if of.startswith(OUTPUT.format(""))}
    return {**outputs, CALLS.format(name): Part("tensor", calls.astype(np.int64), "int64")}
