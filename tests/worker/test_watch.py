"""Ready-made operations are seen while they run, however they were reached."""

from __future__ import annotations

import contextlib
import copy
import threading

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from grader.worker.operations import ATTENTION, einsum_size
from grader.worker.torch_modes import elementary, mode_classes
from grader.worker.watch import watching

q = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
CAPTURED = F.scaled_dot_product_attention
PACKET = torch.ops.aten.scaled_dot_product_attention


def in_thread():
    thread = threading.Thread(target=lambda: F.scaled_dot_product_attention(q, q, q))
    thread.start()
    thread.join()


def without_function_mode():
    with torch._C.DisableTorchFunction():
        return CAPTURED(q, q, q)


def layer():
    mha = nn.MultiheadAttention(4, 2, batch_first=True)
    return mha(q, q, q)


@pytest.mark.parametrize(
    "way",
    [
        lambda: F.scaled_dot_product_attention(q, q, q),
        lambda: CAPTURED(q, q, q),
        lambda: PACKET(q, q, q),
        lambda: torch.ops.aten._scaled_dot_product_attention_math(q, q, q),
        lambda: torch._C._nn.scaled_dot_product_attention(q, q, q),
        in_thread,
        without_function_mode,
        layer,
        lambda: nn.TransformerEncoderLayer(4, 2, batch_first=True).eval()(q),
    ],
)
def test_attention_is_seen(way):
    with watching(("attention",)) as seen:
        way()
    assert seen


@pytest.mark.parametrize(
    "way",
    [
        lambda: torch.softmax(q, -1),
        lambda: F.softmax(q, -1),
        lambda: q.softmax(-1),
        lambda: nn.Softmax(-1)(q),
        lambda: torch.ops.aten._softmax(q, -1, False),
        lambda: torch.log_softmax(q, -1),
    ],
)
def test_a_ready_made_softmax_is_seen(way):
    with watching(("softmax",)) as seen:
        way()
    assert seen


def test_ones_own_softmax_is_not_seen():
    def softmax(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    with watching(("softmax", "attention")) as seen:
        softmax(np.ones((2, 3)))
        e = torch.exp(q - q.amax(-1, keepdim=True))
        (e / e.sum(-1, keepdim=True)) @ q.mT @ q
    assert seen == []


ELEMENTARY = elementary()
ARGUMENTS = (
    (q,),
    (q, q),
    (q, 2.0),
    (q, 1),
    (q, q[0]),
    (q[0, 0], q[0, 0]),
    (q[0], q[0].mT),
    (q, q.mT),
    (q > 0,),
    (q > 0, q > 0),
    (q > 0, q, q),
    (q[0], q[0], q[0].mT),
    (q, q, q.mT),
    ([q, q],),
    ((2, 3),),
    ((2, 3), 1.0),
    (3,),
    (q, (4, 3)),
    (q, (2, 0, 1)),
    (q, 0, 1),
    (q, 0.5, True),
    (q, (4,)),
    (q, 0, 0),
    (q, 0, q.long().abs()),
    (q, q > 0, 1.0),
    (q, q > 0, q),
    (q, torch.float64),
    (q[0], q.long()[0, 0].abs()),
    (q[0, 0, 0],),
    (q, 0, torch.tensor([0])),
    (q, (0,)),
    (q.long(),),
    (q > 0, q > 0),
    (q[0], q[0, 0]),
    (q, q[..., 0] > 0),
    (q, [1, 2], 0),
    (q, 0, 0, 1),
    (q[0, 0, :1], q[0], q[0].mT),
    (q[0, 0, :1], q, q.mT),
    (q, 0, torch.zeros(1, 3, 4, dtype=torch.long)),
    (q, (6, 4)),
    (q, 2, (2, 2)),
    (q[:1], (5, 3, 4)),
)


@pytest.mark.filterwarnings("ignore")
def test_no_other_operation_hides_in_anelementary_one():
    """What an elementary operation does is not looked at: here each is, on every kind of argument that it takes."""
    took = dict.fromkeys(ELEMENTARY, 0)
    for operation in ELEMENTARY:
        for arguments in ARGUMENTS:
            copies = copy.deepcopy(arguments)  # some work in place
            with (
                watching(("attention",) if "softmax" in str(operation) else ("attention", "softmax")) as seen,
                torch._C.DisableTorchFunction(),
                contextlib.suppress(Exception),
            ):
                operation(*copies)
                took[operation] += 1
            assert seen == [], (operation, arguments)
    assert [operation for operation, count in took.items() if not count] == []


def test_what_iselementary_is_found_by_being_torchs_own():
    def matmul(a, b):
        return CAPTURED(a, a, a)

    assert torch.matmul in ELEMENTARY and torch.Tensor.matmul in ELEMENTARY and torch.Tensor.mT.__get__ in ELEMENTARY
    assert matmul not in ELEMENTARY and not {one.__name__ for one in ELEMENTARY} & ATTENTION
    with watching(("attention",)) as seen:
        torch.overrides.handle_torch_function(matmul, (q,), q, q)
    assert seen
    with watching(("torch",)) as seen:
        list(map(torch.matmul, [q], [q.mT]))
    assert "torch" in seen


def test_a_torch_that_keeps_its_modes_otherwise_is_watched_all_the_same(monkeypatch):
    monkeypatch.delattr(torch._C, "_pop_torch_dispatch_stack")
    mode_classes.cache_clear()
    try:
        with watching(("softmax",)) as seen:
            torch.softmax(q @ q.mT, -1)
        assert "softmax" in seen
    finally:
        mode_classes.cache_clear()


def test_a_mode_of_the_learners_own_sees_what_it_asked_for():
    with watching(("attention",)) as seen, FlopCounterMode(display=False) as counter:
        list(map(torch.matmul, [q], [q.mT]))
    assert counter.get_total_flops() > 0 and seen == []


def test_nothing_is_watched_unless_asked():
    with watching(()) as seen:
        F.scaled_dot_product_attention(q, q, q)
    assert seen == []


@pytest.mark.parametrize(
    "operands, size",
    [
        (("bqd,bkd->bqk", np.ones((2, 3, 4)), np.ones((2, 5, 4))), (2 * 3 * 4 * 5, 40)),
        (("...qd,...kd->...qk", np.ones((2, 3, 4)), np.ones((2, 5, 4))), (120, 40)),
        ((np.ones((3, 4)), [0, 1], np.ones((5, 4)), [2, 1], [0, 2]), (60, 20)),
        (("ij->ji", np.ones((3, 4))), (0, 0)),
        (("ij,jk", "not an array"), (0, 0)),
    ],
)
def test_einsum_is_counted_in_multiply_adds(operands, size):
    assert einsum_size(operands) == size


def test_einsum_is_seen_with_its_size_under_any_name():
    from numpy import einsum as product

    with watching(("einsum",)) as seen:
        product("bqd,bkd->bqk", np.ones((2, 3, 4)), np.ones((2, 5, 4)), optimize=True)
    assert seen == ["einsum 120 40"]


def test_a_library_that_differentiates_is_seen_and_numpy_is_not():
    with watching(("torch",)) as seen:
        np.exp(np.ones((2, 3))) @ np.ones((3, 2))
    assert seen == []
    with watching(("torch",)) as seen:
        torch.ones(2) + 1
    assert set(seen) == {"torch"}
