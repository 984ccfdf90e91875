"""Who is in a class's folder, and what each handed in, as bytes that can travel to another process or machine.

Strangers' files are opened here and nothing in them is understood: submission/ipynb.py does that, where they are graded.
"""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.submission import platforms
from grader.submission.discover import COLLECTED, MACHINES, POLICY, FolderSearch, in_place_of_notebooks, save_order
from grader.submission.ipynb import MAX_FILE_BYTES
from grader.util import links
from grader.util.errors import InputError
from grader.util.names import BACKUPS, NOBODYS, labels, of_learner, printable, same_name

MOST_BYTES = 128 << 20  # of one submission's notebooks together
NOT_LEARNERS = (*MACHINES, *NOBODYS, POLICY)  # in lower case, directly in a class's folder


@dataclass(frozen=True)
class RosterEntry:
    """One learner's place in the folder. key: the entry's name as it is; name: for reports; note: why it isn't read."""

    key: str
    name: str
    path: Path
    note: str = ""


@dataclass(frozen=True)
class Packed:
    """One file. place: its path within the submission; data: None for a file too large or of no ordinary kind."""

    place: tuple[str, ...]
    data: bytes | None
    size: int
    changed_ns: int


@dataclass(frozen=True)
class PackedSubmission:
    """A whole submission. alone: one notebook, no folder; digest: changes with whatever a result could depend on.

    notes: on what was not read; attention: those of them that whoever grades should look at.
    """

    key: str
    name: str
    path: str
    alone: bool
    files: tuple[Packed, ...]
    notes: tuple[str, ...] = ()
    attention: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        made = hashlib.sha256()
        order = save_order(file.changed_ns for file in self.files)  # which was saved last, not when
        for file in self.files:
            about = ("/".join(file.place), file.size, file.data is None, order[file.changed_ns])
            made.update(repr(about).encode() + hashlib.sha256(file.data or b"").digest())
        made.update(repr((self.name, self.alone, self.notes)).encode())
        return made.hexdigest()[:32]


def entries(folder: Path) -> tuple[list[RosterEntry], list[str]]:
    """The learners of a class's folder, sorted by name, and the names of what was passed over.

    Raises: InputError where there is no such folder, none of its entries can be a learner's, or they are as a learning
    platform or an archive has them.
    """
    said = printable(str(folder))
    try:
        listed = sorted(os.listdir(folder))
    except FileNotFoundError:
        raise InputError(f"there is no folder {said}.") from None
    except NotADirectoryError:
        packed = platforms.packed([folder.name])
        raise InputError(
            f"{said} is an archive, which is not opened: `grader collect ARCHIVE --to collected` sorts it into "
            "one folder per learner; name that."
            if packed
            else f"{said} is a file; a folder with one subfolder or notebook per learner is expected. "
            "`grader grade` takes a single notebook."
        ) from None
    except OSError as error:
        raise InputError(f"{said} can't be opened: {error.strerror}.") from None
    refused = platforms.refusal(listed) or platforms.packed([key for key in listed if not os.path.isdir(folder / key)])
    if refused:
        raise InputError(f"{said} {refused}")
    found = [made for key in listed if (made := _entry(folder / key, key))]
    taken = {one.key for one in found}
    passed = [printable(key) for key in listed if key not in taken and not key.startswith(".")]
    if not found:
        raise InputError(f"{said} contains no learner; expected one subfolder or one .ipynb file for each.")
    found.sort(key=lambda one: (unicodedata.normalize("NFKC", one.name).casefold(), one.key))
    return found, [name for name in passed if name.lower() not in (*MACHINES, BACKUPS, COLLECTED, POLICY)]


def _entry(path: Path, key: str) -> RosterEntry | None:
    if key.startswith(".") or key.lower() in NOT_LEARNERS:
        return None
    notebook = path.suffix.lower() == ".ipynb"
    name = of_learner(path.stem if notebook else key)
    if links.is_link(path):
        note = f"{links.sentence(path, printable(key))}; links are not followed, so it was not read."
        return RosterEntry(key, name, path, note) if notebook or not os.path.isfile(path) else None
    return RosterEntry(key, name, path) if notebook or os.path.isdir(path) else None


