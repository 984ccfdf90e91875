"""Lesson 02: softmax over any axis, with a temperature, in logarithms, and its derivative."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from grader.lessons.lesson_02_mistakes import jacobian_with, log_softmax_with, softmax_with, tempered_with
from grader.lessons.lesson_02_texts import TEXTS
from grader.lessons.switch import mistakes
from grader.model import Case, Exercise, Lesson, Mistake, Property

Array = np.ndarray
FLOAT32_AT_1E4 = 2e-3  # neighbouring float32 numbers near 10000 are 1e-3 apart; exp makes of it a relative error
# exp overflows in float32 beyond 88: in the first row where the minimum is subtracted, in the second where the mean is, too.
# In the third it underflows where the largest absolute value is.
FAR_FLOAT32 = np.array([[60.0, 50.0, -60.0, 59.0], [-100.0, 100.0, -90.0, -100.0], [-100.0, -99.0, -98.0, -101.0]])


def _rows(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> Array:
    return rng.normal(size=shape) * scale


def softmax_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Every axis of one to four dimensions, hidden entries, far apart rows, large numbers, float32."""
    yield Case("small", "one row of three", (np.array([1.0, 0.0, 2.0]),))
    yield Case("rows", "two rows of three", (np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 1.0]]),))
    yield Case("columns", "the same, along axis 0", (np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 1.0]]), 0))
    yield Case("seen-again", "the same shape, new numbers", (_rows(rng, 2, 3),))
    yield Case("square", "as many rows as columns", (_rows(rng, 4, 4),))
    yield Case("square-axis", "as many rows as columns, axis=1 by name", (_rows(rng, 4, 4),), {"axis": 1})
    yield Case("middle", "the middle axis of three", (_rows(rng, 2, 5, 3), 1))
    yield Case("first", "the first axis of three", (_rows(rng, 4, 2, 3),), {"axis": 0})
    yield Case("heads", "the last axis but one of four", (_rows(rng, 2, 3, 4, 5), -2))
    yield Case("third", "axis 2 of four, counted from the front", (_rows(rng, 3, 2, 5, 4), 2))
    yield Case("whole", "whole numbers", (np.array([[3, -1, 0], [2, 2, 2]]),))
    yield Case("one", "a single entry in each row", (_rows(rng, 3, 1),))
    for i, shape in enumerate(((4,), (3, 5), (2, 4, 3))):
        x = _rows(rng, *shape)
        x[..., i] = -np.inf
        yield Case(f"hidden-{i}", "an entry of −∞ in each row", (x,))
    x = _rows(rng, 4, 3)
    x[[0, 2, 3], [0, 2, 2]] = -np.inf
    yield Case("hidden-columns", "entries of −∞, along axis 0", (x, 0))
    for i, (x, axis) in enumerate(((FAR_FLOAT32, -1), (_rows(rng, 5, 2), 0), (_rows(rng, 2, 3, 4), 1))):
        yield Case(f"float32-{i}", "float32 input", (x.astype(np.float32), axis), dtype=("float32",))
    for i, shape in enumerate(((4,), (3, 4), (2, 3, 5))):
        x = rng.integers(-100, 101, shape) * 100.0
        yield Case(f"large-{i}", "entries of up to ten thousand", (x,), stage="extremes", rtol=FLOAT32_AT_1E4)
    for i in range(3):
        rows = np.array([[0.0, 1.0, 0.5], [-5000.0, -5001.0, -5000.5]]) + rng.integers(0, 3, size=(2, 3))
        title = "rows far from one another"
        if i == 2:  # a fill in place of −∞, be it −1000 or −10000, is no lower than the entries beside it
            rows[1] -= 4998.0
            rows[:, 1] = -np.inf
            title += ", with entries of −∞"
        yield Case(f"far-{i}", title, (rows,), stage="extremes", rtol=FLOAT32_AT_1E4)


def _axis_of(case: Case, at: int = 1) -> int:
    return case.args[at] if len(case.args) > at else case.kwargs.get("axis", -1)


