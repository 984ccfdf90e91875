"""Who is in a class's folder, what each handed in, as bytes that can travel to another process or machine, and what is graded of it.

Strangers' files are opened here and nothing in them is parsed: submission/ipynb.py does that, where they are graded. As which lesson
a notebook is graded, submission.py says.
"""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from grader.course.course import Course
from grader.grading.journal import JournalEntry
from grader.submission import platforms
from grader.submission.discover import NOT_LEARNERS, FolderSearch, save_order
from grader.submission.ipynb import MAX_FILE_BYTES
from grader.submission.lesson_recognition import lesson_of_bytes
from grader.util import links
from grader.util.errors import InputError
from grader.util.names import labels, learner_name, printable, same_name_groups
from grader.util.words import did_you_mean, join_names

MOST_BYTES = 128 << 20  # of one submission's notebooks together


@dataclass(frozen=True)
class ClassEntry:
    """One learner's place in the folder. key: the entry's name as it is; name: for reports."""

    key: str
    name: str
    path: Path


class FileRecord(NamedTuple):
    """A notebook without its bytes. place: its path within the submission; lesson: '' for none; content: the SHA-256."""

    place: str
    lesson: str
    content: bytes


@dataclass(frozen=True)
class InventoryEntry(ClassEntry):
    """A learner, and what was handed in when the run began. digest: as PackedSubmission has it."""

    digest: str
    files: tuple[FileRecord, ...]


@dataclass(frozen=True)
class PackedFile:
    """One file. place: its path within the submission; data: None for a file too large or of no ordinary kind."""

    place: tuple[str, ...]
    data: bytes | None
    size: int
    changed_ns: int

    @property
    def content(self) -> bytes:
        """The SHA-256 of its bytes, or of none."""
        return hashlib.sha256(self.data or b"").digest()


@dataclass(frozen=True)
class PackedSubmission:
    """A whole submission. digest: changes with whatever a result could depend on.

    notes: on what was not read; attention: those of them that whoever grades should look at. others: files that are no notebooks.
    closed: those of the notes on what this computer does not open, for which no learner is to lose marks.
    """

    key: str
    name: str
    path: str
    files: tuple[PackedFile, ...]
    notes: tuple[str, ...] = ()
    attention: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        digest = hashlib.sha256()
        order = save_order(file.changed_ns for file in self.files)  # which was saved last, not when
        for file in self.files:
            traits = ("/".join(file.place), file.size, file.data is None, order[file.changed_ns])
            digest.update(repr(traits).encode() + file.content)
        digest.update(repr((self.name, self.notes, *self.others)).encode())
        return digest.hexdigest()[:32]


def entries(folder: Path) -> tuple[list[ClassEntry], list[str]]:
    """The learners of a class's folder, sorted by name, and the names of what was passed over.

    Raises: InputError where there is no such folder, none of its entries can be a learner's, or they are as a learning
    platform or an archive has them.
    """
    place = printable(str(folder))
    try:
        keys = sorted(os.listdir(folder))
    except FileNotFoundError:
        raise InputError(f"there is no folder {place}.") from None
    except NotADirectoryError:
        is_archive = bool(platforms.archive_refusal([folder.name]))
        raise InputError(
            f"{place} is an archive, which is not opened: `grader collect ARCHIVE --to collected` sorts it into "
            "one folder per learner; name that."
            if is_archive
            else f"{place} is a file; a folder with one subfolder or notebook per learner is expected. "
            "`grader grade` takes a single notebook."
        ) from None
    except OSError as error:
        raise InputError(f"{place} can't be opened: {error.strerror}.") from None
    files = [key for key in keys if not os.path.isdir(folder / key)]
    if refusal := platforms.refusal(keys) or platforms.archive_refusal(files):
        raise InputError(f"{place} {refusal}")
    learners = [entry for key in keys if (entry := _entry(folder / key, key))]
    if not learners:
        raise InputError(f"{place} contains no learner; expected one subfolder or one .ipynb file for each.")
    learners.sort(key=lambda entry: (unicodedata.normalize("NFKC", entry.name).casefold(), entry.key))
    expected = {*NOT_LEARNERS} - {"solutions"}  # which may be somebody's
    others = {key for key in keys if key[0] != "." and key.lower() not in expected}
    return learners, [printable(key) for key in sorted(others - {entry.key for entry in learners})]


