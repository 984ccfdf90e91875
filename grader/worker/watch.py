"""Which ready-made operations ran while a learner's object was exercised, and how large a tensor they made.

What is looked for is named in operations.py. Three observers in every thread, because each alone
can be walked around: a profile hook (Python and C functions), torch's function mode, and torch's dispatch mode
(operators reached through `torch.ops` or a captured reference). Code that switches one off is noted as well, and so
is code that leaves other hooks or modes on top than it found. This is against shortcuts: code that is determined to
reach into its own process can blind whatever lives there.
"""

from __future__ import annotations

import contextlib
import operator
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from .operations import BLINDING, GROUPS, LIBRARIES, LIBRARY_FILES, SIZED, STARTING, einsum_size
from .originals import BUILTINS
from .torch_modes import LIBRARY_PREFIXES, Watch, enter_modes, own_line as own_line, stacks, watch
from .values import CallLog

__builtins__ = BUILTINS  # type: ignore[assignment]

_CHECKS = frozenset({"is_tensor", "__instancecheck__", "__subclasscheck__"})  # whether it is a tensor; computes nothing
UNWATCHED = "unwatched"  # noted where the watched code switches the watching off
# Taken before any learner's code runs: it may put something else in their place.
_setprofile, _getprofile, _gettrace, _local = sys.setprofile, sys.getprofile, sys.gettrace, threading.local()
_BOOTSTRAPS = {name: vars(threading.Thread)[name] for name in ("_bootstrap", "_bootstrap_inner")}


