"""What `grader audit` proves of the attention course."""

from __future__ import annotations

import numpy as np
import pytest

from grader.authoring.audit import audit
from grader.course.course import open_course


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", open_course().lessons())
def test_every_lesson_of_the_course_keeps_the_rules(name):
    """What `grader audit` proves of the course: every mistake of every exercise is rejected and named, every solution passes."""
    findings = audit(open_course(), [name])
    assert findings.problems == []
    assert np.mean([row.mistakes for row in findings.rows]) >= 6
    assert [(row.exercise.name, row.diagnoses) for row in findings.rows] == [
        (one.name, len({m.id for m in one.mistakes})) for one in open_course().lesson(name).exercises
    ]
