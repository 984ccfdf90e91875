"""What each head of a trained attention adds to its result: its slice of the output projection, applied to what it found."""

from dataclasses import replace
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, mistake, patch

from ...shared.library import fused_shapes, on_another_device, random_parameters, scale_mistakes
from .. import readings
from ..shared import attention_output

HIDE = "scores.masked_fill(future, -torch.inf)"
SOFTMAX = f"weights = torch.softmax({HIDE}, dim=-1)"
SLICES = "slices = module.proj.weight.unflatten(1, (heads, -1))"
RETURN = "return torch.einsum('bhtc,dhc->bhtd', weights @ v, slices)"
ADDED = "torch.einsum('bhtc,dhc->bhtd', weights @ v, slices)"


@exercise(points=4, minutes=20, difficulty=3, result_type="tensor", forbids=("attention",))
class head_contributions:
    """Split the result of an attention module into what each head adds to it."""

    def cases(rng):
        def case(key: str, title: str, shape: tuple[int, int, int], heads: int, size: float = 0.8, **more: Any) -> Case:
            x = Tensor(rng.normal(size=shape).astype(np.float32))
            options = {"heads": heads, "state": random_parameters(rng, fused_shapes(shape[-1]), size), **more}
            return Case(
                key,
                title,
                (x,),
                probe="probes.contributions",
                options=options,
                names=("x",),
                reading=readings.contributions,
            )

        yield case("small", "three tokens, two heads of two numbers", (1, 3, 4), 2)
        yield case("sizes", "all sizes different, three heads of four numbers", (2, 5, 12), 3)
        yield case("seen-again", "the same sizes, new numbers", (2, 5, 12), 3)
        yield case("square", "as many tokens as heads and numbers in a head", (2, 3, 9), 3)
        yield case("one-head", "one head", (2, 4, 5), 1)
        yield case("single", "heads of one number", (2, 5, 4), 4)
        yield case("one-token", "one token, two items", (2, 1, 6), 3)
        yield case("long", "eighteen tokens, four items", (4, 18, 6), 2)
        yield case("sharp", "weights near 0 and 1, as trained heads have them", (2, 6, 8), 2, 1.6)
        yield case("room", "a module with room for more tokens", (3, 4, 10), 5, max_len=16)
        zeros = case("zeros", "two tokens of zeros among others", (2, 5, 6), 3)
        zeros.args[0].array[:, [1, 4]] = 0
        yield zeros
        large = case("large", "scores of some hundreds", (2, 4, 8), 2)
        large.args[0].array[:] *= 30
        yield replace(large, stage="extremes")
        yield case("named", "module and x passed by name", (2, 3, 8), 4, by_name=True)
        other = on_another_device(case("sizes", "all sizes different, three heads of four numbers", (2, 5, 12), 3))
        yield replace(other, probe="probes.contributions_on_device", options={**other.options, "heads": 3})

    @holds("the heads' contributions sum to module(x)")
    def whole(case, parts):
        result, expected = (
            parts["result"],
            attention_output(case.options["state"], case.args[0].array, case.options["heads"]),
        )
        gap = np.abs(result.sum(axis=1) - expected)
        at = np.unravel_index(gap.argmax(), gap.shape)
        if gap[at] < 1e-3 * max(1.0, np.abs(expected).max()):
            return None
        return (
            f"at item {at[0]}, token {at[1]}, number {at[2]} they sum to {result.sum(axis=1)[at]:.4g}, and module(x) has "
            f"{expected[at]:.4g} there."
        )

    hints = (
        "`proj` multiplies the heads' results, laid side by side, by one matrix. Which of its columns ever meet the numbers of head h?",
        "`nn.Linear` computes x @ weight.T, so head h meets the columns h · d_head to (h + 1) · d_head of `proj.weight`. The weights of "
        "each head you compute as in lesson 09, mask included; dropout is off.",
        "weights = ____  # (B, H, T, T), causal\n"
        "found = weights @ v  # (B, H, T, d_head)\n"
        "slices = module.proj.weight.unflatten(____, (module.num_heads, -1))  # (d_model, H, d_head)\n"
        "return torch.einsum('bhtc,dhc->bhtd', found, slices)",
    )

    mistakes = {
        **scale_mistakes(),
        "HC1": mistake(
            patch(SLICES, "slices = module.proj.weight.T.unflatten(1, (heads, -1))"),
            patch(
                SLICES,
                "slices = module.proj.weight.unflatten(0, (heads, -1))",
                "dhc->bhtd', weights",
                "hcd->bhtd', weights",
            ),
            says="Rows of proj.weight were taken; head h should get columns, since nn.Linear computes x @ weight.T.",
            why="""The weight of `nn.Linear(d_in, d_out)` is (d_out, d_in). What goes in, the heads side by side, meets its second axis. The
            matrix is square, so the wrong slice has the right shape, and only the sum over the heads tells. GPT-2's published weights are
            stored the other way round, (d_in, d_out), which is why code that reads several models has to ask.""",
            issue="goodfire-ai/causalab#61",
        ),
        "HC2": mistake(
            patch(
                RETURN,
                """found = weights @ v
        placed = torch.zeros(x.shape[0], heads, *x.shape[1:], dtype=x.dtype)
        for h in range(heads):
            placed[:, h, :, h * v.shape[-1]:(h + 1) * v.shape[-1]] = found[:, h]
        return placed""",
            ),
            says="What the heads found was laid into their slices; proj should be applied to it.",
            why="""Before `proj` the heads stand side by side and share no number. What a head *adds to the result* is what its slice
            becomes on the way through `proj`: all d_model numbers, and those of different heads overlap.""",
        ),
        "HC3": mistake(
            patch(RETURN, f"return {ADDED}.sum(dim=1, keepdim=True).expand(-1, heads, -1, -1) / heads"),
            patch(RETURN, "return module(x)[:, None].expand(-1, heads, -1, -1) / heads"),
            says="Every head was given the same share of the result; each should have what it adds itself.",
            why="""The sum is still right, which is why a test of the sum alone is not enough. One head may add next to nothing
            and another nearly everything.""",
        ),
        "LH3": patch(SLICES, "slices = module.proj.weight.unflatten(1, (-1, heads)).mT"),
        "HC5": mistake(
            patch(RETURN, f"added = {ADDED}\n        return added.sum(dim=1, keepdim=True) - added"),
            patch(RETURN, f"added = {ADDED}\n        return module(x)[:, None] - added"),
            says="What is left without each head was returned; what each head adds is asked for.",
            why="""The two are each other's rest: module(x) minus one is the other. Ablation, later in this lesson, asks
            for what is left.""",
        ),
        "TB33": (patch(RETURN, f"return {ADDED} + x[:, None]"), patch(RETURN, f"return {ADDED} + x[:, None] / heads")),
        "MU31": (
            patch("module.qkv(x).chunk(3, dim=-1)", "module.qkv(x).chunk(3, dim=-1)[::-1]"),
            patch("q, k, v =", "q, v, k ="),
        ),
        "MH1": (
            patch(".unflatten(-1, (heads, -1)).transpose(1, 2)", ".reshape(x.shape[0], heads, x.shape[1], -1)"),
            patch(".unflatten(-1, (heads, -1)).transpose(1, 2)", ".view(x.shape[0], heads, x.shape[1], -1)"),
        ),
        "MU4": patch(".unflatten(-1, (heads, -1)).transpose(1, 2)", ".unflatten(-1, (-1, heads)).permute(0, 3, 1, 2)"),
        "PJ3": patch(
            "module.qkv(x).chunk(3, dim=-1)",
            "module.qkv(x).unflatten(-1, (heads, 3, -1)).permute(3, 0, 1, 2, 4).flatten(3)",
        ),
        "SD3": patch("q.shape[-1]", "x.shape[-1]"),
        "SD4": patch("q.shape[-1]", "heads"),
        "SM1": patch(SOFTMAX, f"weights = torch.softmax({HIDE}, dim=-2)"),
        "SM2": patch(SOFTMAX, f"weights = torch.softmax({HIDE}, dim=1).nan_to_num()"),
        "MK1": patch("triu(1)", "tril()"),
        "MK3": patch(HIDE, "scores * ~future"),
        "MK8": patch("triu(1)", "triu(2)"),
        "MK13": patch(HIDE, "scores"),
    }
