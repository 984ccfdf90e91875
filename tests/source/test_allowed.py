"""What is forbidden is found in the source that an exercise reaches, and nowhere else."""

from __future__ import annotations

import time

import numpy as np
import pytest

from grader.course.spec import Case
from grader.judging.runtime_policy import missing_einsum
from grader.source.policy import Sources
from grader.worker.values import Observation
from tests.live import offence
from tests.mixing_course import COURSE

GIVEN = (*COURSE.given_names, ("F", "torch.nn.functional"))

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
}


@pytest.mark.parametrize("text", FORBIDDEN_ATTENTION.values(), ids=FORBIDDEN_ATTENTION.keys())
def test_ready_made_attention_is_found(text):
    found = offence("attend", ("attention",), (), Sources((text,), GIVEN))
    assert found is not None
    assert "from scratch" in found.sentence or "cannot be checked" in found.sentence


FORBIDDEN_SOFTMAX = {
    "scipy": "from scipy.special import softmax as soft\ndef mine(x):\n    return soft(x)",
    "scipy by path": "import scipy\ndef mine(x):\n    return scipy.special.softmax(x)",
    "torch": "import torch\ndef mine(x):\n    return torch.softmax(torch.tensor(x), -1).numpy()",
    "method": "import torch\ndef mine(x):\n    return torch.tensor(x).softmax(-1).numpy()",
    "functional": "import torch.nn.functional as F\ndef mine(x):\n    return F.softmax(x, dim=-1)",
    "log": "from scipy.special import log_softmax\ndef mine(x):\n    return log_softmax(x)",
    "by a call, beside a method of that name": "import importlib\nF = importlib.import_module('torch').nn.functional\n"
    "class Own:\n    def softmax(self, x):\n        return x\ndef mine(x):\n    return F.softmax(x)",
}


@pytest.mark.parametrize("text", FORBIDDEN_SOFTMAX.values(), ids=FORBIDDEN_SOFTMAX.keys())
def test_a_ready_made_softmax_is_found(text):
    assert offence("mine", ("softmax", "attention"), (), Sources((text,), GIVEN)) is not None


FORBIDDEN_LOSSES = {
    "reduced logaddexp": "def mine(x):\n    return np.logaddexp.reduce(x, axis=-1)",
    "kept reduce": "add_up = np.logaddexp.reduce\ndef mine(x):\n    return add_up(x)",
    "logaddexp": "from numpy import logaddexp\ndef mine(x):\n    return logaddexp(x[0], x[1])",
    "scipy's logsumexp": "from scipy.special import logsumexp\ndef mine(x):\n    return logsumexp(x)",
    "torch's logcumsumexp": "import torch\ndef mine(x):\n    return torch.tensor(x).logcumsumexp(-1)[-1].numpy()",
    "torch's logsumexp": "import torch\ndef mine(x):\n    return torch.tensor(x).logsumexp(-1).numpy()",
    "functional": "import torch.nn.functional as F\ndef mine(x, t):\n    return F.cross_entropy(x, t)",
    "layer": "from torch import nn\nloss = nn.CrossEntropyLoss()\ndef mine(x, t):\n    return loss(x, t)",
    "log loss": "from sklearn.metrics import log_loss\ndef mine(x, t):\n    return log_loss(t, x)",
}


@pytest.mark.parametrize("text", FORBIDDEN_LOSSES.values(), ids=FORBIDDEN_LOSSES.keys())
def test_a_ready_made_cross_entropy_is_found(text):
    found = offence("mine", ("softmax", "cross_entropy", "attention"), (), Sources((text,), GIVEN))
    assert "log-sum-exp or cross entropy" in found.sentence


def test_cross_entropy_made_of_ones_own_functions_is_allowed():
    helpers = "def log_softmax(x):\n    return x\ndef logsumexp(x):\n    return x"
    own = "def cross_entropy(x, t):\n    return logsumexp(x) - log_softmax(x)[t]\ndef mine(x, t):\n    return cross_entropy(x, t)"
    assert offence("mine", ("softmax", "cross_entropy", "attention"), (), Sources((helpers, own), GIVEN)) is None


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
}


@pytest.mark.parametrize("text", ALLOWED.values(), ids=ALLOWED.keys())
def test_a_solution_of_ones_own_is_allowed(text):
    assert offence("attend", ("softmax", "attention"), (), Sources((text,), GIVEN)) is None


def test_comparing_with_torch_in_another_cell_is_no_offence():
    own = "def attend(q, k, v):\n    return q"
    comparing = "def compare():\n    return F.scaled_dot_product_attention(q, k, v) - attend(q, k, v)\ncompare()"
    assert offence("attend", ("attention",), (), Sources((own, comparing), GIVEN)) is None


def test_the_sentence_says_what_was_called_and_the_line_where():
    text = "def attend(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v)"
    found = offence("attend", ("attention",), (), Sources((text,), GIVEN))
    assert "`torch.nn.functional.scaled_dot_product_attention`" in found.sentence
    assert found.line == "return F.scaled_dot_product_attention(q, k, v)"
    pasted = Sources((f"about = 'a\u2028b'  # \f and \x0b\n{text}",), GIVEN)  # which end no line of Python's
    assert offence("attend", ("attention",), (), pasted) == found
    pasted = Sources(("about = 'a\u2028b'\ndef attend(q):\n    return 0",))
    assert pasted.slips("attend")[0].line == "def attend(q):"


@pytest.mark.parametrize(
    "text",
    [
        "from solutions import lesson\ndef attend(q):\n    return lesson(q)",
        "from grader.course import reference\ndef attend(q):\n    return reference('attend')(q)",
        "def attend(q):\n    import grader.course\n    return grader.course.references.reference('attend')(q)",
        "def attend(q):\n    return open('../solutions/01.py').read()",
    ],
)
def test_fetching_the_answer_from_the_course_is_refused(text):
    assert offence("attend", (), (), Sources((text,), GIVEN)) is not None


@pytest.mark.parametrize(
    "text",
    [
        "def f(q, k, v):\n    return np.einsum('bqd,bkd->bqk', q, k) @ v",
        "def f(q, k, v):\n    return np.matmul(np.einsum('bqd,bkd->bqk', q, k), v)",
        "def f(q, k, v):\n    return np.einsum('bqd,bkd->bqk', q, k)[0].dot(v[0])",
        "from numpy import tensordot as t\ndef f(q, k, v):\n    return t(q, k)",
        "def f(q, k, v):\n    s = q\n    s @= k\n    return s",
    ],
)
def test_a_product_besides_einsum_is_found(text):
    assert "einsum" in offence("f", (), ("einsum_products",), Sources((text,), GIVEN)).sentence


def test_both_products_by_einsum_are_needed():
    case = Case("c", "c", (np.ones((2, 3, 4)), np.ones((2, 5, 4)), np.ones((2, 5, 6))))
    both, scores = 2 * 3 * 5 * (4 + 6), 2 * 3 * 5 * 4
    assert missing_einsum(case, Observation(calls=(f"einsum {scores} 40", f"einsum {both - scores} 60"))) is None
    assert missing_einsum(case, Observation(calls=(f"einsum {both} 60",))) is None
    assert "only a part" in missing_einsum(case, Observation(calls=(f"einsum {scores} 40",))).sentence
    assert "neither" in missing_einsum(case, Observation(calls=())).sentence
    multiplied_out = Observation(calls=("einsum 120 120", "einsum 180 180"))
    assert "neither" in missing_einsum(case, multiplied_out).sentence


def test_an_operand_larger_than_the_inputs_may_stand_beside_another():
    case = Case("c", "c", (np.ones((2, 3, 4)), np.ones((2, 5, 4)), np.ones((2, 5, 6))))
    padded = "einsum 192 64", "einsum 288 96"  # keys and values padded to eight
    flat = "einsum 240 40", "einsum 360 60"  # both sentences in one matrix
    ones = "einsum 120 40", "einsum 210 70"  # values with a column of ones
    diagonal = "einsum 480 40", "einsum 180 60"  # bqd,de,bke->bqk
    for calls in (padded, flat, ones, diagonal):
        assert missing_einsum(case, Observation(calls=calls)) is None, calls


