"""A report for a terminal: the plain text, with each exercise's line in the color of its result where a person looks."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap

from grader.judging.verdict import Verdict
from grader.reports import text
from grader.reports.html import STATUS_STYLES
from grader.reports.report import Report

STYLES = {"passed": 32, "failed": 31, "error": 35, "timeout": 35, "memory": 35, "forbidden": 33, "could_not_grade": 33}
STYLES |= {"not_started": 2, "missing": 2}


def render(report: Report, *, coloured: bool | None = None) -> str:
    """The report as text that may be printed as it is; learner text is without control characters.

    `coloured`: also wrapped to the terminal's width; None: where standard output is a terminal.
    """
    if coloured is None:
        coloured = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return (text.render(report, _color_line) if coloured else text.render(report)).rstrip("\n")


def _color_line(verdict: Verdict, result: str, summary: str) -> str:
    width = max(shutil.get_terminal_size((100, 24)).columns, 60)
    line = textwrap.fill(result + summary, width, subsequent_indent=" " * 8, break_on_hyphens=False)
    replacement = f"{STATUS_STYLES[verdict.status][0]}{result[1:]}"
    if not os.environ.get("NO_COLOR"):
        replacement = f"\x1b[{STYLES[verdict.status]}m{replacement}\x1b[0m"
    return line.replace(result, replacement, 1)
