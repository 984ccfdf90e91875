"""Lesson 09, `copy_torch_weights`: one implementation with its mistakes as switches, and the cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from grader.lessons.lesson_09_module import LAYERS, state_of
from grader.lessons.switch import mistakes
from grader.model import Case, Mistake


def _thirds(whole: torch.Tensor, num_heads: int, bugs: tuple[str, ...]) -> Any:
    if "MU32" in bugs:
        return whole[0::3], whole[1::3], whole[2::3]
    if "PJ3" in bugs:
        d_head = len(whole) // 3 // num_heads
        return (part.flatten(0, 1) for part in whole.unflatten(0, (num_heads, 3, d_head)).unbind(1))
    q, k, v = whole.chunk(3)
    orders = {"MU31": (v, k, q), "k and v": (q, v, k), "q and k": (k, q, v)}
    return next((order for bug, order in orders.items() if bug in bugs), (q, k, v))


def copy(*bugs: str) -> Callable[[nn.Module, nn.MultiheadAttention], None]:
    """The reference's copy with the named bugs switched on; with none it is right."""

    def put(layer: nn.Linear, name: str, values: torch.Tensor, turned: bool) -> None:
        values = values.T if turned and name == "weight" else values
        if "MU36" in bugs:
            setattr(layer, name, nn.Parameter(values.clone()))
        elif "MU40" in bugs:
            setattr(layer, name, values)
        elif "MU37" in bugs:
            getattr(layer, name).data = values.data
        elif "MU39" in bugs:
            values.copy_(getattr(layer, name))
        else:
            getattr(layer, name).copy_(values)

    def copy_torch_weights(mine: nn.Module, torch_mha: nn.MultiheadAttention) -> None:
        out, heads = torch_mha.out_proj, torch_mha.num_heads
        layers = (mine.w_q, mine.w_k, mine.w_v)
        if {"MU41", "MU42"} & set(bugs):
            return whole(mine, torch_mha)
        three = "MU33" in bugs or "the three transposed" in bugs
        last = "MU33" in bugs or "the last transposed" in bugs
        with torch.set_grad_enabled("MU38" in bugs):
            for layer, weight in zip(layers, _thirds(torch_mha.in_proj_weight, heads, bugs), strict=True):
                put(layer, "weight", weight, three)
            if not {"MU34", "biases of the three"} & set(bugs):
                for layer, bias in zip(layers, _thirds(torch_mha.in_proj_bias, heads, bugs), strict=True):
                    put(layer, "bias", bias, three)
            if "MU35" not in bugs:
                put(mine.w_o, "weight", out.weight, last)
                if not {"MU34", "bias of the last"} & set(bugs):
                    put(mine.w_o, "bias", out.bias, last)

    def whole(mine: nn.Module, torch_mha: nn.MultiheadAttention) -> None:
        """All parameters at once: by their order in the module, or by a state_dict that has to fit it."""
        weights, biases = torch_mha.in_proj_weight.chunk(3), torch_mha.in_proj_bias.chunk(3)
        pairs = zip((*weights, torch_mha.out_proj.weight), (*biases, torch_mha.out_proj.bias), strict=True)
        values = [value.detach() for pair in pairs for value in pair]
        if "MU42" in bugs:
            names = (f"{layer}.{kind}" for layer in LAYERS for kind in ("weight", "bias"))
            mine.load_state_dict(dict(zip(names, values, strict=True)))
            return
        for parameter, value in zip(mine.parameters(), values, strict=True):
            parameter.data.copy_(value)

    return copy_torch_weights


MISTAKES = (
    *mistakes(copy, "MU31", "MU32", "MU33", "MU34", "MU35", "MU36", "MU37", "MU38", "MU39", "MU40", "MU41", "MU42", "PJ3"),
    Mistake("MU31", copy("k and v")),
    Mistake("MU31", copy("q and k")),
    Mistake("MU33", copy("the three transposed")),
    Mistake("MU33", copy("the last transposed")),
    Mistake("MU34", copy("biases of the three")),
    Mistake("MU34", copy("bias of the last")),
)


def cases(rng: np.random.Generator) -> Iterator[Case]:
    sizes = ((4, 2, "four numbers, two heads"), (6, 3, "six numbers, three heads"), (6, 3, "the same sizes, new weights"),
             (8, 2, "eight numbers, two heads"), (5, 1, "one head"), (4, 4, "heads of one number"))  # fmt: skip
    for i, (d, heads, title) in enumerate(sizes):
        other = i % 2 == 1
        state = state_of(rng, d)
        original = {
            "in_proj_weight": np.concatenate([state.pop(f"{name}.weight") for name in LAYERS[:3]]),
            "in_proj_bias": np.concatenate([state.pop(f"{name}.bias") for name in LAYERS[:3]]),
            "out_proj.weight": state.pop("w_o.weight"),
            "out_proj.bias": state.pop("w_o.bias"),
        }
        title += ", into a module that has w_o first and a buffer besides" if other else ""
        options = {"init": (d, heads, other), "mine": state_of(rng, d), "original": original}
        yield Case(f"copy-{i}", title, probe="lesson_09.copied", options=options)
