"""How many cases of a failing answer agree: what `--partial` gives points for."""

from __future__ import annotations

import pytest

from tests.live import verdict_on

BODY = "    e = np.exp(scores - scores.max(axis=1, keepdims=True))\n    return e / e.sum(axis=1, keepdims=True)"


def cases(name: str, text: str) -> tuple[int, int]:
    return verdict_on(name, text).cases


def answered(first: str) -> tuple[int, int]:
    return cases("shares", f"def shares(scores):\n    {first}\n{BODY}")


def test_a_right_answer_agrees_in_all_and_a_stub_in_none():
    agreed, of = answered("pass")
    assert agreed == of > 3
    assert cases("shares", "def shares(scores):\n    raise NotImplementedError") == (0, 0)


@pytest.mark.parametrize("wrong", ["return scores", "raise ValueError", "raise NotImplementedError"])
def test_what_is_right_for_some_inputs_agrees_there(wrong):
    agreed, of = answered("pass")
    some = answered(f"if len(scores) == 7: {wrong}")
    assert some[1] == of and 0 < some[0] < of


def test_a_case_whose_input_is_overwritten_does_not_agree():
    agreed, of = answered("pass")
    assert cases(
        "shares", f"def shares(scores):\n    given = scores\n    scores = scores.copy()\n    given += 1\n{BODY}"
    ) == (0, of)


def test_what_is_forbidden_earns_nothing():
    text = "from scipy.special import softmax\ndef shares(scores):\n    return softmax(scores, axis=1)"
    assert cases("shares", text) == (0, 0)
