"""A report for a terminal: the plain text, with each exercise's line in the colour of its result where a person looks."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap

from grader.judging.verdict import Report
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
CODES = {"green": 32, "red": 31, "magenta": 35, "yellow": 33, "dim": 2}
_LINE = re.compile(rf"^  ({'|'.join(text.WORDS.values())}) +\S*/\S* +\w+")
_STATUS = {word: status for status, word in text.WORDS.items()}


def render(report: Report, *, coloured: bool | None = None) -> str:
    """The report as text that may be printed as it is; learner text is without control characters.

    coloured: also wrapped to the terminal's width; None: where standard output is a terminal.
    """
    said = text.render(report).rstrip("\n")
    if coloured is None:
        coloured = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if not coloured:
        return said
    width = max(shutil.get_terminal_size((100, 24)).columns, 60)
    return "\n".join(_LINE.sub(_colour, _wrapped(line, width)) for line in said.split("\n"))


def _wrapped(line: str, width: int) -> str:
    found = _LINE.match(line)
    return textwrap.fill(line, width, subsequent_indent=" " * 8, break_on_hyphens=False) if found else line


def _colour(line: re.Match[str]) -> str:
    status = _STATUS[line[1]]
    shown = f"{LOOKS[status][0]}{line[0][1:]}"
    return shown if os.environ.get("NO_COLOR") else f"\x1b[{CODES[STYLES[status]]}m{shown}\x1b[0m"
