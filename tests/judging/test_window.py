"""Large tables are cut to what is shown, and every report shows the same of them."""

from __future__ import annotations

import numpy as np
import pytest

from grader.judging import evidence
from grader.judging.verdict import Table
from grader.reports import html, text
from grader.reports.tables import views
from tests.reports.samples import compared

SHAPES = [(1,), (30,), (1, 30), (40, 1), (20, 30), (3, 20, 30), (2, 3, 9, 4), (2, 1, 3, 5, 7)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(6))
def test_what_is_cut_looks_as_the_whole_does(monkeypatch, shape, seed):
    rng = np.random.default_rng(seed)
    want = rng.normal(size=shape)
    got = want.copy()
    for value in [3.0, 0.5, np.nan, np.inf, 1e-9][:seed]:
        got[tuple(rng.integers(0, size) for size in shape)] = value
    whole = compared(
        "result", want, got, q=rng.normal(size=shape), mask=np.eye(9, 14), scores=rng.normal(size=(*shape[:-2], 12, 15))
    )
    monkeypatch.setattr(evidence, "MAX_WHOLE", 25)
    cut = evidence.cut(whole)
    assert [table.shape for table in cut] == [table.shape for table in whole]
    assert all(table.array.size <= 64 for table in cut)
    for kept, before in zip(views(cut), views(whole), strict=True):
        assert np.array_equal(kept.cells, before.cells, equal_nan=True)
        for name in ("index", "first", "mark", "total", "written", "title", "cut"):
            assert getattr(kept, name) == getattr(before, name)
    assert html.pictures(cut) == html.pictures(whole) and text._tables(cut) == text._tables(whole)


def test_a_result_of_another_shape_is_cut_at_its_beginning():
    tables = compared("result", np.ones((3, 4)), np.arange(5_000.0).reshape(50, 100))
    expected, got = evidence.cut(tables)
    assert expected is tables[0] and got.array.tolist() == tables[1].array[:8, :8].tolist() and got.shape == (50, 100)
    assert views((expected, got))[1].cut == "rows 0 to 7 of 50, columns 0 to 7 of 100"


def test_small_tables_stay_whole():
    tables = (Table("x", np.zeros((20, 50)), "input"), Table("y", np.zeros((0, 3)), "actual"))
    assert evidence.cut(tables) == tables
