"""Many submissions: each is graded by a thread of a grading process, which keeps one warm sandbox.

A grading process that ends costs nothing: what it had in hand is graded again, each alone in a fresh one, and only
what ends that too is 'could_not_grade'. dask_pool.py does the same on other machines.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any, Protocol

from grader.grading.class_folder import ClassEntry, PackedSubmission, pack, unpack
from grader.grading.grade import ENVIRONMENT, Settings, could_not_grade_all, grade_submission
from grader.grading.journal import JournalEntry, to_line
from grader.reports.report import Report, SubmissionReport
from grader.sandbox.process import Program
from grader.sandbox.sandbox import LEVELS, Sandbox, SandboxError, TooOpen
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
    def renew(self) -> None: ...
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


def grade_packed(packed: PackedSubmission, settings: Settings) -> bytes:
    """One submission's line of the journal. Where the grader itself failed, it tries once more with all things fresh."""
    if packed.closed:
        return _ungraded_line(packed, settings, packed.closed[0])
    with contextlib.suppress(Exception):
        line, sound = _try_grade(packed, settings)
        if sound:
            return line
    close_sandboxes(threading.get_ident())
    return _try_grade(packed, settings)[0]


def _try_grade(packed: PackedSubmission, settings: Settings) -> tuple[bytes, bool]:
    """The line, and whether the grader did all that it should."""
    sandbox, place = _warm_sandbox(settings), new_folder()
    try:
        submission = unpack(packed, Path(place)) or _unread(packed, settings)
        own = replace(settings, seed=settings.seed_of(packed.key))
        report = grade_submission(own, submission, name=packed.name, sandbox=sandbox)
    finally:
        remove_folder(place)
    sound = not any(one.status == "could_not_grade" and one.stage != ENVIRONMENT for one in report.verdicts)
    return _line(packed, report, sandbox.isolation), sound


def _line(packed: PackedSubmission, report: SubmissionReport, isolation: str) -> bytes:
    """The journal's, with the notes on what was not read."""
    absence, (first, *others) = tuple(_absence(packed, report)), report.lessons
    lessons = (replace(first, notes=(*packed.notes, *absence, *first.notes)), *others)
    attention = (*packed.attention, *absence, *report.attention)
    report = replace(report, path=packed.path, lessons=lessons, attention=attention)
    return to_line(JournalEntry(packed.key, packed.digest, isolation, report))


def _absence(packed: PackedSubmission, report: SubmissionReport) -> Iterator[str]:
    """A sentence where a lesson has no answers, and the reason may be that they were handed in as something else, or not at all."""
    absent = [one.name[:2] for one in report.lessons if all(verdict.status == "missing" for verdict in one.verdicts)]
    if absent and (packed.others or not (packed.files or packed.attention)):
        which = f"lesson{'s' * (len(absent) > 1)} {join_names(absent, len(absent))}"
        others = join_names(packed.others)
        instead = f", but files that are no notebooks, which are not read: {others}" if others else ""
        yield f"No answers to {which}{instead}."


# --- local grading processes -----------------------------------------------------------------


class LocalPool:
    """Grading processes on this machine, begun as fresh ones, which end with this one however it ends.

    torch: whether to import it before they part ways, so that they share its memory (Linux).
    """

    def __init__(self, jobs: int, torch: bool = True, probes: Mapping[str, str] | None = None) -> None:
        self.width = 2 * jobs  # one in hand and one at hand, for each
        self._jobs = jobs
        self._torch = torch
        self._shares = sys.platform == "linux" and len(os.fsencode(tempfile.gettempdir())) <= LONGEST_TEMPORARY
        self._folder = new_folder()
        use_one_thread()  # before a grading process imports NumPy
        self._zygote = Zygote(Program(torch, probes or {}), self._folder) if sys.platform == "linux" else None
        self._begin()

    def _begin(self) -> None:
        context: Any = multiprocessing.get_context("forkserver" if self._shares else "spawn")
        if self._shares:
            context.set_forkserver_preload([__name__, "grader.judging.judge", *(["torch"] if self._torch else [])])
            _start_forkserver()
        # Its other end closes when this process ends, killed or not.
        self._ends, self._alive = context.Pipe(duplex=False)
        zygote = self._zygote.channel if self._zygote is not None and self._zygote.alive else None
        self._pool = ProcessPoolExecutor(self._jobs, context, _begin_process, (self._ends, self._folder, zygote))
        # _end() closes it, and so does the thread that feeds the queue: at once, they would close one descriptor twice.
        lock, reader = threading.Lock(), self._pool._call_queue._reader  # type: ignore[attr-defined]
        close = reader.close

        def close_alone() -> None:
            with lock:
                close()

        reader.close = close_alone

    def submit(self, function: Any, *arguments: Any) -> Future:
        """Raises: BrokenExecutor after a process has ended, until renew()."""
        return self._pool.submit(function, *arguments)

    def renew(self) -> None:
        """Fresh processes in place of all."""
        self._end()
        self._begin()

    def _end(self) -> None:
        self._alive.close()
        # What waits for room in the queue would wait for ever when its readers are gone, since the pool holds one itself.
        if queue := self._pool._call_queue:  # type: ignore[attr-defined]
            queue._reader.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._ends.close()

    def close(self) -> None:
        """Ends every process and removes every file of theirs."""
        self._end()
        if self._zygote is not None:
            self._zygote.close()
        if self._shares:
            forkserver._forkserver._stop()  # type: ignore[attr-defined]  # it would stay as long as this process
        remove_folder(self._folder)


