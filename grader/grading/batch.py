"""Many submissions: each is graded by a thread of a grading process, which keeps one warm sandbox.

A grading process that ends costs nothing: what it had in hand is graded again, alone in a fresh one, and only what ends
that too is 'could_not_grade'. dask_pool.py does the same on other machines.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Protocol

from grader.grading.class_folder import ClassEntry, PackedSubmission, pack, unpack
from grader.grading.grade import ENVIRONMENT, Settings, could_not_grade_all, grade_submission
from grader.grading.journal import JournalEntry, to_line
from grader.reports.report import Report, SubmissionReport
from grader.sandbox.isolation import LEVELS, SandboxError, TooOpen
from grader.sandbox.process import Program, ending_of
from grader.sandbox.sandbox import Sandbox
from grader.sandbox.scratch import new_folder, remove_folder
from grader.sandbox.zygote import Zygote, ZygoteChannel
from grader.submission.submission import Submission, empty_submission
from grader.util.libraries import use_one_thread
from grader.util.words import join_names

# Characters of the temporary folder's path; with what is added, a socket's address has at most 107.
LONGEST_TEMPORARY = 70


class Pool(Protocol):
    """Where submissions are graded. width: how many to hand it at once."""

    width: int

    def submit(self, function: Any, *arguments: Any) -> Future: ...
    def close(self) -> None: ...


# --- in the grading process ------------------------------------------------------------------


_sandboxes: dict[int, tuple[Settings, Sandbox]] = {}  # by thread
_zygote: ZygoteChannel | None = None  # of all grading processes of this machine


def _warm_sandbox(settings: Settings) -> Sandbox:
    """The one that this thread keeps for the next submission. Raises: TooOpen, SandboxError."""
    thread = threading.get_ident()
    if thread not in _sandboxes or _sandboxes[thread][0] != settings:
        close_sandboxes(thread)
        _sandboxes[thread] = settings, settings.sandbox(torch=settings.torch, zygote=_zygote)
        try:
            _sandboxes[thread][1].verify()
        except BaseException:
            close_sandboxes(thread)
            raise
    return _sandboxes[thread][1]


def close_sandboxes(*threads: int) -> None:
    """Ends what these threads of this process keep warm, by default all of them, with every file of it."""
    for thread in threads or list(_sandboxes):
        if warm := _sandboxes.pop(thread, None):
            warm[1].close()


def isolation_level(settings: Settings) -> str:
    return _warm_sandbox(settings).isolation


def grade_packed(submission: PackedSubmission, settings: Settings) -> tuple[bytes, bool]:
    """One submission's line of the journal, and whether the grader did all that it should; else the next finds all things fresh."""
    if submission.closed:
        return _ungraded_line(submission, settings, submission.closed[0]), True
    folder, complete = new_folder(), False
    try:
        sandbox = _warm_sandbox(settings)
        notebooks = unpack(submission, Path(folder)) or _stand_in(submission, settings)
        settings = replace(settings, seed=settings.seed_of(submission.key))
        report = grade_submission(settings, notebooks, name=submission.name, sandbox=sandbox)
        stages = {verdict.stage for verdict in report.verdicts if verdict.status == "could_not_grade"}
        complete = stages <= {ENVIRONMENT}
        return _line(submission, report, sandbox.isolation), complete
    finally:
        remove_folder(folder)
        if not complete:
            close_sandboxes(threading.get_ident())


def _line(submission: PackedSubmission, report: SubmissionReport, isolation: str) -> bytes:
    """The journal's, with the notes on what was not read."""
    absence, (first, *others) = tuple(_absence(submission, report)), report.lessons
    lessons = (replace(first, notes=(*submission.notes, *absence, *first.notes)), *others)
    attention = (*submission.attention, *absence, *report.attention)
    report = replace(report, path=submission.path, lessons=lessons, attention=attention)
    return to_line(JournalEntry(submission.key, submission.digest, isolation, report))


def _absence(submission: PackedSubmission, report: SubmissionReport) -> Iterator[str]:
    """A sentence where a lesson has no answers, and the reason may be that they were handed in as something else, or not at all."""
    missing = [lesson for lesson in report.lessons if all(verdict.status == "missing" for verdict in lesson.verdicts)]
    if missing and (submission.others or not (submission.files or submission.attention)):
        numbers = join_names([lesson.name[:2] for lesson in missing], len(missing))
        others = join_names(submission.others)
        instead = f", but files that are no notebooks, which are not read: {others}" if others else ""
        yield f"No answers to lesson{'s' * (len(missing) > 1)} {numbers}{instead}."


# --- local grading processes -----------------------------------------------------------------


