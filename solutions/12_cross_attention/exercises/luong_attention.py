"""Luong's "general" score: a matrix between query and key."""

import numpy as np

from grader.course.declare import exercise, mistake, patch

from ..shared import EXTREMES, PROPERTIES, THREE, alignment_cases, alignment_mistakes, case

SCORES = "(keys @ asked[:, :, None])[..., 0]"


@exercise(
    points=2, minutes=8, difficulty=1, result_names=("context", "weights"), result_type="tensor", forbids=("attention",)
)
class luong_attention:
    """Let a decoder's state choose among the encoder's states, by Luong's score: a matrix product in place of the tanh."""

    def cases(rng):
        w = np.array([[1.0, -1], [0, 2], [1, 0]])
        yield case("small", "one query, three keys, whole numbers", [np.array([[1.0, 1, 0]]), THREE, w], "")
        yield case(
            "small, other query", "the same keys, asked by another query", [np.array([[0.0, 0, 2]]), THREE, w], ""
        )
        yield from alignment_cases(rng, lambda d_q, d_h, d_a: [(d_q, d_h)])
        # Scores of up to ±10,000 that float32 holds exactly: products of whole numbers.
        # One sentence far above 0, one far below, one whose second key stands alone on top: not first, last, in the middle or below.
        above, below = [[100.0, 0, 1], [100, 1, 0], [100, 0, 1]], [[-100, 0, 1], [-100, 1, 0], [-100, 1, 1]]
        keys, query = (
            np.array([above, below, [[-100, 0, 1], [100, 1, 0], [0, 0, 1]]]),
            np.array([[100.0, 1], [100, 2], [100, 3]]),
        )
        for name, scale in (("10,000", 1.0), ("5000", 0.5), ("2500", 0.25)):
            arrays = [query, keys, np.array([[scale, 0, 0], [0, 1, 2]])]
            if name == "5000":
                arrays = [array.astype(np.float32) for array in arrays]
            yield case(f"large {name}", f"scores near ±{name}", arrays, "", **EXTREMES)
        apart = [array.astype(np.float32) for array in (query[2:], keys[2:], 0.9 * np.eye(2, 3))]
        yield case("far apart", "scores near −9000, 9000 and 0 in one sentence, with gradients", apart, **EXTREMES)

    more_properties = PROPERTIES

    hints = (
        "w has the shape (d_q, d_h). Which of the two can be multiplied with w from the left, a query (d_q,) or a key (d_h,)?",
        "`query @ w` is (B, d_h), as wide as a key. Its dot product with each key of its sentence is a product of (B, T, d_h) with (B, "
        "d_h, 1). The rest is as in `additive_attention`.",
        "asked = query @ w\nscores = (keys @ asked[:, :, ____])[..., 0]\nweights = torch.softmax(____, dim=____)\n"
        "return (weights[:, None] @ ____)[:, 0], weights",
    )

    mistakes = {
        **alignment_mistakes(SCORES, "keys @ w.T", ("query.shape[-1]", "keys.shape[-1]")),
        "AL24": mistake(
            patch("query @ w", "query @ w.T"),
            patch("query @ w", "query", "keys @ asked", "keys @ w @ asked"),
            patch("query @ w", "query"),
            *(
                patch(SCORES, scores)
                for scores in (
                    "torch.einsum('bd,btd->bt', query, keys)",
                    "(keys * query[:, None]).sum(dim=-1)",
                    "torch.bmm(keys, query.unsqueeze(2)).squeeze(2)",
                )
            ),
            says="w was left out, or used the wrong way round; write `query @ w`, or `keys @ w.T`.",
            why="""w has the shape (d_q, d_h): a query fits its rows, a key its columns. `query @ w` makes each query as wide as a key,
            and `keys @ w.T` each key as wide as a query. With a square w the other way round raises no error and gives other scores.
            Without w this is Luong's 'dot' score, a plain dot product: it needs queries and keys of one width and of one meaning.""",
        ),
        "AL16": mistake(
            patch(SCORES, f"torch.tanh({SCORES})"),
            patch("query @ w", "torch.tanh(query @ w)"),
            says="A tanh was applied, to the score or to the projected query; Luong's 'general' score should be a plain product, query w "
            "key.",
            why="""tanh belongs to Bahdanau's score. Of a score it leaves a number between −1 and 1, with which softmax cannot
            choose one key; of a projected query it leaves hardly more than the signs.""",
        ),
    }
