"""The whole course at a glance: progress() as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.notebook.kernel_course import kernel_course
from grader.notebook.record import Record
from grader.reports import html, text
from grader.reports.templating import render


@dataclass(frozen=True)
class Line:
    """One exercise. points: None where its lesson cannot be loaded here (torch is missing, say)."""

    lesson: str
    exercise: str
    status: str
    points: int | None
    attempts: int


def table(record: Record, lessons: Sequence[str] | None = None) -> tuple[Line, ...]:
    """One line for each exercise of these lessons, by default of all, in the course's order. What passed once stays passed."""
    lines = []
    for lesson in kernel_course().lessons() if lessons is None else lessons:
        points = _points(lesson)
        for name in kernel_course().exercises[lesson]:
            entry = record.entry(name)
            status = "passed" if entry.passed else entry.status
            lines.append(
                Line(lesson, name, status if status in text.WORDS else "failed", points.get(name), entry.attempts)
            )
    return tuple(lines)


def _points(lesson: str) -> dict[str, int]:
    try:
        return {exercise.name: exercise.points for exercise in kernel_course().lesson(lesson).exercises}
    except ImportError:
        return {}


def shown(lines: Sequence[Line], notes: Sequence[str] = (), current: str | None = None) -> tuple[str, str]:
    """(text, HTML): a lesson's exercises, then every other lesson in a line. current: the lesson; None: of the next exercise."""
    following = _following(lines, current)
    current = current or (following or lines[0]).lesson
    mine = [line for line in lines if line.lesson == current]
    others = {name: group for name, group in _by_lesson(lines).items() if name != current}
    plain = [
        _score(lines),
        "",
        *_text_exercises(current, mine),
        "",
        *_text_lessons(others),
        "",
        _next(following, current),
        *notes,
    ]
    made = render(
        "progress.html",
        score=_score(lines),
        lesson=current,
        exercises=[_cells(line) for line in mine],
        following=following,
        others=[_lesson_cells(each) for each in others.items()],
        notes=notes,
    )
    return "\n".join(plain), html.STYLE + made


def _by_lesson(lines: Sequence[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.lesson, []).append(line)
    return found


def _following(lines: Sequence[Line], current: str | None) -> Line | None:
    """The first exercise that is not passed, of the current lesson and those after it before the earlier ones."""
    open_ones = [line for line in lines if line.status != "passed"]
    return next((line for line in open_ones if current is None or line.lesson >= current), next(iter(open_ones), None))


def _score(lines: Sequence[Line]) -> str:
    return f"{_done(lines)} of {len(lines)} exercises passed, {_got(lines)} of {sum(line.points or 0 for line in lines)} points"


def _done(lines: Sequence[Line]) -> int:
    return sum(line.status == "passed" for line in lines)


def _got(lines: Sequence[Line]) -> int:
    return sum(line.points or 0 for line in lines if line.status == "passed")


def _next(following: Line | None, current: str) -> str:
    if following is None:
        return "Every exercise passed."
    where = "this lesson" if following.lesson == current else f"lesson {following.lesson}"
    return f"Next: {following.exercise}, in {where}."


def _cells(line: Line) -> tuple[str, str, str, str]:
    points = "?" if line.points is None else f"{line.points if line.status == 'passed' else 0}/{line.points}"
    sign = html.LOOKS[line.status][0]
    return line.exercise, f"{sign} {text.WORDS[line.status]}", points, str(line.attempts or "")


def _text_exercises(lesson: str, lines: Sequence[Line]) -> list[str]:
    wide = max((len(line.exercise) for line in lines), default=8)
    rows = [lesson, f"  {'exercise':<{wide}}  {'state':<20}  points  attempts"]
    for name, state, points, attempts in map(_cells, lines):
        rows.append(f"  {name:<{wide}}  {state:<20}  {points:>6}  {attempts:>8}".rstrip())
    return rows


def _text_lessons(others: dict[str, list[Line]]) -> list[str]:
    wide = max(map(len, others), default=0)
    return [f"{name:<{wide}}  {passed:>18}  {points:>6}" for name, passed, points in map(_lesson_cells, others.items())]


def _lesson_cells(lesson: tuple[str, list[Line]]) -> tuple[str, str, str]:
    name, lines = lesson
    return name, f"{_done(lines)} of {len(lines)} passed", f"{_got(lines)}/{sum(line.points or 0 for line in lines)}"
