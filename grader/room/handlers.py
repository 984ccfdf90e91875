"""What a room's server answers.

    POST /join                  {"format": 1, "code": …, "name": …}          → {"token": …}
    POST /events                {"format": 1, "token": …, "events": […]}     → {"taken": 2}
    GET  /room/KEY              the page; KEY says whether with names
    GET  /room/KEY/live         its content, by server-sent events

Of the page with names alone:

    POST /room/KEY/learners     {"format": 1}                                → {"learners": [{"place": 0, "name": …, "checked": true}]}
    POST /room/KEY/remove       {"format": 1, "places": [0, 7]}              → {"removed": 2}
    POST /room/KEY/code         {"format": 1}                                → {"code": …}
"""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import Callable
from typing import Any

from tornado.iostream import StreamClosedError
from tornado.web import Application

from grader.room import message
from grader.room.board_page import page
from grader.room.broadcast import Broadcast
from grader.room.message import MessageError
from grader.room.rate_limits import Budgets, RateLimits, sender
from grader.util.names import fold_name
from grader.util.web import JsonHandler
from grader.util.words import join_names, pluralize

MAX_LEARNERS = 1_000  # in one room
MAX_NEWCOMERS = 400  # learners of one address who have not checked anything yet: a lecture behind a hub's address


class RoomHandler(JsonHandler):
    """A request to a room."""

    format = message.FORMAT

    def initialize(self) -> None:
        super().initialize()
        self.live: Broadcast = self.settings["live"]
        self.limits: RateLimits = self.settings["limits"]
        self.room, self.sender = self.live.room, sender(self.request.remote_ip or "")

    def check_budget(self, budgets: Budgets, key: str, announcement: str = "") -> None:
        """Raises: HTTPError where nothing is left for now, which is announced once in the terminal."""
        wait_s = budgets.wait_s(key)
        if wait_s:
            self.announce_once(announcement)
            raise self.refuse(429, f"{budgets.reason}; wait {wait_s} seconds.")

    def announce_once(self, sentence: str) -> None:
        if sentence and sentence not in self.limits.announced and len(self.limits.announced) < 1_000:
            self.limits.announced.add(sentence)
            self.tell(sentence)

    def record(self, change: Callable[[], Any]) -> Any:
        """What change() returns, which writes to the journal. Raises: HTTPError where that can't be written."""
        try:
            result = change()
        except OSError as error:
            self.live.journal_failed(error)
            raise self.refuse(503, "The room can't keep messages at the moment.") from None
        self.live.changed()
        return result


class NotFound(RoomHandler):
    def prepare(self) -> None:
        raise self.refuse(404, "The room has no page at this address.")


class Home(RoomHandler):
    def get(self) -> None:
        """For who opens the address itself in a browser."""
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(
            "This is a room of the attention course. Join it from a notebook:\n\n    from grader import join\n"
            f'    join("{self.live.address}", "the room\'s code", "your name")\n'
        )


class Join(RoomHandler):
    def post(self) -> None:
        data = self.request_json()
        code, token = data.get("code"), data.get("token", "")
        try:
            name = message.validate_name(data.get("name"))
        except MessageError as error:
            raise self.refuse(400, str(error)) from None
        name_key = f"{self.sender} {fold_name(name)}"
        self.check_budget(self.limits.wrong_codes_of_name, name_key)
        many = f"Many wrong codes come from {self.sender}: for now, nobody can join from there."
        self.check_budget(self.limits.wrong_codes, self.sender, many)
        if not isinstance(code, str) or not message.is_code(code, self.room.code):
            self.limits.wrong_codes.take(self.sender)
            self.limits.wrong_codes_of_name.take(name_key)
            raise self.refuse(403, "This is not the room's code.")
        self.check_budget(self.limits.joining, self.sender)
        self.limits.joining.take(self.sender)
        returning = isinstance(token, str) and self.room.place(token) is not None
        if not returning:
            self.check_places()
        token = self.record(lambda: self.room.join(name, token if returning else ""))
        self.limits.addresses[self.room.place(token)] = self.sender
        self.tell(f"{name} {'is back' if returning else 'joined'}.")
        self.finish({"token": token})

    def check_places(self) -> None:
        """Raises: HTTPError where there is no place for a new learner."""
        if len(self.room.present()) >= MAX_LEARNERS:
            raise self.refuse(
                403, f"The room is full: {MAX_LEARNERS} learners have joined. Ask the instructor to remove some."
            )
        places = [place for place, address in self.limits.addresses.items() if address == self.sender]
        if sum(not self.room.members[place].states for place in places) >= MAX_NEWCOMERS:
            self.announce_once(
                f"{MAX_NEWCOMERS} learners who joined from {self.sender} have checked nothing yet: "
                "for now, nobody else can join from there. The page with names can remove them."
            )
            raise self.refuse(
                403,
                f"{MAX_NEWCOMERS} learners joined from this address and have checked nothing yet, so nobody else can "
                "join from it for now; tell the instructor, who can remove some.",
            )


