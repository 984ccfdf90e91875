"""Which positions hold real tokens, for sequences of different lengths."""

from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

REAL = "real = positions < lengths[:, None]"


@exercise(points=2, minutes=5, difficulty=1, result_type="tensor", dtype=("bool",))
class padding_mask:
    """Mark the real tokens of sequences of different lengths."""

    def cases(rng):
        def case(key: str, title: str, lengths: Any, max_len: int, dtype: str = "int64", **more: str) -> Case:
            return Case(key, title, (Tensor(np.asarray(lengths), dtype), max_len), **more)

        yield case("small", "lengths 2 and 3 of 4", [2, 3], 4)
        yield case("empty-and-full", "lengths 0 and 5 of 5", [0, 5, 1], 5)
        yield case("one", "a single sequence", [2], 3)
        yield case("square", "as many sequences as positions", [1, 3, 2, 4], 4)
        yield case("seen-again", "the same sizes, other lengths", [0, 2], 4)
        yield case("nothing", "two empty sequences, lengths of int32", [0, 0], 3, "int32")
        yield case("uint8", "lengths of uint8", [3, 1, 2], 6, "uint8")
        yield case("random", "random lengths, the last one 19", [*rng.integers(0, 20, size=5), 19], 19)
        title = "lengths of int8, and more positions than it counts"
        yield case("int8", title, [3, 120, 0], 140, "int8", stage="extremes")

    hints = (
        "Which positions does a sequence of length 2 fill, and which number do they all stay below?",
        "Compare `torch.arange(max_len)` with the lengths as a column; then add the axis for the queries.",
        "positions = torch.arange(____)\nreal = positions < lengths[____]\nreturn real[:, ____, :]",
    )

    mistakes = {
        "MK1": patch("return real", "return ~real"),
        "MK10": patch("[:, None, :]", "[:, :, None]"),
        "MA2": (
            *(
                patch(REAL, f"real = (positions < lengths[:, None]).{kind}()")
                for kind in ("float", "long", "int", "byte")
            ),
            patch("return", "real = torch.zeros(real.shape).masked_fill(~real, -torch.inf)\n    return"),
        ),
        "MA4": mistake(
            patch("positions <", "positions <="),
            patch("lengths[:, None]", "lengths[:, None] - 1"),
            says="The end of the real tokens is off by one; position j should be real where j < length, counted from 0.",
            why="""Positions start at 0, so a sequence of length 2 fills positions 0 and 1. `j <= length` also lets in
            position 2. With j < length − 1, or j counted from 1, only 0 is left.""",
        ),
        "MA5": mistake(
            patch("real[:, None, :]", "real"),
            *(patch("[:, None, :]", other) for other in ("[None]", "[:, None, None]")),
            says="The axis for the queries is missing or in the wrong place; the mask should have the shape (B, 1, max_len).",
            why="""Scores have the shape (B, T_q, T_k), and broadcasting lines a mask up with them from the right. Without
            that axis, or with it at the front, the items lie along the queries; with two new axes they lie along one that
            the scores do not have. An axis of length 1 in the middle makes every query of an item share its row.""",
        ),
        "MA6": mistake(
            patch("positions < lengths[:, None]", "positions >= max_len - lengths[:, None]"),
            says="The padding was taken to be at the front; here the real tokens should come first.",
            why="""Both ways exist: models that generate text often pad at the left. Here a sequence of length 2 in max_len 4 fills
            positions 0 and 1, so its row is True, True, False, False.""",
        ),
        "MA7": mistake(
            patch("arange(max_len", "arange(int(lengths.max())"),
            says="The mask is as wide as the longest sequence; it should be max_len wide.",
            why="""A batch is padded to a width that is chosen before its lengths are known. Where no sequence reaches max_len, a
            mask of the longest length no longer fits the keys.""",
        ),
        "MA21": mistake(
            patch("real[:, None, :]", "real[:, None, :].expand(-1, max_len, -1)"),
            patch("real[:, None, :]", "real[:, None, :] & real[:, :, None]"),
            says="The mask has a row for each position; one row for all queries is asked for: (B, 1, max_len).",
            why="""Which keys are real does not depend on the query, so one row is enough and fits any number of queries. A mask of
            max_len rows fits self-attention alone, and one that also hides everything from padded queries makes their rows empty.""",
        ),
        "MA39": mistake(
            patch(
                "real = positions < lengths[:, None]",
                """real = torch.ones(len(lengths), max_len, dtype=torch.bool, device=lengths.device)
    for row, length in zip(real, lengths.tolist()):
        row[length - max_len:] = False""",
            ),
            says="A sequence without padding was hidden as a whole: in a slice −0 is 0; cut at its length, `[length:]`.",
            why="""Counted from the end, the padding of 2 places is `[-2:]` and the rest `[:-2]`. With none these are `[-0:]`, the whole
            row, and `[:-0]`, nothing of it. Counted from the front nothing has to be told apart: `[length:]` is empty at max_len.""",
        ),
    }
