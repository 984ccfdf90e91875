"""LayerNorm by hand: each token's numbers with mean 0 and spread 1, then a scale and a shift of its own for each feature."""

from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, mistake, patch

MEAN = "mean = x.mean(dim=-1, keepdim=True)"
VARIANCE = "variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)"
RETURN = "return (x - mean) / torch.sqrt(variance + eps) * weight + bias"


def over(dim: str):
    """The mean and the variance over other axes."""
    return patch("x.mean(dim=-1", f"x.mean(dim={dim}", "** 2).mean(dim=-1", f"** 2).mean(dim={dim}")


@exercise(points=2, minutes=8, difficulty=1, result_type="tensor", forbids=("normalization",))
class layer_norm:
    """Give every token's numbers mean 0 and variance 1, then scale and shift each feature."""

    def cases(rng):
        def case(
            key: str,
            title: str,
            shape: tuple[int, ...],
            *,
            spread: float = 1.0,
            grad: bool = False,
            dtype: str = "float32",
            plain: bool = False,
            **more: Any,
        ) -> Case:
            x, d = spread * rng.normal(size=shape) + rng.normal(size=(*shape[:-1], 1)), shape[-1]
            weight, bias = (np.ones(d), np.zeros(d)) if plain else (rng.uniform(0.5, 2, size=d), rng.normal(size=d))
            return Case(key, title, tuple(Tensor(each.astype(dtype), None, grad) for each in (x, weight, bias)), **more)

        yield Case(
            "small",
            "one token, 1 2 6",
            tuple(Tensor(np.array(each, np.float32)) for each in ([[1, 2, 6]], [1, 1, 1], [0, 0, 0])),
        )
        yield Case(
            "close",
            "one token, 0.001 0.003: its variance, 0.000001, is smaller than eps",
            tuple(Tensor(np.array(each, np.float32)) for each in ([[0.001, 0.003]], [1, 1], [0, 0])),
        )
        yield case("plain", "two sentences of three tokens, weight 1 and bias 0", (2, 3, 4), plain=True)
        yield case("sizes", "all sizes different", (2, 3, 5), grad=True)
        yield case("seen-again", "the same sizes, new numbers", (2, 3, 5), grad=True)
        yield case("one-axis", "a single token without other axes", (7,), grad=True)
        yield case("four-axes", "four axes", (2, 3, 4, 5))
        yield case("square", "as many tokens as features", (4, 4), grad=True)
        yield case("wide", "two features", (20, 2))
        # Of a mean near 3, float32 keeps 2e-7, which is 1e-4 of such a spread.
        yield case("quiet", "numbers that differ by thousandths", (3, 6), spread=2e-3, grad=True, atol=5e-4)
        yield case(
            "quiet-again", "numbers that differ by thousandths, eps=0.01", (3, 6), spread=2e-3, kwargs={"eps": 0.01}
        )
        yield case("eps", "eps=0.5", (2, 5), kwargs={"eps": 0.5}, grad=True)
        yield case("double", "float64, eps=0.2", (3, 4), dtype="float64", kwargs={"eps": 0.2})
        for i, (shape, value) in enumerate((((2, 4), 3.0), ((3, 5), -2.0), ((2, 2, 6), 0.5))):
            x, d = np.full(shape, value), shape[-1]
            x[0] = rng.integers(-4, 5, size=shape[1:])
            args = (
                Tensor(x.astype(np.float32)),
                Tensor(rng.uniform(0.5, 2, size=d).astype(np.float32)),
                Tensor(rng.normal(size=d).astype(np.float32)),
            )
            yield Case(f"constant-{i}", f"tokens whose numbers are all {value:g}", args, atol=1e-3)

    @holds("with weight 1 and bias 0 each token has mean 0 and variance 1", cases=("plain",))
    def plain(case, parts):
        result = parts["result"]
        mean, variance = result.mean(axis=-1), result.var(axis=-1)
        worst = int((np.abs(mean) + np.abs(variance - 1)).argmax())
        if abs(mean.flat[worst]) < 1e-3 and abs(variance.flat[worst] - 1) < 0.01:
            return None
        return f"a token has mean {mean.flat[worst]:.3g} and variance {variance.flat[worst]:.3g}."

    hints = (
        "A token is one row. Which numbers have a part in its mean: those of other tokens, too?",
        "Two sums over the last axis, with keepdim=True: the mean, and the mean of the squared distances from it. "
        "eps is added to the variance, inside the root.",
        "mean = x.mean(dim=____, keepdim=True)\n"
        "variance = ((x - mean) ** 2).mean(dim=____, keepdim=True)\n"
        "return (x - mean) / torch.sqrt(____) * weight + bias",
    )

    mistakes = {
        "LN1": mistake(
            patch(VARIANCE, "variance = x.var(dim=-1, keepdim=True)"),
            says="The sum of squares was divided by d − 1; it should be divided by d (`correction=0`).",
            why="""torch's `var` divides by d − 1 unless told otherwise, which is right where a sample stands for more
            than itself. Here the d numbers are all there is. With 2 features the difference is a factor of √2, with
            768 it hides in the fourth digit and breaks a comparison with other weights.""",
        ),
        "LN2": mistake(
            patch("torch.sqrt(variance + eps)", "(torch.sqrt(variance) + eps)"),
            patch("variance + eps", "variance"),
            says="The denominator is √variance + eps, or has no eps; it should be √(variance + eps).",
            why="""With a variance of 0 the denominator is √eps, 0.003, in the right form and eps, 0.00001, in the other; and the
            root of 0 itself has no finite gradient. Without any eps such a token divides 0 by 0. Such tokens exist: an embedding of
            zeros, a feature that died. 0/0 is NaN, and one NaN spreads through attention to every token after it.""",
        ),
        "LN4": mistake(
            patch("torch.sqrt(variance + eps)", "(variance + eps)"),
            says="The numbers were divided by the variance; its square root is missing.",
            why="""Only the root has the unit of the numbers themselves. Divided by the variance, a token twice as
            large comes out half as large.""",
        ),
        "LN5": mistake(
            patch(RETURN, RETURN.replace("(x - mean)", "x")),
            patch(RETURN, "return x / torch.sqrt((x ** 2).mean(dim=-1, keepdim=True) + eps) * weight + bias"),
            patch("((x - mean) ** 2).mean", "(x ** 2).mean"),
            says="Somewhere the mean is not subtracted: x − mean should be divided, and the variance should be the mean of (x − mean)².",
            why="""Dividing by the root of the mean square alone is a normalization, too: RMSNorm (Zhang and Sennrich 2019), which
            today's models use. LayerNorm subtracts the mean first. The mean of the squares is the variance plus the square of the
            mean: for the numbers 1, 2 and 6 it is 41/3 and the variance 14/3. The two agree only for tokens whose mean is 0.""",
        ),
        "LN6": mistake(
            over("0"),
            over("-2"),
            patch(MEAN, "mean = x.mean()", VARIANCE, "variance = ((x - mean) ** 2).mean()"),
            over("(-2, -1)"),
            over("tuple(range(1, x.dim())) or -1"),
            says="The mean and the variance were taken over several tokens; each token should have its own, over its features.",
            why="""Over the batch that is batch normalization: what becomes of a token then depends on which others were drawn with
            it. Over the positions, a token sees the future. Over all axes together one large token makes all the others small.""",
        ),
        "LN10": mistake(
            patch(
                "(x - mean) / torch.sqrt(variance + eps) * weight + bias",
                "((x - mean) / torch.sqrt(variance + eps) + bias) * weight",
            ),
            says="bias was added before the product with weight; weight should come first, then bias.",
            why="""y = x̂ · weight + bias. The other order multiplies the shift as well, and weights that somebody else
            has trained then mean something else.""",
        ),
        "PO3": patch("variance + eps", "variance + 1e-05"),
        "LN14": mistake(
            patch("eps: float=1e-05", "eps: float=1e-08"),
            patch("eps: float=1e-05", "eps: float=1e-12"),
            patch("eps: float=1e-05", "eps: float=1e-06"),
            says="eps has a default other than 1e-5.",
            why="""For tokens whose variance is near eps it decides by how much they grow.""",
        ),
        "TB7": patch("* weight + bias", "* (1 + weight) + bias"),
    }
