"""A block of a Transformer: attention and a feed-forward network, each behind a normalization and beside a residual connection."""

from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from ...shared.library import earlier_inputs, fused_shapes, mistakes_of, random_parameters
from .. import readings
from .CausalMultiHeadAttention import CausalMultiHeadAttention

LAYERS = ("attn.qkv", "attn.proj", "mlp.0", "mlp.2")
IN_ATTENTION = ("SD1", "SD3", "MH2", "MK1", "MK3", "MK8", "MK13", "PJ3", "MU2")  # what CM37 stands for

ATTEND, THINK = "x = x + self.attn(self.ln1(x))", "return x + self.mlp(self.ln2(x))"
DROPOUT = patch(
    "super().__init__()",
    "super().__init__()\n        self.dropout = nn.Dropout(dropout)",
    "self.mlp(self.ln2(x))",
    "self.dropout(self.mlp(self.ln2(x)))",
)


def _state(rng: np.random.Generator, d: int) -> dict[str, np.ndarray]:
    """Normalizations that do something, and a network wide enough in range to tell one GELU from another."""
    state = {f"attn.{name}": array for name, array in random_parameters(rng, fused_shapes(d), 0.6).items()}
    state |= {
        "mlp.0.weight": rng.normal(size=(4 * d, d)),
        "mlp.2.weight": rng.normal(size=(d, 4 * d)),
        "mlp.0.bias": rng.normal(size=4 * d),
        "mlp.2.bias": rng.normal(size=d),
    }
    for name in ("ln1", "ln2"):
        state |= {f"{name}.weight": rng.uniform(0.5, 1.5, size=d), f"{name}.bias": rng.normal(size=d)}
    return {name: array.astype(np.float32) for name, array in state.items()}


def _by_hand() -> Case:
    """Two tokens, an attention that is −3 times a plain mean, and a network that passes on the first number alone, through GELU.

    The −3 makes x before and after attention differ in sign, which is all that a norm of two numbers keeps.
    """
    state = {f"{name}.{part}": np.full(2, part == "weight") for name in ("ln1", "ln2") for part in ("weight", "bias")}
    state |= {"attn.qkv.weight": np.zeros((6, 2)), "attn.proj.weight": -3 * np.eye(2)}
    state["attn.qkv.weight"][4:] = np.eye(2)  # all scores 0, and the values are what attention reads
    state |= {
        "mlp.0.weight": np.zeros((8, 2)),
        "mlp.0.bias": np.zeros(8),
        "mlp.2.weight": np.zeros((2, 8)),
        "mlp.2.bias": np.zeros(2),
    }
    state["mlp.0.weight"][0, 0], state["mlp.2.weight"][0, 0] = 1, 10
    options = {
        "init": (2, 1, 3),
        "state": {name: array.astype(np.float32) for name, array in state.items()},
        "linear": LAYERS,
        "no_bias": LAYERS[:2],
    }
    return Case(
        "hand",
        "tokens (1, 3) and (6, 2); attn gives −3 times the mean of its inputs so far, mlp (10 · GELU(first input), 0)",
        (Tensor(np.array([[[1, 3], [6, 2]]], np.float32)),),
        probe="probes.block",
        options=options,
        reading=readings.block,
    )


