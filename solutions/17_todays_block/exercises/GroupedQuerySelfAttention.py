"""Causal self-attention with rotated positions, in which several query heads share one KV head."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, mistake, patch

from ...shared.library import after_earlier_calls, batch_independence, on_another_device, random_parameters
from .. import readings

LAYERS = ("w_q", "w_k", "w_v", "w_o")

HEADS = (
    "q, k, v = (layer(x).unflatten(-1, (-1, self.d_head)).transpose(1, 2) for layer in (self.w_q, self.w_k, self.w_v))"
)
TURN = "q, k = (apply_rope(q, positions, self.base), apply_rope(k, positions, self.base))"
SHARE = "k, v = (k.repeat_interleave(shared, dim=1), v.repeat_interleave(shared, dim=1))"
ATTEND = "F.scaled_dot_product_attention(q, k, v, is_causal=True)"
SCORES, FUTURE = "(q @ k.mT / self.d_head ** 0.5)", "torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)"
UNEVEN = """if d_model % num_heads:
            raise ValueError(f'd_model = {d_model} is not divisible by num_heads = {num_heads}')"""
UNSHARED = """if num_heads % num_kv_heads:
            raise ValueError(f'num_heads = {num_heads} is not divisible by num_kv_heads = {num_kv_heads}')"""
ODD = """if self.d_head % 2:
            raise ValueError(f'heads of {self.d_head} numbers cannot be rotated in pairs')"""
MASKS = "attn_mask=torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).{}"
HALVES = """def turned(y):
            d = y.shape[-1]
            angles = positions[:, None] * self.base ** (-torch.arange(0, d, 2) / d)
            a, b = y.chunk(2, dim=-1)
            return torch.cat((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), dim=-1)
        q, k = (turned(q), turned(k))"""
PER_MODEL = """every = x.shape[-1]
        frequencies = self.base ** (-torch.arange(0, every, 2) / every)

        def turned(y):
            angles = positions[:, None] * frequencies[:y.shape[-1] // 2]
            a, b = y[..., 0::2], y[..., 1::2]
            return torch.stack((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), dim=-1).flatten(-2)
        q, k = (turned(q), turned(k))"""


def shapes(d_model: int, heads: int, kv_heads: int) -> dict[str, tuple[int, int]]:
    """Of the four weights, by name."""
    keys = d_model // heads * kv_heads
    return {
        "w_q.weight": (d_model, d_model),
        "w_k.weight": (keys, d_model),
        "w_v.weight": (keys, d_model),
        "w_o.weight": (d_model, d_model),
    }


def scaled(scale: str):
    """`scale` handed to the operator."""
    return patch("is_causal=True", f"is_causal=True, scale={scale}")


def _case(
    key: str,
    title: str,
    x: np.ndarray,
    state: dict[str, np.ndarray],
    *init: Any,
    grad: bool = False,
    mode: str = "eval",
    **more: Any,
) -> Case:
    """init: what follows d_model among the sizes."""
    options = {
        "init": (x.shape[-1], *init),
        "state": state,
        "linear": LAYERS,
        "no_bias": LAYERS,
        "gradients": grad,
        "mode": mode,
    }
    return Case(
        key,
        title,
        (Tensor(x.astype(np.float32), None, grad),),
        probe="probes.attention",
        options=options,
        names=("x",),
        reading=readings.attention,
        **more,
    )


def _companions(rng: np.random.Generator) -> Iterator[Case]:
    state, x = random_parameters(rng, shapes(8, 4, 2), 0.7), rng.normal(size=(2, 5, 8)).astype(np.float32)
    later = x.copy()
    later[:, 3:] += rng.choice([-2, 2], size=(2, 2, 8))
    yield _case("before", "five tokens, twice", x, state, 4, 2)
    yield _case("after", "the same, tokens 3 and 4 changed", later, state, 4, 2)
    other = later.copy()
    other[0] = rng.normal(size=(5, 8))
    yield _case("other item", "the same, the first item of the batch replaced", other, state, 4, 2)


TURNED_ROUND = "{}.unflatten(-1, (self.d_head, -1)).permute(0, 3, 1, 2)"


@exercise(
    kind="class",
    points=4,
    minutes=22,
    difficulty=3,
    result_type="tensor",
    result_names=("output",),
    forbids=("layers",),
    rtol=1e-3,
    atol=2e-4,
)
class GroupedQuerySelfAttention:
    """Write causal self-attention with rotated queries and keys, in which groups of query heads share one KV head."""

    def cases(rng):
        def case(
            key: str, title: str, b: int, t: int, d: int, heads: int, kv_heads: int, *base: float, **more: Any
        ) -> Case:
            state = random_parameters(rng, shapes(d, heads, kv_heads), 2.0 / np.sqrt(d))
            return _case(key, title, rng.normal(size=(b, t, d)), state, heads, kv_heads, *base, **more)

        yield case("small", "three tokens, two heads of two numbers, one KV head", 1, 3, 4, 2, 1)
        yield case("sizes", "all sizes different, four heads in two groups", 3, 5, 16, 4, 2, grad=True)
        yield case("seen-again", "the same sizes, new numbers", 3, 5, 16, 4, 2, grad=True)
        yield case("six", "six heads in two groups of three", 2, 7, 12, 6, 2, grad=True)
        yield case(
            "three", "six heads in three groups of two, base=100, in training mode", 2, 6, 24, 6, 3, 100.0, mode="train"
        )
        yield case("all", "as many KV heads as of queries", 2, 4, 12, 3, 3)
        yield case("multi-query", "one KV head for all, base=20", 2, 6, 16, 4, 1, 20.0)
        yield case("one-head", "one head", 2, 4, 6, 1, 1)
        yield case("one-token", "one token", 3, 1, 8, 4, 2)
        yield case("two-tokens", "two tokens", 2, 2, 8, 2, 1)
        yield case("square", "as many tokens as heads and numbers in a head", 4, 4, 16, 4, 2, 50.0)
        yield case("long", "twenty tokens", 1, 20, 8, 2, 1, 500.0)
        grown = case(
            "grown",
            "70 tokens, after a call with three of them and one of another module, base=50",
            1,
            70,
            8,
            2,
            1,
            50.0,
        )
        yield replace(grown, probe="probes.longer_input", reading=None)
        used = case("used", "a module that has read other tokens before, as many and fewer", 2, 4, 12, 6, 2)
        yield after_earlier_calls(rng, used, (1, 3, 12), (2, 4, 12))
        sizes = {"num_kv_heads": 2, "num_heads": 6, "d_model": 24, "base": 70.0}
        named = case("named", "all sizes passed by name, base=70", 2, 5, 24, 6, 2)
        yield replace(named, options={**named.options, "init": (), "init_kwargs": sizes})
        state, x = random_parameters(rng, shapes(8, 4, 2), 0.7), rng.normal(size=(2, 5, 8))
        x[:, [1, 4]] = 0
        yield _case("zeros", "two tokens of zeros among others", x, state, 4, 2)
        yield from _companions(rng)
        yield case("far", "1,100 tokens, two heads of two numbers", 1, 1100, 4, 2, 1, costly=True)
        refused = {
            (10, 4, 2): "4 heads do not divide d_model 10",
            (12, 5, 1): "5 heads do not divide d_model 12",
            (18, 4, 4): "4 heads do not divide d_model 18",
            (16, 4, 3): "3 KV heads do not divide 4 heads",
            (12, 2, 4): "4 KV heads do not divide 2 heads",
            (24, 6, 4): "4 KV heads do not divide 6 heads",
            (12, 4, 2): "heads of 3 numbers",
            (10, 2, 1): "heads of 5 numbers",
            (6, 6, 2): "heads of 1 number",
        }
        for (d, heads, kv_heads), says in refused.items():
            yield Case(
                f"refused-{d}-{heads}-{kv_heads}",
                says,
                (Tensor(rng.normal(size=(1, 2, d)).astype(np.float32)),),
                probe="probes.construction",
                options={"init": (d, heads, kv_heads)},
                names=("x",),
                raises="ValueError",
            )
        yield on_another_device(case("sizes", "all sizes different, four heads in two groups", 3, 5, 16, 4, 2))

    @holds("a later token changes no earlier output", cases=("before", "after"))
    def past_is_fixed(_, first, __, second):
        moved = np.abs(first["output"][:, :3] - second["output"][:, :3]).max(axis=(0, 2))
        at = int(moved.argmax())
        return None if moved[at] < 1e-4 else f"output {at} moved by {moved[at]:.3g} when only tokens 3 and 4 changed."

    apart = batch_independence("after", "other item")

    hints = (
        "With 9 query heads and 3 KV heads: which KV head does query head 4 read, and how do you copy the keys so that they "
        "are there?",
        "Project, `view` as (B, T, heads, d_head), transpose. Rotate q and k by `apply_rope(…, positions, self.base)`. Then repeat each "
        "head of k and v num_heads // num_kv_heads times, side by side: `repeat_interleave(…, dim=1)`.",
        "k = self.w_k(x).view(B, T, ____, d_head).transpose(1, 2)\n"
        "q, k = apply_rope(q, positions, ____), apply_rope(k, ____, ____)\n"
        "k = k.repeat_interleave(____, dim=1)  # and v\n"
        "heads = F.scaled_dot_product_attention(q, k, v, ____=True)",
    )

    mistakes = {
        "GQ1": patch(SHARE, "k, v = (k.repeat(1, shared, 1, 1), v.repeat(1, shared, 1, 1))"),
        "GH4": (
            patch(SHARE, "k, v = (k.repeat_interleave(shared, dim=1), v.repeat(1, shared, 1, 1))"),
            patch(SHARE, "k, v = (k.repeat(1, shared, 1, 1), v.repeat_interleave(shared, dim=1))"),
        ),
        "TB43": mistake(
            patch(TURN, "q = apply_rope(q, positions, self.base)"),
            patch(TURN, "k = apply_rope(k, positions, self.base)"),
            patch(TURN, f"{TURN}\n        q = apply_rope(q, positions, self.base)"),
            patch(TURN, f"{TURN}\n        k = apply_rope(k, positions, self.base)"),
            patch(
                TURN,
                f"{TURN}\n        q, k = (apply_rope(q, positions, self.base), apply_rope(k, positions, self.base))",
            ),
            patch(TURN, "pass"),
            patch("apply_rope(k, positions, self.base)", "apply_rope(k, -positions, self.base)"),
            patch("apply_rope(q, positions, self.base)", "apply_rope(q, -positions, self.base)"),
            says="Queries and keys should each be rotated once, both in one direction; a rotation is missing, doubled or reversed.",
            why="""A query at position i is turned by i steps and a key at j by j steps, so the angle between them depends on i − j alone.
            If only one of them is turned, the score depends on that one's position, and if one is turned twice, on 2i − j. If both are
            turned twice, every distance looks twice as long; if one is turned the other way, the score depends on i + j. Without any
            rotation the causal mask alone tells first from last.""",
        ),
        "TB44": mistake(
            patch(TURN, f"{TURN}\n        v = apply_rope(v, positions, self.base)"),
            says="The values were rotated, too; only queries and keys should be.",
            why="""Positions should decide who looks at whom. A rotated value brings the same content in another direction at each
            place, which w_o cannot undo.""",
        ),
        "TB45": mistake(
            patch(", self.base), apply", "), apply", "apply_rope(k, positions, self.base)", "apply_rope(k, positions)"),
            patch(", self.base), apply", "), apply"),
            patch("apply_rope(k, positions, self.base)", "apply_rope(k, positions)"),
            says="""base should reach the rotation of queries and of keys, through every part that is built; without it `apply_rope` takes
            10,000.""",
            why="""The base sets how slowly the slowest pair turns: 10,000 in the first Llama, 500,000 in Llama 3, 100,000 in SmolLM2.
            With the wrong one, near tokens still come out about right and far ones do not.""",
            issue="google-deepmind/penzai#102",
        ),
        "TB81": mistake(
            patch(
                HEADS,
                "q, k, v = (layer(x).unflatten(-1, (-1, self.d_head)) for layer in (self.w_q, self.w_k, self.w_v))",
                TURN,
                f"{TURN}\n        q, k, v = (y.transpose(1, 2) for y in (q, k, v))",
            ),
            patch(
                HEADS,
                "q, k, v = (layer(x).unflatten(-1, (-1, self.d_head)) for layer in (self.w_q, self.w_k, self.w_v))",
                TURN,
                f"{TURN}\n        q, k, v = (y.transpose(1, 2) for y in (q, k, v))",
                SHARE,
                "",
                "is_causal=True",
                "is_causal=True, enable_gqa=True",
            ),
            patch(
                HEADS,
                "q, k, v = (layer(x).unflatten(-1, (-1, self.d_head)) for layer in (self.w_q, self.w_k, self.w_v))",
                TURN,
                "positions = torch.arange(q.shape[2])\n        q = apply_rope(q, positions, self.base)\n"
                "        k = apply_rope(k, torch.arange(k.shape[2]), self.base)\n"
                "        q, k, v = (y.transpose(1, 2) for y in (q, k, v))",
            ),
            says="Queries and keys were rotated before the transpose, along their heads; transpose first, then rotate along the tokens.",
            why="""`apply_rope` takes the last axis but one for the tokens. Before the transpose that axis holds the heads, and each head
            is rotated by its own number: head 0 is not rotated at all, and no token knows where it stands. Where T positions are asked
            for, the two lengths do not fit, and nothing raises only where T happens to equal num_heads.""",
        ),
        "TB47": mistake(
            patch(TURN, PER_MODEL),
            says="The frequencies were computed for d_model; they should be those of d_head, so that a head's pairs run through all.",
            why="""In base^(−2i/d) the d is the width of one head. With d_model in its place all pairs of a head turn fast, the more so the
            more heads there are.""",
        ),
        "RO1": patch(TURN, HALVES),
        "MK13": (patch(", is_causal=True", ""), patch("is_causal=True", "is_causal=self.training")),
        "MK7": patch("is_causal=True", MASKS.format("tril(-1)")),
        "MK8": patch("is_causal=True", MASKS.format("tril(1)")),
        "MK1": patch("is_causal=True", MASKS.format("triu(1)")),
        "MK2": patch(ATTEND, f"torch.softmax({SCORES}, dim=-1).tril() @ v"),
        "MK3": patch(ATTEND, f"torch.softmax({SCORES}.tril(), dim=-1) @ v"),
        "SM1": patch(ATTEND, f"torch.softmax({SCORES}.masked_fill({FUTURE}, -torch.inf), dim=-2) @ v"),
        "SD1": scaled("1.0"),
        "SD2": scaled("1 / self.d_head"),
        "SD3": scaled("x.shape[-1] ** -0.5"),
        "SD4": scaled("self.num_heads ** -0.5"),
        "SD5": scaled("self.d_head ** 0.5"),
        "GP51": patch("merged = heads", "heads = heads / self.d_head ** 0.5\n        merged = heads"),
        "MH1": patch(
            HEADS,
            HEADS.replace(
                "unflatten(-1, (-1, self.d_head)).transpose(1, 2)", "reshape(x.shape[0], -1, x.shape[1], self.d_head)"
            ),
        ),
        "MH2": patch("heads.transpose(1, 2).flatten(2)", "heads.reshape(x.shape)"),
        "MU2": patch("self.w_o(merged)", "merged"),
        "TB51": mistake(
            patch(UNEVEN, ""),
            patch(UNEVEN, "", ODD, ""),
            patch(UNSHARED, ""),
            patch(ODD, ""),
            says="""Some sizes that do not fit, or all, are not refused with ValueError when the module is built: d_model / num_heads and
            num_heads / num_kv_heads should be whole, and d_head even.""",
            why="""`d_model // num_heads` rounds down, and the error comes later, as a message about shapes that never mentions heads. 4
            heads in 3 groups leave one query head without keys. RoPE turns numbers in pairs, so an odd d_head fails at the first call. A
            module that can never run should not be built.""",
        ),
        "CM9": patch(
            "self.base = base",
            "self.base = base\n        turns = base ** (-torch.arange(0, self.d_head, 2) / self.d_head)\n"
            "        self.register_buffer('turns', turns)",
        ),
        "PJ2": (
            patch("self.w_o = nn.Linear(d_model, d_model, bias=False)", "self.w_o = nn.Linear(d_model, d_model)"),
            patch("self.w_q = nn.Linear(d_model, d_model, bias=False)", "self.w_q = nn.Linear(d_model, d_model)"),
        ),
        "TB79": mistake(
            patch(
                HEADS,
                "q, k, v = (self.w_q(x), self.w_k(x), self.w_v(x))",
                TURN,
                "q, k = (apply_rope(q, positions, self.base), apply_rope(k, positions, self.base))\n"
                "        q, k, v = (y.unflatten(-1, (-1, self.d_head)).transpose(1, 2) for y in (q, k, v))",
            ),
            says="Queries and keys were rotated before they were split into heads; each head should be rotated by itself, after the split.",
            why="""RoPE turns the first pair of a vector fastest and each later pair more slowly. In one long vector the first head gets
            all the fast pairs and the last head all the slow ones. After the split every head has pairs of all speeds. With one head
            both are the same.""",
        ),
        "KC10": (
            patch("q, k, v = (layer", "q, v, k = (layer"),
            patch("F.scaled_dot_product_attention(q, k, v", "F.scaled_dot_product_attention(q, v, k"),
        ),
        "MU4": (
            patch(
                HEADS,
                HEADS.replace(
                    "unflatten(-1, (-1, self.d_head)).transpose(1, 2)",
                    "unflatten(-1, (self.d_head, -1)).permute(0, 3, 1, 2)",
                ),
                "heads.transpose(1, 2).flatten(2)",
                "heads.permute(0, 2, 3, 1).flatten(2)",
            ),
            patch(HEADS, f"{HEADS}\n        k = {TURNED_ROUND.format('self.w_k(x)')}"),
            patch(
                HEADS,
                f"{HEADS}\n        k, v = ({TURNED_ROUND.format('self.w_k(x)')}, {TURNED_ROUND.format('self.w_v(x)')})",
            ),
            patch(HEADS, f"q, k, v = ({TURNED_ROUND.format('layer(x)')} for layer in (self.w_q, self.w_k, self.w_v))"),
        ),
        "GH2": (
            *(
                patch(SHARE, f"which = {which}\n        k, v = (k[:, which], v[:, which])")
                for which in (
                    "torch.arange(self.num_heads, device=x.device) // self.num_kv_heads % self.num_kv_heads",
                    "(torch.arange(self.num_heads, device=x.device) // self.num_kv_heads).clamp_max(self.num_kv_heads - 1)",
                )
            ),
        ),
        "GH3": patch(
            "self.num_heads // self.num_kv_heads",
            "self.num_heads",
            HEADS,
            HEADS + "\n        k, v = (k[:, :1], v[:, :1])",
        ),
    }
