"""How the course was cut before, so that a learner's notebooks of an earlier version are still known for what they are."""

from __future__ import annotations

# Lessons that had another name, and exercises that stood in another lesson's notebook.
RENAMED = {"12_gpu": "13_gpu"}
MOVED = {"generate": "11_causal_multi_head_attention"}


def current(lesson: str) -> str:
    """The name of a lesson as it is now."""
    return RENAMED.get(lesson, lesson)


def former(lesson: str) -> tuple[str, ...]:
    """The names that a lesson had."""
    return tuple(old for old, new in RENAMED.items() if new == lesson)
