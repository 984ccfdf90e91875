"""A report as Markdown for a CI summary: a table for each lesson, the details folded below it.

A class begins with a table of everybody and the mistakes of the room. CI services take a summary of 1 MiB at most: what
does not fit is left out, with a sentence that says so.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from grader.course.course import Course
from grader.judging.verdict import Verdict
from grader.reports import text
from grader.reports.class_summary import ClassSummary, explain, remarks
from grader.reports.html import STATUS_STYLES
from grader.reports.report import LessonReport, Report, SubmissionReport
from grader.util.words import pluralize

# Where GitHub makes a link, a mention or a reference of text, entities or not: a space without width goes there.
_LINKS = re.compile(r"(&#64;(?=[\w.-])|&#35;(?=\w)|&#58;(?=//)|\bwww(?=\.)|\bGH-(?=\d))", re.IGNORECASE)
MOST_BYTES = 900_000  # GitHub takes 1 MiB for a step's summary, and nothing of one that is larger


def render(course: Course, report: Report) -> str:
    """The report; several submissions begin with what concerns them all."""
    summary = ClassSummary(report)
    several = len(report.submissions) > 1
    parts = [*_class(course, summary)] if several else [escape(note) for note in report.notes]
    budget = MOST_BYTES - sum(len(part.encode()) + 2 for part in parts)
    for number, (label, submission) in enumerate(summary.learners):
        part = _submission(submission, label)
        budget -= len(part.encode()) + 2
        if budget < 0:  # of one alone the tables, which say what became of each exercise
            parts += [_submission(submission, label, detailed=False)] * (not several)
            subject = pluralize(len(report.submissions) - number, "submission") if several else "the exercises"
            parts.append(f"Of {subject} the details did not fit here.")
            break
        parts.append(part)
    return "\n\n".join([*parts, text.conditions(report)]) + "\n"


def _class(course: Course, summary: ClassSummary) -> Iterator[str]:
    """What a reader needs first, everybody's points, and the mistakes that several made."""
    yield from (escape(remark) for remark in remarks(summary))
    rows = [
        f"| {escape(label)} | {text.score_text(submission.score)}/{submission.max_score} |"
        for label, submission in summary.learners
    ]
    yield "\n".join(["| submission | points |", "|---|---:|", *rows])
    mistakes = [mistake for mistake in summary.mistakes if len(mistake.learners) > 1]
    rows = [
        f"| {escape(mistake.id)} | {len(mistake.learners)} | {escape(explain(course, mistake).sentence)} |"
        for mistake in mistakes
    ]
    if rows:
        yield "\n".join(["| mistake | made by | what |", "|---|---:|---|", *rows])


def escape(string: str) -> str:
    """Learner text on one line that Markdown takes for nothing but text: no table, link, mention or command."""
    plain = html.escape(text.one_line(string), quote=False)
    plain = re.sub(r"([\\`*_{}\[\]()~!|>^$])", r"\\\1", plain.replace("&gt;", ">")).replace(r"\>", "&gt;")
    plain = re.sub(r"[@#]|:(?=[\w:/+-])", lambda match: f"&#{ord(match[0])};", re.sub(r"&#(?=x?\d)", "&amp;#", plain))
    return _LINKS.sub(r"\1&#8203;", plain)


def _submission(submission: SubmissionReport, label: str, detailed: bool = True) -> str:
    lessons = (_lesson(lesson, detailed) for lesson in submission.lessons)
    parts = [f"## {escape(label)} — {escape(text.points(submission))}", escape(submission.message), *lessons]
    return "\n\n".join(filter(None, parts))


def _lesson(lesson: LessonReport, detailed: bool) -> str:
    table = ["| exercise | result | points | what |", "|---|---|---:|---|"]
    for verdict in lesson.verdicts:
        result = f"{STATUS_STYLES[verdict.status][0]} {text.STATUS_WORDS[verdict.status]}"
        table.append(
            f"| {escape(verdict.exercise)} | {result} | {text.points_fraction(lesson, verdict)} | {escape(text.summary(verdict))} |"
        )
    parts = [f"### {escape(lesson.name)} — {text.score_text(lesson.score)} of {lesson.max_score}", "\n".join(table)]
    parts += [f"Note: {escape(note)}" for note in text.notes(lesson)]
    parts += [_details(verdict) for verdict in lesson.verdicts if detailed and text.has_details(verdict)]
    return "\n\n".join(parts)


def _details(verdict: Verdict) -> str:
    """The whole verdict, folded. A fence longer than any in the text keeps the text inside."""
    body = text.defuse(text.render_verdict(verdict))
    fence = "`" * (max((len(run) for run in re.findall("`+", body)), default=0) + 3)
    return f"<details><summary>{escape(verdict.exercise)}</summary>\n\n{fence}text\n{body}\n{fence}\n\n</details>"
