"""Where a learner's output goes while it is judged: nowhere. It is counted, so that a report can say that there was much.

Its beginning is kept for one case at a time: what was printed beside a wrong result is shown with it.
"""

from __future__ import annotations

import io

MUCH_BYTES = 1_000_000  # more than this is worth a note: nobody reads it, and it takes time
MAX_PRINTED = 1_500  # characters of what one case prints

printed = ""  # the beginning of it, since the case began
written_bytes = 0  # by this process, to all streams together; of text, its characters


def _count(size: int, text: str = "") -> int:
    global printed, written_bytes
    written_bytes += size
    printed += text[: MAX_PRINTED - len(printed)]
    return size


class _NullBytes(io.RawIOBase):
    """Takes any number of bytes at once: a pipe that nobody empties would stop a print in its middle."""

    def write(self, data) -> int:  # bytes, or whatever has their buffer
        return _count(memoryview(data).nbytes)

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing: what a learner's code closes is open for the next case."""


class NullText(io.TextIOBase):
    """Takes text as it is: to encode a print of 2 GB would take as much memory again. It has a `buffer`, as Python's own have.

    descriptor: what its `fileno` says; without one, it has none.
    """

    encoding, errors = "utf-8", "replace"

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = descriptor
        self.buffer = _NullBytes()

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        return _count(len(text), text)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return super().fileno() if self._descriptor is None else self._descriptor

    def close(self) -> None:
        """Nothing, as above."""
