"""A report for a terminal: the plain text, with each exercise's line in the color of its result where a person looks."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap

from grader.reports import text
from grader.reports.html import STATUS_STYLES
from grader.reports.report import Report

STYLES = {"passed": 32, "failed": 31, "error": 35, "timeout": 35, "memory": 35, "forbidden": 33, "could_not_grade": 33}
STYLES |= {"not_started": 2, "missing": 2}
_LINE = re.compile(rf"^  ({'|'.join(text.STATUS_WORDS.values())}) +\S*/\S* +\w+")
_STATUS = {word: status for status, word in text.STATUS_WORDS.items()}


def render(report: Report, *, coloured: bool | None = None) -> str:
    """The report as text that may be printed as it is; learner text is without control characters.

    `coloured`: also wrapped to the terminal's width; None: where standard output is a terminal.
    """
    lines = text.render(report).rstrip("\n").split("\n")
    if coloured is None:
        coloured = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if not coloured:
        return "\n".join(lines)
    width = max(shutil.get_terminal_size((100, 24)).columns, 60)
    for at, line in enumerate(lines):
        if _LINE.match(line):
            line = textwrap.fill(line, width, subsequent_indent=" " * 8, break_on_hyphens=False)
            lines[at] = _LINE.sub(_coloured, line)
    return "\n".join(lines)


def _coloured(line: re.Match[str]) -> str:
    status = _STATUS[line[1]]
    result = f"{STATUS_STYLES[status][0]}{line[0][1:]}"
    return result if os.environ.get("NO_COLOR") else f"\x1b[{STYLES[status]}m{result}\x1b[0m"
