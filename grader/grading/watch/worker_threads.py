"""Grades one notebook after another in threads with a warm sandbox each: an endless loop holds up one of them only."""

from __future__ import annotations

import queue
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
from grader.grading.watch.files import Stamp, stamp_of
from grader.judging.verdict import LessonReport
from grader.sandbox.sandbox import Sandbox, SandboxError
from grader.sandbox.zygote import Zygote, ZygoteChannel
from grader.submission.submission import read_submission


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
        self.course = course
        self.lessons, self.seed, self.timeout_s = tuple(lessons), seed, timeout_s
        self.tasks: queue.PriorityQueue[Task] = queue.PriorityQueue()
        self.results: queue.Queue[WatchResult] = queue.Queue()
        self.stopping = threading.Event()
        self.zygote: ZygoteChannel | None = None  # where several threads share what they import
        self._own_zygote: Zygote | None = None
        self._threads: list[_WorkerThread] = []
        self._others = {process.pid for process in psutil.Process().children(recursive=True)}

    def add(self, task: Task, threads: int) -> None:
        """Queues a task, for at least that many threads."""
        if threads > 1 and self._own_zygote is None and sys.platform == "linux":
            self._own_zygote = Zygote(torch=True, probes=self.course.probe_texts())
            self.zygote = self._own_zygote.channel
        self.tasks.put(task)
        while len(self._threads) < threads:
            self._threads.append(_WorkerThread(self))
            self._threads[-1].start()

    def close(self, patience_s: float = 5.0) -> None:
        """Ends every thread, what it runs and what that started."""
        self.stopping.set()
        for _ in self._threads:
            self.tasks.put(Task((False, -(10**30), 0), Path(), Path()))
        deadline = time.monotonic() + patience_s
        for thread in self._threads:
            thread.join(0.3)  # an idle one needs no more
        while any(thread.is_alive() for thread in self._threads) and time.monotonic() < deadline:
            self._end_workers()  # a thread that waits for one then sees that it is gone
            for thread in self._threads:
                thread.join(0.1)
        for thread in self._threads:
            thread.close()
        if self._own_zygote is not None:
            self._own_zygote.close()
        self._threads = []

    def _end_workers(self) -> None:
        for process in psutil.Process().children(recursive=True):
            if process.pid not in self._others:
                try:
                    process.kill()
                except psutil.Error:  # it has ended by itself
                    continue


class _StoppableSandbox(Sandbox):
    """One that starts no more workers once the watch has ended."""

    stopping: threading.Event

    def start(self, *args: Any, **kwargs: Any) -> Any:
        if self.stopping.is_set():
            raise SandboxError("the watch has ended")
        return super().start(*args, **kwargs)


class _WorkerThread(threading.Thread):
    """One thread, one sandbox."""

    def __init__(self, threads: WorkerThreads) -> None:
        super().__init__(daemon=True)
        self._of = threads
        self._sandbox: _StoppableSandbox | None = None

    def run(self) -> None:
        while True:
            task = self._of.tasks.get()
            if self._of.stopping.is_set():
                return self.close()
            started = time.monotonic()
            try:
                result = self._grade(task)
            except Exception as error:  # ours; the next task gets a fresh sandbox
                self.close()
                result = WatchResult(
                    task, stamp_of(task.file), problem=f"{task.file.name} could not be graded: {error}"
                )
            self._of.results.put(replace(result, seconds=time.monotonic() - started))

    def _grade(self, task: Task) -> WatchResult:
        stamp = stamp_of(task.file)
        if self._sandbox is None:
            self._sandbox = _StoppableSandbox(
                self._of.timeout_s, zygote=self._of.zygote, probes=self._of.course.probe_texts()
            )
            self._sandbox.stopping = self._of.stopping
        read = read_submission(self._of.course, task.file, reader=self._sandbox.reader, base=task.learner.parent)
        if read.unreadable:
            return WatchResult(task, stamp, problem=read.unreadable)
        lesson, *others = read.lessons
        if others or (self._of.lessons and lesson not in self._of.lessons):
            return WatchResult(task, stamp)  # a notebook of no lesson, or of one that wasn't asked for
        report = grade_submission(
            self._of.course, task.learner, lessons=[lesson], seed=self._of.seed, sandbox=self._sandbox
        )
        if any(verdict.status == "could_not_grade" for verdict in report.verdicts):
            self.close()  # the next task begins with all things fresh
        return WatchResult(task, stamp if stamp_of(task.file) == stamp else None, report.lessons[0])

    def close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None
