"""How the answers of lesson 12 are exercised: with pretended devices, on the clock, and with the operator watched."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from . import ContractError, Run, build, gradients, parameter

UNIT_S = 35e-6  # the durations of a plan are multiples of this; the shortest must dwarf a call of Python
ATTEMPTS = 8  # of one measurement, until nothing else on the machine came in between
RIGHT = "the median, in milliseconds"
NEAR = math.log(1.25)  # how far a reading may be from what it is taken for


def pick(function: Any, run: Run) -> dict[str, Any]:
    """Calls pick_device() while torch says what the case pretends.

    options: cuda and mps, each 'no build', 'build' (torch has it, the machine does not) or 'here'; gpus, their number.
    """
    options = run.options
    with pretended(options["cuda"], options["mps"], options.get("gpus", 1)):
        result = function()
    if not isinstance(result, torch.device):
        raise ContractError(f"A {type(result).__name__} came back; a torch.device was asked for.")
    return {"device type": result.type}


@contextlib.contextmanager
def pretended(cuda: str, mps: str, gpus: int = 1) -> Iterator[None]:
    """torch's answers about devices, as on a machine with those; functions imported by name obey it, too."""
    built = {"cuda": cuda != "no build", "mps": mps != "no build"}
    here = {"cuda": cuda == "here", "mps": mps == "here"}
    count = gpus if here["cuda"] else 0
    first = next((name for name in ("cuda", "mps") if built[name]), None)
    first = next((name for name in ("cuda", "mps") if here[name]), first)

    def current(check_available: bool = False) -> torch.device | None:
        return torch.device(first) if first and (here[first] or not check_available) else None

    answers = [
        (torch.cuda, "is_available", here["cuda"]), (torch.cuda, "device_count", count),
        (torch.cuda, "current_device", 0), (torch.cuda, "_is_compiled", built["cuda"]),
        (torch.cuda, "_nvml_based_avail", False), (torch._C, "_cuda_getDeviceCount", count),
        (torch.backends.cuda, "is_built", built["cuda"]), (torch.backends.mps, "is_available", here["mps"]),
        (torch.backends.mps, "is_built", built["mps"]), (torch._C, "_mps_is_available", here["mps"]),
        (torch, "has_mps", built["mps"]), (torch.accelerator, "is_available", any(here.values())),
        (torch.accelerator, "device_count", count or int(here["mps"])),
    ]  # fmt: skip
    by_name = torch.backends.mps.is_available  # keeps its answer, so it is asked anew here and afterwards
    with contextlib.ExitStack() as stack:
        for owner, name, answer in answers:
            stack.enter_context(mock.patch.object(owner, name, lambda *_, answer=answer: answer, create=True))
        if hasattr(torch.mps, "is_available"):
            stack.enter_context(mock.patch.object(torch.mps, "is_available", lambda: here["mps"]))
        stack.enter_context(mock.patch.object(torch.accelerator, "current_accelerator", current))
        forget = getattr(by_name, "cache_clear", lambda: None)
        forget()
        stack.callback(forget)
        yield


class Work:
    """What a measurement measures: `fn`, whose calls take planned times, at once or on a pretended device.

    On a pretended device a call only queues the work; whoever waits for the device waits until it is done.
    """

    def __init__(self, plan: tuple[float, ...], queued: bool) -> None:
        self.plan = [duration * UNIT_S for duration in plan]
        self.queued = queued
        self.calls = 0
        self.durations: list[float] = []  # as they really were
        self.done_at = 0.0
        self.late_s = 0.0
        self.cpu_clock = False

    def fn(self) -> None:
        planned = self.plan[min(self.calls, len(self.plan) - 1)]
        self.calls += 1
        start = time.perf_counter()
        if self.queued:
            self.done_at = max(start, self.done_at) + planned
            self.durations.append(planned)
            return
        self._spin(start + planned)
        self.durations.append(time.perf_counter() - start)

    def wait(self, *_: Any, **__: Any) -> None:
        """Stands in for synchronize()."""
        self._spin(self.done_at)

    def _spin(self, until: float) -> None:
        now = time.perf_counter()
        if now >= until:
            return
        while now < until:
            now = time.perf_counter()
        self.late_s = max(self.late_s, now - until)

    def cpu_time(self, read: Any) -> Any:
        def reading() -> Any:
            self.cpu_clock = True
            return read()

        return reading


