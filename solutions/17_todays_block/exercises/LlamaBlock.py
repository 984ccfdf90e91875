"""The block of today's open models: grouped-query attention and a gated network, each behind an RMSNorm."""

from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from ...shared.library import after_earlier_calls, mistakes_of, on_another_device, random_parameters
from .. import readings
from .GroupedQuerySelfAttention import GroupedQuerySelfAttention, shapes as of_attention
from .SwiGLU import SwiGLU, shapes as of_network

LAYERS = tuple(f"attn.{name}" for name in ("w_q", "w_k", "w_v", "w_o")) + ("mlp.gate", "mlp.up", "mlp.down")
ATTEND, THINK = "x = x + self.attn(self.attn_norm(x))", "return x + self.mlp(self.mlp_norm(x))"
NORMS = "nn.RMSNorm(d_model, eps=eps)"
IN_ATTENTION = ("GQ1", "TB43", "TB44", "RO1", "MK13", "MK8", "SD1", "SD3", "MH2", "MU2")
IN_NETWORK = ("TB21", "TB22", "TB26", "TB29")


def _norms(attention: str, network: str):
    """Both normalizations made otherwise."""
    return patch(
        f"self.attn_norm = {NORMS}",
        f"self.attn_norm = {attention}",
        f"self.mlp_norm = {NORMS}",
        f"self.mlp_norm = {network}",
    )


def _state(rng: np.random.Generator, d: int, heads: int, kv_heads: int, d_hidden: int) -> dict[str, np.ndarray]:
    state = {
        f"attn.{name}": array
        for name, array in random_parameters(rng, of_attention(d, heads, kv_heads), 1.5 / np.sqrt(d)).items()
    }
    state |= {f"mlp.{name}": array for name, array in random_parameters(rng, of_network(d, d_hidden), 0.7).items()}
    return state | {
        f"{name}.weight": rng.uniform(0.5, 1.5, size=d).astype(np.float32) for name in ("attn_norm", "mlp_norm")
    }


