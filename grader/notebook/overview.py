"""The whole course at a glance: progress() as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.course import registry
from grader.notebook.record import Record
from grader.reports import html, text


@dataclass(frozen=True)
class Line:
    """One exercise. points: None where its lesson cannot be loaded here (torch is missing, say)."""

    lesson: str
    exercise: str
    status: str
    points: int | None
    attempts: int


def table(record: Record) -> tuple[Line, ...]:
    """One line for each exercise, in the course's order. What passed once stays passed."""
    lines = []
    for lesson in registry.lessons():
        points = _points(lesson)
        for name in registry.CONTRACT[lesson]:
            entry = record.entry(name)
            status = "passed" if entry.passed else entry.status
            lines.append(
                Line(lesson, name, status if status in text.WORDS else "failed", points.get(name), entry.attempts)
            )
    return tuple(lines)


def _points(lesson: str) -> dict[str, int]:
    try:
        return {exercise.name: exercise.points for exercise in registry.lesson(lesson).exercises}
    except ImportError:
        return {}


def shown(lines: Sequence[Line], notes: Sequence[str] = ()) -> tuple[str, str]:
    """(text, HTML) of the table."""
    closing = [_next(lines), *notes]
    return "\n".join([*_text_rows(lines), "", *closing]), html.block(
        "said", _score(lines), [_html_table(lines), *(f"<p>{html.prose(said)}</p>" for said in closing)]
    )


def _score(lines: Sequence[Line]) -> str:
    got = sum(line.points or 0 for line in lines if line.status == "passed")
    done = sum(line.status == "passed" for line in lines)
    return f"{done} of {len(lines)} exercises passed, {got} of {sum(line.points or 0 for line in lines)} points"


def _next(lines: Sequence[Line]) -> str:
    for line in lines:
        if line.status != "passed":
            return f"Next: {line.exercise}, in lesson {line.lesson}."
    return "Every exercise passed."


def _cells(line: Line) -> tuple[str, str, str, str]:
    points = "?" if line.points is None else f"{line.points if line.status == 'passed' else 0}/{line.points}"
    sign = html.LOOKS[line.status][0]
    return line.exercise, f"{sign} {text.WORDS[line.status]}", points, str(line.attempts or "")


def _text_rows(lines: Sequence[Line]) -> list[str]:
    rows = [_score(lines)]
    wide = max((len(line.exercise) for line in lines), default=8)
    rows += ["", f"  {'exercise':<{wide}}  {'state':<20}  points  attempts"]
    lesson = ""
    for line in lines:
        if line.lesson != lesson:
            lesson = line.lesson
            rows.append(lesson)
        name, state, points, attempts = _cells(line)
        rows.append(f"  {name:<{wide}}  {state:<20}  {points:>6}  {attempts:>8}".rstrip())
    return rows


def _html_table(lines: Sequence[Line]) -> str:
    rows, lesson = [], ""
    for line in lines:
        name, state, points, attempts = (html.escape(cell) for cell in _cells(line))
        first = line.lesson != lesson
        lesson = line.lesson
        rows.append(
            f"<tr{' class=attn-first' if first else ''}><td>{html.escape(lesson) if first else ''}</td><td>{name}</td>"
            f'<td>{state}</td><td class="attn-number">{points}</td><td class="attn-number">{attempts}</td></tr>'
        )
    heads = "".join(f"<th>{head}</th>" for head in ("lesson", "exercise", "state"))
    heads += "".join(f'<th class="attn-number">{head}</th>' for head in ("points", "attempts"))
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
