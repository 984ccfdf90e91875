"""Which ready-made operations ran while a learner's object was exercised, and how large a tensor they made.

What is looked for is named in operations.py. Three observers in every thread, because each alone
can be walked around: a profile hook (Python and C functions), torch's function mode, and torch's dispatch mode
(operators reached through `torch.ops` or a captured reference). Code that switches one off is noted as well, and so
is code that leaves other hooks or modes on top than it found. This is against shortcuts: code that is determined to
reach into its own process can blind whatever lives there.
"""

from __future__ import annotations

import contextlib
import linecache
import operator
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import BuiltinFunctionType, GetSetDescriptorType, MethodDescriptorType, WrapperDescriptorType
from typing import Any, NamedTuple

from .operations import ELEMENTARY, GROUPS, LIBRARIES, LIBRARY_FILES, SIZED, einsum_size
from .originals import BUILTINS, is_a, of_torch
from .values import MAX_TEXT, Created

__builtins__ = BUILTINS  # type: ignore[assignment]

_IN_C = (BuiltinFunctionType, GetSetDescriptorType, MethodDescriptorType, WrapperDescriptorType)
_NOBODY_S = (*LIBRARY_FILES, "<frozen ", "<string>")
# Whether something is a tensor; computes nothing.
_ASKING = frozenset({"is_tensor", "__instancecheck__", "__subclasscheck__"})

# Noted where the watched code switches the watching off.
UNWATCHED = "unwatched"
_BLINDING = frozenset(
    """
    setprofile _disable_current_modes _pop_mode _pop_mode_temporarily _pop_torch_function_stack _pop_torch_dispatch_stack
    _set_torch_function_state
    """.split()
)
_STARTING = frozenset({"start_new_thread", "start_joinable_thread"})

# Taken before any learner's code runs: it may put something else in their place.
_setprofile, _getprofile, _gettrace, _local = sys.setprofile, sys.getprofile, sys.gettrace, threading.local()
_BEGINNINGS = {name: vars(threading.Thread)[name] for name in ("_bootstrap", "_bootstrap_inner")}


