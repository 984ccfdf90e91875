"""What is forbidden is found in the source that an exercise reaches, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from grader.allowed import Sources, einsum_missing, offence
from grader.model import Case, Observation

FORBIDDEN_ATTENTION = {
    "called": "def attend(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v)",
    "alias of the module": "import torch.nn.functional as G\ndef attend(q, k, v):\n    return G.scaled_dot_product_attention(q, k, v)",
    "renamed import": "from torch.nn.functional import scaled_dot_product_attention as s\ndef attend(q, k, v):\n    return s(q, k, v)",
    "star import": "from torch.nn.functional import *\ndef attend(q, k, v):\n    return scaled_dot_product_attention(q, k, v)",
    "assigned": "attend = F.scaled_dot_product_attention",
    "helper in another statement": "def helper(*a):\n    return F.scaled_dot_product_attention(*a)\ndef attend(q, k, v):\n    return helper(q, k, v)",
    "getattr": "def attend(q, k, v):\n    return getattr(F, 'scaled_dot_product_attention')(q, k, v)",
    "getattr put together": "def attend(q, k, v):\n    return getattr(F, 'scaled_dot' + '_product_attention')(q, k, v)",
    "operator.attrgetter": "from operator import attrgetter\ndef attend(q, k, v):\n    return attrgetter('scaled_dot_product_attention')(F)(q, k, v)",
    "eval": "def attend(q, k, v):\n    return eval('F.scaled_dot' + '_product_attention')(q, k, v)",
    "exec": "def attend(q, k, v):\n    exec('r = 1')\n    return r",
    "aten": "def attend(q, k, v):\n    return torch.ops.aten.scaled_dot_product_attention(q, k, v)",
    "C": "def attend(q, k, v):\n    return torch._C._nn.scaled_dot_product_attention(q, k, v)",
    "default argument": "def attend(q, k, v, op=F.scaled_dot_product_attention):\n    return op(q, k, v)",
    "layer": "class attend(nn.Module):\n    def __init__(self):\n        self.mha = nn.MultiheadAttention(4, 2)",
    "wrapping layer": "layer = nn.TransformerEncoderLayer(4, 2)\ndef attend(q, k, v):\n    return layer(q)",
    "forward patched in": "class attend(nn.Module):\n    pass\nattend.forward = lambda self, q: F.scaled_dot_product_attention(q, q, q)",
    "full-width letters": "def attend(q, k, v):\n    return F.\uff53caled_dot_product_attention(q, k, v)",
    "local import": "def attend(q, k, v):\n    from torch.nn.attention.flex_attention import flex_attention\n    return flex_attention(q, k, v)",
}  # fmt: skip


@pytest.mark.parametrize("text", FORBIDDEN_ATTENTION.values(), ids=FORBIDDEN_ATTENTION.keys())
def test_ready_made_attention_is_found(text):
    found = offence("attend", ("attention",), (), Sources((text,)))
    assert found is not None
    assert "from scratch" in found.sentence or "cannot be checked" in found.sentence


FORBIDDEN_SOFTMAX = {
    "scipy": "from scipy.special import softmax as soft\ndef mine(x):\n    return soft(x)",
    "scipy by path": "import scipy\ndef mine(x):\n    return scipy.special.softmax(x)",
    "torch": "import torch\ndef mine(x):\n    return torch.softmax(torch.tensor(x), -1).numpy()",
    "method": "import torch\ndef mine(x):\n    return torch.tensor(x).softmax(-1).numpy()",
    "functional": "import torch.nn.functional as F\ndef mine(x):\n    return F.softmax(x, dim=-1)",
    "log": "from scipy.special import log_softmax\ndef mine(x):\n    return log_softmax(x)",
}


@pytest.mark.parametrize("text", FORBIDDEN_SOFTMAX.values(), ids=FORBIDDEN_SOFTMAX.keys())
def test_a_ready_made_softmax_is_found(text):
    assert offence("mine", ("softmax", "attention"), (), Sources((text,))) is not None


ALLOWED = {
    "own names": "def softmax(x):\n    e = np.exp(x)\n    return e / e.sum()\ndef attend(q, k, v):\n    return softmax(q @ k.T) @ v",
    "named in a docstring": 'def attend(q, k, v):\n    """As F.scaled_dot_product_attention does; see scaled_dot_product_attention."""\n    return q',
    "own method": "class attend:\n    def softmax(self, x):\n        return x\n    def forward(self, x):\n        return self.softmax(x)",
    "own function of the same name": "def scaled_dot_product_attention(q):\n    return q\ndef attend(q, k, v):\n    return scaled_dot_product_attention(q)",
    "a local variable of that name": "def attend(x):\n    softmax = np.exp(x)\n    return softmax / softmax.sum()",
    "a parameter of that name": "def attend(softmax):\n    return [softmax for softmax in softmax]",
    "a local variable that another cell uses otherwise": "out = F.softmax(q)\ndef attend(x):\n    out = np.exp(x)\n    return out",
    "logsumexp": "from scipy.special import logsumexp\ndef attend(x):\n    return np.exp(x - logsumexp(x))",
    "model.eval()": "def attend(model, x):\n    model.eval()\n    return model(x)",
    "getattr of an own object": "def attend(model, x):\n    return getattr(model, 'w_q')(x)",
}  # fmt: skip


@pytest.mark.parametrize("text", ALLOWED.values(), ids=ALLOWED.keys())
def test_a_solution_of_ones_own_is_allowed(text):
    assert offence("attend", ("softmax", "attention"), (), Sources((text,))) is None


def test_comparing_with_torch_in_another_cell_is_no_offence():
    own = "def attend(q, k, v):\n    return q"
    comparing = "def compare():\n    return F.scaled_dot_product_attention(q, k, v) - attend(q, k, v)\ncompare()"
    assert offence("attend", ("attention",), (), Sources((own, comparing))) is None


def test_the_sentence_says_what_was_called_and_the_line_where():
    text = "def attend(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v)"
    found = offence("attend", ("attention",), (), Sources((text,)))
    assert "`torch.nn.functional.scaled_dot_product_attention`" in found.sentence
    assert found.line == "return F.scaled_dot_product_attention(q, k, v)"


@pytest.mark.parametrize("text", [
    "from solutions import lesson\ndef attend(q):\n    return lesson(q)",
    "from grader.course import reference\ndef attend(q):\n    return reference('attend')(q)",
    "def attend(q):\n    import grader.course\n    return grader.course.reference('attend')(q)",
    "def attend(q):\n    return open('../solutions/01.py').read()",
])  # fmt: skip
def test_fetching_the_answer_from_the_course_is_refused(text):
    assert offence("attend", (), (), Sources((text,))) is not None


@pytest.mark.parametrize("text", [
    "def f(q, k, v):\n    return np.einsum('bqd,bkd->bqk', q, k) @ v",
    "def f(q, k, v):\n    return np.matmul(np.einsum('bqd,bkd->bqk', q, k), v)",
    "def f(q, k, v):\n    return np.einsum('bqd,bkd->bqk', q, k)[0].dot(v[0])",
    "from numpy import tensordot as t\ndef f(q, k, v):\n    return t(q, k)",
    "def f(q, k, v):\n    s = q\n    s @= k\n    return s",
])  # fmt: skip
def test_a_product_besides_einsum_is_found(text):
    assert "einsum" in offence("f", (), ("einsum_products",), Sources((text,))).sentence


def test_both_products_by_einsum_are_needed():
    case = Case("c", "c", (np.ones((2, 3, 4)), np.ones((2, 5, 4)), np.ones((2, 5, 6))))
    both, scores = 2 * 3 * 5 * (4 + 6), 2 * 3 * 5 * 4
    assert einsum_missing(case, Observation(calls=(f"einsum {scores} 40", f"einsum {both - scores} 60"))) is None
    assert einsum_missing(case, Observation(calls=(f"einsum {both} 60",))) is None
    assert "only a part" in einsum_missing(case, Observation(calls=(f"einsum {scores} 40",))).sentence
    assert "neither" in einsum_missing(case, Observation(calls=())).sentence
    multiplied_out = Observation(calls=(f"einsum {both} 240",))
    assert einsum_missing(case, multiplied_out) is not None


@pytest.mark.parametrize("text", ["def f(:", "x = " + "(" * 300 + ")" * 300, "f = " + "-" * 5000 + "1", "\0"])
def test_unreadable_source_is_survived(text):
    assert offence("f", ("attention",), (), Sources((text,))) is None


@pytest.mark.parametrize("text", ["f = torch.softmax\n#" + "x" * 300_000, "f = " + "-" * 250 + "1"], ids=["long", "deep"])
def test_a_cell_too_large_to_be_read_is_refused_where_something_is_forbidden(text):
    found = offence("f", ("softmax",), (), Sources((text,)))
    assert found is not None and "too long" in found.sentence
    assert offence("f", (), (), Sources((text,))) is None
