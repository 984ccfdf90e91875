"""Finds learners' notebooks and sees which were saved, by time stamps: that works on a network's drives, too."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from grader.finding import PASSED_OVER, find

NOT_LEARNERS = ("notebooks", *PASSED_OVER)

Stamp = tuple[int, int, int]


def notebooks(folder: Path) -> dict[Path, Stamp]:
    """The notebooks of one learner's folder, with what changes when they are saved.

    Raises: OSError where the folder itself cannot be read.
    """
    found = {file: stamp_of(file) for file in find(folder).files if file.is_file()}
    return {file: stamp for file, stamp in sorted(found.items()) if stamp is not None}


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
