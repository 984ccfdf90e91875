"""Reads and writes below a folder with no link followed on the way, also none that is put there meanwhile.

Who types a path answers for it; what lies below is a stranger's, and a link there may lead to a classmate's work.
Where the system can, each step is opened from the one before; elsewhere (Windows) the way is compared before and after, which
a link that comes and goes in between can defeat: grade there what nobody else can write to.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.util.names import printable

WALKS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")
_FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE_FLAGS = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"))
_REPARSE_TAGS = (0xA0000003, 0xA000000C)  # Windows' junctions and symbolic links


class LinkError(OSError):
    """A link lies on the way; str(): one sentence that names it and its target."""


@dataclass(frozen=True)
class Content:
    """A file as it was when it was opened. data: None where it is no regular file or larger than asked for."""

    status: os.stat_result
    data: bytes | None


def is_link(path: Path) -> bool:
    """Whether a path is itself a symbolic link or a junction; False where nothing is there."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISLNK(status.st_mode) or getattr(status, "st_reparse_tag", 0) in _REPARSE_TAGS


def first_link(path: Path, base: Path) -> Path | None:
    """The first link below `base` on the way to a path, the path itself included; None: there is none."""
    below = [path, *path.parents][: len(path.relative_to(base).parts)]
    return next(filter(is_link, reversed(below)), None)


def sentence(link: Path, name: str = "") -> str:
    """'NAME is a link to TARGET', with the name to call it by; by default its path."""
    try:
        target = printable(os.readlink(link).removeprefix("\\\\?\\"))
    except OSError:
        target = "another place"
    return f"{name or printable(str(link))} is a link to {target}"


def hard_link_note(name: str, status: os.stat_result) -> list[str]:
    """A sentence where a file has other names, which may be a classmate's: that is no link to be seen and not followed."""
    if status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
        return []
    return [
        f"{name} has {status.st_nlink} names on the disk (hard links); the same file may also be in another learner's folder."
    ]


def read(path: Path, base: Path, most: int, end: int = 0) -> Content:
    """What a file holds, if it has at most so many bytes; with `end` only so many at its end.

    Nothing but a regular file is opened: a pipe would wait for ever. Raises: LinkError; OSError as open() does.
    """
    with _open_folder(path.parent, base) as (place, folder):
        name = place / path.name
        before = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if is_link(path) or stat.S_ISLNK(before.st_mode):
            raise _link_error(path)
        if not stat.S_ISREG(before.st_mode) or before.st_size > most:
            return Content(before, None)
        file = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _FILE_FLAGS, dir_fd=folder)
        with open(file, "rb") as stream:
            status = os.fstat(file)
            if not os.path.samestat(before, status) or not WALKS and first_link(path, base):
                raise LinkError(f"{printable(path.name)} was replaced while it was being opened; it was not read.")
            if status.st_size > most:
                return Content(status, None)
            stream.seek(max(status.st_size - end, 0) if end else 0)
            return Content(status, stream.read(status.st_size))  # what is written meanwhile may be more than `most`


def write(path: Path, base: Path, data: bytes, like: Path | None = None, private: bool = False) -> None:
    """Writes a file in one step, its folders below `base` too where they are missing.

    One that was there stays open to whom it was. like: a file as open as a new one should be; by default that is open to whom the
    umask lets. private: whether nobody but its owner may ever read it, whatever was there.

    Raises: LinkError, and OSError; what was there is then still there.
    """
    with _open_folder(path.parent, base, make=True) as (place, folder):
        if is_link(path):
            raise _link_error(path)
        name, scratch = place / path.name, place / f".{path.name[:50]}.{secrets.token_hex(6)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE_FLAGS
        model: os.stat_result | None
        try:
            model = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            model = os.lstat(like) if like is not None else None
        try:
            with open(os.open(scratch, flags, 0o600 if private or model else 0o666, dir_fd=folder), "wb") as file:
                if model and not private and hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), model.st_mode & 0o777)
                file.write(data)
            os.replace(scratch, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(scratch, dir_fd=folder)
            raise


def _link_error(link: Path) -> LinkError:
    return LinkError(f"{sentence(link)}; links are not followed.")


@contextlib.contextmanager
def _open_folder(folder: Path, base: Path, make: bool = False) -> Iterator[tuple[Path, int | None]]:
    """A folder below `base`, as what comes before the names in it and the `dir_fd` that these names are taken from.

    Each step is opened from the one before; where the system can't do that, it is (the folder, None).
    """
    if not WALKS:
        if link := first_link(folder, base):
            raise _link_error(link)
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        yield folder, None
        return
    folder_fd = os.open(base, _FOLDER_FLAGS)
    try:
        path = base
        for part in folder.relative_to(base).parts:
            path = path / part
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder_fd)
            try:
                inner_fd = os.open(part, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=folder_fd)
            except OSError as error:
                raise _link_error(path) if is_link(path) else error from None
            os.close(folder_fd)
            folder_fd = inner_fd
        yield Path(), folder_fd
    finally:
        os.close(folder_fd)
