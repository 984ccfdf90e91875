"""How much of a gradient reaches a query through softmax."""

from __future__ import annotations

import numpy as np

from grader.course.declare import UNTRIED, exercise, holds, mistake, patch
from grader.course.spec import Case

SCORES, TOP = "scale * (keys @ q)", "scores.max()"
JACOBIAN, CHAIN, NORM = "np.diag(p) - np.outer(p, p)", "jacobian @ (scale * keys)", "np.sqrt((by_query ** 2).sum())"


def drawn(
    rng: np.random.Generator, n: int, d: int, scale: float, size: float = 1.0
) -> tuple[np.ndarray, np.ndarray, float]:
    """(q, keys, scale): a query of d numbers that are about `size`, and n keys."""
    return (rng.normal(size=d) * size).round(2), rng.normal(size=(n, d)).round(2), scale


def norm(q: np.ndarray, keys: np.ndarray, scale: float) -> float:
    """The exercise's own formula."""
    scores = scale * keys @ q
    e = np.exp(scores - scores.max())
    p = e / e.sum()
    return float(np.linalg.norm((np.diag(p) - np.outer(p, p)) @ (scale * keys)))


@exercise(points=3, minutes=10, difficulty=3, result_type="number", rtol=1e-5, atol=1e-6)
class query_gradient_norm:
    """Measure how much of a gradient reaches a query through softmax."""

    def cases(rng):
        yield Case("hand", "two keys of one number, weights ½ and ½", (np.array([0.0]), np.array([[1.0], [-1.0]]), 1.0))
        yield Case(
            "small",
            "three keys of two numbers",
            (np.array([1.0, 0.0]), np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), 0.5),
        )
        yield Case("few", "four keys of three numbers", drawn(rng, 4, 3, 3**-0.5))
        yield Case("few-again", "the same sizes, new numbers", drawn(rng, 4, 3, 3**-0.5))
        yield Case("wide", "three keys of sixteen numbers", drawn(rng, 3, 16, 0.25))
        yield Case("many", "nineteen keys of five numbers", drawn(rng, 19, 5, 0.4))
        yield Case("square", "as many keys as numbers in a key", drawn(rng, 4, 4, 0.5))
        yield Case("unscaled", "no scale", drawn(rng, 5, 7, 1.0))
        yield Case("large-scale", "a scale above 1", drawn(rng, 5, 2, 2.5))
        yield Case("one-key", "a single key: nothing can move", drawn(rng, 1, 3, 0.7))
        q, keys, scale = drawn(rng, 5, 3, 0.6)
        yield Case("same-keys", "keys that are all the same", (q, np.tile(keys[:1], (5, 1)), scale))
        yield Case("common", "keys with a large part in common", (q, keys + 20, scale))
        whole = rng.integers(-2, 3, size=6), rng.integers(-2, 3, size=(3, 6)), 0.5
        yield Case("whole", "whole numbers", whole)
        q, keys, scale = drawn(rng, 6, 8, 0.35)
        yield Case("float32", "float32 inputs", (q.astype(np.float32), keys.astype(np.float32), scale))
        yield Case("seven", "seven keys of two numbers", drawn(rng, 7, 2, 0.8))
        q, keys, scale = drawn(rng, 4, 3, 0.5)
        stretch = 2.0 ** np.array([30, -30, 30])
        yield Case("plain", "four keys of three numbers once more", (q, keys, scale))
        title = "the same scores, of keys of 10⁹ and 10⁻⁹ and a query of 10⁻⁹ and 10⁹"
        yield Case("stretched", title, (q / stretch, keys * stretch, scale))
        keys = np.array([[100.0, 0.0, 1.0], [100.0, 0.0, 0.0], [99.0, 1.0, 0.0], [-100.0, 0.0, 2.0]])
        yield Case("large", "scores near 9,900 and −9,900", (np.array([99.0, 0.0, 0.5]), keys, 1.0), stage="extremes")
        yield Case(
            "large-negative",
            "every score near −9,000",
            (np.array([-90.0, 0.0, 1.0]), np.abs(keys), 1.0),
            stage="extremes",
        )
        for key, title, scale in (
            ("large-keys", "large keys", 1.0),
            ("large-scaled", "large keys with a small scale", 0.02),
        ):
            yield Case(key, title, (np.array([9.0, 0.5, 1.0]), 10 * keys, scale), stage="extremes")
        keys = np.array([[60.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
        yield Case("decided", "one score far above the others", (np.array([3.0, -2.0]), keys, 1.0), stage="extremes")

    @holds("the norm is right for keys of 10⁹ and a query of 10⁻⁹, too", cases=("plain", "stretched"))
    def no_differences(case, plain, other, stretched):
        first, second = (norm(*one.args) for one in (case, other))
        before, after = (
            float(parts["result"]) if parts["result"].shape == () else np.nan for parts in (plain, stretched)
        )
        if not abs(before / first - 1) < 1e-3 or not np.isfinite(after):
            return UNTRIED
        if abs(after / second - 1) < 1e-4:
            return None
        return (
            f"{after:.4g} came back, and {second:.4g} was expected. The step of a finite difference is too long there; use the chain "
            "rule, which needs no step."
        )

    hints = (
        "Nudge q a little: first the scores move, then the weights. Which of the two steps is `J`?",
        "Chain rule: ∂p/∂q = (∂p/∂scores) (∂scores/∂q), an (n, n) matrix times an (n, d) one. Score j is scale · (keys[j] · q): what is "
        "its derivative with respect to q?",
        "```python\np = softmax(scale * (keys @ q))\nby_query = J(p) @ (____ * ____)  # (n, d)\n"
        "return np.sqrt((by_query**2).____())\n```",
    )

    mistakes = {
        "QG1": mistake(
            patch(CHAIN, "jacobian @ keys"),
            patch(SCORES, "keys @ q"),
            patch(SCORES, "keys @ q", CHAIN, "jacobian @ keys"),
            says="""The scale is missing: inside softmax, in the chain rule or in both; it multiplies the scores, and so
            their derivative, too.""",
            why="""p = softmax(scale · keys q), and ∂scores/∂q = scale · keys. A scale below 1 acts twice: inside softmax it
            makes the weights flatter, and in the chain rule it makes the gradient smaller. Without the first, for long
            vectors one key mostly gets nearly everything, and hardly any gradient is left. Without the second, dividing by
            d_k looks harmless. Without either, 1/√d and 1/d give the same norm.""",
        ),
        "QG4": mistake(
            patch(CHAIN, "jacobian"),
            patch(CHAIN, "jacobian * scale"),
            patch(CHAIN, "np.outer(jacobian.sum(axis=0), q)"),
            patch(CHAIN, "scale * jacobian[:, :, None] * q"),
            patch(CHAIN, "scale * np.outer(np.diag(jacobian), q)"),
            says="The keys are missing from the chain rule, or q stands in their place; ∂p/∂scores should be multiplied by scale · keys.",
            why="""A score is no parameter; it is made of q. Each score is scale · (k · q), so its derivative with respect
            to q is scale · k, one row for each key, and ∂p/∂q = J · (scale · keys); with q as the factor it would be the
            derivative with respect to k. The norms differ: with scores divided by d_k, J is large, but hardly anything
            reaches q.""",
        ),
        "SL7": (
            patch(SCORES, "keys @ q / scale", CHAIN, "jacobian @ (keys / scale)"),
            patch(SCORES, "keys @ q / scale"),
        ),
        "TT1": (
            patch(SCORES, "keys @ q / np.sqrt(len(q))", CHAIN, "jacobian @ keys / np.sqrt(len(q))"),
            patch(SCORES, "scale * (keys @ q) / np.sqrt(len(q))", CHAIN, "jacobian @ (scale * keys) / np.sqrt(len(q))"),
        ),
        "SX46": (patch(JACOBIAN, "np.diag(p)"), patch(JACOBIAN, "np.diag(p * (1 - p))")),
        "WS15": patch(NORM, "(by_query ** 2).sum()"),
        "QG12": mistake(
            patch(NORM, "np.sqrt((by_query ** 2).mean())"),
            patch(NORM, "np.sqrt((by_query ** 2).sum(axis=-1)).mean()"),
            patch(NORM, "np.sqrt((by_query ** 2).sum(axis=-1)).sum()"),
            patch(NORM, "np.linalg.norm(by_query, ord=2)"),
            patch(NORM, "np.abs(by_query).sum()"),
            says="Another measure than the Frobenius norm came back; the root of the sum of all squares is asked for.",
            why="""‖A‖ = √(Σ_ij A_ij²), one sum over all entries. A mean of the squares depends on how many there are. The
            sum of the rows' norms, and that of the absolute values, is larger wherever more than one counts.
            `np.linalg.norm` with `ord=2` takes the largest stretch of a matrix, the spectral norm; they agree where there is
            a single direction, as with two keys. For two equal weights the entries of the Jacobian are ±¼, and its norm is
            ½.""",
        ),
        "QG14": mistake(
            patch(NORM, "np.linalg.norm(jacobian) * np.linalg.norm(scale * keys)"),
            says="Two norms were multiplied; multiply the two matrices first, and take the norm of their product.",
            why="""‖A‖ · ‖B‖ is never below ‖A B‖, and mostly above it. If all keys are the same, ∂p/∂q is 0, though neither factor's norm
            need be.""",
        ),
        "SM5": patch(f" - {TOP}", ""),
        "QG15": mistake(
            patch(JACOBIAN, "np.diag(p) - np.outer(p, np.full_like(p, 1 / len(p)))"),
            says="The plain mean of the keys was subtracted from each key; it should be their mean with the weights p.",
            why="""Row i of the Jacobian times the keys is p_i (k_i − Σ p_j k_j): what the query would read now, not what it would read if
            it looked everywhere alike. The two agree where all weights are equal.""",
        ),
    }
