"""How much one sender may do: a budget for each that fills up again, so that a flood costs nobody but its sender."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import Counter
from collections.abc import Callable

MOST_KEYS = 10_000  # kept at once; the one that was used longest ago goes first


class Budgets:
    """A budget for each key: `burst` at once, `per_s` in the long run."""

    def __init__(self, burst: float, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst, self._per_s, self._clock = burst, per_s, clock
        self._left: dict[str, tuple[float, float]] = {}  # key -> what was left, and when that was

    def wait_s(self, key: str) -> int:
        """Whole seconds until there is one more; 0: now."""
        return max(math.ceil((1 - self._now(key)) / self._per_s), 0)

    def take(self, key: str, amount: float = 1) -> None:
        """Takes so much of what is left, down to below nothing: who goes on regardless waits longer, at most twice as long."""
        left = max(self._now(key) - amount, -self._burst)
        self._left.pop(key, None)
        self._left[key] = left, self._clock()
        if len(self._left) > MOST_KEYS:
            del self._left[next(iter(self._left))]

    def _now(self, key: str) -> float:
        left, then = self._left.get(key, (self._burst, 0.0))
        return min(left + (self._clock() - then) * self._per_s, self._burst)


class Seats:
    """From which address each place of a room was used last. count: places by address."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self._of: dict[int, str] = {}

    def take(self, place: int, address: str) -> None:
        self.leave(place)
        self._of[place] = address
        self.count[address] += 1

    def leave(self, place: int) -> None:
        before = self._of.pop(place, None)
        if before is not None:
            self.count[before] -= 1

    def at(self, address: str) -> list[int]:
        return [place for place, where in self._of.items() if where == address]


def sender(address: str) -> str:
    """What counts as one sender: an address, of IPv6 the network that one household or one host has."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(found) if found.version == 4 else str(ipaddress.ip_network((found, 64), strict=False))
