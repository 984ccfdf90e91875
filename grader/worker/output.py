"""Where a learner's output goes while it is judged: nowhere. It is counted, so that a report can say that there was much.

Its beginning is kept for one case at a time: what was printed beside a wrong result is shown with it.
"""

from __future__ import annotations

import io

MUCH_BYTES = 1_000_000  # more than this is worth a note: nobody reads it, and it takes time

MOST_KEPT = 1_500  # characters of what one case prints

_kept = ""
written_bytes = 0  # by this process, to all streams of `nowhere` together; of text, its characters


def _count(size: int) -> int:
    global written_bytes
    written_bytes += size
    return size


def forget() -> None:
    """Begins another case."""
    global _kept
    _kept = ""


def kept() -> str:
    """The beginning of what was printed since."""
    return _kept


def _keep(text: str) -> None:
    global _kept
    if len(_kept) < MOST_KEPT:
        _kept += text[: MOST_KEPT - len(_kept)]


class _NoBytes(io.RawIOBase):
    """Takes any number of bytes at once: a pipe that nobody empties would stop a print in its middle."""

    def write(self, data) -> int:  # bytes, or whatever has their buffer
        return _count(memoryview(data).nbytes)

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing: what a learner's code closes is open for the next case."""


class _NoText(io.TextIOBase):
    """Takes text as it is: to encode a print of 2 GB would take as much memory again."""

    encoding, errors = "utf-8", "replace"

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        self.buffer = _NoBytes()

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        _keep(text)
        return _count(len(text))

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return super().fileno() if self._descriptor is None else self._descriptor

    def close(self) -> None:
        """Nothing, as above."""


def nowhere(descriptor: int | None = None) -> io.TextIOBase:
    """A text stream with a `buffer`, as Python's own have. descriptor: what its `fileno` says; without one, it has none."""
    return _NoText(descriptor)
