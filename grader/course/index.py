"""The index of a course, gathered from its specifications and sources: what registry.py knows without importing every lesson.

It holds each lesson's exercises in order, whether the lesson needs torch, and what its given cells import. The package's lies in
lessons/index.json and is written by `grader build`; that of a course of one's own is made anew in each process.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from grader.course import registry
from grader.course.percent import Cell
from grader.util.errors import AuthorError, LintError
from grader.util.files import write_whole


def built() -> str:
    """The text of the index as it is to be. Raises: AuthorError where a given cell is not Python."""
    sources = {path.stem for path in (registry.root() / "solutions").glob("[0-9][0-9]_*.py")}
    specified = {path.parent.name for path in registry.specified().glob("[0-9][0-9]_*/__init__.py")}
    lessons: dict[str, Any] = {}
    given: dict[str, str] = {}
    for name in sorted(sources & (specified | registry.CONTRACT.keys())):
        imports = _imports(name, registry.cells(name))
        exercises = registry.lesson(name).exercises
        torch = any(dotted.partition(".")[0] == "torch" for dotted in imports.values())
        lessons[name] = {"exercises": [exercise.name for exercise in exercises], "torch": torch}
        given |= imports
    folder = registry.own()
    course = {"course": folder.name} if folder else {}
    return json.dumps({**course, "lessons": lessons, "given": dict(sorted(given.items()))}, indent=1) + "\n"


def path() -> Path:
    """Where the index of the checkout lies; an installed course and one's own have none that could be written."""
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


def _imports(name: str, cells: tuple[Cell, ...]) -> dict[str, str]:
    """What the given cells of a lesson import from elsewhere: the name, and what it stands for."""
    found: dict[str, str] = {}
    for cell in (cell for cell in cells if cell.role == "given"):
        try:
            nodes = list(ast.walk(ast.parse(cell.text)))
        except SyntaxError as error:
            line = cell.line + (error.lineno or 0)
            raise AuthorError(
                [LintError(f"solutions/{name}.py", line, f"this cell is not Python: {error.msg}.")]
            ) from None
        for node in nodes:
            if isinstance(node, ast.Import):
                found |= {alias.asname or alias.name.partition(".")[0]: alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module != "grader":
                found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found
