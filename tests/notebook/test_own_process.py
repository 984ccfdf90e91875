"""What `check` judges in a process of its own: the learner's kernel lives on whatever an answer does, and the verdict is grading's."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from grader.course.course import open_course
from grader.grading import grade
from grader.notebook import own_process, verdicts
from grader.notebook.target import Target
from grader.util import libraries
from tests.conftest import ROOT
from tests.notebook.test_live import run, shell

__all__ = ["shell"]
KERNEL = """
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at < n
    tl.store(out + at, tl.load(x + at, mask=here) + tl.load(y + at, mask=here), mask=here)
"""
WRAPPER = """

def triton_add(x, y):
    out = torch.empty_like(x)
    add[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
    return out
"""


@pytest.fixture(scope="module", autouse=True)
def triton():
    """Skips these tests, with a reason, where it is not installed; afterwards no worker is left."""
    pytest.importorskip("triton", reason="it judges kernels, which needs Triton: make kernel")
    yield
    if own_process._sandbox.cache_info().currsize:
        own_process._sandbox().close()
        own_process._sandbox.cache_clear()


def given() -> str:
    return next(cell.text for cell in open_course().cells("15_kernel") if cell.role == "given")


def judged(shell, *cells: str):
    names = run(shell, given(), *cells)
    return verdicts.judge(Target("triton_add", names["triton_add"], names))


def test_an_answer_in_several_cells_passes(shell):
    assert judged(shell, KERNEL, "import math", WRAPPER).status == "passed"


def test_what_ends_the_process_ends_another_one_than_this(shell):
    before = os.getpid()
    verdict = judged(shell, KERNEL, "import os\n" + WRAPPER.replace("    return", "    os._exit(3)\n    return"))
    assert (verdict.status, os.getpid()) == ("error", before)
    assert verdict.headline == "triton_add ended the process (exit status 3)."
    assert judged(shell, KERNEL, WRAPPER).status == "passed"


def test_an_address_that_is_nobodys_is_told_before_anything_reads_it(shell):
    verdict = judged(shell, KERNEL.replace("x + at", "x + (1 << 40) + at"), WRAPPER)
    assert verdict.status == "failed"
    assert verdict.headline.startswith("Program 0 of 1 reads where no tensor is, first in lane 0 of its block.")


def test_what_the_compiler_refuses_is_rejected_with_the_line(shell):
    """A kernel of one's own with a helper, which the interpreter and the compiler both take, is not."""
    helper = "\n@triton.jit\ndef twice(x):\n    return x + x\n\n"
    doubled = KERNEL.replace("tl.load(x + at, mask=here) +", "twice(tl.load(x + at, mask=here)) / 2 +")
    assert judged(shell, helper + doubled, WRAPPER).status == "passed"
    verdict = judged(shell, KERNEL.replace("    here = at < n", "    here = 0 <= at < n"), WRAPPER)
    assert verdict.case == "compiled"
    assert verdict.headline == (
        "Triton's compiler refuses this kernel at `here = 0 <= at < n`: “simultaneous multiple comparison is not supported”. The "
        "interpreter lets it pass, and no GPU would."
    )


def test_an_error_is_told_with_the_line_of_its_cell(shell):
    cell = "# one\n\n" + KERNEL.replace("tl.store", "tl.shop")
    verdict = judged(shell, cell, WRAPPER)
    assert (verdict.status, verdict.line.number) == (
        "error",
        1 + cell.split("\n").index(next(l for l in cell.split("\n") if "shop" in l)),
    )
    assert "shop" in verdict.line.text and verdict.line.function == "add"


def test_an_untouched_stub_and_half_of_one_are_told_apart(shell):
    stub = 'raise NotImplementedError("triton_add is not written yet")'
    assert judged(shell, f"def triton_add(x, y):\n    {stub}").status == "not_started"
    half = f"@triton.jit\ndef add(x, y, out, n, BLOCK: tl.constexpr):\n    {stub}\n"
    verdict = judged(shell, half, WRAPPER)
    assert verdict.headline.startswith("triton_add calls `add`, which is not written yet"), verdict.headline


def test_without_its_text_nothing_is_judged(shell):
    names = run(shell, given())
    exec(compile(KERNEL + WRAPPER, "<nowhere>", "exec"), names)
    verdict = verdicts.judge(Target("triton_add", names["triton_add"], names))
    assert (verdict.status, verdict.headline) == ("missing", "No cell defines triton_add.")


@pytest.mark.parametrize("system, said", [("linux", "attention-course[kernel]"), ("darwin", "runs on Linux alone")])
def test_without_triton_each_check_says_what_is_needed(shell, monkeypatch, system, said):
    names = run(shell, given(), KERNEL + WRAPPER)
    monkeypatch.setattr(libraries, "installed", lambda module: module != "triton")
    monkeypatch.setattr(libraries.sys, "platform", system)
    verdict = verdicts.judge(Target("triton_add", names["triton_add"], names))
    assert verdict.status == "could_not_grade" and said in verdict.headline


def test_without_triton_nobody_gets_a_zero(monkeypatch, tmp_path):
    monkeypatch.setattr(libraries, "installed", lambda module: module != "triton")
    handed_in = tmp_path / "15_kernel.ipynb"
    handed_in.write_text(json.dumps(open_course().pristine("15_kernel")), encoding="utf-8")
    report = grade.grade_submission(grade.Settings(open_course()), handed_in)
    assert {one.status for lesson in report.lessons for one in lesson.verdicts} == {"could_not_grade"}


WITH_A_GPU = """
import torch
torch.cuda.is_available, torch.cuda.is_initialized = lambda: True, lambda: False
import triton
from grader.course import references
from grader.course.course import open_course
from grader.judging.judge import judge
from tests.live import Live

exercise = open_course().exercise("triton_add")
right = references.reference(exercise)
assert judge(exercise, Live("triton_add", right)).passed
wrong = references.wrong(exercise, exercise.mistakes[0])
assert judge(exercise, Live("triton_add", wrong)).mistakes == (exercise.mistakes[0].id,)
kernel = references.namespace(open_course(), "15_kernel")["add_kernel"]
print(type(kernel).__name__, triton.JITFunction.run.__qualname__)
"""


def test_where_there_is_a_gpu_references_run_in_the_interpreter_and_kernels_stay_to_be_compiled():
    """The variable is not set there: a learner's kernel is compiled in the notebook, and judged in the interpreter."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", WITH_A_GPU], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["JITFunction", "JITFunction.run"], done.stderr[-2000:]


def test_an_interrupt_ends_the_process_and_says_so(shell, monkeypatch):
    names = run(shell, given(), KERNEL + WRAPPER)

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patches:
        patches.setattr("grader.sandbox.session.Session.observe_all", stopped)
        verdict = verdicts.judge(Target("triton_add", names["triton_add"], names))
    assert (verdict.status, verdict.details) == ("timeout", ("It ran in a process of its own, which has been ended.",))
    assert verdicts.judge(Target("triton_add", names["triton_add"], names)).status == "passed"


def test_a_loop_that_never_ends_is_stopped_by_the_clock(shell, monkeypatch):
    monkeypatch.setattr(own_process._sandbox(), "timeout_s", 2.0)
    verdict = judged(shell, KERNEL, WRAPPER.replace("    return", "    while True:\n        pass\n    return"))
    assert (verdict.status, verdict.headline) == ("timeout", "triton_add did not finish within 2 s.")
