"""Writing a file so that nobody ever meets half of it, and reading what may be anybody's."""

from __future__ import annotations

import json
import os
import secrets
from functools import partial
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def write_atomically(path: Path, content: str | bytes, like: Path | None = None, private: bool = False) -> None:
    """Writes a file in one step, its folder too where that is missing; text is UTF-8 with '\\n'.

    A new file is open to whom the umask lets, one that was there to whom it was. What is no ordinary file (a pipe,
    /dev/stdout) is written to directly. like: a file as open as the new one is to be, where that is a copy of it.
    private: whether nobody but its owner may ever read it, whatever was there.
    Raises: OSError, and then what was there is still there.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    path = path.resolve()  # a link stays a link
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name[:50]}.{secrets.token_hex(8)}")
    try:
        with open(scratch, "xb", opener=partial(os.open, mode=0o600 if private else 0o666)) as file:
            model = path if path.exists() else like
            if model is not None and not private:
                scratch.chmod(model.stat().st_mode & 0o777)  # before anything is in it
            file.write(data)
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def free_backup_path(path: Path) -> Path:
    """The first free name beside a file or folder for a copy of it."""
    number = 1
    while (backup := path.with_name(f"{path.name}.backup-{number}")).exists():
        number += 1
    return backup


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
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
