"""Lesson 08: the backward pass of attention, by hand and in NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grader.lessons.lesson_04_mistakes import softmax
from grader.lessons.lesson_08_mistakes import FINITE_DIFFERENCES, attention, of_two, through_softmax
from grader.lessons.switch import mistakes
from grader.model import Case, Exercise, Lesson, Mistake, MistakeText, Property

Array = np.ndarray

def _weights(rng: np.random.Generator, *shape: int) -> Array:
    return softmax(rng.normal(size=shape) * 1.5)


def softmax_backward_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield Case("small", "one row of three weights", (np.array([1.0, 0.0, 2.0]), np.array([0.5, 0.25, 0.25])))
    rows = np.array([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])
    yield Case("two-rows", "two rows of three weights, a whole-number gradient", (np.array([[1, 0, 2], [-1, 3, 0]]), rows))
    yield Case("square", "as many rows as weights in a row", (rng.normal(size=(4, 4)), _weights(rng, 4, 4)))
    yield Case("seen-again", "the same shape, new numbers", (rng.normal(size=(2, 3)), _weights(rng, 2, 3)))
    yield Case("batch", "a batch of heads", (rng.normal(size=(2, 3, 5, 19)), _weights(rng, 2, 3, 5, 19)))
    yield Case("one-key", "a single key: nothing can move", (rng.normal(size=(3, 1)), np.ones((3, 1))))
    yield Case("constant", "the same gradient for every weight of a row", (np.full((3, 4), 2.5), _weights(rng, 3, 4)))
    single = rng.normal(size=(3, 6)).astype(np.float32), _weights(rng, 3, 6).astype(np.float32)
    yield Case("float32", "float32 input", single)
    yield Case("whole", "a whole-number gradient and one-hot weights", (np.array([[3, -1, 2, 0]]), np.array([[0, 0, 1, 0]])))
    saturated = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    yield Case("saturated", "weights of exactly 0 and 1", (rng.normal(size=(2, 3)) * 100, saturated), stage="extremes")


def _qkvg(rng: np.random.Generator, lead: tuple[int, ...], t_q: int, t_k: int, d_k: int, d_v: int) -> tuple[Array, ...]:
    shapes = ((t_q, d_k), (t_k, d_k), (t_k, d_v), (t_q, d_v))
    return tuple(rng.normal(size=(*lead, *shape)) for shape in shapes)


def attention_backward_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield Case("small", "two queries, three keys, whole numbers", (
        np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]),
        np.array([[1.0], [0.0], [2.0]]), np.array([[1.0], [-1.0]]),
    ))  # fmt: skip
    yield Case("sizes", "all sizes different", _qkvg(rng, (2,), 5, 7, 4, 6))
    yield Case("seen-again", "the same shapes, new numbers", _qkvg(rng, (2,), 5, 7, 4, 6))
    # Without a batch axis sums that lost their axis run here, and their numbers say where it was lost.
    yield Case("square", "as many queries as keys and features", _qkvg(rng, (), 4, 4, 4, 4))
    yield Case("square-again", "the same square shapes, new numbers", _qkvg(rng, (), 4, 4, 4, 4))
    yield Case("plain", "no batch axis, nineteen keys", _qkvg(rng, (), 9, 19, 2, 4))
    yield Case("heads", "batch and heads in front", _qkvg(rng, (2, 3), 4, 6, 5, 2))
    yield Case("one-key", "a single key", _qkvg(rng, (2,), 3, 1, 4, 5))
    yield Case("float32", "float32 input", tuple(a.astype(np.float32) for a in _qkvg(rng, (2,), 3, 4, 5, 6)))
    whole = (rng.integers(-2, 3, size=shape) for shape in ((3, 2), (4, 2), (4, 5), (3, 5)))
    yield Case("whole", "arrays of whole numbers", tuple(whole))
    for i in range(3):
        q, k, v, grad = _qkvg(rng, (2,), 3, 4, 2, 5)
        q = q + 2.0 * np.sign(q)
        yield Case(f"large-{i}", "scores of thousands", (q, k * 1000, v, grad), stage="extremes", rtol=1e-3, atol=1e-2)
    for i in range(3):  # a step that fits one feature is far too long for its neighbour, in queries and in keys
        q, k, v, grad = _qkvg(rng, (), 3, 4, 5, 2)
        size = np.array([1e-7, 1e7, 1e-7, 1e7, 1e-7])
        title = "features of 1e-7 in queries and 1e7 in keys, or the reverse, where a finite difference fails with any step"
        # What a difference leaves of the small gradients is rounding, another in every program: 5e-9 is above it.
        yield Case(f"scales-{i}", title, (q * size, k / size, v, grad), stage="extremes", rtol=1e-3, atol=5e-9)


def _rows_sum_to_zero(case: Case, parts: dict[str, Array]) -> str | None:
    total = np.abs(parts["result"].sum(axis=-1)).max()
    return None if total < 1e-4 else f"a row sums to {total:.4g}: raising all scores alike would change the weights."


def _keys_move_nothing_together(case: Case, parts: dict[str, Array]) -> str | None:
    # A vector added to every key raises all scores of a query alike, so softmax does not see it.
    total = np.abs(parts["grad_k"].sum(axis=-2)).max()
    return None if total < 1e-3 else f"summed over the keys, grad_k is {total:.4g}, where it cancels to 0."


def _values_share_the_gradient(case: Case, parts: dict[str, Array]) -> str | None:
    # The weights of a query sum to 1, so the values together receive grad_output, no more and no less.
    given = np.asarray(case.args[3], dtype=float).sum(axis=-2)
    off = np.abs(parts["grad_v"].sum(axis=-2) - given).max()
    return None if off < 1e-3 else f"summed over the keys, grad_v is off by {off:.4g} from grad_output summed over the queries."


_TEXTS = (
    MistakeText("GB1", "The factor in front is missing: each difference is multiplied by its weight.",
        "The gradient with respect to score j is `weights_j * (grad_j - total)`. Without the factor a key of weight 0 "
        "still receives a gradient, although moving its score a little changes nothing. With weights (1, 0) and gradient "
        "(0, 3) the right result is (0, 0); without the factor it is (0, 3).",
        "return grad_weights - (grad_weights * weights).sum(-1, keepdims=True)",
        "return weights * (grad_weights - (grad_weights * weights).sum(-1, keepdims=True))"),
    MistakeText("GB2", "The sum ran over the whole array; each row has a total of its own.",
        "Softmax normalises each row by itself, so its backward pass subtracts each row's own total. One total for everything "
        "mixes queries and batch items: the gradient of one row then changes when another row does.",
        "total = (grad_weights * weights).sum()",
        "total = (grad_weights * weights).sum(axis=-1, keepdims=True)"),
    MistakeText("GB3", "The sign is reversed: it is the gradient minus the row's total.",
        "A weight whose gradient is above the row's weighted mean is to grow, one below it to shrink. Reversed, a step of "
        "gradient descent climbs. With weights (½, ½) and gradient (1, 0) the mean is ½ and the result (¼, −¼).",
        "return weights * (total - grad_weights)",
        "return weights * (grad_weights - total)"),
    MistakeText("GB4", "The row's total was taken of the gradient alone; each entry counts by its weight.",
        "The total is `sum_j grad_j * weights_j`, the mean of the gradient under the weights. A plain sum of the gradient "
        "is larger by about the number of keys, and the rows no longer sum to 0. With weights (½, ½) and gradient (1, 1) "
        "the result has to be (0, 0); the plain sum gives (−½, −½).",
        "total = grad_weights.sum(axis=-1, keepdims=True)",
        "total = (grad_weights * weights).sum(axis=-1, keepdims=True)"),
    MistakeText("GB5", "Only the diagonal of the Jacobian was used: every score moves every weight of its row.",
        "`weights * (1 - weights)` is how a weight answers its own score, as for a sigmoid. In softmax a score also "
        "takes from all other weights of its row: ∂w_i/∂s_j = −w_i·w_j. Leaving that out makes the rows of the gradient "
        "sum to something else than 0.",
        "return weights * (1 - weights) * grad_weights",
        "return weights * (grad_weights - (grad_weights * weights).sum(-1, keepdims=True))"),
    MistakeText("GB6", "The row's total was divided by the number of keys: it is a sum, not a mean.",
        "The weights already sum to 1, so `sum_j grad_j * weights_j` is a mean by itself. Dividing once more by the number "
        "of keys makes it too small, and a constant gradient no longer gives 0.",
        "total = (grad_weights * weights).mean(axis=-1, keepdims=True)",
        "total = (grad_weights * weights).sum(axis=-1, keepdims=True)"),
    MistakeText("GB7", "grad_k uses grad_scores as it stands; its rows belong to queries and have to become columns.",
        "scores = q kᵀ has a row for each query. The gradient of key j collects column j: grad_k = grad_scoresᵀ q. "
        "Without the transpose the shapes fit only where there are as many queries as keys, and then the numbers are wrong.",
        "grad_k = grad_scores @ q / np.sqrt(d_k)",
        "grad_k = grad_scores.swapaxes(-1, -2) @ q / np.sqrt(d_k)"),
    MistakeText("GB8", "grad_v was formed with the scores; the output was made of the weights.",
        "output = weights v, so the gradient of v is weightsᵀ grad_output. Scores may be negative and do not sum to 1: the "
        "values together then receive another gradient than the output did.",
        "grad_v = scores.swapaxes(-1, -2) @ grad_output",
        "grad_v = weights.swapaxes(-1, -2) @ grad_output"),
    MistakeText("GB9", "grad_q is scaled and grad_k is not: both pass through the same 1/√d_k.",
        "scores = q kᵀ / √d_k is one product with one factor, so both of its gradients carry that factor. With d_k = 4 a "
        "forgotten one makes grad_k exactly twice as large.",
        "grad_q = grad_scores @ k / np.sqrt(d_k)\ngrad_k = grad_scores.swapaxes(-1, -2) @ q",
        "grad_scores = grad_scores / np.sqrt(d_k)  # once, before both"),
    MistakeText("GB10", "grad_q and grad_k are exchanged.",
        "The gradient of q has the shape of q, one row for each query, and is made of the keys: grad_scores k. Where there are "
        "as many queries as keys the shapes cannot tell, only the numbers can.",
        "return grad_k, grad_q, grad_v",
        "return grad_q, grad_k, grad_v"),
    MistakeText("GB11", "The factor 1/√d_k came in twice on the way back.",
        "The forward pass divides by √d_k once, so the backward pass does so once. Dividing grad_scores and then grad_q again "
        "makes both gradients too small by √d_k, while grad_v is right.",
        "grad_scores = grad_scores / np.sqrt(d_k)\ngrad_q = grad_scores @ k / np.sqrt(d_k)",
        "grad_scores = grad_scores / np.sqrt(d_k)\ngrad_q = grad_scores @ k"),
    MistakeText("GB12", "The weights were computed again without 1/√d_k, so this is the backward pass of another function.",
        "The backward pass starts from the weights of the forward pass. Computed again without the scale they are sharper, and "
        "all three gradients are those of unscaled attention.",
        "weights = softmax(q @ k.swapaxes(-1, -2))",
        "weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(d_k))"),
    MistakeText("GB13", "The gradients came back in another order: (grad_q, grad_k, grad_v) was asked for.",
        "Callers unpack by position, and where sizes agree nobody notices that the values are updated with the gradient of "
        "the queries.",
        "return grad_v, grad_k, grad_q",
        "return grad_q, grad_k, grad_v"),
    MistakeText("GB14", "grad_k is scaled and grad_q is not: both pass through the same 1/√d_k.",
        "scores = q kᵀ / √d_k is one product with one factor, so both of its gradients carry that factor. With d_k = 4 a "
        "forgotten one makes grad_q exactly twice as large.",
        "grad_q = grad_scores @ k\ngrad_k = grad_scores.swapaxes(-1, -2) @ q / np.sqrt(d_k)",
        "grad_scores = grad_scores / np.sqrt(d_k)  # once, before both"),
    MistakeText("GB15", "grad_v uses the weights as they stand; their rows belong to queries and have to become columns.",
        "output = weights v has a row for each query. The gradient of value j collects column j of the weights: "
        "grad_v = weightsᵀ grad_output. Without the transpose the shapes fit only where there are as many queries as keys, and "
        "then the numbers are wrong.",
        "grad_v = weights @ grad_output",
        "grad_v = weights.swapaxes(-1, -2) @ grad_output"),
    MistakeText("GB16", "The totals lost their axis and were subtracted across the columns: keep it with `keepdims=True`.",
        "A sum over the last axis of (T_q, T_k) has shape (T_q,), which NumPy lines up with the columns. It fails where T_q and T_k "
        "differ; where they agree, column j loses the total of row j.",
        "total = (grad_weights * weights).sum(axis=-1)",
        "total = (grad_weights * weights).sum(axis=-1, keepdims=True)"),
    MistakeText("GB17", "The totals ran over another axis than the last; a row's keys lie along the last one.",
        "weights[..., i, :] is the distribution of query i, and softmax ties together what lies in one row. Summed along the queries "
        "or along the batch, a total mixes rows that know nothing of each other.",
        "total = (grad_weights * weights).sum(axis=0)",
        "total = (grad_weights * weights).sum(axis=-1, keepdims=True)"),
    MistakeText("GB18", "The row's total was subtracted without the factor in front: each entry subtracts its own weight's share.",
        "Multiplied out, weights * (grad - total) is weights * grad − weights * total. The total of a row belongs to its entries by "
        "their weights; subtracted whole from each of n entries, the row sums to (1 − n) times the total and not to 0.",
        "product = grad_weights * weights\nreturn product - product.sum(-1, keepdims=True)",
        "product = grad_weights * weights\nreturn product - weights * product.sum(-1, keepdims=True)"),
    MistakeText("GB19", "The plain mean of the gradient was subtracted; each entry counts by its weight.",
        "The total is `sum_j grad_j * weights_j`. It is the plain mean only where all weights are equal; else the rows of the result "
        "do not sum to 0. With weights (¾, ¼) and gradient (1, 0) the total is ¾ and the result (3/16, −3/16); the plain mean gives "
        "(⅜, −⅛).",
        "total = grad_weights.mean(axis=-1, keepdims=True)",
        "total = (grad_weights * weights).sum(axis=-1, keepdims=True)"),
    MistakeText("GB20", "The gradient and the weights changed places: the weight is the factor, the total is subtracted from the gradient.",
        "The total is the mean of the gradient under the weights, so it is compared with gradients, and the weight says how much of "
        "the difference a score feels. With weights (½, ½) and gradient (1, 0) the total is ½ and the result (¼, −¼); exchanged it is "
        "(0, 0).",
        "return grad_weights * (weights - total)",
        "return weights * (grad_weights - total)"),
    MistakeText("GB21", "The row's total was added; it is subtracted from each entry.",
        "A score that rises takes from all weights of its row, which is the minus sign of diag(p) − p pᵀ. Added, the row sums to "
        "twice the total and not to 0. With weights (½, ½) and gradient (1, 0) the result has to be (¼, −¼); added it is (¾, ¼).",
        "return weights * (grad_weights + total)",
        "return weights * (grad_weights - total)"),
    MistakeText("GB22", "The way back multiplies by √d_k; the forward pass divides by it, and so does the backward pass.",
        "scores = q kᵀ / √d_k is a product times the factor 1/√d_k, and the chain rule brings the same factor along. Multiplied by its "
        "reciprocal, the gradients of q and k are too large by d_k, and that of v is right.",
        "grad_scores = grad_scores * np.sqrt(d_k)",
        "grad_scores = grad_scores / np.sqrt(d_k)"),
    MistakeText("GB23", "The rows' maxima lost their axis and were subtracted across the columns: keep it with `keepdims=True`.",
        "A maximum over the last axis of (T_q, T_k) has shape (T_q,), which NumPy lines up with the columns. It fails where T_q and "
        "T_k differ; where they agree, column j loses the maximum of row j, which changes the weights.",
        "e = np.exp(scores - scores.max(axis=-1))",
        "e = np.exp(scores - scores.max(axis=-1, keepdims=True))"),
    MistakeText("GB24", "One of grad_q and grad_k was made of its own array: grad_q is made of the keys, grad_k of the queries.",
        "In the product q kᵀ each query is multiplied by keys, so keys say how fast a score changes as the query moves: grad_q = "
        "grad_scores k and grad_k = grad_scoresᵀ q. With its own array the shapes fit only where there are as many queries as keys.",
        "grad_q = grad_scores @ q",
        "grad_q = grad_scores @ k"),
    MistakeText("GB25", "grad_v was scaled by 1/√d_k; that factor belongs to the scores alone.",
        "output = weights v has no factor beside the weights, and each query's weights sum to 1. The values together receive all of "
        "grad_output; with d_k = 4 they would receive half of it.",
        "grad_v = weights.swapaxes(-1, -2) @ grad_output / np.sqrt(d_k)",
        "grad_v = weights.swapaxes(-1, -2) @ grad_output"),
    MistakeText("GB26", "All three gradients have the opposite sign.",
        "A gradient says how the result grows as an input grows; the minus sign of gradient descent belongs to the step that uses it. "
        "With one key the output is its value, so grad_v is the sum of grad_output over the queries, not minus that.",
        "return -grad_q, -grad_k, -grad_v",
        "return grad_q, grad_k, grad_v"),
    MistakeText("GB27", "grad_output was not used: these are the gradients for ones in its place.",
        "Ones are the gradient of a plain sum of the outputs. Every other result hands back a gradient of its own for each number of the "
        "output, and the chain rule starts from that.",
        "grad_output = np.ones_like(output)",
        "grad_weights = grad_output @ v.swapaxes(-1, -2)"),
    MistakeText("GB28", "Finite differences came back, slopes over a step of fixed size; the derivative's formula was asked for.",
        "A step of 1e-5 in a query that meets keys of 1e7 moves a score by 100/√d_k, and the slope over so far says nothing of the slope "
        "here: the derivative may be 1e7, while two outputs that differ by 2 give 2 / 2e-5 = 1e5. A step short enough for that "
        "drowns small gradients in rounding. Besides, each entry takes a forward pass or two of its own.",
        "grad_q[i] = (loss(q + step) - loss(q - step)) / (2 * 1e-5)",
        "grad_q = grad_scores @ k / np.sqrt(d_k)"),
)  # fmt: skip

lesson = Lesson(
    name="08_attention_backward",
    title="Gradients by hand",
    question="How does an error in the output find its way back to the queries, keys and values?",
    outcome="derive attention's gradients, and check them without trusting anyone",
    texts=_TEXTS,
    exercises=(
        Exercise(
            name="softmax_backward",
            task="Carry a gradient back through softmax, from the weights to the scores.",
            points=2,
            minutes=10,
            cases=softmax_backward_cases,
            mistakes=(
                *mistakes(
                    through_softmax, "BW1", "GB1", "GB2", "GB3", "GB4", "GB5", "GB6", "GB16", "GB17", "GB18", "GB19", "GB20", "GB21",
                ),
                *(Mistake("GB17", through_softmax(f"GB17 {where}")) for where in ("of axis 0", "of two axes or more")),
            ),
            combine=of_two(through_softmax),
            forbids=("torch",),
            properties=(Property("each row of the gradient sums to 0", _rows_sum_to_zero),),
            hints=(
                "When one score grows, what happens to the other weights of its row? What does that say about the sum of a "
                "row of the gradient?",
                "Contract the Jacobian diag(p) − p pᵀ with the gradient g: the first part gives p·g, the second p times one "
                "number. Which number?",
                "total = (____ * ____).sum(axis=____, keepdims=True)\nreturn weights * (grad_weights - ____)",
            ),
        ),
        Exercise(
            name="attention_backward",
            task="Carry a gradient back through scaled dot-product attention, to the queries, keys and values.",
            points=4,
            minutes=20,
            cases=attention_backward_cases,
            parts=("grad_q", "grad_k", "grad_v"),
            mistakes=(
                *mistakes(
                    attention, "BW1", "BW2", "SM1", "SM2", "SM3", "SM4", "SM5", "SM6", "SD2", "SD5", "SD6", "SD8", "GB1", "GB2", "GB3",
                    "GB4", "GB5", "GB7", "GB8", "GB9", "GB10", "GB11", "GB12", "GB13", "GB14", "GB15", "GB16", "GB17", "GB18",
                    "GB19", "GB20", "GB21", "GB22", "GB23", "GB24", "GB25", "GB26", "GB27",
                ),
                *(Mistake(bug.partition(" ")[0], attention(bug)) for bug in (
                    "GB12 of the weights", "GB13 vqk", "GB13 qvk", "GB13 kvq", "GB17 of axis 0", "GB24 of k", "SD2 of the weights",
                    "SD5 of the weights", "SD6 straight on", "SD6 and on the way back", "SD8 with grad_v last",
                    "SD8 with grad_v last, weights first", "SM1 of the row's maximum", "SM2 of the row's maximum", "SM2 of axis 1",
                    "SM3 of the row's maximum", "SM4 of both",
                )),
                *(Mistake("GB28", differences) for differences in FINITE_DIFFERENCES),
            ),
            combine=of_two(attention),
            forbids=("torch", "attention"),
            properties=(
                Property("the values together receive what the outputs received", _values_share_the_gradient),
                Property("a shift of all keys alike changes nothing, so grad_k sums to 0 over the keys", _keys_move_nothing_together),
            ),
            hints=(
                "The forward pass has three steps: scores, weights, output. In which order does the backward pass meet them?",
                "output = weights v. So grad_weights = grad_output vᵀ and grad_v = weightsᵀ grad_output; then softmax_backward; "
                "then the product q kᵀ, with its scale, in the same way.",
                "grad_v = weights.swapaxes(-1, -2) @ ____\ngrad_weights = grad_output @ ____\n"
                "grad_scores = softmax_backward(____, weights) / ____\ngrad_q = grad_scores @ ____\n"
                "grad_k = grad_scores.____ @ q",
            ),
        ),
    ),
)  # fmt: skip
