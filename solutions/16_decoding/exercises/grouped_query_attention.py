"""Attention in which neighboring query heads share a KV head, with a cache's mask."""

from collections.abc import Iterator

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from ...shared.library import invariant, normal, on_another_device, scale_mistakes, softmax_by_hand

K, V = "k = k.repeat_interleave(group, dim=1)", "v = v.repeat_interleave(group, dim=1)"
HIDE = "scores = scores.masked_fill(~seen, -torch.inf)"
SOFTMAX, RETURN = "weights = torch.softmax(scores, dim=-1)", "return weights @ v"


def shared(how: str):
    """Keys and values get as many heads as queries in another way; {x} stands for either."""
    return patch(K, f"k = {how.format(x='k')}", V, f"v = {how.format(x='v')}")


def _inputs(
    rng: np.random.Generator, b: int, heads: int, kv: int, t_q: int, t_k: int, d: int
) -> tuple[Tensor, Tensor, Tensor]:
    return normal(rng, b, heads, t_q, d), normal(rng, b, kv, t_k, d), normal(rng, b, kv, t_k, d)


def _later(rng: np.random.Generator) -> Iterator[Case]:
    """Two runs that differ in the last key and value alone."""
    q, k, v = _inputs(rng, 2, 4, 2, 3, 5, 3)
    yield Case("later-1", "a chunk of three after two cached tokens", (q, k, v))
    moved = [
        Tensor(np.concatenate([one.array[:, :, :-1], one.array[:, :, -1:] + 2], axis=2), None, True) for one in (k, v)
    ]
    yield Case("later-2", "the same, with another last token", (q, *moved))


def _large(rng: np.random.Generator) -> Iterator[Case]:
    """Scores up to ±10,000, whole numbers with d = 4, the largest hidden from the first queries."""
    # The first query sees the lowest scores alone: no fill is below them. Of what it does not see, one is the highest of all.
    low, high = np.array([-9999.0, -10000.0, -9998.0]), [9999.0, 10000.0]
    for i in range(3):
        q, k = np.zeros((1, 4, 3, 4), np.float32), np.zeros((1, 2, 5, 4), np.float32)
        q[..., 0] = 2
        k[0, 0, :, 0], k[0, 1, :, 0] = [*np.roll(low, i), *high], [*np.roll(low, i + 1), *high[::-1]]
        v = rng.normal(size=(1, 2, 5, 4)).astype(np.float32)
        yield Case(
            f"large-{i}",
            "scores of ±10,000, the highest one hidden from earlier queries",
            (Tensor(q), Tensor(k), Tensor(v)),
            stage="extremes",
            rtol=2e-3,
            atol=2e-3,
        )


