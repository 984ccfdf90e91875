"""A report as Markdown for a CI summary: a table for each lesson, the details folded below it."""

from __future__ import annotations

import html
import re

from grader.model import LessonReport, Report, SubmissionReport, Verdict
from grader.reports import text
from grader.reports.html import LOOKS


def render(report: Report) -> str:
    """The report; several submissions begin with a table of them all."""
    parts = []
    if len(report.submissions) > 1:
        rows = [f"| {escape(one.name)} | {one.score}/{one.max_score} |" for one in report.submissions]
        parts.append("\n".join(["| submission | points |", "|---|---:|", *rows]))
    parts += [_submission(one) for one in report.submissions]
    return "\n\n".join(parts) + "\n"


def escape(said: str) -> str:
    """Learner text on one line that Markdown takes for nothing but text: no table, link, mention or command."""
    plain = html.escape(text.one_line(said), quote=False)
    plain = re.sub(r"([\\`*_{}\[\]()~!|>^$])", r"\\\1", plain.replace("&gt;", ">")).replace(r"\>", "&gt;")
    return re.sub(r"[@#]|:(?=[\w:/+-])", lambda found: f"&#{ord(found[0])};", re.sub(r"&#(?=x?\d)", "&amp;#", plain))


def _submission(one: SubmissionReport) -> str:
    parts = [f"## {escape(one.name)} — {one.score} of {one.max_score} points"]
    if one.message:
        parts.append(escape(one.message))
    return "\n\n".join([*parts, *(_lesson(lesson) for lesson in one.lessons)])


def _lesson(lesson: LessonReport) -> str:
    rows = [_row(judged, lesson.points[judged.exercise]) for judged in lesson.verdicts]
    table = ["| exercise | result | points | what |", "|---|---|---:|---|", *rows]
    parts = [f"### {escape(lesson.name)} — {lesson.score} of {lesson.max_score}", "\n".join(table)]
    parts += [f"Note: {escape(note)}" for note in lesson.notes]
    return "\n\n".join([*parts, *(_details(judged) for judged in lesson.verdicts if text.detailed(judged))])


def _row(judged: Verdict, points: int) -> str:
    result = f"{LOOKS[judged.status][0]} {text.WORDS[judged.status]}"
    score = f"{points if judged.passed else 0}/{points}"
    return f"| {escape(judged.exercise)} | {result} | {score} | {escape(text.summary(judged))} |"


def _details(judged: Verdict) -> str:
    """The whole verdict, folded. A fence longer than any in the text keeps the text inside."""
    body = text.defuse(text.verdict(judged))
    fence = "`" * (max((len(run) for run in re.findall("`+", body)), default=0) + 3)
    return f"<details><summary>{escape(judged.exercise)}</summary>\n\n{fence}text\n{body}\n{fence}\n\n</details>"
