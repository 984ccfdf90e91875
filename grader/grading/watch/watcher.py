"""Looks at a folder again and again, has graded what was saved, and keeps each learner's last results.

What was saved is seen by time stamps: that works on a network's drives, too.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from grader.grading.grade import Settings
from grader.grading.watch.regrading import MOST_AT_ONCE, Regrading, Stamp, Task, WatchResult, stamp_of
from grader.judging.verdict import LessonReport, Verdict
from grader.room.board import Board, Learner, State
from grader.submission.discover import NOT_LEARNERS, FolderSearch, limit_notes
from grader.util import links
from grader.util.errors import InputError
from grader.util.names import learner_name, printable

POLL_S = 0.3  # between two looks at the folder
TORN_S = 3.0  # an unreadable file may be half written; after so long it is what was saved
MAX_LINKS = 5  # links that nobody is led by
GONE_POLLS = 3  # editors save by replacing a file, which is away for a moment


def learners(folder: Path) -> tuple[dict[Path, dict[Path, Stamp]], bool, list[str]]:
    """Each learner's folder and notebooks; whether the folder is one learner's own; sentences on links, which none is
    followed of.

    A workshop's folder holds learners' folders and no notebook of its own, or two such folders or more.
    """
    mine = FolderSearch(folder, deepest=0)
    theirs, notes = {}, mine.links
    for name in sorted(os.listdir(folder)):
        inner = folder / name
        is_learner = name[0] != "." and name.lower() not in ("notebooks", *NOT_LEARNERS)
        if is_learner and os.path.isdir(inner) and not links.is_link(inner):
            with contextlib.suppress(OSError):
                work = FolderSearch(inner)
                theirs[inner] = _stamps(work.files)
                notes = [*notes, *(f"{printable(name)}: {note}" for note in work.links)]
    several = sum(map(bool, theirs.values())) >= 2
    if several or (theirs and not mine.files):
        return {place: files for place, files in theirs.items() if files}, False, notes
    work = FolderSearch(folder)
    files = _stamps(work.files)
    return ({folder: files} if files else {}), True, work.links


def _stamps(files: Sequence[Path]) -> dict[Path, Stamp]:
    return {file: stamp for file in sorted(files) if (stamp := stamp_of(file)) is not None}


@dataclass(frozen=True)
class News:
    """One lesson, graded after a save. before: its last result, None for the first; seconds: what grading took."""

    learner: str
    lesson: LessonReport
    before: LessonReport | None
    seconds: float


@dataclass(frozen=True)
class LearnerState:
    """What is known of one learner. latest: the lesson saved last while we watched, or ''; notes: sentences, each on a notebook
    that could not be read or graded."""

    name: str
    lessons: Mapping[str, LessonReport]
    latest: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class WatchedRoom:
    """Everything at one moment. alone: the folder is one learner's; waiting: notebooks that are still to be graded."""

    folder: str
    learners: tuple[LearnerState, ...]
    alone: bool
    waiting: int
    news: tuple[News, ...] = ()
    note: str = ""


@dataclass
class _File:
    """One notebook. graded: its stamp when it was graded or given up; torn_at: since when it cannot be read.

    later: it was not there when the watch began, so that its first result is news of what somebody works on.
    """

    later: bool = False
    graded: Stamp | None = None
    lesson: str = ""
    torn_at: float = 0.0
    not_before: float = 0.0
    gone: int = 0
    slow: bool = False
    problem: str = ""


@dataclass
class _Known:
    files: dict[Path, _File] = field(default_factory=dict)
    lessons: dict[str, LessonReport] = field(default_factory=dict)
    latest: str = ""
    turn: int = 0  # when the last of them came to be graded, among all

    def leave(self, lesson: str) -> None:
        """One notebook of a lesson is gone, or is another lesson's now: a copy counts, or nothing is left of it."""
        copies = [file for file in self.files.values() if file.lesson == lesson]
        for file in copies:
            file.graded = None  # it may count now
        if not copies:
            self.lessons = {name: report for name, report in self.lessons.items() if name != lesson}

    @property
    def notes(self) -> Iterator[str]:
        for file in self.files.values():
            if file.problem:
                kept = " The result shown is that of the previous save." if file.lesson else ""
                yield f"{file.problem}{kept}"


