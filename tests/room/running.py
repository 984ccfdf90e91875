"""A room's real server on a free port of this computer, in a thread of the test."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tornado.netutil import bind_sockets

from grader.course.course import open_course
from grader.room.broadcast import Broadcast
from grader.room.members import Room, RoomJournal
from grader.room.server import create_server
from tests.mixing_course import COURSE

SAID = {id: COURSE.mistake_text(id).sentence for id in ("MX7", "MX16")}


class Running:
    """told: what the terminal would show. port: 0 takes a free one."""

    def __init__(self, path: Path, port: int = 0) -> None:
        self.told: list[str] = []
        self.port = port
        self._path, self._ready, self._ended = path, threading.Event(), None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(10)

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        (socket,) = bind_sockets(self.port, "127.0.0.1")
        self.port = socket.getsockname()[1]
        with contextlib.closing(RoomJournal(self._path)) as journal:
            self.room = Room(open_course(), journal, SAID)
            self.live = Broadcast(self.room, f"http://127.0.0.1:{self.port}", self.told.append)
            self.server = made = create_server(self.live)
            made.add_socket(socket)
            showing = asyncio.create_task(self.live.run())
            self._ready.set()
            await self._ended.wait()
            made.stop()
            showing.cancel()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(made.close_all_connections(), 3)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(10)
        assert not self._thread.is_alive()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """(status, headers, body) of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Content-Type": "application/json", **headers})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def post(self, path: str, **data: Any) -> tuple[int, dict[str, Any]]:
        status, _, body = self.ask("POST", path, json.dumps({"format": 1, **data}).encode())
        return status, json.loads(body)

    def joined(self, name: str = "ada") -> str:
        """The token of a learner who joined."""
        status, answer = self.post("/join", code=self.room.code, name=name)
        assert status == 200, answer
        return answer["token"]


@contextlib.contextmanager
def running(path: Path, port: int = 0) -> Iterator[Running]:
    made = Running(path, port)
    try:
        yield made
    finally:
        made.stop()


def until(holds: Callable[[], Any], within_s: float = 10.0) -> Any:
    """What holds() returns once that is true."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        found = holds()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come to hold")
