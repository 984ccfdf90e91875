"""A learner's numbers, whatever they are, put no warning on the terminal of whoever judges them, in any report."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from grader.course.course import Course
from grader.course.spec import SEED, Case
from grader.judging import evidence
from grader.judging.baseline import baseline_of
from grader.judging.compare import Comparison
from grader.judging.judge import judge
from grader.judging.verdict import Verdict
from grader.reports import gradescope, html, terminal, text
from grader.reports.gradebook import Gradebook
from grader.reports.report import LessonReport, Report, SubmissionReport
from grader.reports.report_files import files
from grader.worker.values import Observation, Part
from tests.conftest import ROOT
from tests.mixing_course import COURSE, hand_in

NAN, INF = np.nan, np.inf
FILLS = (
    NAN,
    INF,
    1.7e308,
    5e-324,
    65504.0,
    -0.0,
    (INF, -INF),
    (1.7e308, -1.7e308),
    (1e300, 1e-300),
    (3.4e38, INF, NAN, -INF, 0.0),
)
DTYPES = ("float64", "float32", "float16", "int64", "uint64", "int8", "bool")


@dataclass
class Shows:
    """A candidate that shows what the reference shows, each of its numbers put through `change`."""

    name: str
    seen: tuple[Observation, ...]
    change: object
    problem = None
    sources = None

    def observe_all(self, cases):
        for seen in self.seen:
            yield replace(seen, parts={name: self._part(part) for name, part in seen.parts.items()})

    def _part(self, part: Part) -> Part:
        if part.items:
            return replace(part, items=tuple(map(self._part, part.items)))
        return part if part.array is None or part.kind == "bool" else self.change(part)


def filled(fill, keep: int = 0):
    """The same type, shape and dtype with these numbers over and over. keep: every such entry stays as it was."""

    def change(part: Part) -> Part:
        flat = part.array.ravel().copy()
        with np.errstate(all="ignore"):
            put = np.resize(np.atleast_1d(np.asarray(fill, np.float64)), flat.shape).astype(flat.dtype)
        at = np.arange(flat.size) % keep != 0 if keep else np.ones(flat.size, bool)
        flat[at] = put[at]
        return replace(part, array=flat.reshape(part.array.shape))

    return change


def recast(dtype: str, fill):
    def change(part: Part) -> Part:
        with np.errstate(all="ignore"):
            array = filled(fill)(replace(part, array=part.array.astype(np.float64))).array.astype(dtype)
        return Part("ndarray" if part.kind == "number" else part.kind, array, dtype)

    return change


def emptied(part: Part) -> Part:
    shape = part.array.shape
    return replace(part, array=np.zeros((0, *shape[1:]), part.array.dtype)) if shape else part


CHANGES = [
    *map(filled, FILLS),
    *(filled(fill, 3) for fill in FILLS[::3]),
    emptied,
    *(recast(dtype, (1e300, NAN, -1)) for dtype in DTYPES),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", COURSE.exercise_names())
def test_no_numbers_warn_while_they_are_judged_and_shown(name, capfd):
    assert judged_and_shown(COURSE, name, CHANGES) <= {"passed", "failed"}
    assert capfd.readouterr().err == ""


def judged_and_shown(course: Course, name: str, changes: Sequence[Callable[[Part], Part]]) -> set[str]:
    """The statuses of what the reference shows, changed, once every report has shown them."""
    exercise = course.exercise(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = baseline_of(exercise, SEED)
    verdicts = [judge(exercise, Shows(name, seen.expected, change), SEED) for change in changes]
    show(course, *{judged.stage: judged for judged in verdicts}.values())
    return {judged.status for judged in verdicts}


def show(course: Course, *verdicts: Verdict) -> None:
    """Every report of them."""
    report = Report(
        tuple(
            SubmissionReport(f"learner {at}", "x", (LessonReport("01_x", (judged,), {judged.exercise: 1}),))
            for at, judged in enumerate(verdicts)
        ),
        7,
    )
    for one in (report, replace(report, submissions=report.submissions[:1])):
        assert all(dict(files(course, one, Gradebook(max_points=10.0))).values()) and gradescope.render(one)
        assert all(terminal.render(one, coloured=rich) for rich in (True, False))
    for judged in verdicts:
        assert text.render_verdict(judged) and html.render_verdict(judged)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (0, 2), (40, 30), (2, 3, 4), (2, 2, 30, 40)])
def test_no_numbers_warn_in_a_table(shape, dtype, capfd):
    want, verdicts = np.linspace(0, 1, int(np.prod(shape))).reshape(shape), []
    for fill in FILLS:
        with np.errstate(all="ignore"):
            got = recast(dtype, fill)(Part("ndarray", want, "float64")).array
        right, theirs = (
            Observation({"result": part}) for part in (Part("ndarray", want, "float64"), Part("ndarray", got, dtype))
        )
        one = Comparison(COURSE.exercise("shares"), Case("a", "a", (got,), names=("x",)), right, theirs)
        with np.errstate(all="ignore"):  # as judge() has it
            tables = evidence.tables(one)
        verdicts.append(Verdict("shares", "failed", "It differs.", "values", tables=tables))
    show(COURSE, *verdicts)
    assert capfd.readouterr().err == ""


def test_no_warning_reaches_the_terminal(tmp_path):
    """The answer overflows in what a property of its exercise does with it, outside of the learner's process."""
    hand_in(tmp_path, "01_mixing", shares="def shares(scores):\n    return np.full(scores.shape, 1.7e308)")
    done = subprocess.run(
        [sys.executable, "-m", "grader", "grade", str(tmp_path)], capture_output=True, text=True, cwd=ROOT, timeout=240
    )
    assert done.returncode == 1
    assert "Warning" not in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
