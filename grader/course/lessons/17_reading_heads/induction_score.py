"""How much of its weight a head gives to what followed the last time: the mark of an induction head."""

from typing import Any

import numpy as np

from grader.course.declare import Case, exercise, holds, mistake, patch

from .shared import any_weights, causal_weights, tensor

ROWS = "i = torch.arange(period, weights.shape[-1], device=weights.device)"
PICK = "weights[:, :, i, i - period + 1]"
RETURN = f"return {PICK}.mean(dim=(0, 2))"


@exercise(points=2, minutes=12, difficulty=2, container="tensor")
class induction_score:
    """Say for each head how much weight it gives, on average, to the token that followed the current one's previous occurrence."""

    def cases(rng):
        def case(key: str, title: str, b: int, h: int, t: int, period: int, drawn: Any = causal_weights, **more: Any) -> Case:
            return Case(key, title, (tensor(drawn(rng, b, h, t)), period), **more)

        yield case("small", "one item, two heads, four tokens, period 2", 1, 2, 4, 2)
        yield case("sizes", "all sizes different", 2, 3, 11, 4)
        yield case("seen-again", "the same sizes, new numbers", 2, 3, 11, 4)
        yield case("period-again", "the same weights' shape, another period", 2, 3, 11, 7)
        yield case("one-row", "one token more than the period", 3, 2, 6, 5)
        yield case("one", "period 1: the same token again and again", 2, 4, 5, 1)
        yield case("three", "a sequence that stands there three times and a bit", 2, 3, 13, 4)
        yield case("one-head", "one head, period 3", 3, 1, 7, 3)
        yield case("square", "as many items as heads and tokens", 5, 5, 5, 2)
        yield case("long", "twenty-four tokens, period 9", 2, 3, 24, 9)
        yield case("unmasked", "weights without a mask, period 3", 2, 3, 8, 3, any_weights)
        sure = np.zeros((2, 3, 9, 9))
        sure[..., np.arange(9), np.maximum(np.arange(9) - 3, 0)] = 1  # period 4: one after the previous occurrence
        sure[:, 2] = causal_weights(rng, 2, 1, 9)[:, 0]
        yield Case("sure", "head 0 always looks at the token after the previous occurrence, period 4", (tensor(sure), 4))

    @holds("a head that always looks at the token after the previous occurrence has the score 1", needs=("sure",))
    def sure(case, parts):
        found = float(parts["result"][0])
        return None if abs(found - 1) < 1e-4 else f"such a head got the score {found:.4g}."

    hints = (
        "Token i stood at i − period before. At which position stands the token that came after it?",
        "At i − period + 1. The rows that have an earlier occurrence are i = period, …, T − 1, which is T − period rows; index both axes "
        "with `torch.arange`, or take a diagonal and cut its first entry.",
        "i = torch.arange(____, weights.shape[-1])\nreturn weights[:, :, i, ____].mean(dim=____)",
    )

    mistakes = {
        "IN1": mistake(
            patch("i - period + 1", "i - period"),
            says="The weight on the earlier occurrence itself was read; an induction head looks at the token after it.",
            why="""Token i and token i − period are the same. What helps to guess the *next* token is what came next last time, at
            i − period + 1. Heads that look at the same token exist, too; they are called duplicate-token heads.""",
        ),
        "IN2": mistake(
            patch("i - period + 1", "i - period - 1", ROWS, "i = torch.arange(period + 1, weights.shape[-1], device=weights.device)"),
            patch("i - period + 1", "i - period - 1"),
            says="The token before the earlier occurrence was read; the one after it is at i − period + 1.",
            why="""The sign of the 1 decides whether the head knows what came next or what came before.""",
        ),
        "IN3": mistake(
            patch(RETURN, "return weights.diagonal(offset=1 - period, dim1=-2, dim2=-1).mean(dim=(0, 2))"),
            patch("torch.arange(period,", "torch.arange(period - 1,"),
            says="Row period − 1 is counted as well; its token has not occurred before.",
            why="""The diagonal with offset 1 − period begins in row period − 1, with column 0. The first row that has an earlier occurrence
            is i = period: cut the diagonal's first entry.""",
        ),
        "IN4": mistake(
            patch(RETURN, f"return {PICK}.sum(dim=2).mean(dim=0) / weights.shape[-1]"),
            patch("torch.arange(period,", "torch.arange("),
            says="The mean is taken over T rows; only T − period of them have an earlier occurrence.",
            why="""The first period rows cannot know what will be repeated. A loop over all i does not complain either: a negative
            column counts from the end, where a causal mask has put zeros.""",
        ),
        "IN5": mistake(
            patch("mean(dim=(0, 2))", "mean(dim=2)"),
            says="The mean over the batch is missing: one number for each head was asked for, (H,).",
            why="""One random sequence may repeat a token by chance. The mean over several is the score.""",
        ),
        "IN6": mistake(
            patch("mean(dim=(0, 2))", "mean(dim=(1, 2))"),
            says="The mean was taken over the heads and the items kept; each head has a score of its own, (H,).",
            why="""Induction heads are few: a mean over heads hides them.""",
        ),
        "IN7": mistake(
            patch("mean(dim=(0, 2))", "mean()"),
            says="One number was returned for all heads; each head has a score of its own, (H,).",
            why="""The score is there to find which heads do it.""",
        ),
        "IN8": mistake(
            patch("mean(dim=(0, 2))", "sum(dim=2).mean(dim=0)"),
            patch("mean(dim=(0, 2))", "sum(dim=(0, 2))"),
            patch("mean(dim=(0, 2))", "mean(dim=2).sum(dim=0)"),
            says="A sum was returned where a mean was asked for.",
            why="""A sum grows with the length and the batch; a mean of weights stays between 0 and 1.""",
        ),
        "IN9": mistake(
            patch("i - period + 1", "i - 1"),
            says="The weight on the token just before was read: that is the other score.",
            why="""Induction heads need a previous-token head in an earlier layer, and are not one themselves. What they look at is
            period − 1 places back.""",
        ),
        "IN10": mistake(
            patch(ROWS, "period = weights.shape[-1] // 2\n    i = torch.arange(period, weights.shape[-1], device=weights.device)"),
            says="The period is taken to be half of T; it is an argument.",
            why="""A sequence that stands there exactly twice has the period T/2. One with a start token in front, or with three copies,
            has not.""",
        ),
        "IN11": mistake(
            patch(ROWS, "i = torch.arange(period, min(2 * period, weights.shape[-1]), device=weights.device)"),
            says="Only the second copy is read; every row from period on has an earlier occurrence.",
            why="""With three copies the third one counts, too: T − period rows in all.""",
        ),
        "IN12": mistake(
            patch(ROWS, "i = torch.arange(weights.shape[-1] - 1, weights.shape[-1], device=weights.device)"),
            says="Only the last row is read; every row from period on has an earlier occurrence.",
            why="""The last row is what the model answers with. What a head does is told by all rows.""",
        ),
        "IN13": mistake(
            patch(RETURN, f"return {PICK}.amax(dim=(0, 2))"),
            says="The largest weight was returned; the mean was asked for.",
            why="""One weight near 1 is found in nearly every head.""",
        ),
        "IN14": mistake(
            patch("weights[:, :, i, i - period + 1]", "weights[:, :, i - period + 1, i]"),
            says="Rows and columns are exchanged: row i is the query, column i − period + 1 the key.",
            why="""Above the diagonal a causal mask has put zeros, so the score comes out as 0, or for period 1 as it should.""",
        ),
        "IN15": mistake(
            patch(PICK, "weights[:1, :, i, i - period + 1]"),
            patch(PICK, "weights[-1:, :, i, i - period + 1]"),
            says="Only one item of the batch was read.",
            why="""The mean is over all sequences of the batch.""",
        ),
        "IN16": mistake(
            patch(RETURN, "return torch.stack([weights[:, :, i, (i - c * period + 1).clamp(min=0)] * (i >= c * period) for c in "
                          "range(1, weights.shape[-1] // period + 1)]).sum(dim=0).mean(dim=(0, 2))"),
            says="All earlier occurrences are counted; the score asks for the previous one alone, at i − period + 1.",
            why="""From the third copy on there are several places that show what came next. Lesson and contract read the nearest.""",
        ),
    }
