"""What a learner set torch to changes no verdict on the course's exercises that have a probe of their own."""

from __future__ import annotations

import pytest

from grader import check
from grader.course import references
from grader.course.course import open_course
from tests.live import from_cells
from tests.notebook.test_notebook import other_modes

__all__ = ["other_modes"]


@pytest.mark.parametrize("name", ["SelfAttention", "leaks", "CausalMultiHeadAttention", "KVCache", "tiled_attention"])
def test_a_learner_s_default_device_and_type_change_no_verdict(name, other_modes):
    before = other_modes()
    assert check(from_cells(name, references.solution_text(open_course(), name)).obj).verdict.status == "passed"
    assert other_modes() == before
