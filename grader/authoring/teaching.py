"""The pages for instructors in docs/teaching/: NN_lesson.md, the notes on a lesson, and README.md, the overview with its routes.

Notes come from the source's last cell, which begins with '@teaching' and has the headings of HEADINGS. Times, predictions and
the mistakes' own sentences are added here, so that they are never typed twice. Of a route through the course for a workshop,
course.toml says what is chosen, and its time is computed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.authoring import reading_time
from grader.course import percent
from grader.course.course import Course
from grader.course.course_folder import text_of
from grader.course.spec import Lesson
from grader.course.stubs import TASK, dots
from grader.util.errors import AuthorError, author_slip
from grader.util.files import write_atomically

FOR, CUT_90, MISTAKES = "What the lesson is for", "Cut for 90 minutes", "Mistakes to expect"
HEADINGS = (FOR, "Cut for 60 minutes", CUT_90, MISTAKES, "To discuss", "On paper")
BEFORE = "**Before this lesson:**"
_MISTAKE = re.compile(r"- (?P<exercise>\w+) (?P<id>\w+): (?P<ask>\S.*)")


@dataclass
class Expected:
    """A mistake that an instructor will meet, and what to ask whoever made it. line: of the cell's text, from 1."""

    exercise: str
    id: str
    ask: str
    line: int


def path(course: Course, name: str) -> Path:
    """The page of a lesson; of the overview, whose name is 'README'."""
    return course.root / "docs" / "teaching" / f"{name}.md"


def sections(text: str) -> dict[str, str]:
    """What stands under each '## ' heading of a cell, in order."""
    parts = re.split(r"^## +(.*?) *$", text, flags=re.MULTILINE)
    return {heading: body.strip() for heading, body in zip(parts[1::2], parts[2::2], strict=True)}


def expected_mistakes(text: str) -> tuple[list[Expected], list[int]]:
    """The mistakes to expect that a cell names, and the numbers of lines under their heading that name none."""
    expected: list[Expected] = []
    other_lines: list[int] = []
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            inside = line[3:].strip() == MISTAKES
        elif inside and line.strip():
            if match := _MISTAKE.fullmatch(line.rstrip()):
                expected.append(Expected(**match.groupdict(), line=number))
            elif expected and line.startswith(" "):  # a question that goes on
                expected[-1].ask += f" {line.strip()}"
            else:
                other_lines.append(number)
    return expected, other_lines


def before(cells: Sequence[percent.Cell]) -> str:
    """The paragraph that says what a lesson needs, without its label; '' for none."""
    first = next((cell.text for cell in cells if cell.role == "prose"), "")
    paragraph = next((part for part in first.split("\n\n") if part.startswith(BEFORE)), "")
    return " ".join(paragraph.removeprefix(BEFORE).split())


def page(course: Course, name: str, values: percent.QuotedValues) -> str:
    """The notes on a lesson as Markdown. values: of the numbers that its prose quotes."""
    cells, lesson = course.cells(name), course.lesson(name)
    text = next(cell.text for cell in cells if cell.mark == percent.TEACHING)
    bodies = sections(text)
    parts = [
        f"<!-- `grader build` makes this page from solutions/{name}/lesson.py -->",
        f"# Teaching {course.heading(name)}",
        f"**Before this lesson:** {before(cells)}",
        _time(course, name),
    ]
    bodies[MISTAKES] = "\n\n".join(_mistakes(course, text, lesson))
    computed = {FOR: ["## Exercises", _exercises(lesson)], CUT_90: ["## Predictions", *_predictions(cells, values)]}
    for heading in HEADINGS:
        parts += [f"## {heading}", bodies[heading], *computed.get(heading, ())]
    return "\n\n".join(parts) + "\n"


def _time(course: Course, name: str) -> str:
    core, further = (reading_time.of_lesson(course, name, further=is_further) for is_further in (False, True))
    beyond = f" The further part takes {sum(further)} more: {further[0]} and {further[1]}." if sum(further) else ""
    parts = f"{core[0]} for the exercises and {core[1]} for reading, at {reading_time.SPEED}"
    return f"**Time:** the core takes {sum(core)} minutes: {parts}.{beyond}"


def _exercises(lesson: Lesson) -> str:
    rows = ["| exercise | difficulty | minutes | points |", "|---|---|---|---|"]
    for exercise in lesson.exercises:
        level = f"{dots(exercise.difficulty)} {exercise.difficulty} of 3" if exercise.difficulty else ""
        name = f"`{exercise.name}`{' (further)' if exercise.further else ''}"
        rows.append(f"| {name} | {level} | {exercise.minutes} | {exercise.points} |")
    return "\n".join(rows)


def _predictions(cells: Sequence[percent.Cell], values: percent.QuotedValues) -> Iterator[str]:
    predictions = percent.predictions(cells, values)
    for number, prediction in enumerate(predictions, 1):
        yield f"**{number}.** {prediction.question}"
        yield f"*Answer.* {prediction.answer}"
        yield f"*Behind a wrong guess.* {prediction.wrong}"
    if not predictions:
        yield "This lesson has no predictions."


def _mistakes(course: Course, text: str, lesson: Lesson) -> Iterator[str]:
    expected, _ = expected_mistakes(text)
    for exercise in lesson.exercises:
        lines = [
            f"- {course.mistake_text(mistake.id).sentence} ({mistake.id})\n  *Ask:* {mistake.ask}"
            for mistake in expected
            if mistake.exercise == exercise.name
        ]
        if lines:
            yield f"### `{exercise.name}`"
            yield "\n".join(lines)


