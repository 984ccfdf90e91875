"""Heads over ranks: each rank attends with its own heads, and one sum puts the parts together."""

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from .. import readings


@exercise(points=3, minutes=12, difficulty=2, container="tensor", forbids=("attention",))
class tensor_parallel_attention:
    """Compute attention with this rank's heads, and join the ranks' parts with one all-reduce."""

    def cases(rng):
        def case(key, title, b, t, d, heads, size):
            x, qkv, proj = rng.normal(size=(b, t, d)), rng.normal(size=(3, heads, d // heads, d)), rng.normal(size=(d, d))
            qkv = [part.reshape(-1, d) for part in np.split(qkv, size, axis=1)]
            tensors = tuple(tuple(Tensor(np.ascontiguousarray(one, np.float32)) for one in parts) for parts in (qkv, np.split(proj, size, axis=1)))
            return Case(key, title, (Tensor(x.astype(np.float32)), *tensors), probe="probes.heads", reading=readings.heads,
                names=("x", "qkv_shard", "proj_shard"), options={"num_local_heads": heads // size})

        yield case("small", "two ranks with a head each", 1, 2, 2, 2, 2)
        yield case("sizes", "three ranks with two heads each", 2, 5, 18, 6, 3)
        yield case("seen-again", "the same sizes, new numbers", 2, 5, 18, 6, 3)
        yield case("alone", "one rank", 2, 3, 4, 2, 1)

    hints = ("a", "b", "____")
    mistakes = {
        "TA1": mistake(patch("all_reduce(partial)", "partial"), says="all_reduce was not called.", why="…"),
        "TA2": mistake(patch("all_reduce(partial)", "all_reduce(all_reduce(partial))"), says="all_reduce was called twice.", why="…"),
        "TA3": mistake(patch("scores.masked_fill(future, -math.inf)", "scores"), says="No causal mask.", why="…"),
    }
