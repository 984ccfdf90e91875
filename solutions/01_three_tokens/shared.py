"""Lesson 01: the table of its three tokens, and inputs that several exercises need."""

import numpy as np

Array = np.ndarray

TABLE_Q = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
TABLE_K = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
TABLE_V = np.array([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])
TABLE_SCORES = TABLE_Q @ TABLE_K.T


def nonzero_integers(rng: np.random.Generator, *shape: int) -> Array:
    """Small whole numbers without 0, so that nothing drops out of a product."""
    return rng.integers(1, 5, size=shape) * rng.choice([-1.0, 1.0], size=shape)


def float32_normal(rng: np.random.Generator, *shape: int) -> Array:
    """Standard-normal numbers in float32."""
    return rng.normal(size=shape).astype(np.float32)


def describe_difference(expected: Array, got: Array) -> str | None:
    """For properties: what is said of two arrays that ought to be the same, None where they are."""
    if expected.shape != got.shape:
        return f"shapes {expected.shape} and {got.shape} differ."
    difference = float(np.abs(expected - got).max(initial=0.0))
    return None if difference < 1e-3 else f"the two differ by up to {difference:.4g}."
