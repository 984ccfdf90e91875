"""A learner's folder of notebooks: put a lesson back as it was, or lay work over a newer lesson.

Nothing is overwritten without a dated copy in the folder's backups/.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from grader.course import registry
from grader.course.stubs import digest, encode
from grader.source.definitions import defined_names
from grader.submission.ipynb import ROLES
from grader.util import links
from grader.util.errors import WorkspaceError

BACKUPS = "backups"
Cell = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """What was done to a lesson. kept: names of exercises whose cells are the learner's; exercise: the only one that was put back."""

    lesson: str
    path: Path
    backup: Path | None
    kept: tuple[str, ...] = ()
    changed: bool = True
    exercise: str = ""

    def __str__(self) -> str:
        if self.exercise:
            return self._of_exercise()
        if not self.changed:
            return f"{self.lesson} is current; nothing was changed."
        before = f"; the notebook as it was: {self.backup}" if self.backup else ""
        kept = f", with your work on {', '.join(self.kept)}" if self.kept else ""
        return f"{self.path} is the lesson as this version has it{kept}{before}."

    def _of_exercise(self) -> str:
        if not self.changed:
            return f"The cell of {self.exercise} in {self.path} is as the course has it; nothing was changed."
        return f"The cell of {self.exercise} in {self.path} is as the course has it; the notebook as it was: {self.backup}."


def folder(asked: Path | None) -> Path:
    """The folder of notebooks: the one asked for, else notebooks/ here, else this one.

    Raises: WorkspaceError where the one asked for is not a folder, and where notebooks/ is a link, which nobody asked for.
    """
    if asked is None:
        if links.is_link(Path("notebooks")):
            raise WorkspaceError(f"{links.told(Path('notebooks'))}; links are not followed: name the folder itself.")
        return Path("notebooks") if Path("notebooks").is_dir() else Path(".")
    if not asked.is_dir():
        raise WorkspaceError(f"{asked} is not a folder; --folder names the one that holds your notebooks.")
    return asked


def reset(lesson: str, place: Path) -> Change:
    """Puts a lesson's notebook back as the course has it; what was there is kept as a backup.

    Raises: WorkspaceError where the notebook or backups/ is a link; nothing is changed then.
    """
    path = place / f"{lesson}.ipynb"
    backup = _back_up(path)
    _write(path, place, encode(registry.handed_out(lesson)).encode())
    return Change(lesson, path, backup)


def reset_exercise(name: str, place: Path) -> Change:
    """Puts one exercise's cell back as the course has it, and leaves all others; the notebook as it was is kept as a backup.

    Raises: WorkspaceError as update() does.
    """
    lesson = registry.lesson_of(name)
    path = place / f"{lesson}.ipynb"
    theirs, ours = _read(path), registry.pristine(lesson)
    stubs = {cell["metadata"]["grader"]["exercise"]: cell for cell in ours["cells"] if _role(cell) == "exercise"}
    answers = [at for at, cell in enumerate(theirs["cells"]) if _exercise(cell, stubs) == name]
    if not answers:  # its cell was deleted: merging puts it where it belongs
        cells = merge(theirs["cells"], ours["cells"])[0]
    else:
        cells = [stubs[name] if at == answers[0] else cell for at, cell in enumerate(theirs["cells"]) if at not in answers[1:]]
    if cells == theirs["cells"]:
        return Change(lesson, path, None, changed=False, exercise=name)
    backup = _back_up(path)
    _write(path, place, encode({**theirs, "cells": cells}).encode())
    return Change(lesson, path, backup, exercise=name)


def stub(name: str) -> str:
    """The text of an exercise's cell as the course has it."""
    cells = registry.pristine(registry.lesson_of(name))["cells"]
    return next(_text(cell) for cell in cells if _role(cell) == "exercise" and _said(cell, "exercise") == name)


