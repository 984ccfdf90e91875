"""A room's page for the projector, the same for `grader watch --page` and `grader room`: large, without scrolling, light and dark.

It decides nothing. Without `names` it shows nobody's: a mark stands for each learner.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from grader.course.course import Course
from grader.reports import text
from grader.reports.templating import LOOKS, render
from grader.room import fit
from grader.room.board import Board, Learner, State, Tile, at_work, tiles, wrongs
from grader.room.fit import Mark
from grader.util.names import labels

GENERATOR = "attention course: a room"  # by which an earlier page is known from a file that is somebody's work
REFRESH_S = 2  # after which a browser reads the file anew
MAX_TILES = 8  # exercises that can be read from ten metres
MAX_WRONG = 6  # those that the page has no height for are left out by it
UNEXPLAINED = {
    "failed": "A wrong result that no known mistake explains.",
    "error": "The code raises an error.",
    "timeout": "The code does not end in time.",
    "memory": "The code takes too much memory.",
    "forbidden": "The code uses what the exercise does not allow.",
    "could_not_grade": "The grader failed; no learner is at fault.",
}


def page(course: Course, board: Board, *, names: bool = False, ended: bool = False) -> str:
    """A page that stands alone and reads itself anew; once `ended`, it stays as it is."""
    return _whole(course, board, names, refresh_s=0 if ended else REFRESH_S, ended=ended)


def live_page(course: Course, board: Board, nonce: str, *, names: bool = False) -> str:
    """The page that the room's server sends; its script, known by the nonce, puts each `content` in place."""
    return _whole(course, board, names, nonce=nonce)


def content(course: Course, board: Board, *, names: bool = False, ended: bool = False) -> str:
    """What changes on the page."""
    learners = _labeled(board.learners)
    working, nowhere = at_work(course, learners), _nowhere(learners)
    shown = _fitting(course, working, MAX_TILES - len(nowhere)) or course.lessons()[:1]
    found = (*(tile for lesson in shown for tile in tiles(course, learners, lesson)), *nowhere)
    columns = 2 if len(found) > 3 else 1
    marks = [_marks(tile.here, names, tile.exercise) for tile in found]
    lines = fit.heights(marks, columns)
    groups = [fit.cut(each, fit.WIDTH[columns], lines[at // columns]) for at, each in enumerate(marks)]
    return render(
        "room_content.html",
        board=board,
        names=names,
        ended=ended,
        clock=time.strftime("%H:%M"),
        total=len(learners),
        stuck=sum(learner.note == "stuck" for learner in learners),
        fine=sum(learner.note == "fine" for learner in learners),
        titles=[_title(course, lesson) for lesson in shown],
        others=_others(course, learners, [one for one in working if one not in shown]),
        tiles=list(zip(found, groups)),
        columns=columns,
        rows=[fit.HEAD + fit.LINE * each for each in lines],
        wrongs=wrongs(learners)[:MAX_WRONG],
        unexplained=UNEXPLAINED,
        passed=LOOKS["passed"][0],
        wrong=LOOKS["failed"][0],
        idle=LOOKS["not_started"][0],
    )


def _whole(course: Course, board: Board, names: bool, nonce: str = "", refresh_s: int = 0, ended: bool = False) -> str:
    made = content(course, board, names=names, ended=ended)
    return render("room.html", content=made, nonce=nonce, refresh_s=refresh_s, generator=GENERATOR, names=names) + "\n"


def _labeled(learners: Sequence[Learner]) -> list[Learner]:
    """The learners with names of which no two are alike."""
    return [replace(one, name=name) for name, one in zip(labels([one.name for one in learners]), learners)]


def _fitting(course: Course, working: Sequence[str], most: int) -> tuple[str, ...]:
    """The lessons with most learners whose exercises fit on the page, in the course's order; one at least."""
    shown: list[str] = []
    for name in working:
        if shown and sum(len(course.exercises[one]) for one in (*shown, name)) > most:
            break
        shown.append(name)
    return tuple(sorted(shown))


def _title(course: Course, lesson: str) -> str:
    """'01 · Three tokens'."""
    try:
        return course.heading(lesson).partition(":")[0]
    except OSError:  # a hand-out has no source of lessons that are not in it
        return lesson


def _others(course: Course, learners: Sequence[Learner], lessons: Sequence[str]) -> list[tuple[str, int]]:
    """Lessons that have no place here, and how many are at each."""
    here = [course.lesson_of(learner.here) for learner in learners if learner.here]
    return [(_title(course, name), here.count(name)) for name in sorted(lessons)]


def _nowhere(learners: Sequence[Learner]) -> list[Tile]:
    """Those who are at no exercise, in tiles of no lesson."""
    nowhere = [learner for learner in learners if not learner.here]
    groups = {
        "cannot be read": [one for one in nowhere if one.unreadable],
        "no check yet": [one for one in nowhere if not one.states and not one.unreadable],
        "everything passed": [one for one in nowhere if one.states and not one.unreadable],
    }
    return [Tile("", said, 0, 0, 0, tuple(who)) for said, who in groups.items() if who]


def _marks(learners: Sequence[Learner], names: bool, exercise: str = "") -> list[Mark]:
    """Those who are stuck first, then who has something wrong."""
    marks = [_mark(learner, learner.states.get(exercise), names) for learner in learners]
    rank = {"stuck": 0, "not_started": 2, "missing": 2, "fine": 3}
    return sorted(marks, key=lambda mark: (rank.get(mark.kind, 1), mark.sign))


def _mark(learner: Learner, state: State | None, names: bool) -> Mark:
    status = state.status if state else "not_started"
    label = learner.name if names else ""
    if learner.note:
        return Mark(learner.note, "", label, learner.note)
    return Mark(status, LOOKS[status][0], label, text.WORDS[status])
