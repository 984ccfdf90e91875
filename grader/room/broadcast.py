"""A room as those see it who look at its page: made once for all of them, at most twice a second, however much arrives."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator

from grader.room.board_page import content
from grader.room.members import Room

REFRESH_S = 0.5  # between two looks at what changed
HEARTBEAT_S = 15.0  # after which a page hears that the room still stands
MAX_PAGES = 200  # open at once, a class of them


class Broadcast:
    """address: as learners reach the server, such as 'http://192.168.1.20:8765'. tell: called with sentences for the terminal."""

    def __init__(self, room: Room, address: str, tell: Callable[[str], None]) -> None:
        self.room, self.address, self.tell = room, address, tell
        self.key, self.key_with_names = room.journal.key, room.journal.key_with_names
        self._pages: dict[asyncio.Queue[str], bool] = {}  # whether with names
        self._changed = self._unsynced = self._failing = False

    def changed(self) -> None:
        """To be called whenever something was written to the journal."""
        self._changed = self._unsynced = True
        self._failing = False

    def journal_failed(self, error: OSError) -> None:
        """Tells the terminal, once."""
        if not self._failing:
            until = "until it can, learners' notebooks keep their messages."
            self.tell(f"The journal can't be written ({error.strerror}); {until}")
        self._failing = True

    @contextlib.contextmanager
    def subscribe(self, names: bool) -> Iterator[asyncio.Queue[str] | None]:
        """For a page that is open: a queue of what to send to it, the newest alone; None: there are too many."""
        if len(self._pages) >= MAX_PAGES:
            yield None
            return
        page: asyncio.Queue[str] = asyncio.Queue(1)
        page.put_nowait(self._event(names))
        self._pages[page] = names
        try:
            yield page
        finally:
            self._pages.pop(page, None)

    async def run(self) -> None:
        """Shows changes for as long as it runs, and has the disk keep them."""
        shown_at, minute = time.monotonic(), ""
        while True:
            await asyncio.sleep(REFRESH_S)
            if self._unsynced:
                self._unsynced = False
                with contextlib.suppress(OSError):  # the next write tells of it
                    await asyncio.to_thread(self.room.journal.sync)
            if self._changed or time.strftime("%H:%M") != minute:
                minute, shown_at, self._changed = time.strftime("%H:%M"), time.monotonic(), False
                events = {names: self._event(names) for names in {*self._pages.values()}}
                for page, names in self._pages.items():
                    if page.full():  # a page that reads slowly misses what is no longer so
                        page.get_nowait()
                    page.put_nowait(events[names])
            elif time.monotonic() - shown_at > HEARTBEAT_S:
                shown_at = time.monotonic()
                for page in self._pages:
                    if page.empty():
                        page.put_nowait(": the room stands\n\n")

    def _event(self, names: bool) -> str:
        lines = content(self.room, self.address, names=names).splitlines()
        return "".join(f"data: {line}\n" for line in lines) + "\n"
