"""The source of a lesson: a notebook in the percent format, read into cells."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

HIDE_INPUT = "hide-input"  # the tag of a cell whose code is folded: Jupyter Book's name for it

_HEAD = re.compile(r"# %%(?P<prose> \[markdown\])?(?P<about>.*)")

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


def read_percent(text: str) -> tuple[Cell, ...]:
    """The cells of a source in the percent format, as jupytext reads them.

    Read here because importing jupytext takes three seconds, which every first check() would wait for;
    a test holds the two against each other.
    """
    heads: list[tuple[re.Match[str], int]] = []
    bodies: list[list[str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        head = _HEAD.fullmatch(line)
        if head:
            heads.append((head, number))
            bodies.append([])
        elif bodies:
            bodies[-1].append(line)
    cells = []
    for at, ((head, number), lines) in enumerate(zip(heads, bodies, strict=True)):
        about = {key: json.loads(value) for key, value in _ABOUT.findall(head["about"])}
        if head["prose"]:
            lines = [line[2:] if line.startswith("# ") else line.removeprefix("#") for line in lines]
        role = "prose" if head["prose"] else about.get("role", "")
        body = "\n".join(lines).strip("\n")
        cells.append(Cell(role, body, about.get("exercise", ""), tuple(about.get("tags", ())), at, number))
    return tuple(cells)
