"""What lies in an archive or a folder, read without trusting it: no link is followed, no path leads out, nothing swells without end.

Nothing is extracted here. A member is a path and a way to read its bytes; where they go is decided elsewhere.
"""

from __future__ import annotations

import bz2
import calendar
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from grader.submission.discover import ARCHIVES, MACHINES
from grader.util import links
from grader.util.errors import InputError
from grader.util.names import printable

MOST_FILES = 50_000
MOST_BYTES = 4 << 30  # unpacked, all together
ONE_FILE = 256 << 20
DEEPEST = 16  # folders
_PACKED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, OSError, ValueError)


class _TooMuch(Exception):
    """An archive unpacks to more than anybody hands in."""


@dataclass(frozen=True)
class Member:
    """A file. parts: its path; changed: when, in seconds since 1970, 0 where the archive doesn't say. data(): its bytes, or OSError."""

    parts: tuple[str, ...]
    size: int
    changed: float
    data: Callable[[], bytes]

    @property
    def name(self) -> str:
        return printable("/".join(self.parts))


@dataclass
class Contents:
    """members: in their order. refused: (path, why) of what is not read. checkouts: folders that are a Git repository."""

    source: str
    members: list[Member] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    checkouts: set[tuple[str, ...]] = field(default_factory=set)
    bytes: int = 0

    def add(self, member: Member) -> None:
        if len(self.members) >= MOST_FILES:
            raise _TooMuch(f"more than {MOST_FILES} files")
        if member.size > ONE_FILE:
            self.refused.append((member.name, f"is larger than {ONE_FILE >> 20} MB"))
            return
        self.bytes += member.size
        if self.bytes > MOST_BYTES:
            raise _TooMuch(f"more than {MOST_BYTES >> 30} GB")
        self.members.append(member)


def contents(path: Path) -> Contents:
    """What a folder or an archive (zip, tar, tar.gz, tar.bz2, tar.xz) holds. The archive has to stay while members are read.

    Raises: InputError where there is nothing of the kind, the file is no archive, is locked, or unpacks to more than the limits.
    """
    said = printable(str(path))
    if not path.exists():
        raise InputError(f"there is no {said}.")
    if not path.is_dir() and not path.is_file():
        raise InputError(f"{said} is neither a folder nor a file.")
    found = Contents(path.name)
    try:
        if path.is_dir():
            _folder(path, path, found)
        else:
            _archive(path.open("rb"), said, found)
    except _TooMuch as error:
        raise InputError(f"{said} holds {error}, which is more than the limit; nothing was collected. If you trust it, unpack it "
                         "yourself, and collect its folders one by one.") from None  # fmt: skip
    return found


def inner(member: Member, left: Contents) -> Contents:
    """What an archive that a learner handed in holds. left: of the archive that it is in, which its size counts for.

    Raises: InputError as contents() does.
    """
    found = Contents(member.name, bytes=left.bytes)
    try:
        _archive(io.BytesIO(member.data()), member.name, found)
    except _TooMuch as error:
        raise InputError(f"it holds {error}") from None
    except OSError as error:
        raise InputError(f"it can't be read ({error})") from None
    left.bytes = found.bytes
    return found


def is_archive(name: str) -> bool:
    return name.lower().endswith(ARCHIVES)


def _archive(file: IO[bytes], said: str, found: Contents) -> None:
    begins = file.read(8)
    file.seek(0)
    try:
        if begins.startswith(b"PK"):
            _zip(zipfile.ZipFile(file), said, found)
            return
        unpack = next((each for mark, each in _PACKED.items() if begins.startswith(mark)), None)
        _tar(_Bounded(unpack(file) if unpack else file), found)
    except DAMAGED as error:
        if found.members or found.refused:
            raise InputError(f"{said} is damaged ({error}); download it again. Nothing was collected.") from None
        raise InputError(f"{said} is not an archive that can be read; a zip file, a tar file or a folder is expected. "
                         "If it was downloaded, download it again.") from None  # fmt: skip


def _zip(archive: zipfile.ZipFile, said: str, found: Contents) -> None:
    for about in archive.infolist():
        if about.flag_bits & 1:
            raise InputError(f"{said} is locked with a password; unpack it, and collect the folder.")
        if about.is_dir():
            continue
        name = _decoded(about)
        changed = calendar.timegm((*about.date_time, 0, 0, 0)) if about.date_time[0] > 1980 else 0  # 1980: not told
        _take(name, about.file_size, changed, _reader(archive, about), found, link=stat.S_ISLNK(about.external_attr >> 16))


