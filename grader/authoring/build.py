"""From a lesson's source to its two notebooks: the learner's, with stubs, and the executed solution.

    solutions/NN_lesson/: lesson.py, exercises/*.py, figures.py
      → notebooks/NN_lesson.ipynb   stubs, no outputs
      → solutions/NN_lesson.ipynb   executed, with outputs
      → docs/teaching/NN_lesson.md  notes for instructors

All are committed. `build` writes them; `stale` says which of them no longer match their source.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from grader.authoring import notebook_run, teaching
from grader.authoring.lint import proofread
from grader.course import patches, percent
from grader.course.course import Course
from grader.course.stubs import as_cells, encode, notebook
from grader.util.digest import digest
from grader.util.errors import AuthorError, LintError
from grader.util.files import write_atomically


def check_source(course: Course, name: str) -> None:
    """Raises: AuthorError where a lesson's source is not as it should be, or does not fit its specification."""
    if problems := proofread(_file(course, name), course.cells(name), course.lesson(name)):
        raise AuthorError(problems)


def solution_notebook(course: Course, name: str, values: percent.QuotedValues | None = None) -> dict[str, Any]:
    """The solved notebook without outputs; its metadata say from which files it was built, and what its prose quotes.

    values: of the numbers that prose quotes; None before they are known.
    """
    about: dict[str, Any] = {"lesson": name, "built_from": _built_from(course, name)}
    if values:
        about["quoted"] = [list(pair) for pair in values]
    cells, lesson, links = course.cells(name), course.lesson(name), course.nav_links(name)
    return notebook(as_cells(cells, lesson, values, links, learner=False), about)


def build(course: Course, name: str, anew: bool = False) -> None:
    """Writes all that is made of a lesson. What its cells show is kept where the stored run is of the same code.

    anew: run the cells all the same.
    Raises: AuthorError, with no notebook written, where a cell or a quoted number fails, or what the lesson's run needs is missing.
    """
    check_source(course, name)
    solved = solution_notebook(course, name)
    values, results = (None if anew else stored_run(course, name, solved)) or _new_run(course, name, solved)
    solved = solution_notebook(course, name, values)
    code = [cell for cell in solved["cells"] if cell["cell_type"] == "code"]
    for cell, (count, outputs) in zip(code, results, strict=True):
        cell["execution_count"], cell["outputs"] = count, outputs
    solved["metadata"]["grader"]["torch"] = torch_version()
    page = teaching.page(course, name, values)
    write_atomically(course.solution_path(name), encode(solved))
    write_atomically(course.notebook_path(name), encode(course.handout_notebook(name)))
    write_atomically(teaching.path(course, name), page)


def stored_run(
    course: Course, name: str, solved: dict[str, Any]
) -> tuple[percent.QuotedValues, notebook_run.Outputs] | None:
    """(values of the quoted numbers, outputs of the code cells) of the stored notebook; None where it is of other code."""
    try:
        stored = json.loads(course.solution_path(name).read_text(encoding="utf-8"))
        about, code = stored["metadata"]["grader"], [c for c in stored["cells"] if c["cell_type"] == "code"]
        if about["torch"] != torch_version() or about["built_from"] != solved["metadata"]["grader"]["built_from"]:
            return None
        return about.get("quoted", ()), [(cell["execution_count"], cell["outputs"]) for cell in code]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _new_run(course: Course, name: str, solved: dict[str, Any]) -> tuple[percent.QuotedValues, notebook_run.Outputs]:
    extra = course.lesson(name).extra_data
    if extra and not (data := course.module(f"shared.data.{extra}")).available():
        # An empty run would take the place of a stored one.
        sentence = f"its stored run needs {extra}, so nothing was written and the stored run stays. {data.how_to_get()}"
        raise AuthorError([LintError(_file(course, name), 0, sentence)])
    for checkpoint in notebook_run.checkpoints_folder(course).glob(f"{name}.*"):
        checkpoint.unlink()  # what this lesson trains is trained anew
    try:
        results = notebook_run.run(course, solved["cells"])
    except notebook_run.RunError as error:
        raise AuthorError([LintError(_file(course, name), 0, str(error))]) from None
    values = _quoted_values(course, name, results)
    return values, [pair for pair, cell in zip(results, solved["cells"], strict=True) if cell["cell_type"] == "code"]