def holds(path: Path, text: str) -> bool:
    """Whether some cell of a notebook's file has exactly this text. Raises: WorkspaceError."""
    return any(_text(cell).strip() == text.strip() for cell in _read(path)["cells"])


def update(lesson: str, place: Path) -> Change:
    """Lays a learner's cells over this version of a lesson: its text and given cells, their work.

    Raises: WorkspaceError where the notebook is not there or can't be read, and as reset() does.
    """
    path = place / f"{lesson}.ipynb"
    theirs = _read(path)
    ours = registry.handed_out(lesson)
    merged, kept = merge(theirs["cells"], ours["cells"])
    if merged == theirs["cells"] and theirs["metadata"].get("grader") == ours["metadata"]["grader"]:
        return Change(lesson, path, None, changed=False)
    backup = _back_up(path)
    _write(path, place, encode({**ours, "cells": merged}).encode())
    return Change(lesson, path, backup, kept)


def merge(theirs: Sequence[Cell], ours: Sequence[Cell]) -> tuple[list[Cell], tuple[str, ...]]:
    """The cells of `ours` with the work in `theirs`; and the exercises that have some.

    An exercise's cells stand where its stub stood. A cell that the learner added follows the cell of the
    course that it followed before. A cell of the course that the learner changed is the course's again.
    """
    stubs = {cell["metadata"]["grader"]["exercise"]: cell for cell in ours if _role(cell) == "exercise"}
    known = {cell["id"]: cell for cell in ours}
    answers: dict[str, list[Cell]] = {}
    added: dict[str | None, list[Cell]] = {None: []}
    last: str | None = None  # the id, in `ours`, of the cell of the course that we passed
    outputs: dict[str, Cell] = {}
    for cell in theirs:
        exercise = _exercise(cell, stubs)
        if exercise:
            last = stubs[exercise]["id"]
            if not _untouched(cell, stubs[exercise]):
                answers.setdefault(exercise, []).append(cell)
        elif (same := _counterpart(cell, ours, known)) is not None:
            last = same["id"]
            outputs[last] = cell
        elif _role(cell) in ("", "exercise") and digest(_text(cell)) != _said(cell, "stub"):
            added.setdefault(last, []).append(cell)
    merged: list[Cell] = list(added[None])
    for cell in ours:
        exercise = cell["metadata"]["grader"].get("exercise") if _role(cell) == "exercise" else None
        work = answers.get(exercise, []) if exercise else []
        merged += _as_answers(work, cell) if work else [_with_outputs(cell, outputs.get(cell["id"]))]
        merged += added.get(cell["id"], [])
    return _with_unique_ids(merged, known), tuple(name for name in stubs if name in answers)


def _exercise(cell: Cell, stubs: Mapping[str, Cell]) -> str | None:
    """The exercise that a learner's cell answers: by its metadata, else by its id, else by the name that it defines."""
    role, said = _role(cell), _said(cell, "exercise")
    if role == "exercise" and said in stubs:
        return said
    same = next((name for name, stub in stubs.items() if stub["id"] == cell.get("id")), None)
    if same:
        return same
    if role not in ("", "exercise") or cell["cell_type"] != "code":
        return None
    defined = defined_names(_text(cell))
    return next((name for name in stubs if name in defined), None)


def _untouched(cell: Cell, stub: Cell) -> bool:
    text = _text(cell)
    return text == _text(stub) or digest(text) == _said(cell, "stub")


def _counterpart(cell: Cell, ours: Sequence[Cell], known: Mapping[str, Cell]) -> Cell | None:
    """The cell of the course that a learner's cell is, or was before they changed it."""
    same = known.get(cell.get("id", ""))
    if same is not None and (_role(cell) or _text(same) == _text(cell)):
        return same
    for candidate in ours:
        if candidate["cell_type"] == cell["cell_type"] and _text(candidate) == _text(cell):
            return candidate
    return None


