"""What a learner handed in together is one attempt, and the latest takes the place of all that an older one has of the same lessons.

Were its files laid among the older one's, a resubmission under another name would stand beside what it replaces. What a learner
handed in for other lessons, together with that or not, stays: platforms give the files of the last attempt alone. The older attempt
is moved to backups/LEARNER/DATE/, which `grader class` does not grade; DATE is when it was last changed, so that the same attempt is
kept once.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course.course import Course
from grader.reports import sheet
from grader.submission.discover import SAME_TIME_NS
from grader.submission.ipynb import MAX_FILE_BYTES
from grader.submission.lesson_recognition import lesson_of_bytes
from grader.util import links
from grader.util.names import BACKUPS

Parts = tuple[str, ...]  # a file's path in the learner's folder
INCOMING = ".incoming"  # in backups/LEARNER/: an attempt that is not complete yet
SAME_TIME_S = SAME_TIME_NS / 1e9


@dataclass(frozen=True)
class Placement:
    """What became of an attempt. state: 'placed', 'same' where just this is there, or the path among the backups.

    stands: whether 'same' is what counts, and no backup. replaced: the paths of what it took the place of; backup: where these are now,
    below the class's folder.
    """

    state: str
    stands: bool = False
    replaced: tuple[Parts, ...] = ()
    backup: str = ""


class LearnerFolder:
    """One learner's folder, and the older attempts among the backups.

    sources: of each file that was collected, by its cell in collected.csv, from which download, when. Files of one download are one
    attempt.
    Raises: LinkError where a link stands on the way.
    """

    def __init__(self, course: Course, to: Path, name: str, sources: Mapping[str, tuple[str, str]]) -> None:
        self._course = course
        self.to, self.sources = to, sources
        self.home, self.backups = to / name, to / BACKUPS / name
        self.incoming = self.backups / INCOMING
        refuse_links(self.incoming, self.to)
        shutil.rmtree(self.incoming, ignore_errors=True)

    def add(self, parts: Parts, data: bytes, changed: float) -> None:
        """Adds a file to the attempt. changed: when, in seconds since 1970; 0 where that is not known."""
        refuse_links(self.home.joinpath(*parts), self.to)
        path = self.incoming.joinpath(*parts)
        links.write(path, self.to, data)
        if changed > 0:
            os.utime(path, (changed, changed))

    def place(self, changed: float, latest: bool = True) -> Placement:
        """Puts the attempt where it belongs. changed: when it was handed in, as far as that is known; latest: of its download."""
        new = sorted(_files(self.incoming))
        old = self._superseded(new)
        try:
            if latest and old == new and _same_files(self.home, self.incoming, new):
                return Placement("same", stands=True)
            newest, duplicate = _newest(self.home, old), self._is_duplicate(new)
            # By its time; where that says nothing, by whether it has already been replaced once.
            by_time = changed and abs(changed - newest) > SAME_TIME_S
            if not latest or old and (changed < newest if by_time else duplicate):
                if duplicate:
                    return Placement("same")
                return Placement(self._back_up(self.incoming, new, changed or _newest(self.incoming, new)))
            backup = self._back_up(self.home, old, newest) if old else ""
            _move(self.incoming, new, self.home)
            return Placement("placed", replaced=tuple(old), backup=backup)
        finally:
            shutil.rmtree(self.incoming, ignore_errors=True)
            for folder in (self.backups, self.backups.parent):
                with contextlib.suppress(OSError):
                    folder.rmdir()  # where it is empty

    def _superseded(self, new: Sequence[Parts]) -> list[Parts]:
        """What is there of attempts at one of these lessons or with one of these paths, without notebooks of other lessons; sorted."""
        attempts: dict[tuple[str, str], list[Parts]] = {}
        for parts in _files(self.home):
            attempts.setdefault(self.sources.get(sheet.guard("/".join(parts)), ("", "")), []).append(parts)
        lessons = {*_lessons(self._course, self.incoming, new).values()} - {""}
        superseded = []
        for old in attempts.values():
            old_lessons = _lessons(self._course, self.home, old)
            collisions = {parts for parts in old if any(_collide(parts, other) for other in new)}
            if collisions or lessons & {*old_lessons.values()} or not (lessons or any(old_lessons.values())):
                superseded += [parts for parts in old if old_lessons[parts] in {"", *lessons} or parts in collisions]
        return sorted(superseded)

    def _is_duplicate(self, new: Iterable[Parts]) -> bool:
        """Whether each of the attempt's files is among the backups, or still stands since no later attempt has its lesson."""
        places = [self.home, *self._backups()]
        return all(any(_same_files(place, self.incoming, [parts]) for place in places) for parts in new)

    def _backups(self) -> list[Path]:
        paths = [self.backups / name for name in sorted(os.listdir(self.backups))] if self.backups.is_dir() else []
        return [path for path in paths if path != self.incoming and not links.is_link(path) and path.is_dir()]

    def _back_up(self, base: Path, files: Sequence[Parts], changed: float) -> str:
        """Moves an attempt to the backups. Returns: its folder there, below the class's."""
        same = (path for path in self._backups() if sorted(_files(path)) == sorted(files))
        folder = next((path for path in same if _same_files(path, base, files)), None)
        if folder:  # just these files are there already
            for parts in files:
                base.joinpath(*parts).unlink()
        else:
            date = time.strftime("%Y-%m-%d-%H%M%S", time.localtime(changed or time.time()))
            names = itertools.chain([date], (f"{date}-{number}" for number in itertools.count(2)))
            folder = next(path for name in names if not os.path.lexists(path := self.backups / name))
            refuse_links(folder, self.to)
            _move(base, files, folder)
        for place, _, _ in os.walk(base, topdown=False):  # folders below that hold nothing any more
            if Path(place) != base:
                with contextlib.suppress(OSError):
                    os.rmdir(place)
        return folder.relative_to(self.to).as_posix()


