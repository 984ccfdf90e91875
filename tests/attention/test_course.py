"""The attention course's lessons, exercises and mistakes: each is there under one name, with what belongs to it."""

from __future__ import annotations

import inspect
import json

import pytest

from grader.course import index, references
from grader.course.course import open_course
from tests.course.test_course import assert_read_as_jupytext_reads_it


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


def test_a_mistake_id_means_one_thing():
    ids = list(open_course().shared_texts()) + [
        text.id for name in open_course().lessons() for text in open_course().lesson(name).texts
    ]
    assert len(ids) == len(set(ids)), sorted(id for id in ids if ids.count(id) > 1)


@pytest.mark.parametrize("name", open_course().lessons())
def test_its_sources_are_read_as_jupytext_reads_them(name):
    assert_read_as_jupytext_reads_it(open_course(), name)


def test_its_index_is_what_its_specifications_say():
    assert open_course().title == "attention" and not index.is_stale(open_course())
    stored = json.loads(open_course().index_path.read_text(encoding="utf-8"))
    assert stored["lessons"].keys() == open_course().exercises.keys()
    assert stored["given"]["np"] == "numpy" and stored["given"]["F"] == "torch.nn.functional"


def test_its_lessons_whose_cells_import_torch_need_it():
    assert not open_course().needs_torch("01_three_tokens") and not open_course().needs_torch("13_attention_backward")
    assert open_course().needs_torch("05_numpy_to_pytorch") and open_course().needs_torch("11_gpu")
