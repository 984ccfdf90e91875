"""Notebooks of a lesson that had another name: graded as what they are, and carried over with nothing lost."""

from __future__ import annotations

import json

import pytest

from grader.cli import main
from grader.course.course import open_course
from grader.course.stubs import encode
from grader.grading.class_folder import choose_lessons, entries, take_inventory
from grader.notebook import workspace
from grader.submission.submission import read_submission
from tests.toy_course import fill

GPU = "11_gpu"
ANSWERS = open_course().module(f"{GPU}.zoo.answers")
PICKS = ANSWERS.RIGHT["pick_device"][0].strip()


def before(of: str, work: dict[str, str] | None = None) -> dict:
    """A learner's notebook of an earlier version, when the lesson had its former name."""
    notebook = fill(open_course().pristine(of), work or {})
    notebook["metadata"]["grader"] = {"lesson": "12_gpu", "version": "earlier"}
    return notebook


def bare(notebook: dict) -> dict:
    """As an editor leaves it that keeps no metadata."""
    return {
        **notebook,
        "metadata": {},
        "cells": [{**cell, "metadata": {}, "id": f"x{at}"} for at, cell in enumerate(notebook["cells"])],
    }


def put(folder, name: str, notebook: dict):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.ipynb"
    path.write_text(encode(notebook), encoding="utf-8")
    return path


def code(path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def test_a_former_name_leads_to_a_lesson_and_is_none():
    assert set(open_course().renamed.values()) <= set(open_course().lessons()) and not set(open_course().renamed) & set(
        open_course().lessons()
    )


# --- grading ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["12_gpu", "mine", "12_gpu (1)"])
def test_a_notebook_of_the_former_name_is_graded_as_its_lesson(tmp_path, name):
    found = read_submission(open_course(), put(tmp_path, name, before(GPU, {"pick_device": PICKS})))
    assert found.lessons == (GPU,) and "pick_device" in found.plan(GPU).owners


def test_a_former_name_without_metadata_is_known_too(tmp_path):
    put(tmp_path / "class" / "ada", "12_gpu", bare(before(GPU)))
    assert read_submission(open_course(), tmp_path / "class" / "ada").lessons == (GPU,)
    learners = take_inventory(open_course(), entries(tmp_path / "class")[0])
    assert choose_lessons(open_course(), learners)[0] == (GPU,)


def test_the_new_name_counts_where_both_are_handed_in(tmp_path):
    put(tmp_path, "12_gpu", before(GPU))
    put(tmp_path, GPU, {**before(GPU, {"pick_device": PICKS}), "metadata": open_course().pristine(GPU)["metadata"]})
    plan = read_submission(open_course(), tmp_path).plan(GPU)
    assert PICKS in [cell.text.strip() for cell in plan.cells]


# --- grader update ---------------------------------------------------------------------------


def test_update_takes_a_renamed_lesson_over(tmp_path):
    old = put(tmp_path, "12_gpu", before(GPU, {"pick_device": PICKS}))
    data = old.read_bytes()
    assert workspace.lessons_in(tmp_path) == (GPU,)
    change = workspace.update(GPU, tmp_path)
    assert change.exercises == ("pick_device",) and PICKS in code(tmp_path / f"{GPU}.ipynb")
    assert not old.exists() and change.backup.read_bytes() == data and change.backup.name.startswith("12_gpu-")
    assert not workspace.update(GPU, tmp_path).changed


def test_the_command_updates_a_folder_of_old_notebooks(tmp_path, capsys):
    put(tmp_path, "12_gpu", before(GPU, {"pick_device": PICKS}))
    assert main(["update", "--folder", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "11_gpu.ipynb is the lesson of this version" in said
    assert [path.stem for path in tmp_path.glob("*.ipynb")] == [GPU]
