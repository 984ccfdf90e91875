"""How `time_ms` of lesson 11 is exercised: on a pretended clock, with calls of known length, on pretended devices.

Nothing here waits for real time, so the answer is exact however busy the machine is.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import inspect
import threading
import time
import timeit
import types
from collections.abc import Callable, Iterator
from functools import _lru_cache_wrapper
from os import urandom
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import torch
from numpy import array

from grader.worker.originals import BUILTINS
from grader.worker.probes import Run

from .probes import ACCELERATOR, simulated_devices

__builtins__ = BUILTINS

UNIT_S = 731e-6  # the durations of a plan are multiples of this; no whole number of milliseconds, to show rounding
READING_S = 2e-7  # that the pretended clock moves on with each reading
# Of one attempt each, for clocks that cannot be pretended.
REAL_UNITS_S = (35e-6, 35e-6, 140e-6, 140e-6, 560e-6, 560e-6)
_CLOCKS = ("perf_counter", "monotonic", "time", "process_time", "thread_time")
_PROCESSOR = {getattr(time, f"CLOCK_{name}_CPUTIME_ID", None) for name in ("PROCESS", "THREAD")} - {None}


class Work:
    """What a measurement measures: `fn`, whose calls take planned times, at once or on a pretended device.

    On a pretended device a call only queues the work; whoever waits for the device waits until it is done.
    Time itself is pretended, too: it stands still but for the work and a little for each reading of a clock.
    `real` lets it pass, for answers that read a clock which cannot be pretended.
    How long the plan's unit is, is drawn when fn is called first: before, nobody can know the length of a call.
    """

    def __init__(self, plan: tuple[float, ...], queued: bool, unit_s: float = UNIT_S, real: bool = False) -> None:
        self.plan, self.unit_s = plan, unit_s
        self.queued, self.real = queued, real
        self.calls = self.readings = 0
        self.looks = 0  # readings, and events that are recorded
        self.looked: list[int] = []  # how often before each call
        self.durations: list[float] = []
        self.elapsed = self.done_at = 0.0
        self.cpu_clock = False

    def now(self) -> float:
        return perf_counter() if self.real else self.elapsed

    def fn(self) -> None:
        if not self.calls:
            self.unit_s *= 2 ** (int.from_bytes(urandom(4), "big") / 2**31 - 1)  # from half of it to twice as long
        planned = self.plan[min(self.calls, len(self.plan) - 1)] * self.unit_s
        self.calls += 1
        self.looked.append(self.looks)
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
        while self.real and perf_counter() < then:
            pass

    def read(self, processor: bool = False) -> float:
        """Seconds on the pretended clock."""
        self.readings += 1
        self.looks += 1
        self.cpu_clock |= processor
        self.elapsed += READING_S
        return self.elapsed


def hidden(function: Callable[..., Any], name: str) -> Any:
    """The function as a callable of C's, which shows nothing of what it calls: neither a closure nor a `__self__`."""
    made = _lru_cache_wrapper(function, 0, False, None)
    made.__name__ = name
    return made


def timing(function: Any, run: Run) -> dict[str, Any]:
    """Lets time_ms measure calls of known length.

    args: device. options: plan, the length of each call in units (the warm-up first); kwargs, warmup and repeats
    where they are passed; as_device, True for a torch.device. 'attempts': of each whether it was on a clock of its own, the
    calls of fn, the result, the lengths of the calls, how often it had looked at a clock before each call and in the end,
    and whether at one of the processor's.
    """
    attempts = [_measured(function, run, UNIT_S, real=False)]
    for unit_s in () if attempts[0][-1] else REAL_UNITS_S:  # a clock of its own: let time pass
        attempts.append(_measured(function, run, unit_s, real=True))
        if _near(attempts[-1], run.options.get("kwargs", {}).get("warmup", 3)):
            break
    return {"attempts": [attempt[:-1] for attempt in attempts]}


