"""Puts what was handed in into a folder a learner. Nothing is overwritten, and what is there already is not copied again.

What becomes of older attempts, attempts.py says. collected.csv tells where each file came from.
"""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from grader.course.course import Course
from grader.grading import lateness
from grader.grading.collecting.attempts import LearnerFolder, Parts
from grader.grading.collecting.recognition import Download, SubmittedFile
from grader.grading.collecting.sources import LEARNER_BYTES, LEARNER_FILES, Sources
from grader.reports import sheet
from grader.submission.discover import ARCHIVES, COLLECTED, NOT_LEARNERS
from grader.submission.lesson_recognition import lesson_of_name
from grader.submission.roster import Roster
from grader.util import links
from grader.util.errors import InputError
from grader.util.names import fold_name, printable
from grader.util.words import join_names

COLUMNS = ("learner", "file", "state", "late", "source", "original", "collected", "submitted")
SPARE = 64 << 20  # bytes to leave free on the disk
MOST_ATTEMPTS = 100  # at one file, which are compared with each other
LONGEST = 120  # bytes of a name that is not shortened; a path with all its folders has a limit, too
# '01_three_tokens-1.ipynb': Canvas and browsers number what is there already.
_NUMBERED = re.compile(r"(.+)-\d+(\.ipynb)", re.IGNORECASE)
_FORBIDDEN = re.compile(r'[<>:"|?*\\/\x00-\x1f\x7f]')
_WINDOWS = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


@dataclass
class LearnerOutcome:
    """What became of one learner's files, by their paths in the learner's folder.

    placed: new there. same: there already. earlier: older attempts, by where they are now. replaced: where what they took the place of
    is now, below the class's folder. shortened: how many of the files had too long a name.
    """

    name: str
    placed: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    earlier: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    shortened: int = 0
    late: bool = False


