"""Attention weights as the scores and the rollout read them."""

from collections.abc import Mapping

import numpy as np

from grader.course.declare import Tensor


def causal_weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Weights (B, H, T, T) whose rows sum to 1, nothing above the diagonal."""
    scores = 1.5 * rng.normal(size=(*shape, shape[-1]))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True)) * np.tri(shape[-1])
    return weights / weights.sum(axis=-1, keepdims=True)


def unmasked_weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """As causal_weights, without a mask, as an encoder has them."""
    weights = np.exp(1.5 * rng.normal(size=(*shape, shape[-1])))
    return weights / weights.sum(axis=-1, keepdims=True)


def one_hot_weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """As causal_weights, each row with all its weight in one place, as in a drawing: what a head looks at now and then is 0 elsewhere."""
    return np.eye(shape[-1])[rng.integers(np.arange(shape[-1]) + 1, size=shape)]


def tensor(array: np.ndarray) -> Tensor:
    return Tensor(array.astype(np.float32))


def attention_output(state: Mapping[str, np.ndarray], x: np.ndarray, heads: int) -> np.ndarray:
    """What lesson 09's attention gives for x (B, T, d_model), with these weights; worked out without torch."""
    b, t, d = x.shape
    q, k, v = (
        (x @ each.T).reshape(b, t, heads, -1).swapaxes(1, 2)
        for each in np.split(state["qkv.weight"].astype(np.float64), 3)
    )
    scores = np.where(np.tri(t, dtype=bool), q @ k.swapaxes(-1, -2) / np.sqrt(d // heads), -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return (weights @ v).swapaxes(1, 2).reshape(b, t, d) @ state["proj.weight"].T
