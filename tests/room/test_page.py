"""The page of a room: who is where, what is wrong now, no names unless asked for, nothing from elsewhere, nothing unescaped."""

from __future__ import annotations

import re

import pytest

from grader.course.course import open_course
from grader.reports.text import STATUS_WORDS
from grader.room.board import common_failures, lessons_at_work, tiles
from grader.room.board_page import UNEXPLAINED, content, page
from grader.room.members import Member, State, next_exercise
from tests.mixing_course import COURSE
from tests.room.samples import ADDRESS, LESSON, NAMES, room_of, room_with, still, thirty

FIRST, SECOND, *_ = COURSE.exercises[LESSON]


def at(name: str, states: dict[str, State] | None = None, here: str = "", note: str = "") -> Member:
    return Member(name, states=states or {}, exercise=here, note=note)


# --- what is counted ---------------------------------------------------------------------------


def test_a_tile_counts_who_passed_who_is_wrong_and_who_is_there():
    learners = [
        at("ada", {FIRST: State("passed"), SECOND: State("failed", "MX4")}, SECOND),
        at("grace", {FIRST: State("error")}, FIRST),
        at("linus", {FIRST: State("not_started")}, FIRST, "stuck"),
        at("mary"),
    ]
    first, second, *_ = tiles(open_course(), learners, LESSON)
    assert (first.passed, first.wrong, first.open) == (1, 1, 2)
    assert [learner.name for learner in first.learners] == ["grace", "linus"]
    assert (second.passed, second.wrong, second.open, second.learners) == (0, 1, 3, (learners[0],))
    assert lessons_at_work(open_course(), learners) == (LESSON,)


def test_what_is_wrong_now_is_gathered_by_mistake_the_most_frequent_first():
    learners = [at(name, {FIRST: State("failed", "MX1", "Said."), SECOND: State("error")}) for name in ("ada", "grace")]
    learners.append(at("mary", {FIRST: State("failed", "MX1", "Said."), SECOND: State("passed")}))
    assert [(one.exercise, one.state, len(one.learners)) for one in common_failures(learners)] == [
        (FIRST, State("failed", "MX1", "Said."), 3),
        (SECOND, State("error"), 2),
    ]


def test_a_learner_is_at_what_they_checked_last_until_it_passes():
    names = open_course().exercise_names()
    assert next_exercise(open_course(), {FIRST: State("failed")}, FIRST) == FIRST
    assert next_exercise(open_course(), {FIRST: State("passed")}, FIRST) == SECOND
    assert next_exercise(open_course(), {name: State("passed") for name in names[1:]}, names[-1]) == names[0]
    assert next_exercise(open_course(), dict.fromkeys(names, State("passed")), names[-1]) == ""


# --- what is shown -----------------------------------------------------------------------------


def test_without_names_the_page_has_none():
    made = page(thirty(), ADDRESS)
    assert not [name for name in NAMES if len(name) > 4 and name in made]
    assert "<b>30</b> learners" in made and "<b>2</b> stuck" in made and "shares" in made and "01 · Mixing" in made
    assert made.count('<li class="stuck bare">') == 2


def test_with_names_everybody_is_in_one_place():
    made = page(thirty(), ADDRESS, names=True)
    shown = re.findall(r'class="name">([^<]+)<', made)
    counted = sum(map(int, re.findall(r"<b>(\d+)</b>(?: here|</h2>)", made)))
    elsewhere = sum(map(int, re.findall(r"Elsewhere: .*?\((\d+)\)", made)))
    assert len(shown) == len(set(shown)) and len(shown) == counted == 30 - elsewhere


def test_learners_of_one_name_are_told_apart():
    learners = [at(name, {FIRST: State("error")}, FIRST) for name in ("ada", "Ada")]
    made = page(room_with(learners), ADDRESS, names=True)
    assert sorted(re.findall(r'class="name">([^<]+)<', made)) == ["Ada (2)", "ada"] or "ada (1)" in made


def test_what_a_learner_wrote_is_escaped():
    evil = '<script>alert("x")</script><img src=x onerror=1>'
    learner = at(evil, {FIRST: State("failed", "MX1", evil)}, FIRST)
    made = content(room_with([learner], evil), evil, names=True)
    assert "<script" not in made and "<img" not in made and "&lt;script&gt;" in made


def test_an_unexplained_result_does_not_quote_the_learner_s_own_words():
    secret = "ZeroDivisionError: the password of ada"
    room = room_with([at("x", {FIRST: State("error", "", secret)}, FIRST)])
    assert secret not in page(room, ADDRESS, names=True)


def test_every_status_has_a_sentence():
    assert set(UNEXPLAINED) == set(STATUS_WORDS) - {"passed", "not_started", "missing"}


def test_nothing_comes_from_elsewhere():
    made = still(thirty(), names=True).replace(ADDRESS, "")
    assert not re.findall(r"""(?:src|href)=["'](?!data:)|url\(|@import|https?://""", made)


@pytest.mark.parametrize("lesson", COURSE.lessons())
def test_every_lesson_has_a_page(lesson):
    assert all(f"<h2>{name}</h2>" in page(thirty(lesson), ADDRESS) for name in open_course().exercises[lesson])


# A line of marks is seen whole or not at all; a list is as high as its tile has room for.
CUT_MARKS = """[...document.querySelectorAll('.marks li')].filter(mark => {
  const end = mark.parentElement.getBoundingClientRect().bottom, box = mark.getBoundingClientRect();
  return box.top < end - 1 && box.bottom > end + 1;
}).length"""
# For each tile with learners, how many of them are seen.
VISIBLE_MARKS = """[...document.querySelectorAll('.marks')].filter(list => list.children.length).map(list =>
  [...list.children].filter(mark => mark.getBoundingClientRect().bottom <= list.getBoundingClientRect().bottom + 1).length
)"""


def test_in_a_browser_it_fits_the_projector_and_asks_for_nothing(tmp_path, artefacts):
    from playwright.sync_api import sync_playwright

    from tests.find_chromium import find_chromium

    logged, asked = [], set()
    rooms = {
        "three": room_of(3),
        "thirty": thirty(),
        "sixty, some with long names": room_of(60),
        "a lecture": room_of(90),
        "nobody": room_with(()),
        "at the start": room_with(map(Member, NAMES)),
    }
    full = "[...document.querySelectorAll('article, header, .head')].filter(one => one.scrollHeight > one.clientHeight + 1).length"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        for size, scheme in (((1920, 1080), "light"), ((1280, 720), "dark"), ((1024, 768), "light")):
            tab = browser.new_page(viewport=dict(zip(("width", "height"), size)), color_scheme=scheme)
            tab.on("console", lambda said: logged.append(said.text))
            tab.on("request", lambda request: asked.add(request.url.partition(":")[0]))
            for name, room in rooms.items():
                for names in (False, True):
                    (tmp_path / "room.html").write_text(still(room, names), encoding="utf-8")
                    tab.goto((tmp_path / "room.html").as_uri())
                    assert tab.evaluate("document.documentElement.scrollHeight <= innerHeight"), (name, names, size)
                    assert tab.evaluate(full) == 0, (name, names, size)
                    assert tab.evaluate(CUT_MARKS) == 0, (name, names, size)
                    visible = tab.evaluate(VISIBLE_MARKS)
                    assert all(visible) and (
                        names or sum(visible) == tab.locator(".marks li").count() or name == "a lecture"
                    )
            tab.screenshot(path=artefacts / f"{size[0]}-{scheme}.png")
            tab.close()
        browser.close()
    assert not logged and asked <= {"file", "data"}
