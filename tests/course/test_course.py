"""Lessons are found, exercises are known by name, sources are read."""

from __future__ import annotations

import jupytext
import pytest

from grader.course.course import Course, open_course
from tests.mixing_course import COURSE


def test_unknown_names_raise_key_error():
    for find in (open_course().lesson_of, open_course().exercise, open_course().mistake_text):
        with pytest.raises(KeyError):
            find("no_such_thing")


def test_the_last_exercise_has_no_next_one():
    names = open_course().exercise_names()
    assert open_course().next_exercise(names[0]) == names[1]
    assert open_course().next_exercise(names[-1]) is None


def test_a_former_id_is_answered_with_the_mistake_that_it_is_now(monkeypatch):
    monkeypatch.setattr(open_course(), "former_ids", {"MX0": "MX1"})
    assert open_course().mistake_text("MX0").id == "MX1" and "MX0" not in open_course().mistake_ids()


def assert_read_as_jupytext_reads_it(course: Course, lesson: str) -> None:
    """The cells of a source, by both."""
    theirs = jupytext.reads(course.source(lesson), fmt="py:percent").cells
    ours = course.cells(lesson)
    assert [cell.source for cell in theirs] == [cell.text for cell in ours]
    assert [cell.metadata.get("role", "prose") for cell in theirs] == [cell.role for cell in ours]
    assert [cell.metadata.get("exercise", "") for cell in theirs] == [cell.exercise for cell in ours]
    assert [tuple(cell.metadata.get("tags", ())) for cell in theirs] == [cell.tags for cell in ours]


@pytest.mark.parametrize("lesson", COURSE.lessons())
def test_sources_are_read_as_jupytext_reads_them(lesson):
    assert_read_as_jupytext_reads_it(COURSE, lesson)