def _is_library(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in LIBRARIES


@cache
def _names(groups: tuple[str, ...]) -> frozenset[str]:
    return frozenset().union(*(GROUPS[group] for group in groups if group in GROUPS))


class watching:
    """Records the watched operations that run inside the block, in order.

    groups: keys of GROUPS; with none, nothing is watched. log: a list to fill; by default a new one. The block gets it:
    names, for each einsum 'einsum ADDS LARGEST', its multiply-adds and the elements of its largest operand, and
    UNWATCHED where the code inside switches the watching off. With a group of SIZED, `log.largest` is filled as well, and
    `log.operations` counts.
    """

    def __init__(self, groups: tuple[str, ...], log: CallLog | None = None) -> None:
        self._names = _names(groups)
        self._sized = not SIZED.isdisjoint(groups)
        self._log = CallLog() if log is None else log

    def __enter__(self) -> CallLog:
        if self._names:
            self._hooks = _getprofile(), threading.getprofile(), _gettrace(), threading.gettrace()
            # First: making their classes finds what is elementary.
            self._modes = enter_modes()
            self._outer_watch = dict(vars(watch))
            vars(watch).update(vars(Watch(self._names, self._log, self._sized)))
            self._heights = [stack.height() for stack in stacks] if self._modes else []
            threading.setprofile(_look_in_thread)
            _setprofile(_look)  # last: entering torch's modes is itself a call into torch
        return self._log

    def __exit__(self, *error: object) -> None:
        if not self._names:
            return
        profile, thread_profile, trace, thread_trace = self._hooks
        is_unchanged = (
            _getprofile() is _look
            and threading.getprofile() is _look_in_thread
            and threading.gettrace() is thread_trace
        )
        is_unchanged &= trace is not None or _gettrace() is None  # a debugger that was there may change its own
        # Before Python 3.12 cProfile's hook is no function, and is put back by its own method.
        enable = None if callable(profile) else getattr(profile, "enable", None)
        _setprofile(profile if callable(profile) else None)
        if enable is not None:
            enable()
        threading.setprofile(thread_profile)
        vars(watch).update(self._outer_watch)
        for stack, mode, height in zip(stacks, self._modes, self._heights, strict=False):
            is_unchanged &= stack.restore(mode, height)
        if not is_unchanged:
            self._log.append(UNWATCHED)
        for mode in reversed(self._modes):
            mode.__exit__(None, None, None)


@contextmanager
def pause_watching() -> Iterator[None]:
    """Leaves aside what computes no answer from inputs: a module's making and the backward pass, with hundreds of calls each."""
    if not watch.names:
        yield
        return
    from torch.utils._python_dispatch import _disable_current_modes

    hook = _getprofile()
    _setprofile(None)
    try:
        with _disable_current_modes():
            yield
    finally:
        _setprofile(hook)


def follow_threads() -> None:
    """From now on every thread is watched from its start: one that a cell has started may work for an exercise later."""
    threading.setprofile(_look_in_thread)


def _look_in_thread(frame: Any, event: str, arg: Any) -> None:
    """The profile hook of a thread; torch's modes hold for one thread each, so at its first call it gets its own. Where something is
    looked for, the shorter hook follows it."""
    _local.modes = getattr(_local, "modes", None) or enter_modes()
    if watch.names:
        if _local.modes:
            _setprofile(_look)
        _look(frame, event, arg)


@contextmanager
def watch_results(look: Callable[[Any, Any], None]) -> Iterator[None]:
    """Shows `look` each of torch's operations that runs in this thread, one of the grader's own, and what it made or changed: a tensor,
    or several in a tuple or list. Of an elementary one nothing is shown of what it does inside. A mode of its own, above those that are
    there, would have each operator go through both, in several times the time."""
    _local.modes = getattr(_local, "modes", None) or enter_modes()
    for mode in _local.modes:
        mode.look = look
    try:
        yield
    finally:
        for mode in _local.modes:
            mode.look = None


def leave_thread() -> None:
    """Ends what watches this thread, one of the grader's own that is about to end. Modes that are left to the end of a thread die after
    Python has closed it, which ends the whole process where it is just closing."""
    _setprofile(None)
    for stack in stacks:
        stack.cut(0)
    _local.modes = []


def leave_unwatched_thread() -> None:
    """Ends it also where such a thread begins while nothing is looked for: every operator would pass through modes that note nothing."""
    if not watch.names:
        leave_thread()


def _look(frame: Any, event: str, arg: Any) -> None:
    # Runs four times for each call of the learner's: see to it that it is short.
    if event == "c_call":
        name = getattr(arg, "__name__", None)
        if name in watch.suspects or watch.library:
            _look_at_c(frame, arg, name)
    elif event == "call":
        name = frame.f_code.co_name
        if name in watch.suspects or watch.library:
            _look_at_python(frame, name)


def _look_at_c(frame: Any, function: Any, name: Any) -> None:
    if name in watch.names and (_is_library(getattr(function, "__module__", None)) or _is_of_torch(function)):
        watch.log.append(name)
    elif watch.library and "torch" not in watch.log and name not in _CHECKS and _is_of_torch(function):
        _note_library(frame)
    elif name in BLINDING:
        _note_blinding(frame)
    elif name in STARTING:
        _note_thread_start(frame)


def _look_at_python(frame: Any, name: str) -> None:
    module = frame.f_globals.get("__name__")
    if name in watch.names:
        if name == "einsum" and str(module).startswith("numpy."):
            watch.log.append("einsum {} {}".format(*einsum_size(frame.f_locals.get("operands", ()))))
        elif _is_library(module):
            watch.log.append(name)
    elif watch.library and "torch" not in watch.log and name not in _CHECKS and _is_library(module):
        _note_library(frame)
    elif name in BLINDING and frame.f_back is not None:
        _note_blinding(frame.f_back)


def _note_blinding(caller: Any) -> None:
    """The grader itself, a thread that begins, and torch's own code may; a learner's may not."""
    while caller is not None and caller.f_code.co_filename == contextlib.__file__:
        caller = caller.f_back  # it enters the context manager for somebody
    if caller is not None and not caller.f_code.co_filename.startswith(LIBRARY_FILES):
        watch.log.append(UNWATCHED)


def _note_thread_start(starter: Any) -> None:
    """A thread begins by Python's own methods, which hook it up; another way to begin is noted."""
    while starter is not None and starter.f_code.co_filename.startswith(LIBRARY_FILES):
        thread = starter.f_locals.get("self")
        if isinstance(thread, threading.Thread):
            methods = (getattr(type(thread), name, None) for name in _BOOTSTRAPS)
            if all(map(operator.is_, methods, _BOOTSTRAPS.values())) and not _BOOTSTRAPS.keys() & vars(thread).keys():
                return
            break
        starter = starter.f_back
    watch.log.append(UNWATCHED)


def _note_library(frame: Any) -> None:
    """Notes a call into a library, but not what runs while one is imported: a guard may import torch to ask for its type."""
    while frame is not None and frame.f_code.co_filename.startswith(LIBRARY_PREFIXES):
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return
        frame = frame.f_back
    watch.log.append("torch")


def _is_of_torch(function: Any) -> bool:
    """True for a C function bound to one of torch's own types or tensors, such as `Tensor.softmax`."""
    owner = getattr(function, "__self__", None)
    owner_type = owner if isinstance(owner, type) else type(owner)
    return _is_library(getattr(owner_type, "__module__", None))
