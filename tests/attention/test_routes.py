"""The routes through the attention course: their lessons and exercises exist, their times fit, the page has them as they are."""

from __future__ import annotations

import re

import pytest

from grader.authoring import teaching
from grader.course.course import open_course

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


def test_the_page_in_the_repository_is_what_the_lessons_make():
    assert not teaching.overview_is_stale(open_course()), "run: grader build (with any lesson)"
    targets = re.findall(r"\]\((\S+?)\)", teaching.path(open_course(), "README").read_text(encoding="utf-8"))
    assert all((teaching.path(open_course(), "README").parent / target).is_file() for target in targets)
