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
from grader.worker.values import Failure
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
    ("A @ B", "second-to-last"), ("np.dot(A, B)", "second-to-last"), ("P @ Q", "second-to-last"), ("P[None] @ Q[None]", "second-to-last"),
    ("A / A.sum(-1)", "from the right"), ("P / P.sum(-1)", "from the right"), ("A - B", "from the right"),
    ("np.einsum('qd,kd->qk', A, B.T)", "one letter"), ("torch.einsum('qd,kd->qk', P, Q.T)", "one letter"),
    ("Bare()", "super"), ("LAYER.weight = torch.ones(3, 3)", "nn.Parameter"), ("LAYER.weight.copy_(torch.ones(3, 3))", "no_grad"),
    ("torch.ones(1, 4, 6).transpose(1, 2).view(1, 24)", "Split the last axis"),
    ("P.view(4, 2)", "multiply"), ("A.reshape(4, 2)", "multiply"), ("LAYER(P.double())", "dtype=x.dtype"), ("P @ P.T.double()", "dtype=x.dtype"),
    ("LAYER.weight.numpy()", "detach()"), ("P.bfloat16().numpy()", "float()"), ("WHOLE /= 2.0", "new array"), ("torch.ones(2).int().div_(2.5)", "new array"),
    ("math.exp(1000)", "709.78"), ("1 / math.exp(-1000)", "below about −745"), ("A.sum(axis=2)", "from the right"), ("P.sum(dim=2)", "from the right"),
    ("A[0, 0, 0]", "from the right"), ("A[2]", "loop"), ("P[2]", "loop"), ("[1][1]", "loop"), ("b, t, d = A.shape", "names"),
    ("None + 1", "return"), ("None.shape", "return"), ("bool(A > 0)", ".any()"), ("bool(P > 0)", ".any()"), ("torch.multinomial(-P, 1)", "softmax"),
    ("math.exp(A)", "one number"), ("math.exp(P)", "one number"), ("(lambda q, k: 0)(1)", "parameters"), ("(lambda q: 0)(k=1)", "parameters"),
    ("(lambda q: 0)(1, 2)", "parameters"), ("undefined", "top to bottom"),
])  # fmt: skip
def test_an_exception_leads_on(code, says):
    error = raised(code)
    assert says in exceptions.on(Failure("exception", type(error).__name__, str(error))), f"{type(error).__name__}: {error}"


def test_what_is_not_known_gets_no_sentence():
    for type_, message in (("ValueError", "the temperature must be positive"), ("KeyError", "'q'")):
        assert exceptions.on(Failure("exception", type_, message)) == ""


def advised(cell: str, name: str = "softmax_rows") -> str:
    return " ".join(judge(registry.exercise(name), from_cells(name, cell)).details)


def test_keepdims_is_advised_where_a_sum_lost_its_axis_and_nowhere_else():
    for body in ("e = np.exp(scores)\n    return e / e.sum(axis=1)", "e = np.exp(scores)\n    total = e.sum(1)\n    return e / total"):
        exercise = "def softmax_rows(scores):\n    scores = scores[:, :2].copy()\n    " + body
        assert "keepdims" in advised(exercise)
    other = advised("def softmax_rows(scores):\n    return scores + np.ones((7, 5))")
    assert "keepdims" not in other and "matched from the right" in other


def test_a_transposition_is_advised_where_it_would_fit():
    assert "if B is transposed" in advised("def softmax_rows(scores):\n    other = scores + 1\n    return scores @ other")
    wrong = advised("def softmax_rows(scores):\n    few = scores[:1, :2]\n    return scores @ few")
    assert "transposed" not in wrong and "as long as" in wrong


def test_if_is_blamed_only_where_there_is_one():
    assert "`if` needs one" in advised("def softmax_rows(scores):\n    if scores:\n        return scores\n    return 1")
    pairs = advised("def softmax_rows(scores):\n    pairs = [(row, i) for i, row in enumerate(scores)]\n    return max(pairs)[1]")
    assert "`if`" not in pairs and "`key=…`" in pairs


def test_where_a_mistake_is_proven_general_advice_is_silent():
    named = judge(registry.exercise("attention_scores"), from_cells("attention_scores", "def attention_scores(Q, K):\n    return Q @ K"))
    assert named.status == "error" and named.mistakes and len(named.details) == 2 and "second-to-last" not in " ".join(named.details)
