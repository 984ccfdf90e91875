"""What is said of an exception: each sentence belongs to one that NumPy, torch or Python really raises."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from grader.course import registry
from grader.judging import exceptions
from grader.judging.judge import judge
from tests.live import from_cells

A, B, WHOLE = np.ones((2, 3)), np.ones((4, 3)), np.ones((2, 3), dtype=int)
P, Q = torch.ones(2, 3), torch.ones(4, 3)
LAYER = nn.Linear(3, 3)


class Bare(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(2, 2)


def raised(code: str) -> Exception:
    with pytest.raises(Exception) as caught:
        exec(code, {**globals(), "math": math})
    return caught.value


@pytest.mark.parametrize(("code", "says"), [
    ("A @ B", "transposed"), ("np.dot(A, B)", "transposed"), ("P @ Q", "transposed"), ("P[None] @ Q[None]", "transposed"),
    ("A / A.sum(-1)", "keepdims"), ("P / P.sum(-1)", "keepdim"), ("A - B", "keepdims"),
    ("np.einsum('qd,kd->qk', A, B.T)", "one letter"), ("torch.einsum('qd,kd->qk', P, Q.T)", "one letter"),
    ("Bare()", "super"), ("LAYER.weight = torch.ones(3, 3)", "nn.Parameter"), ("LAYER.weight.copy_(torch.ones(3, 3))", "no_grad"),
    ("torch.ones(1, 4, 6).transpose(1, 2).view(1, 24)", "Split the last axis"),
    ("P.view(4, 2)", "multiply"), ("A.reshape(4, 2)", "multiply"), ("LAYER(P.double())", "dtype=x.dtype"), ("P @ P.T.double()", "dtype=x.dtype"),
    ("LAYER.weight.numpy()", "detach()"), ("P.bfloat16().numpy()", "float()"), ("WHOLE /= 2.0", "new array"), ("torch.ones(2).int().div_(2.5)", "new array"),
    ("math.exp(1000)", "709.78"), ("1 / math.exp(-1000)", "below −745"), ("A.sum(axis=2)", "from the right"), ("P.sum(dim=2)", "from the right"),
    ("A[0, 0, 0]", "from the right"), ("A[2]", "loop"), ("P[2]", "loop"), ("[1][1]", "loop"), ("b, t, d = A.shape", "the axes"),
    ("None + 1", "return"), ("None.shape", "return"), ("bool(A > 0)", "mask is None"), ("bool(P > 0)", "mask is None"),
    ("math.exp(A)", "one number"), ("math.exp(P)", "one number"), ("(lambda q, k: 0)(1)", "parameters"), ("(lambda q: 0)(k=1)", "parameters"),
    ("(lambda q: 0)(1, 2)", "parameters"), ("undefined", "top to bottom"),
])  # fmt: skip
def test_an_exception_leads_on(code, says):
    error = raised(code)
    assert says in exceptions.on(type(error).__name__, str(error)), f"{type(error).__name__}: {error}"


def test_what_is_not_known_gets_no_sentence():
    assert exceptions.on("ValueError", "the temperature must be positive") == exceptions.on("KeyError", "'q'") == ""


def test_the_verdict_holds_it():
    verdict = judge(registry.exercise("attention_scores"), from_cells("attention_scores", "def attention_scores(Q, K):\n    return Q @ K"))
    assert verdict.status == "error" and any("to be transposed" in detail for detail in verdict.details)
