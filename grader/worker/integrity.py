"""Whether a learner's code changed what stands around it: this package's own names, and the libraries' names and settings.

An honest function may change the default dtype or patch `np.exp` and so damage the exercise that is tried after
it. The next exercise then gets a fresh process. Code that hides its changes harms its own learner alone.

What looks at a result runs beside the code that made it, which may find a module of ours through a frame or the garbage collector
and bind one of its names, an attribute of its classes or the code of its functions to something else. Such a change is seen here,
as long as it lasts: code that undoes it in time, or that changes this module as well, is not seen.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterator
from itertools import chain, islice
from types import FunctionType
from typing import Any, NamedTuple

from .originals import BUILTINS, OfTorch

__builtins__ = BUILTINS  # type: ignore[assignment]

REBOUND = "rebound"  # noted among the calls where a name has been bound to something else

_CODE = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__", "__closure__")
MODULES = """
    builtins math random itertools functools numpy numpy.linalg
    torch torch.nn torch.nn.functional torch.nn.init torch.linalg torch.special
""".split()
CLASSES = (("torch", "Tensor"), ("torch.nn", "Module"), ("torch.nn", "Linear"), ("torch.nn", "Parameter"))


class _Snapshot(NamedTuple):
    """What a module was. namespaces: its own with their values, in the order of binding; functions: its own and those that it imports
    from this package; codes: theirs, one after the other; modules: those that these are from."""

    namespaces: list[tuple[Any, tuple]]
    functions: list[FunctionType]
    codes: tuple
    modules: frozenset[str]


_snapshots: dict[str, _Snapshot] = {}


def take_snapshot(module: Any) -> None:
    """Takes down what a module's names, the attributes of its classes and the code of its functions are."""
    namespaces = [(space, tuple(space.values())) for space in _namespaces(vars(module), module.__name__)]
    functions = {value for _, values in namespaces for value in map(_unwrap, values) if type(value) is FunctionType}
    own = [function for function in functions if function.__module__.startswith(__package__)]
    modules = frozenset(function.__module__ for function in own) | {module.__name__}
    _snapshots[module.__name__] = _Snapshot(namespaces, own, _codes(own), modules)


def _codes(functions: list[FunctionType]) -> tuple:
    return tuple(chain.from_iterable(map(_CODE, functions)))


def _namespaces(namespace: Any, module: str) -> Iterator[Any]:
    """A namespace, and those of what it holds: the module's own classes, tables, and what it keeps of torch."""
    yield namespace
    for value in tuple(namespace.values()):
        if type(value) is dict and value is not sys.modules:
            yield value
        elif type(value) is OfTorch:
            yield from _namespaces(vars(value), module)
        elif isinstance(value, type) and value.__module__ == module:
            yield vars(value)


def _unwrap(value: Any) -> Any:
    """The function in a method, or in a property."""
    return getattr(value, "__func__", None) or getattr(value, "fget", None) or value


def is_intact(*modules: str) -> bool:
    """Whether all is as it was in these modules, by default all, and in those whose functions they use, as far as these are kept.

    New names come last in their namespace. They are no change, but for those that hide a built-in name.
    """
    names = {other for name in modules or _snapshots if name in _snapshots for other in _snapshots[name].modules}
    snapshots = [_snapshots[name] for name in names if name in _snapshots]
    return all(_is_same(space, values) for snapshot in snapshots for space, values in snapshot.namespaces) and all(
        all(map(operator.is_, _codes(snapshot.functions), snapshot.codes)) for snapshot in snapshots
    )


def _is_same(namespace: Any, values: tuple) -> bool:
    return _begins(namespace, values) and BUILTINS.keys().isdisjoint(islice(namespace, len(values), None))


def _begins(namespace: Any, values: tuple) -> bool:
    """Whether the first values of a namespace are still these."""
    return len(namespace) >= len(values) and all(map(operator.is_, values, namespace.values()))


class ProcessState:
    """A picture of them, taken when it is made."""

    def __init__(self) -> None:
        # Values in the order of binding: what is bound anew stays in its place, and new names come last.
        self._values = {path: tuple(vars(owner).values()) for path, owner in _owners()}
        self._settings = _settings()

    def has_changed(self) -> bool:
        """Whether a name is bound to something else by now, of the libraries or of this package, or is gone, or a setting differs.

        New names are no change.
        """
        if _settings() != self._settings or not is_intact():
            return True
        return not all(_begins(vars(owner), self._values.get(path, ())) for path, owner in _owners())


def _owners() -> list[tuple[Any, Any]]:
    owners: list[tuple[Any, Any]] = [(name, sys.modules[name]) for name in MODULES if name in sys.modules]
    owners += [(path, getattr(sys.modules[path[0]], path[1])) for path in CLASSES if path[0] in sys.modules]
    return owners


def _settings() -> tuple[Any, ...]:
    numpy, torch = sys.modules["numpy"], sys.modules.get("torch")
    general = (tuple(numpy.geterr().items()), sys.getrecursionlimit(), os.getcwd(), sys.gettrace(), sys.getprofile())
    if torch is None:
        return general
    return general + (
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.get_num_threads(),
        str(torch.get_default_device()),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_inference_mode_enabled(),
    )
