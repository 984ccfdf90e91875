"""Mistakes of the tests' small exercises, as objects of their own in place of patches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.course.spec import Mistake


def built(build: Callable[..., Any], *ids: str) -> tuple[Mistake, ...]:
    """A mistake for each id; build(id) makes what has it."""
    return tuple(Mistake(id, build(id)) for id in ids)
