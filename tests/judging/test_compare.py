"""Comparison: what counts as the same, and what is said of the first difference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from grader.course.readings import name_parts
from grader.course.spec import Case
from grader.judging import wording
from grader.judging.compare import Comparison, close, gaps, largest_relative_difference
from grader.worker.values import Observation, Part, describe
from tests.mixing_course import COURSE

EXERCISE, CASE = COURSE.exercise("shares"), Case("c", "c")
WANT = np.array([[1.0, 2.0], [3.0, 4.0]])


def returned(value) -> Part:
    return replace(describe(value), role="returned")


def problems(got, want=WANT, exercise=EXERCISE, case=CASE):
    name = exercise.result_names[0]
    return compare(exercise, case, {name: returned(want)}, {name: returned(got)})


def compare(exercise, case, expected, actual):
    return Comparison(exercise, case, Observation(parts=expected), Observation(parts=actual)).differences


@pytest.mark.parametrize("got", [WANT, WANT.astype(np.float32), WANT.astype(int), np.asfortranarray(WANT), WANT + 1e-6])
def test_other_precisions_layouts_and_small_differences_are_the_same(got):
    assert problems(got) == []


@pytest.mark.parametrize(
    "got, stage, words",
    [
        (WANT.tolist(), "type", "a list of 2"),
        (None, "type", "None"),
        (1.0, "type", "a single number"),
        (WANT[:, :1], "shape", "(2, 1)"),
        (WANT.astype(np.float16), "dtype", "float16"),
        (WANT > 1, "dtype", "bool"),
        (np.where(WANT > 3, np.nan, WANT), "finite", "NaN"),
        (WANT + 0.1, "values", "up to 0.1"),
        (WANT.astype(complex), "type", "complex"),
        (np.array([["a", "b"]]), "type", "array of str"),
    ],
)
def test_the_first_difference_is_said(got, stage, words):
    (problem,) = problems(got)
    assert problem.stage == stage and words in wording.headline(EXERCISE, problem)


def test_broadcasting_never_hides_a_shape():
    assert problems(np.ones((3, 1)), np.ones((1, 3)))[0].stage == "shape"


def test_a_single_number_may_be_any_scalar():
    number = replace(EXERCISE, result_type="number")
    for got in (1.5, np.float32(1.5), np.array(1.5)):
        assert problems(got, 1.5, number) == []
    assert problems(np.array([1.5]), 1.5, number)[0].stage == "shape"


def test_an_answer_may_be_a_list_a_tuple_or_an_array():
    answer = replace(EXERCISE, result_type="answer", kind="answer", rtol=0, atol=0.01)
    for got in ([5, 5], (5.0, np.float64(5)), np.array([5.005, 5])):
        assert problems(got, np.array([5.0, 5.0]), answer) == []
    for got in ([5.3, 4.2], [5], "55", None, [5, "5"], [True, True], [float("nan"), 5]):
        assert problems(got, np.array([5.0, 5.0]), answer)


def test_a_pair_may_be_a_tuple_or_a_list_of_two():
    pair = replace(EXERCISE, result_names=("output", "weights"))
    for made in (tuple, list):
        flat = name_parts(pair.result_names, {"result": returned(made((WANT, WANT)))})
        assert list(flat) == ["output", "weights"]
    for wrong in (WANT, (WANT,), (WANT, WANT, WANT), None):
        whole = Observation(name_parts(pair.result_names, {"result": returned(wrong)}))
        (problem,) = Comparison(pair, CASE, Observation(flat), whole).differences
        assert "expected 2 things: (output, weights)" in wording.headline(pair, problem)


def test_a_required_dtype_is_required():
    case = Case("c", "c", dtype=("float32",))
    assert problems(WANT.astype(np.float32), case=case) == []
    assert problems(WANT, case=case)[0].stage == "dtype"


def test_beside_large_numbers_the_largest_difference_is_a_part_of_them():
    """A difference of 0.002 from 20,000 is rounding, and would look like an error."""
    right = np.array([0.5, 20_000.0])
    assert largest_relative_difference(right, right + [1e-9, 0.002]) == pytest.approx(1e-7)
    assert largest_relative_difference(np.array([np.inf, np.nan, 1.0]), np.array([np.inf, np.nan, 1.5])) == 0.5
    assert largest_relative_difference(right, np.array([np.nan, 1.0])) == np.inf


def test_a_lost_number_counts_as_an_infinite_difference():
    assert gaps(WANT, WANT + 0.5).max() == 0.5
    assert np.array_equal(gaps(WANT, np.where(WANT == 4, np.nan, WANT)), [[0, 0], [0, np.inf]])


def test_close_is_what_allclose_says():
    rng = np.random.default_rng(3)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 1e-320])
    said = set()
    for _ in range(3000):
        want = rng.normal(size=(2, 3)) * 10.0 ** rng.integers(-5, 6)
        got = want * (1 + rng.normal(size=(2, 3)) * 10.0 ** rng.integers(-9, -3))
        for array in (want, got):
            if rng.random() < 0.3:
                array.flat[rng.integers(6)] = rng.choice(special)
        if rng.random() < 0.2:
            want = got.copy()
        with np.errstate(all="ignore"):
            expected = bool(np.allclose(got, want, rtol=1e-4, atol=1e-6, equal_nan=True))
        assert close(want, got, 1e-4, 1e-6) is expected, (want, got)
        said.add((expected, bool(np.isfinite(want).all())))
    assert len(said) == 4
    assert not close(WANT, WANT[:1], 1e-4, 1e-6)


def test_a_gradient_is_one_by_its_role_and_not_by_its_name():
    large, other = np.full(3, 1e4), np.full(3, 1e4) + [0.0, 0.0, 0.05]
    for name in ("gradient of x", "slope"):
        for role, found in (("gradient", []), ("value", ["numbers"])):
            expected, actual = (replace(describe(array), role=role, of="x") for array in (large, other))
            exercise = replace(EXERCISE, rtol=0.0, atol=1e-5)
            assert [one.kind for one in compare(exercise, CASE, {name: expected}, {name: actual})] == found
    cut = (
        {"slope": replace(describe(WANT), role="gradient", of="q")},
        {"slope": replace(describe(None), role="gradient", of="q")},
    )
    (finding,) = compare(EXERCISE, CASE, *cut)
    assert wording.headline(EXERCISE, finding).startswith("No gradient reaches `q`")


def test_the_second_call_of_a_pair_is_taken_apart_like_the_first():
    pair = replace(EXERCISE, result_names=("output", "weights"))
    second = replace(returned((WANT, WANT)), of="second call")
    flat = name_parts(pair.result_names, {"result": returned((WANT, WANT)), "another": second})
    assert list(flat) == ["output", "weights", "output of the second call", "weights of the second call"]


def test_of_two_parts_the_one_of_another_type_comes_first():
    right = {"output": returned(WANT), "weights": returned(WANT)}
    wrong = {"output": returned(WANT + 1), "weights": returned(None)}
    assert [finding.stage for finding in compare(EXERCISE, CASE, right, wrong)] == ["type", "values"]