@exercise(
    kind="class",
    points=3,
    minutes=10,
    difficulty=2,
    result_type="tensor",
    result_names=("output",),
    forbids=("layers",),
    rtol=1e-3,
    atol=3e-4,
    pair_runs=20,
)
class LlamaBlock:
    """Put your parts together as the block of today's models, the right column of the lesson's first figure."""

    def cases(rng):
        def case(
            key: str,
            title: str,
            b: int,
            t: int,
            *sizes: Any,
            spread: float = 1.0,
            grad: bool = False,
            mode: str = "eval",
            **named: Any,
        ) -> Case:
            d, heads, kv_heads, d_hidden = sizes[:4]
            options = {
                "init": sizes,
                "init_kwargs": named,
                "state": _state(rng, d, heads, kv_heads, d_hidden),
                "linear": LAYERS,
                "no_bias": LAYERS,
                "gradients": grad,
                "mode": mode,
            }
            x = spread * (rng.normal(size=(b, t, d)) + 0.5)
            return Case(
                key,
                title,
                (Tensor(x.astype(np.float32), None, grad),),
                probe="probes.block",
                options=options,
                names=("x",),
                reading=readings.block,
            )

        yield case("small", "three tokens, two heads of two numbers, one KV head", 1, 3, 4, 2, 1, 6)
        yield case("sizes", "all sizes different, four heads in two groups", 3, 5, 8, 4, 2, 11, grad=True)
        yield case("seen-again", "the same sizes, new numbers", 3, 5, 8, 4, 2, 11, grad=True)
        yield case("base", "base=30, in training mode", 2, 7, 12, 3, 1, 10, 30.0, mode="train")
        yield case("eps", "eps=0.5 by name", 2, 4, 12, 6, 2, 9, eps=0.5, grad=True)
        yield case("eps-again", "eps=2 by name, four KV heads", 1, 3, 8, 4, 4, 6, eps=2.0)
        yield case("eps-third", "base=50, eps=0.8", 2, 3, 6, 1, 1, 5, 50.0, 0.8)
        yield case(
            "quiet", "numbers of a few thousandths, base=100, eps=0.0001", 2, 6, 8, 2, 1, 5, 100.0, 1e-4, spread=3e-3
        )
        yield case(
            "quiet-again", "numbers of a few thousandths, eps left to its default", 2, 4, 8, 2, 2, 7, spread=3e-3
        )
        yield case("square", "as many tokens as heads and numbers in a head", 4, 4, 16, 4, 2, 16)
        yield case("one", "one token, one head", 3, 1, 4, 1, 1, 7)
        yield case("long", "twenty tokens", 1, 20, 8, 2, 1, 12, 300.0)
        used = case("used", "a module that has read other tokens before, as many and fewer", 2, 4, 8, 4, 2, 9)
        yield after_earlier_calls(rng, used, (1, 3, 8), (2, 4, 8))
        for sizes, says in (
            ((10, 4, 2, 8), "4 heads do not divide d_model 10"),
            ((16, 4, 3, 8), "3 KV heads do not divide 4 heads"),
            ((12, 4, 2, 8), "heads of 3 numbers"),
        ):
            yield Case(
                "refused-" + "-".join(map(str, sizes)),
                says,
                (Tensor(rng.normal(size=(1, 2, sizes[0])).astype(np.float32)),),
                probe="probes.construction",
                options={"init": sizes},
                names=("x",),
                raises="ValueError",
            )
        yield on_another_device(case("sizes", "all sizes different, four heads in two groups", 3, 5, 8, 4, 2, 11))

    hints = (
        "What does the block return when attention and the network both give zeros?",
        "The block of lesson 09 with other parts: x + attn(norm(x)), then x + mlp(norm(x)). A module with one weight of ones is "
        "`nn.RMSNorm(d_model, eps=eps)`, or one of your own around `rms_norm`.",
        "self.attn_norm, self.mlp_norm = nn.RMSNorm(d_model, eps=____), ____\n"
        "x = x + self.attn(____)\n"
        "return x + self.mlp(____)",
    )

    mistakes = {
        "CM21": (
            patch(ATTEND, "x = self.attn_norm(x + self.attn(x))", THINK, "return self.mlp_norm(x + self.mlp(x))"),
            patch(
                "self.attn(self.attn_norm(x))",
                "self.attn_norm(self.attn(x))",
                "self.mlp(self.mlp_norm(x))",
                "self.mlp_norm(self.mlp(x))",
            ),
        ),
        "CM22": (patch("x + self.attn", "self.attn"), patch("x + self.mlp", "self.mlp")),
        "TB64": mistake(
            patch("self.mlp_norm(x)", "self.attn_norm(x)"),
            patch(f"self.mlp_norm = {NORMS}", "self.mlp_norm = self.attn_norm"),
            patch(
                "self.attn(self.attn_norm(x))",
                "self.attn(self.mlp_norm(x))",
                "self.mlp(self.mlp_norm(x))",
                "self.mlp(self.attn_norm(x))",
            ),
            says="A branch has no normalization of its own: attn should read attn_norm(x), mlp mlp_norm(x), and these are two modules.",
            why="""Freshly made both weights are 1, and nothing shows, whether the two changed places or one serves both. Loaded weights
            differ: each norm is trained for the branch that it stands before.""",
        ),
        "TB65": mistake(
            patch("self.attn_norm(x)", "x", "self.mlp_norm(x)", "x"),
            patch("self.attn_norm(x)", "x"),
            patch("self.mlp_norm(x)", "x"),
            says="A normalization is made and not used.",
            why="""Both branches read normalized numbers. Without it they grow from block to block, since every block adds to them.""",
        ),
        "TB66": mistake(
            _norms("nn.LayerNorm(d_model, eps=eps, bias=False)", "nn.LayerNorm(d_model, eps=eps, bias=False)"),
            says="The normalizations are LayerNorms, which subtract each token's mean; they should be RMSNorms.",
            why="""Without a bias a LayerNorm has the same one weight, so a checkpoint loads without any complaint.""",
        ),
        "TB67": mistake(
            _norms("nn.RMSNorm(d_model)", "nn.RMSNorm(d_model)"),
            patch(f"self.attn_norm = {NORMS}", "self.attn_norm = nn.RMSNorm(d_model)"),
            patch(f"self.mlp_norm = {NORMS}", "self.mlp_norm = nn.RMSNorm(d_model)"),
            _norms("nn.RMSNorm(d_model, eps=1e-05)", "nn.RMSNorm(d_model, eps=1e-05)"),
            says="eps should reach both normalizations.",
            why="""`nn.RMSNorm` without eps uses the precision of the numbers' type, 1.2e-7 in float32. For tokens with small numbers,
            such as the first embeddings of a model, that is another result.""",
            issue="meta-llama/llama#771",
        ),
        "TB45": patch("num_kv_heads, base)", "num_kv_heads)"),
        "TB71": mistake(
            patch(f"{ATTEND}\n        return x", "return x + self.attn(self.attn_norm(x))"),
            patch("x = x + self.attn", "h = x + self.attn", "self.mlp_norm(x)", "self.mlp_norm(h)"),
            says="""After attention the block's input was used again; mlp should read x with attention's result in it, and be added to
            that x.""",
            why="""PaLM and others do let both branches read the block's input, side by side, and save time (Chowdhery et al. 2022,
            section 2). Llama does not. If the second sum starts from the block's input, what attention gathered reaches the next block
            only through mlp.""",
        ),
        "CM25": (
            patch(
                ATTEND,
                "x = self.attn_norm(x)\n        x = x + self.attn(x)",
                THINK,
                "x = self.mlp_norm(x)\n        return x + self.mlp(x)",
            ),
            patch(ATTEND, "x = self.attn_norm(x)\n        x = x + self.attn(x)"),
            patch(THINK, "x = self.mlp_norm(x)\n        return x + self.mlp(x)"),
        ),
        "CM35": (
            patch("x = x + self.attn", "x += self.attn", THINK, "x += self.mlp(self.mlp_norm(x))\n        return x"),
            patch(THINK, "x += self.mlp(self.mlp_norm(x))\n        return x"),
        ),
        "TB77": mistake(
            *(ways[0] for ways in mistakes_of(GroupedQuerySelfAttention, *IN_ATTENTION).values()),
            says="The fault lies inside attn; what the block does around it agrees. Check GroupedQuerySelfAttention first.",
            why="""The block is as good as its parts. Its output is that of a right block around an attention with a known slip; the check
            of `GroupedQuerySelfAttention` says which.""",
        ),
        "TB78": mistake(
            *(way for ways in mistakes_of(SwiGLU, *IN_NETWORK).values() for way in ways[:2]),
            says="The fault lies inside mlp; what the block does around it agrees. Check SwiGLU first.",
            why="""The block is as good as its parts. Its output is that of a right block around a network with a known slip; the check of
            `SwiGLU` says which.""",
        ),
    }
