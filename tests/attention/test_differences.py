"""Where a formula is asked for, a finite difference is rejected whatever its step, and the sentence says what to write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader.course.course import open_course
from grader.judging.judge import judge
from tests.attention.zoo.differences import DIFFERENCES
from tests.conftest import WHOLE_GRID
from tests.live import from_cells

STEPS = [(10.0**-power, back * 10.0**-power) for power in range(2, 10, 1 if WHOLE_GRID else 3) for back in (-1, 0)]
SENTENCES = {
    "softmax_jacobian": "as finite differences are; write out the formula, which needs no step.",
    "cross_entropy_gradient": "as of a finite difference, whose step is lost in rounding; write out the formula, which needs no step.",
    "softmax_gradient_norm": "The step of a finite difference is lost in rounding there; compute the Jacobian from the weights by its formula.",
    "query_gradient_norm": "The step of a finite difference is too long there; use the chain rule, which needs no step.",
    "tiled_attention_backward": "A finite difference has no step that fits both; use the formulas, which need none.",
}


def judged(name: str, up: float, down: float):
    """With the cases that its property needs alone: an exercise of many would take a minute, of a method that is slow."""
    whole = open_course().exercise(name)
    held = next(one for one in whole.properties if one.check.__name__ == "no_differences")
    small = replace(
        whole,
        cases=lambda rng: [case for case in whole.cases(rng) if case.key in held.cases],
        properties=(held,),
        mistakes=(),
    )
    return judge(small, from_cells(name, DIFFERENCES[name].replace("{up}", repr(up)).replace("{down}", repr(down))))


@pytest.mark.parametrize("up, down", STEPS)
@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_finite_difference_is_rejected_whatever_its_step(name, up, down):
    assert judged(name, up, down).status == "failed"


@pytest.mark.parametrize("name", DIFFERENCES)
def test_the_sentence_says_what_to_write(name):
    verdict = judged(name, 1e-5, -1e-5)
    assert verdict.status == "failed" and verdict.headline.endswith(SENTENCES[name]), verdict.headline
