"""RMSNorm by hand: each token divided by the root of its mean square, in float32 whatever precision it came in."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch
from grader.course.readings import numbers
from grader.worker.values import Part

from ...shared.library import on_another_device

WIDE = "wide = x.to(torch.promote_types(x.dtype, torch.float32))"
ROOT = "root = torch.sqrt((wide ** 2).mean(dim=-1, keepdim=True) + eps)"
RETURN = "return (wide / root * weight).to(x.dtype)"
IN_ITS_OWN = patch(WIDE, "wide = x")  # the same in x's own precision
MEAN = "(wide ** 2).mean(dim=-1, keepdim=True)"
RSQRT = patch(ROOT, f"root = torch.rsqrt({MEAN} + eps)", "wide / root", "wide * root")
# Roots that bfloat16 cannot hold, nor their inverses and their squares: rounded, each is off by 0.18 % or more.
BETWEEN = (1.5195, 1.426, 1.4025, 1.5665, 1.6055, 1.5275)


def _sizes(case: Case, parts: Mapping[str, Part]) -> dict[str, Part]:
    """The root mean square of each token that came back, in place of its numbers: by it all of them are off together."""
    result = parts["result"]
    array = numbers(result, case.args[0].array.shape).astype(np.float64)
    return {
        "root mean square of each token": Part(
            "tensor", np.sqrt((array**2).mean(axis=-1)).astype(np.float32), "float32"
        )
    }


def _as_bfloat16(array: np.ndarray) -> np.ndarray:
    """Rounded to the nearest number of bfloat16, ties to even, in float32."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def _half(rng: np.random.Generator) -> Iterator[Case]:
    """Half precision: squares that float16 cannot hold, and rows whose root bfloat16 cannot hold.

    Rounded to bfloat16, such a root shifts a whole token, while a result that is rounded at the end errs up and down and keeps its
    size to 0.06 %. Ones as weight leave nothing else to blame.
    """
    for i, (shape, spread) in enumerate((((2, 4), 300), ((3, 5), 900), ((2, 3, 6), 2000))):
        x = (spread * rng.normal(size=shape)).astype(np.float16).astype(np.float32)
        x[..., 0] = np.where(x[..., 0] < 0, -2 * spread, 2 * spread)  # so that every row overflows when it is squared
        heavy = 100 if i == 2 else 1  # x · weight overflows as well: the product comes after the division
        weight = (heavy * rng.uniform(0.5, 2, size=shape[-1])).astype(np.float16).astype(np.float32)
        yield Case(
            f"float16-{i}",
            f"float16, numbers of about {spread}, weights of about {heavy}",
            (Tensor(x, "float16", i < 2), Tensor(weight, "float16", i < 2)),
            stage="extremes",
            dtype=("float16",),
            rtol=6e-3,
            atol=2e-3,
        )
    for i, (shape, grad) in enumerate((((2, 3, 8), True), ((4, 5), False), ((3, 16), False))):
        x, weight = _as_bfloat16(rng.normal(size=shape)), _as_bfloat16(rng.uniform(0.5, 2, size=shape[-1]))
        yield Case(
            f"bfloat16-{i}",
            "bfloat16",
            (Tensor(x, "bfloat16", grad), Tensor(weight, "bfloat16", grad)),
            stage="extremes",
            dtype=("bfloat16",),
            rtol=3e-2,
            atol=2e-2,
        )
    for i in range(3):
        rows = rng.normal(size=(6, 256))
        rows *= (np.roll(BETWEEN, i) * 2.0 ** rng.integers(-2, 3, size=6) / np.sqrt((rows**2).mean(axis=-1)))[:, None]
        ones = Tensor(np.ones(256, np.float32), "bfloat16")
        yield Case(
            f"size-{i}",
            "bfloat16, 256 numbers a token, weight 1: how large the tokens come out",
            (Tensor(_as_bfloat16(rows), "bfloat16"), ones),
            kwargs={"eps": 1e-6},
            stage="extremes",
            rtol=0,
            atol=1.2e-3,
            show=False,
            reading=_sizes,
        )


