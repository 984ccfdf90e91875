"""A toy exercise for testing the judge itself: lesson 01's row-wise softmax, with four known mistakes and cases of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grader.course import references
from grader.course.course import open_course
from grader.course.declare import exercise, holds, patch
from grader.course.spec import Case, MistakeText


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


@exercise(points=2, minutes=5, forbids=("softmax",))
class softmax_rows:
    """Normalise rows."""

    cases = cases

    @holds("each row sums to 1")
    def sums(case, parts):
        total = parts["result"].sum(axis=1)
        return None if np.allclose(total, 1, atol=1e-4) else f"row 0 sums to {total[0]:.3g}."

    mistakes = {
        "SM1": (patch("max(axis=1", "max(axis=0", "sum(axis=1", "sum(axis=0"), patch("sum(axis=1", "sum(axis=0")),
        "SM3": patch("max(axis=1", "max(axis=None", "sum(axis=1", "sum(axis=None"),
        "SM5": patch(" - scores.max(axis=1, keepdims=True)", ""),
        "TY1": patch("return exponentials", "return 2 * exponentials"),
    }
    hints = ("?", "where", "____")


LESSON = "01_three_tokens"  # whose solutions the patches are made in


class ToyCourse:
    """What the judge asks of the course of an exercise."""

    exercises = open_course().exercises

    def next_exercise(self, name):
        return "weighted_sum"

    def lesson_of(self, name):
        return LESSON

    def mistake_text(self, id):
        return MistakeText(id, f"This is {id}.", "why")

    def cells(self, lesson):
        return open_course().cells(lesson)

    def probe_texts(self):
        return {}


EXERCISE = replace(softmax_rows, course=ToyCourse(), lesson=LESSON)


def install(monkeypatch) -> None:
    """Makes the toy known to the course for the time of one test."""
    monkeypatch.setattr(references, "reference", lambda exercise: build())
