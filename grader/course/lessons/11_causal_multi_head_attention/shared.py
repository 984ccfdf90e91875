"""Lesson 11: weights that attention is given, alone and inside a block."""

import numpy as np


def weights_of(rng: np.random.Generator, d: int, size: float = 1.0) -> dict[str, np.ndarray]:
    """qkv.weight (3 · d, d) and proj.weight (d, d), normal numbers of that size."""
    shapes = {"qkv.weight": (3 * d, d), "proj.weight": (d, d)}
    return {name: (size * rng.normal(size=shape)).astype(np.float32) for name, shape in shapes.items()}
