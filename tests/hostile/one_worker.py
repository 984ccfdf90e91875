"""Many notebooks, one after the other, in one worker, where each undoes what it has changed: a fresh worker for each costs most of the time.

Between two notebooks the worker is made to forget the one before: its names go, and what a worker does before its first question, it
does again. Whatever does not go as it should (a worker that is lost, a cell that cannot undo) costs the worker, and the next notebook
gets a fresh one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from grader.judging.judge import judge
from grader.judging.verdict import Verdict
from grader.sandbox.process import Worker, WorkerLost
from grader.sandbox.sandbox import Candidate, Sandbox
from grader.sandbox.scratch import remove_folder
from grader.sandbox.session import Budget, Session
from grader.submission.plan import Plan, RunCell

# serve() in worker/main.py enters torch's modes and takes a picture of the libraries before the first question alone: with what a
# notebook has replaced in force, as here.
BEFORE = """
import sys as _sys
def _serving(look=_sys._getframe):
    frame = look()
    while frame.f_code.co_name != "serve":
        frame = frame.f_back
    return frame
def _begin_again():
    frame = _serving()
    if frame.f_locals["initial_state"] is not None:
        try:
            frame.f_locals["modes"].enter_context(frame.f_globals["default_modes"]())
        except Exception:
            pass
        frame.f_locals["initial_state"].__init__()
def undo():
    pass
def _end(names, undo=undo, space=globals()):
    for name in names:
        space.pop(name, None)
    space["undo"] = undo
    _serving().f_locals["modes"].close()
"""

# Where a result lies is in doubt for many answers. Torch's meta device tells, and the first who asks it imports a computer algebra and
# a compiler, for a second or two: here once, as if it were a probe, and not in each worker.
ON_META = {"tests.meta": "import torch._dynamo\n\nx = torch.ones(1, 1, 1, device='meta')\n(x @ x / 2).softmax(0)\n"}


class OneWorker:
    """given: the cells that come first, run once in each worker."""

    def __init__(self, sandbox: Sandbox, given: Sequence[str]) -> None:
        self._sandbox, self._given = sandbox, (BEFORE, *given)
        self._worker: Worker | None = None
        sandbox.end_submission()  # a sandbox has one worker at a time

    def _start(self) -> Worker:
        worker, self._worker = self._worker, None
        if worker is None:
            worker = self._sandbox.start()
            for text in self._given:
                reply = worker.request({"do": "cell", "label": "given cell", "text": text, "names": ()}, 60.0)
                assert reply["failure"] is None, reply
        return worker

    def judged(
        self, cells: Sequence[str], owners: dict[str, int], exercise: Callable[[str], Any]
    ) -> dict[str, Verdict]:
        """What these cells earn after the given ones; `undo`, which one of them may define, is called at the end.

        owners: by exercise, the cell that defines it, from 0.
        """
        plan = Plan(
            "01_toy",
            tuple(owners),
            tuple(RunCell(f"cell {i}", text, True) for i, text in enumerate((*cells, "_begin_again()"), 1)),
            owners,
        )
        session = Session(plan, self._start, self._sandbox.timeout_s, self._sandbox.memory_bytes, Budget())
        try:
            found = {name: judge(exercise(name), Candidate(name, None, session)) for name in owners}
            worker = session._worker
            if worker is not None and worker.error is None and self._undone(worker, f"undo()\n_end({tuple(owners)!r})"):
                self._worker, session._worker = worker, None
        finally:
            session.close()
        return found

    def _undone(self, worker: Worker, text: str) -> bool:
        try:
            return worker.request({"do": "cell", "label": "undo", "text": text, "names": ()}, 10.0)["failure"] is None
        except WorkerLost:
            return False

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
            remove_folder(self._worker.folder)
            self._worker = None