def _decoded(about: zipfile.ZipInfo) -> str:
    """The name. Where the archive does not say that it is UTF-8, Python reads DOS's letters; Canvas writes UTF-8 and doesn't say so."""
    if about.flag_bits & 0x800:
        return about.filename
    try:
        return about.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return about.filename


def _reader(archive: zipfile.ZipFile, about: zipfile.ZipInfo) -> Callable[[], bytes]:
    def data() -> bytes:
        try:
            with archive.open(about) as stream:
                return stream.read(ONE_FILE)
        except DAMAGED as error:
            raise OSError(f"damaged: {error}") from None

    return data


def _tar(stream: Any, found: Contents) -> None:
    archive = tarfile.open(fileobj=stream, mode="r:")
    for about in archive:
        if about.isdir():
            continue
        if not about.isreg() and not about.islnk() and not about.issym():
            found.refused.append((printable(about.name), "is not a regular file"))
            continue
        _take(about.name, about.size, about.mtime, _extractor(archive, about), found, link=not about.isreg())


def _extractor(archive: tarfile.TarFile, about: tarfile.TarInfo) -> Callable[[], bytes]:
    def data() -> bytes:
        try:
            stream = archive.extractfile(about)
            return stream.read(ONE_FILE) if stream else b""
        except DAMAGED as error:
            raise OSError(f"damaged: {error}") from None

    return data


class _Bounded(io.RawIOBase):
    """A stream that ends the reading where a header asks for more than any file, or lies further in than anything may."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= ONE_FILE + 1024:
            raise _TooMuch(f"a part of more than {ONE_FILE >> 20} MB")
        return self._stream.read(size)

    def seek(self, to: int, whence: int = 0) -> int:
        if whence == 0 and to > MOST_BYTES:
            raise _TooMuch(f"more than {MOST_BYTES >> 30} GB")
        return self._stream.seek(to, whence)

    def tell(self) -> int:
        return self._stream.tell()


def _take(name: str, size: int, changed: float, data: Callable[[], bytes], found: Contents, link: bool) -> None:
    """Adds a member of an archive, or says why it isn't one."""
    parts = tuple(part for part in name.replace("\\", "/").split("/") if part not in ("", "."))
    if not parts:
        return
    if name.startswith(("/", "\\")) or ".." in parts or parts[0][1:2] == ":":
        found.refused.append((printable(name), "has a path that leads out of the archive"))
    elif link:
        found.refused.append((printable(name), "is a link; links are not followed"))
    elif len(parts) > DEEPEST:
        found.refused.append((printable(name), f"is more than {DEEPEST} folders deep"))
    elif ".git" in parts:
        found.checkouts.add(parts[: parts.index(".git")])
    elif not any(_of_a_machine(part) for part in parts):
        found.add(Member(parts, size, changed, data))


def _of_a_machine(part: str) -> bool:
    """Whether a file or folder is a program's own: hidden, or one of those that no learner writes."""
    return part.startswith(".") or part.lower() in MACHINES


def _folder(folder: Path, top: Path, found: Contents) -> None:
    for path, about in _listed(folder, found):
        parts = path.relative_to(top).parts
        if path.name == ".git":
            found.checkouts.add(parts[:-1])
        elif _of_a_machine(path.name):
            continue
        elif links.is_link(path):
            found.refused.append((printable("/".join(parts)), "is a link; links are not followed"))
        elif stat.S_ISDIR(about.st_mode):
            if len(parts) > DEEPEST:
                found.refused.append((printable("/".join(parts)), f"is more than {DEEPEST} folders deep"))
            else:
                _folder(path, top, found)
        elif not stat.S_ISREG(about.st_mode):
            found.refused.append((printable("/".join(parts)), "is not a regular file"))
        else:
            found.add(Member(parts, about.st_size, about.st_mtime, _opener(path, top)))


def _listed(folder: Path, found: Contents) -> Iterator[tuple[Path, os.stat_result]]:
    try:
        for name in sorted(os.listdir(folder)):
            yield folder / name, os.lstat(folder / name)
    except OSError as error:
        found.refused.append((printable(str(error.filename or folder)), f"can't be opened ({error.strerror})"))


def _opener(path: Path, top: Path) -> Callable[[], bytes]:
    def data() -> bytes:
        read = links.read(path, top, ONE_FILE).data
        if read is None:
            raise OSError("it changed while it was being read")
        return read

    return data
