"""Helpers for writing mistakes as switches of one implementation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.model import Mistake


def mistakes(build: Callable[..., Any], *ids: str) -> tuple[Mistake, ...]:
    """A Mistake for each id; build(id) makes the implementation with that one bug switched on."""
    return tuple(Mistake(id, build(id)) for id in ids)
