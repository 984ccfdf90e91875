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


def test_every_reference_is_there_and_documented():
    every = [open_course().exercise(name) for name in open_course().exercise_names()]
    made = {one.name: references.reference(one) for one in every}
    assert not [one.name for one in every if one.kind != "answer" and not inspect.getdoc(made[one.name])]


def test_every_mistake_has_a_text():
    wrong = []
    for name in open_course().exercise_names():
        for id in {id for mistake in open_course().exercise(name).mistakes for id in mistake.id.split("+")}:
            try:
                text = open_course().mistake_text(id)
            except KeyError:
                wrong.append(f"{name}: {id} has no text")
            else:
                wrong += [f"{name}: {id}"] * (not (text.id == id and text.sentence and text.why))
    assert not wrong


@pytest.mark.parametrize("name", open_course().lessons())
def test_a_lesson_has_the_texts_of_its_mistakes_also_where_it_is_handed_out_alone(name):
    texts = {*open_course().shared_texts(), *(text.id for text in open_course().lesson(name).texts)}
    ids = {
        id for one in open_course().lesson(name).exercises for mistake in one.mistakes for id in mistake.id.split("+")
    }
    assert ids <= texts, f"{sorted(ids - texts)}: their texts belong into solutions/shared/mistakes/"


def test_a_former_id_leads_to_a_mistake():
    assert open_course().former_ids and set(open_course().former_ids.values()) <= set(open_course().mistake_ids())


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
