"""Finds the notebooks that a learner handed in, in whatever folder an archive or a habit has put them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from grader.reading import printable

MAX_FILES = 200  # notebooks of one learner that are read
MAX_FOLDERS = 1000  # that are looked into
DEPTH = 4  # folders below the learner's own
# By name in lower case. The course's solutions lie in a learner's clone of it: they are nobody's answer.
PASSED_OVER = ("__pycache__", "__macosx", "backups", "solutions", "site-packages", "node_modules")
ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")


@dataclass
class Found:
    """What a learner's folder holds. notes: sentences on what was left aside."""

    files: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    folders: int = 0


def find(top: Path) -> Found:
    """The notebooks nearest to the top: in the folder itself and its notebooks/, else in the folders below it, and so on.

    Links that lead out of `top` are left aside. Raises: OSError where the folder itself cannot be read.
    """
    found, inside = Found(), top.resolve()
    level = [top]
    for _ in range(DEPTH + 1):
        for folder in level:
            for place in (folder, folder / "notebooks"):
                found.files += [path for path in _entries(place, found, inside, strict=place == top) if _is_notebook(path)]
        if found.files or found.folders > MAX_FOLDERS:
            break
        level = [path for folder in level for path in _entries(folder, found, inside) if _may_hold_some(path)]
    found.files = found.files[:MAX_FILES]
    found.notes = list(dict.fromkeys(found.notes))
    return found


def in_place_of_notebooks(top: Path) -> str:
    """A sentence on what a folder without notebooks does hold; '' for an empty one. Never raises."""
    try:
        names = sorted(path.name for path in top.iterdir() if not path.name.startswith(".") and path.name.lower() not in PASSED_OVER)
    except OSError:
        return ""
    if not names:
        return ""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    packed = next((name for name in names if name.lower().endswith(ARCHIVES)), None)
    return f"What is there: {', '.join(map(printable, names[:5]))}{more}." + (f" Unpack {printable(packed)} first." if packed else "")


def _entries(folder: Path, found: Found, inside: Path, strict: bool = False) -> Iterator[Path]:
    """What lies in a folder and may be looked at, sorted; nothing where it cannot be read, unless `strict`."""
    found.folders += 1
    try:
        entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        if strict:
            raise
        return
    for path in entries:
        if path.is_symlink() and not leads_into(path, inside):
            if _is_notebook(path) or path.is_dir():
                found.notes.append(f"{printable(path.name)} is a link that leads out of the folder; it was not read.")
        else:
            yield path


def _is_notebook(path: Path) -> bool:
    return path.suffix.lower() == ".ipynb" and not path.is_dir()


def _may_hold_some(path: Path) -> bool:
    return path.name.lower() not in PASSED_OVER and path.is_dir()


def leads_into(file: Path, folder: Path) -> bool:
    """Whether a path, its links followed, ends in a folder, which is resolved."""
    try:
        return file.resolve().is_relative_to(folder)
    except (OSError, RuntimeError):  # a link that leads to itself
        return False