@exercise(points=3, minutes=14, difficulty=2, result_type="tensor", result_names=("output",), forbids=("attention",))
class grouped_query_attention:
    """Compute attention in which neighboring query heads share a KV head."""

    def cases(rng):
        yield Case("small", "two query heads share one KV head, two tokens", _inputs(rng, 1, 2, 1, 2, 2, 2))
        yield Case("sizes", "all sizes different: six heads share three", _inputs(rng, 2, 6, 3, 4, 5, 7))
        yield Case("seen-again", "the same sizes, new numbers", _inputs(rng, 2, 6, 3, 4, 5, 7))
        yield Case("wide", "six heads share two", _inputs(rng, 1, 6, 2, 5, 5, 3))
        yield Case("own", "a KV head for each head", _inputs(rng, 2, 3, 3, 4, 4, 2))
        yield Case("shared", "one KV head for all", _inputs(rng, 3, 4, 1, 2, 6, 5))
        yield Case("single", "one head, with one KV head", _inputs(rng, 2, 1, 1, 3, 4, 2))
        yield Case("step", "one new query, seven cached keys", _inputs(rng, 2, 4, 2, 1, 7, 3))
        yield from _later(rng)
        yield Case("all", "not causal, more queries than keys", _inputs(rng, 2, 4, 2, 5, 3, 4), {"causal": False})
        yield Case("all-again", "not causal, fewer queries than keys", (*_inputs(rng, 2, 6, 2, 3, 5, 4), False))
        yield Case(
            "all-square", "not causal, as many queries as keys", _inputs(rng, 1, 4, 2, 4, 4, 3), {"causal": False}
        )
        turned = (Tensor(np.asfortranarray(one.array), None, True) for one in _inputs(rng, 2, 4, 2, 3, 4, 5))
        yield Case(
            "turned", "tensors that are not contiguous in memory, causal by name", tuple(turned), {"causal": True}
        )
        double = (Tensor(one.array, "float64", True) for one in _inputs(rng, 1, 4, 2, 3, 5, 4))
        yield Case("float64", "float64", tuple(double))
        yield Case("long", "more than sixteen queries and keys", _inputs(rng, 1, 4, 2, 18, 21, 3))
        for i, (heads, kv) in enumerate(((3, 2), (4, 3), (2, 4))):
            title = f"{heads} query heads, {kv} KV heads"
            yield Case(f"uneven-{i}", title, _inputs(rng, 1, heads, kv, 2, 3, 4), raises="ValueError")
        yield from _large(rng)
        yield on_another_device(Case("sizes", "all sizes different", _inputs(rng, 2, 6, 3, 4, 5, 7)))

    past = invariant(
        "earlier queries do not see a later token",
        ("later-1", "later-2"),
        "the output of the first query moved by {gap} when only the last token changed.",
        of=lambda whole: whole[:, :, 0],
    )

    hints = (
        "With 6 query heads and 3 KV heads, which of the three does query head 3 read?",
        "`repeat_interleave` repeats each entry of an axis in its place: heads 0, 1, 2 become 0, 0, 1, 1, 2, 2. The rest is lesson 06's "
        "attention, its mask for t_k ≥ t_q included.",
        "k = k.repeat_interleave(____, dim=1)\nv = ____\nscores = q @ k.transpose(-2, -1) / ____\n"
        "if causal:\n    seen = torch.ones(t_q, t_k, dtype=torch.bool, device=____).tril(____)\n"
        "    scores = scores.masked_fill(____, -torch.inf)",
    )

    mistakes = {
        "GQ1": (shared("{x}.repeat(1, group, 1, 1)"), shared("{x}[:, torch.arange(heads) % kv_heads]")),
        "GH1": mistake(
            shared(
                "{x}[:, :, :, None].expand(-1, -1, -1, group, -1).reshape({x}.shape[0], heads, {x}.shape[2], {x}.shape[3])"
            ),
            shared("{x}.repeat_interleave(group, dim=2).reshape({x}.shape[0], heads, {x}.shape[2], {x}.shape[3])"),
            says="The tokens were repeated in place of the heads, and then cut into heads: repeat along axis 1.",
            why="""(B, H_kv, T, d) repeated along T and reshaped to (B, H, T, d) has the right shape. A head then holds each of its first
            tokens several times and lacks the others.""",
            issue="PrimeIntellect-ai/prime-rl#2681",
        ),
        "GH2": (
            shared("{x}[:, torch.arange(heads) // kv_heads % kv_heads]"),
            shared("{x}[:, (torch.arange(heads) // kv_heads).clamp_max(kv_heads - 1)]"),
        ),
        "GH3": (
            shared("{x}[:, :1].expand(-1, heads, -1, -1)"),
            shared("{x}.mean(dim=1, keepdim=True).expand(-1, heads, -1, -1)"),
        ),
        "GH4": (patch(V, "v = v.repeat(1, group, 1, 1)"), patch(K, "k = k.repeat(1, group, 1, 1)")),
        "GH6": mistake(
            patch("if causal:", "if causal and t_q > 1 and t_q == t_k:"),
            patch("if causal:", "if causal and t_q == t_k:"),
            says="The mask was left out once there is a cache; several new tokens should not see one another's future.",
            why="""A single new token may see everything, and so the mask seems needless with a cache. A prompt in chunks brings several
            tokens at once, and the first of them would read the last.""",
            issue="Mikyx-1/TinyLLM#17",
        ),
        "GH8": mistake(
            patch("if causal:", "if True:"),
            says="The mask is always there; with causal=False every query should see every key.",
            why="An encoder reads its text in both directions, and cross-attention has no order between queries and keys at all.",
        ),
        "GH10": mistake(
            patch(K, "q = q.unflatten(1, (kv_heads, group)).mean(dim=2)", V, "pass"),
            patch(RETURN, "return (weights @ v).unflatten(1, (kv_heads, group)).mean(dim=2)"),
            patch(
                K,
                "q = q.unflatten(1, (kv_heads, group)).mean(dim=2)",
                V,
                "pass",
                RETURN,
                "return (weights @ v).repeat_interleave(group, dim=1)",
            ),
            says="The heads of a group were averaged; all H of them should stay, and only keys and values be shared.",
            why="""Queries are not kept, so nothing is saved by having fewer. What a group shares is what it looks at, and each head
            still asks its own question.""",
        ),
        "MK13": patch("if causal:", "if False:"),
        "MK14": patch(".tril(t_k - t_q)", ".tril()"),
        "MK7": patch(".tril(t_k - t_q)", ".tril(t_k - t_q - 1)"),
        "MK8": patch(".tril(t_k - t_q)", ".tril(t_k - t_q + 1)"),
        "MK1": (patch("~seen", "seen"), patch("~seen, -torch.inf", "seen, torch.finfo(scores.dtype).min")),
        "MK2": patch(
            HIDE,
            "pass",
            SOFTMAX,
            "weights = torch.softmax(scores, dim=-1)\n    weights = weights * seen if causal else weights",
        ),
        "MK3": (patch(HIDE, "scores = scores.masked_fill(~seen, 0.0)"), patch(HIDE, "scores = scores * seen")),
        "MK4": (patch("-torch.inf", "-10000.0"), patch("-torch.inf", "-1000.0")),
        "SM1": patch("dim=-1)", "dim=-2)"),
        "SM2": (patch("dim=-1)", "dim=1)"), patch("dim=-1)", "dim=1).nan_to_num()")),
        "SM5": softmax_by_hand("scores", indent=4),
        "SM6": softmax_by_hand("scores - scores.max()", indent=4),
        **scale_mistakes(),
        "SD4": patch("q.shape[-1])", "q.shape[1])"),
        "BW3": patch("torch.softmax(scores,", "torch.softmax(scores.detach(),"),
    }
