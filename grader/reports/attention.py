"""attention.csv: whom to look at before grades are imported, and why; a row a reason. The page and the terminal have the same list."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from grader.course.course import Course
from grader.reports import sheet, similarity, text
from grader.reports.class_summary import ClassSummary
from grader.reports.html import render as rendered
from grader.reports.report import Report, SubmissionReport
from grader.util.words import join_names

TITLE = "Before you import the grades"
MOST = 20  # lines in the terminal


def render(course: Course, report: Report) -> str:
    rows = [(label, reason) for label, reasons in entries(course, ClassSummary(report)) for reason in reasons]
    return sheet.write([("learner", "why"), *rows])


def entries(course: Course, summary: ClassSummary) -> list[tuple[str, list[str]]]:
    """Whom to look at, in the report's order, and why: first what may be another's work or costs marks, last what proves nothing."""
    twins = "Another learner's name differs only in case, spaces or invisible characters: find out whose work this is."
    rows = [
        (label, [*[twins] * (learner in summary.same_names), *_reasons(course, submission)])
        for learner, (label, submission) in enumerate(summary.learners)
    ]
    return [*(row for row in rows if row[1]), *((name, [reason]) for name, reason in summary.report.not_graded)]


def _reasons(course: Course, submission: SubmissionReport) -> Iterator[str]:
    failed: dict[tuple[str, ...], list[str]] = {}
    for verdict in submission.verdicts:
        if verdict.status == "could_not_grade":
            failed.setdefault(verdict.details[:1], []).append(verdict.exercise)
    for details, exercises in failed.items():
        yield f"Could not be graded: {join_names(exercises)}. {' '.join(details)}".strip()
    sentences = [submission.late, *submission.attention, *text.hand_marks(submission)]
    yield from filter(None, [*sentences, similarity.solution_remark(course, submission)])


def _grouped(course: Course, summary: ClassSummary) -> list[tuple[list[str], tuple[str, ...]]]:
    """The list as people read it: those with the same reasons together, those whose code alone is remarkable last."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for label, reasons in entries(course, summary):
        groups.setdefault(tuple(reasons), []).append(label)
    return sorted(zip(groups.values(), groups), key=lambda group: group[1] == (similarity.REMARK,))


def section(course: Course, summary: ClassSummary) -> str:
    """The list as HTML; '' where there is nobody on it."""
    numbers = {label: number for number, label in enumerate(summary.labels)}
    groups = _grouped(course, summary)
    return rendered("attention.html", groups=groups, numbers=numbers) if groups else ""


def lines(course: Course, report: Report) -> Sequence[str]:
    groups = _grouped(course, ClassSummary(report))
    if not groups:
        return ["Nothing needs a look before you import the grades."]
    rows = [f"{TITLE}, look at (all of it in attention.csv):"]
    for labels, (first, *others) in groups[:MOST]:
        more = f" (and {len(others)} more)" if others else ""
        reason = textwrap.shorten(text.one_line(first), 200, placeholder=" …")
        rows.append(f"  {join_names([text.one_line(label, 60) for label in labels])}: {reason}{more}")
    return rows + [f"  and {len(groups) - MOST} more"] * (len(groups) > MOST)