@exercise(points=3, minutes=10, difficulty=2, result_type="tensor", dtype=("float32",), forbids=("normalization",))
class rms_norm:
    """Divide every token by the root of its mean square, then scale each feature."""

    def cases(rng):
        def case(
            key: str,
            title: str,
            shape: tuple[int, ...],
            *,
            spread: float = 1.0,
            shift: float = 0.7,
            grad: bool = False,
            dtype: str = "float32",
            **more: Any,
        ) -> Case:
            x = spread * (rng.normal(size=shape) + shift)
            weight = rng.uniform(0.5, 2, size=shape[-1]) * rng.choice([-1, 1], size=shape[-1])
            return Case(key, title, tuple(Tensor(each.astype(dtype), None, grad) for each in (x, weight)), **more)

        yield Case(
            "small",
            "one token, 1 2 2 4",
            tuple(Tensor(np.array(each, np.float32)) for each in ([[1, 2, 2, 4]], [1, 1, 1, 3])),
        )
        yield case("sizes", "all sizes different", (2, 3, 5), grad=True)
        yield case("seen-again", "the same sizes, new numbers", (2, 3, 5), grad=True)
        yield case("one-axis", "a single token without other axes", (7,), grad=True)
        yield case("four-axes", "four axes", (2, 3, 4, 5))
        yield case("square", "as many tokens as features", (4, 4), grad=True)
        yield case("wide", "two features, twenty tokens", (20, 2))
        yield case("quiet", "numbers of a few thousandths", (3, 6), spread=2e-3, grad=True)
        yield case("quiet-two", "again, a thousandth at most", (2, 4), spread=5e-4, grad=True)
        yield case("quiet-three", "again, ten tokens", (10, 3), spread=1e-3)
        yield case("quiet-again", "numbers of a few thousandths, eps=0.01", (3, 6), spread=2e-3, kwargs={"eps": 0.01})
        yield case("eps", "eps=0.5", (2, 5), kwargs={"eps": 0.5}, grad=True)
        yield Case(
            "double",
            "float64, eps=0.2",
            (Tensor(rng.normal(size=(3, 4))), Tensor(rng.uniform(1, 2, size=4))),
            kwargs={"eps": 0.2},
            dtype=("float64",),
        )
        zero = rng.normal(size=(3, 5)).astype(np.float32)
        zero[1] = 0
        yield Case(
            "zero",
            "a token of zeros among others",
            (Tensor(zero, None, True), Tensor(np.full(5, 2, np.float32), None, True)),
        )
        yield from _half(rng)
        yield on_another_device(case("sizes", "all sizes different", (2, 3, 5)))

    hints = (
        "Which two things does layer_norm of lesson 09 do before it divides, and which of them is left out here?",
        "Mean of the squares over the last axis, with keepdim=True; eps is added to it, inside the root. Convert first: "
        "`x.to(torch.promote_types(x.dtype, torch.float32))` leaves float64 as it is.",
        "wide = x.to(torch.promote_types(x.dtype, ____))\n"
        "root = torch.sqrt((wide ** 2).mean(dim=____, keepdim=True) + ____)\n"
        "return (wide / root * weight).to(____)",
    )

    mistakes = {
        "TB1": mistake(
            patch(
                "(wide ** 2)",
                "((wide - wide.mean(dim=-1, keepdim=True)) ** 2)",
                "wide / root",
                "(wide - wide.mean(dim=-1, keepdim=True)) / root",
            ),
            patch("(wide ** 2)", "((wide - wide.mean(dim=-1, keepdim=True)) ** 2)"),
            patch("wide / root", "(wide - wide.mean(dim=-1, keepdim=True)) / root"),
            patch(MEAN, "wide.var(dim=-1, keepdim=True)"),
            says="The mean was subtracted, as in a variance; RMSNorm should divide by the root mean square and subtract nothing.",
            why="""That is LayerNorm (lesson 09), or half of it. Zhang and Sennrich 2019 (section 4) leave the mean out: one sum less,
            and the models train as well. Where a token's mean is near 0 the two nearly agree, so a test on centered numbers sees
            nothing.""",
        ),
        "TB2": mistake(
            patch(MEAN, MEAN.replace("mean", "sum")),
            patch(ROOT, "root = torch.linalg.vector_norm(wide, dim=-1, keepdim=True) + eps"),
            patch(ROOT, "root = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)"),
            patch(ROOT, "root = torch.sqrt((wide ** 2).sum(dim=-1, keepdim=True) / (x.shape[-1] - 1) + eps)"),
            *(
                patch(ROOT, f"root = torch.linalg.vector_norm(wide, dim=-1, keepdim=True) / x.shape[-1]{eps}")
                for eps in ("", " + eps")
            ),
            patch(ROOT, "root = torch.sqrt((wide ** 2).sum(dim=-1, keepdim=True) + eps) / x.shape[-1]"),
            says="""The squares were added up, or their sum was divided by d − 1 or by d²; they should be averaged over all d numbers
            before the root.""",
            why="""The length of a token of d numbers of size 1 is √d; their root mean square is 1. Divided by the length, every number
            comes out √d times too small, 24 times at d_model = 576; divided by the length over d, as much too large, since a d
            outside the root is d² inside. d − 1 is for a spread that is estimated from a sample, after its mean was taken off; here
            no mean is taken off.""",
        ),
        "TB3": mistake(
            patch(
                "torch.sqrt((wide ** 2).mean(dim=-1, keepdim=True) + eps)",
                "((wide ** 2).mean(dim=-1, keepdim=True) + eps)",
            ),
            says="The numbers were divided by the mean square; its square root is missing.",
            why="""Only the root has the unit of the numbers themselves. Divided by the mean square, a token twice as large comes out
            half as large.""",
        ),
        "TB4": mistake(
            patch(ROOT, f"root = torch.sqrt({MEAN}) + eps"),
            patch(f"{MEAN} + eps", f"{MEAN}.clamp(min=eps)"),
            says="eps was added to the root, or taken where it is the larger; it should be added to the mean square, inside the root.",
            why="""For ordinary tokens eps vanishes in all three. For a token of tiny numbers they differ a great deal: √eps is 0.003, eps
            0.00001. At a token of zeros a bare root has no finite gradient. And the larger of the two has a kink, below which the
            gradient no longer knows the token's size.""",
        ),
        "TB6": mistake(
            patch(" * weight", ""),
            says="weight is not used: it should scale each feature after the division.",
            why="""Freshly made it is 1, so that the slip shows only with trained weights. In SmolLM2 these weights lie far from 1.""",
        ),
        "TB7": patch("wide / root * weight", "wide / root * (1 + weight)"),
        "TB8": mistake(
            *(patch("mean(dim=-1", f"mean(dim={dim}") for dim in ("0", "-2")),
            patch("(wide ** 2).mean(dim=-1, keepdim=True)", "(wide ** 2).mean()"),
            patch("mean(dim=-1", "mean(dim=(-2, -1)"),
            says="A mean square was taken over several tokens; each token should have its own, over its features, axis −1.",
            why="""Over another axis, or without an axis, what becomes of a token depends on other tokens, later ones among them. A large
            token then makes all the others small.""",
        ),
        "TB11": mistake(
            IN_ITS_OWN,
            IN_ITS_OWN + RSQRT,
            patch("(wide ** 2)", "(x ** 2).to(wide.dtype)"),
            patch("wide / root * weight", "x / root.to(x.dtype) * weight"),
            patch(ROOT, f"root = torch.rsqrt({MEAN} + eps)", "wide / root", "x * root.to(x.dtype)"),
            says="Part of the work was done in half precision; square, mean, root and division should be in float32.",
            why="""float16 ends at 65,504, so the square of a number above about 256 overflows: the mean is infinite, and the token
            becomes 0. bfloat16 has the range but not the precision: its root is off by up to 0.4 %, and so is the whole token.
            Convert to float32 first, and back at the end.""",
            issue="pytorch/pytorch#134106",
        ),
        "TB13": mistake(
            patch("+ eps", "+ 1e-05"),
            patch("+ eps", "+ 1e-06"),
            patch(" + eps", ""),
            says="The argument eps is not added: nothing is, or another number that is written into the code.",
            why="""Without eps a token of zeros, an embedding or a padded place, gives 0/0, which is NaN, and attention carries one NaN to
            every later token. Models differ in eps: 1e-5 in Llama 2 and SmolLM2, 1e-6 in the first Llama and in others.""",
            issue="apache/tvm#15856",
        ),
        "TB14": mistake(
            *(patch("eps: float=1e-05", f"eps: float={eps}") for eps in ("1e-06", "1e-08", "1e-12")),
            says="eps has a default other than 1e-5.",
            why="""For tokens whose mean square is near eps it decides by how much they grow.""",
            issue="foundation-model-stack/foundation-model-stack#99",
        ),
        "TB18": mistake(
            patch("wide / root * weight", "wide.div_(root) * weight"),
            patch(RETURN, "wide /= root\n    return (wide * weight).to(x.dtype)"),
            patch("wide / root * weight", "wide.div_(root).mul_(weight)"),
            says="x itself was overwritten; the result should be in a new tensor.",
            why="""`x.float()` gives x itself where x is float32 already, so what is done to it in place is done to the caller's tensor. In
            a block that tensor is the residual stream. In half precision the conversion makes a copy, and nothing shows.""",
            issue="GeeeekExplorer/nano-vllm#170",
        ),
        "TB89": mistake(
            patch(
                "wide = x.to(torch.promote_types(x.dtype, torch.float32))",
                "wide = x.to(torch.promote_types(x.dtype, torch.float32)) * weight",
                "wide / root * weight",
                "wide / root",
            ),
            says="The weight was multiplied in before the root mean square was taken; normalize x alone, then multiply.",
            why="""Weighted first, the features change what they are divided by, and a weight that doubles all of them changes nothing.
            What is normalized should come out with a root mean square of 1, whatever the weights; these then say how much of each goes
            on.""",
        ),
    }
