"""What README shows and must not be typed: the lessons, and a failing check as it really reads.

`python -m tests.readme` writes them into README.md; tests/test_readme.py fails where they have become stale.
"""

from __future__ import annotations

import re
from pathlib import Path

from grader import course
from grader.files import write_whole
from grader.judge import judge
from grader.reports import text
from tests.live import from_cells

README = Path(__file__).resolve().parent.parent / "README.md"
EXERCISE = "softmax_rows"
WRONG = '''def softmax_rows(scores):
    exps = np.exp(scores - scores.max(axis=0))
    return exps / exps.sum(axis=0)'''


def blocks() -> dict[str, str]:
    """The text between README's markers `<!-- name -->` and `<!-- end -->`, by name."""
    verdict = judge(course.exercise(EXERCISE), from_cells(EXERCISE, WRONG))
    assert verdict.mistakes, "README promises that this mistake is named"
    said = "\n".join(line.rstrip() for line in text.verdict(verdict).strip().splitlines())
    return {
        "failing code": f"```python\n{WRONG}\n```",
        "failing check": f"```text\n{said}\n```",
        "lessons": lessons(),
    }


def lessons() -> str:
    """A table of the lessons that exist, their question, minutes and points."""
    rows = ["| lesson | question | exercises | minutes | points |", "|---|---|---|---|---|"]
    for name in course.lessons():
        lesson = course.lesson(name)
        minutes, points = (sum(getattr(each, what) for each in lesson.exercises) for what in ("minutes", "points"))
        link = f"[{name[:2]} · {lesson.title}](notebooks/{name}.ipynb)"
        rows.append(f"| {link} | {lesson.question} | {len(lesson.exercises)} | {minutes} | {points} |")
    missing = [name.replace("_", " ") for name in course.CONTRACT if name not in course.lessons()]
    to_come = f" To come: {', '.join(missing)}." if missing else ""
    return "\n".join([*rows, "", f"Minutes are for the exercises; reading comes on top.{to_come}"])


def filled(page: str) -> str:
    """README with its generated parts as they are now."""
    for name, content in blocks().items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page, count = pattern.subn(lambda found, content=content: f"{found[1]}{content}\n{found[2]}", page)
        assert count == 1, f"README has no place for {name!r}"
    return page


if __name__ == "__main__":
    write_whole(README, filled(README.read_text(encoding="utf-8")))
