"""From a lesson's source to its two notebooks: the learner's, with stubs, and the executed solution.

    solutions/NN_lesson.py + grader/lessons/lesson_NN.py
      → notebooks/NN_lesson.ipynb   stubs, no outputs
      → solutions/NN_lesson.ipynb   executed, with outputs

Both are committed. `stale` says which of them no longer match their source.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grader import course
from grader.course import Cell
from grader.errors import AuthorError, Slip
from grader.model import Exercise, Lesson
from grader.proofread import BEGIN, END, proofread, task_name

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"}


def solution_path(name: str) -> Path:
    return course.root() / "solutions" / f"{name}.ipynb"


def checked_cells(name: str) -> tuple[tuple[Cell, ...], Lesson]:
    """The cells and the specification of a lesson. Raises: AuthorError where they don't fit together."""
    file = f"solutions/{name}.py"
    lesson, cells = course.lesson(name), course.cells(name)
    slips = proofread(file, cells, lesson)
    names = tuple(exercise.name for exercise in lesson.exercises)
    if names != course.CONTRACT[name]:
        module = f"grader/lessons/lesson_{name[:2]}.py"
        slips.append(Slip(module, 0, f"exercises are {', '.join(names)}; the contract has "
                                     f"{', '.join(course.CONTRACT[name])}, in this order."))
    if slips:
        raise AuthorError(slips)
    return cells, lesson


def learner_notebook(name: str, cells: Sequence[Cell], lesson: Lesson) -> dict[str, Any]:
    """The notebook that a learner opens: stubs in place of solutions, no outputs."""
    made = _cells(cells, lesson, stubbed)
    return _notebook(made, {"lesson": name, "version": digest(json.dumps(made, sort_keys=True))})


def pristine(name: str) -> dict[str, Any]:
    """The learner's notebook as the course means it: from the source, whatever was done to the file in notebooks/."""
    return learner_notebook(name, course.cells(name), course.lesson(name))


def solution_notebook(name: str, cells: Sequence[Cell], lesson: Lesson) -> dict[str, Any]:
    """The solved notebook, not yet executed; its metadata says from which files it was built."""
    return _notebook(_cells(cells, lesson, unmarked), {"lesson": name, "built_from": _built_from(name)})


def stubbed(text: str, name: str) -> str:
    """The text of an exercise cell with each solution region replaced by its stub."""
    kept, inside = [], False
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith(BEGIN):
            stub = bare.removeprefix(BEGIN).removeprefix(":").strip()
            stub = stub or f'raise NotImplementedError("{name} is not written yet")'
            kept.append(line[: len(line) - len(line.lstrip())] + stub)
            inside = True
        elif bare == END:
            inside = False
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def unmarked(text: str, name: str = "") -> str:
    """The text of an exercise cell without the markers of its regions."""
    return "\n".join(line for line in text.splitlines() if not line.strip().startswith((BEGIN, END)))


def task(text: str, exercise: Exercise) -> str:
    """A Markdown cell with its '@exercise name' line expanded from the specification."""
    minutes, points = _count(exercise.minutes, "minute"), _count(exercise.points, "point")
    head = f"### Exercise: `{exercise.name}`\n\n*{minutes} · {points}* — {exercise.task}"
    return head + text[text.index("\n"):] if "\n" in text else head


def encode(notebook: dict[str, Any]) -> str:
    """The notebook as the text of its file, always in the same form."""
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def stale(name: str) -> list[str]:
    """One sentence for each of a lesson's notebooks that is not what its source builds."""
    cells, lesson = checked_cells(name)
    learner, solution = learner_notebook(name, cells, lesson), solution_notebook(name, cells, lesson)
    problems = [
        (course.notebook_path(name), _stale_learner(course.notebook_path(name), learner)),
        (solution_path(name), _stale_solution(solution_path(name), solution)),
    ]
    return [f"{path.parent.name}/{path.name}: {problem}" for path, problem in problems if problem]


def _cells(cells: Sequence[Cell], lesson: Lesson, exercise_text) -> list[dict[str, Any]]:
    exercises = {exercise.name: exercise for exercise in lesson.exercises}
    seen: Counter[str] = Counter()
    made = []
    for cell in cells:
        name = task_name(cell.text) if cell.role == "prose" else None
        text = task(cell.text, exercises[name]) if name else cell.text
        if cell.role == "exercise":
            text = exercise_text(text, cell.exercise)
        metadata: dict[str, Any] = {"grader": {"role": cell.role}}
        if cell.exercise:
            metadata["grader"]["exercise"] = cell.exercise
        if cell.role == "exercise" and exercise_text is stubbed:
            metadata["grader"]["stub"] = digest(text)  # tells `grader update` an untouched stub from work
        tags = [tag for tag in cell.tags if exercise_text is not stubbed or not tag.startswith("nbval-")]
        if tags:
            metadata["tags"] = tags
        made.append(_cell(_id(cell, name, text, seen), text, metadata, cell.role == "prose"))
    return made


def _cell(id: str, text: str, metadata: dict[str, Any], prose: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"id": id, "metadata": metadata, "source": text.splitlines(keepends=True)}
    if prose:
        return {"cell_type": "markdown", **made}
    return {"cell_type": "code", "execution_count": None, "outputs": [], **made}


def _id(cell: Cell, task_of: str | None, text: str, seen: Counter[str]) -> str:
    """An id that survives edits elsewhere: by role and exercise, else by the cell's own words."""
    if task_of or cell.exercise:
        id = f"{'task' if task_of else cell.role}-{task_of or cell.exercise}"
    else:
        id = f"{cell.role}-{digest(text)}"
    id = id[:60]  # nbformat allows 64
    seen[id] += 1
    return id if seen[id] == 1 else f"{id}-{seen[id]}"


def _notebook(cells: list[dict[str, Any]], about: dict[str, str]) -> dict[str, Any]:
    metadata = {"grader": about, "kernelspec": KERNELSPEC, "language_info": LANGUAGE}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _built_from(name: str) -> str:
    """A digest of what decides a solution notebook's outputs: source, specification, the lesson's figures."""
    package, modules = Path(__file__).resolve().parent, f"lesson_{name[:2]}*.py"
    files = [course.source_path(name), *(path for part in ("lessons", "figures")
                                         for path in sorted((package / part).glob(modules)))]
    return digest("\0".join(file.read_text(encoding="utf-8") for file in files))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


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
