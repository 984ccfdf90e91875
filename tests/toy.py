"""A toy exercise for testing the judge itself: row-wise softmax with four known mistakes."""

from __future__ import annotations

import numpy as np

from grader import course
from grader.lessons.switch import mistakes
from grader.model import Case, Exercise, MistakeText, Property


def build(*bugs: str):
    def softmax_rows(scores):
        axis = {"SM1": 0, "SM3": None}.get(next((bug for bug in bugs if bug in ("SM1", "SM3")), ""), 1)
        shift = 0 if "SM5" in bugs else scores.max(axis=axis, keepdims=True)
        e = np.exp(scores - shift)
        return e / e.sum(axis=axis, keepdims=True) * (2 if "TY1" in bugs else 1)

    return softmax_rows


def cases(rng):
    yield Case("small", "two rows of three", (np.array([[1.0, 0, 2], [0, 1, 1]]),))
    for i in range(3):
        yield Case(f"random-{i}", "random rows", (rng.normal(size=(4, 3)),))
    yield Case("float32", "float32 rows", (rng.normal(size=(4, 3)).astype(np.float32),))
    for i in range(3):
        yield Case(f"large-{i}", "scores of 1000", (rng.normal(size=(4, 3)) * 1000,), stage="extremes")


def sums(case, parts):
    total = parts["result"].sum(axis=1)
    return None if np.allclose(total, 1, atol=1e-4) else f"row 0 sums to {total[0]:.3g}."


EXERCISE = Exercise(
    "softmax_rows", "Normalise rows.", 2, 5, cases, mistakes(build, "SM1", "SM3", "SM5", "TY1"), ("?", "where", "____"),
    combine=lambda ids: build(*ids), forbids=("softmax",), properties=(Property("each row sums to 1", sums),),
)  # fmt: skip


def install(monkeypatch) -> None:
    """Makes the toy known to the course for the time of one test."""
    monkeypatch.setattr(course, "reference", lambda name: build())
    monkeypatch.setattr(course, "next_exercise", lambda name: "weighted_sum")
    monkeypatch.setattr(course, "mistake_text", lambda id: MistakeText(id, f"This is {id}.", "why"))
