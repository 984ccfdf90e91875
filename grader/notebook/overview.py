"""The whole course at a glance: progress() as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from grader.notebook.display import Display
from grader.notebook.kernel_course import kernel_course
from grader.notebook.record import Record
from grader.reports import html, text
from grader.reports.html import render


@dataclass(frozen=True)
class Line:
    """One exercise."""

    lesson: str
    exercise: str
    status: str
    points: int
    attempts: int
    further: bool


def table(record: Record, lessons: Sequence[str] | None = None) -> tuple[Line, ...]:
    """One line for each exercise of these lessons, by default of all, in the course's order. What passed once stays passed."""
    course, lines = kernel_course(), []
    for lesson in course.lessons() if lessons is None else lessons:
        for exercise in course.lesson(lesson).exercises:
            entry = record.entry(exercise.name)
            status = "passed" if entry.passed else entry.status if entry.status in text.STATUS_WORDS else "failed"
            lines.append(Line(lesson, exercise.name, status, exercise.points, entry.attempts, exercise.further))
    return tuple(lines)


def display(lines: Sequence[Line], notes: Sequence[str] = (), current: str | None = None) -> Display:
    """A lesson's exercises, then every other lesson in a line. current: the lesson; None: of the next exercise."""
    next_line = _next_line(lines, current)
    current = current or (next_line or lines[0]).lesson
    lessons = {name: list(group) for name, group in groupby(lines, lambda line: line.lesson)}
    exercises = [
        (
            f"{line.exercise}{' (further)' if line.further else ''}",
            f"{html.STATUS_STYLES[line.status][0]} {text.STATUS_WORDS[line.status]}",
            _points([line]),
            str(line.attempts or ""),
        )
        for line in lessons.pop(current)
    ]
    others = [(name, _passed(group), _points(group)) for name, group in lessons.items()]
    score = f"passed: {_passed(lines)} exercises, {_points(lines).replace('/', ' of ')} points"
    wide = max(len(exercise[0]) for exercise in exercises)
    plain = [score, "", current, f"  {'exercise':<{wide}}  {'state':<20}  points  attempts"]
    for name, state, points, attempts in exercises:
        plain.append(f"  {name:<{wide}}  {state:<20}  {points:>6}  {attempts:>8}".rstrip())
    wide = max(map(len, lessons), default=0)
    plain += ["", *(f"{name:<{wide}}  {passed:<29}  {points:>6}" for name, passed, points in others), ""]
    if next_line is None:
        plain.append("Every exercise passed.")
    else:
        where = "this lesson" if next_line.lesson == current else f"lesson {next_line.lesson}"
        plain.append(f"Next: {next_line.exercise}, in {where}.")
    values = {"exercises": exercises, "next_line": next_line, "others": others, "notes": notes}
    table = render("progress.html", score=score, lesson=current, **values)
    return Display("\n".join([*plain, *notes]), html.STYLE + table)


def _next_line(lines: Sequence[Line], current: str | None) -> Line | None:
    """The first exercise that is not passed, the core's before the further ones, then of the current lesson and those after it
    before the earlier ones."""
    left = [line for line in lines if line.status != "passed"]
    return min(left, key=lambda line: (line.further, line.lesson < (current or "")), default=None)


def _passed(lines: Sequence[Line]) -> str:
    """'core 4 of 4, further 1 of 3'"""
    parts = {"core": [line for line in lines if not line.further], "further": [line for line in lines if line.further]}
    return ", ".join(
        f"{name} {sum(line.status == 'passed' for line in part)} of {len(part)}" for name, part in parts.items() if part
    )


def _points(lines: Sequence[Line]) -> str:
    points = sum(line.points for line in lines if line.status == "passed")
    return f"{points}/{sum(line.points for line in lines)}"
