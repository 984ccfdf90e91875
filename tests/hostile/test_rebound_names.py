"""Every name that a probe or `observe` uses, bound to a liar by a cell: no wrong answer passes by it.

The names are read from the probes' own source, so that one used tomorrow is tried tomorrow. Each is tried with one liar, the
next name with the next one, and with the answers at which what uses the name looks: all of them, where the worker itself does, and
those of a lesson, where its probes do. A name that nothing uses which looks at them is tried with one, the next with the next one.
WHOLE_GRID=1 tries each with all liars and all answers.
"""

from __future__ import annotations

import ast
import builtins
import importlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from grader.course import references
from grader.course.course import open_course
from grader.judging.judge import judge
from grader.sandbox.sandbox import Sandbox
from grader.submission.plan import Plan, RunCell
from tests.conftest import ROOT, WHOLE_GRID
from tests.hostile.one_worker import ON_META, OneWorker

pytestmark = pytest.mark.any_user  # which names a probe uses
WORKER = ROOT / "grader" / "worker"
FILES = [
    *(WORKER / f"{name}.py" for name in ("observe", "values", "originals", "protocol", "probes/__init__")),
    *sorted((ROOT / "solutions").glob("*/probes*.py")),
]
NOT_THERE = ("__future__", "grader")  # nothing that a cell could bind: a worker has no `grader`
LIARS = {"True": "True", "its first argument": "a[0] if a else None", "0": "0"}
ATTENTION = """
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    weights = (scores - scores.max()).{exp}
    weights = weights / weights.sum(-1)[..., None]
    output = weights @ v
"""
# What the wrong answers are wrong by is theirs from the beginning: a liar is not to mend them.
GIVEN = """
import math, numpy as np, torch
from torch import Tensor, nn
double, switch, from_numpy = torch.Tensor.double, torch.Tensor.requires_grad_, torch.from_numpy
loss_of, joined = torch.nn.functional.cross_entropy, torch.cat
def next_token_loss(logits, ids):
    return loss_of(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
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


@cache
def _exercise(name: str) -> Any:
    """The exercise with one case alone, and no mistakes to find a name for, since a status is all that is asked."""
    whole, key = open_course().exercise(name), WRONG[name][0]
    return replace(
        whole,
        cases=lambda rng: [case for case in whole.cases(rng) if case.key == key],
        mistakes=(),
        properties=(),
        requires=(),
    )


def _names(path: Path) -> Iterator[tuple[str, str]]:
    """(owner, attribute): what a file imports, the built-in names it uses, and methods of tensors and modules called like its own."""
    tree, alias = ast.parse(path.read_text(encoding="utf-8")), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            alias |= {
                one.asname or one.name.partition(".")[0]: one.name if one.asname else one.name.partition(".")[0]
                for one in node.names
            }
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module.partition(".")[0] not in NOT_THERE:
            alias |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    for dotted in alias.values():
        yield dotted.rpartition(".")[::2]
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and hasattr(builtins, node.id) and not _is_exception(getattr(builtins, node.id)):
            yield "builtins", node.id
        elif isinstance(node, ast.Attribute):
            owner, _, name = ast.unparse(node).rpartition(".")
            root, _, rest = owner.partition(".")
            if root in alias:
                yield f"{alias[root]}.{rest}".rstrip("."), name
            for kind in ("torch.Tensor", "torch.nn.Module"):
                yield kind, name


def _is_exception(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


@cache
def _there(owner: str) -> Any:
    """The module or class of that name; None where there is none."""
    head, _, name = owner.rpartition(".")
    try:
        return importlib.import_module(owner)
    except ImportError:
        return getattr(_there(head), name, None) if head else None
    except ValueError:
        return None


USED_IN: dict[tuple[str, str], set[str]] = {}  # the folders of the files that use a name
for path in FILES:
    for owner, name in _names(path):
        if name and not name.startswith("__") and hasattr(_there(owner), name):
            USED_IN.setdefault((owner, name), set()).add(path.parent.name)
NAMES = sorted(USED_IN)
OF_ALL = {"worker", "probes", "shared"}  # folders of what looks at the answers of every lesson


def test_names_are_found():
    assert {
        ("numpy", "array"),
        ("builtins", "isinstance"),
        ("torch.Tensor", "data_ptr"),
        ("torch.nn.Module", "to"),
    } <= set(NAMES)
    assert len(NAMES) > 150
    assert len(_tried_with("numpy", "array")) == len(WRONG) and {len(_tried_with(*one)) for one in NAMES} > {1, 2}


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(4.0, torch=True, probes=open_course().probe_texts() | ON_META) as made:
        yield made


def _graded(sandbox: Sandbox, *cells: str, answers: dict[str, str]) -> dict[str, str]:
    given = RunCell("given cell", GIVEN, False)
    own = [RunCell(f"cell {i}", text, True) for i, text in enumerate((*cells, *answers.values()), 1)]
    owners = {name: 1 + len(cells) + i for i, name in enumerate(answers)}
    candidates = sandbox.candidates(Plan("01_toy", tuple(answers), (given, *own), owners))
    return {name: judge(_exercise(name), candidates[name]).status for name in answers}


@cache
def _tried_with(owner: str, name: str) -> dict[str, str]:
    """The answers with which a name is tried."""
    folders = USED_IN[owner, name]
    if WHOLE_GRID or folders & OF_ALL:
        among = list(WRONG)
    else:
        among = [answer for answer in WRONG if open_course().lesson_of(answer) in folders]
    return {answer: WRONG[answer][1] for answer in among or [list(WRONG)[NAMES.index((owner, name)) % len(WRONG)]]}


@cache
def _right() -> dict[str, str]:
    return {name: references.solution_text(open_course(), name) for name in WRONG}


TRIED = [
    (owner, name, liar)
    for number, (owner, name) in enumerate(NAMES)
    for liar in (LIARS if WHOLE_GRID else [list(LIARS)[number % len(LIARS)]])
]


def test_every_name_is_tried_and_every_liar():
    assert {(owner, name) for owner, name, _ in TRIED} == set(NAMES) and {liar for _, _, liar in TRIED} == set(LIARS)


def _lie(owner: str, name: str, liar: str) -> str:
    """A cell that binds a name to a liar, and `undo`, which binds it to what it was."""
    return (
        f"import importlib\ndef made():\n    at = {owner!r}.split('.')\n    found = importlib.import_module(at[0])\n"
        "    for one in at[1:]: found = getattr(found, one)\n    return found\n"
        f"def lie(*a, **k): return {LIARS[liar]}\n"
        f"owner = made()\nold = owner.__dict__.get({name!r}, lie)\n"
        f"def undo(put=setattr, drop=delattr, owner=owner, old=old, lie=lie):\n    now = owner.__dict__.get({name!r}, lie)\n"
        f"    if old is not lie: put(owner, {name!r}, old)\n    elif now is not lie or {name!r} in owner.__dict__: drop(owner, {name!r})\n"
        f"    assert owner.__dict__.get({name!r}, lie) is old\n"
        f"try:\n    setattr(owner, {name!r}, lie if callable(getattr(owner, {name!r})) else property(lie) if isinstance(owner, type) else lie())\n"
        "except (TypeError, AttributeError):\n    def undo(): pass"
    )


def _alone(sandbox: Sandbox, *trial: str) -> dict[str, str]:
    """What the answers get in a worker of their own."""
    return _graded(sandbox, _lie(*trial), answers=_tried_with(*trial[:2]))


def _one_after_the_other(
    sandbox: Sandbox, batch: list[tuple[str, str, str]]
) -> dict[tuple[str, str, str], dict[str, str]]:
    """The same in one worker, in which each liar is taken away before the next comes. Empty where something of them stayed: there, in
    the end, not all right answers pass."""
    worker = OneWorker(sandbox, [GIVEN])

    def statuses(texts: dict[str, str], lie: str = "") -> dict[str, str]:
        owners = {name: number for number, name in enumerate(texts, 1)}
        found = worker.judged([lie, *texts.values()], owners, _exercise)
        return {name: verdict.status for name, verdict in found.items()}

    try:
        found = {trial: statuses(_tried_with(*trial[:2]), _lie(*trial)) for trial in batch}
        return found if set(statuses(_right()).values()) == {"passed"} else {}
    finally:
        worker.close()


BATCH = 24
BATCHES = [TRIED[first : first + BATCH] for first in range(0, len(TRIED), BATCH)]


@pytest.mark.parametrize("batch", BATCHES, ids=[f"{batch[0][0]}.{batch[0][1]} and on" for batch in BATCHES])
def test_no_wrong_answer_passes(sandbox, batch):
    """One worker for many names; WHOLE_GRID=1 has one for each."""
    found = {} if WHOLE_GRID else _one_after_the_other(sandbox, batch)
    passed = {
        f"{owner}.{name}, which gives {liar}": statuses
        for owner, name, liar in batch
        if {"passed", "could_not_grade"}
        & set((statuses := found.get((owner, name, liar)) or _alone(sandbox, owner, name, liar)).values())
    }
    assert not passed


def test_what_is_broken_is_what_is_seen(sandbox):
    """Without a liar each is refused for what it breaks, and as it should be it passes."""
    for name, (_, text) in WRONG.items():
        assert _graded(sandbox, answers={name: text}) == {name: "failed"}
        assert _graded(sandbox, answers={name: references.solution_text(open_course(), name)}) == {name: "passed"}, name
