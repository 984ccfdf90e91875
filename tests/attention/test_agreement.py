"""Verdicts agree: a cell is judged in a worker process as it is in the notebook.

The zoo's answers are laid into the learner's notebooks and graded as submissions; `bare` notebooks have lost
all metadata, as some editors lose it.
"""

from __future__ import annotations

from functools import cache

import pytest

from grader.course.course import open_course
from grader.grading.grade import Settings, grade_submission
from grader.sandbox.sandbox import Sandbox
from grader.source.definitions import defined_names
from tests.attention.test_zoo import ANIMALS
from tests.conftest import KEPT, WHOLE_GRID
from tests.live import verdict_on
from tests.toy_course import fill, write

_defined = cache(defined_names)
TAKEN = 3 if WHOLE_GRID else 2  # of the answers of each exercise; the zoo's own test judges all of them live


@cache
def _warm() -> Sandbox:
    KEPT.callback(_warm.cache_clear)
    return KEPT.enter_context(Sandbox(20.0, torch=True, probes=open_course().probe_texts()))


@pytest.fixture
def sandbox() -> Sandbox:
    """One for all lessons that this process judges: between two of them other files' tests run, and its start takes two seconds."""
    return _warm()


def _notebook(path, lesson, answers, bare):
    """The learner's notebook of a lesson with these answers in place of the stubs; others stay unwritten."""
    notebook = fill(open_course().pristine(lesson), answers)
    if bare:
        notebook["metadata"] = {}
        for cell in notebook["cells"]:
            cell["metadata"] = {}
            cell.pop("id", None)
    return write(path, notebook)


def _answers(lesson, animals, number):
    """One answer of each exercise; not those whose cell defines another exercise, too: the last definition counts."""
    chosen = {}
    for name in open_course().exercises[lesson]:
        others = set(open_course().exercises[lesson]) - {name}
        alone = [a for a in animals[name] if not others & _defined(a if isinstance(a, str) else a[1])]
        chosen[name] = alone[number % len(alone)]
    return chosen


LESSONS = [(name, number) for name in ANIMALS for number in range(TAKEN)]


@pytest.mark.parametrize("lesson, number", LESSONS)
def test_right_answers_earn_every_point(tmp_path, sandbox, lesson, number):
    answers = _answers(lesson, ANIMALS[lesson].RIGHT, number)
    path = _notebook(tmp_path / f"{lesson}.ipynb", lesson, answers, bare=number == 1)
    report = grade_submission(Settings(open_course()), path, sandbox=sandbox).lessons[0]
    assert {v.exercise: v.status for v in report.verdicts} == dict.fromkeys(answers, "passed"), [
        (v.exercise, v.headline) for v in report.verdicts if not v.passed
    ]


@pytest.mark.parametrize("lesson, number", LESSONS)
def test_wrong_answers_get_the_verdict_that_check_gives(tmp_path, sandbox, lesson, number):
    answers = _answers(lesson, ANIMALS[lesson].WRONG, number)
    texts = {name: text for name, (_, text) in answers.items()}
    path = _notebook(tmp_path / f"{lesson}.ipynb", lesson, texts, bare=number == 1)
    report = grade_submission(Settings(open_course()), path, sandbox=sandbox).lessons[0]
    for verdict in report.verdicts:
        live = verdict_on(verdict.exercise, texts[verdict.exercise])
        assert (verdict.status, verdict.mistakes) == (live.status, live.mistakes), (
            f"{verdict.headline} | {live.headline}"
        )
        assert verdict.status not in ("passed", "could_not_grade", "missing", "not_started")


OTHERWISE = [
    (lesson, name, number)
    for lesson, name, marks in (
        ("01_three_tokens", "softmax_rows", ("ThreadPool", "ops.softmax")),
        ("03_scaled_dot_product_attention", "attention_einsum", ("ndindex",)),
    )
    for number, answer in enumerate(ANIMALS[lesson].RIGHT[name])
    if any(mark in answer for mark in marks)
]


@pytest.mark.parametrize("lesson, name, number", OTHERWISE)
def test_threads_own_objects_and_single_numbers_pass_in_a_worker_too(tmp_path, sandbox, lesson, name, number):
    path = _notebook(tmp_path / f"{lesson}.ipynb", lesson, {name: ANIMALS[lesson].RIGHT[name][number]}, bare=False)
    (verdict,) = grade_submission(Settings(open_course(), exercises=[name]), path, sandbox=sandbox).lessons[0].verdicts
    assert verdict.passed, verdict.headline
