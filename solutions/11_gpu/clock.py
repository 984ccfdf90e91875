"""Lesson 11, `time_ms`: which quantity a stopwatch read, from what its probe saw of it."""

import math
import statistics
from collections.abc import Mapping

import numpy as np

from grader.course.declare import Case
from grader.course.readings import ContractError, numbers
from grader.worker.values import Part

RIGHT = "the median, in milliseconds"
UNSEEN = "a number that no clock gave: none was read right before and right after each call"
_NOT_LOOKED_AT = "not looked at"
_UNITS = (("milliseconds", 1e3), ("seconds", 1.0), ("microseconds", 1e6), ("nanoseconds", 1e9))


def reading(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """The calls of fn and what is returned, of the first attempt that is right, else of the last one."""
    said = [_attempt(case, *attempt.items) for attempt in parts["attempts"].items]
    return next((one for one in said if one["what is returned"].text in (RIGHT, _NOT_LOOKED_AT)), said[-1])


def _attempt(case: Case, *seen: Part) -> dict[str, Part]:
    real, calls, result, lengths, looks, cpu_clock = seen
    kwargs = case.options.get("kwargs", {})
    warmup, count = kwargs.get("warmup", 3), int(numbers(calls, ()))
    value, words = _number(result), _NOT_LOOKED_AT
    if count == warmup + kwargs.get("repeats", 10):
        durations, looked = numbers(lengths, (count,)).tolist(), numbers(looks, (count + 1,))
        queued = not case.args[0].startswith("cpu")
        words = "processor time" if cpu_clock.array else _taken_for(value, durations, warmup, queued, bool(real.array))
        before = looked[warmup - 1] if warmup else 0
        if words == RIGHT and not real.array and not (np.diff(looked[warmup:], prepend=before) > 0).all():
            words = UNSEEN
    return {"calls of fn": calls, "what is returned": Part("text", text=words)}


def _number(result: Part) -> float:
    if result.kind not in ("number", "ndarray", "tensor") or result.shape != () or result.array.dtype.kind == "b":
        raise ContractError(f"A {result.text or result.kind} came back; one number of milliseconds was asked for.")
    return float(result.array)


def _taken_for(reading: float, every: list[float], warmup: int, queued: bool, real: bool) -> str:
    """Which quantity, in which unit, a reading is. The median comes first, so it wins where several agree.

    every: the length of each call in seconds, the warm-up first. queued: on a device. real: measured while time passed.
    """
    timed = every[warmup:]
    if not reading > 0:
        return "no time at all" if reading == 0 else "no positive number"
    polluted = [timed[0] + sum(every[:warmup]), *timed[1:]] if queued else timed
    ordered = sorted(timed)
    middle = len(ordered) // 2
    ranges = {
        "the median": (ordered[(len(ordered) - 1) // 2], ordered[middle]),
        "the mean": sum(timed) / len(timed),
        "the median, the warm-up counted": statistics.median(every),
        "the shortest": ordered[0],
        "the longest": ordered[-1],
        "the total": sum(timed),
        "the first reading": timed[0],
        "the middle reading, unsorted": timed[middle],
        "the median, the rest of the warm-up in the first reading": statistics.median(polluted),
    }
    if len(ordered) > 4:
        ranges["the reading before the median"] = ordered[(len(ordered) - 1) // 2 - 1]
        ranges["the reading after the median"] = ordered[middle + 1]
    best, words = math.log(1.25 if real else 1.02), "another number"
    for name, value in ranges.items():
        low, high = value if isinstance(value, tuple) else (value, value)
        for unit, scale in _UNITS:
            gap = max(math.log(low * scale / reading), math.log(reading / (high * scale)), 0.0)
            if gap < best:
                best, words = gap, f"{name}, in {unit}"
    if words == "another number" and queued and reading < 0.5 * ordered[0] * 1e3:
        return "the time of a launch: the work was not waited for"
    return words
