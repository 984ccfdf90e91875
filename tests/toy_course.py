"""A course of one small lesson, for testing everything between a learner's file and a report."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np

from grader.authoring import index
from grader.course import references, registry
from grader.course.spec import Case, Exercise, Lesson, MistakeText
from tests.mistakes import built

NAME = "01_toy"
EXERCISES = ("double", "row_sums", "the_answer")

RIGHT = {
    "double": "def double(x):\n    return OFFSET + 2 * x",
    "row_sums": "def row_sums(x):\n    return np.sum(x, axis=1)",
    "the_answer": "the_answer = [4, 2]",
}
STUBS = {
    "double": 'def double(x):\n    """Twice x."""\n    raise NotImplementedError("double is not written yet")',
    "row_sums": 'def row_sums(x):\n    """The sum of each row."""\n    raise NotImplementedError("row_sums is not written yet")',
    "the_answer": "the_answer = None  # two numbers",
}


def build_double(*bugs: str):
    return lambda x: {"TY2": x + 2, "TY3": x * x, "TY4": x}[bugs[0]] if bugs else 2 * x


def build_row_sums(*bugs: str):
    return lambda x: x.sum(axis=0 if bugs else 1)


def arrays(rng: np.random.Generator):
    yield Case("small", "small integers", (np.array([[1.0, 2, 3], [4, 5, 6]]),), names=("x",))
    for i in range(4):
        yield Case(f"random-{i}", "random numbers", (rng.normal(size=(4, 2 + i % 2)),), names=("x",))


def nothing(rng: np.random.Generator):
    yield Case("value", "the value", (), probe="answer")


HINTS = ("?", "where", "____")
REFERENCES = {"double": build_double(), "row_sums": build_row_sums(), "the_answer": [4.0, 2.0]}
LESSON = Lesson(
    NAME, "A toy", "?",
    (
        Exercise("double", "Double x.", 2, 1, arrays, built(build_double, "TY2", "TY3", "TY4"), HINTS),
        Exercise("row_sums", "Sum rows.", 3, 1, arrays, built(build_row_sums, "TY1"), HINTS),
        Exercise("the_answer", "Answer.", 1, 1, nothing, (), HINTS, kind="answer", container="answer"),
    ),
    (MistakeText("TY1", "The columns were summed.", "why"),),
)  # fmt: skip

SECOND = Lesson("02_second", "Another", "?", (Exercise("nobody", "Nobody solves it.", 4, 1, arrays, (), HINTS),))


def code(text: str, role: str = "", exercise: str = "", id: str = "") -> dict[str, Any]:
    """A code cell as JupyterLab saves it; without a role it is one that a learner added."""
    about = {key: value for key, value in (("role", role), ("exercise", exercise)) if value}
    metadata = {"grader": about} if about else {}
    return {"cell_type": "code", "execution_count": None, "id": id, "metadata": metadata, "outputs": [],
            "source": text.splitlines(keepends=True)}  # fmt: skip


def pristine() -> dict[str, Any]:
    """The learner's notebook: two given cells, a demonstration, three exercises, a check and a payoff."""
    cells = [
        {"cell_type": "markdown", "id": "title", "metadata": {}, "source": ["# A toy"]},
        code("import numpy as np\n\nfrom grader import check, figures, passed", "given", id="given-1"),
        code("print(np.pi)\nfigures.nothing_that_exists()", "demo", id="demo-1"),
        code("OFFSET = 0", "given", id="given-2"),
        code(STUBS["double"], "exercise", "double", "exercise-double"),
        code("check(double)", "check", "double", "check-double"),
        code("if passed(double):\n    print(double(2))", "payoff", "double", "payoff-double"),
        code(STUBS["row_sums"], "exercise", "row_sums", "exercise-row_sums"),
        code(STUBS["the_answer"], "exercise", "the_answer", "exercise-the_answer"),
    ]
    return notebook(cells)


def notebook(cells: list[dict[str, Any]], lesson: str = NAME) -> dict[str, Any]:
    """A notebook of these cells; with an empty lesson its metadata do not say which one it is."""
    return {"cells": cells, "metadata": {"grader": {"lesson": lesson}} if lesson else {}, "nbformat": 4, "nbformat_minor": 5}


def solved(**texts: str) -> dict[str, Any]:
    """The learner's notebook with every exercise solved, but for those given here."""
    made = copy.deepcopy(pristine())
    for cell in made["cells"]:
        name = cell["metadata"].get("grader", {}).get("exercise")
        if cell["metadata"].get("grader", {}).get("role") == "exercise":
            cell["source"] = texts.get(name, RIGHT[name])
    return made


def write(path: Path, content: dict[str, Any] | str | bytes) -> Path:
    """Writes a notebook, or whatever stands in for one."""
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def install(monkeypatch) -> None:
    """Makes the toy the whole course for the time of one test. The real course's index is not its own to write."""
    monkeypatch.setattr(index, "path", lambda: Path("no index"))
    monkeypatch.setattr(registry, "CONTRACT", {NAME: EXERCISES, "02_second": ("nobody",)})
    monkeypatch.setattr(registry, "lessons", lambda: (NAME, "02_second"))
    for made in ("pristine", "handed_out"):  # the toy's prose quotes no number
        monkeypatch.setattr(registry, made, lambda name, *among: pristine() if name == NAME else notebook([], name))
    monkeypatch.setattr(registry, "lesson", lambda name: LESSON if name == NAME else SECOND)
    monkeypatch.setattr(references, "reference", lambda name: REFERENCES[name])
    monkeypatch.setattr(registry, "next_exercise", lambda name: None)
    monkeypatch.setattr(registry, "mistake_text", lambda id: MistakeText(id, f"This is {id}.", "why"))
