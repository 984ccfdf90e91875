"""The weights of some heads cut out of a fused module: rows of one weight, columns of the other."""

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from .. import readings


@exercise(points=2, minutes=10, difficulty=2, container="tensor", parts=("qkv_shard", "proj_shard"), forbids=("attention",))
class head_shard:
    """Cut from the weights of all heads those of one rank."""

    def cases(rng):
        def case(key, title, d, heads, rank, size, **more):
            qkv, proj = (np.round(rng.normal(size=(n * d, d)), 2).astype(np.float32) for n in (3, 1))
            return Case(key, title, (Tensor(qkv), Tensor(proj), heads, rank, size), probe="probes.shard", reading=readings.shard, **more)

        yield case("small", "two heads of one number, rank 0 of 2", 2, 2, 0, 2)
        yield case("sizes", "four heads of three numbers, rank 1 of 2", 12, 4, 1, 2)
        yield case("seen-again", "the same sizes, new numbers", 12, 4, 1, 2)
        yield case("alone", "one rank has all heads", 4, 2, 0, 1)
        yield case("uneven", "three heads on two ranks", 6, 3, 0, 2, raises="ValueError")

    hints = ("a", "b", "____")
    mistakes = {
        "HS1": mistake(
            patch("torch.cat([q[own], k[own], v[own]])", "qkv_weight.chunk(world_size)[rank].clone()"),
            says="One block of consecutive rows was cut from qkv_weight; q, k and v should each be cut.", why="…",
        ),
        "HS2": mistake(patch("proj_weight[:, own]", "proj_weight[own]"),
            says="Rows of proj_weight were cut; a head's numbers should meet its columns.", why="…"),
        "HS3": mistake(patch(".clone()", ""), says="proj_shard is a view of the whole weight; a copy was asked for.", why="…"),
    }
