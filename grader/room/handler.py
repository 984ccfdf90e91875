"""What every request of a room's server has in common: JSON, refusals in a sentence, limits for each sender."""

from __future__ import annotations

import json
from typing import Any

from tornado.web import HTTPError, RequestHandler

from grader.room import message
from grader.room.connections import Connections
from grader.room.limits import Budgets, Seats, sender
from grader.room.shown import Live


class RateLimits:
    """What requests are held against. wrong: codes that were tried, by address; joining: by address, too, which may be a
    hub's with all the learners; events: by learner. announced: those of whom the terminal was told.

    A code can be guessed, if slowly; tokens and the pages' keys are too long for that and need no budget, so that one who
    guesses keeps nobody from telling or looking.
    """

    def __init__(self) -> None:
        self.wrong = Budgets(burst=20, per_s=0.2)
        self.joining = Budgets(burst=300, per_s=5)
        self.events = Budgets(burst=60, per_s=6)
        self.seats = Seats()
        self.announced: set[str] = set()


class JsonHandler(RequestHandler):
    """A request whose answer is JSON, refusals too."""

    def initialize(self, live: Live, limits: RateLimits, connections: Connections, tell: Any) -> None:
        self.live, self.room, self.limits, self.connections, self.tell = live, live.room, limits, connections, tell
        self.sender, self.wait_s = sender(self.request.remote_ip or ""), 0

    def set_default_headers(self) -> None:
        self.set_header("Server", "room")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "no-referrer")  # the page's address is a secret

    def write_error(self, status_code: int, **about: Any) -> None:
        if self.wait_s:
            self.set_header("Retry-After", str(self.wait_s))
        error = about.get("exc_info", (None, None))[1]
        said = (error.log_message or "") % error.args if isinstance(error, HTTPError) else ""
        self.finish({"error": said or "The room does not answer this request."})

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        if not isinstance(value, HTTPError):
            self.tell(f"An answer failed: {type(value).__name__}: {value}")

    def refuse(self, status: int, said: str, wait_s: int = 0) -> HTTPError:
        """To be raised. wait_s: when to come again."""
        self.wait_s = wait_s
        return HTTPError(status, "%s", said)

    def announce_once(self, about: str, said: str) -> None:
        """A sentence for the terminal; none about the same sender twice."""
        if about not in self.limits.announced and len(self.limits.announced) < 1_000:
            self.limits.announced.add(about)
            self.tell(said)

    def message(self) -> dict[str, Any]:
        """The JSON of a request. Raises: HTTPError."""
        if len(self.request.body) > message.MAX_BYTES:
            raise self.refuse(413, f"This message is larger than the {message.MAX_BYTES} bytes that a room accepts.")
        try:
            data = json.loads(self.request.body)
        except (ValueError, RecursionError):
            data = None
        json_type = self.request.headers.get("Content-Type", "").startswith(
            "application/json"
        )  # a form of another site can't send it
        if not json_type or not isinstance(data, dict):
            raise self.refuse(400, "A room accepts only JSON.")
        if data.get("format") != message.FORMAT:
            raise self.refuse(
                400, "This message comes from another version of the course; install the version that the room uses."
            )
        return data

    def seat(self, place: int) -> None:
        """Notes that a member speaks over this connection, from this address."""
        self.limits.seats.take(place, self.sender)
        self.connections.belongs(self.request.connection.stream, str(place))


class NotFound(JsonHandler):
    def prepare(self) -> None:
        raise self.refuse(404, "The room has no page at this address.")