def _entry(path: Path, key: str) -> ClassEntry | None:
    if key.startswith(".") or key.lower() in NOT_LEARNERS:
        return None
    notebook = path.suffix.lower() == ".ipynb"
    if not (notebook or os.path.isdir(path) or links.is_link(path) and not os.path.isfile(path)):
        return None
    return ClassEntry(key, learner_name(path.stem if notebook else key), path)


def same_name_warnings(learners: Sequence[ClassEntry]) -> list[str]:
    """A sentence on each group of learners whose names a grade book may take for one, and what stands for them."""
    names = [entry.name for entry in learners]
    aliases = labels(names)
    return [
        f"{', '.join(names[i] for i in group)} differ at most in case, spaces, or invisible characters; the reports "
        f"call them {', '.join(aliases[i] for i in group)}: find out whose work each one is before you import grades."
        for group in same_name_groups(names)
    ]


def pack(entry: ClassEntry) -> PackedSubmission:
    """Reads what an entry holds; whatever can't be read is a note. Never raises for what lies there."""
    identity = (entry.key, entry.name, str(entry.path))
    if links.is_link(entry.path):
        note = (f"{links.sentence(entry.path, printable(entry.key))}; links are not followed, so it was not read.",)
        return PackedSubmission(*identity, (), note, note)
    try:
        search = FolderSearch(entry.path) if os.path.isdir(entry.path) else None
    except OSError as error:
        note = (f"{printable(entry.name)} cannot be opened ({error.strerror}); it was not read.",)
        return PackedSubmission(*identity, (), note, note, (), note)
    files, notes, closed = [], search.notes if search else [], search.closed if search else []
    room = MOST_BYTES
    for path in search.files if search else [entry.path]:
        place = path.relative_to(entry.path).parts or (path.name,)
        name = printable("/".join(place))
        try:
            content = links.read(path, entry.path.parent, min(MAX_FILE_BYTES, room))
        except links.LinkError as error:
            notes.append(f"{error} It was not read.")
            continue
        except OSError as error:
            closed.append(f"{name} cannot be opened ({error.strerror}); it was not read.")
            notes.append(closed[-1])
            continue
        data, status = content.data, content.status
        size = len(data or b"")
        if not stat.S_ISREG(status.st_mode):
            size = -1
        elif status.st_size > MAX_FILE_BYTES:  # said so where it is read; its bytes need not travel
            size = status.st_size
        elif data is None:
            notes.append(f"{name} was not read: the notebooks together have more than {MOST_BYTES >> 20} MB.")
            continue
        room -= len(data or b"")
        files.append(PackedFile(place, data, size, status.st_mtime_ns))
        notes += links.hard_link_note(name, status)
    attention = tuple(note for note in notes if not search or note not in search.expected)
    others = tuple(search.others) if search else ()
    return PackedSubmission(*identity, tuple(files), tuple(notes), attention, others, tuple(closed))


def unpack(submission: PackedSubmission, folder: Path) -> Path | None:
    """Lays a submission out in an empty folder. Returns: that, None where no notebook was handed in."""
    for file in submission.files:
        if any(part in ("", ".", "..") or os.sep in part for part in file.place):
            raise ValueError(f"not a place within a submission: {file.place!r}")
        path = folder.joinpath(*file.place)
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.data is not None:
            path.write_bytes(file.data)
        elif file.size >= 0:
            with path.open("wb") as stream:
                stream.truncate(file.size)  # all holes: its size is all that is looked at
        elif hasattr(os, "mkfifo"):
            os.mkfifo(path)
            continue
        os.utime(path, ns=(file.changed_ns, file.changed_ns))
    return folder if submission.files else None


