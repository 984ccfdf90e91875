"""The course's own solutions, and what becomes of them where a mistake's patch is made."""

from __future__ import annotations

import linecache
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any

from grader.course.course import Course
from grader.course.patches import Edit, Patch, PatchError, apply_edits, edits, hunk_lines, normal_form
from grader.course.spec import Exercise, Mistake, MistakeText
from grader.course.stubs import strip_markers
from grader.util.digest import digest
from grader.util.errors import AuthorError, LintError


def explain(course: Course, id: str) -> MistakeText:
    """What is said of a mistake, with the lines of the reference that it changes. Raises: KeyError for an unknown id."""
    text = course.mistake_text(id)
    if text.wrong:
        return text
    for exercise in (exercise for name in course.nearest_lessons() for exercise in course.lesson(name).exercises):
        for mistake in exercise.mistakes:
            if mistake.id == text.id and isinstance(mistake.wrong, Patch):
                right, wrong = hunk_lines(edits_of(exercise, mistake.wrong), normal_forms(exercise))
                return replace(text, wrong=wrong, right=right)
    return text


def wrong_lines(exercise: Exercise, id: str) -> str:
    """The lines of an exercise's reference as a mistake has them; '' where it is none of its patches."""
    for mistake in exercise.mistakes:
        if id in mistake.id.split("+") and isinstance(mistake.wrong, Patch):
            return hunk_lines(edits_of(exercise, mistake.wrong), normal_forms(exercise))[1]
    return ""


@cache
def namespace(course: Course, lesson: str) -> dict[str, Any]:
    """What a lesson's given cells and solutions define: the references, by running those cells."""
    module = ModuleType(f"solutions.{lesson}")
    for cell in course.cells(lesson):
        if cell.role in ("given", "exercise"):
            _run(f"<solution {lesson} cell {cell.number}>", cell.text, module.__dict__)
    return module.__dict__


def _run(filename: str, text: str, names: dict[str, Any]) -> None:
    """Runs a text as a file of that name, in which Python finds its lines again: Triton compiles a kernel from them."""
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), names)


def reference(exercise: Exercise) -> Any:
    """The course's own solution of an exercise: a function, a class, or an answer's value."""
    return namespace(exercise.course, exercise.lesson)[exercise.name]


def solution_text(course: Course, name: str) -> str:
    """The code of an exercise's solution cell, without the markers of its regions."""
    for cell in course.cells(course.lesson_of(name)):
        if cell.role == "exercise" and cell.exercise == name:
            return strip_markers(cell.text)
    raise KeyError(name)


@cache
def normal_forms(exercise: Exercise) -> dict[str, str]:
    """The normal form of an exercise's solution, and of those before it in its lesson, by name and in the lesson's order."""
    names = exercise.course.exercises[exercise.lesson]
    return {name: normal_form(solution_text(exercise.course, name)) for name in names[: names.index(exercise.name) + 1]}


def edits_of(exercise: Exercise, patch: Patch) -> tuple[Edit, ...]:
    """Where a patch changes the reference. Raises: AuthorError where it does not fit."""
    try:
        if not patch.hunks:
            raise PatchError("it has no text to replace")
        return edits(patch, normal_forms(exercise), exercise.name)
    except PatchError as error:
        file = f"solutions/{exercise.lesson}/exercises/{exercise.name}.py"
        raise AuthorError([LintError(file, 0, f"a mistake's patch does not apply: {error}")]) from None


def patch_reference(exercise: Exercise, changes: tuple[Edit, ...]) -> Any:
    """The reference with edits made: what a learner with that mistake has. Whatever else it uses of its lesson is patched, too."""
    texts = normal_forms(exercise)
    changed = apply_edits(changes, texts)
    names = list(texts)
    objects = dict(namespace(exercise.course, exercise.lesson))
    for name in names[min(names.index(of) for of in changed) :]:
        text = changed.get(name, texts[name])
        _run(f"<patched {name} {digest(text)}>", text, objects)  # patched again, for other inputs, it is the same file
    return objects[exercise.name]


def wrong(exercise: Exercise, mistake: Mistake) -> Any:
    """The object that shows a mistake, in the place of the learner's."""
    if isinstance(mistake.wrong, Patch):
        return patch_reference(exercise, edits_of(exercise, mistake.wrong))
    return mistake.wrong
