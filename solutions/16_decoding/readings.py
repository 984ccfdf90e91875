"""Lesson 16: what follows from what its probes saw of a cache and of a loop that uses one."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate

import numpy as np

from grader.course.declare import Case
from grader.course.readings import ContractError, flag, numbers, overlap
from grader.worker.values import Part

Parts = Mapping[str, Part]
Array = np.ndarray
LENGTHS = "len(cache) at first and after each append"
FED = "tokens in each call of the model"
IN_TURN = "what the model sees is the prompt, then the new tokens in turn"


def appends(case: Case, parts: Parts) -> dict[str, Part]:
    """What a cache gave after each append, what its length was, and in whose memory all that lies.

    An append of more tokens than there was room for should have been refused, and counts nothing.
    """
    room, kept = case.args[2], []
    for chunk in case.options["chunks"]:
        if sum(kept) + chunk <= room:
            kept.append(chunk)
    found = {}
    for i, length in enumerate(accumulate(kept)):
        for name in ("keys", "values"):
            part = parts.get(f"{name} {i}")
            if part is None:
                taken = length - kept[i]
                raise ContractError(
                    f"A chunk of {kept[i]} was refused, and only {taken} of {room} places should have been taken by then."
                )
            found[f"{name} after {length} token{'s' if length > 1 else ''}"] = _written(part, length, room)
    taken, given, held, own = (numbers(parts[name]).reshape(-1, 2) for name in ("taken", "given", "held", "kept"))
    refused = numbers(parts["refused"]).ravel()
    wanted = [len(kept), len(case.options["chunks"]) - len(kept)]
    if case.options.get("refused"):
        found["more than max_len tokens are refused with ValueError"] = flag(refused.tolist() == wanted)
    return {
        **found,
        LENGTHS: _tensor(numbers(parts["lengths"]).ravel()),
        "what append returns shares memory with what it was given": flag(
            any(overlap(one, other) for one in held for other in given)
        ),
        "what the cache keeps shares memory with what it was given": flag(
            any(overlap(one, other) for one in own for other in given)
        ),
        "what append returns is memory of this cache, no copy of it and no other cache's": flag(
            all(_inside(one, taken) or _inside(one, own) for one in held[-2:])
        ),
        "what append returns lies in memory that was allocated when the cache was made": flag(
            all(_inside(one, taken) for one in held)
        ),
        "an append after the first allocates memory anew": flag(
            any(
                not _inside(one, taken) and not overlap(one, before)
                for before, one in zip(held, held[2:], strict=False)
            )
        ),
    }


def memory_devices(case: Case, parts: Parts) -> dict[str, Part]:
    """Whether the memory for max_len tokens was allocated on the device that was asked for.

    parts: where ('device size device size …', of every tensor that there was once the cache was made); held (the same, of those
        that the cache holds).
    """
    b, h, most, d = case.args
    device, needed = case.options["device"], b * h * most * d
    there = max((size for place, size in _sizes(parts["where"]) if place == device), default=0) >= needed
    elsewhere = sum(size for place, size in _sizes(parts["held"]) if place != device)
    return {
        "the memory is allocated on the device that was asked for, when the cache is made": flag(there),
        "keys or values lie on another device": flag(elsewhere >= needed),
    }


def _sizes(part: Part) -> list[tuple[str, int]]:
    words = part.text.split()
    return [(device, int(size)) for device, size in zip(words[::2], words[1::2], strict=True)]


def generation(case: Case, parts: Parts) -> dict[str, Part]:
    """How a model with a cache was used by a loop, and what the loop wrote."""
    calls = numbers(parts["calls"]).reshape(-1, 3).astype(np.int64)  # of each: which cache, rows, tokens
    t, new = case.args[0].array.shape[1], case.args[1]
    fed = calls[:, 2].tolist()
    spare = [t] if new == 0 else [1]  # the last new token may be seen, and a prompt that nothing follows
    if len(fed) == new + 1 and fed[-1:] == spare:
        fed = fed[:-1]
    counts = np.zeros(t + new + 2, np.int64)  # of one length, so that another number of calls is told in words
    counts[: len(fed)] = fed[: len(counts)]
    seen = [numbers(part) for part in parts["seen"].items][: len(fed)]
    left, before = numbers(parts["flags"]).ravel(), case.options["table"].tolist()
    return {
        FED: _tensor(counts),
        IN_TURN: flag(_in_turn(case, seen, parts["result"])),
        "one cache serves all calls": flag(len(set(calls[:, 0].tolist())) <= 1),
        "a graph was built": flag(numbers(parts["graphs"]).any()),
        "the model's mode is as it was": flag((left == case.options["training"]).all()),
        "torch records gradients after the call": parts["recording"],
        "the model's parameters are as they were": flag(
            numbers(parts["trainable"]).all() and [numbers(part).tolist() for part in parts["tables"].items] == [before]
        ),
        "result": parts["result"],
    }


def _in_turn(case: Case, seen: list[Array], result: Part) -> bool:
    """Whether the ids of the calls are, one after the other, those of the prompt and those that were written."""
    prompt, new = case.args[0].array, case.args[1]
    if not seen or result.array is None or result.array.ndim != 2:
        return True  # something else is told
    written = result.array[:, prompt.shape[1] :] if result.array.shape[1] > new else result.array
    text = np.concatenate([prompt, written], axis=1) if len(written) == len(prompt) else prompt
    in_all = np.concatenate(seen, axis=1) if len({len(each) for each in seen}) == 1 else seen[0]
    return np.array_equal(in_all, text[:, : in_all.shape[1]])


def _inside(one: Array, taken: Array) -> bool:
    return bool(((taken[:, 0] <= one[0]) & (one[1] <= taken[:, 1])).any())


def _written(part: Part, length: int, room: int) -> Part:
    """The part; where all of a memory came back, with 0 where nothing has been written: torch.empty leaves anything there."""
    array = part.array
    if array is None or array.ndim != 4 or not length < array.shape[2] == room:
        return part
    return replace(part, array=np.concatenate([array[:, :, :length], np.zeros_like(array[:, :, length:])], axis=2))


def _tensor(array: Array) -> Part:
    return Part("tensor", array.astype(np.int64), "int64")
