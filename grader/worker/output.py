"""Where a learner's output goes while it is judged: nowhere. It is counted, so that a report can say that there was much."""

from __future__ import annotations

import io

MUCH_BYTES = 1_000_000  # more than this is worth a note: nobody reads it, and it takes time

written_bytes = 0  # by this process, to all streams of `nowhere` together


class _Nowhere(io.RawIOBase):
    """Takes any number of bytes at once: a pipe that nobody empties would stop a print in its middle."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def write(self, data) -> int:  # bytes, or whatever has their buffer
        global written_bytes
        size = memoryview(data).nbytes
        written_bytes += size
        return size

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return super().fileno() if self._descriptor is None else self._descriptor

    def close(self) -> None:
        """Nothing: what a learner's code closes is open for the next case."""


def nowhere(descriptor: int | None = None) -> io.TextIOWrapper:
    """A text stream with a `buffer`, as Python's own have. descriptor: what its `fileno` says; without one, it has none."""
    return io.TextIOWrapper(_Nowhere(descriptor), encoding="utf-8", errors="replace", write_through=True)
