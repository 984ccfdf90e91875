"""How many learners' marks an exercise's tile has room for, in rem, the unit of room.css: what does not fit is counted, never cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HEIGHT = 42.0  # of all tiles together
WIDTH = {1: 57.0, 2: 26.0}  # of a line of marks, by columns of tiles
HEAD, LINE = 6.6, 2.45  # of a tile without marks, its share of the gaps included; of one line of marks
LETTER, AROUND, BARE, WIDEST = (
    0.78,
    2.7,
    2.45,
    15.0,
)  # of a letter, what is around a name, a mark without one, the widest mark
MORE = 3.4  # the mark that counts those without room


@dataclass(frozen=True)
class Mark:
    """One learner in a tile. kind: 'stuck', 'fine' or the status; label: the name, or ''; word: what the sign stands for."""

    kind: str
    sign: str
    label: str
    word: str

    @property
    def width(self) -> float:
        letters = len(self.label) + (0 if self.sign else len(self.word) + 1)
        return min(AROUND + LETTER * letters, WIDEST) if letters else BARE


@dataclass(frozen=True)
class Group:
    """Learners in one place, the ones to go to first. more: how many are there besides those shown."""

    marks: tuple[Mark, ...]
    more: int = 0


def lines(marks: Sequence[Mark], width: float) -> int:
    """How many lines marks take."""
    count, left = 0, 0.0
    for mark in marks:
        if mark.width > left:
            count, left = count + 1, width
        left -= mark.width
    return count


def cut(marks: Sequence[Mark], width: float, most: int) -> Group:
    """As many marks as so many lines have room for, with the number of the others."""
    if lines(marks, width) <= most:
        return Group(tuple(marks))
    shown = list(marks)
    while shown and lines([*shown, Mark("more", "", "", "+99")], width) > most:
        shown.pop()
    return Group(tuple(shown), len(marks) - len(shown))


def heights(groups: Sequence[Sequence[Mark]], columns: int) -> list[int]:
    """Lines of marks for each row of tiles: what its fuller tile needs, and less where there is no room for all."""
    rows = [groups[at : at + columns] for at in range(0, len(groups), columns)]
    needed = [max(lines(group, WIDTH[columns]) for group in row) for row in rows]
    room = max(int((HEIGHT - HEAD * len(rows)) / LINE), len(rows))
    while sum(needed) > room:
        needed[needed.index(max(needed))] -= 1
    return needed
