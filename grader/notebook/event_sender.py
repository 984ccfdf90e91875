"""Sends a room what checks tell, beside the notebook: a thread with a short queue, so that no check waits for a network.

It touches no random state and prints nothing. Where the room does not answer, events are kept and tried again; an event
whose answer was lost is sent twice, and the room counts it once. A kernel's own threads, which ipykernel has anyway, are
why nothing may fork here (grader/sandbox/); a check judges in the kernel's main thread and forks nothing.
"""

from __future__ import annotations

import atexit
import http.client
import itertools
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
MAX_ANSWER = 65_536  # bytes of an answer that are read
MAX_WAITING = 200  # events; where more wait, the oldest go
PAUSE_S = 1.0  # before what was not taken is sent again; well below AT_EXIT_S, so that a last try fits into that
AT_EXIT_S = 2.0  # that a process which ends waits for what is still to be sent


class RoomError(Exception):
    """What answers is no room, or refuses. status: as HTTP counts it, 0 for no HTTP at all; the text is the room's sentence, or ''."""

    def __init__(self, status: int, sentence: str = "") -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


def post(address: str, path: str, data: dict[str, Any], timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """Sends one message, by no proxy. Returns: the answer. Raises: OSError where nobody answers, RoomError for a refusal."""
    url = urlsplit(address)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=timeout_s)
    try:
        body = json.dumps({"format": FORMAT, **data})
        connection.request("POST", url.path + path, body, {"Content-Type": "application/json", "Connection": "close"})
        response = connection.getresponse()
        answer = json_object(response.read(MAX_ANSWER))
    except OSError:
        raise
    except (http.client.HTTPException, ValueError) as error:
        raise RoomError(0) from error
    finally:
        connection.close()
    if response.status != 200 or answer is None:
        raise RoomError(response.status, str(answer.get("error") or "") if answer else "")
    return answer


class Sender:
    """Takes events and sends them in order.

    is_member: asked before each message; False: nothing more is sent, and it is closed. failing: the room did not answer last time.
    refusal: the room's own sentence once it takes nothing more from here, else ''.
    """

    def __init__(self, address: str, token: str, is_member: Callable[[], bool] = lambda: True) -> None:
        self.address, self.token, self._is_member = address, token, is_member
        self._waiting: deque[Event] = deque(maxlen=MAX_WAITING)
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self.closed = False
        self.failing, self.refusal = False, ""

    def put(self, event: Event) -> None:
        """Returns at once. Raises: RuntimeError where no thread can be started."""
        with self._changed:
            self._waiting.append(event)
            self._changed.notify_all()
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="attention-course-room", daemon=True)
                thread.start()
                self._thread = thread
                atexit.register(self.drain, AT_EXIT_S)

    def drain(self, within_s: float) -> bool:
        """Waits until all is sent; gives up where the room does not answer once more. Returns: whether all is."""
        with self._changed:
            self.failing = False
            self._changed.wait_for(lambda: not self._waiting or self.failing or self.closed, within_s)
            return not self._waiting

    def close(self) -> None:
        """Sends nothing more."""
        with self._changed:
            self.closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self.closed)
                if self.closed:
                    return
                events = list(itertools.islice(self._waiting, MAX_EVENTS))
            status = self._send(events)
            with self._changed:
                self.failing = status == 0
                for event in events if status == 200 else ():
                    if self._waiting and self._waiting[0] is event:  # where too many waited, it may have gone already
                        self._waiting.popleft()
                self._changed.notify_all()
                if status != 200:
                    self._changed.wait_for(lambda: self.closed, PAUSE_S)

    def _send(self, events: list[Event]) -> int:
        """One message. Returns: 200 where that is done with, 429 where the room takes it later, 0 where no room answers."""
        try:
            if self._is_member():
                post(self.address, "/events", {"token": self.token, "events": [to_json(event) for event in events]})
            else:
                self.close()
        except RoomError as error:
            if error.status not in (400, 403, 413):
                return error.status if error.status == 429 else 0  # a page that answers 200 is no room
            self.refusal = error.sentence or "it answers in another language"
            self.close()
        except Exception:  # no network; or a cell has put something else in the place of a module
            return 0
        return 200


def now() -> float:
    """When something happened, in milliseconds: by it, and by the exercise, the room knows a second copy."""
    return round(time.time(), 3)
