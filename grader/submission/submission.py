"""From a PATH to what is run: finds a learner's notebooks, tells their lessons, plans each.

The trusted side reads strangers' files here; nothing in one of them makes it raise.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from grader.course.course import Course
from grader.submission import platforms
from grader.submission.discover import find, in_place_of_notebooks, level_of, save_order
from grader.submission.ipynb import Notebook, Unreadable, code_cells
from grader.submission.plan import Plan, Pristine, empty_plan
from grader.submission.reads import LocalReader
from grader.util import links
from grader.util.names import of_learner, printable

__all__ = ["Plan", "Submission", "SubmissionError", "nothing_handed_in", "read_submission"]


class SubmissionError(ValueError):
    """A PATH that cannot be graded at all; one sentence for the person who typed it."""


@dataclass(frozen=True)
class Submission:
    """One learner's notebooks, read. message: what to fix where one cannot be read, else ''.

    lessons: those to grade, in the course's order. A plan is made when it is asked for, because it needs
    the lesson's specification, whose import takes a while.
    """

    name: str
    path: str
    lessons: tuple[str, ...]
    message: str
    mentions_torch: bool
    found: _Files

    @property
    def unreadable(self) -> str:
        """What is the trouble with the first file that cannot be read; '' where all can."""
        return next((file.what for file in self.found.read if file.notebook is None), "")

    @property
    def attention(self) -> tuple[str, ...]:
        """What whoever grades should look at: what cannot be read, or belongs to no lesson, and where one of several copies counts."""
        sentences = [file.problem for file in self.found.read if file.problem]
        for lesson in self.lessons:
            sentences += [*self.found.notes.get(lesson, ()), *self.found.doubts.get(lesson, ())]
        return tuple(dict.fromkeys(sentences))

    def plan(self, lesson: str) -> Plan:
        """What to run of one of its lessons."""
        return self.found.plan(lesson)


@dataclass(frozen=True)
class _File:
    """A file: its notebook, and its lesson or ''. what: the trouble with it; problem: also what to fix.

    place: its path within what was handed in, printable; level: the folders between; changed: when, in ns.
    """

    place: str
    level: int
    changed: int
    notebook: Notebook | None
    lesson: str
    what: str = ""
    problem: str = ""

    @property
    def named(self) -> bool:
        """Whether it has its lesson's own name."""
        return PurePosixPath(self.place).stem.lower() == self.lesson


@dataclass(frozen=True)
class _Files:
    """All files of a submission, and the one that counts for each lesson. doubts: where another may be meant."""

    read: list[_File]
    chosen: dict[str, _File]
    notes: dict[str, list[str]]
    doubts: dict[str, list[str]]
    reader: LocalReader
    course: Course

    def plan(self, lesson: str) -> Plan:
        file = self.chosen.get(lesson)
        try:
            if file is not None and file.notebook is not None:
                plan = self.reader.plan(_pristine(self.course, lesson), file.notebook)
            else:
                trouble = self._trouble(lesson)
                plan = empty_plan(lesson, self.course.exercises[lesson], trouble.what, handed_in=bool(trouble.place))
        except Unreadable as error:
            plan = replace(empty_plan(lesson, self.course.exercises[lesson], error.what), notes=(str(error),))
        return replace(plan, notes=(*self.notes.get(lesson, ()), *plan.notes))

    def message(self, lessons: Sequence[str]) -> str:
        """What to fix: of each lesson's own file, of files whose lesson cannot be told, of later copies."""
        absent = [lesson for lesson in lessons if lesson not in self.chosen or self.chosen[lesson].problem]
        sentences = [self._trouble(lesson).problem for lesson in absent]
        sentences += [file.problem for file in self.read if not file.lesson]
        sentences += [doubt for lesson in lessons for doubt in self.doubts.get(lesson, ())]
        return " ".join(dict.fromkeys(sentences))[:4000]

    def _trouble(self, lesson: str) -> _File:
        """What stands for a lesson whose notebook is absent or cannot be read."""
        unknown = [file for file in self.read if not file.lesson]
        if lesson in self.chosen:
            return self.chosen[lesson]
        if unknown:
            return unknown[0]
        what = f"No notebook of lesson {lesson} was handed in."
        return _File("", 0, 0, None, lesson, what, f"{what} {lesson}.ipynb is expected.")


@cache
def _pristine(course: Course, lesson: str) -> Pristine:
    cells = code_cells(course.pristine(lesson)) or []
    return Pristine.of(lesson, course.exercises[lesson], [astuple(cell) for cell in cells])


