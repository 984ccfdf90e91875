"""A gradient's way back through attention."""

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

from ..shared import MISTAKES

Array = np.ndarray


def _qkvg(rng: np.random.Generator, lead: tuple[int, ...], t_q: int, t_k: int, d_k: int, d_v: int) -> tuple[Array, ...]:
    """q, k, v and grad_output."""
    return tuple(rng.normal(size=(*lead, *shape)) for shape in ((t_q, d_k), (t_k, d_k), (t_k, d_v), (t_q, d_v)))


SCALED = "k.swapaxes(-1, -2) / root"
EXPS, WEIGHTS = (
    "exps = np.exp(scores - scores.max(axis=-1, keepdims=True))",
    "weights = exps / exps.sum(axis=-1, keepdims=True)",
)
GRAD_V = "grad_v = weights.swapaxes(-1, -2) @ grad_output"
GRAD_Q, GRAD_K = "grad_q = grad_scores @ k", "grad_k = grad_scores.swapaxes(-1, -2) @ q"
RETURN = "return (grad_q, grad_k, grad_v)"
NO_ROOT = patch(f"{GRAD_Q} / root", GRAD_Q, f"{GRAD_K} / root", GRAD_K)
FLAT_TOP = patch("scores.max(axis=-1, keepdims=True)", "scores.max(axis=-1)")
FLAT_SUM = patch("exps.sum(axis=-1, keepdims=True)", "exps.sum(axis=-1)")
TURNED = patch("q @ k.swapaxes", "k @ q.swapaxes")
GRAD_V_LAST = patch(f"{GRAD_V}\n    ", "", RETURN, f"{GRAD_V}\n    {RETURN}")
V_ROOT = "np.sqrt(v.shape[-1])"
TURNED_ROUND = patch(
    SCALED,
    "k.T / root",
    GRAD_V,
    "grad_v = weights.T @ grad_output",
    "grad_output @ v.swapaxes(-1, -2)",
    "grad_output @ v.T",
    GRAD_K,
    "grad_k = grad_scores.T @ q",
)


def scores_with(scale: str):
    """The scores alone, scaled otherwise."""
    return patch(SCALED, f"k.swapaxes(-1, -2){scale}")


def sum_over(axis: int | None):
    return patch("exps.sum(axis=-1", f"exps.sum(axis={axis}")


def softmax_over(axis: int | None):
    return patch("scores.max(axis=-1", f"scores.max(axis={axis}") + sum_over(axis)


def small_weights(*more: str):
    """The scale divides the weights and not the scores."""
    return patch(SCALED, "k.swapaxes(-1, -2)", WEIGHTS, f"{WEIGHTS}\n    weights = weights / root", *more)