@dataclass(frozen=True)
class Stop:
    """A lesson on a route. until: the last exercise that is reached, '' for the whole lesson.

    work: the exercises that learners write, () for all up to `until`; the others are shown solved.
    without: headings of sections that are left out.
    """

    lesson: str
    until: str = ""
    work: Sequence[str] = ()
    without: Sequence[str] = ()


@dataclass(frozen=True)
class Route:
    """minutes: what there is, breaks not counted; a test holds the computed time against it."""

    title: str
    minutes: int
    about: str
    stops: Sequence[Stop]


def routes(course: Course) -> list[Route]:
    """The routes that the course's course.toml describes. Raises: AuthorError for a key that is misspelt or missing."""
    tables = course.about.get("routes", ())
    try:
        return [Route(**table | {"stops": [Stop(**stop) for stop in table["stops"]]}) for table in tables]
    except (TypeError, KeyError) as error:
        raise AuthorError([author_slip(error, "solutions/course.toml")]) from error


def overview(course: Course) -> str:
    """The overview: the notes of each lesson, then the routes with their times."""
    parts = [
        "<!-- `grader build` makes this page; the routes are in solutions/course.toml -->",
        "# Teaching with this course",
        f"Reading times assume {reading_time.SPEED}. All times are for learners who work alone; add time for discussions.",
        "## Notes on each lesson",
        _lessons(course),
    ]
    for route in routes(course):
        parts += [f"## {route.title}", " ".join(route.about.split()), _stops(course, route)]
    return "\n\n".join(parts) + "\n"


def overview_is_stale(course: Course) -> bool:
    """Whether the overview is not what the lessons make. An installed course has no docs/, and none is missed."""
    file = path(course, "README")
    return file.parents[1].is_dir() and text_of(file) != overview(course)


def write_overview(course: Course) -> None:
    """Writes the overview where it is stale."""
    if overview_is_stale(course):
        write_atomically(path(course, "README"), overview(course))


def exercises_of(course: Course, stop: Stop) -> Sequence[str]:
    """The exercises that learners write at a stop."""
    exercises = course.lesson(stop.lesson).exercises
    names = tuple(exercise.name for exercise in exercises if not exercise.further or exercise.name == stop.until)
    return stop.work or names[: names.index(stop.until) + 1 if stop.until else None]


def minutes_of(course: Course, stop: Stop) -> tuple[int, int]:
    """(minutes for the exercises, minutes of reading) of a stop."""
    names, exercises = exercises_of(course, stop), course.lesson(stop.lesson).exercises
    work = sum(exercise.minutes for exercise in exercises if exercise.name in names)
    return work, reading_time.reading(_cells_before(course, stop)).minutes


def total(course: Course, route: Route) -> tuple[int, int]:
    """(minutes for the exercises, minutes of reading) of a route."""
    work, read = zip(*(minutes_of(course, stop) for stop in route.stops), strict=True)
    return sum(work), sum(read)


def _cells_before(course: Course, stop: Stop) -> Sequence[percent.Cell]:
    """The core's cells up to the task that follows the last exercise that is reached, sections that are left out not counted."""
    cells: Sequence[percent.Cell] = course.cells(stop.lesson)
    if stop.until:
        last = next(cell.number for cell in cells if cell.role == "exercise" and cell.exercise == stop.until)
        tasks = (cell.number for cell in cells if cell.mark.startswith(TASK))
        cells = cells[: next((number for number in tasks if number > last), None)]
    read, heading = [], ""
    for cell in (cell for cell in cells if not cell.further):
        if cell.role == "prose" and cell.text.startswith("## "):
            heading = cell.text.split("\n", 1)[0].removeprefix("## ").strip()
        if heading not in stop.without:
            read.append(cell)
    return read


def _lessons(course: Course) -> str:
    rows = ["| lesson | core: exercises, minutes | core: reading, minutes | core | further |", "|---|---|---|---|---|"]
    totals = [0, 0, 0, 0]
    for name in course.lessons():
        work, read = reading_time.of_lesson(course, name, further=False)
        minutes = [work, read, work + read, sum(reading_time.of_lesson(course, name, further=True))]
        totals = [total + new for total, new in zip(totals, minutes, strict=True)]
        rows.append(f"| [{course.heading(name)}]({name}.md) | {' | '.join(map(str, minutes))} |")
    return "\n".join([*rows, f"| all | {' | '.join(map(str, totals))} |"])


def _stops(course: Course, route: Route) -> str:
    rows = ["| lesson | up to | learners write | exercises, minutes | reading, minutes |", "|---|---|---|---|---|"]
    for stop in route.stops:
        work, read = minutes_of(course, stop)
        names = ", ".join(f"`{name}`" for name in exercises_of(course, stop))
        end = f"`{stop.until}`" if stop.until else "the end"
        end += "".join(f", without *{heading}*" for heading in stop.without)
        rows.append(f"| {course.heading(stop.lesson)} | {end} | {names} | {work} | {read} |")
    work, read = total(course, route)
    rows.append(f"| total: {work + read} minutes | | | {work} | {read} |")
    return "\n".join(rows)
