"""Notebooks from before the language model was a lesson of its own: graded as what they are, and carried over with nothing lost."""

from __future__ import annotations

import copy
import json

import pytest

from grader.cli import main
from grader.course.course import open_course
from grader.course.stubs import encode
from grader.grading.handed_in import choice
from grader.grading.roster import entries
from grader.notebook import workspace
from grader.submission.submission import read_submission

BLOCK, MODEL, GPU = "09_causal_multi_head_attention", "10_language_model", "11_gpu"
lesson_12, lesson_13 = (open_course().module(f"{name}.zoo.answers") for name in ("10_language_model", "11_gpu"))
WRITES, PICKS = lesson_12.RIGHT["generate"][0].strip(), lesson_13.RIGHT["pick_device"][0].strip()


def before(of: str, work: dict[str, str] | None = None) -> dict:
    """A learner's notebook of an earlier version: lesson 09 with its second half, or the GPU's as lesson 10."""
    notebook = copy.deepcopy(open_course().pristine(of))
    if of == BLOCK:
        given = {
            "cell_type": "code",
            "id": "given-9",
            "metadata": {"grader": {"role": "given"}},
            "outputs": [],
            "execution_count": None,
            "source": ["class LanguageModel(nn.Module):\n", "    pass"],
        }
        moved = [
            cell
            for cell in open_course().pristine(MODEL)["cells"]
            if cell["id"] in ("exercise-generate", "check-generate")
        ]
        notebook["cells"] += [given, *copy.deepcopy(moved)]
    notebook["metadata"]["grader"] = {"lesson": {GPU: "12_gpu"}.get(of, of), "version": "earlier"}
    for cell in notebook["cells"]:
        about = cell["metadata"]["grader"]
        if about["role"] == "exercise" and about["exercise"] in (work or {}):
            cell["source"] = work[about["exercise"]].splitlines(keepends=True)
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


def test_what_moved_is_where_the_course_says():
    assert set(open_course().renamed.values()) <= set(open_course().lessons()) and not set(open_course().renamed) & set(
        open_course().lessons()
    )
    assert all(
        open_course().lesson_of(name) != old and old in open_course().lessons()
        for name, old in open_course().moved.items()
    )


# --- grading ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["12_gpu", "mine", "12_gpu (1)"])
def test_a_notebook_of_the_former_name_is_graded_as_its_lesson(tmp_path, name):
    found = read_submission(open_course(), put(tmp_path, name, before(GPU, {"pick_device": PICKS})))
    assert found.lessons == (GPU,) and "pick_device" in found.plan(GPU).owners


def test_a_former_name_without_metadata_is_known_too(tmp_path):
    put(tmp_path / "class" / "ada", "12_gpu", bare(before(GPU)))
    assert read_submission(open_course(), tmp_path / "class" / "ada").lessons == (GPU,)
    assert choice(open_course(), entries(tmp_path / "class")[0]).lessons == (GPU,)


def test_the_new_name_counts_where_both_are_handed_in(tmp_path):
    put(tmp_path, "12_gpu", before(GPU))
    put(tmp_path, GPU, {**before(GPU, {"pick_device": PICKS}), "metadata": open_course().pristine(GPU)["metadata"]})
    plan = read_submission(open_course(), tmp_path).plan(GPU)
    assert PICKS in [cell.text.strip() for cell in plan.cells]


@pytest.mark.parametrize("shape", [lambda notebook: notebook, bare])
def test_an_old_notebook_counts_for_both_lessons(tmp_path, shape):
    found = read_submission(open_course(), put(tmp_path, BLOCK, shape(before(BLOCK, {"generate": WRITES}))))
    assert found.lessons == (BLOCK, MODEL)
    plan = found.plan(MODEL)
    assert set(plan.owners) == {"generate"} and plan.cells[plan.owners["generate"]].text.strip() == WRITES
    assert "counts for both" in plan.notes[0]
    for name in set(open_course().exercises[MODEL]) - {"generate"}:  # the given class of that time is nobody's answer
        assert f"No notebook of lesson {MODEL} was handed in" in plan.missing(name).message


def test_an_old_notebook_does_not_count_beside_a_new_one(tmp_path):
    put(tmp_path, BLOCK, before(BLOCK, {"generate": WRITES}))
    put(tmp_path, MODEL, open_course().pristine(MODEL))
    plan = read_submission(open_course(), tmp_path).plan(MODEL)
    assert WRITES not in [cell.text.strip() for cell in plan.cells] and not any(
        "counts for both" in note for note in plan.notes
    )


def test_a_new_notebook_of_lesson_11_says_nothing_of_lesson_12(tmp_path):
    assert read_submission(open_course(), put(tmp_path, BLOCK, open_course().pristine(BLOCK))).lessons == (BLOCK,)


def test_a_class_of_old_notebooks_is_graded_on_both_lessons(tmp_path):
    for name in ("ada", "bob"):
        put(tmp_path / name, BLOCK, before(BLOCK, {"generate": WRITES}))
    assert choice(open_course(), entries(tmp_path)[0]).lessons == (BLOCK, MODEL)


