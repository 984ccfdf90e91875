"""What the grader's own code uses beside a learner's, taken before any of the learner's ran.

A cell may bind `np.array_equal`, `torch.Tensor.data_ptr`, `nn.Module.named_buffers` or `builtins.isinstance` to something
else. What looks at a learner's result uses what is kept here in their place: C's functions and methods, which cannot be
changed, and classes. A module of this package that looks at results also binds `__builtins__` to BUILTINS below its
imports: Python looks up the built-in names of the functions defined there in it.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from sys import modules
from typing import Any

from numpy import array, ndarray

BUILTINS = dict(vars(builtins))
__builtins__ = BUILTINS  # type: ignore[assignment]

_subclass = type.__subclasscheck__
_instances: list[OfTorch] = []


def is_a(value: Any, cls: type) -> bool:
    """isinstance(), which neither the value's `__class__` nor the class's `__instancecheck__` answers."""
    return _subclass(cls, type(value))


def of_torch() -> Any:
    """torch's, once torch has been imported; None before."""
    if not _instances and modules.get("torch") is not None:  # None where somebody forbids its import
        _instances.append(OfTorch())
    return _instances[0] if _instances else None


class OfTorch:
    """torch's classes, and C's ways to read its tensors and modules."""

    def __init__(self) -> None:
        import torch
        from torch import _C, nn

        base = _C.TensorBase
        self.Tensor, self.Parameter, self.Module = torch.Tensor, nn.Parameter, nn.Module
        self.Linear, self.LayerNorm, self.Sequential, self.device = nn.Linear, nn.LayerNorm, nn.Sequential, torch.device
        self.Embedding, self.ModuleList = nn.Embedding, nn.ModuleList
        self.float32, self.float64, self.bfloat16 = torch.float32, torch.float64, torch.bfloat16
        self.strided = torch.strided
        self.dtypes = {name: value for name, value in vars(torch).items() if type(value) is torch.dtype}
        self.from_numpy, self.cos, self.arange = torch.from_numpy, torch.cos, torch.arange
        self.Generator, self.global_generator = torch.Generator, torch.default_generator
        self.grad_is_enabled, self.enable_grad = torch.is_grad_enabled, _C._set_grad_enabled
        self._run_backward = torch.autograd.Variable._execution_engine.run_backward
        self._functions, self._dispatch = _C.DisableTorchFunction, _C._DisableTorchDispatch
        self._numpy, self._float, self._to, self._copy = base.numpy, base.float, base.to, base.copy_
        self._data_ptr, self._numel, self._stride = base.data_ptr, base.numel, base.stride
        self.storage, self.element_size = base.untyped_storage, base.element_size
        self.nbytes = _C.StorageBase.nbytes  # type: ignore[attr-defined]
        self._requires, self._detach, self._clone = base.requires_grad_, base.detach, base.clone
        self._getters = {
            name: getattr(base, name).__get__ for name in ("dtype", "shape", "device", "layout", "requires_grad")
        }
        self._dict_of = vars(nn.Module)["__dict__"].__get__

    def get(self, tensor: Any, name: str) -> Any:
        """Its dtype, shape, device, layout or requires_grad; whatever its class and the modes of the moment say."""
        with self._functions():
            return self._getters[name](tensor)

    def getter(self, name: str) -> Any:
        """A function that gives what `get` does, for whoever has torch's function modes disabled."""
        return self._getters[name]

    def numel(self, tensor: Any) -> int:
        with self._functions():
            return self._numel(tensor)

    def numbers(self, tensor: Any) -> ndarray:
        """A copy of a dense tensor's numbers; float32 for bfloat16."""
        with self._functions(), self._dispatch():
            narrow = self._getters["dtype"](tensor) is self.bfloat16
            return array(self._numpy(self._float(tensor) if narrow else tensor, force=True), order="C")

    def tensor(self, numbers: ndarray, dtype: str | None = None, requires_grad: bool = False) -> Any:
        """A tensor of these numbers, in memory of its own."""
        with self._functions(), self._dispatch():
            tensor = self.from_numpy(array(numbers))
            tensor = tensor if dtype is None else self._to(tensor, self.dtypes[dtype])
            return self._requires(tensor, True) if requires_grad else tensor

    def copy(self, value: Any) -> Any:
        """A tensor of the same numbers, which nothing changes later; anything else as it is."""
        if not is_a(value, self.Tensor):
            return value
        with self._functions(), self._dispatch():
            return self._clone(self._detach(value))

    def fill(self, pairs: list[tuple[Any, ndarray]]) -> None:
        """Writes numbers into parameters, which stay the same objects."""
        with self.grad_mode(False), self._functions(), self._dispatch():
            for tensor, numbers in pairs:
                self._copy(tensor, self.from_numpy(array(numbers, order="C")))

    def gradients(self, loss: Any, inputs: tuple) -> tuple:
        """torch.autograd.grad of one number; None where nothing arrives."""
        unit = self.tensor(array(1.0), None)
        with self._functions(), self._dispatch():
            unit = self._to(unit, self._getters["dtype"](loss))
        return self._run_backward((loss,), (unit,), False, False, inputs, allow_unreachable=True, accumulate_grad=False)

    def memory(self, tensor: Any) -> tuple[int, int]:
        """The addresses at which its numbers begin and end."""
        with self._functions(), self._dispatch():
            shape, start = tuple(self._getters["shape"](tensor)), self._data_ptr(tensor)
            last = sum((size - 1) * step for size, step in zip(shape, self._stride(tensor), strict=True))
            return start, start + (0 if 0 in shape else (last + 1) * self.element_size(tensor))

    def storage_size(self, tensor: Any) -> int:
        """How many numbers of its type the memory has in which it lies."""
        try:
            # Asked for each operator that runs, so without a context.
            return self.nbytes(self.storage(tensor)) // self.element_size(tensor)
        except (NotImplementedError, RuntimeError):  # it has none, or in pieces: sparse, nested, of a transform's own
            return self.numel(tensor)

    @contextmanager
    def grad_mode(self, on: bool) -> Iterator[None]:
        """torch records gradients inside the block, or does not; what a call leaves behind ends there."""
        previous = self.grad_is_enabled()
        self.enable_grad(on)
        try:
            yield
        finally:
            self.enable_grad(previous)

    def submodules(self, module: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every module in a module, itself first, as the beginning of its names ('blocks.0.') and its `__dict__`."""
        pending: list[tuple[str, Any, tuple[int, ...]]] = [("", module, ())]
        while pending:
            prefix, module, path = pending.pop()
            if not is_a(module, self.Module) or id(module) in path:
                continue
            own = self._dict_of(module)
            yield prefix, own
            parts = [(f"{prefix}{name}.", value, (*path, id(module))) for name, value in entries(own, "_modules")]
            pending += reversed(parts)

    def submodule(self, module: Any, path: str) -> Any:
        """The module of that name in a module; None where there is none."""
        for name in path.split("."):
            module = self._member(module, "_modules", name)
        return module

    def parameter(self, module: Any, name: str) -> Any:
        """A module's own parameter of that name; None where there is none."""
        return self._member(module, "_parameters", name)

    def _member(self, module: Any, kind: str, name: str) -> Any:
        members: Any = self._dict_of(module).get(kind) if is_a(module, self.Module) else None
        return dict.get(members, name) if is_a(members, dict) else None

    def parameters(self, module: Any) -> dict[str, Any]:
        """By name."""
        return {
            prefix + name: value
            for prefix, own in self.submodules(module)
            for name, value in entries(own, "_parameters")
        }

    def buffers(self, module: Any) -> dict[str, tuple[Any, bool]]:
        """By name: each with whether `state_dict` holds it."""
        buffers = {}
        for prefix, own in self.submodules(module):
            transient = own.get("_non_persistent_buffers_set", ())
            for name, value in entries(own, "_buffers"):
                buffers[prefix + name] = value, name not in transient
        return buffers

    def plain_tensors(self, module: Any) -> dict[str, Any]:
        """By name: tensors of more than one number that are neither parameters nor buffers; `module.to` leaves them behind."""
        attributes = (
            (prefix + name, value) for prefix, own in self.submodules(module) for name, value in dict.items(own)
        )
        return {name: value for name, value in attributes if is_a(value, self.Tensor) and self.numel(value) > 1}

    def state_dict_names(self, module: Any) -> list[str]:
        """The names in `state_dict`, sorted."""
        persistent = [name for name, (_, is_persistent) in self.buffers(module).items() if is_persistent]
        return sorted([*self.parameters(module), *persistent])

    def change(self, module: Any, function: Callable[[Any], Any]) -> None:
        """Puts something else in the place of each parameter and buffer."""
        for _, own in self.submodules(module):
            for kind in ("_parameters", "_buffers"):
                for name, value in entries(own, kind):
                    dict.__setitem__(own[kind], name, function(value))


def memory(numbers: ndarray) -> tuple[int, int]:
    """The addresses at which an array's numbers begin and end."""
    start = numbers.__array_interface__["data"][0]
    return start, start + sum(
        (size - 1) * step for size, step in zip(numbers.shape, numbers.strides, strict=True)
    ) + numbers.itemsize


def entries(own: dict[str, Any], kind: str) -> list[tuple[str, Any]]:
    """What a module's `__dict__` holds of '_modules', '_parameters' or '_buffers'; without what is None."""
    members: Any = own.get(kind)
    return [(name, value) for name, value in dict.items(members) if value is not None] if is_a(members, dict) else []
