"""What one sender may do to a room, so that a flood costs nobody but its sender: budgets that fill up again."""

from __future__ import annotations

import ipaddress
import math
import time
from collections.abc import Callable

MAX_KEYS = 10_000  # budgets at once; the one that was used longest ago goes first


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
    learner. addresses: from where each place of the room was used last. announced: what the terminal was told already.

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
        self.announced: set[str] = set()
