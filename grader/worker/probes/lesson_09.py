"""How lesson 09 is exercised: a module that has been called before, and one made here to copy weights into."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from . import Run, build, module as run_module

LAYERS = ("w_q", "w_k", "w_v", "w_o")


def after_others(cls: Any, run: Run) -> dict[str, Any]:
    """As `module`, of a module that has been called before: what it keeps of a call is to change no later one.

    options: as for `module`; earlier (the arrays of each earlier call).
    """
    made = build(cls, run.options)
    made.train(run.options.get("mode", "eval") == "train")
    for arrays in run.options["earlier"]:
        made(*(torch.from_numpy(np.array(array)) for array in arrays))
    return run_module(lambda *_: made, run)


class Mine(nn.Module):
    """The attributes that the contract names; and in another order, with something beside them."""

    def __init__(self, d_model: int, num_heads: int, other: bool = False) -> None:
        super().__init__()
        self.num_heads = num_heads
        for name in LAYERS[::-1] if other else LAYERS:
            setattr(self, name, nn.Linear(d_model, d_model))
        if other:
            self.register_buffer("calls", torch.zeros(()))


def copied(function: Any, run: Run) -> dict[str, Any]:
    """What the call leaves in the module, and in the original.

    options: init (d_model, num_heads and, where it is another module of these attributes, True), mine and original (weights by
    name of the two modules before the call).
    """
    options = run.options
    mine = build(Mine, {"init": options["init"], "state": options["mine"]})
    d_model, num_heads = options["init"][:2]
    original = build(lambda: nn.MultiheadAttention(d_model, num_heads, batch_first=True), {"state": options["original"]})
    before, kept = dict(mine.named_parameters()), {name: value.clone() for name, value in original.state_dict().items()}
    with torch.set_grad_enabled(True):  # what a call leaves behind ends here
        function(mine, original)
        still = torch.is_grad_enabled()
    after = dict(mine.named_parameters())
    theirs = {value.untyped_storage().data_ptr() for value in original.parameters()}
    names = [f"{layer}.{kind}" for layer in LAYERS for kind in ("weight", "bias")]
    return {name: after[name].detach() for name in names if name in after} | {
        "the parameters are the same objects as before": all(after.get(name) is value for name, value in before.items()),
        "memory is shared with the original": any(value.untyped_storage().data_ptr() in theirs for value in after.values()),
        "the original has changed": any(not torch.equal(value, kept[name]) for name, value in original.state_dict().items()),
        "the parameters are trainable": all(value.requires_grad for value in after.values()),
        "torch records gradients after the call": still,
    }
