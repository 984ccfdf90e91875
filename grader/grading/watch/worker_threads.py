"""Grades one notebook after another in threads with a warm sandbox each: an endless loop holds up one of them only."""

from __future__ import annotations

import contextlib
import queue
import stat
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from grader.course.course import Course
from grader.grading.grade import grade_submission
from grader.judging.verdict import LessonReport
from grader.sandbox.sandbox import Sandbox, SandboxError
from grader.sandbox.zygote import Zygote
from grader.submission.submission import read_submission

PATIENCE_S = 5.0  # with threads that are to end
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


class WorkerThreads:
    """Takes tasks and hands out results; `results` may be waited for. close() ends all that runs."""

    def __init__(self, course: Course, lessons: Sequence[str], seed: int, timeout_s: float) -> None:
        self._course, self._lessons, self._seed, self._timeout_s = course, lessons, seed, timeout_s
        self.tasks: queue.PriorityQueue[Task] = queue.PriorityQueue()
        self.results: queue.Queue[WatchResult] = queue.Queue()
        self._stopping = threading.Event()
        self._zygote: Zygote | None = None  # where several threads share what they import
        self._threads: list[threading.Thread] = []
        self._sandboxes: dict[int, Sandbox] = {}  # by thread
        self._others = {process.pid for process in psutil.Process().children(recursive=True)}

    def add(self, task: Task, threads: int) -> None:
        """Queues a task, for at least that many threads."""
        if threads > 1 and self._zygote is None and sys.platform == "linux":
            self._zygote = Zygote(torch=True, probes=self._course.probe_texts())
        self.tasks.put(task)
        while len(self._threads) < threads:
            self._threads.append(threading.Thread(target=self._work, daemon=True))
            self._threads[-1].start()

    def close(self) -> None:
        """Ends every thread, what it runs and what that started."""
        self._stopping.set()
        for _ in self._threads:
            self.tasks.put(Task((False, -(10**30), 0), Path(), Path()))
        deadline = time.monotonic() + PATIENCE_S
        for thread in self._threads:
            thread.join(0.3)  # an idle one needs no more
        while any(thread.is_alive() for thread in self._threads) and time.monotonic() < deadline:
            self._end_workers()  # a thread that waits for one then sees that it is gone
            for thread in self._threads:
                thread.join(0.1)
        for ident in list(self._sandboxes):
            self._close_sandbox(ident)
        if self._zygote is not None:
            self._zygote.close()
        self._threads = []

    def _end_workers(self) -> None:
        for process in psutil.Process().children(recursive=True):
            if process.pid not in self._others:
                with contextlib.suppress(psutil.Error):  # it has ended by itself
                    process.kill()

    def _work(self) -> None:
        while True:
            task = self.tasks.get()
            if self._stopping.is_set():
                return self._close_sandbox(threading.get_ident())
            started = time.monotonic()
            try:
                result = self._grade(task)
            except Exception as error:  # ours; the next task gets a fresh sandbox
                self._close_sandbox(threading.get_ident())
                problem = f"{task.file.name} could not be graded: {error}"
                result = WatchResult(task, stamp_of(task.file), problem=problem)
            self.results.put(replace(result, seconds=time.monotonic() - started))

    def _grade(self, task: Task) -> WatchResult:
        stamp, sandbox = stamp_of(task.file), self._warm_sandbox()
        submission = read_submission(self._course, task.file, reader=sandbox.reader, base=task.learner.parent)
        if submission.unreadable:
            return WatchResult(task, stamp, problem=submission.unreadable)
        lesson, *others = submission.lessons
        if others or (self._lessons and lesson not in self._lessons):
            return WatchResult(task, stamp)  # a notebook of no lesson, or of one that wasn't asked for
        report = grade_submission(self._course, task.learner, lessons=[lesson], seed=self._seed, sandbox=sandbox)
        if any(verdict.status == "could_not_grade" for verdict in report.verdicts):
            self._close_sandbox(threading.get_ident())  # the next task begins with all things fresh
        return WatchResult(task, stamp if stamp_of(task.file) == stamp else None, report.lessons[0])

    def _warm_sandbox(self) -> Sandbox:
        sandbox = self._sandboxes.get(threading.get_ident())
        if sandbox is None:
            zygote = self._zygote.channel if self._zygote else None
            sandbox = _StoppableSandbox(self._timeout_s, zygote=zygote, probes=self._course.probe_texts())
            sandbox.stopping = self._stopping
            self._sandboxes[threading.get_ident()] = sandbox
        return sandbox

    def _close_sandbox(self, thread: int) -> None:
        if sandbox := self._sandboxes.pop(thread, None):
            sandbox.close()


class _StoppableSandbox(Sandbox):
    """One that starts no more workers once the watch has ended."""

    stopping: threading.Event

    def start(self, *args: Any, **kwargs: Any) -> Any:
        if self.stopping.is_set():
            raise SandboxError("the watch has ended")
        return super().start(*args, **kwargs)