def _start_forkserver() -> None:
    """Starts it deaf to Ctrl-C, which it would only become once it has imported what it is to."""
    resource_tracker.ensure_running()  # which would make it hear again
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _begin_process(ends: Any, folder: str, zygote: ZygoteChannel | None) -> None:
    global _zygote
    _zygote = zygote
    gc.freeze()  # a collection here then leaves what was imported before shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that owns the terminal; it ends us
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tempfile.tempdir = folder
    threading.Thread(target=_end_with, args=(ends, folder), daemon=True).start()


def _end_with(ends: Any, folder: str) -> None:
    """Waits for the end of the process that owns the batch, then ends this one and what it keeps warm."""
    with contextlib.suppress(EOFError, OSError):
        ends.recv_bytes()
    if _zygote is None:  # else what this process keeps warm sees its end, and ends with all that it started
        with contextlib.suppress(Exception):
            close_sandboxes()
    if os.getppid() == 1 or not multiprocessing.parent_process().is_alive():  # type: ignore[union-attr]
        with contextlib.suppress(Exception):
            remove_folder(folder)  # nobody else is left to do it
    os._exit(0)


# --- in the process that owns the batch ------------------------------------------------------


def isolation_of(pool: Pool, settings: Settings) -> str:
    """The isolation that holds in a pool's first sandbox. Raises: TooOpen, SandboxError."""
    try:
        return pool.submit(isolation_level, settings).result()
    except BrokenExecutor as error:
        raise SandboxError(f"no grading process could be started: {error}") from error


def grade_all(entries: Iterable[ClassEntry], settings: Settings, pool: Pool) -> Iterator[bytes]:
    """Yields each submission's line of the journal, in the order in which they end."""
    waiting: deque[ClassEntry] = deque(entries)
    running: dict[Future, PackedSubmission] = {}
    suspects: list[PackedSubmission] = []  # in hand when a process ended; one of them may have ended it
    broken = False
    while waiting or running or suspects:
        if not running and (broken or not waiting):
            if broken:
                pool.renew()
            broken = False
            while suspects:
                yield _grade_alone(suspects.pop(0), settings, pool)
        while waiting and not broken and len(running) < pool.width:
            packed = pack(waiting.popleft())
            try:
                running[pool.submit(grade_packed, packed, settings)] = packed
            except BrokenExecutor:
                suspects.append(packed)
                broken = True
        for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
            packed = running.pop(future)
            try:
                line = future.result()
            except TooOpen:
                raise
            except Exception as error:  # the process ended, or a mistake of ours
                suspects.append(packed)
                broken = broken or isinstance(error, BrokenExecutor)
            else:
                yield line


def _grade_alone(packed: PackedSubmission, settings: Settings, pool: Pool) -> bytes:
    """The second attempt, with no other submission in hand: what ends this process is this submission."""
    try:
        return pool.submit(grade_packed, packed, settings).result()
    except TooOpen:
        raise
    except BrokenExecutor as error:
        pool.renew()
        return _ungraded_line(packed, settings, f"The grading process ended twice: {error}")
    except Exception as error:
        return _ungraded_line(packed, settings, f"{type(error).__name__}: {error}")


def _ungraded_line(packed: PackedSubmission, settings: Settings, why: str) -> bytes:
    return _line(packed, could_not_grade_all(settings, _unread(packed, settings), why), settings.require)


def _unread(packed: PackedSubmission, settings: Settings) -> Submission:
    return empty_submission(settings.course, packed.name, packed.path, settings.lessons)


def report_of(results: Sequence[JournalEntry], settings: Settings) -> Report:
    """One report of all, in the order given; its isolation is the weakest that held."""
    held = min((result.isolation for result in results), key=LEVELS.index, default="process")
    reports, course, own = tuple(result.report for result in results), settings.course.title, settings.seed_per_learner
    return Report(reports, settings.seed, isolation=held, course=course, own_seeds=own)
