"""What README and docs/learners.md show and must not be typed: the lessons, their road, and a failing check as it really reads.

`python -m tests.readme` writes them, and docs/road.svg; tests/test_readme.py fails where they have become stale.
"""

from __future__ import annotations

import re
from pathlib import Path

from grader.authoring import reading
from grader.course.course import open_course
from grader.judging.judge import judge
from grader.reports import text as text_report
from grader.util.files import write_whole
from tests import road
from tests.live import from_cells

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = {
    README: ("failing code", "lessons"),
    ROOT / "docs" / "learners.md": ("failing check",),
}  # and the blocks of each
EXERCISE = "softmax_rows"
WRONG = """def softmax_rows(scores):
    exps = np.exp(scores - scores.max(axis=0))
    return exps / exps.sum(axis=0)"""


def blocks() -> dict[str, str]:
    """The text between the markers `<!-- name -->` and `<!-- end -->`, by name."""
    verdict = judge(open_course().exercise(EXERCISE), from_cells(EXERCISE, WRONG))
    assert verdict.mistakes, "README promises that this mistake is named"
    said = "\n".join(line.rstrip() for line in text_report.verdict(verdict).strip().splitlines())
    return {"failing code": f"```python\n{WRONG}\n```", "failing check": f"```text\n{said}\n```", "lessons": lessons()}


# The three parts of the course: the lesson that each begins with, its title, what it promises.
PARTS = {
    "00": (
        "Part I: attention itself",
        "You compute attention for three tokens by hand, learn what each step of it is for, and end with a "
        "module in PyTorch through which gradients flow.",
    ),
    "06": (
        "Part II: a model of your own",
        "You add masks, positions and heads, derive the gradients by hand, and train a small language model of "
        "your own until it writes, on a GPU if you have one.",
    ),
    "14": (
        "Part III: attention as it runs today",
        "You compute attention without its table of scores, write text with a cache, run an open model's "
        "weights in your own code, and find out what single heads do.",
    ),
}
HEAD = (
    "| lesson | after it you can | exercises | minutes for them | minutes of reading | points |",
    "|---|---|---|---|---|---|",
)


def lessons() -> str:
    """A table for each part of the course: what each lesson lets one do, exercises, minutes and points."""
    rows: list[str] = []
    counts = [0, 0, 0, 0]
    for name in open_course().lessons():
        if name[:2] in PARTS:
            title, promise = PARTS[name[:2]]
            rows += [*([""] if rows else []), f"### {title}", "", promise, "", *HEAD]
        lesson = open_course().lesson(name)
        own = [
            len(lesson.exercises),
            *reading.of_lesson(open_course(), name),
            sum(exercise.points for exercise in lesson.exercises),
        ]
        counts = [total + new for total, new in zip(counts, own, strict=True)]
        link = f"[{name[:2]} · {lesson.title}](notebooks/{name}.ipynb)"
        rows.append(f"| {link} | {lesson.outcome} | {' | '.join(map(str, own))} |")
    missing = [name.replace("_", " ") for name in open_course().exercises if name not in open_course().lessons()]
    to_come = f" To come: {', '.join(missing)}." if missing else ""
    exercises, working, read, points = counts
    together = f"{exercises} exercises with {points} points, and {round((working + read) / 60)} hours in all"
    speed = f"{reading.WORDS_A_MINUTE} words or {reading.LINES_A_MINUTE} lines of code a minute"
    return "\n".join(
        [
            *rows,
            "",
            f"That is {together}: {working} minutes for the exercises, and {read} of reading at {speed}.{to_come}",
        ]
    )


def filled(page: Path) -> str:
    """The text of a page with its generated parts as they are now."""
    text, contents = page.read_text(encoding="utf-8"), blocks()
    for name in PAGES[page]:
        content = contents[name]
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, count = pattern.subn(lambda found, content=content: f"{found[1]}{content}\n{found[2]}", text)
        assert count == 1, f"{page.name} has no place for {name!r}"
    return text


if __name__ == "__main__":
    road.FILE.parent.mkdir(exist_ok=True)
    write_whole(road.FILE, road.picture())
    for page in PAGES:
        write_whole(page, filled(page))
