"""A text by a few characters."""

from __future__ import annotations

import hashlib


def digest(text: str) -> str:
    """Twelve characters that change with the text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
