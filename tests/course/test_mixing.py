"""The course that the engine's tests judge keeps every rule, and its right answers pass."""

from __future__ import annotations

import pytest

from grader.authoring.audit import audit
from grader.course import index
from grader.judging.judge import judge
from tests.live import from_cells
from tests.mixing_course import COURSE, RIGHT

LESSON_OF = {name: lesson for lesson, names in COURSE.exercises.items() for name in names}


@pytest.mark.parametrize("lesson", COURSE.lessons())
def test_every_lesson_keeps_the_rules(lesson):
    assert audit(COURSE, [lesson]).problems == []


@pytest.mark.parametrize("name", LESSON_OF)
def test_its_right_answers_pass(name):
    before = COURSE.exercises[LESSON_OF[name]]
    verdict = judge(COURSE.exercise(name), from_cells(name, *(RIGHT[one] for one in before[: before.index(name) + 1])))
    assert verdict.passed, f"{verdict.headline}\n{verdict.experiment}"


def test_its_index_is_as_its_lessons_are():
    assert not index.is_stale(COURSE)
