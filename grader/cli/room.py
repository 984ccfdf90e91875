"""`grader room`: a room without a shared folder; learners' notebooks tell it what their checks found."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from grader.cli.exits import PASSED
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
