"""Puts what was handed in into a folder a learner. Nothing is overwritten, and what is there already is not copied again.

Of several attempts at one file the latest stands in the learner's folder; the others, and whatever a later one takes the place of, are
kept in backups/LEARNER/, which `grader class` does not take for a learner. collected.csv tells where each file came from.
"""

from __future__ import annotations

import csv
import errno
import io
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from grader.grading.collecting.recognized import Handed, Recognized
from grader.grading.collecting.sources import LEARNER_BYTES, LEARNER_FILES, Sources, is_archive
from grader.grading.roster import NOT_LEARNERS
from grader.reports import sheet
from grader.submission.discover import COLLECTED
from grader.submission.enrolled import Enrolled
from grader.submission.submission import lesson_of_name
from grader.util import links
from grader.util.errors import InputError
from grader.util.names import BACKUPS, folded, printable

COLUMNS = ("learner", "file", "state", "late", "source", "original", "collected")
SPARE = 64 << 20  # bytes that are to stay free on the disk
MOST_ATTEMPTS = 100  # at one file, which are compared with each other
_AGAIN = re.compile(r"(.+)-\d+(\.ipynb)", re.IGNORECASE)  # '01_three_tokens-1.ipynb': Canvas and browsers number what is there already
_FORBIDDEN = re.compile(r'[<>:"|?*\\/\x00-\x1f\x7f]')
_WINDOWS = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


@dataclass
class Collected:
    """What became of one learner's files, by their paths in the learner's folder.

    placed: new there. same: there already. kept: earlier attempts, put among the backups. replaced: paths among the backups of what a
    later file took the place of ('same': it was there).
    """

    name: str
    placed: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    late: bool = False


@dataclass
class Outcome:
    """learners: by folder. others: (path, why) of what was not placed. rows: of collected.csv.

    alike: a folder's name by what a file system may take it for.
    """

    learners: dict[str, Collected] = field(default_factory=dict)
    others: list[tuple[str, str]] = field(default_factory=list)
    rows: list[dict[str, str]] = field(default_factory=list)
    alike: dict[str, str] = field(default_factory=dict)


def place(known: Recognized, source: str, to: Path, roster: Enrolled | None, outcome: Outcome, sources: Sources) -> None:
    """Copies everything whose learner is known, learner by learner, each file whole or not at all.

    source: the download's name. Raises: InputError where the disk has no room for it.
    """
    outcome.others += known.others
    to.mkdir(parents=True, exist_ok=True)
    handed: dict[str, list[Handed]] = {}
    for one in known.handed:
        for name in _folders(one, roster, outcome):
            handed.setdefault(name, []).append(one)
    for name, files in handed.items():
        sources.begin()
        _place(outcome.learners[name], _unpacked(files, sources, outcome), source, to, outcome)


def _place(learner: Collected, files: Iterable[Handed], source: str, to: Path, outcome: Outcome) -> None:
    """Copies one learner's files, within what one learner may take."""
    groups: dict[tuple[str, ...], list[Handed]] = {}
    for one in files:
        groups.setdefault(one.rest, []).append(one)
    count = size = 0
    for rest, attempts in _merged(groups).items():
        attempts.sort(key=lambda one: one.order)
        learner.late |= any(one.late for one in attempts)
        if len(attempts) > MOST_ATTEMPTS:
            why = f"is one of {len(attempts):,} attempts at the same file; the latest {MOST_ATTEMPTS} are collected"
            outcome.others.append((attempts[0].member.name, why))
        for one in attempts[-MOST_ATTEMPTS:]:
            count, size = count + 1, size + one.member.size
            if count > LEARNER_FILES or size > LEARNER_BYTES:
                most = f"{LEARNER_FILES:,} files" if count > LEARNER_FILES else f"{LEARNER_BYTES >> 20} MB"
                why = f"and what follows of {printable(learner.name)} was not collected: it is more than {most}"
                outcome.others.append((one.member.name, why))
                return
            _one(one, rest, one is attempts[-1], to, learner, source, outcome)


def check(to: Path, sources: Sequence[Path]) -> None:
    """Raises: InputError where the folder can't take what is collected."""
    if to.exists() and not to.is_dir():
        raise InputError(f"{to} is a file; --to needs a folder.")
    for source in sources:
        if source.is_dir() and (to.resolve().is_relative_to(source.resolve()) or source.resolve().is_relative_to(to.resolve())):
            raise InputError(f"one of {to} and {source} is inside the other; --to needs a folder outside it.")


def room(to: Path, handed: Iterable[Handed]) -> None:
    """Raises: InputError where the disk has less room than the files need, of which those of one learner have a limit."""
    sizes: dict[object, int] = {}
    for one in handed:
        sizes[one.whose] = min(sizes.get(one.whose, 0) + one.member.size, LEARNER_BYTES)
    size = sum(sizes.values())
    existing = next(folder for folder in (to, *to.resolve().parents) if folder.is_dir())
    free = shutil.disk_usage(existing).free
    if free < size + SPARE:
        raise InputError(f"the files have {size >> 20} MB, and the disk of {to} has {free >> 20} MB left; make room. "
                         "Nothing was collected.")  # fmt: skip


def _unpacked(handed: Iterable[Handed], sources: Sources, outcome: Outcome) -> Iterable[Handed]:
    """An archive that a learner handed in is what it holds, in a folder of its name; one in that one stays as it is."""
    for one in handed:
        if not is_archive(one.rest[-1]):
            yield one
            continue
        try:
            held = sources.inner(one.member)
        except InputError as error:
            outcome.others.append((one.member.name, f"is an archive that was not unpacked: it {error}"))
            yield one
            continue
        stem = one.rest[-1].split(".")[0] or "archive"
        outcome.others += [(f"{one.member.name}: {path}", why) for path, why in held.refused]
        for member in held.members:
            parts = member.parts[1:] if len(member.parts) > 1 and member.parts[0] == stem else member.parts
            yield replace(one, member=member, rest=(*one.rest[:-1], stem, *parts))


