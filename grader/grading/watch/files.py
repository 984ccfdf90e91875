"""Finds learners' notebooks and sees which were saved, by time stamps: that works on a network's drives, too."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from grader.submission.discover import MACHINES, Found, find
from grader.util import links
from grader.util.names import NOBODYS, printable

NOT_LEARNERS = ("notebooks", *NOBODYS, *MACHINES)

Stamp = tuple[int, int, int]


def _stamps(found: Found) -> dict[Path, Stamp]:
    stamps = {file: stamp_of(file) for file in sorted(found.files)}
    return {file: stamp for file, stamp in stamps.items() if stamp is not None}


def learners(folder: Path) -> tuple[dict[Path, dict[Path, Stamp]], bool, list[str]]:
    """Each learner's folder and notebooks; whether the folder is one learner's own; sentences on links, which none is
    followed of.

    A workshop's folder holds learners' folders and no notebook of its own, or two such folders or more.
    """
    mine = find(folder, deepest=0)
    theirs, told = {}, mine.links
    for inner in sorted(
        folder / name for name in os.listdir(folder) if not name.startswith(".") and name not in NOT_LEARNERS
    ):
        if os.path.isdir(inner) and not links.is_link(inner):
            with contextlib.suppress(OSError):
                found = find(inner)
                theirs[inner] = _stamps(found)
                told = [*told, *(f"{printable(inner.name)}: {note}" for note in found.links)]
    several = sum(map(bool, theirs.values())) >= 2
    if several or (theirs and not mine.files):
        return {place: files for place, files in theirs.items() if files}, False, told
    found = find(folder)
    files = _stamps(found)
    return ({folder: files} if files else {}), True, found.links


def stamp_of(file: Path) -> Stamp | None:
    """What changes when a file is saved; None where it is gone, or is no regular file."""
    try:
        status = file.lstat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino) if stat.S_ISREG(status.st_mode) else None
