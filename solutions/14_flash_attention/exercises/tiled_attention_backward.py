"""The backward pass of attention, tile by tile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grader.course.declare import UNTRIED, Case, exercise, holds, mistake, patch

from ...shared.library import on_another_device
from ..shared import (
    CASE_SIZES,
    MASK_MISTAKES,
    NO_SKIP,
    SCALED,
    Array,
    forward_pass,
    many_tiles,
    qkv,
    settings,
    small_memory,
    tensors,
)


def _case(
    rng: np.random.Generator,
    key: str,
    title: str,
    arrays: tuple[Array, ...],
    block_size: int,
    causal: bool,
    **fields: Any,
) -> Case:
    q, k, v = arrays
    output, logsumexp = (part.astype(q.dtype) for part in forward_pass(q, k, v, causal))
    grad = (
        rng.normal(size=output.shape) if output.size > 1 else np.ones(output.shape)
    )  # a single number can be followed by hand
    given = (q, k, v, output, logsumexp, grad.astype(q.dtype))
    by_place, by_name = settings(key, block_size, causal)
    return Case(key, title, (*tensors(given), *by_place), by_name, **fields)


SCORES = SCALED.format("root")
FILL = "-math.inf)\n            weights"
WEIGHTS = "weights = torch.exp(scores - logsumexp[..., at, None])"
GRAD_SCORES = "grad_scores = weights * (grad_weights - delta[..., at, None])"
GRAD_V, GRAD_Q = "grad_v[..., to, :] += weights.mT @ g_tile", "grad_q[..., at, :] += grad_scores @ k_tile / root"
GRAD_K, RETURN = "grad_k[..., to, :] += grad_scores.mT @ q_tile / root", "return (grad_q, grad_k, grad_v)"
SOFTMAX = patch(WEIGHTS, "weights = torch.softmax(scores, dim=-1)")
NO_WEIGHTS = patch(GRAD_SCORES, GRAD_SCORES.replace("weights * (grad_weights", "(grad_weights"))
LAST_TILE = patch(GRAD_Q, GRAD_Q.replace("+=", "="))


def _remainder(case: Case) -> float:
    """What may be left of grad_k's sum over the keys where delta is taken from the weights.

    logsumexp is rounded, so that a row of recomputed weights sums to 1 + ε. grad_output · output cancels that, a sum over the weights
    does not, and ε · delta · q / √d_k remains of each query.
    """
    q, _, _, output, logsumexp, grad = (tensor.array for tensor in case.args[:6])
    delta = np.abs((grad.astype(float) * output).sum(-1))
    rounding = np.abs(np.spacing(logsumexp)).astype(float)
    shares = (rounding * delta)[..., None] * np.abs(q.astype(float)) / np.sqrt(q.shape[-1])
    return float(np.nan_to_num(shares).sum(axis=-2).max())


def _worst(case: Case, parts: Mapping[str, Array]) -> tuple[float, str, int]:
    """How far a feature of a gradient is off, as a share of its largest entry, and whose it is."""
    q, k, v, output, logsumexp, grad = (tensor.array.astype(float) for tensor in case.args[:6])
    root = np.sqrt(q.shape[-1])
    weights = np.exp(q @ k.swapaxes(-1, -2) / root - logsumexp[..., None])
    slopes = weights * (grad @ v.swapaxes(-1, -2) - (grad * output).sum(-1, keepdims=True)) / root
    right = {"grad_q": slopes @ k, "grad_k": slopes.swapaxes(-1, -2) @ q, "grad_v": weights.swapaxes(-1, -2) @ grad}
    found = []
    for name, exact in right.items():
        size = np.abs(exact).max(axis=(0, 1, 2))
        off = (
            np.abs(parts[name] - exact).max(axis=(0, 1, 2)) / size
            if parts[name].shape == exact.shape
            else np.full(size.shape, np.inf)
        )
        found += [(float(share), name, feature) for feature, share in enumerate(off)]
    return max(found)


@exercise(
    points=5,
    minutes=40,
    difficulty=3,
    result_type="tensor",
    result_names=("grad_q", "grad_k", "grad_v"),
    forbids=("attention", "autograd", "table"),
    unused_parameters=("output",),  # the weights and grad_output give delta as well
    rtol=1e-3,
    atol=1e-4,
)
class tiled_attention_backward:
    """Carry a gradient back through attention tile by tile, recomputing the weights from logsumexp."""

    def cases(rng):
        ln2 = float(np.log(2))
        small = ([[[[1.0]]]], [[[[ln2], [0.0], [2 * ln2], [0.0]]]], [[[[4.0], [8.0], [2.0], [0.0]]]])
        yield _case(
            rng,
            "small",
            "one query, scores ln 2, 0, ln 4 and 0, two tiles",
            tuple(np.array(a, np.float32) for a in small),
            2,
            False,
        )
        for key, title, sizes, block_size, causal in CASE_SIZES:
            yield _case(rng, key, title, qkv(rng, sizes), block_size, causal)
        yield _case(rng, "float64", "float64", qkv(rng, (1, 2, 5, 6, 3, 2), np.float64), 4, False)
        for key, title, sizes, block_size, causal in small_memory():
            yield _case(rng, key, title, qkv(rng, sizes), block_size, causal, options={"table": sizes[:4]}, show=False)
        key, title, sizes, block_size, fields = many_tiles()
        yield _case(rng, key, title, qkv(rng, sizes), block_size, False, **fields)
        q, k, v = qkv(rng, (1, 2, 3, 5, 4, 2))
        size = np.array([1e-7, 1e7, 1e-7, 1e7], np.float32)
        yield _case(rng, "plain", "three queries, five keys of four features", (q, k, v), 2, False)
        title = "the same scores, of features of 1e-7 in queries and 1e7 in keys, or the reverse"
        yield _case(rng, "stretched", title, (q * size, k / size, v), 2, False, rtol=1e-3, atol=1e4)
        for i, level in enumerate((95.0, -97.0, 92.0, 97.0, -96.0, -96.5)):
            q, k, v = qkv(rng, (1, 2, 3, 5, 4, 2))
            q[..., 1:] *= 1 if level > 0 else 0.5  # no score below −100
            q[..., 0], k[..., 0] = 2.0, level
            title = f"scores near {level:g}".replace("-", "−")
            if i == 2:  # what is hidden from the first query lies far above what it sees
                k[..., :3, 0] *= -1
                title = f"scores near −{level:.0f}, then near {level:.0f}"
            yield _case(rng, f"large-{i}", title, (q, k, v), 3, i > 0, stage="extremes", atol=1e-2)
        yield on_another_device(
            _case(rng, "sizes", "all sizes different, causal", qkv(rng, (2, 3, 5, 7, 4, 6)), 3, True)
        )

    @holds("where features of 1e-7 meet features of 1e7, the gradients are right", cases=("plain", "stretched"))
    def no_differences(case, plain, other, stretched):
        if not _worst(case, plain)[0] <= 1e-2:
            return UNTRIED
        off, name, feature = _worst(other, stretched)
        if off < 1e-2:
            return None
        return (
            f"feature {feature} of {name} is off by "
            f"{100 * min(off, 1):.0f} % of its largest entry. A finite difference has no step that fits both; use the "
            "formulas, which need none."
        )

    @holds("the values together receive what the outputs received")
    def values_share(case, parts):
        given = np.asarray(case.args[5].array, dtype=float).sum(axis=-2)
        off = np.abs(parts["grad_v"].sum(axis=-2) - given).max()
        return (
            None
            if off < 1e-2
            else f"summed over the keys, grad_v is off by {off:.4g} from grad_output summed over the queries."
        )

    @holds("a shift of all keys alike changes nothing, so grad_k sums to 0 over the keys")
    def keys_cancel(case, parts):
        total, most = np.abs(parts["grad_k"].sum(axis=-2)).max(), np.abs(parts["grad_k"]).max()
        return (
            None
            if total < max(1e-2, 1e-6 * most, 4 * _remainder(case))
            else (f"summed over the keys, grad_k is up to {total:.4g} in size; it should cancel to 0.")
        )

    hints = (
        "The forward pass left its sums behind in one number a query. How do you get a weight from a score and that number?",
        "weight = exp(score − logsumexp): no maximum and no sum are needed any more. Lesson 13's dS = W ⊙ (dW − rowsum(dW ⊙ W)) wants "
        "a sum over *all* keys of a query; rowsum(dO ⊙ O) is the "
        "same number and needs no weights. Every tile adds its share to three gradients.",
        "delta = (grad_output * ____).sum(-1)\nweights = torch.exp(scores - ____)\ngrad_v[..., keys, :] += weights.mT @ ____\n"
        "grad_scores = weights * (grad_out_tile @ ____ - ____)\ngrad_q[..., queries, :] += grad_scores @ ____ / ____\n"
        "grad_k[..., keys, :] += ____ @ q_tile / ____",
    )

    mistakes = {
        "BW1": patch(GRAD_SCORES, "grad_scores = weights * grad_weights"),
        "BW2": (
            patch(GRAD_Q, GRAD_Q.removesuffix(" / root"), GRAD_K, GRAD_K.removesuffix(" / root")),
            patch(GRAD_K, GRAD_K.removesuffix(" / root")),
            patch(GRAD_Q, GRAD_Q.removesuffix(" / root")),
        ),
        "SD1": patch(SCORES, "scores = q_tile @ k_tile.mT"),
        "SD2": (patch("math.sqrt(q.shape[-1])", "q.shape[-1]"), patch(SCORES, SCALED.format("q.shape[-1]"))),
        **{id: ways for id, ways in MASK_MISTAKES.items() if id != "MK13"},
        "FB22": mistake(
            *MASK_MISTAKES["MK13"],
            says="The causal mask is missing where the weights are recomputed; the keys that were hidden in the forward pass should be "
            "hidden again.",
            why="""logsumexp sums over the visible keys alone. exp(score − logsumexp) of a hidden key is a number all the same, and can be
            far above 1; its weight in the forward pass was 0, so no gradient goes through it. Hide the scores before exp, as there.""",
        ),
        "MK3": (patch(FILL, "0.0)\n            weights"), patch(FILL, "0.0)\n            weights") + NO_SKIP),
        "MK4": patch(FILL, "-100.0)\n            weights"),
        "FB1": mistake(
            patch(
                GRAD_SCORES,
                GRAD_SCORES.replace("delta[..., at, None]", "(grad_weights * weights).sum(dim=-1, keepdim=True)"),
            ),
            says="The row's weighted mean was taken over one tile; it should be taken over all keys of the query.",
            why="""Softmax ties a query's score to *all* its weights, those of other tiles as well. Take two tiles of one key, the weights
            (½, ½) and dW = (1, 0). The weighted mean is ½, so dS is (¼, −¼). Taken tile by tile it is ½ and then 0, and dS comes out as
            (¼, 0). rowsum(dO ⊙ O) is the mean over all keys, and is known before the first tile.""",
        ),
        "FB2": mistake(
            SOFTMAX,
            SOFTMAX + NO_SKIP,
            patch(WEIGHTS, "weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)"),
            patch(WEIGHTS, "weights = torch.exp(scores - scores.amax(dim=-1, keepdim=True))"),
            patch(WEIGHTS, "weights = torch.exp(scores) / logsumexp[..., at, None]"),
            patch(WEIGHTS, "weights = torch.exp(scores) / torch.exp(logsumexp[..., at, None])"),
            patch(WEIGHTS, WEIGHTS.replace("scores - logsumexp", "scores + logsumexp")),
            says="A tile's weights should be exp(score − logsumexp), with the logsumexp of the whole row, subtracted before exp.",
            why="""exp(score − logsumexp) is the weight among all keys of the query. Take the scores ln 2, 0, ln 4 and 0 in two tiles.
            Their exponentials 2, 1, 4 and 1 sum to 8, so the first tile's weights are ¼ and ⅛. A softmax of the tile gives ⅔ and ⅓, and
            exp(score − the tile's maximum) 1 and ½. exp(score) / exp(logsumexp) is the same on paper and infinite above scores of 88 in
            float32. With the logsumexp added, or as the divisor itself, it is no weight at all.""",
        ),
        "FB3": mistake(
            LAST_TILE,
            LAST_TILE + NO_SKIP,
            patch(GRAD_V, GRAD_V.replace("+=", "="), GRAD_K, GRAD_K.replace("+=", "=")),
            patch(GRAD_K, GRAD_K.replace("+=", "=")),
            patch(GRAD_V, GRAD_V.replace("+=", "=")),
            says="A gradient was overwritten by every tile; the tiles' shares should be added up.",
            why="""A query is moved by every key that it sees, and a key and its value by every query that sees them. After the last tile
            only that tile's share is left.""",
        ),
        "GB10": (
            patch(RETURN, "return (grad_k, grad_q, grad_v)"),
            patch(RETURN, "return (grad_v, grad_k, grad_q)"),
            patch(RETURN, "return (grad_q, grad_v, grad_k)"),
        ),
        "GB18": (
            NO_WEIGHTS,
            NO_WEIGHTS + NO_SKIP,
            *(
                patch(GRAD_SCORES, "grad_scores = weights * grad_weights - delta[..., at, None]") + more
                for more in (patch(), NO_SKIP)
            ),
            patch(GRAD_SCORES, GRAD_SCORES.replace("grad_weights - ", "grad_weights + ")),
        ),
        "TI2": (
            *MASK_MISTAKES["TI2"],
            patch(
                "for top in range(0, t_q, block_size):",
                "for top in range(0, t_q // block_size * block_size, block_size):",
            ),
        ),
    }