def read_submission(
    course: Course,
    path: str | Path,
    name: str | None = None,
    lessons: Sequence[str] | None = None,
    reader: LocalReader | None = None,
    base: Path | None = None,
) -> Submission:
    """Reads what a learner handed in: one notebook, or a folder of notebooks.

    name:    the learner's; by default the folder's name, or the file's without its ending.
    lessons: the lessons to grade; by default those that the notebooks belong to. A lesson without a
             notebook has every exercise missing.
    reader:  who reads the files, a Reader for a stranger's; by default this process, however long it takes.
    base:    the folder above it below which no link is followed; by default the current one for a relative path, and
             for an absolute one the folder that holds it.
    Raises:  SubmissionError for a path that is not there, is no notebook or holds none, for one with a
             link on the way, and for an unknown lesson.
    """
    path = Path(path)
    base = base or (path.parent if path.is_absolute() else Path())
    asked = _known(course, lessons)
    files, notes = _files_of(path, base)
    top = path if path not in files else path.parent
    reader = reader or LocalReader()
    reader.begin()
    read = [_read(course, file, top, base, asked, reader) for file in files]
    chosen, notes_of, doubts = _choose(course, read)
    found = _Files(read, chosen, notes_of, doubts, reader, course)
    if asked is None:
        asked = tuple(lesson for lesson in course.lessons() if lesson in found.chosen) or course.lessons()
    for note in notes:
        found.notes.setdefault(asked[0], []).append(note)
    cells = [cell for file in found.chosen.values() if file.notebook for cell in file.notebook.cells]
    torch = any("torch" in cell.text for cell in cells)
    return Submission(name or _name(path), str(path), asked, found.message(asked), torch, found)


def nothing_handed_in(course: Course, name: str, path: str, lessons: Sequence[str] | None = None) -> Submission:
    """What stands for a learner of a class who handed in no notebook: every exercise is missing."""
    asked = _known(course, lessons) or course.lessons()
    return Submission(
        name,
        path,
        asked,
        "No notebook was handed in: files that end in .ipynb are expected.",
        False,
        _Files([], {}, {}, {}, LocalReader(), course),
    )


def _known(course: Course, lessons: Sequence[str] | None) -> tuple[str, ...] | None:
    """The lessons asked for, in the course's order; '01' stands for '01_three_tokens'."""
    if lessons is None:
        return None
    found = set()
    for asked in lessons:
        matches = [
            name for name in course.lessons() if name == course.current_name(asked) or name.partition("_")[0] == asked
        ]
        if not matches:
            raise SubmissionError(f"There is no lesson {asked!r}; the lessons are {', '.join(course.lessons())}.")
        found.update(matches)
    return tuple(name for name in course.lessons() if name in found)


def _files_of(path: Path, base: Path) -> tuple[list[Path], list[str]]:
    """The notebooks of a path, and notes on those left aside. Raises: SubmissionError as read_submission() does."""
    place = printable(str(path))
    link = links.first(path, base)
    if link is not None:
        why = "Links are not followed, since they may lead to another learner's work: give the path of the work itself."
        raise SubmissionError(f"{links.sentence(link)}. {why}")
    try:
        if path.is_file():
            if path.suffix.lower() != ".ipynb":
                unpack = " Unpack it first." if platforms.packed([path.name]) else ""
                raise SubmissionError(f"{place} is not a notebook: a file that ends in .ipynb is expected.{unpack}")
            return [path], []
        if not path.is_dir():
            raise SubmissionError(
                f"{place} is not there." if not path.exists() else f"{place} is neither a file nor a folder."
            )
        found = find(path, base)
    except OSError as error:
        raise SubmissionError(f"{place} cannot be opened: {error.strerror}.") from None
    if not found.files:
        expected = "files that end in .ipynb are expected, there, in notebooks/, or in a folder below"
        raise SubmissionError(
            " ".join((f"{place} contains no notebook: {expected}.", *found.notes, in_place_of_notebooks(path))).strip()
        )
    return found.files, found.notes


def _read(
    course: Course, path: Path, top: Path, base: Path, asked: tuple[str, ...] | None, reader: LocalReader
) -> _File:
    place, level = printable(path.relative_to(top).as_posix()), level_of(path, top)
    about = (place, level, _changed(path))
    try:
        notebook = reader.notebook(path, base)
    except Unreadable as error:
        return _File(*about, None, lesson_of_name(course, path), error.what, str(error))
    lesson = course.current_name(notebook.lesson) if course.current_name(notebook.lesson) in course.lessons() else ""
    elsewhere = (
        course.current_name(notebook.lesson) in course.exercises and not lesson
    )  # its name or its cells may resemble another lesson's
    lesson = lesson or ("" if elsewhere else lesson_of_name(course, path) or _lesson_of_cells(course, notebook))
    if not lesson and not elsewhere and asked is not None and len(asked) == 1:
        lesson = asked[0]
    if lesson:
        return _File(*about, notebook, lesson)
    other = course.other_handout(course.current_name(notebook.lesson))
    if other:
        what = f"{place} was not graded."
        return _File(*about, notebook, "", what, f"{what} {other}")
    what = f"{place} belongs to no lesson of this course."
    advice = "Neither its name nor the functions that it defines say which; a name such as 01_three_tokens.ipynb does."
    return _File(*about, notebook, "", what, f"{what} {advice}")


