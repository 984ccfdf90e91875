"""That everything follows a module to another device is seen without that device, where it can be."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

FOLLOWS = "everything follows the module to another device"
MODULE = """
class Own(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.w_q, self.w_k, self.w_v = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        hidden = torch.ones(max_len, max_len, dtype=torch.bool).triu(1)
        self.register_buffer("hidden", hidden, persistent=False)
        self.plain = hidden.clone()

    def forward(self, x):
        t = x.shape[1]
        scores = self.w_q(x) @ self.w_k(x).mT / x.shape[-1] ** 0.5
        {masked}
        return torch.softmax(scores, dim=-1) @ self.w_v(x)
"""
CODE = """
import json, sys
import numpy as np, torch
from torch import nn
from types import SimpleNamespace
from grader.worker import originals
originals.of_torch()
from grader.course.course import open_course
from grader.worker.probes import Run, find, offer
from grader.worker.values import describe
course = open_course()
offer(course.probe_texts())
reading = course.module("06_masks.readings").buffer
names = ("w_q", "w_k", "w_v")
options = dict(init=(4, 6), state={f"{name}.weight": np.ones((4, 4), np.float32) for name in names}, linear=names, no_bias=names, max_len=6)
for module in json.loads(sys.argv[1]):
    exec(module)
    sent = find("06_masks.probes.buffer")(Own, Run((torch.ones(2, 3, 4),), options=options))
    found = reading(SimpleNamespace(options=options), {name: describe(value) for name, value in sent.items()})
    print(*(bool(found[name].array) for name in ("the mask is a buffer", sys.argv[2])), "sympy" in sys.modules)
"""
COMPUTED = [
    "scores = scores.masked_fill(self.hidden[:t, :t], -torch.inf)",
    "scores[:, self.hidden[:t, :t]] = -torch.inf",
    "scores = torch.where(self.hidden[:t, :t], -torch.inf, torch.stack(list(scores)))",
]
PLAIN = "scores = scores.masked_fill(self.plain[:t, :t], -torch.inf)"
LEFT = [
    "scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -torch.inf)",
    'scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool, device="cpu").triu(1), -torch.inf)',
    "with torch._C.DisableTorchFunction():\n            scores = scores.masked_fill(self.plain[:t, :t], -torch.inf)",
]
ANEW = f"if self.plain.device != x.device:\n            self.plain = self.hidden.clone()\n        {PLAIN}"
ON_X = "scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1), -torch.inf)"
ALL = [*COMPUTED, PLAIN, *LEFT, ANEW, ON_X]  # those that do without the computer algebra first: once imported, it stays


@pytest.fixture(scope="module")
def seen() -> dict[str, list[str]]:
    """Whether the mask is a buffer, whether everything follows, and whether torch's computer algebra has been imported by then."""
    modules = json.dumps([MODULE.format(masked=masked) for masked in ALL])
    done = subprocess.run(
        [sys.executable, "-c", CODE, modules, FOLLOWS], capture_output=True, text=True, cwd=ROOT, timeout=240
    )
    assert not done.returncode, done.stderr
    return dict(zip(ALL, map(str.split, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("masked", COMPUTED)
def test_what_is_computed_of_the_modules_own_tensors_follows_and_imports_no_computer_algebra(seen, masked):
    assert seen[masked] == ["True", "True", "False"]


def test_what_is_kept_as_a_plain_attribute_is_seen_without_the_computer_algebra(seen):
    assert seen[PLAIN] == ["True", "False", "False"]


@pytest.mark.parametrize("masked", LEFT)
def test_what_stays_behind_is_seen_though_the_buffer_is_there(seen, masked):
    assert seen[masked][:2] == ["True", "False"]


@pytest.mark.parametrize("masked", [ANEW, ON_X])
def test_what_is_made_for_the_device_of_the_inputs_follows(seen, masked):
    assert seen[masked][:2] == ["True", "True"]
