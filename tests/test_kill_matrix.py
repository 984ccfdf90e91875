"""The heart of the course: every mistake of every exercise is rejected and named, every reference passes."""

from __future__ import annotations

import pytest

from grader import course
from grader.judge import judge
from tests.live import Live

EXERCISES = course.exercise_names()
MISTAKES = [(name, mistake) for name in EXERCISES for mistake in course.exercise(name).mistakes]
SEEDS = (course.SEED, 2026)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", EXERCISES)
def test_the_reference_passes(name, seed):
    verdict = judge(course.exercise(name), Live(name, course.reference(name)), seed)
    assert verdict.status == "passed", f"{verdict.headline} {verdict.experiment}"
    assert verdict.verified


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name, mistake", MISTAKES, ids=[f"{name}-{mistake.id}" for name, mistake in MISTAKES])
def test_a_mistake_is_rejected_and_named(name, mistake, seed):
    verdict = judge(course.exercise(name), Live(name, course.wrong(name, mistake)), seed)
    assert not verdict.passed
    assert mistake.id in verdict.mistakes, f"{verdict.status}: {verdict.headline} -> {verdict.mistakes}"


@pytest.mark.parametrize("name", EXERCISES)
def test_every_check_catches_something(name):
    assert len({mistake.id for mistake in course.exercise(name).mistakes}) >= 3
