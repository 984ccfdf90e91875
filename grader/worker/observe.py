"""Runs one case on a learner's object and describes what came back."""

from __future__ import annotations

import contextlib
import linecache
import os
import random
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np
from numpy import array, errstate, ndarray

from . import output, values
from .integrity import REBOUND, is_intact, take_snapshot
from .operations import LIBRARY_FILES, MAX_CALLS, OPERATIONS, SIZED
from .originals import BUILTINS, of_torch
from .probes import BASIC, ContractError, Run, __file__ as _probes_file, find, module_of
from .values import MAX_TEXT, Failure, Observation, Part, RawPart, Tensor, Variable, describe, is_plain, is_tensor
from .watch import watching

__builtins__ = BUILTINS  # type: ignore[assignment]

_CALLERS = (os.path.dirname(_probes_file), os.path.join("torch", "nn", "modules", "module.py"))
_LIBRARY_PREFIXES = (*LIBRARY_FILES, "<frozen")  # files of code that is no learner's
_NULL_STREAMS = output.NullText(), output.NullText()  # where standard output and standard error go


def observe(candidate: Any, case: Any, *, trusted: bool = False) -> Observation:
    """What one case shows of a candidate; whatever its code does, this returns.

    candidate: the learner's function, class or value. case: a `Case`, or anything with its attributes
    probe, args, kwargs, options and names. trusted: it is the course's own code, which rebinds no name. Random
    generators are seeded before; whoever shares its process with others puts them back with `same_random_state`.
    KeyboardInterrupt passes through: it is the person at the keyboard.
    """
    if case.probe != "answer" and not callable(candidate):
        return Observation(failure=Failure("no function", type(candidate).__name__[:MAX_TEXT]))
    records: list[warnings.WarningMessage] = []
    output.printed = ""
    try:
        args = tuple(materialise(value) for value in case.args)
        kwargs = {name: materialise(value) for name, value in case.kwargs.items()}
        run = Run(args, kwargs, dict(case.options), tuple(case.names), trusted=trusted)
        inputs = [
            (name, value)
            for name, value in values.leaves(run.inputs().items())
            if isinstance(value, ndarray) or is_tensor(value)
        ]
        seed()  # before anything is watched: it calls torch
        groups, parts = tuple(run.options.get("watch", ())), {}
        run.watch, outer_groups = (groups, ()) if case.probe in BASIC else ((), groups)
        with _quiet() as records:
            with watching(outer_groups, run.log):
                raw = find(case.probe)(candidate, run)
            for name, value in raw.items():
                parts[name] = _part(value, groups, run.log)
        after = {name: describe(value) for name, value in inputs}
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Observation(failure=failure_from(error), printed=output.printed, warned=_own_warnings(records))
    calls = tuple(dict.fromkeys(run.log) if len(run.log) > MAX_CALLS else run.log)
    if not SIZED.isdisjoint(groups):
        calls += (f"{OPERATIONS} {run.log.operations}",)
    if not trusted and not is_intact(__name__, module_of(case.probe)):
        calls += (REBOUND,)
    return Observation(
        parts, after=after, calls=calls, printed=output.printed, warned=_own_warnings(records), largest=run.log.largest
    )


def _part(value: Any, groups: tuple[str, ...], log: values.CallLog) -> Part:
    """What a probe gives, described; a True or False that it found itself is a flag."""
    raw = value if type(value) is RawPart else RawPart(value, "flag" if type(value) is bool else "value")
    # Reading it is what leaves torch here, so that this and sizes are not looked at.
    with watching(() if is_plain(raw.value) else tuple(group for group in groups if group not in SIZED), log):
        part = describe(raw.value)
    if raw.role == "value":
        return part
    return replace(part, role=raw.role, of=raw.of)


def materialise(value: Any) -> Any:
    """A private copy of an input, ready to be handed to the learner's code."""
    if isinstance(value, Tensor):
        if of_torch() is None:
            import torch  # noqa: F401 - so that there is something to take
        return of_torch().tensor(value.array, value.dtype, value.requires_grad)
    if isinstance(value, ndarray):
        return array(value)
    if isinstance(value, (tuple, list)):
        return type(value)(materialise(item) for item in value)
    if isinstance(value, dict):
        return {key: materialise(item) for key, item in value.items()}
    return value


@contextlib.contextmanager
def _quiet() -> Iterator[list[warnings.WarningMessage]]:
    """Keeps output and warnings from whoever runs this; gives the list to which warnings come, each place once.

    They are those that NumPy gives unless told otherwise, whatever a cell has set: a right softmax underflows, too.
    """
    streams = sys.stdout, sys.stderr
    numbers = errstate(divide="warn", over="warn", under="ignore", invalid="warn")
    with warnings.catch_warnings(record=True) as records, numbers:
        warnings.simplefilter("default")
        sys.stdout, sys.stderr = _NULL_STREAMS
        try:
            yield records
        finally:
            sys.stdout, sys.stderr = streams


