"""What the same verdicts are worth to an instructor: points of one's own for each exercise, and a part of them for a part of the cases.

Nothing is judged again for it: a journal holds what was found, and the points are put on afterwards.
"""

from __future__ import annotations

import math
import re
import shutil
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from grader.course.course import Course
from grader.reports.report import HandMark, LessonReport, Report, hundredths
from grader.submission import table
from grader.util.errors import InputError
from grader.util.files import free_backup_path, lock_file, write_atomically
from grader.util.names import printable
from grader.util.words import pluralize

COLUMNS = ("learner", "exercise", "points", "comment")
BY_HAND = "a list of marks by hand"
HEADINGS = ("exercise", "name")  # of a first row that names the columns


def read_weights(course: Course, path: Path) -> dict[str, float]:
    """Points by exercise from a file with a line 'NAME,3' each: columns apart by a comma, semicolon, tab or space.

    A first line may name the columns; a line that begins with '#' says nothing. Points are 0 or more, decimals allowed.
    Raises: InputError with the line's number for an exercise that the course doesn't have, one named twice, and for what is no number.
    """
    weights: dict[str, float] = {}
    for number, row in table.rows(path, "a list of exercises and points"):
        cells = row[0].split() if len(row) == 1 else row
        if not any(cells) or cells[0].startswith("#") or number == 1 and cells[0].lower() in HEADINGS:
            continue
        with table.locate_errors(path, number):
            if len(cells) < 2 or any(cells[2:]):
                raise InputError("expected an exercise and its points, such as 'NAME,3'.")
            name = course.known_exercise(cells[0])
            if name in weights:
                raise InputError(f"{name} has points already; name each exercise once.")
            weights[name] = parse_points(cells[1])
    if not weights:
        raise InputError(f"{path} gives no exercise points; add a line such as 'NAME,3'.")
    return weights


def parse_points(text: str) -> float:
    """A comma may stand for the point, as spreadsheets of many countries write it. Raises: InputError where it is no number of points."""
    try:
        number = float(re.sub(r"^(\d+),(\d{1,2})$", r"\1.\2", text.strip()))
    except ValueError:
        number = math.nan
    if not 0 <= number < 1e6:
        raise InputError(f"{printable(text)!r} is not a number of points; expected 0 or more, such as 1.5 or 1,5.")
    return number


def check_weights(weights: Mapping[str, float] | None, graded: Collection[str]) -> None:
    """Raises: InputError where none of the exercises that are graded has points left: every score would be 0 of 0."""
    if weights and not any(weights.get(name, 1) for name in graded):
        raise InputError("with these weights no graded exercise has points; give at least one of them more than 0.")


def apply_weights(report: Report, weights: Mapping[str, float] | None = None, partial: bool = False) -> Report:
    """The report with these points in place of the course's, for each exercise that `weights` names.

    partial: whether an exercise that failed earns the share of its cases that agreed.
    """
    weights = weights or {}

    def weigh(lesson: LessonReport) -> LessonReport:
        points = {name: hundredths(weights.get(name, points)) for name, points in lesson.points.items()}
        return replace(lesson, points=points, partial=partial)

    submissions = tuple(replace(entry, lessons=tuple(map(weigh, entry.lessons))) for entry in report.submissions)
    graded, notes = {verdict.exercise for entry in submissions for verdict in entry.verdicts}, [*report.notes]
    if weights:
        count = len(graded & set(weights))
        notes.append(f"{count} of {len(graded)} exercises have the instructor's points, the others the course's.")
    if unused := sorted(set(weights) - graded):
        notes.append(
            f"These exercises have weights but are not graded here, so the weights have no effect: {', '.join(unused)}."
        )
    if partial:
        notes.append("A failed exercise earns the share of its cases that agree with the reference.")
    return replace(report, submissions=submissions, notes=tuple(notes))


# --- marks by hand ---------------------------------------------------------------------------

# By learner and exercise: the line of overrides.csv, and the mark.
Overrides = Mapping[tuple[str, str], tuple[int, HandMark]]


def read_overrides(course: Course, path: Path) -> Overrides:
    """Columns learner, exercise, points, comment; without points a line is a comment alone. Nothing where there is no file.

    Raises: InputError with the line for an exercise that the course does not have, points that are no number, and what is said twice.
    """
    (_, heading), *rows = (table.rows(path, BY_HAND) if path.is_file() else []) or [(1, [*COLUMNS])]
    columns = [cell.lower() for cell in heading]
    if not set(COLUMNS[:3]) <= set(columns):
        raise InputError(f"{path} needs the columns {', '.join(COLUMNS)} in its first line.")
    overrides: dict[tuple[str, str], tuple[int, HandMark]] = {}
    for line, row in rows:
        if not any(row):
            continue
        cells = dict.fromkeys(COLUMNS, "") | dict(zip(columns, row, strict=False))
        with table.locate_errors(path, line):
            learner, name, points = cells["learner"], course.known_exercise(cells["exercise"]), cells["points"]
            if not points and not cells["comment"]:
                raise InputError("there are neither points nor a comment.")
            if (learner, name) in overrides:
                raise InputError(f"line {overrides[learner, name][0]} already marks {name} of {printable(learner)}.")
            overrides[learner, name] = line, HandMark(parse_points(points) if points else None, cells["comment"])
    return overrides


