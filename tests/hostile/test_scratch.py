"""Attacks on "from scratch": the fused operator in every disguise, beside weights of one's own; none may pass."""

from __future__ import annotations

import json

import pytest

from grader import course, grading
from grader.sandbox import Sandbox

LESSON, NAME = "05_numpy_to_pytorch", "attention_torch"
# {call} stands for the disguised call on q, k and v; what it returns is right to the last digit.
ANSWER = """def attention_torch(q, k, v):
    weights = torch.exp(q @ k.mT / math.sqrt(q.shape[-1]))
    weights = weights / weights.sum(-1, keepdim=True)
    {before}
    return {call}, weights
"""
ATTACKS = {  # (a cell above, a line before the call, the call)
    "plain": ("", "", "F.scaled_dot_product_attention(q, k, v)"),
    "an alias": ("from torch.nn.functional import scaled_dot_product_attention as mine", "", "mine(q, k, v)"),
    "captured in another cell": ("held = F.scaled_dot_product_attention", "", "held(q, k, v)"),
    "a helper in another cell": ("def helper(*a): return F.scaled_dot_product_attention(*a)", "", "helper(q, k, v)"),
    "a default argument": ("def helper(q, k, v, f=F.scaled_dot_product_attention): return f(q, k, v)", "", "helper(q, k, v)"),
    "a composed name": ("", "", "getattr(F, 'scaled_dot' + '_product_attention')(q, k, v)"),
    "a name read backwards": ("", "", "getattr(F, 'noitnetta_tcudorp_tod_delacs'[::-1])(q, k, v)"),
    "vars": ("", "", "vars(F)['scaled_dot_product_' + 'attention'](q, k, v)"),
    "found by its looks": ("", "f = next(f for n, f in vars(F).items() if n.startswith('scaled_dot'))", "f(q, k, v)"),
    "eval": ("", "", "eval('F.scaled_dot_' + 'product_attention(q, k, v)', {'F': F, 'q': q, 'k': k, 'v': v})"),
    "import by a string": ("import importlib", "f = importlib.import_module('torch.nn.' + 'functional')",
                           "getattr(f, 'scaled_dot_' + 'product_attention')(q, k, v)"),
    "another spelling in Unicode": ("", "", "F.ｓcaled_dot_product_attention(q, k, v)"),
    "torch.ops": ("", "", "torch.ops.aten.scaled_dot_product_attention(q, k, v)"),
    "torch._C": ("", "", "torch._C._nn.scaled_dot_product_attention(q, k, v)"),
    "a thread": ("import threading", "found = []; t = threading.Thread(target=lambda: found.append("
                 "getattr(F, 'scaled_dot_product_' + 'attention')(q, k, v))); t.start(); t.join()", "found[0]"),
    "function modes off": ("", "with torch._C.DisableTorchFunction(): out = getattr(F, 'scaled_dot_product_' + 'attention')(q, k, v)", "out"),
    "no profile": ("import sys", "sys.setprofile(None)", "getattr(F, 'scaled_dot_product_' + 'attention')(q, k, v)"),
    "multi_head_attention_forward": ("class M(nn.MultiheadAttention): pass", "", "M(4, 1)(q, k, v)[0]"),
    "an encoder layer": ("layer = nn.TransformerEncoderLayer(4, 1)", "", "layer(q)"),
    "flex_attention": ("from torch.nn.attention.flex_attention import flex_attention as mine", "", "mine(q, k, v)"),
    "the watching patched": (
        "import sys, contextlib\nfor name, module in list(sys.modules.items()):\n    if hasattr(module, 'watching'):\n"
        "        module.watching = contextlib.contextmanager(lambda groups: iter([[]]))",
        "", "[f for n, f in F.__dict__.items() if len(n) == 28 and n[0] == 's'][0](q, k, v)"),
    "the record emptied": (
        "import sys", "frame = sys._getframe().f_back; out = [f for n, f in F.__dict__.items() if len(n) == 28][0](q, k, v); "
        "[frame.f_locals['seen'].clear() for _ in [0] if 'seen' in frame.f_locals]", "out"),
    "the solution": ("", "import grader.course", "grader.course.reference('attention_torch')(q, k, v)[0]"),
    "the solution's file": ("", "exec(open('solutions/05_numpy_to_pytorch.py').read())", "q"),
}  # fmt: skip


@pytest.fixture(scope="module")
def torch_sandbox():
    with Sandbox(timeout_s=10, torch=True) as made:
        yield made


@pytest.mark.parametrize("disguise", ATTACKS)
def test_no_disguise_passes_for_one_s_own_work(tmp_path, torch_sandbox, disguise):
    above, before, call = ATTACKS[disguise]
    notebook = json.loads(json.dumps(course.pristine(LESSON)))
    at = next(i for i, cell in enumerate(notebook["cells"]) if cell["metadata"].get("grader", {}).get("exercise") == NAME
              and cell["metadata"]["grader"]["role"] == "exercise")  # fmt: skip
    notebook["cells"][at]["source"] = ANSWER.format(before=before or "pass", call=call)
    if above:
        notebook["cells"].insert(at, {"cell_type": "code", "id": "above", "metadata": {}, "outputs": [], "source": above,
                                      "execution_count": None})  # fmt: skip
    path = tmp_path / f"{LESSON}.ipynb"
    path.write_text(json.dumps(notebook))
    found = {v.exercise: v for v in grading.grade_submission(path, sandbox=torch_sandbox).lessons[0].verdicts}
    assert found[NAME].status in ("forbidden", "error"), found[NAME].headline
    if disguise not in ("an encoder layer", "the solution's file", "multi_head_attention_forward", "flex_attention", "the solution"):
        assert found[NAME].status == "forbidden", found[NAME].headline


def test_the_honest_way_passes(tmp_path, torch_sandbox):
    """The same frame without any ready-made attention: what is refused above is refused for its call alone."""
    notebook = json.loads(json.dumps(course.pristine(LESSON)))
    for cell in notebook["cells"]:
        about = cell["metadata"].get("grader", {})
        if about.get("exercise") == NAME and about["role"] == "exercise":
            cell["source"] = ANSWER.format(before="weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)", call="weights @ v")
    path = tmp_path / f"{LESSON}.ipynb"
    path.write_text(json.dumps(notebook))
    found = {v.exercise: v for v in grading.grade_submission(path, sandbox=torch_sandbox).lessons[0].verdicts}
    assert found[NAME].status == "passed", found[NAME].headline