def _sums_to_one(case: Case, parts: dict[str, Array]) -> str | None:
    axis = _axis_of(case, len(case.names) - 1)
    total = parts["result"].sum(axis=axis)
    worst = float(np.ravel(total)[np.abs(np.ravel(total) - 1).argmax()])
    return None if abs(worst - 1) < 1e-4 else f"along axis {axis} a sum is {worst:.4g}."


def _hidden_get_nothing(case: Case, parts: dict[str, Array]) -> str | None:
    hidden = parts["result"][np.isneginf(case.args[0])]
    return None if not hidden.any() else f"an entry of −∞ has the weight {hidden[hidden != 0][0]:.4g}."


def tempered_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield Case("small", "one row of three at temperature 2", (np.array([1.0, 0.0, 2.0]), 2.0))
    yield Case("cold", "two rows at temperature 0.5", (np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 1.0]]), 0.5))
    yield Case("seen-again", "the same shape, new numbers", (_rows(rng, 2, 3), 0.5))
    yield Case("one", "temperature 1", (_rows(rng, 3, 4), 1.0))
    yield Case("whole", "whole numbers, temperature 3", (np.array([[3, -1, 0], [2, 5, 1]]), 3))
    yield Case("columns", "along axis 0", (_rows(rng, 4, 2), 0.7, 0))
    yield Case("middle", "the middle axis of three", (_rows(rng, 2, 5, 3), 4.0), {"axis": 1})
    yield Case("first", "the first axis of three", (_rows(rng, 4, 2, 3), 0.8, 0))
    yield Case("square", "as many rows as columns", (_rows(rng, 3, 3), 1.5))
    yield Case("float32", "float32 input", (_rows(rng, 2, 5).astype(np.float32), 0.3))
    yield Case("hot", "temperature 10000", (_rows(rng, 2, 4) * 3, 1e4))
    for i in range(3):
        x = np.vstack([rng.permutation(3) * 1e-3, rng.permutation(3) + 1.0 + i])  # as 0, 1, 2 at temperature 1; and one takes all
        x[1] *= -1 if i else 1  # every entry far below 0
        yield Case(f"frozen-{i}", "temperature 0.001", (x, 1e-3), stage="extremes")
    for i, temperature in enumerate((1e4, 4e3, 2e3)):
        x = rng.permutation(np.arange(-10, 11, 2))[:8].reshape(2, 4) * 1000.0
        title = "entries of up to ten thousand at temperatures of thousands"
        yield Case(f"large-{i}", title, (x, temperature), stage="extremes")
    x = rng.integers(-100, 101, (4, 4)) * 100.0
    x[1:3] = -1e4, -9998.0, -1e4, -9999.0
    x[2] += 9400  # exp(−600) is not 0, exp(−1200) is
    yield Case("large-plain", "entries of up to ten thousand at temperature 1", (x, 1.0), stage="extremes", rtol=FLOAT32_AT_1E4)
    for i, temperature in enumerate((0, 0.0, np.float64(0.0), -1.0, -0.5, -3)):
        title = f"temperature {temperature:g}".replace("-", "−")
        yield Case(f"refused-{i}", title, (_rows(rng, 2, 3), temperature), raises="ValueError")


