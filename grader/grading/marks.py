"""What the same verdicts are worth to an instructor: points of one's own for each exercise, and a part of them for a part of the cases.

Nothing is judged again for it: a journal holds what was found, and the points are put on afterwards.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from grader.course.course import Course
from grader.judging.verdict import LessonReport, Report, hundredths
from grader.util.errors import InputError
from grader.util.names import printable

MOST_BYTES = 1 << 20
HEADINGS = ("exercise", "name")  # of a first row that names the columns


def read_weights(course: Course, path: Path) -> dict[str, float]:
    """Points by exercise from a file with a line 'softmax_rows,3' each: columns apart by a comma, semicolon, tab or space.

    A first line may name the columns; a line that begins with '#' says nothing. Points are 0 or more, decimals allowed.
    Raises: InputError with the line's number for an exercise that the course doesn't have, one named twice, and for what is no number.
    """
    found: dict[str, float] = {}
    for number, line in enumerate(_lines(path), 1):
        cells = [cell.strip() for cell in _cells(line)]
        if not any(cells) or cells[0].startswith("#") or number == 1 and cells[0].lower() in HEADINGS:
            continue
        where = f"{path}, line {number}"
        if len(cells) < 2 or any(cells[2:]):
            raise InputError(f"{where}: expected an exercise and its points, such as 'softmax_rows,3'.")
        try:
            name = course.known_exercise(cells[0])
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if name in found:
            raise InputError(f"{where}: {name} has points already; name each exercise once.")
        found[name] = _points(cells[1], where)
    if not found:
        raise InputError(f"{path} gives no exercise points; add a line such as 'softmax_rows,3'.")
    return found


def _lines(path: Path) -> list[str]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} is too large for a list of exercises and points.")
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8; save it as 'CSV UTF-8', or write it in an editor.") from None


def _cells(line: str) -> list[str]:
    apart = next((sign for sign in ";\t," if sign in line), None)
    return next(csv.reader([line], delimiter=apart), []) if apart else line.split()


def _points(said: str, where: str) -> float:
    try:
        points = float(said)
    except ValueError:
        points = math.nan
    if not 0 <= points < 1e6:
        raise InputError(
            f"{where}: {printable(said)!r} is not a number of points; expected 0 or more, with a point for decimals."
        )
    return points


def checked(weights: Mapping[str, float] | None, graded: Collection[str]) -> None:
    """Raises: InputError where none of the exercises that are graded has points left: every score would be 0 of 0."""
    if weights and not any(weights.get(name, 1) for name in graded):
        raise InputError("with these weights no graded exercise has points; give at least one of them more than 0.")


def valued(report: Report, weights: Mapping[str, float] | None = None, partial: bool = False) -> Report:
    """The report with these points in place of the course's, for each exercise that `weights` names.

    partial: whether an exercise that failed earns the share of its cases that agreed.
    """
    weights = weights or {}

    def of(lesson: LessonReport) -> LessonReport:
        points = {name: hundredths(weights.get(name, points)) for name, points in lesson.points.items()}
        return replace(lesson, points=points, partial=partial)

    made = [replace(one, lessons=tuple(map(of, one.lessons))) for one in report.submissions]
    return replace(report, submissions=tuple(made), notes=(*report.notes, *_said(report, weights, partial)))


def _said(report: Report, weights: Mapping[str, float], partial: bool) -> list[str]:
    graded = {judged.exercise for one in report.submissions for judged in one.verdicts}
    said = []
    if weights:
        own = len(graded & set(weights))
        said.append(f"{own} of {len(graded)} exercises have the instructor's points, the others the course's.")
        idle = sorted(set(weights) - graded)
        if idle:
            said.append(
                f"These exercises have weights but are not graded here, so the weights have no effect: {', '.join(idle)}."
            )
    if partial:
        said.append("A failed exercise earns the share of its cases that agree with the reference.")
    return said
