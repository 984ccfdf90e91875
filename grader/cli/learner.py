"""What learners call: `grader explain`, `progress`, `reset` and `update`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from grader.cli.arguments import chosen_lessons, lesson_name
from grader.cli.exits import BAD_INPUT, PASSED, complain, harmless
from grader.course.course import open_course
from grader.notebook import room_client, workspace
from grader.notebook.hints import explain
from grader.notebook.kernel_course import kernel_course, name_in_environment
from grader.notebook.overview import display, table
from grader.notebook.record import ROOM_FILE, Record, default_path
from grader.notebook.resetting import how_to_confirm
from grader.notebook.workspace import folder
from grader.util.errors import InputError
from grader.util.words import join_names

_RELOAD = "In a tab that is open, the menu File › Reload Notebook from Disk shows it."


def _use_course_of_folder(options: argparse.Namespace) -> None:
    """In the folder of a course's notebooks a command means that course, as a kernel there does.

    Raises: InputError where --course names another one.
    """
    if options.course and open_course() is not kernel_course():
        raise InputError(f"the notebooks here are of the course in {kernel_course().root}, and --course names another.")
    name_in_environment()


def run_explain(options: argparse.Namespace) -> int:
    _use_course_of_folder(options)
    print(explain(options.id, call="`grader explain`"))
    return PASSED


def run_reset(options: argparse.Namespace) -> int:
    _use_course_of_folder(options)
    name = options.what if options.what in open_course().exercise_names() else _lesson(options.what)
    place = folder(options.folder)
    if advice := how_to_confirm(name, place, options.confirm):
        raise InputError(advice)
    if name in open_course().lessons():
        return _change("reset", [name], place)
    print(harmless(f"{workspace.reset_exercise(name, place)} {_RELOAD}"))
    return PASSED


def _lesson(name: str) -> str:
    """A lesson's name. Raises: InputError, which names the nearest exercise where no lesson is meant."""
    try:
        return lesson_name(name)
    except InputError:
        for near in get_close_matches(name, open_course().exercise_names(), 1, 0.6):
            raise InputError(f"there is no lesson and no exercise {name!r}; did you mean {near}?") from None
        raise


def run_progress(options: argparse.Namespace) -> int:
    _use_course_of_folder(options)
    record = Record(default_path(folder(options.folder).resolve()))
    room_status = room_client.status(record.path.with_name(ROOM_FILE))
    print(harmless(display(table(record), (*record.take_notes(), *room_status)).text))
    return PASSED


def run_update(options: argparse.Namespace) -> int:
    _use_course_of_folder(options)
    place = folder(options.folder)
    names = chosen_lessons(options.lessons) if options.lessons else workspace.lessons_in(place)
    if not names:
        raise InputError(f"{place.resolve()} contains no notebook of the course; name the right folder with --folder.")
    return _change("update", names, place)


def _change(command: str, names: Sequence[str], place: Path) -> int:
    failed, notebooks = False, []
    for name in names:  # one notebook that can't be read keeps none of the others back
        try:
            change = getattr(workspace, command)(name, place)
            print(harmless(str(change)))
            notebooks += [change.path.name] * change.changed
        except InputError as error:
            failed = bool(complain(str(error), BAD_INPUT))
    try:
        if backup := workspace.write_glossary(place):
            print(harmless(f"The glossary is the one of this version; the earlier one is kept: {backup}."))
    except InputError as error:
        failed = bool(complain(str(error), BAD_INPUT))
    if notebooks:
        advice = f"Where a tab shows {join_names(notebooks, 20)}, reload it before you go on"
        print(harmless(f"{advice}: the menu File › Reload Notebook from Disk."))
    return BAD_INPUT if failed else PASSED
