"""Notes for instructors, docs/teaching/NN_lesson.md: from the source's last cell and from what the lesson itself says.

The cell begins with '@teaching' and has the headings of HEADINGS. Times, predictions and the mistakes' own sentences
are added here, so that they are never typed twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.authoring import reading
from grader.course import prose
from grader.course.course import Course
from grader.course.percent import Cell
from grader.course.spec import Lesson
from grader.course.stubs import dots

FOR, CUT_60, CUT_90, MISTAKES, DISCUSS, PAPER = HEADINGS = (
    "What the lesson is for",
    "Cut for 60 minutes",
    "Cut for 90 minutes",
    "Mistakes to expect",
    "To discuss",
    "On paper",
)
BEFORE = "**Before this lesson:**"
_MISTAKE = re.compile(r"- (?P<exercise>\w+) (?P<id>\w+): (?P<ask>\S.*)")


@dataclass(frozen=True)
class Expected:
    """A mistake that an instructor will meet, and what to ask whoever made it. line: of the cell's text, from 1."""

    exercise: str
    id: str
    ask: str
    line: int


def path(course: Course, name: str) -> Path:
    return course.root / "docs" / "teaching" / f"{name}.md"


def notes(cells: Sequence[Cell]) -> Cell:
    """The cell of a source that holds the notes for instructors; `grader build` refuses a source without one."""
    return next(cell for cell in cells if cell.role == "prose" and prose.is_teaching(cell.text))


def sections(text: str) -> dict[str, str]:
    """What stands under each '## ' heading of a cell, in order."""
    parts = re.split(r"^## +(.*?) *$", text, flags=re.MULTILINE)
    return {heading: body.strip() for heading, body in zip(parts[1::2], parts[2::2], strict=True)}


def expected_mistakes(text: str) -> tuple[list[Expected], list[int]]:
    """The mistakes to expect that a cell names, and the numbers of lines under their heading that name none."""
    found: list[Expected] = []
    strange: list[int] = []
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            inside = line[3:].strip() == MISTAKES
        elif inside and line.strip():
            match = _MISTAKE.fullmatch(line.rstrip())
            if match:
                found.append(Expected(match["exercise"], match["id"], match["ask"], number))
            elif found and line.startswith(" "):  # a question that goes on
                last = found.pop()
                found.append(Expected(last.exercise, last.id, f"{last.ask} {line.strip()}", last.line))
            else:
                strange.append(number)
    return found, strange


def before(cells: Sequence[Cell]) -> str:
    """The paragraph that says what a lesson needs, without its label; '' for none."""
    first = next((cell.text for cell in cells if cell.role == "prose"), "")
    paragraph = next((part for part in first.split("\n\n") if part.startswith(BEFORE)), "")
    return " ".join(paragraph.removeprefix(BEFORE).split())


def page(course: Course, name: str, cells: Sequence[Cell], lesson: Lesson, said: prose.QuotedValues) -> str:
    """The notes of a lesson as Markdown. said: the numbers that its prose quotes."""
    cell = notes(cells)
    own = sections(cell.text)
    parts = [
        f"<!-- `grader build` makes this page from solutions/{name}.py -->",
        f"# Teaching {course.heading(name)}",
        f"**Before this lesson:** {before(cells)}",
        _time(course, name),
        f"## {FOR}",
        own[FOR],
        "## Exercises",
        _exercises(lesson),
        f"## {CUT_60}",
        own[CUT_60],
        f"## {CUT_90}",
        own[CUT_90],
        "## Predictions",
        *_predictions(cells, said),
        f"## {MISTAKES}",
        *_mistakes(course, cell.text, lesson),
        f"## {DISCUSS}",
        own[DISCUSS],
        f"## {PAPER}",
        own[PAPER],
    ]
    return "\n\n".join(parts) + "\n"


def _time(course: Course, name: str) -> str:
    core, further = (reading.of_lesson(course, name, further=one) for one in (False, True))
    beyond = f" The further part takes {sum(further)} more: {further[0]} and {further[1]}." if sum(further) else ""
    parts = f"{core[0]} for the exercises and {core[1]} for reading, at {reading.SPEED}"
    return f"**Time:** the core takes {sum(core)} minutes: {parts}.{beyond}"


def _exercises(lesson: Lesson) -> str:
    rows = ["| exercise | difficulty | minutes | points |", "|---|---|---|---|"]
    for one in lesson.exercises:
        level = f"{dots(one.difficulty)} {one.difficulty} of 3" if one.difficulty else ""
        rows.append(f"| `{one.name}`{' (further)' if one.further else ''} | {level} | {one.minutes} | {one.points} |")
    return "\n".join(rows)


def _predictions(cells: Sequence[Cell], said: prose.QuotedValues) -> Iterator[str]:
    values = iter(said)
    number = 0
    for cell in prose.learner_cells(cells):
        if cell.role == "prose":
            text = prose.filled(cell.text, values)
            if prose.is_prediction(text):
                number += 1
                one = prose.prediction(text)
                yield f"**{number}.** {one.question}"
                yield f"*Answer.* {one.answer}"
                yield f"*Behind a wrong guess.* {one.wrong}"
    if not number:
        yield "This lesson has no predictions."


def _mistakes(course: Course, text: str, lesson: Lesson) -> Iterator[str]:
    found, _ = expected_mistakes(text)
    for exercise in lesson.exercises:
        own = [one for one in found if one.exercise == exercise.name]
        if own:
            yield f"### `{exercise.name}`"
            yield "\n".join(f"- {course.mistake_text(one.id).sentence} ({one.id})\n  *Ask:* {one.ask}" for one in own)
