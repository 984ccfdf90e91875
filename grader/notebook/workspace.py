"""A learner's folder of notebooks: put a lesson back as it was, or lay work over a newer lesson.

Nothing is overwritten without a dated copy in the folder's backups/.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from grader.course.course import GLOSSARY
from grader.course.stubs import encode
from grader.notebook.kernel_course import kernel_course
from grader.notebook.merge import exercise_of, merge, stubs_of, text_of, work_on
from grader.notebook.record import has_lessons
from grader.util import libraries, links
from grader.util.errors import InputError
from grader.util.names import BACKUPS

FOLDER_ENV = "ATTENTION_COURSE_FOLDER"


@dataclass(frozen=True)
class Change:
    """What was done to a lesson's notebook.

    exercises: those whose cells are the learner's; beginnings: how the cells begin that hold what the learner wrote in the
    course's own.
    """

    path: Path
    backup: Path | None
    exercises: tuple[str, ...] = ()
    changed: bool = True
    beginnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.changed:
            return f"{self.path.stem} is up to date; nothing was changed."
        work = f", with your work on {', '.join(self.exercises)}" if self.exercises else ""
        backup = f"; the earlier notebook is kept: {self.backup}" if self.backup else ""
        beginnings = ", ".join(self.beginnings)
        below = f" What you wrote in the course's cells stands below them, in cells of your own: {beginnings}."
        return f"{self.path} is the lesson of this version{work}{backup}.{below if self.beginnings else ''}"


def folder(path: Path | None) -> Path:
    """The folder of notebooks: the one asked for, else the session's own, else notebooks/ here, else this one.

    Raises: InputError where the one asked for is not a folder, and where notebooks/ is a link, which nobody asked for.
    """
    if path is not None:
        if not path.is_dir():
            raise InputError(f"{path} is not a folder; name the folder of your notebooks with --folder.")
        return path
    session, default = session_folder(), Path("notebooks")
    if session is not None:
        return session
    if links.is_link(default):
        raise InputError(f"{links.sentence(default)}; links are not followed: name the folder itself.")
    return default if default.is_dir() else Path(".")


def session_folder() -> Path | None:
    """The folder that `make lab` was started for, by the environment that its terminals and kernels inherit; None elsewhere.

    In another folder of lessons, that one is meant.
    """
    location = os.environ.get(FOLDER_ENV)
    if not location or not os.path.isdir(location) or has_lessons(Path()) and not os.path.samefile(location, "."):
        return None
    try:
        near = os.path.relpath(location)
    except ValueError:  # another drive
        return Path(location)
    return Path(location if near.startswith("..") else near)


def reset(lesson: str, place: Path) -> Change:
    """Puts a lesson's notebook back as the course has it; what was there is kept as a backup.

    Raises: InputError where the notebook or backups/ is a link; nothing is changed then.
    """
    path = place / f"{lesson}.ipynb"
    backup = _back_up(path)
    _write(path, place, encode(kernel_course().handout_notebook(lesson)).encode())
    return Change(path, backup)


def reset_exercise(name: str, place: Path) -> str:
    """Puts one exercise's cell back as the course has it, and leaves all others; the notebook as it was is kept as a backup.

    Returns: what was done, in a sentence. Raises: InputError as update() does.
    """
    lesson = kernel_course().lesson_of(name)
    path = place / f"{lesson}.ipynb"
    work, original = _read(path), kernel_course().handout_notebook(lesson)
    stubs = stubs_of(original["cells"])
    answers = [number for number, cell in enumerate(work["cells"]) if exercise_of(cell, stubs) == name]
    if answers:
        cells = [cell for number, cell in enumerate(work["cells"]) if number not in answers]
        cells.insert(answers[0], stubs[name])
    else:  # its cell was deleted: merging puts it where it belongs
        cells = merge(work["cells"], original["cells"])[0]
    if cells == work["cells"]:
        return f"The cell of {name} in {path} is already the course's original; nothing was changed."
    backup = _back_up(path)
    _write(path, place, encode({**work, "cells": cells}).encode())
    return f"The cell of {name} in {path} is the course's original again; the earlier notebook is kept: {backup}."


def has_work(lesson: str, exercises: Sequence[str] | None, place: Path) -> bool:
    """Whether a lesson's notebook holds a learner's work on these exercises; None: or any cell that is not the course's."""
    path = place / f"{lesson}.ipynb"
    try:
        work, original = _read(path)["cells"], kernel_course().handout_notebook(lesson)["cells"]
    except InputError:
        return os.path.lexists(path)  # what cannot be read may be anything
    if exercises is None:
        return [text_of(cell) for cell in work] != [text_of(cell) for cell in original]
    stubs = stubs_of(original)
    return any(work_on(name, stubs[name], work) for name in exercises)


def stub(name: str) -> str:
    """The text of an exercise's cell as the course has it."""
    return text_of(stubs_of(kernel_course().pristine(kernel_course().lesson_of(name))["cells"])[name])


