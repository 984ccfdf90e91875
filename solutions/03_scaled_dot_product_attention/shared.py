"""Properties of attention's result, and the mistakes of scale and softmax, for both attention exercises of lesson 03."""

import numpy as np

from grader.course.declare import Property, patch

from ..shared.library import invariant


def row_at_fault(weights: np.ndarray, name: str) -> str | None:
    """What is wrong with rows that should be distributions: a negative number, or a sum that is not 1."""
    if (weights < -1e-6).any():
        return f"the smallest number of {name} is {weights.min():.4g}."
    sums = weights.sum(axis=-1)
    off = np.abs(sums - 1)
    if off.max() <= 1e-3:
        return None
    worst = tuple(int(i) for i in np.unravel_index(off.argmax(), sums.shape))
    return f"Row {worst if len(worst) > 1 else worst[0]} of {name} sums to {sums[worst]:.4g}."


def batch_independence(part: str) -> Property:
    """For cases of `batches`; part: the name of the output."""
    return invariant(
        "another item 0 leaves item 1 as it was",
        ("batch", "item-0-changed"),
        "item 1 was the same both times, and its output changed by up to {gap}.",
        part,
        lambda whole: whole[1],
    )


def key_order_invariance(part: str) -> Property:
    """For cases of `batches`; part: the name of the output."""
    return invariant(
        "the order of the keys, with their values, makes no difference",
        ("batch", "permuted"),
        "keys and values moved together, and the output changed by up to {gap}.",
        part,
    )


ROOT = "math.sqrt(q.shape[-1])"
EXPS = "exps = np.exp(scores - scores.max(axis=-1, keepdims=True))"
WEIGHTS = "weights = exps / exps.sum(axis=-1, keepdims=True)"
FLAT_TOP = patch("scores.max(axis=-1, keepdims=True)", "scores.max(axis=-1)")
FLAT_SUM = patch("exps.sum(axis=-1, keepdims=True)", "exps.sum(axis=-1)")


def top_over(axis: object):
    return patch("scores.max(axis=-1", f"scores.max(axis={axis}")


def sum_over(axis: object):
    return patch("exps.sum(axis=-1", f"exps.sum(axis={axis}")


def softmax_over(axis: object):
    return top_over(axis) + sum_over(axis)


def divided_by(divisor: str):
    """The scores, divided by something else."""
    return patch(ROOT, divisor)


def by_math_exp(row: str):
    """Softmax of each row by math.exp, which raises where np.exp gives ∞; so does the division of Python's numbers by 0."""
    return patch(
        f"{EXPS}\n    {WEIGHTS}",
        f"""rows = []
    for row in scores.reshape(-1, scores.shape[-1]):
        exps = [math.exp(score) for score in row]
        rows.append({row})
    weights = np.array(rows).reshape(scores.shape)""",
    )


# Those of the lines that both attention exercises have.
MISTAKES = {
    "SM1": (softmax_over(-2), sum_over(-2)),
    "SM2": softmax_over(0),
    "SM3": (softmax_over(None), softmax_over((-2, -1)), sum_over(None), sum_over((-2, -1))),
    "SM4": (FLAT_SUM, FLAT_TOP + FLAT_SUM, FLAT_TOP),
    "SM5": (
        patch(EXPS, "exps = np.exp(scores)"),
        by_math_exp("[exp / sum(exps) for exp in exps]"),
        by_math_exp("np.array(exps) / sum(exps)"),
    ),
    "SM6": (top_over(None), top_over((-2, -1))),
    "SD1": patch(f" / {ROOT}", ""),
    "SD2": divided_by("q.shape[-1]"),
    "SD5": patch("/ math", "* math"),
    "SD6": patch(f" / {ROOT}", "", WEIGHTS, f"{WEIGHTS}\n    weights = weights / {ROOT}"),
    "TT8": (
        divided_by("math.sqrt(k.shape[-2])"),
        divided_by("math.sqrt(v.shape[-1])"),
        divided_by("math.sqrt(q.shape[-2])"),
        divided_by("math.sqrt(len(q))"),
        divided_by("math.sqrt(q.shape[1])"),
    ),
    "AB20": patch(WEIGHTS, "weights = scores"),
    "TT14": patch(WEIGHTS, "weights = exps"),
    "AB33": patch(WEIGHTS, f"{WEIGHTS}\n    exps = np.exp(weights)\n    {WEIGHTS}"),
    "MA37": patch(
        "exps = np.exp(scores - ",
        "scores = np.where(np.tri(*scores.shape[-2:]), scores, -np.inf)\n    exps = np.exp(scores - ",
    ),
    "SX25": (
        patch("scores.max(axis=-1, keepdims=True)", "np.maximum(scores.max(axis=-1, keepdims=True), 0)"),
        patch("scores.max", "np.abs(scores).max"),
    ),
    "TT9": (divided_by("(2 * q.shape[-1])"), divided_by("(q.shape[-1] ** 1 / 2)")),
}
