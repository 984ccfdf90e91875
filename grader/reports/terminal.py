"""A report for a terminal: a table by rich where a person looks, plain text where it is piped."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys

from grader.judging.verdict import LessonReport, Report, SubmissionReport
from grader.reports import text
from grader.reports.html import LOOKS

STYLES = {
    "passed": "green",
    "failed": "red",
    "error": "magenta",
    "timeout": "magenta",
    "memory": "magenta",
    "forbidden": "yellow",
    "not_started": "dim",
    "missing": "dim",
    "could_not_grade": "yellow",
}


def render(report: Report, *, rich: bool | None = None, width: int | None = None) -> str:
    """The report as text that may be printed as it is.

    rich: a table with colours; None: where standard output is a terminal. width: in characters; None: the terminal's.
    Learner text is without control characters, and details follow below the tables.
    """
    if rich is None:
        rich = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if rich:
        with contextlib.suppress(ImportError):  # rich is a comfort, not a need
            return _rich(report, width or shutil.get_terminal_size((100, 24)).columns)
    return text.render(report).rstrip("\n")


def _rich(report: Report, width: int) -> str:
    from rich.console import Console

    # Never to the real terminal: what is returned is printed by whoever asked for it.
    console = Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system=None if os.environ.get("NO_COLOR") else "standard",
        width=width,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )
    for one in report.submissions:
        _submission(console, one)
    console.print(text.conditions(report), style="dim")
    return text.defuse(console.file.getvalue()).rstrip("\n")  # type: ignore[attr-defined]


def _submission(console, one: SubmissionReport) -> None:  # type: ignore[no-untyped-def]
    console.print(f"{text.one_line(one.name)}: {text.points(one)}", style="bold")
    if one.message:
        console.print(text.clean(one.message))
    for lesson in one.lessons:
        console.print(_table(lesson))
        for note in text.notes(lesson):
            console.print(f"Note: {text.clean(note)}", style="dim")
    for lesson in one.lessons:
        for judged in lesson.verdicts:
            if text.detailed(judged):
                console.print(f"\n{text.verdict(judged)}", soft_wrap=True)
    console.print()


def _table(lesson: LessonReport):  # type: ignore[no-untyped-def]
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=f"{lesson.name}: {text.had(lesson.score)} of {lesson.max_score}",
        title_justify="left",
        title_style="",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        header_style="dim",
        expand=False,
    )
    table.add_column("exercise", no_wrap=True)
    table.add_column("result", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("what", overflow="fold")
    for judged in lesson.verdicts:
        result = Text(f"{LOOKS[judged.status][0]} {text.WORDS[judged.status]}", style=STYLES[judged.status])
        table.add_row(Text(judged.exercise), result, text.part(lesson, judged), Text(text.summary(judged)))
    return table
