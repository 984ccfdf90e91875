"""Where a course's folder is, and what is wrong with one before anything in it runs."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from itertools import groupby
from pathlib import Path

DISTRIBUTION = "attention-course"
GLOSSARY = "glossary.md"  # beside the learner's notebooks
NEEDED = "solutions/NN_name/ with lesson.py, lesson.toml and exercises/, as in 90_mine"
_LESSON = re.compile(r"[0-9][0-9]_\w+")


def text_of(path: Path) -> str:
    """A file's text, '' where there is none."""
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def installed_folder() -> Path:
    """The folder of the course that comes with the engine: the checkout, or the wheel's own copy."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parent
    if (checkout / "solutions").is_dir() and (checkout / "pyproject.toml").is_file():
        return checkout
    return package / "_course"


@cache
def address(home: Path) -> str:
    """Where the package's own repository is, by the pyproject.toml in `home` or by the installed metadata; '' while neither says so."""
    checkout = home / "pyproject.toml"
    if checkout.is_file():
        return tomllib.loads(checkout.read_text(encoding="utf-8"))["project"].get("urls", {}).get("Repository", "")
    try:
        urls = metadata.metadata(DISTRIBUTION).get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return ""
    return next((url.partition(", ")[2] for url in urls if url.startswith("Repository, ")), "")


def folder_problems(root: Path) -> Iterator[str]:
    """What is wrong with a course's folder before anything in it runs."""
    if not root.is_dir():
        yield f"--course {root}: there is no such folder."
        return
    if root != installed_folder() and sys.platform == "linux":  # where a worker has walls
        from grader.worker import kernel_walls

        if any(map(root.is_relative_to, kernel_walls.readable())):
            yield f"--course {root}: it is inside Python's libraries, which a submission may read; move it elsewhere."
    folders = sorted(path.name for path in (root / "solutions").glob("[0-9][0-9]_*") if path.is_dir())
    whole = [name for name in folders if (root / "solutions" / name / "lesson.py").is_file()]
    if not whole and not (root / "solutions" / "index.json").is_file():
        half = f"solutions/{folders[0]} has no lesson.py; " if folders else ""
        yield f"--course {root}: it contains no lesson; {half}a lesson needs {NEEDED}."
    for name in whole:
        if not _LESSON.fullmatch(name):
            yield f"--course {root}: a lesson is called NN_name, in letters, digits and underscores; {name} is not."
    groups = [list(names) for _, names in groupby(whole, lambda name: name[:2])]
    for names in (names for names in groups if len(names) > 1):
        yield f"--course {root}: {' and '.join(names)} have the same number; each lesson needs its own."
    if len(groups) == len(whole):
        yield from _exercises_twice(root)


def _exercises_twice(root: Path) -> Iterator[str]:
    """Exercises that two lessons specify, with both places."""
    places: dict[str, str] = {}
    for path in sorted(root.glob("solutions/[0-9][0-9]_*/exercises/*.py")):
        place = path.relative_to(root).as_posix()
        first = places.setdefault(path.stem, place)
        if first != place:
            yield f"{place}: {first} is an exercise {path.stem}, too; choose another name."
