"""A room's page for the projector: large, without scrolling, light and dark.

It decides nothing. Without `names` it shows nobody's: a mark stands for each learner. What fits on it is the style sheet's matter.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from grader.course.course import Course
from grader.reports.html import STATUS_STYLES, render
from grader.room.board import Tile, common_failures, lessons_at_work, tiles
from grader.room.members import Member, Room, State
from grader.util.names import labels

MAX_TILES = 8  # exercises that can be read from ten metres
MAX_MARKS = 300  # in one tile, more than it ever has room for; its heading counts everybody
MAX_WRONG = 6  # those that the page has no height for are left out by it
UNEXPLAINED = {
    "failed": "A wrong result that no known mistake explains.",
    "error": "The code raises an error.",
    "timeout": "The code does not end in time.",
    "memory": "The code takes too much memory.",
    "forbidden": "The code uses what the exercise does not allow.",
    "could_not_grade": "The grader failed; no learner is at fault.",
}
URGENCY = {"stuck": 0, "not_started": 2, "missing": 2, "fine": 3}  # of marks; what is wrong is 1


def page(room: Room, address: str, *, names: bool = False, nonce: str = "") -> str:
    """The page that the room's server sends. nonce: by which a browser knows its script, which puts each `content` in place."""
    return render("room.html", content=content(room, address, names=names), nonce=nonce, names=names) + "\n"


def content(room: Room, address: str, *, names: bool = False) -> str:
    """What changes on the page. address: as learners reach the room's server."""
    course, unique = room.course, labels([learner.name for learner in room.learners])
    learners = [replace(learner, name=name) for name, learner in zip(unique, room.learners)]
    at_work, idle = lessons_at_work(course, learners), _idle_tiles(learners)
    lessons = _lessons_that_fit(course, at_work, MAX_TILES - len(idle)) or course.lessons()[:1]
    all_tiles = (*(tile for lesson in lessons for tile in tiles(course, learners, lesson)), *idle)
    places = [course.lesson_of(learner.exercise) for learner in learners if learner.exercise]
    return render(
        "room_content.html",
        room=room,
        address=address,
        prediction=f"Prediction {room.prediction[:2]}.{room.prediction.rpartition('.')[2]}",
        names=names,
        clock=time.strftime("%H:%M"),
        total=len(learners),
        stuck=sum(learner.note == "stuck" for learner in learners),
        fine=sum(learner.note == "fine" for learner in learners),
        titles=[_title(course, lesson) for lesson in lessons],
        others=[(_title(course, name), places.count(name)) for name in sorted(set(at_work) - set(lessons))],
        tiles=[(tile, _marks(tile, names)) for tile in all_tiles],
        columns=2 if len(all_tiles) > 3 else 1,
        failures=common_failures(learners)[:MAX_WRONG],
        unexplained=UNEXPLAINED,
    )


def _lessons_that_fit(course: Course, at_work: Sequence[str], most: int) -> tuple[str, ...]:
    """The lessons with most learners whose exercises fit on the page, in the course's order; one at least."""
    lessons: list[str] = []
    for name in at_work:
        if lessons and sum(len(course.exercises[lesson]) for lesson in (*lessons, name)) > most:
            break
        lessons.append(name)
    return tuple(sorted(lessons))


def _title(course: Course, lesson: str) -> str:
    """'01 · Three tokens'."""
    try:
        return course.heading(lesson).partition(":")[0]
    except OSError:  # a hand-out has no source of lessons that are not in it
        return lesson


def _idle_tiles(learners: Sequence[Member]) -> list[Tile]:
    """Those who are at no exercise, in tiles of no lesson."""
    idle = [learner for learner in learners if not learner.exercise]
    groups = {
        "no check yet": [learner for learner in idle if not learner.states],
        "everything passed": [learner for learner in idle if learner.states],
    }
    return [Tile("", title, 0, 0, 0, tuple(group)) for title, group in groups.items() if group]


def _marks(tile: Tile, names: bool) -> list[tuple[str, str]]:
    """Of each learner their note, else the status, and their name, '' on a page without names.

    Those who are stuck first, then who has something wrong.
    """
    states = [(learner, learner.states.get(tile.exercise, State("not_started"))) for learner in tile.learners]
    marks = [(learner.note or state.status, learner.name if names else "") for learner, state in states]
    return sorted(marks, key=lambda mark: (URGENCY.get(mark[0], 1), STATUS_STYLES.get(mark[0], ("",))[0]))[:MAX_MARKS]
