"""What learners call: `grader explain`, `progress`, `reset`, `update` and `doctor`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from grader.cli.arguments import chosen, command, lesson_name
from grader.cli.exits import BAD_INPUT, NOT_GRADED, NOT_PASSED, PASSED, complain, harmless, say
from grader.course import references, registry
from grader.util.errors import InputError


def add(commands: Any) -> None:
    explain = command(commands, "explain", _explain, "explain a mistake at length")
    explain.add_argument("id", metavar="ID", help="the id of a mistake, as a verdict shows it, such as SM1")

    progress = command(commands, "progress", _progress, "show what has passed, and what comes next")
    reset = command(commands, "reset", _reset, "restore a lesson, or the cell of one exercise; the old notebook is kept")
    reset.add_argument("what", metavar="WHAT", help="a lesson, such as 01, or an exercise, such as softmax_rows")
    update = command(commands, "update", _update, "put your cells into this version of the lessons")
    update.add_argument("lessons", nargs="*", metavar="LESSON", help="which lessons (default: all that are in the folder)")
    for each in (progress, reset, update):
        each.add_argument("--folder", type=Path, help="where the notebooks are (default: notebooks/, or else the current folder)")

    doctor = command(commands, "doctor", _doctor, "say what this computer lacks for the course, and how to fix it")
    doctor.add_argument("--isolation", action="store_true", help="print only the level of isolation that submissions have here")


def _explain(options: argparse.Namespace) -> int:
    from grader.reports.text import explanation

    ids = registry.mistake_ids()
    id = next((known for known in ids if known.lower() == options.id.lower()), None)
    if id is None:
        near = get_close_matches(options.id.upper(), ids, 1, 0.5)
        advice = f"did you mean {near[0]}?" if near else "a verdict shows the ids that it found."
        raise InputError(f"no mistake is called {options.id!r}; {advice}")
    print(explanation(references.explained(id)))
    return PASSED


def _reset(options: argparse.Namespace) -> int:
    from grader.notebook.workspace import folder, reset_exercise

    if options.what not in registry.exercise_names():
        return _change("reset", [_lesson(options.what)], options.folder)
    print(harmless(reset_exercise(options.what, folder(options.folder))))
    return PASSED


def _lesson(what: str) -> str:
    """A lesson's name. Raises: InputError, which names the nearest exercise where no lesson is meant."""
    near = get_close_matches(what, registry.exercise_names(), 1, 0.6)
    try:
        return lesson_name(what)
    except InputError:
        if near:
            raise InputError(f"there is no lesson and no exercise {what!r}; did you mean {near[0]}?") from None
        raise


def _progress(options: argparse.Namespace) -> int:
    from grader.notebook import membership, room
    from grader.notebook.overview import shown, table
    from grader.notebook.record import Record, default_path
    from grader.notebook.workspace import folder

    record = Record(default_path(folder(options.folder).resolve()))
    in_a_room = room.on(membership.read(record.path.with_name(membership.NAME)))
    print(harmless(shown(table(record), (*record.take_notes(), *([in_a_room] if in_a_room else ())))[0]))
    return PASSED


def _update(options: argparse.Namespace) -> int:
    from grader.notebook.workspace import folder, present

    names = chosen(options.lessons)
    if not options.lessons:
        place = folder(options.folder)
        names = present(place)
        if not names:
            raise InputError(f"{place.resolve()} contains no notebook of the course; name the right folder with --folder.")
    return _change("update", names, options.folder)


def _change(what: str, names: Sequence[str], asked: Path | None) -> int:
    from grader.notebook import workspace

    failed = False
    for name in names:  # one notebook that can't be read keeps none of the others back
        try:
            print(harmless(getattr(workspace, what)(name, workspace.folder(asked))))
        except InputError as error:
            failed = bool(complain(str(error), BAD_INPUT))
    try:
        kept = workspace.lay_glossary(workspace.folder(asked))
        if kept:
            print(harmless(f"The glossary is the one of this version; the earlier one is kept: {kept}."))
    except InputError as error:
        failed = bool(complain(str(error), BAD_INPUT))
    return BAD_INPUT if failed else PASSED


def _doctor(options: argparse.Namespace) -> int:
    from grader.cli.doctor import examine, isolation, render
    from grader.notebook.workspace import folder

    if options.isolation:
        from grader.sandbox.sandbox import SandboxError

        try:
            level, lacking = isolation()
            print(level)
            if lacking:
                say(f"{level}: {lacking}.")  # for people: a script reads only the level
        except SandboxError as error:
            return complain(f"nothing can be graded here: {error}.", NOT_GRADED)
        return PASSED
    signs = list(examine(folder(None)))
    print(render(signs))
    return PASSED if all(sign.well for sign in signs) else NOT_PASSED
