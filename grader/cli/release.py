"""`grader release`: what an instructor hands out, and what stays on the grading side."""

from __future__ import annotations

import argparse

from grader.cli.exits import harmless
from grader.course.course import open_course
from grader.util.errors import InputError


def run(options: argparse.Namespace) -> int:
    """Writes the hand-out and tells what was written."""
    from grader.authoring.release import release

    if options.only and not options.lessons:
        raise InputError("--only leaves out the lessons before those that --lessons names, so it needs --lessons.")
    lessons = options.lessons or open_course().lessons()
    notes = release(
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
    print(harmless(notes))
    return 0
