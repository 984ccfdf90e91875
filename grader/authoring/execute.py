"""Writes both notebooks of a lesson: the learner's as it is made, the solution's with what its cells show."""

from __future__ import annotations

import re
from typing import Any

from grader.authoring import kernel
from grader.authoring.build import checked_cells, solution_notebook, solution_path
from grader.course.registry import notebook_path
from grader.course.stubs import encode, learner_notebook
from grader.util.errors import AuthorError, LintError
from grader.util.files import write_whole

CELL_TIMEOUT_S = 180
WIDGET = "application/vnd.jupyter.widget-view+json"
# What differs from one run, or one machine, to the next and tells a reader nothing: (a sign of it, all of it, instead).
# The sign is looked for first: a picture's base64 is one word of a hundred thousand characters.
_CHANGING = (
    ("ipykernel_", re.compile(r"\S*ipykernel_\d+[/\\]\d+\.py"), "<this cell>"),
    ("0x", re.compile(r"\b0x[0-9a-f]{8,}"), "0x…"),
)


def build(name: str) -> None:
    """Writes both notebooks of a lesson. Raises: AuthorError, with nothing written, where a cell fails."""
    cells, lesson = checked_cells(name)
    learner = encode(learner_notebook(name, cells, lesson))
    solved, file = solution_notebook(name, cells, lesson), f"solutions/{name}.py"
    try:
        outputs = run(solved)
    except kernel.KernelError as error:
        raise AuthorError([LintError(file, 0, str(error))]) from None
    for cell, source, (count, shown) in zip(solved["cells"], cells, outputs, strict=True):
        for output in shown:
            if output["output_type"] == "error":
                sentence = f"this cell raises {output['ename']}: {output['evalue'] or 'no message'}"
                raise AuthorError([LintError(file, source.line, sentence)])
        if cell["cell_type"] == "code":
            cell["execution_count"], cell["outputs"] = count, shown
    write_whole(notebook_path(name), learner)
    write_whole(solution_path(name), encode(solved))


def run(notebook: dict[str, Any], timeout_s: float = CELL_TIMEOUT_S) -> list[tuple[int | None, list[dict[str, Any]]]]:
    """Executes a notebook's cells, each for at most timeout_s; stops after the first that raises.

    Returns: for each cell (execution count, outputs), steadied; (None, []) for what did not run.
    """
    return [(count, [_steady(output) for output in shown]) for count, shown in kernel.run(notebook["cells"], timeout_s)]


def _steady(output: Any) -> dict[str, Any]:
    """An output as plain data, without what changes from run to run."""
    plain = {key: value for key, value in output.items() if key != "transient"}
    if "text" in plain:
        plain["text"] = _lines(plain["text"])
    if "data" in plain:
        data = dict(plain["data"])
        if data.pop(WIDGET, None):
            data["text/plain"] = "(A control appears here when this cell is run.)"
        plain["data"] = {mime: _lines(value) if mime.startswith("text/") else value for mime, value in data.items()}
    return plain


def _lines(text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    for sign, pattern, instead in _CHANGING:
        lines = [pattern.sub(instead, line) if sign in line else line for line in lines]
    return lines
