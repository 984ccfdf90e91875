"""What README and docs/learners.md show and must not be typed: the lessons, their road, and a failing check as it really reads.

`python -m tests.readme` writes them, and docs/road.svg; tests/test_readme.py fails where they have become stale.
"""

from __future__ import annotations

import re
from pathlib import Path

from grader.authoring import reading_time
from grader.course.course import open_course
from grader.judging.judge import judge
from grader.reports import text as text_report
from grader.util.files import write_atomically
from tests import road
from tests.live import from_cells

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = {
    README: ("failing code", "lessons", "gpu"),
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
    said = "\n".join(line.rstrip() for line in text_report.render_verdict(verdict).strip().splitlines())
    return {
        "failing code": f"```python\n{WRONG}\n```",
        "failing check": f"```text\n{said}\n```",
        "lessons": lessons(),
        "gpu": gpu(),
    }


# The parts of the course: the lesson that each begins with, its title, what it promises.
PARTS = {
    "00": (
        "The road, Part I: attention itself",
        "You compute attention for three tokens by hand, learn what each step of it is for, and end with a "
        "module in PyTorch through which gradients flow.",
    ),
    "06": (
        "The road, Part II: multi-head causal attention, up to the GPU",
        "You add masks, heads and positions, build the block, train a small language model of your own until it "
        "writes, and make its attention fast on whatever device you have.",
    ),
    "12": (
        "Further roads",
        "Each of these stands alone; take them in any order: where attention came from, its gradients by hand, attention "
        "without its score matrix, a GPU kernel of your own, decoding with a cache, an open model's weights in your own code, what "
        "single heads do, and one attention over several devices.",
    ),
}
HEAD = (f"| lesson | after it you can | {' | '.join(reading_time.ROW)} |", "|---|---|---|---|---|---|")


def gpu() -> str:
    """What `make gpu` measured last, in one sentence."""
    figures = open_course().module("11_gpu.figures")
    runs = figures.stored_runs()
    if not runs:
        return "No run on a GPU is stored yet: `make gpu` makes one, on a computer with a GPU."
    run, t = runs[-1], "2048"
    kernel = f"lesson 15's kernel in Triton {run['kernel']['ms']['your kernel'][t]:.2f}, " if "kernel" in run else ""
    way = {name: f"{ms:.2f}" for name, ms in run["ways"].items() if not isinstance(ms, str)}
    assert "kernel" not in run or t.replace("2", "2,", 1) in run["shape"], "both lessons measure the same shape"
    return (
        f"Lesson 11's attention as `make gpu` measured it on {figures.card(run)} with torch {run['torch'].split('+')[0]} on "
        f"{run['date']}, in milliseconds ({run['shape']}): eager {way['eager']}, compiled {way['compiled']}, {kernel}"
        f"FlexAttention {way['FlexAttention']}, fused {way['fused']}."
    )


def lessons() -> str:
    """A table for each part of the course: what each lesson lets one do, exercises, minutes and points."""
    course, rows = open_course(), []
    road = core = 0
    for name in course.lessons():
        if name[:2] in PARTS:
            title, promise = PARTS[name[:2]]
            rows += [*([""] if rows else []), f"### {title}", "", promise, "", *HEAD]
        lesson = course.lesson(name)
        own = reading_time.row(course, name)
        core += own[1]
        road += own[1] if name[:2] < "12" else 0
        link = f"[{name[:2]} · {lesson.title}](notebooks/{name}.ipynb)"
        rows.append(f"| {link} | {lesson.outcome} | {' | '.join(map(str, own))} |")
    missing = [name.replace("_", " ") for name in course.exercises if name not in course.lessons()]
    to_come = f" To come: {', '.join(missing)}." if missing else ""
    exercises = [one for name in course.lessons() for one in course.lesson(name).exercises]
    together = (
        f"The core of the road takes {road / 60:.0f} hours, that of all lessons {core / 60:.0f}: its exercises, and reading at "
        f"{reading_time.SPEED}. There are {len(exercises)} exercises with {sum(one.points for one in exercises)} points, "
        f"{len(course.core_exercises())} of them in the core."
    )
    return "\n".join([*rows, "", together + to_come])


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
    write_atomically(road.FILE, road.picture())
    for page in PAGES:
        write_atomically(page, filled(page))
