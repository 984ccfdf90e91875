"""The routes through the course: their lessons and exercises exist, their times are computed and fit."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from grader.authoring import reading, teaching
from grader.course.course import open_course
from grader.util.errors import AuthorError
from tests import small_lesson as small

STOPS = [stop for route in teaching.routes(open_course()) for stop in route.stops]


def test_there_is_a_route_of_90_minutes_of_half_a_day_and_of_two_days():
    assert [route.minutes for route in teaching.routes(open_course())] == [90, 240, 720]


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.lesson)
def test_a_stop_names_what_the_lesson_has(stop):
    names = open_course().exercises[stop.lesson]
    chosen = teaching.exercises_of(open_course(), stop)
    assert chosen and set(chosen) <= set(names)
    assert not stop.until or names.index(stop.until) >= max(map(names.index, chosen))
    headings = {cell.text.split("\n")[0] for cell in open_course().cells(stop.lesson) if cell.role == "prose"}
    assert {f"## {heading}" for heading in stop.without} <= headings


@pytest.mark.parametrize("route", teaching.routes(open_course()), ids=lambda route: route.title)
def test_a_route_fits_its_time(route):
    assert 0.75 * route.minutes <= sum(teaching.total(open_course(), route)) <= 1.05 * route.minutes, teaching.total(
        open_course(), route
    )
    lessons = [stop.lesson for stop in route.stops]
    assert lessons == sorted(lessons)


@pytest.mark.parametrize(
    "table, key",
    [
        ({"titel": "x"}, "'titel'"),
        ({"stops": [{"lesson": "01_x", "untill": "y"}]}, "'untill'"),
        ({"stops": [{"until": "y"}]}, "'lesson'"),
    ],
)
def test_a_key_of_a_route_that_is_misspelt_or_missing_is_named_with_its_file(table, key):
    course = SimpleNamespace(about={"routes": [{"title": "x", "minutes": 9, "about": "", "stops": []} | table]})
    with pytest.raises(AuthorError, match=f"solutions/course.toml: .*{key}"):
        teaching.routes(course)


def test_reading_ends_where_the_next_exercise_begins(monkeypatch, tmp_path):
    words = "\n# %% [markdown]\n# " + "word " * 2000 + "\n"
    small.install(monkeypatch, tmp_path, small.BODY + words)
    whole, until = (
        teaching.minutes_of(open_course(), teaching.Stop(small.NAME)),
        teaching.minutes_of(open_course(), teaching.Stop(small.NAME, "double")),
    )
    assert whole == until and whole[0] == 3
    small.install(monkeypatch, tmp_path, small.BODY + words + "\n# %% [markdown]\n# @exercise treble\n" + words)
    whole, until = (
        teaching.minutes_of(open_course(), teaching.Stop(small.NAME)),
        teaching.minutes_of(open_course(), teaching.Stop(small.NAME, "double")),
    )
    assert whole[1] - until[1] == 10


def test_a_section_that_is_left_out_is_not_read(monkeypatch, tmp_path):
    words = "\n# %% [markdown]\n# ## {}\n#\n# " + "word " * 2000 + "\n"
    small.install(monkeypatch, tmp_path, small.BODY + words.format("One") + words.format("Two"))
    all_of_it, rest = (
        teaching.minutes_of(open_course(), teaching.Stop(small.NAME, without=headings))[1]
        for headings in ((), ("One",))
    )
    assert all_of_it - rest == 10


def test_the_page_states_each_total():
    page = teaching.overview(open_course())
    for route in teaching.routes(open_course()):
        work, read = teaching.total(open_course(), route)
        assert f"## {route.title}" in page and f"| total: {work + read} minutes | | | {work} | {read} |" in page
    for name in open_course().lessons():
        work, read = reading.of_lesson(open_course(), name, further=False)
        beyond = sum(reading.of_lesson(open_course(), name, further=True))
        heading = re.escape(open_course().heading(name))
        row = rf"^\| .*{heading}.* \| {work} \| {read} \| {work + read} \| {beyond} \|$"
        assert re.search(row, page, re.MULTILINE)


def test_a_page_that_is_older_than_the_lessons_is_stale(monkeypatch, tmp_path):
    place = tmp_path / "docs" / "teaching" / "README.md"
    monkeypatch.setattr(teaching, "path", lambda course, name: place)
    assert not teaching.overview_is_stale(open_course())  # an installed course has no docs/
    (tmp_path / "docs").mkdir()
    assert teaching.overview_is_stale(open_course())
    teaching.write_overview(open_course())
    assert not teaching.overview_is_stale(open_course()) and place.read_text(encoding="utf-8") == teaching.overview(
        open_course()
    )
    place.write_text(place.read_text(encoding="utf-8").replace("| 90 |", "| 91 |") + "more")
    assert teaching.overview_is_stale(open_course())


def test_the_page_in_the_repository_is_what_the_lessons_make():
    assert not teaching.overview_is_stale(open_course()), "run: grader build (with any lesson)"
    targets = re.findall(r"\]\((\S+?)\)", teaching.path(open_course(), "README").read_text(encoding="utf-8"))
    assert all((teaching.path(open_course(), "README").parent / target).is_file() for target in targets)
