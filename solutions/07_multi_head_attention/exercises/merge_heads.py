"""The heads of each token side by side."""

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from ..shared import INTERLEAVED


@exercise(points=2, minutes=6, difficulty=2, result_type="tensor")
class merge_heads:
    """Put the heads of each token side by side again."""

    def cases(rng):
        def case(key: str, title: str, shape: tuple[int, ...], grad: bool = False, dtype: str = "float32") -> Case:
            return Case(key, title, (Tensor(rng.normal(size=shape).astype(dtype), None, grad),))

        numbers = np.array([[[[0, 1], [4, 5]], [[2, 3], [6, 7]]]], np.float32)
        yield Case("small", "two heads of two tokens", (Tensor(numbers),))
        yield case("sizes", "all sizes different", (2, 3, 5, 4), True)
        yield case("seen-again", "the same sizes, new numbers", (2, 3, 5, 4))
        yield case("double", "float64", (3, 2, 4, 5), True, "float64")
        yield case("square", "as many heads as tokens and as numbers in a head", (2, 3, 3, 3))
        yield case("one-head", "one head", (2, 1, 4, 6))
        yield case("single", "heads of one number", (2, 5, 3, 1))
        yield case("one-token", "a batch of one, one token", (1, 3, 1, 2))
        yield case("random", "sizes drawn at random", (2, *(int(n) for n in rng.integers((5, 9, 2), (8, 12, 5)))), True)
        apart = np.asfortranarray(rng.normal(size=(2, 3, 5, 4)).astype(np.float32))
        yield Case("strides", "a tensor that is not contiguous in memory", (Tensor(apart),))
        apart = np.asfortranarray(rng.normal(size=(2, 1, 4, 6)).astype(np.float32))
        yield Case("one-head-strides", "one head, not contiguous in memory", (Tensor(apart),))

    hints = (
        "In which order must the axes be, so that all numbers of one token lie side by side?",
        "Undo the last step of `split_heads` first: the tokens return to axis 1. Then `reshape`.",
        "B, H, T, d_head = x.shape\nreturn x.transpose(____, ____).reshape(B, T, ____)",
    )

    mistakes = {
        "MH2": patch(".transpose(1, 2)", ""),
        "MH4": patch("reshape", "view"),
        "MU17": mistake(
            patch(*INTERLEAVED),
            patch("x.transpose(1, 2)", "x.flip(1).transpose(1, 2)"),
            says="The merged numbers are in another order; head 0 should come first as a whole, then head 1, and so on.",
            why="""With d_head moved in front of the heads, the first number of every head comes before the second of any. A loop
            that puts each head in front of what it has, `torch.cat([head, merged])`, ends with the last head first. Either way `w_o`
            meets the numbers in an order that it was not trained with.""",
        ),
        "MU18": mistake(
            patch("transpose(1, 2).reshape(b, t, num_heads * d_head)", "mean(dim=1)"),
            patch("transpose(1, 2).reshape(b, t, num_heads * d_head)", "mean(dim=1).repeat(1, 1, num_heads)"),
            *(
                patch("transpose(1, 2).reshape(b, t, num_heads * d_head)", added)
                for added in ("sum(dim=1)", "sum(dim=1).repeat(1, 1, num_heads)")
            ),
            patch("x.transpose(1, 2).reshape(b, t, num_heads * d_head)", "x.reshape(b, num_heads * t, d_head)"),
            says="""The heads were averaged, added up, or laid one after another along the tokens; they should lie side by side,
            along the last axis.""",
            why="""A mean or a sum loses which head found what. A merge gives one row for each token, (B, T, num_heads · d_head), in
            which all is kept. `torch.cat(heads, dim=1)` gives num_heads rows for each of them; with `dim=-1` it puts the heads side
            by side.""",
        ),
    }
