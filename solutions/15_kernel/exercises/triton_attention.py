"""Attention in tiles, as one kernel."""

from __future__ import annotations

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch


def _tensors(rng, b, h, t_q, t_k, d):
    return tuple(Tensor(rng.normal(size=(b, h, t, d)).astype(np.float32)) for t in (t_q, t_k, t_k))


@exercise(points=5, minutes=28, difficulty=3, container="tensor")
class triton_attention:
    """Compute exact attention in one kernel, one tile of queries a program, one tile of keys after the other."""

    def cases(rng):
        yield Case("small", "three queries, five keys", _tensors(rng, 1, 1, 3, 5, 16))
        yield Case("sizes", "two items, three heads", _tensors(rng, 2, 3, 5, 7, 16))
        yield Case("again", "the same sizes, new numbers", _tensors(rng, 2, 3, 5, 7, 16))
        yield Case("causal", "causal, six queries, seven keys", _tensors(rng, 1, 2, 6, 7, 16), {"causal": True})

    mistakes = {
        "KN7": mistake(patch(" * scale", ""), says="The scores were not scaled.", why="Divide by √d."),
        "KN8": mistake(patch("o / l[:, None]", "o"), says="The output was not divided by l.", why="Weights sum to 1."),
        "KN9": mistake(patch("- m_new[:, None]", ""), says="The maximum was not subtracted.", why="Subtract m_new."),
    }
    hints = (
        "Which numbers does a program keep from one tile of keys to the next?",
        "m, l and o of lesson 14, in float32. What is beyond T_k gets a score of −∞ before softmax.",
        "m_new = tl.maximum(m, ____)\np = tl.exp(scores - ____)\nl = l * ____ + tl.sum(p, axis=1)\no = o * ____ + tl.dot(____, v_tile)",
    )
