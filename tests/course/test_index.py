"""The index says what specifications and sources say, and a new lesson comes in by `grader build` alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import grader
from grader.course.course import open_course


def test_the_index_is_what_the_specifications_say():
    assert not index.stale()
    said = json.loads(index.built())
    assert said["lessons"].keys() == open_course().exercises.keys()
    assert said["given"]["np"] == "numpy" and said["given"]["F"] == "torch.nn.functional"


def test_an_installation_without_its_index_says_so(tmp_path):
    """In a notebook the sentence ends the traceback; the command prints it alone."""
    shutil.copytree(
        Path(grader.__file__).parent,
        tmp_path / "grader",
        ignore=shutil.ignore_patterns("__pycache__", "data", "index.json"),
    )
    command, notebook = (
        [sys.executable, *rest] for rest in (("-m", "grader", "progress"), ("-c", "from grader import check"))
    )
    for call in (command, notebook):
        done = subprocess.run(
            call,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )
        assert (
            done.returncode == 1
            and "index.json can't be read (No such file or directory), so no lesson is known" in done.stderr
        )
        assert ("Traceback" in done.stderr) == (call is notebook)


def test_lessons_whose_cells_import_torch_need_it():
    assert not open_course().needs_torch("01_three_tokens") and not open_course().needs_torch("08_attention_backward")
    assert open_course().needs_torch("05_numpy_to_pytorch") and open_course().needs_torch("13_gpu")


def test_a_stale_index_is_written_anew_and_known_at_once(monkeypatch, tmp_path):
    before = index.path().read_text(encoding="utf-8")
    said = json.loads(before)
    del said["lessons"]["13_gpu"]
    place = tmp_path / "index.json"
    place.write_text(json.dumps(said), encoding="utf-8")
    monkeypatch.setattr(index, "path", lambda: place)
    try:
        open_course().know(json.dumps(said))
        assert "13_gpu" not in open_course().exercises
        open_course().exercises["13_gpu"] = ()  # as its folder would make it known
        index.refresh()
        assert place.read_text(encoding="utf-8") == before and len(open_course().exercises["13_gpu"]) == len(
            json.loads(before)["lessons"]["13_gpu"]["exercises"]
        )
    finally:
        open_course().know(before)
