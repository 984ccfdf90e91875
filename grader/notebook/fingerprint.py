"""A fingerprint of a learner's object: equal where its code, and all that the code reaches, is equal.

Code, constants, defaults, closures, and the globals that the code names: functions, classes, small values and
arrays are followed; libraries and what comes from them count by name. What cannot be followed to the end (a
random generator, an open file, a module's instance) gives None, and is then judged anew each time.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

MAX_BYTES = 10_000_000  # of arrays and constants; more takes longer to read than a check takes
MAX_ITEMS = 20_000
_GLOBAL, _NAME = dis.opmap["LOAD_GLOBAL"], dis.opmap["LOAD_NAME"]
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range)
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_OF_EVERY_CLASS = frozenset(
    {
        "__module__",
        "__qualname__",
        "__dict__",
        "__weakref__",
        "__doc__",
        "__firstlineno__",
        "__static_attributes__",
        "__annotate__",
        "__annotations__",
        "__annotations_cache__",
        "__abstractmethods__",
        "_abc_impl",
    }
)


class Unknown(Exception):
    """Something that cannot be followed."""


def fingerprint(value: Any) -> str | None:
    """A short text that changes with the code; None where that cannot be known."""
    walk = _Walk()
    try:
        walk.value(value)
    except (Unknown, RecursionError):
        return None
    except Exception:  # objects of a learner's may raise from anything
        return None
    return walk.digest.hexdigest()[:16]


def of_library(module_name: Any) -> bool:
    """True for a module of Python, of an installed package or of the course."""
    module = sys.modules.get(module_name) if isinstance(module_name, str) else None
    if module is None or module_name == "__main__":
        return False
    file = getattr(module, "__file__", None)
    return file is None or file.startswith(_LIBRARIES) or module_name.partition(".")[0] == "grader"


class _Walk:
    def __init__(self) -> None:
        self.digest = hashlib.blake2b(digest_size=16)
        self.seen: dict[int, int] = {}
        self.alive: list[Any] = []  # an id is unique only while its object lives
        self.bytes = 0

    def add(self, *parts: object) -> None:
        for part in parts:
            raw = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
            self.bytes += len(raw)
            if self.bytes > MAX_BYTES:
                raise Unknown
            self.digest.update(len(raw).to_bytes(8, "big") + raw)

    def value(self, value: Any) -> None:
        if type(value) in _PLAIN:
            self.add(type(value).__name__, repr(value))
            return
        if id(value) in self.seen:
            self.add("seen", self.seen[id(value)])
            return
        self.seen[id(value)] = len(self.seen)
        self.alive.append(value)
        if len(self.seen) > MAX_ITEMS:
            raise Unknown
        self._other(value)

    def _other(self, value: Any) -> None:
        if isinstance(value, ModuleType):
            if not of_library(value.__name__):
                raise Unknown
            self.add("module", value.__name__)
        elif isinstance(value, CodeType):
            self._code(value)
        elif isinstance(value, (FunctionType, type)) and of_library(value.__module__):
            self.add("library", value.__module__, value.__qualname__)
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, type):
            self._class(value)
        elif type(value) in (tuple, list):
            self.add(type(value).__name__, len(value))
            for item in value:
                self.value(item)
        elif type(value) in (dict, set, frozenset):
            self._unordered(value)
        else:
            self._special(value)

    def _special(self, value: Any) -> None:
        if isinstance(value, (staticmethod, classmethod)):
            self.add(type(value).__name__)
            self.value(value.__func__)
        elif isinstance(value, property):
            self.add("property")
            self.value((value.fget, value.fset, value.fdel))
        elif type(value) is functools.partial:
            self.add("partial")
            self.value((value.func, value.args, value.keywords))
        elif isinstance(value, MethodType):
            self.value((value.__func__, value.__self__))
        elif isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, (ModuleType, type, type(None))):
            self.add("builtin", value.__module__, value.__qualname__)
        elif not self._array(value):
            self._by_name(value)

    def _array(self, value: Any) -> bool:
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if numpy is not None and type(value) is numpy.ndarray and value.dtype.kind in "biufc":
            array, kind = value, "ndarray"
        elif numpy is not None and isinstance(value, (numpy.generic, numpy.dtype)):
            self.add("numpy", type(value).__name__, repr(value))
            return True
        elif torch is not None and type(value) is torch.Tensor and value.device.type == "cpu" and not value.is_sparse:
            if value.numel() > MAX_BYTES:
                raise Unknown
            array, kind = value.detach().double().numpy(), f"{value.dtype} {value.requires_grad}"
        elif torch is not None and isinstance(value, (torch.dtype, torch.device)):
            self.add("torch", repr(value))
            return True
        else:
            return False
        if array.nbytes > MAX_BYTES:
            raise Unknown
        self.add(kind, array.dtype, array.shape, array.tobytes())
        return True

    def _by_name(self, value: Any) -> None:
        """A library's own object that has a name and, as far as anybody knows, no state: np.exp, torch.einsum."""
        module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ufunc):
            self.add("ufunc", name)
        elif isinstance(name, str) and callable(value) and of_library(module) and type(value).__module__ != "functools":
            self.add("named", module, name)
        elif type(value).__name__ in ("_Feature", "method_descriptor", "getset_descriptor", "wrapper_descriptor"):
            self.add(repr(value))
        else:
            raise Unknown

    def _code(self, code: CodeType) -> None:
        self.add(
            "code",
            code.co_code,
            code.co_names,
            code.co_varnames,
            code.co_freevars,
            code.co_cellvars,
            code.co_argcount,
            code.co_posonlyargcount,
            code.co_kwonlyargcount,
            code.co_flags,
            code.co_exceptiontable,
        )
        constants = code.co_consts
        self.add(len(constants))
        for constant in constants:
            self.value(constant)

    def _function(self, function: FunctionType) -> None:
        self._code(function.__code__)
        self.value((function.__defaults__, function.__kwdefaults__))
        self.value(dict(function.__dict__))
        for cell in function.__closure__ or ():
            try:
                self.value(cell.cell_contents)
            except ValueError:
                self.add("empty cell")
        for name in dict.fromkeys(globals_named(function.__code__)):
            self.add("global", name)
            if name in function.__globals__:
                self.value(function.__globals__[name])

    def _class(self, cls: type) -> None:
        self.add("class", cls.__qualname__, type(cls).__qualname__)
        self.value(cls.__bases__)
        for name, value in vars(cls).items():
            if name not in _OF_EVERY_CLASS:
                self.add("attribute", name)
                self.value(value)

    def _unordered(self, value: Any) -> None:
        """A dict in its order; a set in the order of its texts, which the process's hash seed cannot change."""
        items = list(value.items()) if type(value) is dict else sorted(value, key=repr)
        self.add(type(value).__name__, len(items))
        for item in items:
            self.value(item)


def globals_named(code: CodeType) -> Iterator[str]:
    """The global names that code and the functions inside it read, each function's once, in the order of reading."""
    return _named(code, {_GLOBAL: 1, _NAME: 0})  # a global's last bit says whether a call follows


def imports_of(code: CodeType) -> Iterator[str]:
    """The modules that code and the functions inside it import when it runs."""
    return _named(code, {dis.opmap["IMPORT_NAME"]: 0})


def _named(code: CodeType, steps: Mapping[int, int]) -> Iterator[str]:
    waiting = [code]
    while waiting:
        code = waiting.pop()
        yield from dict.fromkeys(_arguments(code, steps))
        waiting += [constant for constant in reversed(code.co_consts) if isinstance(constant, CodeType)]


def _arguments(code: CodeType, steps: Mapping[int, int]) -> Iterator[str]:
    """What dis.get_instructions() tells of names, whose time grows with the square of the number of branches."""
    names, extended = code.co_names, 0
    for step, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        if step == dis.EXTENDED_ARG:  # the next step's argument is longer than a byte
            extended = (extended | argument) << 8
            continue
        if step in steps:
            yield names[(extended | argument) >> steps[step]]
        extended = 0
