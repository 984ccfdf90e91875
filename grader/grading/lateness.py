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
from grader.submission.lesson_recognition import lesson_of_name
from grader.util.names import BACKUPS, printable
from grader.util.words import did_you_mean, format_duration, join_names

MOST_BYTES = 64 << 20
REQUIRED = {"learner", "file", "state", "late"}  # columns; a table of an earlier version lacks others
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

    def late(self, scheme: MarkingScheme, names: Collection[str], full: float) -> tuple[str, float]:
        """A sentence, and the points that are taken off; ('', 0) for what was in time.

        names: those by which an extension may be given. full: the points of everything. A day that has begun counts as a whole one,
        from the time when the work was due; the grace is in time.
        """
        last = max(filter(None, (_moment(time) for _, time in self.files.values())), default=None)
        due = _due(scheme, names)
        files = sorted(file for file, (late, time) in self.files.items() if late and not (due and _moment(time)))
        if files:
            consequence = " By how much it does not say, so nothing is taken off." if scheme.penalty else ""
            return f"Handed in late, as the platform says: {', '.join(files)}.{consequence}", 0
        delay = last - due if last and due else timedelta()
        if last is None or delay <= timedelta(seconds=scheme.grace):
            return "", 0
        sentence = f"Handed in at {last:%Y-%m-%d %H:%M} UTC, {format_duration(delay.total_seconds())} after it was due."
        if not scheme.penalty:
            return sentence, 0
        days = -(-delay // timedelta(seconds=DAY_S))
        rate, percent = scheme.penalty
        penalty = days * (rate * full / 100 if percent else rate)
        rule = f"{rate:g}% of {full} points" if percent else f"{rate:g} points"
        return f"{sentence} For each day begun {rule}: {hundredths(penalty)} to be taken off.", penalty


def _due(scheme: MarkingScheme, names: Collection[str]) -> datetime | None:
    extension = next((extension for name, extension in (scheme.extensions or {}).items() if name in names), 0)
    if isinstance(extension, str):
        return datetime.fromisoformat(extension)
    return datetime.fromisoformat(scheme.due) + timedelta(seconds=extension) if scheme.due else None


def add_lateness(
    collected: Sequence[CollectedWork],
    learners: Sequence[ClassEntry],
    reports: Sequence[SubmissionReport],
    scheme: MarkingScheme,
) -> tuple[tuple[SubmissionReport, ...], list[str]]:
    """The reports with what was noted of each learner, and what whoever grades should know of it."""
    sentences = []
    statements = [pair for work in collected for pair in work.files.values() if any(pair)]
    if not scheme.due and any(time and not late for late, time in statements):
        sentences.append(
            "collected.csv says when submissions were handed in, but not when they were due: --due '2026-11-20 23:59' names "
            "who was late. For a run that exists, add it with --rescore."
        )
    if scheme.due and not statements:
        sentences.append("Nothing says when the work was handed in, so --due makes nobody late.")
    moments = {name: time for name, time in (scheme.extensions or {}).items() if isinstance(time, str)}
    if not (scheme.due or moments) and (unused := [f"--{key}" for key in NEED_DUE if getattr(scheme, key)]):
        sentences.append(f"Without --due nobody is late, so {' and '.join(unused)} change nothing.")
    if early := [name for name, time in moments.items() if time < scheme.due]:
        sentences.append(f"The extension of {join_names(early)} ends before the work was due.")
    names = {name for learner in learners for name in (learner.key, learner.name)}
    for name in [name for name in scheme.extensions or () if name not in names]:
        sentences.append(f"an extension is for {printable(name)}, who is not in the folder{did_you_mean(name, names)}")
    submissions = []
    for report, work, learner in zip(reports, collected, learners, strict=True):
        older = ["Earlier attempts are kept among the backups of `grader collect`."] if work.older else []
        late, penalty = work.late(scheme, (learner.key, learner.name), report.max_score)
        penalty, attention = min(hundredths(penalty), report.unpenalized_score or 0), (*report.attention, *older)
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
    return rows if set(table.fieldnames or ()) >= REQUIRED else None


def read(course: Course, folder: Path, lessons: Collection[str]) -> dict[str, CollectedWork] | None:
    """By the learner's cell in collected.csv; of files whose name tells another lesson than those graded, nothing. None: another table."""
    table = rows(folder)
    if table is None:
        return None
    work: dict[str, CollectedWork] = {}
    paths = [Path(place, name).relative_to(folder).parts for place, _, names in os.walk(folder) for name in names]
    files = {(sheet.guard(learner), sheet.guard("/".join(file))) for learner, *file in paths}  # as the table names them
    for row in table:
        cell, file, state = (row[column] or "" for column in ("learner", "file", "state"))
        learner_work = work.setdefault(cell, CollectedWork())
        lesson = lesson_of_name(course, Path(file))
        if lesson and lesson not in lessons:
            continue
        if state.startswith(BACKUPS):
            learner_work.older = True
            if (cell, file) not in files:  # a later attempt took its place, under another name
                learner_work.files.pop(file, None)
                learner_work.paths.pop(file, None)
        else:  # a later row is of a later file
            learner_work.files[file] = bool(row["late"]), row.get("submitted") or ""
            learner_work.paths[file] = row.get("original") or ""
    return work


def _moment(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None
