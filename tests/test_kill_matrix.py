"""Other numbers than the course's: every reference passes, and of each exercise some mistakes are rejected and named.

That each mistake is rejected and named with the course's numbers is proved in test_audit.py, once. What a second seed adds is
that cases do not owe it to luck, and a few mistakes of each exercise show that; WHOLE_GRID=1 tries every one.
"""

from __future__ import annotations

import pytest

from grader.course import references
from grader.course.course import open_course
from grader.course.spec import SEED, Mistake
from grader.judging.judge import judge
from tests.conftest import WHOLE_GRID
from tests.live import Live

EXERCISES = open_course().exercise_names()
EVERY = 1 if WHOLE_GRID else 12  # one mistake in so many
SEEDS = (SEED, 2026)


def some(number: int, name: str) -> list[tuple[str, Mistake]]:
    """The mistakes of one exercise that are tried: at least one, from another place in the list for each exercise."""
    mistakes = open_course().exercise(name).mistakes
    return [(name, mistake) for mistake in mistakes[number % min(EVERY, len(mistakes)) :: EVERY]]


SOME = [one for number, name in enumerate(EXERCISES) for one in some(number, name)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", EXERCISES)
def test_the_reference_passes(name, seed):
    verdict = judge(open_course().exercise(name), Live(name, references.reference(open_course().exercise(name))), seed)
    assert verdict.status == "passed", f"{verdict.headline} {verdict.experiment}"
    assert verdict.verified


@pytest.mark.parametrize("name, mistake", SOME, ids=[f"{name}-{mistake.id}" for name, mistake in SOME])
def test_a_mistake_is_rejected_and_named_with_other_numbers(name, mistake):
    verdict = judge(
        open_course().exercise(name), Live(name, references.wrong(open_course().exercise(name), mistake)), SEEDS[1]
    )
    assert not verdict.passed
    assert mistake.id in verdict.mistakes, f"{verdict.status}: {verdict.headline} -> {verdict.mistakes}"


def test_every_exercise_is_tried_with_other_numbers():
    assert {name for name, _ in SOME} == set(EXERCISES)
