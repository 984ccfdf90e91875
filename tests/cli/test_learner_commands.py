"""What learners call outside of a notebook: progress, reset of one exercise, and how the command is found."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from grader.cli import main
from grader.course.course import COURSE_ENV
from grader.notebook import workspace
from grader.notebook.kernel_course import kernel_course
from grader.notebook.record import Record, default_path
from grader.util import libraries
from tests import small_lesson
from tests.mixing_course import COURSE, with_notebooks

LESSON = "01_mixing"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A learner's folder, with shares written."""
    monkeypatch.delenv("ATTENTION_COURSE_PROGRESS")
    notebook, stub = COURSE.handout_notebook(LESSON), workspace.stub("shares")
    for cell in notebook["cells"]:
        if "".join(cell["source"]) == stub:
            cell["source"] = ["def shares(scores):\n", "    return scores"]
    (tmp_path / f"{LESSON}.ipynb").write_text(workspace.encode(notebook))
    return tmp_path


def test_progress_shows_the_record_of_a_folder(folder, capsys):
    Record(default_path(folder)).add_attempt("shares", "f", "passed")
    assert main(["progress", "--folder", str(folder)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("passed: core 1 of ") and "Next: " in said
    assert (folder / ".attention-course" / "progress.json").is_file()


def confirmed(capsys, *command: str) -> list[str]:
    """The command with the code that it asked for; it changed nothing."""
    assert main([*command]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "Nothing was changed yet" in said and "Save the notebook in the browser first" in said
    assert (f"this replaces your cell of {command[1]} in" in said) == (command[1] in COURSE.exercise_names())
    return [*command, "--confirm", re.search(r"--confirm (\w{6})", said)[1]]


def test_a_reset_asks_and_its_code_counts_once(folder, capsys):
    path, record = folder / f"{LESSON}.ipynb", Record(default_path(folder))
    written = path.read_text()
    for what in ("shares", "01"):
        command = confirmed(capsys, "reset", what, "--folder", str(folder))
        record.add_attempt("shares", f"passed before {what}", "passed")
        assert main(command) == 2  # what it asked about did not have a pass
        assert (
            "shares passed: the original is not a solution." in capsys.readouterr().err and path.read_text() == written
        )
        command = confirmed(capsys, *command[:4])
        assert main(command) == 0 and path.read_text() != written
        path.write_text(written)
        assert main(command) == 2 and "That code was for an earlier state." in capsys.readouterr().err


def test_in_a_terminal_of_make_lab_every_command_means_the_session_s_folder(
    folder, tmp_path_factory, monkeypatch, capsys
):
    checkout = with_notebooks(tmp_path_factory.mktemp("checkout") / "course")
    monkeypatch.chdir(checkout.root)  # where such a terminal starts: notebooks/ is there
    monkeypatch.setenv("ATTENTION_COURSE_FOLDER", str(folder))
    Record(default_path(folder)).add_attempt("shares", "f", "passed")
    before = checkout.notebook_path(LESSON).read_bytes()
    assert main(["progress"]) == 0 and capsys.readouterr().out.startswith("passed: core 1 of ")
    assert main(confirmed(capsys, "reset", "shares")) == 0 and main(["update"]) == 0
    assert str(folder) in capsys.readouterr().out
    assert main(["grade", "--lessons", "01", "--json", "-"]) == 1
    assert str(folder) in capsys.readouterr().out
    assert checkout.notebook_path(LESSON).read_bytes() == before
    monkeypatch.delenv("ATTENTION_COURSE_FOLDER")
    assert main(["grade"]) == 2 and "grade needs a PATH" in capsys.readouterr().err


def test_in_another_course_s_notebooks_every_command_means_that_course(tmp_path, monkeypatch, capsys):
    small_lesson.write(tmp_path)
    monkeypatch.chdir(tmp_path / "notebooks")
    kernel_course.cache_clear()
    for command in ("reset 01", "update 01", "reset double", "progress", "explain TY1"):
        assert main([*command.split(), "--course", str(COURSE.root)]) == 2
        assert "and --course names another" in capsys.readouterr().err
        monkeypatch.setenv(COURSE_ENV, str(COURSE.root))
        assert main(command.split()) == 0, (command, capsys.readouterr().err)
        assert "mixing" not in capsys.readouterr().out
    assert workspace.lessons_in(Path()) == (small_lesson.NAME,)


def test_reset_puts_back_one_exercise(folder, capsys):
    assert main(confirmed(capsys, "reset", "shares", "--folder", str(folder))) == 0
    assert capsys.readouterr().out.startswith("The cell of shares in ")
    assert workspace.has_cell(folder / f"{LESSON}.ipynb", workspace.stub("shares"))
    assert len(list((folder / "backups").iterdir())) == 1
    assert main(["reset", "shares", "--folder", str(folder)]) == 0
    assert "nothing was changed" in capsys.readouterr().out and len(list((folder / "backups").iterdir())) == 1


def test_update_says_which_tabs_to_reload(folder, capsys):
    path = folder / f"{LESSON}.ipynb"
    path.write_text(path.read_text().replace("# 01 · Mixing", "# 01 · Told otherwise"))
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
    kept = [cell for cell in whole["cells"] if cell["metadata"]["grader"].get("exercise") != "shares"]
    path.write_text(workspace.encode({**whole, "cells": kept}))
    workspace.reset_exercise("shares", folder)
    assert workspace.has_cell(path, workspace.stub("shares"))
    assert [cell["id"] for cell in workspace._read(path)["cells"]] == [cell["id"] for cell in whole["cells"]]


def test_a_misspelled_exercise_is_answered_with_the_nearest(folder, capsys):
    assert main(["reset", "share", "--folder", str(folder)]) == 2
    assert "there is no lesson and no exercise 'share'; did you mean shares?" in capsys.readouterr().err


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
