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
_TIME = re.compile(r"(\s*)%time\s+(\S.*)$")
_RUN = re.compile(r"^\s*%run\s+(?:-\w+\s+)*(\S+)", re.MULTILINE)
_TARGETS = re.compile(r"[\w.\[\], ]+")
# Possessive, and a string that does not end reaches to the line's end: no place of a line is read twice.
_STRING = re.compile(r"'''|\"\"\"|'(?:\\.?|[^'\\])*+'?|\"(?:\\.?|[^\"\\])*+\"?|#.*|[()\[\]{}]")


def script_name(text: str) -> str:
    """The file that the last `%run` of a cell names; '' where it has none."""
    return next(reversed(_RUN.findall(text)), "").strip("'\"")


def without_magics(text: str) -> str:
    """The cell as plain Python; unchanged where it already is. A dropped cell gives ''."""
    if match := _CELL_MAGIC.match(text):
        if match[1] not in KEEPS_BODY:
            return ""
        text = "\n" + text[match.end() :]
    if parse(text) is not None:
        return text
    lines = text.split("\n")
    first_line = next(filter(str.strip, lines), "")
    indent = first_line[: len(first_line) - len(first_line.lstrip(" \t"))]
    plain_lines, depth, quote, in_command, in_statement = [], 0, "", False, False
    for line in (line.removeprefix(indent) for line in lines):
        if in_command:  # of a shell command that ended in a backslash
            plain_line = ""
        else:  # what goes on inside brackets, strings and behind a backslash is left alone
            plain_line = line if depth or quote or in_statement else _plain(line)
        is_code = plain_line is line
        if is_code:
            depth, quote = _state(line, depth, quote)
        ends_in_comment = is_code and any(match[0][0] == "#" for match in _STRING.finditer(line))
        continues = line.endswith("\\") and not ends_in_comment
        in_command, in_statement = continues and not is_code, continues and is_code
        plain_lines.append(plain_line)
    return "\n".join(plain_lines)


def _plain(line: str) -> str:
    if match := _TIME.match(line):
        return match[1] + match[2]
    if match := _LINE.match(line):
        return f"{match[1]}pass"
    targets, equals, value = line.partition("=")
    if equals and value.lstrip()[:1] in ("%", "!") and _TARGETS.fullmatch(targets.strip()):
        return f"{targets}= None"
    return line


def _state(line: str, depth: int, quote: str) -> tuple[int, str]:
    """How many brackets, and which triple quote, are open after a line."""
    position = 0
    while True:
        if quote:
            end = line.find(quote, position)
            if end < 0:
                return depth, quote
            position, quote = end + 3, ""
        match = _STRING.search(line, position)
        if match is None:
            return depth, ""
        position = match.end()
        if match[0] in ("'''", '"""'):
            quote = match[0]
        elif match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth = max(depth - 1, 0)
