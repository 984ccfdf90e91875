"""Answers that change what a probe of a lesson's own looks with, or a probe of the engine's; see reached.py."""

from __future__ import annotations

import pytest

from grader.sandbox.sandbox import Sandbox
from tests.hostile.one_worker import ON_META
from tests.hostile.reached import Attacked
from tests.mixing_course import COURSE

pytestmark = pytest.mark.any_user  # what one Python process can reach in itself
WRONG = {"twice": ("return 2 * tensor", "made = 2 * tensor\n    tensor.fill_(1)\n    return made")}
ATTACKED = Attacked(COURSE, WRONG)
FORGED = """def change(space):
    if 'call_function' in space:
        space['call_function'] = lambda function, run, *args: 2 * args[0]
"""


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(20.0, torch=True, probes=COURSE.probe_texts() | ON_META) as made:
        yield made


def test_no_wrong_answer_passes_by_changing_what_looks_at_it(sandbox):
    ATTACKED.none_passes(sandbox, "twice")


def test_a_change_of_what_looks_on_is_seen(sandbox):
    ATTACKED.forgery_is_seen(sandbox, "twice", FORGED)


def test_what_one_answer_changed_is_no_other_answers_affair(sandbox):
    ATTACKED.no_others_affair(sandbox, "twice", FORGED, "mix_torch")


def test_the_source_that_reaches_a_probe_is_refused():
    ATTACKED.refused("twice")
