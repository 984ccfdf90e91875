"""`grader room` from its start to its end: finds its address, listens, and closes so that nothing is lost.

It runs on tornado, beside JupyterLab's own. What is taken is in the journal before its sender is told so.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer

from grader.course.course import Course
from grader.room.broadcast import Broadcast
from grader.room.handlers import application
from grader.room.members import Room, RoomJournal
from grader.room.rate_limits import RateLimits
from grader.util.errors import AuthorError
from grader.util.web import MAX_BODY, bind
from grader.util.words import pluralize

MAX_HEAD = 8_192
HEAD_S = 5.0  # that a connection may take to send a request's head, the next one's too
MAX_CONNECTIONS = 1_500  # at once, where the system lets a process have so many


def serve(course: Course, path: Path, host: str, port: int, tell: Callable[[str], None], address: str = "") -> None:
    """Keeps a room open until it is told to end.

    tell: called with each sentence for the terminal. address: as learners reach it; '': as this computer is called in its network.

    Raises: InputError where the port is taken or the journal is none; OSError.
    """
    with contextlib.ExitStack() as stack:
        sockets = bind(host, port)
        for listener in sockets:
            stack.callback(listener.close)
        journal = stack.enter_context(contextlib.closing(RoomJournal(path)))
        room = Room(course, journal, known_mistakes(course))
        asyncio.run(_serve(Broadcast(room, address or f"http://{_reachable(host)}:{port}", tell), sockets))


class RoomServer(HTTPServer):
    """One that closes at once what connects while it has all connections that it can have: without a descriptor, nothing is accepted."""

    most: int

    def handle_stream(self, stream: Any, address: Any) -> None:
        if len(self._connections) < self.most:
            super().handle_stream(stream, address)
        else:
            stream.close()


def create_server(live: Broadcast) -> RoomServer:
    """A server that does not listen yet."""
    logging.getLogger("tornado").setLevel(logging.CRITICAL)  # what is no request is not to flood the terminal
    server = RoomServer(
        application(live, RateLimits()),
        max_body_size=MAX_BODY,
        max_header_size=MAX_HEAD,
        idle_connection_timeout=HEAD_S,
        body_timeout=10.0,
    )
    server.most = min(MAX_CONNECTIONS, max_descriptors() - 60)
    return server


def max_descriptors() -> int:
    """How many files and connections this process may have open, after it asked for enough."""
    try:
        import resource
    except ImportError:  # Windows counts otherwise
        return 10_000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 2 * MAX_CONNECTIONS if hard == resource.RLIM_INFINITY else min(2 * MAX_CONNECTIONS, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        except (ValueError, OSError):
            return soft
    return most


def _reachable(host: str) -> str:
    """The address by which others reach this computer; nothing is sent to find it."""
    if host not in ("", "0.0.0.0", "::"):
        return f"[{host}]" if ":" in host else host
    # Picks the way out, which has an address; a datagram socket sends nothing yet.
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("10.255.255.255", 9))
        return probe.getsockname()[0]
    return "127.0.0.1"


async def _serve(live: Broadcast, sockets: list[socket.socket]) -> None:
    journal, server = live.room.journal, create_server(live)
    server.add_sockets(sockets)
    for line in _welcome(live):
        live.tell(line)
    shutdown = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Windows raises KeyboardInterrupt; elsewhere than in the main thread there are no signals.
        with contextlib.suppress(NotImplementedError, RuntimeError):
            asyncio.get_running_loop().add_signal_handler(number, shutdown.set)
    broadcast = asyncio.create_task(live.run())
    try:
        await shutdown.wait()
    finally:
        server.stop()
        broadcast.cancel()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server.close_all_connections(), 3.0)
        with contextlib.suppress(OSError):
            journal.sync()
    live.tell(f"The room is closed. It is kept in {journal.path}: the same command opens it again.")


def _welcome(live: Broadcast) -> Iterator[str]:
    journal, learners = live.room.journal, len(live.room.learners)
    if learners:
        yield f"The room in {journal.path} continues, with {pluralize(learners, 'learner')}."
    if journal.dropped:
        yield f"{pluralize(journal.dropped, 'line')} of {journal.path} could not be read and had to be left out."
    yield from (
        "Each learner runs this in a notebook, with their own name:",
        "",
        "    from grader import join, leave, stuck, fine",
        f'    join("{live.address}", "{live.room.code}", "ada")',
        "",
        f"For the projector, without names:  {live.address}/room/{live.key}",
        f"For you, with names:               {live.address}/room/{live.key_with_names}",
        f"All messages are kept in {journal.path}. Ctrl-C closes the room.",
        "",
    )


def known_mistakes(course: Course) -> dict[str, str]:
    """The sentence of each mistake, by its id; of lessons that can't be loaded here, none."""
    sentences = {id: mistake.sentence for id, mistake in course.shared_texts().items()}
    for name in course.lessons():
        with contextlib.suppress(AuthorError):
            sentences |= {mistake.id: mistake.sentence for mistake in course.lesson(name).texts}
    return sentences