class Collection:
    """What one run collects into a class's folder, and what became of it.

    learners: by folder. others: (path, reason) of what was not placed. Raises: InputError where collected.csv is another table.
    """

    def __init__(self, course: Course, to: Path, roster: Roster | None, sources: Sources) -> None:
        before = lateness.rows(to)
        if before is None:
            raise InputError(
                f"{to / COLLECTED} is not a table that `grader collect` wrote; move it elsewhere. Nothing was collected."
            )
        self.learners: dict[str, LearnerOutcome] = {}
        self.others: list[tuple[str, str]] = []
        self._course, self._to, self._roster, self._sources = course, to, roster, sources
        self._before, self._rows = before, list[dict[str, str]]()  # of collected.csv
        self._owners: dict[str, str] = {}  # of folders, by what a file system may take each for
        self._time = datetime.now().isoformat(" ", "seconds")  # one for all that this run collects

    def place(self, download: Download, source: str) -> None:
        """Copies everything whose learner is known, learner by learner, each file whole or not at all.

        source: the download's name. Raises: OSError where the disk is full.
        """
        self.others += download.others
        self._to.mkdir(parents=True, exist_ok=True)
        submitted: dict[str, list[SubmittedFile]] = {}
        ambiguous = _ambiguous(download.files, self._roster) if self._roster else {}
        for file in download.files:
            for name in self._folders(file, ambiguous):
                submitted.setdefault(name, []).append(file)
        for name, files in submitted.items():
            self._sources.begin()
            learner = self.learners[name]
            attempts = self._within_limits(learner, _by_path(self._course, self._unpack(files)))
            learner.late |= any(file.late for versions in attempts.values() for file in versions)
            latest = {}
            for parts, versions in attempts.items():
                *older, latest[parts] = versions
                for file in older:
                    self._place_attempt({parts: file}, False, learner, source)
            if latest:
                self._place_attempt(latest, True, learner, source)

    def record(self) -> None:
        """Adds what was done to collected.csv; a file that was there before and is the same is no news."""
        news = [row for row in self._rows if row["state"] != "same"]
        if news:
            before = [[sheet.Verbatim(row.get(column) or "") for column in COLUMNS] for row in self._before]
            table = [COLUMNS, *before, *([row.get(column, "") for column in COLUMNS] for row in news)]
            links.write(self._to / COLLECTED, self._to, sheet.write(table).encode())

    def _folders(self, file: SubmittedFile, ambiguous: Mapping[str, Sequence[str]]) -> Iterator[str]:
        """The learners' folders that a file belongs to: several where a group handed it in."""
        for learner in file.learners:
            person = learner.person_on(self._roster) if self._roster else None
            name = person.key if person else _part(learner.name)
            if not person and name.lower() in NOT_LEARNERS:  # what a class's folder has beside its learners
                name = f"learner {name}"
            key = person.key if person else learner.name
            if self._roster and not person:
                reason = f"belongs to {learner}, who is not on the roster, or not with certainty"
            elif name in ambiguous:
                reason = (
                    f"could be {name}'s by the roster, and so could each of {', '.join(ambiguous[name])}: none of them was placed; "
                    "find out whose each is, and give the roster the platform's numbers or logins"
                )
            elif (other := self._owners.setdefault(fold_name(name), key)) != key:
                reason = f"is of {printable(key)}, whose folder would have the same name as that of {printable(other)}"
            else:
                self.learners.setdefault(name, LearnerOutcome(name))
                yield name
                continue
            self.others.append((file.member.name, reason))

    def _unpack(self, files: Iterable[SubmittedFile]) -> Iterator[SubmittedFile]:
        """An archive that a learner handed in is what it holds, in a folder of its name; one in that one stays as it is."""
        for file in files:
            if not file.parts[-1].lower().endswith(ARCHIVES):
                yield file
                continue
            try:
                contents = self._sources.inner(file.member)
            except InputError as error:
                self.others.append((file.member.name, f"is an archive that was not unpacked: it {error}"))
                yield file
                continue
            stem = file.parts[-1].split(".")[0] or "archive"
            self.others += [(f"{file.member.name}: {path}", reason) for path, reason in contents.refusals]
            for member in contents.members:
                parts = member.parts[1:] if len(member.parts) > 1 and member.parts[0] == stem else member.parts
                parts = (*file.parts[:-1], stem, *parts)
                yield replace(file, member=member, archive_changed=file.member.changed, parts=parts)

    def _within_limits(
        self, learner: LearnerOutcome, attempts: dict[Parts, list[SubmittedFile]]
    ) -> dict[Parts, list[SubmittedFile]]:
        """What of them one learner may hand in; the rest is told."""
        accepted: dict[Parts, list[SubmittedFile]] = {}
        count = size = 0
        for parts, files in attempts.items():
            latest = files[-MOST_ATTEMPTS:]
            if len(files) > len(latest):
                reason = f"is one of {len(files):,} attempts at the same file; the latest {MOST_ATTEMPTS} are collected"
                self.others.append((files[0].member.name, reason))
            count, size = count + len(latest), size + sum(file.member.size for file in latest)
            if count > LEARNER_FILES or size > LEARNER_BYTES:
                limit = f"{LEARNER_FILES:,} files" if count > LEARNER_FILES else f"{LEARNER_BYTES >> 20} MB"
                reason = f"and what follows of {printable(learner.name)} was not collected: it is more than {limit}"
                self.others.append((latest[0].member.name, reason))
                break
            accepted[parts] = latest
        return accepted

    def _place_attempt(
        self, files: Mapping[Parts, SubmittedFile], latest: bool, learner: LearnerOutcome, source: str
    ) -> None:
        """latest: whether no other attempt of this download comes after it."""
        names = (learner.name, sheet.guard(learner.name))  # in this run's rows, and in those read from the table
        rows = {
            sheet.guard(row["file"] or ""): row
            for row in (*self._before, *self._rows)
            if row["state"] == "placed" and (row["learner"] or "") in names
        }
        origins = {path: (row["source"], row["collected"]) for path, row in rows.items()}
        copies: dict[Parts, SubmittedFile] = {}
        try:
            folder = LearnerFolder(self._course, self._to, learner.name, origins)
            for parts, file in files.items():
                try:
                    folder.add(parts, file.member.data(), file.member.changed)
                    copies[parts] = file
                except (OSError, ValueError) as error:  # ValueError: what no file system takes for a name
                    self._fail(file, error)
            if not copies:
                return
            placement = folder.place(max(file.changed for file in copies.values()), latest)
        except OSError as error:
            for file in files.values():
                self._fail(file, error)
            return
        if placement.backup:
            learner.replaced.append(placement.backup)
            for path in map("/".join, placement.replaced):
                row = rows.get(sheet.guard(path), {"file": path, "learner": learner.name})
                self._rows.append(row | {"state": f"{placement.backup}/{path}", "collected": self._time})
        for parts, file in copies.items():
            path, state = "/".join(parts), placement.state
            learner.shortened += any(len(part.encode("utf-8", "replace")) > LONGEST for part in file.parts)
            if state not in ("same", "placed"):
                state = f"{state}/{path}"
                learner.earlier.append(state)
            else:
                (learner.same if state == "same" else learner.placed).append(path)
            late, row = "late" if file.late else "", rows.get(sheet.guard(path), {})
            if placement.stands and (row.get("late") or "", row.get("submitted") or "") != (late, file.submitted):
                state = "placed"  # no other file, but the platform says of it what it did not say before
            values = (learner.name, path, state, late, source, file.member.name, self._time, file.submitted)
            self._rows.append(dict(zip(COLUMNS, values, strict=True)))

    def _fail(self, file: SubmittedFile, error: Exception) -> None:
        """Notes a file that cannot be copied. Raises: the error where the disk is full, which ends it all."""
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            raise error
        self.others.append((file.member.name, f"could not be copied ({getattr(error, 'strerror', None) or error})"))