def take_inventory(course: Course, learners: Iterable[ClassEntry]) -> list[InventoryEntry]:
    """What each of them handed in, read once for all that is asked of it; of the bytes one learner's are in memory."""
    inventory = []
    for entry in learners:
        submission, files = pack(entry), []
        for file in submission.files:
            lesson = lesson_of_bytes(course, Path(file.place[-1]), file.data or b"")
            files.append(FileRecord("/".join(file.place), lesson, file.content))
        inventory.append(InventoryEntry(entry.key, entry.name, entry.path, submission.digest, tuple(files)))
    return inventory


def choose_lessons(
    course: Course, learners: Sequence[InventoryEntry], previous: Sequence[str] = ()
) -> tuple[tuple[str, ...], list[str]]:
    """The lessons that at least half of the learners handed in, and sentences: which these are, what every other lesson would change.

    previous: those of the run that goes on, whatever came since.
    Raises: InputError where no lesson was handed in by half of them: any choice would be a guess that decides the marks.
    """
    counts = Counter[str]()
    for learner in learners:
        counts.update({file.lesson for file in learner.files} - {""})
    lessons = tuple(previous or sorted(lesson for lesson, count in counts.items() if 2 * count >= len(learners)))
    if not lessons:
        tally = ", ".join(f"lesson {name[:2]} by {counts[name]}" for name in sorted(counts)) or "there is no notebook"
        example = _numbers(sorted(counts) or course.lessons()[:1])
        raise InputError(
            f"no lesson was handed in by at least half of the {len(learners)} learners ({tally}). Say which to grade, "
            f"such as --lessons {example}; a lesson that was not handed in counts as missing."
        )
    noun, verb, pronoun = ("Lessons", "are", "them") if len(lessons) > 1 else ("Lesson", "is", "it")
    numbers = join_names([lesson[:2] for lesson in lessons], len(lessons))
    sentences = [
        f"{noun} {numbers} {verb} graded: at least half of the learners had handed {pronoun} in when this run began. "
        "A lesson that was not handed in counts as missing."
    ]
    for lesson in sorted(set(counts) - set(lessons)):
        option = f"--lessons {_numbers(sorted({*lessons, lesson}))}"
        sentences.append(
            f"{option} would add lesson {lesson[:2]}, which {counts[lesson]} of {len(learners)} handed in."
        )
    return lessons, sentences


def _numbers(lessons: Iterable[str]) -> str:
    return ",".join(lesson[:2] for lesson in lessons)


def plan_resume(
    learners: Sequence[InventoryEntry], graded: Mapping[str, JournalEntry], regrade: Collection[str] = ()
) -> tuple[dict[str, JournalEntry], list[InventoryEntry], list[str]]:
    """Of a run that goes on: which results stay, by key, who is graded now, and sentences on why.

    learners: who is in the class's folder now. graded: the journal's results. regrade: keys of those to grade whatever was found.
    """
    results: dict[str, JournalEntry] = {}
    pending: list[InventoryEntry] = []
    groups: dict[str, list[str]] = {}  # names by reason
    for learner in learners:
        result = graded.get(learner.key)
        if result is None:
            reason = "Not in the journal yet, graded now"
        elif result.digest != learner.digest:
            reason = "Changed since they were graded, graded again"
        elif result.report.ungraded:
            reason = "Could not be graded completely, tried again"
        elif learner.key in regrade:
            reason = "Graded again as asked"
        else:
            results[learner.key] = result
            continue
        pending.append(learner)
        groups.setdefault(reason, []).append(learner.name)
    absent = graded.keys() - {learner.key for learner in learners}
    if names := [result.report.name for key, result in graded.items() if key in absent]:
        groups["No longer in the folder, and in no report"] = names
    return results, pending, [f"{reason}: {join_names(names)}." for reason, names in groups.items()] if graded else []


def keys_of(names: Sequence[str], learners: Sequence[ClassEntry]) -> frozenset[str]:
    """The keys of learners who are named as in the folder or as in the reports.

    Raises: InputError, with the nearest name, for one who isn't there.
    """
    keys = set()
    for name in names:
        matches = {entry.key for entry in learners if name in (entry.key, entry.name)}
        if not matches:
            suggestion = did_you_mean(name, [entry.name for entry in learners])
            raise InputError(f"there is no learner {printable(name)!r} in the folder{suggestion}")
        keys |= matches
    return frozenset(keys)
