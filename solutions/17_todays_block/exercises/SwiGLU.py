"""The network of today's blocks: two projections up, one of them a gate for the other, and one down."""

from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from ...shared.library import after_earlier_calls, random_parameters

LAYERS = ("gate", "up", "down")
GATED = "F.silu(self.gate(x)) * self.up(x)"
SILU = "F.silu(self.gate(x))"


def shapes(d_model: int, d_hidden: int) -> dict[str, tuple[int, int]]:
    """Of the three weights, by name."""
    return {"gate.weight": (d_hidden, d_model), "up.weight": (d_hidden, d_model), "down.weight": (d_model, d_hidden)}


def gated(instead: str):
    """Something else than silu of the gate."""
    return patch(SILU, instead)


@exercise(
    kind="class",
    points=2,
    minutes=8,
    difficulty=1,
    result_type="tensor",
    result_names=("output",),
    forbids=("tampering",),
)
class SwiGLU:
    """Write the gated feed-forward network of today's blocks."""

    def cases(rng):
        def case(
            key: str,
            title: str,
            shape: tuple[int, ...],
            d_hidden: int,
            *,
            spread: float = 1.0,
            grad: bool = False,
            **more: Any,
        ):
            d = shape[-1]
            options = {
                "init": (d, d_hidden),
                "state": random_parameters(rng, shapes(d, d_hidden)),
                "linear": LAYERS,
                "no_bias": LAYERS,
                "gradients": grad,
                **more,
            }
            x = Tensor((spread * rng.normal(size=shape)).astype(np.float32), None, grad)
            return Case(key, title, (x,), probe="module", options=options, names=("x",), rtol=1e-4, atol=1e-4)

        yield case("small", "one token of two numbers, d_hidden 3", (1, 2), 3)
        yield case("sizes", "all sizes different", (2, 3, 4), 7, grad=True)
        yield case("seen-again", "the same sizes, new numbers", (2, 3, 4), 7, grad=True)
        yield case("one-axis", "a single token without other axes", (5,), 6)
        yield case("four-axes", "four axes, d_hidden smaller than d_model", (2, 3, 2, 6), 4)
        yield case("square", "with d_hidden as large as d_model", (3, 5, 5), 5, grad=True)
        yield case("four-times", "with d_hidden four times d_model, in training mode", (2, 3, 3), 12, mode="train")
        large = case("large", "numbers of a few tens, and gates of ±100", (2, 4, 3), 5, spread=30, grad=True)
        large.args[0].array[:, :2, 0] = -100, 100
        large.options["state"]["gate.weight"][0] = 1, 0, 0
        yield large
        yield case("long", "twenty tokens", (1, 20, 4), 9)
        used = case("used", "a module that has read other tokens before, of this and of another shape", (2, 3, 4), 5)
        yield after_earlier_calls(rng, used, (1, 2, 4), (2, 3, 4))

    hints = (
        "A gate lets a number through or holds it back. Which of the two projections is the gate, and which is what passes?",
        "Three `nn.Linear(…, bias=False)`: two from d_model to d_hidden, one back. `F.silu(z)` is z · sigmoid(z).",
        "self.gate = nn.Linear(d_model, d_hidden, bias=____)\nreturn self.down(F.silu(self.____(x)) * self.____(x))",
    )

    mistakes = {
        "TB21": mistake(
            patch(GATED, "F.silu(self.up(x)) * self.gate(x)"),
            says="gate and up were exchanged: silu should act on gate(x), and up(x) pass as it is.",
            why="""Trained from scratch the two names are interchangeable. Loaded weights are not: which matrix is which is a matter of
            names, and they differ between programs (w1, w3 in Llama's own code; gate_proj, up_proj in others; ffn_gate, ffn_up in
            GGUF).""",
            issue="ml-explore/mlx-lm#767",
        ),
        "TB22": mistake(
            gated("torch.sigmoid(self.gate(x))"),
            gated("F.gelu(self.gate(x))"),
            gated("F.gelu(self.gate(x), approximate='tanh')"),
            gated("F.relu(self.gate(x))"),
            gated("F.relu(self.gate(x)) ** 2"),
            gated("self.gate(x) * torch.sigmoid(1.702 * self.gate(x))"),
            gated("torch.softmax(self.gate(x), dim=-1)"),
            gated("self.gate(x)"),
            says="Another function than silu was used for the gate, or none; silu is z · sigmoid(z), of each number by itself.",
            why="""The sigmoid alone is the GLU of Dauphin et al. 2017. Shazeer 2020 puts other functions in its place: a ReLU gives
            ReGLU, a GELU GEGLU, which Gemma uses, and the Swish, now mostly called SiLU, SwiGLU. GELU, also as z · sigmoid(1.702 z)
            (Hendrycks and Gimpel 2016, section 2), and SiLU have the same shape and differ by up to 0.2, so a loaded model stumbles and
            does not fall. Softmax ties the gates of a token together; each should decide by its own number. The bare product of the two
            projections ("bilinear" in the paper) is not what the weights were trained for.""",
        ),
        "TB26": mistake(
            patch(" * self.up(x)", " + self.up(x)"),
            says="Gate and up were added; they should be multiplied, number by number.",
            why="""Only a product lets the one hold back the other.""",
        ),
        "TB27": mistake(
            patch(GATED, "F.silu(self.gate(x) * self.up(x))"),
            patch(GATED, "F.silu(self.gate(x)) * F.silu(self.up(x))"),
            patch(f"self.down({GATED})", "F.silu(self.down(self.gate(x) * self.up(x)))"),
            patch(f"self.down({GATED})", "F.silu(self.down(F.silu(self.gate(x)) * self.up(x)))"),
            says="silu was applied to the product, to up(x) as well, or to the result; it should be applied to gate(x) alone.",
            why="""Whether the gate is open should depend on gate(x) alone. silu never goes below −0.28, so large negative numbers of
            up(x), or of what the block adds to its residual stream, no longer come through.""",
        ),
        "TB29": mistake(
            patch(" * self.up(x)", ""),
            patch("self.up = nn.Linear(d_model, d_hidden, bias=False)", "self.up = self.gate"),
            patch(" * self.up(x)", " * self.gate(x)"),
            says="Only one of the two projections is used, alone or in both places; there should be two, down(silu(gate(x)) · up(x)).",
            why="""down(silu(gate(x))) is the network of 2017 with another activation, and silu(z) · z is a fixed curve. With two
            projections one feature of a token can decide about another. The other projection is made, saved and trained on nothing.""",
        ),
        "PJ2": (
            patch(
                "self.gate = nn.Linear(d_model, d_hidden, bias=False)",
                "self.gate = nn.Linear(d_model, d_hidden)",
                "self.up = nn.Linear(d_model, d_hidden, bias=False)",
                "self.up = nn.Linear(d_model, d_hidden)",
                "d_hidden, d_model, bias=False",
                "d_hidden, d_model",
            ),
            patch("d_hidden, d_model, bias=False", "d_hidden, d_model"),
        ),
        "TB31": mistake(
            patch("super().__init__()", "super().__init__()\n        d_hidden = int(2 * d_hidden / 3)"),
            says="d_hidden was cut to two thirds inside; it should be taken as it was given.",
            why="""Shazeer 2020 (section 2) takes two thirds of the usual width so that three matrices cost as much as two, and Llama's own
            code computes that inside. Here, as in most other programs, d_hidden is the final number.""",
        ),
        "TB33": patch("self.down(", "x + self.down("),
    }
