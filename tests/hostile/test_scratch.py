"""Attacks on "from scratch": the fused operator in every disguise, beside weights of one's own; none may pass."""

from __future__ import annotations

import pytest

from grader.course.course import open_course
from grader.grading import grade
from grader.judging.judge import judge
from grader.sandbox.sandbox import Sandbox
from tests import small_lesson, toy_course as toy
from tests.live import from_cells
from tests.mixing_course import COURSE

pytestmark = pytest.mark.any_user  # which operators the watch sees
LESSON, NAME = "03_torch", "mix_torch"
# {call} stands for the disguised call on q, k and v; what it returns is right to the last digit.
ANSWER = """def mix_torch(q, k, v):
    weights = torch.exp(q @ k.mT / math.sqrt(q.shape[-1]))
    weights = weights / weights.sum(-1, keepdim=True)
    {before}
    return {call}, weights
"""
IMPORT = "from torch.nn import functional as F"
GOT = "getattr([F][0], 'noitnetta_tcudorp_tod_delacs'[::-1])"
MAPPED = f"list(map({GOT}, [q], [k], [v]))[0]"  # what map calls, no profile hook is told of
ATTACKS = {  # (a cell above, a line before the call, the call)
    "plain": ("", "", "F.scaled_dot_product_attention(q, k, v)"),
    "an alias": ("from torch.nn.functional import scaled_dot_product_attention as mine", "", "mine(q, k, v)"),
    "captured in another cell": ("held = F.scaled_dot_product_attention", "", "held(q, k, v)"),
    "a helper in another cell": ("def helper(*a): return F.scaled_dot_product_attention(*a)", "", "helper(q, k, v)"),
    "a default argument": (
        "def helper(q, k, v, f=F.scaled_dot_product_attention): return f(q, k, v)",
        "",
        "helper(q, k, v)",
    ),
    "a composed name": ("", "", "getattr(F, 'scaled_dot' + '_product_attention')(q, k, v)"),
    "a name read backwards": ("", "", "getattr(F, 'noitnetta_tcudorp_tod_delacs'[::-1])(q, k, v)"),
    "vars": ("", "", "vars(F)['scaled_dot_product_' + 'attention'](q, k, v)"),
    "found by its looks": ("", "f = next(f for n, f in vars(F).items() if n.startswith('scaled_dot'))", "f(q, k, v)"),
    "eval": ("", "", "eval('F.scaled_dot_' + 'product_attention(q, k, v)', {'F': F, 'q': q, 'k': k, 'v': v})"),
    "import by a string": (
        "import importlib",
        "f = importlib.import_module('torch.nn.' + 'functional')",
        "getattr(f, 'scaled_dot_' + 'product_attention')(q, k, v)",
    ),
    "another spelling in Unicode": ("", "", "F.ｓcaled_dot_product_attention(q, k, v)"),
    "torch.ops": ("", "", "torch.ops.aten.scaled_dot_product_attention(q, k, v)"),
    "torch._C": ("", "", "torch._C._nn.scaled_dot_product_attention(q, k, v)"),
    "a thread": (
        "import threading",
        "found = []; t = threading.Thread(target=lambda: found.append("
        "getattr(F, 'scaled_dot_product_' + 'attention')(q, k, v))); t.start(); t.join()",
        "found[0]",
    ),
    "function modes off": (
        "",
        "with torch._C.DisableTorchFunction(): out = getattr(F, 'scaled_dot_product_' + 'attention')(q, k, v)",
        "out",
    ),
    "no profile": ("import sys", "sys.setprofile(None)", "getattr(F, 'scaled_dot_product_' + 'attention')(q, k, v)"),
    "multi_head_attention_forward": ("class M(nn.MultiheadAttention): pass", "", "M(4, 1)(q, k, v)[0]"),
    "an encoder layer": ("layer = nn.TransformerEncoderLayer(4, 1)", "", "layer(q)"),
    "flex_attention": ("from torch.nn.attention.flex_attention import flex_attention as mine", "", "mine(q, k, v)"),
    "the watching patched": (
        "import sys, contextlib\nfor name, module in list(sys.modules.items()):\n    if hasattr(module, 'watching'):\n"
        "        module.watching = contextlib.contextmanager(lambda groups: iter([[]]))",
        "",
        "[f for n, f in F.__dict__.items() if len(n) == 28 and n[0] == 's'][0](q, k, v)",
    ),
    "the record emptied": (
        "import sys",
        "frame = sys._getframe().f_back; out = [f for n, f in F.__dict__.items() if len(n) == 28][0](q, k, v); "
        "[frame.f_locals['seen'].clear() for _ in [0] if 'seen' in frame.f_locals]",
        "out",
    ),
    "the watch patched through display": (
        "w = display.__globals__['failure_from'].__globals__['watching']\nw.__enter__ = lambda self: []\nw.__exit__ = lambda *a: None",
        "",
        GOT + "(q, k, v)",
    ),
    "the record emptied through a computed name": (
        "import sys as s",
        "f = getattr(s, 'emarfteg_'[::-1])(); out = " + GOT + "(q, k, v)\n"
        "    while 'run' not in getattr(f, 'slacol_f'[::-1]): f = getattr(f, 'kcab_f'[::-1])\n"
        "    getattr(f, 'slacol_f'[::-1])['run'].log.clear()",
        "out",
    ),
    "the record emptied through a traceback": (
        "",
        "try: 1 / 0\n    except ZeroDivisionError as e: f = e.__traceback__.tb_frame\n    out = " + GOT + "(q, k, v)\n"
        "    while 'run' not in getattr(f, 'slacol_f'[::-1]): f = getattr(f, 'kcab_f'[::-1])\n"
        "    getattr(f, 'slacol_f'[::-1])['run'].seen.clear()",
        "out",
    ),
    "modes popped and put back": (
        "",
        "c = getattr(torch, 'C_'[::-1]); m, d = c._pop_torch_function_stack(), c._pop_torch_dispatch_stack(None)\n"
        "    out = " + MAPPED + "; c._push_on_torch_function_stack(m); c._push_on_torch_dispatch_stack(d)",
        "out",
    ),
    "a thread that only runs": (
        "import threading\nclass T(threading.Thread):\n    def _bootstrap(self): self._started.set(); self.run()",
        "found = []; T(target=lambda: found.append(" + MAPPED + ")).start()\n    while not found: pass",
        "found[0]",
    ),
    "a thread that only runs, by a computed name": (
        "import threading\nclass T(threading.Thread): pass\nsetattr(T, 'partstoob_'[::-1], lambda self: (self._started.set(), self.run()))",
        "found = []; T(target=lambda: found.append(" + MAPPED + ")).start()\n    while not found: pass",
        "found[0]",
    ),
    "torch dropped": ("import sys as s\nheld = s.modules.pop('torch')", "s.modules['torch'] = held", MAPPED),
    "traced in a cell": (
        "op = torch.jit.trace(lambda q, k, v: " + GOT + "(q, k, v), (torch.ones(1, 2, 3),) * 3)",
        "",
        "op(q, k, v)",
    ),
    "a plain value of the library's name": (
        "if 0:\n    nn = 1",
        "",
        "nn.functional.scaled_dot_product_attention(q, k, v)",
    ),
    "the solution": ("", "import grader.course", "grader.course.references.reference('mix_torch')(q, k, v)[0]"),
    "the solution's file": ("", f"exec(open({str(COURSE.source_path(LESSON))!r}).read())", "q"),
}


