"""A room's page for the projector, the same for `grader watch --page` and `grader room`: large, without scrolling, light and dark.

It decides nothing. Without `names` it shows nobody's: a mark stands for each learner. What fits on it is the style sheet's matter.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from grader.course.course import Course
from grader.reports.html import STATUS_STYLES, render
from grader.room.board import Board, Learner, State, Tile, common_failures, lessons_at_work, tiles
from grader.util.errors import InputError
from grader.util.files import write_atomically
from grader.util.names import labels

GENERATOR = "attention course: a room"  # by which an earlier page is known from a file that is somebody's work
REFRESH_S = 2  # after which a browser reads the file anew
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


def page(course: Course, board: Board, *, names: bool = False, ended: bool = False, nonce: str = "") -> str:
    """A page that stands alone and reads itself anew; once `ended`, it stays as it is.

    nonce: of the page that the room's server sends; its script, known by the nonce, puts each `content` in place.
    """
    refresh_s = 0 if ended or nonce else REFRESH_S
    inner = content(course, board, names=names, ended=ended)
    return render("room.html", content=inner, nonce=nonce, refresh_s=refresh_s, generator=GENERATOR, names=names) + "\n"


def content(course: Course, board: Board, *, names: bool = False, ended: bool = False) -> str:
    """What changes on the page."""
    unique = labels([one.name for one in board.learners])
    learners = [replace(one, name=name) for name, one in zip(unique, board.learners)]
    at_work, idle = lessons_at_work(course, learners), _idle_tiles(learners)
    lessons = _lessons_that_fit(course, at_work, MAX_TILES - len(idle)) or course.lessons()[:1]
    all_tiles = (*(tile for lesson in lessons for tile in tiles(course, learners, lesson)), *idle)
    places = [course.lesson_of(learner.here) for learner in learners if learner.here]
    return render(
        "room_content.html",
        board=board,
        prediction=f"Prediction {board.prediction[:2]}.{board.prediction.rpartition('.')[2]}",
        names=names,
        ended=ended,
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
        if lessons and sum(len(course.exercises[one]) for one in (*lessons, name)) > most:
            break
        lessons.append(name)
    return tuple(sorted(lessons))


def _title(course: Course, lesson: str) -> str:
    """'01 · Three tokens'."""
    try:
        return course.heading(lesson).partition(":")[0]
    except OSError:  # a hand-out has no source of lessons that are not in it
        return lesson


def _idle_tiles(learners: Sequence[Learner]) -> list[Tile]:
    """Those who are at no exercise, in tiles of no lesson."""
    idle = [learner for learner in learners if not learner.here]
    groups = {
        "cannot be read": [one for one in idle if one.unreadable],
        "no check yet": [one for one in idle if not one.states and not one.unreadable],
        "everything passed": [one for one in idle if one.states and not one.unreadable],
    }
    return [Tile("", title, 0, 0, 0, tuple(who)) for title, who in groups.items() if who]


def _marks(tile: Tile, names: bool) -> list[tuple[str, str]]:
    """Of each learner their note, else the status, and their name, '' on a page without names.

    Those who are stuck first, then who has something wrong.
    """
    states = [(one, one.states.get(tile.exercise, State("not_started"))) for one in tile.here]
    marks = [(one.note or state.status, one.name if names else "") for one, state in states]
    return sorted(marks, key=lambda mark: (URGENCY.get(mark[0], 1), STATUS_STYLES.get(mark[0], ("",))[0]))[:MAX_MARKS]


class PageFile:
    """The page of `grader watch --page`: a file that is written anew, whole, whenever the room has changed.

    names: whether the page shows them. Raises: InputError where the file is somebody's work, or can't be written.
    """

    def __init__(self, course: Course, path: Path, names: bool = False) -> None:
        if path.is_dir():
            raise InputError(f"{path} is a folder; --page names a file, such as {path / 'room.html'}.")
        if path.is_file() and path.stat().st_size:
            with path.open("rb") as file:
                ours = GENERATOR.encode() in file.read(2_000)
            if not ours:
                raise InputError(
                    f"{path} already exists and is not a page of a room; --page needs the name of a new file."
                )
        self.course, self.path, self.names = course, path, names
        self._board, self._minute, self._failing = Board(()), "", False
        if error := self.show(self._board):
            raise InputError(error)

    def show(self, board: Board) -> str:
        """Writes the page where the room or the minute is another. Returns: why it can't be written, once; else ''."""
        minute = time.strftime("%H:%M")
        if (board, minute) == (self._board, self._minute):
            return ""
        self._board, self._minute = board, ""
        try:
            write_atomically(self.path, page(self.course, board, names=self.names))
        except OSError as error:  # a full disk, a drive that is away: the next change tries again
            failing, self._failing = self._failing, True
            return "" if failing else f"{self.path} can't be written ({error.strerror}); the next change tries again."
        self._minute, self._failing = minute, False
        return ""

    def end(self) -> None:
        """The last page says that it is the last, and no longer reads itself anew."""
        with contextlib.suppress(OSError):
            write_atomically(self.path, page(self.course, self._board, names=self.names, ended=True))
