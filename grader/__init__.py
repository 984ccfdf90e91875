"""What a notebook imports: the calls of a learner (notebook/api.py), the figures, and join and its kin for a room.

Everything loads on first use, so that `from grader import check` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    # Here and not above: beside a stranger's code nothing of it is there.
    notebook = importlib.import_module("grader.notebook")
    if name == "__all__":
        return list(notebook.OFFERED)
    if name == "figures":
        return importlib.import_module("grader.figures")
    if name in notebook.OFFERED:
        if not importlib.import_module("grader.notebook.kernel_course").kernel_course().judges:
            return getattr(importlib.import_module("grader.notebook.unjudged"), name)
        importlib.import_module("grader.notebook.shell").listen()
        module = "room_client" if name in notebook.ROOM else "api"
        return getattr(importlib.import_module(f"grader.notebook.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__getattr__("__all__")])