def _by_path(course: Course, files: Iterable[SubmittedFile]) -> dict[Parts, list[SubmittedFile]]:
    """One learner's files by their paths in that folder: of each its attempts, the latest last.

    Copies that were numbered because a lesson's notebook was handed in again are attempts at it. Other names keep their numbers.
    """
    attempts: dict[Parts, list[SubmittedFile]] = {}
    for file in files:
        *folders, name = file.parts
        match = _NUMBERED.fullmatch(name)
        if match and lesson_of_name(course, Path(f"{match[1]}.ipynb")) == match[1]:
            name = match[1] + match[2]
        attempts.setdefault(tuple(map(_part, (*folders, name))), []).append(file)
    for versions in attempts.values():
        versions.sort(key=lambda file: file.order)
    return attempts


def check(to: Path, sources: Sequence[Path]) -> None:
    """Raises: InputError where the folder can't take what is collected."""
    if to.exists() and not to.is_dir():
        raise InputError(f"{to} is a file; --to needs a folder.")
    others = list(to.iterdir()) if to.exists() and not (to / COLLECTED).exists() else []
    work = (path for path in others if path.is_dir() and not links.is_link(path) or path.suffix.lower() == ".ipynb")
    if names := join_names(sorted(printable(path.name) for path in work)):
        raise InputError(
            f"{to} holds {names}, which `grader collect` has not put there; name a new or an empty folder."
        )
    for source in filter(Path.is_dir, sources):
        inner, outer = to.resolve(), source.resolve()
        if inner.is_relative_to(outer) or outer.is_relative_to(inner):
            raise InputError(f"one of {to} and {source} is inside the other; --to needs a folder outside it.")


def check_disk_space(to: Path, files: Iterable[SubmittedFile]) -> None:
    """Raises: InputError where the disk has less room than the files need, of which those of one learner have a limit."""
    sizes: dict[object, int] = {}
    for file in files:
        sizes[file.learners] = min(sizes.get(file.learners, 0) + file.member.size, LEARNER_BYTES)
    size = sum(sizes.values())
    existing = next(folder for folder in (to, *to.resolve().parents) if folder.is_dir())
    free = shutil.disk_usage(existing).free
    if free < size + SPARE:
        raise InputError(
            f"the disk of {to} has {free >> 20} MB left, and {size + SPARE >> 20} MB are needed: the files have {size >> 20}, and "
            f"{SPARE >> 20} should stay free. Make room. Nothing was collected."
        )


def _ambiguous(files: Iterable[SubmittedFile], roster: Roster) -> dict[str, list[str]]:
    """By the folder's name the identities that a download has for one person, where there are several: one of them is another's."""
    identities: dict[str, set[str]] = {}
    for learner in {learner for file in files for learner in file.learners}:
        if person := learner.person_on(roster):
            identities.setdefault(person.key, set()).add(printable(learner.name))
    return {key: sorted(names) for key, names in identities.items() if len(names) > 1}


def _part(part: str) -> str:
    """One part of a path, as every system takes it. One that is too long keeps its ending, and a digest tells it from others like it."""
    safe = _FORBIDDEN.sub("-", "".join(map(printable, part))).rstrip(". ").lstrip(".") or "file"
    if len(safe.encode()) > LONGEST:
        digest, ending = sha256(part.encode("utf-8", "replace")).hexdigest()[:8], Path(safe).suffix
        ending = f"-{digest}{ending if len(ending) < 9 else ''}"
        safe = safe.encode()[: LONGEST - len(ending.encode())].decode("utf-8", "ignore") + ending
    return f"_{safe}" if _WINDOWS.match(safe) else safe
