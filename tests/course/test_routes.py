"""The routes through a course: their times are computed and stand on the page for instructors."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from grader.authoring import reading_time, teaching
from grader.course.course import open_course
from grader.util.errors import AuthorError
from tests import small_lesson as small

STOPS = [{"lesson": "00_lookup"}, {"lesson": "01_mixing", "until": "blend", "work": ["products", "shares"]}]
ROUTE = {"title": "By hand", "minutes": 30, "about": "A look-up,\nand shares.", "stops": STOPS}


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


@pytest.fixture
def routed(monkeypatch):
    monkeypatch.setattr(open_course(), "about", {"routes": [ROUTE]})


@pytest.mark.usefixtures("routed")
def test_the_page_states_each_total():
    page = teaching.overview(open_course())
    (route,) = teaching.routes(open_course())
    work, read = teaching.total(open_course(), route)
    assert work == 5 + 4 + 10 and f"| total: {work + read} minutes | | | {work} | {read} |" in page
    assert "## By hand\n\nA look-up, and shares.\n" in page and "| `blend` | `products`, `shares` | 14 |" in page
    for name in open_course().lessons():
        work, read = reading_time.of_lesson(open_course(), name, further=False)
        beyond = sum(reading_time.of_lesson(open_course(), name, further=True))
        heading = re.escape(open_course().heading(name))
        row = rf"^\| .*{heading}.* \| {work} \| {read} \| {work + read} \| {beyond} \|$"
        assert re.search(row, page, re.MULTILINE)


@pytest.mark.usefixtures("routed")
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
    place.write_text(place.read_text(encoding="utf-8").replace("total: ", "total: 1"))
    assert teaching.overview_is_stale(open_course())
