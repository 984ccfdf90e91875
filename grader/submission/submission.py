"""From a PATH to what is run: finds a learner's notebooks, tells their lessons, plans each.

The trusted side reads strangers' files here; nothing in one of them makes it raise.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from operator import itemgetter
from pathlib import Path, PurePosixPath

from grader.course.course import Course
from grader.submission import platforms
from grader.submission.discover import FolderSearch, describe_contents, level_of, save_order
from grader.submission.ipynb import MAX_FILE_BYTES, Notebook, Unreadable, code_cells
from grader.submission.lesson_recognition import lesson_of_bytes, recognize_lesson
from grader.submission.plan import LocalReader, Plan, Pristine, empty_plan
from grader.util import links
from grader.util.errors import InputError
from grader.util.names import learner_name, printable
from grader.util.words import join_names


@dataclass(frozen=True)
class _File:
    """A file: its notebook, and its lesson or ''. summary: of the trouble with it; problem: also what to fix.

    place: its path within what was handed in, printable; level: the folders between; mtime_ns: when it changed.
    """

    place: str
    level: int
    mtime_ns: int
    notebook: Notebook | None
    lesson: str
    summary: str = ""
    problem: str = ""

    @property
    def texts(self) -> list[str] | None:
        return [cell.text for cell in self.notebook.cells] if self.notebook else None


@dataclass(frozen=True)
class Submission:
    """One learner's notebooks, read. A plan is made when it is asked for: that imports the lesson, which takes a while.

    lessons: those to grade, in the course's order. files: all; lesson_files: the one that counts for each.
    notes: sentences by lesson; doubts: those on lessons of which another file may be meant.
    """

    course: Course
    name: str
    path: str
    lessons: tuple[str, ...]
    files: Sequence[_File] = ()
    lesson_files: Mapping[str, _File] = field(default_factory=dict)
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)
    reader: LocalReader = field(default_factory=LocalReader)

    @property
    def needs_torch(self) -> bool:
        """Whether a lesson needs it, or some code speaks of it."""
        texts = (text for file in self.lesson_files.values() for text in file.texts or ())
        return any("torch" in text for text in texts) or any(map(self.course.needs_torch, self.lessons))

    @property
    def attention(self) -> tuple[str, ...]:
        """What whoever grades should look at: what can't be read, or is of no lesson or another, where one of several copies counts."""
        sentences = [file.problem for file in self.files if file.problem]
        for lesson in self.lessons:
            sentences += [*self.notes.get(lesson, ()), *filter(None, [self.doubts.get(lesson)])]
        if self.lesson_files and self.lesson_files.keys().isdisjoint(self.lessons):
            numbers = join_names([lesson[:2] for lesson in self.lessons], len(self.lessons))
            others = join_names(sorted(self.lesson_files))
            sentences.append(f"Of the lessons that count here ({numbers}) none was handed in, but {others}.")
        return tuple(dict.fromkeys(sentences))

    @property
    def message(self) -> str:
        """What to fix: of each lesson's own file, of files whose lesson cannot be told, of later copies; '' for nothing."""
        if not self.files:
            return "No notebook was handed in: files that end in .ipynb are expected."
        files = {lesson: self.lesson_files.get(lesson) for lesson in self.lessons}
        absent = [lesson for lesson, file in files.items() if file is None or file.problem]
        sentences = [self._trouble(lesson).problem for lesson in absent]
        sentences += [file.problem for file in self.files if not file.lesson]
        sentences += [self.doubts[lesson] for lesson in self.lessons if lesson in self.doubts]
        return " ".join(dict.fromkeys(sentences))[:4000]

    def plan(self, lesson: str) -> Plan:
        """What to run of one of its lessons."""
        file, names = self.lesson_files.get(lesson), self.course.exercises[lesson]
        try:
            if file is not None and file.notebook is not None:
                plan = self.reader.plan(_pristine(self.course, lesson), file.notebook)
            else:
                trouble = self._trouble(lesson)
                plan = empty_plan(lesson, names, trouble.summary, handed_in=bool(trouble.place))
        except Unreadable as error:
            plan = replace(empty_plan(lesson, names, error.summary), notes=(str(error),))
        return replace(plan, notes=(*self.notes.get(lesson, ()), *self._notes_on_others(lesson, file), *plan.notes))

    def _notes_on_others(self, lesson: str, file: _File | None) -> list[str]:
        """A sentence for each lesson of which a lesson's notebook has most answers, too, and of which nothing else was handed in."""
        if file is None or file.notebook is None:
            return []
        own_names, exercises = file.notebook.defines - _pristine(self.course, lesson).given_names, self.course.exercises
        others = set(self.course.lessons()) - self.lesson_files.keys()
        answers = {other: [name for name in exercises[other] if name in own_names] for other in others}
        return [
            f"{file.place} has answers of lesson {other}, too, which count in a notebook of its own: {', '.join(names)}."
            for other, names in sorted(answers.items())
            if len(names) > max(1, len(exercises[other]) // 2)
        ]

    def _trouble(self, lesson: str) -> _File:
        """What stands for a lesson whose notebook is absent or cannot be read."""
        summary = f"No notebook of lesson {lesson} was handed in."
        absent = _File("", 0, 0, None, lesson, summary, f"{summary} {lesson}.ipynb is expected.")
        unknown = next((file for file in self.files if not file.lesson), absent)
        return self.lesson_files.get(lesson, unknown)


@cache
def _pristine(course: Course, lesson: str) -> Pristine:
    return Pristine(lesson, course.exercises[lesson], tuple(code_cells(course.pristine(lesson)) or ()))


def read_submission(
    course: Course,
    path: str | Path,
    name: str | None = None,
    lessons: Sequence[str] | None = None,
    reader: LocalReader | None = None,
) -> Submission:
    """Reads what a learner handed in: one notebook, or a folder of notebooks.

    No link is followed: of a relative path below the current folder, of an absolute one below the folder that holds it.

    name:    the learner's; by default the folder's name, or the file's without its ending.
    lessons: the lessons to grade; by default those that the notebooks belong to. A lesson without a
             notebook has every exercise missing.
    reader:  who reads the files, a Reader for a stranger's; by default this process, however long it takes.
    Raises:  InputError for a path that is not there, is no notebook or holds none, for one with a
             link on the way, and for an unknown lesson.
    """
    path = Path(path)
    selection = _select_lessons(course, lessons)
    paths, folder_notes = _files_of(path)
    top = path if path not in paths else path.parent
    reader = reader or LocalReader()
    reader.begin()
    files = [_read(course, file, top, _base(path), selection, reader) for file in paths]
    lesson_files, notes, doubts = _choose(course, files)
    lessons = selection or tuple(lesson for lesson in course.lessons() if lesson in lesson_files) or course.lessons()
    notes[lessons[0]] = [*notes.get(lessons[0], ()), *folder_notes]
    absolute = Path(os.path.abspath(path))
    name = name or learner_name(absolute.stem if path.is_file() else absolute.name)
    return Submission(course, name, str(path), lessons, files, lesson_files, notes, doubts, reader)


def check_path(course: Course, path: str | Path, lessons: Sequence[str] | None = None) -> None:
    """Raises: InputError as read_submission() does, before anything is read."""
    _select_lessons(course, lessons)
    _files_of(Path(path))


def empty_submission(course: Course, name: str, path: str, lessons: Sequence[str] | None = None) -> Submission:
    """What stands for a learner of a class who handed in no notebook: every exercise is missing."""
    return Submission(course, name, path, _select_lessons(course, lessons) or course.lessons())


def _select_lessons(course: Course, lessons: Sequence[str] | None) -> tuple[str, ...] | None:
    """The lessons asked for, in the course's order; '01' stands for '01_three_tokens'."""
    if lessons is None:
        return None
    names: set[str] = set()
    for lesson in lessons:
        matches = {
            course.current_name(lesson),
            *(name for name in course.lessons() if name.partition("_")[0] == lesson),
        }
        if not matches & set(course.lessons()):
            raise InputError(f"There is no lesson {lesson!r}; the lessons are {', '.join(course.lessons())}.")
        names |= matches
    return tuple(name for name in course.lessons() if name in names)


def _base(path: Path) -> Path:
    return path.parent if path.is_absolute() else Path()


def _files_of(path: Path) -> tuple[list[Path], list[str]]:
    """The notebooks of a path, and notes on those left aside. Raises: InputError as read_submission() does."""
    place, base = printable(str(path)), _base(path)
    link = links.first_link(path, base)
    if link is not None:
        rule = (
            "Links are not followed, since they may lead to another learner's work: give the path of the work itself."
        )
        raise InputError(f"{links.sentence(link)}. {rule}")
    try:
        if path.is_file():
            if path.suffix.lower() != ".ipynb":
                advice = " Unpack it first." if platforms.archive_refusal([path.name]) else ""
                raise InputError(f"{place} is not a notebook: a file that ends in .ipynb is expected.{advice}")
            return [path], []
        if not path.is_dir():
            raise InputError(
                f"{place} is not there." if not path.exists() else f"{place} is neither a file nor a folder."
            )
        search = FolderSearch(path, base)
    except OSError as error:
        raise InputError(f"{place} cannot be opened: {error.strerror}.") from None
    if not search.files:
        expected = "files that end in .ipynb are expected, there, in notebooks/, or in a folder below"
        others = filter(None, (*search.notes, describe_contents(path)))
        raise InputError(" ".join((f"{place} contains no notebook: {expected}.", *others)))
    return search.files, search.notes


def _read(
    course: Course, path: Path, top: Path, base: Path, selection: tuple[str, ...] | None, reader: LocalReader
) -> _File:
    place, level = printable(path.relative_to(top).as_posix()), level_of(path, top)
    location = (place, level, _mtime_ns(path))
    try:
        notebook = reader.notebook(path, base)
    except Unreadable as error:
        data = b""
        with suppress(OSError):
            data = links.read(path, base, MAX_FILE_BYTES).data or b""
        return _File(*location, None, lesson_of_bytes(course, path, data), error.summary, str(error))
    lesson = recognize_lesson(course, notebook.lesson, path, notebook.defines)
    other = course.other_handout(course.current_name(notebook.lesson))
    if not (lesson or other) and selection is not None and len(selection) == 1:
        lesson = selection[0]
    if lesson:
        return _File(*location, notebook, lesson)
    summary = f"{place} was not graded." if other else f"{place} belongs to no lesson of this course."
    advice = "Neither its name nor the functions that it defines say which; a name such as 01_three_tokens.ipynb does."
    return _File(*location, notebook, "", summary, f"{summary} {other or advice}")


_REASONS = (  # to set a file aside, by the first place in which its rank is below that of the one that counts
    "nothing was attempted in it",
    "saved earlier",
    "saved at the same time, with fewer exercises attempted",
    "saved at the same time, but without the lesson's own name",
    "saved at the same time, but deeper in the folders",
    "saved at the same time",
)


def _choose(course: Course, files: list[_File]) -> tuple[dict[str, _File], dict[str, list[str]], dict[str, str]]:
    """One file a lesson. Also a sentence on what else there was: on copies of the same work in the lesson's notes, else in what to fix.

    One in which nothing was attempted never counts before one in which something was. Of several with work the one saved last counts;
    where the times agree the one with the most in it, then the one with the lesson's own name, then the one nearest to the top.
    """
    lesson_files: dict[str, _File] = {}
    notes: dict[str, list[str]] = {}
    doubts: dict[str, str] = {}
    for lesson in {file.lesson for file in files if file.lesson}:
        copies = [file for file in files if file.lesson == lesson]
        if len(copies) > 1:
            order = save_order(file.mtime_ns for file in copies)
            ranking = [(_rank(course, file, order[file.mtime_ns]), file) for file in copies]
            ranking.sort(key=itemgetter(0), reverse=True)
            copies = [file for _, file in ranking]
            sentence = _explain_choice(ranking)
            if any(file.texts != copies[0].texts for file in copies):
                doubts[lesson] = f"{sentence} Hand in one notebook of each lesson, as {lesson}.ipynb."
            else:
                notes[lesson] = [sentence]
        lesson_files[lesson] = copies[0]
    return lesson_files, notes, doubts


_Rank = tuple[int, int, int, bool, int, str]  # 2 with work, 1 unreadable, 0 without; then what _REASONS has


def _rank(course: Course, file: _File, save_rank: int) -> _Rank:
    attempts = _pristine(course, file.lesson).attempts(file.notebook) if file.notebook else 0
    worth = 1 if file.notebook is None else 2 if attempts else 0
    has_lesson_name = PurePosixPath(file.place).stem.lower() == file.lesson
    return worth, save_rank, attempts, has_lesson_name, -file.level, file.place


def _explain_choice(ranking: Sequence[tuple[_Rank, _File]]) -> str:
    """Which of a lesson's notebooks counts, the first, and why each of the others does not."""
    (rank, best), *others = ranking
    reasons = []
    for other, file in others[:10]:  # of which names may read alike
        pairs = enumerate(zip(other, rank, strict=True))
        index = next((index for index, (lower, higher) in pairs if lower != higher), -1)
        reason = "cannot be read" if not index and file.notebook is None else _REASONS[index]
        reasons.append(f"{file.place} ({'the same code' if file.texts == best.texts else reason})")
    excess = [f"and {len(others) - 10} more"] if len(others) > 10 else []
    return f"There is more than one notebook of lesson {best.lesson}: {best.place} counts. Set aside: {', '.join([*reasons, *excess])}."


def _mtime_ns(path: Path) -> int:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0
