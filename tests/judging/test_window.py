"""Of each array a verdict holds the part that is shown, and no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from grader.course.spec import Case
from grader.judging import evidence
from grader.judging.compare import Comparison
from grader.judging.evidence import SIDE, Whole, make_tables
from grader.worker.values import Observation, Part
from tests.mixing_course import COURSE
from tests.reports.samples import compared

SHAPES = [(1,), (30,), (1, 30), (40, 1), (20, 30), (3, 20, 30), (2, 3, 9, 4), (2, 1, 3, 5, 7)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(6))
def test_the_part_is_that_of_the_array_with_the_largest_difference_in_it(shape, seed):
    rng = np.random.default_rng(seed)
    want = rng.normal(size=shape)
    got = want.copy()
    for value in [3.0, 0.5, np.nan, np.inf, 1e-9][:seed]:
        got[tuple(rng.integers(0, size) for size in shape)] = value
    arrays = {"q": rng.normal(size=shape), "mask": np.eye(9, 14), "scores": rng.normal(size=(*shape[:-2], 12, 15))}
    tables = compared("result", want, got, **arrays)
    whole = [*arrays.values(), want, got, got - want]
    assert [table.shape for table in tables] == [array.shape for array in whole]
    for table, array in zip(tables, whole, strict=True):
        (row, column), matrix = table.first, np.atleast_2d(array[table.index])
        assert table.total == matrix.shape
        part = matrix[row : row + SIDE, column : column + SIDE]
        assert np.array_equal(table.cells, part, equal_nan=True) and table.cells.base is None
        assert table.cells.shape == tuple(min(SIDE, size) for size in matrix.shape)
    *_, expected, actual, difference = tables
    assert (expected.index, expected.first) == (actual.index, actual.first) == (difference.index, difference.first)
    assert expected.mark is None and actual.mark == difference.mark and (actual.mark is None) == (seed == 0)
    if actual.mark:
        largest = np.nan_to_num(np.abs(difference.cells), nan=np.inf, posinf=np.inf)
        assert largest[actual.mark] == largest.max()


def test_a_result_of_another_shape_is_cut_at_its_beginning():
    want, got = np.ones((3, 4)), np.arange(5_000.0).reshape(50, 100)
    expected, actual = compared("result", want, got)
    assert expected.cells.tolist() == want.tolist() and actual.cells.tolist() == got[:8, :8].tolist()
    assert actual.shape == (50, 100) and actual.first == (0, 0) and actual.largest == 4999


def test_of_no_entries_the_shape_alone_is_shown():
    (table,) = make_tables([Whole("y", np.zeros((2, 0, 3)), "actual")])
    assert table.cells.size == 0 and table.shape == (2, 0, 3) and table.mark is None


def test_where_an_answer_is_most_wrong_is_not_shown():
    exercise = replace(COURSE.exercise("shares"), kind="answer")
    want, got = np.zeros(2_000), np.eye(1, 2_000, 1_500)[0]
    right, theirs = (Observation({"result": Part("ndarray", array, "float64")}) for array in (want, got))
    (table,) = evidence.tables(Comparison(exercise, Case("a", "a"), right, theirs))
    assert (table.role, table.first, table.mark) == ("actual", (0, 0), None)
