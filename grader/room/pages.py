"""The room's pages, and what only the instructor may do with the one that has names: remove learners, change the code."""

from __future__ import annotations

import contextlib
import hmac
import secrets
from typing import Any

from tornado.iostream import StreamClosedError

from grader.room.connections import PAGE
from grader.room.handler import JsonHandler
from grader.room.page import live_page
from grader.room.shown import MAX_OWN_PAGES, MAX_PAGES
from grader.util.words import counted

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'nonce-{}'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'"
)


class Page(JsonHandler):
    """GET /room/KEY."""

    def names(self, key: str) -> bool:
        """Whether this page has names. Raises: HTTPError where it is no page of this room."""
        if hmac.compare_digest(key, self.live.key_with_names):
            return True
        if not hmac.compare_digest(key, self.live.key):
            raise self.refuse(
                404,
                "The room has no page at this address; the terminal of `grader room` shows the addresses of its pages.",
            )
        return False

    def get(self, key: str) -> None:
        names, nonce = self.names(key), secrets.token_urlsafe(12)
        self.set_header("Content-Security-Policy", POLICY.format(nonce))
        self.set_header("X-Frame-Options", "DENY")
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(live_page(self.live.room.course, self.live.board(), nonce, names=names))


class Stream(Page):
    async def get(self, key: str) -> None:
        names = self.names(key)
        own = names or hmac.compare_digest(
            self.get_query_argument("projector", "").encode(), self.live.projector.encode()
        )
        self.set_header("Content-Type", "text/event-stream; charset=utf-8")
        self.set_header("X-Accel-Buffering", "no")  # a proxy that stands between sends each event on at once
        with self.live.watched(names, own) as changes:
            if changes is None:
                raise self.refuse(503, "This page is open in too many places.", 10)
            self.connections.belongs(self.request.connection.stream, PAGE, MAX_PAGES + MAX_OWN_PAGES)
            with contextlib.suppress(StreamClosedError):  # the page was closed
                while True:
                    self.write(await changes.get())
                    await self.flush()


class Instructor(Page):
    """What only who has the address of the page with names may ask."""

    def request_json(self, key: str) -> dict[str, Any]:
        """The JSON of a request. Raises: HTTPError."""
        if not self.names(key):
            raise self.refuse(403, "Only the page with names can do this.")
        return self.message()


class Learners(Instructor):
    def post(self, key: str) -> None:
        """Who is in the room, in the order in which they joined. checked: whether they have sent a check."""
        self.request_json(key)
        there = self.room.present().items()
        self.finish(
            {
                "learners": [
                    {"place": place, "name": one.name, "checked": self.room.checked(place)} for place, one in there
                ]
            }
        )


class Remove(Instructor):
    def post(self, key: str) -> None:
        """{"places": [0, 7]}: takes these learners out; their notebooks are told with the next check."""
        places, there = self.request_json(key).get("places"), self.room.present()
        if not isinstance(places, list) or not all(type(place) is int for place in places):
            raise self.refuse(400, "The learners to remove are a list of their places.")
        places = [place for place in dict.fromkeys(places) if place in there]
        self.live.written(self, lambda: self.room.remove(places))
        for place in places:
            self.limits.seats.leave(place)
        self.tell(
            f"Removed {counted(len(places), 'learner')}: {', '.join(there[place].name for place in places[:10])}"
            f"{f' and {len(places) - 10} more' if len(places) > 10 else ''}."
            if places
            else "Nobody was removed."
        )
        self.finish({"removed": len(places)})


class Code(Instructor):
    def post(self, key: str) -> None:
        """Changes the room's code; who is in stays in."""
        self.request_json(key)
        self.live.written(self, self.room.change_code)
        self.tell(f"The room's code is now {self.live.code}.")
        self.finish({"code": self.live.code})


KEY = "/room/([A-Za-z0-9_-]{1,64})"
ROUTES = [
    (KEY, Page),
    (f"{KEY}/live", Stream),
    (f"{KEY}/learners", Learners),
    (f"{KEY}/remove", Remove),
    (f"{KEY}/code", Code),
]
