"""A course of two small lessons in a folder of its own, for testing everything between a learner's file and a report."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grader.course.course import COURSE_ENV
from grader.course.percent import read_percent
from grader.course.spec import Lesson
from grader.course.stubs import learner_notebook
from grader.notebook.kernel_course import kernel_course
from tests.conftest import ROOT

FOLDER = ROOT / "tests" / "courses" / "toy"
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


def code(text: str, role: str = "", exercise: str = "", id: str = "") -> dict[str, Any]:
    """A code cell as JupyterLab saves it; without a role it is one that a learner added."""
    about = {key: value for key, value in (("role", role), ("exercise", exercise)) if value}
    metadata = {"grader": about} if about else {}
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": id,
        "metadata": metadata,
        "outputs": [],
        "source": text.splitlines(keepends=True),
    }


def pristine() -> dict[str, Any]:
    """The learner's notebook: two given cells, a demonstration, three exercises, a check and a payoff."""
    text = (FOLDER / "solutions" / NAME / "lesson.py").read_text(encoding="utf-8")
    return learner_notebook(read_percent(text), Lesson(NAME, "A toy", "?", ()))


def notebook(cells: list[dict[str, Any]], lesson: str = NAME) -> dict[str, Any]:
    """A notebook of these cells; with an empty lesson its metadata do not say which one it is."""
    return {
        "cells": cells,
        "metadata": {"grader": {"lesson": lesson}} if lesson else {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def solved(**texts: str) -> dict[str, Any]:
    """The learner's notebook with every exercise solved, but for those given here."""
    return fill(pristine(), RIGHT | texts)


def fill(notebook: dict[str, Any], answers: Mapping[str, str]) -> dict[str, Any]:
    """A copy of a learner's notebook with these texts in the exercises' cells, the others' left as they are."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook["cells"]:
        about = cell["metadata"].get("grader", {})
        if about.get("role") == "exercise" and about["exercise"] in answers:
            cell["source"] = answers[about["exercise"]]
    return notebook


def write(path: Path, content: dict[str, Any] | str | bytes) -> Path:
    """Writes a notebook, or whatever stands in for one."""
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def install(monkeypatch) -> None:
    """Makes the toy the course of this test and of what it starts, as `--course` does; conftest.py takes it away again."""
    monkeypatch.setenv(COURSE_ENV, str(FOLDER))
    kernel_course.cache_clear()
