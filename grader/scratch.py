"""Temporary folders of workers: made, and removed whatever a learner's code did to them."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from typing import Any


def new_folder() -> str:
    """A temporary folder: home, working directory and scratch space of the workers of one notebook."""
    return tempfile.mkdtemp(prefix="attention-")


def remove_folder(folder: str) -> None:
    """Removes it if it is there; what the learner's code made unwritable is made writable first, and nothing outside."""

    def again(function: Any, path: str, _: Any) -> None:
        with contextlib.suppress(OSError):
            if path != folder:
                os.chmod(os.path.dirname(path), 0o700)
            if not os.path.islink(path):  # chmod would follow it out of the folder
                os.chmod(path, 0o700)
            function(path)

    try:
        shutil.rmtree(folder, onerror=again)
    except RecursionError:
        _flatten(folder)
        shutil.rmtree(folder, onerror=again)


def _flatten(folder: str) -> None:
    """Moves every folder below this one directly into it: nested a thousand deep, a removal would not reach the last."""
    waiting, count = [folder], 0
    while waiting:
        place = waiting.pop()
        with contextlib.suppress(OSError):
            os.chmod(place, 0o700)
            for inner in [entry.path for entry in os.scandir(place) if entry.is_dir(follow_symlinks=False)]:
                count += 1
                moved = os.path.join(folder, f"flat-{secrets.token_hex(4)}-{count}")
                os.chmod(inner, 0o700)  # a folder that may not be written cannot be moved
                os.rename(inner, moved)
                waiting.append(moved)