def test_scores_that_are_formed_again_are_no_second_product():
    case = Case("c", "c", (np.ones((2, 3, 4)), np.ones((2, 5, 4)), np.ones((2, 5, 6))))
    assert "only a part" in missing_einsum(case, Observation(calls=("einsum 120 40",) * 3)).sentence
    assert missing_einsum(case, Observation(calls=("einsum 120 40", "einsum 120 40", "einsum 180 60"))) is None


def test_a_single_query_tells_nothing():
    case = Case("c", "c", (np.ones((2, 1, 4)), np.ones((2, 5, 4)), np.ones((2, 5, 6))))
    assert missing_einsum(case, Observation(calls=())) is None


@pytest.mark.parametrize("text", ["def f(:", "x = " + "(" * 300 + ")" * 300, "\0"])
def test_unreadable_source_is_survived(text):
    assert offence("f", ("attention",), (), Sources((text,), GIVEN)) is None


@pytest.mark.parametrize(
    "text",
    ["f = torch.softmax\n#" + "x" * 300_000, "f = " + "-" * 250 + "1", "f = " + "-" * 5000 + "1"],
    ids=["long", "deep", "deeper than is parsed"],
)
def test_a_cell_too_large_to_be_read_is_refused_where_something_is_forbidden(text):
    found = offence("f", ("softmax",), (), Sources((text,), GIVEN))
    assert found is not None and "too long" in found.sentence
    assert offence("f", (), (), Sources((text,), GIVEN)) is None


OWN = "def attend(q, k, v):\n    w = torch.softmax(q @ k.mT, -1)\n    return w @ v, w\n"
SDPA = "F.scaled_dot_product_attention"
INNOCENT = {
    "a question about modules": ("import sys\nIN_COLAB = 'google.colab' in sys.modules", OWN),
    "the same inside": ("import sys\ndef attend(q, k, v):\n    return q if 'jax' in sys.modules else k",),
    "objects counted in another cell": (OWN, "import gc\nprint(len(gc.get_objects()))"),
    "a traceback's line in another cell": (
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    n = e.__traceback__.tb_frame.f_lineno",
        OWN,
    ),
    "an earlier try": (f"def attend(q, k, v):\n    return {SDPA}(q, k, v), None", OWN),
    "an earlier try that another cell keeps": (
        f"def attend(q, k, v):\n    return {SDPA}(q, k, v), None\nfast = attend",
        OWN,
    ),
    "a helper bound anew": (
        f"helper = {SDPA}",
        "def helper(q):\n    return q\ndef attend(q, k, v):\n    return helper(q)",
    ),
    "imported and not used": (
        "from torch.nn.functional import scaled_dot_product_attention, relu\ndef attend(q):\n    return relu(q)",
    ),
    "method of an instance": (
        "class Core:\n    def flex_attention(self, q):\n        return q\ndef attend(q):\n    return Core().flex_attention(q)",
    ),
    "method of a local": (
        "class Core:\n    def softmax(self, q):\n        return q\ndef attend(q):\n    core = Core()\n    return core.softmax(q)",
    ),
    "method of the base class": (
        "class Base:\n    def softmax(self, q):\n        return q\n",
        "class attend(Base):\n    def forward(this, q):\n        return super().softmax(this.softmax(q))",
    ),
    "field of a named tuple": (
        "Parts = namedtuple('Parts', 'shifted, softmax')\ndef attend(q):\n    parts = Parts(q, q)\n    return parts.softmax",
    ),
    "made of a name that another cell binds anew": (
        "q = np.ones((2, 8))\nd = q.shape[-1]",
        "def attend(x):\n    return x / d",
        "q = F.softmax(q)",
    ),
    "an annotation": ("def attend(q: nn.MultiheadAttention) -> nn.Transformer:\n    return q",),
    "isinstance": ("def attend(q):\n    return isinstance(q, (nn.MultiheadAttention, nn.Transformer))",),
    "hasattr": ("def attend(q):\n    return hasattr(F, 'scaled_dot_product_attention')",),
    "a key": ("FNS = {}\ndef attend(q):\n    FNS['log_softmax'] = q\n    return FNS['log_softmax']",),
    "a logger": ("log = logging.getLogger('Transformer')\ndef attend(q):\n    log.debug('x')\n    return q",),
    "a dtype by name": ("def attend(q):\n    return q.to(getattr(torch, str(q.dtype).split('.')[1]))",),
    "where an array lies": (OWN, "print(x.ctypes.data)"),
    "a mask by a helper of torch": (
        "def attend(q):\n    return q + nn.Transformer.generate_square_subsequent_mask(5)",
    ),
    "a table of results": (
        OWN,
        f"rows = []\nrows.append({SDPA}(q, k, v) - attend(q, k, v)[0])\nassert rows[0].max() < 1",
    ),
}


