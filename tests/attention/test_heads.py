"""Lesson 18 without the weights of its real model: the stored run, whole, and what the lesson asserts of it; with them, the same numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.layout_engine import ConstrainedLayoutEngine

from grader import figures
from grader.course.course import open_course
from grader.data import heads, smollm2
from tests.heads import LESSON, fresh_run, packed

ASKED = re.compile(r'measured\("([^"]+)"')


def asked() -> set[str]:
    """The experiments that the lesson's cells name."""
    return set(ASKED.findall("\n".join(cell.text for cell in open_course().cells(LESSON))))


def test_the_stored_run_holds_every_experiment_of_the_lesson():
    stored = heads.stored_run()
    assert asked() <= stored.keys() and len(asked()) >= 9
    ablations = {name for name in stored if name.startswith(("copying without ", "asked without "))}
    assert stored.keys() == asked() | ablations and len(ablations) == 6
    assert all(
        values.size and (values.dtype.kind in "U" or np.isfinite(values).all())
        for run in stored.values()
        for values in run.values()
    )


def test_stored_maps_are_weights_of_a_causal_model():
    maps = heads.stored_run()["maps"]
    for i in range(3):
        weights = maps[f"weights {i}"]
        assert weights.shape == (30, 9, *2 * (len(maps[f"tokens {i}"]),))
        assert np.allclose(weights.sum(axis=-1), 1, atol=0.01) and not np.triu(weights, 1).any()


def test_a_head_that_does_not_exist_is_told_so():
    maps = {"a b": (["a", "b"], np.tile(np.eye(2), (30, 9, 1, 1)))}
    for layer, head in ((30, 0), (0, 9), (-1, 0)):
        with pytest.raises(
            ValueError, match=rf"there is no head {layer}\.{head}: layers go from 0 to 29, heads from 0 to 8"
        ):
            figures.reading_heads.explorer(maps, layer, head)
    names: dict = {"heads": heads}
    for cell in open_course().cells(LESSON):
        if cell.role == "given":
            exec(cell.text, names)
    model = type("Model", (), {"weights": {}, "config": smollm2.CONFIG})
    with pytest.raises(ValueError, match=r"there is no head 31\.0: layers go from 0 to 29, heads from 0 to 8"):
        names["read"](model, None, [(31, 0)])


def test_a_run_survives_being_stored(tmp_path, monkeypatch):
    run = {
        "one": {"names": np.array([" a", "b"]), "number": np.array(2.5)},
        "two": {"large": np.linspace(0, 1, 20_000)},
    }
    monkeypatch.setattr(heads, "FILE", tmp_path / "run.npz")
    heads.FILE.write_bytes(packed(run))
    found = heads.stored_run()
    assert found["one"]["names"].tolist() == [" a", "b"] and found["one"]["number"] == 2.5
    assert (
        np.abs(found["two"]["large"] - run["two"]["large"]).max() < 1e-3 and found["two"]["large"].dtype == np.float32
    )


def test_without_the_weights_the_lesson_runs_to_its_end_on_the_stored_run(monkeypatch, capsys):
    """Every cell of the solved lesson with its assertions; what it prints says how to get the weights."""
    monkeypatch.setattr(smollm2, "available", lambda: False)
    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda *_: None)  # half of a figure's time
    assert fresh_run(without_weights=True).keys() == heads.stored_run().keys()
    assert smollm2.how_to_get() in capsys.readouterr().out


def test_the_stored_run_is_what_the_weights_give():
    assert smollm2.available(), smollm2.how_to_get()
    stored = heads.stored_run()
    for name, found in fresh_run(only="maps").items():
        for key, values in found.items():
            if values.dtype.kind == "U":
                assert values.tolist() == stored[name][key].tolist()
            elif name in ("capital", "maps"):
                assert np.abs(values - stored[name][key]).max() < 5e-3, (name, key)
