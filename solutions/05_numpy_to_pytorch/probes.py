"""How the answers of lesson 05 are exercised: a layer made from an array, one module called twice, an array made from a tensor."""

from __future__ import annotations

from typing import Any

import torch
from numpy import array, ascontiguousarray, asfortranarray, generic, int64, ndarray, zeros
from torch import nn
from torch.overrides import TorchFunctionMode

from grader.worker.originals import BUILTINS, is_a, memory, of_torch
from grader.worker.probes import ContractError, Run, call_function, gradients, mark_result, parameter

__builtins__ = BUILTINS

T = of_torch()
_GPU_REFUSAL = (
    "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
)


def linear(function: Any, run: Run) -> dict[str, Any]:
    """Builds a layer from w and reads it; then builds a second one.

    args: w (d_in, d_out), x (n, d_in). options: view, one of `_layouts`, says how w lies in memory.
    Parts: 'parameters', their names; 'layer.weight', and whether it 'requires grad'; where the layer can be used for x: its value
        there, its value there once another layer was made from other numbers, the gradient of the weight, and the addresses of
        those other numbers and of that other layer's weight.
    Raises: ContractError for another type, or a weight that is no parameter.
    """
    w, x = run.args
    layout = _layouts[run.options.get("view", "plain")]
    layer = call_function(function, run, layout(w))
    if not is_a(layer, T.Linear):
        raise ContractError(f"A {type(layer).__name__} came back; expected an nn.Linear.")
    weight = T.parameters(layer).get("weight")
    if not is_a(weight, T.Parameter):
        raise ContractError("The layer's weight is no nn.Parameter, so an optimizer cannot find it.")
    read = {
        "parameters": " ".join(T.parameters(layer)),
        "layer.weight": T.copy(weight),
        "requires grad": T.get(weight, "requires_grad"),
    }
    if T.get(weight, "dtype") != T.float32 or tuple(T.get(weight, "shape")) != w.shape[::-1]:
        return read  # the layer takes no such x
    inputs = T.tensor(ascontiguousarray(x), "float32")
    result = layer(inputs)
    read |= {"layer(x)": T.copy(result), **gradients(result, {"weight": weight} if read["requires grad"] else {})}
    other = layout(w + 1)
    addresses = memory(other), T.memory(parameter(function(other), "weight"))
    return {**read, "layer(x) after a second call with w + 1": layer(inputs), "addresses": array(addresses, int64)}


def _strided(w: ndarray) -> ndarray:
    """The same numbers as every second row and column of a larger array."""
    wide = zeros((2 * w.shape[0], 2 * w.shape[1]), dtype=w.dtype)
    wide[::2, ::2] = w
    return wide[::2, ::2]


_layouts = {"plain": ascontiguousarray, "fortran": asfortranarray, "strided": _strided}


def to_numpy(function: Any, run: Run) -> dict[str, Any]:
    """Hands a tensor over as the case asks and returns what came back.

    args: the tensor. options: view, one of `_views`.
    Parts: 'result'; its 'type', and whether that is 'one of NumPy'; whether the tensor required grad before the call, and does so
        after it.
    """
    tensor = _views[run.options.get("view", "plain")](run.args[0])
    before = T.get(tensor, "requires_grad")
    with _Transfers():
        result = call_function(function, run, tensor)
    return {
        "result": mark_result(result),
        "type": type(result).__name__,
        "one of NumPy": is_a(result, generic),
        "requires grad": array([before, T.get(tensor, "requires_grad")]),
        "shape": array(T.get(tensor, "shape"), int64),
    }


_as_subclass = torch.Tensor.as_subclass
_TO_NUMPY, _DLPACK, _COMES = (
    (torch.Tensor.numpy, torch.Tensor.__array__),
    torch.Tensor.__dlpack__,
    (torch.Tensor.numpy, torch.Tensor.cpu),
)


class Elsewhere(torch.Tensor):
    """A tensor that says it lies on a GPU and refuses NumPy as such a tensor does.

    It stands in for a device that the grading machine may lack. `.cpu()` and `.to("cpu")` give a plain tensor.
    """

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func in _ANSWERS:
            return _ANSWERS[func]
        if func in _TO_NUMPY and not (kwargs.get("force") or args[1:2] == (True,)):
            raise TypeError(_GPU_REFUSAL)
        if func is _DLPACK:
            raise RuntimeError("Unsupported device in DLTensor.")
        if func in _COMES or _goes_to_cpu(func, args, kwargs):
            return func(_plain(args[0]), *args[1:], **kwargs)
        if func is torch.Tensor.copy_ and not isinstance(args[0], cls):
            return args[0].copy_(_plain(args[1]))
        return super().__torch_function__(func, types, args, kwargs)


class _Transfers(TorchFunctionMode):
    """Lets `torch.as_tensor(tensor, device="cpu")` and its like move an `Elsewhere`, too."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        makes = func in (torch.as_tensor, torch.asarray, torch.tensor)
        if makes and args and isinstance(args[0], Elsewhere) and _is_cpu(kwargs.get("device")):
            args = (_plain(args[0]), *args[1:])
        return func(*args, **kwargs)


_ANSWERS = {
    torch.Tensor.device.__get__: torch.device("cuda", 0),
    torch.Tensor.is_cuda.__get__: True,
    torch.Tensor.is_cpu.__get__: False,
}


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.as_subclass(torch.Tensor)


def _goes_to_cpu(func: Any, args: tuple, kwargs: dict) -> bool:
    if func is torch.Tensor.type and len(args) + len(kwargs) > 1:
        return "cuda" not in str((*args[1:], *kwargs.values())) and "torch." in str((*args[1:], *kwargs.values()))
    if func is not torch.Tensor.to:
        return False
    for target in (*args[1:], *kwargs.values()):
        if isinstance(target, torch.Tensor) and not isinstance(target, Elsewhere):
            return True
        if _is_cpu(target):
            return True
    return False


def _is_cpu(target: Any) -> bool:
    return isinstance(target, (str, torch.device)) and torch.device(target).type == "cpu"


_views = {
    "plain": lambda tensor: tensor,
    "parameter": lambda tensor: nn.Parameter(tensor.detach()),
    "transposed": lambda tensor: tensor.transpose(0, -1),
    "strided": lambda tensor: tensor[..., ::2],
    "computed": lambda tensor: tensor * 1,  # not a leaf of the graph
    "elsewhere": lambda tensor: _as_subclass(tensor, Elsewhere),
}
