"""From a PATH to what is run: finds a learner's notebooks, tells their lessons, plans each.

The trusted side reads strangers' files here; nothing in one of them makes it raise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from pathlib import Path

from grader import course
from grader.finding import find, in_place_of_notebooks
from grader.overlay import Plan, Pristine, empty_plan
from grader.reading import Notebook, Unreadable, code_cells, printable
from grader.reads import Here, Reads

__all__ = ["Plan", "Submission", "SubmissionError", "nothing_handed_in", "read_submission"]


class SubmissionError(ValueError):
    """A PATH that cannot be graded at all; one sentence for the person who typed it."""


@dataclass(frozen=True)
class Submission:
    """One learner's notebooks, read. message: what to mend where one cannot be read, else ''.

    lessons: those to grade, in the course's order. A plan is made when it is asked for, because it needs
    the lesson's specification, whose import takes a while.
    """

    name: str
    path: str
    lessons: tuple[str, ...]
    message: str
    mentions_torch: bool
    found: _Found

    @property
    def unreadable(self) -> str:
        """What is the trouble with the first file that cannot be read; '' where all can."""
        return next((file.what for file in self.found.read if file.notebook is None), "")

    def plan(self, lesson: str) -> Plan:
        """What to run of one of its lessons."""
        return self.found.plan(lesson)


@dataclass(frozen=True)
class _Read:
    """A file: its notebook, and its lesson or ''. what: the trouble with it; problem: also what to mend."""

    path: Path
    notebook: Notebook | None
    lesson: str
    what: str = ""
    problem: str = ""


@dataclass(frozen=True)
class _Found:
    """All files of a submission, and the one that counts for each lesson."""

    read: list[_Read]
    chosen: dict[str, _Read]
    notes: dict[str, list[str]]
    reads: Reads

    def plan(self, lesson: str) -> Plan:
        file = self.chosen.get(lesson)
        try:
            if file is not None and file.notebook is not None:
                plan = self.reads.plan(_pristine(lesson), file.notebook)
            else:
                plan = empty_plan(lesson, course.CONTRACT[lesson], self._trouble(lesson).what)
        except Unreadable as error:
            plan = replace(empty_plan(lesson, course.CONTRACT[lesson], error.what), notes=(str(error),))
        return replace(plan, notes=(*self.notes.get(lesson, ()), *plan.notes))

    def message(self, lessons: Sequence[str]) -> str:
        """What to mend: of each lesson's own file, and of files whose lesson cannot be told."""
        absent = [lesson for lesson in lessons if lesson not in self.chosen or self.chosen[lesson].problem]
        said = [self._trouble(lesson).problem for lesson in absent]
        said += [file.problem for file in self.read if not file.lesson]
        return " ".join(dict.fromkeys(said))[:4000]

    def _trouble(self, lesson: str) -> _Read:
        """What stands for a lesson whose notebook is absent or cannot be read."""
        unknown = [file for file in self.read if not file.lesson]
        if lesson in self.chosen:
            return self.chosen[lesson]
        if unknown:
            return unknown[0]
        what = f"No notebook of lesson {lesson} was handed in."
        return _Read(Path(), None, lesson, what, f"{what} {lesson}.ipynb is expected.")


@cache
def _pristine(lesson: str) -> Pristine:
    cells = code_cells(course.pristine(lesson)) or []
    return Pristine.of(lesson, course.CONTRACT[lesson], [astuple(cell) for cell in cells])


def read_submission(
    path: str | Path, name: str | None = None, lessons: Sequence[str] | None = None, reads: Reads | None = None
) -> Submission:
    """Reads what a learner handed in: one notebook, or a folder of notebooks.

    name:    the learner's; by default the folder's name, or the file's without its ending.
    lessons: the lessons to grade; by default those that the notebooks belong to. A lesson without a
             notebook has every exercise missing.
    reads:   who reads the files, a Reader for a stranger's; by default this process, however long it takes.
    Raises:  SubmissionError for a path that is not there, is no notebook or holds none, and for an
             unknown lesson.
    """
    path = Path(path)
    asked = _known(lessons)
    files, notes = _files_of(path)
    reads = reads or Here()
    reads.begin()
    read = [_read(file, asked, reads) for file in files]
    found = _Found(read, *_choose(read), reads)
    if asked is None:
        asked = tuple(lesson for lesson in course.lessons() if lesson in found.chosen) or course.lessons()
    for note in notes:
        found.notes.setdefault(asked[0], []).append(note)
    cells = [cell for file in found.chosen.values() if file.notebook for cell in file.notebook.cells]
    torch = any("torch" in cell.text for cell in cells)
    return Submission(name or _name(path), str(path), asked, found.message(asked), torch, found)


