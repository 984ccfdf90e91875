"""Lesson 12, functions about devices: cases and mistakes of `pick_device`, `attention_flops` and `time_ms`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

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
        order = [("cuda", cuda), ("mps", mps)]
        if "GP1" in bugs:
            order.reverse()
        name = next((name for name, here in order if here), "cpu")
        name = "cuda" if "GP5" in bugs else "cpu" if "GP7" in bugs else name
        return name if "GP6" in bugs else torch.device(name)

    return pick_device


PICK_MISTAKES = mistakes(pick_with, "GP1", "GP2", "GP3", "GP4", "GP5", "GP6", "GP7", "GP8")


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
        total = (2 if "GP11" in bugs else 4) * (1 if "GP13" in bugs else batch) * heads * pairs * width
        if "GP19" in bugs:
            total += 2 * batch * heads * (t_q + t_k + t_k + t_q) * num_heads * d_head * d_head
        if "GP18 alone" in bugs and causal:
            return total * (t_q + 1) / (2 * t_k)
        if "GP18" in bugs and causal:
            return total * (t_q + 1) / (2 * t_q)
        if "GP20" in bugs and causal:
            return total // 4
        return total // 2 if causal and "GP17" not in bugs else total

    return attention_flops


FLOPS_MISTAKES = mistakes(
    flops_with, "GP11", "GP12", "GP13", "GP14", "GP15", "GP16", "GP17", "GP18", "GP19", "GP20"
) + (Mistake("GP18", flops_with("GP18 alone")),)


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
    yield draw("model", "the size of a model's layer", 8, 16, 2048, 2048, 64)
    yield draw("model, causal", "the size of a model's layer, causal", 8, 16, 2048, 2048, 64, causal=True)
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
        if kind == "cuda" or "GP31" in bugs:
            torch.cuda.synchronize(device)
        elif kind == "mps" and "GP32" not in bugs:
            torch.mps.synchronize()

    clock = (lambda: time.process_time()) if "GP33" in bugs else time.perf_counter

    def time_ms(fn, device, warmup=3, repeats=10):
        for _ in range(0 if "GP21" in bugs else warmup):
            fn()
        seconds = []
        for i in range(repeats):
            if "GP26" not in bugs and not ("GP28" in bugs and i == 0):
                wait(device)
            if "GP35" in bugs:
                fn()
            start = clock()
            fn()
            if "GP26" not in bugs:
                wait(device)
            seconds.append(clock() - start)
        unit = 1 if "GP24" in bugs else 1e6 if "GP25" in bugs else 1e3
        return unit * _summary(seconds, bugs)

    return _warm_up_counted(wait) if "GP27" in bugs else time_ms


def _warm_up_counted(wait: Any) -> Any:
    def time_ms(fn, device, warmup=3, repeats=10):
        seconds = []
        for _ in range(warmup + repeats):
            wait(device)
            start = time.perf_counter()
            fn()
            wait(device)
            seconds.append(time.perf_counter() - start)
        return 1e3 * statistics.median(seconds)

    return time_ms


def _summary(seconds: list[float], bugs: tuple[str, ...]) -> float:
    if "GP22" in bugs:
        return sum(seconds) / len(seconds)
    if "GP23" in bugs:
        return min(seconds)
    if "GP34" in bugs:
        return seconds[len(seconds) // 2]
    return statistics.median(seconds)


TIME_MISTAKES = mistakes(
    time_with, "GP21", "GP22", "GP23", "GP24", "GP25", "GP26", "GP27", "GP28", "GP29", "GP30", "GP31", "GP32", "GP33",
    "GP34", "GP35",
)  # fmt: skip

# Lengths of the calls in units of the probe. In each plan the median, its neighbours in order of size, the mean, the shortest,
# the first, the middle one unsorted and the median with the warm-up counted are all different, so that a reading says where
# it came from.
_SEVEN = (6, 6, 2, 60, 20, 25, 4, 1, 3)
_QUEUED = (6, 6, 2, 20, 60, 25, 4, 1, 3)
_TEN = (6, 6, 6, 2, 1, 4, 40, 1.5, 9, 20, 30, 4.4, 1)
_FOUR = (12, 12, 1, 1.6, 40, 2)


def time_cases(rng: np.random.Generator) -> Iterator[Case]:
    seven = {"warmup": 2, "repeats": 7}

    def draw(key, title, device, plan, kwargs=seven, as_device=False):
        options = {"plan": plan, "kwargs": kwargs, "as_device": as_device}
        return Case(key, title, (device,), probe="lesson_12_clock.timing", options=options, names=("device",))

    yield draw("cpu", "on the CPU, seven readings of calls of known length", "cpu", _SEVEN)
    yield draw("cuda", "on a pretended CUDA GPU, which works while Python goes on", "cuda", _QUEUED)
    yield draw("mps", "on a pretended Apple GPU", "mps", _QUEUED)
    yield draw("cpu device", "device as torch.device('cpu')", "cpu", _SEVEN, as_device=True)
    yield draw("cuda device", "device as torch.device('cuda')", "cuda", _QUEUED, as_device=True)
    yield draw("mps device", "device as torch.device('mps')", "mps", _QUEUED, as_device=True)
    yield draw("defaults", "warmup and repeats left to their defaults", "cpu", _TEN, {})
    yield draw("cuda numbered", "the device 'cuda:0'", "cuda:0", _QUEUED)
    yield draw("cuda numbered device", "device as torch.device('cuda', 0)", "cuda:0", _QUEUED, as_device=True)
    yield draw("even", "four readings: either middle one or their mean", "cpu", _FOUR, {"warmup": 2, "repeats": 4})
    yield draw("mps numbered", "the device 'mps:0'", "mps:0", _QUEUED)
    yield draw("single", "one reading and no warm-up", "cpu", (3,), {"warmup": 0, "repeats": 1})
    yield draw("seen-again", "seven readings on the CPU again, other lengths", "cpu", (7, 7, 3, 70, 25, 31, 5, 1.4, 3.6))
