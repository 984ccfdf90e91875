"""Which part of an array is shown, and how its numbers are written."""

from __future__ import annotations

import numpy as np
import pytest

from grader.judging import evidence
from grader.judging.evidence import HAIR, Whole
from grader.reports import text
from grader.reports.tables import format_cells, number, part_of, title_of
from tests.reports.samples import INF, NAN, compared


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (0.123456, "0.1235"),
        (1234567.0, "1.235e+06"),
        (NAN, "nan"),
        (INF, "inf"),
        (-INF, "-inf"),
        (1e-9, "1e-09"),
        (np.float32(0.1), "0.1"),
        (np.int64(-3), "-3"),
        (np.True_, "True"),
        (10_000, "10000"),
    ],
)
def test_numbers_have_four_digits(value, said):
    assert number(value) == said


def test_rounding_in_a_difference_is_no_distraction():
    want = np.array([[1.0, 2.0]])
    shown = compared("result", want, want + [[1e-16, 0.5]])
    assert format_cells(shown[-1]) == [["0", "0.5"]]
    shown = compared("result", want * 1e-9, want * 1e-9 + [[1e-16, 0.5]])
    assert format_cells(shown[-1]) == [["~0", "0.5"]]


def test_a_difference_within_the_tolerance_is_a_hair_beside_nan_too():
    table = Whole("", np.array([[HAIR, NAN, 0.0]]), "difference")
    assert format_cells(evidence.make_tables((table,))[-1]) == [["~0", "nan", "0"]]


def test_where_all_differences_are_within_the_tolerance_none_is_told_as_a_number():
    table = Whole("result", np.full((1, 2), np.finfo(np.float64).tiny), "difference")
    assert format_cells(evidence.make_tables((table,))[-1]) == [["~0", "~0"]]


def test_more_than_eight_rows_or_columns_are_cut_around_the_largest_difference():
    want = np.zeros((40, 9))
    got = want.copy()
    got[30, 8] = 1
    expected, shown, _ = compared("result", want, got)
    assert shown.cells.shape == expected.cells.shape == (8, 8)
    assert part_of(shown) == "rows 26 to 33 of 40, columns 1 to 8 of 9"
    assert shown.cells[shown.mark] == 1
    lines = text.grid(shown).splitlines()
    assert (lines[0], lines[-1], lines[1][0]) == ("…", "…", "…")
    assert not lines[1].endswith("…")  # the last column is among those shown


def test_cuts_at_the_beginning_say_that_more_follows():
    (table,) = evidence.make_tables((Whole("x", np.arange(100.0), "input"),))
    assert text.grid(table) == "0  1  2  3  4  5  6  7  …"
    assert (title_of(table), part_of(table)) == ("x (100,)", "columns 0 to 7 of 100")


def test_first_slice_that_differs_is_shown_for_expected_got_and_input():
    want = np.zeros((2, 3, 2, 2))
    got = want.copy()
    got[0, 2, 1, 0] = 1e-12  # rounding, not the error
    got[1, 1] = 5
    got[1, 2] = 6
    shown = compared("output", want, got, q=np.ones((2, 3, 4, 4)), w=np.ones((3, 3)), b=np.ones((5, 2, 2)))
    assert [table.index for table in shown] == [(1, 1), (), (0,), (1, 1), (1, 1), (1, 1)]
    assert shown[-2].cells.tolist() == [[5, 5], [5, 5]]
    assert part_of(shown[-2]) == "slice [1, 1]"


def test_a_tiny_result_is_shown_whole_both_heads_of_it():
    want = np.zeros((1, 2, 2, 3))
    got = want + [[[[0.0]], [[1.0]]]]
    shown = compared("weights", want, got)
    assert [(table.role, table.index, table.mark is not None) for table in shown] == [
        ("expected", (0, 0), False),
        ("actual", (0, 0), False),
        ("difference", (0, 0), False),
        ("expected", (0, 1), False),
        ("actual", (0, 1), True),
        ("difference", (0, 1), True),
    ]


@pytest.mark.parametrize(("shape", "said"), [((), "7"), ((3,), "7  7  7"), ((2, 1), "7\n7"), ((0, 3), "(no entries)")])
def test_every_number_of_axes_can_be_shown(shape, said):
    (table,) = evidence.make_tables((Whole("x", np.full(shape, 7.0), "input"),))
    assert text.grid(table) == said


def test_columns_are_aligned_at_the_point():
    (table,) = evidence.make_tables((Whole("x", np.array([[1.5, -10], [-12.25, NAN], [3, 0.001]]), "input"),))
    assert text.grid(table).splitlines() == ["  1.5   -10", "-12.25  nan", "  3       0.001"]


def test_shapes_that_differ_leave_nothing_to_mark():
    shown = compared("result", np.ones((1, 3)), np.ones((3, 1)))
    assert [table.mark for table in shown] == [None, None]


def test_nan_is_the_largest_difference_and_equal_nan_is_none():
    want = np.array([1.0, NAN, 3.0, INF])
    assert compared("r", want, np.array([9.0, NAN, NAN, INF]))[1].mark == (0, 2)
    assert compared("r", want, want)[1].mark is None


def test_type_of_what_came_back_is_said():
    got = Whole("weights", np.ones((1, 2), dtype=np.float32), "actual", "bfloat16")
    assert title_of(evidence.make_tables((got,))[0]) == "got weights (1, 2) bfloat16"


def test_what_is_within_the_tolerance_is_neither_marked_nor_shown_for_what_is_not():
    want = np.zeros((2, 9, 8))
    got = want.copy()
    got[0, 0, 0], got[1, 8, 7] = 2e-5, 9e-5
    arrays = [Whole("result", want, "expected"), Whole("result", got, "actual")]
    allowed = Whole("result", np.where(np.abs(got) > 5e-5, got, HAIR * (got > 0)), "difference")
    shown = evidence.make_tables((*arrays, allowed))
    assert [table.index for table in shown] == [(1,), (1,), (1,)]
    assert shown[-1].cells[shown[-1].mark] == 9e-5
    nothing = Whole("result", HAIR * (got > 0), "difference")
    assert [table.mark for table in evidence.make_tables((*arrays, nothing))] == [None] * 3


def test_beside_nan_a_hair_is_written_as_one():
    table = Whole("r", np.array([HAIR, NAN, 0.0]), "difference")
    assert format_cells(evidence.make_tables((table,))[0]) == [["~0", "nan", "0"]]


def test_a_mask_for_all_heads_is_shown_with_the_slice_that_it_hides():
    want = np.zeros((2, 3, 2, 2))
    got = want.copy()
    got[1, 2] = 5
    masks = np.arange(8.0).reshape(2, 1, 2, 2)
    mask = next(table for table in compared("weights", want, got, mask=masks) if table.name.startswith("mask"))
    assert (mask.index, mask.cells.tolist()) == ((1, 0), masks[1, 0].tolist())
