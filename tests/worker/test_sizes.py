"""The largest tensor that a learner's code makes is seen, wherever and however it is made, with the line that made it."""

from __future__ import annotations

import re
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from grader.course.spec import Case
from grader.judging import wording
from grader.judging.candidate import LiveObject
from grader.judging.judge import judge
from grader.worker import protocol
from grader.worker.observe import observe
from grader.worker.values import Allocation, Observation, Tensor
from grader.worker.watch import watching
from tests.live import from_cells
from tests.mixing_course import COURSE, made

T = 30
Q, K = torch.randn(T, 2), torch.randn(T, 2)
CAPTURED = [torch.ops.aten.mm.default]
TRACED = torch.jit.trace(lambda a, b: (a @ b.mT).sum(), (Q, K), check_trace=False)


def _in_thread():
    thread = threading.Thread(target=lambda: Q @ K.mT)
    thread.start()
    thread.join()


def _without_function_mode():
    with torch._C.DisableTorchFunction():
        return Q @ K.mT


def _storage():
    return torch.empty(0).set_(torch.UntypedStorage(4 * T * T))[:3]


WAYS = {
    "a product": lambda: Q @ K.mT,
    "in a thread": _in_thread,
    "captured": lambda: list(map(CAPTURED[0], [Q], [K.mT])),
    "traced": lambda: TRACED(Q, K),
    "under vmap": lambda: torch.vmap(lambda one: (K * one).sum(-1).max())(Q),
    "without the function mode": _without_function_mode,
    "inside of a larger operator": lambda: torch.cdist(Q, K).sum(),
    "empty": lambda: torch.empty(T, T),
    "of a class": lambda: torch.Tensor(T, T),
    "a view of memory": lambda: torch.empty(T * T)[:3],
    "grown": lambda: torch.empty(0).resize_(T, T),
    "an own storage": _storage,
    "made of a list": lambda: torch.tensor([[1.0] * T] * T),
    "an expanded view made real": lambda: Q[:, :1].expand(T, T).contiguous(),
    "a mask": lambda: torch.ones(T, T, dtype=torch.bool),
    "in pieces, put together": lambda: torch.cat([Q[i : i + 5] @ K.mT for i in range(0, T, 5)]),
    "several at once": lambda: torch.empty(2, T, T).unbind(),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_a_table_is_seen_however_it_is_made(way):
    with watching(("table",)) as seen:
        way()
    assert seen.largest.elements >= T * T


def test_a_table_is_seen_where_it_is_compiled():
    compiled = torch.compile(
        lambda a, b: (a @ b.mT).sum(), backend="eager"
    )  # imports a compiler that nothing else needs
    with watching(("table",)) as seen:
        compiled(Q, K)
    assert seen.largest.elements >= T * T


@pytest.mark.parametrize(
    "way",
    [
        lambda: Q[:, :1].expand(T, T),
        lambda: [Q[i : i + 5] @ K.mT for i in range(0, T, 5)],
        lambda: Q.repeat(1, 2).mT,
        lambda: torch.as_strided(Q, (T, T), (0, 0)),
        lambda: torch.nested.nested_tensor([Q, K[:3]]),
    ],
)
def test_what_takes_no_such_memory_is_not_counted(way):
    with watching(("table",)) as seen:
        way()
    assert seen.largest.elements < T * T


def test_the_line_and_the_shape_are_the_first_of_the_largest():
    def attend():
        scores = Q @ K.mT
        return torch.softmax(scores, -1)

    with watching(("table",)) as seen:
        attend()
    assert seen.largest == Allocation((T, T), T * T, "scores = Q @ K.mT")


def test_names_that_a_cell_has_bound_anew_hide_nothing(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "untyped_storage", lambda self: torch.UntypedStorage(4))
    monkeypatch.setattr(torch.Tensor, "numel", lambda self: 1)
    monkeypatch.setattr("builtins.isinstance", lambda *_: False)
    with watching(("table",)) as seen:
        Q @ K.mT
    monkeypatch.undo()
    assert seen.largest.elements == T * T


def test_sizes_are_looked_at_only_where_they_are_asked_for():
    with watching(("attention",)) as seen:
        Q @ K.mT
    assert seen.largest is None
    shown = observe(
        lambda q: q @ q.mT, Case("toy", "a toy", (Tensor(np.ones((5, 2), np.float32)),), options={"watch": ("table",)})
    )
    assert shown.largest.shape == (5, 5)


def test_it_travels():
    made = Observation(largest=Allocation((2, 3), 6, "x = q @ k.mT"))
    assert protocol.observation_from_message(protocol.to_message(made)).largest == made.largest


def twice_with(**options):
    """The exercise, of four numbers that meet four others."""

    def cases(rng):
        for number in range(3):
            numbers = Tensor(rng.normal(size=4).astype(np.float32))
            yield Case(f"of 4, {number}", "four numbers", (numbers,), options=options)

    return replace(COURSE.exercise("twice"), cases=cases, forbids=("table",))


@pytest.mark.parametrize("line", ["table = torch.outer(tensor, tensor)", "table = torch.ones(2, 4, 4)[:, :2]"])
def test_the_verdict_names_the_shape_and_the_line_that_made_the_table(line):
    cell = f"def twice(tensor):\n    {line}\n    return 2 * tensor"
    verdict = judge(twice_with(table=(1, 1, 4, 4)), from_cells("twice", cell))
    assert verdict.status == "forbidden" and "The T × T table stands in memory" in verdict.headline, verdict.headline
    assert "a tensor of shape (" in verdict.headline and verdict.line.text == line, verdict.line


def test_the_verdict_says_that_keys_are_to_be_taken_tile_by_tile():
    exercise = twice_with(tiles=(160, 2))
    verdict = judge(exercise, from_cells("twice", "def twice(tensor):\n    return tensor.repeat(2).view(2, 4).sum(0)"))
    assert verdict.status == "forbidden"
    assert re.fullmatch(
        r"The keys were not taken tile by tile: 160 keys and a block_size of 2 make 80 tiles of keys for each tile of queries, too many "
        r"for the \d operations of PyTorch that ran\. Let block_size keys at a time meet the queries, in a loop over the tiles\.",
        verdict.headline,
    ), verdict.headline
    many = "def twice(tensor):\n    for _ in range(240):\n        tensor = 1 * tensor\n    return 2 * tensor"
    assert judge(exercise, from_cells("twice", many)).passed


def test_only_where_sizes_were_looked_at_is_it_said():
    """A probe may know of a table that is allowed."""
    with_table = twice_with(table=(1, 1, 4, 4))
    for exercise, said in ((with_table, True), (twice_with(), False), (replace(with_table, forbids=()), False)):
        verdict = judge(exercise, LiveObject(made("twice")))
        assert verdict.passed and (wording.NO_LARGE_TENSOR in verdict.verified) == said, verdict.verified


@pytest.mark.parametrize("row", ["keys[1]", "values[1]"])
def test_a_change_inside_of_a_tuple_is_a_changed_input(row):
    def cases(rng):
        for number in range(3):
            keys, values = (tuple(rng.normal(size=(4, 2))) for _ in range(2))
            yield Case(f"rows, {number}", "tuples of rows", (rng.normal(size=2), keys, values))

    text = f"""def nearest(query, keys, values):
    found = values[np.argmax(np.stack(keys) @ query)].copy()
    {row}[:] = 0
    return found"""
    verdict = judge(replace(COURSE.exercise("nearest"), cases=cases), from_cells("nearest", text))
    assert not verdict.passed and row in verdict.headline, verdict.headline
