"""The candidate of an exercise that `check` judges in a process of its own, since what it does could end the notebook's.

What the learner's cells say is run there, as `grader grade` runs it: in a worker of the sandbox, which stands ready between checks.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import takewhile
from typing import Any

from grader.notebook.kernel_course import kernel_course
from grader.sandbox.sandbox import Sandbox
from grader.source.definitions import defined_names
from grader.source.policy import Sources
from grader.submission.plan import Plan, RunCell


@cache
def _sandbox() -> Sandbox:
    sandbox = Sandbox(torch=True, probes=kernel_course().probe_texts())
    atexit.register(sandbox.close)
    return sandbox


@contextmanager
def candidate(name: str, sources: Sources) -> Iterator[Any]:
    """The exercise as a worker shows it, which ends with the block. Raises: SandboxError where no worker can be had."""
    sandbox = _sandbox()
    sandbox.begin_submission(1)
    try:
        yield sandbox.candidates(_plan(name, sources.cells), sources)[name]  # type: ignore[arg-type]
    finally:
        sandbox.end_submission()


def _plan(name: str, statements: tuple[str, ...]) -> Plan:
    """What runs: the lesson's own cells before the exercise's, then the learner's statements.

    Each has a label of its own, by which Python finds its lines again.
    """
    lesson = kernel_course().lesson_of(name)
    before = takewhile(lambda cell: cell.exercise != name, kernel_course().cells(lesson))
    cells = [RunCell(f"given cell {cell.number}", cell.text, False) for cell in before if cell.role == "given"]
    owners: dict[str, int] = {}
    for number, text in enumerate(statements, 1):
        names = defined_names(text)
        if name in names:
            owners[name] = len(cells)
        suffix = f", which defines {', '.join(sorted(names))}" if names else ""
        cells.append(RunCell(f"statement {number}{suffix}", text, True))
    return Plan(lesson, (name,), tuple(cells), owners)
