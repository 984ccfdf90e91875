"""The room's server: what learners' notebooks send, and the page that shows it live. It runs on tornado, beside JupyterLab's own.

    POST /join         {"format": 1, "code": …, "name": …}          → {"token": …}
    POST /events       {"format": 1, "token": …, "events": […]}     → {"taken": 2}
    GET  /room/KEY     the page; KEY says whether with names; /room/KEY/live sends its content by server-sent events

What is refused comes back with a status and {"error": SENTENCE}; nothing that was taken is lost by what follows it.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import secrets
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.iostream import StreamClosedError
from tornado.web import Application, HTTPError, RequestHandler

from grader.room import code, message
from grader.room.limits import Budgets, sender
from grader.room.members import MOST
from grader.room.message import Refused
from grader.room.page import live_page
from grader.room.shown import Live

LARGEST = 65_536  # bytes of a request that are read at all; what is larger than message.MAX_BYTES is then refused
HEADERS = 8_192
IDLE_S = 75.0
KEY = "([A-Za-z0-9_-]{1,64})"
MAX_CONNECTIONS = 1_500  # at once, where the system lets a process have so many
POLICY = ("default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'nonce-{}'; connect-src 'self'; base-uri 'none'; "
          "form-action 'none'")  # fmt: skip


class Guarded:
    """What requests are held against. wrong: codes that were tried, by address; joining: by address, too, which may be a
    hub's with all the learners; events: by learner. told: those of whom the terminal was told.

    A code can be guessed, if slowly; tokens and the pages' keys are too long for that and need no budget, so that one who
    guesses keeps nobody from telling or looking.
    """

    def __init__(self) -> None:
        self.wrong = Budgets(burst=20, per_s=0.2)
        self.joining = Budgets(burst=300, per_s=5)
        self.events = Budgets(burst=60, per_s=6)
        self.told: set[str] = set()


class Asked(RequestHandler):
    """A request whose answer is JSON, refusals too."""

    def initialize(self, live: Live, guarded: Guarded, tell: Any) -> None:
        self.live, self.room, self.guarded, self.tell = live, live.room, guarded, tell
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

    def told_once(self, about: str, said: str) -> None:
        """A sentence for the terminal; none about the same sender twice."""
        if about not in self.guarded.told and len(self.guarded.told) < 1_000:
            self.guarded.told.add(about)
            self.tell(said)

    def message(self) -> dict[str, Any]:
        """The JSON of a request. Raises: HTTPError."""
        if len(self.request.body) > message.MAX_BYTES:
            raise self.refuse(413, f"This message is larger than the {message.MAX_BYTES} bytes that a room accepts.")
        try:
            data = json.loads(self.request.body)
        except (ValueError, RecursionError):
            data = None
        json_type = self.request.headers.get("Content-Type", "").startswith("application/json")  # a form of another site can't send it
        if not json_type or not isinstance(data, dict):
            raise self.refuse(400, "A room accepts only JSON.")
        if data.get("format") != message.FORMAT:
            raise self.refuse(400, "This message comes from another version of the course; install the version that the room uses.")
        return data


class Nowhere(Asked):
    def prepare(self) -> None:
        raise self.refuse(404, "The room has no page at this address.")


class Front(Asked):
    def get(self) -> None:
        """For who opens the address itself in a browser."""
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish('This is a room of the attention course. Join it from a notebook:\n\n    from grader import join\n'
                    f'    join("{self.live.address}", "the room\'s code", "your name")\n')  # fmt: skip


class Join(Asked):
    def post(self) -> None:
        data = self.message()
        said, token = data.get("code"), data.get("token", "")
        wait_s = self.guarded.wrong.wait_s(self.sender)
        if wait_s:
            self.told_once(self.sender, f"Many wrong codes come from {self.sender}: for now, nobody can join from there.")
            raise self.refuse(429, f"Too many wrong codes came from this address; wait {wait_s} seconds.", wait_s)
        if not isinstance(said, str) or not code.same(said, self.live.code):
            self.guarded.wrong.take(self.sender)
            raise self.refuse(403, "This is not the room's code.")
        wait_s = self.guarded.joining.wait_s(self.sender)
        if wait_s:
            raise self.refuse(429, f"Too many learners joined at once; wait {wait_s} seconds.", wait_s)
        self.guarded.joining.take(self.sender)
        try:
            name = message.learner_name(data.get("name"))
        except Refused as refused:
            raise self.refuse(400, str(refused)) from None
        known = isinstance(token, str) and self.room.place(token) is not None
        if self.room.full and not known:
            raise self.refuse(403, f"The room is full: {MOST} learners have joined.")
        token = self.live.written(self, lambda: self.room.join(name, token if known else ""))
        self.tell(f"{name} {'is back' if known else 'joined'}.")
        self.finish({"token": token})


class Events(Asked):
    def post(self) -> None:
        data = self.message()
        place = self.room.place(data["token"]) if isinstance(data.get("token"), str) else None
        if place is None:
            raise self.refuse(403, "The room does not know this notebook.")
        try:
            events = message.read_all(data.get("events"))
        except Refused as refused:
            self.guarded.events.take(str(place))
            raise self.refuse(400, str(refused)) from None
        wait_s = self.guarded.events.wait_s(str(place))
        if wait_s:
            self.told_once(str(place), f"{self.room.name(place)} sends more messages than checks could cause; most of them are refused.")
            raise self.refuse(429, f"These are more messages than checks could cause; wait {wait_s} seconds.", wait_s)
        self.guarded.events.take(str(place), len(events))
        new = self.live.written(self, lambda: self.room.take(place, events))
        for event in new:
            if event.note:
                self.tell(f"{self.room.name(place)} {self.did(event.note, self.room.here(place))}.")
        self.finish({"taken": len(events)})

    def did(self, note: str, here: str) -> str:
        return "left" if note == "left" else f"is {note}{f' at {here}' if here else ''}"


class Page(Asked):
    """GET /room/KEY."""

    def names(self, key: str) -> bool:
        """Whether this page has names. Raises: HTTPError where it is no page of this room."""
        if hmac.compare_digest(key, self.live.key_with_names):
            return True
        if not hmac.compare_digest(key, self.live.key):
            raise self.refuse(404, "The room has no page at this address; the terminal of `grader room` shows the addresses of its pages.")
        return False

    def get(self, key: str) -> None:
        names, nonce = self.names(key), secrets.token_urlsafe(12)
        self.set_header("Content-Security-Policy", POLICY.format(nonce))
        self.set_header("X-Frame-Options", "DENY")
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(live_page(self.live.board(), nonce, names=names))


class Stream(Page):
    async def get(self, key: str) -> None:
        names = self.names(key)
        self.set_header("Content-Type", "text/event-stream; charset=utf-8")
        self.set_header("X-Accel-Buffering", "no")  # a proxy that stands between sends each event on at once
        with self.live.watched(names) as changes:
            if changes is None:
                raise self.refuse(503, "This page is open in too many places.", 10)
            with contextlib.suppress(StreamClosedError):  # the page was closed
                while True:
                    self.write(await changes.get())
                    await self.flush()


class Server(HTTPServer):
    """One that holds no more connections than it has room for: who opens them without end fills only their own share."""

    def initialize(self, *values: Any, **options: Any) -> None:
        super().initialize(*values, **options)
        self._open: dict[str, int] = {}
        self._most = min(MAX_CONNECTIONS, descriptors() - 60)

    def handle_stream(self, stream: Any, address: Any) -> None:
        who, all_open = sender(str(address[0])), sum(self._open.values())
        if self._open.get(who, 0) >= 2 * self._most // 3 or all_open >= self._most:  # a sender may be a hub with all the learners
            stream.close()
            return
        self._open[who] = self._open.get(who, 0) + 1
        super().handle_stream(stream, address)

    def on_close(self, server_conn: Any) -> None:
        super().on_close(server_conn)
        who = sender(str(server_conn.context.address[0]))
        left = self._open.pop(who, 1) - 1
        if left > 0:
            self._open[who] = left


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


def made(live: Live, tell: Any) -> Server:
    """A server that does not listen yet. tell: called with each sentence for the instructor's terminal."""
    logging.getLogger("tornado").setLevel(logging.CRITICAL)  # a flood of what is no request is not to flood the terminal
    shared = {"live": live, "guarded": Guarded(), "tell": tell}
    routes = [("/", Front), ("/join", Join), ("/events", Events), (f"/room/{KEY}", Page), (f"/room/{KEY}/live", Stream)]
    app = Application([(path, handler, shared) for path, handler in routes], default_handler_class=Nowhere, default_handler_args=shared,
                      log_function=lambda handler: None)  # fmt: skip
    return Server(app, max_body_size=LARGEST, max_header_size=HEADERS, idle_connection_timeout=IDLE_S, body_timeout=10.0)
