"""Puts what was handed in into a folder a learner. Nothing is overwritten, and what is there already is not copied again.

Of several attempts the latest stands in the learner's folder; the others, and whatever a later one takes the place of, are kept in
backups/LEARNER/DATE/, which `grader class` does not take for a learner. collected.csv tells where each file came from.
"""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from grader.course.course import Course
from grader.grading import collected
from grader.grading.collecting.attempts import LearnerFolder, Parts
from grader.grading.collecting.recognized import Download, SubmittedFile
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

    folders: a folder's name by what a file system may take it for. time: of this run, one for all that it collects.
    """

    learners: dict[str, Collected] = field(default_factory=dict)
    others: list[tuple[str, str]] = field(default_factory=list)
    rows: list[dict[str, str]] = field(default_factory=list)
    folders: dict[str, str] = field(default_factory=dict)
    before: list[dict[str, str]] = field(default_factory=list)
    time: str = field(default_factory=lambda: datetime.now().isoformat(" ", "seconds"))

    def rows_of(self, learner: str) -> dict[str, dict[str, str]]:
        """The last row of each file of a learner's."""
        rows = (*self.before, *self.rows)
        return {row["file"]: row for row in rows if row["learner"] == learner and row["state"] == "placed"}


def place(
    course: Course,
    download: Download,
    source: str,
    to: Path,
    roster: Enrolled | None,
    outcome: Outcome,
    sources: Sources,
) -> None:
    """Copies everything whose learner is known, learner by learner, each file whole or not at all.

    source: the download's name. Raises: InputError where the disk has no room for it.
    """
    outcome.others += download.others
    to.mkdir(parents=True, exist_ok=True)
    submitted: dict[str, list[SubmittedFile]] = {}
    ambiguous = _ambiguous(download.files, roster) if roster else {}
    for file in download.files:
        for name in _folders(file, roster, ambiguous, outcome):
            submitted.setdefault(name, []).append(file)
    for name, files in submitted.items():
        sources.begin()
        learner = outcome.learners[name]
        attempts = _within_limits(learner, _by_path(course, _unpacked(files, sources, outcome)), outcome)
        learner.late |= any(one.late for several in attempts.values() for one in several)
        latest = {}
        for parts, several in attempts.items():
            *older, latest[parts] = several
            for one in older:
                _place_attempt(course, {parts: one}, False, to, learner, source, outcome)
        if latest:
            _place_attempt(course, latest, True, to, learner, source, outcome)


def _by_path(course: Course, files: Iterable[SubmittedFile]) -> dict[Parts, list[SubmittedFile]]:
    """One learner's files by their paths in that folder: of each its attempts, the latest last.

    Copies that were numbered because a lesson's notebook was handed in again are attempts at it. Other names keep their numbers.
    """
    attempts: dict[Parts, list[SubmittedFile]] = {}
    for file in files:
        *folders, name = file.rest
        again = _AGAIN.fullmatch(name)
        if again and lesson_of_name(course, Path(f"{again[1]}.ipynb")) == again[1]:
            name = again[1] + again[2]
        attempts.setdefault(tuple(map(_part, (*folders, name))), []).append(file)
    for several in attempts.values():
        several.sort(key=lambda one: one.order)
    return attempts


def _within_limits(
    learner: Collected, attempts: dict[Parts, list[SubmittedFile]], outcome: Outcome
) -> dict[Parts, list[SubmittedFile]]:
    """What of them one learner may hand in; the rest is told."""
    allowed: dict[Parts, list[SubmittedFile]] = {}
    count = size = 0
    for parts, several in attempts.items():
        latest = several[-MOST_ATTEMPTS:]
        if len(several) > len(latest):
            why = f"is one of {len(several):,} attempts at the same file; the latest {MOST_ATTEMPTS} are collected"
            outcome.others.append((several[0].member.name, why))
        count, size = count + len(latest), size + sum(one.member.size for one in latest)
        if count > LEARNER_FILES or size > LEARNER_BYTES:
            most = f"{LEARNER_FILES:,} files" if count > LEARNER_FILES else f"{LEARNER_BYTES >> 20} MB"
            why = f"and what follows of {printable(learner.name)} was not collected: it is more than {most}"
            outcome.others.append((latest[0].member.name, why))
            break
        allowed[parts] = latest
    return allowed


def check(to: Path, sources: Sequence[Path]) -> None:
    """Raises: InputError where the folder can't take what is collected."""
    if to.exists() and not to.is_dir():
        raise InputError(f"{to} is a file; --to needs a folder.")
    for source in sources:
        if source.is_dir() and (
            to.resolve().is_relative_to(source.resolve()) or source.resolve().is_relative_to(to.resolve())
        ):
            raise InputError(f"one of {to} and {source} is inside the other; --to needs a folder outside it.")


def room(to: Path, files: Iterable[SubmittedFile]) -> None:
    """Raises: InputError where the disk has less room than the files need, of which those of one learner have a limit."""
    sizes: dict[object, int] = {}
    for one in files:
        sizes[one.learners] = min(sizes.get(one.learners, 0) + one.member.size, LEARNER_BYTES)
    size = sum(sizes.values())
    existing = next(folder for folder in (to, *to.resolve().parents) if folder.is_dir())
    free = shutil.disk_usage(existing).free
    if free < size + SPARE:
        raise InputError(
            f"the files have {size >> 20} MB, and the disk of {to} has {free >> 20} MB left; make room. "
            "Nothing was collected."
        )