class LocalPool:
    """Grading processes on this machine, begun as fresh ones, which end with this one however it ends.

    Each does one thing at a time, so that what ends it is known; another then takes its place.
    torch: whether to import it before they part ways, so that they share its memory (Linux).
    """

    def __init__(self, jobs: int, torch: bool = True, probes: Mapping[str, str] | None = None) -> None:
        self.width = 2 * jobs  # one in hand and one at hand, for each
        self._folder = new_folder()
        use_one_thread()  # before a grading process imports NumPy
        self._zygote = Zygote(Program(torch, probes or {}), self._folder) if sys.platform == "linux" else None
        shares = sys.platform == "linux" and len(os.fsencode(tempfile.gettempdir())) <= LONGEST_TEMPORARY
        self._context: Any = multiprocessing.get_context("forkserver" if shares else "spawn")
        if shares:
            self._context.set_forkserver_preload([__name__, "grader.judging.judge", *(["torch"] if torch else [])])
        # Its other end closes when this process ends, killed or not.
        self._ends, self._alive = self._context.Pipe(duplex=False)
        self._idle: list[tuple[Any, Any]] = []  # processes, each with the channel to it
        block_interrupt = None
        if sys.platform != "win32":  # what these threads start doesn't hear Ctrl-C, not while it imports either
            resource_tracker.ensure_running()  # it would make the thread hear again that starts it
            block_interrupt = partial(signal.pthread_sigmask, signal.SIG_BLOCK, {signal.SIGINT})
        self._threads = ThreadPoolExecutor(jobs, initializer=block_interrupt)

    def submit(self, function: Any, *arguments: Any) -> Future:
        """Its exception is a SandboxError where the process has ended."""
        return self._threads.submit(self._call, function, *arguments)

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            process, channel = self._idle.pop()
        except IndexError:
            process, channel = self._begin()
        try:
            channel.send((function, arguments))
            answer = channel.recv()
        except (EOFError, OSError):
            channel.close()
            process.join()
            raise SandboxError(f"the grading process ended{ending_of(process.exitcode)}") from None
        self._idle.append((process, channel))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _begin(self) -> tuple[Any, Any]:
        channel, its_channel = self._context.Pipe()
        zygote = self._zygote and self._zygote.channel
        with its_channel:
            process = self._context.Process(target=_serve, args=(its_channel, self._ends, self._folder, zygote))
            process.start()
        return process, channel

    def close(self) -> None:
        """Ends every process, but for Python's fork server, which ends with this one, and removes every file of theirs."""
        self._alive.close()
        self._threads.shutdown(cancel_futures=True)
        for process, _ in self._idle:
            process.join()
        if self._zygote is not None:
            self._zygote.close()
        remove_folder(self._folder)


def _serve(channel: Any, ends: Any, folder: str, zygote: ZygoteChannel | None) -> None:
    """A grading process: answers each (function, arguments) with what that returns or raises, until `ends` does."""
    global _zygote
    _zygote = zygote
    gc.freeze()  # a collection here then leaves what was imported before shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that owns the terminal; it ends us
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tempfile.tempdir = folder
    end = threading.Thread(target=_end_with, args=(ends, folder), daemon=True)
    end.start()
    with contextlib.suppress(EOFError, OSError):
        while True:
            request = channel.recv_bytes()
            try:
                function, arguments = pickle.loads(request)
                answer = function(*arguments)
            except Exception as error:
                answer = error
            channel.send(answer)
    end.join()


def _end_with(ends: Any, folder: str) -> None:
    """Waits for the end of the process that owns the batch, then ends this one and what it keeps warm."""
    with contextlib.suppress(EOFError, OSError):
        ends.recv_bytes()
    if _zygote is None:  # else what this process keeps warm sees its end, and ends with all that it started
        with contextlib.suppress(Exception):
            close_sandboxes()
    with contextlib.suppress(Exception):
        remove_folder(folder)  # nobody else may be left to do it
    os._exit(0)


# --- in the process that owns the batch ------------------------------------------------------


def isolation_of(pool: Pool, settings: Settings) -> str:
    """The isolation that holds in a pool's first sandbox. Raises: TooOpen, SandboxError."""
    return pool.submit(isolation_level, settings).result()


def grade_all(entries: Iterable[ClassEntry], settings: Settings, pool: Pool) -> Iterator[bytes]:
    """Yields each submission's line of the journal, in the order in which they end.

    Where the grader itself failed, or its process ended, it tries once more after all others, with nothing else in hand.
    """
    waiting, retries = deque(entries), set[str]()
    running: dict[Future, tuple[ClassEntry, PackedSubmission]] = {}
    while waiting or running:
        while waiting and len(running) < (1 if waiting[0].key in retries else pool.width):
            submission = pack(entry := waiting.popleft())
            running[pool.submit(grade_packed, submission, settings)] = entry, submission
        for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
            entry, submission = running.pop(future)
            try:
                line, complete = future.result()
            except TooOpen:
                raise
            except Exception as error:  # the process ended, or a mistake of ours
                line, complete = _ungraded_line(submission, settings, f"{type(error).__name__}: {error}"), False
            if complete or entry.key in retries:
                yield line
            else:
                retries.add(entry.key)
                waiting.append(entry)


def _ungraded_line(submission: PackedSubmission, settings: Settings, reason: str) -> bytes:
    return _line(submission, could_not_grade_all(settings, _stand_in(submission, settings), reason), settings.require)


def _stand_in(submission: PackedSubmission, settings: Settings) -> Submission:
    return empty_submission(settings.course, submission.name, submission.path, settings.lessons)


def report_of(results: Sequence[JournalEntry], settings: Settings) -> Report:
    """One report of all, in the order given; its isolation is the weakest that held."""
    isolation = min((result.isolation for result in results), key=LEVELS.index, default="process")
    reports, own_seeds = tuple(result.report for result in results), settings.seed_per_learner
    return Report(reports, settings.seed, isolation=isolation, course=settings.course.title, own_seeds=own_seeds)
