"""Has one saved notebook after another graded by grading processes: an endless loop holds up one of them only."""

from __future__ import annotations

import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from grader.grading import batch
from grader.grading.grade import Settings, grade_submission
from grader.judging.verdict import LessonReport
from grader.submission.submission import read_submission
from grader.util import libraries

MOST_AT_ONCE = 2
Stamp = tuple[int, int, int]


def stamp_of(file: Path) -> Stamp | None:
    """What changes when a file is saved; None where it is gone, or is no regular file."""
    try:
        status = file.lstat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino) if stat.S_ISREG(status.st_mode) else None


class Task(NamedTuple):
    """One notebook to grade, and the learner's folder."""

    learner: Path
    file: Path


@dataclass(frozen=True)
class WatchResult:
    """stamp: of the file as it was read; None where it changed meanwhile. problem: why it cannot be read, or ''."""

    task: Task
    stamp: Stamp | None
    lesson: LessonReport | None = None
    problem: str = ""
    seconds: float = 0.0


class Regrading:
    """Has tasks graded, several at once, and hands out results. close() ends all that runs."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._running: dict[Future, Task] = {}
        self._pool: batch.LocalPool | None = None  # begun with the first task

    @property
    def files(self) -> frozenset[Path]:
        """What is being graded."""
        return frozenset(task.file for task in self._running.values())

    def start(self, task: Task, at_once: int) -> bool:
        """Begins a task where fewer than so many are running, at most MOST_AT_ONCE. Returns: whether it did."""
        if len(self._running) >= at_once:
            return False
        if self._pool is None:
            # A learner is not to wait for a library that the lesson at hand may not need; a room needs it sooner or later.
            torch = self._settings.torch or at_once > 1 and libraries.installed("torch")
            self._pool = batch.LocalPool(MOST_AT_ONCE, torch, self._settings.course.probe_texts())
        try:
            self._running[self._pool.submit(grade_saved, task, self._settings)] = task
        except BrokenExecutor:
            if not self._running:  # else results() renews it
                self._pool.renew()
            return False
        return True

    def results(self, wait_s: float) -> Iterator[WatchResult]:
        """What is ready, after so many seconds at most."""
        if not self._running:
            time.sleep(wait_s)
        done = wait(self._running, wait_s, FIRST_COMPLETED).done
        if self._pool is not None and any(isinstance(each.exception(), BrokenExecutor) for each in done):
            self._pool.renew()
            done = set(self._running)  # all of them ended with it
        for future in done:
            task = self._running.pop(future)
            try:
                yield future.result()
            except Exception as error:
                yield _failed(task, error)

    def close(self) -> None:
        """Ends every process; no file stays behind."""
        if self._pool is not None:
            self._pool.close()


def grade_saved(task: Task, settings: Settings) -> WatchResult:
    """What a grading process makes of a task, in the sandbox that it keeps warm."""
    started = time.monotonic()
    try:
        result = _grade(task, settings)
        verdicts = result.lesson.verdicts if result.lesson else ()
        sound = all(verdict.status != "could_not_grade" for verdict in verdicts)
    except Exception as error:  # ours
        result, sound = _failed(task, error), False
    if not sound:
        batch.close_sandboxes(threading.get_ident())  # the next task begins with all things fresh
    return replace(result, seconds=time.monotonic() - started)


def _grade(task: Task, settings: Settings) -> WatchResult:
    stamp, sandbox = stamp_of(task.file), batch.warm_sandbox(settings)
    submission = read_submission(settings.course, task.file, reader=sandbox.reader, base=task.learner.parent)
    (file,) = submission.files
    if file.notebook is None:
        return WatchResult(task, stamp, problem=file.what)
    lesson, *others = submission.lessons
    if others or (settings.lessons and lesson not in settings.lessons):
        return WatchResult(task, stamp)  # a notebook of no lesson, or of one that wasn't asked for
    report = grade_submission(replace(settings, lessons=(lesson,)), task.learner, sandbox=sandbox)
    return WatchResult(task, stamp if stamp_of(task.file) == stamp else None, report.lessons[0])


def _failed(task: Task, error: Exception) -> WatchResult:
    return WatchResult(task, stamp_of(task.file), problem=f"{task.file.name} could not be graded: {error}")
