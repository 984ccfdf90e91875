"""reset(): one exercise's cell is the stub again, in the open notebook or in its file; the learner's code is kept.

A `reset(…)` that stays in a notebook, or in a shell's history, is run again by Run All or by the arrow key. So it acts once for each
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
from grader.util.digest import digest
from grader.util.errors import InputError
from grader.util.names import BACKUPS


def how_to_confirm(what: str, place: Path, code: str | None, call: str) -> str:
    """What to do first where resetting would replace work and `code` is not the code for it; '' where it may go on.

    what: a lesson or an exercise. call: how to reset, with `CODE` in the place of the code.
    """
    lesson = what if what in kernel_course().lessons() else kernel_course().lesson_of(what)
    exercises = kernel_course().exercises[lesson] if what == lesson else (what,)
    if not workspace.has_work(lesson, exercises if what != lesson else None, place):
        return ""
    record = Record(default_path(place.resolve()))
    entries = [record.entry(name) for name in exercises]
    copies = sorted(copy.name for copy in (place / BACKUPS).glob("*") if copy.name.startswith((lesson, *exercises)))
    expected = digest(repr((what, [(each.passed, each.attempts) for each in entries], copies)))[:6]
    if code == expected:
        return ""
    passed = [name for name, entry in zip(exercises, entries) if entry.passed]
    lost = f" {', '.join(passed)} passed: the original is not a solution." if passed else ""
    outdated = "That code was for an earlier state. " if code else ""
    yours = "your work" if what == lesson else f"your cell of {what}"
    return (
        f"{outdated}Nothing was changed yet: this replaces {yours} in {place / f'{lesson}.ipynb'} by the course's original, and keeps a "
        f"copy in {BACKUPS}/.{lost} Save the notebook in the browser first; then {call.replace('CODE', expected)} does it, once."
    )


def reset(name: str, code: str | None, names: dict[str, Any]) -> Display:
    """Asks, and with the code that it gave does it once. names: the notebook's; the old definition goes, so that no check judges it.

    The file is changed, and what the browser shows is read from it anew: where the file is older than this very call,
    what was typed since the last saving would be lost, so that nothing is done until the notebook is saved.
    """
    lesson, shell = kernel_course().lesson_of(name), ipython()
    if not Path(f"{lesson}.ipynb").is_file():  # then the stub comes as a new cell
        stub = workspace.stub(name)
        if shell is not None:
            shell.set_next_input(stub, replace=False)
        advice = "so nothing was changed. Replace your cell by the exercise's original:"
        return sentence(f"{lesson}.ipynb is not in this folder, {advice}\n\n```python\n{stub}\n```", name)
    try:
        if code is not None and (advice := save_advice(lesson)):
            return sentence(advice, f"{name} was not changed")
        if advice := how_to_reset(name, code):
            return sentence(advice, f"Reset {name}")
        change = workspace.reset_exercise(name, Path("."))
    except InputError as error:
        return sentence(str(error), f"Reset {name}")
    names.pop(name, None)
    return sentence(
        f"{change} The menu File › Reload Notebook from Disk shows it. The old definition is gone from this kernel, too: "
        f"run the cell once you have written it.",
        f"{name} is the course's original again",
    )


def how_to_reset(name: str, code: str | None = None) -> str:
    """How to reset where no buttons are; '' where none of it needs a code."""
    return how_to_confirm(name, Path("."), code, f'`reset("{name}", "CODE")`')


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
    kept = f" Your code is kept in {copy}." if copy else ""
    stub = workspace.stub(name)
    done = f"`{name}` is the course's original again. Ctrl+Z in its cell (on a Mac ⌘Z) brings your code back.{kept}"
    by_hand = f"Replace your cell by the original, and run it once you have written it.{kept}\n\n```python\n{stub}\n```"
    html = render(
        "restored.html",
        done=sentence(done).html,
        by_hand=sentence(by_hand, name).html,
        stub=stub,
        defines=rf"^(?:def|class)\s+{name}\b|^{name}\s*(?::[^=\n]+)?=(?!=)",
    )
    return Display(plain(by_hand), html)
