"""report.html: a class on one page that stands alone, needs no script, and reads without colour and by ear.

From what concerns the room to what concerns one learner: figures, scores, mistakes, exercises, the table, each learner.
"""

from __future__ import annotations

from grader.judging.verdict import Report
from grader.reports import attention, feedback, frequent, matrix, scores
from grader.reports.figures import Pictures
from grader.reports.html import STYLE
from grader.reports.room import ClassSummary, plain, remarks
from grader.reports.templating import render as rendered


def render(report: Report) -> str:
    """The page of the class; of one submission alone, what is said of it."""
    room = ClassSummary(report)
    if len(report.submissions) == 1:
        return feedback.page(report.submissions[0], room.labels[0], report.course, report=report)
    pictures = Pictures(shared=True)
    parts = [
        *([("attention", attention.TITLE, attention.section(room))] if attention.entries(room) else []),
        ("scores", "Scores", scores.svg(room)),
        ("mistakes", "What the class got wrong", frequent.mistakes(room) + frequent.others(room)),
        ("exercises", "Exercises, hardest first", frequent.exercises(room)),
        ("table", "Learners × exercises", matrix.table(room)),
        ("learners", "Each learner", _learners(room, pictures)),
    ]
    title = f"{report.course[:1].upper()}{report.course[1:]}: report of the class"
    return (
        rendered(
            "class.html",
            title=title,
            style=STYLE,
            report=report,
            parts=parts,
            remarks=remarks(room),
            figures=_figures(room),
            definitions=pictures.definitions(),
        )
        + "\n"
    )


def _figures(room: ClassSummary) -> list[tuple[str, str]]:
    """The figures at a glance."""
    full = sum(one.max_score > 0 and one.score == one.max_score for one in room.report.submissions)
    return [
        ("learners", f"{len(room.report.submissions)}"),
        ("mean", percent(room.mean)),
        ("median", percent(room.median)),
        ("everything passed", f"{full}"),
        ("exercises", f"{len(room.columns)}"),
    ]


def percent(part: float | None) -> str:
    """0.514 as '51 %'; None, a share of nothing, as '–'."""
    return "–" if part is None else f"{plain(round(100 * part))} %"


def _learners(room: ClassSummary, pictures: Pictures) -> str:
    return "".join(
        feedback.section(one, label, pictures, level=3, id=f"learner-{who}")
        for who, (label, one) in enumerate(zip(room.labels, room.report.submissions, strict=True))
    )