def write_mark(course: Course, path: Path, learner: Sequence[str], exercise: str, mark: HandMark, previous: str) -> str:
    """Writes a mark; without points and comment its line goes. All other cells stay. learner: as unique_spellings() has them.

    previous: repr() of the mark that a person saw. Returns: a sentence where a file of another form was copied, or ''.
    Raises: InputError, whose second argument is repr() of the mark where that is another one by now; OSError. Nothing is written then.
    """
    with path.with_name(f".{path.name}.lock").open("ab") as lock:
        if not lock_file(lock):
            raise InputError("Somebody else is saving at this moment; save again.")
        marks = read_overrides(course, path)
        matches = [marks[key] for key in marks if key[0] in learner and key[1] == exercise]
        line, current = matches[-1] if matches else (0, None)  # of several spellings the last one counts
        if repr(current) != previous:
            points = "no" if current is None or current.points is None else hundredths(current.points)
            change = f"{points} points, comment: {current.comment or 'none'}" if current else "no mark"
            raise InputError(
                f"Somebody else has meanwhile changed this: {change}. Save again to replace it.", repr(current)
            )
        text, encoding, delimiter = table.read(path, BY_HAND) if path.is_file() else ("", "utf-8", ",")
        rows = dict(table.rows(path, BY_HAND)) if text.strip() else {1: [*COLUMNS]}
        same = not text.strip() or table.format_csv(rows.values(), text, delimiter).rstrip() == text.rstrip()
        first, row = min(rows), rows.pop(line, [])  # a new line has number 0 until it is written
        columns = [cell.lower() for cell in rows[first]]
        if mark.comment and "comment" not in columns:
            rows[first], columns, same = [*rows[first], "comment"], [*columns, "comment"], False
        cells = {"learner": learner[-1], "exercise": exercise} | dict(zip(columns, row, strict=False))
        cells |= {"points": "" if mark.points is None else str(hundredths(mark.points)), "comment": mark.comment}
        if mark != HandMark(None):
            rows[line or max(rows) + 1] = [cells.get(column, "") for column in columns] + row[len(columns) :]
        same = same and (mark != HandMark(None) or not any(map(cells.get, {*columns} - {*COLUMNS})))
        copy = None if same else free_backup_path(path)
        if copy:
            shutil.copy2(path, copy)
        write_atomically(path, table.format_csv([rows[i] for i in sorted(rows)], text, delimiter).encode(encoding))
    return f" The file had another form before; {copy.name} keeps it." if copy else ""


def unique_spellings(names: Sequence[Sequence[str]]) -> list[list[str]]:
    """Of each learner's spellings, the folder's name first, those that are nobody else's or are the folder's name."""
    counts = Counter(name for spellings in names for name in set(spellings))
    return [[name for name in spellings if counts[name] == 1 or name == spellings[0]] for spellings in names]


def apply_overrides(report: Report, overrides: Overrides, names: Sequence[Sequence[str]]) -> Report:
    """The report with marks by hand in place of the automatic ones, which stay beside them. names: of each learner, all spellings.

    A line that reaches nobody, or nothing of theirs, is told in the report's notes.
    """
    unused, count, submissions, learners = dict(overrides), 0, [], unique_spellings(names)
    for submission, spellings in zip(report.submissions, learners, strict=True):
        lessons = []
        for lesson in submission.lessons:
            keys = [(learner, name) for learner, name in overrides if learner in spellings and name in lesson.points]
            lessons.append(replace(lesson, hand_marks={key[1]: overrides[key][1] for key in keys}))
            count += sum(unused.pop(key)[1].points is not None for key in keys)
        submissions.append(replace(submission, lessons=tuple(lessons)))
    sentence = f"{pluralize(count, 'exercise')} marked by hand, by overrides.csv; the automatic marks stand beside."
    present = {name for spellings in learners for name in spellings}
    lines: dict[str, list[str]] = {}  # by why they have no effect
    for (learner, name), (line, _) in unused.items():  # without the learner's name, which may be told to nobody
        reason = "the exercise is not graded here" if learner in present else "there is no such learner here"
        lines.setdefault(reason, []).append(f"line {line} ({name})")
    sentences = [f"overrides.csv has no effect in {', '.join(places)}: {reason}." for reason, places in lines.items()]
    notes = (*report.notes, *[sentence] * bool(count), *sentences)
    return replace(report, submissions=tuple(submissions), notes=notes)
