"""What is seen of the operators that run, wherever they run and whatever switches the looking off."""

from __future__ import annotations

import ctypes
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import _disable_current_modes

from grader.model import Case
from grader.worker.observe import observe
from grader.worker.probes import ContractError, Run, module
from grader.worker.values import Tensor
from grader.worker.watch import UNWATCHED, follow_threads, watching

Q = torch.ones(1, 2, 3)
FUSED = [F.scaled_dot_product_attention]  # taken from a list, no name of it is read


def fused() -> torch.Tensor:
    return list(map(FUSED[0], [Q], [Q], [Q]))[0]


@pytest.fixture
def threads_followed():
    """As a worker does from its start; put back for the other tests of this process."""
    before = threading.getprofile()
    follow_threads()
    yield
    threading.setprofile(before)


def seen_of(work) -> set[str]:
    with watching(("attention",)) as seen:
        work()
    return set(seen)


def test_nothing_is_seen_of_honest_work():
    assert seen_of(lambda: torch.softmax(Q @ Q.mT, -1) @ Q) == set()
    with watching(()) as seen:
        fused()
    assert seen == []


@pytest.mark.parametrize("thread", [threading.Thread(target=fused), threading.Thread(target=partial(FUSED[0], Q, Q, Q))])
def test_a_thread_is_seen(thread):
    def work():
        thread.start()
        thread.join()

    assert "scaled_dot_product_attention" in seen_of(work)


def test_a_thread_that_was_there_before_is_seen(threads_followed):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        assert "scaled_dot_product_attention" in seen_of(lambda: pool.submit(fused).result())
        assert seen_of(lambda: pool.submit(torch.softmax, Q, -1).result()) == set()


def _profile_off():
    sys.setprofile(None)
    fused()


def _profile_off_for_a_while():
    hook = sys.getprofile()
    getattr(sys, "set" + "profile")(None)
    fused()
    sys.setprofile(hook)


def _profile_off_in_c():
    ctypes.pythonapi.PyEval_SetProfile.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    ctypes.pythonapi.PyEval_SetProfile(None, None)
    fused()


def _modes_off():
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        fused()


@pytest.mark.parametrize("work", [_profile_off, _profile_off_for_a_while, _profile_off_in_c, _modes_off])
def test_switching_it_off_is_seen(work):
    assert UNWATCHED in seen_of(work)
    assert sys.getprofile() is None or "pytest" in str(sys.getprofile())


def test_what_a_cell_puts_in_its_place_is_not_used(monkeypatch):
    monkeypatch.setattr(sys, "setprofile", lambda hook: None)
    assert "scaled_dot_product_attention" in seen_of(lambda: F.scaled_dot_product_attention(Q, Q, Q))


def test_the_graders_own_look_aside_is_none():
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.w(x)

    with watching(("attention",)) as seen:
        module(Layer, Run((torch.ones(1, 2, 3, requires_grad=True),), options={"gradients": True, "state": {"w.bias": [0.0, 0, 0]}}))
    assert seen == []


class Late(torch.Tensor):
    """Computes when it is read."""

    def numpy(self, force=False):
        fused()
        return torch._C.TensorBase.numpy(self.as_subclass(torch.Tensor), force=force)


class LateList(list):
    def __iter__(self):
        fused()
        return super().__iter__()


def observed(function) -> tuple[str, ...]:
    return observe(function, Case("toy", "a toy", (Tensor(np.ones((1, 2, 3), np.float32)),), options={"watch": ("attention",)}, names=("q",))).calls


@pytest.mark.parametrize("function", [
    lambda q: q.as_subclass(Late), lambda q: [q.as_subclass(Late)], lambda q: (1, [q.as_subclass(Late)]), lambda q: LateList([1.0]),
])  # fmt: skip
def test_what_computes_only_when_it_is_read_is_seen(function):
    assert observed(lambda q: q) == observed(lambda q: [1, (2.0, q)]) == ()
    assert FUSED[0].__name__ in observed(function)


def test_so_is_what_stands_in_the_place_of_torchs_own_methods(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "numpy", Late.numpy, raising=False)
    assert FUSED[0].__name__ in observed(lambda q: q)


def test_a_parameter_that_no_longer_asks_for_its_gradient_is_named():
    class Frozen(torch.nn.Linear):
        def forward(self, x):
            self.requires_grad_(False)
            return x * 2

    run = Run((torch.ones(1, 3, requires_grad=True),), options={"init": (3, 3), "gradients": True, "state": {"bias": [0.0, 0, 0]}})
    with pytest.raises(ContractError, match="^gradient|bias does not require a gradient"):
        module(Frozen, run)
