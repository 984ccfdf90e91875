"""Attention, one tile of scores at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from grader.course.declare import Case, exercise, mistake, patch

from ...shared.library import on_another_device
from ..shared import (
    CASE_SIZES,
    KEY_LOOP,
    MASK_MISTAKES,
    NO_SKIP,
    SCALED,
    Array,
    many_tiles,
    qkv,
    settings,
    small_memory,
    tensors,
)


def _case(key: str, title: str, arrays: tuple[Array, ...], block_size: int, causal: bool, **fields: Any) -> Case:
    by_place, by_name = settings(key, block_size, causal)
    return Case(key, title, (*tensors(arrays), *by_place), by_name, **fields)


def _levels(rng: np.random.Generator) -> Iterator[Case]:
    """Scores that rise or fall from tile to tile, and rows whose scores lie far apart, or far below 0."""
    climb = np.arange(7.0) * 1.5
    for key, title, by in (
        ("rising", "scores that rise from key to key", climb),
        ("falling", "scores that fall from key to key", -climb),
        ("up and down", "the largest score in the middle", -np.abs(climb - climb[3])),
    ):
        q, k, v = qkv(rng, (1, 2, 3, 7, 4, 5))
        q[..., 0], k[..., 0] = 2.0, by  # with d_k = 4 this is what it adds to the score
        yield _case(key, title, (q, k, v), 3, False)


def _extremes(rng: np.random.Generator) -> Iterator[Case]:
    """Whole numbers and d_k = 4 keep the levels exact. Near −10,000, a causal mask that fills in −10,000 hides nothing."""
    for i, (title, levels, step) in enumerate(
        (
            *(("causal, scores near −10,000", [level] * 3, 0.0) for level in (-9998.0, -9997.0, -9999.0)),
            ("scores near −200", [-200.0] * 3, 0.0),
            ("scores near 9,000", [9000.0] * 3, 0.0),
            *(("each query at a level of its own", [up, 0, -up], 0.0) for up in (9000.0, -500.0, 1000.0)),
            ("scores that rise from −9,000 to 9,000", [1.0] * 3, 3000.0),
            ("scores that fall from 9,000 to −9,000", [1.0] * 3, -3000.0),
            # what is hidden lies far above what is seen, in the same tile
            ("causal, scores that rise from −9,000 to 9,000", [1.0] * 3, 3000.0),
        )
    ):
        q, k, v = qkv(rng, (1, 2, 3, 7, 4, 2))
        q[..., 0] = levels
        k[..., 0] = 2 * step * (np.arange(7) - 3) if step else 2.0
        yield _case(
            f"large-{i}", title, (q, k, v), 3, title.startswith("causal"), stage="extremes", rtol=2e-3, atol=2e-3
        )
    q, k, v = qkv(rng, (2, 2, 3, 7, 4, 2))
    q[..., 0], k[..., 0] = np.array([[1000.0, -1000], [-1000, 1000]])[:, :, None], 2.0
    yield _case(
        "heads",
        "each head of each item at a level of its own",
        (q, k, v),
        3,
        False,
        stage="extremes",
        rtol=2e-3,
        atol=2e-3,
    )


SCORES = SCALED.format("math.sqrt(q.shape[-1])")
MAXIMUM = "m_new = torch.maximum(m, scores.amax(dim=-1))"
EXPS = "rescale, p = (torch.exp(m - m_new), torch.exp(scores - m_new[..., None]))"
SUM, ACC = "l = l * rescale + p.sum(dim=-1)", "o = o * rescale[..., None] + p @ v_tile"
OUTPUT, LSE = "outputs.append(o / l[..., None])", "logsumexps.append(m + torch.log(l))"
START = "m = q_tile.new_full(q_tile.shape[:-1], -math.inf)"

KEPT = patch("m = m_new\n", "pass\n")
OWN_MAXIMUM = patch(EXPS, "rescale, p = (torch.exp(m - m_new), torch.exp(scores - scores.amax(dim=-1)[..., None]))")
OWN_PARTS = patch(
    MAXIMUM,
    "top_tile = scores.amax(dim=-1)\n            m_new = torch.maximum(m, top_tile)",
    EXPS,
    "rescale, p = (torch.exp(m - m_new), torch.exp(scores - top_tile[..., None]) * torch.exp(top_tile - m_new)[..., None])",
)
FULL_TILES = patch(
    "for top in range(0, t_q, block_size):", "for top in range(0, t_q // block_size * block_size, block_size):"
)
BACKWARDS = patch(
    KEY_LOOP, KEY_LOOP.replace("range(0, visible, block_size)", "reversed(range(0, visible, block_size))")
)
ZERO_KEPT = BACKWARDS + patch(MAXIMUM, f"{MAXIMUM}\n            m_new = m_new.masked_fill(m_new == -math.inf, 0.0)")
ZERO_OF_TILE = patch(
    MAXIMUM,
    "top_tile = scores.amax(dim=-1)\n            m_new = torch.maximum(m, top_tile.masked_fill(top_tile == -math.inf, 0.0))",
)
REST = "q.new_zeros(*q.shape[:2], t_q % block_size{})"


def softmax_of_tiles(merged: str):
    """Each tile's own softmax; merged: what becomes of them."""
    return patch(
        MAXIMUM,
        "m_new = scores.amax(dim=-1)",
        EXPS,
        "p = torch.softmax(scores, dim=-1).nan_to_num(0.0)",
        SUM,
        "l = l + p.sum(dim=-1)" if "sum" in merged else "l = torch.ones_like(l)",
        ACC,
        "o = o + p @ v_tile",
    )


