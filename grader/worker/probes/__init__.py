"""How a learner's object is exercised: one function a way, each returns raw values by name."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import inspect
import linecache
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from numpy import shape

from .. import originals, values
from ..integrity import take_snapshot
from ..originals import BUILTINS, OfTorch, is_a, of_torch
from ..values import CallLog, RawPart
from ..watch import pause_watching, watching

__builtins__ = BUILTINS  # type: ignore[assignment]


class ContractError(Exception):
    """Something that the contract names is missing or misshapen; the message says it in words."""


@dataclass
class Run:
    """The inputs of one observation, copied and ready for use.

    names: what the positional arguments are called where a gradient or a change is reported.
    watch: the groups of operations that a probe of BASIC watches for while the learner's code runs, and log those
        that ran (see watch.py). Every other probe is watched from its beginning to its end by whoever calls it.
    trusted: the candidate is the course's own code.
    """

    args: tuple
    kwargs: dict[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()
    log: CallLog = field(default_factory=CallLog)
    trusted: bool = False

    def inputs(self) -> dict[str, Any]:
        names = [*self.names, *(f"argument {i + 1}" for i in range(len(self.names), len(self.args)))]
        return {**dict(zip(names, self.args, strict=False)), **self.kwargs}


def find(name: str) -> Callable[[Any, Run], dict[str, Any]]:
    """The probe of that name: 'call', or '05_numpy_to_pytorch.probes.linear' for `linear` in that lesson's probes.py.

    Raises: KeyError where there is none.
    """
    if name in BASIC:
        return BASIC[name]
    module, _, function = name.rpartition(".")
    try:
        return getattr(_import(module), function)
    except (ImportError, AttributeError):
        raise KeyError(name) from None


def module_of(name: str) -> str:
    """The full name of the module of a probe."""
    return __name__ if name in BASIC else f"{__name__}.{name.rpartition('.')[0]}"


_texts: dict[str, str] = {}  # of the modules of probes of the course's lessons, by their dotted names
_modules: dict[str, Any] = {}


def offer(texts: Mapping[str, str]) -> None:
    """Says what the course's probes are, as text; each module is made when it is first needed.

    texts: of each module, by its name, '05_numpy_to_pytorch.probes'.
    """
    for name, text in texts.items():
        if _texts.get(name) != text:
            _texts[name] = text
            _modules.pop(name, None)
            sys.modules.pop(f"{__name__}.{name}", None)


def load_all(torch: bool) -> None:
    """Makes all modules of probes, those that need torch only with it: later none can be imported (see main.py)."""
    if not torch:
        sys.modules["torch"] = None  # type: ignore[assignment]
    expected = () if torch else (ImportError,)
    for name in _texts:
        with suppress(*expected):
            _import(name)
    if not torch:
        del sys.modules["torch"]


def _import(name: str) -> Any:
    if name not in _modules:
        importer = _Importer()
        sys.meta_path.insert(0, importer)
        try:
            module = importlib.import_module(f"{__name__}.{name}")
        finally:
            sys.meta_path.remove(importer)
        take_snapshot(module)
        _modules[name] = module
    return _modules[name]


class _Importer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the course's probes, and the packages around them, from their texts.

    A module's code bears the name of a file beside this one: by that, an operation that a probe calls is known as its own.
    """

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> Any:
        local_name = name.removeprefix(f"{__name__}.")
        is_package = any(module.startswith(f"{local_name}.") for module in _texts)
        if name == local_name or (not is_package and local_name not in _texts):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=is_package)

    def exec_module(self, module: Any) -> None:
        name = module.__name__.removeprefix(f"{__name__}.")
        if name in _texts:
            file = os.path.join(os.path.dirname(__file__), *name.split(".")) + ".py"
            linecache.cache[file] = (len(_texts[name]), None, _texts[name].splitlines(True), file)
            exec(compile(_texts[name], file, "exec"), vars(module))


def answer(value: Any, run: Run) -> dict[str, Any]:
    """The learner's value as it is."""
    return {"result": mark_result(value)}


def mark_result(value: Any, call: str = "") -> RawPart:
    """Marks what a call of the learner's object returned; call: which one it was, where it was not the first."""
    return RawPart(value, "returned", call)


def call_watched(function: Any, run: Run) -> Any:
    """What the function makes of the inputs."""
    with watching(run.watch, run.log):
        return call_function(function, run, *run.args)


def call_function(function: Any, run: Run, *args: Any) -> Any:
    """What the function makes of these. Option by_name: the parameters' names, by which to pass them."""
    # A hook of a module sees what goes by position.
    if "by_name" in run.options and not getattr(function, "_forward_pre_hooks", None):
        try:
            return function(**dict(zip(run.options["by_name"], args, strict=False)), **run.kwargs)
        except TypeError:
            if not _takes_any_number(function):
                raise
    return function(*args, **run.kwargs)


def _takes_any_number(function: Any) -> bool:
    """Whether it has a `*args`, as what a decorator puts around a function often does: the names are inside."""
    code = getattr(function, "__code__", None) or getattr(getattr(function, "forward", None), "__code__", None)
    return code is not None and bool(code.co_flags & inspect.CO_VARARGS)


def call(function: Any, run: Run) -> dict[str, Any]:
    """Calls the function; where inputs require grad, also their gradients."""
    result = call_watched(function, run)
    return {"result": mark_result(result), **gradients(result, differentiable(run))}


def differentiable(run: Run) -> dict[str, Any]:
    """The inputs that require a gradient, by name."""
    torch = of_torch()
    inputs = run.inputs() if torch is not None else {}
    return {
        name: value for name, value in inputs.items() if is_a(value, torch.Tensor) and torch.get(value, "requires_grad")
    }


