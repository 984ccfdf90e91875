"""What notebooks import where nothing is judged: this copy of the course has no solution, and `check` says where one is found out.

What a passing check would open stays closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ELSEWHERE = "this copy of the course has no solutions. Hand the notebook in; your results come from there."


def check(target: Any = None, *_: Any, **__: Any) -> None:
    """Says where the answer is judged."""
    name = target if isinstance(target, str) else getattr(target, "__name__", "The answer")
    print(f"{name} is not judged here: {ELSEWHERE}")


def passed(*_: Any, **__: Any) -> bool:
    """Always False: nothing is judged here."""
    return False


def predict(*_: Any, **__: Any) -> None:
    """Says where the answer is."""
    print("Choose one of the options, then unfold the answer above.")


def _closed(word: str) -> Callable[..., None]:
    def say(*_: Any, **__: Any) -> None:
        print(f"There is no {word} here: {ELSEWHERE}")

    return say


hint = _closed("hint")
solution = _closed("solution")
explain = _closed("explanation")
progress = _closed("record of progress")
replay = _closed("failing input")
reset = _closed("backup")
join = leave = stuck = fine = _closed("room")
