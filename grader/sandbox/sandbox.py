"""Runs notebooks in worker processes; session.py asks them what each exercise shows.

The trusted side of the wall: it sends inputs and receives observations, and counts the seconds. What may be relied on:

At both levels
- A worker holds no answer, no expected value and no seed, and sends data that cannot execute (worker/protocol.py).
- What ends, hangs or answers nonsense costs the cell or the exercise that ran; the rest goes on in a fresh worker (session.py).
- Each exercise and each cell has `timeout_s` seconds on the clock. Those in which other programs had the processor do not count, up
  to three times the limit; what a learner's own threads use does. All of a submission together has a budget (session.py).
- Processor time, address space, threads, open files and the size of one file are limited by the kernel where it can (worker/limits.py).
  Memory in all, shared memory and mapped files included, and threads of root are looked at ten times a second (usage.py), and so is
  a worker's folder: one with more than 256 MiB or 20,000 files ends it, once it has grown by what the disk writes in that time.
- No worker outlives its notebook or its parent, nor does anything that it started.
At level `full` the kernel sees to it (Linux with Landlock and seccomp) that a worker
- reads nothing but Python and libraries, and writes nothing outside its folder (worker/kernel_walls.py);
- starts no process, and neither signals nor traces another; opens no socket; makes only calls that are listed (worker/system_calls.py).

Not covered
- Bugs in the kernel, and what caches or clocks give away about others on the machine.
- Load: a worker may keep a processor and its memory busy for as long as its limits allow.
- Libraries: a worker reads all that is installed in Python's environment, /lib and /usr/lib.
- "From scratch" is watched from inside the worker's own process, so it stops shortcuts and not somebody determined (worker/watch.py).
- At level `process` a worker has the rights of whoever grades: it reads their files, the solutions among them, writes and connects.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from grader.course.spec import Case
from grader.sandbox import isolation
from grader.sandbox.isolation import SandboxError
from grader.sandbox.process import Program, SpawnedWorker, Worker, WorkerLost
from grader.sandbox.reader import FORKS, Reader, RemoteSources
from grader.sandbox.scratch import new_folder, remove_folder
from grader.sandbox.session import Budget, Session
from grader.sandbox.zygote import Forker, ZygoteChannel
from grader.worker.values import Failure, Observation

if TYPE_CHECKING:
    from grader.submission.plan import Plan

TIMEOUT_S = 10.0
MEMORY_BYTES = 2 << 30
CPU_TIMES = 24  # a worker's processor time, in time limits: twice what all cells and a lesson's exercises may take
# A submission has the time of so many exercises more than it has, for its cells and for starting again.
MORE_EXERCISES = 10


@dataclass(frozen=True)
class Candidate:
    """An exercise as the judge sees it: a name, and a way to try a case on what the learner wrote."""

    name: str
    sources: RemoteSources | None
    session: Session

    @property
    def problem(self) -> Failure | None:
        """Why there is nothing to try, or None."""
        return self.session.problem(self.name)

    def observe_all(self, cases: Sequence[Case]) -> list[Observation]:
        """What each case shows; never raises for anything that the learner's code does.

        Shorter than `cases` where one of them was the end, which the last one tells.
        """
        return self.session.observe_all(self.name, cases)


class Sandbox:
    """Where strangers' code runs. A context manager; one notebook at a time, each in a worker of its own.

    timeout_s:    wall-clock seconds of one exercise, all its cases together, and of one cell; those in which a busy machine
                  had no processor for it do not count, up to three times the limit (Linux).
    memory_bytes: of one worker and all that it starts, beyond what the libraries take.
    torch:        whether workers have torch imported from the start.
    fork:         whether workers are forked from a zygote (Linux); else each is a fresh process.
    walls:        whether workers shut themselves in where the kernel can (isolation 'full').
    require:      the least isolation with which anything is run, one of isolation.LEVELS.
    zygote:       one to share with other sandboxes; without it, one of its own is started.
    probes:       the texts of the course's probes by module, `Course.probe_texts`; a shared zygote has its own.
    reader:       who reads the notebooks, closed by whoever made it; by default one of its own.
    """

    def __init__(
        self,
        timeout_s: float = TIMEOUT_S,
        memory_bytes: int = MEMORY_BYTES,
        torch: bool = False,
        fork: bool = FORKS,
        walls: bool = True,
        require: str = "process",
        zygote: ZygoteChannel | None = None,
        reader: Reader | None = None,
        probes: Mapping[str, str] | None = None,
    ) -> None:
        self._program = Program(torch, probes or {})
        self.timeout_s = timeout_s
        self.memory_bytes = memory_bytes
        self.isolation, self.lacking = "process", "walls"
        self.budget = Budget()
        self._walls = walls
        self._require = require
        self._shared_zygote = zygote if zygote is not None and zygote.torch >= torch else None
        self._shared_reader = reader
        self._own_reader: Reader | None = None
        self._session: Session | None = None
        self._forker = Forker(self._program, self._shared_zygote) if fork else None

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def begin_submission(self, exercises: int) -> None:
        """Another learner's work follows, with so many exercises: they have a time limit for all of it together."""
        self.budget = Budget(self.timeout_s * (exercises + MORE_EXERCISES))

    def end_submission(self) -> None:
        """Ends the worker of the notebook before, so that nothing of a submission lives while the next is waited for."""
        self.budget = Budget()
        if self._session is not None:
            self._session.close()

    def close(self) -> None:
        """Ends every process and removes every file that the workers left."""
        self.end_submission()
        if self._forker is not None:
            self._forker.close()
        if self._own_reader is not None:
            self._own_reader.close()
        self._forker = self._session = self._own_reader = None

    @property
    def reader(self) -> Reader:
        """The process in which notebooks are read, begun when it is asked for."""
        if self._shared_reader is not None:
            return self._shared_reader
        if self._own_reader is None:
            self._own_reader = Reader()
        return self._own_reader

    def need_torch(self) -> None:
        """From now on workers have torch imported."""
        if self._program.torch:
            return
        self._program = replace(self._program, torch=True)
        if self._shared_zygote is not None and self._shared_zygote.torch:
            return  # its workers have had it from the start
        if self._session is not None:
            self._session.close()  # its worker has no torch
        if self._forker is not None:
            self._forker.close()
            self._forker = Forker(self._program)

    def candidates(self, plan: Plan, sources: RemoteSources | None = None) -> Mapping[str, Candidate]:
        """The exercises of one notebook, by name. Its cells run in a fresh worker when the first of them is asked.

        The candidates of an earlier notebook are closed by this.
        """
        if self._session is not None:
            self._session.close()
        self._session = Session(plan, self.start, self.timeout_s, self.memory_bytes, self.budget)
        return {name: Candidate(name, sources, self._session) for name in plan.exercises}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the notebook whose candidates were asked for last did that its report should say."""
        return self._session.notes if self._session is not None else ()

    def verify(self) -> str:
        """The isolation that holds, before any stranger's code runs. Raises SandboxError, TooOpen."""
        worker = self.start()
        worker.close()
        remove_folder(worker.folder)
        return self.isolation

    def start(self) -> Worker:
        """A fresh worker, ready for cells. Its folder stays until it is removed. Raises SandboxError, TooOpen."""
        with contextlib.ExitStack() as cleanup:
            try:
                folder = new_folder()
                cleanup.callback(remove_folder, folder)
                if self._forker is not None:
                    worker: Worker = self._forker.fork(self.memory_bytes)
                else:
                    worker = SpawnedWorker(self._program, folder, self.memory_bytes)
                cleanup.callback(worker.close)
                worker.folder = folder
                request = {
                    "do": "begin",
                    "memory_bytes": self.memory_bytes,
                    "cpu_s": math.ceil(CPU_TIMES * self.timeout_s),
                    "folder": folder,
                    "walls": self._walls,
                }
                reply = worker.request(request, 120.0)
            except (WorkerLost, OSError) as error:
                raise SandboxError(f"a worker could not be prepared: {error}") from error
            self.lacking = reply["lacking"]
            self.isolation = isolation.level(self.lacking)
            worker.guard()
            isolation.require(self._require, self.lacking)
            cleanup.pop_all()
        return worker
