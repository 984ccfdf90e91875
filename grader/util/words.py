"""Words in sentences that are put together."""

from __future__ import annotations


def counted(number: int, word: str) -> str:
    """'1 hint', '2 hints'."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
