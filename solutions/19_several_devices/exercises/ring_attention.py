"""Tokens over ranks: keys and values go around a ring, and each rank merges what passes."""

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from .. import readings


@exercise(points=5, minutes=25, difficulty=3, container="tensor", forbids=("attention", "table"))
class ring_attention:
    """Attend to the keys of all ranks while every rank holds one chunk of them at a time."""

    def cases(rng):
        def case(key, title, b, h, t, d, size, causal=False):
            args = tuple(tuple(Tensor(rng.normal(size=(b, h, t, d)).astype(np.float32)) for _ in range(size)) for _ in range(3))
            return Case(key, title, args, {"causal": True} if causal else {}, probe="probes.ring", reading=readings.ring)

        yield case("small", "two ranks with one token each", 1, 1, 1, 2, 2)
        yield case("sizes", "three ranks with four tokens each", 2, 3, 4, 5, 3)
        yield case("causal", "the same, causal", 2, 3, 4, 5, 3, True)
        yield case("seen-again", "the same sizes, new numbers", 2, 3, 4, 5, 3, True)
        yield case("alone", "one rank", 1, 2, 3, 4, 1, True)
        yield case("four", "four ranks", 1, 1, 5, 6, 4)

    hints = ("a", "b", "____")
    mistakes = {
        "RA1": mistake(patch("k, v = exchange((k, v))", "k, v = (exchange((k, v))[0], v)"), says="v stayed.", why="…"),
        "RA2": mistake(patch("source = (rank - step) % world_size", "source = rank"), says="local mask", why="…"),
        "RA3": mistake(patch("range(world_size)", "range(world_size + 1)"), says="one call too many", why="…"),
    }
