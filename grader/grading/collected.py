"""What `grader collect` noted of a class's folder: who handed in late, and of whom earlier attempts are kept aside."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from grader.reports import sheet
from grader.submission.discover import COLLECTED
from grader.util.names import BACKUPS

MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class CollectedNotes:
    """late: files that the platform marked so, '' where it marks none. older: whether earlier attempts are kept."""

    late: tuple[str, ...] = ()
    older: bool = False


def read(folder: Path) -> dict[str, CollectedNotes]:
    """By the learner's cell in collected.csv, see cell(). Nothing where there is no such table, or another one."""
    path = folder / COLLECTED
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return {}
    latest: dict[str, dict[str, bool]] = {}
    older = set()
    for row in csv.DictReader(io.StringIO(path.read_text(encoding="utf-8", errors="replace"))):
        learner, file, state = (row.get(column) or "" for column in ("learner", "file", "state"))
        if state.startswith(BACKUPS):
            older.add(learner)
        else:
            latest.setdefault(learner, {})[file] = bool(row.get("late"))
    return {
        learner: CollectedNotes(tuple(sorted(file for file, late in latest.get(learner, {}).items() if late)), learner in older)
        for learner in latest.keys() | older
    }


def cell(key: str) -> str:
    """How collected.csv writes a learner's folder."""
    return sheet.guarded(key)
