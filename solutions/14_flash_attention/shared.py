"""Inputs of attention in tiles, forwards and backwards, and mistakes that both can hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from grader.course.declare import Tensor, mistake, patch

Array = np.ndarray

# Where memory is judged: many tiles, one item and one head, so that a mask shared by all is as large as the score matrix.
T_Q, T_K, BLOCK = 33, 37, 10
SCALED = "scores = q_tile @ k_tile.mT / {}"
HIDDEN = "columns > rows[:, None]"
OFFSET = "device=q.device) + (t_k - t_q)"
VISIBLE = "visible = top + q_tile.shape[-2] + t_k - t_q if causal else t_k"
KEY_LOOP = "for left in range(0, visible, block_size):"
NO_SKIP = patch(VISIBLE, "visible = t_k")  # tiles of the future are computed and masked like others
CAUSAL = "if causal:\n                columns"

# key, title, (B, H, T_q, T_k, d_k, d_v), block_size, causal
CASE_SIZES = (
    ("sizes", "all sizes different, ragged tiles", (2, 3, 5, 7, 4, 6), 3, False),
    ("seen-again", "the same sizes, new numbers", (2, 3, 5, 7, 4, 6), 3, False),
    ("causal", "causal, as many queries as keys", (2, 2, 7, 7, 4, 3), 3, True),
    ("causal again", "the same, new numbers", (2, 2, 7, 7, 4, 3), 3, True),
    ("later queries", "causal, the queries are the last 4 of 9 positions", (1, 2, 4, 9, 3, 5), 3, True),
    ("later again", "causal, the queries are the last 5 of 11 positions", (2, 1, 5, 11, 2, 4), 4, True),
    ("one query", "causal, one query after eight keys", (1, 2, 1, 9, 4, 2), 4, True),
    ("one tile", "tiles larger than everything, causal", (2, 1, 3, 5, 4, 2), 64, True),
    ("wide tile", "tiles larger than everything", (2, 2, 3, 5, 2, 4), 16, False),
    ("single", "tiles of one query and one key", (1, 2, 2, 3, 4, 5), 1, False),
    ("more queries", "more queries than keys", (1, 2, 7, 4, 3, 2), 3, False),
    ("one key", "one key", (2, 2, 5, 1, 3, 4), 2, False),
)


def qkv(rng: np.random.Generator, sizes: tuple[int, ...], dtype: type = np.float32) -> tuple[Array, Array, Array]:
    """q, k, v of B, H, T_q, T_k, d_k, d_v; scores of a standard deviation of 2."""
    b, h, t_q, t_k, d_k, d_v = sizes
    shapes = (t_q, d_k), (t_k, d_k), (t_k, d_v)
    return tuple(
        (size * rng.normal(size=(b, h, *shape))).astype(dtype)
        for size, shape in zip((2.0, 1.0, 1.0), shapes, strict=True)
    )


def forward_pass(q: Array, k: Array, v: Array, causal: bool) -> tuple[Array, Array]:
    """output and logsumexp in float64, for what the backward pass is given."""
    t_q, t_k = q.shape[-2], k.shape[-2]
    scores = q.astype(float) @ k.astype(float).swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(t_q, t_k, t_k - t_q, dtype=bool), scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    p = np.exp(scores - top)
    total = p.sum(axis=-1, keepdims=True)
    return p / total @ v, (top + np.log(total))[..., 0]


def tensors(arrays: tuple[Array, ...]) -> tuple[Tensor, ...]:
    return tuple(map(Tensor, arrays))


def settings(key: str, block_size: int, causal: bool) -> tuple[tuple[Any, ...], dict[str, bool]]:
    """What follows the tensors in a call, by place and by name; causal goes by place in one case."""
    if key == "later again":
        return (block_size, causal), {}
    return (block_size,), {"causal": True} if causal else {}


def small_memory() -> Iterator[tuple[str, str, tuple[int, ...], int, bool]]:
    """The cases in which no tensor may be as large as the score matrix."""
    many = "{} queries, {} keys, tiles of {}"
    yield "memory", many.format(T_K, T_Q, BLOCK), (1, 1, T_K, T_Q, 3, 5), BLOCK, False
    yield "causal memory", f"causal, {many.format(T_Q, T_K, BLOCK)}", (1, 1, T_Q, T_K, 5, 3), BLOCK, True
    yield "batch memory", f"two items, two heads, {many.format(20, 23, 7)}", (2, 2, 20, 23, 2, 3), 7, True


def many_tiles() -> tuple[str, str, tuple[int, ...], int, dict[str, Any]]:
    """As a case of SIZES, and the case's other fields: one tile of queries and so many tiles of keys that what takes all keys at once
    shows by how little it does."""
    keys, block = 160, 2
    return (
        "many tiles",
        f"two queries, {keys} keys, tiles of {block}",
        (1, 1, 2, keys, 2, 1),
        block,
        {"options": {"tiles": (keys, block)}, "show": False, "costly": True},
    )


LOCAL = "columns - left > rows[:, None] - top - (t_k - t_q)"
SKIPPED = "visible = top + q_tile.shape[-2] if causal else t_k"
MASK_MISTAKES = {
    "MK1": patch(HIDDEN, "columns <= rows[:, None]"),
    "MK7": patch(HIDDEN, "columns >= rows[:, None]"),
    "MK8": (patch(HIDDEN, "columns > rows[:, None] + 1"), patch(HIDDEN, "columns > rows[:, None] + 1") + NO_SKIP),
    "MK13": (
        patch(VISIBLE, "visible = t_k", CAUSAL, "if False:\n                columns"),
        patch(CAUSAL, "if False:\n                columns"),
    ),
    "MK14": (
        patch(OFFSET, "device=q.device)", VISIBLE, "visible = min(top + q_tile.shape[-2], t_k) if causal else t_k"),
        patch(OFFSET, "device=q.device)"),
    ),
    "TI1": mistake(
        patch(HIDDEN, LOCAL),
        patch(HIDDEN, LOCAL) + NO_SKIP,
        patch(HIDDEN, "columns - left > rows[:, None] - top"),
        patch(HIDDEN, "columns - left > rows[:, None] - top") + NO_SKIP,
        *(
            patch("torch.arange(left, left + k_tile.shape[-2], device", "torch.arange(k_tile.shape[-2], device") + more
            for more in (patch(), NO_SKIP)
        ),
        says="Positions were counted inside the tile, of the keys or of both; they should be counted from the start of the sequence.",
        why="""`tril()` of a tile compares positions inside of the tile. Query 5 in a tile that begins at 4 is row 1 there, and key 2 of
        the first tile is column 2: in the past, although 2 > 1. If the keys alone are counted so, the first key of every tile is key 0
        and lies in everyone's past. Add the tile's start to both before comparing.""",
    ),
    "TI2": (
        patch(KEY_LOOP, "for left in range(0, visible // block_size * block_size, block_size):"),
        patch(KEY_LOOP, "for left in range(0, min(visible, t_k // block_size * block_size), block_size):"),
        patch(KEY_LOOP, "for left in range(0, min(visible, max(t_k - block_size + 1, 1)), block_size):"),
    ),
    "TI3": (
        patch(
            VISIBLE,
            "visible = top + t_k - t_q if causal else t_k",
            KEY_LOOP,
            "for left in range(0, max(visible, 1), block_size):",
        ),
        patch(VISIBLE, "visible = top + 1 + t_k - t_q if causal else t_k"),
    ),
    "TI20": (patch(VISIBLE, SKIPPED),),
}
