"""What notebooks import where nothing is judged: this copy of the course has no solution, and `check` says where one is found out.

What a passing check would open stays closed.
"""

from __future__ import annotations

from typing import Any

NO_SOLUTIONS = "this copy of the course has no solutions. Hand the notebook in; your results come from there."


def check(target: Any = None, *_: Any, **__: Any) -> None:
    """Says where the answer is judged."""
    name = target if isinstance(target, str) else getattr(target, "__name__", "The answer")
    print(f"{name} is not judged here: {NO_SOLUTIONS}")


def passed(*_: Any, **__: Any) -> bool:
    """Always False: nothing is judged here."""
    return False


def predict(*_: Any, **__: Any) -> None:
    """Says where the answer is."""
    print("Choose one of the options, then unfold the answer above.")


def unavailable(*_: Any, **__: Any) -> None:
    """Says why nothing else answers."""
    print(f"That is not available here: {NO_SOLUTIONS}")


hint = solution = explain = progress = replay = reset = join = leave = stuck = fine = unavailable
