"""Names that say nothing in place of learners' own, the same for each learner as long as the list of them is kept."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from grader.reports import sheet
from grader.reports.report import LessonReport, Report, SubmissionReport
from grader.submission import table
from grader.util.errors import InputError
from grader.util.files import write_atomically

LIST = "names.csv"  # in the folder of reports: who is who
SHORTEST = 3  # characters of a name that is looked for in sentences: 'a' stands in every one


def choose(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """A pseudonym for each learner by the name of the report, drawn at random, and written to names.csv before it is used.

    Those that names.csv has are kept. Raises: InputError where that file is something else.
    """
    path = folder / LIST
    aliases = _read(path) if path.is_file() else {}
    cells = {name: sheet.guard(name) for name in names}  # a spreadsheet may open the list
    for cell in cells.values():
        while cell not in aliases:
            alias = f"learner {secrets.token_hex(2)}"
            if alias not in aliases.values():
                aliases[cell] = alias
    rows = sorted((alias, sheet.Verbatim(cell)) for cell, alias in aliases.items())
    write_atomically(path, sheet.write([("pseudonym", "learner"), *rows]), private=True)  # the one file that undoes it
    return {name: aliases[cell] for name, cell in cells.items()}


def _read(path: Path) -> dict[str, str]:
    """The pseudonyms by the cell that holds a learner's name."""
    rows = [row for _, row in table.rows(path, "a list of pseudonyms")]
    if not rows or rows[0] != ["pseudonym", "learner"] or any(len(row) != 2 for row in rows):
        raise InputError(
            f"{path} is not a list of pseudonyms that `grader class --anonymous` wrote; move it elsewhere."
        )
    return {cell: alias for alias, cell in rows[1:]}


def pseudonymize(report: Report, aliases: dict[str, str]) -> Report:
    """The report under pseudonyms, ordered by them; a name is also taken out of what the grader says of a submission.

    What a learner wrote (code, what it prints, names of files) stays as it is.
    """
    submissions = [_replace_name(submission, aliases[submission.name]) for submission in report.submissions]
    return replace(report, submissions=tuple(sorted(submissions, key=lambda entry: entry.name)), not_graded=())


def _replace_name(report: SubmissionReport, alias: str) -> SubmissionReport:
    # Whole words only: 'ana' is not to change in 'analysis'.
    pattern = re.compile(rf"(?<!\w){re.escape(report.name)}(?!\w)", re.IGNORECASE)

    def redact(text: str) -> str:
        return pattern.sub(lambda _: alias, text) if len(report.name) >= SHORTEST else text

    def redact_lesson(lesson: LessonReport) -> LessonReport:
        hand_marks = {name: replace(mark, comment=redact(mark.comment)) for name, mark in lesson.hand_marks.items()}
        return replace(lesson, notes=tuple(map(redact, lesson.notes)), hand_marks=hand_marks)

    lessons, attention = tuple(map(redact_lesson, report.lessons)), tuple(map(redact, report.attention))
    return replace(report, name=alias, path=alias, message=redact(report.message), lessons=lessons, attention=attention)
