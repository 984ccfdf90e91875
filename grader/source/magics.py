"""Takes a notebook's magics and shell commands out of a cell, so that the rest runs as plain Python.

`%%time`, `%%capture` and `%%prun` keep the cell below them; any other `%%magic` drops its cell, as `%%timeit` does, which
runs it in a function of its own. `%time statement` keeps the statement; every other line magic, shell line and question (`x?`) is
dropped, and `x = %magic` or `x = !command` gives None. What all lines are indented by goes, as in a kernel.
Line numbers stay.
"""

from __future__ import annotations

import re

from grader.source.definitions import parse

KEEPS_BODY = ("time", "capture", "prun")
_CELL_MAGIC = re.compile(r"\s*%%(\w+)[^\n]*\n?")
_LINE = re.compile(r"(\s*)(?:[%!?].*|[\w.\[\]*]+\s*\?\??\s*)$")
_TIMED = re.compile(r"(\s*)%time\s+(\S.*)$")
_RUN = re.compile(r"^\s*%run\s+(?:-\w+\s+)*(\S+)", re.MULTILINE)
_TARGETS = re.compile(r"[\w.\[\], ]+")
# Possessive, and a string that does not end reaches to the line's end: no place of a line is read twice.
_STRING = re.compile(r"'''|\"\"\"|'(?:\\.?|[^'\\])*+'?|\"(?:\\.?|[^\"\\])*+\"?|#.*|[()\[\]{}]")


def file_run(text: str) -> str:
    """The file that the last `%run` of a cell names; '' where it has none."""
    return next(reversed(_RUN.findall(text)), "").strip("'\"")


def without_magics(text: str) -> str:
    """The cell as plain Python; unchanged where it already is. A dropped cell gives ''."""
    match = _CELL_MAGIC.match(text)
    if match:
        if match[1] not in KEEPS_BODY:
            return ""
        text = "\n" + text[match.end() :]
    if parse(text) is not None:
        return text
    lines = text.split("\n")
    first = next(filter(str.strip, lines), "")
    indent = first[: len(first) - len(first.lstrip(" \t"))]
    plain, depth, quote, continued, goes_on = [], 0, "", False, False
    for line in (line.removeprefix(indent) for line in lines):
        if continued:  # of a shell command that ended in a backslash
            new = ""
        else:  # what goes on inside brackets, strings and behind a backslash is left alone
            new = line if depth or quote or goes_on else _plain(line)
        code = new is line
        if code:
            depth, quote = _state(line, depth, quote)
        ends_in_comment = code and any(match[0][0] == "#" for match in _STRING.finditer(line))
        joined = line.endswith("\\") and not ends_in_comment
        continued, goes_on = joined and not code, joined and code
        plain.append(new)
    return "\n".join(plain)


def _plain(line: str) -> str:
    timed = _TIMED.match(line)
    if timed:
        return timed[1] + timed[2]
    dropped = _LINE.match(line)
    if dropped:
        return f"{dropped[1]}pass"
    targets, equals, value = line.partition("=")
    if equals and value.lstrip()[:1] in ("%", "!") and _TARGETS.fullmatch(targets.strip()):
        return f"{targets}= None"
    return line


def _state(line: str, depth: int, quote: str) -> tuple[int, str]:
    """How many brackets, and which triple quote, are open after a line."""
    at = 0
    while True:
        if quote:
            end = line.find(quote, at)
            if end < 0:
                return depth, quote
            at, quote = end + 3, ""
        match = _STRING.search(line, at)
        if match is None:
            return depth, ""
        at = match.end()
        if match[0] in ("'''", '"""'):
            quote = match[0]
        elif match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth = max(depth - 1, 0)