def log_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield Case("small", "one row of three", (np.array([1.0, 0.0, 2.0]),))
    yield Case("rows", "two rows of three", (np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 1.0]]),))
    yield Case("columns", "the same, along axis 0", (np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 1.0]]), 0))
    yield Case("seen-again", "the same shape, new numbers", (_rows(rng, 2, 3),))
    yield Case("square", "as many rows as columns", (_rows(rng, 4, 4),))
    yield Case("middle", "the middle axis of three", (_rows(rng, 2, 5, 3), 1))
    yield Case("first", "the first axis of three", (_rows(rng, 4, 2, 3),), {"axis": 0})
    yield Case("whole", "whole numbers", (np.array([[3, -1, 0], [2, 2, 2]]),))
    yield Case("float32", "float32 input", (_rows(rng, 3, 5).astype(np.float32),))
    yield Case("one", "a single entry in each row", (_rows(rng, 3, 1),))
    yield Case("far-small", "0 and minus ten thousand", (np.array([0.0, -1e4]),), stage="extremes")
    for i, shape in enumerate(((4,), (3, 4), (2, 3, 5))):
        x = rng.integers(-100, 101, shape) * 100.0
        x[..., 0], x[..., 1] = 1e4, -1e4
        title = "entries of ten thousand and minus ten thousand"
        yield Case(f"large-{i}", title, (x,), stage="extremes", atol=FLOAT32_AT_1E4)
    rows = np.array([[-9000.0, -9000.0, -9000.0, -1e4], [-1e4, -9980.0, -9980.0, -9980.0]])  # ln 3 below x − max, everywhere
    yield Case("apart-0", "three equal scores and one below them, all far below 0", (rows,), stage="extremes", atol=FLOAT32_AT_1E4)
    for i in (1, 2):
        rows = np.array([[0.0, 1.0, 0.5], [-5000.0, -5001.0, -5000.5]]) + rng.integers(0, 3, size=(2, 3))
        rows[0] += 6000 * (i == 1)
        yield Case(f"apart-{i}", "rows far from one another", (rows,), stage="extremes", atol=FLOAT32_AT_1E4)


def _logs_sum_to_one(case: Case, parts: dict[str, Array]) -> str | None:
    total = np.ravel(np.exp(parts["result"]).sum(axis=_axis_of(case)))
    worst = float(total[np.abs(total - 1).argmax()])
    return None if abs(worst - 1) < 1e-4 else f"their exponentials sum to {worst:.4g}."


def jacobian_cases(rng: np.random.Generator) -> Iterator[Case]:
    soft = softmax_with()
    yield Case("small", "the weights (½, ¼, ¼)", (np.array([0.5, 0.25, 0.25]),))
    yield Case("two", "two weights", (np.array([0.9, 0.1]),))
    yield Case("seen-again", "three other weights", (soft(_rows(rng, 3)),))
    yield Case("equal", "four equal weights", (np.full(4, 0.25),))
    yield Case("random", "eleven weights, small ones among them", (soft(_rows(rng, 11, scale=2.0)),))
    yield Case("sure", "one weight is 1", (np.array([0.0, 1.0, 0.0]),))
    yield Case("whole", "one weight is 1, whole numbers", (np.array([1, 0, 0, 0]),))
    yield Case("one", "a single weight", (np.array([1.0]),))
    yield Case("float32", "float32 weights", (soft(_rows(rng, 6)).astype(np.float32),))


def _rows_sum_to_zero(case: Case, parts: dict[str, Array]) -> str | None:
    total = parts["result"].sum(axis=1)
    at = int(np.abs(total).argmax())
    return None if abs(total[at]) < 1e-5 else f"row {at} sums to {total[at]:.4g}."


_AXIS_BUGS = ("SM3", "SM4", "SM5", "SM6", "SX1", "SX4", "SX10", "SX23", "SX25", "SX26", "SX27")


def _in_other_ways(build: Callable[..., Callable], *more: tuple[str, str]) -> tuple[Mistake, ...]:
    """The mistakes of _AXIS_BUGS as they are written otherwise; more: (id, way) of one exercise."""
    ways = (
        ("SM3", "of the sum alone"), ("SM4", "of both"), ("SM5", "by math.exp"), ("SM6", "by math.exp"),
        ("SX27", "of the sum alone"), ("SX27", "axis 0 by default"), ("SX27", "axis −2 by default"),
        ("SX27", "axis −2 always"), *more,
    )  # fmt: skip
    return tuple(Mistake(id, build(id, way)) for id, way in ways)


