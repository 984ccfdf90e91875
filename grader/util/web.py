"""What the servers of this package have in common: a port to listen at, headers, requests and answers in JSON.

What is refused comes back with a status and {"error": SENTENCE}.
"""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Callable
from typing import Any

from tornado.netutil import bind_sockets
from tornado.web import HTTPError, RequestHandler

from grader.util.errors import InputError
from grader.util.files import json_object

MAX_BYTES = 8_192  # of one message
MAX_BODY = 65_536  # bytes of a request that are read at all; what is larger than MAX_BYTES is then refused
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'nonce-{}'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'"
)


class JsonHandler(RequestHandler):
    """A request whose answer is JSON, refusals too. format: of its messages. `tell` of the settings is called with sentences for the
    terminal."""

    format = 1

    def initialize(self) -> None:
        self.tell: Callable[[str], None] = self.settings["tell"]

    def set_default_headers(self) -> None:
        self.set_header("Server", "grader")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "no-referrer")  # the page's address is a secret

    def set_page_headers(self) -> str:
        """Those of an HTML page. Returns: the nonce without which no script of it runs."""
        nonce = secrets.token_urlsafe(12)
        self.set_header("Content-Security-Policy", CONTENT_SECURITY_POLICY.format(nonce))
        self.set_header("X-Frame-Options", "DENY")
        self.set_header("Content-Type", "text/html; charset=utf-8")
        return nonce

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = kwargs.get("exc_info", (None, None))[1]
        sentence = (error.log_message or "") % error.args if isinstance(error, HTTPError) else ""
        self.finish({"error": sentence or "This request is not answered here."})

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        if not isinstance(value, HTTPError):
            self.tell(f"An answer failed: {type(value).__name__}: {value}")

    def refuse(self, status: int, sentence: str) -> HTTPError:
        """To be raised."""
        return HTTPError(status, "%s", sentence)

    def request_json(self) -> dict[str, Any]:
        """The JSON of a request. Raises: HTTPError."""
        if len(self.request.body) > MAX_BYTES:
            raise self.refuse(413, f"This message is larger than the {MAX_BYTES} bytes that are accepted here.")
        # A form of another site can't send this type.
        json_type = self.request.headers.get("Content-Type", "").startswith("application/json")
        data = json_object(self.request.body) if json_type else None
        if data is None:
            raise self.refuse(400, "This address accepts only JSON.")
        if data.get("format") != self.format:
            raise self.refuse(
                400, "This message comes from another version of the course; install the version that the server uses."
            )
        return data


def bind(host: str, port: int) -> list[socket.socket]:
    """Raises: InputError, which says what to do."""
    try:
        return bind_sockets(port, host or None, backlog=512)
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            sentence = f"{host!r} is not an address of this computer; leave --host out to use all of its addresses."
        elif error.errno == errno.EADDRINUSE:
            sentence = f"port {port} is in use, perhaps by another room; choose another one: --port {port + 1}."
        elif error.errno == errno.EACCES:
            sentence = f"port {port} is not for ordinary users; choose one above 1023, such as --port 8765."
        else:
            raise
        raise InputError(sentence) from None