def _measured(function: Any, run: Run, unit_s: float, real: bool) -> tuple[Any, ...]:
    """What one call of time_ms did, and how often it read a pretended clock."""
    options, (name,) = run.options, run.args
    device, kind, kwargs = torch.device(name), torch.device(name).type, options.get("kwargs", {})
    work = Work(options["plan"], queued=kind != "cpu", unit_s=unit_s, real=real)
    here = ("here" if kind == known else "no build" for known in ("cuda", "mps"))
    with simulated_devices(*here), _led(function, [*_waits(work, kind), *([] if real else _clocks(work))]):
        result = function(hidden(work.fn, "fn"), device if options.get("as_device") else name, **kwargs)
    looks = [*work.looked, work.looks]
    return real, work.calls, result, array(work.durations), array(looks), work.cpu_clock, work.readings


def _near(attempt: tuple[Any, ...], warmup: int) -> bool:
    """Whether another attempt is of no use: the machine was quiet enough for this result, or it is none."""
    try:
        timed = sorted(attempt[3][warmup:].tolist())
        return not timed or 0.8 < float(attempt[2]) / 1e3 / timed[len(timed) // 2] < 1.25
    except (TypeError, ValueError, RuntimeError):
        return True


Replacement = tuple[Any, str, Any]  # owner, name of the attribute, what stands there meanwhile


def _clocks(work: Work) -> list[Replacement]:
    """Every clock of the standard library, led to `work` in this thread; other threads keep the real ones."""
    thread = threading.get_ident()

    def led(read: Callable[..., Any], ticks: float, processor: bool, name: str) -> Callable[..., Any]:
        def reading(*args: Any) -> Any:
            if threading.get_ident() != thread:
                return read(*args)
            start = started.setdefault(args, read(*args))
            return start + type(start)(work.read(processor or bool(_PROCESSOR & set(args))) * ticks)

        started: dict[tuple, Any] = {}
        return hidden(reading, name)

    def sleep(seconds: float) -> None:
        work.until(work.elapsed + seconds) if threading.get_ident() == thread else real_sleep(seconds)

    real_sleep, found = time.sleep, []
    for name in (*_CLOCKS, "clock_gettime"):
        for suffix, ticks in (("", 1), ("_ns", 1e9)):
            if hasattr(time, name + suffix):
                clock = led(getattr(time, name + suffix), ticks, name.startswith(("process", "thread")), name + suffix)
                found.append((time, name + suffix, clock))
    timer = next(clock for _, name, clock in found if name == timeit.default_timer.__name__)
    found += [
        (timeit, "default_timer", timer),
        (time, "sleep", hidden(sleep, "sleep")),
        (datetime, "datetime", _dates(work)),
    ]
    for function in (timeit.Timer.__init__, timeit.timeit, timeit.repeat):
        defaults = tuple(timer if value is timeit.default_timer else value for value in function.__defaults__)
        found.append((function, "__defaults__", defaults))
    return found


def _dates(work: Work) -> type:
    """A datetime.datetime whose now() is the pretended clock's."""
    start = datetime.datetime.now(datetime.UTC)

    def now(cls: Any, tz: Any = None) -> datetime.datetime:
        moment = start + datetime.timedelta(seconds=work.read())
        return moment.astimezone(tz) if tz else moment.replace(tzinfo=None)

    return type(
        "datetime",
        (datetime.datetime,),
        {"now": classmethod(hidden(now, "now")), "utcnow": classmethod(hidden(now, "utcnow"))},
    )


def _waits(work: Work, kind: str) -> list[Replacement]:
    """torch's ways to wait for a device, led to `work`; those of a device that is not here raise."""

    def refuse(message: str, error: type[Exception]) -> Any:
        def raising(*_: Any, **__: Any) -> None:
            raise error(message)

        return raising

    wait, made = hidden(work.wait, "synchronize"), _events(work)
    cuda = wait if kind == "cuda" else refuse("Torch not compiled with CUDA enabled", AssertionError)
    mps = wait if kind == "mps" else refuse("Cannot synchronize MPS: it is not available", RuntimeError)
    either = wait if kind != "cpu" else refuse("Cannot access accelerator device when none is available.", RuntimeError)

    def recorded(event: Any = None) -> Any:
        event = event or made()
        event.record()
        return event

    stream = SimpleNamespace(synchronize=wait, record_event=recorded, query=lambda: False)
    streams, event, nothing = lambda *_: stream, lambda *_, **__: made(), lambda *_, **__: None
    return [
        (torch.cuda, "synchronize", cuda),
        (torch._C, "_cuda_synchronize", cuda),
        (torch.mps, "synchronize", mps),
        (torch._C, "_mps_deviceSynchronize", mps),
        (ACCELERATOR, "synchronize", either),
        (torch._C, "_accelerator_synchronizeDevice", either),
        (torch.cuda, "_lazy_init", nothing),
        (torch.cuda, "device", lambda *_: contextlib.nullcontext()),
        (torch.cuda, "set_device", nothing),
        (torch.cuda, "empty_cache", nothing),
        (torch.mps, "empty_cache", nothing),
        (torch.cuda, "Event", event),
        (torch, "Event", event),
        (torch.mps, "Event", event),
        (torch.mps.event, "Event", event),
        (torch.cuda, "current_stream", streams),
        (torch.cuda, "default_stream", streams),
        (ACCELERATOR, "current_stream", streams),
    ]


@contextlib.contextmanager
def _led(function: Any, replacements: list[Replacement]) -> Iterator[None]:
    """Puts the replacements in place, also where the learner's cells bound the replaced by a name of their own."""
    missing = object()
    with contextlib.ExitStack() as stack:
        originals = [
            getattr(owner, name, missing) for owner, name, _ in replacements
        ]  # kept: ids are of living objects
        by_id = {id(old): new for old, (_, _, new) in zip(originals, replacements, strict=True) if callable(old)}
        for put, old in list(_bound(function, by_id)):
            stack.callback(put, old)
            put(by_id[id(old)])
        for (owner, name, new), old in zip(replacements, originals, strict=True):
            stack.callback(delattr, owner, name) if old is missing else stack.callback(setattr, owner, name, old)
            setattr(owner, name, new)
        yield


def _bound(function: Any, by_id: dict[int, Any]) -> Iterator[tuple[Callable[[Any], None], Any]]:
    """(how to put something else there, what is there) for globals, closures, defaults, dictionaries, lists and static methods."""
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
            elif isinstance(value, (types.FunctionType, dict, list, type)):
                todo.append(value)


def _places(item: Any, namespace: dict[str, Any]) -> Iterator[tuple[Callable[[Any], None], Any]]:
    if isinstance(item, (dict, list)) and (item is namespace or len(item) <= 100):
        pairs = item.items() if isinstance(item, dict) else enumerate(item)
        for key, value in list(pairs):
            yield functools.partial(item.__setitem__, key), value
    elif isinstance(item, type) and item.__module__ == namespace.get("__name__"):  # a class of the learner's own
        for name, value in list(vars(item).items()):
            if isinstance(value, staticmethod):
                yield lambda new, name=name: setattr(item, name, staticmethod(new)), value.__func__
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


def _events(work: Work) -> type:
    """A pretended device's events: each is the moment at which the queue reaches it, kept out of sight."""
    moments: dict[Any, float] = {}

    def record(event: Any, *_: Any) -> None:
        work.looks += 1
        moments[event] = max(work.now(), work.done_at)

    def synchronize(event: Any, *_: Any) -> None:
        work.until(moments.get(event, 0.0))

    def query(event: Any) -> bool:
        return work.now() >= moments.get(event, 0.0)

    def elapsed_time(event: Any, end: Any) -> float:
        work.readings += 1
        if not (query(event) and query(end)):
            raise RuntimeError("device not ready: an event has not happened yet")
        return (moments.get(end, 0.0) - moments.get(event, 0.0)) * 1e3

    methods = {
        "record": record,
        "synchronize": synchronize,
        "wait": synchronize,
        "query": query,
        "elapsed_time": elapsed_time,
    }
    return type("Event", (), {name: hidden(method, name) for name, method in methods.items()})