def same_names(found: Sequence[RosterEntry]) -> list[str]:
    """A sentence on each group of learners whose names a grade book may take for one, and what stands for them."""
    names = [one.name for one in found]
    shown_as = labels(names)
    return [
        f"{', '.join(names[at] for at in group)} differ at most in case, spaces, or invisible characters; the reports "
        f"call them {', '.join(shown_as[at] for at in group)}: find out whose work each one is before you import grades."
        for group in same_name(names)
    ]


def pack(entry: RosterEntry) -> PackedSubmission:
    """Reads what an entry holds; whatever can't be read is a note. Never raises for what lies there."""
    if entry.note:
        return PackedSubmission(entry.key, entry.name, str(entry.path), False, (), (entry.note,), (entry.note,))
    files: list[Packed] = []
    paths: list[Path] = []
    notes: list[str] = []
    expected: list[str] = []
    try:
        paths, notes, expected = _notebooks(entry.path)
    except OSError as error:
        notes = [f"{printable(entry.name)} cannot be opened ({error.strerror}); it was not read."]
    left = MOST_BYTES
    for path in paths:
        place = (path.name,) if path == entry.path else path.relative_to(entry.path).parts
        name = printable("/".join(place))
        try:
            content = links.read(path, entry.path.parent, min(MAX_FILE_BYTES, left))
        except links.Linked as error:
            notes.append(f"{error} It was not read.")
            continue
        except OSError as error:
            notes.append(f"{name} cannot be opened ({error.strerror}); it was not read.")
            continue
        file = _packed(place, content)
        if file is None:
            notes.append(f"{name} was not read: the notebooks together have more than {MOST_BYTES >> 20} MB.")
            continue
        left -= len(file.data or b"")
        files.append(file)
        notes += links.hard(name, content.status)
    alone = paths == [entry.path] and any(file.size >= 0 for file in files)
    attention = tuple(note for note in notes if note not in expected)
    return PackedSubmission(entry.key, entry.name, str(entry.path), alone, tuple(files), tuple(notes), attention)


def _notebooks(path: Path) -> tuple[list[Path], list[str], list[str]]:
    """Those of an entry, the notes on what was passed over, and which of these were to be expected."""
    if not os.path.isdir(path):
        return [path], [], []
    found = FolderSearch(path)
    instead = "" if found.files or found.notes else in_place_of_notebooks(path)
    return found.files, [*found.notes, *filter(None, [instead])], found.expected


def _packed(place: tuple[str, ...], content: links.Content) -> Packed | None:
    """A file to send; None where there is no room left for it."""
    about = content.status
    if not stat.S_ISREG(about.st_mode):
        return Packed(place, None, -1, about.st_mtime_ns)
    if about.st_size > MAX_FILE_BYTES:  # said so where it is read; its bytes need not travel
        return Packed(place, None, about.st_size, about.st_mtime_ns)
    return None if content.data is None else Packed(place, content.data, len(content.data), about.st_mtime_ns)


def unpack(packed: PackedSubmission, folder: Path) -> Path | None:
    """Lays a submission out in an empty folder. Returns: what to grade, None where no notebook was handed in."""
    for file in packed.files:
        if any(part in ("", ".", "..") or os.sep in part for part in file.place):
            raise ValueError(f"not a place within a submission: {file.place!r}")
        path = folder.joinpath(*file.place)
        path.parent.mkdir(parents=True, exist_ok=True)
        _lay(file, path)
    if not packed.files:
        return None
    return folder.joinpath(*packed.files[0].place) if packed.alone else folder


def _lay(file: Packed, path: Path) -> None:
    if file.data is not None:
        path.write_bytes(file.data)
    elif file.size >= 0:
        with path.open("wb") as stream:
            stream.truncate(file.size)  # all holes: its size is all that is looked at
    elif hasattr(os, "mkfifo"):
        os.mkfifo(path)
        return
    os.utime(path, ns=(file.changed_ns, file.changed_ns))
