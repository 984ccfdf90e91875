"""How much of its weight a head gives to the token just before."""

from typing import Any

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

from .shared import causal_weights, tensor

DIAGONAL = "back = weights.diagonal(offset=-1, dim1=-2, dim2=-1)"
RETURN = "return back.mean(dim=(0, -1))"


@exercise(points=2, minutes=8, difficulty=1, container="tensor")
class previous_token_score:
    """Say for each head how much weight it gives, on average, to the token just before."""

    def cases(rng):
        def case(key: str, title: str, b: int, h: int, t: int, **more: Any) -> Case:
            return Case(key, title, (tensor(causal_weights(rng, b, h, t)),), **more)

        yield case("small", "one item, two heads, three tokens", 1, 2, 3)
        yield case("sizes", "all sizes different", 2, 3, 5)
        yield case("seen-again", "the same sizes, new numbers", 2, 3, 5)
        yield case("two", "two tokens: one row that has a token before it", 3, 4, 2)
        yield case("one-head", "one head", 4, 1, 6)
        yield case("square", "as many items as heads and tokens", 4, 4, 4)
        yield case("long", "twenty tokens", 2, 3, 20)
        always = np.tile(np.eye(5, k=-1), (2, 3, 1, 1))
        always[..., 0, 0] = 1
        always[:, 1] = causal_weights(rng, 2, 1, 5)[:, 0]
        yield Case("always", "head 0 gives all its weight to the token before", (tensor(always),))
        yield case("many", "five items, nine heads, seven tokens", 5, 9, 7)

    @holds("a head that always looks at the token before has the score 1", needs=("always",))
    def always(case, parts):
        found = float(parts["result"][0])
        return None if abs(found - 1) < 1e-4 else f"such a head got the score {found:.4g}."

    hints = (
        "Where in the (T, T) table of one head stand the weights that go from token i to token i − 1?",
        "They are a diagonal, one below the main one: `weights.diagonal(offset=…, dim1=-2, dim2=-1)` has shape (B, H, T − 1). Then a mean "
        "over two of its axes.",
        "back = weights.diagonal(offset=____, dim1=-2, dim2=-1)  # (B, H, T − 1)\nreturn back.mean(dim=____)",
    )

    mistakes = {
        "PV1": mistake(
            patch("offset=-1", "offset=1"),
            says="The diagonal above the main one was read: weights that go from token i to token i + 1, which a causal mask sets to 0.",
            why="""Rows are queries and columns keys. The token before stands one column to the left, below the main diagonal: a negative
            offset in torch and NumPy.""",
        ),
        "PV2": mistake(
            patch("offset=-1", "offset=0"),
            says="The main diagonal was read: the weight that each token gives to itself.",
            why="""weights[i, i] belongs to the token itself. The one before is weights[i, i − 1].""",
        ),
        "PV3": mistake(
            patch("offset=-1", "offset=-2"),
            says="The second diagonal below the main one was read: the token two places before.",
            why="""One step back is offset −1; with two tokens the second diagonal has no entry, and the mean of nothing is NaN.""",
        ),
        "PV4": mistake(
            patch(RETURN, "return back.sum(dim=-1).mean(dim=0) / weights.shape[-1]"),
            patch(DIAGONAL, """t = weights.shape[-1]
    back = torch.stack([weights[:, :, i, i - 1] for i in range(t)], dim=-1)"""),
            says="The mean is taken over T rows; row 0 has no token before it, so there are T − 1.",
            why="""A head that always looks back then gets (T − 1)/T. In a loop the slip hides: for i = 0 the index i − 1 is −1, the last
            column, which a causal mask has set to 0.""",
        ),
        "PV5": mistake(
            patch("mean(dim=(0, -1))", "mean(dim=-1)"),
            says="The mean over the batch is missing: one number for each head was asked for, (H,).",
            why="""A head's score should not depend on a single text. Average over the items as well.""",
        ),
        "PV6": mistake(
            patch("mean(dim=(0, -1))", "mean(dim=(1, -1))"),
            says="The mean was taken over the heads and the items kept; each head has a score of its own, (H,).",
            why="""A mean over heads tells nothing about any of them: one head that looks back and three that do not give ¼.""",
        ),
        "PV7": mistake(
            patch("mean(dim=(0, -1))", "mean()"),
            says="One number was returned for all heads; each head has a score of its own, (H,).",
            why="""Heads differ, and the score is there to find which of them does what.""",
        ),
        "PV8": mistake(
            patch("mean(dim=(0, -1))", "sum(dim=-1).mean(dim=0)"),
            patch("mean(dim=(0, -1))", "sum(dim=(0, -1))"),
            patch("mean(dim=(0, -1))", "mean(dim=-1).sum(dim=0)"),
            says="A sum was returned where a mean was asked for.",
            why="""A sum grows with the length of the text and with the batch, so two measurements could not be compared.""",
        ),
        "PV9": mistake(
            patch(RETURN, "return back.amax(dim=(0, -1))"),
            says="The largest weight was returned; the mean was asked for.",
            why="""Nearly every head looks at the token before *somewhere*. What tells heads apart is how they behave on average.""",
        ),
        "PV10": mistake(
            patch(DIAGONAL, "back = (weights.argmax(dim=-1)[..., 1:] == torch.arange(weights.shape[-1] - 1)).to(weights)"),
            says="The share of rows was counted whose largest weight is on the token before; the mean of the weights was asked for.",
            why="""A weight of 0.3 may be the largest of its row, and one of 0.45 the second. Counting winners hides how sure a head is.""",
        ),
        "PV11": mistake(
            patch(DIAGONAL, "back = weights[:1].diagonal(offset=-1, dim1=-2, dim2=-1)"),
            patch(DIAGONAL, "back = weights[-1:].diagonal(offset=-1, dim1=-2, dim2=-1)"),
            says="Only one item of the batch was read.",
            why="""`weights[0]` drops the other texts. The mean is over all of them.""",
        ),
        "PV12": mistake(
            patch(RETURN, "return back.median(dim=-1).values.mean(dim=0)"),
            says="The median was returned; the mean was asked for.",
            why="""A head that looks back from only one row in three has a mean near ⅓ and a median near 0.""",
        ),
        "PV13": mistake(
            patch(RETURN, "return back[..., 1:].mean(dim=(0, -1))"),
            says="Row 1 is left out as well; it has a token before it, token 0.",
            why="""The diagonal one below the main one begins in row 1 already: nothing has to be cut from it.""",
        ),
        "PV14": mistake(
            patch(RETURN, "score = back.mean(dim=(0, -1))\n    return score / score.sum()"),
            says="The scores were divided by their sum over the heads.",
            why="""Heads do not compete: all of them may look back, or none. Each score stands between 0 and 1 by itself.""",
        ),
    }
