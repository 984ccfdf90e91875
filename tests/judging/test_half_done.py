"""What is written only in part, or calls what is not written, is no untouched stub; a verdict says which and whose line it is."""

from __future__ import annotations

from grader.course import registry
from grader.judging.judge import judge
from grader.reports import text
from tests.live import from_cells

HALF = '''class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = nn.Linear(d_model, d_k, bias=False)
        self.w_k = nn.Linear(d_model, d_k, bias=BIAS)
        self.w_v = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x):
        raise NotImplementedError("forward is not written yet")
'''


def judged(name: str, text: str):
    return judge(registry.exercise(name), from_cells(name, text))


def test_an_init_without_forward_is_half_done_and_what_is_there_is_judged():
    half = judged("SelfAttention", HALF.replace("BIAS", "False"))
    assert half.status == "failed" and half.verified == ()
    assert half.headline == "SelfAttention is half done: `forward` still raises NotImplementedError."
    wrong = judged("SelfAttention", HALF.replace("BIAS", "True"))
    assert "w_k has a bias" in wrong.headline


def test_a_function_that_is_written_for_some_inputs_is_half_done():
    body = "    e = np.exp(scores - scores.max(axis=1, keepdims=True))\n    return e / e.sum(axis=1, keepdims=True)\n"
    half = judged("softmax_rows", f"def softmax_rows(scores):\n    if len(scores) == 7:\n        raise NotImplementedError\n{body}")
    assert half.headline == "softmax_rows is half done: it still raises NotImplementedError for more rows than columns."
    wrong = judged("softmax_rows", f"def softmax_rows(scores):\n    if len(scores) == 7:\n        raise NotImplementedError\n{body}".replace("axis=1", "axis=0"))
    assert wrong.mistakes == ("SM1",) and wrong.details[0] == half.headline


def test_a_stub_that_is_called_is_named():
    verdict = judged("softmax_rows", "def helper(x):\n    raise NotImplementedError\n\ndef softmax_rows(scores):\n    return helper(scores)")
    assert verdict.headline == "softmax_rows calls `helper`, which is not written yet: it still raises NotImplementedError. Start there."


def test_a_line_of_a_helper_says_whose_it_is():
    verdict = judged("softmax_rows", "def helper(x):\n    return [y @ y for y in [x]]\n\ndef softmax_rows(scores):\n    return helper(scores)")
    assert (verdict.line.function, verdict.line.number, verdict.line.text) == ("helper", 2, "return [y @ y for y in [x]]")
    assert "Your line in `helper` (line 2 of its cell):\n    return" in text.verdict(verdict)


def test_a_verdict_knows_the_case_that_failed():
    assert judged("softmax_rows", "def softmax_rows(scores):\n    return scores").case == "small"
