"""A learner's result as HTML: a section of the class's page, and a page of its own to hand back.

What did not pass is told as check() tells it, tables and pictures included; what passed takes one line.
"""

from __future__ import annotations

from typing import Any

from grader.reports import text
from grader.reports.heatmap import svg
from grader.reports.html import Draw, feedback, render
from grader.reports.report import Report, SubmissionReport


def page(submission: SubmissionReport, label: str, course: str, report: Report | None = None) -> str:
    """A page that stands alone: what one learner gets back, and nothing of anybody else. report: whose conditions stand at its foot."""
    return render("card.html", title=f"{label} — {course}", section=section(submission, label), report=report) + "\n"


def section(submission: SubmissionReport, label: str, draw: Draw = svg, **place: Any) -> str:
    """The result: score, what to fix in the notebook itself, and each lesson with its code.

    place: on a page of several, as learner.html has it: the `level` of the heading, an `id`, the `person` that is named beside the label,
    whether all is `folded` to one line, `code_at` the page that has the code instead of this one.
    """
    place = {"level": 1, "id": "", "person": "", "folded": False, "code_at": ""} | place
    lessons = []
    for lesson in submission.lessons:
        short: dict[str, list[str]] = {}
        # With feedback: what was attempted and did not pass, or is missing for a reason.
        full: list[tuple[str, str]] = []
        points = {
            verdict.exercise: f"{text.score_text(lesson.points_of(verdict))} of {text.score_text(lesson.points[verdict.exercise])}"
            for verdict in lesson.verdicts
        }
        for verdict in lesson.verdicts:
            if verdict.status in ("passed", "not_started"):
                short.setdefault(verdict.status, []).append(verdict.exercise)
            else:
                full.append((verdict.exercise, feedback(verdict, (), draw, points[verdict.exercise])))
        reasons = list(filter(None, (text.mark_reason(lesson, verdict) for verdict in lesson.verdicts)))
        lessons.append((lesson, short, reasons, full, points))
    return render("learner.html", submission=submission, label=label, lessons=lessons, **place)
