"""Which lessons a class is graded on where nobody says: those that at least half of the learners handed in.

A quick look at strangers' bytes, in which nothing is parsed. As which lesson a notebook is graded, submission.py says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course.course import Course
from grader.grading.roster import Packed, RosterEntry, pack
from grader.submission.submission import lesson_of_name
from grader.util.errors import InputError

MAX_TOLD_BY = 400_000  # bytes of a notebook that are looked through for what it defines
# A notebook's own metadata, as `build` writes them; in a cell's text the quotation marks would stand behind a backslash.
_LESSON = re.compile(rb'"grader"\s*:\s*\{[^{}]*"lesson"\s*:\s*"(\w+)"')


@dataclass(frozen=True)
class Choice:
    """The lessons taken, in the course's order. counts: how many of the learners handed in each lesson."""

    lessons: tuple[str, ...]
    counts: Mapping[str, int]
    learners: int

    def sentences(self) -> tuple[str, ...]:
        """What was taken, and what every other lesson would change."""
        several = len(self.lessons) > 1
        said = [
            f"{_said(self.lessons)} {'are' if several else 'is'} graded: at least half of the learners had handed "
            f"{'them' if several else 'it'} in when this run began. A lesson that was not handed in counts as missing."
        ]
        for other in sorted(set(self.counts) - set(self.lessons)):
            more = _numbers(sorted({*self.lessons, other}))
            said.append(
                f"--lessons {more} would add {_said([other]).lower()}, which {self.counts[other]} of {self.learners} handed in."
            )
        return tuple(said)


def choice(course: Course, found: Sequence[RosterEntry], kept: Sequence[str] | None = None) -> Choice:
    """The lessons that at least half of the learners handed in. kept: those of the run that goes on, whatever came since.

    Raises: InputError where no lesson was handed in by half of them: any choice would be a guess that decides the marks.
    """
    names = defining(course)
    counts = Counter(lesson for one in found for lesson in _lessons(course, pack(one).files, names))
    taken = kept or sorted(lesson for lesson, count in counts.items() if 2 * count >= len(found))
    if not taken:
        had = (
            ", ".join(f"lesson {lesson[:2]} by {counts[lesson]}" for lesson in sorted(counts)) or "there is no notebook"
        )
        example = _numbers(sorted(counts) or course.lessons()[:1])
        raise InputError(
            f"no lesson was handed in by at least half of the {len(found)} learners ({had}). Say which to grade, "
            f"such as --lessons {example}; a lesson that was not handed in counts as missing."
        )
    return Choice(tuple(taken), counts, len(found))


def _lessons(course: Course, files: Sequence[Packed], names: Mapping[bytes, str]) -> set[str]:
    return {lesson for file in files if (lesson := lesson_of(course, file.place[-1], file.data or b"", names))}


def lesson_of(course: Course, file: str, data: bytes, names: Mapping[bytes, str]) -> str:
    """By its metadata, else by its name, else by the exercises that it seems to define; '' for none. names: as defining() has them."""
    said = course.current_name(next((found[1].decode("ascii", "replace") for found in _LESSON.finditer(data)), ""))
    if said in course.lessons():
        return said
    if told := lesson_of_name(course, Path(file)):
        return told
    defined = re.findall(rb'(?:\bdef |\bclass |")(\w+) ?[(:=]', data[:MAX_TOLD_BY])
    met = Counter(names[name] for name in set(defined) if name in names)
    return max(sorted(met), key=met.__getitem__, default="")


def defining(course: Course) -> dict[bytes, str]:
    """The lesson of each exercise."""
    return {name.encode(): lesson for lesson in course.lessons() for name in course.exercises[lesson]}


def _numbers(lessons: Iterable[str]) -> str:
    return ",".join(lesson[:2] for lesson in lessons)


def _said(lessons: Sequence[str]) -> str:
    """'Lesson 01', 'Lessons 01, 02 and 05'."""
    numbers = [lesson[:2] for lesson in lessons]
    return f"Lesson{'s' * (len(numbers) > 1)} {' and '.join(filter(None, (', '.join(numbers[:-1]), numbers[-1])))}"
