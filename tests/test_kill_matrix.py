"""The heart of the course: every mistake of every exercise is rejected and named, every reference passes."""

from __future__ import annotations

import pytest

from grader.course import references, registry
from grader.judging.judge import judge
from tests.live import Live

EXERCISES = registry.exercise_names()
MISTAKES = [(name, mistake) for name in EXERCISES for mistake in registry.exercise(name).mistakes]
SEEDS = (registry.SEED, 2026)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", EXERCISES)
def test_the_reference_passes(name, seed):
    verdict = judge(registry.exercise(name), Live(name, references.reference(name)), seed)
    assert verdict.status == "passed", f"{verdict.headline} {verdict.experiment}"
    assert verdict.verified


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name, mistake", MISTAKES, ids=[f"{name}-{mistake.id}" for name, mistake in MISTAKES])
def test_a_mistake_is_rejected_and_named(name, mistake, seed):
    verdict = judge(registry.exercise(name), Live(name, references.wrong(name, mistake)), seed)
    assert not verdict.passed
    assert mistake.id in verdict.mistakes, f"{verdict.status}: {verdict.headline} -> {verdict.mistakes}"


@pytest.mark.parametrize("name", EXERCISES)
def test_every_check_catches_something(name):
    assert len({mistake.id for mistake in registry.exercise(name).mistakes}) >= 3
