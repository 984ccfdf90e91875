"""What lies in an archive or a folder, read without trusting it: no link is followed, no path leads out, nothing swells without end.

A member is a path and a way to read its bytes; where they go is decided elsewhere. Archives are opened by limited processes: those
downloaded by one with the patience that a whole class takes, those that a learner handed in by one of that learner's own.
"""

from __future__ import annotations

import itertools
import json
import os
import stat
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from grader.sandbox.isolation import SandboxError
from grader.sandbox.reader import Reader
from grader.sandbox.scratch import new_folder, remove_folder
from grader.submission.archives import MAX_DEPTH, Quota, plausible_time
from grader.submission.discover import is_from_tool
from grader.submission.ipynb import Unreadable
from grader.util import links
from grader.util.errors import InputError
from grader.util.names import printable

# Of a download: files, characters of their paths, bytes.
MOST_FILES, MOST_NAMES, MOST_BYTES = 200_000, 64 << 20, 64 << 30
ONE_FILE = 256 << 20
LEARNER_FILES, LEARNER_NAMES, LEARNER_BYTES = 10_000, 1 << 20, 1 << 30  # of all that one learner handed in
PATIENCE = 30  # how many times as long a whole class may take as one learner
MOST_REFUSALS = 20  # of one learner's archive; nobody reads more
_ADVICE = {  # by what is the matter with a download
    "is damaged": "; download it again. Nothing was collected.",
    "is locked": "; unpack it, and collect the folder.",
    "is not": "; a zip file, a tar file or a folder is expected. If it was downloaded, download it again.",
    "": ", which is more than the limit; nothing was collected. If you trust it, unpack it yourself, and collect its folders one by one.",
}


@dataclass(frozen=True)
class Member:
    """A file. parts: its path; changed: when, in seconds since 1970, 0 where the archive doesn't say. data(): its bytes, or OSError.

    archive: the name of the learner's archive that it is in, '' for none.
    """

    parts: tuple[str, ...]
    size: int
    changed: float
    data: Callable[[], bytes]
    archive: str = ""

    @property
    def name(self) -> str:
        return self.archive + ": " * bool(self.archive) + printable("/".join(self.parts))


@dataclass
class Contents:
    """members: in their order. refusals: (path, reason) of what is not read. checkouts: folders that are a Git repository.

    folder: that it is; None of an archive.
    """

    source: str
    members: list[Member] = field(default_factory=list)
    refusals: list[tuple[str, str]] = field(default_factory=list)
    checkouts: set[tuple[str, ...]] = field(default_factory=set)
    folder: Path | None = None


