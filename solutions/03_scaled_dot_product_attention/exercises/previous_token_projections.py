"""Projections that are designed, not learned: each token is to attend to the one before it."""

from __future__ import annotations

import numpy as np

from grader.course.declare import exercise, mistake, patch

from ..previous_token import judge, projection_case

W_K, ROW_0 = "gap * math.sqrt(t) * np.eye(t)", "w_q[0, 0] = 1"
FIXED = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 100)


def _cases(rng: np.random.Generator):
    for key, t, share in (
        ("three", 3, 0.9),
        ("two", 2, 0.9),
        ("three-again", 3, 0.6),
        ("two-low", 2, 0.6),
        ("five", 5, 0.95),
        ("four", 4, 0.99),
        ("six", 6, 0.1),
        ("drawn", int(rng.integers(7, 12)), round(float(rng.uniform(0.6, 0.9)), 2)),
        ("nineteen", 19, 0.98),
        ("many", 130, 0.99),
        ("more", 140, 0.99),
        ("most", 150, 0.98),
        ("thirteen", 13, 0.75),
        ("hundreds", 400, 0.99),
    ):
        yield projection_case(key, t, share)


@exercise(points=3, minutes=20, difficulty=3, result_names=("w_q", "w_k"), unused_parameters=("share",))
class previous_token_projections:
    """Design projections with which each token attends to the token before it, and token 0 to itself."""

    cases = _cases
    compare = judge

    hints = (
        "x is the identity, so row i of w_q *is* the query of token i, and row j of w_k the key of token j. Which dot products "
        "q_i · k_j must be large, and which token is left for token 0?",
        "Give each token a key that no other has: the rows of the identity. The query of token i is then the key of token i − 1, "
        "and that of token 0 its own. What remains is how large: one score of s among t − 1 scores of 0 gets the weight "
        "e^s / (e^s + t − 1). Solve for s; then remember that attention divides your dot products by √d_k.",
        "```python\nscore = math.log(share * (t - 1) / ____)\nw_q = np.eye(t, k=____)  # row i has its 1 in column i − 1\n"
        "w_q[0, ____] = 1\nw_k = score * ____ * np.eye(t)\nreturn w_q, w_k\n```",
    )

    mistakes = {
        "PT1": mistake(
            patch("(w_q, w_k)", "(w_k, w_q)"),
            patch("k=-1", "k=1", f"    {ROW_0}\n", ""),
            patch("np.eye(t, k=-1)", "np.roll(np.eye(t), 1, axis=1)", f"    {ROW_0}\n", ""),
            patch("k=-1", "k=1", ROW_0, "w_q[-1, -1] = 1"),
            says="The large scores stand above the diagonal and should stand below it: w_q and w_k were exchanged, or the shift went the "
            "wrong way.",
            why="""Row i of x w_q (x w_k)ᵀ belongs to the query of token i, and column j to the key of token j. Row i should have its
            large score in column i − 1, so the ones are below the diagonal: `np.eye(t, k=-1)`. Exchanging w_q and w_k transposes
            the scores, and then token i − 1 looks for token i.""",
        ),
        "PT2": mistake(
            patch(f"    {ROW_0}\n", ""),
            says="Token 0 was given no query, so all its scores are 0 and it attends to every token alike; it should attend to itself.",
            why="""`np.eye(t, k=-1)` leaves row 0 empty, since no token comes before token 0. A query of zeros does not mean "nowhere":
            softmax of equal scores is 1/t for each key. Softmax must put its weight somewhere, so you have to say where.""",
        ),
        "PT3": mistake(
            patch("np.eye(t, k=-1)", "np.roll(np.eye(t), 1, axis=0)", f"    {ROW_0}\n", ""),
            says="The shift went round in a circle, so token 0 attends to the last token; it should attend to itself.",
            why="""`np.roll` brings what falls off at one end back at the other, so the query of token 0 becomes the key of the last
            token. The sentence has a beginning, and nothing comes before it.""",
        ),
        "QF2": (patch("gap * math.sqrt(t) *", "gap *"), patch("gap * math.sqrt(t)", "gap / math.sqrt(t)")),
        "QF4": patch("(t - 1) * share", "share"),
        "QF1": (*(patch(W_K, f"{number} * np.eye(t)") for number in FIXED),),
    }
