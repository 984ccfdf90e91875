"""How the answers of lesson 05 are exercised: a layer made from an array, one module called twice, an array made from a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from . import ContractError, Run, build, weighting

_GPU_REFUSAL = (
    "can't convert cuda:0 device type tensor to numpy. "
    "Use Tensor.cpu() to copy the tensor to host memory first."
)


def linear(function: Any, run: Run) -> dict[str, Any]:
    """Builds a layer from w and reads it; then builds a second one and looks for shared memory.

    args: w (d_in, d_out), x (n, d_in). options: view, one of `_layouts`, says how w lies in memory.
    Returns: the layer's weight, its value at x, its value at x once another layer was made from
             other numbers, and the gradient of the weight.
    Raises: ContractError for another type, a bias, another dtype, a weight that cannot be trained,
            or memory shared with w.
    """
    w, x = run.args
    layout = _layouts[run.options.get("view", "plain")]
    layer = _checked(function(layout(w)), w.shape)
    inputs = torch.from_numpy(np.ascontiguousarray(x)).float()
    result = layer(inputs)
    (gradient,) = torch.autograd.grad((result * weighting(result)).sum(), [layer.weight])
    read = {"layer.weight": layer.weight.detach().clone(), "layer(x)": result.detach().clone()}
    _separate(function, layout(w + 1))
    return {**read, "layer(x) after a second call with w + 1": layer(inputs).detach(), "gradient of weight": gradient}


def _checked(layer: Any, shape: tuple[int, int]) -> nn.Linear:
    """The layer, where it is what the contract describes."""
    d_in, d_out = shape
    if not isinstance(layer, nn.Linear):
        raise ContractError(f"A {type(layer).__name__} came back; the contract asks for an nn.Linear.")
    if layer.bias is not None:
        raise ContractError("The layer has a bias; the contract asks for a layer without one (bias=False).")
    if not isinstance(layer.weight, nn.Parameter):
        raise ContractError("The layer's weight is no nn.Parameter, so an optimizer cannot find it.")
    if layer.weight.dtype != torch.float32:
        found = str(layer.weight.dtype).removeprefix("torch.")
        raise ContractError(f"The layer's weight is {found}; the contract asks for float32.")
    if tuple(layer.weight.shape) != (d_out, d_in):
        raise ContractError(
            f"layer.weight has shape {tuple(layer.weight.shape)}; "
            f"nn.Linear stores (d_out, d_in), here ({d_out}, {d_in})."
        )
    if not layer.weight.requires_grad:
        raise ContractError("The layer's weight does not require grad, so training would never change it.")
    return layer


def _separate(function: Any, w: np.ndarray) -> None:
    """Raises ContractError where a layer made from w and w itself change together."""
    layer = function(w)
    before = layer.weight.detach().clone()
    w += 1
    if not torch.equal(layer.weight.detach(), before):
        raise ContractError("Changing w afterwards changed the layer: the two share memory.")
    kept = w.copy()
    with torch.no_grad():
        layer.weight.add_(1)
    if not np.array_equal(w, kept):
        raise ContractError("A step on the layer's weight changed w: the two share memory.")


def _strided(w: np.ndarray) -> np.ndarray:
    """The same numbers as every second row and column of a larger array."""
    wide = np.zeros((2 * w.shape[0], 2 * w.shape[1]), dtype=w.dtype)
    wide[::2, ::2] = w
    return wide[::2, ::2]


_layouts = {"plain": np.ascontiguousarray, "fortran": np.asfortranarray, "strided": _strided}


def two_calls(cls: Any, run: Run) -> dict[str, Any]:
    """Calls one module on two inputs of the same shape: what it kept of the first call must not come back in the second.

    options: as for `module`; beside, the arguments of a second module, made before the calls: what one module
    keeps must not change the other. args: the two inputs.
    """
    made = build(cls, run.options)
    cls(*run.options["beside"])
    made.train(run.options.get("mode", "eval") == "train")
    first, second = run.args
    return {"result": made(first), "second call": made(second)}


def to_numpy(function: Any, run: Run) -> dict[str, Any]:
    """Hands a tensor over as the case asks and returns what came back.

    args: the tensor. options: view, one of `_views`.
    Raises: ContractError where the tensor's requires_grad was switched, or a scalar came back in place of an array.
    """
    tensor = _views[run.options.get("view", "plain")](run.args[0])
    asked = tensor.requires_grad
    with _Transfers():
        result = function(tensor)
    if tensor.requires_grad != asked:
        raise ContractError(
            "The tensor that was handed over no longer requires grad: its caller can't train it any more."
        )
    if isinstance(result, (np.generic, bool, int, float)):
        kind = f"A NumPy scalar ({type(result).__name__})" if isinstance(result, np.generic) else f"A Python {type(result).__name__}"
        raise ContractError(f"{kind} came back; a NumPy array was asked for, here one of shape {tuple(tensor.shape)}.")
    return {"result": result}


class Elsewhere(torch.Tensor):
    """A tensor that says it lies on a GPU and refuses NumPy as such a tensor does.

    It stands in for a device that the grading machine may lack. `.cpu()` and `.to("cpu")` give a plain tensor.
    """

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func in _ANSWERS:
            return _ANSWERS[func]
        if func in (torch.Tensor.numpy, torch.Tensor.__array__) and not (kwargs.get("force") or args[1:2] == (True,)):
            raise TypeError(_GPU_REFUSAL)
        if func is torch.Tensor.__dlpack__:
            raise RuntimeError("Unsupported device in DLTensor.")
        if func in (torch.Tensor.numpy, torch.Tensor.cpu) or _goes_to_cpu(func, args, kwargs):
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
    "elsewhere": lambda tensor: tensor.as_subclass(Elsewhere),
}
