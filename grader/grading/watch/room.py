"""What a watch knows at one moment, as data: who has what, what is next, what the room gets wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.judging.verdict import LessonReport, Verdict


@dataclass(frozen=True)
class News:
    """One lesson, graded after a save. before: its last result, None for the first; seconds: what grading took."""

    learner: str
    lesson: LessonReport
    before: LessonReport | None
    seconds: float


@dataclass(frozen=True)
class LearnerState:
    """What is known of one learner. latest: the lesson saved last while we watched, or ''; notes: sentences."""

    name: str
    lessons: Mapping[str, LessonReport]
    latest: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class WatchedRoom:
    """Everything at one moment. alone: the folder is one learner's; waiting: notebooks that are still to be graded."""

    folder: str
    seats: tuple[LearnerState, ...]
    alone: bool
    waiting: int
    news: tuple[News, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Wrong:
    """Something that several may get wrong at this moment. said: the mistake's sentence, or the headline."""

    exercise: str
    status: str
    said: str
    learners: tuple[str, ...]


def next_step(seat: LearnerState) -> tuple[str, Verdict] | None:
    """(lesson, verdict) of the first exercise that isn't passed, the lesson saved last first; None: all passed."""
    order = [*([seat.latest] if seat.latest in seat.lessons else []), *sorted(seat.lessons)]
    for name in order:
        for verdict in seat.lessons[name].verdicts:
            if not verdict.passed:
                return name, verdict
    return None


def wrongs(seats: Sequence[LearnerState]) -> tuple[Wrong, ...]:
    """What the room gets wrong now, the most frequent first; what nobody has attempted is not wrong."""
    found: dict[tuple[str, str], tuple[Verdict, list[str]]] = {}
    for seat in seats:
        for lesson in seat.lessons.values():
            for verdict in lesson.verdicts:
                if verdict.status not in ("passed", "not_started", "missing"):
                    key = (verdict.exercise, verdict.mistakes[0] if verdict.mistakes else verdict.status)
                    found.setdefault(key, (verdict, []))[1].append(seat.name)
    made = [Wrong(name, verdict.status, _said(verdict), tuple(who)) for (name, _), (verdict, who) in found.items()]
    return tuple(sorted(made, key=lambda wrong: (-len(wrong.learners), wrong.exercise)))


def _said(verdict: Verdict) -> str:
    if verdict.mistakes:
        return f"{verdict.mistakes[0]}: {verdict.sentences[0]}" if verdict.sentences else verdict.mistakes[0]
    return verdict.headline