def refuse_links(path: Path, to: Path) -> None:
    """Raises: LinkError where a link stands on the way to the path."""
    link = links.first_link(path, to)
    if link is not None:
        raise links.LinkError(f"{links.sentence(link)}; links are not followed")


def _files(folder: Path) -> Iterator[Parts]:
    """What lies in a folder and below, links as what they are."""
    for place, folders, names in os.walk(folder):
        parent = Path(place)
        folder_links = [name for name in folders if links.is_link(parent / name)]
        yield from ((parent / name).relative_to(folder).parts for name in (*names, *folder_links))


def _same_files(base: Path, other: Path, files: Iterable[Parts]) -> bool:
    """Whether both folders have these files with the same content. filecmp would trust times that an archive chose."""
    for parts in files:
        pair = (base.joinpath(*parts), other.joinpath(*parts))
        if any(links.is_link(path) or not path.is_file() for path in pair):
            return False
        if pair[0].stat().st_size != pair[1].stat().st_size or pair[0].read_bytes() != pair[1].read_bytes():
            return False
    return True


def _newest(base: Path, files: Iterable[Parts]) -> float:
    return max((base.joinpath(*parts).lstat().st_mtime for parts in files), default=0)


def _lessons(course: Course, base: Path, files: Iterable[Parts]) -> dict[Parts, str]:
    """Of each file the lesson whose notebook it is; '' for none."""
    lessons = {}
    for parts in files:
        path, lessons[parts] = base.joinpath(*parts), ""
        if path.suffix.lower() == ".ipynb" and not links.is_link(path) and path.is_file():
            data = path.read_bytes() if path.stat().st_size <= MAX_FILE_BYTES else b""
            lessons[parts] = lesson_of_bytes(course, path, data)
    return lessons


def _collide(path: Parts, other: Parts) -> bool:
    """Whether the paths are the same, or one is a folder of the other."""
    return all(a == b for a, b in zip(path, other, strict=False))


def _move(base: Path, files: Iterable[Parts], folder: Path) -> None:
    for parts in files:
        path = folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(base.joinpath(*parts), path)
