"""A course of one's own: a folder with the lessons in place of the package's.

    FOLDER/lessons/NN_name/     specifications, as the package's: __init__.py with `lesson`, a file each exercise
    FOLDER/solutions/NN_name.py sources
    FOLDER/notebooks/           what `grader build` makes of them, as in the package

`grader COMMAND --course FOLDER` names it. A process that belongs to such a call finds the folder in the environment variable
ATTENTION_COURSE; one that runs a stranger's code is started without it, and reads nothing but Python's own libraries.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grader.course import index, registry
from grader.course.spec import Lesson
from grader.util.errors import AuthorError, InputError

_LESSONS = "grader.course.lessons"  # under this name lessons are imported, whoever's they are
NEEDED = "lessons/NN_name/__init__.py and solutions/NN_name.py, as in 90_mine"


def use(folder: Path | None) -> None:
    """Makes the lessons of this folder the course of this process; None: the package's.

    Raises: InputError, one sentence each for what is wrong; the package's lessons are the course then.
    """
    _leave()
    if folder is None:
        return
    folder = folder.expanduser().resolve()
    problems = list(_amiss(folder))
    if not problems:
        _package().__path__.append(str(folder / "lessons"))  # after the package's: theirs never hides one of ours
        importlib.invalidate_caches()
        registry.settle(folder, '{"lessons": {}, "given": {}}')
        try:
            problems = list(_unfit(folder))
            text = "" if problems else index.built()
            problems += () if problems else _clashes(json.loads(text)["lessons"])
        except AuthorError as error:
            problems = list(map(str, error.problems))
        if not problems:
            registry.know(text)
            return
        _leave()
    raise InputError("\n".join(problems))


def enter() -> None:
    """Takes the course that the environment names, unless this process has it already."""
    named = os.environ.get(registry.VARIABLE)
    if named and registry.own() != Path(named).expanduser().resolve():
        use(Path(named))


def enter_beside(here: Path) -> None:
    """`enter`; in a kernel whose notebook lies in a course's own notebooks/ or solutions/, that course, whatever is named."""
    if here.name in ("notebooks", "solutions") and next(
        (here.parent / "lessons").glob("[0-9][0-9]_*/__init__.py"), None
    ):
        os.environ[registry.VARIABLE] = str(here.parent)  # for %grader, too
    enter()


def _package() -> Any:
    """The package of the lessons, which has no part in a notebook's first line."""
    return importlib.import_module(_LESSONS)


def _leave() -> None:
    """The package's lessons are the course again, and nothing of another one stays imported."""
    before = registry.own()
    if before is not None:
        registry.settle(None, registry.package_index())
        del _package().__path__[1:]
    for name in [name for name in sys.modules if name.startswith(f"{_LESSONS}.")]:
        if before is not None and str(getattr(sys.modules[name], "__file__", "")).startswith(str(before)):
            del sys.modules[name]


def _amiss(folder: Path) -> Iterator[str]:
    """What is wrong with the folder before anything in it runs."""
    if not folder.is_dir():
        yield f"--course {folder}: there is no such folder."
        return
    if any(folder.is_relative_to(place) for place in _open_to_submissions()):
        yield f"--course {folder}: it is inside Python's libraries, which a submission may read; move it elsewhere."
    specified = sorted(path.parent.name for path in (folder / "lessons").glob("[0-9][0-9]_*/__init__.py"))
    sources = sorted(path.stem for path in (folder / "solutions").glob("[0-9][0-9]_*.py"))
    if not set(specified) & set(sources):
        half = next(iter([*specified, *sources]), "")
        there = f"{half} has only {'the specification' if half in specified else 'the source'}; " if half else ""
        yield f"--course {folder}: it contains no lesson; {there}a lesson needs {NEEDED}."
    for name in sorted({*specified, *sources} & json.loads(registry.package_index())["lessons"].keys()):
        yield f"--course {folder}: a lesson of the attention course is called {name}, too; choose another name."
    for number, count in Counter(name[:2] for name in {*specified, *sources}).items():
        if count > 1:
            names = " and ".join(sorted(name for name in {*specified, *sources} if name[:2] == number))
            yield f"--course {folder}: {names} have the same number; each lesson needs its own."
    for name in sorted(path.stem for path in (folder / "lessons").glob("*.py")):
        if (registry.OF_PACKAGE / f"{name}.py").is_file():
            yield f"--course {folder}: lessons/{name}.py has the name of a file of the grader's own; choose another one."


def _open_to_submissions() -> tuple[str, ...]:
    """The places that the walls around a worker leave open, where this system has such walls."""
    from grader.worker import kernel_walls

    return kernel_walls.readable() if sys.platform == "linux" else ()


def _unfit(folder: Path) -> Iterator[str]:
    """What is wrong with specifications, by importing them."""
    for path in sorted((folder / "lessons").glob("[0-9][0-9]_*/__init__.py")):
        name = path.parent.name
        if not registry.source_path(name).is_file():
            continue
        try:
            if not isinstance(registry.lesson(name), Lesson):
                yield f"lessons/{name}/__init__.py: `lesson` is made by collected(…), as CONTRIBUTING shows."
        except Exception as error:  # whatever an author's file may do
            yield _where(folder, error, f"lessons/{name}/__init__.py")


def _where(folder: Path, error: Exception, otherwise: str) -> str:
    """An exception while a specification was imported as one sentence, with the author's own file and line."""
    if isinstance(error, SyntaxError):
        file, line, said = Path(error.filename or otherwise), error.lineno or 0, f"this is not Python: {error.msg}"
    else:
        frames = [
            frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(str(folder))
        ]
        file, line = (Path(frames[-1].filename), frames[-1].lineno or 0) if frames else (Path(otherwise), 0)
        said = f"{type(error).__name__}: {error}"
    shown = file.relative_to(folder) if file.is_relative_to(folder) else file
    return f"{shown.as_posix()}{f':{line}' if line else ''}: {said}."


def _clashes(lessons: dict[str, dict]) -> Iterator[str]:
    """Names that the package has, too: a learner may have both courses' notebooks, and one record of progress."""
    from grader.course.mistakes import TEXTS

    ours = json.loads(registry.package_index())["lessons"]
    taken = {exercise: name for name, about in ours.items() for exercise in about["exercises"]}
    for name, about in lessons.items():
        for exercise in about["exercises"]:
            if exercise in taken:
                whose = (
                    f"lesson {taken[exercise]} of the attention course"
                    if taken[exercise] in ours
                    else f"lessons/{taken[exercise]}"
                )
                yield f"lessons/{name}: {whose} has an exercise {exercise}, too; choose another name."
            taken[exercise] = name
        for text in registry.lesson(name).texts:
            if text.id in TEXTS:
                yield f"lessons/{name}: {text.id} is a mistake of the attention course; choose another id, or leave `says` out."
