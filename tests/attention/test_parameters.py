"""The contract fixes the parameters' names: an answer that is right but for them is told so, whichever exercise it is."""

from __future__ import annotations

import pytest

from grader.course.course import open_course
from tests.judging.test_parameters import assert_rejected_and_told, with_parameters


@pytest.mark.parametrize("name", with_parameters(open_course()))
def test_other_names_for_the_parameters_are_rejected_and_told(name):
    assert_rejected_and_told(open_course(), name)
