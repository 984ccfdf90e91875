"""What learners call outside of a notebook: progress, reset of one exercise, and how the command is found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from grader.cli import main
from grader.course.course import open_course
from grader.notebook import workspace
from grader.notebook.record import Record, default_path
from grader.util import libraries
from tests.conftest import ROOT

LESSON = "01_three_tokens"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A learner's folder, with softmax_rows written."""
    monkeypatch.delenv("ATTENTION_COURSE_PROGRESS")
    notebook, stub = open_course().handout_notebook(LESSON), workspace.stub("softmax_rows")
    for cell in notebook["cells"]:
        if "".join(cell["source"]) == stub:
            cell["source"] = ["def softmax_rows(scores):\n", "    return scores"]
    (tmp_path / f"{LESSON}.ipynb").write_text(workspace.encode(notebook))
    return tmp_path


def test_progress_shows_the_record_of_a_folder(folder, capsys):
    Record(default_path(folder)).add_attempt("softmax_rows", "f", "passed")
    assert main(["progress", "--folder", str(folder)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("passed: core 1 of ") and "Next: " in said
    assert (folder / ".attention-course" / "progress.json").is_file()


def confirmed(capsys, *command: str) -> list[str]:
    """The command with the code that it asked for; it changed nothing."""
    assert main([*command]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "Nothing was changed yet" in said and "Save the notebook in the browser first" in said
    assert (f"this replaces your cell of {command[1]} in" in said) == (command[1] in open_course().exercise_names())
    return [*command, "--confirm", re.search(r"--confirm (\w{6})", said)[1]]


def test_a_reset_asks_and_its_code_counts_once(folder, capsys):
    path, record = folder / f"{LESSON}.ipynb", Record(default_path(folder))
    written = path.read_text()
    for what in ("softmax_rows", "01"):
        command = confirmed(capsys, "reset", what, "--folder", str(folder))
        record.add_attempt("softmax_rows", f"passed before {what}", "passed")
        assert main(command) == 2  # what it asked about did not have a pass
        assert (
            "softmax_rows passed: the original is not a solution." in capsys.readouterr().err
            and path.read_text() == written
        )
        command = confirmed(capsys, *command[:4])
        assert main(command) == 0 and path.read_text() != written
        path.write_text(written)
        assert main(command) == 2 and "That code was for an earlier state." in capsys.readouterr().err


def test_in_a_terminal_of_make_lab_every_command_means_the_session_s_folder(
    folder, tmp_path_factory, monkeypatch, capsys
):
    monkeypatch.chdir(ROOT)  # where such a terminal starts: notebooks/ is there
    monkeypatch.setenv("ATTENTION_COURSE_FOLDER", str(folder))
    Record(default_path(folder)).add_attempt("softmax_rows", "f", "passed")
    before = (ROOT / "notebooks" / f"{LESSON}.ipynb").read_bytes()
    assert main(["progress"]) == 0 and capsys.readouterr().out.startswith("passed: core 1 of ")
    assert main(confirmed(capsys, "reset", "softmax_rows")) == 0 and main(["update"]) == 0
    assert str(folder) in capsys.readouterr().out
    assert main(["grade", "--lessons", "01", "--json", "-"]) == 1
    assert str(folder) in capsys.readouterr().out
    assert (ROOT / "notebooks" / f"{LESSON}.ipynb").read_bytes() == before
    monkeypatch.delenv("ATTENTION_COURSE_FOLDER")
    assert main(["grade"]) == 2 and "grade needs a PATH" in capsys.readouterr().err


def test_reset_puts_back_one_exercise(folder, capsys):
    assert main(confirmed(capsys, "reset", "softmax_rows", "--folder", str(folder))) == 0
    assert capsys.readouterr().out.startswith("The cell of softmax_rows in ")
    assert workspace.has_cell(folder / f"{LESSON}.ipynb", workspace.stub("softmax_rows"))
    assert len(list((folder / "backups").iterdir())) == 1
    assert main(["reset", "softmax_rows", "--folder", str(folder)]) == 0
    assert "nothing was changed" in capsys.readouterr().out and len(list((folder / "backups").iterdir())) == 1


def test_update_says_which_tabs_to_reload(folder, capsys):
    path = folder / f"{LESSON}.ipynb"
    path.write_text(path.read_text().replace("# 01 · Three tokens", "# 01 · Told otherwise"))
    assert main(["update", "--folder", str(folder)]) == 0
    assert (
        f"Where a tab shows {LESSON}.ipynb, reload it before you go on: the menu File › Reload"
        in capsys.readouterr().out
    )
    assert main(["update", "--folder", str(folder)]) == 0
    assert "reload" not in capsys.readouterr().out


def test_reset_puts_back_a_cell_that_was_deleted(folder):
    path = folder / f"{LESSON}.ipynb"
    whole = workspace._read(path)
    kept = [cell for cell in whole["cells"] if cell["metadata"]["grader"].get("exercise") != "softmax_rows"]
    path.write_text(workspace.encode({**whole, "cells": kept}))
    workspace.reset_exercise("softmax_rows", folder)
    assert workspace.has_cell(path, workspace.stub("softmax_rows")) and "{{ " not in path.read_text()


def test_a_misspelled_exercise_is_answered_with_the_nearest(folder, capsys):
    assert main(["reset", "softmax_row", "--folder", str(folder)]) == 2
    assert "there is no lesson and no exercise 'softmax_row'; did you mean softmax_rows?" in capsys.readouterr().err


def test_a_sentence_says_how_the_command_is_called_here(monkeypatch, tmp_path):
    monkeypatch.setattr(libraries, "in_notebook", lambda: False)
    monkeypatch.setenv("PATH", "/nowhere")
    assert libraries.command_name().endswith(" -m grader")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(tmp_path / "my course" / "python"))
        patch.chdir(tmp_path)
        assert libraries.command_name() == f'"{Path("my course", "python")}" -m grader'  # as a shell takes it
        (tmp_path / "gone").mkdir()
        patch.chdir(tmp_path / "gone")
        if os.name == "posix":  # elsewhere a folder in use stays
            (tmp_path / "gone").rmdir()
            assert libraries.command_name() == f'"{sys.executable}" -m grader'
    monkeypatch.setenv("PATH", str(libraries.Path(sys.executable).parent))
    assert libraries.command_name() == "grader"
    monkeypatch.setattr(libraries, "in_notebook", lambda: True)
    assert libraries.command_name() == "%grader"


def test_make_knows_what_a_learner_needs_and_resets_nothing_unasked():
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True).stdout
    for target in ("progress", "reset", "update", "doctor", "grade"):
        assert f"make {target}" in told
        planned = subprocess.run(
            ["make", "-n", "-o", ".venv/.lab", target, "WHAT=softmax_rows"], cwd=ROOT, capture_output=True, text=True
        )
        assert planned.returncode == 0 and f"grader {target}" in planned.stdout, planned.stderr
    lab = subprocess.run(
        ["make", "-n", "-o", ".venv/.lab", "lab", "FOLDER=mine"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    assert f'ATTENTION_COURSE_FOLDER="{ROOT}/mine"' in lab
    assert 'PATH="' in lab and "shell_command=" in lab  # no login shell, which would set the path anew
    unasked = subprocess.run(["make", "-o", ".venv/.lab", "reset"], cwd=ROOT, capture_output=True, text=True)
    assert unasked.returncode == 2 and "make reset WHAT=softmax_rows puts one exercise back" in unasked.stdout
