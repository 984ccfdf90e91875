"""A learner's cells laid over a lesson: its text and given cells, their work where each exercise stands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from grader.source.definitions import defined_names
from grader.submission.ipynb import ROLES, course_metadata
from grader.util.digest import digest

Cell = dict[str, Any]


def merge(notebook: Sequence[Cell], lesson: Sequence[Cell]) -> tuple[list[Cell], tuple[str, ...], tuple[str, ...]]:
    """The cells of `lesson` with the work in `notebook`; the exercises that have some; how the cells begin that were changed.

    An exercise's cells stand where its stub stood. A cell that the learner added follows the cell of the
    course that it followed before. A cell of the course that the learner changed is the course's again, and what they
    wrote follows it as a cell of theirs, which grading does not run.
    """
    stubs = stubs_of(lesson)
    by_id = {cell["id"]: cell for cell in lesson}
    answers: defaultdict[str, list[Cell]] = defaultdict(list)
    additions: defaultdict[str | None, list[Cell]] = defaultdict(list)
    last: str | None = None  # the id, in `lesson`, of the cell that we passed
    outputs: dict[str, dict[str, Any]] = {}  # what a cell of `lesson` has shown when it ran
    beginnings: list[str] = []
    for cell in notebook:
        is_own = _role(cell) in ("", "exercise")
        exercise = exercise_of(cell, stubs)
        if exercise:
            last = stubs[exercise]["id"]
            if not _untouched(cell, stubs[exercise]):
                answers[exercise].append(cell)
        elif _about(cell, "yours"):
            additions[last].append(cell)
        elif (same := _counterpart(cell, lesson, by_id)) is not None or not is_own:
            if same is not None:
                last = same["id"]
                ran = cell["cell_type"] == same["cell_type"] == "code" and text_of(cell) == text_of(same)
                outputs[same["id"]] = {key: cell[key] for key in ("outputs", "execution_count")} if ran else {}
            if _is_changed(cell, same):
                copy = _as_own(cell, same)
                additions[last].append(copy)
                beginnings.append(_beginning(copy))
        elif digest(text_of(cell)) != _about(cell, "stub"):
            additions[last].append(cell)
    merged = [*additions[None]]
    for cell in lesson:
        work = answers[_about(cell, "exercise")] if _role(cell) == "exercise" else []
        work = [{**answer, "id": cell["id"], "metadata": {**answer["metadata"], **cell["metadata"]}} for answer in work]
        merged += work or [{**cell, **outputs.get(cell["id"], {})}]
        merged += additions[cell["id"]]
    return _with_unique_ids(merged, by_id), tuple(name for name in stubs if answers[name]), tuple(beginnings)


def exercise_of(cell: Cell, stubs: Mapping[str, Cell]) -> str | None:
    """The exercise that a learner's cell answers: by its metadata, else by its id, else by the name that it defines."""
    role, exercise = _role(cell), _about(cell, "exercise")
    if role == "exercise" and exercise in stubs:
        return exercise
    same = next((name for name, stub in stubs.items() if stub["id"] == cell.get("id")), None)
    if same:
        return same
    if role not in ("", "exercise") or cell["cell_type"] != "code":
        return None
    defined = defined_names(text_of(cell))
    return next((name for name in stubs if name in defined), None)


def _untouched(cell: Cell, stub: Cell) -> bool:
    text = text_of(cell)
    return text == text_of(stub) or digest(text) == _about(cell, "stub")


def _counterpart(cell: Cell, lesson: Sequence[Cell], by_id: Mapping[str, Cell]) -> Cell | None:
    """The cell of the course that a learner's cell is, or was before they changed it."""
    same = by_id.get(cell.get("id", ""))
    if same is not None and (_role(cell) or text_of(same) == text_of(cell)):
        return same
    content = cell["cell_type"], text_of(cell)
    return next((other for other in lesson if (other["cell_type"], text_of(other)) == content), None)


def _is_changed(cell: Cell, same: Cell | None) -> bool:
    """Whether the learner, and not the course, wrote something into a cell of the course. same: what it is now, None where it is gone.

    A cell without a note of what it was counts as changed where it is not as it is now: nothing that may be a learner's is lost.
    """
    text, now = text_of(cell), text_of(same) if same else ""
    return text.strip() not in ("", now.strip()) and digest(text) != _about(cell, "text")


def _as_own(cell: Cell, same: Cell | None) -> Cell:
    """What the learner wrote in a cell of the course as a cell of theirs; of prose what stands around the course's, where that is whole."""
    text = text_of(cell)
    if cell["cell_type"] != "code" and same:
        text = text.replace(text_of(same), "", 1).strip("\n")
    role = "demo" if cell["cell_type"] == "code" else "prose"
    return {
        **cell,
        "id": f"yours-{digest(text)}",
        "metadata": {"grader": {"role": role, "yours": "yes"}},
        "source": text.splitlines(True),
    }


def _beginning(cell: Cell) -> str:
    words = (line.strip(" #*>-") for line in text_of(cell).splitlines())
    line = next(filter(None, words), text_of(cell).strip())
    return f"“{line[:40]}…”" if len(line) > 40 else f"“{line}”"


def _with_unique_ids(cells: Sequence[Cell], by_id: Mapping[str, Cell]) -> list[Cell]:
    """Gives a cell whose id another one has a new id, for example the second half of a split cell."""
    ids: set[str] = set()
    unique = []
    for cell in cells:
        id = cell.get("id") or "added"
        stem, number = id[:58], 1
        # The course's ids are for its own cells.
        while id in ids or _role(cell) == "" and id in by_id:
            number += 1
            id = f"{stem}-{number}"
        ids.add(id)
        unique.append({**cell, "id": id})
    return unique


def stubs_of(cells: Sequence[Cell]) -> dict[str, Cell]:
    """The stub of each exercise of a lesson, from the course's own cells."""
    return {cell["metadata"]["grader"]["exercise"]: cell for cell in cells if _role(cell) == "exercise"}


def work_on(name: str, stub: Cell, cells: Sequence[Cell]) -> list[Cell]:
    """The cells that answer an exercise and are not its stub any more."""
    return [cell for cell in cells if exercise_of(cell, {name: stub}) and not _untouched(cell, stub)]


def _about(cell: Cell, key: str) -> str:
    """What the course's metadata of a cell say, '' for anything but text."""
    value = course_metadata(cell).get(key)
    return value if isinstance(value, str) else ""


def _role(cell: Cell) -> str:
    role = _about(cell, "role")
    return role if role in (*ROLES, "prose") else ""


def text_of(cell: Cell) -> str:
    """What a cell holds, whether as one text or as lines."""
    return "".join(cell.get("source", ""))
