"""The index of the course: made from the specifications and sources by `grader build`, read by course.py.

It holds each lesson's exercises in order, whether the lesson needs torch, and what its given cells import.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from grader.course import registry
from grader.course.percent import Cell
from grader.util.files import write_whole

LESSONS = Path(__file__).resolve().parents[1] / "course" / "lessons"


def built() -> str:
    """The text of the index as it is to be."""
    sources = {path.stem for path in (registry.root() / "solutions").glob("[0-9][0-9]_*.py")}
    names = sorted(sources & ({path.parent.name for path in LESSONS.glob("[0-9][0-9]_*/__init__.py")} | registry.CONTRACT.keys()))
    lessons: dict[str, Any] = {}
    given: dict[str, str] = {}
    for name in names:
        imports = _imports(registry.cells(name))
        exercises = registry.lesson(name).exercises
        torch = any(dotted.partition(".")[0] == "torch" for dotted in imports.values())
        lessons[name] = {"exercises": [exercise.name for exercise in exercises], "torch": torch}
        given |= imports
    return json.dumps({"lessons": lessons, "given": dict(sorted(given.items()))}, indent=1) + "\n"


def path() -> Path:
    """Where the index of the checkout lies; an installed course has none that could be written."""
    return registry.root() / "grader" / "course" / "lessons" / "index.json"


def stale() -> bool:
    """Whether the index is not what the specifications and sources say."""
    return path().is_file() and path().read_text(encoding="utf-8") != built()


def refresh() -> None:
    """Writes the index anew where it is stale, and makes this process know what it says."""
    if stale():
        text = built()
        write_whole(path(), text)
        registry.know(text)


def _imports(cells: tuple[Cell, ...]) -> dict[str, str]:
    """What the given cells of a lesson import from elsewhere: the name, and what it stands for."""
    found = {}
    for node in (node for cell in cells if cell.role == "given" for node in ast.walk(ast.parse(cell.text))):
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name.partition(".")[0]: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module != "grader":
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found
