"""Puts what was handed in into a folder a learner. Nothing is overwritten, and what is there already is not copied again.

Of several attempts the latest stands in the learner's folder; the others, and whatever a later one takes the place of, are kept in
backups/LEARNER/DATE/, which `grader class` does not take for a learner. collected.csv tells where each file came from.
"""

from __future__ import annotations

import csv
import errno
import io
import itertools
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from grader.course.course import Course
from grader.grading.collecting.attempts import Parts, Shelf
from grader.grading.collecting.recognized import Handed, Recognized
from grader.grading.collecting.sources import LEARNER_BYTES, LEARNER_FILES, Sources, is_archive
from grader.grading.roster import NOT_LEARNERS
from grader.reports import sheet
from grader.submission.discover import COLLECTED
from grader.submission.enrolled import Enrolled
from grader.submission.submission import lesson_of_name
from grader.util import links
from grader.util.errors import InputError
from grader.util.names import folded, printable

COLUMNS = ("learner", "file", "state", "late", "source", "original", "collected", "submitted")
SPARE = 64 << 20  # bytes that are to stay free on the disk
MOST_ATTEMPTS = 100  # at one file, which are compared with each other
_AGAIN = re.compile(
    r"(.+)-\d+(\.ipynb)", re.IGNORECASE
)  # '01_three_tokens-1.ipynb': Canvas and browsers number what is there already
_FORBIDDEN = re.compile(r'[<>:"|?*\\/\x00-\x1f\x7f]')
_WINDOWS = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


@dataclass
class Collected:
    """What became of one learner's files, by their paths in the learner's folder.

    placed: new there. same: there already. kept: earlier attempts, by where they are now. replaced: where what they took the place of
    is now, below the class's folder.
    """

    name: str
    placed: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    late: bool = False


@dataclass
class Outcome:
    """learners: by folder. others: (path, why) of what was not placed. rows: of collected.csv; before: those that it has already.

    alike: a folder's name by what a file system may take it for. time: of this run, one for all that it collects.
    """

    learners: dict[str, Collected] = field(default_factory=dict)
    others: list[tuple[str, str]] = field(default_factory=list)
    rows: list[dict[str, str]] = field(default_factory=list)
    alike: dict[str, str] = field(default_factory=dict)
    before: list[dict[str, str]] = field(default_factory=list)
    time: str = field(default_factory=lambda: datetime.now().isoformat(" ", "seconds"))

    def rows_of(self, learner: str) -> dict[str, dict[str, str]]:
        """The last row of each file of a learner's."""
        return {
            row["file"]: row
            for row in (*self.before, *self.rows)
            if row["learner"] == learner and row["state"] == "placed"
        }


def place(
    course: Course,
    known: Recognized,
    source: str,
    to: Path,
    roster: Enrolled | None,
    outcome: Outcome,
    sources: Sources,
) -> None:
    """Copies everything whose learner is known, learner by learner, each file whole or not at all.

    source: the download's name. Raises: InputError where the disk has no room for it.
    """
    outcome.others += known.others
    to.mkdir(parents=True, exist_ok=True)
    handed: dict[str, list[Handed]] = {}
    several = _several(known.handed, roster) if roster else {}
    for one in known.handed:
        for name in _folders(one, roster, several, outcome):
            handed.setdefault(name, []).append(one)
    for name, theirs in handed.items():
        sources.begin()
        learner = outcome.learners.setdefault(name, Collected(name))
        files = _within_limits(learner, _by_path(course, _unpacked(theirs, sources, outcome)), outcome)
        learner.late |= any(one.late for attempts in files.values() for one in attempts)
        for parts, attempts in files.items():
            for one in attempts[:-1]:
                _attempt(course, {parts: one}, False, to, learner, source, outcome)
        if files:
            _attempt(
                course, {parts: attempts[-1] for parts, attempts in files.items()}, True, to, learner, source, outcome
            )


def _by_path(course: Course, handed: Iterable[Handed]) -> dict[Parts, list[Handed]]:
    """One learner's files by their paths in that folder: of each its attempts, the latest last."""
    groups: dict[Parts, list[Handed]] = {}
    for one in handed:
        groups.setdefault(one.rest, []).append(one)
    files: dict[Parts, list[Handed]] = {}
    for rest, attempts in _merged(course, groups).items():
        files.setdefault(tuple(map(_part, rest)), []).extend(attempts)
    for attempts in files.values():
        attempts.sort(key=lambda one: one.order)
    return files


def _within_limits(learner: Collected, files: dict[Parts, list[Handed]], outcome: Outcome) -> dict[Parts, list[Handed]]:
    """What of them one learner may hand in; the rest is told."""
    kept: dict[Parts, list[Handed]] = {}
    count = size = 0
    for parts, attempts in files.items():
        latest = attempts[-MOST_ATTEMPTS:]
        if len(attempts) > len(latest):
            why = f"is one of {len(attempts):,} attempts at the same file; the latest {MOST_ATTEMPTS} are collected"
            outcome.others.append((attempts[0].member.name, why))
        count, size = count + len(latest), size + sum(one.member.size for one in latest)
        if count > LEARNER_FILES or size > LEARNER_BYTES:
            most = f"{LEARNER_FILES:,} files" if count > LEARNER_FILES else f"{LEARNER_BYTES >> 20} MB"
            why = f"and what follows of {printable(learner.name)} was not collected: it is more than {most}"
            outcome.others.append((latest[0].member.name, why))
            break
        kept[parts] = latest
    return kept


