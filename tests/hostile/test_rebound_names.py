"""Every name that a probe or `observe` uses, bound to a liar by a cell; see rebound.py."""

from __future__ import annotations

import importlib
from inspect import isfunction, unwrap

import pytest

from grader.course import references
from grader.worker.originals import BUILTINS
from tests.hostile.rebound import LIARS, Rebound
from tests.mixing_course import COURSE

pytestmark = pytest.mark.any_user  # which names a probe uses
GIVEN = """
import math, numpy as np, torch
from torch import nn
double, detached, filled = torch.Tensor.double, torch.Tensor.detach, torch.Tensor.fill_
""" + "\n".join(
    references.solution_text(COURSE, name) for name in ("products", "scaled", "shares", "blend", "mix_torch")
)
MIX = """
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    weights = {exp}(scores - scores.max())
    weights = weights / weights.sum(-1)[..., None]
    output = weights @ v
"""
WRONG = {
    "mix": ("random", "def mix(q, k, v):" + MIX.format(exp="np.exp") + "    v[...] = 0\n    return output, weights"),
    "mix_torch": (
        "float32",
        "def mix_torch(q, k, v):" + MIX.format(exp="torch.exp") + "    return double(output), double(weights)",
    ),
    "Mixer": (
        "training",
        "class Mixer(nn.Module):\n    def __init__(self, d_model, d, d_v):\n        super().__init__()\n"
        "        self.w_q, self.w_k, self.w_v = (nn.Linear(d_model, n, bias=False) for n in (d, d, d_v))\n"
        "    def forward(self, x):\n        q, k, v = detached(self.w_q(x)), self.w_k(x), self.w_v(x)"
        + MIX.format(exp="torch.exp").replace("\n    ", "\n        ")
        + "        return output, weights",
    ),
    "twice": ("of 3, 1", "def twice(tensor):\n    made = tensor + tensor\n    filled(tensor, 1)\n    return made"),
}
REBOUND = Rebound(COURSE, GIVEN, WRONG)


def test_names_are_found():
    assert {
        ("numpy", "array"),
        ("builtins", "isinstance"),
        ("torch.Tensor", "data_ptr"),
        ("torch.nn.Module", "parameters"),
    } <= set(REBOUND.names)
    assert len(REBOUND.names) > 150
    assert len(REBOUND.tried_with("numpy", "array")) == len(WRONG)


def test_every_name_is_tried_and_every_liar():
    assert {one[:2] for one in REBOUND.tried} == set(REBOUND.names) and {one[2] for one in REBOUND.tried} == set(LIARS)


@pytest.mark.parametrize("name", ["observe", "originals", "values", "integrity", "watch", "torch_modes", "probes"])
def test_what_looks_at_results_has_built_in_names_of_its_own(name):
    """A liar in the place of `isinstance` is none to these functions, where nothing that it changes shows."""
    module = importlib.import_module(f"grader.worker.{name}")
    functions = [unwrap(one) for one in vars(module).values() if isfunction(one) and one.__module__ == module.__name__]
    assert functions and all(one.__builtins__ is BUILTINS for one in functions)


@pytest.fixture(scope="module")
def sandbox():
    with REBOUND.sandbox() as made:
        yield made


@pytest.mark.parametrize("batch", REBOUND.batches)
def test_no_wrong_answer_passes(sandbox, batch):
    assert not REBOUND.passed(sandbox, REBOUND.batches[batch])


def test_what_is_broken_is_what_is_seen(sandbox):
    REBOUND.assert_seen(sandbox)