def gradients(result: Any, inputs: Mapping[str, Any]) -> dict[str, RawPart]:
    """Gradients of one fixed weighting of everything differentiable in `result`, by name.

    The weights differ from element to element, so that errors cannot cancel. None where none arrives.
    """
    if not inputs:
        return {}
    with pause_watching():  # the backward pass is torch's own: watching it would cost as much again
        grads = _gradients(of_torch(), result, inputs)
    return {f"gradient of {name}": RawPart(value, "gradient", name) for name, value in zip(inputs, grads, strict=True)}


def _gradients(torch: OfTorch, result: Any, inputs: Mapping[str, Any]) -> Sequence[Any]:
    # A sum, not `grad_outputs`: for those torch imports a computer algebra, in a second.
    total = None
    for item in result if isinstance(result, (tuple, list)) else (result,):
        if is_a(item, torch.Tensor) and torch.get(item, "requires_grad") and torch.get(item, "dtype").is_floating_point:
            term = (item * weighting(item)).sum()
            total = term if total is None else total + term
    if total is None:
        return [None] * len(inputs)
    for name, value in inputs.items():
        if not torch.get(value, "requires_grad"):
            raise ContractError(f"{name} does not require a gradient any more: something switched requires_grad off.")
    return torch.gradients(total, tuple(inputs.values()))


def weighting(item: Any) -> Any:
    """A number between -1 and 1 for each element, of the item's type; all differ."""
    torch = of_torch()
    return torch.cos(torch.arange(item.numel(), dtype=torch.float64) + 1).reshape(item.shape).to(item)


def module(cls: Any, run: Run) -> dict[str, Any]:
    """Builds the module, gives it the case's weights, runs it.

    options: init (tuple), init_kwargs, state {'w_q.weight': array}, linear ('w_q', ...), no_bias ('w_q', ...),
    dtype ('float64'), mode ('eval' or 'train'; 'eval' by default), gradients (True: of float inputs that
    require grad and of the parameters in state), twice (True: a second call's result as 'second call').
    Raises: ContractError for attributes and parameters that do not fit the contract.
    """
    options = run.options
    module = build(cls, options)
    module.train(options.get("mode", "eval") == "train")
    result = call_watched(module, run)
    parts: dict[str, Any] = {"result": mark_result(result)}
    if options.get("twice"):
        with watching(run.watch, run.log):
            parts["second call"] = mark_result(module(*run.args, **run.kwargs), "second call")
    if options.get("gradients"):
        parameters = {name: parameter(module, name) for name in options.get("state", {})}
        parts |= gradients(result, differentiable(run) | parameters)
    return parts


def build(cls: Any, options: Mapping[str, Any]) -> Any:
    """An instance of a learner's module with the given weights; see `module` for the options."""
    with pause_watching():
        module, torch = cls(*options.get("init", ()), **options.get("init_kwargs", {})), of_torch()
        if not is_a(module, torch.Module):
            raise ContractError(
                f"{getattr(cls, '__name__', 'the class')}(...) gives a {type(module).__name__}, not an nn.Module."
            )
        for name in options.get("linear", ()):
            layer = attribute(module, name)
            if not is_a(layer, torch.Linear):
                raise ContractError(f"The attribute {name} is a {type(layer).__name__}; it should be an nn.Linear.")
        for name in options.get("no_bias", ()):
            if torch.parameter(attribute(module, name), "bias") is not None:
                raise ContractError(f"The layer {name} has a bias; it should have none (bias=False).")
        pairs: list[tuple[Any, Any]] = []
        holders: dict[int, tuple[str, Any]] = {}
        for name, array in options.get("state", {}).items():
            target = parameter(module, name)
            actual = tuple(torch.get(target, "shape"))
            if actual != shape(array):
                raise ContractError(f"{name} has shape {actual}; expected {shape(array)}.")
            twin, other = holders.setdefault(id(target), (name, array))
            if twin != name and (other != array).any():  # the numbers of one would overwrite the other's
                raise ContractError(f"{twin} and {name} are one and the same tensor; each needs its own.")
            pairs.append((target, array))
        torch.fill(pairs)
        return module.to(torch.dtypes[options["dtype"]]) if options.get("dtype") else module


def parameter(module: Any, name: str) -> Any:
    """The parameter of that dotted name. Raises ContractError where there is none."""
    owner, _, leaf = name.rpartition(".")
    holder = attribute(module, owner) if owner else module
    value = of_torch().parameter(holder, leaf)
    if value is None and leaf == "bias" and is_a(holder, of_torch().Module) and getattr(holder, leaf, 0) is None:
        raise ContractError(f"The layer {owner} has no bias; it should have one.")
    if value is None:
        value = getattr(holder, leaf, None)
    if not is_a(value, of_torch().Parameter):
        kind = "missing" if value is None else f"a {type(value).__name__}"
        raise ContractError(
            f"The parameter {name} is {kind}: give the module's parameters the names that the task gives."
        )
    return value


def attribute(module: Any, path: str) -> Any:
    """What a module has of that name: one of its modules, else another attribute. Raises ContractError where there is none."""
    value = of_torch().submodule(module, path)
    if value is not None:
        return value
    value = module
    for name in path.split("."):
        try:
            value = value[int(name)] if name.isdigit() else getattr(value, name)
        except (AttributeError, IndexError, TypeError, KeyError):
            raise ContractError(
                f"The module has no attribute {path}: give its parts the names that the task gives."
            ) from None
    return value


BASIC: dict[str, Callable[[Any, Run], dict[str, Any]]] = {"answer": answer, "call": call, "module": module}
for _module in (originals, values, sys.modules[__name__]):
    take_snapshot(_module)
