"""Texts that models are trained on, with their owners' notices; the reader of the real model, and its stored results."""

from __future__ import annotations

from pathlib import Path

_RULE = "=" * 80 + "\n"  # ends the notice at the head of a file


def python_reference() -> str:
    """An excerpt of Python's own language reference, about 268,000 characters, without the notice above it of whose text it is."""
    return (Path(__file__).parent / "python_reference_excerpt.txt").read_text(encoding="utf-8").partition(_RULE)[2]
