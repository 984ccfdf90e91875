"""Routes through the course for a workshop, docs/teaching/README.md: what is chosen stands here, its time is computed."""

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


ROUTES = (
    Route(
        "90 minutes: attention by hand",
        90,
        "For people who have heard of attention and want to compute it once themselves. Learners need matrix products and some NumPy. "
        "It ends with the learners' own attention on three tokens, and with a proof that published numbers for it are wrong.",
        (
            Stop(
                "00_start_here",
                work=("hard_lookup",),
                without=("Break it on purpose: how sharp?", "What a soft look-up is good for"),
            ),
            Stop(
                "01_three_tokens",
                "three_token_attention",
                ("attention_scores", "softmax_rows", "three_token_attention"),
            ),
        ),
    ),
    Route(
        "Half a day: from a look-up to a causal mask",
        240,
        "Four hours of work, with a break after lesson 01. Learners need NumPy; PyTorch is used only as a library of arrays. "
        "It ends with the mask that lets a model learn from all positions of a text at once without seeing the future.",
        (
            Stop("00_start_here", without=("What a soft look-up is good for",)),
            Stop("01_three_tokens", "three_token_attention"),
            Stop("02_softmax", "softmax"),
            Stop(
                "03_scaled_dot_product_attention",
                "scaled_dot_product_attention",
                ("project_qkv", "scaled_dot_product_attention"),
                without=("What real matrices look like", "Projections that you design"),
            ),
            Stop("06_masks", "causal_mask"),
        ),
    ),
    Route(
        "Two days: to a language model",
        720,
        "Two days of six hours, not counting breaks: lessons 00 to 05 on the first day, the others on the second. Learners need classes "
        "in Python and the chain rule. It ends with a small language model that the learners wrote and trained.",
        (
            Stop(
                "00_start_here",
                work=("hard_lookup",),
                without=("Break it on purpose: how sharp?", "What a soft look-up is good for"),
            ),
            Stop("01_three_tokens", "three_token_attention"),
            Stop("02_softmax", "softmax"),
            Stop(
                "03_scaled_dot_product_attention",
                "scaled_dot_product_attention",
                ("project_qkv", "scaled_dot_product_attention"),
                without=("What real matrices look like", "Projections that you design", "Why no loops"),
            ),
            Stop(
                "05_numpy_to_pytorch",
                "SelfAttention",
                ("attention_torch", "SelfAttention"),
                without=("Between NumPy and PyTorch",),
            ),
            Stop(
                "06_masks",
                "masked_attention",
                ("causal_mask", "masked_attention"),
                without=("Three languages for one mask",),
            ),
            Stop("09_multi_head_attention", "MultiHeadAttention"),
            Stop(
                "11_causal_multi_head_attention",
                work=("CausalMultiHeadAttention", "TransformerBlock"),
                without=("Before or after the sum?",),
            ),
            Stop("12_language_model", without=("One position that never learned", "What the heads look at")),
        ),
    ),
)


def path(course: Course) -> Path:
    return course.root / "docs" / "teaching" / "README.md"


def page(course: Course) -> str:
    """The page for instructors: the notes of each lesson, then the routes with their times."""
    parts = [
        "<!-- `grader build` makes this page; the routes are in grader/authoring/routes.py -->",
        "# Teaching with this course",
        f"Reading times assume {reading.WORDS_A_MINUTE} words or {reading.LINES_A_MINUTE} lines of code a minute. "
        "All times are for learners who work alone; add time for discussions.",
        "## Notes on each lesson",
        _lessons(course),
    ]
    for route in ROUTES if course.installed else ():
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
    names = course.exercises[stop.lesson]
    return stop.work or names[: names.index(stop.until) + 1 if stop.until else None]


def minutes_of(course: Course, stop: Stop) -> tuple[int, int]:
    """(minutes for the exercises, minutes of reading) of a stop."""
    work = sum(one.minutes for one in course.lesson(stop.lesson).exercises if one.name in exercises_of(course, stop))
    return work, reading.minutes(_read(course, stop))


def total(course: Course, route: Route) -> tuple[int, int]:
    """(minutes for the exercises, minutes of reading) of a route."""
    work, read = zip(*(minutes_of(course, stop) for stop in route.stops), strict=True)
    return sum(work), sum(read)


def _read(course: Course, stop: Stop) -> Sequence[Cell]:
    """The cells up to the task that follows the last exercise that is reached, sections that are left out not counted."""
    cells = course.cells(stop.lesson)
    if stop.until:
        own = next(cell.number for cell in cells if cell.role == "exercise" and cell.exercise == stop.until)
        tasks = (cell.number for cell in cells if cell.role == "prose" and task_name(cell.text))
        cells = cells[: next((number for number in tasks if number > own), None)]
    kept, heading = [], ""
    for cell in cells:
        if cell.role == "prose" and cell.text.startswith("## "):
            heading = cell.text.split("\n", 1)[0].removeprefix("## ").strip()
        if heading not in stop.without:
            kept.append(cell)
    return kept


def _lessons(course: Course) -> str:
    rows = ["| lesson | exercises, minutes | reading, minutes | total |", "|---|---|---|---|"]
    work = read = 0
    for name in course.lessons():
        own = reading.of_lesson(course, name)
        work, read = work + own[0], read + own[1]
        rows.append(f"| [{course.heading(name)}]({name}.md) | {own[0]} | {own[1]} | {sum(own)} |")
    return "\n".join([*rows, f"| all | {work} | {read} | {work + read} |"])


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
