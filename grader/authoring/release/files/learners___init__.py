"""What notebooks import where nothing is judged: figures are drawn, answers are not known here.

This copy of the course holds no solution, so that `check` cannot say whether a function is right: it says where that
is found out. What a passing check would open stays closed.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = [  # noqa: F822
    "check",
    "explain",
    "figures",
    "fine",
    "hint",
    "join",
    "leave",
    "passed",
    "predict",
    "progress",
    "replay",
    "reset",
    "solution",
    "stuck",
]

_ELSEWHERE = "this copy of the course has no solutions. Hand the notebook in; your results come from there."


def check(target: Any, *_: Any, **__: Any) -> None:
    """Says where the answer is judged."""
    print(f"{_name(target)} is not judged here: {_ELSEWHERE}")


def passed(target: Any, *_: Any, **__: Any) -> bool:
    """Always False: nothing is judged here."""
    return False


def predict(*_: Any, **__: Any) -> None:
    """Says where the answer is."""
    print("Choose one of the options, then unfold the answer above.")


def _closed(word: str) -> Any:
    def say(*_: Any, **__: Any) -> None:
        print(f"There is no {word} here: {_ELSEWHERE}")

    return say


hint = _closed("hint")
solution = _closed("solution")
explain = _closed("explanation")
progress = _closed("record of progress")
replay = _closed("failing input")
reset = _closed("backup")
join = leave = stuck = fine = _closed("room")


def _name(target: Any) -> str:
    return target if isinstance(target, str) else getattr(target, "__name__", "The answer")


def __getattr__(name: str) -> Any:
    if name == "figures":
        return importlib.import_module("grader.figures")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
