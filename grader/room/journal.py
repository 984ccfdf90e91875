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
from pathlib import Path
from typing import Any

from grader.room.message import new_code
from grader.util.errors import InputError
from grader.util.files import json_object, only_writer

FORMAT = 1
START = b'{"room": '
KEYS = ("code", "key", "key_with_names")


class RoomJournal:
    """A journal that is open for writing.

    code: of the room; key, key_with_names: of its pages' addresses; dropped: lines that could not be read.
    Raises: InputError where the file is no room's, or another process has it open; OSError.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.dropped = path, 0
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without a buffer: what could not be written must not follow later.
        self._file = open(path, "a+b", buffering=0, opener=lambda name, flags: os.open(name, flags, 0o600))
        try:
            if not only_writer(self._file):
                raise InputError(f"another room already uses {path}; name another file with --journal.")
            self.lines = self._read()
            first = self.lines.pop(0) if self.lines else self._begin()
            if first.get("room") != FORMAT or not all(isinstance(first.get(key), str) for key in KEYS):
                raise self._foreign()
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

    def _read(self) -> list[dict[str, Any]]:
        """Its whole lines; what a kill tore off at the end is cut away."""
        self._file.seek(0)
        if self._file.read(len(START)) not in (b"", START):
            raise self._foreign()
        self._file.seek(0)
        *whole, torn = self._file.read().split(b"\n")
        lines = [json_object(line) for line in whole]
        if lines and lines[0] is None:
            raise self._foreign()
        self.dropped = lines.count(None)
        self._file.truncate(self._file.tell() - len(torn))
        return [line for line in lines if line is not None]

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