def lesson_of_name(course: Course, path: Path) -> str:
    """The lesson that a file's name tells, '' for none."""
    stem = path.stem.lower()
    for lesson in (*course.lessons(), *course.renamed):
        if lesson in stem:
            return course.current_name(lesson)
    number = re.match(r"(?:lesson[ _-]?)?(\d\d)(?!\d)", stem)
    return next((name for name in course.lessons() if number and name.startswith(f"{number[1]}_")), "")


def _lesson_of_cells(course: Course, notebook: Notebook) -> str:
    """The lesson with the most exercises that the notebook defines."""
    counts = Counter({lesson: len(notebook.defines & set(course.exercises[lesson])) for lesson in course.lessons()})
    return next((lesson for lesson, count in counts.most_common(1) if count), "")


def _choose(course: Course, read: list[_File]) -> tuple[dict[str, _File], dict[str, list[str]], dict[str, list[str]]]:
    """One file a lesson. Also a sentence on what else there was: on copies of the same work in the lesson's notes, else in what to fix.

    One in which nothing was attempted never counts before one in which something was. Of several with work the one saved last counts;
    where the times agree the one with the most in it, then the one with the lesson's own name, then the one nearest to the top.
    """
    chosen: dict[str, _File] = {}
    notes: dict[str, list[str]] = {}
    doubts: dict[str, list[str]] = {}
    for lesson in {file.lesson for file in read if file.lesson}:
        files = [file for file in read if file.lesson == lesson]
        if len(files) > 1:
            saved = save_order(file.changed for file in files)
            ranks = {file.place: _rank(course, file, saved[file.changed]) for file in files}
            files.sort(key=lambda file: ranks[file.place], reverse=True)
            sentence = _set_aside(files, ranks)
            if any(_texts(file) != _texts(files[0]) for file in files):
                doubts[lesson] = [f"{sentence} Hand in one notebook of each lesson, as {lesson}.ipynb."]
            else:
                notes[lesson] = [sentence]
        chosen[lesson] = files[0]
    return chosen, notes, doubts


class _Rank(NamedTuple):
    """What decides which of a lesson's notebooks counts, the first that differs. worth: 2 with work, 1 unreadable, 0 without."""

    worth: int
    saved: int
    attempts: int
    named: bool
    nearness: int
    place: str


def _rank(course: Course, file: _File, saved: int) -> _Rank:
    attempts = _pristine(course, file.lesson).attempts(file.notebook) if file.notebook else 0
    worth = 1 if file.notebook is None else 2 if attempts else 0
    return _Rank(worth, saved, attempts, file.named, -file.level, file.place)


def _set_aside(files: Sequence[_File], ranks: dict[str, _Rank]) -> str:
    """Which of a lesson's notebooks counts, the first, and why each of the others does not."""
    best, *others = files
    reasons = [
        f"{file.place} ({_reason(ranks[file.place], ranks[best.place], _texts(file) == _texts(best))})"
        for file in others[:10]
    ]
    more = [f"and {len(others) - 10} more"] if len(others) > 10 else []
    return f"There is more than one notebook of lesson {best.lesson}: {best.place} counts. Set aside: {', '.join([*reasons, *more])}."


def _reason(mine: _Rank, best: _Rank, same: bool) -> str:
    if same:
        return "the same code"
    if mine.worth != best.worth:
        return "cannot be read" if mine.worth == 1 else "nothing was attempted in it"
    if mine.saved != best.saved:
        return "saved earlier"
    if mine.attempts != best.attempts:
        return "saved at the same time, with fewer exercises attempted"
    if mine.named != best.named:
        return "saved at the same time, but without the lesson's own name"
    return f"saved at the same time{', but deeper in the folders' if mine.nearness != best.nearness else ''}"


def _texts(file: _File) -> list[str] | None:
    return [cell.text for cell in file.notebook.cells] if file.notebook else None


def _changed(path: Path) -> int:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0


def _name(path: Path) -> str:
    whole = Path(os.path.abspath(path))
    return of_learner(whole.stem if path.is_file() else whole.name)
