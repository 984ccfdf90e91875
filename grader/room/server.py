"""The room's server: what learners' notebooks send, and the page that shows it live. It runs on tornado, beside JupyterLab's own.

    POST /join         {"format": 1, "code": …, "name": …}          → {"token": …}
    POST /events       {"format": 1, "token": …, "events": […]}     → {"taken": 2}
    GET  /room/KEY     the page; KEY says whether with names; /room/KEY/live sends its content by server-sent events
    POST /room/KEY/remove, /room/KEY/code   of the page with names alone: remove learners, change the code (pages.py)

What is refused comes back with a status and {"error": SENTENCE}; nothing that was taken is lost by what follows it.
"""

from __future__ import annotations

import logging
from typing import Any

from tornado.web import Application

from grader.room import code, message
from grader.room.connections import Connections, Server
from grader.room.handler import JsonHandler, NotFound, RateLimits
from grader.room.members import MOST
from grader.room.message import Refused
from grader.room.pages import ROUTES
from grader.room.shown import Live

LARGEST = 65_536  # bytes of a request that are read at all; what is larger than message.MAX_BYTES is then refused
HEADERS = 8_192
HEAD_S = 5.0  # that a connection may take to send a request's head, the next one's too
NEWCOMERS = 400  # learners of one address who have not checked anything yet: a lecture behind a hub's address


class Front(JsonHandler):
    def get(self) -> None:
        """For who opens the address itself in a browser."""
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(
            "This is a room of the attention course. Join it from a notebook:\n\n    from grader import join\n"
            f'    join("{self.live.address}", "the room\'s code", "your name")\n'
        )


class Join(JsonHandler):
    def post(self) -> None:
        data = self.message()
        said, token = data.get("code"), data.get("token", "")
        wait_s = self.limits.wrong.wait_s(self.sender)
        if wait_s:
            self.announce_once(
                self.sender, f"Many wrong codes come from {self.sender}: for now, nobody can join from there."
            )
            raise self.refuse(429, f"Too many wrong codes came from this address; wait {wait_s} seconds.", wait_s)
        if not isinstance(said, str) or not code.same(said, self.live.code):
            self.limits.wrong.take(self.sender)
            raise self.refuse(403, "This is not the room's code.")
        wait_s = self.limits.joining.wait_s(self.sender)
        if wait_s:
            raise self.refuse(429, f"Too many learners joined at once; wait {wait_s} seconds.", wait_s)
        self.limits.joining.take(self.sender)
        try:
            name = message.learner_name(data.get("name"))
        except Refused as refused:
            raise self.refuse(400, str(refused)) from None
        known = isinstance(token, str) and self.room.place(token) is not None
        if self.room.full and not known:
            raise self.refuse(403, f"The room is full: {MOST} learners have joined. Ask the instructor to remove some.")
        if not known and sum(not self.room.checked(place) for place in self.limits.seats.at(self.sender)) >= NEWCOMERS:
            self.announce_once(
                f"newcomers {self.sender}",
                f"{NEWCOMERS} learners who joined from {self.sender} have checked nothing yet: "
                "for now, nobody else can join from there. The page with names can remove them.",
            )
            raise self.refuse(
                403,
                f"{NEWCOMERS} learners joined from this address and have checked nothing yet, so nobody else can join "
                "from it for now; tell the instructor, who can remove some.",
            )
        token = self.live.written(self, lambda: self.room.join(name, token if known else ""))
        self.seat(self.room.place(token))
        self.tell(f"{name} {'is back' if known else 'joined'}.")
        self.finish({"token": token})


class Events(JsonHandler):
    def post(self) -> None:
        data = self.message()
        token = data.get("token") if isinstance(data.get("token"), str) else ""
        place = self.room.place(token)
        if place is None:
            removed = self.room.was_removed(token)
            raise self.refuse(
                403, "The instructor removed you from the room." if removed else "The room does not know this notebook."
            )
        self.seat(place)
        try:
            events = message.read_all(self.live.room.course, data.get("events"))
        except Refused as refused:
            self.limits.events.take(str(place))
            raise self.refuse(400, str(refused)) from None
        wait_s = self.limits.events.wait_s(str(place))
        if wait_s:
            name = self.room.name(place)
            self.announce_once(
                str(place), f"{name} sends more messages than checks could cause; most of them are refused."
            )
            raise self.refuse(429, f"These are more messages than checks could cause; wait {wait_s} seconds.", wait_s)
        self.limits.events.take(str(place), len(events))
        new = self.live.written(self, lambda: self.room.take(place, events))
        for event in new:
            if event.note:
                self.tell(f"{self.room.name(place)} {self.did(event.note, self.room.here(place))}.")
        self.finish({"taken": len(events)})

    def did(self, note: str, here: str) -> str:
        return "left" if note == "left" else f"is {note}{f' at {here}' if here else ''}"


def made(live: Live, tell: Any) -> Server:
    """A server that does not listen yet. tell: called with each sentence for the instructor's terminal."""
    logging.getLogger("tornado").setLevel(
        logging.CRITICAL
    )  # a flood of what is no request is not to flood the terminal
    limits = RateLimits()
    connections = Connections(limits.seats.count)
    shared = {"live": live, "limits": limits, "connections": connections, "tell": tell}
    routes = [("/", Front), ("/join", Join), ("/events", Events), *ROUTES]
    app = Application(
        [(path, handler, shared) for path, handler in routes],
        default_handler_class=NotFound,
        default_handler_args=shared,
        log_function=lambda handler: None,
    )
    server = Server(
        app, max_body_size=LARGEST, max_header_size=HEADERS, idle_connection_timeout=HEAD_S, body_timeout=10.0
    )
    server.connections = connections
    return server
