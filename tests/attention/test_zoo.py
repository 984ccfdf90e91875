"""The zoo: learners' cells, right in many styles and wrong in many ways, each judged as a learner's."""

from __future__ import annotations

import numpy as np
import pytest

from grader.course.course import open_course
from grader.judging.judge import judge
from grader.reports import text
from tests.attention.zoo import beginners
from tests.attention.zoo.otherwise import OTHERWISE
from tests.live import from_cells, verdict_on


def _mutated(text: str, hunks: tuple[str, ...]) -> str:
    for old, new in zip(hunks[::2], hunks[1::2], strict=True):
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    return text


ANIMALS = {name: open_course().module(f"{name}.zoo.answers") for name in open_course().lessons()}
# Written so, each of them ends in an exception of its own words in all cases that show it, and no number proves the mistake.
ONLY_REJECTED = {("CausalSelfAttention", "MA15"), ("attention_backward", "GB7")}
RIGHT = [(e, i, t) for zoo in ANIMALS.values() for e, texts in zoo.RIGHT.items() for i, t in enumerate(texts)]
WRONG = [(e, i, w) for zoo in ANIMALS.values() for e, wrongs in zoo.WRONG.items() for i, w in enumerate(wrongs)]


@pytest.mark.parametrize("exercise, number, text", RIGHT, ids=[f"{e}-{i}" for e, i, _ in RIGHT])
def test_a_right_answer_passes_in_whatever_style(exercise, number, text):
    verdict = judge(open_course().exercise(exercise), from_cells(exercise, text))
    assert verdict.status == "passed", f"{verdict.headline}\n{verdict.experiment}\n{verdict.details}"


@pytest.mark.parametrize("exercise, number, wrong", WRONG, ids=[f"{e}-{i}-{w[0]}" for e, i, w in WRONG])
def test_a_wrong_answer_is_rejected_and_named(exercise, number, wrong):
    id, text = wrong
    verdict = verdict_on(exercise, text)
    assert verdict.status not in ("passed", "could_not_grade", "not_started", "missing"), verdict.headline
    assert verdict.cases[0] < verdict.cases[1] or verdict.cases == (0, 0), verdict.cases
    if id is not None:
        assert id in verdict.mistakes, f"{verdict.status}: {verdict.headline} {verdict.mistakes}"


@pytest.mark.parametrize("exercise", OTHERWISE)
def test_a_right_answer_written_otherwise_passes(exercise):
    verdict = judge(open_course().exercise(exercise), from_cells(exercise, OTHERWISE[exercise][0]))
    assert verdict.status == "passed", f"{verdict.headline}\n{verdict.details}"


@pytest.mark.parametrize("exercise, id", [(exercise, id) for exercise, (_, ids) in OTHERWISE.items() for id in ids])
def test_the_same_mistake_written_otherwise_is_named(exercise, id):
    right, ids = OTHERWISE[exercise]
    verdict = judge(open_course().exercise(exercise), from_cells(exercise, _mutated(right, ids[id])))
    assert verdict.status in ("failed", "error"), verdict.headline
    assert id in verdict.mistakes or (exercise, id) in ONLY_REJECTED, f"{verdict.headline} {verdict.mistakes}"


@pytest.mark.parametrize("name", open_course().lessons())
def test_every_exercise_is_in_the_zoo_with_three_of_each(name):
    zoo = ANIMALS[name]
    for exercise in open_course().exercises[name]:
        assert len(zoo.RIGHT.get(exercise, ())) >= 3, exercise
        assert len(zoo.WRONG.get(exercise, ())) >= 3, exercise


@pytest.mark.parametrize("returned", ["(output, output)", "output.tolist()", "None", "'output'"])
def test_what_is_no_array_is_told_by_its_type_though_a_probe_cannot_read_it(returned):
    text = f"def attention_einsum(q, k, v):\n    output = np.einsum('bqd,bkd->bq', q, k)\n    return {returned}\n"
    verdict = judge(open_course().exercise("attention_einsum"), from_cells("attention_einsum", text))
    assert verdict.headline.endswith("expected a NumPy array."), verdict.headline


def test_designed_projections_are_judged_by_the_weights_that_they_give():
    text = "def previous_token_projections(t, share):\n    return 1000 * np.eye(t, k=-1), np.eye(t)\n"
    verdict = judge(
        open_course().exercise("previous_token_projections"), from_cells("previous_token_projections", text)
    )
    assert "row 0 has 0.3333 on column 0, and at least 0.9 was asked for" in verdict.headline
    (table,) = verdict.tables
    assert table.role == "actual" and np.allclose(table.cells, [[1 / 3] * 3, [1, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize(
    "exercise, cell, must, must_not", beginners.SAID, ids=[f"{said[0]}-{i}" for i, said in enumerate(beginners.SAID)]
)
def test_what_beginners_let_slip_is_told_in_its_own_words(exercise, cell, must, must_not):
    verdict = judge(open_course().exercise(exercise), from_cells(exercise, cell))
    said = " ".join(text.render_verdict(verdict).split())
    assert not verdict.passed and verdict.status != "could_not_grade"
    assert all(words in said for words in must), said
    assert not any(words in said for words in must_not), said
