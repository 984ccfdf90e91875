"""How lesson 18 is exercised: an attention module made here, whose heads are to be told apart, and a list of layers."""

from __future__ import annotations

import math
from typing import Any

import torch
from numpy import array, int64
from torch.nn import Linear, Module

from grader.worker.originals import BUILTINS, of_torch
from grader.worker.probes import Run, build, call_function, mark_result

from ..shared.probes import device_parts, identities, trainable

__builtins__ = BUILTINS

T = of_torch()


class Attention(Module):
    """Lesson 09's attention, by its contract alone: two layers, the number of heads, and a forward without dropout.

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


def attention(x: Any, run: Run) -> Any:
    """The module whose heads are asked for; options as for `contributions`."""
    _, t, d_model = T.get(x, "shape")
    sizes = d_model, run.options["heads"], run.options.get("max_len", t)
    return build(Attention, {"init": sizes, "state": run.options["state"]}).eval()


def contributions_on_device(function: Any, run: Run) -> dict[str, Any]:
    """As `on_device`, of what the function makes of a module and x; options as for `contributions`."""
    module = attention(run.args[0], run)
    return device_parts(lambda x: function(module, x), run, module)


def contributions(function: Any, run: Run) -> dict[str, Any]:
    """What the function makes of a module and x, and how the module is left.

    args: x (B, T, d_model). options: heads, state (weights by name), max_len (x's T where it is not given). Parts: 'result';
    'before' and 'after', which object is the parameter of each name in state, 0 for none; 'weights', their numbers; 'trainable', of
    each parameter; 'x requires a gradient'; 'hooks', how many are left on the module; 'training', of each of its parts; 'recording',
    whether torch records gradients after the call.
    """
    (x,), options = run.args, run.options
    module = attention(x, run)
    before = T.parameters(module)
    with T.grad_mode(True):
        result = call_function(function, run, module, x)
        still = T.grad_is_enabled()
    after, names = T.parameters(module), tuple(options["state"])
    parts = [own for _, own in T.submodules(module)]
    return {
        "result": mark_result(result),
        "before": identities(before, names),
        "after": identities(after, names),
        "weights": [T.numbers(one) for one in after.values()],
        "trainable": trainable(after),
        "x requires a gradient": bool(T.get(x, "requires_grad")),
        "hooks": sum(len(own.get(kind) or ()) for own in parts for kind in ("_forward_hooks", "_forward_pre_hooks")),
        "training": array([own["training"] is not False for own in parts]),
        "recording": still,
    }


def rollout(function: Any, run: Run) -> dict[str, Any]:
    """What the function makes of a list of tensors, and how it leaves them.

    args: the list. Parts: 'result'; 'before' and 'after', which objects the list holds; 'layers', the numbers of those before.
    """
    (layers,) = run.args
    held = [*layers]
    with T.grad_mode(True):
        result = call_function(function, run, layers)
    return {
        "result": mark_result(result),
        "before": array([*map(id, held)], int64),
        "after": array([*map(id, layers)], int64),
        "layers": [T.numbers(one) for one in held],
    }
