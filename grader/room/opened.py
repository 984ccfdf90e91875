"""`grader room` from its start to its end: finds its address, listens, and closes so that nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from grader.course.course import Course
from grader.room import PORT
from grader.room.journal import RoomJournal
from grader.room.members import Room
from grader.util.errors import AuthorError, InputError
from grader.util.words import counted


def serve(course: Course, path: Path, host: str, port: int, tell: Callable[[str], None], address: str = "") -> None:
    """Keeps a room open until it is told to end.

    tell: called with each sentence for the terminal. address: as learners reach it; '': as this computer is called in its network.

    Raises: InputError where the port is taken or the journal is none; OSError; ImportError without tornado, which comes with
    JupyterLab.
    """
    sockets = _listening(host, port)
    try:
        journal = RoomJournal(path)
    except BaseException:
        for each in sockets:
            each.close()
        raise
    with contextlib.closing(journal):
        asyncio.run(_open(course, sockets, journal, address or f"http://{_address(host)}:{port}", tell))


def _listening(host: str, port: int) -> list[socket.socket]:
    from tornado.netutil import bind_sockets

    try:
        return bind_sockets(port, host or None, backlog=512)
    except socket.gaierror:
        raise InputError(
            f"{host!r} is not an address of this computer; leave --host out to use all of its addresses."
        ) from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InputError(
                f"port {port} is in use, perhaps by another room; choose another one: --port {port + 1}."
            ) from None
        if error.errno == errno.EACCES:
            raise InputError(
                f"port {port} is not for ordinary users; choose one above 1023, such as --port {PORT}."
            ) from None
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError(
                f"{host} is not an address of this computer; leave --host out to use all of its addresses."
            ) from None
        raise


def _address(host: str) -> str:
    """The address by which others reach this computer; nothing is sent to find it."""
    if host not in ("", "0.0.0.0", "::"):
        return f"[{host}]" if ":" in host else host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(
                ("10.255.255.255", 9)
            )  # picks the way out, which has an address; a datagram socket sends nothing yet
            return asked.getsockname()[0]
        except OSError:
            return "127.0.0.1"


async def _open(
    course: Course, sockets: list[socket.socket], journal: RoomJournal, address: str, tell: Callable[[str], None]
) -> None:
    from grader.room import server as rooms
    from grader.room.shown import Live

    room = Room(course, journal, known_mistakes(course))
    live = Live(room, journal, address, tell)
    server = rooms.made(live, tell)
    server.add_sockets(sockets)
    for line in _welcome(live, room, journal):
        tell(line)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, getattr(signal, "SIGTERM", signal.SIGINT)):
        with contextlib.suppress(
            NotImplementedError, RuntimeError
        ):  # Windows raises KeyboardInterrupt, elsewhere than in the main thread
            loop.add_signal_handler(number, ended.set)
    showing = asyncio.create_task(live.run())
    try:
        await ended.wait()
    finally:
        server.stop()
        showing.cancel()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server.close_all_connections(), 3.0)
        with contextlib.suppress(OSError):
            journal.sync()
    tell(f"The room is closed. It is kept in {journal.path}: the same command opens it again.")


def _welcome(live: Any, room: Room, journal: RoomJournal) -> Iterator[str]:
    learners = len(room.board().learners)
    if learners:
        yield f"The room in {journal.path} continues, with {counted(learners, 'learner')}."
    if journal.dropped:
        yield f"{counted(journal.dropped, 'line')} of {journal.path} could not be read and had to be left out."
    yield from (
        "Each learner runs this in a notebook, with their own name:",
        "",
        "    from grader import join, leave, stuck, fine",
        f'    join("{live.address}", "{live.code}", "ada")',
        "",
        f"For the projector, without names:  {live.address}/room/{live.key}?projector={live.projector}",
        f"For you, with names:               {live.address}/room/{live.key_with_names}",
        f"All messages are kept in {journal.path}. Ctrl-C closes the room.",
        "",
    )


def known_mistakes(course: Course) -> dict[str, str]:
    """The sentence of each mistake, by its id; of lessons that can't be loaded here, none."""
    found = {id: said.sentence for id, said in course.shared_texts().items()}
    for name in course.lessons():
        with contextlib.suppress(AuthorError):
            found |= {said.id: said.sentence for said in course.lesson(name).texts}
    return found
