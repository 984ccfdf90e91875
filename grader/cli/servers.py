"""What runs until Ctrl-C: `grader room`, whose learners' notebooks tell what their checks found; `grader mark`."""

from __future__ import annotations

import argparse
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from grader.cli.exits import PASSED
from grader.course.course import open_course

tell = partial(print, flush=True)


def run_room(options: argparse.Namespace) -> int:
    from grader.room.server import serve

    path = options.journal or Path(time.strftime("room-%Y-%m-%d.jsonl"))
    with suppress(KeyboardInterrupt):  # where the system has no signals for an event loop
        serve(open_course(), path, options.host, options.port, tell, options.address or "")
    return PASSED


def run_mark(options: argparse.Namespace) -> int:
    from grader.cli.class_reports import JOURNAL, OVERRIDES
    from grader.grading.marking import Marking, serve

    marking = Marking(open_course(), options.results / JOURNAL, options.results / OVERRIDES)
    serve(marking, options.port, tell)
    return PASSED
