"""The picture of the whole road in README: docs/road.svg, drawn from the lessons as they are."""

from __future__ import annotations

import html
import textwrap
from pathlib import Path

from grader.authoring import reading_time
from grader.course.course import open_course
from grader.course.spec import Lesson

FILE = Path(__file__).resolve().parent.parent / "docs" / "road.svg"
WIDTH, STEP, TOP, BETWEEN, IN_ROW = 1040, 163, 58, 150, 6  # pixels; BETWEEN two rows
MAIN = 12  # lessons on the road itself; the others stand beside it
INK, GREY, NUMPY, TORCH = "#1B1B1B", "#5A5A5A", "#0072B2", "#B34E00"


def picture() -> str:
    """An SVG: a station for each lesson along a road that turns round, and one for each further road below it, with title and
    minutes; readable on any background."""
    lessons = [open_course().lesson(name) for name in open_course().lessons()]
    height = _place(len(lessons) - 1)[1] + 150
    beyond = _place(MAIN)[1] - 48
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'font-family="Helvetica, Arial, sans-serif" aria-labelledby="title desc">',
        f"<title id='title'>The road of the course</title><desc id='desc'>{html.escape(words(lessons))}</desc>",
        f'<rect width="{WIDTH}" height="{height}" rx="14" fill="#FFFFFF"/>',
        f'<path d="{_road(min(len(lessons), MAIN))}" fill="none" stroke="#D9D9D9" stroke-width="10" stroke-linecap="round"/>',
        f'<text x="92" y="{beyond}" font-size="15" fill="{GREY}">further roads, in any order</text>',
    ]
    parts += [_station(number, lesson) for number, lesson in enumerate(lessons)]
    parts += _legend(height - 22, _core_minutes(lessons[:MAIN]))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _core_minutes(lessons: list[Lesson]) -> int:
    return sum(sum(reading_time.of_lesson(open_course(), lesson.name, further=False)) for lesson in lessons)


def words(lessons: list[Lesson]) -> str:
    """The picture for those who can't see it."""
    return (
        "; ".join(
            f"{lesson.name[:2]} {_title(lesson)}, {sum(reading_time.of_lesson(open_course(), lesson.name, further=False))} minutes"
            for lesson in lessons
        )
        + "."
    )


def _place(number: int) -> tuple[int, int]:
    """The centre of a station; every other row of the road runs from right to left."""
    row, column = divmod(number, IN_ROW)
    back = row % 2 == 1 and number < MAIN
    x = 112 + STEP * (IN_ROW - 1 - column if back else column)
    return x, TOP + row * BETWEEN + (60 if number >= MAIN else 0)


def _road(count: int) -> str:
    path = "M{} {}".format(*_place(0))
    for number in range(1, count):
        (x0, y0), (x, y) = _place(number - 1), _place(number)
        if y == y0:
            path += f" L{x} {y}"
        else:  # round the end of a row
            out = 108 if x0 > WIDTH / 2 else -108
            path += f" C{x0 + out} {y0} {x + out} {y} {x} {y}"
    return path


def _station(number: int, lesson: Lesson) -> str:
    x, y = _place(number)
    numpy = not open_course().needs_torch(lesson.name)
    shape = (
        f'<circle cx="{x}" cy="{y}" r="21" fill="{NUMPY}"/>'
        if numpy
        else f'<rect x="{x - 20}" y="{y - 20}" width="40" height="40" rx="7" fill="{TORCH}"/>'
    )
    lines = textwrap.wrap(_title(lesson), 17)
    exercises, read = reading_time.of_lesson(open_course(), lesson.name, further=False)
    said = [
        f'<text x="{x}" y="{y + 6}" text-anchor="middle" font-size="17" font-weight="bold" fill="#FFFFFF">{lesson.name[:2]}</text>'
    ]
    said += [
        f'<text x="{x}" y="{y + 41 + 17 * i}" text-anchor="middle" font-size="14" fill="{INK}">{html.escape(line)}</text>'
        for i, line in enumerate(lines)
    ]
    said.append(
        f'<text x="{x}" y="{y + 42 + 17 * len(lines)}" text-anchor="middle" font-size="12" fill="{GREY}">{exercises} + {read} min</text>'
    )
    return shape + "".join(said)


def _legend(y: int, minutes: int) -> list[str]:
    total = f"{minutes // 60} h {minutes % 60} min"
    return [
        f'<circle cx="92" cy="{y - 5}" r="8" fill="{NUMPY}"/><text x="108" y="{y}" font-size="13" fill="{INK}">NumPy, by hand</text>',
        f'<rect x="226" y="{y - 13}" width="16" height="16" rx="3" fill="{TORCH}"/>'
        f'<text x="250" y="{y}" font-size="13" fill="{INK}">PyTorch</text>',
        f'<text x="{WIDTH - 40}" y="{y}" text-anchor="end" font-size="13" fill="{GREY}">'
        f"minutes of the core, exercises + reading: the road takes {total}</text>",
    ]


def _title(lesson: Lesson) -> str:
    return lesson.title.partition(":")[0].partition(",")[0]