@exercise(
    points=4, minutes=17, difficulty=3, result_names=("grad_q", "grad_k", "grad_v"), forbids=("torch", "attention")
)
class attention_backward:
    """Carry a gradient back through scaled dot-product attention, to the queries, keys and values."""

    def cases(rng):
        small = ([[1, 0], [0, 1]], [[1, 1], [1, 0], [0, 1]], [[1], [0], [2]], [[1], [-1]])
        yield Case("small", "two queries, three keys, whole numbers", tuple(np.array(a, dtype=float) for a in small))
        for key, title, *sizes in (
            ("sizes", "all sizes different", (2,), 5, 7, 4, 6),
            ("seen-again", "the same shapes, new numbers", (2,), 5, 7, 4, 6),
            # Without a batch axis sums that lost their axis run here, and their numbers say where it was lost.
            ("square", "as many queries as keys and features", (), 4, 4, 4, 4),
            ("square-again", "the same square shapes, new numbers", (), 4, 4, 4, 4),
            ("plain", "no batch axis, nineteen keys", (), 9, 19, 2, 4),
            ("heads", "batch and heads in front", (2, 3), 4, 6, 5, 2),
            ("one-key", "a single key", (2,), 3, 1, 4, 5),
        ):
            yield Case(key, title, _qkvg(rng, *sizes))
        yield Case("float32", "float32 input", tuple(a.astype(np.float32) for a in _qkvg(rng, (2,), 3, 4, 5, 6)))
        whole = (rng.integers(-2, 3, size=shape) for shape in ((3, 2), (4, 2), (4, 5), (3, 5)))
        yield Case("whole", "arrays of whole numbers", tuple(whole))
        for i in range(3):
            q, k, v, grad = _qkvg(rng, (2,), 3, 4, 2, 5)
            large = q + 2.0 * np.sign(q), k * 1000, v, grad
            yield Case(f"large-{i}", "scores of thousands", large, stage="extremes", rtol=1e-3, atol=1e-2)
        for i in range(3):  # a step that fits one feature is far too long for its neighbour, in queries and in keys
            q, k, v, grad = _qkvg(rng, (), 3, 4, 5, 2)
            size = np.array([1e-7, 1e7, 1e-7, 1e7, 1e-7])
            title = "features of 1e-7 in queries and 1e7 in keys, or the reverse, where a finite difference fails with any step"
            # What a difference leaves of the small gradients is rounding, another in every program: 5e-9 is above it.
            yield Case(f"scales-{i}", title, (q * size, k / size, v, grad), stage="extremes", rtol=1e-3, atol=5e-9)

    @holds("the values together receive what the outputs received")
    def values_share(case, parts):
        # The weights of a query sum to 1, so the values together receive grad_output, no more and no less.
        given = np.asarray(case.args[3], dtype=float).sum(axis=-2)
        off = np.abs(parts["grad_v"].sum(axis=-2) - given).max()
        return (
            None
            if off < 1e-3
            else f"summed over the keys, grad_v is off by {off:.4g} from grad_output summed over the queries."
        )

    @holds("adding one vector to every key changes no output, so grad_k sums to 0 over the keys")
    def keys_cancel(case, parts):
        # A vector added to every key raises all scores of a query alike, so softmax does not see it.
        totals = parts["grad_k"].sum(axis=-2)
        worst = float(totals.flat[np.abs(totals).argmax()])
        sentence = f"summed over the keys, grad_k is {worst:.4g}; it should be 0."
        return None if abs(worst) < 1e-3 else sentence.replace("-", "−")

    hints = (
        "The forward pass has three steps: scores, weights, output. In which order does the backward pass meet them?",
        "output = weights v. So grad_weights = grad_output vᵀ and grad_v = weightsᵀ grad_output; then softmax_backward; then the "
        "product q kᵀ, with its scale, in the same way.",
        "grad_v = weights.swapaxes(-1, -2) @ ____\ngrad_weights = grad_output @ ____\n"
        "grad_scores = softmax_backward(____, weights) / ____\ngrad_q = grad_scores @ ____\ngrad_k = grad_scores.____ @ q",
    )

    mistakes = {
        **MISTAKES,
        "GB18": (*MISTAKES["GB18"], patch("weights * (grad_weights - mean)", "grad_weights")),
        "BW2": (NO_ROOT, patch(f"{GRAD_K} / root", GRAD_K), patch(f"{GRAD_Q} / root", GRAD_Q)),
        "TT9": (
            patch("np.sqrt(q.shape[-1])", "2 * q.shape[-1]"),
            scores_with(" / q.shape[-1] ** 1 / 2"),
            patch("np.sqrt(q.shape[-1])", "q.shape[-1] ** 1 / 2"),
            scores_with(" / (q.shape[-1] ** 1 / 2)"),
        ),
        "SM1": (softmax_over(-2), sum_over(-2)),
        "SM2": (softmax_over(0), sum_over(0), softmax_over(1)),
        "SM3": (softmax_over(None), sum_over(None)),
        "SM4": (FLAT_SUM, FLAT_TOP + FLAT_SUM),
        "SM5": patch(EXPS, "exps = np.exp(scores)"),
        "SM6": patch("scores.max(axis=-1, keepdims=True)", "scores.max()"),
        "SD1": (scores_with(""), scores_with("") + NO_ROOT),
        "SD2": (patch("np.sqrt(q.shape[-1])", "q.shape[-1]"), scores_with(" / q.shape[-1]")),
        "SD5": (patch("root = np", "root = 1 / np"), scores_with(" * root")),
        "SD6": (scores_with("") + patch(GRAD_V, f"{GRAD_V} / root"), small_weights() + NO_ROOT, small_weights()),
        "SD8": (
            TURNED,
            TURNED + GRAD_V_LAST,
            TURNED + GRAD_V_LAST + patch("grad_weights * weights", "weights * grad_weights"),
        ),
        "GB7": mistake(
            patch(GRAD_K, "grad_k = grad_scores @ q"),
            patch(GRAD_V, "grad_v = weights @ grad_output"),
            says="grad_k or grad_v was formed with a matrix that is not transposed; its rows belong to queries and should become columns.",
            why="""Scores and weights have a row for each query. The gradient of key j collects column j, grad_k = grad_scoresᵀ q, and
            that of value j likewise, grad_v = weightsᵀ grad_output. Without the transpose the shapes fit only where there are as many
            queries as keys, and then the numbers are wrong.""",
        ),
        "GB10": (
            patch("(grad_q, grad_k", "(grad_k, grad_q"),
            *(patch(RETURN, f"return (grad_{x}, grad_{y}, grad_{z})") for x, y, z in ("vkq", "vqk", "qvk", "kvq")),
        ),
        "GB16": (*MISTAKES["GB16"].ways, FLAT_TOP),
        "GB24": mistake(
            patch(GRAD_Q, "grad_q = grad_scores @ q"),
            patch(GRAD_K, "grad_k = grad_scores.swapaxes(-1, -2) @ k"),
            patch(GRAD_K, "grad_k = grad_scores.swapaxes(-1, -2) @ grad_q"),
            says="One of grad_q and grad_k was made from another array than it should be; make grad_q from the keys, grad_k from the "
            "queries.",
            why="""In the product q kᵀ each query is multiplied by keys, so keys say how fast a score changes as the query moves:
            grad_q = grad_scores k and grad_k = grad_scoresᵀ q. With its own array the shapes fit only where there are as many
            queries as keys.""",
        ),
        "TT8": (
            patch(f"{GRAD_Q} / root", f"{GRAD_Q} / {V_ROOT}", f"{GRAD_K} / root", f"{GRAD_K} / {V_ROOT}"),
            patch("np.sqrt(q.shape[-1])", V_ROOT),
        ),
        "GB36": mistake(
            TURNED_ROUND,
            says="All axes were reversed, by `.T` or by a transpose without axes; exchange the last two, `swapaxes(-1, -2)`.",
            why="""Of (B, T_k, d_k) `.T` makes (d_k, T_k, B). For matrices the two are the same, and with a batch or heads in front
            the products fail, or mix up items.""",
        ),
    }
