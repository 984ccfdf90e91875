"""Writing a file so that nobody ever meets half of it, and reading what may be anybody's."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import IO, Any

from grader.util import links

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def write_atomically(path: Path, content: str | bytes, private: bool = False) -> None:
    """Writes a file as `links.write` does, its folder too where that is missing; text is UTF-8 with '\\n'.

    A link's file is written, and the link stays. What is no ordinary file (a pipe, /dev/stdout) is written to directly.
    Raises: OSError, and then what was there is still there.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    links.write(path, path.parent, data, private=private)


def free_backup_path(path: Path) -> Path:
    """The first free name beside a file or folder for a copy of it."""
    backups = (path.with_name(f"{path.name}.backup-{number}") for number in count(1))
    return next(backup for backup in backups if not backup.exists())


def json_object(raw: bytes) -> dict[str, Any] | None:
    """What bytes hold where that is one JSON object, else None."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def lock_file(file: IO[Any], wait: bool = False) -> bool:
    """Makes this process the only one that may write to an open file; False: another one is. wait: until it is no more.

    The lock ends with the file. Where the system or the file system has none, nothing is done, and that counts as True.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, BlockingIOError)
    return True