_STORED = (("SM5", "by math.exp into an array"), ("SM6", "by math.exp into an array"))
_IN_FLOAT64 = tuple((id, "in float64") for id in ("SM5", "SM6", "SX25"))
lesson = Lesson(
    name="02_softmax",
    title="Softmax",
    question="What does the one non-linear step of attention do, and how does it break?",
    outcome="write a softmax that neither overflows nor underflows, and differentiate it",
    texts=TEXTS,
    exercises=(
        Exercise(
            name="softmax", task="Turn numbers into weights that sum to 1 along any axis, whatever their size.", points=3, minutes=12,
            cases=softmax_cases, forbids=("softmax", "attention"),
            mistakes=(
                *mistakes(softmax_with, *_AXIS_BUGS, "SX2", "SX3", "SX5", "SX7", "SX8", "TT14"),
                *_in_other_ways(softmax_with, *_STORED, *_IN_FLOAT64),
                Mistake("SX5", softmax_with("SX5", "of whole numbers, too")),
            ),
            combine=lambda ids: softmax_with(*ids),
            properties=(
                Property("along the axis the weights sum to 1", _sums_to_one),
                Property("an entry of −∞ gets weight 0", _hidden_get_nothing),
            ),
            hints=(
                "What is the largest number that `np.exp` can take in float64? What could be subtracted from a row without changing "
                "its weights?",
                "Subtract the maximum *along the axis*, keeping that axis with `keepdims=True`, then divide by the sum along it.",
                "top = x.max(axis=____, keepdims=____)\ne = np.exp(____)\nreturn e / e.sum(____)",
            ),
        ),
        Exercise(
            name="softmax_with_temperature", task="Make the weights sharper or flatter by a temperature.", points=2, minutes=6,
            cases=tempered_cases, forbids=("softmax", "attention"),
            mistakes=(
                *mistakes(
                    tempered_with, *_AXIS_BUGS, "SX5", "SX11", "SX12", "SX13", "SX14", "SX19", "SX20", "SX21", "SX22", "SX24"),
                *_in_other_ways(tempered_with, *_STORED),
            ),
            combine=lambda ids: tempered_with(*ids),
            properties=(Property("along the axis the weights sum to 1", _sums_to_one),),
            hints=(
                "At which temperature should nothing change? Which temperatures make no sense?",
                "Divide x before softmax. Compare the temperature with 0 first.",
                "if temperature ____ 0:\n    raise ____(...)\nreturn softmax(x ____ temperature, axis)",
            ),
        ),
        Exercise(
            name="log_softmax", task="Give the logarithms of the weights without ever rounding a weight to 0.", points=2, minutes=8,
            cases=log_cases, forbids=("softmax", "attention"),
            mistakes=(
                *mistakes(log_softmax_with, *_AXIS_BUGS, "SX30", "SX31", "SX32", "SX33", "SX34", "SX35"),
                *_in_other_ways(log_softmax_with),
                Mistake("SX33", log_softmax_with("SX33", "of the sum alone")),
            ),
            combine=lambda ids: log_softmax_with(*ids),
            properties=(Property("the exponentials sum to 1 along the axis", _logs_sum_to_one),),
            hints=(
                "What is ln(eᵃ / b)? Does it need eᵃ at all?",
                "With s = x − max: ln softmax = s − ln Σ eˢ. The sum is at least 1, so its logarithm is safe.",
                "s = x - x.max(axis=axis, keepdims=True)\nreturn s - np.log(____)",
            ),
        ),
        Exercise(
            name="softmax_jacobian", task="Say how each weight answers to each score.", points=2, minutes=8,
            cases=jacobian_cases, forbids=("softmax", "attention"),
            mistakes=(
                *mistakes(
                    jacobian_with, "SX40", "SX41", "SX42", "SX43", "SX44", "SX45", "SX46", "SX47", "SX48", "SX49", "SX50", "WS14"),
                Mistake("SX49", jacobian_with("SX49", "as columns")),
            ),
            properties=(Property("each row sums to 0", _rows_sum_to_zero),),
            hints=(
                "If one score grows, which weights grow and which shrink? What must all changes add up to?",
                "∂p_i/∂x_j is p_i (1 − p_i) on the diagonal and −p_i p_j elsewhere: a diagonal matrix less an outer product.",
                "return np.diag(____) - np.outer(____, ____)",
            ),
        ),
    ),
)  # fmt: skip
