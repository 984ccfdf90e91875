"""What is written only in part, or calls what is not written, is no untouched stub; a verdict says which and whose line it is."""

from __future__ import annotations

import pytest

from grader.judging.judge import judge
from grader.reports import text
from tests.live import from_cells
from tests.mixing_course import COURSE

HALF = """class Mixer(nn.Module):
    def __init__(self, d_model, d, d_v):
        super().__init__()
        self.w_q = nn.Linear(d_model, d, bias=False)
        self.w_k = nn.Linear(d_model, d, bias=BIAS)
        self.w_v = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x):
        raise NotImplementedError("forward is not written yet")
"""


def judged(name: str, text: str):
    return judge(COURSE.exercise(name), from_cells(name, text))


def test_an_init_without_forward_is_half_done_and_what_is_there_is_judged():
    half = judged("Mixer", HALF.replace("BIAS", "False"))
    assert half.status == "failed" and half.verified == ()
    assert half.headline == "Mixer is half done: `forward` still raises NotImplementedError."
    wrong = judged("Mixer", HALF.replace("BIAS", "True"))
    assert "w_k has a bias" in wrong.headline


def test_a_function_that_is_written_for_some_inputs_is_half_done():
    body = "    e = np.exp(scores - scores.max(axis=1, keepdims=True))\n    return e / e.sum(axis=1, keepdims=True)\n"
    half = judged("shares", f"def shares(scores):\n    if len(scores) == 7:\n        raise NotImplementedError\n{body}")
    assert half.headline == "shares is half done: it still raises NotImplementedError for more rows than columns."
    wrong = judged(
        "shares",
        f"def shares(scores):\n    if len(scores) == 7:\n        raise NotImplementedError\n{body}".replace(
            "axis=1", "axis=0"
        ),
    )
    assert wrong.mistakes == ("MX7",) and wrong.details[0] == half.headline


def test_a_stub_that_is_called_is_named():
    verdict = judged(
        "shares", "def helper(x):\n    raise NotImplementedError\n\ndef shares(scores):\n    return helper(scores)"
    )
    assert (
        verdict.headline
        == "shares calls `helper`, which is not written yet: it still raises NotImplementedError. Start there."
    )


def test_a_line_of_a_helper_says_whose_it_is():
    verdict = judged(
        "shares", "def helper(x):\n    return [y @ y for y in [x]]\n\ndef shares(scores):\n    return helper(scores)"
    )
    assert (verdict.line.function, verdict.line.number, verdict.line.text) == (
        "helper",
        2,
        "return [y @ y for y in [x]]",
    )
    assert "Your line in `helper` (line 2 of its cell):\n    return" in text.render_verdict(verdict)


def test_a_verdict_knows_the_case_that_failed():
    assert judged("shares", "def shares(scores):\n    return scores").case == "small"


# --- a `raise` that was left -----------------------------------------------------------------------

ABOVE = 'def shares(scores):\n    e = np.exp(scores - scores.max(axis=1, keepdims=True))\n    e / e.sum(axis=1, keepdims=True)\n    raise NotImplementedError("shares is not written yet")'
BELOW = 'def shares(scores):\n    """Rows."""\n    raise NotImplementedError\n    return scores'


@pytest.mark.parametrize("answer, number", [(ABOVE, 4), (BELOW, 3)])
def test_a_raise_that_was_left_beside_code_is_to_be_deleted(answer, number):
    verdict = judged("shares", answer)
    assert (
        verdict.status == "error"
        and verdict.line.number == number
        and verdict.line.text.startswith("raise NotImplementedError")
    )
    assert verdict.headline == (
        "shares is written, but it still contains the original cell's `raise`, which ends it: delete that line."
    )


def test_a_raise_that_was_left_in_a_method_is_named_with_it():
    verdict = judged(
        "Mixer", HALF.replace("BIAS", "False").replace("        raise", "        q = self.w_q(x)\n        raise")
    )
    assert verdict.status == "error" and verdict.headline.startswith("`forward` is written, but it still contains")


def test_a_stub_with_a_docstring_and_a_comment_is_not_started():
    assert judged("shares", BELOW.replace("    return scores", "    # scores")).status == "not_started"


# --- the first case in which anything is wrong ------------------------------------------------------

LATER = {
    "an error": "raise ValueError('no')",
    "a nan": "return np.full(scores.shape, np.nan)",
    "another shape": "return scores[0]",
    "another type": "return None",
    "another dtype": "return np.ones(scores.shape, dtype=bool)",
}


@pytest.mark.parametrize("what", LATER)
def test_a_wrong_number_of_an_earlier_case_comes_before_what_a_later_one_shows(what):
    verdict = judged(
        "shares",
        f"def shares(scores):\n    if scores.shape != (2, 3):\n        {LATER[what]}\n"
        "    e = np.exp(scores - scores.max())\n    return e / e.sum()",
    )
    assert verdict.case == "small" and verdict.status == "failed"
    assert verdict.headline.startswith("Expected: each row of weights sums to 1.")
    right = judged(
        "shares",
        f"def shares(scores):\n    if scores.shape != (2, 3):\n        {LATER[what]}\n"
        "    e = np.exp(scores - scores.max(axis=1, keepdims=True))\n    return e / e.sum(axis=1, keepdims=True)",
    )
    assert right.case not in ("", "small") and not right.passed


def test_numbers_that_are_wrong_first_come_before_a_property_that_fails_later():
    verdict = judged(
        "shares",
        "def shares(scores):\n    e = np.exp(2 * (scores - scores.max(axis=1, keepdims=True)))\n"
        "    return e / e.sum(axis=1 if scores.shape == (2, 3) else 0, keepdims=True)",
    )
    assert verdict.case == "small" and verdict.headline.startswith("The result differs from what was expected by up to")
    assert not any("sums to 1" in held for held in verdict.verified)


def test_what_is_wrong_in_the_written_part_is_shown_for_its_first_case():
    half = judged(
        "shares",
        "def shares(scores):\n    if len(scores) == 7:\n        raise NotImplementedError\n"
        "    e = np.exp(scores - scores.max())\n    return e / e.sum()",
    )
    assert half.case == "small" and half.details[0].startswith("shares is half done")


@pytest.mark.parametrize("factor, said", [(1, "NaN"), (2, "differs")])
def test_what_a_case_of_nan_breaks_does_not_hold(factor, said):
    """Properties are asked of the cases before the first NaN, which one of them may be about; also where what is shown comes before it."""
    verdict = judged(
        "shares",
        "def shares(scores):\n    if scores.shape == (4, 4):\n        return scores * np.nan\n"
        f"    e = np.exp({factor} * (scores - scores.max(axis=1, keepdims=True)))\n    return e / e.sum(axis=1, keepdims=True)",
    )
    assert said in verdict.headline
    assert not any("sums to 1" in held for held in verdict.verified)
