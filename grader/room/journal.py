"""A room's journal: JSON lines, each on its way to the disk before its sender is told that it was taken.

The first holds the code and the pages' keys; so a server that starts again opens the same room. The file is its owner's
alone to read: it holds names.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grader.room.message import new_code
from grader.util.errors import InputError
from grader.util.files import json_object, only_writer

FORMAT = 1


class RoomJournal:
    """A journal that is open for writing.

    code: of the room; key, key_with_names: of its pages' addresses; dropped: lines that could not be read.
    Raises: InputError where the file is no room's, or another process has it open; OSError.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.dropped = path, 0
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without a buffer: what could not be written must not follow later.
        self._file = os.fdopen(
            os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600), "r+b", 0
        )
        try:
            if not only_writer(self._file):
                raise InputError(f"another room already uses {path}; name another file with --journal.")
            self.lines = list(self._read())
            first = self._begun(self.lines.pop(0)) if self.lines else self._begin()
        except BaseException:
            self._file.close()
            raise
        self.code, self.key, self.key_with_names = first["code"], first["key"], first["key_with_names"]

    def add(self, line: dict[str, Any]) -> None:
        """Appends a line. Raises: OSError; then nothing of it is in the journal."""
        raw = json.dumps(line).encode() + b"\n"
        end = os.fstat(self._file.fileno()).st_size
        try:
            if self._file.write(raw) != len(raw):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        except OSError:
            self._file.truncate(end)
            raise

    def sync(self) -> None:
        """Has the system write all to the disk itself, for a power cut."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def _read(self) -> Iterator[dict[str, Any]]:
        """Its whole lines; what a kill tore off at the end is cut away."""
        whole = 0
        with self.path.open("rb") as file:
            for number, raw in enumerate(file):
                if not raw.endswith(b"\n"):
                    break
                whole += len(raw)
                line = json_object(raw)
                if line is not None:
                    yield line
                elif number == 0:
                    raise self._foreign()
                else:
                    self.dropped += 1
        if not whole and self.path.read_bytes()[:9] not in (b"", b'{"room": '):
            raise self._foreign()
        self._file.truncate(whole)

    def _begun(self, first: dict[str, Any]) -> dict[str, Any]:
        if first.get("room") != FORMAT or not all(
            isinstance(first.get(key), str) for key in ("code", "key", "key_with_names")
        ):
            raise self._foreign()
        return first

    def _begin(self) -> dict[str, Any]:
        first = {
            "room": FORMAT,
            "begun": time.time(),
            "code": new_code(),
            "key": secrets.token_urlsafe(12),
            "key_with_names": secrets.token_urlsafe(12),
        }
        self.add(first)
        self.sync()
        return first

    def _foreign(self) -> InputError:
        return InputError(f"{self.path} is not the journal of a room; name another file with --journal.")