def timing(function: Any, run: Run) -> dict[str, Any]:
    """Lets time_ms measure calls of known length and says which number it returned.

    args: device. options: plan, the length of each call in units (the warm-up first); kwargs, warmup and repeats
    where they are passed; as_device, True for a torch.device. Parts: 'calls of fn', 'what is returned'.
    A measurement that the machine disturbed is repeated, and what is no median must show itself twice.
    """
    (name,) = run.args
    device = torch.device(name) if run.options.get("as_device") else name
    kind = torch.device(name).type
    kwargs = dict(run.options.get("kwargs", {}))
    warmup, repeats = kwargs.get("warmup", 3), kwargs.get("repeats", 10)
    seen: list[dict[str, Any]] = []
    for _ in range(ATTEMPTS):
        work = Work(run.options["plan"], queued=kind != "cpu")
        with pretended(*("here" if kind == name else "no build" for name in ("cuda", "mps"))), _waiting(work, kind):
            result = function(work.fn, device, **kwargs)
        reading, counted = _number(result), work.calls == warmup + repeats
        said = _taken_for(reading, work, warmup) if counted else "not looked at"
        seen.append({"calls of fn": work.calls, "what is returned": said})
        undisturbed = work.late_s < 0.2 * UNIT_S
        if not counted or undisturbed and (said == RIGHT or seen[:-1].count(seen[-1])):
            break
    return seen[-1]


