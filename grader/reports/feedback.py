"""A learner's result as HTML: a section of the class's page, and a page of its own to hand back.

What did not pass is told as check() tells it, tables and pictures included; what passed takes one line.
"""

from __future__ import annotations

from grader.judging.verdict import LessonReport, SubmissionReport, Verdict
from grader.reports import text
from grader.reports.figures import Pictures
from grader.reports.html import LOOKS, escape, feedback, prose
from grader.reports.page_style import document


def page(one: SubmissionReport, label: str, course: str, pictures: Pictures | None = None, foot: str = "") -> str:
    """A page that stands alone: what one learner gets back, and nothing of anybody else."""
    pictures = pictures or Pictures()
    return document(f"{label} — {course}", f"<main>{section(one, label, pictures)}</main>{foot}")


def section(one: SubmissionReport, label: str, pictures: Pictures, *, level: int = 1, id: str = "") -> str:
    """The result: score, what to mend in the notebook itself, and each lesson. level: of its heading."""
    named = f' id="{id}"' if id else ""
    made = [
        f'<section class="learner"{named}>'
        f'<h{level}>{escape(label)} <span class="points">{escape(text.points(one))}</span></h{level}>'
    ]
    if one.message:
        made.append(f'<p class="message">{prose(one.message)}</p>')
    made += [_lesson(lesson, pictures, level + 1) for lesson in one.lessons]
    return "".join([*made, "</section>"])


def _lesson(lesson: LessonReport, pictures: Pictures, level: int) -> str:
    made = [
        f'<h{level}>{escape(lesson.name)} <span class="points">{text.had(lesson.score)} of {lesson.max_score}</span></h{level}>'
    ]
    made += [f'<p class="note">Note: {prose(note)}</p>' for note in lesson.notes]
    short = [judged for judged in lesson.verdicts if not told(judged)]
    for status in dict.fromkeys(judged.status for judged in short):
        made.append(_line(status, [judged for judged in short if judged.status == status]))
    made += [feedback(judged, pictured=pictures) for judged in lesson.verdicts if told(judged)]
    return "".join(made)


def told(judged: Verdict) -> bool:
    """True where feedback is given in full: something was attempted and did not pass, or missing needs its reason."""
    return judged.status not in ("passed", "not_started")


def _line(status: str, judged: list[Verdict]) -> str:
    """'✓ passed: softmax_rows, weighted_sum'."""
    names = ", ".join(f"<code>{escape(one.exercise)}</code>" for one in judged)
    sign = f'<span class="sign {status}" aria-hidden="true">{LOOKS[status][0]}</span>'
    return f'<p class="line">{sign} {text.WORDS[status]}: {names}</p>'
