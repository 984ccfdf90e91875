"""How much of its weight a head gives to what followed the last time: the mark of an induction head."""

from typing import Any

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

from ...shared.library import on_another_device
from ..shared import causal_weights, one_hot_weights, tensor, unmasked_weights

ROWS = "i = torch.arange(period, weights.shape[-1], device=weights.device)"
PICK = "weights[:, :, i, i - period + 1]"
RETURN = f"return {PICK}.mean(dim=(0, 2))"


@exercise(points=2, minutes=9, difficulty=2, result_type="tensor", forbids=("tampering",))
class induction_score:
    """Say for each head how much weight it gives, on average, to the token that followed the current one's previous occurrence."""

    def cases(rng):
        def case(
            key: str, title: str, b: int, h: int, t: int, period: int, drawn: Any = causal_weights, **more: Any
        ) -> Case:
            return Case(key, title, (tensor(drawn(rng, b, h, t)), period), **more)

        yield case("small", "one item, two heads, four tokens, period 2", 1, 2, 4, 2)
        yield case("sizes", "all sizes different", 2, 3, 11, 4)
        yield case("seen-again", "the same sizes, new numbers", 2, 3, 11, 4)
        yield case("period-again", "the same weights' shape, another period", 2, 3, 11, 7)
        yield case("one-row", "one token more than the period", 3, 2, 6, 5)
        yield case("one", "period 1: the same token again and again", 2, 4, 5, 1)
        yield case("three", "three copies of a sequence, and a bit of a fourth", 2, 3, 13, 4)
        yield case("one-head", "one head, period 3", 3, 1, 7, 3)
        yield case("square", "as many items as heads and tokens", 5, 5, 5, 2)
        yield case("long", "twenty-four tokens, period 9", 2, 3, 24, 9)
        yield case("unmasked", "weights without a mask, period 3", 2, 3, 8, 3, unmasked_weights)
        for i, (b, h, t, period) in enumerate(((2, 2, 8, 2), (2, 3, 11, 4), (3, 2, 9, 3), (4, 1, 10, 2))):
            title = f"{t} tokens, period {period}, each row with all its weight in one place"
            yield case(f"in-one-place-{i}", title, b, h, t, period, one_hot_weights)
        sure = np.zeros((2, 3, 9, 9))
        rows = np.arange(9)  # period 4: one after the previous occurrence; a row that has none looks at itself
        sure[..., rows, np.where(rows < 4, rows, rows - 3)] = 1
        sure[:, 2] = causal_weights(rng, 2, 1, 9)[:, 0]
        yield Case(
            "sure", "head 0 always looks at the token after the previous occurrence, period 4", (tensor(sure), 4)
        )
        yield on_another_device(case("sizes", "all sizes different", 2, 3, 11, 4))

    @holds("a head that always looks at the token after the previous occurrence has the score 1", cases=("sure",))
    def sure(case, parts):
        found = float(parts["result"][0])
        return None if abs(found - 1) < 1e-4 else f"such a head got the score {found:.4g}."

    hints = (
        "Token i was at i − period before. At which position is the token that came after it?",
        "At i − period + 1. The rows that have an earlier occurrence are i = period, …, T − 1, which is T − period rows; index both axes "
        "with `torch.arange`, or take a diagonal and cut its first entry.",
        "i = torch.arange(____, weights.shape[-1])\nreturn weights[:, :, i, ____].mean(dim=____)",
    )

    mistakes = {
        "IN1": mistake(
            patch("i - period + 1", "i - period"),
            says="The weight on the earlier occurrence itself was read; that on the token after it is expected.",
            why="""In A B A B, with period 2, row 2 is the second A. The first A is in column 0; what came next, B, is in column 1, which is
            i − period + 1. Heads that look at the same token exist, too; they are called duplicate-token heads.""",
        ),
        "IN2": mistake(
            patch(
                "i - period + 1",
                "i - period - 1",
                ROWS,
                "i = torch.arange(period + 1, weights.shape[-1], device=weights.device)",
            ),
            patch("i - period + 1", "i - period - 1"),
            says="The token before the earlier occurrence was read; the one after it is expected, at i − period + 1.",
            why="""In A B A B, with period 2, row 3 is B, which was in column 1 before. What came next is in column 3 − 2 + 1 = 2,
            what came before in column 3 − 2 − 1 = 0. For row 2 that column is −1, which counts from the end.""",
        ),
        "IN3": mistake(
            patch(RETURN, "return weights.diagonal(offset=1 - period, dim1=-2, dim2=-1).mean(dim=(0, 2))"),
            patch("torch.arange(period,", "torch.arange(period - 1,"),
            says="Row period − 1 was counted as well; only rows from period on should be, whose token has occurred before.",
            why="""The diagonal with offset 1 − period begins in row period − 1, with column 0: cut that entry. With four tokens and
            period 2, rows 2 and 3 count. If they have 0.8 and 0.4, and row 1 has 0, the mean with row 1 is 1.2/3 = 0.4, not 0.6.""",
        ),
        "IN4": mistake(
            patch(RETURN, f"return {PICK}.sum(dim=2).mean(dim=0) / weights.shape[-1]"),
            patch("torch.arange(period,", "torch.arange("),
            says="The mean was taken over T rows; it should be taken over the T − period rows that have an earlier occurrence.",
            why="""With four tokens and period 2, weights of 0.8 and 0.4 in rows 2 and 3 have the mean 0.6. Over four rows, the first
            two with 0, it is 1.2/4 = 0.3. A loop over all i does not complain: a negative column counts from the end, where a causal
            mask has put zeros.""",
        ),
        "IN5": mistake(
            patch("mean(dim=(0, 2))", "mean(dim=2)"),
            says="The mean over the batch is missing: one number for each head was asked for, (H,).",
            why="""One random sequence may repeat a token by chance. A head with 0.8 on one and 0.4 on another has the score 0.6.""",
        ),
        "IN6": mistake(
            patch("mean(dim=(0, 2))", "mean(dim=(1, 2))"),
            says="The mean was taken over the heads and the items kept; each head should have a score of its own, (H,).",
            why="""Induction heads are few, and a mean hides them: one head with 0.8 and three with 0 give 0.2, as do four with 0.2.""",
        ),
        "IN7": mistake(
            patch("mean(dim=(0, 2))", "mean()"),
            patch("mean(dim=(0, 2))", "mean().expand(weights.shape[1])"),
            says="One mean was taken over all heads; each head should have a score of its own, (H,).",
            why="""The score is there to find which heads do it. Two heads with 0.9 and 0.1 give 0.5, which is true of neither.""",
        ),
        "IN8": mistake(
            patch("mean(dim=(0, 2))", "sum(dim=2).mean(dim=0)"),
            patch("mean(dim=(0, 2))", "sum(dim=(0, 2))"),
            patch("mean(dim=(0, 2))", "mean(dim=2).sum(dim=0)"),
            says="A sum was returned where a mean was asked for.",
            why="""Two weights of 0.8 and 0.4, in two rows or in two items, have the sum 1.2 and the mean 0.6. A sum grows with the
            length or with the batch; a mean of weights stays between 0 and 1.""",
        ),
        "IN9": mistake(
            patch("i - period + 1", "i - 1"),
            says="The weight on the token just before was read; that on the token period − 1 places back is expected.",
            why="""With period 4, row 6 should be read in column 6 − 4 + 1 = 3; i − 1 is column 5. Induction heads need a previous-token
            head in an earlier layer, and are not one themselves. With period 2 both columns are the same, and nothing shows.""",
        ),
        "IN10": mistake(
            patch(
                ROWS,
                "period = weights.shape[-1] // 2\n    i = torch.arange(period, weights.shape[-1], device=weights.device)",
            ),
            says="The period was taken to be half of T; the argument should be used.",
            why="""Two copies of 4 tokens have T = 8, and half of it is right. Three have T = 12 and still the period 4; half of T is 6.""",
        ),
        "IN11": mistake(
            patch(ROWS, "i = torch.arange(period, min(2 * period, weights.shape[-1]), device=weights.device)"),
            says="Only the second copy was read; every row from period on should be, since its token has occurred before.",
            why="""With three copies the third one counts, too: with T = 12 and period 4 it is rows 4 to 11, not only 4 to 7.""",
        ),
        "IN12": mistake(
            patch(ROWS, "i = torch.arange(weights.shape[-1] - 1, weights.shape[-1], device=weights.device)"),
            says="Only the last row was read; every row from period on should be, since its token has occurred before.",
            why="""With four tokens, period 2, and 0.8 and 0.4 in rows 2 and 3, the last row gives 0.4 and the mean of both is 0.6.""",
        ),
        "IN13": mistake(
            patch(RETURN, f"return {PICK}.amax(dim=(0, 2))"),
            says="The largest weight was returned; the mean was asked for.",
            why="""One weight near 1 is found in nearly every head. Weights of 0.9, 0 and 0 have the largest 0.9 and the mean 0.3.""",
        ),
        "IN14": mistake(
            patch("weights[:, :, i, i - period + 1]", "weights[:, :, i - period + 1, i]"),
            says="Rows and columns were exchanged; row i should be the query and column i − period + 1 the key.",
            why="""With period 3, row 4 should be read in column 2; exchanged, row 2 is read in column 4. Above the diagonal a causal
            mask has put zeros, so the score comes out as 0, or for period 1 as it should.""",
        ),
        "IN15": mistake(
            patch(PICK, "weights[:1, :, i, i - period + 1]"),
            patch(PICK, "weights[-1:, :, i, i - period + 1]"),
            says="Only one item of the batch was read; all of them should be.",
            why="""A head has 0.8 on one sequence and 0.4 on another: the first alone gives 0.8, the last 0.4, and the mean of both 0.6.""",
        ),
        "IN18": mistake(
            patch("weights[:, :, i, i - period + 1]", "weights[:, :, i, i % period + 1]"),
            says="The first occurrence was looked up, i % period; the last one before row i is expected, i − period.",
            why="""In A B A B A, with period 2, row 4 is the third A. The A before it is in column 2, and what came next in column 3
            = i − period + 1; i % period + 1 is 1, for every A. While a pattern comes only twice the two are the same.""",
        ),
        "IN19": mistake(
            patch("torch.arange(period,", "torch.arange(min(period + 1, weights.shape[-1] - 1),"),
            patch("torch.arange(period,", "torch.arange(period + 1,"),
            says="Row `period` was left out; it should count, since its token has occurred before, in row 0.",
            why="""Rows period to T − 1 have an earlier occurrence, T − period of them. With four tokens and period 2, rows 2 and 3
            count: with 0.8 and 0.4 there the mean is 0.6, and without row 2 it is 0.4.""",
        ),
        "IN17": mistake(
            patch(RETURN, f"found = {PICK}\n    return found.sum(dim=(0, 2)) / (found != 0).sum(dim=(0, 2))"),
            patch(
                RETURN, f"found = {PICK}\n    return found.sum(dim=(0, 2)) / (found != 0).sum(dim=(0, 2)).clamp(min=1)"
            ),
            says="The mean was taken over the weights that are not 0; all T − period rows that have an earlier occurrence should count.",
            why="""A row that gives nothing to that token counts, too: with weights of 0.9, 0 and 0 the score is 0.3. Without the
            zeros it is 0.9, as if the head found the token every time; and where all are 0, it is 0/0, which is NaN.""",
        ),
        "IN16": mistake(
            patch(
                RETURN,
                "return torch.stack([weights[:, :, i, (i - c * period + 1).clamp(min=0)] * (i >= c * period) for c in "
                "range(1, weights.shape[-1] // period + 1)]).sum(dim=0).mean(dim=(0, 2))",
            ),
            says="All earlier occurrences were counted; only the previous one should be, at i − period + 1.",
            why="""From the third copy on there are several places that show what came next: with period 4, row 9 has column 6 and also
            column 2. The score reads the nearest, column 6.""",
        ),
    }