class Events(RoomHandler):
    def post(self) -> None:
        data = self.request_json()
        token = data.get("token") if isinstance(data.get("token"), str) else ""
        place = self.room.place(token)
        if place is None:
            removed = self.room.issued(token) is not None
            raise self.refuse(
                403, "The instructor removed you from the room." if removed else "The room does not know this notebook."
            )
        self.limits.addresses[place] = self.sender
        try:
            events = message.read_all(self.room.course, data.get("events"))
        except MessageError as error:
            self.limits.events.take(str(place))
            raise self.refuse(400, str(error)) from None
        member = self.room.members[place]
        many = f"{member.name} sends more messages than checks could cause; most of them are refused."
        self.check_budget(self.limits.events, str(place), many)
        self.limits.events.take(str(place), len(events))
        for event in self.record(lambda: self.room.take(place, events)):
            if event.note:
                position = f" at {member.exercise}" if member.exercise else ""
                self.tell(f"{member.name} {'left' if event.note == 'left' else f'is {event.note}{position}'}.")
        self.finish({"taken": len(events)})


class KeyHandler(RoomHandler):
    def has_names(self, key: str) -> bool:
        """Whether this page has names. Raises: HTTPError where it is no page of this room."""
        if hmac.compare_digest(key, self.live.key_with_names):
            return True
        if not hmac.compare_digest(key, self.live.key):
            raise self.refuse(
                404,
                "The room has no page at this address; the terminal of `grader room` shows the addresses of its pages.",
            )
        return False


class Page(KeyHandler):
    def get(self, key: str) -> None:
        names, nonce = self.has_names(key), self.set_page_headers()
        self.finish(page(self.room, self.live.address, names=names, nonce=nonce))


class Stream(KeyHandler):
    async def get(self, key: str) -> None:
        names = self.has_names(key)
        self.set_header("Content-Type", "text/event-stream; charset=utf-8")
        self.set_header("X-Accel-Buffering", "no")  # a proxy that stands between sends each event on at once
        with self.live.subscribe(names) as changes:
            if changes is None:
                raise self.refuse(503, "This page is open in too many places.")
            with contextlib.suppress(StreamClosedError):  # the page was closed
                while True:
                    self.write(await changes.get())
                    await self.flush()


class Instructor(KeyHandler):
    """What only who has the address of the page with names may ask."""

    def post(self, key: str, action: str) -> None:
        if not self.has_names(key):
            raise self.refuse(403, "Only the page with names can do this.")
        self.finish(getattr(self, action)(self.request_json()))

    def learners(self, data: dict[str, Any]) -> dict[str, Any]:
        """Who is in the room, in the order in which they joined. checked: whether they have sent a check."""
        members = self.room.present().items()
        rows = [{"place": place, "name": member.name, "checked": bool(member.states)} for place, member in members]
        return {"learners": rows}

    def remove(self, data: dict[str, Any]) -> dict[str, Any]:
        """Takes learners out; their notebooks are told with the next check."""
        places, members = data.get("places"), self.room.present()
        if not isinstance(places, list) or not all(type(place) is int for place in places):
            raise self.refuse(400, "The learners to remove are a list of their places.")
        places = [place for place in dict.fromkeys(places) if place in members]
        self.record(lambda: self.room.remove(places))
        for place in places:
            self.limits.addresses.pop(place, None)
        names = join_names([members[place].name for place in places], 10)
        self.tell(f"Removed {pluralize(len(places), 'learner')}: {names}." if places else "Nobody was removed.")
        return {"removed": len(places)}

    def code(self, data: dict[str, Any]) -> dict[str, Any]:
        """Changes the room's code; who is in stays in."""
        self.record(self.room.change_code)
        self.tell(f"The room's code is now {self.room.code}.")
        return {"code": self.room.code}


def application(live: Broadcast, limits: RateLimits) -> Application:
    key = "/room/([A-Za-z0-9_-]{1,64})"
    routes = [
        ("/", Home),
        ("/join", Join),
        ("/events", Events),
        (key, Page),
        (f"{key}/live", Stream),
        (f"{key}/(learners|remove|code)", Instructor),
    ]
    settings: dict[str, Any] = {"live": live, "limits": limits, "tell": live.tell, "log_function": lambda _: None}
    return Application(routes, default_handler_class=NotFound, **settings)
