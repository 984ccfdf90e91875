"""A learner's numbers, whatever they are, put no warning on the terminal of whoever judges them, in any exercise of the course."""

from __future__ import annotations

import pytest

from grader.course.course import open_course
from tests.conftest import WHOLE_GRID
from tests.judging.test_hostile_numbers import CHANGES, judged_and_shown

PARTS = 1 if WHOLE_GRID else 6  # an exercise gets one of so many parts of the changes, the next one the next
NAMES = open_course().exercise_names()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", NAMES)
def test_no_numbers_warn_while_they_are_judged_and_shown(name, capfd):
    statuses = judged_and_shown(open_course(), name, CHANGES[NAMES.index(name) % PARTS :: PARTS])
    assert statuses <= {"passed", "failed", "forbidden"}  # einsum has to have run
    assert capfd.readouterr().err == ""