@exercise(
    points=5,
    minutes=35,
    difficulty=3,
    result_type="tensor",
    result_names=("output", "logsumexp"),
    forbids=("attention", "table"),
)
class tiled_attention:
    """Compute exact attention and each query's logsumexp, one tile of scores at a time."""

    def cases(rng):
        ln2 = float(np.log(2))
        q = np.array([[[[1.0]]]], np.float32)
        k = np.array([[[[ln2], [0.0], [2 * ln2], [0.0]]]], np.float32)
        v = np.array([[[[4.0], [8.0], [2.0], [0.0]]]], np.float32)
        yield _case("small", "one query, scores ln 2, 0, ln 4 and 0, two tiles", (q, k, v), 2, False)
        for key, title, sizes, block_size, causal in CASE_SIZES:
            yield _case(key, title, qkv(rng, sizes), block_size, causal)
        yield from _levels(rng)
        yield _case("float64", "float64", qkv(rng, (1, 2, 5, 6, 3, 2), np.float64), 4, False)
        for key, title, sizes, block_size, causal in small_memory():
            yield _case(key, title, qkv(rng, sizes), block_size, causal, options={"table": sizes[:4]}, show=False)
        key, title, sizes, block_size, fields = many_tiles()
        yield _case(key, title, qkv(rng, sizes), block_size, False, **fields)
        yield from _extremes(rng)
        yield on_another_device(_case("sizes", "all sizes different, causal", qkv(rng, (2, 3, 5, 7, 4, 6)), 3, True))

    hints = (
        "Take one tile of queries. What do you have to remember of the keys that have passed, so that the next tile of "
        "keys can be added?",
        "m, l and o of merge_partial, for each query of the tile. A new tile of scores raises m to m_new. What was summed before is "
        "multiplied by exp(m − m_new); the new terms are exp(scores − m_new). Divide by l once, after the last tile. A causal mask is made "
        "for each tile, from positions in the whole sequence. (`expand` makes a view without memory of its own and counts as nothing.)",
        "for top in range(0, T_q, block_size):\n    m, l, o = ____\n    for left in range(0, T_k, block_size):\n"
        "        scores = q[..., ____, :] @ k[..., ____, :].mT / ____\n        m_new = torch.maximum(m, ____)\n"
        "        p = torch.exp(scores - ____)\n        l = l * ____ + p.sum(-1)\n        o = o * ____ + p @ ____\n"
        "    output = o / ____; logsumexp = m + ____",
    )

    mistakes = {
        "MK4": tuple(
            patch("-math.inf)\n            m_new", f"{fill})\n            m_new") + more
            for fill in (-10000.0, -1000.0, -100.0)
            for more in (patch(), NO_SKIP)
        ),
        "MK3": (
            patch("-math.inf)\n            m_new", "0.0)\n            m_new"),
            patch("-math.inf)\n            m_new", "0.0)\n            m_new") + NO_SKIP,
        ),
        "FL1": patch(ACC, "o = o + p @ v_tile"),
        "FL2": patch(SUM, "l = l + p.sum(dim=-1)", ACC, "o = o + p @ v_tile"),
        "FL3": (OWN_MAXIMUM, OWN_MAXIMUM + NO_SKIP),
        "FL4": (patch(START, "m = q_tile.new_zeros(q_tile.shape[:-1])"),),
        "FL5": (OWN_PARTS, OWN_PARTS + NO_SKIP),
        "OS8": tuple(way + more for way in (ZERO_KEPT, ZERO_OF_TILE) for more in (patch(), NO_SKIP)),
        "SD1": patch(SCORES, "scores = q_tile @ k_tile.mT"),
        "SD2": patch(SCORES, SCALED.format("q.shape[-1]")),
        "SD5": patch(SCORES, "scores = q_tile @ k_tile.mT * math.sqrt(q.shape[-1])"),
        **MASK_MISTAKES,
        "TI7": mistake(
            patch(LSE, "logsumexps.append(l)"),
            patch(LSE, "logsumexps.append(m + torch.log2(l))"),
            patch(LSE, "logsumexps.append(m * torch.exp(l))"),
            patch(LSE, "logsumexps.append(m)"),
            patch(LSE, "logsumexps.append(torch.log(l))"),
            patch(LSE, "logsumexps.append(m + l)"),
            patch(LSE, "logsumexps.append((m + torch.log(l)) * math.sqrt(q.shape[-1]))"),
            says="The second result is not the logsumexp of the scaled scores: it should be m + log l, with the natural logarithm.",
            why="""The logsumexp of a row is log Σ exp(score). With the maximum taken out, it is m + log Σ exp(score − m) = m + log l, of
            the scores that softmax sees, q kᵀ / √d_k. The backward pass needs both parts in this one number: m alone is the largest
            score, and log l alone is too small by m. Kernels often compute in base 2, since exp2 is the faster instruction, and convert
            at the end. For one key it is that key's score.""",
        ),
        "TT14": patch(OUTPUT, "outputs.append(o)"),
        "OS3": (
            patch(ACC, "o = (o * rescale[..., None] + p @ v_tile) / l[..., None]", OUTPUT, "outputs.append(o)"),
            patch(ACC, "o = (o * rescale[..., None] + p @ v_tile) / l[..., None]"),
            patch(ACC, "o = (o * rescale[..., None] + p @ v_tile) / l[..., None]") + NO_SKIP,
            softmax_of_tiles("mean"),
            softmax_of_tiles("mean of sums"),
            patch(
                MAXIMUM,
                "m_new = scores.amax(dim=-1)",
                EXPS,
                "rescale, p = (1.0, torch.softmax(scores, dim=-1).nan_to_num(0.0))",
                SUM,
                "l = l + p.sum(dim=-1)",
                ACC,
                "o = o + p @ v_tile",
            ),
            patch(ACC, "o = o * rescale[..., None] + p @ v_tile / l[..., None]", OUTPUT, "outputs.append(o)"),
            *(
                patch(ACC, "o = o * rescale[..., None] + p / p.sum(dim=-1, keepdim=True).clamp(min=1e-30) @ v_tile")
                + more
                for more in (patch(), NO_SKIP)
            ),
            patch(
                ACC,
                "o = o * rescale[..., None] + p / p.sum(dim=-1, keepdim=True).clamp(min=1e-30) @ v_tile",
                OUTPUT,
                "outputs.append(o)",
            ),
            patch(ACC, "o = o * rescale[..., None] + p / p.sum(dim=-1, keepdim=True) @ v_tile") + NO_SKIP,
        ),
        "OS2": patch(EXPS, EXPS.replace("m - m_new)", "m_new - m)")),
        "TI13": (*(patch(MAXIMUM, "m_new = scores.amax(dim=-1)") + more for more in (patch(), NO_SKIP)),),
        "TI21": (
            *(
                kept + more
                for kept in (KEPT + patch(LSE, LSE.replace("m +", "m_new +")), KEPT)
                for more in (patch(), NO_SKIP)
            ),
        ),
        "SM6": (
            patch("scores.amax(dim=-1)", "scores.max()"),
            patch("scores.amax(dim=-1)", "scores.amax(dim=(-2, -1)).unsqueeze(-1)"),
        ),
        "TI20": (
            *MASK_MISTAKES["TI20"],
            patch(KEY_LOOP, KEY_LOOP.replace("visible", "min(visible, t_q)")),
            patch(KEY_LOOP, KEY_LOOP.replace("visible", "t_q if not causal else visible")),
        ),
        "TI2": (
            *MASK_MISTAKES["TI2"],
            FULL_TILES,
            FULL_TILES
            + patch(
                "torch.cat(outputs",
                f"torch.cat((*outputs, {REST.format(', v.shape[-1]')})",
                "torch.cat(logsumexps",
                f"torch.cat((*logsumexps, {REST.format('')})",
            ),
        ),
        "TI18": patch(SUM, "l = l + p.sum(dim=-1)"),
        "TT8": patch(SCORES, SCALED.format("math.sqrt(v.shape[-1])")),
    }
