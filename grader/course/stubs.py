"""A lesson's cells as notebook cells: stubs in place of solutions, ids that last, roles in the metadata.

The learner's notebook follows from the source alone, so that no edit of the file in notebooks/ changes what
is graded.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from grader.course import percent
from grader.course.course_folder import DISTRIBUTION
from grader.course.spec import Exercise, Lesson
from grader.util.digest import digest
from grader.util.words import pluralize

BEGIN, END, TASK = "# region solution", "# endregion", "@exercise"  # what an author writes in a source
# One that is never closed ends with its cell: nothing of it is shown.
SOLUTION = re.compile(
    rf"^(?P<indent>[ \t]*){BEGIN}:?(?P<stub>.*)\n(?P<solution>[\s\S]*?)(?:^[ \t]*{END}[ \t]*$|\Z)", re.MULTILINE
)
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")
LANGUAGE = {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"}


def learner_notebook(
    cells: Sequence[percent.Cell],
    lesson: Lesson,
    values: percent.QuotedValues | None = None,
    nav_links: str = "",
    opening: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """The notebook that a learner opens: stubs in place of solutions, no outputs.

    values, nav_links: see `as_cells`. opening: cells that come before the first code.
    """
    notebook_cells = as_cells(cells, lesson, values, nav_links, learner=True)
    first = next(
        (place for place, cell in enumerate(notebook_cells) if cell["cell_type"] == "code"), len(notebook_cells)
    )
    notebook_cells[first:first] = opening
    for cell in notebook_cells:
        about = cell["metadata"]["grader"]
        # Tells `grader update` an untouched stub from work, and what a learner changed from what the course did.
        about["stub" if about["role"] == "exercise" else "text"] = digest("".join(cell["source"]))
    version = digest(json.dumps(notebook_cells, sort_keys=True))
    return notebook(notebook_cells, {"lesson": lesson.name, "version": version})


def stub_text(text: str, name: str) -> str:
    """The text of an exercise cell with each solution region replaced by its stub."""
    otherwise = f'raise NotImplementedError("{name} is not written yet")'
    return SOLUTION.sub(lambda region: region["indent"] + (region["stub"].strip() or otherwise), text)


def strip_markers(text: str) -> str:
    """The text of an exercise cell without the markers of its regions."""
    return "\n".join(line for line in text.splitlines() if not line.strip().startswith((BEGIN, END)))


def task(text: str, exercise: Exercise) -> str:
    """A Markdown cell with its '@exercise name' line expanded from the specification."""
    about = [pluralize(exercise.minutes, "minute"), pluralize(exercise.points, "point")]
    if exercise.difficulty:
        about.insert(0, f"{dots(exercise.difficulty)} difficulty {exercise.difficulty} of 3")
    head = f"### Exercise: `{exercise.name}`\n\n*{' · '.join(about)}* — {exercise.task}"
    return head + text[text.index("\n") :] if "\n" in text else head


def dots(difficulty: int) -> str:
    """A difficulty of 1 to 3 as '●○○' to '●●●'; the number stands beside it, since a screen reader spells the dots."""
    return "●" * difficulty + "○" * (3 - difficulty)


def encode(notebook: dict[str, Any]) -> str:
    """The notebook as the text of its file, always in the same form."""
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def as_cells(
    cells: Sequence[percent.Cell], lesson: Lesson, values: percent.QuotedValues | None, nav_links: str, learner: bool
) -> list[dict[str, Any]]:
    """The cells of a learner's notebook, with stubs and, below each prediction that has options, buttons; or of the solved one.

    values: those of the numbers that prose quotes; None leaves them as the source has them. nav_links: Markdown for one more
    cell below the last, with links. Raises: percent.MissingValue.
    """
    tasks = {f"{TASK} {exercise.name}": exercise for exercise in lesson.exercises}
    remaining = None if values is None else iter(values)
    counts: Counter[str] = Counter()
    notebook_cells, predictions = [], 0
    for cell in percent.learner_cells(cells):
        is_prose, text, letters = cell.role == "prose", cell.text, ""
        if cell.mark in tasks:
            text = task(text, tasks[cell.mark])
        elif cell.mark == percent.PREDICT:
            prediction = percent.prediction(text)
            text, letters = percent.prediction_markdown(prediction), percent.options(prediction.question)
            predictions += 1
        about = {"role": cell.role}
        metadata: dict[str, Any] = {"grader": about}
        if cell.exercise:
            about["exercise"] = cell.exercise
        if cell.role == "exercise" and learner:
            text = stub_text(text, cell.exercise)
        elif cell.role == "exercise":
            text = strip_markers(text)
        if is_prose and learner and text.startswith(percent.FURTHER):
            metadata["jp-MarkdownHeadingCollapsed"] = True  # JupyterLab's
        if percent.HIDE_INPUT in cell.tags:
            metadata |= {"jupyter": {"source_hidden": True}, "cellView": "form"}  # JupyterLab's, Colab's
        if tags := [tag for tag in cell.tags if not (learner and tag.startswith("nbval-"))]:
            metadata["tags"] = tags
        id = _id(cell, text, counts)  # by the words as written, whatever the numbers of this run
        if is_prose and remaining is not None:
            text = percent.fill_values(text, remaining)
        notebook_cells.append(code_or_prose(id, text, metadata, is_prose))
        if learner and letters:  # a cell that a learner runs to choose one of the options
            number = f"{lesson.name[:2]}.{predictions}"
            call = f'from grader import predict\n\npredict("{number}", "{letters}")'
            id = f"predict-{number.replace('.', '-')}"
            notebook_cells.append(code_or_prose(id, call, {"grader": {"role": "demo"}}, False))
    if nav_links:
        notebook_cells.append(code_or_prose("way", nav_links, {"grader": {"role": "prose"}}, True))
    return notebook_cells


def code_or_prose(id: str, text: str, metadata: dict[str, Any], prose: bool) -> dict[str, Any]:
    """One cell in nbformat 4.5, not executed."""
    cell: dict[str, Any] = {"id": id, "metadata": metadata, "source": text.splitlines(keepends=True)}
    if prose:
        return {"cell_type": "markdown", **cell}
    return {"cell_type": "code", "execution_count": None, "outputs": [], **cell}


def opening_cells(lesson: str, torch: bool, address: str) -> list[dict[str, Any]]:
    """What a learner reads before the first code: how to get the grader where the notebook is opened alone, as in Colab.

    Badges stand there where the repository has an address that those services know. torch: whether the lesson needs it. The code is
    commented, so that it does nothing where the grader is there.
    """
    text = (
        "**Opened alone, as in Colab?** Then take the `#` from the next line and run it once: it installs the grader. "
        "In the course's own setup leave it as it is."
    )
    if repository := _GITHUB.fullmatch(address):
        path = f"notebooks/{lesson}.ipynb"
        colab = f"https://colab.research.google.com/github/{repository[1]}/blob/main/{path}"
        binder = f"https://mybinder.org/v2/gh/{repository[1]}/HEAD?labpath={path}"
        text += (
            f"\n\n[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({colab}) "
            f"[![Open in Binder](https://mybinder.org/badge_logo.svg)]({binder})"
        )
    requirement = f"{DISTRIBUTION}[torch]" if torch else DISTRIBUTION
    code = f'# %pip install -q "{requirement} @ git+{address}"' if address else f'# %pip install -q "{requirement}"'
    return [
        code_or_prose("opened-alone", text, {"grader": {"role": "prose"}}, True),
        code_or_prose("install", code, {"grader": {"role": "demo"}}, False),
    ]


def _id(cell: percent.Cell, text: str, counts: Counter[str]) -> str:
    """An id that survives edits elsewhere: by role and exercise, else by the cell's own words."""
    id = f"{cell.role}-{cell.exercise or digest(text)}"
    if cell.mark.startswith(TASK):
        id = f"task-{cell.mark.removeprefix(TASK).strip()}"
    id = id[:60]  # nbformat allows 64
    counts[id] += 1
    return id if counts[id] == 1 else f"{id}-{counts[id]}"


def notebook(cells: list[dict[str, Any]], about: dict[str, Any]) -> dict[str, Any]:
    """A notebook in nbformat 4.5. about: what its metadata say under 'grader'."""
    metadata = {"grader": about, "kernelspec": KERNELSPEC, "language_info": LANGUAGE}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
