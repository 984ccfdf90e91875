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
    pending, count = [folder], 0
    while pending:
        path = pending.pop()
        subfolders: list[str] = []
        with contextlib.suppress(OSError):
            os.chmod(path, 0o700)
            subfolders = [entry.path for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False)]
        for subfolder in subfolders:
            count += 1
            target = os.path.join(folder, f"flat-{secrets.token_hex(4)}-{count}")
            with contextlib.suppress(OSError):
                os.chmod(subfolder, 0o700)  # a folder that may not be written cannot be moved
                os.rename(subfolder, target)
                pending.append(target)
