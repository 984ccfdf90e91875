"""With --follow-through what fails only because a helper does earns its share, says so, and stays failed."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from grader.course import references
from grader.course.course import open_course
from grader.grading import batch
from grader.grading.class_folder import ClassEntry, pack
from grader.grading.grade import Settings, grade_submission
from grader.grading.journal import from_line, to_line
from grader.judging.verdict import LessonReport
from grader.reports import text
from grader.sandbox.sandbox import Sandbox
from tests.grading.test_handed_in import FIRST

WRONG = "def softmax_rows(scores):\n    e = np.exp(scores - scores.max())\n    return e / e.sum(axis=0, keepdims=True)"
UNWRITTEN = "def softmax_rows(scores):\n    raise NotImplementedError"
RAISES = "def softmax_rows(scores):\n    return nothing_of_the_kind"
OWN = """def three_token_attention(Q, K, V):
    weights = softmax_rows(scale_scores(attention_scores(Q, K), Q.shape[1]))
    return weighted_sum(weights, V) + 1, weights"""
THIEF = """def three_token_attention(Q, K, V):
    import inspect
    print(inspect.getsource(softmax_rows))
    weights = softmax_rows(scale_scores(attention_scores(Q, K), Q.shape[1]))
    return weighted_sum(weights, V), weights"""


def written(folder: Path, **cells: str) -> Path:
    """A notebook of lesson 01 with the course's answers, and these in place of some."""
    made = copy.deepcopy(open_course().pristine(FIRST))
    for cell in made["cells"]:
        name = cell["metadata"].get("grader", {}).get("exercise")
        if cell["metadata"].get("grader", {}).get("role") == "exercise":
            cell["source"] = cells.get(name) or references.solution_text(open_course(), name)
    path = folder / f"{FIRST}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made))
    return path


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(5.0) as made:
        yield made


def graded(sandbox, path: Path, share: float = 0.5) -> LessonReport:
    return grade_submission(Settings(open_course(), follow_through=share), path, sandbox=sandbox).lessons[0]


@pytest.mark.parametrize("helper", [WRONG, UNWRITTEN, RAISES])
def test_what_a_helper_alone_was_in_the_way_of_earns_its_share_and_stays_failed(sandbox, tmp_path, helper):
    lesson = graded(sandbox, written(tmp_path, softmax_rows=helper))
    by_name = {verdict.exercise: verdict for verdict in lesson.verdicts}
    assert (
        lesson.follow_through["three_token_attention"] == ("softmax_rows", 0.5)
        and "softmax_rows" not in lesson.follow_through
    )
    judged = by_name["three_token_attention"]
    assert not judged.passed and lesson.points_of(judged) == lesson.points["three_token_attention"] / 2
    assert text.mark_reason(lesson, judged) == (
        f"three_token_attention: {lesson.points_of(judged)} of {lesson.points['three_token_attention']} points, because it passes "
        "with the course's softmax_rows in place of the learner's, which is worth 50 % of them."
    )
    assert lesson.points_of(by_name["softmax_rows"]) == 0
    assert graded(sandbox, written(tmp_path, softmax_rows=helper), 0).follow_through == {}, "nobody asked for it"


def test_two_helpers_are_both_replaced(sandbox, tmp_path):
    scale = "def scale_scores(scores, d_k):\n    return scores / d_k"
    lesson = graded(sandbox, written(tmp_path, softmax_rows=WRONG, scale_scores=scale))
    assert lesson.follow_through["three_token_attention"] == ("scale_scores and softmax_rows", 0.5)


def test_a_mistake_of_one_s_own_earns_nothing(sandbox, tmp_path):
    assert (
        "three_token_attention"
        not in graded(sandbox, written(tmp_path, softmax_rows=WRONG, three_token_attention=OWN)).follow_through
    )
    assert graded(sandbox, written(tmp_path, three_token_attention=OWN)).follow_through.keys() <= {
        "corrected_first_row"
    }


def test_a_cell_that_holds_both_is_left_as_it_is(sandbox, tmp_path):
    both = f"{WRONG}\n\n{references.solution_text(open_course(), 'three_token_attention')}"
    lesson = graded(sandbox, written(tmp_path, softmax_rows="# below", three_token_attention=both))
    assert "three_token_attention" not in lesson.follow_through


def test_nothing_that_runs_beside_the_course_s_answer_is_told(sandbox, tmp_path):
    lesson = graded(sandbox, written(tmp_path, softmax_rows=WRONG, three_token_attention=THIEF))
    solution = references.solution_text(open_course(), "softmax_rows").splitlines()[-1].strip()
    assert solution not in "".join(text.render_verdict(verdict) + verdict.printed for verdict in lesson.verdicts)
    assert solution not in str(lesson.code)


def test_a_journal_keeps_it_and_a_run_for_each_learner_has_other_inputs(tmp_path, monkeypatch):
    drawn, real = [], batch.grade_submission
    monkeypatch.setattr(
        batch, "grade_submission", lambda own, *given, **more: drawn.append(own.seed) or real(own, *given, **more)
    )
    packed = [pack(ClassEntry(name, name, written(tmp_path / name, softmax_rows=WRONG).parent)) for name in ("a", "b")]
    settings = batch.Settings(open_course(), (FIRST,), follow_through=1.0, seed_per_learner=True)
    assert settings.seed_of("a") != settings.seed_of("b") and settings.seed_of("a") == settings.seed_of("a")
    assert batch.Settings(open_course(), seed=8).seed_of("a") == batch.Settings(open_course(), seed=8).seed_of("b") == 8
    try:
        entries = [from_line(batch.grade_packed(one, settings)) for one in packed]
    finally:
        batch.close_sandboxes()
    for entry in entries:
        (lesson,) = entry.report.lessons
        assert lesson.follow_through["three_token_attention"] == ("softmax_rows", 1.0)
        assert from_line(to_line(entry)).report.lessons[0].follow_through == lesson.follow_through
        assert lesson.code["softmax_rows"] == WRONG
    assert drawn == [settings.seed_of("a"), settings.seed_of("b")]
