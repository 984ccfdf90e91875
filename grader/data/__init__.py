"""Texts that models are trained on, with their owners' notices; the reader of the real model, and its stored results."""

from __future__ import annotations

from pathlib import Path

_RULE = "=" * 80 + "\n"  # ends the notice at the head of a file


def python_reference() -> str:
    """An excerpt of Python's own language reference, about 268,000 characters, without its notice."""
    return _parts("python_reference_excerpt.txt")[1]


def python_reference_notice() -> str:
    """Whose text the excerpt is and under which licence it is distributed."""
    return _parts("python_reference_excerpt.txt")[0]


def _parts(name: str) -> tuple[str, str]:
    notice, _, text = (Path(__file__).parent / name).read_text(encoding="utf-8").partition(_RULE)
    return notice, text
