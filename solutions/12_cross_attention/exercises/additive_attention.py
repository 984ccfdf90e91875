"""Bahdanau's score: query and key are added inside a tanh."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch

from ..shared import EXTREMES, PROPERTIES, SUMMED, THREE, alignment_cases, alignment_mistakes, case

INSIDE = "asked + keys @ w_key"
ENERGY = f"torch.tanh({INSIDE})"


def _large() -> Iterator[Case]:
    """Scores of up to ±10,000 that float32 holds exactly: every tanh is ±1, v is whole or ends in a quarter."""
    signs = np.array([[1.0, 1, 1], [1, 1, -1], [1, -1, 1], [1, 1, 1]])
    # One sentence far above 0, one far below, one whose second key stands alone on top: not first, last, in the middle or below.
    keys = np.stack([signs, signs * [-1, 1, 1], signs * [[-1, 1, 1], [1, 1, 1], [-1, 1, 1], [-1, 1, 1]]])
    # exp of what stands in the tanh overflows float64.
    w_query, w_key = np.array([[0.0, 0, 0], [10, 0, 0]]), 800 * np.eye(3)
    query = np.array([[1.0, 1], [-1, -1], [2, 0]])
    for name, v in (("10,000", [9998.0, 1, 0.5]), ("9000", [9000.0, 0.25, 0.5]), ("1000", [1000.0, -1, 0.75])):
        arrays = [query, keys, w_query, w_key, np.array(v)]
        if name == "9000":  # of a query's part so large, a sum outside tanh leaves nothing of the keys' part
            arrays = [array.astype(np.float32) for array in (query, keys, 1e11 * w_query, w_key, arrays[-1])]
        yield case(f"large {name}", f"scores near ±{name}", arrays, "", **EXTREMES)
    apart = [
        array.astype(np.float32)
        for array in (query[2:], keys[2:, :3], w_query, 20 * np.eye(3), np.array([9000.0, 1, 2]))
    ]
    yield case("far apart", "scores near −9000, 9000 and −9000 in one sentence, with gradients", apart, **EXTREMES)


@exercise(
    points=3,
    minutes=15,
    difficulty=2,
    result_names=("context", "weights"),
    result_type="tensor",
    forbids=("attention",),
)
class additive_attention:
    """Let a decoder's state choose among the encoder's states, by Bahdanau's score."""

    def cases(rng):
        learned = [np.array([[1.0, 0]]), np.array([[1.0, 0], [0, 1]]), np.array([1.0, 2])]
        yield case("small", "one query 0, three keys, whole numbers", [np.array([[0.0]]), THREE, *learned], "")
        yield case("small, query 2", "the same keys, asked by the query 2", [np.array([[2.0]]), THREE, *learned], "")
        yield from alignment_cases(rng, lambda d_q, d_h, d_a: [(d_q, d_a), (d_h, d_a), (d_a,)])
        yield from _large()

    more_properties = PROPERTIES

    hints = (
        "query @ w_query has the shape (B, d_a), keys @ w_key the shape (B, T, d_a). The first should be added to *each* key of its own "
        "sentence: which shape must it have for that?",
        "A new axis, `[:, None]`, turns (B, d_a) into (B, 1, d_a). `energy @ v` sums over d_a and leaves (B, T); softmax then runs over"
        " T. For the context, `weights[:, None]` is (B, 1, T) and can be multiplied with the keys.",
        "energy = torch.tanh((query @ ____)[:, None] + keys @ ____)\nweights = torch.softmax(energy @ ____, dim=____)\n"
        "context = (weights[:, None] @ ____)[:, 0]\nreturn context, weights",
    )

    shared = alignment_mistakes("energy @ v", "keys @ w_key", ("v.shape[0]", "keys.shape[-1]", "query.shape[-1]"))
    mistakes = {
        **shared,
        "LG2": patch(ENERGY, INSIDE),
        "AL1": mistake(
            patch(ENERGY, "torch.tanh(keys @ w_key) + asked"),
            patch(ENERGY, "torch.tanh(keys @ w_key) + torch.tanh(asked)"),
            patch(ENERGY, "torch.tanh(asked) + keys @ w_key"),
            patch(ENERGY, INSIDE, "energy @ v", "torch.tanh(energy @ v)"),
            says="tanh was taken of one part alone, of each by itself, or of the finished score; it should be taken of their sum, before "
            "the product with v.",
            why="""v · (tanh(k') + q') is v · tanh(k') + v · q'. What comes from the query is the same for all keys of a sentence, and
            softmax takes out what all its scores share: every query gets the same weights. A tanh of the query alone changes nothing
            about that. A bracket that closes too early is enough. tanh of the finished score, v · (…), is one number between −1 and 1,
            and softmax of such scores never gets sharp: with three keys no weight exceeds 0.79.""",
        ),
        "AL2": mistake(
            patch(INSIDE, "asked * (keys @ w_key)"),
            says="Query and key were multiplied inside tanh; they should be added.",
            why="As the name says, the two projections are added, and v makes one number of it. Products are the other family.",
        ),
        "AB1": (patch("w_query)", "w_query.T)", "w_key)", "w_key.T)"), patch("w_key)", "w_key.T)")),
        "AL13": mistake(
            *(
                patch("(query @ w_query)[:, None]", "query @ w_query")
                + first
                + context  # what raises differs in its words
                for context, first in product((patch(), SUMMED), (patch(), patch(INSIDE, "keys @ w_key + asked")))
            ),
            says="The batch axis of the query was lined up with the keys: key j meets the query of item j.",
            why="""query @ w_query has the shape (B, d_a), keys @ w_key (B, T, d_a). Broadcasting lines axes up from the right,
            so B falls on T. Where the two differ torch raises; where they are equal nothing warns. A new axis in the middle,
            (B, 1, d_a), puts it right.""",
        ),
    }