def check(to: Path, sources: Sequence[Path]) -> None:
    """Raises: InputError where the folder can't take what is collected."""
    if to.exists() and not to.is_dir():
        raise InputError(f"{to} is a file; --to needs a folder.")
    for source in sources:
        if source.is_dir() and (
            to.resolve().is_relative_to(source.resolve()) or source.resolve().is_relative_to(to.resolve())
        ):
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
        raise InputError(
            f"the files have {size >> 20} MB, and the disk of {to} has {free >> 20} MB left; make room. "
            "Nothing was collected."
        )


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
            yield replace(one, member=member, packed=one.member.changed, rest=(*one.rest[:-1], stem, *parts))


def _several(handed: Iterable[Handed], roster: Enrolled) -> dict[str, list[str]]:
    """By the folder's name the identities that a download has for one person, where there are several: one of them is another's."""
    identities: dict[str, list[str]] = {}
    for whose in dict.fromkeys(whose for one in handed for whose in one.whose):
        if person := whose.of(roster):
            identities.setdefault(person.key, []).append(printable(whose.name))
    return {name: sorted(set(theirs)) for name, theirs in identities.items() if len(set(theirs)) > 1}


def _folders(one: Handed, roster: Enrolled | None, several: Mapping[str, Sequence[str]], outcome: Outcome) -> list[str]:
    """The learners' folders that a file belongs to: several where a group handed it in."""
    names = []
    for whose in one.whose:
        if roster is None:
            name = _named(whose.name)
        elif person := whose.of(roster):
            name = person.key
            if name in several:
                why = (
                    f"could be {name}'s by the roster, and so could each of {', '.join(several[name])}: none of them was placed; "
                    "find out whose each is, and give the roster the platform's numbers or logins"
                )
                outcome.others.append((one.member.name, why))
                continue
        else:
            outcome.others.append(
                (one.member.name, f"belongs to {whose}, who is not on the roster, or not with certainty")
            )
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


def _merged(course: Course, groups: dict[tuple[str, ...], list[Handed]]) -> dict[tuple[str, ...], list[Handed]]:
    """Copies that were numbered because a lesson's notebook was handed in again are attempts at it. Other names keep their numbers."""
    merged: dict[tuple[str, ...], list[Handed]] = {}
    for rest, attempts in groups.items():
        again = _AGAIN.fullmatch(rest[-1])
        stem = again[1] if again else ""
        if again and lesson_of_name(course, Path(f"{stem}.ipynb")) == stem:
            rest = (*rest[:-1], f"{stem}{again[2]}")
        merged.setdefault(rest, []).extend(attempts)
    return merged


def _attempt(
    course: Course,
    files: Mapping[Parts, Handed],
    latest: bool,
    to: Path,
    learner: Collected,
    source: str,
    outcome: Outcome,
) -> None:
    """latest: whether no other attempt of this download comes after it."""
    rows = outcome.rows_of(learner.name)
    shelf = Shelf(course, to, learner.name, {file: (row["source"], row["collected"]) for file, row in rows.items()})
    whole: dict[Parts, Handed] = {}
    try:
        shelf.begin()
        for parts, one in files.items():
            with _told(one, outcome):
                shelf.add(parts, one.member.data(), one.member.changed)
                whole[parts] = one
        if not whole:
            return
        settled = shelf.settle(max(one.changed for one in whole.values()), latest)
    except OSError as error:
        for one in files.values():
            with _told(one, outcome):
                raise error
        return
    if settled.aside:
        learner.replaced.append(settled.aside)
        moved = [
            rows.get("/".join(parts), {"file": "/".join(parts), "learner": learner.name}) for parts in settled.replaced
        ]
        outcome.rows += [row | {"state": f"{settled.aside}/{row['file']}", "collected": outcome.time} for row in moved]
    for parts, one in whole.items():
        file = "/".join(parts)
        state = settled.state if settled.state in ("same", "placed") else f"{settled.state}/{file}"
        {"same": learner.same, "placed": learner.placed}.get(state, learner.kept).append(
            state if "/" in state else file
        )
        outcome.rows.append(
            {
                "learner": learner.name,
                "file": file,
                "state": state,
                "late": "late" if one.late else "",
                "source": source,
                "original": one.member.name,
                "collected": outcome.time,
                "submitted": one.submitted,
            }
        )


@contextmanager
def _told(one: Handed, outcome: Outcome) -> Iterator[None]:
    """A file that cannot be copied is told, unless it is the disk that is full, which ends it all."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: what no file system takes for a name
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            raise
        outcome.others.append((one.member.name, f"could not be copied ({getattr(error, 'strerror', None) or error})"))


def recorded(to: Path) -> list[dict[str, str]]:
    """What collected.csv has. Raises: InputError where that is another table."""
    path = to / COLLECTED
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8")))) if path.is_file() else []
    if rows and tuple(rows[0]) not in (COLUMNS, COLUMNS[:-1]):  # without the last, by an earlier version
        raise InputError(
            f"{path} is not a table that `grader collect` wrote; move it elsewhere. Nothing was collected."
        )
    return [dict(itertools.zip_longest(COLUMNS, row, fillvalue="")) for row in rows[1:] if len(row) == len(rows[0])]


def record(to: Path, outcome: Outcome) -> None:
    """Adds what was done to collected.csv; a file that was there before and is the same is no news."""
    news = [row for row in outcome.rows if row["state"] != "same"]
    if news:
        before = [[sheet.Verbatim(row[column]) for column in COLUMNS] for row in outcome.before]
        table = [COLUMNS, *before, *([row.get(column, "") for column in COLUMNS] for row in news)]
        links.write(to / COLLECTED, to, sheet.write(table).encode())