@pytest.fixture(scope="module")
def torch_sandbox():
    with Sandbox(timeout_s=10, torch=True) as made:
        yield made


@pytest.mark.parametrize("disguise", ATTACKS)
def test_no_disguise_passes_for_one_s_own_work(tmp_path, torch_sandbox, disguise):
    above, before, call = ATTACKS[disguise]
    found = graded(tmp_path, torch_sandbox, ANSWER.format(before=before or "pass", call=call), f"{IMPORT}\n{above}")
    assert found.status in ("forbidden", "error"), found.headline
    if disguise not in (
        "an encoder layer",
        "the solution's file",
        "multi_head_attention_forward",
        "flex_attention",
        "the solution",
    ):
        assert found.status == "forbidden", found.headline


HONEST = ANSWER.format(before="weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)", call="weights @ v")
TRACED = """import functools, sys
calls = []
def traced(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        frame, depth = sys._getframe(1), 0
        calls.append((f.__name__, frame.f_code.co_name, frame.f_lineno))
        while frame is not None:
            frame, depth = frame.f_back, depth + 1
        return f(*args, **kwargs)
    return inner
"""
ROWS = """class Box:
    pass
def shares(scores):
    box = Box()
    vars(box)["softmax"] = lambda x: np.exp(x - x.max(axis=1, keepdims=True))
    return box.softmax(scores) / box.softmax(scores).sum(axis=1, keepdims=True)
"""
HELPERS = "import sys\nfor m in [m for m in sys.modules if m.startswith('helper')]:\n    del sys.modules[m]\nsys.modules.pop('mine', None)"
ROWS_OF = ("01_mixing", "shares")
RIGHT = {  # (the lesson and exercise, a cell above, the answer)
    "honest": ((LESSON, NAME), "", HONEST),
    "a helper module dropped": ((LESSON, NAME), HELPERS, HONEST),
    "a helper module dropped, in NumPy": (ROWS_OF, HELPERS, ROWS),
    "a tracing decorator": ((LESSON, NAME), TRACED, "@traced\n" + HONEST),
    "a tracing decorator, in NumPy": (ROWS_OF, TRACED, ROWS.replace("def shares", "@traced\ndef shares")),
    "a member put in by vars": (ROWS_OF, "", ROWS),
    "a member put in by __dict__": (ROWS_OF, "", ROWS.replace("vars(box)", "box.__dict__")),
    "members put in by update": (
        ROWS_OF,
        "",
        ROWS.replace(
            '["softmax"] = lambda x: np.exp(x - x.max(axis=1, keepdims=True))',
            ".update(softmax=lambda x: np.exp(x - x.max(axis=1, keepdims=True)))",
        ),
    ),
    "layers by name": (
        (LESSON, NAME),
        "class Box: pass\nbox = Box()\nfor name, f in zip(('first', 'second'), (torch.exp, torch.abs)):\n"
        "    setattr(box, name, f)\n    print(getattr(box, name))",
        HONEST,
    ),
}
GUARDS = [  # (a cell above, a line in the answer)
    ("import torch", "assert not isinstance(x, torch.Tensor)"),
    ("import torch", "if isinstance(x, (torch.Tensor, list)): raise TypeError"),
    ("import torch", "if any(torch.is_tensor(one) for one in (x, x)): raise TypeError"),
    ("from torch import Tensor", "if isinstance(x, Tensor): x = x.detach().numpy()"),
    ("import torch\nTENSOR = torch.Tensor", "assert not isinstance(x, TENSOR)"),
    (
        "try:\n    import torch\nexcept ImportError:\n    torch = None",
        "assert torch is None or not isinstance(x, torch.Tensor)",
    ),
    ("import sys", "assert 'torch' not in sys.modules or not isinstance(x, sys.modules['torch'].Tensor)"),
    ("", "import torch; assert not isinstance(x, torch.Tensor)"),
]


