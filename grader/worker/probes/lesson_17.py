"""How lesson 17 is exercised: an attention module made here, whose heads are to be told apart, and a list of layers."""

from __future__ import annotations

import math
from typing import Any

import torch
from numpy import array, float32
from torch.nn import Linear, Module

from ..originals import BUILTINS, of_torch
from . import Run, build, called, returned

__builtins__ = BUILTINS

T = of_torch()


class Attention(Module):
    """Lesson 11's attention, by its contract alone: two layers, the number of heads, and a forward without dropout.

    What computes it is bound here at once: a cell of the learner's may bind torch's names to something else.
    """

    def __init__(self, d_model: int, num_heads: int, max_len: int) -> None:
        super().__init__()
        self.num_heads, self.max_len = num_heads, max_len
        self.qkv, self.proj = Linear(d_model, 3 * d_model, bias=False), Linear(d_model, d_model, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        return self.proj((scores.masked_fill(future, -math.inf).softmax(dim=-1) @ v).transpose(1, 2).flatten(2))


def contributions(function: Any, run: Run) -> dict[str, Any]:
    """What the function makes of a module and x, and whether the module is as it was.

    args: x (B, T, d_model). options: heads, state (weights by name), max_len (x's T where it is not given).
    """
    (x,), options = run.args, run.options
    _, t, d_model = T.get(x, "shape")
    module = build(Attention, {"init": (d_model, options["heads"], options.get("max_len", t)), "state": options["state"]}).eval()
    before = T.parameters(module)
    with T.recording(True):
        result = called(function, run, module, x)
        still = T.grad_is_enabled()
    given = {name: array(numbers, float32).tobytes() for name, numbers in options["state"].items()}
    after = T.parameters(module)
    left = {name: T.numbers(value).tobytes() for name, value in after.items()}
    hooked = any(own.get(kind) for _, own in T.parts(module) for kind in ("_forward_hooks", "_forward_pre_hooks"))
    return {
        "result": returned(result), "the module's weights are as they were": left == given,
        "the module's parameters are the same objects as before": all(after.get(name) is one for name, one in before.items()),
        "the module's parameters require gradients, as before": all(T.get(one, "requires_grad") for one in after.values()),
        "x requires a gradient after the call": bool(T.get(x, "requires_grad")),
        "a hook is left on the module": hooked,
        "the module is in eval mode": not any(own["training"] for _, own in T.parts(module)),
        "torch records gradients after the call": still,
    }  # fmt: skip


def rolled(function: Any, run: Run) -> dict[str, Any]:
    """What the function makes of a list of tensors, and whether the list and they are as they were.

    args: the list.
    """
    (layers,) = run.args
    held = [(one, T.numbers(one).tobytes()) for one in layers]
    with T.recording(True):
        result = called(function, run, layers)
    same = len(layers) == len(held) and all(one is other for one, (other, _) in zip(layers, held, strict=True))
    return {
        "result": returned(result),
        "the list and its weights are as they were": same and all(T.numbers(one).tobytes() == before for one, before in held),
    }
