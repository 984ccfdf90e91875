"""attention.csv: whom to look at before grades are imported, and why; a row a reason. The page and the terminal have the same list."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from grader.judging.verdict import Report, SubmissionReport
from grader.reports import sheet, similarity, text
from grader.reports.class_summary import ClassSummary
from grader.reports.html import render as rendered
from grader.util.words import join_names

TITLE = "Before you import the grades"
MOST = 20  # learners in the terminal


def render(report: Report) -> str:
    rows = [(who, why) for who, reasons in entries(ClassSummary(report)) for why in reasons]
    return sheet.write([("learner", "why"), *rows])


def entries(summary: ClassSummary) -> list[tuple[str, list[str]]]:
    """Who is to be looked at, in the report's order, and why."""
    pairs = zip(summary.labels, summary.report.submissions, strict=True)
    named = [(label, list(_reasons(one))) for label, one in pairs]
    for who in summary.same_names:
        named[who][1].append(
            "Another learner's name differs only in case, spaces or invisible characters: find out whose work this is."
        )
    rows = [(label, reasons) for label, reasons in named if reasons]
    return [*rows, *((name, [why]) for name, why in summary.report.not_graded)]


def _reasons(one: SubmissionReport) -> Iterator[str]:
    yield from filter(None, [one.late, similarity.solution_remark(one)])
    yield from text.hand_marks(one)
    failed: dict[tuple[str, ...], list[str]] = {}
    for verdict in one.verdicts:
        if verdict.status == "could_not_grade":
            failed.setdefault(verdict.details[:1], []).append(verdict.exercise)
    for why, names in failed.items():
        yield f"Could not be graded: {join_names(names)}. {' '.join(why)}".strip()
    yield from one.attention


def section(summary: ClassSummary) -> str:
    """The list as HTML; '' where there is nobody on it."""
    numbers = {label: number for number, label in enumerate(summary.labels)}
    rows = [(numbers.get(who), who, reasons) for who, reasons in entries(summary)]
    return rendered("attention.html", entries=rows) if rows else ""


def lines(report: Report) -> Sequence[str]:
    people = entries(ClassSummary(report))
    if not people:
        return ["Nothing needs a look before you import the grades."]
    rows = [f"{TITLE}, look at (all of it in attention.csv):"]
    for who, reasons in people[:MOST]:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        why = textwrap.shorten(text.one_line(reasons[0]), 200, placeholder=" …")
        rows.append(f"  {text.one_line(who, 60)}: {why}{more}")
    return rows + [f"  and {len(people) - MOST} more"] * (len(people) > MOST)
