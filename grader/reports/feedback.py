"""A learner's result as HTML: a section of the class's page, and a page of its own to hand back.

What did not pass is told as check() tells it, tables and pictures included; what passed takes one line.
"""

from __future__ import annotations

from grader.judging.verdict import LessonReport, Report, SubmissionReport, Verdict
from grader.reports import text
from grader.reports.html import STYLE, Pictures, feedback, render


def page(
    one: SubmissionReport, label: str, course: str, pictures: Pictures | None = None, report: Report | None = None
) -> str:
    """A page that stands alone: what one learner gets back, and nothing of anybody else. report: whose conditions stand at its foot."""
    made = section(one, label, pictures or Pictures())
    return render("card.html", title=f"{label} — {course}", style=STYLE, section=made, report=report) + "\n"


def section(
    one: SubmissionReport,
    label: str,
    pictures: Pictures,
    *,
    level: int = 1,
    id: str = "",
    person: str = "",
    folded: bool = False,
    code_at: str = "",
) -> str:
    """The result: score, what to fix in the notebook itself, and each lesson with its code. level: of its heading.

    person: the name beside the label. folded: to one line. code_at: the page that has the code, '' where it is to stand here.
    """
    lessons = [
        (
            lesson,
            _short(lesson),
            list(filter(None, (text.marked(lesson, judged) for judged in lesson.verdicts))),
            [(judged.exercise, feedback(judged, pictured=pictures)) for judged in lesson.verdicts if told(judged)],
        )
        for lesson in one.lessons
    ]
    return render(
        "learner.html",
        one=one,
        label=label,
        lessons=lessons,
        level=level,
        id=id,
        person=person,
        folded=folded,
        code_at=code_at,
    )


def _short(lesson: LessonReport) -> dict[str, list[str]]:
    """The exercises that take one line, by status."""
    found: dict[str, list[str]] = {}
    for judged in lesson.verdicts:
        if not told(judged):
            found.setdefault(judged.status, []).append(judged.exercise)
    return found


def told(judged: Verdict) -> bool:
    """True where feedback is given in full: something was attempted and did not pass, or missing needs its reason."""
    return judged.status not in ("passed", "not_started")
