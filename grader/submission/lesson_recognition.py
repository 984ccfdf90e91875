"""Which lesson a notebook belongs to: by its metadata, its name, or what its cells define."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from grader.course.course import Course

MAX_SEARCHED_BYTES = 400_000  # bytes of a notebook that are looked through for what it defines
# A notebook's own metadata, as `build` writes them; in a cell's text the quotation marks would stand behind a backslash.
_LESSON = re.compile(rb'"grader"\s*:\s*\{[^{}]*"lesson"\s*:\s*"(\w+)"')
_DEFINED = re.compile(rb'(?:\bdef |\bclass |")(\w+) ?[(:=]')


def recognize_lesson(course: Course, metadata: str, path: Path, names: Iterable[str]) -> str:
    """The lesson that a notebook's metadata name, else its file's name, else most of the names that its cells define.

    '' for none. Metadata of a lesson that this hand-out lacks decide, too: the name or the cells of such a notebook may
    resemble another lesson's.
    """
    lesson = course.current_name(metadata)
    if lesson in course.exercises:
        return lesson if lesson in course.lessons() else ""
    if lesson := lesson_of_name(course, path):
        return lesson
    defined_names = set(names)
    counts = {lesson: len(defined_names.intersection(course.exercises[lesson])) for lesson in course.lessons()}
    lesson = max(counts, key=counts.__getitem__, default="")  # of several the first
    return lesson if counts.get(lesson) else ""


def lesson_of_bytes(course: Course, path: Path, data: bytes) -> str:
    """The same by the look of a notebook's bytes, which need not be JSON; where there are too many, by its name."""
    metadata = _LESSON.search(data)
    names = (name.decode() for name in _DEFINED.findall(data[:MAX_SEARCHED_BYTES]))
    return recognize_lesson(course, metadata[1].decode() if metadata else "", path, names)


def lesson_of_name(course: Course, path: Path) -> str:
    """The lesson that a file's name tells, '' for none."""
    stem = path.stem.lower()
    for lesson in (*course.lessons(), *course.renamed):
        if lesson in stem:
            return course.current_name(lesson)
    number = re.match(r"(?:lesson[ _-]?)?(\d\d)(?!\d)", stem)
    return next((name for name in course.lessons() if number and name.startswith(f"{number[1]}_")), "")
