"""`grader room`: a room without a shared folder; learners' notebooks tell it what their checks found."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from grader.cli.arguments import command, port, web_address
from grader.cli.exits import PASSED
from grader.course.course import open_course
from grader.room import PORT


def add(commands: Any) -> None:
    """Adds the command to the parser."""
    room = command(
        commands, "room", run, "open a room that learners join from their notebooks, and show it live on a page"
    )
    room.add_argument("--port", type=port, default=PORT, help="the port of the room's server (default: %(default)s)")
    room.add_argument(
        "--host",
        default="",
        metavar="ADDRESS",
        help="listen only at this address of the computer (default: all of them)",
    )
    room.add_argument(
        "--address",
        type=web_address,
        metavar="URL",
        help="the address for learners, if it is that of a proxy or a tunnel",
    )
    room.add_argument(
        "--journal", type=Path, metavar="FILE", help="the file that keeps the room (default: room-DATE.jsonl, here)"
    )


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
