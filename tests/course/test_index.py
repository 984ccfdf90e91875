"""The index says what specifications and sources say, and a new lesson comes in by `grader build` alone."""

from __future__ import annotations

import json

import pytest

from grader.course import index
from grader.course.course import Course, open_course
from grader.util.errors import InputError
from tests import small_lesson as small


def test_the_index_is_what_the_specifications_say():
    assert not index.is_stale(open_course())
    stored = json.loads(open_course().index_path.read_text(encoding="utf-8"))
    assert stored["lessons"].keys() == open_course().exercises.keys()
    assert stored["given"] == {"math": "math", "nn": "torch.nn", "np": "numpy", "torch": "torch"}


def test_an_index_that_is_broken_says_so(tmp_path):
    small.write(tmp_path)
    (tmp_path / "solutions" / "index.json").write_text("{")
    with pytest.raises(InputError, match="index.json: .*; write it anew with `grader build`"):
        Course(tmp_path)


def test_a_course_toml_that_is_broken_is_named_and_not_the_index(tmp_path):
    small.write(tmp_path)
    (tmp_path / "solutions" / "course.toml").write_text("title = ")
    with pytest.raises(InputError, match=r"course\.toml: (?!.*grader build)"):
        Course(tmp_path)


def test_lessons_whose_cells_import_torch_need_it():
    assert [name for name in open_course().lessons() if open_course().needs_torch(name)] == ["03_torch"]


def test_a_stale_index_is_written_anew_and_known_at_once(tmp_path):
    small.write(tmp_path)
    (tmp_path / "solutions" / "index.json").write_text('{"lessons": {}, "given": {}}')
    course = Course(tmp_path)
    assert course.lessons() == () and index.is_stale(course)
    index.write(course)
    assert course.lessons() == (small.NAME,) and not index.is_stale(course)
    assert Course(tmp_path).exercises == {small.NAME: ("double",)}