def torch_version() -> str:
    """Of the torch that is installed, '' for none: beside the files that it was built from, what a stored run depends on."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return ""


def _quoted_values(course: Course, name: str, results: notebook_run.Outputs) -> list[tuple[str, str]]:
    """The values of all quoted numbers. Raises: AuthorError for the first cell that raised, number that could not be had, or
    check that does not pass."""
    values = []
    cells = percent.learner_cells(course.cells(name))
    for cell, (_, outputs) in zip(cells, results, strict=False):  # below the cells of the source stand the links
        quotes = percent.quotes(cell.text) if cell.role == "prose" else []
        for index, output in enumerate(outputs):
            if output["output_type"] == "error":
                source, line = (f"{{{{ {quotes[index].text} }}}}", quotes[index].line) if quotes else ("this cell", 0)
                sentence = f"{source} raises {output['ename']}: {output['evalue'] or 'no message'}"
                raise AuthorError([LintError(_file(course, name), cell.line + line, sentence)])
        if quotes:
            values += [(quote.text, "".join(output["text"])) for quote, output in zip(quotes, outputs, strict=True)]
        if cell.role == "check" and not _passes(outputs):
            sentence = f"the solution does not pass check({cell.exercise}); `grader audit {name[:2]}` says why."
            raise AuthorError([LintError(_file(course, name), cell.line, sentence)])
    return values


def _passes(outputs: list[dict[str, Any]]) -> bool:
    """Whether a check cell shows a pass."""
    return any("".join(output.get("data", {}).get("text/plain", "")).startswith("PASSED: ") for output in outputs)


def stale(course: Course, name: str) -> list[str]:
    """One sentence for each file made from a lesson that is not what its source makes. Raises: AuthorError."""
    check_source(course, name)
    values, notes = course.quoted_values(name), teaching.path(course, name)
    learner, solution = course.notebook_path(name), course.solution_path(name)
    problems = {
        learner: _stale_text(learner, encode(course.handout_notebook(name))),
        solution: _stale_solution(solution, solution_notebook(course, name, values)),
        notes: _stale_text(notes, teaching.page(course, name, values)),
    }
    return [f"{course.relative(path)}: {problem}" for path, problem in problems.items() if problem]


def _file(course: Course, name: str) -> str:
    """A lesson's source, as messages name it."""
    return course.relative(course.source_path(name))


def _built_from(course: Course, name: str) -> str:
    """A digest of what decides a solution notebook's outputs: the code of its cells, the numbers that its prose quotes, the
    modules in the lesson's folder, shared figures and data, the drawing itself; but not what other lessons' runs leave to it."""
    drawing = Path(__file__).resolve().parents[1] / "figures"
    shared = course.solutions / "shared"
    folders = [course.folder(name), course.folder(name) / "exercises", shared / "figures", shared / "data", drawing]
    files = [path for folder in folders for path in sorted(folder.glob("*.py")) if path.name != "lesson.py"]
    run = [
        cell.text if cell.role != "prose" else " ".join(quote.text for quote in percent.quotes(cell.text))
        for cell in percent.learner_cells(course.cells(name))
    ]
    return digest("\0".join([*filter(None, run), *map(_code, files)]))


@cache
def _code(path: Path) -> str:
    """A file without comments, none of which changes what a cell shows."""
    return patches.normal_form(path.read_text(encoding="utf-8"))


def _stale_text(path: Path, expected: str) -> str:
    if not path.is_file():
        return "is missing."
    return "" if path.read_text(encoding="utf-8") == expected else "is not what its source builds."


def _stale_solution(path: Path, expected: dict[str, Any]) -> str:
    """Times and figures differ from run to run, so the stored outputs are asked for, not compared."""
    if not path.is_file():
        return "is missing."
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
        if not all(cell["execution_count"] for cell in code):
            return "has cells that were not run."
        if any(output["output_type"] == "error" for cell in code for output in cell["outputs"]):
            return "contains an error."
        if any(cell["metadata"]["grader"]["role"] == "check" and not _passes(cell["outputs"]) for cell in code):
            return "has a check that does not pass."
        for cell in code:
            cell.update(execution_count=None, outputs=[])
        stored["metadata"]["grader"].pop("torch", None)
        if (stored["cells"], stored["metadata"]) != (expected["cells"], expected["metadata"]):
            return "is older than its source, its specification or its figures."
    except (ValueError, KeyError, TypeError):
        return "was not written by `grader build`."
    return ""