@pytest.mark.parametrize("cells", INNOCENT.values(), ids=INNOCENT.keys())
def test_what_does_not_belong_to_the_answer_is_innocent(cells):
    forbids = ("attention",) if OWN in cells else ("softmax", "attention")  # OWN calls torch's softmax
    assert offence("attend", forbids, (), Sources(cells, GIVEN)) is None


HIDDEN = {
    "put into a module": (f"setattr(math, 'att', {SDPA})", "def attend(q, k, v):\n    return math.att(q, k, v)"),
    "put into a list": ("box = []", f"box.append({SDPA})", "def attend(q, k, v):\n    return box[0](q, k, v)"),
    "kept from an earlier try": (
        f"helper = {SDPA}\nfast = helper",
        "def helper(q):\n    return q\ndef attend(q):\n    return fast(q)",
    ),
    "from the module's names": ("def attend(q, k, v):\n    return F.__dict__['scaled_dot' + x](q, k, v)",),
    "from the operators": ("def attend(q, k, v):\n    return torch.ops.aten.__getattr__('_scaled' + x)(q, k, v)",),
    "a name of the function's own": ("def attend(q, k, v):\n    return getattr(F, x)(q, k, v)",),
    "compiled from text": ("s = torch.jit.CompilationUnit(text).f\ndef attend(q, k, v):\n    return s(q, k, v)",),
    "traced": (
        f"setattr(math, 'att', {SDPA})\ns = torch.jit.trace(lambda q: math.att(q, q, q), q)\ndef attend(q):\n    return s(q)",
    ),
    "own member named so, torch's called": (
        f"class A:\n    scaled_dot_product_attention = 1\ndef attend(q):\n    return {SDPA}(q, q, q)",
    ),
    "frames": ("def attend(q):\n    return sys._getframe().f_back.f_locals",),
    "objects handed on": ("op = [o for o in gc.get_objects() if o][0]", "def attend(q):\n    return op(q)"),
    "profile": (OWN, "getattr(sys, 'set' + 'profile')(None)"),
    "something of sys": (OWN, "getattr(sys, name)(None)"),
    "all of sys": (OWN, "names = vars(sys)"),
    "something of sys by another name": (f"import sys as s\n{OWN}", "getattr(s, name)(None)"),
    "ctypes": ("import ctypes", OWN),
    "a raw thread": ("from _thread import start_new_thread", OWN),
    "modes off": (OWN, "from torch.utils._python_dispatch import _disable_current_modes as off"),
}


@pytest.mark.parametrize("cells", HIDDEN.values(), ids=HIDDEN.keys())
def test_what_comes_to_the_answer_by_a_detour_is_found(cells):
    assert offence("attend", ("attention",), (), Sources(cells, GIVEN)) is not None


@pytest.mark.parametrize(
    "text, found",
    [
        (
            "try:\n    import jax.numpy as xp\nexcept ImportError:\n    import numpy as xp\ndef f(g):\n    return xp.sum(g)",
            False,
        ),
        ("def torch(a):\n    return a\ndef f(g):\n    return torch(g)", False),
        ("import torch\nnp.allclose(f(1), torch.ones(1))\ntorch.backends.fast = True\ndef f(g):\n    return g", False),
        ("lib = importlib.import_module('tor' + 'ch')\ndef f(g):\n    return lib.ones(1)", True),
        ("lib = importlib.import_module(name)\ndef f(g):\n    return lib.ones(1)", True),
        ("import torch as t\ndef f(g):\n    return t.ones(1)", True),
    ],
)
def test_a_library_with_gradients_is_found_where_the_answer_uses_it(text, found):
    assert (offence("f", ("torch",), (), Sources((text,), GIVEN)) is not None) == found


