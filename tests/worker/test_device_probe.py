"""That everything follows a module to another device is seen without that device, where it can be."""

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.xdist_group("device probe")  # one process for all
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
{module}
names = ("w_q", "w_k", "w_v")
options = dict(init=(4, 6), state={{f"{{name}}.weight": np.ones((4, 4), np.float32) for name in names}}, linear=names, no_bias=names, max_len=6)
found = find("lesson_06.buffer")(Own, Run((torch.ones(2, 3, 4),), options=options))
print(found["the mask is a buffer"], found["{follows}"], "sympy" in sys.modules)
"""
# torch is imported once; what one piece of code imports beyond it, the next does not find.
PROCESS = """
import json, os, sys, traceback
import numpy as np, torch
from torch import nn
from grader.worker import originals
from grader.worker.probes import Run, find
originals.of_torch()
for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            exec(json.loads(line), dict(globals()))
        except BaseException:
            traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
    print("END", flush=True)
"""


@pytest.fixture(scope="module")
def seen():
    """seen(masked) -> whether the mask is a buffer, whether everything follows, and whether torch's computer algebra was imported."""
    process = subprocess.Popen([sys.executable, "-c", PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    def of(masked: str) -> list[str]:
        code = CODE.format(module=MODULE.format(masked=masked), follows=FOLLOWS)
        process.stdin.write(json.dumps(code) + "\n")
        process.stdin.flush()
        said = ""
        while (line := process.stdout.readline()) != "END\n":
            assert line, "the process has ended"
            said += line
        assert "Traceback" not in said, said
        return said.split()

    yield of
    process.stdin.close()
    assert process.wait(60) == 0
    process.stdout.close()


@pytest.mark.parametrize("masked", [
    "scores = scores.masked_fill(self.hidden[:t, :t], -torch.inf)",
    "scores[:, self.hidden[:t, :t]] = -torch.inf",
    "scores = torch.where(self.hidden[:t, :t], -torch.inf, torch.stack(list(scores)))",
])  # fmt: skip
def test_what_is_computed_of_the_modules_own_tensors_follows_and_imports_no_computer_algebra(seen, masked):
    assert seen(masked) == ["True", "True", "False"]


@pytest.mark.parametrize("masked", [
    "scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -torch.inf)",
    'scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool, device="cpu").triu(1), -torch.inf)',
    "with torch._C.DisableTorchFunction():\n            scores = scores.masked_fill(self.plain[:t, :t], -torch.inf)",
])  # fmt: skip
def test_what_stays_behind_is_seen_though_the_buffer_is_there(seen, masked):
    assert seen(masked)[:2] == ["True", "False"]


def test_what_is_kept_as_a_plain_attribute_is_seen_without_the_computer_algebra(seen):
    assert seen("scores = scores.masked_fill(self.plain[:t, :t], -torch.inf)") == ["True", "False", "False"]


def test_what_is_kept_and_made_anew_for_another_device_follows(seen):
    anew = "if self.plain.device != x.device:\n            self.plain = self.hidden.clone()"
    assert seen(f"{anew}\n        scores = scores.masked_fill(self.plain[:t, :t], -torch.inf)")[:2] == ["True", "True"]


def test_what_is_made_on_the_inputs_device_follows(seen):
    hidden = "torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)"
    assert seen(f"scores = scores.masked_fill({hidden}, -torch.inf)")[:2] == ["True", "True"]
