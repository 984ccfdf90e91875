"""What `grader collect` noted of a class's folder: who handed in late and what that costs, and of whom earlier attempts are kept aside."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from grader.course.course import Course
from grader.grading.class_folder import ClassEntry
from grader.grading.scheme import MarkingScheme
from grader.reports import sheet
from grader.reports.report import SubmissionReport, hundredths
from grader.submission.discover import COLLECTED
from grader.submission.submission import lesson_of_name
from grader.util.names import BACKUPS, printable
from grader.util.words import did_you_mean, format_duration, join_names

MOST_BYTES = 64 << 20
NEEDED = {"learner", "file", "state", "late"}  # columns; a table of an earlier version lacks others
DAY_S = 86_400
NEED_DUE = ("grace", "penalty", "extensions")  # settings


@dataclass
class CollectedWork:
    """files: by name, whether the platform marked the latest late, and when it was handed in, as far as the platform says.

    older: whether earlier attempts are kept. paths: of the files, in the platform's download.
    """

    files: dict[str, tuple[bool, str]] = field(default_factory=dict)
    older: bool = False
    paths: dict[str, str] = field(default_factory=dict)

    def late(self, scheme: MarkingScheme, who: Collection[str], full: float) -> tuple[str, float]:
        """A sentence, and the points that are taken off; ('', 0) for what was in time.

        who: the names by which an extension may be given. full: the points of everything. A day that has begun counts as a whole one,
        from the time when the work was due; the grace is in time.
        """
        last = max(filter(None, (_moment(when) for _, when in self.files.values())), default=None)
        due = _due(scheme, who)
        marked = sorted(file for file, (late, when) in self.files.items() if late and not (due and _moment(when)))
        if marked:
            unknown = " By how much it does not say, so nothing is taken off." if scheme.penalty else ""
            return f"Handed in late, as the platform says: {', '.join(marked)}.{unknown}", 0
        by = last - due if last and due else timedelta()
        if last is None or by <= timedelta(seconds=scheme.grace):
            return "", 0
        sentence = f"Handed in at {last:%Y-%m-%d %H:%M} UTC, {format_duration(by.total_seconds())} after it was due."
        if not scheme.penalty:
            return sentence, 0
        days = -(-by // timedelta(seconds=DAY_S))
        each, percent = scheme.penalty
        off = days * (each * full / 100 if percent else each)
        rule = f"{each:g}% of {full} points" if percent else f"{each:g} points"
        return f"{sentence} For each day begun {rule}: {hundredths(off)} to be taken off.", off


def _due(scheme: MarkingScheme, who: Collection[str]) -> datetime | None:
    longer = next((each for name, each in (scheme.extensions or {}).items() if name in who), 0)
    if isinstance(longer, str):
        return datetime.fromisoformat(longer)
    return datetime.fromisoformat(scheme.due) + timedelta(seconds=longer) if scheme.due else None


def add_lateness(
    mine: Sequence[CollectedWork],
    learners: Sequence[ClassEntry],
    reports: Sequence[SubmissionReport],
    scheme: MarkingScheme,
) -> tuple[tuple[SubmissionReport, ...], list[str]]:
    """The reports with what was noted of each learner, and what whoever grades should know of it."""
    sentences = []
    if not scheme.due and any(when and not late for each in mine for late, when in each.files.values()):
        sentences.append(
            "collected.csv says when submissions were handed in, but not when they were due: --due '2026-11-20 23:59' names "
            "who was late. For a run that exists, add it with --rescore."
        )
    known = [pair for each in mine for pair in each.files.values() if any(pair)]
    if scheme.due and not known:
        sentences.append("Nothing says when the work was handed in, so --due makes nobody late.")
    moments = {name: when for name, when in (scheme.extensions or {}).items() if isinstance(when, str)}
    if not (scheme.due or moments) and (idle := [f"--{key}" for key in NEED_DUE if getattr(scheme, key)]):
        sentences.append(f"Without --due nobody is late, so {' and '.join(idle)} change nothing.")
    if early := [name for name, when in moments.items() if when < scheme.due]:
        sentences.append(f"The extension of {join_names(early)} ends before the work was due.")
    here = {name for one in learners for name in (one.key, one.name)}
    for name in [name for name in scheme.extensions or () if name not in here]:
        sentences.append(f"an extension is for {printable(name)}, who is not in the folder{did_you_mean(name, here)}")
    submissions = []
    for report, notes, one in zip(reports, mine, learners, strict=True):
        older = ["Earlier attempts are kept among the backups of `grader collect`."] if notes.older else []
        late, off = notes.late(scheme, (one.key, one.name), report.max_score)
        penalty, attention = min(hundredths(off), report.unpenalized_score or 0), (*report.attention, *older)
        submissions.append(replace(report, late=late, penalty=penalty, attention=attention))
    return tuple(submissions), sentences


def rows(folder: Path) -> list[dict[str, str]] | None:
    """Of collected.csv; nothing where there is none, None where it is another table."""
    path = folder / COLLECTED
    if not os.path.lexists(path):
        return []
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return None
    table = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8", errors="replace")))
    try:
        rows = list(table)
    except csv.Error:
        return None
    return rows if set(table.fieldnames or ()) >= NEEDED else None


def read(course: Course, folder: Path, lessons: Collection[str]) -> dict[str, CollectedWork] | None:
    """By the learner's cell in collected.csv; of files whose name tells another lesson than those graded, nothing. None: another table."""
    table = rows(folder)
    if table is None:
        return None
    work: dict[str, CollectedWork] = {}
    paths = [Path(place, name).relative_to(folder).parts for place, _, names in os.walk(folder) for name in names]
    here = {(sheet.guard(learner), sheet.guard("/".join(file))) for learner, *file in paths}  # as the table names them
    for row in table:
        cell, file, state = (row[column] or "" for column in ("learner", "file", "state"))
        notes = work.setdefault(cell, CollectedWork())
        lesson = lesson_of_name(course, Path(file))
        if lesson and lesson not in lessons:
            continue
        if state.startswith(BACKUPS):
            notes.older = True
            if (cell, file) not in here:  # a later attempt took its place, under another name
                notes.files.pop(file, None)
                notes.paths.pop(file, None)
        else:  # a later row is of a later file
            notes.files[file] = bool(row["late"]), row.get("submitted") or ""
            notes.paths[file] = row.get("original") or ""
    return work


def _moment(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None