@pytest.mark.parametrize(
    "text, found",
    [
        ("class P:\n    def dot(self, a):\n        return a\ndef f(q):\n    return P().dot(q)", False),
        ("def f(q):\n    return getattr(np, 'mat' + 'mul')(q, q)", True),
        ("def f(q):\n    return np.__dict__['mat' + 'mul'](q, q)", True),
        ("def f(q):\n    return q.__matmul__(q)", True),
    ],
)
def test_a_product_s_own_name_or_a_hidden_one(text, found):
    assert (offence("f", (), ("einsum_products",), Sources((text,), GIVEN)) is not None) == found


def _seconds(*cells):
    """What reading takes of the processor, and the offence found."""
    started = time.process_time()
    found = offence("attend", ("attention",), (), Sources(cells, GIVEN))
    return time.process_time() - started, found


def _forward(n):
    return [f"a{i} = a{i + 1}" for i in range(n)]


def _functions(n):
    return [f"def a{i}(): return a{i + 1}()" for i in range(n)]


MANY = 2000
LONG = {
    "chain forward": _forward(MANY),
    "chain backward": _forward(MANY)[::-1],
    "chain in one line": ["; ".join(_forward(MANY))],
    "chain of one name": [f"a = a, {i}" for i in range(MANY)],
    "chain through functions": _functions(MANY),
    "chain through functions, backward": _functions(MANY)[::-1],
    "chain through functions that a cell calls": [*_functions(MANY), *(f"b{i} = a{i}()" for i in range(MANY))],
    "chain through methods": [f"class a{i}:\n    def f(self): return a{i + 1}" for i in range(MANY // 2)],
    "chain that reaches into the process": ["a0 = sys._getframe()", *(f"a{i + 1} = a{i}" for i in range(MANY))],
    "the same backward": [*(f"a{i + 1} = a{i}" for i in reversed(range(MANY))), "a0 = sys._getframe()"],
    "names that lead everywhere": [
        *(f"def a{i}(): return a{i + 1}, g" for i in range(MANY // 2)),
        *(f"g = g, a{i}" for i in range(MANY // 2)),
    ],
    "one name altered often": ["a = {}", *(f"a[{i}] = b" for i in range(MANY)), *(f"b{i} = a" for i in range(MANY))],
    "one name bound often": [f"a = {i}" for i in range(MANY)] + [f"def f{i}(): return a" for i in range(MANY)],
    "put into a library": [f"math.x{i} = a{i}" for i in range(MANY)],
    "star imports": [f"from m{i} import *" for i in range(MANY)] + ["a = b"],
}


@pytest.mark.parametrize("name", LONG)
def test_long_chains_of_names_take_a_time_in_proportion(name):
    cell = "\n".join(LONG[name])
    cells = [
        cell,
        f"def attend(q, k, v): return {SDPA}(q, k, v), {', '.join(f'a{i}() + b{i}' for i in range(0, MANY, 100))}, a, g, f0",
    ]
    seconds, found = _seconds(*cells)
    assert found is not None and seconds < 3  # each took less than half of one; a walk for each statement, minutes


def test_names_that_lead_to_each_other_at_every_time_are_read_to_their_end():
    functions = [*(f"def f{i}(): return f{i + 1}()" for i in range(MANY)), f"def f{MANY}(): return {SDPA}"]
    cell = "\n".join([*functions, *("a = f0()" for _ in range(MANY))])
    seconds, found = _seconds(cell, "def attend(q, k, v): return a")
    assert "from scratch" in found.sentence and seconds < 3


def test_code_that_is_too_deep_to_be_read_is_not_passed_over():
    """With more stack, which a cell can ask for, the worker's Python compiles what the one here gives up."""
    deep = "def attend(q, k, v): return F.scaled_dot_product_attention(q, k, v)\nz = " + "+".join("1" * 20_000)
    found = offence("attend", ("attention",), (), Sources((deep,), GIVEN))
    assert found is not None and "too deeply" in found.sentence
    assert (
        offence("attend", ("attention",), (), Sources(("def attend(q, k, v): return q\n", "z = (1\n"), GIVEN)) is None
    )