@contextlib.contextmanager
def _waiting(work: Work, kind: str) -> Iterator[None]:
    """torch's ways to wait for a device, led to `work`; those of a device that is not here raise."""

    def refuse(message: str, error: type[Exception]) -> Any:
        def raising(*_: Any, **__: Any) -> None:
            raise error(message)

        return raising

    cuda = work.wait if kind == "cuda" else refuse("Torch not compiled with CUDA enabled", AssertionError)
    mps = work.wait if kind == "mps" else refuse("Cannot synchronize MPS: it is not available", RuntimeError)
    any_device = work.wait if kind != "cpu" else refuse(
        "Cannot access accelerator device when none is available.", RuntimeError)  # fmt: skip
    stream = SimpleNamespace(synchronize=work.wait, record_event=lambda event=None: _recorded(work, event), query=lambda: False)
    event = lambda *_, **__: _Event(work)
    replaced = [
        (torch.cuda, "synchronize", cuda), (torch._C, "_cuda_synchronize", cuda), (torch.mps, "synchronize", mps),
        (torch._C, "_mps_deviceSynchronize", mps), (torch.accelerator, "synchronize", any_device),
        (torch._C, "_accelerator_synchronizeDevice", any_device), (torch.cuda, "_lazy_init", lambda: None),
        (torch.cuda, "device", lambda *_: contextlib.nullcontext()), (torch.cuda, "Event", event), (torch, "Event", event),
        (torch.mps, "Event", event), (torch.mps.event, "Event", event), (torch.cuda, "current_stream", lambda *_: stream),
        (torch.cuda, "default_stream", lambda *_: stream), (torch.accelerator, "current_stream", lambda *_: stream),
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        for owner, name, new in replaced:
            stack.enter_context(mock.patch.object(owner, name, new, create=True))
        for name in ("process_time", "process_time_ns", "thread_time", "thread_time_ns"):
            if hasattr(time, name):
                stack.enter_context(mock.patch.object(time, name, work.cpu_time(getattr(time, name))))
        yield


class _Event:
    """A pretended device's event: the moment at which the queue reaches it."""

    def __init__(self, work: Work) -> None:
        self.work, self.at = work, 0.0

    def record(self, *_: Any) -> None:
        self.at = max(time.perf_counter(), self.work.done_at)

    def synchronize(self) -> None:
        self.work._spin(self.at)

    wait = synchronize

    def query(self) -> bool:
        return time.perf_counter() >= self.at

    def elapsed_time(self, end: _Event) -> float:
        if not (self.query() and end.query()):
            raise RuntimeError("device not ready: an event has not happened yet")
        return (end.at - self.at) * 1e3


def _recorded(work: Work, event: _Event | None) -> _Event:
    event = event or _Event(work)
    event.record()
    return event


def _number(result: Any) -> float:
    numeric = isinstance(result, (int, float, np.ndarray, np.number, torch.Tensor)) and not isinstance(result, bool)
    if not numeric or getattr(result, "shape", ()) != ():
        raise ContractError(f"A {type(result).__name__} came back; one number of milliseconds was asked for.")
    return float(result)


def _taken_for(reading: float, work: Work, warmup: int) -> str:
    """Which quantity, in which unit, a reading is. The median comes first, so it wins where several agree."""
    if work.cpu_clock:
        return "processor time"
    every, timed = work.durations, work.durations[warmup:]
    if not reading > 0:
        return "no time at all" if reading == 0 else "no positive number"
    polluted = [timed[0] + sum(every[:warmup]), *timed[1:]] if work.queued else timed
    ordered = sorted(timed)
    middle = len(ordered) // 2
    ranges = {
        "the median": (ordered[(len(ordered) - 1) // 2], ordered[middle]), "the mean": sum(timed) / len(timed),
        "the median, the warm-up counted": float(np.median(every)), "the shortest": ordered[0],
        "the longest": ordered[-1], "the total": sum(timed), "the first reading": timed[0],
        "the middle reading, unsorted": timed[middle],
        "the median, the rest of the warm-up in the first reading": float(np.median(polluted)),
    }  # fmt: skip
    best, words = math.inf, "another number"
    for name, value in ranges.items():
        low, high = value if isinstance(value, tuple) else (value, value)
        units = _UNITS if name == "the median" else _UNITS[:1]
        for unit, scale in units:
            gap = max(math.log(low * scale / reading), math.log(reading / (high * scale)), 0.0)
            if gap < min(best, NEAR):
                best, words = gap, f"{name}, in {unit}"
    if words == "another number" and work.queued and reading < 0.5 * ordered[0] * 1e3:
        return "the time of a launch: nobody waited for the device"
    return words


_UNITS = (("milliseconds", 1e3), ("seconds", 1.0), ("microseconds", 1e6), ("nanoseconds", 1e9))


class _Watched(TorchFunctionMode):
    """Notes each call of the operator: its shapes and what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[dict[str, Any]] = []
        self.inside = False

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "").partition(".")[0] != "scaled_dot_product_attention" or self.inside:
            return func(*args, **kwargs)
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        self.calls.append({**dict(zip(names, args, strict=False)), **kwargs})
        self.inside = True
        try:
            return func(*args, **kwargs)
        finally:
            self.inside = False


class _Squares(TorchDispatchMode):
    """Notes whether an operation outside the operator makes a tensor that ends in (T, T)."""

    def __init__(self, t: int, watched: _Watched) -> None:
        super().__init__()
        self.t, self.watched, self.found = t, watched, False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if self.t > 1 and not self.watched.inside:
            for item in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(item, torch.Tensor) and tuple(item.shape[-2:]) == (self.t, self.t):
                    self.found = True
        return result


def fast(cls: Any, run: Run) -> dict[str, Any]:
    """Builds the module and runs it with F.scaled_dot_product_attention watched.

    args: x (B, T, d_model). options: as for `module` (init, init_kwargs, state, linear, no_bias, dtype, mode, gradients);
    shorter, a length for a second call; autocast, True for bfloat16. Parts: 'result', 'second call', gradients,
    'state_dict', 'call of the operator', 'shapes of query, key and value', 'is_causal', 'attn_mask', '(T, T) tensors of its own'.
    """
    options, (x,) = run.options, run.args
    made = build(cls, options)
    made.train(options.get("mode", "eval") == "train")
    watched = _Watched()
    squares = _Squares(x.shape[1], watched)
    with torch.autocast("cpu", torch.bfloat16, enabled=bool(options.get("autocast"))):
        with watched, squares:
            result = made(x)
        parts = {"result": result}
        if options.get("shorter"):
            parts["second call"] = made(x[:, : options["shorter"]])
    if options.get("gradients"):
        parts |= gradients(result, {"x": x} | {name: parameter(made, name) for name in options["state"]})
    parts["state_dict"] = ", ".join(sorted(made.state_dict()))
    return parts | _said(watched.calls, x.shape[1]) | {"(T, T) tensors of its own": "some" if squares.found else "none"}


def _said(calls: list[dict[str, Any]], t: int) -> dict[str, Any]:
    """What the operator was told, in words; is_causal says nothing for a single token."""
    parts: dict[str, Any] = {"call of the operator": {0: "never", 1: "once"}.get(len(calls), f"{len(calls)} times")}
    if len(calls) != 1:
        return parts
    (call,) = calls
    shapes = [tuple(call[name].shape) if name in call else "missing" for name in ("query", "key", "value")]
    parts["shapes of query, key and value"] = ", ".join(map(str, shapes))
    parts["is_causal"] = "True" if t == 1 else str(bool(call.get("is_causal", False)))
    parts["attn_mask"] = "None" if call.get("attn_mask") is None else "a mask"
    return parts
