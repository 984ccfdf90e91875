"""What a notebook imports: check, hint, solution, replay, reset, explain, progress, passed, and the figures.

Everything loads on first use, so that `from grader import check` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["check", "explain", "figures", "hint", "passed", "progress", "replay", "reset", "solution"]


def __getattr__(name: str) -> Any:
    if name == "figures":
        return importlib.import_module("grader.figures")
    if name in __all__:
        importlib.import_module("grader.notebook.shell").listen()
        return getattr(importlib.import_module("grader.notebook.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
