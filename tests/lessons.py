"""What judges a lesson's exercises runs in one process, so that what the reference and each mistake show is found out once for all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from grader.course import registry


def of_lessons(names: Iterable[str]) -> list[Any]:
    """Parameters that are lessons, each in the group of itself."""
    return [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in names]


def of_exercises(rows: Iterable[Any], ids: Sequence[str] | None = None) -> list[Any]:
    """Parameters that are exercises, or begin with one, each in the group of its lesson. ids: by default the first's name."""
    rows = [row if isinstance(row, tuple) else (row,) for row in rows]
    named = ids or [row[0] for row in rows]
    return [pytest.param(*row, id=id, marks=pytest.mark.xdist_group(registry.lesson_of(row[0]))) for row, id in zip(rows, named, strict=True)]
