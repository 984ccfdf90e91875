"""What is shown in a browser until Ctrl-C: `grader room`, whose learners' notebooks tell what their checks found; `grader mark`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from grader.cli.exits import PASSED
from grader.cli.out import JOURNAL, OVERRIDES
from grader.course.course import open_course


def run(options: argparse.Namespace) -> int:
    """Serves until it is stopped. Returns 0: being stopped is how a room ends."""
    from grader.room.server import serve

    path = options.journal or Path(time.strftime("room-%Y-%m-%d.jsonl"))
    try:
        serve(
            open_course(), path, options.host, options.port, lambda line: print(line, flush=True), options.address or ""
        )
    except KeyboardInterrupt:  # where the system has no signals for an event loop
        pass
    return PASSED


def run_mark(options: argparse.Namespace) -> int:
    """Returns 0: being stopped is how marking ends."""
    from grader.grading.marking import Marking, serve

    marking = Marking(open_course(), options.results / JOURNAL, options.results / OVERRIDES)
    serve(marking, options.port, lambda line: print(line, flush=True))
    return PASSED