class Sources(ExitStack):
    """Opens folders and archives. A context manager: members can be read until it ends, those of a learner's archive until begin()."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = new_folder()
        self.callback(remove_folder, self._folder)
        self._numbers = itertools.count()
        self._class: Reader | None = None
        self._learner: Reader | None = None

    def contents(self, path: Path) -> Contents:
        """What a folder or an archive (zip, tar, tar.gz, tar.bz2, tar.xz) holds. The archive has to stay while members are read.

        Raises: InputError where there is nothing of the kind, the file is no archive, is locked, or holds more than the limits.
        """
        name = printable(str(path))
        if not path.exists():
            raise InputError(f"there is no {name}.")
        if not path.is_dir() and not path.is_file():
            raise InputError(f"{name} is neither a folder nor a file.")
        try:
            if path.is_dir():
                contents = Contents(path.name, folder=path)
                _add_folder(path, path, contents)
                return contents
            self._class = self._class or self.enter_context(Reader(PATIENCE))
            quota = Quota(MOST_FILES, MOST_NAMES, MOST_BYTES, ONE_FILE)
            return Contents(path.name, *self._list(self._class, str(path.absolute()), quota))
        except Unreadable as error:
            advice = next(advice for begins, advice in _ADVICE.items() if error.summary.startswith(begins))
            raise InputError(f"{name} {error.summary}{advice}") from None
        except (SandboxError, OSError) as error:
            raise InputError(f"{name} was not opened: {error}. Nothing was collected; try again.") from None

    def begin(self) -> None:
        """Another learner's archives follow."""
        if self._learner is not None:
            self._learner.begin()
            for name in os.listdir(self._folder):
                os.unlink(os.path.join(self._folder, name))

    def inner(self, member: Member) -> Contents:
        """What an archive that a learner handed in holds. Raises: InputError, whose sentence goes on after 'it'."""
        try:
            self._learner = self._learner or self.enter_context(Reader())
            path = self._scratch()
            Path(path).write_bytes(member.data())
            quota = Quota(LEARNER_FILES, LEARNER_NAMES, LEARNER_BYTES, ONE_FILE)
            contents = Contents(member.name, *self._list(self._learner, path, quota, member.name))
        except Unreadable as error:
            raise InputError(error.summary) from None
        except (OSError, SandboxError) as error:
            raise InputError(f"can't be read ({error})") from None
        if rest := contents.refusals[MOST_REFUSALS:]:
            contents.refusals[MOST_REFUSALS:] = [(f"and {len(rest)} more", "are not read for such reasons")]
        return contents

    def _list(self, reader: Reader, path: str, quota: Quota, archive: str = "") -> tuple[Any, ...]:
        """Members, what is refused, and checkouts. Raises: Unreadable, SandboxError."""
        output = self._scratch()
        reader.archive(path, quota, output)
        with open(output, encoding="ascii") as file:
            entries, refusals, checkouts = json.load(file)
        os.unlink(output)
        members = [
            Member(tuple(parts), size, changed, partial(self._data, reader, path, quota, index), archive)
            for index, (parts, size, changed) in enumerate(entries)
        ]
        return members, [(place, reason) for place, reason in refusals], set(map(tuple, checkouts))

    def _data(self, reader: Reader, path: str, quota: Quota, index: int) -> bytes:
        output = Path(self._scratch())
        try:
            reader.member(path, quota, index, str(output))
            return output.read_bytes()
        except (Unreadable, SandboxError) as error:
            raise OSError(error.summary if isinstance(error, Unreadable) else str(error)) from None
        finally:
            output.unlink(missing_ok=True)

    def _scratch(self) -> str:
        return os.path.join(self._folder, str(next(self._numbers)))


def _add_folder(folder: Path, top: Path, contents: Contents, room: list[int] | None = None) -> None:
    """room: how many files more a learner's checkout may hold; None outside of one. Raises: Unreadable where there are too many in all."""
    entries = []
    try:
        for name in sorted(os.listdir(folder)):
            entries.append((folder / name, os.lstat(folder / name)))
    except OSError as error:
        contents.refusals.append((printable(str(error.filename or folder)), f"can't be opened ({error.strerror})"))
    if any(path.name == ".git" for path, _ in entries):
        contents.checkouts.add(folder.relative_to(top).parts)
        room = room or [LEARNER_FILES]
    for path, status in entries:
        parts, reason = path.relative_to(top).parts, ""
        if is_from_tool(path.name):
            continue
        if room is not None and room[0] <= 0:
            if room[0] == 0:  # said once
                reason = f"and what follows is not read: a checkout may hold {LEARNER_FILES:,} files"
                contents.refusals.append((printable("/".join(parts)), reason))
            room[0] = -1
            return
        if links.is_link(path):
            reason = "is a link; links are not followed"
        elif stat.S_ISDIR(status.st_mode):
            if len(parts) <= MAX_DEPTH:
                _add_folder(path, top, contents, room)
                continue
            reason = f"is more than {MAX_DEPTH} folders deep"
        elif not stat.S_ISREG(status.st_mode):
            reason = "is not a regular file"
        elif status.st_size > ONE_FILE:
            reason = f"is larger than {ONE_FILE >> 20} MB"
        elif len(contents.members) >= MOST_FILES:
            raise Unreadable(f"holds more than {MOST_FILES:,} files", "")
        else:
            changed = plausible_time(status.st_mtime)
            contents.members.append(Member(parts, status.st_size, changed, partial(_data, path, top)))
            if room is not None:
                room[0] -= 1
            continue
        contents.refusals.append((printable("/".join(parts)), reason))


def _data(path: Path, top: Path) -> bytes:
    data = links.read(path, top, ONE_FILE).data
    if data is None:
        raise OSError("it changed while it was being read")
    return data
