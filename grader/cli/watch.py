"""`grader watch`: grade again what was saved, for one learner or a room."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import Any

from grader.cli.arguments import command, lesson_list, natural, seconds
from grader.course import registry


def add(commands: Any) -> None:
    """Adds the command to the parser."""
    watch = command(commands, "watch", run, "grade again whatever is saved, and show what to do next")
    watch.add_argument(
        "folder",
        nargs="?",
        type=Path,
        metavar="FOLDER",
        help="one learner's notebooks, or a folder of learners' folders (default: notebooks/, else here)",
    )
    watch.add_argument("--lessons", type=lesson_list, default=(), metavar="A,B", help="only these, such as 01,05")
    watch.add_argument("--seed", type=natural, default=registry.SEED, help="seed of the inputs (default: %(default)s)")
    watch.add_argument("--timeout", type=seconds, metavar="S", help="wall-clock seconds for one exercise, and one cell")


def run(options: argparse.Namespace) -> int:
    """Watches until it is stopped. Returns 0: being stopped is how a watch ends."""
    from grader.grading.watch import Watcher
    from grader.notebook.workspace import folder

    if hasattr(signal, "SIGTERM"):
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as cleanly as Ctrl-C
    chosen = {} if options.timeout is None else {"timeout_s": options.timeout}
    place = options.folder or folder(None)
    try:
        with Watcher(place, lessons=options.lessons, seed=options.seed, **chosen) as watcher:
            (_in_place if sys.stdout.isatty() else _line_by_line)(watcher)
    except KeyboardInterrupt:
        pass
    return 0


def _in_place(watcher: Any) -> None:
    from grader.grading.watch.screen import Screen

    with Screen() as screen:
        while True:
            room = watcher.look()
            if room is not None:
                screen.show(room)


def _line_by_line(watcher: Any) -> None:
    from grader.grading.watch.screen import lines

    last = None
    while True:
        room = watcher.look()
        if room is not None:
            for line in lines(room, last):
                print(line, flush=True)
            last = room