@exercise(
    kind="class",
    points=3,
    minutes=15,
    difficulty=2,
    result_type="tensor",
    result_names=("output",),
    forbids=("layers",),
    rtol=1e-5,
    atol=1e-4,
)
class TransformerBlock:
    """Write the block: attention and a feed-forward network; each reads a normalized x, and its result is added to x."""

    def cases(rng):
        def case(key: str, title: str, shape: tuple[int, ...], *sizes: Any, silent: bool = False, **more: Any) -> Case:
            state = _state(rng, shape[-1])
            if silent:
                state["attn.proj.weight"][:] = 0
            options = {"init": (shape[-1], *sizes), "state": state, "linear": LAYERS, "no_bias": LAYERS[:2], **more}
            x = rng.normal(size=shape).astype("float32")
            x = Tensor(2 * x + 1, None, bool(more.get("gradients")))
            return Case(key, title, (x,), probe="probes.block", options=options, reading=readings.block)

        yield _by_hand()
        yield case("small", "three tokens, two heads of two numbers", (1, 3, 4), 2, 5)
        yield case("sizes", "all sizes different, three heads", (2, 4, 6), 3, 7, gradients=True)
        yield case("seen-again", "the same sizes, new numbers", (2, 4, 6), 3, 7, gradients=True)
        earlier = earlier_inputs(rng, (1, 2, 8), (2, 5, 8))
        yield case(
            "full",
            "as many tokens as max_len, in training mode, without dropout, after calls with two and five other tokens",
            (2, 5, 8),
            4,
            5,
            mode="train",
            gradients=True,
            earlier=earlier,
        )
        yield case("one", "one token, one head, more items than max_len", (7, 1, 4), 1, 6)
        sizes = {"max_len": 4, "num_heads": 2, "d_model": 4}
        yield case("room", "room for one more token, all sizes passed by name", (2, 3, 4), init=(), init_kwargs=sizes)
        yield case("evaluation", "dropout=0.5, in evaluation", (2, 3, 6), 2, 4, 0.5, twice=True)
        for i, shape in enumerate(((2, 3, 4), (1, 5, 6), (3, 2, 4))):
            yield case(
                f"silent-{i}",
                "dropout=0.5, in training, with attention that gives zeros",
                shape,
                2,
                6,
                0.5,
                mode="train",
                silent=True,
                twice=True,
            )
            yield case(f"moving-{i}", "dropout=0.5, in training, twice", shape, 2, 6, 0.5, differs=True)
        for t, max_len in ((6, 5), (4, 2), (9, 3)):
            x = Tensor(rng.normal(size=(2, t, 4)).astype(np.float32))
            yield Case(
                f"long-{t}",
                f"{t} tokens, max_len {max_len}",
                (x,),
                probe="module",
                raises="ValueError",
                options={"init": (4, 2, max_len)},
            )

    hints = (
        "What does the block return when both attention and the feed-forward network return zero?",
        "Four attributes in `__init__`; two lines in `forward`, each of the form x = x + f(norm(x)).",
        "x = x + self.attn(____)\nreturn x + self.mlp(____)",
    )

    mistakes = {
        "CM21": (
            patch(
                "x + self.attn(self.ln1(x))",
                "self.ln1(x + self.attn(x))",
                "x + self.mlp(self.ln2(x))",
                "self.ln2(x + self.mlp(x))",
            ),
            patch("self.attn(self.ln1(x))", "self.ln1(self.attn(x))", "self.mlp(self.ln2(x))", "self.ln2(self.mlp(x))"),
            patch("self.attn(self.ln1(x))", "self.ln1(self.attn(x))"),
            patch("self.mlp(self.ln2(x))", "self.ln2(self.mlp(x))"),
            *(patch(THINK, f"x = x + self.mlp(self.ln2(x))\n        return self.{norm}(x)") for norm in ("ln2", "ln1")),
        ),
        "CM22": (patch("x + self.attn", "self.attn"), patch("x + self.mlp", "self.mlp")),
        "CM24": mistake(
            patch("self.ln2(x)", "self.ln1(x)"),
            patch("self.ln2 = nn.LayerNorm(d_model)", "self.ln2 = self.ln1"),
            says="One normalization was used for both branches; mlp should have its own, ln2.",
            why="`ln1` and `ln2` have their own scales and shifts. Freshly made they are the same: only trained weights show it.",
        ),
        "CM25": (
            patch(
                ATTEND,
                "x = self.ln1(x)\n        x = x + self.attn(x)",
                THINK,
                "x = self.ln2(x)\n        return x + self.mlp(x)",
            ),
            patch(ATTEND, "x = self.ln1(x)\n        x = x + self.attn(x)"),
            patch(THINK, "x = self.ln2(x)\n        return x + self.mlp(x)"),
        ),
        "CM26": mistake(
            patch("nn.GELU()", "nn.GELU(approximate='tanh')"),
            patch("nn.GELU()", "nn.ReLU()"),
            says="The activation is ReLU, or GELU approximated by tanh; the exact GELU was asked for: nn.GELU().",
            why="""Vaswani et al. 2017 use ReLU, GPT-2 and its successors GELU. They differ most at about ±0.75, by 0.17. The
            approximation by tanh stems from a time when erf was slow. It differs by up to about 5e-4, too little to be seen in a loss
            and enough to break a comparison with other weights (Hendrycks and Gimpel 2016, section 2, give both).""",
        ),
        "CM29": mistake(
            patch(f"{ATTEND}\n        return x", "return x + self.attn(self.ln1(x))"),
            patch(ATTEND, "x = x + self.mlp(self.ln2(x))", THINK, "return x + self.attn(self.ln1(x))"),
            patch("x = x + self.attn", "h = x + self.attn", "self.ln2(x)", "self.ln2(h)"),
            says="The second line does not go on from the first, in both of its places: after x = x + attn(ln1(x)) comes x + mlp(ln2(x)).",
            why="""The network should work on what attention gathered in this block, and its result should be added to that. Some
            models do run both branches side by side, on the block's input, and save time. Where the second sum starts from the
            block's input, what attention gathered reaches the output only through mlp, not along the residual connection around it.""",
        ),
        "CM1": patch("max_len, dropout)", "max_len)"),
        "CM2": (DROPOUT + patch("self.attn(self.ln1(x))", "self.dropout(self.attn(self.ln1(x)))"), DROPOUT),
        "CM33": mistake(
            patch("self.ln1(x)", "x", "self.ln2(x)", "x"),
            patch("self.ln1(x)", "x"),
            patch("self.ln2(x)", "x"),
            says="A normalization is made and not used: attention should read ln1(x), and mlp ln2(x).",
            why="Without it the numbers grow from block to block, since every block adds to them, and scores saturate the softmax.",
        ),
        "CM35": (
            patch("x = x + self.attn", "x += self.attn", THINK, "x += self.mlp(self.ln2(x))\n        return x"),
            patch(THINK, "x += self.mlp(self.ln2(x))\n        return x"),
        ),
        "CM37": mistake(
            *(ways[0] for ways in mistakes_of(CausalMultiHeadAttention, *IN_ATTENTION).values()),
            says="The fault lies inside attn; what the block does around it agrees. Check CausalMultiHeadAttention first.",
            why="""The block is as good as its parts. Its output is that of a right block around an attention with a known slip: the
            scale, the mask, the heads or the output projection. The check of `CausalMultiHeadAttention` says which; `GivenAttention`
            stands in until that is found.""",
        ),
    }
