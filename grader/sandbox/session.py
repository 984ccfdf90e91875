"""One notebook in its workers: its cells run once, and each exercise answers cases until it falls."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from grader.course.spec import Case
from grader.sandbox.isolation import SandboxError
from grader.sandbox.process import Worker, WorkerLost
from grader.sandbox.scratch import remove_folder
from grader.util.words import number_cells
from grader.worker import protocol
from grader.worker.output import MUCH_BYTES
from grader.worker.values import Failure, Observation

if TYPE_CHECKING:
    from grader.submission.plan import Plan

CELLS_TIMES = 6  # after this many times the limit of one cell none of the learner's is begun that defines no exercise
BATCH_SIZE = 16  # cases of one message
EXPERIMENT = ("probe", "args", "kwargs", "options", "names")  # what a worker learns of a case
MAX_CACHED_BYTES = 16_384  # of a reply that is cached: most of the course's are smaller
MAX_REPLY_BYTES = 128 << 20  # of an exercise's observations together, some ten of them for each byte of JSON
MAX_RESTARTS = 10  # of one notebook's cells; then the cells not yet known to be harmless are left out

OUTPUT_NOTE = (
    f"It printed more than {MUCH_BYTES // 10**6} MB while it was graded. Nothing of that is kept, and printing takes from the time that "
    "an exercise has: print less in what the exercises call."
)
SLOW_CAUSE = "the cells before it took too long"
SLOW_NOTE = "Not run, since the cells before took too long, and since they define no exercise: {}."
BACKGROUND_NOTE = (
    "Something that the notebook had started kept running while no exercise was tried, and it {}. The notebook's process was ended, and "
    "its cells were run again for the remaining exercises: let no thread keep running in the background."
)


@dataclass
class Budget:
    """The time that one submission may take in all, whatever its single exercises and cells are allowed.

    seconds: of all requests to a submission's workers together; spent_s: of these so far.
    """

    seconds: float = math.inf
    spent_s: float = 0.0

    @property
    def is_over(self) -> bool:
        return self.spent_s >= self.seconds

    @property
    def cause(self) -> str:
        """Why something was not run, after 'because'."""
        return f"what ran before it used up the {self.seconds:g} s that this submission may take in all"

    @property
    def note(self) -> str:
        return (
            f"The cells and exercises of this submission may take {self.seconds:g} s in all, and they took longer: what came after that "
            "was not tried. First repair what ran out of time."
        )

    def unreached(self, name: str) -> Failure:
        """What is said of an exercise that was not tried."""
        return Failure("timeout", message=f"{name} was not tried, because {self.cause}.")


@lru_cache(maxsize=256)
def _observe_request(name: str, cases: tuple[Case, ...]) -> protocol.Body:
    """The request to try these cases: their inputs and how to use them, nothing of the answers. Every learner of a batch gets the same."""
    experiments = [{field: getattr(case, field) for field in EXPERIMENT} for case in cases]
    return protocol.body({"do": "observe", "name": name, "cases": experiments})


def _read(body: protocol.Body) -> tuple[Observation | None, bool]:
    """What a worker says to one case, None where it asks to be replaced by a fresh one; and whether much has been printed.

    Raises: WireError, KeyError, TypeError and ValueError for whatever is not exactly an answer.
    """
    reply = protocol.unpack(body)
    printed_much = reply.get("printed_much") is True
    if reply.get("stale") is True:
        return None, printed_much
    digest = blake2b(b"%d %b%b" % (len(body.text), body.text, body.blob), digest_size=32).digest()
    return replace(protocol.observation_from_message(reply["observation"]), digest=digest), printed_much


_read_cached = lru_cache(maxsize=1024)(_read)  # in a class, many show exactly the same numbers


class SkippedCell(WorkerLost):
    """A cell that was left out because of what others had done."""

    def failure(self, subject: str, timeout_s: float, memory_bytes: int) -> Failure:
        return Failure(self.kind, message=f"{subject} was not run, because {self.detail}.")


class Session:
    """One notebook in its workers: which cells ran, which names they left, which exercises fell."""

    def __init__(
        self, plan: Plan, start: Callable[[], Worker], timeout_s: float, memory_bytes: int, budget: Budget
    ) -> None:
        """start: gives a fresh worker. The rest is as in Sandbox."""
        self._plan, self._start_worker, self._budget = plan, start, budget
        self._timeout_s, self._memory_bytes = timeout_s, memory_bytes
        self._worker: Worker | None = None
        self._restarts = 0
        self._cells_s = 0.0  # the first run of each cell
        self._finished_cells: set[int] = set()  # cells that have run to their end, by position in the plan
        self._skips: dict[int, WorkerLost] = {}  # cells that ended a worker, by position in the plan
        self._cell_failures: dict[int, Failure] = {}  # cells that raised
        self._bindings: dict[str, int] = {}  # the cell that last bound each exercise's name
        self._exercise_failures: dict[str, Failure] = {}  # exercises that ended a worker
        self._exercise_s: dict[str, float] = {}  # the time that each exercise has used
        self._reply_bytes: dict[str, int] = {}
        self._printed_much = False
        self._background_use = ""  # what was used up by nothing that had been asked for

    def close(self) -> None:
        """Ends the worker and removes its folder."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()
            remove_folder(worker.folder)

    def problem(self, name: str) -> Failure | None:
        """Why there is no object of this name: what its cell raised, or that no cell defines it."""
        if name in self._exercise_failures:
            return None  # it was there; observe_all() tells what became of it
        if self._budget.is_over and name not in self._exercise_s:  # one that has begun has a limit of its own
            return self._budget.unreached(name)
        self._run_cells()
        owner = self._plan.owners.get(name)
        position = self._bindings.get(name)
        if owner is not None and position != owner:
            if owner in self._skips:
                subject = f"{self._plan.cells[owner].label.capitalize()}, which defines {name},"
                return self._failure(self._skips[owner], subject)
            if owner in self._cell_failures:
                return self._cell_failures[owner]
        return None if position is not None else self._plan.missing(name)

    def observe_all(self, name: str, cases: Sequence[Case]) -> list[Observation]:
        """What each case shows, within what is left of the exercise's seconds; the last one tells if it fell."""
        observations: list[Observation] = []
        for start in range(0, len(cases), BATCH_SIZE):
            observations += self._observe_batch(name, cases[start : start + BATCH_SIZE])
            if name in self._exercise_failures:
                break
        return observations

    def _observe_batch(self, name: str, cases: Sequence[Case]) -> list[Observation]:
        observations: list[Observation] = []
        try:
            for _ in range(2):
                if name in self._exercise_failures:
                    return [Observation(failure=self._exercise_failures[name])]
                problem = self.problem(name)
                if problem is not None:  # after a restart the cell did not run as it had before
                    return [Observation(failure=problem)] * len(cases)
                if self._ask(name, cases, observations):
                    return observations
                self.close()  # the exercise before left the libraries changed: this one starts afresh
            raise WorkerLost("invalid", "a fresh process says that it is stale")
        except WorkerLost as error:
            self.close()
            self._exercise_failures[name] = self._failure(error, name)
            return [*observations, Observation(failure=self._exercise_failures[name])]

    def _ask(self, name: str, cases: Sequence[Case], observations: list[Observation]) -> bool:
        """Fills `observations` with what the worker shows; False where it asks to be replaced by a fresh one."""
        assert self._worker is not None
        left_s = max(self._timeout_s - self._exercise_s.get(name, 0.0), 0.001)
        worker = self._worker
        try:
            for body in worker.replies(_observe_request(name, tuple(cases)), len(cases), left_s):
                is_small = len(body.text) + len(body.blob) <= MAX_CACHED_BYTES
                total = self._reply_bytes[name] = self._reply_bytes.get(name, 0) + 10 * len(body.text) + len(body.blob)
                if total > MAX_REPLY_BYTES:
                    raise WorkerLost("invalid", f"it returned more than {MAX_REPLY_BYTES >> 20} MiB in all")
                with self._close_on_malformed():
                    observation, printed_much = _read_cached(body) if is_small else _read(body)
                self._printed_much |= printed_much
                if observation is not None:
                    observations.append(observation)
                elif observations:
                    raise WorkerLost("invalid", "it asks to be replaced in the middle of its answers")
                else:
                    return False
        finally:
            spent_s = self._charge(worker)
        self._exercise_s[name] = self._exercise_s.get(name, 0.0) + spent_s
        return True

    def _charge(self, worker: Worker) -> float:
        """Takes the seconds of a worker's last request from the submission's budget."""
        spent_s = worker.spent_s()
        self._budget.spent_s += spent_s
        return spent_s

    @contextlib.contextmanager
    def _close_on_malformed(self) -> Iterator[None]:
        """A worker whose reply turns out to be malformed is lost."""
        try:
            yield
        except (protocol.WireError, KeyError, TypeError, ValueError) as error:
            self.close()
            raise WorkerLost("invalid", str(error)) from None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the notebook did that its learner should know."""
        background = (BACKGROUND_NOTE.format(self._background_use),) * bool(self._background_use)
        labels = [self._plan.cells[i].label for i, skip in sorted(self._skips.items()) if skip.detail == SLOW_CAUSE]
        slow = (SLOW_NOTE.format(number_cells(labels)),) * bool(labels)
        return (OUTPUT_NOTE,) * self._printed_much + background + slow + (self._budget.note,) * self._budget.is_over

    def _failure(self, error: WorkerLost, subject: str) -> Failure:
        return error.failure(subject, self._timeout_s, self._memory_bytes)

    def _run_cells(self) -> None:
        """Makes sure that a worker is there that has run the cells. One that used too much unasked is replaced: no exercise did that.
        So is one that had to be ended because nobody could look at what it uses."""
        background_error = self._worker.error if self._worker is not None else None
        if isinstance(background_error, WorkerLost):
            self._background_use = self._failure(background_error, "it").message.removeprefix("it ").rstrip(".")
        if background_error is not None:
            self.close()
        while self._worker is None:
            self._cell_failures, self._bindings = {}, {}
            self._worker = self._start_worker()
            for position in range(len(self._plan.cells)):
                if position in self._skips:
                    continue
                try:
                    self._run(position)
                except WorkerLost as error:
                    self.close()
                    self._skip(position, error)
                    break

    def _run(self, position: int) -> None:
        """Runs a cell. Raises: WorkerLost; SandboxError where one of the lesson's own fails before which nothing of the learner's ran."""
        cell = self._plan.cells[position]
        is_rerun = position in self._finished_cells
        if (
            cell.own
            and not is_rerun
            and self._cells_s >= self._timeout_s * CELLS_TIMES
            and position not in self._plan.owners.values()
        ):
            self._skips[position] = SkippedCell("timeout", SLOW_CAUSE)
            return
        if self._budget.is_over:
            self._skips[position] = SkippedCell("timeout", self._budget.cause)
            return
        request = {"do": "cell", "label": cell.label, "text": cell.text, "names": tuple(self._plan.exercises)}
        assert self._worker is not None
        worker = self._worker
        try:
            reply = worker.request(request, max(self._timeout_s, 0.001))
            self._finished_cells.add(position)
        finally:
            spent_s = self._charge(worker)
            if not is_rerun:
                self._cells_s += spent_s
        self._printed_much |= reply.get("printed_much") is True
        with self._close_on_malformed():
            failure = None if reply["failure"] is None else protocol.failure_from_message(reply["failure"])
            bound = [name for name in reply["bound"] if name in self._plan.exercises]
        if failure is not None:
            self._cell_failures[position] = failure
            if not any(previous.own for previous in self._plan.cells[: position + 1]):
                self.close()
                raise SandboxError(f"the lesson's own first cells do not run: {failure.type}: {failure.message}")
        if cell.own:
            self._bindings.update(dict.fromkeys(bound, position))

    def _skip(self, position: int, error: WorkerLost) -> None:
        """Leaves a cell out from now on; after too many, all that follow it; then all."""
        self._skips[position] = error
        self._restarts += 1
        if self._restarts > MAX_RESTARTS:
            first = position if self._restarts <= 2 * MAX_RESTARTS else 0
            reason = f"{self._restarts} other cells ended the process"
            for index in range(first, len(self._plan.cells)):
                self._skips.setdefault(index, SkippedCell(error.kind, reason))
