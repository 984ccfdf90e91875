"""What is looked for at the moment, and torch's modes, through which each of its functions and operators passes.

There are modes of two kinds, each with a stack for each thread. Who enters them, and what else looks on, is in watch.py.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from functools import cache, partial
from types import BuiltinFunctionType, GetSetDescriptorType, MethodDescriptorType, WrapperDescriptorType
from typing import Any, NamedTuple

from .operations import BLINDING, ELEMENTARY, LIBRARY_FILES, STARTING
from .originals import BUILTINS, is_a, of_torch
from .values import MAX_TEXT, Allocation, CallLog

__builtins__ = BUILTINS  # type: ignore[assignment]

LIBRARY_PREFIXES = (*LIBRARY_FILES, "<frozen ", "<string>")
_C_TYPES = (BuiltinFunctionType, GetSetDescriptorType, MethodDescriptorType, WrapperDescriptorType)


class Watch:
    """What is looked for, and what was seen of it; without names nothing is looked for, and nothing noted.

    sized: whether sizes are looked at. library: whether any call of torch's is looked for. suspects: the names of calls to look at more
    closely. safe: torch's own functions in which nothing of what is looked for can hide.
    """

    def __init__(self, names: frozenset[str], log: CallLog, sized: bool) -> None:
        self.names, self.log, self.sized = names, log, sized
        self.library = "torch" in names
        self.suspects = names | BLINDING | STARTING if names else frozenset()
        self.safe = _safe_functions(names)


class Stack(NamedTuple):
    """One of torch's stacks of modes, as this thread has it."""

    height: Callable[[], int]
    top: Callable[[int], Any]
    pop: Callable[[], Any]
    push: Callable[[Any], None]

    def restore(self, mode: Any, height: int) -> bool:
        """Leaves `mode` on top at this height; returns whether it was."""
        if self.height() == height and self.top(height - 1) is mode:
            return True
        self.cut(height - 1)
        self.push(mode)
        return False

    def cut(self, height: int) -> None:
        """Takes off what lies above this height."""
        while self.height() > height:
            self.pop()


stacks: list[Stack] = []  # torch's, of functions and of operators, as the modes; none where torch hides them


@cache
def _safe_functions(names: frozenset[str]) -> frozenset[Any]:
    """Of torch's elementary functions those in which nothing of these names can hide: none where its operators cannot be left out."""
    functions = elementary() if stacks and "torch" not in names else ()
    return frozenset(function for function in functions if function.__name__ not in names)


watch = Watch(frozenset(), CallLog(), False)  # what holds at the moment, in all threads


def note_sizes(result: Any) -> None:
    """Notes what an operator returned where it is larger than all before. It counts the memory in which a tensor lies, so that an
    expanded view, which has none of its own, counts as what it was expanded from, and a piece of a table as that table."""
    torch, log = of_torch(), watch.log
    for tensor in result if isinstance(result, (tuple, list)) else (result,):
        if is_a(tensor, torch.Tensor):
            elements = torch.storage_size(tensor)
            if elements > log.max_elements:
                try:
                    shape = tuple(map(int, torch.get(tensor, "shape")))
                except RuntimeError:  # one of tensors of several shapes
                    shape = (elements,)
                log.largest, log.max_elements = Allocation(shape, elements, own_line(sys._getframe(2))), elements


def own_line(frame: Any) -> str:
    """The learner's own line that is running; '' where none is, as in a thread that runs an operator alone."""
    while frame is not None and frame.f_code.co_filename.startswith(LIBRARY_PREFIXES):
        frame = frame.f_back
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()[:MAX_TEXT] if frame is not None else ""


@cache
def elementary() -> frozenset[Any]:
    """torch's own functions, methods and attributes called like one of ELEMENTARY, as its function mode gets them."""
    import torch

    functions = {getattr(owner, name, None) for owner in (torch, torch.Tensor, torch._C._nn) for name in ELEMENTARY}
    return frozenset(
        function.__get__ if isinstance(function, GetSetDescriptorType) else function
        for function in functions
        if isinstance(function, _C_TYPES)
    )


def enter_modes() -> list[Any]:
    """Enters new modes in this thread. torch is there once it was: a cell that drops it from sys.modules still holds its operators."""
    if not mode_classes.cache_info().currsize and not hasattr(sys.modules.get("torch"), "overrides"):
        return []
    return [mode().__enter__() for mode in mode_classes()]


@cache
def mode_classes() -> tuple[type, type]:
    """Made once, when torch is there and before any learner's code runs: a class costs more than the calls that it watches."""
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    originals, C = of_torch(), torch._C
    Tensor = originals.Tensor
    # Of a partial function's call the profile hook is not told, which would take longer than these do.
    storage, nbytes, size = partial(originals.storage), partial(originals.nbytes), partial(originals.element_size)
    plain = frozenset({(), (torch.Tensor,), (torch.nn.Parameter,)})
    _safe_functions.cache_clear()
    stacks.clear()
    try:
        transform = partial(C._functorch.peek_interpreter_stack)
        pop, push = partial(C._pop_torch_dispatch_stack, None), partial(C._push_on_torch_dispatch_stack)
        height, top = C._len_torch_function_stack, C._get_function_stack_at
        stacks[:] = (
            Stack(height, top, C._pop_torch_function_stack, C._push_on_torch_function_stack),
            Stack(C._len_torch_dispatch_stack, C._get_dispatch_stack_at, pop, push),
        )
    except AttributeError:  # a torch that has them no more: then every operator is looked at
        pass
    watch.safe = _safe_functions(watch.names)

    class Functions(TorchFunctionMode):
        look = None  # see `watch_results`

        def __torch_function__(self, func, types, args=(), kwargs=None):
            look, mode = self.look, None
            # Under vmap a result does not tell the size of what is computed.
            if func not in watch.safe or types not in plain or ((watch.sized or look) and transform() is not None):
                name = getattr(func, "__name__", "").partition(".")[0]  # without an overload's ending, '.int'
                if name in watch.names:
                    watch.log.append(name)
            else:  # its operators need not be looked at one by one, which would take longer than they do
                try:
                    mode = pop()
                except RuntimeError:  # the code that is watched has switched it off, which is noted where it does so
                    pass
                if mode is not None and type(mode) is not Operators:  # a mode of that code's own lies above ours
                    push(mode)
                    mode = None
            try:
                result = func(*args, **kwargs) if kwargs else func(*args)
            finally:
                if mode is not None:
                    push(mode)
            if look is not None and mode is not None:
                look(func, args[0] if result is None and args else result)  # None: written into, as by x[0] = 1
            if watch.sized:
                watch.log.operations += 1
                try:  # after each call: without a call of ours where there is nothing to note
                    if type(result) is not Tensor or nbytes(storage(result)) // size(result) > watch.log.max_elements:
                        note_sizes(result)
                except (NotImplementedError, RuntimeError):
                    note_sizes(result)
            return result

    class Operators(TorchDispatchMode):
        look = None

        @classmethod
        def _should_skip_dynamo(cls):
            return False  # True would import torch's compiler: three seconds, for code that is not compiled

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            name = "torch" if "torch" in watch.names else func.__name__.partition(".")[0]
            if name in watch.names:
                watch.log.append(name)
            result = func(*args, **kwargs) if kwargs else func(*args)
            if self.look is not None:
                self.look(func, result)
            if watch.sized:
                watch.log.operations += 1
                note_sizes(result)
            return result

    return Functions, Operators