def nothing_handed_in(name: str, path: str, lessons: Sequence[str] | None = None) -> Submission:
    """What stands for a learner of a class who handed in no notebook: every exercise is missing."""
    asked = _known(lessons) or course.lessons()
    return Submission(name, path, asked, "No notebook was handed in: files that end in .ipynb are expected.", False,
                      _Found([], {}, {}, Here()))  # fmt: skip


def _known(lessons: Sequence[str] | None) -> tuple[str, ...] | None:
    """The lessons asked for, in the course's order; '01' stands for '01_three_tokens'."""
    if lessons is None:
        return None
    found = set()
    for asked in lessons:
        matches = [name for name in course.lessons() if name == asked or name.partition("_")[0] == asked]
        if not matches:
            raise SubmissionError(f"There is no lesson {asked!r}; the lessons are {', '.join(course.lessons())}.")
        found.update(matches)
    return tuple(name for name in course.lessons() if name in found)


def _files_of(path: Path) -> tuple[list[Path], list[str]]:
    """The notebooks of a path, and notes on those left aside. Raises: SubmissionError as read_submission() does."""
    said = printable(str(path))
    try:
        if path.is_file():
            if path.suffix.lower() != ".ipynb":
                raise SubmissionError(f"{said} is not a notebook: a file that ends in .ipynb is expected.")
            return [path], []
        if not path.is_dir():
            raise SubmissionError(f"{said} is not there." if not path.exists() else f"{said} is no file and no folder.")
        found = find(path)
    except OSError as error:
        raise SubmissionError(f"{said} cannot be opened: {error.strerror}.") from None
    if not found.files:
        expected = "files that end in .ipynb are expected, there, in notebooks/, or in a folder below"
        raise SubmissionError(" ".join((f"{said} holds no notebook: {expected}.", *found.notes, in_place_of_notebooks(path))).strip())
    return found.files, found.notes


def _read(path: Path, asked: tuple[str, ...] | None, reads: Reads) -> _Read:
    try:
        notebook = reads.notebook(path)
    except Unreadable as error:
        return _Read(path, None, _lesson_of_name(path), error.what, str(error))
    lesson = notebook.lesson if notebook.lesson in course.lessons() else ""
    lesson = lesson or _lesson_of_name(path) or _lesson_of_cells(notebook)
    if not lesson and asked is not None and len(asked) == 1:
        lesson = asked[0]
    if lesson:
        return _Read(path, notebook, lesson)
    what = f"{notebook.file} belongs to no lesson of this course."
    mend = "Neither its name nor the functions that it defines say which; a name such as 01_three_tokens.ipynb does."
    return _Read(path, notebook, "", what, f"{what} {mend}")


def _lesson_of_name(path: Path) -> str:
    stem = path.stem.lower()
    for lesson in course.lessons():
        if lesson in stem:
            return lesson
    number = re.match(r"(?:lesson[ _-]?)?(\d\d)(?!\d)", stem)
    return next((name for name in course.lessons() if number and name.startswith(f"{number[1]}_")), "")


def _lesson_of_cells(notebook: Notebook) -> str:
    """The lesson with the most exercises that the notebook defines."""
    counts = Counter({lesson: len(notebook.defines & set(course.CONTRACT[lesson])) for lesson in course.lessons()})
    return next((lesson for lesson, count in counts.most_common(1) if count), "")


def _choose(read: list[_Read]) -> tuple[dict[str, _Read], dict[str, list[str]]]:
    """One file a lesson: the one that has the lesson's own name, else the one last changed."""
    chosen: dict[str, _Read] = {}
    notes: dict[str, list[str]] = {}
    for lesson in {file.lesson for file in read if file.lesson}:
        files = [file for file in read if file.lesson == lesson]
        best = max(
            files, key=lambda file: (file.path.stem.lower() == lesson, file.notebook is not None, _changed(file))
        )
        chosen[lesson] = best
        others = [printable(file.path.name) for file in files if file is not best]
        if others:
            why = "has the lesson's own name" if best.path.stem.lower() == lesson else "was changed last"
            first = f"{printable(best.path.name)} counts, because it {why}"
            notes[lesson] = [f"More than one notebook of this lesson: {first}; not read: {', '.join(others[:10])}."]
    return chosen, notes


def _changed(file: _Read) -> tuple[float, str]:
    try:
        return file.path.stat().st_mtime, file.path.name
    except OSError:
        return 0.0, file.path.name


def _name(path: Path) -> str:
    resolved = path.resolve()
    return resolved.stem if path.is_file() else resolved.name
