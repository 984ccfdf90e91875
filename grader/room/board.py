"""What a room's page shows of its learners at one moment: what they have wrong, who is at which exercise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from grader.course.course import Course
from grader.room.members import Member, State


@dataclass(frozen=True)
class CommonFailure:
    """Something that several may get wrong at this moment. state: of the first of them."""

    exercise: str
    state: State
    learners: tuple[str, ...]


def common_failures(learners: Sequence[Member]) -> tuple[CommonFailure, ...]:
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
    learners: tuple[Member, ...]


def tiles(course: Course, learners: Sequence[Member], lesson: str) -> tuple[Tile, ...]:
    """The exercises of one lesson, in its order."""
    result = []
    for exercise in course.exercises[lesson]:
        states = [learner.states[exercise] for learner in learners if exercise in learner.states]
        passed, wrong = sum(state.status == "passed" for state in states), sum(state.wrong for state in states)
        group = tuple(learner for learner in learners if learner.exercise == exercise)
        result.append(Tile(lesson, exercise, passed, wrong, len(learners) - passed - wrong, group))
    return tuple(result)


def lessons_at_work(course: Course, learners: Sequence[Member]) -> tuple[str, ...]:
    """The lessons that somebody is at, most learners first; ties: the earlier lesson first."""
    count = Counter(course.lesson_of(learner.exercise) for learner in learners if learner.exercise)
    return tuple(sorted(count, key=lambda name: (-count[name], name)))
