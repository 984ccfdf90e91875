"""similarity.html: whose code is the same but for names, comments, docstrings and spaces, among learners and with the course's solutions.

A list to look at, no accusation: short answers have hardly another way to be written, learners may work together, and the solutions are
public. So only longer answers count, and not those that a third of the class has. Nothing of a stranger's is run or parsed for it: the
tokens of equal syntax trees are equal once their names are numbered in the order in which they come.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import combinations

from grader.course import references
from grader.course.course import open_course
from grader.reports.html import STYLE
from grader.reports.room import ClassSummary
from grader.reports.templating import render as rendered

SHORTEST = 30  # tokens
FEW = 3  # learners whose common code says something in a class of any size
MOST = 300  # rows
_NOTHING = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING, tokenize.ENDMARKER)


@cache
def form(code: str) -> tuple[str, ...]:
    """The tokens with numbered names; () where they are no Python, or too few."""
    numbers: dict[str, str] = {}
    made, last = [], ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            begins = last in ("", ":", "\n", "INDENT")
            last = {tokenize.NEWLINE: "\n", tokenize.INDENT: "INDENT"}.get(token.type, token.string)
            if token.type in _NOTHING or token.type == tokenize.STRING and begins:  # a docstring
                continue
            if token.type in (tokenize.INDENT, tokenize.DEDENT):
                made.append(tokenize.tok_name[token.type])
            elif token.type == tokenize.NAME and not keyword.iskeyword(token.string) and made[-1:] != ["."]:
                made.append(numbers.setdefault(token.string, f"name {len(numbers)}"))
            else:
                made.append(token.string)
    except (tokenize.TokenError, SyntaxError):
        return ()
    return tuple(made) if len(made) >= SHORTEST else ()


def pairs(room: ClassSummary) -> list[tuple[int, int, list[str]]]:
    """(learner, learner, exercises in which they are alike), most exercises first; -1 is the course."""
    alike: dict[tuple[int, int], list[str]] = {}
    for column in room.columns:
        groups: dict[tuple[str, ...], list[int]] = {}
        for who, code in _codes(room, column.exercise):
            if made := form(code):
                groups.setdefault(made, []).append(who)
        most = max(FEW, len(room.labels) // 3)
        for group in groups.values():
            if sum(who >= 0 for who in group) <= most:
                for pair in combinations(group, 2):
                    alike.setdefault(pair, []).append(column.exercise)
    return sorted(((*pair, names) for pair, names in alike.items()), key=lambda one: (-len(one[2]), one[:2]))


def _codes(room: ClassSummary, exercise: str) -> Iterator[tuple[int, str]]:
    if exercise in open_course().exercise_names():
        yield -1, references.solution_text(open_course(), exercise)
    for who, one in enumerate(room.report.submissions):
        yield from ((who, lesson.code[exercise]) for lesson in one.lessons if exercise in lesson.code)


def render(room: ClassSummary) -> str:
    """The page."""
    found = pairs(room)
    answered = Counter(who for column in room.columns for who, code in _codes(room, column.exercise) if form(code))
    rows = [(one, other, names, min(answered[one], answered[other])) for one, other, names in found[:MOST]]
    return (
        rendered(
            "similarity.html", style=STYLE, title="Code that is alike", room=room, rows=rows, more=len(found[MOST:])
        )
        + "\n"
    )
