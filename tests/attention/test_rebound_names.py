"""Every name that a probe of the attention course uses, or what calls it, bound to a liar by a cell; see tests/hostile/rebound.py."""

from __future__ import annotations

import pytest

from grader.course.course import open_course
from tests.hostile.rebound import LIARS, Rebound

pytestmark = pytest.mark.any_user  # which names a probe uses
# What the wrong answers are wrong by is theirs from the beginning: a liar is not to mend them.
GIVEN = """
import math, numpy as np, torch
from torch import Tensor, nn
double, switch, from_numpy = torch.Tensor.double, torch.Tensor.requires_grad_, torch.from_numpy
loss_of, joined = torch.nn.functional.cross_entropy, torch.cat
def next_token_loss(logits, ids):
    return loss_of(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
"""
ATTENTION = """
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    weights = (scores - scores.max()).{exp}
    weights = weights / weights.sum(-1)[..., None]
    output = weights @ v
"""
# By exercise: the case that shows it, and an answer whose numbers are right. Each breaks one thing that numbers do not show.
WRONG = {
    "scaled_dot_product_attention": (
        "batch",
        "def scaled_dot_product_attention(q, k, v):"
        + ATTENTION.replace("(scores - scores.max()).{exp}", "np.exp(scores - scores.max())")
        + "    v[...] = 0\n    return output, weights",
    ),
    "attention_torch": (
        "float32",
        "def attention_torch(q, k, v):" + ATTENTION.format(exp="exp()") + "    return double(output), double(weights)",
    ),
    "linear_from_numpy": (
        "a square float32 w",
        "def linear_from_numpy(w):\n    layer = nn.Linear(*w.shape, bias=False)\n"
        "    layer.weight = nn.Parameter(from_numpy(w.T))\n    return layer",
    ),
    "as_numpy": ("trained", "def as_numpy(tensor):\n    return switch(tensor, False).numpy()"),
    "CausalSelfAttention": (
        "device-0",
        "class CausalSelfAttention(nn.Module):\n    def __init__(self, d_model, max_len):\n        super().__init__()\n"
        "        self.w_q, self.w_k, self.w_v = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))\n"
        "        self.register_buffer('mask', torch.ones(max_len, max_len).tril() > 0)\n"
        "    def forward(self, x):\n        t = x.shape[1]\n        scores = self.w_q(x) @ self.w_k(x).mT / x.shape[-1] ** 0.5\n"
        "        return scores.masked_fill(~self.mask[:t, :t], -float('inf')).softmax(-1) @ self.w_v(x)",
    ),
    "copy_torch_weights": (
        "copy-0",
        "def copy_torch_weights(mine, theirs):\n"
        "    for layer, weight, bias in zip((mine.w_q, mine.w_k, mine.w_v), theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)):\n"
        "        layer.weight.data, layer.bias.data = weight.data, bias.data\n"
        "    mine.w_o.weight.data, mine.w_o.bias.data = theirs.out_proj.weight.data, theirs.out_proj.bias.data",
    ),
    "generate": (
        "small",
        "def generate(model, ids, new, max_len, temperature=1.0, generator=None):\n    was = model.training\n    model.training = False\n"
        "    with torch.no_grad():\n        for _ in range(new):\n            ids = torch.cat([ids, model(ids[:, -max_len:])[:, -1].argmax(-1, keepdim=True)], 1)\n"
        "    model.training = was\n    return ids",
    ),
    "train_step": (
        "small",
        "def train_step(model, optimizer, ids, clip=1.0):\n    loss = next_token_loss(model(ids), ids)\n    optimizer.zero_grad()\n"
        "    loss.backward()\n    nn.utils.clip_grad_norm_(model.parameters(), clip)\n    optimizer.step()\n    model.training = False\n"
        "    return loss.item()",
    ),
    "KVCache": (
        "small",
        "class KVCache:\n    def __init__(self, *sizes, **more):\n        self.k = self.v = torch.zeros(*sizes)[:, :, :0]\n"
        "    def append(self, k, v):\n        self.k, self.v = joined([self.k, k], 2), joined([self.v, v], 2)\n        return self.k, self.v\n"
        "    def __len__(self):\n        return self.k.shape[2]",
    ),
    "generate_cached": (
        "small",
        "def generate_cached(model, ids, new):\n    model.training, cache, fed = True, model.new_cache(ids.shape[0]), ids\n"
        "    with torch.no_grad():\n        for _ in range(new):\n            fed = model(fed, cache)[:, -1].argmax(-1, keepdim=True)\n"
        "            ids = joined([ids, fed], 1)\n    return ids",
    ),
    "ring_attention": (
        "chunks",
        "def ring_attention(q, k, v, rank, world_size, exchange, causal=False):\n    t, held = q.shape[2], [(k, v)]\n"
        "    for _ in range(world_size - 1):\n        held.append(exchange(held[-1]))\n    pos = torch.arange(t)\n    total = norm = 0\n"
        "    for i, (k, v) in enumerate(held):\n        e = (q @ k.mT / t ** 0.5).exp()\n"
        "        e = e * ((rank - i) % world_size * t + pos <= (rank * t + pos)[:, None])\n"
        "        total, norm = total + e @ v, norm + e.sum(-1, keepdim=True)\n    return total / norm",
    ),
}
REBOUND = Rebound(open_course(), GIVEN, WRONG)


def test_names_are_found():
    assert {("torch.nn.Module", "to"), ("torch.Tensor", "data_ptr"), ("builtins", "isinstance")} <= set(REBOUND.names)
    assert len(REBOUND.names) > 400
    assert len(REBOUND.tried_with("numpy", "array")) == len(WRONG)
    assert {1, 2} < {len(REBOUND.tried_with(*one)) for one in REBOUND.names}


def test_every_name_is_tried_and_every_liar():
    assert {one[:2] for one in REBOUND.tried} == set(REBOUND.names) and {one[2] for one in REBOUND.tried} == set(LIARS)


def test_every_probe_has_built_in_names_of_its_own():
    assert all("\n__builtins__ = BUILTINS\n" in text for text in open_course().probe_texts().values())


@pytest.fixture(scope="module")
def sandbox():
    with REBOUND.sandbox() as made:
        yield made


@pytest.mark.parametrize("batch", REBOUND.batches)
def test_no_wrong_answer_passes(sandbox, batch):
    assert not REBOUND.passed(sandbox, REBOUND.batches[batch])


def test_what_is_broken_is_what_is_seen(sandbox):
    REBOUND.assert_seen(sandbox)
