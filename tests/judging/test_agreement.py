"""How many cases of a failing answer agree: what `--partial` gives points for."""

from __future__ import annotations

import pytest

from tests.attention.test_zoo import ANIMALS
from tests.live import verdict_on

BODY = "    e = np.exp(scores - scores.max(axis=1, keepdims=True))\n    return e / e.sum(axis=1, keepdims=True)"


def cases(name: str, text: str) -> tuple[int, int]:
    return verdict_on(name, text).cases


def softmax(first: str) -> tuple[int, int]:
    return cases("softmax_rows", f"def softmax_rows(scores):\n    {first}\n{BODY}")


def test_a_right_answer_agrees_in_all_and_a_stub_in_none():
    agreed, of = softmax("pass")
    assert agreed == of > 3
    assert cases("softmax_rows", "def softmax_rows(scores):\n    raise NotImplementedError") == (0, 0)


@pytest.mark.parametrize("wrong", ["return scores", "raise ValueError", "raise NotImplementedError"])
def test_what_is_right_for_some_inputs_agrees_there(wrong):
    agreed, of = softmax("pass")
    some = softmax(f"if len(scores) == 7: {wrong}")
    assert some[1] == of and 0 < some[0] < of


def test_a_case_whose_input_is_overwritten_does_not_agree():
    agreed, of = softmax("pass")
    assert cases(
        "softmax_rows",
        f"def softmax_rows(scores):\n    given = scores\n    scores = scores.copy()\n    given += 1\n{BODY}",
    ) == (0, of)


def test_what_is_forbidden_earns_nothing():
    text = "def attention_torch(q, k, v, scale=None):\n    return F.scaled_dot_product_attention(q, k, v, scale=scale)"
    assert cases("attention_torch", text) == (0, 0)


FIRST = [(e, w[1]) for zoo in ANIMALS.values() for e, wrongs in zoo.WRONG.items() for w in wrongs[:1]]


@pytest.mark.parametrize("exercise, text", FIRST, ids=[e for e, _ in FIRST])
def test_no_wrong_answer_agrees_in_all_cases(exercise, text):
    agreed, of = cases(exercise, text)
    assert agreed < of or (agreed, of) == (0, 0)
