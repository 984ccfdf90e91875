"""What `check` judges in a process of its own: the learner's kernel lives on whatever an answer does, and the verdict is grading's."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from grader.grading import grade
from grader.notebook import own_process, verdicts
from grader.notebook.target import Target
from grader.util import libraries
from tests import small_lesson
from tests.notebook.test_live import run, shell

__all__ = ["shell"]
HELPER = "def add(x, y):\n    total = np.add(x, y)\n    return total\n"
ANSWER = "def double(x):\n    total = add(x, x)\n    return total\n"


@pytest.fixture(scope="module", autouse=True)
def no_worker_is_left():
    yield
    if own_process._sandbox.cache_info().currsize:
        own_process._sandbox().close()
        own_process._sandbox.cache_clear()


@pytest.fixture(autouse=True)
def course(monkeypatch, tmp_path):
    """The small lesson, whose exercise could end the notebook's process and needs Triton, which is taken to be there."""
    monkeypatch.setattr(small_lesson, "EXERCISE", replace(small_lesson.EXERCISE, process="own", libraries=("triton",)))
    installed = libraries.installed
    monkeypatch.setattr(libraries, "installed", lambda module: module == "triton" or installed(module))
    return small_lesson.install(monkeypatch, tmp_path)


def judged(shell, *cells: str):
    names = run(shell, "import numpy as np", *cells)
    return verdicts.judge(Target("double", names["double"], names))


def test_an_answer_in_several_cells_passes(shell):
    assert judged(shell, HELPER, "import math", ANSWER).status == "passed"


def test_what_ends_the_process_ends_another_one_than_this(shell):
    before = os.getpid()
    verdict = judged(shell, HELPER, "import os\n" + ANSWER.replace("    return", "    os._exit(3)\n    return"))
    assert (verdict.status, os.getpid()) == ("error", before)
    assert verdict.headline == "double ended the process (exit status 3)."
    assert judged(shell, HELPER, ANSWER).status == "passed"


def test_a_proven_mistake_is_named(shell):
    assert judged(shell, HELPER.replace("np.add", "np.multiply"), ANSWER).mistakes == ("TY1",)


def test_an_error_is_told_with_the_line_of_its_cell(shell):
    cell = "# one\n\n" + HELPER.replace("np.add", "np.nothing")
    verdict = judged(shell, cell, ANSWER)
    assert (verdict.status, verdict.line.number, verdict.line.function) == ("error", 4, "add")
    assert "np.nothing" in verdict.line.text


def test_an_untouched_stub_and_half_of_one_are_told_apart(shell):
    stub = 'raise NotImplementedError("double is not written yet")'
    assert judged(shell, f"def double(x):\n    {stub}").status == "not_started"
    verdict = judged(shell, f"def add(x, y):\n    {stub}\n", ANSWER)
    assert verdict.headline.startswith("double calls `add`, which is not written yet"), verdict.headline


def test_without_its_text_nothing_is_judged(shell):
    names = run(shell, "import numpy as np")
    exec(compile(HELPER + ANSWER, "<nowhere>", "exec"), names)
    verdict = verdicts.judge(Target("double", names["double"], names))
    assert (verdict.status, verdict.headline) == ("missing", "No cell defines double.")


@pytest.mark.parametrize("system, said", [("linux", "attention-course[kernel]"), ("darwin", "runs on Linux alone")])
def test_without_triton_each_check_says_what_is_needed(shell, monkeypatch, system, said):
    monkeypatch.setattr(libraries, "installed", lambda module: module != "triton")
    monkeypatch.setattr(libraries.sys, "platform", system)
    verdict = judged(shell, HELPER + ANSWER)
    assert verdict.status == "could_not_grade" and said in verdict.headline


def test_without_triton_nobody_gets_a_zero(course, monkeypatch, tmp_path):
    monkeypatch.setattr(libraries, "installed", lambda module: module != "triton")
    handed_in = tmp_path / f"{small_lesson.NAME}.ipynb"
    handed_in.write_text(json.dumps(course.pristine(small_lesson.NAME)), encoding="utf-8")
    report = grade.grade_submission(grade.Settings(course), handed_in)
    assert {one.status for lesson in report.lessons for one in lesson.verdicts} == {"could_not_grade"}


def test_an_interrupt_ends_the_process_and_says_so(shell, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patches:
        patches.setattr("grader.sandbox.session.Session.observe_all", stopped)
        verdict = judged(shell, HELPER, ANSWER)
    assert (verdict.status, verdict.details) == ("timeout", ("It ran in a process of its own, which has been ended.",))
    assert judged(shell, HELPER, ANSWER).status == "passed"


def test_a_loop_that_never_ends_is_stopped_by_the_clock(shell, monkeypatch):
    monkeypatch.setattr(own_process._sandbox(), "timeout_s", 1.0)
    verdict = judged(shell, HELPER, ANSWER.replace("    return", "    while True:\n        pass\n    return"))
    assert (verdict.status, verdict.headline) == ("timeout", "double did not finish within 1 s.")
