"""The cases as they are tried: in one of them, the inputs go by name."""

from __future__ import annotations

import pytest

from grader.course.course import open_course
from grader.judging.judge import judge
from tests.live import from_cells

NAMED = {
    "def softmax_jacobian(p): {body}": "passed",
    "def softmax_jacobian(probabilities): p = probabilities; {body}": "error",
    "def softmax_jacobian(p, /): {body}": "error",
    "def softmax_jacobian(p, more=None): {body}": "passed",
    "def plain(function):\n    return lambda *args: function(*args)\n@plain\ndef softmax_jacobian(p): {body}": "passed",
}


@pytest.mark.parametrize(("text", "status"), NAMED.items())
def test_the_names_of_parameters_are_part_of_the_contract(text, status):
    verdict = judge(
        open_course().exercise("softmax_jacobian"),
        from_cells("softmax_jacobian", text.format(body="return np.diag(p) - np.outer(p, p)")),
    )
    assert verdict.status == status, verdict.headline
    assert status == "passed" or any("call the parameters p, in this order." in detail for detail in verdict.details)


def test_wrong_numbers_come_before_parameters_that_are_called_otherwise():
    wrong = judge(
        open_course().exercise("softmax_rows"),
        from_cells("softmax_rows", "def softmax_rows(x):\n    return x / x.sum(axis=1, keepdims=True)"),
    )
    assert (wrong.status, wrong.mistakes) == ("failed", ("TT13",))
    right = judge(
        open_course().exercise("softmax_rows"),
        from_cells(
            "softmax_rows",
            "def softmax_rows(x):\n    e = np.exp(x - x.max(axis=1, keepdims=True))\n    return e / e.sum(axis=1, keepdims=True)",
        ),
    )
    assert (right.status, right.mistakes, right.tables) == ("error", (), ()), "no number has a part in it"
    assert any("call the parameters scores" in detail for detail in right.details)
