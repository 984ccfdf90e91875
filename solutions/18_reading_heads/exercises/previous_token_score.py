"""How much of its weight a head gives to the token just before."""

from typing import Any

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

from ...shared.library import on_another_device
from ..shared import causal_weights, one_hot_weights, tensor

DIAGONAL = "back = weights.diagonal(offset=-1, dim1=-2, dim2=-1)"
RETURN = "return back.mean(dim=(0, -1))"


@exercise(points=2, minutes=6, difficulty=1, result_type="tensor", forbids=("tampering",))
class previous_token_score:
    """Say for each head how much weight it gives, on average, to the token just before."""

    def cases(rng):
        def case(key: str, title: str, b: int, h: int, t: int, drawn: Any = causal_weights) -> Case:
            return Case(key, title, (tensor(drawn(rng, b, h, t)),))

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
        for i, (b, h, t) in enumerate(((2, 2, 6), (2, 3, 8), (3, 2, 7), (4, 1, 9))):
            yield case(
                f"in-one-place-{i}", f"{t} tokens, each row with all its weight in one place", b, h, t, one_hot_weights
            )
        yield on_another_device(case("sizes", "all sizes different", 2, 3, 5))

    @holds("a head that always looks at the token before has the score 1", cases=("always",))
    def always(case, parts):
        found = float(parts["result"][0])
        return None if abs(found - 1) < 1e-4 else f"such a head got the score {found:.4g}."

    hints = (
        "Where in the matrix (T, T) of one head are the weights that go from token i to token i − 1?",
        "They are a diagonal, one below the main one: `weights.diagonal(offset=…, dim1=-2, dim2=-1)` has shape (B, H, T − 1). Then a mean "
        "over two of its axes.",
        "back = weights.diagonal(offset=____, dim1=-2, dim2=-1)  # (B, H, T − 1)\nreturn back.mean(dim=____)",
    )

    mistakes = {
        "PV1": mistake(
            patch("offset=-1", "offset=1"),
            patch("offset=-1", "offset=0"),
            patch("offset=-1", "offset=-2"),
            patch("weights.diagonal(offset=-1, dim1=-2, dim2=-1)", "weights.tril(-1).sum(dim=-1)[..., 1:]"),
            says="""Something else was read than the diagonal below the main one, such as another diagonal or all earlier tokens: row i
            should be read in column i − 1, the token before.""",
            why="""Rows are queries and columns keys, so the token before is one column to the left, a negative offset: −1. The rows [1,
            0, 0], [0.8, 0.2, 0], [0.3, 0.4, 0.3] have 0.8 and 0.4 there, and the score is 0.6. The main diagonal holds what each token
            gives to itself, with a mean of 0.5. All of a row up to it says that a head looks back, not how far. Above it a causal mask
            has left zeros. Two places back is the single 0.3, and with two tokens nothing, whose mean is NaN.""",
        ),
        "PV4": mistake(
            patch(RETURN, "return back.sum(dim=-1).mean(dim=0) / weights.shape[-1]"),
            patch(
                DIAGONAL,
                """t = weights.shape[-1]
    back = torch.stack([weights[:, :, i, i - 1] for i in range(t)], dim=-1)""",
            ),
            says="Too many rows were averaged; a row that has no such earlier token should not count.",
            why="""For the token before, row 0 has none and T − 1 rows count; for an earlier occurrence, rows `period` to T − 1 do, and
            row period − 1 does not. With three tokens, two of them with a token before, weights of 0.8 and 0.4 give 1.2/3 = 0.4 in place
            of 1.2/2 = 0.6. In a loop over all i the slip hides: where there is no such token the column is negative and counts from the
            end, where a causal mask has put zeros.""",
        ),
        "PV5": mistake(
            patch("mean(dim=(0, -1))", "mean(dim=-1)"),
            says="The mean over the batch is missing: one number for each head was asked for, (H,).",
            why="""A head's score should not depend on a single text; a random one may repeat a token by chance. A head with 0.8 in one
            item and 0.4 in another has the score 0.6.""",
        ),
        "PV6": mistake(
            patch("mean(dim=(0, -1))", "mean(dim=(1, -1))"),
            patch("mean(dim=(0, -1))", "mean()"),
            says="The mean was taken over the heads, too; each head should have a score of its own, (H,).",
            why="""The score is there to find which head does what, and a mean over heads says little about any of them: one head with 0.8
            and three with 0 give 0.2, and so do four with 0.2.""",
        ),
        "PV8": mistake(
            patch("mean(dim=(0, -1))", "sum(dim=-1).mean(dim=0)"),
            patch("mean(dim=(0, -1))", "sum(dim=(0, -1))"),
            patch("mean(dim=(0, -1))", "mean(dim=-1).sum(dim=0)"),
            says="A sum was taken over rows or items where a mean was asked for: divide by their number.",
            why="""Two weights of 0.8 and 0.4, in two rows or in two items, have the sum 1.2 and the mean 0.6. A sum grows with the length
            of the text or with the batch, so two measurements could not be compared; a mean of weights stays between 0 and 1.""",
        ),
        "PV9": mistake(
            patch(RETURN, "return back.amax(dim=(0, -1))"),
            patch(RETURN, "return back.amax(dim=-1).mean(dim=0)"),
            patch(RETURN, "return back.mean(dim=-1).amax(dim=0)"),
            patch(
                DIAGONAL, "back = (weights.argmax(dim=-1)[..., 1:] == torch.arange(weights.shape[-1] - 1)).to(weights)"
            ),
            patch(RETURN, "return back.median(dim=-1).values.mean(dim=0)"),
            says="""Something other than the mean of the weights was returned: the largest, the median, or how many rows have their
            largest there.""",
            why="""Nearly every head looks at the right token *somewhere*. Of weights 0.9, 0 and 0 the largest is 0.9, the median 0 and
            the mean 0.3. Counting the rows whose largest weight is there hides how sure a head is.""",
        ),
        "PV11": mistake(
            patch(DIAGONAL, "back = weights[:1].diagonal(offset=-1, dim1=-2, dim2=-1)"),
            patch(DIAGONAL, "back = weights[-1:].diagonal(offset=-1, dim1=-2, dim2=-1)"),
            says="Only one item of the batch was read; all of them should be.",
            why="Of two texts on which a head has 0.8 and 0.4, the first alone gives 0.8 and the last 0.4. The mean over both is 0.6.",
        ),
        "PV13": mistake(
            patch(RETURN, "return back[..., 1:].mean(dim=(0, -1))"),
            patch(RETURN, "return back[..., min(1, back.shape[-1] - 1):].mean(dim=(0, -1))"),
            says="Row 1 was left out as well; it should count, since it has a token before it, token 0.",
            why="""The diagonal below the main one begins in row 1. With 0.8 there and 0.4 in row 2 its mean is 0.6; cut, it leaves 0.4.""",
        ),
        "PV15": mistake(
            patch(RETURN, "return back.sum(dim=(0, -1)) / (back != 0).sum(dim=(0, -1))"),
            patch(RETURN, "return back.sum(dim=(0, -1)) / (back != 0).sum(dim=(0, -1)).clamp(min=1)"),
            says="The mean was taken over the weights that are not 0; all rows that have such an earlier token should count.",
            why="""A row that gives nothing to that token counts, too: with weights of 0.9, 0 and 0 the score is 0.3. Without the zeros it
            is 0.9, as if the head found the token from every row; and where all are 0, it is 0/0, which is NaN.""",
        ),
    }
