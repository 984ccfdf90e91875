"""What a zygote does once, so that no worker has to: every way of trying an exercise is gone through on small inputs.

The first call of everything is dear: NumPy and torch look up their kernels, Python specialises its code and imports what is
late. Forks inherit what was done here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import protocol
from .cells import CellRunner
from .contamination import ProcessState
from .main import answer_of, body_of, run_cell
from .values import Tensor

TIMES = 12  # Python specialises what has run eight times

# The operations that solutions are made of, put together to nothing: a learner's code could read this.
CELLS = """
import numpy as np

def rows(x, y):
    z = np.exp(-x * x) + x.max(axis=0, keepdims=True)
    return np.swapaxes(z, -1, -2) @ y / (1 + z.sum(axis=-1, keepdims=True)), [np.einsum('ij,jk->ki', x, y), (x ** 2).mean()]
"""
TORCH_CELLS = """
import math
import torch
from torch import nn
import torch.nn.functional as F

def tensors(x, y):
    z = torch.exp(-x * x) + x.amax(dim=0, keepdim=True)
    filled = (x.transpose(-2, -1) @ y + math.pi).masked_fill(torch.ones(2, 2).bool(), 0.5)
    return z / (1 + z.sum(dim=-1, keepdim=True)), torch.where(filled > 0, filled + x, 0.0).sum(-1)

class Module(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w_q = nn.Linear(width, width, bias=False)
        self.drop = nn.Dropout(0.1)
        self.register_buffer('kept', torch.ones(width))

    def forward(self, x):
        return self.drop(self.w_q(x) * self.kept).view(1, 2, 2).transpose(-2, -1).reshape(2, 2)
"""


def rehearse(torch: bool) -> list[str]:
    """Goes through everything, torch's part only if asked to. Returns what failed: nothing should."""
    x = np.array([[1.0, 2.0], [3.0, 5.0]])
    asked = [("rows", _case("call", (x, x), watch=("softmax", "attention", "einsum")))]
    notebook = CellRunner()
    if torch:
        tensor = Tensor(x, "float32", requires_grad=True)
        watch = ("softmax", "attention")
        asked += [
            ("tensors", _case("call", (tensor, tensor), watch=(*watch, "table"))),
            (
                "Module",
                _case(
                    "module",
                    (tensor,),
                    init=(2,),
                    linear=("w_q",),
                    no_bias=("w_q",),
                    watch=watch,
                    state={"w_q.weight": x},
                    gradients=True,
                    twice=True,
                    state_dict=True,
                ),
            ),
        ]
    failed = []
    for _ in range(TIMES):
        around = ProcessState()
        run_cell(notebook, {"label": "rehearsal", "text": CELLS + TORCH_CELLS * torch, "wanted": ("rows",)})
        for name, case in asked:
            seen = protocol.unpack(body_of(answer_of(notebook, name, case)))["observation"]
            failed += [f"{name}: {seen['failure']}"] if seen["failure"] else []
        failed += ["the state of the process"] if around.changed() else []
    return failed


def _case(probe: str, args: tuple, **options: Any) -> dict[str, Any]:
    return {"probe": probe, "args": args, "kwargs": {}, "options": options, "names": ("x", "y")[: len(args)]}
