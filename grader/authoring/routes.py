"""Routes through the course for a workshop, docs/teaching/README.md: the course says what is chosen, its time is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.authoring import reading
from grader.course.course import Course
from grader.course.percent import Cell
from grader.course.stubs import task_name
from grader.util.files import write_whole


@dataclass(frozen=True)
class Stop:
    """A lesson on a route. until: the last exercise that is reached, '' for the whole lesson.

    work: the exercises that learners write, () for all up to `until`; the others are shown solved.
    without: headings of sections that are left out.
    """

    lesson: str
    until: str = ""
    work: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Route:
    """minutes: what there is, breaks not counted; a test holds the computed time against it."""

    title: str
    minutes: int
    about: str
    stops: tuple[Stop, ...]


def routes_of(course: Course) -> tuple[Route, ...]:
    """The routes that the course's course.toml describes."""
    return tuple(
        Route(
            one["title"],
            one["minutes"],
            " ".join(one["about"].split()),
            tuple(
                Stop(stop["lesson"], stop.get("until", ""), tuple(stop.get("work", ())), tuple(stop.get("without", ())))
                for stop in one["stops"]
            ),
        )
        for one in course.about.get("routes", ())
    )


def path(course: Course) -> Path:
    return course.root / "docs" / "teaching" / "README.md"


def page(course: Course) -> str:
    """The page for instructors: the notes of each lesson, then the routes with their times."""
    parts = [
        "<!-- `grader build` makes this page; the routes are in solutions/course.toml -->",
        "# Teaching with this course",
        f"Reading times assume {reading.SPEED}. All times are for learners who work alone; add time for discussions.",
        "## Notes on each lesson",
        _lessons(course),
    ]
    for route in routes_of(course):
        parts += [f"## {route.title}", route.about, _table(course, route)]
    return "\n\n".join(parts) + "\n"


def stale(course: Course) -> bool:
    """Whether the page is not what the lessons make. An installed course has no docs/, and none is missed."""
    return path(course).parents[1].is_dir() and (
        not path(course).is_file() or path(course).read_text(encoding="utf-8") != page(course)
    )


def refresh(course: Course) -> None:
    """Writes the page anew where it is stale."""
    if stale(course):
        path(course).parent.mkdir(exist_ok=True)
        write_whole(path(course), page(course))


def exercises_of(course: Course, stop: Stop) -> tuple[str, ...]:
    """The exercises that learners write at a stop."""
    names = tuple(one.name for one in course.lesson(stop.lesson).exercises if not one.further or one.name == stop.until)
    return stop.work or names[: names.index(stop.until) + 1 if stop.until else None]


def minutes_of(course: Course, stop: Stop) -> tuple[int, int]:
    """(minutes for the exercises, minutes of reading) of a stop."""
    work = sum(one.minutes for one in course.lesson(stop.lesson).exercises if one.name in exercises_of(course, stop))
    return work, reading.minutes(_cells_before(course, stop))


def total(course: Course, route: Route) -> tuple[int, int]:
    """(minutes for the exercises, minutes of reading) of a route."""
    work, read = zip(*(minutes_of(course, stop) for stop in route.stops), strict=True)
    return sum(work), sum(read)


def _cells_before(course: Course, stop: Stop) -> Sequence[Cell]:
    """The core's cells up to the task that follows the last exercise that is reached, sections that are left out not counted."""
    cells: Sequence[Cell] = course.cells(stop.lesson)
    if stop.until:
        own = next(cell.number for cell in cells if cell.role == "exercise" and cell.exercise == stop.until)
        tasks = (cell.number for cell in cells if cell.role == "prose" and task_name(cell.text))
        cells = cells[: next((number for number in tasks if number > own), None)]
    kept, heading = [], ""
    for cell in reading.core(cells):
        if cell.role == "prose" and cell.text.startswith("## "):
            heading = cell.text.split("\n", 1)[0].removeprefix("## ").strip()
        if heading not in stop.without:
            kept.append(cell)
    return kept


def _lessons(course: Course) -> str:
    rows = ["| lesson | core: exercises, minutes | core: reading, minutes | core | further |", "|---|---|---|---|---|"]
    totals = [0, 0, 0, 0]
    for name in course.lessons():
        work, read = reading.of_lesson(course, name, further=False)
        own = [work, read, work + read, sum(reading.of_lesson(course, name, further=True))]
        totals = [total + new for total, new in zip(totals, own, strict=True)]
        rows.append(f"| [{course.heading(name)}]({name}.md) | {' | '.join(map(str, own))} |")
    return "\n".join([*rows, f"| all | {' | '.join(map(str, totals))} |"])


def _table(course: Course, route: Route) -> str:
    rows = ["| lesson | up to | learners write | exercises, minutes | reading, minutes |", "|---|---|---|---|---|"]
    for stop in route.stops:
        work, read = minutes_of(course, stop)
        names = ", ".join(f"`{name}`" for name in exercises_of(course, stop))
        far = f"`{stop.until}`" if stop.until else "the end"
        far += "".join(f", without *{heading}*" for heading in stop.without)
        rows.append(f"| {course.heading(stop.lesson)} | {far} | {names} | {work} | {read} |")
    work, read = total(course, route)
    rows.append(f"| total: {work + read} minutes | | | {work} | {read} |")
    return "\n".join(rows)
