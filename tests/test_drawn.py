"""The cases as they are tried: in one of them, the inputs go by name."""

from __future__ import annotations

import pytest

from grader import course
from grader.judge import judge
from tests.live import from_cells

NAMED = {
    "def softmax(x, axis=-1): {body}": "passed",
    "def softmax(z, axis=-1): x = z; {body}": "error",
    "def softmax(x, /, axis=-1): {body}": "error",
    "def softmax(x, axis=-1, more=None): {body}": "passed",
    "def plain(function):\n    return lambda *args: function(*args)\n@plain\ndef softmax(x, axis=-1): {body}": "passed",
}


@pytest.mark.parametrize(("text", "status"), NAMED.items())
def test_the_names_of_parameters_are_part_of_the_contract(text, status):
    body = "e = np.exp(x - x.max(axis, keepdims=True)); return e / e.sum(axis, keepdims=True)"
    verdict = judge(course.exercise("softmax"), from_cells("softmax", text.format(body=body)))
    assert verdict.status == status, verdict.headline
    assert status == "passed" or "the parameters are to be called x, axis, in this order." in verdict.details[0]
