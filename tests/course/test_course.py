"""Lessons are found, exercises are known by name, references are loaded from their source."""

from __future__ import annotations

import inspect

import jupytext
import pytest

from grader.course import references
from grader.course.course import open_course


def test_names_are_unique_in_the_whole_course():
    names = [name for lesson in open_course().exercises.values() for name in lesson]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", open_course().lessons())
def test_a_lesson_and_its_specification_agree(name):
    lesson = open_course().lesson(name)
    assert lesson.name == name
    assert tuple(exercise.name for exercise in lesson.exercises) == open_course().exercises[name]


@pytest.mark.parametrize("name", open_course().exercise_names())
def test_every_reference_is_there_and_documented(name):
    reference = references.reference(open_course().exercise(name))
    if open_course().exercise(name).kind != "answer":
        assert inspect.getdoc(reference)


@pytest.mark.parametrize("name", open_course().exercise_names())
def test_every_mistake_has_a_text(name):
    for id in {id for mistake in open_course().exercise(name).mistakes for id in mistake.id.split("+")}:
        text = open_course().mistake_text(id)
        assert text.id == id and text.sentence and text.why


def test_unknown_names_raise_key_error():
    for find in (open_course().lesson_of, open_course().exercise, open_course().mistake_text):
        with pytest.raises(KeyError):
            find("no_such_thing")


def test_the_last_exercise_has_no_next_one():
    names = open_course().exercise_names()
    assert open_course().next_exercise(names[0]) == names[1]
    assert open_course().next_exercise(names[-1]) is None


def test_a_mistake_id_means_one_thing():
    ids = list(open_course().shared_texts()) + [
        text.id for name in open_course().lessons() for text in open_course().lesson(name).texts
    ]
    assert len(ids) == len(set(ids)), sorted(id for id in ids if ids.count(id) > 1)


@pytest.mark.parametrize("name", open_course().lessons())
def test_sources_are_read_as_jupytext_reads_them(name):
    theirs = jupytext.reads(open_course().source(name), fmt="py:percent").cells
    ours = open_course().cells(name)
    assert [cell.source for cell in theirs] == [cell.text for cell in ours]
    assert [cell.metadata.get("role", "prose") for cell in theirs] == [cell.role for cell in ours]
    assert [cell.metadata.get("exercise", "") for cell in theirs] == [cell.exercise for cell in ours]
    assert [tuple(cell.metadata.get("tags", ())) for cell in theirs] == [cell.tags for cell in ours]