def test_an_old_notebook_is_graded_in_full(tmp_path, capsys):
    path = put(tmp_path, BLOCK, before(BLOCK, {"generate": WRITES}))
    main(["grade", str(path), "--json", str(tmp_path / "report.json"), "--lessons", "12"])
    (lesson,) = json.loads((tmp_path / "report.json").read_text())["submissions"][0]["lessons"]
    statuses = {verdict["name"]: verdict["status"] for verdict in lesson["exercises"]}
    assert statuses.pop("generate") == "passed" and set(statuses.values()) <= {"missing"}, capsys.readouterr()


# --- grader update ---------------------------------------------------------------------------


def test_update_takes_a_renamed_lesson_over(tmp_path):
    old = put(tmp_path, "12_gpu", before(GPU, {"pick_device": PICKS}))
    data = old.read_bytes()
    assert workspace.present(tmp_path) == (GPU,)
    change = workspace.update(GPU, tmp_path)
    assert change.kept == ("pick_device",) and PICKS in code(tmp_path / f"{GPU}.ipynb")
    assert not old.exists() and change.backup.read_bytes() == data and change.backup.name.startswith("12_gpu-")
    assert not workspace.update(GPU, tmp_path).changed


def test_update_takes_work_to_the_lesson_where_its_exercise_is_now(tmp_path):
    old = put(tmp_path, BLOCK, before(BLOCK, {"generate": WRITES}))
    data = old.read_bytes()
    change = workspace.update(BLOCK, tmp_path)
    assert "Your work on generate went to 10_language_model.ipynb." in str(change)
    assert change.backup.read_bytes() == data
    assert code(tmp_path / f"{MODEL}.ipynb").count(WRITES) == 1 and "def generate" not in code(old)
    assert not workspace.update(BLOCK, tmp_path).changed and not workspace.update(MODEL, tmp_path).changed
    assert read_submission(open_course(), tmp_path).lessons == (BLOCK, MODEL)


def test_update_of_the_new_lesson_alone_finds_the_work(tmp_path):
    old = put(tmp_path, BLOCK, before(BLOCK, {"generate": WRITES}))
    data = old.read_bytes()
    assert workspace.update(MODEL, tmp_path).kept == ("generate",)
    assert WRITES in code(tmp_path / f"{MODEL}.ipynb") and old.read_bytes() == data


def test_update_fills_a_fresh_notebook_of_the_new_lesson(tmp_path):
    put(tmp_path, BLOCK, before(BLOCK, {"generate": WRITES}))
    put(tmp_path, MODEL, open_course().pristine(MODEL))
    workspace.update(BLOCK, tmp_path)
    assert code(tmp_path / f"{MODEL}.ipynb").count("def generate") == 1 and WRITES in code(tmp_path / f"{MODEL}.ipynb")


def test_update_never_overwrites_work_in_the_new_lesson(tmp_path):
    mine = "def generate(model, ids, *rest):\n    return ids"
    old = put(tmp_path, BLOCK, before(BLOCK, {"generate": WRITES}))
    new = before(BLOCK, {"generate": mine})
    put(
        tmp_path,
        MODEL,
        {
            **open_course().pristine(MODEL),
            "cells": [
                next(cell for cell in new["cells"] if cell["id"] == each["id"])
                if each["id"] == "exercise-generate"
                else each
                for each in open_course().pristine(MODEL)["cells"]
            ],
        },
    )
    change = workspace.update(BLOCK, tmp_path)
    assert change.left == () and WRITES in code(old) and mine in code(tmp_path / f"{MODEL}.ipynb")


def test_work_stays_where_the_new_lesson_cannot_be_read(tmp_path):
    old = put(tmp_path, BLOCK, before(BLOCK, {"generate": WRITES}))
    (tmp_path / f"{MODEL}.ipynb").write_text("{")
    workspace.update(BLOCK, tmp_path)
    assert WRITES in code(old) and (tmp_path / f"{MODEL}.ipynb").read_text() == "{"


def test_an_untouched_stub_that_moved_leaves_nothing_behind(tmp_path):
    path = put(tmp_path, BLOCK, before(BLOCK))
    change = workspace.update(BLOCK, tmp_path)
    assert change.left == () and "generate" not in code(path) and not (tmp_path / f"{MODEL}.ipynb").exists()


def test_the_command_updates_a_folder_of_old_notebooks(tmp_path, capsys):
    put(tmp_path, BLOCK, before(BLOCK, {"generate": WRITES}))
    put(tmp_path, "12_gpu", before(GPU, {"pick_device": PICKS}))
    assert main(["update", "--folder", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "went to 10_language_model.ipynb" in said and "11_gpu.ipynb is the lesson of this version" in said
    assert sorted(path.stem for path in tmp_path.glob("*.ipynb")) == [BLOCK, MODEL, GPU]
