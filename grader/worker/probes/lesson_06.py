"""Lesson 06: attention with a mask, and a module that carries one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy import float32, zeros

from ..originals import BUILTINS, is_a, of_torch
from ..values import Marked
from . import ContractError, Run, build, differentiable, gradients, returned

__builtins__ = BUILTINS


def attend(function: Any, run: Run) -> dict[str, Any]:
    """Calls function(q, k, v[, mask]) and takes its gradients.

    options: output_only (True leaves the weights aside, whose dtype is free in half precision);
    none_is_zero (True: a gradient may be None, as where no row sees a key).
    """
    result = function(*run.args, **run.kwargs)
    wanted = differentiable(run)
    parts: dict[str, Any] = {"result": returned(result)}
    if run.options.get("output_only"):
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise ContractError(f"A {type(result).__name__} was returned; two things were asked for: (output, weights).")
        parts = {"output": result[0]}
    found = gradients(result, wanted)
    if run.options.get("none_is_zero"):
        found = {name: _or_zeros(run, value) for name, value in found.items()}
    return {**parts, **found}


def _or_zeros(run: Run, gradient: Marked) -> Marked:
    """A gradient, zeros where none arrives."""
    if gradient.value is not None:
        return gradient
    return replace(gradient, value=zeros(tuple(of_torch().get(run.named()[gradient.of], "shape")), float32))


def buffer(cls: Any, run: Run) -> dict[str, Any]:
    """How a module keeps its mask: as a buffer, outside of state_dict, and on the device that the module is on.

    options: as for `module`; max_len. args: (x,), whose shape is used on the meta device.
    """
    torch, made = of_torch(), build(cls, run.options).eval()
    made(*run.args)  # a buffer may be filled by the first call
    masks = [kept for buffer, kept in torch.buffers(made).values() if torch.numel(buffer) >= run.options["max_len"] ** 2]
    torch.move(made, "meta")
    try:
        result = made(torch.moved(run.args[0], "meta"))
        followed = is_a(result, torch.Tensor) and torch.get(result, "device").type == "meta"
    except RuntimeError as error:
        if "device" not in str(error):
            raise
        followed = False  # a tensor stayed behind; torch's words for it depend on the operation that met it
    return {
        "the mask is a buffer": bool(masks),
        "the mask is saved in state_dict": any(masks),
        "everything follows the module to another device": followed,
    }
