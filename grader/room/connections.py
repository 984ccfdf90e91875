"""Which connections a room holds: a stranger's silence never keeps out anybody, and least of all those who are in.

A new connection is always taken. Where there is no room for it, another one goes: the longest silent one of the address that has most
connections beyond those that its members need, so that a hub with a whole class behind it is no flood. An open page goes last. A
notebook whose connection was closed opens another one for its next message.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tornado.httpserver import HTTPServer

from grader.room.limits import sender

MAX_CONNECTIONS = 1_500  # at once, where the system lets a process have so many
EACH = 2  # connections that a member may have open
FRESH_S = 1.0  # in which a request is on its way, so that older connections go first
PAGE = "page"  # in a member's place


@dataclass
class _Connection:
    """at: when it was opened, or somebody of the room spoke over it last."""

    stream: Any
    sender: str
    at: float
    member: str = ""


class Connections:
    """members: how many there are at each address."""

    def __init__(self, members: Mapping[str, int]) -> None:
        self.most = min(MAX_CONNECTIONS, descriptors() - 60)
        self._members = members
        self._open: dict[Any, _Connection] = {}  # the longest silent first

    def add(self, stream: Any, address: str) -> None:
        if len(self._open) >= self.most:
            self._close(self._victim())
        self._open[stream] = _Connection(stream, address, time.monotonic())

    def forget(self, stream: Any) -> None:
        self._open.pop(stream, None)

    def belongs(self, stream: Any, member: str, most: int = EACH) -> None:
        """Notes that a member, or a page of the room, speaks over a connection; of more than `most`, one goes."""
        mine = self._open.pop(stream, None)
        if mine is None:
            return
        self._open[stream], mine.member, mine.at = mine, member, time.monotonic()
        theirs = [each for each in self._open.values() if each.member == member]
        if len(theirs) > most:
            self._close(theirs[0])

    def _victim(self) -> _Connection:
        held = Counter(each.sender for each in self._open.values())
        beyond = {who: max(count - EACH * self._members.get(who, 0), 0) for who, count in held.items()}
        fresh = time.monotonic() - FRESH_S
        return max(
            self._open.values(),
            key=lambda each: (each.member != PAGE, each.at < fresh, beyond[each.sender], held[each.sender]),
        )

    def _close(self, connection: _Connection) -> None:
        self.forget(connection.stream)
        connection.stream.close()


class Server(HTTPServer):
    """One that tells its Connections of each that opens and ends."""

    connections: Connections

    def handle_stream(self, stream: Any, address: Any) -> None:
        self.connections.add(stream, sender(str(address[0])))
        super().handle_stream(stream, address)

    def on_close(self, server_conn: Any) -> None:
        super().on_close(server_conn)
        self.connections.forget(server_conn.stream)


def descriptors() -> int:
    """How many files and connections this process may have open, after it asked for enough."""
    try:
        import resource
    except ImportError:  # Windows counts otherwise
        return 10_000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MAX_CONNECTIONS if hard == resource.RLIM_INFINITY else min(2 * MAX_CONNECTIONS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return 10_000 if soft == resource.RLIM_INFINITY else soft
