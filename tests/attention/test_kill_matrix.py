"""Other numbers than the course's: every reference passes, and of each exercise some mistakes are rejected and named.

That with the course's numbers each reference passes and each mistake is rejected and named is proved in test_audit.py, once. What a
second seed adds is that cases do not owe it to luck, and a few mistakes of each exercise show that; WHOLE_GRID=1 tries every one.
An exercise has no other mistakes here than those that are tried: which others fit as well changes nothing of whether a mistake is
named, and to run them all with other numbers took most of the time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from grader.course import references
from grader.course.course import open_course
from grader.course.spec import Exercise, Mistake
from grader.judging.baseline import MOST_BASELINES
from grader.judging.candidate import LiveObject
from grader.judging.judge import judge
from tests.conftest import WHOLE_GRID

EXERCISES = open_course().exercise_names()
EVERY = 1 if WHOLE_GRID else 12  # one mistake in so many
OTHER_SEED = 2026


def some(number: int, name: str) -> list[tuple[str, Mistake]]:
    """The mistakes of one exercise that are tried: at least one, from another place in the list for each exercise."""
    mistakes = open_course().exercise(name).mistakes
    return [(name, mistake) for mistake in mistakes[number % min(EVERY, len(mistakes)) :: EVERY]]


SOME = [one for number, name in enumerate(EXERCISES) for one in some(number, name)]


@cache
def with_some(name: str) -> Exercise:
    """The exercise, of whose mistakes only those that are tried are known."""
    return replace(open_course().exercise(name), mistakes=tuple(mistake for of, mistake in SOME if of == name))


@pytest.mark.parametrize("name", EXERCISES)
def test_the_reference_passes(name):
    verdict = judge(with_some(name), LiveObject(references.reference(open_course().exercise(name))), OTHER_SEED)
    assert verdict.status == "passed", f"{verdict.headline} {verdict.experiment}"
    assert verdict.verified


@pytest.mark.parametrize("name, mistake", SOME, ids=[f"{name}-{mistake.id}" for name, mistake in SOME])
def test_a_mistake_is_rejected_and_named_with_other_numbers(name, mistake):
    verdict = judge(with_some(name), LiveObject(references.wrong(with_some(name), mistake)), OTHER_SEED)
    assert not verdict.passed
    assert mistake.id in verdict.mistakes, f"{verdict.status}: {verdict.headline} -> {verdict.mistakes}"


def test_every_exercise_is_tried_with_other_numbers():
    assert {name for name, _ in SOME} == set(EXERCISES)


def test_what_was_drawn_and_computed_is_kept_for_every_exercise():
    assert len(EXERCISES) < MOST_BASELINES
