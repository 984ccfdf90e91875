"""The folder that `grader class` writes to: nothing in it is overwritten without a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

from grader.grading.journal import JournalContents
from grader.util.errors import InputError
from grader.util.files import backup_place

JOURNAL = "journal.jsonl"
OVERRIDES = "overrides.csv"  # marks by hand


def prepare_folder(out: Path, graded: Path, resume: bool, earlier: JournalContents | None) -> list[str]:
    """Makes the folder ready for a run. earlier: the journal in it. Returns: sentences on what was done with an earlier run.

    Raises: InputError where it holds something else, an unfinished run without --resume, or lies in the class's folder.
    """
    if out.resolve().is_relative_to(graded.resolve()) or graded.resolve().is_relative_to(out.resolve()):
        raise InputError(
            f"one of {out} and {graded} is inside the other; --out needs a folder outside the learners' folder."
        )
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out needs a folder.")
    if not out.exists() or not any(out.iterdir()):
        return [f"{out} has no earlier run, so everything is graded."] if resume else []
    if earlier is None:
        raise InputError(f"{out} contains something other than a run of `grader class`; name an empty or a new folder.")
    if not earlier.finished and not resume:
        raise InputError(
            f"{out} holds a run that was not finished, with {len(earlier.results)} results: add --resume to "
            "continue it, or name another folder."
        )
    if earlier.finished and not resume:
        backup = backup_place(out)
        out.rename(backup)
        by_hand = f" So are its marks by hand; to keep them, copy {OVERRIDES} to {out} and give --resume."
        return [_backup_note(backup) + by_hand * (backup / OVERRIDES).is_file()]
    return []


def copy_folder(out: Path) -> str:
    """Copies the folder beside itself, before a run that goes on replaces reports in it. Returns: a sentence that says so."""
    backup = backup_place(out)
    shutil.copytree(out, backup)
    return _backup_note(backup)


def _backup_note(backup: Path) -> str:
    return f"the earlier run is kept in {backup}."
