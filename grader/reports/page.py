"""report.html: a class on one page that stands alone, needs no script, and reads without colour and by ear.

From what concerns the room to what concerns one learner: figures, scores, mistakes, exercises, the table, each learner.
"""

from __future__ import annotations

from grader.judging.verdict import Report
from grader.reports import feedback, frequent, matrix, scores
from grader.reports.figures import Pictures
from grader.reports.html import escape
from grader.reports.page_style import document
from grader.reports.room import ClassSummary, plain, remarks

PARTS = (
    ("scores", "Scores"), ("mistakes", "What the room gets wrong"), ("exercises", "Exercises, hardest first"),
    ("table", "Learners × exercises"), ("learners", "Each learner"),
)  # fmt: skip


def render(report: Report) -> str:
    """The page of the class; of one submission alone, what is said of it."""
    room = ClassSummary(report)
    if len(report.submissions) == 1:
        return feedback.page(report.submissions[0], room.labels[0], report.course, foot=_foot(report))
    pictures = Pictures(shared=True)
    made = {
        "scores": scores.svg(room), "mistakes": frequent.mistakes(room) + frequent.others(room),
        "exercises": frequent.exercises(room), "table": matrix.table(room), "learners": _learners(room, pictures),
    }  # fmt: skip
    parts = "".join(
        f'<section class="{id}" aria-labelledby="{id}"><h2 id="{id}">{title}</h2>{made[id]}</section>'
        for id, title in PARTS
    )
    body = f"{pictures.definitions()}{_top(room)}<main>{parts}</main>{_foot(report)}"
    return document(_title(report), body)


def _top(room: ClassSummary) -> str:
    """The figures at a glance and the way to the parts."""
    count = len(room.report.submissions)
    full = sum(one.max_score > 0 and one.score == one.max_score for one in room.report.submissions)
    figures = [
        ("learners", f"{count}"), ("mean", percent(room.mean)), ("median", percent(room.median)),
        ("everything passed", f"{full}"), ("exercises", f"{len(room.columns)}"),
    ]  # fmt: skip
    said = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures)
    remarked = "".join(f'<p class="remark">{escape(said)}</p>' for said in remarks(room))
    links = "".join(f'<li><a href="#{id}">{title}</a></li>' for id, title in PARTS)
    return (
        f'<header class="top"><h1>{escape(_title(room.report))}</h1>{remarked}'
        f'<dl class="figures">{said}</dl><nav aria-label="Parts of this page"><ul>{links}</ul></nav></header>'
    )


def _title(report: Report) -> str:
    return f"{report.course[:1].upper()}{report.course[1:]}: report of the class"


def percent(part: float) -> str:
    """0.514 as '51 %'."""
    return f"{plain(round(100 * part))} %"


def _learners(room: ClassSummary, pictures: Pictures) -> str:
    return "".join(
        feedback.section(one, label, pictures, level=3, id=f"learner-{who}")
        for who, (label, one) in enumerate(zip(room.labels, room.report.submissions, strict=True))
    )


def _foot(report: Report) -> str:
    notes = "".join(f"<p>{escape(note)}</p>" for note in report.notes) if len(report.submissions) == 1 else ""
    return (
        f"<footer>{notes}<p>Inputs drawn with seed {report.seed}, the same for everybody. Isolation while grading: "
        f"{escape(report.isolation)}.</p></footer>"
    )
