"""Weights of the four projections, and what is patched in several exercises of this lesson."""

import numpy as np

LAYERS = ("w_q", "w_k", "w_v", "w_o")

# Old and new text in the solutions of split_heads and merge_heads.
REFUSED = (
    """if d_model % num_heads:
        raise ValueError(f'd_model = {d_model} is not divisible by num_heads = {num_heads}')""",
    "",
)
VIEWED = ("b, t, num_heads, d_model // num_heads).transpose(1, 2)", "b, num_heads, t, d_model // num_heads)")
DEALT = (
    "t, num_heads, d_model // num_heads).transpose(1, 2)",
    "t, d_model // num_heads, num_heads).permute(0, 3, 1, 2)",
)
INTERLEAVED = ("transpose(1, 2)", "permute(0, 2, 3, 1)")


def state_of(rng: np.random.Generator, d: int) -> dict[str, np.ndarray]:
    """Weights and biases of the four projections, by the contract's names."""
    state = {}
    for name in LAYERS:
        state[f"{name}.weight"] = rng.normal(size=(d, d)).astype(np.float32)
        state[f"{name}.bias"] = rng.normal(size=d).astype(np.float32)
    return state
