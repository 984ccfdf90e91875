"""Finds the lessons, loads their references, and knows every exercise by name."""

from __future__ import annotations

import importlib
import json
import linecache
import re
import sys
import threading
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from grader.model import Exercise, Lesson, Mistake, MistakeText
from grader.patches import Edit, Patch, applied, edits, hunk_lines, normal

# Lessons import torch, references and mistakes seed the process's generators, and stray output is caught by replacing
# sys.stdout: where several threads grade, one at a time may do so. Waiting for a worker needs no lock.
ALONE = threading.RLock()

SEED = 7  # of the inputs; the notebook and `grader grade` share it, so that their verdicts agree

# What `grader build` gathers from specifications and sources, so that one exercise is found without importing every lesson.
CONTRACT: dict[str, tuple[str, ...]] = {}  # the exercises of each lesson, in order
GIVEN: dict[str, str] = {}  # names that the lessons' own cells import, and what each of them stands for
_WITH_TORCH: set[str] = set()
_ON_META: set[str] = set()


def know(index: str) -> None:
    """Takes over what an index says, lessons/index.json as text."""
    said = json.loads(index)
    for known, new in (
        (CONTRACT, {name: tuple(about["exercises"]) for name, about in said["lessons"].items()}),
        (GIVEN, said["given"]),
        (_ON_META, set(said["on_meta"])),
        (_WITH_TORCH, {name for name, about in said["lessons"].items() if about["torch"]}),
    ):
        known.clear()
        known.update(new)


def needs_torch(lesson: str) -> bool:
    """Whether a lesson's own cells import torch."""
    return lesson in _WITH_TORCH


def moves_to_meta(exercise_name: str) -> bool:
    """Whether some case of an exercise moves the learner's module to torch's meta device, see worker/warm.py."""
    return exercise_name in _ON_META


know((Path(__file__).resolve().parent / "lessons" / "index.json").read_text(encoding="utf-8"))

_HEAD = re.compile(r"# %%(?P<prose> \[markdown\])?(?P<about>.*)")
_ABOUT = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\[[^\]]*\])')


@dataclass(frozen=True)
class Cell:
    """One cell of a lesson's source. role: 'prose', 'given', 'demo', 'exercise', 'check' or 'payoff'."""

    role: str
    text: str
    exercise: str = ""
    tags: tuple[str, ...] = ()
    number: int = 0  # position in the lesson, from 0
    line: int = 0  # of the source file, from 1; for messages to authors


def root() -> Path:
    """The folder that holds notebooks/ and solutions/: the checkout, or the wheel's own copy."""
    package = Path(__file__).resolve().parent
    checkout = package.parent
    if (checkout / "solutions").is_dir() and (checkout / "pyproject.toml").is_file():
        return checkout
    return package / "_course"


@cache
def lessons() -> tuple[str, ...]:
    """The names of the lessons that exist, in order. A lesson exists when its source and its specification do."""
    package = Path(__file__).resolve().parent / "lessons"
    return tuple(name for name in CONTRACT if source_path(name).is_file() and (package / name).is_dir())


def edition() -> str:
    """The installed version and the lessons that it knows: '0.1.0+c4f1a90b2, lessons 00, 01'."""
    from importlib.metadata import version

    return f"{version('attention-course')}, lessons {', '.join(name[:2] for name in lessons()) or 'none'}"


def exercise_names() -> tuple[str, ...]:
    """Every exercise of the lessons that exist, in the course's order."""
    return tuple(exercise_name for name in lessons() for exercise_name in CONTRACT[name])


def lesson_of(exercise_name: str) -> str:
    """The lesson of an exercise. Raises KeyError where no lesson that exists has one of that name."""
    for name in lessons():
        if exercise_name in CONTRACT[name]:
            return name
    raise KeyError(exercise_name)


def lesson(name: str) -> Lesson:
    """The specification of a lesson, imported on demand."""
    with ALONE:
        return importlib.import_module(f"grader.lessons.{name}").lesson


def exercise(exercise_name: str) -> Exercise:
    """The specification of an exercise. Raises KeyError for an unknown name."""
    for found in lesson(lesson_of(exercise_name)).exercises:
        if found.name == exercise_name:
            return found
    raise KeyError(exercise_name)


def next_exercise(exercise_name: str) -> str | None:
    """The exercise after this one in the course, None after the last."""
    names = exercise_names()
    at = names.index(exercise_name) + 1
    return names[at] if at < len(names) else None


def explained(id: str) -> MistakeText:
    """What is said of a mistake, with the lines of the reference that it changes. Raises KeyError for an unknown id."""
    text = mistake_text(id)
    if text.wrong:
        return text
    for name in lessons():
        for one in lesson(name).exercises:
            for mistake in one.mistakes:
                if mistake.id == text.id and isinstance(mistake.wrong, Patch):
                    right, wrong = hunk_lines(edits_of(one.name, mistake.wrong), normal_forms(one.name))
                    return replace(text, wrong=wrong, right=right)
    return text