def _as_answers(work: Sequence[Cell], stub: Cell) -> Iterator[Cell]:
    for cell in work:
        yield {**cell, "id": stub["id"], "metadata": {**cell["metadata"], **stub["metadata"]}}


def _with_outputs(cell: Cell, theirs: Cell | None) -> Cell:
    if theirs is None or cell["cell_type"] != "code" or _text(theirs) != _text(cell):
        return cell
    return {**cell, "outputs": theirs["outputs"], "execution_count": theirs["execution_count"]}


def _with_unique_ids(cells: Sequence[Cell], known: Mapping[str, Cell]) -> list[Cell]:
    """Gives a cell whose id another one has a new id, for example the second half of a split cell."""
    taken: set[str] = set()
    made = []
    for cell in cells:
        id, number = cell.get("id") or "added", 1
        mine = _role(cell) != "" or id not in known
        while id in taken or not mine:
            number, mine = number + 1, True
            id = f"{(cell.get('id') or 'added')[:58]}-{number}"
        taken.add(id)
        made.append({**cell, "id": id})
    return made


def _said(cell: Cell, key: str) -> str:
    """What the course's metadata of a cell say, '' for anything but text: whoever writes notebooks may put anything there."""
    about = cell.get("metadata", {}).get("grader")
    said = about.get(key) if isinstance(about, Mapping) else None
    return said if isinstance(said, str) else ""


def _role(cell: Cell) -> str:
    role = _said(cell, "role")
    return role if role in (*ROLES, "prose") else ""


def _text(cell: Cell) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def _read(path: Path) -> dict[str, Any]:
    """A notebook in the current format, its sources as lists of lines, as `build` writes them."""
    import nbformat

    data = _bytes(path)
    if data is None:
        raise WorkspaceError(f"{path} is not there; `grader reset {path.stem}` puts the lesson there.")
    try:
        notebook = nbformat.reads(data.decode("utf-8"), as_version=4)
        # Half a surrogate pair, which JSON can name, stands in no file.
        plain = json.loads(nbformat.writes(notebook).encode("utf-8", "replace").decode())
        nbformat.validate(plain)
    except Exception as error:  # nbformat raises many kinds for what is no notebook
        reason = str(error).partition("\n")[0][:200]
        advice = f"`grader reset {path.stem}` puts a fresh one in its place and keeps this one"
        raise WorkspaceError(f"{path} can't be read as a notebook ({reason}); {advice}.") from None
    return plain


def _bytes(path: Path) -> bytes | None:
    """What a file in the learner's folder holds; None: there is none. Raises: WorkspaceError for what is no file of theirs."""
    try:
        found = links.read(path, path.parent, sys.maxsize)
    except FileNotFoundError:
        return None
    except links.Linked as error:
        raise _refused(error) from None
    if found.data is None:
        raise WorkspaceError(f"{path} is no regular file; nothing was changed. Move it away first.")
    return found.data


def _back_up(path: Path) -> Path | None:
    """Copies a file, dated to the second, into backups/ beside it. Returns: the copy; None for no file."""
    data = _bytes(path)
    if data is None:
        return None
    stamp = datetime.now().strftime("%Y-%m-%d-%H%M%S")
    for number in range(1, 1000):
        again = f"-{number}" if number > 1 else ""
        copy = path.parent / BACKUPS / f"{path.stem}-{stamp}{again}.ipynb"
        if not os.path.lexists(copy):
            _write(copy, path.parent, data, like=path)
            return copy
    raise WorkspaceError(f"{path.parent / BACKUPS} is full of copies of this second; try again in a moment.")


def _write(path: Path, place: Path, data: bytes, like: Path | None = None) -> None:
    try:
        links.write(path, place, data, like)
    except links.Linked as error:
        raise _refused(error) from None


def _refused(error: links.Linked) -> WorkspaceError:
    return WorkspaceError(f"{error} Nothing was changed: remove the link, or name the folder itself with --folder.")
