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
            patch(
                "i - period + 1",
                "i - period - 1",
                ROWS,
                "i = torch.arange(period + 1, weights.shape[-1], device=weights.device)",
            ),
            patch("i - period + 1", "i - period - 1"),
            patch("i - period + 1", "i - 1"),
            says="""The earlier occurrence itself was read, or the token before it or before row i; the token after it is expected, in
            column i − period + 1.""",
            why="""In A B A B, with period 2, row 2 is the second A. The first A is in column 0; what came next, B, is in column 1, which
            is i − period + 1. The token before would be in column −1, which counts from the end. Heads that look at the same token exist,
            too; they are called duplicate-token heads. Column i − 1 is what a previous-token head reads, and the right one only where the
            period is 2.""",
        ),
        "PV4": (
            patch(RETURN, f"return {PICK}.sum(dim=2).mean(dim=0) / weights.shape[-1]"),
            patch("torch.arange(period,", "torch.arange("),
            patch(RETURN, "return weights.diagonal(offset=1 - period, dim1=-2, dim2=-1).mean(dim=(0, 2))"),
            patch("torch.arange(period,", "torch.arange(period - 1,"),
        ),
        "PV5": patch("mean(dim=(0, 2))", "mean(dim=2)"),
        "PV6": (
            patch("mean(dim=(0, 2))", "mean(dim=(1, 2))"),
            patch("mean(dim=(0, 2))", "mean()"),
            patch("mean(dim=(0, 2))", "mean().expand(weights.shape[1])"),
        ),
        "PV8": (
            patch("mean(dim=(0, 2))", "sum(dim=2).mean(dim=0)"),
            patch("mean(dim=(0, 2))", "sum(dim=(0, 2))"),
            patch("mean(dim=(0, 2))", "mean(dim=2).sum(dim=0)"),
        ),
        "IN11": mistake(
            patch(ROWS, "i = torch.arange(period, min(2 * period, weights.shape[-1]), device=weights.device)"),
            patch(ROWS, "i = torch.arange(weights.shape[-1] - 1, weights.shape[-1], device=weights.device)"),
            patch("torch.arange(period,", "torch.arange(min(period + 1, weights.shape[-1] - 1),"),
            patch("torch.arange(period,", "torch.arange(period + 1,"),
            says="Some rows were left out; every row from `period` on should be read, since its token has occurred before.",
            why="""Rows period to T − 1 have an earlier occurrence, T − period of them: row `period` itself, the last row, and with three
            copies the third one as well as the second. With four tokens, period 2, and 0.8 and 0.4 in rows 2 and 3, the mean is 0.6; the
            last row alone gives 0.4.""",
        ),
        "PV9": patch(RETURN, f"return {PICK}.amax(dim=(0, 2))"),
        "IN14": mistake(
            patch("weights[:, :, i, i - period + 1]", "weights[:, :, i - period + 1, i]"),
            says="Rows and columns were exchanged; row i should be the query and column i − period + 1 the key.",
            why="""With period 3, row 4 should be read in column 2; exchanged, row 2 is read in column 4. Above the diagonal a causal
            mask has put zeros, so the score comes out as 0, or for period 1 as it should.""",
        ),
        "PV11": (patch(PICK, "weights[:1, :, i, i - period + 1]"), patch(PICK, "weights[-1:, :, i, i - period + 1]")),
        "IN18": mistake(
            patch("weights[:, :, i, i - period + 1]", "weights[:, :, i, i % period + 1]"),
            patch(
                RETURN,
                "return torch.stack([weights[:, :, i, (i - c * period + 1).clamp(min=0)] * (i >= c * period) for c in "
                "range(1, weights.shape[-1] // period + 1)]).sum(dim=0).mean(dim=(0, 2))",
            ),
            says="Another occurrence was looked up, the first one or all of them; the last one before row i is expected, i − period.",
            why="""In A B A B A, with period 2, row 4 is the third A. The A before it is in column 2, and what came next in column 3 = i −
            period + 1; i % period + 1 is 1, for every A. While a pattern comes only twice there is one occurrence, and nothing shows.""",
        ),
        "PV15": (
            patch(RETURN, f"found = {PICK}\n    return found.sum(dim=(0, 2)) / (found != 0).sum(dim=(0, 2))"),
            patch(
                RETURN, f"found = {PICK}\n    return found.sum(dim=(0, 2)) / (found != 0).sum(dim=(0, 2)).clamp(min=1)"
            ),
        ),
        "IN21": mistake(
            patch("torch.arange(period, weights.shape[-1]", "torch.arange(period, weights.shape[-1] - 1"),
            patch(
                "torch.arange(period, weights.shape[-1], device",
                "torch.arange(period, weights.shape[-1], period, device",
            ),
            says="Rows from `period` on were left out, the last or all but the first of each copy; each of them should count.",
            why="""A loss has no question for the last token, since nothing follows it. A score of attention asks what a row looks at, and
            the last row looks as well. Every token of a copy has an earlier occurrence, not its first alone.""",
        ),
    }
