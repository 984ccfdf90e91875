"""reset(): one exercise's cell is the stub again, by a button in the open notebook or by the command in its file; the code is kept.

A command that stays in a notebook, or in a shell's history, is run again by Run All or by the arrow key. So it acts once for each
code that it gives out: the code depends on how often the work was checked, whether it passed and which copies exist, and after one
reset it fits no more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from grader.notebook import workspace
from grader.notebook.display import Display, ipython, sentence
from grader.notebook.hints import own_code
from grader.notebook.kernel_course import kernel_course
from grader.notebook.record import Record, default_path
from grader.notebook.target import MISSING, Target
from grader.reports.html import render
from grader.reports.text import plain
from grader.util import libraries
from grader.util.digest import digest
from grader.util.names import BACKUPS


def how_to_confirm(name: str, place: Path, code: str | None) -> str:
    """What to do first where resetting would replace work and `code` is not the code for it; '' where it may go on.

    name: of a lesson or an exercise.
    """
    lesson = name if name in kernel_course().lessons() else kernel_course().lesson_of(name)
    exercises = kernel_course().exercises[lesson] if name == lesson else (name,)
    if not workspace.has_work(lesson, exercises if name != lesson else None, place):
        return ""
    record = Record(default_path(place.resolve()))
    entries = [record.entry(exercise) for exercise in exercises]
    copies = sorted(copy.name for copy in (place / BACKUPS).glob("*") if copy.name.startswith((lesson, *exercises)))
    expected = digest(repr((name, [(entry.passed, entry.attempts) for entry in entries], copies)))[:6]
    if code == expected:
        return ""
    passed = [exercise for exercise, entry in zip(exercises, entries) if entry.passed]
    warning = f" {', '.join(passed)} passed: the original is not a solution." if passed else ""
    outdated = "That code was for an earlier state. " if code else ""
    yours = "your work" if name == lesson else f"your cell of {name}"
    return (
        f"{outdated}Nothing was changed yet: this replaces {yours} in {place / f'{lesson}.ipynb'} by the course's original, and keeps a "
        f"copy in {BACKUPS}/.{warning} Save the notebook in the browser first; then the same command with `--confirm {expected}` does it, "
        "once."
    )


def original(name: str) -> Display:
    """What reset() shows where nobody can press a button: how to be asked by the command, and the cell to put back by hand."""
    lesson, shell, stub = kernel_course().lesson_of(name), ipython(), workspace.stub(name)
    way = f"{by_command(name)} By hand, replace your cell by the exercise's original:"
    if not Path(f"{lesson}.ipynb").is_file():
        way = f"{lesson}.ipynb is not in this folder. Replace your cell by the exercise's original:"
        if shell is not None:
            shell.set_next_input(stub, replace=False)
    return sentence(f"Nothing was changed. {way}\n\n```python\n{stub}\n```", f"Reset {name}")


def by_command(name: str) -> str:
    """How to reset without buttons."""
    return f"`{libraries.command_name()} reset {name}` asks, then restores the cell in the notebook's file and keeps a copy."


def save_advice(lesson: str) -> str:
    """What to do first where a lesson's file does not hold the cell that runs now; '' where it does, and outside of a notebook."""
    path, shell = Path(f"{lesson}.ipynb"), ipython()
    if shell is None or not path.is_file() or workspace.has_cell(path, shell.history_manager.input_hist_raw[-1]):
        return ""
    return (
        f"Save the notebook first (Ctrl+S, on a Mac ⌘S), then run this cell again, in {path}: `reset` works on the file, "
        "and unsaved work would be lost."
    )


def question(name: str, record: Record) -> Display:
    """What is asked before the course's original cell takes the place of the learner's."""
    passed = " This exercise has passed; the original cell is not a solution." if record.entry(name).passed else ""
    return sentence(
        f"Restore the original cell of `{name}`? Your code is kept as a copy in backups/, and Ctrl+Z in the cell "
        f"(on a Mac ⌘Z) brings it back.{passed}",
        f"Reset {name}",
    )


def reset_cell(name: str, names: dict[str, Any]) -> Display:
    """Restores the cell in the open notebook itself, so that nothing has to be saved before or loaded after; the file stays as it is.

    Where the front end lets no script of ours reach the cell (any but JupyterLab and Notebook 7), the original is shown for pasting.
    """
    code = own_code(Target(name, names.get(name, MISSING), names))
    copy = workspace.keep_copy(Path("."), kernel_course().lesson_of(name), name, code)
    names.pop(name, None)
    note = f" Your code is kept in {copy}." if copy else ""
    stub = workspace.stub(name)
    report = f"`{name}` is the course's original again. Ctrl+Z in its cell (on a Mac ⌘Z) brings your code back.{note}"
    by_hand = f"Replace your cell by the original, and run it once you have written it.{note}\n\n```python\n{stub}\n```"
    html = render(
        "restored.html",
        done=sentence(report).html,
        by_hand=sentence(by_hand, name).html,
        stub=stub,
        defines=rf"^(?:def|class)\s+{name}\b|^{name}\s*(?::[^=\n]+)?=(?!=)",
    )
    return Display(plain(by_hand), html)
