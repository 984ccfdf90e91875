"""Lesson 06: attention with a mask, and a module that carries one."""

from __future__ import annotations

from typing import Any

from . import ContractError, Run, build, gradients


def attend(function: Any, run: Run) -> dict[str, Any]:
    """Calls function(q, k, v[, mask]) and takes its gradients.

    options: output_only (True leaves the weights aside, whose dtype is free in half precision);
    none_is_zero (True: a gradient may be None, as where no row sees a key).
    """
    result = function(*run.args, **run.kwargs)
    wanted = {name: value for name, value in run.named().items() if getattr(value, "requires_grad", False) is True}
    parts: dict[str, Any] = {"result": result}
    if run.options.get("output_only"):
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise ContractError(f"A {type(result).__name__} was returned; two things were asked for: (output, weights).")
        parts = {"output": result[0]}
    found = gradients(result, wanted)
    if run.options.get("none_is_zero"):
        found = {name: _zeros(run, name) if value is None else value for name, value in found.items()}
    return {**parts, **found}


def _zeros(run: Run, name: str) -> Any:
    import torch

    return torch.zeros_like(run.named()[name.removeprefix("gradient of ")])


def buffer(cls: Any, run: Run) -> dict[str, Any]:
    """How a module keeps its mask: as a buffer, outside of state_dict, and on the device that the module is on.

    options: as for `module`; max_len. args: (x,), whose shape is used on the meta device.
    """
    import torch

    made = build(cls, run.options).eval()
    made(*run.args)  # a buffer may be filled by the first call
    enough = run.options["max_len"] ** 2
    buffers = {name for name, value in made.named_buffers() if value is not None and value.numel() >= enough}
    saved = {name for name in made.state_dict() if name in buffers}
    moved = made.to("meta")
    try:
        followed = moved(torch.empty(run.args[0].shape, device="meta")).device.type == "meta"
    except RuntimeError as error:
        if "device" not in str(error):
            raise
        followed = False  # a tensor stayed behind; torch's words for it depend on the operation that met it
    return {
        "the mask is a buffer": bool(buffers),
        "the mask is saved in state_dict": bool(saved),
        "everything follows the module to another device": followed,
    }
