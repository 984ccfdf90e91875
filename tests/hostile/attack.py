"""An attack as a real submission: what it holds, what it may earn, and that nothing of it stays behind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psutil

from grader.course.course import open_course
from grader.grading import grade
from grader.judging.verdict import Verdict
from grader.sandbox.sandbox import Sandbox
from tests import toy_course as toy
from tests.conftest import children

RETURN_X = "\ndef double(x): return x"


def verdicts(monkeypatch, folder: Path, sandbox: Sandbox, text: str, before: str = "") -> dict[str, Verdict]:
    """By exercise, where `double` is the attack and its neighbours are solved; before: a cell above all of them."""
    toy.install(monkeypatch)
    content: dict[str, Any] = toy.solved(double=text)
    if before:
        content["cells"].insert(1, toy.code(before))
    path = toy.write(folder / "01_toy.ipynb", content)
    found = grade.grade_submission(grade.Settings(open_course()), path, sandbox=sandbox).lessons[0].verdicts
    return {verdict.exercise: verdict for verdict in found}


def earns(found: dict[str, Verdict], status: str | None) -> None:
    """The attacked exercise has this status (None: any but a pass), the neighbours have all their points."""
    got = found["double"].status
    assert got == status if status else got not in ("passed", "could_not_grade"), found["double"]
    assert {name: found[name].status for name in ("row_sums", "the_answer")} == {
        "row_sums": "passed",
        "the_answer": "passed",
    }, [found[name].headline for name in ("row_sums", "the_answer")]


def bystanders(sandbox: Sandbox) -> list[psutil.Process]:
    """Processes of ours that are neither the warm parent, the last notebook's worker nor the reader, zombies aside."""
    sandbox.candidates(_nothing())  # closes the notebook before
    alive = [p for p in children() if p.status() != psutil.STATUS_ZOMBIE]
    return [
        process
        for process in alive
        if not any(own in " ".join(process.cmdline()) for own in ("start.py", "reading_process.py"))
    ]


def _nothing() -> Any:
    from grader.submission.plan import Plan

    return Plan(toy.NAME, ())


def files(folder: Path) -> set[str]:
    """Every file and folder below a folder, by its path there."""
    return {os.path.relpath(os.path.join(top, name), folder) for top, _, names in os.walk(folder) for name in names}
