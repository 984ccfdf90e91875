"""From a lesson's source to its two notebooks: the learner's, with stubs, and the executed solution.

    solutions/NN_lesson/: lesson.py, exercises/*.py, figures.py
      → notebooks/NN_lesson.ipynb   stubs, no outputs
      → solutions/NN_lesson.ipynb   executed, with outputs
      → docs/teaching/NN_lesson.md  notes for instructors

All are committed. `stale` says which of them no longer match their source.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from grader.authoring import teaching
from grader.authoring.lint import proofread
from grader.course import patches, prose
from grader.course.course import Course
from grader.course.percent import Cell
from grader.course.spec import Lesson
from grader.course.stubs import as_cells, digest, encode, notebook, unmarked
from grader.util.errors import AuthorError


def checked_cells(course: Course, name: str) -> tuple[tuple[Cell, ...], Lesson]:
    """The cells and the specification of a lesson. Raises: AuthorError where they don't fit together."""
    file = course.relative(course.source_path(name))
    lesson, cells = course.lesson(name), course.cells(name)
    problems = proofread(file, cells, lesson)
    if problems:
        raise AuthorError(problems)
    return cells, lesson


def solution_notebook(
    course: Course, name: str, cells: Sequence[Cell], lesson: Lesson, said: prose.QuotedValues | None = None
) -> dict[str, Any]:
    """The solved notebook without outputs; its metadata say from which files it was built, and what its prose quotes.

    said: the values of the numbers that prose quotes; None before they are known.
    """
    about: dict[str, Any] = {"lesson": name, "built_from": _built_from(course, name)}
    if said:
        about["quoted"] = [list(pair) for pair in said]
    return notebook(as_cells(cells, lesson, unmarked, said, course.nav_links(name)), about)


def stale(course: Course, name: str) -> list[str]:
    """One sentence for each file made from a lesson that is not what its source makes."""
    cells, lesson = checked_cells(course, name)
    said = course.quoted_values(name)
    try:
        learner, solution = course.handed_out(name), solution_notebook(course, name, cells, lesson, said)
    except AuthorError as error:
        return [str(problem) for problem in error.problems]
    problems = [
        (course.notebook_path(name), _stale_text(course.notebook_path(name), encode(learner))),
        (course.solution_path(name), _stale_solution(course.solution_path(name), solution)),
        (
            teaching.path(course, name),
            _stale_text(teaching.path(course, name), teaching.page(course, name, cells, lesson, said)),
        ),
    ]
    return [f"{path.relative_to(course.root).as_posix()}: {problem}" for path, problem in problems if problem]


def _built_from(course: Course, name: str) -> str:
    """A digest of what decides a solution notebook's outputs: the code of its cells, the numbers that its prose quotes, the
    modules in the lesson's folder, shared figures and data, the drawing itself."""
    drawing = Path(__file__).resolve().parents[1] / "figures"
    shared = course.solutions / "shared"
    folders = [course.folder(name), course.folder(name) / "exercises", shared / "figures", shared / "data", drawing]
    files = [path for folder in folders for path in sorted(folder.glob("*.py")) if path.name != "lesson.py"]
    run = [
        cell.text if cell.role != "prose" else " ".join(asked.text for asked in prose.asked_in(cell.text))
        for cell in prose.learner_cells(course.cells(name))
    ]
    return digest("\0".join([*filter(None, run), *map(_code, files)]))


@cache
def _code(path: Path) -> str:
    """A file without comments, none of which changes what a cell shows."""
    return patches.normal(path.read_text(encoding="utf-8"))


def _stale_text(path: Path, built: str) -> str:
    if not path.is_file():
        return "is missing."
    return "" if path.read_text(encoding="utf-8") == built else "is not what its source builds."


def _stale_solution(path: Path, built: dict[str, Any]) -> str:
    """Times and figures differ from run to run, so the stored outputs are asked for, not compared."""
    if not path.is_file():
        return "is missing."
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        bare = [_without_outputs(cell) for cell in stored["cells"]]
        code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
        stored["metadata"]["grader"].pop("torch", None)
        if bare != built["cells"] or stored["metadata"] != built["metadata"]:
            return "is older than its source, its specification or its figures."
        if not all(cell["execution_count"] for cell in code):
            return "has cells that were not run."
        if any(output["output_type"] == "error" for cell in code for output in cell["outputs"]):
            return "contains an error."
        if any(cell["metadata"]["grader"]["role"] == "check" and not cell["outputs"] for cell in code):
            return "has a check without its stored output."
    except (ValueError, KeyError, TypeError):
        return "was not written by `grader build`."
    return ""


def _without_outputs(cell: dict[str, Any]) -> dict[str, Any]:
    return {**cell, "execution_count": None, "outputs": []} if cell["cell_type"] == "code" else cell
