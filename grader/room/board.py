"""A room at one moment, as data: what `grader watch --page` and `grader room` show by the same page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grader.course import registry

IDLE = ("not_started", "missing")


@dataclass(frozen=True)
class State:
    """What became of one exercise. mistake: its id, or ''; said: the mistake's sentence, else what failed, else ''."""

    status: str
    mistake: str = ""
    said: str = ""

    @property
    def wrong(self) -> bool:
        return self.status != "passed" and self.status not in IDLE


@dataclass(frozen=True)
class Learner:
    """One learner. here: the exercise that they are at; '': they have checked none, or passed all.

    note: 'stuck', 'fine' or ''. unreadable: a notebook of theirs could not be read, so that nobody knows how far they are.
    """

    name: str
    states: Mapping[str, State] = field(default_factory=dict)
    here: str = ""
    note: str = ""
    unreadable: bool = False


@dataclass(frozen=True)
class Board:
    """Everything at one moment. address, code: how one joins, '' where nobody can; note: a sentence on the whole."""

    learners: tuple[Learner, ...]
    address: str = ""
    code: str = ""
    note: str = ""


@dataclass(frozen=True)
class Wrong:
    """Something that several may get wrong at this moment. said: as in State."""

    exercise: str
    status: str
    mistake: str
    said: str
    learners: tuple[str, ...]


def wrongs(learners: Sequence[Learner]) -> tuple[Wrong, ...]:
    """What the room has wrong now, the most frequent first, of as many the mistakes that have a name; what nobody has
    attempted is not wrong."""
    found: dict[tuple[str, str], tuple[State, list[str]]] = {}
    for learner in learners:
        for exercise, state in learner.states.items():
            if state.wrong:
                found.setdefault((exercise, state.mistake or state.status), (state, []))[1].append(learner.name)
    made = [
        Wrong(name, state.status, state.mistake, state.said, tuple(who)) for (name, _), (state, who) in found.items()
    ]
    return tuple(sorted(made, key=lambda wrong: (-len(wrong.learners), not wrong.mistake, wrong.exercise)))


@dataclass(frozen=True)
class Tile:
    """One exercise: how many passed it, have it wrong now, have not tried it; and who is at it."""

    lesson: str
    exercise: str
    passed: int
    wrong: int
    open: int
    here: tuple[Learner, ...]


def tiles(learners: Sequence[Learner], lesson: str) -> tuple[Tile, ...]:
    """The exercises of one lesson, in its order."""
    return tuple(_tile(learners, lesson, name) for name in registry.CONTRACT[lesson])


def _tile(learners: Sequence[Learner], lesson: str, exercise: str) -> Tile:
    states = [learner.states[exercise] for learner in learners if exercise in learner.states]
    passed, wrong = (
        (sum(found) for found in zip(*((s.status == "passed", s.wrong) for s in states))) if states else (0, 0)
    )
    here = tuple(learner for learner in learners if learner.here == exercise)
    return Tile(lesson, exercise, passed, wrong, len(learners) - passed - wrong, here)


def lessons_at_work(learners: Sequence[Learner]) -> tuple[str, ...]:
    """The lessons that somebody is at, most learners first; of as many, the earlier one."""
    count = {name: 0 for name in registry.lessons()}
    for learner in learners:
        if learner.here:
            count[registry.lesson_of(learner.here)] += 1
    return tuple(sorted((name for name in count if count[name]), key=lambda name: -count[name]))


def following(states: Mapping[str, State], last: str) -> str:
    """Where a learner is who checked `last` last: there until it passes, then at the next one that has not; '': all passed."""
    names = registry.exercise_names()
    at = names.index(last) if last in names else 0
    order = (*names[at:], *names[:at])
    return next((name for name in order if name not in states or states[name].status != "passed"), "")