def _unpacked(files: Iterable[SubmittedFile], sources: Sources, outcome: Outcome) -> Iterator[SubmittedFile]:
    """An archive that a learner handed in is what it holds, in a folder of its name; one in that one stays as it is."""
    for file in files:
        if not is_archive(file.rest[-1]):
            yield file
            continue
        try:
            contents = sources.inner(file.member)
        except InputError as error:
            outcome.others.append((file.member.name, f"is an archive that was not unpacked: it {error}"))
            yield file
            continue
        stem = file.rest[-1].split(".")[0] or "archive"
        outcome.others += [(f"{file.member.name}: {path}", why) for path, why in contents.refused]
        for member in contents.members:
            parts = member.parts[1:] if len(member.parts) > 1 and member.parts[0] == stem else member.parts
            yield replace(file, member=member, packed=file.member.changed, rest=(*file.rest[:-1], stem, *parts))


def _ambiguous(files: Iterable[SubmittedFile], roster: Enrolled) -> dict[str, list[str]]:
    """By the folder's name the identities that a download has for one person, where there are several: one of them is another's."""
    identities: dict[str, set[str]] = {}
    for learner in {learner for file in files for learner in file.learners}:
        if person := learner.of(roster):
            identities.setdefault(person.key, set()).add(printable(learner.name))
    return {key: sorted(names) for key, names in identities.items() if len(names) > 1}


def _folders(
    file: SubmittedFile, roster: Enrolled | None, ambiguous: Mapping[str, Sequence[str]], outcome: Outcome
) -> Iterator[str]:
    """The learners' folders that a file belongs to: several where a group handed it in."""
    for learner in file.learners:
        person = learner.of(roster) if roster else None
        name = person.key if person else _folder_name(learner.name)
        same = outcome.folders.get(folded(name), name)
        if roster and not person:
            why = f"belongs to {learner}, who is not on the roster, or not with certainty"
        elif name in ambiguous:
            why = (
                f"could be {name}'s by the roster, and so could each of {', '.join(ambiguous[name])}: none of them was placed; "
                "find out whose each is, and give the roster the platform's numbers or logins"
            )
        elif same != name:
            why = f"is of {printable(name)}, whose folder would have the same name as that of {printable(same)}"
        else:
            outcome.folders[folded(name)] = name
            outcome.learners.setdefault(name, Collected(name))
            yield name
            continue
        outcome.others.append((file.member.name, why))


def _folder_name(name: str) -> str:
    """A folder's name on any system, which is nothing that a class's folder has beside its learners."""
    part = _part(name)
    return f"learner {part}" if part.lower() in NOT_LEARNERS else part


def _part(part: str) -> str:
    """One part of a path, as every system takes it."""
    safe = _FORBIDDEN.sub("-", printable(part)).rstrip(". ").lstrip(".")[:120] or "file"
    return f"_{safe}" if _WINDOWS.match(safe) else safe


def _place_attempt(
    course: Course,
    files: Mapping[Parts, SubmittedFile],
    latest: bool,
    to: Path,
    learner: Collected,
    source: str,
    outcome: Outcome,
) -> None:
    """latest: whether no other attempt of this download comes after it."""
    rows = outcome.rows_of(learner.name)
    folder = LearnerFolder(
        course, to, learner.name, {file: (row["source"], row["collected"]) for file, row in rows.items()}
    )
    copied: dict[Parts, SubmittedFile] = {}
    try:
        folder.begin()
        for parts, one in files.items():
            try:
                folder.add(parts, one.member.data(), one.member.changed)
                copied[parts] = one
            except (OSError, ValueError) as error:  # ValueError: what no file system takes for a name
                _report_failure(one, error, outcome)
        if not copied:
            return
        placement = folder.place(max(one.changed for one in copied.values()), latest)
    except OSError as error:
        for one in files.values():
            _report_failure(one, error, outcome)
        return
    if placement.aside:
        learner.replaced.append(placement.aside)
        for file in map("/".join, placement.replaced):
            row = rows.get(file, {"file": file, "learner": learner.name})
            outcome.rows.append(row | {"state": f"{placement.aside}/{file}", "collected": outcome.time})
    for parts, one in copied.items():
        file = "/".join(parts)
        state = placement.state
        if state == "same":
            learner.same.append(file)
        elif state == "placed":
            learner.placed.append(file)
        else:
            state = f"{state}/{file}"
            learner.kept.append(state)
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


def _report_failure(file: SubmittedFile, error: Exception, outcome: Outcome) -> None:
    """A file that cannot be copied is told, unless it is the disk that is full, which ends it all."""
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        raise error
    outcome.others.append((file.member.name, f"could not be copied ({getattr(error, 'strerror', None) or error})"))


def recorded(to: Path) -> list[dict[str, str]]:
    """What collected.csv has. Raises: InputError where that is another table."""
    rows = collected.rows(to)
    if rows is None:
        raise InputError(
            f"{to / COLLECTED} is not a table that `grader collect` wrote; move it elsewhere. Nothing was collected."
        )
    return rows


def record(to: Path, outcome: Outcome) -> None:
    """Adds what was done to collected.csv; a file that was there before and is the same is no news."""
    news = [row for row in outcome.rows if row["state"] != "same"]
    if news:
        before = [[sheet.Verbatim(row.get(column) or "") for column in COLUMNS] for row in outcome.before]
        table = [COLUMNS, *before, *([row.get(column, "") for column in COLUMNS] for row in news)]
        links.write(to / COLLECTED, to, sheet.write(table).encode())
