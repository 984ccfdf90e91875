"""From a lesson's source to its two notebooks: the learner's, with stubs, and the executed solution.

    solutions/NN_lesson.py + grader/course/lessons/NN_lesson/*.py
      → notebooks/NN_lesson.ipynb   stubs, no outputs
      → solutions/NN_lesson.ipynb   executed, with outputs

Both are committed. `stale` says which of them no longer match their source.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grader.authoring.lint import proofread
from grader.course import registry
from grader.course.percent import Cell
from grader.course.spec import Lesson
from grader.course.stubs import as_cells, digest, encode, learner_notebook, notebook, unmarked
from grader.util.errors import AuthorError, LintError


def solution_path(name: str) -> Path:
    return registry.root() / "solutions" / f"{name}.ipynb"


def checked_cells(name: str) -> tuple[tuple[Cell, ...], Lesson]:
    """The cells and the specification of a lesson. Raises: AuthorError where they don't fit together."""
    file = f"solutions/{name}.py"
    lesson, cells = registry.lesson(name), registry.cells(name)
    slips = proofread(file, cells, lesson)
    names = tuple(exercise.name for exercise in lesson.exercises)
    if names != registry.CONTRACT[name]:
        module = f"grader/course/lessons/{name}/__init__.py"
        slips.append(LintError(module, 0, f"exercises are {', '.join(names)}; the contract has "
                                     f"{', '.join(registry.CONTRACT[name])}, in this order."))
    if slips:
        raise AuthorError(slips)
    return cells, lesson


def solution_notebook(name: str, cells: Sequence[Cell], lesson: Lesson) -> dict[str, Any]:
    """The solved notebook, not yet executed; its metadata says from which files it was built."""
    return notebook(as_cells(cells, lesson, unmarked), {"lesson": name, "built_from": _built_from(name)})


def stale(name: str) -> list[str]:
    """One sentence for each of a lesson's notebooks that is not what its source builds."""
    cells, lesson = checked_cells(name)
    learner, solution = learner_notebook(name, cells, lesson), solution_notebook(name, cells, lesson)
    problems = [
        (registry.notebook_path(name), _stale_learner(registry.notebook_path(name), learner)),
        (solution_path(name), _stale_solution(solution_path(name), solution)),
    ]
    return [f"{path.parent.name}/{path.name}: {problem}" for path, problem in problems if problem]


def _built_from(name: str) -> str:
    """A digest of what decides a solution notebook's outputs: source, specification, the lesson's figures."""
    package = Path(__file__).resolve().parents[1]
    modules = (f"course/lessons/{name}/*.py", f"figures/lesson_{name[:2]}*.py")
    files = [registry.source_path(name), *(path for each in modules for path in sorted(package.glob(each)))]
    return digest("\0".join(file.read_text(encoding="utf-8") for file in files))


def _stale_learner(path: Path, built: dict[str, Any]) -> str:
    if not path.is_file():
        return "is missing."
    return "" if path.read_text(encoding="utf-8") == encode(built) else "is not what its source builds."


def _stale_solution(path: Path, built: dict[str, Any]) -> str:
    """Times and figures differ from run to run, so the stored outputs are asked for, not compared."""
    if not path.is_file():
        return "is missing."
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        bare = [_without_outputs(cell) for cell in stored["cells"]]
        code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
        if bare != built["cells"] or stored["metadata"] != built["metadata"]:
            return "is older than its source, its specification or its figures."
        if not all(cell["execution_count"] for cell in code):
            return "has cells that were not run."
        if any(output["output_type"] == "error" for cell in code for output in cell["outputs"]):
            return "holds an error."
        if any(cell["metadata"]["grader"]["role"] == "check" and not cell["outputs"] for cell in code):
            return "has a check without its stored output."
    except (ValueError, KeyError, TypeError):
        return "is not a notebook that `grader build` wrote."
    return ""


def _without_outputs(cell: dict[str, Any]) -> dict[str, Any]:
    return {**cell, "execution_count": None, "outputs": []} if cell["cell_type"] == "code" else cell