class Watcher:
    """Is asked to poll() again and again, and to close() at the end. Raises: InputError where the folder is none."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder; name the one in which the notebooks are saved.")
        self.folder = folder.resolve()  # who typed it answers for its links; below it none is followed
        self._shown_folder = printable(str(folder))
        self._grading = Regrading(settings)
        self._known: dict[Path, _Known] = {}
        self._alone = True
        self._began = False
        self._note = ""
        self._turns = itertools.count(1)
        self._shown: WatchedRoom | None = None

    def close(self) -> None:
        """Ends all grading; no process and no file stays behind."""
        self._grading.close()

    def poll(self, wait_s: float = POLL_S) -> WatchedRoom | None:
        """Waits so long for a result, then looks at the folder. Returns the room where it has changed, else None."""
        news = tuple(filter(None, map(self._keep, self._grading.results(wait_s))))
        waiting = self._scan()
        states = tuple(
            LearnerState(learner_name(learner.name), known.lessons, known.latest, tuple(known.notes))
            for learner, known in sorted(self._known.items())
        )
        room = WatchedRoom(self._shown_folder, states, self._alone, waiting, (), self._note)
        if room == self._shown and not news:
            return None
        self._shown = room
        return replace(room, news=news)

    def _keep(self, result: WatchResult) -> News | None:
        """Keeps one result; where the file could not be read, the result before it stays."""
        task = result.task
        known = self._known.get(task.learner)
        file = known.files.get(task.file) if known else None
        if known is None or file is None or result.stamp is None:
            return None  # gone, or saved again meanwhile: the next look sees to it
        if result.problem:
            now = time.monotonic()
            file.torn_at, file.not_before = file.torn_at or now, now + POLL_S
            if now - file.torn_at >= TORN_S:
                file.graded, file.problem, file.torn_at = result.stamp, result.problem, 0.0
            return None
        again = file.later or file.graded is not None
        file.graded, file.torn_at, file.problem = result.stamp, 0.0, ""
        if result.lesson is None:
            return None
        name, before = result.lesson.name, known.lessons.get(result.lesson.name)
        left, file.lesson = file.lesson, name
        file.slow = any(verdict.status == "timeout" for verdict in result.lesson.verdicts)
        known.lessons = dict(sorted({**known.lessons, name: result.lesson}.items()))
        if left not in ("", name):
            known.leave(left)
        known.latest = name if again else known.latest
        return News(learner_name(task.learner.name), result.lesson, before, result.seconds)

    def _scan(self) -> int:
        """Looks at the folder, and has graded what was saved. Returns: how many notebooks are still to be graded."""
        try:
            notebooks, self._alone, notes = learners(self.folder)
            self._note = " ".join(limit_notes(notes, MAX_LINKS))
        except OSError as error:  # a drive that is away for a moment: what is known stays
            self._note = f"{self._shown_folder} cannot be read ({error.strerror}); trying again."
            return len(self._grading.files)
        running, saved = self._grading.files, list[Task]()
        for learner, files in notebooks.items():
            known = self._known.setdefault(learner, _Known())
            for file, stamp in sorted(files.items(), key=lambda item: -item[1][0]):  # saved last, graded first
                state = known.files.setdefault(file, _File(later=self._began))
                state.gone = 0
                if state.graded != stamp and file not in running and time.monotonic() >= state.not_before:
                    saved.append(Task(learner, file))
        self._began = True
        for learner in list(self._known):
            self._forget(learner, notebooks.get(learner, {}))
        waiting, at_once = len(running) + len(saved), 1 if self._alone else MOST_AT_ONCE
        while saved and self._grading.start(task := min(saved, key=self._turn), at_once):
            saved.remove(task)
            self._known[task.learner].turn = next(self._turns)
        return waiting

    def _turn(self, task: Task) -> tuple[bool, int]:
        """One notebook of each learner in every round, however often somebody saves; what ran into the time limit before comes last."""
        known = self._known[task.learner]
        return known.files[task.file].slow, known.turn

    def _forget(self, learner: Path, there: Mapping[Path, Stamp]) -> None:
        """Drops notebooks that are gone."""
        known = self._known[learner]
        for path in [path for path in known.files if path not in there]:
            known.files[path].gone += 1
            if known.files[path].gone >= GONE_POLLS:
                known.leave(known.files.pop(path).lesson)
        if not known.files:
            del self._known[learner]


def next_step(learner: LearnerState) -> tuple[str, Verdict] | None:
    """(lesson, verdict) of the first exercise that isn't passed, the lesson saved last first; None: all passed."""
    order = sorted(learner.lessons, key=lambda name: (name != learner.latest, name))
    left = ((name, verdict) for name in order for verdict in learner.lessons[name].verdicts if not verdict.passed)
    return next(left, None)


def board_of(room: WatchedRoom) -> Board:
    """The room as the page for a projector shows it."""
    work = f"{room.waiting} to grade." if room.waiting else ""
    return Board(tuple(map(_learner, room.learners)), note=f"{room.note} {work}".strip())


def _learner(learner: LearnerState) -> Learner:
    states = {verdict.exercise: _state(verdict) for lesson in learner.lessons.values() for verdict in lesson.verdicts}
    step = None if learner.notes else next_step(learner)
    return Learner(learner.name, states, step[1].exercise if step else "", unreadable=bool(learner.notes))


def _state(verdict: Verdict) -> State:
    if not verdict.mistakes:
        return State(verdict.status, "", verdict.headline)
    return State(verdict.status, verdict.mistakes[0], verdict.sentences[0] if verdict.sentences else "")
