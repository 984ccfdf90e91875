"""What runs until Ctrl-C: `grader watch`; `grader room`, whose learners' notebooks tell what their checks found; `grader mark`."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

from grader.cli.exits import PASSED, say
from grader.course.course import open_course
from grader.util.errors import InputError

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


def run_watch(options: argparse.Namespace) -> int:
    from grader.grading.grade import Settings
    from grader.grading.watch.watcher import Watcher
    from grader.notebook.workspace import folder
    from grader.room.board_page import PageFile

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as cleanly as Ctrl-C
    chosen = {} if options.timeout is None else {"timeout_s": options.timeout}
    place = options.folder or folder(None)
    if options.names and options.page is None:
        raise InputError("--names needs --page FILE: only the page leaves names out.")
    settings = Settings(open_course(), options.lessons or None, seed=options.seed, **chosen)
    page = PageFile(open_course(), options.page, options.names) if options.page else None
    try:
        with closing(Watcher(place, settings)) as watcher:
            (_in_place if sys.stdout.isatty() else _line_by_line)(_rooms(watcher, page))
    except KeyboardInterrupt:
        pass
    finally:
        if page is not None:
            page.end()
    return PASSED


def _rooms(watcher: Any, page: Any) -> Iterator[Any]:
    """The room whenever it has changed; the page is written meanwhile."""
    from grader.grading.watch.watcher import board_of

    board = None
    while True:
        room = watcher.poll()
        board = board_of(room) if room is not None else board
        if page is not None and board is not None:
            trouble = page.show(board)
            if trouble:
                say(trouble)
        if room is not None:
            yield room


def _in_place(rooms: Iterator[Any]) -> None:
    from grader.grading.watch.screen import show

    try:
        for room in rooms:
            show(open_course(), room)
    finally:
        print(flush=True)


def _line_by_line(rooms: Iterator[Any]) -> None:
    from grader.grading.watch.screen import lines

    last = None
    for room in rooms:
        for line in lines(open_course(), room, last):
            tell(line)
        last = room
