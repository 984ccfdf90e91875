"""How `time_ms` of lesson 12 is exercised: on a pretended clock, with calls of known length, on pretended devices.

Nothing here waits for real time, so the answer is exact however busy the machine is.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import inspect
import math
import threading
import time
import timeit
import types
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from . import ContractError, Run
from .lesson_12 import ACCELERATOR, pretended

UNIT_S = 731e-6  # the durations of a plan are multiples of this; no whole number of milliseconds, to show rounding
READING_S = 2e-7  # that the pretended clock moves on with each reading
REAL_UNITS_S = (35e-6, 35e-6, 140e-6, 140e-6, 560e-6)  # of one attempt each, for clocks that cannot be pretended
RIGHT = "the median, in milliseconds"
_CLOCKS = ("perf_counter", "monotonic", "time", "process_time", "thread_time")
_PROCESSOR = {getattr(time, f"CLOCK_{name}_CPUTIME_ID", None) for name in ("PROCESS", "THREAD")} - {None}


class Work:
    """What a measurement measures: `fn`, whose calls take planned times, at once or on a pretended device.

    On a pretended device a call only queues the work; whoever waits for the device waits until it is done.
    Time itself is pretended, too: it stands still but for the work and a little for each reading of a clock.
    `real` lets it pass, for answers that read a clock which cannot be pretended.
    """

    def __init__(self, plan: tuple[float, ...], queued: bool, unit_s: float = UNIT_S, real: bool = False) -> None:
        self.plan = [duration * unit_s for duration in plan]
        self.queued, self.real = queued, real
        self.calls = self.readings = 0
        self.durations: list[float] = []
        self.elapsed = self.done_at = 0.0
        self.cpu_clock = False

    def now(self) -> float:
        return time.perf_counter() if self.real else self.elapsed

    def fn(self) -> None:
        planned = self.plan[min(self.calls, len(self.plan) - 1)]
        self.calls += 1
        start = self.now()
        self.done_at = max(start, self.done_at) + planned
        if not self.queued:
            self.wait()
        self.durations.append(planned if self.queued else self.now() - start)

    def wait(self, *_: Any, **__: Any) -> None:
        """Stands in for synchronize()."""
        self.until(self.done_at)

    def until(self, then: float) -> None:
        self.elapsed = max(self.elapsed, then)
        while self.real and time.perf_counter() < then:
            pass

    def read(self, processor: bool = False) -> float:
        """Seconds on the pretended clock."""
        self.readings += 1
        self.cpu_clock |= processor
        self.elapsed += READING_S
        return self.elapsed


def timing(function: Any, run: Run) -> dict[str, Any]:
    """Lets time_ms measure calls of known length and says which number it returned.

    args: device. options: plan, the length of each call in units (the warm-up first); kwargs, warmup and repeats
    where they are passed; as_device, True for a torch.device. Parts: 'calls of fn', 'what is returned'.
    """
    parts, pretended_clock_was_read = _measured(function, run, UNIT_S, real=False)
    for unit_s in () if pretended_clock_was_read else REAL_UNITS_S:  # a clock of its own: let time pass
        parts, _ = _measured(function, run, unit_s, real=True)
        if parts["what is returned"] in (RIGHT, "not looked at"):
            break
    return parts


def _measured(function: Any, run: Run, unit_s: float, real: bool) -> tuple[dict[str, Any], bool]:
    """What one call of time_ms did, and whether it read a pretended clock."""
    options, (name,) = run.options, run.args
    device, kind, kwargs = torch.device(name), torch.device(name).type, options.get("kwargs", {})
    work = Work(options["plan"], queued=kind != "cpu", unit_s=unit_s, real=real)
    here = ("here" if kind == known else "no build" for known in ("cuda", "mps"))
    with pretended(*here), _led(function, [*_waits(work, kind), *([] if real else _clocks(work))]):
        result = function(work.fn, device if options.get("as_device") else name, **kwargs)
    reading, warmup = _number(result), kwargs.get("warmup", 3)
    counted = work.calls == warmup + kwargs.get("repeats", 10)
    said = _taken_for(reading, work, warmup) if counted else "not looked at"
    return {"calls of fn": work.calls, "what is returned": said}, work.readings > 0


Replacement = tuple[Any, str, Any]  # owner, name of the attribute, what stands there meanwhile


def _clocks(work: Work) -> list[Replacement]:
    """Every clock of the standard library, led to `work` in this thread; other threads keep the real ones."""
    thread = threading.get_ident()

    def led(read: Callable[..., Any], ticks: float, processor: bool) -> Callable[..., Any]:
        def reading(*args: Any) -> Any:
            if threading.get_ident() != thread:
                return read(*args)
            start = started.setdefault(args, read(*args))
            return start + type(start)(work.read(processor or bool(_PROCESSOR & set(args))) * ticks)

        started: dict[tuple, Any] = {}
        return reading

    def sleep(seconds: float) -> None:
        work.until(work.elapsed + seconds) if threading.get_ident() == thread else real_sleep(seconds)

    real_sleep, found = time.sleep, []
    for name in (*_CLOCKS, "clock_gettime"):
        for suffix, ticks in (("", 1), ("_ns", 1e9)):
            if hasattr(time, name + suffix):
                clock = led(getattr(time, name + suffix), ticks, name.startswith(("process", "thread")))
                found.append((time, name + suffix, clock))
    timer = next(clock for _, name, clock in found if name == timeit.default_timer.__name__)
    found += [(timeit, "default_timer", timer), (time, "sleep", sleep), (datetime, "datetime", _dates(work))]
    for function in (timeit.Timer.__init__, timeit.timeit, timeit.repeat):
        defaults = tuple(timer if value is timeit.default_timer else value for value in function.__defaults__)
        found.append((function, "__defaults__", defaults))
    return found


def _dates(work: Work) -> type:
    """A datetime.datetime whose now() is the pretended clock's."""
    start = datetime.datetime.now(datetime.UTC)

    class Pretended(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime.datetime:
            moment = start + datetime.timedelta(seconds=work.read())
            return moment.astimezone(tz) if tz else moment.replace(tzinfo=None)

        @classmethod
        def utcnow(cls) -> datetime.datetime:
            return cls.now()

    return Pretended


def _waits(work: Work, kind: str) -> list[Replacement]:
    """torch's ways to wait for a device, led to `work`; those of a device that is not here raise."""

    def refuse(message: str, error: type[Exception]) -> Any:
        def raising(*_: Any, **__: Any) -> None:
            raise error(message)

        return raising

    cuda = work.wait if kind == "cuda" else refuse("Torch not compiled with CUDA enabled", AssertionError)
    mps = work.wait if kind == "mps" else refuse("Cannot synchronize MPS: it is not available", RuntimeError)
    either = work.wait if kind != "cpu" else refuse(
        "Cannot access accelerator device when none is available.", RuntimeError)  # fmt: skip
    stream = SimpleNamespace(synchronize=work.wait, record_event=lambda event=None: _recorded(work, event), query=lambda: False)
    streams, event, nothing = lambda *_: stream, lambda *_, **__: _Event(work), lambda *_, **__: None
    return [
        (torch.cuda, "synchronize", cuda), (torch._C, "_cuda_synchronize", cuda), (torch.mps, "synchronize", mps),
        (torch._C, "_mps_deviceSynchronize", mps), (ACCELERATOR, "synchronize", either),
        (torch._C, "_accelerator_synchronizeDevice", either), (torch.cuda, "_lazy_init", nothing),
        (torch.cuda, "device", lambda *_: contextlib.nullcontext()), (torch.cuda, "set_device", nothing),
        (torch.cuda, "empty_cache", nothing), (torch.mps, "empty_cache", nothing), (torch.cuda, "Event", event),
        (torch, "Event", event), (torch.mps, "Event", event), (torch.mps.event, "Event", event),
        (torch.cuda, "current_stream", streams), (torch.cuda, "default_stream", streams),
        (ACCELERATOR, "current_stream", streams),
    ]  # fmt: skip


@contextlib.contextmanager
def _led(function: Any, replacements: list[Replacement]) -> Iterator[None]:
    """Puts the replacements in place, also where the learner's cells bound the replaced by a name of their own."""
    missing = object()
    with contextlib.ExitStack() as stack:
        originals = [getattr(owner, name, missing) for owner, name, _ in replacements]  # kept: ids are of living objects
        by_id = {id(old): new for old, (_, _, new) in zip(originals, replacements, strict=True) if callable(old)}
        for put, old in list(_bound(function, by_id)):
            stack.callback(put, old)
            put(by_id[id(old)])
        for (owner, name, new), old in zip(replacements, originals, strict=True):
            stack.callback(delattr, owner, name) if old is missing else stack.callback(setattr, owner, name, old)
            setattr(owner, name, new)
        yield


def _bound(function: Any, by_id: dict[int, Any]) -> Iterator[tuple[Callable[[Any], None], Any]]:
    """(how to put something else there, what is there) for globals, closures, defaults, dictionaries and lists."""
    first = inspect.unwrap(getattr(function, "func", function))
    namespace = getattr(first, "__globals__", None) or getattr(type(first).__call__, "__globals__", {})
    todo, seen = [namespace, first, function], set()
    while todo:
        item = todo.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        for put, value in _places(item, namespace):
            if id(value) in by_id:
                yield put, value
            elif isinstance(value, (types.FunctionType, dict, list)):
                todo.append(value)


def _places(item: Any, namespace: dict[str, Any]) -> Iterator[tuple[Callable[[Any], None], Any]]:
    if isinstance(item, (dict, list)) and (item is namespace or len(item) <= 100):
        pairs = item.items() if isinstance(item, dict) else enumerate(item)
        for key, value in list(pairs):
            yield functools.partial(item.__setitem__, key), value
    elif isinstance(item, types.FunctionType) and (item.__globals__ is namespace or item.__closure__):
        for cell in item.__closure__ or ():
            with contextlib.suppress(ValueError):  # an empty cell
                yield functools.partial(setattr, cell, "cell_contents"), cell.cell_contents
        yield lambda _: None, item.__kwdefaults__ or {}
        if item.__globals__ is namespace:
            for i, value in enumerate(item.__defaults__ or ()):
                yield functools.partial(_put_default, item, i), value


def _put_default(function: types.FunctionType, i: int, value: Any) -> None:
    defaults = list(function.__defaults__ or ())
    defaults[i] = value
    function.__defaults__ = tuple(defaults)


class _Event:
    """A pretended device's event: the moment at which the queue reaches it."""

    def __init__(self, work: Work) -> None:
        self.work, self.at = work, 0.0

    def record(self, *_: Any) -> None:
        self.at = max(self.work.now(), self.work.done_at)

    def synchronize(self) -> None:
        self.work.until(self.at)

    wait = synchronize

    def query(self) -> bool:
        return self.work.now() >= self.at

    def elapsed_time(self, end: _Event) -> float:
        self.work.readings += 1
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
    if len(ordered) > 4:
        ranges["the reading before the median"] = ordered[(len(ordered) - 1) // 2 - 1]
        ranges["the reading after the median"] = ordered[middle + 1]
    best, words = math.log(1.25 if work.real else 1.02), "another number"
    for name, value in ranges.items():
        low, high = value if isinstance(value, tuple) else (value, value)
        for unit, scale in _UNITS:
            gap = max(math.log(low * scale / reading), math.log(reading / (high * scale)), 0.0)
            if gap < best:
                best, words = gap, f"{name}, in {unit}"
    if words == "another number" and work.queued and reading < 0.5 * ordered[0] * 1e3:
        return "the time of a launch: nobody waited for the device"
    return words


_UNITS = (("milliseconds", 1e3), ("seconds", 1.0), ("microseconds", 1e6), ("nanoseconds", 1e9))
