"""What a watch knows at one moment, as data: who has what, what is next, what the room gets wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grader.judging.verdict import LessonReport, Verdict
from grader.room.board import Board, Learner, State


@dataclass(frozen=True)
class News:
    """One lesson, graded after a save. before: its last result, None for the first; seconds: what grading took."""

    learner: str
    lesson: LessonReport
    before: LessonReport | None
    seconds: float


@dataclass(frozen=True)
class LearnerState:
    """What is known of one learner. latest: the lesson saved last while we watched, or ''; notes: sentences, each on a notebook
    that could not be read or graded."""

    name: str
    lessons: Mapping[str, LessonReport]
    latest: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class WatchedRoom:
    """Everything at one moment. alone: the folder is one learner's; waiting: notebooks that are still to be graded."""

    folder: str
    learners: tuple[LearnerState, ...]
    alone: bool
    waiting: int
    news: tuple[News, ...] = ()
    note: str = ""


def next_step(learner: LearnerState) -> tuple[str, Verdict] | None:
    """(lesson, verdict) of the first exercise that isn't passed, the lesson saved last first; None: all passed."""
    order = [*([learner.latest] if learner.latest in learner.lessons else []), *sorted(learner.lessons)]
    for name in order:
        for verdict in learner.lessons[name].verdicts:
            if not verdict.passed:
                return name, verdict
    return None


def board_of(room: WatchedRoom) -> Board:
    """The room as the page for a projector shows it."""
    work = f"{room.waiting} to grade." if room.waiting else ""
    return Board(tuple(map(_learner, room.learners)), note=f"{room.note} {work}".strip())


def _learner(learner: LearnerState) -> Learner:
    states = {verdict.exercise: _state(verdict) for lesson in learner.lessons.values() for verdict in lesson.verdicts}
    step = None if learner.notes else next_step(learner)
    return Learner(learner.name, states, step[1].exercise if step else "", unreadable=bool(learner.notes))


def _state(verdict: Verdict) -> State:
    if not verdict.mistakes:
        return State(verdict.status, "", verdict.headline)
    return State(verdict.status, verdict.mistakes[0], verdict.sentences[0] if verdict.sentences else "")
