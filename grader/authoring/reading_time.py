"""How much there is to read in a lesson, and how long it takes: exercises not counted, nor code that is folded, nor lists of sources."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from grader.course import percent
from grader.course.course import Course

WORDS_A_MINUTE, LINES_A_MINUTE, FIGURES_A_MINUTE = 200, 10, 2
SPEED = f"{WORDS_A_MINUTE} words or {LINES_A_MINUTE} lines of code a minute and half a minute for a figure"
_READ_ROLES = ("given", "demo", "payoff")  # neither a stub nor a check's one line
_SOURCES = re.compile(r"^\*\*Sources\b.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)  # what is looked up, not read
_FIGURE = re.compile(r"\bfigures(?:\.\w+)+\(")


@dataclass(frozen=True)
class Reading:
    """words: of prose; lines: of code that is not folded; figures: that cells show."""

    words: int
    lines: int
    figures: int

    @property
    def minutes(self) -> int:
        return round(self.words / WORDS_A_MINUTE + self.lines / LINES_A_MINUTE + self.figures / FIGURES_A_MINUTE)


def reading(cells: Iterable[percent.Cell]) -> Reading:
    """What these cells hold, answers of predictions included."""
    cells = percent.learner_cells(cells)
    words = [re.findall(r"\S*\w\S*", _SOURCES.sub("", cell.text)) for cell in cells if cell.role == "prose"]
    code = [cell for cell in cells if cell.role in _READ_ROLES]
    lines = [re.findall(r"^.*\S", cell.text, re.MULTILINE) for cell in code if percent.HIDE_INPUT not in cell.tags]
    figures = [_FIGURE.findall(cell.text) for cell in code]
    return Reading(*(sum(map(len, matches)) for matches in (words, lines, figures)))


def of_lesson(course: Course, name: str, *, further: bool) -> tuple[int, int]:
    """(minutes for the exercises, minutes of reading) of a lesson's core, or of its further part."""
    cells = [cell for cell in course.cells(name) if cell.further == further]
    exercises = [exercise for exercise in course.lesson(name).exercises if exercise.further == further]
    return sum(exercise.minutes for exercise in exercises), reading(cells).minutes


ROW = ("exercises: core + further", "core, minutes", "further, minutes", "points")


def row(course: Course, name: str) -> tuple[str, int, int, int]:
    """What a table of lessons says of one, below ROW's headings."""
    lesson, beyond = course.lesson(name), len(course.further(name))
    core_minutes, further_minutes = (sum(of_lesson(course, name, further=further)) for further in (False, True))
    points = sum(exercise.points for exercise in lesson.exercises)
    return f"{len(lesson.exercises) - beyond} + {beyond}", core_minutes, further_minutes, points
