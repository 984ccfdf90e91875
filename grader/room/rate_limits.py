"""What one sender may do to a room, so that a flood costs nobody but its sender: budgets that fill up again, and connections.

A new connection is always taken. Where there is no room for it, another one goes: the longest silent one of the address that has most
connections beyond those that its members need, so that a hub with a whole class behind it is no flood. An open page goes last. A
notebook whose connection was closed opens another one for its next message.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tornado.httpserver import HTTPServer

MAX_KEYS = 10_000  # budgets at once; the one that was used longest ago goes first
MAX_CONNECTIONS = 1_500  # at once, where the system lets a process have so many
MEMBER_CONNECTIONS = 2  # that a member may have open
FRESH_S = 1.0  # in which a request is on its way, so that older connections go first
PAGE = "page"  # in a member's place


def sender(address: str) -> str:
    """What counts as one sender: an address, of IPv6 the network that one household or one host has."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(ip) if ip.version == 4 else str(ipaddress.ip_network((ip, 64), strict=False))


class Budgets:
    """A budget for each key: `burst` at once, `per_s` in the long run. reason: for who has nothing left."""

    def __init__(
        self, burst: float, per_s: float, reason: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._burst, self._per_s, self._clock, self.reason = burst, per_s, clock, reason
        self._left: dict[str, tuple[float, float]] = {}  # key -> what was left, and when that was

    def wait_s(self, key: str) -> int:
        """Whole seconds until there is one more; 0: now."""
        return max(math.ceil((1 - self._now(key)) / self._per_s), 0)

    def take(self, key: str, amount: float = 1) -> None:
        """Takes so much of what is left, down to below nothing: who goes on regardless waits longer, at most twice as long."""
        left = max(self._now(key) - amount, -self._burst)
        self._left.pop(key, None)
        self._left[key] = left, self._clock()
        if len(self._left) > MAX_KEYS:
            del self._left[next(iter(self._left))]

    def _now(self, key: str) -> float:
        left, then = self._left.get(key, (self._burst, 0.0))
        return min(left + (self._clock() - then) * self._per_s, self._burst)


class RateLimits:
    """What requests are held against.

    wrong_codes, joining: by address, which may be a hub's with all the learners; wrong_codes_of_name: by address and name; events: by
    learner. addresses: from where each place of the room was used last; connections: the open ones. announced: what the terminal was
    told already.

    A code can be guessed, if slowly: a class that mistypes it is let in, and who guesses under invented names has 400 tries of two
    million before it is slow. Tokens and the pages' keys are too long for that and need no budget, so that one who
    guesses keeps nobody from telling or looking.
    """

    def __init__(self) -> None:
        self.wrong_codes = Budgets(400, 0.2, "Too many wrong codes came from this address")
        self.wrong_codes_of_name = Budgets(5, 0.2, "Too many wrong codes came from this name")
        self.joining = Budgets(300, 5, "Too many learners joined at once")
        self.events = Budgets(60, 6, "These are more messages than checks could cause")
        self.addresses: dict[int, str] = {}
        self.connections = Connections(self.addresses)
        self.announced: set[str] = set()


@dataclass
class _Connection:
    """at: when it was opened, or somebody of the room spoke over it last."""

    sender: str
    at: float
    member: str = ""


class Connections:
    """The open connections, the longest silent first. addresses: of the room's members."""

    def __init__(self, addresses: Mapping[int, str]) -> None:
        self._max = min(MAX_CONNECTIONS, max_descriptors() - 60)
        self._addresses = addresses
        self._open: dict[Any, _Connection] = {}

    def add(self, stream: Any, address: str) -> None:
        if len(self._open) >= self._max:
            self._close(self._victim())
        self._open[stream] = _Connection(sender(address), time.monotonic())

    def forget(self, stream: Any) -> None:
        self._open.pop(stream, None)

    def belongs(self, stream: Any, member: str, most: int = MEMBER_CONNECTIONS) -> None:
        """Notes that a member, or a page of the room, speaks over a connection; of more than `most`, one goes."""
        mine = self._open.pop(stream, None)
        if mine is None:
            return
        self._open[stream], mine.member, mine.at = mine, member, time.monotonic()
        theirs = [each for each, connection in self._open.items() if connection.member == member]
        if len(theirs) > most:
            self._close(theirs[0])

    def _victim(self) -> Any:
        count = Counter(each.sender for each in self._open.values())
        members = Counter(self._addresses.values())
        excess = {address: max(count[address] - MEMBER_CONNECTIONS * members[address], 0) for address in count}
        fresh = time.monotonic() - FRESH_S

        def rank(stream: Any) -> tuple[bool, bool, int, int]:
            one = self._open[stream]
            return one.member != PAGE, one.at < fresh, excess[one.sender], count[one.sender]

        return max(self._open, key=rank)

    def _close(self, stream: Any) -> None:
        self.forget(stream)
        stream.close()


class LimitedServer(HTTPServer):
    """One that tells its Connections of each that opens and ends."""

    connections: Connections

    def handle_stream(self, stream: Any, address: Any) -> None:
        self.connections.add(stream, str(address[0]))
        super().handle_stream(stream, address)

    def on_close(self, server_conn: Any) -> None:
        super().on_close(server_conn)
        self.connections.forget(server_conn.stream)


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
