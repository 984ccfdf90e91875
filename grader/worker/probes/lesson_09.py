"""How `copy_torch_weights` of lesson 09 is exercised: on a module made here, from one of torch's with given weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from . import Run, build

LAYERS = ("w_q", "w_k", "w_v", "w_o")


class Mine(nn.Module):
    """The attributes that the contract names, and nothing else."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))


def copied(function: Any, run: Run) -> dict[str, Any]:
    """What the call leaves in the module, and in the original.

    options: init (d_model, num_heads), mine and original (weights by name of the two modules before the call).
    """
    options = run.options
    mine = build(Mine, {"init": options["init"], "state": options["mine"]})
    original = build(lambda *init: nn.MultiheadAttention(*init, batch_first=True), {"init": options["init"], "state": options["original"]})
    before, kept = dict(mine.named_parameters()), {name: value.clone() for name, value in original.state_dict().items()}
    function(mine, original)
    after = dict(mine.named_parameters())
    theirs = {value.untyped_storage().data_ptr() for value in original.parameters()}
    names = [f"{layer}.{kind}" for layer in LAYERS for kind in ("weight", "bias")]
    return {name: after[name].detach() for name in names if name in after} | {
        "the parameters are the same objects as before": all(after.get(name) is value for name, value in before.items()),
        "memory is shared with the original": any(value.untyped_storage().data_ptr() in theirs for value in after.values()),
        "the original has changed": any(not torch.equal(value, kept[name]) for name, value in original.state_dict().items()),
    }
