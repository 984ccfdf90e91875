"""Writes what is made of a lesson: the learner's notebook, the solved one with what its cells show, the notes for instructors."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from grader.authoring import kernel, teaching
from grader.authoring.build import checked_cells, solution_notebook
from grader.course import prose
from grader.course.course import Course
from grader.course.percent import Cell
from grader.course.spec import Lesson
from grader.course.stubs import encode, learner_notebook
from grader.util.errors import AuthorError, LintError
from grader.util.files import write_whole

Ran = list[tuple[int | None, list[dict[str, Any]]]]  # of each cell: its execution count and its outputs
CELL_TIMEOUT_S = 180
WIDGET = "application/vnd.jupyter.widget-view+json"
# What differs from one run, or one machine, to the next and tells a reader nothing: (a sign of it, all of it, instead).
# The sign is looked for first: a picture's base64 is one word of a hundred thousand characters.
_CHANGING = (
    ("ipykernel_", re.compile(r"\S*ipykernel_\d+[/\\]\d+\.py"), "<this cell>"),
    ("0x", re.compile(r"\b0x[0-9a-f]{8,}"), "0x…"),
)


def build(course: Course, name: str, anew: bool = False) -> None:
    """Writes all that is made of a lesson. What its cells show is kept where the stored run is of the same code.

    anew: run the cells all the same.
    Raises: AuthorError, with nothing written, where a cell or a quoted number fails, or what the lesson's run needs is missing.
    """
    cells, lesson = checked_cells(course, name)
    solved, file = solution_notebook(course, name, cells, lesson), course.relative(course.source_path(name))
    stored = None if anew else stored_run(course, name, solved)
    if stored is None:
        stored = _run_anew(course, name, file, cells, lesson, solved)
    said, outputs = stored
    solved = solution_notebook(course, name, cells, lesson, said)
    code = [cell for cell in solved["cells"] if cell["cell_type"] == "code"]
    for cell, (count, shown) in zip(code, outputs, strict=True):
        cell["execution_count"], cell["outputs"] = count, shown
    solved["metadata"]["grader"]["torch"] = torch_version()
    learner = learner_notebook(name, cells, lesson, said, course.nav_links(name), course.opening(name))
    write_whole(course.notebook_path(name), encode(learner))
    write_whole(course.solution_path(name), encode(solved))
    teaching.path(course, name).parent.mkdir(parents=True, exist_ok=True)
    write_whole(teaching.path(course, name), teaching.page(course, name, cells, lesson, said))


def stored_run(course: Course, name: str, solved: dict[str, Any]) -> tuple[prose.QuotedValues, Ran] | None:
    """(values of the quoted numbers, a pair for each code cell) of the stored notebook; None where it is of other code."""
    try:
        stored = json.loads(course.solution_path(name).read_text(encoding="utf-8"))
        about, code = stored["metadata"]["grader"], [c for c in stored["cells"] if c["cell_type"] == "code"]
        if about["torch"] != torch_version() or about["built_from"] != solved["metadata"]["grader"]["built_from"]:
            return None
        return about.get("quoted", ()), [(cell["execution_count"], cell["outputs"]) for cell in code]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _run_anew(
    course: Course, name: str, file: str, cells: Sequence[Cell], lesson: Lesson, solved: dict[str, Any]
) -> tuple[prose.QuotedValues, Ran]:
    if lesson.needs:
        _ask_for(course, lesson.needs, file)
    for left in kernel.checkpoints_folder(course).glob(f"{name}.*"):
        left.unlink()  # what this lesson trains is trained anew
    try:
        ran = run(course, solved)
    except kernel.KernelError as error:
        raise AuthorError([LintError(file, 0, str(error))]) from None
    said = _quoted_values(file, prose.learner_cells(cells), ran)
    return said, [shown for shown, cell in zip(ran, solved["cells"], strict=True) if cell["cell_type"] == "code"]


def torch_version() -> str:
    """Of the torch that is installed, '' for none: beside the files that it was built from, what a stored run depends on."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return ""


def _ask_for(course: Course, needs: str, file: str) -> None:
    """Raises AuthorError where the extra is missing: an empty run would take the place of a stored one."""
    extra = course.module(f"shared.data.{needs}")
    if not extra.available():
        sentence = (
            f"its stored run needs {needs}, so nothing was written and the stored run stays. {extra.how_to_get()}"
        )
        raise AuthorError([LintError(file, 0, sentence)])


def _quoted_values(file: str, cells: Sequence[Cell], outputs: Ran) -> list[tuple[str, str]]:
    """The values of all quoted numbers. Raises: AuthorError for the first cell that raised or number that could not be had."""
    said = []
    for cell, (_, shown) in zip(cells, outputs, strict=False):  # below the cells of the source stand the links
        asked = prose.asked_in(cell.text) if cell.role == "prose" else ()
        for at, output in enumerate(shown):
            if output["output_type"] == "error":
                what = f"{{{{ {asked[at].text} }}}}" if asked else "this cell"
                line = cell.line + (asked[at].line if asked else 0)
                sentence = f"{what} raises {output['ename']}: {output['evalue'] or 'no message'}"
                raise AuthorError([LintError(file, line, sentence)])
        said += [
            (one.text, "".join(output["text"])) for one, output in zip(asked, shown, strict=False)
        ]  # code quotes nothing
    return said


def run(course: Course, notebook: dict[str, Any], timeout_s: float = CELL_TIMEOUT_S) -> Ran:
    """Executes a notebook's cells, each for at most timeout_s; stops after the first that raises.

    Returns: for each cell (execution count, outputs), steadied; for Markdown (None, an output for each number that it
    quotes); (None, []) for what did not run.
    """
    return [
        (count, [_steady(output) for output in shown])
        for count, shown in kernel.run(course, notebook["cells"], timeout_s)
    ]


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