def has_cell(path: Path, text: str) -> bool:
    """Whether some cell of a notebook's file has exactly this text. Raises: InputError."""
    return any(text_of(cell).strip() == text.strip() for cell in _read(path)["cells"])


def keep_copy(place: Path, lesson: str, name: str, code: str) -> Path | None:
    """Copies a lesson's notebook to backups/, or the code of an exercise where the file does not hold it as it ran.

    Returns: the copy, None where there is nothing to copy.
    """
    path = place / f"{lesson}.ipynb"
    try:
        if not code or os.path.lexists(path) and has_cell(path, code):
            return _back_up(path)
    except InputError:  # a file that can't be read as a notebook: then the code itself
        pass
    return _write_dated(place, name, ".py", code.encode("utf-8", "replace"))


def write_glossary(place: Path) -> Path | None:
    """Puts this version's glossary beside the notebooks. Returns: the copy of one that was different, None for none.

    Raises: InputError, as reset() does.
    """
    path, data = place / GLOSSARY, kernel_course().glossary().encode()
    if not data or _bytes(path) == data:
        return None
    backup = _back_up(path)
    _write(path, place, data)
    return backup


def lessons_in(place: Path) -> tuple[str, ...]:
    """The lessons whose notebook is in a folder, under the name that it has or had."""
    return tuple(name for name in kernel_course().lessons() if _present(name, place))


def _present(lesson: str, place: Path) -> Path | None:
    paths = (place / f"{name}.ipynb" for name in (lesson, *kernel_course().former_names(lesson)))
    return next(filter(os.path.lexists, paths), None)


def update(lesson: str, place: Path) -> Change:
    """Lays a learner's cells over this version of a lesson: its text and given cells, their work.

    A notebook that has the lesson's former name is taken over.
    Raises: InputError where the notebook is not there or can't be read, and as reset() does.
    """
    path = place / f"{lesson}.ipynb"
    source = _present(lesson, place) or path
    work, original = _read(source), kernel_course().handout_notebook(lesson)
    merged, exercises, beginnings = merge(work["cells"], original["cells"])
    if source == path and merged == work["cells"] and work["metadata"].get("grader") == original["metadata"]["grader"]:
        return Change(path, None, changed=False)
    backup = _back_up(source)
    _write(path, place, encode({**original, "cells": merged}).encode())
    if source != path:
        source.unlink()  # its copy is in backups/
    return Change(path, backup, exercises, beginnings=beginnings)


def _read(path: Path) -> dict[str, Any]:
    """A notebook in the current format, its sources as lists of lines, as `build` writes them."""
    nbformat = libraries.import_nbformat()
    data = _bytes(path)
    if data is None:
        raise InputError(f"{path} is not there; `{libraries.command_name()} reset {path.stem}` creates it.")
    try:
        notebook = nbformat.reads(data.decode("utf-8"), as_version=4)
        # Half a surrogate pair, which JSON can name, stands in no file.
        plain = json.loads(nbformat.writes(notebook).encode("utf-8", "replace").decode())
        nbformat.validate(plain)
    except Exception as error:  # nbformat raises many kinds for what is no notebook
        reason = str(error).partition("\n")[0][:200]
        advice = f"`{libraries.command_name()} reset {path.stem}` replaces it with a fresh one and keeps this one"
        raise InputError(f"{path} can't be read as a notebook ({reason}); {advice}.") from None
    return plain


def _bytes(path: Path) -> bytes | None:
    """What a file in the learner's folder holds; None: there is none. Raises: InputError for what is no file of theirs."""
    try:
        file = links.read(path, path.parent, sys.maxsize)
    except FileNotFoundError:
        return None
    except links.LinkError as error:
        raise _link_error(error) from None
    if file.data is None:
        raise InputError(f"{path} is not a regular file; nothing was changed. Move it away first.")
    return file.data


def _back_up(path: Path) -> Path | None:
    """Copies a file, dated to the second, into backups/ beside it. Returns: the copy; None for no file."""
    data = _bytes(path)
    return None if data is None else _write_dated(path.parent, path.stem, path.suffix, data, like=path)


def _write_dated(place: Path, stem: str, suffix: str, data: bytes, like: Path | None = None) -> Path:
    stem += datetime.now().strftime("-%Y-%m-%d-%H%M%S")
    names = (f"{stem}-{number}" if number > 1 else stem for number in count(1))
    copy = next(copy for name in names if not os.path.lexists(copy := place / BACKUPS / f"{name}{suffix}"))
    _write(copy, place, data, like=like)
    return copy


def _write(path: Path, place: Path, data: bytes, like: Path | None = None) -> None:
    try:
        links.write(path, place, data, like)
    except links.LinkError as error:
        raise _link_error(error) from None


def _link_error(error: links.LinkError) -> InputError:
    return InputError(f"{error} Nothing was changed: remove the link, or name the folder itself with --folder.")
