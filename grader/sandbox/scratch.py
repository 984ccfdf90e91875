"""Temporary folders of workers: made, and removed whatever a learner's code did to them."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile


def new_folder() -> str:
    """A temporary folder: home, working directory and scratch space of the workers of one notebook."""
    return tempfile.mkdtemp(prefix="attention-")


def remove_folder(folder: str) -> None:
    """Removes it if it is there, with what a learner's code closed or nested in it; follows no link and changes nothing outside."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
        return
    if os.path.isdir(folder) and not os.path.islink(folder):
        _open_and_flatten(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _open_and_flatten(folder: str) -> None:
    """Opens every folder below this one and moves it directly into it: nested a thousand deep, a removal would not reach the last."""
    waiting, count = [folder], 0
    while waiting:
        place = waiting.pop()
        inside: list[str] = []
        with contextlib.suppress(OSError):
            os.chmod(place, 0o700)
            inside = [entry.path for entry in os.scandir(place) if entry.is_dir(follow_symlinks=False)]
        for inner in inside:
            count += 1
            moved = os.path.join(folder, f"flat-{secrets.token_hex(4)}-{count}")
            with contextlib.suppress(OSError):
                os.chmod(inner, 0o700)  # a folder that may not be written cannot be moved
                os.rename(inner, moved)
                waiting.append(moved)
