"""The course's own solutions, and what becomes of them where a mistake's patch is made."""

from __future__ import annotations

import linecache
import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

from grader.course import registry
from grader.course.patches import Edit, Patch, applied, edits, hunk_lines, normal
from grader.course.spec import Mistake, MistakeText


def explained(id: str) -> MistakeText:
    """What is said of a mistake, with the lines of the reference that it changes. Raises KeyError for an unknown id."""
    text = registry.mistake_text(id)
    if text.wrong:
        return text
    known = sorted(
        registry.lessons(), key=lambda name: f"grader.course.lessons.{name}" not in sys.modules
    )  # those at hand first
    for name in known:
        for one in registry.lesson(name).exercises:
            for mistake in one.mistakes:
                if mistake.id == text.id and isinstance(mistake.wrong, Patch):
                    right, wrong = hunk_lines(edits_of(one.name, mistake.wrong), normal_forms(one.name))
                    return replace(text, wrong=wrong, right=right)
    return text


def wrong_lines(exercise_name: str, id: str) -> str:
    """The lines of an exercise's reference as a mistake has them; '' where it is none of its patches."""
    for mistake in registry.exercise(exercise_name).mistakes:
        if id in mistake.id.split("+") and isinstance(mistake.wrong, Patch):
            return hunk_lines(edits_of(exercise_name, mistake.wrong), normal_forms(exercise_name))[1]
    return ""


@registry.remembered
def namespace(name: str) -> dict[str, Any]:
    """What a lesson's given cells and solutions define: the references, by running those cells."""
    made = ModuleType(f"solutions.{name}")
    for cell in registry.cells(name):
        if cell.role in ("given", "exercise"):
            filename = f"<solution {name} cell {cell.number}>"
            linecache.cache[filename] = (len(cell.text), None, cell.text.splitlines(True), filename)
            exec(compile(cell.text, filename, "exec"), made.__dict__)
    return made.__dict__


def reference(exercise_name: str) -> Any:
    """The course's own solution of an exercise: a function, a class, or an answer's value."""
    return namespace(registry.lesson_of(exercise_name))[exercise_name]


def solution_text(exercise_name: str) -> str:
    """The code of an exercise's solution cell, without the markers of its regions."""
    for cell in registry.cells(registry.lesson_of(exercise_name)):
        if cell.role == "exercise" and cell.exercise == exercise_name:
            kept = [line for line in cell.text.splitlines() if not line.strip().startswith(("# region", "# endregion"))]
            return "\n".join(kept)
    raise KeyError(exercise_name)


@registry.remembered
def normal_forms(exercise_name: str) -> dict[str, str]:
    """The normal form of an exercise's solution, and of those before it in its lesson, by name and in the lesson's order."""
    names = registry.CONTRACT[registry.lesson_of(exercise_name)]
    return {name: normal(solution_text(name)) for name in names[: names.index(exercise_name) + 1]}


def edits_of(exercise_name: str, patch: Patch) -> tuple[Edit, ...]:
    """Where a patch changes the reference. Raises: PatchError."""
    return edits(patch, normal_forms(exercise_name), exercise_name)


def patched(exercise_name: str, changes: tuple[Edit, ...]) -> Any:
    """The reference with edits made: what a learner with that mistake has. Whatever else it uses of its lesson is patched, too."""
    texts = normal_forms(exercise_name)
    changed = applied(changes, texts)
    names = list(texts)
    made = dict(namespace(registry.lesson_of(exercise_name)))
    for name in names[min(names.index(of) for of in changed) :]:
        filename = f"<patched {name}>"
        exec(compile(changed.get(name, texts[name]), filename, "exec"), made)
    return made[exercise_name]


def wrong(exercise_name: str, mistake: Mistake) -> Any:
    """The object that shows a mistake, in the place of the learner's."""
    if isinstance(mistake.wrong, Patch):
        return patched(exercise_name, edits_of(exercise_name, mistake.wrong))
    return mistake.wrong
