"""Lesson 12, functions about devices: cases and mistakes of `pick_device`, `attention_flops` and `time_ms`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from grader.lessons.lesson_12_clock import reading
from grader.lessons.switch import mistakes
from grader.model import Case, Mistake


def pick_with(*bugs: str) -> Any:
    def pick_device():
        cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
        if "GP3" in bugs:
            cuda = torch.backends.cuda.is_built()
        if "GP4" in bugs:
            mps = torch.backends.mps.is_built()
        if "GP8" in bugs:
            mps = True
        if "GP2" in bugs:
            mps = False
        if "GP9" in bugs:
            cuda = False
        order = [("cuda", cuda), ("mps", mps)]
        if "GP1" in bugs:
            order.reverse()
        name = next((name for name, here in order if here), "cpu")
        name = "cuda" if "GP5" in bugs else "cpu" if "GP7" in bugs else name
        return name if "GP6" in bugs else torch.device(name)

    return pick_device


PICK_MISTAKES = mistakes(pick_with, "GP1", "GP2", "GP3", "GP4", "GP5", "GP6", "GP7", "GP8", "GP9")


def pick_cases(rng: np.random.Generator) -> Iterator[Case]:
    for key, title, cuda, mps, gpus in (
        ("nothing", "a laptop without either", "no build", "no build", 0),
        ("cuda", "a machine with one CUDA GPU", "here", "no build", 1),
        ("mps", "a machine with Apple's GPU", "no build", "here", 0),
        ("both", "both at once", "here", "here", 1),
        ("no driver", "a CUDA build of torch, but no GPU", "build", "no build", 0),
        ("old mac", "torch built for Apple's GPU, which is not available", "no build", "build", 0),
        ("eight", "a machine with eight CUDA GPUs", "here", "no build", 8),
        ("both again", "both at once, two CUDA GPUs", "here", "here", 2),
        ("both, many", "both at once, eight CUDA GPUs", "here", "here", 8),
        ("mps, CUDA build", "Apple's GPU and a CUDA build without a GPU", "build", "here", 0),
        ("neither", "built for both, neither available", "build", "build", 0),
        ("cuda, Apple build", "a CUDA GPU; torch built for Apple's, too", "here", "build", 2),
        ("seen-again", "Apple's GPU once more", "no build", "here", 0),
        ("old mac again", "built for Apple's GPU, not available, once more", "no build", "build", 0),
    ):
        yield Case(key, title, probe="lesson_12.pick", options={"cuda": cuda, "mps": mps, "gpus": gpus})


def flops_with(*bugs: str) -> Any:
    def attention_flops(batch, num_heads, t_q, t_k, d_head, causal=False):
        pairs = t_q * t_q if "GP14" in bugs else t_k * t_k if "GP15" in bugs else t_q * t_k
        heads = 1 if "GP12" in bugs else num_heads
        width = num_heads * d_head if "GP16" in bugs else d_head
        factor = 1 if "GP36" in bugs else 2 if "GP11" in bugs else 4
        total = factor * (1 if "GP13" in bugs else batch) * heads * pairs * width
        if "GP39" in bugs:
            per_score = next((int(bug) for bug in bugs if bug.isdigit()), 5)
            total += per_score * batch * num_heads * t_q * t_k
        projections = 2 * batch * _projected(bugs, t_q, t_k) * (num_heads * d_head) ** 2 if "GP19" in bugs else 0
        if "not halved" not in bugs:
            total, projections = total + projections, 0
        if "GP18" in bugs and causal:
            return total * _visible(bugs, t_q, t_k) / (t_q * t_k)
        if "GP20" in bugs and causal:
            return total // 4
        halved = not causal if "GP37" in bugs else "GP38" in bugs or (causal and "GP17" not in bugs)
        half = total / 2 if "exactly" in bugs else total // 2
        return (half if halved else total) + projections

    return attention_flops


def _visible(bugs: tuple[str, ...], t_q: int, t_k: int) -> float:
    """The pairs of query and key below the diagonal, the diagonal included, in one of the ways to count them."""
    if "row by row" in bugs:
        return sum(min(i + 1, t_k) for i in range(t_q))
    if "from the end" in bugs:
        return sum(max(i + 1 + t_k - t_q, 0) for i in range(t_q))
    return t_q * (t_q + 1) / 2 if "of queries" in bugs else t_k * (t_q + 1) / 2


def _projected(bugs: tuple[str, ...], t_q: int, t_k: int) -> int:
    """How many tokens are projected, each counted once for each of the projections."""
    return 4 * t_q if "all of queries" in bugs else 3 * t_q if "without the last" in bugs else 2 * t_q + 2 * t_k


FLOPS_MISTAKES = (
    *mistakes(flops_with, "GP11", "GP12", "GP13", "GP14", "GP15", "GP16", "GP17", "GP18", "GP19", "GP20", "GP36", "GP37", "GP38"),
    *(Mistake("GP18", flops_with("GP18", way)) for way in ("of queries", "row by row", "from the end")),
    *(Mistake("GP19", flops_with("GP19", way)) for way in ("not halved", "all of queries", "without the last")),
    *(Mistake("GP19", flops_with("GP19", way, "not halved")) for way in ("all of queries", "without the last")),
    Mistake("GP36", flops_with("GP36", "exactly")),  # with `/` for `//`, which an odd number tells apart
    *(Mistake("GP39", flops_with("GP39", per_score, *way)) for per_score in "123456" for way in ((), ("exactly",))),
)  # fmt: skip


def flops_cases(rng: np.random.Generator) -> Iterator[Case]:
    def draw(key, title, *sizes, **kwargs):
        return Case(key, title, sizes, kwargs, names=("batch", "num_heads", "t_q", "t_k", "d_head"))

    yield draw("table", "the three tokens of lesson 01", 1, 1, 3, 3, 2)
    yield draw("table, causal", "the three tokens, causal", 1, 1, 3, 3, 2, causal=True)
    yield draw("heads", "a batch of two, three heads, four queries, five keys", 2, 3, 4, 5, 6)
    yield draw("heads, causal", "the same, causal", 2, 3, 4, 5, 6, causal=True)
    yield draw("cross", "more queries than keys", 3, 2, 7, 4, 5, causal=False)
    yield draw("step", "one query and a cache of nine keys", 2, 4, 1, 9, 8)
    yield draw("odd", "odd sizes, causal", 3, 5, 7, 7, 9, causal=True)
    yield draw("layer", "four heads on 64 tokens", 1, 4, 64, 64, 32)
    yield draw("layer, causal", "four heads on 64 tokens, causal", 1, 4, 64, 64, 32, causal=True)
    drawn = [int(size) for size in rng.permutation(np.arange(2, 9))[:5]]
    yield draw("drawn", "sizes drawn at random", *drawn)
    yield draw("drawn, causal", "sizes drawn at random, causal", *drawn[::-1], causal=True)
    yield draw("seen-again", "a batch of two again, other sizes", 2, 3, 8, 3, 4)


def time_with(*bugs: str) -> Any:
    """The mistakes of a stopwatch; with none of them a right one."""

    def wait(device: Any) -> None:
        kind = device.type if "GP29" in bugs else torch.device(device).type
        if "GP30" in bugs:
            kind = device if isinstance(device, str) else "cpu"
        if (kind == "cuda" and "GP63" not in bugs) or "GP31" in bugs:
            torch.cuda.synchronize(device)
        elif kind == "mps" and "GP32" not in bugs:
            torch.mps.synchronize()

    unit = 1 if "GP24" in bugs else 1e9 if "in nanoseconds" in bugs else 1e6 if "GP25" in bugs else 1e3
    clock = (lambda: time.process_time()) if "GP33" in bugs else time.perf_counter

    def time_ms(fn, device, warmup=3, repeats=10):
        for _ in range(0 if "GP21" in bugs else warmup):
            fn()
        seconds = []
        for i in range(repeats - warmup if "GP62" in bugs else repeats):
            if "GP26" not in bugs and not ("GP28" in bugs and i == 0):
                wait(device)
            if "GP35" in bugs:
                fn()
            start = clock()
            fn()
            if "GP26" not in bugs:
                wait(device)
            seconds.append(clock() - start)
        return unit * _summary(seconds, bugs)

    def counted(fn, device, warmup=3, repeats=10):
        seconds = []
        for _ in range(warmup + repeats):
            wait(device)
            start = clock()
            fn()
            wait(device)
            seconds.append(clock() - start)
        return unit * _summary(seconds, bugs)

    return counted if "GP27" in bugs else time_ms


def _summary(seconds: list[float], bugs: tuple[str, ...]) -> float:
    if "GP22" in bugs:
        return sum(seconds) / len(seconds)
    if "GP23" in bugs:
        return min(seconds)
    if "GP61" in bugs:
        return max(seconds)
    if "in order" in bugs:
        return sorted(seconds)[len(seconds) // 2]
    if "GP34" in bugs:
        return seconds[len(seconds) // 2]
    return statistics.median(seconds)


TIME_MISTAKES = mistakes(
    time_with, "GP21", "GP22", "GP23", "GP24", "GP25", "GP26", "GP27", "GP28", "GP29", "GP30", "GP31", "GP32", "GP33",
    "GP34", "GP35", "GP61", "GP62", "GP63",
) + (Mistake("GP25", time_with("GP25", "in nanoseconds")), Mistake("GP62", time_with("GP62", "in order")))  # fmt: skip

# Lengths of the calls in units of the probe. In each plan the median, its neighbours in order of size, the mean, the shortest,
# the first, the middle one unsorted and the median with the warm-up counted are all different, so that a reading says where
# it came from.
_SEVEN = (6, 6, 2, 60, 20, 25, 4, 1, 3)
_QUEUED = (6, 6, 2, 20, 60, 25, 4, 1, 3)
_TEN = (6, 6, 6, 2, 1, 4, 40, 1.5, 9, 20, 30, 4.4, 1)
_FOUR = (12, 12, 12, 12, 12, 1, 1.6, 40, 2)  # more of a warm-up than readings: taken off them, it leaves none


def time_cases(rng: np.random.Generator) -> Iterator[Case]:
    seven = {"warmup": 2, "repeats": 7}

    def draw(key, title, device, plan, kwargs=seven, as_device=False):
        options = {"plan": plan, "kwargs": kwargs, "as_device": as_device}
        return Case(key, title, (device,), probe="lesson_12_clock.timing", options=options, names=("device",), reading=reading)

    yield draw("cpu", "on the CPU, seven readings of calls of known length", "cpu", _SEVEN)
    yield draw("cuda", "on a pretended CUDA GPU, which works while Python goes on", "cuda", _QUEUED)
    yield draw("mps", "on a pretended Apple GPU", "mps", _QUEUED)
    yield draw("cpu device", "device as torch.device('cpu')", "cpu", _SEVEN, as_device=True)
    yield draw("cuda device", "device as torch.device('cuda')", "cuda", _QUEUED, as_device=True)
    yield draw("mps device", "device as torch.device('mps')", "mps", _QUEUED, as_device=True)
    yield draw("defaults", "warmup and repeats left to their defaults", "cpu", _TEN, {})
    yield draw("cuda numbered", "the device 'cuda:0'", "cuda:0", _QUEUED)
    yield draw("cuda numbered device", "device as torch.device('cuda', 0)", "cuda:0", _QUEUED, as_device=True)
    yield draw("even", "four readings: either middle one or their mean", "cpu", _FOUR, {"warmup": 5, "repeats": 4})
    yield draw("mps numbered", "the device 'mps:0'", "mps:0", _QUEUED)
    yield draw("single", "one reading and no warm-up", "cpu", (3,), {"warmup": 0, "repeats": 1})
    yield draw("seen-again", "seven readings on the CPU again, other lengths", "cpu", (7, 7, 3, 70, 25, 31, 5, 1.4, 3.6))
