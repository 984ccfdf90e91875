"""Sends a room what checks tell, beside the notebook: a thread with a short queue, so that no check waits for a network.

It touches no random state and prints nothing. Where the room does not answer, events are kept and tried again; an event
whose answer was lost is sent twice, and the room counts it once. A kernel's own threads, which ipykernel has anyway, are
why nothing may fork here (grader/sandbox/); a check judges in the kernel's main thread and forks nothing.
"""

from __future__ import annotations

import atexit
import http.client
import json
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from grader.room.message import FORMAT, MAX_EVENTS, Event, to_json
from grader.util.files import json_object

TIMEOUT_S = 3.0
LARGEST = 65_536  # bytes of an answer that are read
KEPT = 200  # events; where more wait, the oldest go
PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)  # between tries, the last one from then on
AT_EXIT_S = 2.0  # that a process which ends waits for what is still to be sent


class NoRoom(Exception):
    """What answers is no room. status: as HTTP counts it, 0 for no HTTP at all; the text is the room's own sentence, or ''."""

    def __init__(self, status: int, said: str = "", wait_s: float = 0.0) -> None:
        super().__init__(said)
        self.status, self.said, self.wait_s = status, said, wait_s


class Line:
    """A connection to a room, kept open between messages. Uses no proxy and follows no redirect: a room is where it says."""

    def __init__(self, address: str, timeout_s: float = TIMEOUT_S) -> None:
        where = urlsplit(address)
        kind = http.client.HTTPSConnection if where.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(where.hostname or "", where.port, timeout=timeout_s)
        self._base = where.path.rstrip("/")

    def post(self, path: str, data: dict[str, Any]) -> dict[str, Any]:
        """Sends one message. Returns: the answer. Raises: OSError where nobody answers, NoRoom for a refusal."""
        body = json.dumps({"format": FORMAT, **data}).encode()
        kept = self._connection.sock is not None
        try:
            answer, raw = self._asked(path, body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            if kept:  # a server ends connections that were quiet for long; that is no failure
                return self.post(path, data)
            raise error if isinstance(error, OSError) else NoRoom(0) from error
        said = json_object(raw)
        if answer.will_close or answer.status != 200:
            self.close()
        if answer.status != 200 or said is None:
            error = said.get("error") if said else None
            wait_s = answer.getheader("Retry-After") or ""
            raise NoRoom(
                answer.status, error if isinstance(error, str) else "", float(wait_s) if wait_s.isdecimal() else 0.0
            )
        return said

    def _asked(self, path: str, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        self._connection.request("POST", self._base + path, body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        return answer, answer.read(LARGEST)

    def close(self) -> None:
        self._connection.close()


class Sender:
    """Takes events and sends them in order.

    still: asked before each message; False: nothing more is sent, and it is closed. failing: the room did not answer last time.
    refused: the room's own sentence once it takes nothing more from here, else ''.
    """

    def __init__(self, address: str, token: str, still: Callable[[], bool] = lambda: True) -> None:
        self._token, self._still = token, still
        self._line = Line(address)
        self._waiting: deque[Event] = deque(maxlen=KEPT)
        self._more = threading.Condition()
        self._thread: threading.Thread | None = None
        self._hurry = False
        self.closed = False
        self.failing, self.refused = False, ""

    def put(self, event: Event) -> None:
        """Returns at once. Raises: RuntimeError where no thread can be started."""
        with self._more:
            self._waiting.append(event)
            self._more.notify_all()
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="attention-course-room", daemon=True)
                thread.start()
                self._thread = thread
                atexit.register(self._at_exit)

    def drain(self, within_s: float) -> bool:
        """Tries at once and waits until all is sent; gives up where the room does not answer. Returns: whether all is."""
        with self._more:
            self._hurry, self.failing = True, False
            self._more.notify_all()
            self._more.wait_for(lambda: not self._waiting or self.failing or self.closed, within_s)
            return not self._waiting

    def close(self) -> None:
        """Sends nothing more."""
        with self._more:
            self.closed = True
            self._waiting.clear()
            self._more.notify_all()

    def _at_exit(self) -> None:
        self.drain(AT_EXIT_S)

    def _run(self) -> None:
        tries = 0
        while True:
            with self._more:
                self._more.wait_for(lambda: self._waiting or self.closed)
                if self.closed:
                    break
                events = [self._waiting[at] for at in range(min(len(self._waiting), MAX_EVENTS))]
                self._hurry = False
            pause_s = self._send(events)
            tries = tries + 1 if pause_s is None else 0
            if pause_s is None:
                pause_s = PAUSES_S[min(tries, len(PAUSES_S)) - 1]
            with self._more:
                self._more.wait_for(lambda: self.closed or self._hurry, pause_s)
        self._line.close()

    def _send(self, events: list[Event]) -> float | None:
        """One message. Returns: seconds to wait before the next, None where the room did not answer."""
        try:
            if not self._still():
                self.close()
                return 0.0
            self._line.post("/events", {"token": self._token, "events": [to_json(event) for event in events]})
        except NoRoom as no:
            if no.status == 429:
                return max(no.wait_s, 1.0)
            if no.status in (400, 403, 413):
                self.refused = no.said or "it answers in another language"
                self.close()
                return 0.0
            return self._failed()
        except Exception:  # no network; or a cell has put something else in the place of a module
            return self._failed()
        with self._more:
            self.failing = False
            for event in events:
                if self._waiting and self._waiting[0] is event:  # where too many waited, it may have gone already
                    self._waiting.popleft()
            self._more.notify_all()
        return 0.0

    def _failed(self) -> None:
        with self._more:
            self.failing = True
            self._more.notify_all()


def now() -> float:
    """When something happened, in milliseconds: by it, and by the exercise, the room knows a second copy."""
    return round(time.time(), 3)
