"""What a reset is asked before it replaces work: it acts once for each code that it gives out.

A `reset(…)` that stays in a notebook, or in a shell's history, is run again by Run All or by the arrow key. The code depends on
how often the work was checked, whether it passed and which copies exist, so that after one reset it fits no more.
"""

from __future__ import annotations

from pathlib import Path

from grader.course.stubs import digest
from grader.notebook import workspace
from grader.notebook.kernel_course import kernel_course
from grader.notebook.record import Record, default_path
from grader.util.errors import WorkspaceError
from grader.util.names import BACKUPS


class Unconfirmed(WorkspaceError):
    """Nothing was changed; the message says how to confirm."""


def demand(what: str, place: Path, given: str | None, call: str) -> None:
    """Raises Unconfirmed where resetting would replace work and `given` is not the code for it.

    what: a lesson or an exercise. call: how to reset, with `CODE` in the place of the code.
    """
    lesson = what if what in kernel_course().lessons() else kernel_course().lesson_of(what)
    exercises = kernel_course().exercises[lesson] if what == lesson else (what,)
    if not workspace.has_work(lesson, exercises if what != lesson else None, place):
        return
    record = Record(default_path(place.resolve()))
    entries = [record.entry(name) for name in exercises]
    copies = sorted(copy.name for copy in (place / BACKUPS).glob("*") if copy.name.startswith((lesson, *exercises)))
    code = digest(repr((what, [(each.passed, each.attempts) for each in entries], copies)))[:6]
    if given == code:
        return
    passed = [name for name, entry in zip(exercises, entries) if entry.passed]
    lost = f" {', '.join(passed)} passed: the original is not a solution." if passed else ""
    asked = "That code was for an earlier state. " if given else ""
    raise Unconfirmed(
        f"{asked}Nothing was changed yet: this replaces your work in {place / f'{lesson}.ipynb'} by the course's original, and keeps a "
        f"copy in {BACKUPS}/.{lost} Save the notebook in the browser first; then {call.replace('CODE', code)} does it, once."
    )