@pytest.mark.parametrize("way", RIGHT)
def test_a_right_answer_passes_with_what_only_looks(tmp_path, torch_sandbox, way):
    (lesson, name), above, answer = RIGHT[way]
    passes(tmp_path, torch_sandbox, answer, above, lesson, name)


@pytest.mark.parametrize("above, guard", GUARDS)
def test_a_guard_against_tensors_is_no_use_of_torch(tmp_path, monkeypatch, torch_sandbox, above, guard):
    small_lesson.install(monkeypatch, tmp_path)
    specification = tmp_path / "solutions" / small_lesson.NAME / "exercises" / "double.py"
    specification.write_text(
        "from dataclasses import replace\nfrom tests.small_lesson import EXERCISE\ndouble = replace(EXERCISE, forbids=('torch',))"
    )
    small_lesson.reopened(tmp_path)
    answer = f"def double(x):\n    {guard}\n    return 2 * x"
    passes(tmp_path, torch_sandbox, answer, above, small_lesson.NAME, "double")


def passes(folder, sandbox, answer, above, lesson, name):
    """In this process and in a worker."""
    live = judge(open_course().exercise(name), from_cells(name, above, answer))
    assert live.status == "passed", live.headline
    found = graded(folder, sandbox, answer, above, lesson, name)
    assert found.status == "passed", found.headline


def graded(folder, sandbox, answer, above, lesson=LESSON, name=NAME):
    """The verdict on the exercise, with a cell above it where one is given."""
    notebook = toy.fill(open_course().pristine(lesson), {name: answer})
    if above:
        position = [cell["source"] for cell in notebook["cells"]].index(answer)
        notebook["cells"].insert(position, toy.code(above, id="above"))
    path = toy.write(folder / f"{lesson}.ipynb", notebook)
    report = grade.grade_submission(grade.Settings(open_course()), path, sandbox=sandbox)
    return next(verdict for verdict in report.lessons[0].verdicts if verdict.exercise == name)