def _folders(one: Handed, roster: Enrolled | None, outcome: Outcome) -> list[str]:
    """The learners' folders that a file belongs to: several where a group handed it in."""
    names = []
    for whose in one.whose:
        if roster is None:
            name = _named(whose.name)
        elif person := whose.of(roster):
            name = person.key
        else:
            outcome.others.append((one.member.name, f"belongs to {whose}, who is not on the roster, or not with certainty"))
            continue
        other = outcome.alike.setdefault(folded(name), name)
        if other != name:
            alike = f"is of {printable(name)}, whose folder would have the same name as that of {printable(other)}"
            outcome.others.append((one.member.name, alike))
            continue
        outcome.learners.setdefault(name, Collected(name))
        names.append(name)
    return names


def _named(name: str) -> str:
    """A folder's name on any system, which is nothing that a class's folder has beside its learners."""
    made = _part(name)
    return f"learner {made}" if made.lower() in NOT_LEARNERS else made


def _part(part: str) -> str:
    """One part of a path, as every system takes it."""
    made = _FORBIDDEN.sub("-", printable(part)).rstrip(". ").lstrip(".")[:120] or "file"
    return f"_{made}" if _WINDOWS.match(made) else made


def _merged(groups: dict[tuple[str, ...], list[Handed]]) -> dict[tuple[str, ...], list[Handed]]:
    """Copies that were numbered because a lesson's notebook was handed in again are attempts at it. Other names keep their numbers."""
    merged: dict[tuple[str, ...], list[Handed]] = {}
    for rest, attempts in groups.items():
        again = _AGAIN.fullmatch(rest[-1])
        stem = again[1] if again else ""
        if again and lesson_of_name(Path(f"{stem}.ipynb")) == stem:
            rest = (*rest[:-1], f"{stem}{again[2]}")
        merged.setdefault(rest, []).extend(attempts)
    return merged


def _one(one: Handed, rest: Sequence[str], latest: bool, to: Path, learner: Collected, source: str, outcome: Outcome) -> None:
    """latest: whether no other attempt of this download comes after it."""
    parts = [_part(part) for part in rest]
    try:
        data = one.member.data()
        state = _laid(parts, to, data, one.member.changed, latest, learner)
    except (OSError, ValueError) as error:  # ValueError: what no file system takes for a name
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            raise
        outcome.others.append((one.member.name, f"could not be copied ({getattr(error, 'strerror', None) or error})"))
        return
    {"same": learner.same, "placed": learner.placed}.get(state, learner.kept).append("/".join(parts))
    outcome.rows.append({
        "learner": learner.name, "file": "/".join(parts), "state": state, "late": "late" if one.late else "", "source": source,
        "original": one.member.name, "collected": datetime.now().isoformat(" ", "seconds"),
    })  # fmt: skip


def _laid(parts: Sequence[str], to: Path, data: bytes, changed: float, latest: bool, learner: Collected) -> str:
    """'placed', 'same' where just this is there already, or the path among the backups of what is older than what is there."""
    path = to.joinpath(learner.name, *parts)
    _refuse_links(path, to)
    if not latest:
        return _backed_up(to, learner.name, parts, data, changed)
    if not path.exists():
        _write(path, to, data, changed)
        return "placed"
    about = path.stat()
    there = links.read(path, to, about.st_size).data
    if there == data:
        return "same"
    if there is None:
        raise OSError("what is there is not a regular file")
    if changed and changed < about.st_mtime - 2:  # zip and FAT count in steps of two seconds
        return _backed_up(to, learner.name, parts, data, changed)
    before = _backed_up(to, learner.name, parts, there, about.st_mtime)
    _write(path, to, data, changed)
    learner.replaced.append(before)
    return "placed"


def _backed_up(to: Path, name: str, parts: Sequence[str], data: bytes, changed: float) -> str:
    """Keeps an attempt that does not count. Returns: its path among the backups; 'same' where it is kept already."""
    stem, dot, ending = parts[-1].rpartition(".")
    number = 1
    while True:
        last = f"{stem}.{number}{dot}{ending}" if stem else f"{parts[-1]}.{number}"
        path = to.joinpath(BACKUPS, name, *parts[:-1], last)
        _refuse_links(path, to)
        if not path.exists():
            _write(path, to, data, changed)
            return path.relative_to(to).as_posix()
        if path.stat().st_size == len(data) and path.read_bytes() == data:
            return "same"
        number += 1


def _refuse_links(path: Path, to: Path) -> None:
    """Raises: Linked where a link stands on the way to the path."""
    link = links.first(path, to)
    if link is not None:
        raise links.Linked(f"{links.sentence(link)}; links are not followed")


def _write(path: Path, to: Path, data: bytes, changed: float) -> None:
    links.write(path, to, data)
    if changed > 0:
        os.utime(path, (changed, changed))


def record(to: Path, rows: Sequence[dict[str, str]]) -> None:
    """Adds what was done to collected.csv; a file that was there before and is the same is no news."""
    news = [row for row in rows if row["state"] != "same"]
    path = to / COLLECTED
    if not news:
        return
    before = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8")))) if path.is_file() else []
    if before and tuple(before[0]) != COLUMNS:
        raise InputError(f"{path} is not a table that `grader collect` wrote; move it elsewhere. The files were collected.")
    kept = [[sheet.Verbatim(cell) for cell in row] for row in before[1:]]
    links.write(path, to, sheet.write([COLUMNS, *kept, *([row[column] for column in COLUMNS] for row in news)]).encode())
