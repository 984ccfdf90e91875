"""What `grader collect` noted of a class's folder: who handed in late, and of whom earlier attempts are kept aside."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from grader.grading.roster import RosterEntry
from grader.judging.verdict import SubmissionReport
from grader.reports import sheet
from grader.submission.discover import COLLECTED
from grader.util.names import BACKUPS
from grader.util.words import counted

MOST_BYTES = 64 << 20


@dataclass
class CollectedNotes:
    """files: by name, whether the platform marked the latest late, and when it was handed in, as far as the platform says.

    older: whether earlier attempts are kept.
    """

    files: dict[str, tuple[bool, str]] = field(default_factory=dict)
    older: bool = False

    def late(self, due: str) -> str:
        """A sentence; '' for what was in time. due: as --due has it, '' for none."""
        marked = sorted(file for file, (late, _) in self.files.items() if late)
        if marked:
            return f"Handed in late, as the platform says: {', '.join(marked)}."
        last = max(filter(None, (_moment(when) for _, when in self.files.values())), default=None)
        by = last - datetime.fromisoformat(due) if last and due else timedelta()
        return f"Handed in at {last:%Y-%m-%d %H:%M} UTC, {_duration(by)} after it was due." if by > timedelta() else ""


def noted(
    folder: Path, found: Sequence[RosterEntry], reports: Sequence[SubmissionReport], due: str
) -> tuple[tuple[SubmissionReport, ...], list[str]]:
    """The reports with what was noted of their learners, and what whoever grades should know of it."""
    notes, sentences = read(folder), []
    if notes is None:
        notes, sentences = (
            {},
            [f"{folder / COLLECTED} is not a table that `grader collect` wrote, so it is not known who was late."],
        )
    mine = [notes.get(sheet.guarded(one.key), CollectedNotes()) for one in found]
    if not due and any(when and not late for each in mine for late, when in each.files.values()):
        sentences.append(
            "collected.csv says when submissions were handed in, but not when they were due: --due '2026-11-20 23:59' names "
            "who was late. For a run that exists, add it with --rescore."
        )
    return tuple(_with(report, each, due) for report, each in zip(reports, mine, strict=True)), sentences


def _with(report: SubmissionReport, notes: CollectedNotes, due: str) -> SubmissionReport:
    older = ["Earlier attempts are kept among the backups of `grader collect`."] if notes.older else []
    return replace(report, late=notes.late(due), attention=(*report.attention, *older))


def read(folder: Path) -> dict[str, CollectedNotes] | None:
    """By the learner's cell in collected.csv. Nothing where there is none; None where it is another table."""
    path = folder / COLLECTED
    if not os.path.lexists(path):
        return {}
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return None
    table = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8", errors="replace")))
    try:
        rows = list(table)
    except csv.Error:
        return None
    if not {"learner", "file", "state", "late"} <= set(table.fieldnames or ()):
        return None
    found: dict[str, CollectedNotes] = {}
    for row in rows:
        learner, file, state, late, when = (
            row.get(column) or "" for column in ("learner", "file", "state", "late", "submitted")
        )
        notes = found.setdefault(learner, CollectedNotes())
        if state.startswith(BACKUPS):
            notes.older = True
        else:
            notes.files[file] = bool(late), when  # a later row is of a later file
    return found


def _moment(said: str) -> datetime | None:
    try:
        made = datetime.fromisoformat(said)
    except ValueError:
        return None
    return made if made.tzinfo else None


def _duration(by: timedelta) -> str:
    minutes = max(int(by.total_seconds() // 60), 1)
    if minutes < 60:
        return counted(minutes, "minute")
    return counted(minutes // 60, "hour") if minutes < 48 * 60 else counted(minutes // 1440, "day")
