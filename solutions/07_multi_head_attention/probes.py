"""How lesson 07 is exercised: a module that has been called before, and one made here to copy weights into."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import Linear, Module, MultiheadAttention

from grader.worker.originals import BUILTINS, of_torch
from grader.worker.probes import Run, build, call_function

from ..shared.probes import addresses, identities, trainable

__builtins__ = BUILTINS

T = of_torch()
LAYERS = ("w_q", "w_k", "w_v", "w_o")


class Mine(Module):
    """The attributes that the contract names; and in another order, with something beside them."""

    def __init__(self, d_model: int, num_heads: int, other: bool = False) -> None:
        super().__init__()
        self.num_heads = num_heads
        for name in LAYERS[::-1] if other else LAYERS:
            setattr(self, name, Linear(d_model, d_model))
        if other:
            self.register_buffer("calls", torch.zeros(()))


def weight_copy(function: Any, run: Run) -> dict[str, Any]:
    """What the call leaves in the module, and in the original.

    options: init (d_model, num_heads and, where it is another module of these attributes, True), mine and original (weights by
    name of the two modules before the call). Parts: the weights by name; 'before' and 'after', of the module (which object is the
    parameter of each name, as the contract orders them, 0 for none); 'memory' and 'memory of the original' (the addresses of each
    parameter); 'original' (its numbers, in the order of the option); 'trainable' and 'original trainable' (of each parameter);
    'recording' (whether torch records gradients after the call).
    """
    options = run.options
    mine = build(Mine, {"init": options["init"], "state": options["mine"]})
    d_model, num_heads = options["init"][:2]
    original = build(lambda: MultiheadAttention(d_model, num_heads, batch_first=True), {"state": options["original"]})
    before, trained = T.parameters(mine), T.parameters(original)
    with T.grad_mode(True):
        call_function(function, run, mine, original)
        still = T.grad_is_enabled()
    after, theirs = T.parameters(mine), T.parameters(original)
    names = [f"{layer}.{kind}" for layer in LAYERS for kind in ("weight", "bias")]
    return {name: after[name] for name in names if name in after} | {
        "before": identities(before, names),
        "after": identities(after, names),
        "memory": addresses(after),
        "memory of the original": addresses(theirs),
        "original": [T.numbers(theirs[name]) if name in theirs else None for name in options["original"]],
        "trainable": trainable(after),
        "original trainable": trainable(trained),
        "recording": still,
    }
