"""What an exercise changes around it costs no other: each of these keeps its neighbours' points.

Honest code does such things too: a default dtype set, warnings turned into errors, a folder changed.
"""

from __future__ import annotations

import numpy as np
import pytest

from grader.sandbox.sandbox import Sandbox
from grader.worker.integrity import ProcessState
from tests.hostile.attack import verdicts

pytestmark = pytest.mark.any_user  # what one Python process remembers
RIGHT = "\n    return 2 * x"
CHANGES = {
    "np.sum patched": "def double(x):\n    np.sum = lambda *_, **__: 0" + RIGHT,
    "a builtin patched": "import builtins\ndef double(x):\n    builtins.len = lambda x: 0" + RIGHT,
    "a name deleted": "def double(x):\n    vars(np).pop('sum', None)" + RIGHT,
    "floating-point errors raised": "def double(x):\n    np.seterr(all='raise')" + RIGHT,
    "no recursion left": "import sys\ndef double(x):\n    sys.setrecursionlimit(200)" + RIGHT,
    "another folder": "import os\ndef double(x):\n    os.makedirs('away', exist_ok=True); os.chdir('away')" + RIGHT,
    "a trace": "import sys\ndef double(x):\n    sys.settrace(lambda *_: 1 / 0)" + RIGHT,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_costs_no_other_exercise(monkeypatch, tmp_path, shared, change):
    found = verdicts(monkeypatch, tmp_path, shared, CHANGES[change])
    harms_itself = change in ("a builtin patched", "a trace")
    assert found["double"].status == ("error" if harms_itself else "passed"), found["double"].headline
    assert [found[name].headline for name in ("row_sums", "the_answer")] == ["row_sums passed.", "the_answer passed."]


def test_torch_s_default_dtype_is_as_it_was_for_the_next(monkeypatch, tmp_path):
    """The neighbour says that it is stale only where the dtype leaked."""
    text = "import torch\ndef double(x):\n    torch.set_default_dtype(torch.float64)" + RIGHT
    watching = "import torch\ndef row_sums(x):\n    assert torch.get_default_dtype() == torch.float32\n    return x.sum(axis=1)"
    from tests import toy_course as toy

    monkeypatch.setitem(toy.RIGHT, "row_sums", watching)
    with Sandbox(timeout_s=5, torch=True) as sandbox:
        found = verdicts(monkeypatch, tmp_path, sandbox, text)
    assert [found[name].status for name in ("double", "row_sums")] == ["passed", "passed"]


def test_modes_that_a_cell_sets_for_good_are_not_the_judge_s(monkeypatch, tmp_path):
    """As in the notebook, where a check judges in the default ones: else a right answer fails that passed there."""
    cell = """import torch
torch.set_grad_enabled(False)
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
torch.autocast("cpu").__enter__()
def double(x):
    x = torch.tensor(x, dtype=torch.float32, requires_grad=True)
    assert (2 * x).requires_grad and torch.zeros(1).dtype == torch.float32 and torch.zeros(1).device.type == "cpu"
    assert torch.ones(1, 1).matmul(torch.ones(1, 1)).dtype == torch.float32
    return (2 * x).detach().numpy()
"""
    with Sandbox(timeout_s=5, torch=True) as sandbox:
        found = verdicts(monkeypatch, tmp_path, sandbox, cell)
    assert found["double"].status == "passed", found["double"].headline


def test_what_an_honest_answer_leaves_is_no_change():
    around = ProcessState()
    np.linalg.norm(np.random.default_rng(0).normal(size=3))
    with np.errstate(all="raise"):
        pass
    assert not around.has_changed()
