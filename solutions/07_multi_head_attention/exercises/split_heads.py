"""The projection of every token, cut into one slice for each head."""

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, mistake, patch

from ..shared import DEALT, REFUSED, VIEWED

HEADS = "x.reshape(b, t, num_heads, d_model // num_heads).transpose(1, 2)"
SLICES = "torch.stack([x[..., h * d_head:(h + 1) * d_head] for h in range(num_heads)], dim=1)"


@exercise(points=2, minutes=8, difficulty=2, result_type="tensor")
class split_heads:
    """Cut each token's projection into one slice for each head."""

    def cases(rng):
        def case(
            key: str,
            title: str,
            shape: tuple[int, ...],
            heads: int,
            grad: bool = False,
            dtype: str = "float32",
            **more: str,
        ) -> Case:
            return Case(key, title, (Tensor(rng.normal(size=shape).astype(dtype), None, grad), heads), **more)

        numbers = np.arange(8, dtype=np.float32).reshape(1, 2, 4)
        yield Case("small", "two tokens, the numbers 0 to 7, two heads", (Tensor(numbers), 2))
        yield case("sizes", "all sizes different", (2, 5, 12), 3, True)
        yield case("seen-again", "the same sizes, new numbers", (2, 5, 12), 3)
        yield case("double", "float64", (3, 4, 10), 5, True, "float64")
        yield case("square", "as many heads as tokens and as numbers in a head", (2, 3, 9), 3)
        yield case("one-head", "one head", (2, 4, 6), 1)
        yield case("single", "as many heads as numbers", (2, 5, 4), 4)
        yield case("one-token", "a batch of one, one token", (1, 1, 6), 2)
        yield case(
            "random", "sizes drawn at random", (2, int(rng.integers(9, 12)), 6 * int(rng.integers(2, 5))), 6, True
        )
        turned = rng.normal(size=(2, 12, 5)).astype(np.float32).swapaxes(1, 2)
        yield Case("transposed", "a transposed tensor, not contiguous in memory", (Tensor(turned), 3), stage="extremes")
        for d_model, heads in ((6, 4), (5, 2), (8, 3), (3, 4)):
            yield case(
                f"uneven-{d_model}",
                f"{heads} heads do not divide d_model {d_model}",
                (2, 3, d_model),
                heads,
                raises="ValueError",
            )

    @holds("head h holds the h-th slice of every token's projection")
    def slices(case, parts):
        x, heads = case.args[0].array, case.args[1]
        b, t, d_model = x.shape
        wanted = x.reshape(b, t, heads, d_model // heads).swapaxes(1, 2)
        far = (
            np.abs(parts["result"] - wanted) > 0.05
        )  # the right numbers in another precision are told by the comparison that follows
        if not far.any():
            return None
        item, head, token, place = (int(i) for i in np.argwhere(far)[0])
        came, want = parts["result"][item, head, token, place], wanted[item, head, token, place]
        said = f"number {place} of head {head} is number {head * wanted.shape[-1] + place} of each token's projection"
        return f"{said}; for token {token} of item {item} that is {want:.4g}, and here it is {came:.4g}."

    hints = (
        "The projection of token 0 is (0, 1, 2, 3) and there are two heads. Which of these numbers does head 1 hold?",
        "`x.view(B, T, num_heads, d_head)` names the axes in the order in which the numbers lie in memory. After that, exchange the "
        "axes of tokens and heads.",
        "B, T, d_model = x.shape\nif ____:\n    raise ValueError(...)\nreturn x.reshape(B, T, ____, ____).transpose(____, ____)",
    )

    mistakes = {
        "MH1": patch(*VIEWED),
        "MU1": (
            patch(*REFUSED),
            patch(*REFUSED, "return", "d_head = d_model // num_heads\n    return", HEADS, SLICES),
            patch(*REFUSED, HEADS, "torch.stack(x.chunk(num_heads, dim=-1), dim=1)"),
        ),
        "MU4": patch(*DEALT),
        "MU13": mistake(
            patch(".transpose(1, 2)", ""),
            patch("transpose(1, 2)", "permute(2, 0, 1, 3)"),
            patch("transpose(1, 2)", "permute(0, 2, 3, 1)"),
            says="The axes are in another order; (B, num_heads, T, d_head) was asked for.",
            why="""The numbers are right, their places are not. Matrix products take the last two axes, which have to be the tokens
            and the numbers of one head: with the heads in front of d_head no token is ever compared with another. Masks and losses
            rely on the batch at axis 0. (d_head, T) is the shape of k.mT, which the scores q @ k.mT make for themselves.""",
        ),
    }