def mistake_text(id: str) -> MistakeText:
    """What is said of a mistake; lessons' own texts are found too. Raises KeyError for an unknown id."""
    from grader.catalogue import TEXTS

    if id in TEXTS:
        return TEXTS[id]
    for name in sorted(lessons(), key=lambda name: f"grader.lessons.{name}" not in sys.modules):
        for text in lesson(name).texts:
            if text.id == id:
                return text
    raise KeyError(id)


def mistake_ids() -> tuple[str, ...]:
    """Every id that has a text; imports all lessons."""
    from grader.catalogue import TEXTS

    return tuple(dict.fromkeys([*TEXTS, *(text.id for name in lessons() for text in lesson(name).texts)]))


def source_path(name: str) -> Path:
    return root() / "solutions" / f"{name}.py"


def notebook_path(name: str) -> Path:
    return root() / "notebooks" / f"{name}.ipynb"


def source(name: str) -> str:
    """The text of a lesson's source, solutions/NN_lesson.py."""
    return source_path(name).read_text(encoding="utf-8")


def pristine(name: str) -> dict[str, Any]:
    """The learner's notebook of a lesson as the course means it: from the source, whatever was done to the file."""
    from grader.stubs import learner_notebook

    return learner_notebook(name, cells(name), lesson(name))


@cache
def cells(name: str) -> tuple[Cell, ...]:
    """The cells of a lesson's source, solution regions included."""
    return read_percent(source(name))


def read_percent(text: str) -> tuple[Cell, ...]:
    """The cells of a source in the percent format, as jupytext reads them.

    Read here because importing jupytext takes three seconds, which every first check() would wait for;
    a test holds the two against each other.
    """
    heads: list[tuple[re.Match[str], int]] = []
    bodies: list[list[str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        head = _HEAD.fullmatch(line)
        if head:
            heads.append((head, number))
            bodies.append([])
        elif bodies:
            bodies[-1].append(line)
    made = []
    for at, ((head, number), lines) in enumerate(zip(heads, bodies, strict=True)):
        about = {key: json.loads(value) for key, value in _ABOUT.findall(head["about"])}
        if head["prose"]:
            lines = [line[2:] if line.startswith("# ") else line.removeprefix("#") for line in lines]
        role = "prose" if head["prose"] else about.get("role", "")
        body = "\n".join(lines).strip("\n")
        made.append(Cell(role, body, about.get("exercise", ""), tuple(about.get("tags", ())), at, number))
    return tuple(made)


@cache
def namespace(name: str) -> dict[str, Any]:
    """What a lesson's given cells and solutions define: the references, by running those cells."""
    made = ModuleType(f"solutions.{name}")
    for cell in cells(name):
        if cell.role in ("given", "exercise"):
            filename = f"<solution {name} cell {cell.number}>"
            linecache.cache[filename] = (len(cell.text), None, cell.text.splitlines(True), filename)
            exec(compile(cell.text, filename, "exec"), made.__dict__)
    return made.__dict__


def reference(exercise_name: str) -> Any:
    """The course's own solution of an exercise: a function, a class, or an answer's value."""
    return namespace(lesson_of(exercise_name))[exercise_name]


def solution_text(exercise_name: str) -> str:
    """The code of an exercise's solution cell, without the markers of its regions."""
    for cell in cells(lesson_of(exercise_name)):
        if cell.role == "exercise" and cell.exercise == exercise_name:
            kept = [line for line in cell.text.splitlines() if not line.strip().startswith(("# region", "# endregion"))]
            return "\n".join(kept)
    raise KeyError(exercise_name)


# --- mistakes as patches of the reference ---------------------------------------------------------


@cache
def normal_forms(exercise_name: str) -> dict[str, str]:
    """The normal form of an exercise's solution, and of those before it in its lesson, by name and in the lesson's order."""
    names = CONTRACT[lesson_of(exercise_name)]
    return {name: normal(solution_text(name)) for name in names[: names.index(exercise_name) + 1]}


def edits_of(exercise_name: str, patch: Patch) -> tuple[Edit, ...]:
    """Where a patch changes the reference. Raises: PatchError."""
    return edits(patch, normal_forms(exercise_name), exercise_name)


def patched(exercise_name: str, changes: tuple[Edit, ...]) -> Any:
    """The reference with edits made: what a learner with that mistake has. Whatever else it uses of its lesson is patched, too."""
    texts = normal_forms(exercise_name)
    changed = applied(changes, texts)
    names = list(texts)
    made = dict(namespace(lesson_of(exercise_name)))
    for name in names[min(names.index(of) for of in changed) :]:
        filename = f"<patched {name}>"
        exec(compile(changed.get(name, texts[name]), filename, "exec"), made)
    return made[exercise_name]


def wrong(exercise_name: str, mistake: Mistake) -> Any:
    """The object that shows a mistake, in the place of the learner's."""
    if isinstance(mistake.wrong, Patch):
        return patched(exercise_name, edits_of(exercise_name, mistake.wrong))
    return mistake.wrong
