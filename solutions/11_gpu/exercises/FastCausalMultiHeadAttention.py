"""Lesson 09's class on the fused operator."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from ...shared.library import after_earlier_calls, batch_independence, fused_shapes, invariant, random_parameters
from ..operator import first_call


def _case(key: str, title: str, x: np.ndarray, heads: int, state: dict[str, np.ndarray], **fields: Any) -> Case:
    layers = ("qkv", "proj")
    options = {"linear": layers, "no_bias": layers, "state": state}
    sizes = {"d_model": x.shape[-1], "num_heads": heads}
    options |= {"init_kwargs": sizes} if fields.pop("keywords", False) else {"init": tuple(sizes.values())}
    if fields.pop("double", False):
        x, options["dtype"] = x.astype(np.float64), "float64"
    extra = ("gradients", "shorter", "mode", "autocast", "backend")
    options |= {name: fields.pop(name) for name in extra if name in fields}
    inputs = (Tensor(x, requires_grad=bool(options.get("gradients"))),)
    return Case(key, title, inputs, probe="probes.fast", options=options, names=("x",), reading=first_call, **fields)


def _drawn(
    rng: np.random.Generator,
    key: str,
    title: str,
    b: int,
    t: int,
    d_model: int,
    heads: int,
    repeated_to: int = 0,
    **fields: Any,
) -> Case:
    x = rng.normal(size=(b, t, d_model)).astype(np.float32)
    x = np.resize(x, (b, repeated_to, d_model)) if repeated_to else x  # fewer draws for many tokens
    return _case(
        key, title, x, heads, random_parameters(rng, fused_shapes(d_model), 1.5 / math.sqrt(d_model)), **fields
    )


def _companions(rng: np.random.Generator, batch: Case) -> Iterator[Case]:
    x, state = batch.args[0].array, batch.options["state"]
    later = x.copy()
    later[:, 8:] = rng.normal(size=later[:, 8:].shape)
    yield _case("later changed", "the batch, its tokens from the ninth on replaced", later, 3, state)
    other = x.copy()
    other[0] = rng.normal(size=x[0].shape)
    yield _case("item changed", "the batch, its first item replaced", other, 3, state)


def _extremes(rng: np.random.Generator) -> Iterator[Case]:
    for key, b, t, d_model, heads in (("autocast", 2, 13, 12, 3), ("autocast again", 1, 19, 8, 2)):
        yield _drawn(
            rng,
            key,
            "under torch.autocast to bfloat16",
            b,
            t,
            d_model,
            heads,
            autocast=True,
            stage="extremes",
            dtype=("bfloat16", "float32"),
            rtol=0.06,
            atol=0.06,
        )
    x = np.array(
        [[[100.0, 0, 1, 0], [0, 100, 0, 1], [-100, 100, 0, 1], [1, 0, 100, -100], [0, 1, 1, 2]]], dtype=np.float32
    )
    state = {"qkv.weight": np.concatenate([np.eye(4)] * 3), "proj.weight": np.eye(4)[::-1].copy()}
    yield _case("large", "scores of up to ±14,000", x, 2, state, stage="extremes")
    for d_model, heads in ((8, 3), (6, 4), (5, 2)):
        options = {"init": (d_model, heads)}
        x = rng.normal(size=(1, 3, d_model)).astype(np.float32)
        yield Case(
            f"{d_model} by {heads}",
            f"{heads} heads do not divide d_model {d_model}",
            (Tensor(x),),
            probe="probes.fast",
            options=options,
            names=("x",),
            raises="ValueError",
        )


UNEVEN = """if d_model % num_heads:
            raise ValueError(f'{num_heads} heads do not divide d_model = {d_model}')"""
HEADS = "qkv = self.qkv(x).view(b, t, 3, self.num_heads, d_model // self.num_heads)"
UNBIND = "q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)"
THIRDS = "q, k, v = (part.{} for part in self.qkv(x).chunk(3, dim=-1))"
MASK = "is_causal=True", "attn_mask=torch.ones(t, t, dtype=torch.bool).{}"
DIVIDED = patch("merged = attended", "attended = attended / math.sqrt(q.shape[-1])\n        merged = attended")


def masked(triangle: str, more: str = ""):
    """A mask tensor in the place of is_causal."""
    return patch(MASK[0], MASK[1].format(triangle) + more)


def scaled(scale: str):
    """`scale` handed to the operator."""
    return patch("is_causal=True", f"is_causal=True, scale={scale}")


@exercise(
    kind="class",
    points=4,
    minutes=15,
    difficulty=2,
    result_type="tensor",
    result_names=("output",),
    forbids=("tampering",),
)
class FastCausalMultiHeadAttention:
    """Put the fused operator into lesson 09's class: the same numbers, and no (T, T) tensor."""

    def cases(rng):
        def case(key: str, title: str, *sizes: int, **fields: Any) -> Case:
            return _drawn(rng, key, title, *sizes, **fields)

        batch = case(
            "batch", "a batch of two, three heads, thirteen tokens, with gradients", 2, 13, 12, 3, gradients=True
        )
        yield case("small", "five tokens, two heads of three numbers", 1, 5, 6, 2)
        yield batch
        yield case("one head", "one head", 2, 7, 5, 1)
        yield case("training", "in training mode", 3, 11, 8, 4, mode="train", gradients=True)
        yield case("five heads", "five heads of two numbers", 2, 9, 10, 5, gradients=True)
        # MATH is the one backend that every machine has, and its output lies in memory as its shape says; others' may lie otherwise.
        yield case(
            "keywords",
            "made with keyword arguments, the operator on its MATH backend",
            2,
            11,
            6,
            3,
            keywords=True,
            backend="MATH",
        )
        yield case("one token", "one token", 2, 1, 6, 2)
        yield case(
            "shorter",
            "seventeen tokens, the same backwards, then four, on the MATH backend",
            1,
            17,
            8,
            2,
            shorter=4,
            backend="MATH",
        )
        yield case("long", "more tokens than in any earlier lesson", 1, 150, 4, 2, repeated_to=1100, costly=True)
        yield case("seen-again", "a batch of two again, new numbers, on the MATH backend", 2, 13, 12, 3, backend="MATH")
        used = case("used", "two tokens, after calls with one other token and with two", 2, 2, 6, 3)
        yield after_earlier_calls(rng, used, (1, 1, 6), (2, 2, 6))
        yield from _companions(rng, batch)
        yield from _extremes(rng)
        yield case("double", "after .double(), float64 inputs", 2, 5, 6, 3, double=True, stage="extremes")

    earlier_stay = invariant(
        "an output does not depend on later tokens",
        ("batch", "later changed"),
        "replacing the tokens from the ninth on changed an earlier output by up to {gap}.",
        of=lambda output: output[:, :8],
    )
    apart = batch_independence("batch", "item changed")

    hints = (
        "Of lesson 09's forward, which lines does the operator replace, and which stay as they are?",
        "The operator wants q, k and v as (B, num_heads, T, d_head) and gives the same shape back. `view` and "
        "`transpose` move nothing in memory; `reshape` at the end makes the one copy that is needed.",
        "q, k, v = self.qkv(x).view(B, T, 3, ____, ____).permute(____).unbind(____)\n"
        "attended = F.scaled_dot_product_attention(q, k, v, ____=True)\n"
        "return self.proj(attended.transpose(____, ____).reshape(B, T, d_model))",
    )

    mistakes = {
        "MK13": (patch(", is_causal=True", ""), patch("is_causal=True", "is_causal=self.training")),
        "GP42": mistake(
            masked("tril()"),
            masked("tril()", ", is_causal=True"),
            says="A mask tensor was passed; use `is_causal=True`, which says the same without a (T, T) tensor.",
            why="With a mask the operator must read T² entries and cannot skip the hidden half; FlashAttention accepts no mask at all.",
        ),
        "MU25": patch("is_causal=True", "dropout_p=0.1, is_causal=True"),
        "SD5": scaled("math.sqrt(q.shape[-1])"),
        "MU31": patch("q, k, v =", "k, q, v ="),
        "MU2": patch("self.proj(merged)", "merged"),
        "CM9": patch(
            "self.num_heads = num_heads",
            "self.num_heads = num_heads\n        self.register_buffer('scale', torch.tensor(1.0))",
        ),
        "MU1": (
            patch(UNEVEN, ""),
            patch(
                UNEVEN,
                "",
                HEADS,
                "",
                UNBIND,
                THIRDS.format("view(b, t, self.num_heads, d_model // self.num_heads).transpose(1, 2)"),
            ),
        ),
        "MH1": patch(HEADS, "", UNBIND, THIRDS.format("reshape(b, self.num_heads, t, d_model // self.num_heads)")),
        "MH2": patch("attended.transpose(1, 2)", "attended"),
        "MH3": patch("2, 0, 3, 1, 4", "2, 0, 1, 3, 4", "attended.transpose(1, 2)", "attended"),
        "MH4": (patch("reshape", "view"), patch("4).unbind", "4).contiguous().unbind", "reshape", "view")),
        "MK1": (masked("triu(1)"), masked("triu()")),
        "MK7": masked("tril(-1)"),
        "MK8": masked("tril(1)"),
        "PJ2": (
            patch("3 * d_model, bias=False", "3 * d_model", "(d_model, d_model, bias=False", "(d_model, d_model"),
            patch("(d_model, d_model, bias=False", "(d_model, d_model"),
        ),
        "PJ3": patch(
            "3, self.num_heads, d_model // self.num_heads",
            "self.num_heads, 3, d_model // self.num_heads",
            "2, 0, 3, 1, 4",
            "3, 0, 2, 1, 4",
        ),
        "SD1": (scaled("1.0"), patch(UNBIND, f"{UNBIND}\n        q = q * math.sqrt(q.shape[-1])")),
        "SD2": scaled("1 / q.shape[-1]"),
        "SD3": scaled("1 / math.sqrt(d_model)"),
        "SD4": scaled("1 / math.sqrt(self.num_heads)"),
        "SD6": scaled("1.0") + DIVIDED,
        "GP51": (DIVIDED,),
        "MU4": (
            patch("attended.transpose(1, 2).reshape(b, t, d_model)", "attended.permute(0, 2, 3, 1).flatten(2)"),
            patch(
                "self.num_heads, d_model // self.num_heads",
                "d_model // self.num_heads, self.num_heads",
                "2, 0, 3, 1, 4",
                "2, 0, 4, 1, 3",
            ),
        ),
    }
