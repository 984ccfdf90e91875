# %% [markdown]
# # 19 · Attention over several devices
#
# **How do several devices compute one attention when none of them can hold it all?**
#
# **Before this lesson:** lesson 09 (the fused module of many heads) and lesson 14 (merging partial results).

# %% role="given" tags=["hide-input"]
import math

import torch
from torch import Tensor

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% [markdown]
# @exercise head_shard
#
# `qkv_weight` (3·d_model, d_model), `proj_weight` (d_model, d_model) → (3·d_model / world_size, d_model), (d_model, d_model / world_size)

# %% role="exercise" exercise="head_shard"
def head_shard(qkv_weight: Tensor, proj_weight: Tensor, num_heads: int, rank: int, world_size: int) -> tuple[Tensor, Tensor]:
    """One rank's share of the weights of a `CausalMultiHeadAttention`: its contiguous heads, in memory of their own.

    qkv_weight: (3 * d_model, d_model), the rows of q, then of k, then of v. proj_weight: (d_model, d_model).
    Returns: qkv_shard (3 * d_model / world_size, d_model), proj_shard (d_model, d_model / world_size).
    Raises:  ValueError where num_heads is not divisible by world_size.
    """
    # region solution
    if num_heads % world_size:
        raise ValueError(f"num_heads = {num_heads} is not divisible by world_size = {world_size}")
    width = proj_weight.shape[1] // world_size
    own = slice(rank * width, (rank + 1) * width)
    q, k, v = qkv_weight.chunk(3, dim=0)
    qkv_shard = torch.cat([q[own], k[own], v[own]])
    proj_shard = proj_weight[:, own].clone()
    return qkv_shard, proj_shard
    # endregion

# %% role="check" exercise="head_shard"
check(head_shard)

# %% [markdown]
# @exercise tensor_parallel_attention
#
# `x` (B, T, d_model), the shards of one rank → (B, T, d_model), on every rank

# %% role="exercise" exercise="tensor_parallel_attention"
def tensor_parallel_attention(x: Tensor, qkv_shard: Tensor, proj_shard: Tensor, num_local_heads: int, all_reduce) -> Tensor:
    """Causal attention of many heads, of which this rank computes its own.

    x: (B, T, d_model), the same on every rank. qkv_shard, proj_shard: as `head_shard` gives them.
    all_reduce(tensor): the sum of this tensor over all ranks, a new tensor; every rank calls it once.
    Returns: (B, T, d_model), the same on every rank: what the whole module gives.
    """
    # region solution
    q, k, v = (
        part.unflatten(-1, (num_local_heads, -1)).transpose(1, 2) for part in (x @ qkv_shard.mT).chunk(3, dim=-1)
    )
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
    weights = torch.softmax(scores.masked_fill(future, -math.inf), dim=-1)
    merged = (weights @ v).transpose(1, 2).flatten(2)
    partial = merged @ proj_shard.mT
    return all_reduce(partial)
    # endregion

# %% role="check" exercise="tensor_parallel_attention"
check(tensor_parallel_attention)

# %% [markdown]
# @exercise ring_attention
#
# `q`, `k`, `v` (B, H, T_local, d), one rank's chunk → (B, H, T_local, d)

# %% role="exercise" exercise="ring_attention"
def ring_attention(q: Tensor, k: Tensor, v: Tensor, rank: int, world_size: int, exchange, causal: bool = False) -> Tensor:
    """Attention of this rank's queries over the keys of all ranks, one chunk of keys and values at a time.

    q, k, v: (B, H, T_local, d); rank r has the tokens r * T_local to (r + 1) * T_local.
    exchange(tensors): gives a tuple of tensors to the next rank, and returns what the rank before gave; every rank calls it
        world_size − 1 times.
    causal: query i sees key j where j ≤ i, as positions in the whole sequence.
    Returns: (B, H, T_local, d).
    Source:  Liu, Zaharia and Abbeel 2023, "Ring Attention".
    """
    # region solution
    t = q.shape[-2]
    rows = rank * t + torch.arange(t, device=q.device)
    m = q.new_full(q.shape[:-1], -math.inf)
    l = q.new_zeros(q.shape[:-1])
    o = torch.zeros_like(q)
    for step in range(world_size):
        if step > 0:
            k, v = exchange((k, v))
        source = (rank - step) % world_size  # whose chunk this is
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if causal:
            columns = source * t + torch.arange(t, device=q.device)
            scores = scores.masked_fill(columns > rows[:, None], -math.inf)
        m_new = torch.maximum(m, scores.amax(dim=-1))  # finite from the first chunk on, which is this rank's own
        rescale = torch.exp(m - m_new)
        p = torch.exp(scores - m_new[..., None])
        l = l * rescale + p.sum(dim=-1)
        o = o * rescale[..., None] + p @ v
        m = m_new
    return o / l[..., None]
    # endregion

# %% role="check" exercise="ring_attention"
check(ring_attention)

# %% [markdown]
# ## What we keep
#
# …

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# …
#
# ## Cut for 60 minutes
#
# …
#
# ## Cut for 90 minutes
#
# …
#
# ## Mistakes to expect
#
# - head_shard HS1: …
# - head_shard HS2: …
# - tensor_parallel_attention TA1: …
# - tensor_parallel_attention TA2: …
# - ring_attention RA1: …
# - ring_attention RA2: …
#
# ## To discuss
#
# …
#
# ## On paper
#
# …