def _library(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in LIBRARIES


class Seen(list[str]):
    """What ran, in order.

    largest: of all tensors that were made the first of the largest ones, where sizes are looked at. most: how many elements it has.
    operations: how many of torch's ran, where sizes are looked at; one that is made of others may count with them.
    """

    largest: Created | None = None
    most = -1
    operations = 0


class _Watch:
    """What is looked for, and what was seen of it; without names nothing is.

    sized: whether sizes are looked at. library: whether any call of torch's is looked for. suspects: the names of calls to look at more
    closely. aside: torch's own functions in which nothing of what is looked for can hide.
    """

    def __init__(self, names: frozenset[str], seen: Seen, sized: bool) -> None:
        self.names, self.seen, self.sized = names, seen, sized
        self.library = "torch" in names
        self.suspects, self.aside = names | _BLINDING | _STARTING, _aside(names)


_elementary: set[Any] = set()  # torch's, taken with its modes, before any learner's code runs


@cache
def _names(groups: tuple[str, ...]) -> frozenset[str]:
    return frozenset().union(*(GROUPS[group] for group in groups if group in GROUPS))


@cache
def _aside(names: frozenset[str]) -> frozenset[Any]:
    """Of torch's elementary functions those in which nothing of these names can hide."""
    return frozenset() if "torch" in names else frozenset(one for one in _elementary if one.__name__ not in names)


_IDLE = _Watch(frozenset(), Seen(), False)
_IDLE.suspects = frozenset()  # where nothing is looked for, nothing is noted
_now = _IDLE  # what holds at the moment, in all threads


class watching:
    """Records the watched operations that run inside the block, in order.

    groups: keys of GROUPS; with none, nothing is watched. seen: a list to fill; by default a new one. The block gets it:
    names, for each einsum 'einsum ADDS LARGEST', its multiply-adds and the elements of its largest operand, and
    UNWATCHED where the code inside switches the watching off. With a group of SIZED, `seen.largest` is filled as well, and
    `seen.operations` counts.
    """

    def __init__(self, groups: tuple[str, ...], seen: Seen | None = None) -> None:
        self._names = _names(groups)
        self._sized = not SIZED.isdisjoint(groups)
        self._seen = Seen() if seen is None else seen

    def __enter__(self) -> Seen:
        global _now
        if self._names:
            self._before = _now
            self._hooks = _getprofile(), threading.getprofile(), _gettrace(), threading.gettrace()
            # First: making their classes finds what is elementary.
            self._modes = [mode.__enter__() for mode in _torch_modes()]
            _now = _Watch(self._names, self._seen, self._sized)
            self._heights = [stack.height() for stack in _stacks] if self._modes else []
            threading.setprofile(_look_in_thread)
            _setprofile(_look)  # last: entering torch's modes is itself a call into torch
        return self._seen

    def __exit__(self, *error: object) -> None:
        global _now
        if not self._names:
            return
        profile, in_threads, trace, trace_in_threads = self._hooks
        same = (
            _getprofile() is _look
            and threading.getprofile() is _look_in_thread
            and threading.gettrace() is trace_in_threads
        )
        same &= trace is not None or _gettrace() is None  # a debugger that was there may change its own
        _restore_profile(profile)
        threading.setprofile(in_threads)
        _now = self._before
        for stack, mode, height in zip(_stacks, self._modes, self._heights, strict=False):
            same &= stack.put_right(mode, height)
        if not same:
            self._seen.append(UNWATCHED)
        for mode in reversed(self._modes):
            mode.__exit__(None, None, None)


def _restore_profile(hook: Any) -> None:
    """Puts back what watched before us: before Python 3.12 cProfile's hook is no function, and is put back by its own method."""
    if hook is None or callable(hook):
        _setprofile(hook)
    else:
        _setprofile(None)
        enable = getattr(hook, "enable", None)
        if enable is not None:
            enable()


class _Stack(NamedTuple):
    """One of torch's stacks of modes, as this thread has it."""

    height: Callable[[], int]
    top: Callable[[int], Any]
    pop: Callable[[], Any]
    push: Callable[[Any], None]

    def put_right(self, mode: Any, height: int) -> bool:
        """Leaves `mode` on top at this height; returns whether it was."""
        now = self.height()
        if now == height and self.top(now - 1) is mode:
            return True
        self.cut(height - 1)
        self.push(mode)
        return False

    def cut(self, height: int) -> None:
        """Takes off what lies above this height."""
        while self.height() > height:
            self.pop()


@contextmanager
def pause_watching() -> Iterator[None]:
    """Leaves aside what computes no answer from inputs: a module's making and the backward pass, with hundreds of calls each."""
    if not _now.names:
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
    if not getattr(_local, "modes", None):
        _local.modes = [mode.__enter__() for mode in _torch_modes()]
    if _now.names:
        if _local.modes:
            _setprofile(_look)
        _look(frame, event, arg)


@contextmanager
def watch_results(look: Callable[[Any, Any], None]) -> Iterator[None]:
    """Shows `look` each of torch's operations that runs in this thread, one of the grader's own, and what it made or changed: a tensor,
    or several in a tuple or list. Of an elementary one nothing is shown of what it does inside. A mode of its own, above those that are
    there, would have each operator go through both, in several times the time."""
    if not getattr(_local, "modes", None):
        _local.modes = [mode.__enter__() for mode in _torch_modes()]
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
    for stack in _stacks:
        stack.cut(0)
    _local.modes = []


def leave_unwatched_thread() -> None:
    """Ends it also where such a thread begins while nothing is looked for: every operator would pass through modes that note nothing."""
    if not _now.names:
        leave_thread()


def _look(frame: Any, event: str, arg: Any) -> None:
    # Runs four times for each call of the learner's: see to it that it is short.
    if event == "c_call":
        name = getattr(arg, "__name__", None)
        if name in _now.suspects or _now.library:
            _look_at_c(frame, arg, name)
    elif event == "call":
        name = frame.f_code.co_name
        if name in _now.suspects or _now.library:
            _look_at_python(frame, name)


def _look_at_c(frame: Any, function: Any, name: Any) -> None:
    if name in _now.names and (_library(getattr(function, "__module__", None)) or _of_torch(function)):
        _now.seen.append(name)
    elif _now.library and "torch" not in _now.seen and name not in _ASKING and _of_torch(function):
        _note_library(frame)
    elif name in _BLINDING:
        _note_blinding(frame)
    elif name in _STARTING:
        _note_beginning(frame)


def _look_at_python(frame: Any, name: str) -> None:
    module = frame.f_globals.get("__name__")
    if name in _now.names:
        if name == "einsum" and str(module).startswith("numpy."):
            _now.seen.append("einsum {} {}".format(*einsum_size(frame.f_locals.get("operands", ()))))
        elif _library(module):
            _now.seen.append(name)
    elif _now.library and "torch" not in _now.seen and name not in _ASKING and _library(module):
        _note_library(frame)
    elif name in _BLINDING and frame.f_back is not None:
        _note_blinding(frame.f_back)


def _note_blinding(caller: Any) -> None:
    """The grader itself, a thread that begins, and torch's own code may; a learner's may not."""
    while caller is not None and caller.f_code.co_filename == contextlib.__file__:
        caller = caller.f_back  # it enters the context manager for somebody
    if caller is not None and not caller.f_code.co_filename.startswith(LIBRARY_FILES):
        _now.seen.append(UNWATCHED)


def _note_beginning(starter: Any) -> None:
    """A thread begins by Python's own methods, which hook it up; another way to begin is noted."""
    while starter is not None and starter.f_code.co_filename.startswith(LIBRARY_FILES):
        thread = starter.f_locals.get("self")
        if isinstance(thread, threading.Thread):
            methods = (getattr(type(thread), name, None) for name in _BEGINNINGS)
            if all(map(operator.is_, methods, _BEGINNINGS.values())) and not _BEGINNINGS.keys() & vars(thread).keys():
                return
            break
        starter = starter.f_back
    _now.seen.append(UNWATCHED)


def _note_sizes(result: Any) -> None:
    """Notes what an operator returned where it is larger than all before. It counts the memory in which a tensor lies, so that an
    expanded view, which has none of its own, counts as what it was expanded from, and a piece of a table as that table."""
    torch, seen = of_torch(), _now.seen
    for item in result if isinstance(result, (tuple, list)) else (result,):
        if is_a(item, torch.Tensor):
            elements = torch.storage_size(item)
            if elements > seen.most:
                try:
                    shape = tuple(map(int, torch.get(item, "shape")))
                except RuntimeError:  # one of tensors of several shapes
                    shape = (elements,)
                seen.largest, seen.most = Created(shape, elements, own_line(sys._getframe(2))), elements


def own_line(frame: Any) -> str:
    """The learner's own line that is running; '' where none is, as in a thread that runs an operator alone."""
    while frame is not None and frame.f_code.co_filename.startswith(_NOBODY_S):
        frame = frame.f_back
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()[:MAX_TEXT] if frame is not None else ""


def _note_library(frame: Any) -> None:
    """Notes a call into a library, but not what runs while one is imported: a guard may import torch to ask for its type."""
    while frame is not None and frame.f_code.co_filename.startswith(_NOBODY_S):
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return
        frame = frame.f_back
    _now.seen.append("torch")


def _of_torch(function: Any) -> bool:
    """True for a C function bound to one of torch's own types or tensors, such as `Tensor.softmax`."""
    owner = getattr(function, "__self__", None)
    owner_type = owner if isinstance(owner, type) else type(owner)
    return _library(getattr(owner_type, "__module__", None))


_stacks: list[_Stack] = []  # torch's, of functions and of operators, in the order of the modes


def _torch_modes() -> list[Any]:
    """New modes to enter. torch is there once it was: a cell that drops it from sys.modules still holds its operators."""
    if not mode_classes.cache_info().currsize and not hasattr(sys.modules.get("torch"), "overrides"):
        return []
    return [mode() for mode in mode_classes()]


def elementary() -> frozenset[Any]:
    """torch's own functions, methods and attributes called like one of ELEMENTARY, as its function mode gets them."""
    import torch

    candidates = {getattr(owner, name, None) for owner in (torch, torch.Tensor, torch._C._nn) for name in ELEMENTARY}
    return frozenset(
        one.__get__ if isinstance(one, GetSetDescriptorType) else one for one in candidates if isinstance(one, _IN_C)
    )


@cache
def mode_classes() -> tuple[type, type]:
    """Made once, when torch is there: a class costs more than the calls that it watches."""
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    originals, C = of_torch(), torch._C
    Tensor = originals.Tensor
    # Of a partial function's call the profile hook is not told, which would take longer than these do.
    storage, nbytes, size = partial(originals.storage), partial(originals.nbytes), partial(originals.element_size)
    plain = frozenset({(), (torch.Tensor,), (torch.nn.Parameter,)})
    _aside.cache_clear()
    _elementary.clear()
    _stacks.clear()
    try:
        transformed = partial(C._functorch.peek_interpreter_stack)
        pop, push = partial(C._pop_torch_dispatch_stack, None), partial(C._push_on_torch_dispatch_stack)
        _stacks[:] = (
            _Stack(
                C._len_torch_function_stack,
                C._get_function_stack_at,
                C._pop_torch_function_stack,
                C._push_on_torch_function_stack,
            ),
            _Stack(C._len_torch_dispatch_stack, C._get_dispatch_stack_at, pop, push),
        )
        _elementary.update(elementary())
        _IDLE.aside = _aside(frozenset())
    except AttributeError:  # a torch that has them no more: then every operator is looked at
        pass

    class Functions(TorchFunctionMode):
        look = None  # see `watch_results`

        def __torch_function__(self, func, types, args=(), kwargs=None):
            now, look, aside = _now, self.look, None
            # Under vmap a result does not tell the size of what is computed.
            if func not in now.aside or types not in plain or ((now.sized or look) and transformed() is not None):
                name = getattr(func, "__name__", "").partition(".")[0]  # without an overload's ending, '.int'
                if name in now.names:
                    now.seen.append(name)
            else:  # its operators need not be looked at one by one, which would take longer than they do
                try:
                    aside = pop()
                except RuntimeError:  # the code that is watched has switched it off, which is noted where it does so
                    pass
                if aside is not None and type(aside) is not Operators:  # a mode of that code's own lies above ours
                    push(aside)
                    aside = None
            try:
                result = func(*args, **kwargs) if kwargs else func(*args)
            finally:
                if aside is not None:
                    push(aside)
            if look is not None and aside is not None:
                look(func, args[0] if result is None and args else result)  # None: written into, as by x[0] = 1
            if now.sized:
                now.seen.operations += 1
                try:  # after each call: without a call of ours where there is nothing to note
                    if type(result) is not Tensor or nbytes(storage(result)) // size(result) > now.seen.most:
                        _note_sizes(result)
                except (NotImplementedError, RuntimeError):
                    _note_sizes(result)
            return result

    class Operators(TorchDispatchMode):
        look = None

        @classmethod
        def _should_skip_dynamo(cls):
            return False  # True would import torch's compiler: three seconds, for code that is not compiled

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            now = _now
            name = "torch" if "torch" in now.names else func.__name__.partition(".")[0]
            if name in now.names:
                now.seen.append(name)
            result = func(*args, **kwargs) if kwargs else func(*args)
            if self.look is not None:
                self.look(func, result)
            if now.sized:
                now.seen.operations += 1
                _note_sizes(result)
            return result

    return Functions, Operators
