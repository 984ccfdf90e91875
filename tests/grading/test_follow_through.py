"""With --follow-through what fails only because a helper does earns its share, says so, and stays failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.course import references
from grader.course.course import open_course
from grader.grading import batch
from grader.grading.class_folder import ClassEntry, pack
from grader.grading.grade import Settings, grade_submission
from grader.grading.journal import from_line, to_line
from grader.reports import text
from grader.reports.report import LessonReport
from grader.sandbox.sandbox import Sandbox
from tests.mixing_course import RIGHT, solved

LESSON = "01_mixing"
WRONG = "def shares(scores):\n    e = np.exp(scores - scores.max())\n    return e / e.sum(axis=0, keepdims=True)"
UNWRITTEN = "def shares(scores):\n    raise NotImplementedError"
RAISES = "def shares(scores):\n    return nothing_of_the_kind"
OWN = """def mix(Q, K, V):
    weights = shares(scaled(products(Q, K), Q.shape[1]))
    return blend(weights, V) + 1, weights"""
THIEF = """def mix(Q, K, V):
    import inspect
    print(inspect.getsource(shares))
    weights = shares(scaled(products(Q, K), Q.shape[1]))
    return blend(weights, V), weights"""


def written(folder: Path, **cells: str) -> Path:
    """A solved notebook of lesson 01 with these cells in place of some."""
    path = folder / f"{LESSON}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(solved(LESSON, **cells)))
    return path


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(5.0) as made:
        yield made


def graded(sandbox, path: Path, share: float = 0.5) -> LessonReport:
    return grade_submission(Settings(open_course(), follow_through=share), path, sandbox=sandbox).lessons[0]


@pytest.mark.parametrize("helper", [WRONG, UNWRITTEN, RAISES])
def test_what_a_helper_alone_was_in_the_way_of_earns_its_share_and_stays_failed(sandbox, tmp_path, helper):
    lesson = graded(sandbox, written(tmp_path, shares=helper))
    by_name = {verdict.exercise: verdict for verdict in lesson.verdicts}
    assert lesson.follow_through["mix"] == ("shares", 0.5) and "shares" not in lesson.follow_through
    judged = by_name["mix"]
    assert not judged.passed and lesson.points_of(judged) == lesson.points["mix"] / 2
    assert text.mark_reason(lesson, judged) == (
        f"mix: {lesson.points_of(judged)} of {lesson.points['mix']} points, because it passes "
        "with the course's shares in place of the learner's, which is worth 50 % of them."
    )
    assert lesson.points_of(by_name["shares"]) == 0
    assert graded(sandbox, written(tmp_path, shares=helper), 0).follow_through == {}, "nobody asked for it"


def test_two_helpers_are_both_replaced(sandbox, tmp_path):
    scale = "def scaled(scores, d):\n    return scores / d"
    lesson = graded(sandbox, written(tmp_path, shares=WRONG, scaled=scale))
    assert lesson.follow_through["mix"] == ("scaled and shares", 0.5)


def test_a_mistake_of_one_s_own_earns_nothing(sandbox, tmp_path):
    assert "mix" not in graded(sandbox, written(tmp_path, shares=WRONG, mix=OWN)).follow_through
    assert graded(sandbox, written(tmp_path, mix=OWN)).follow_through == {}


def test_a_cell_that_holds_both_is_left_as_it_is(sandbox, tmp_path):
    both = f"{WRONG}\n\n{RIGHT['mix']}"
    lesson = graded(sandbox, written(tmp_path, shares="# below", mix=both))
    assert "mix" not in lesson.follow_through


def test_nothing_that_runs_beside_the_course_s_answer_is_told(sandbox, tmp_path):
    lesson = graded(sandbox, written(tmp_path, shares=WRONG, mix=THIEF))
    solution = references.solution_text(open_course(), "shares").splitlines()[-1].strip()
    assert solution not in "".join(text.render_verdict(verdict) + verdict.printed for verdict in lesson.verdicts)
    assert solution not in str(lesson.code)


def test_a_journal_keeps_it_and_a_run_for_each_learner_has_other_inputs(tmp_path, monkeypatch):
    drawn, real = [], batch.grade_submission
    monkeypatch.setattr(
        batch, "grade_submission", lambda own, *given, **more: drawn.append(own.seed) or real(own, *given, **more)
    )
    packed = [pack(ClassEntry(name, name, written(tmp_path / name, shares=WRONG).parent)) for name in ("a", "b")]
    settings = batch.Settings(open_course(), (LESSON,), follow_through=1.0, seed_per_learner=True)
    assert settings.seed_of("a") != settings.seed_of("b") and settings.seed_of("a") == settings.seed_of("a")
    assert batch.Settings(open_course(), seed=8).seed_of("a") == batch.Settings(open_course(), seed=8).seed_of("b") == 8
    try:
        entries = [from_line(batch.grade_packed(one, settings)[0]) for one in packed]
    finally:
        batch.close_sandboxes()
    for entry in entries:
        (lesson,) = entry.report.lessons
        assert lesson.follow_through["mix"] == ("shares", 1.0)
        assert from_line(to_line(entry)).report.lessons[0].follow_through == lesson.follow_through
        assert lesson.code["shares"] == WRONG
    assert drawn == [settings.seed_of("a"), settings.seed_of("b")]
