"""Has one saved notebook after another graded by grading processes: an endless loop holds up one of them only."""

from __future__ import annotations

import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from pathlib import Path

from grader.grading import batch
from grader.grading.grade import grade_submission
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


@dataclass(order=True)
class Task:
    """One notebook to grade. order: whether it ran into the time limit before (those come last), its turn, and a number of its own."""

    order: tuple[bool, int, int]
    learner: Path = field(compare=False)
    file: Path = field(compare=False)


@dataclass(frozen=True)
class WatchResult:
    """stamp: of the file as it was read; None where it changed meanwhile. problem: why it cannot be read, or ''."""

    task: Task
    stamp: Stamp | None
    lesson: LessonReport | None = None
    problem: str = ""
    seconds: float = 0.0


class Regrading:
    """Takes tasks and hands out results. close() ends all that runs."""

    def __init__(self, settings: batch.Settings) -> None:
        self._settings = settings
        self._waiting: list[Task] = []  # a heap
        self._running: dict[Future, Task] = {}
        self._at_once = 1
        self._pool: batch.LocalPool | None = None  # begun with the first task

    def add(self, task: Task, at_once: int) -> None:
        """Queues a task; from now on so many are graded at once, at most MOST_AT_ONCE."""
        self._at_once = at_once
        if self._pool is None:
            # A learner is not to wait for a library that the lesson at hand may not need; a room needs it sooner or later.
            torch = self._settings.torch or at_once > 1 and libraries.installed("torch")
            self._pool = batch.LocalPool(MOST_AT_ONCE, torch, self._settings.course.probe_texts())
        heappush(self._waiting, task)
        self._submit()

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
        self._submit()

    def _submit(self) -> None:
        while self._pool is not None and self._waiting and len(self._running) < self._at_once:
            try:
                future = self._pool.submit(grade_saved, self._waiting[0], self._settings)
            except BrokenExecutor:
                if self._running:
                    return  # results() renews it
                self._pool.renew()
            else:
                self._running[future] = heappop(self._waiting)

    def close(self) -> None:
        """Ends every process; no file stays behind."""
        if self._pool is not None:
            self._pool.close()


def grade_saved(task: Task, settings: batch.Settings) -> WatchResult:
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


def _grade(task: Task, settings: batch.Settings) -> WatchResult:
    stamp, sandbox = stamp_of(task.file), batch.warm_sandbox(settings).sandbox
    submission = read_submission(settings.course, task.file, reader=sandbox.reader, base=task.learner.parent)
    if submission.unreadable:
        return WatchResult(task, stamp, problem=submission.unreadable)
    lesson, *others = submission.lessons
    if others or (settings.lessons and lesson not in settings.lessons):
        return WatchResult(task, stamp)  # a notebook of no lesson, or of one that wasn't asked for
    report = grade_submission(settings.course, task.learner, lessons=[lesson], seed=settings.seed, sandbox=sandbox)
    return WatchResult(task, stamp if stamp_of(task.file) == stamp else None, report.lessons[0])


def _failed(task: Task, error: Exception) -> WatchResult:
    return WatchResult(task, stamp_of(task.file), problem=f"{task.file.name} could not be graded: {error}")
