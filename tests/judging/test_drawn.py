"""The cases as they are tried: in one of them, the inputs go by name."""

from __future__ import annotations

import pytest

from grader.judging.judge import judge
from tests.live import from_cells
from tests.mixing_course import COURSE

NAMED = {
    "def scaled(scores, d): {body}": "passed",
    "def scaled(numbers, d): scores = numbers; {body}": "error",
    "def scaled(scores, d, /): {body}": "error",
    "def scaled(scores, d, more=None): {body}": "passed",
    "def plain(function):\n    return lambda *args: function(*args)\n@plain\ndef scaled(scores, d): {body}": "passed",
}


@pytest.mark.parametrize(("text", "status"), NAMED.items())
def test_the_names_of_parameters_are_part_of_the_contract(text, status):
    verdict = judge(COURSE.exercise("scaled"), from_cells("scaled", text.format(body="return scores / d**0.5")))
    assert verdict.status == status
    assert status == "passed" or any("call the parameters scores, d, in this order." in one for one in verdict.details)


def test_wrong_numbers_come_before_parameters_that_are_called_otherwise():
    exercise = COURSE.exercise("shares")
    e = "def shares(x):\n    e = np.exp(x - x.max(axis=1, keepdims=True))\n    return e"
    wrong = judge(exercise, from_cells("shares", e))
    assert (wrong.status, wrong.mistakes) == ("failed", ("MX11",))
    right = judge(exercise, from_cells("shares", f"{e} / e.sum(axis=1, keepdims=True)"))
    assert (right.status, right.mistakes, right.tables) == ("error", (), ()), "no number has a part in it"
    assert any("call the parameters scores" in detail for detail in right.details)
