"""A second, independent computation of the model of lesson 17: NumPy, float64, one head at a time, rotation by complex numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def logits(
    weights: Mapping[str, Any], ids: Sequence[int], *, heads: int, kv_heads: int, base: float, eps: float
) -> np.ndarray:
    """(T, vocabulary): what a stack of blocks says of the token after each position. weights: by the course's names."""
    w = {name: np.asarray(array, dtype=np.float64) for name, array in weights.items()}
    x = w["token.weight"][list(ids)]
    layers = 1 + max(int(name.split(".")[1]) for name in w if name.startswith("blocks."))
    for block in (f"blocks.{i}." for i in range(layers)):
        x = x + _attention(w, block + "attn.", _normed(x, w[block + "attn_norm.weight"], eps), heads, kv_heads, base)
        y = _normed(x, w[block + "mlp_norm.weight"], eps)
        gate = y @ w[block + "mlp.gate.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * (y @ w[block + "mlp.up.weight"].T)) @ w[block + "mlp.down.weight"].T
    return _normed(x, w["norm.weight"], eps) @ w["token.weight"].T


def _normed(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    return np.stack([row / np.sqrt(row @ row / len(row) + eps) for row in x]) * weight


def _attention(
    w: Mapping[str, np.ndarray], name: str, x: np.ndarray, heads: int, kv_heads: int, base: float
) -> np.ndarray:
    size, shared = x.shape[1] // heads, heads // kv_heads
    turn = np.exp(1j * np.outer(np.arange(len(x)), base ** (-np.arange(0, size, 2) / size)))
    total = np.zeros_like(x)
    for head in range(heads):
        mine, theirs = slice(head * size, (head + 1) * size), slice(head // shared * size, (head // shared + 1) * size)
        q, k = (
            _complex(x @ w[f"{name}{part}.weight"][rows].T) * turn for part, rows in (("w_q", mine), ("w_k", theirs))
        )
        scores = (q @ k.conj().T).real / np.sqrt(
            size
        )  # the real part of a · conj(b), summed over pairs, is the dot product
        for i, row in enumerate(scores):
            seen = np.exp(row[: i + 1] - row[: i + 1].max())
            value = (seen / seen.sum()) @ (x[: i + 1] @ w[f"{name}w_v.weight"][theirs].T)
            total[i] += w[f"{name}w_o.weight"][:, mine] @ value
    return total


def _complex(x: np.ndarray) -> np.ndarray:
    """(T, d / 2): neighboring pairs as complex numbers."""
    return x[:, 0::2] + 1j * x[:, 1::2]
