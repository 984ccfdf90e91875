"""Words in sentences that are put together."""

from __future__ import annotations

ELSEWHERE = "comes from another cell of the notebook; grading starts without"  # of a name that only the course's demonstrations define


def counted(number: int, word: str) -> str:
    """'1 hint', '2 hints'."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
