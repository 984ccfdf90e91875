"""Takes out of a notebook's bytes what no grader reads and what makes notebooks large: outputs, pasted images, the state of widgets.

Nothing is parsed: one pass over strings and brackets, in little more memory than the bytes themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

DROPPED = (
    b'"outputs"',
    b'"attachments"',
    b'"widgets"',
)  # keys; in a cell's text their quotation marks stand behind a backslash
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_KEY = re.compile(rb"(?P<key>" + b"|".join(DROPPED) + rb")\s*+:\s*+(?P<opens>[\[{])|" + _STRING, re.DOTALL)
_INSIDE = re.compile(rb"[\[{]|[\]}]|" + _STRING, re.DOTALL)


def without_outputs(data: bytes) -> bytes:
    """The same notebook with empty outputs. Bytes that are no JSON stay none."""
    return b"".join(_kept(data))


def _kept(data: bytes) -> Iterator[bytes]:
    begin = 0
    while met := _next_key(data, begin):
        opens = met.end()
        end = _closing(data, opens)
        if end is None:  # it is cut off: no reader takes it either way
            break
        yield data[begin:opens]
        begin = end
    yield data[begin:]


def _next_key(data: bytes, begin: int) -> re.Match[bytes] | None:
    return next((met for met in _KEY.finditer(data, begin) if met["key"]), None)


def _closing(data: bytes, begin: int) -> int | None:
    """Where the bracket stands that closes what opened before `begin`."""
    depth = 1
    for met in _INSIDE.finditer(data, begin):
        sign = data[met.start()]
        depth += (sign in b"[{") - (sign in b"]}")
        if not depth:
            return met.start()
    return None
