"""`grader release`: what an instructor hands out, and what stays on the grading side."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from grader.cli.arguments import command, lesson_list
from grader.cli.exits import harmless
from grader.course.course import open_course
from grader.util.errors import InputError


def add(commands: Any) -> None:
    """Adds the command to the parser."""
    release = command(commands, "release", run, "write a folder to hand out to learners, checked for solutions")
    release.add_argument("place", type=Path, metavar="DIR", help="a new or an empty folder")
    release.add_argument(
        "--lessons",
        type=lesson_list,
        metavar="A,B",
        help="these, such as 05, and all lessons before them (default: all)",
    )
    release.add_argument("--only", action="store_true", help="leave out the lessons before those that --lessons names")
    release.add_argument(
        "--without-solutions",
        action="store_true",
        help="leave the solutions out of the hand-out; check() then judges nothing on the learners' computers",
    )
    release.add_argument("--gradescope", action="store_true", help="also write DIR-gradescope.zip, an autograder")
    release.add_argument(
        "--grader",
        type=requirement,
        metavar="REQUIREMENT",
        help="what the workflow gives to pip install: a trusted address of the wheel",
    )


def requirement(text: str) -> str:
    """What pip takes on one line."""
    if not text.strip() or not text.isprintable() or text.lstrip().startswith("-") or "${{" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not a single requirement on one line")
    return text.strip()


def run(options: argparse.Namespace) -> int:
    """Writes the hand-out and tells what was written."""
    from grader.authoring.release import release

    if options.only and not options.lessons:
        raise InputError("--only leaves out the lessons before those that --lessons names, so it needs --lessons.")
    lessons = options.lessons or open_course().lessons()
    made = release(
        open_course(),
        options.place,
        tuple(name for name in open_course().lessons() if name in lessons),
        earlier=()
        if options.only
        else tuple(name for name in open_course().lessons() if name < max(lessons) and name not in lessons),
        without_solutions=options.without_solutions,
        gradescope_bundle=options.gradescope,
        grader=options.grader or "",
    )
    print(harmless(str(made)))
    return 0
