"""Writing a file so that nobody ever meets half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file in one step, its folder too where that is missing; text is UTF-8 with '\\n'.

    What is no ordinary file (a pipe, /dev/stdout) is written to directly. Raises: OSError, and then what was
    there is still there.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    path = path.resolve()  # a link stays a link
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.chmod(scratch, path.stat().st_mode & 0o777 if path.exists() else 0o644)
        os.replace(scratch, path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise
