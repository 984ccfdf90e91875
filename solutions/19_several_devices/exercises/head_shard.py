"""The weights of some heads cut out of a fused module: rows of one weight, columns of the other."""

from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from ...shared.library import on_another_device
from .. import readings

UNEVEN = """if num_heads % world_size:
        raise ValueError(f'num_heads = {num_heads} is not divisible by world_size = {world_size}')"""
OWN = "own = slice(rank * width, (rank + 1) * width)"
QKV, PROJ = "qkv_shard = torch.cat([q[own], k[own], v[own]])", "proj_shard = proj_weight[:, own].clone()"


@exercise(
    points=2,
    minutes=10,
    difficulty=2,
    result_type="tensor",
    result_names=("qkv_shard", "proj_shard"),
    forbids=("attention",),
)
class head_shard:
    """Cut from the weights of all heads those of one rank."""

    def cases(rng):
        def case(
            key: str,
            title: str,
            d_model: int,
            heads: int,
            rank: int,
            size: int,
            *,
            dtype: str = "float32",
            raises: str | None = None,
            **options: Any,
        ) -> Case:
            weights = (Tensor(np.round(rng.normal(size=(n * d_model, d_model)), 2), dtype) for n in (3, 1))
            return Case(
                key,
                title,
                (*weights, heads, rank, size),
                probe="probes.shard",
                reading=readings.shard,
                raises=raises,
                options=options,
            )

        yield case("small", "two heads of one number, rank 0 of two", 2, 2, 0, 2)
        yield case("sizes", "six heads of two numbers, rank 1 of three", 12, 6, 1, 3)
        yield case("seen-again", "the same sizes, new numbers", 12, 6, 1, 3)
        yield case("first", "four heads of three numbers, rank 0 of two", 12, 4, 0, 2)
        yield case("last", "four heads of three numbers, rank 1 of two", 12, 4, 1, 2)
        yield case("one each", "four heads of two numbers, rank 2 of four", 8, 4, 2, 4)
        yield case("last of four", "four heads of two numbers, rank 3 of four", 8, 4, 3, 4)
        yield case("single", "six heads of one number, rank 1 of three", 6, 6, 1, 3)
        yield case("alone", "one rank, which has all heads", 4, 2, 0, 1)
        yield case("alone again", "one rank, which has all three heads", 3, 3, 0, 1)
        yield case("one head", "one rank and one head", 5, 1, 0, 1)
        yield case("double", "float64: six heads of three numbers, rank 0 of three", 18, 6, 0, 3, dtype="float64")
        yield case("named", "all inputs passed by name", 8, 4, 1, 2, by_name=True)
        yield on_another_device(case("sizes", "six heads of two numbers, rank 1 of three", 12, 6, 1, 3))
        for d_model, heads, rank, size in ((6, 3, 0, 2), (12, 4, 2, 3), (10, 5, 1, 2), (8, 2, 0, 4)):
            title = f"{heads} heads on {size} ranks"
            yield case(f"uneven-{heads}-{size}", title, d_model, heads, rank, size, raises="ValueError")

    hints = (
        "The first d_model rows of `qkv_weight` make q. Which of *those* belong to this rank's heads, and where do they come again?",
        "`nn.Linear` computes x @ weight.T. What a head computes is made by rows of `qkv_weight`: cut q, k and v apart, and take the same "
        "rows of each. What a head passes on meets columns of `proj_weight`. Slices are views: `torch.cat` copies, and so does `clone`.",
        "width = ____ // world_size  # numbers of this rank's heads, side by side\n"
        "own = slice(rank * width, ____)\n"
        "q, k, v = qkv_weight.chunk(3)\n"
        "return torch.cat([____, ____, ____]), proj_weight[____].clone()",
    )

    mistakes = {
        "HS1": mistake(
            patch(QKV, "qkv_shard = qkv_weight.chunk(world_size)[rank].clone()"),
            patch(QKV, "qkv_shard = qkv_weight[rank * 3 * width:(rank + 1) * 3 * width].clone()"),
            says="One block of consecutive rows was cut from qkv_weight; the same rows should be cut from q, from k and from v.",
            why="""The fused weight has all rows of q, then all of k, then all of v. Its first half is every head's queries and half of
            the keys: with two ranks, rank 0 would have q and the first keys, rank 1 the other keys and all values. The shape is right,
            which is why nothing complains.""",
        ),
        "HS2": mistake(
            patch(PROJ, "proj_shard = proj_weight[own].clone()"),
            patch(PROJ, "proj_shard = proj_weight[own].T.clone()"),
            says="Rows of proj_weight were cut; this rank's heads should keep its columns.",
            why="""`nn.Linear` computes x @ weight.T, so an input number meets a column of the weight, an output number is a row. The
            heads are what goes *into* `proj`: this rank's heads meet their columns and add to every number of the output. Megatron-LM
            calls the first cut column-parallel and the second row-parallel, after the transposed weights of the formula x W.""",
        ),
        "HS3": mistake(
            patch(PROJ, "proj_shard = proj_weight[:, own]"),
            patch(QKV, "qkv_shard = qkv_weight.unflatten(0, (3, -1))[:, own].flatten(0, 1)"),
            patch(QKV, "qkv_shard = qkv_weight.unflatten(0, (3, -1))[:, own].flatten(0, 1)", ".clone()", ""),
            patch(".clone()", ".contiguous()"),
            says="A shard lies in the memory of the whole weight; it should be a copy.",
            why="""A slice is a view: it shows a part of the memory and keeps all of it alive. A rank would go on holding every head,
            which is what sharding is to avoid, and a step of training on the shard would change the whole. `flatten`, `reshape` and
            `contiguous` copy where they have to and not otherwise, so that with one rank nothing is copied. `clone` always copies.""",
        ),
        "HS4": mistake(
            patch(OWN, "own = slice(rank, None, world_size)"),
            patch(
                OWN,
                "own = torch.arange(proj_weight.shape[1]).unflatten(0, (num_heads, -1))[rank::world_size].flatten()",
            ),
            says="Every world_size-th number or head was taken; a rank's heads and their numbers should be consecutive.",
            why="""Head h has the numbers h · d_head to (h + 1) · d_head, and rank r has num_heads / world_size heads in a row. With every
            world_size-th number, a rank gets a piece of every head and no head whole: dot products need all d_head numbers of a head.
            Which rank has which head is a convention, and all that read or write shards have to share it: rank 0 has the first.""",
        ),
        "HS8": mistake(
            patch(UNEVEN, ""),
            patch(UNEVEN, UNEVEN.replace("num_heads % world_size", "proj_weight.shape[0] % world_size")),
            patch(UNEVEN, UNEVEN.replace("num_heads % world_size", "num_heads < world_size")),
            patch(UNEVEN, UNEVEN.replace("num_heads % world_size", "rank >= world_size")),
            says="Heads that do not divide evenly among the ranks are not refused with ValueError, or not always.",
            why="""Three heads of two numbers on two ranks: d_model = 6 can be halved, and the cut goes through the middle of head 1.
            Every shape fits and every number is wrong. It is num_heads that has to be divisible.""",
        ),
        "HS11": mistake(
            patch(
                QKV,
                "local = num_heads // world_size\n"
                "    qkv_shard = torch.stack([part[own].unflatten(0, (local, -1)) for part in (q, k, v)], dim=1).flatten(0, 2)",
            ),
            says="The shard is sorted by heads, each with its q, k and v; it should have all of this rank's q, then k, then v.",
            why="""With q, k, v of each head together, cutting the shard in three gives heads and not parts. The order of the whole
            weight, q, k, v, is the order of each shard.""",
        ),
    }