def _own_warnings(records: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """The warnings of the learner's own lines, at most five."""
    try:
        own = [record for record in records if not record.filename.startswith(_LIBRARY_PREFIXES)]
        lines = (
            f"{record.category.__name__}: {record.message} (line {record.lineno} of its cell)"[:300] for record in own
        )
        return tuple(dict.fromkeys(lines))[:5]
    except Exception:  # a category or a message of the learner's own
        return ()


def seed() -> None:
    """Seeds the global generators, so that a verdict repeats."""
    torch = sys.modules.get("torch")
    random.seed(0)
    np.random.seed(0)
    if torch is not None:
        torch.default_generator.manual_seed(0)


@contextlib.contextmanager
def same_random_state(one_thread: bool = False) -> Iterator[None]:
    """Puts the global generators, and torch's number of threads, back as they were. Costs a quarter of a millisecond.

    one_thread: torch computes in one thread meanwhile; for inputs so small, waiting for others costs far more than they do.
    """
    torch: Any = sys.modules.get("torch")
    python_state, numpy_state = random.getstate(), np.random.get_state()
    torch_state = torch.get_rng_state() if torch is not None else None
    threads = torch.get_num_threads() if torch is not None else 1
    if one_thread and threads > 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        if torch is not None:
            torch.set_rng_state(torch_state)
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)


@contextlib.contextmanager
def default_modes() -> Iterator[None]:
    """For so long, torch's modes are those of a new process, whatever a cell has set for good: gradients are recorded, new tensors are
    float32 on the CPU, and nothing is cast to another type by itself."""
    torch: Any = sys.modules.get("torch")
    with contextlib.ExitStack() as modes:
        if torch is not None:
            modes.enter_context(torch.inference_mode(False))
            modes.enter_context(torch.enable_grad())
            modes.enter_context(torch.autocast("cpu", enabled=False))
            modes.callback(torch.set_default_dtype, torch.get_default_dtype())
            torch.set_default_dtype(torch.float32)
            if torch.get_default_device().type != "cpu":
                modes.enter_context(torch.device("cpu"))
        yield


def failure_from(error: BaseException) -> Failure:
    """Describes what a learner's code raised, by the learner's own line and the shapes that it had."""
    try:
        return _failure_from(error)
    except BaseException:  # an exception class of the learner's own may raise when it is printed
        return Failure("exception", type=type(error).__name__[:MAX_TEXT], message="(its message cannot be read)")


def _failure_from(error: BaseException) -> Failure:
    message = str(error)[:MAX_TEXT]
    if isinstance(error, ContractError):
        return Failure("contract", "ContractError", message)
    kind = "exception"
    if isinstance(error, MemoryError) or "DefaultCPUAllocator" in message or "can't allocate memory" in message:
        kind = "memory"
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [(frame, number) for frame, number in frames if not frame.f_code.co_filename.startswith(_LIBRARY_PREFIXES)]
    if isinstance(error, TypeError) and not own and _is_call(frames[-1][0].f_code.co_filename):
        kind = "call"
    frame, number = own[-1] if own else (None, 0)
    line = _line(frame, number) if frame else ""
    function = _function(frame)
    is_stub = own and own[-1] == frames[-1] and (not line or "NotImplementedError" in line)  # torch raises it, too
    if type(error) is NotImplementedError and is_stub:
        first, first_number = own[0]
        caller_line = "" if first is frame else _line(first, first_number)[:MAX_TEXT] or "?"
        return Failure("not_started", "NotImplementedError", message, caller_line, function=function)
    if isinstance(error, SyntaxError):
        number = error.lineno or number
        line = (error.text or linecache.getline(error.filename or "", number)).strip() or line
    shapes = _shapes(frame, line) if frame else ()
    bases = tuple(base.__name__ for base in type(error).__mro__ if BUILTINS.get(base.__name__) is base)
    return Failure(kind, type(error).__name__, message, line[:MAX_TEXT], number, shapes, bases[:32], function=function)


def _is_call(file: str) -> bool:
    """Whether the learner's object is called in this file, so that what is raised in it is none of what was called."""
    return file.startswith(_CALLERS[0]) or file.endswith(_CALLERS[1])


def _line(frame: FrameType, number: int) -> str:
    return linecache.getline(frame.f_code.co_filename, number).strip()


def _function(frame: FrameType | None) -> str:
    """What a line of a learner's belongs to, as its cell names it: 'softmax_rows', also inside a comprehension of it."""
    name = frame.f_code.co_qualname.partition(".<locals>")[0] if frame else ""
    return "" if name.startswith("<") else name[:MAX_TEXT]


def _shapes(frame: FrameType, line: str) -> tuple[Variable, ...]:
    """Shapes and small values of the variables that the failing line names, at most eight."""
    variables = []
    for name in dict.fromkeys(re.findall(r"[^\W\d]\w*", line)):
        value: Any = frame.f_locals.get(name)
        if isinstance(value, np.ndarray) or is_tensor(value):
            shape = tuple(map(int, value.shape))
            variables.append(Variable(name, f"{shape} {str(value.dtype).removeprefix('torch.')}", "array", shape))
        elif type(value) is float:
            variables.append(Variable(name, repr(value), "float", value=value))
        elif type(value) in (int, bool) or (type(value) is str and len(value) < 40):
            variables.append(Variable(name, repr(value)[:60]))
        elif type(value) in (tuple, list) and all(type(item) is int for item in value[:8]):
            variables.append(Variable(name, repr(value[:8])))
    return tuple(variables[:8])


take_snapshot(sys.modules[__name__])
