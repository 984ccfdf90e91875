"""Finds learners' notebooks and sees which were saved, by time stamps: that works on a network's drives, too."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

MAX_NOTEBOOKS = 200  # of one learner
NOT_LEARNERS = ("notebooks", "backups", "solutions", "__pycache__")

Stamp = tuple[int, int, int]


def notebooks(folder: Path) -> dict[Path, Stamp]:
    """The notebooks of one learner's folder and of its notebooks/, with what changes when they are saved.

    Raises: OSError where the folder itself cannot be read.
    """
    found = dict(_inside(folder))
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        found.update(_inside(folder / "notebooks"))
    if not found:
        inner = [path for path in _folders(folder) if path.name != "notebooks"]
        if len(inner) == 1:  # an archive's own top folder
            found.update(_inside(inner[0]))
    return dict(itertools.islice(sorted(found.items()), MAX_NOTEBOOKS))


def _inside(folder: Path) -> Iterator[tuple[Path, Stamp]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.lower().endswith(".ipynb") and not entry.name.startswith("."):
                with contextlib.suppress(OSError):  # gone since
                    if entry.is_file():
                        yield Path(entry.path), _stamp(entry.stat())


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_mtime_ns, status.st_size, status.st_ino


def _folders(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        return sorted(Path(entry.path) for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def learners(folder: Path) -> tuple[dict[Path, dict[Path, Stamp]], bool]:
    """Each learner's folder and notebooks, and whether the folder is one learner's own.

    A workshop's folder holds learners' folders and no notebook of its own, or two such folders or more.
    """
    mine = notebooks(folder)
    theirs = {}
    for inner in _folders(folder):
        if inner.name not in NOT_LEARNERS:
            with contextlib.suppress(OSError):
                theirs[inner] = notebooks(inner)
    several = sum(map(bool, theirs.values())) >= 2
    own = any(file.parent in (folder, folder / "notebooks") for file in mine)
    if several or (theirs and not own):
        return {place: files for place, files in theirs.items() if files}, False
    return ({folder: mine} if mine else {}), True


def stamp_of(file: Path) -> Stamp | None:
    """What changes when a file is saved; None where it is gone."""
    try:
        return _stamp(file.stat())
    except OSError:
        return None
