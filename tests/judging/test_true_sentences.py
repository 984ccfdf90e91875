"""What a verdict tells is so: the call that an experiment shows, the type that it asks for, the properties that hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from grader.course.spec import Case
from grader.judging.compare import Comparison
from grader.judging.evidence import tables
from grader.judging.judge import judge
from grader.worker.values import Observation, Part
from tests.judging.test_outcomes import OWN
from tests.live import from_cells
from tests.mixing_course import COURSE

FORM, SUM = "type, shape and dtype are as expected", "each row of weights sums to 1"
NUMBERS = "the numbers agree on 9 inputs (the first: two rows of three scores)"
SHARES = """def shares(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    {}
    return weights
"""


def verdict(exercise: str, cell: str):
    return judge(COURSE.exercise(exercise), from_cells(exercise, cell))


def test_arguments_are_shown_as_a_probe_gives_them_and_once_and_the_type_is_this_cases_own():
    def cases(rng):
        shown = {"d": "a root of 4", "dtype": "torch.float64"}  # one in the place of an input, one that the probe adds
        yield Case("own", "a case", (rng.normal(size=(2, 3)), 4), options={"shown": shown}, dtype=("float64",))

    cell = "def scaled(scores, d):\n    return np.float32(scores / d**0.5)"
    found = judge(replace(COURSE.exercise("scaled"), cases=cases), from_cells("scaled", cell))
    assert found.headline == "The result has dtype float32; expected float64."
    assert found.experiment == "A case: scaled(scores (2, 3) float64, d=a root of 4, dtype=torch.float64)"


@pytest.mark.parametrize(
    "line, headline, holds",
    [
        ("if abs(scores).max() > 500: weights = weights * 2", "differs", (FORM, NUMBERS)),
        ("if abs(scores).max() > 500: weights = weights.astype(np.float16)", "dtype float16", (SUM, NUMBERS)),
        ("if len(scores) == 7: weights = weights[:1]", "shape (1, 3)", ()),
        ("if len(scores) == 7: scores @ scores", "raised ValueError", ()),
    ],
)
def test_what_the_shown_experiment_speaks_against_is_not_said_to_hold(line, headline, holds):
    shown = verdict("shares", SHARES.format(line))
    assert headline in shown.headline and shown.verified == holds


def test_a_difference_from_infinity_is_infinite_and_one_that_is_seen_is_not_nothing():
    expected = {"m": Part("tensor", np.array([-np.inf, -np.inf, 1.0, 2.0]), "float64", role="returned")}
    actual = {"m": Part("tensor", np.array([0.0, -np.inf, 1.001, 2.0 + 1e-9]), "float64", role="returned")}
    case = Case("key", "title", rtol=0.0, atol=0.01)
    both = Comparison(COURSE.exercise("shares"), case, Observation(expected), Observation(actual))
    table = tables(both, "m")[-1]
    assert table.role == "difference"
    (difference,) = table.cells
    assert difference[0] == np.inf and difference[1] == 0 and difference[3] == 0
    assert 0 < difference[2] < 1e-300  # written ~0


def test_two_layers_that_are_one_are_told():
    twins = """class Mixer(nn.Module):
    def __init__(self, d_model, d, d_v):
        super().__init__()
        self.w_q = self.w_k = nn.Linear(d_model, d, bias=False)
        self.w_v = nn.Linear(d_model, d_v, bias=False)
    def forward(self, x):
        return mix_torch(self.w_q(x), self.w_k(x), self.w_v(x))
"""
    found = verdict("Mixer", twins)
    assert found.headline == "w_q.weight and w_k.weight are one and the same tensor; each needs its own."


def test_an_exception_that_is_returned_is_no_value():
    cell = "def scaled(scores, d):\n    return scores / d**0.5 if d > 0 else ValueError('d must be positive')"
    headline = judge(OWN["scaled"], from_cells("scaled", cell)).headline
    assert "but it returned one: `raise` throws an exception" in headline
