"""The source of a lesson: a notebook in the percent format, read into cells."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

HIDE_INPUT = "hide-input"  # the tag of a cell whose code is folded: Jupyter Book's name for it
FURTHER = "## Further: "  # begins a part that is not of the lesson's core

_HEAD = re.compile(r"^# %%(?P<prose> \[markdown\])?(?P<about>.*)$", re.MULTILINE)
_ABOUT = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\[[^\]]*\])')


@dataclass(frozen=True)
class Cell:
    """One cell of a lesson's source. role: 'prose', 'given', 'demo', 'exercise', 'check' or 'payoff'."""

    role: str
    text: str
    exercise: str = ""
    tags: tuple[str, ...] = ()
    number: int = 0  # position in the lesson, from 0
    line: int = 0  # of the source file, from 1; for messages to authors
    further: bool = False  # whether it is in a further part

    @property
    def mark(self) -> str:
        """The first line of prose that begins with @, such as '@predict' (see prose.py) or '@exercise NAME'; '' for none."""
        first = " ".join(self.text.partition("\n")[0].split()) if self.role == "prose" else ""
        return first if first.startswith("@") else ""


def read_percent(text: str) -> tuple[Cell, ...]:
    """The cells of a source in the percent format, as jupytext reads them.

    Read here because importing jupytext takes three seconds, which every first check() would wait for;
    a test holds the two against each other.
    """
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    cells, further = [], False
    for at, (head, end) in enumerate(zip(heads, ends, strict=True)):
        about = {key: json.loads(value) for key, value in _ABOUT.findall(head["about"])}
        role = "prose" if head["prose"] else about.get("role", "")
        body = text[head.end() : end].strip("\n")
        if head["prose"]:
            body = re.sub("^# ?", "", body, flags=re.MULTILINE).strip("\n")
            further = body.startswith(FURTHER) if body.startswith("## ") else further
        line = text.count("\n", 0, head.start()) + 1
        cells.append(Cell(role, body, about.get("exercise", ""), tuple(about.get("tags", ())), at, line, further))
    return tuple(cells)
