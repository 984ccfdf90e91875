"""The index of a course, gathered from its lessons: by it one exercise is found without importing every lesson.

A `Course` imports this module and is handed to it. The index holds each lesson's exercises in order, whether its own cells
import torch, and what these cells import. It is gathered anew where the whole course is meant: built, audited, graded, handed out.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from grader.course.course_folder import text_of
from grader.course.spec import MistakeText
from grader.util.errors import AuthorError, LintError
from grader.util.files import write_atomically

Course = Any  # whose class imports this module


def text(course: Course) -> str:
    """The index as its file has it, or as it should be where there is none."""
    return text_of(course.index_path) or _new_text(course)


def is_stale(course: Course) -> bool:
    return text_of(course.index_path) != _new_text(course)


def write(course: Course) -> None:
    """Writes the index where the lessons hold something else; the course takes it over."""
    new = _new_text(course)
    if text_of(course.index_path) != new:
        write_atomically(course.index_path, new)
    course.read_index()


def _new_text(course: Course) -> str:
    return json.dumps(gather(course), indent=1) + "\n"


def gather(course: Course) -> dict[str, Any]:
    """The index as it should be. Raises: AuthorError for an author's slip, or a name or an id that is used twice."""
    lessons: dict[str, Any] = {}
    imports: dict[str, str] = {}
    for path in sorted(course.solutions.glob("[0-9][0-9]_*/lesson.py")):
        name = path.parent.name
        lesson_imports = _imports(course, name)
        names = [exercise.name for exercise in course.lesson(name).exercises]
        torch = any(dotted.partition(".")[0] == "torch" for dotted in lesson_imports.values())
        lessons[name] = {"exercises": names, "torch": torch}
        imports |= lesson_imports
    mistake_texts(course, lessons)
    return {"lessons": lessons, "given": dict(sorted(imports.items()))}


def mistake_texts(course: Course, lessons: Iterable[str]) -> dict[str, MistakeText]:
    """What is said of every mistake of these lessons, and of those that lessons share, by id.

    Raises: AuthorError, with both places, for ids that are used twice, also as former ones; of exercises, the course has told when it
    was opened.
    """
    problems = []
    texts = {id: (text, "solutions/shared/mistakes") for id, text in course.shared_texts().items()}
    for name in lessons:
        for exercise in course.lesson(name).exercises:
            for text in exercise.texts:
                place = f"solutions/{name}/exercises/{exercise.name}.py"
                first, where = texts.setdefault(text.id, (text, place))
                if first != text:
                    sentence = f"{text.id} is a mistake of {where}, too; choose another id, or leave `says` out."
                    problems.append(LintError(place, 0, sentence))
    for former in course.former_ids:
        if former in texts:
            sentence = f"{former} is a mistake of {texts[former][1]}, and so no former id."
            problems.append(LintError("solutions/course.toml", 0, sentence))
    if problems:
        raise AuthorError(problems)
    return {id: text for id, (text, _) in texts.items()}


@cache
def _imports(course: Course, lesson: str) -> dict[str, str]:
    """What the given cells of a lesson import from elsewhere: the name, and what it stands for."""
    imports: dict[str, str] = {}
    for cell in (cell for cell in course.cells(lesson) if cell.role == "given"):
        try:
            nodes = list(ast.walk(ast.parse(cell.text)))
        except SyntaxError as error:
            file, line = course.relative(course.source_path(lesson)), cell.line + (error.lineno or 0)
            raise AuthorError([LintError(file, line, f"this cell is not Python: {error.msg}.")]) from None
        for node in nodes:
            if isinstance(node, ast.Import):
                imports |= {alias.asname or alias.name.partition(".")[0]: alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module != "grader":
                imports |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return imports
