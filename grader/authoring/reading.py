"""How long a lesson takes to read: at 150 words and 3 lines of code a minute, the exercises not counted."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.course import prose
from grader.course.course import Course
from grader.course.percent import Cell
from grader.course.stubs import stubbed

WORDS_A_MINUTE, LINES_A_MINUTE = 150, 3
_READ = ("given", "demo", "exercise", "payoff")  # a check's one line is not read


def minutes(cells: Sequence[Cell]) -> int:
    """Minutes of reading for a lesson's cells as a learner meets them: stubs in place of solutions."""
    words = lines = 0
    for cell in prose.shown(cells):
        if cell.role == "prose":
            words += len(re.findall(r"\S*\w\S*", cell.text))
        elif cell.role in _READ:
            text = stubbed(cell.text, cell.exercise) if cell.role == "exercise" else cell.text
            lines += sum(1 for line in text.splitlines() if line.strip())
    return round(words / WORDS_A_MINUTE + lines / LINES_A_MINUTE)


def of_lesson(course: Course, name: str) -> tuple[int, int]:
    """(minutes for the exercises, minutes of reading) of a lesson."""
    return sum(exercise.minutes for exercise in course.lesson(name).exercises), minutes(course.cells(name))
