"""Words in sentences that are put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

ELSEWHERE = "comes from another cell of the notebook; grading starts without"  # of a name that only the course's demonstrations define


def pluralize(number: int, word: str) -> str:
    """'1 hint', '2 hints'."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def number_cells(labels: Sequence[str]) -> str:
    """'cell 3', 'cells 3, 5 and more' of labels such as 'cell 3'; the first twenty."""
    numbers = ", ".join(label.removeprefix("cell ") for label in labels[:20])
    return f"cell{'s' * (len(labels) > 1)} {numbers}{' and more' * (len(labels) > 20)}"


def format_duration(seconds: float) -> str:
    """'1 day 2 hours', exact to the second."""
    rest, parts = int(seconds), []
    for unit, unit_s in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        number, rest = divmod(rest, unit_s)
        parts += [pluralize(number, unit)] * bool(number)
    return " ".join(parts) or pluralize(0, "second")


def did_you_mean(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """'; did you mean ada?'. Where none is near: '; ' and what is said otherwise, or else the end of the sentence."""
    if matches := get_close_matches(name, names, 1, 0.5):
        return f"; did you mean {matches[0]}?"
    return f"; {otherwise}" if otherwise else "."


def join_names(names: Sequence[str], most: int = 5) -> str:
    """'a, b and 3 more'; 'a and b' where all are told."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
