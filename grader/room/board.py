"""A room at one moment, as data: what its page shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grader.course.course import Course


@dataclass(frozen=True)
class State:
    """What became of one exercise. mistake: its id, or ''; sentence: the mistake's, or ''."""

    status: str
    mistake: str = ""
    sentence: str = ""

    @property
    def wrong(self) -> bool:
        """What nobody has attempted is not wrong."""
        return self.status not in ("passed", "not_started", "missing")


@dataclass(frozen=True)
class Learner:
    """One learner. here: the exercise that they are at; '': they have checked none, or passed all. note: 'stuck', 'fine' or ''."""

    name: str
    states: Mapping[str, State] = field(default_factory=dict)
    here: str = ""
    note: str = ""


@dataclass(frozen=True)
class Board:
    """Everything at one moment. address, code: how one joins.

    prediction: the one that somebody answered last, '' for none; options: how many chose each of its options.
    """

    learners: tuple[Learner, ...]
    address: str = ""
    code: str = ""
    prediction: str = ""
    options: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class CommonFailure:
    """Something that several may get wrong at this moment. state: of the first of them."""

    exercise: str
    state: State
    learners: tuple[str, ...]


def common_failures(learners: Sequence[Learner]) -> tuple[CommonFailure, ...]:
    """What the room has wrong now, the most frequent first; ties: named mistakes first."""
    groups: dict[tuple[str, str], tuple[State, list[str]]] = {}
    for learner in learners:
        for exercise, state in learner.states.items():
            if state.wrong:
                groups.setdefault((exercise, state.mistake or state.status), (state, []))[1].append(learner.name)
    result = [CommonFailure(exercise, state, tuple(names)) for (exercise, _), (state, names) in groups.items()]
    return tuple(sorted(result, key=lambda wrong: (-len(wrong.learners), not wrong.state.mistake, wrong.exercise)))


@dataclass(frozen=True)
class Tile:
    """One exercise: how many passed it, have it wrong now, have not tried it; and who is at it."""

    lesson: str
    exercise: str
    passed: int
    wrong: int
    open: int
    here: tuple[Learner, ...]


def tiles(course: Course, learners: Sequence[Learner], lesson: str) -> tuple[Tile, ...]:
    """The exercises of one lesson, in its order."""
    result = []
    for exercise in course.exercises[lesson]:
        states = [learner.states[exercise] for learner in learners if exercise in learner.states]
        passed, wrong = sum(state.status == "passed" for state in states), sum(state.wrong for state in states)
        here = tuple(learner for learner in learners if learner.here == exercise)
        result.append(Tile(lesson, exercise, passed, wrong, len(learners) - passed - wrong, here))
    return tuple(result)


def lessons_at_work(course: Course, learners: Sequence[Learner]) -> tuple[str, ...]:
    """The lessons that somebody is at, most learners first; ties: the earlier lesson first."""
    count = Counter(course.lesson_of(learner.here) for learner in learners if learner.here)
    return tuple(sorted(count, key=lambda name: (-count[name], name)))


def next_exercise(course: Course, states: Mapping[str, State], last: str) -> str:
    """Where a learner is who checked `last` last: there until it passes, then at the next one that has not; '': all passed."""
    names = course.exercise_names()
    at = names.index(last) if last in names else 0
    order = (*names[at:], *names[:at])
    return next((name for name in order if name not in states or states[name].status != "passed"), "")
