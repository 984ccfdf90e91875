"""What an archive holds (zip, tar, tar.gz, tar.bz2, tar.xz), read without trusting it: no path leads out, no link is one, nothing swells.

It may be made to take all time or memory of whoever opens it, so reader.py has a limited process do so.
"""

from __future__ import annotations

import bz2
import calendar
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any, NamedTuple

from grader.submission.discover import is_from_tool
from grader.submission.ipynb import Unreadable
from grader.util.names import printable

MAX_DEPTH = 16  # folders
MAX_PATH = 1_000  # characters of one path
MAX_TIME = 4e9  # seconds since 1970; a time beyond is nobody's
_CHUNK = 1 << 20
_OPENERS: dict[bytes, Callable[[Any], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
NO_ARCHIVE = "is not an archive that can be read"


class Quota(NamedTuple):
    """How much one archive may hold: entries of any kind, characters of all their paths, bytes unpacked, and of one file."""

    entries: int
    names: int
    bytes: int
    one_file: int


@contextmanager
def _as_unreadable(sentence: Callable[[str], str]) -> Iterator[None]:
    """The parsers raise whatever a stranger's bytes lead them to. sentence: what is then said, of the error's words."""
    try:
        yield
    except (Unreadable, MemoryError, RecursionError):
        raise
    except Exception as error:
        raise Unreadable(sentence(printable(str(error)) or type(error).__name__), "") from None


class Archive:
    """An open archive. Raises: Unreadable, and MemoryError or RecursionError, whatever the file holds.

    entries: (path's parts, bytes, time) of each file; time: of its last change in seconds since 1970, 0 where the archive doesn't say.
    refusals: (path, why) of what is not read. checkouts: folders that are a Git repository.
    """

    def __init__(self, path: str, quota: Quota) -> None:
        self.entries: list[tuple[tuple[str, ...], int, float]] = []
        self.refusals: list[tuple[str, str]] = []
        self.checkouts: set[tuple[str, ...]] = set()
        self._streams: list[Callable[[], IO[bytes]]] = []  # parallel to entries
        self._quota = quota
        self._count = self._names = self._bytes = 0
        with _as_unreadable(lambda error: f"is damaged ({error})" if self.entries or self.refusals else NO_ARCHIVE):
            self._list(open(path, "rb"))

    def copy(self, index: int, destination: str) -> int:
        """Writes the file of an entry. Returns its size. Raises as the class does."""
        size, limit = 0, self._quota.one_file
        with _as_unreadable("damaged: {}".format), self._streams[index]() as stream, open(destination, "wb") as file:
            while chunk := stream.read(_CHUNK):
                size += len(chunk)
                if size > limit:
                    raise Unreadable(f"larger than {limit >> 20} MB", "")
                file.write(chunk)
        return size

    def _list(self, file: IO[bytes]) -> None:
        header = file.read(8)
        file.seek(0)
        if header.startswith(b"PK"):
            return self._list_zip(zipfile.ZipFile(file))
        unpack = next((opener for mark, opener in _OPENERS.items() if header.startswith(mark)), None)
        self._list_tar(_BoundedStream(unpack(file) if unpack else file, self._quota))

    def _list_zip(self, archive: zipfile.ZipFile) -> None:
        has_locked_files = False
        for info in archive.infolist():
            name = _decode_name(info)
            self._spend(name)
            if info.flag_bits & 1:
                has_locked_files = True
                self.refusals.append((printable(name), "is locked with a password"))
            elif not info.is_dir():
                content = partial(archive.open, info)
                self._take(name, info.file_size, _change_time(info), content, stat.S_ISLNK(info.external_attr >> 16))
        if has_locked_files and not self.entries:
            raise Unreadable("is locked with a password", "")

    def _list_tar(self, stream: Any) -> None:
        archive = tarfile.open(fileobj=stream, mode="r:")
        for info in archive:
            self._spend(info.name)
            if info.size < 0:
                raise ValueError("a file of less than no bytes")  # after which the same entry would follow for ever
            if info.isreg() or info.islnk() or info.issym():
                content = partial(archive.extractfile, info)
                self._take(info.name, info.size, info.mtime, content, is_link=not info.isreg())
            elif not info.isdir():
                self.refusals.append((printable(info.name), "is not a regular file"))

    def _spend(self, name: str) -> None:
        self._count += 1
        self._names += len(name)
        if self._count > self._quota.entries:
            raise Unreadable(f"holds more than {self._quota.entries:,} files", "")
        if self._names > self._quota.names:
            raise Unreadable(f"holds names of more than {self._quota.names:,} characters", "")

    def _take(self, name: str, size: int, time: float, stream: Callable[[], Any], is_link: bool) -> None:
        """Adds a file, or says why it isn't one."""
        name = name.encode("utf-8", "replace").decode()  # half a letter is none, and cannot be written anywhere
        parts = tuple(part for part in name.replace("\\", "/").split("/", 2 * MAX_PATH) if part not in ("", "."))
        if not parts:
            return
        if reason := self._refusal(name, parts, size, is_link):
            self.refusals.append((printable(name), reason))
        elif ".git" in parts:
            self.checkouts.add(parts[: parts.index(".git")])
        elif not any(map(is_from_tool, parts)):
            self._bytes += size
            if self._bytes > self._quota.bytes:
                raise _too_many_bytes(self._quota)
            self.entries.append((parts, size, plausible_time(time)))
            self._streams.append(stream)

    def _refusal(self, name: str, parts: tuple[str, ...], size: int, is_link: bool) -> str:
        if len(name) > MAX_PATH:
            return f"has a path of more than {MAX_PATH} characters"
        if name.startswith(("/", "\\")) or ".." in parts or parts[0][1:2] == ":":
            return "has a path that leads out of the archive"
        if is_link:
            return "is a link; links are not followed"
        if len(parts) > MAX_DEPTH:
            return f"is more than {MAX_DEPTH} folders deep"
        return f"is larger than {self._quota.one_file >> 20} MB" if size > self._quota.one_file else ""


def plausible_time(time: float) -> float:
    """A file's time, in seconds since 1970; 0 in place of one that cannot be."""
    return time if 0 < time < MAX_TIME else 0


def _too_many_bytes(quota: Quota) -> Unreadable:
    return Unreadable(f"holds more than {quota.bytes >> 30} GB", "")


class _BoundedStream(io.RawIOBase):
    """A stream that ends the reading where a header asks for more than any file, or lies further in than anything may."""

    def __init__(self, stream: Any, quota: Quota) -> None:
        self._stream = stream
        self._quota = quota

    def read(self, size: int = -1) -> bytes:
        limit = self._quota.one_file
        if not 0 <= size <= limit + 1024:
            raise Unreadable(f"holds a part of more than {limit >> 20} MB", "")
        return self._stream.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        if offset > self._quota.bytes + 1024 * self._quota.entries:
            raise _too_many_bytes(self._quota)
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()


def _change_time(info: zipfile.ZipInfo) -> float:
    """When, in seconds since 1970; 0 where it is not told, as 1980 does, or is no date."""
    try:
        return calendar.timegm((*info.date_time, 0, 0, 0)) if info.date_time[0] > 1980 else 0
    except ValueError:
        return 0


def _decode_name(info: zipfile.ZipInfo) -> str:
    """The name. Where the archive does not say that it is UTF-8, Python reads DOS's letters; Canvas writes UTF-8 and doesn't say so."""
    if info.flag_bits & 0x800:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename
