"""What a notebook imports: check, hint, solution, replay, reset, explain, progress, passed, the figures; join and its kin for a room.

Everything loads on first use, so that `from grader import check` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

from grader.notebook import OFFERED, ROOM

__all__ = [*OFFERED]


def __getattr__(name: str) -> Any:
    if name == "figures":
        return importlib.import_module("grader.figures")
    if name in __all__:
        importlib.import_module("grader.notebook.shell").listen()
        return getattr(importlib.import_module(f"grader.notebook.{'room' if name in ROOM else 'api'}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
