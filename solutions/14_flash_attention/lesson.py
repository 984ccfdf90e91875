# %% [markdown]
# # 14 · Flash attention: the score matrix is never stored
#
# **Softmax needs every score of a row. How can it be exact when no more than a few of them are ever in memory?**
#
# **Before this lesson:** lesson 02 (why softmax subtracts the maximum), lesson 06 (causal masks), lesson 11 (memory traffic and the
# fused operator). One further part needs lesson 13.
#
# In lesson 11 you called `F.scaled_dot_product_attention`, and the T × T matrix of scores disappeared from memory. In this lesson you
# write the operator's algorithm yourself, **FlashAttention** (Dao et al. 2022), in plain PyTorch. Nothing is approximated; only the
# order of the computation changes. (Rabe and Staats had used the idea in 2021, to save memory alone.)

# %% role="given" tags=["hide-input"]
import itertools
import json
import math
import os
import tempfile
import time
import timeit
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% [markdown]
# How large is that matrix? A model with 32 heads meets these sizes in a *single* layer, for a single text:

# %% role="demo" tags=["nbval-check-output"]
for t in (1_024, 8_192, 131_072):
    matrix, output = 32 * t * t * 2, 32 * t * 128 * 2  # bytes: 32 heads, 2 bytes a number; d_head = 128
    print(f"{t:7,} tokens: the score matrices take {matrix / 2**30:8,.2f} GiB, the output {output / 2**30:.2f} GiB")

# %% [markdown]
# Nobody needs the **score matrix** itself. But softmax seems to force it into memory. The weight of a key is exp(score) divided by a
# sum over *all* keys of the row, so not even the first weight is known until the last score has been computed. (One row at a time
# would need only T scores. But then all of K and V is read again for every query. A later section counts this.)
#
# ## One row in two tiles, by hand
#
# "The cat sat on the mat because **it** was comfortable." Let *it* look at four words, with one number per word as its value:
#
# | | cat | sat | mat | because |
# |---|---|---|---|---|
# | score | ln 2 | 0 | ln 4 | 0 |
# | exp(score) | 2 | 1 | 4 | 1 |
# | value | 4 | 8 | 2 | 0 |
#
# All at once, the exponentials sum to 8 and the output is (2 · 4 + 1 · 8 + 4 · 2 + 1 · 0) / 8 = 3. Now suppose that only two scores fit
# into memory. We work through the row in pieces, called **tiles**: first *cat* and *sat*, then *mat* and *because*. As in lesson 02 we
# subtract the largest score before taking exp; in the first tile that is ln 2. Three numbers then hold everything that the output
# needs from this tile:
#
# - the largest score **m** = ln 2,
# - the sum **l** = Σ exp(score − m) = 1 + ½ = 1½,
# - the weighted values **o** (the *accumulator*) = Σ exp(score − m) · value = 1 · 4 + ½ · 8 = 8, *not yet divided*.
#
# For the second tile they are m = ln 4, l = 1 + ¼ = 1¼ and o = 1 · 2 + ¼ · 0 = 2. We call such a triple a **partial result**.

# %% [markdown]
# @predict
#
# Both tiles are done, and their scores are forgotten. You have (ln 2, 1½, 8) and (ln 4, 1¼, 2), and nothing else. Can you still get the
# output 3? What has to happen to the first triple?
#
# @answer
#
# Yes. The maximum over both tiles is ln 4. The first tile's sums are relative to ln 2, and so too large by the factor
# exp(ln 4 − ln 2) = 2. Halve both, and add: l = ½ · 1½ + 1¼ = 2 and o = ½ · 8 + 2 = 6. The output is 6 / 2 = 3.
#
# @wrong
#
# Added without a factor, (8 + 2) / (1½ + 1¼) = 3.64: *cat* and *sat* count twice as much as they should.

# %% role="demo"
scores = torch.tensor([2.0, 1.0, 4.0, 1.0]).log()
values = torch.tensor([4.0, 8.0, 2.0, 0.0])
figures.flash_attention.two_tiles(scores.numpy(), values.numpy(), words=["cat", "sat", "mat", "because"])

# %% [markdown]
# The reason fits on one line: exp(score − m_old) · exp(m_old − m_new) = exp(score − m_new). So when the maximum changes, we can
# multiply the *sum* by that factor and no longer need its terms. The weights themselves would take a second pass; the output does
# not. This is **online softmax** (Milakov and Gimelshein 2018, section 3).
# As a loop over tiles of one score each:

# %% role="demo" tags=["nbval-check-output"]
m, l, o = -math.inf, 0.0, 0.0
for score, value in zip(scores.tolist(), values.tolist()):
    m_new = max(m, score)
    rescale, p = math.exp(m - m_new), math.exp(score - m_new)  # at the first score: exp(−∞), which is 0
    m, l, o = m_new, l * rescale + p, o * rescale + p * value
    print(f"largest so far {m:.3f}, sum {l:.2f}, weighted values {o:.1f}, output if it ended here {o / l:.2f}")
assert abs(o / l - 3) < 1e-6

# %% [markdown]
# In your first exercise you merge any two partial results, for many queries at once. One case needs care. With a mask, a query may see
# no key of a tile. If that holds for both a and b, the difference of the maxima is −∞ − (−∞), which is NaN.

# %% [markdown]
# @exercise merge_partial
#
# `a` and `b`, each (m (..., T_q), l (..., T_q), o (..., T_q, d_v)) over keys that the other does not cover → (m, l,
# o) over the keys of both
#
# A partial result over no keys is (−∞, 0, 0). Either argument may be one, in some rows or in all of them, and it
# changes nothing; merging two of them gives exactly (−∞, 0, 0), with no NaN. Maxima may be as large as ±10,000.
# Nothing is divided yet.

# %% role="exercise" exercise="merge_partial"
Partial = tuple[Tensor, Tensor, Tensor]


def merge_partial(a: Partial, b: Partial) -> Partial:
    """Attention over two disjoint sets of keys, from what is known of each; nothing is divided yet.

    a, b: (m, l, o), where m (..., T_q) is the largest score, l (..., T_q) the sum of exp(score − m), o (..., T_q, d_v)
          the sum of exp(score − m) · value; over no keys (−∞, 0, 0).
    Returns: the same three over all keys of both, on the device of a and b.
    Source:  Milakov & Gimelshein 2018, "Online normalizer calculation for softmax"; Dao et al. 2022, section 3.1.
    """
    # region solution
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    m = torch.maximum(m_a, m_b)
    shift = m.masked_fill(m == -math.inf, 0.0)  # where neither has a key: exp(−∞ − 0) is 0, and exp(−∞ + ∞) is NaN
    scale_a, scale_b = torch.exp(m_a - shift), torch.exp(m_b - shift)
    l = l_a * scale_a + l_b * scale_b
    o = o_a * scale_a[..., None] + o_b * scale_b[..., None]
    return m, l, o
    # endregion

# %% role="check" exercise="merge_partial"
check(merge_partial)

# %% [markdown]
# The folded cell cuts 512 shuffled keys into pieces, merges these one by one and in pairs, and compares with softmax over all keys.

# %% role="payoff" exercise="merge_partial" tags=["hide-input"]
if passed(merge_partial):
    torch.manual_seed(14)
    scores, values = 4 * torch.randn(3, 512), torch.randn(512, 8)  # three queries
    whole, worst = torch.softmax(scores, dim=-1) @ values, 0.0
    for pieces in (2, 8, 64, 512):
        parts = []
        for keys in torch.randperm(512).chunk(pieces):
            m = scores[:, keys].amax(dim=-1)
            p = torch.exp(scores[:, keys] - m[:, None])
            parts.append((m, p.sum(dim=-1), p @ values[keys]))
        m, l, o = parts[0]
        for part in parts[1:]:
            m, l, o = merge_partial((m, l, o), part)
        while len(parts) > 1:
            parts = [merge_partial(*pair) for pair in zip(parts[::2], parts[1::2])]
        gaps = [(made[2] / made[1][:, None] - whole).abs().max().item() for made in ((m, l, o), parts[0])]
        worst = max(worst, *gaps)
        print(f"{pieces:3} pieces: off by {gaps[0]:.0e} one by one, {gaps[1]:.0e} in pairs")
    assert worst < 1e-5

# %% [markdown]
# However the keys are cut and merged, the output is the same up to rounding. So the pieces can be computed on different processors.
#
# ## Tiles over queries and keys
#
# The queries can be cut into tiles as well, since each query has its own row. The picture shows how FlashAttention-2 goes through the
# score matrix (Dao 2023, algorithm 1) and which memory holds what. One tile of queries stays in fast memory while all tiles of keys and
# values pass by. Each tile of scores is computed, used and discarded. Each query keeps only a partial result, divided once, at
# the end.

# %% role="demo"
figures.flash_attention.loop_order()

# %% [markdown]
# With a causal mask, a tile of scores may lie entirely in the future, and need not be computed. A tile on the diagonal is computed
# and masked. Positions are those in the *whole* sequence: query i sees key j where j ≤ i + T_k − T_q, as in lesson 06.

# %% [markdown]
# @predict
#
# A causal text is cut into 8 tiles of queries and 8 tiles of keys. How many of the 64 tiles of scores have to be computed? And how many
# of those need a mask?
#
# @answer
#
# 36: row r of the grid computes the tiles 0 to r, so 1 + 2 + … + 8 in all. The eight on the diagonal need a mask.
#
# @wrong
#
# 32 cuts the tiles on the diagonal in half. Such a tile is computed whole, and its future part thrown away.

# %% role="demo"
computed, masked = figures.flash_attention.tile_grid(tiles=8)
assert (computed, masked) == (36, 8)

# %% [markdown]
# The function also returns one number for each query, the **logsumexp** L = log Σ exp(score). From a partial result it
# is m + log l; for *it* above, ln 4 + ln 2 = ln 8. A weight is exp(score − L), so with L the backward pass needs no stored weights.

# %% [markdown]
# @exercise tiled_attention
#
# `q` (B, H, T_q, d_k), `k` (B, H, T_k, d_k), `v` (B, H, T_k, d_v), `block_size`, `causal` → (output (B, H, T_q, d_v),
# logsumexp (B, H, T_q))
#
# T_q and T_k need not be multiples of `block_size`, which may also be larger than both; a slice ends where the tensor does. With a
# causal mask T_k ≥ T_q; without one, T_q > T_k is allowed. Write it without the mask first, check, then add the mask: two `arange`s
# give a tile's positions. Use `merge_partial` or the loop's update from above.
#
# **No tensor that your code makes, masks included, may have T_q · T_k numbers or more per item and head, and keys are taken tile by
# tile.** The check watches every tensor and names the line; its sequences are several times as long as `block_size`. You may skip
# tiles of the future; if you don't, such a tile's own maximum is −∞: the loop's update bears that, a tile's own exp(score − m) does not.
# `F.scaled_dot_product_attention` and its relatives are not allowed, and the work stays in PyTorch.

# %% role="exercise" exercise="tiled_attention"
def tiled_attention(q: Tensor, k: Tensor, v: Tensor, block_size: int, causal: bool = False) -> tuple[Tensor, Tensor]:
    """Exact attention, one tile of scores at a time: no tensor has T_q · T_k entries.

    q: (B, H, T_q, d_k), k: (B, H, T_k, d_k), v: (B, H, T_k, d_v). causal: query i sees key j where j ≤ i + T_k − T_q.
    Returns: output (B, H, T_q, d_v), logsumexp (B, H, T_q) of the scaled scores, on the device of q, as all tensors on the way.
    Source:  Dao 2023, "FlashAttention-2", algorithm 1.
    """
    # region solution
    t_q, t_k = q.shape[-2], k.shape[-2]
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}; a tile needs at least one query and one key")
    if causal and t_k < t_q:
        raise ValueError(f"causal attention of {t_q} queries needs as many keys or more, and there are {t_k}")
    outputs, logsumexps = [], []
    for top in range(0, t_q, block_size):
        q_tile = q[..., top:top + block_size, :]
        rows = torch.arange(top, top + q_tile.shape[-2], device=q.device) + (t_k - t_q)  # each query's own position among the keys
        m = q_tile.new_full(q_tile.shape[:-1], -math.inf)
        l = q_tile.new_zeros(q_tile.shape[:-1])
        o = q_tile.new_zeros(*q_tile.shape[:-1], v.shape[-1])
        visible = top + q_tile.shape[-2] + t_k - t_q if causal else t_k  # the keys behind lie in the future of the whole tile
        for left in range(0, visible, block_size):
            k_tile, v_tile = k[..., left:left + block_size, :], v[..., left:left + block_size, :]
            scores = q_tile @ k_tile.mT / math.sqrt(q.shape[-1])
            if causal:
                columns = torch.arange(left, left + k_tile.shape[-2], device=q.device)
                scores = scores.masked_fill(columns > rows[:, None], -math.inf)
            m_new = torch.maximum(m, scores.amax(dim=-1))  # finite from the first tile on: every query sees key 0
            rescale, p = torch.exp(m - m_new), torch.exp(scores - m_new[..., None])
            l = l * rescale + p.sum(dim=-1)
            o = o * rescale[..., None] + p @ v_tile
            m = m_new
        outputs.append(o / l[..., None])
        logsumexps.append(m + torch.log(l))
    return torch.cat(outputs, dim=-2), torch.cat(logsumexps, dim=-1)
    # endregion

# %% role="check" exercise="tiled_attention"
check(tiled_attention)

# %% [markdown]
# ## Is it exact, and does it save memory?
#
# First the numbers, against PyTorch's own operator, at lengths that are no multiples of the tile size.

# %% role="payoff" exercise="tiled_attention"
if passed(tiled_attention):
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 37, 32), torch.randn(2, 4, 150, 32), torch.randn(2, 4, 150, 32)
    mask = torch.ones(37, 150, dtype=torch.bool).tril(150 - 37)
    for block_size, causal in itertools.product((16, 64), (False, True)):
        right = F.scaled_dot_product_attention(q, k, v, mask if causal else None)
        gap = (tiled_attention(q, k, v, block_size, causal)[0] - right).abs().max()
        print(f"tiles of {block_size}, causal {causal!s:5}: largest difference {gap:.0e}")
        assert gap < 1e-5

# %% [markdown]
# Then the memory. **Eager attention** computes the whole score matrix. The folded cell defines it, `Largest` for the largest tensor,
# and `peak_and_time`, which follows all allocations.

# %% role="demo" tags=["hide-input"]
class Largest(TorchDispatchMode):
    """Remembers how many numbers the largest tensor has that any operator makes inside the block."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor):
            self.numbers = max(self.numbers, made.numel())
        return made


def eager_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention with the whole score matrix. q, k, v: (B, H, T, d)."""
    hidden = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).triu(1)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1) @ v


os.environ["KINETO_LOG_LEVEL"] = "99"  # the profiler's own log stays out of the notebook


def peak_and_time(way, t):
    """MiB at the peak of way(q, k, v) for t tokens in eight heads of 64 numbers; seconds of a processor, the best of a few."""
    q, k, v = torch.randn(3, 1, 8, t, 64)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as record:
        way(q, k, v)
    with tempfile.TemporaryDirectory() as folder:
        record.export_chrome_trace(f"{folder}/record.json")
        events = json.loads(Path(folder, "record.json").read_text(encoding="utf-8"))["traceEvents"]
    pieces = sorted((event["ts"], event["args"]["Bytes"]) for event in events if event.get("name") == "[memory]")
    seconds = timeit.repeat(lambda: way(q, k, v), number=1, repeat=2 if t > 2048 else 5, timer=time.process_time)
    return max(itertools.accumulate(size for _, size in pieces)) / 2**20, min(seconds)

# %% role="payoff" exercise="tiled_attention"
if passed(tiled_attention):
    q, k, v = torch.randn(3, 1, 8, 1024, 64)
    ways = {"eager attention": eager_attention, "your tiles": lambda q, k, v: tiled_attention(q, k, v, 128, causal=True)}
    for name, way in ways.items():
        with Largest() as largest:
            way(q, k, v)
        each = largest.numbers / (8 * 1024)
        print(f"{name:16} largest tensor: {largest.numbers:9,} numbers, {each:5,.0f} for each query of each head")
    assert largest.numbers < 8 * 1024**2

# %% [markdown]
# In the course's solution the largest tensor is the output. A tile of scores has 8 · 128 · 128 = 131,072 numbers, however long the text
# is. Now peak and time against T. On logarithmic axes a power of T is a line, and its exponent the slope:

# %% role="payoff" exercise="tiled_attention" tags=["hide-input"]
if passed(tiled_attention):
    ways["fused operator"] = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    longest = {"eager attention": 2048, "your tiles": 4096, "fused operator": 8192}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for quieter times
    taken = {name: {t: peak_and_time(ways[name], t) for t in (256, 512, 1024, 2048, 4096, 8192) if t <= longest[name]} for name in ways}
    torch.set_num_threads(threads)
    slopes = figures.flash_attention.memory_and_time(taken)
    eager, tiles = (taken[name][2048][0] for name in ("eager attention", "your tiles"))
    assert slopes["eager attention"] > 1.9 > 1.2 > slopes["your tiles"] and 380 < eager < 400 and eager > 20 * tiles

# %% [markdown]
# At 2,048 tokens eager attention holds {{ eager:.0f }} MiB: scores, masked scores and weights, 128 MiB each, and the mask. Your tiles
# hold {{ tiles:.1f }} MiB, {{ eager / tiles:.0f }} times less. The operations still grow with T² for all three, since each query
# needs a score for each key that it may see. (Eager attention's time grows faster, because the
# system hands out its large matrices anew at each call. In short texts your loop itself costs, so your curve starts flatter.)

# %% [markdown]
# ## Which tile fits, and why it matters
#
# On a GPU tiles save time as well, because attention waits for memory (lesson 11), and a tile of scores that is used up in fast
# memory never travels. An A100 has 108 processors. Each has 192 KB of on-chip memory (**SRAM**), of which one program can have 163,
# and all of these together move about 19 TB/s. The **main memory (HBM)** moves 1.5 to 2.0 TB/s (Dao et al. 2022, section 2.1). What
# fits into 163 KB?

# %% role="demo" tags=["nbval-check-output"]
def held(queries, keys, d=64):
    """A model: bytes in fast memory for one tile of queries and one of keys. (FlashAttention-2 has o and scores in registers.)"""
    return 2 * d * (queries + 2 * keys) + 4 * queries * d + 4 * queries * keys  # q, k, v; o; scores


for queries, keys in ((32, 32), (64, 64), (128, 128), (256, 64), (256, 256)):
    print(f"tiles of {queries:3} queries and {keys:3} keys: {held(queries, keys) / 1024:3.0f} KB")
assert held(128, 128) < 163 * 1024 < held(256, 64)  # 163 KB: CUDA C++ Programming Guide, compute capability 8.0

# %% [markdown]
# By this count 128 × 128 fits, 256 × 64 does not. FlashAttention-2's code takes 128 × 128 at this head size. It keeps o and the scores
# in registers, so 256 × 64 did run, but 85% slower, says a comment there, "because of register spilling".
#
# Lesson 11 counted the best case: q, k and v are read once. Here the two loops decide how often.

# %% [markdown]
# @predict
#
# A larger fast memory has room for twice as many queries in a tile, or for twice as many keys. What makes K and V travel less?
#
# - **A** More queries in a tile.
# - **B** More keys in a tile.
# - **C** Either: both halve the number of tiles of scores.
#
# @answer
#
# **A.** All of K and V is read once for each tile of queries. Twice as many queries in each mean half as many tiles, and half the bytes.
#
# @wrong
#
# B and C change how many keys come at a time. But all of them come, once for each tile of queries.

# %% role="demo"
def traffic(t, d, queries):
    """Numbers read from or written to main memory: q and the output once, K and V once for each tile of queries."""
    return 2 * t * d + t // queries * 2 * t * d


t, d, sizes = 1024, 64, (16, 32, 64, 128, 256, 512, 1024)
three_kernels, once = 4 * t * t + 4 * t * d, 4 * t * d  # lesson 11's two counts: not fused; each tensor once
figures.flash_attention.traffic(
    sizes, [held(one, 64) / 1024 for one in sizes], [2 * traffic(t, d, one) / 2**20 for one in sizes],
    kernels=2 * three_kernels / 2**20, once=2 * once / 2**20,
)
assert traffic(t, d, 16) > three_kernels > 3 * traffic(t, d, 128) and traffic(t, d, 1024) == once

# %% [markdown]
# Tiles alone save nothing: with 16 queries per tile, K and V travel so often that lesson 11's three kernels move less (counted without
# the chip's caches). One query at a time moves {{ traffic(t, d, 1) / three_kernels:.0f; it > 20 }} times as much as the three kernels;
# tiles of 128 queries and 64 keys move {{ three_kernels / traffic(t, d, 128):.1f; 3 < it < 4 }} times less.
#
# So the size of the fast memory decides, and the room is best given to queries. Say that it holds M numbers, and that a tile has
# about d keys. Then q, o and the scores of one query are d numbers each, and there is room for about M / d queries. So K and V, T · d
# numbers each, are read about T · d / M times: the traffic grows like **T² d² / M**. Dao et al. prove this, and that no exact
# algorithm's traffic grows more slowly for all M from d to T · d (2022, theorem 2, proposition 3). Algorithms designed around such
# counts are **IO-aware**.

# %% [markdown]
# ## 131,072 tokens
#
# Now the length that looked hopeless. In float32 the score matrix of one head would take 64 GiB. We let the last 1,024 queries look
# at all keys; their rows alone would take 512 MiB. Each query is four times the key that it should find, so that this key's score
# is the largest. A token's value is its own place in the text, in 17 bits. Here are the places that come back:

# %% role="payoff" exercise="tiled_attention"
if passed(tiled_attention):
    t, bits = 131_072, torch.arange(17)
    k, places = torch.randn(1, 1, t, 64), torch.arange(t)
    wanted = torch.from_numpy(figures.flash_attention.written("FLASH", queries=1024, t=t))  # a place for each query
    values = (places[:, None] >> bits & 1).float()[None, None]  # (1, 1, t, 17)
    with Largest() as largest:
        output, _ = tiled_attention(4 * k[:, :, wanted], k, values, 1024, causal=True)
    found = (output[0, 0].round().long() << bits).sum(dim=-1)
    figures.flash_attention.found(found.numpy(), t, tile=1024)
    print(f"{(found == wanted).sum().item():,} of 1,024 are right; the largest tensor took {largest.numbers / 2**18:.0f} MiB")
    assert torch.equal(found, wanted)

# %% [markdown]
# ## Further: the backward pass in tiles
#
# Training needs gradients, and lesson 13's backward pass needs the weights, a T × T matrix again. For anyone who has done lesson 13 and
# wants to train with this function: an exercise, and an attention that autograd takes for a single operation.

# %% [markdown]
# FlashAttention does not keep the weights. It computes them *again*, tile by tile, when they are needed: this is called
# **recomputation**. With S for the scores, scaled and masked as in the forward pass:
#
# $$W_{ij} = e^{S_{ij}} / \sum_{j'} e^{S_{ij'}} = e^{S_{ij} - L_i}$$
#
# So one number for each query, the logsumexp, replaces the maximum and the sum of its whole row.
#
# One obstacle remains. The gradient of the scores is dS = W ⊙ (dW − D), where D_i = Σ_j W_ij dW_ij is lesson 13's weighted mean of a
# row. It runs over *all* keys of a query, and a tile has only some of them. But dW_ij = dO_i · V_j, and so
#
# $$D_i = \sum_j W_{ij}\,(dO_i \cdot V_j) = dO_i \cdot \sum_j W_{ij} V_j = dO_i \cdot O_i$$
#
# So D = rowsum(dO ⊙ O): multiply the two arrays entry by entry, and sum each row. Both are known before the first tile.
#
# By hand, with the four words from above and dO = 1: L = ln 8, so the weights are 2/8, 1/8, 4/8 and 1/8. D is dO times the output,
# 1 · 3 = 3. dW is the row of values, (4, 8, 2, 0). Then dS = W ⊙ (dW − 3) = (2 · 1, 1 · 5, 4 · (−1), 1 · (−3)) / 8 = (2, 5, −4, −3) / 8,
# and it sums to 0, as it must. Each entry needed only the score and value of its own word and two numbers of the row, ln 8 and 3.
# Autograd gives the same:

# %% role="demo" tags=["nbval-check-output"]
scores = torch.tensor([2.0, 1.0, 4.0, 1.0]).log().requires_grad_()
output = torch.softmax(scores, dim=0) @ torch.tensor([4.0, 8.0, 2.0, 0.0])
output.backward()
print("8 · dS =", [round(8 * number, 4) for number in scores.grad.tolist()])

# %% [markdown]
# The rest is lesson 13's last step, tile by tile. Think about which gradients of a tile are finished when the inner loop ends, and which
# go on collecting: a key is used by the queries of every tile, and a query by the keys of every tile.

# %% [markdown]
# @exercise tiled_attention_backward
#
# `q`, `k`, `v`, `output`, `logsumexp` as above, `grad_output` (B, H, T_q, d_v), `block_size`, `causal` → (grad_q, grad_k, grad_v),
# shaped as q, k and v
#
# The scores reach ±100. Small memory as before, no autograd, no finite differences, and no ready-made attention.

# %% role="exercise" exercise="tiled_attention_backward"
def tiled_attention_backward(
    q: Tensor, k: Tensor, v: Tensor, output: Tensor, logsumexp: Tensor, grad_output: Tensor, block_size: int, causal: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `tiled_attention`'s output, the weights computed again tile by tile.

    output, logsumexp: what `tiled_attention` returned; grad_output: shaped as output.
    Returns: grad_q, grad_k, grad_v, shaped as q, k and v, on their device.
    Source:  Dao 2023, "FlashAttention-2", algorithm 2.
    """
    # region solution
    t_q, t_k, root = q.shape[-2], k.shape[-2], math.sqrt(q.shape[-1])
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}; a tile needs at least one query and one key")
    if causal and t_k < t_q:
        raise ValueError(f"causal attention of {t_q} queries needs as many keys or more, and there are {t_k}")
    delta = (grad_output * output).sum(dim=-1)  # rowsum(dO ⊙ O), which equals rowsum(dW ⊙ W): lesson 13
    grad_q, grad_k, grad_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for top in range(0, t_q, block_size):
        at = slice(top, top + block_size)
        q_tile, g_tile = q[..., at, :], grad_output[..., at, :]
        rows = torch.arange(top, top + q_tile.shape[-2], device=q.device) + (t_k - t_q)
        visible = top + q_tile.shape[-2] + t_k - t_q if causal else t_k
        for left in range(0, visible, block_size):
            to = slice(left, left + block_size)
            k_tile, v_tile = k[..., to, :], v[..., to, :]
            scores = q_tile @ k_tile.mT / root
            if causal:
                columns = torch.arange(left, left + k_tile.shape[-2], device=q.device)
                scores = scores.masked_fill(columns > rows[:, None], -math.inf)
            weights = torch.exp(scores - logsumexp[..., at, None])
            grad_weights = g_tile @ v_tile.mT
            grad_scores = weights * (grad_weights - delta[..., at, None])
            grad_v[..., to, :] += weights.mT @ g_tile
            grad_q[..., at, :] += grad_scores @ k_tile / root
            grad_k[..., to, :] += grad_scores.mT @ q_tile / root
    return grad_q, grad_k, grad_v
    # endregion

# %% role="check" exercise="tiled_attention_backward"
check(tiled_attention_backward)

# %% [markdown]
# With your two functions, autograd can treat attention as a single operation. `forward` says what to keep, and `backward` gets it back.

# %% role="payoff" exercise="tiled_attention_backward"
if passed(tiled_attention) and passed(tiled_attention_backward):

    class Flash(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            output, logsumexp = tiled_attention(q, k, v, 64, causal=True)
            ctx.save_for_backward(q, k, v, output, logsumexp)
            return output

        @staticmethod
        def backward(ctx, grad_output):
            return tiled_attention_backward(*ctx.saved_tensors, grad_output, 64, causal=True)

# %% [markdown]
# The folded cell counts the bytes that a forward pass keeps for the backward pass. Both ways get the same q, k and v of 512 tokens in
# four heads, and the same gradient of the output.

# %% role="demo" tags=["hide-input"]
def kept_bytes(way, *inputs):
    """What the forward pass keeps for the backward pass, each stretch of memory once; and the gradients."""
    seen = {}

    def pack(tensor):
        seen[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    inputs = [one.clone().requires_grad_() for one in inputs]
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = way(*inputs)
    weighting = torch.arange(output.numel()).cos().view_as(output)  # some gradient that differs from entry to entry
    return sum(seen.values()), torch.autograd.grad(output, inputs, weighting)

# %% role="payoff" exercise="tiled_attention_backward"
if passed(tiled_attention) and passed(tiled_attention_backward):
    q, k, v = torch.randn(3, 1, 4, 512, 32)
    eager_bytes, right = kept_bytes(eager_attention, q, k, v)
    flash_bytes, mine = kept_bytes(Flash.apply, q, k, v)
    for name, one, other in zip(("dQ", "dK", "dV"), right, mine):
        gap = (one - other).abs().max()
        print(f"{name}: off by {gap:.0e} from autograd through eager attention; largest entry {one.abs().max():.1f}")
        assert gap < 1e-4
    print(f"kept for the backward pass: {eager_bytes / 2**20:.2f} MiB by eager attention, {flash_bytes / 2**20:.2f} MiB by yours")

# %% [markdown]
# The gradients agree. At 512 tokens eager attention keeps {{ eager_bytes / flash_bytes:.0f; it > 3 }} times as much as your functions, and
# the ratio about doubles each time T doubles. The price is arithmetic, because the scores are computed twice. (FlashAttention-2's backward
# pass has its outer loop over keys.)

# %% [markdown]
# ## Further: slips that random scores do not find
#
# Rows without any key are hard to get right, and published libraries have stumbled over them. For
# anyone who writes such code, or tests it: five slips, and the rows that catch each of them.

# %% [markdown]
# One report about what you have written in `merge_partial`, **Dao-AILab/flash-attention#2082**: its loop runs from the last tile of
# keys to the first, so the first may be empty. To avoid NaN, the code set the *kept* maximum of an empty tile to 0. When all later
# scores were far below 0, they vanished in exp, and whole heads came out as zeros. (The code below returns 0 / 0, NaN.) The maximum
# may be replaced by 0 where it is subtracted, but the maximum that is kept must stay −∞.
#
# Now break online softmax on purpose. Four slips are easy to make:
#
# - *no rescaling*: the sums stay as they are when the maximum grows;
# - *own maximum*: each tile subtracts its own maximum and not the running one;
# - *start at 0*: the running maximum starts at 0 and not at −∞;
# - *no guard*: nothing protects a first tile that is masked entirely. (From left to right a causal mask makes none.)
#
# A fifth, *0 is kept*, is the published one. The folded cell has the correct update, online softmax on one row in tiles of two, and each
# slip as a replacement of one of its parts.

# %% role="demo" tags=["hide-input"]
def guarded(m):
    """The maximum as it is subtracted: 0 where no key has been seen."""
    return 0.0 if m == -math.inf else m


def factor(m, m_new):
    """What the sums so far are multiplied by."""
    return math.exp(m - guarded(m_new))


def terms(s, m_new):
    """What the scores s of one tile add to the sum."""
    return torch.exp(s - guarded(m_new))


def kept(m_new):
    """The maximum that the next tile begins with."""
    return m_new


def one_row(scores, values, start=-math.inf, factor=factor, terms=terms, kept=kept):
    """The output of one query."""
    m, l, o = start, 0.0, 0.0
    for s, v in zip(scores.split(2), values.split(2)):
        m_new = max(m, s.max().item())
        rescale, p = factor(m, m_new), terms(s, m_new)
        l = l * rescale + p.sum().item()
        o = o * rescale + (p @ v).item()
        m = kept(m_new)
    return o / l if l else math.nan


slips = {
    "right": {},
    "no rescaling": {"factor": lambda m, m_new: 1.0},
    "own maximum": {"terms": lambda s, m_new: torch.exp(s - guarded(s.max().item()))},
    "start at 0": {"start": 0.0},
    "no guard": {"factor": lambda m, m_new: math.exp(m - m_new), "terms": lambda s, m_new: torch.exp(s - m_new)},
    "0 is kept": {"kept": guarded},
}

# %% [markdown]
# @predict
#
# Here are five rows of scores: rising (0, 1, 2, 3); falling (3, 2, 1, 0); low (−200, −201, −202, −203); a masked
# start (−∞, −∞, 1, 0); and a masked start before low scores (−∞, −∞, −200, −201), called *both* below. Which slip
# fails on which row?
#
# @answer
#
# Without rescaling, *rising* fails: it is the only row whose maximum grows after something has been summed. With the
# tile's own maximum, *falling* and *low* fail, because the later tile's maximum is below the running one. A start at
# 0 fails on both rows with low scores, since exp(−200) is 0 in float32. Without a guard both masked rows fail. The
# published slip fails on the last row alone. So every slip passes at least three of the five rows.
#
# @wrong
#
# Random scores would not find all five: some slips show only when every score is very negative, or when a whole tile is masked, and
# random scores are neither.

# %% role="demo" tags=["nbval-check-output"]
rows = {"rising": [0, 1, 2, 3], "falling": [3, 2, 1, 0], "low": [-200, -201, -202, -203]}
rows |= {"masked": [-math.inf, -math.inf, 1, 0], "both": [-math.inf, -math.inf, -200, -201]}
values, wrong = torch.tensor([1.0, 2.0, 3.0, 6.0]), {}
print(" " * 13, *(f"{row:>8}" for row in rows))
for slip, replaced in slips.items():
    made = {row: one_row(torch.tensor(scores, dtype=torch.float32), values, **replaced) for row, scores in rows.items()}
    right = made if slip == "right" else right
    wrong[slip] = [row for row in rows if not abs(made[row] - right[row]) < 1e-4]
    print(f"{slip:13}", *(f"{number:8.3f}" for number in made.values()))
assert list(wrong.values()) == [[], ["rising"], ["falling", "low"], ["low", "both"], ["masked", "both"], ["both"]]

# %% [markdown]
# Three of these rows catch all five slips: *rising*, *falling* and *both*. The checks of this lesson have such rows, and more: lengths
# that tiles do not divide, tiles that are larger than the text, fewer queries than keys.
#
# Two more reports on the same line: in **zhuzilin/ring-flash-attention#30** exp was taken of a difference that could be positive, and
# overflowed. In **flashinfer-ai/flashinfer#4450** −50,000 stood in place of −∞, and a row whose real scores were all below that came back
# as zeros.

# %% [markdown]
# ## Further: three versions of FlashAttention
#
# For anyone who reads the papers or chooses a library: what changed from one version to the next, in published numbers.

# %% [markdown]
# The three share the algorithm, and each fits it more closely to the machine:
#
# - **FlashAttention** (Dao et al. 2022): tiles, online softmax, and weights that the backward pass computes again. Published: 3 times the
#   training speed of GPT-2 at 1,024 tokens.
# - **FlashAttention-2** (Dao 2023): one tile of queries stays in place, the division comes once, at the end, and the work is also split
#   among the processors along the sequence. Published: about 2 times as fast as the first version, 50 to 73 % of an A100's peak.
# - **FlashAttention-3** (Shah et al. 2024): matrix products and softmax overlap in time, and numbers may have 8 bits. Published: in 16 bits
#   on an H100, 1.5 to 2 times as fast as the second version, up to 740 TFLOP/s, which is 75 % of the peak.
#
# You wrote the forward pass of the second. The same merge of partial results lets many processors share the keys of one long text while
# a model writes (Flash-Decoding, Dao et al. 2023), and lets several GPUs share a text that is too long for one (Ring Attention, Liu et
# al. 2023).

# %% [markdown]
# ## What we keep
#
# - Softmax needs all scores of a row, but not all at once: (m, l, o) is enough.
# - When the maximum changes, every sum is multiplied by exp(m_old − m_new). Divide once, at the end.
# - A row that has seen no key is (−∞, 0, 0). Guard the maximum where it is subtracted; the one that is kept stays −∞.
# - The result is exact, memory grows with T, and the number of operations still with T². Time is saved by moving fewer bytes: about
#   T² d² / M with a fast memory of M numbers.
#
# | step | shape |
# |---|---|
# | q; k; v | (B, H, T_q, d_k); (B, H, T_k, d_k); (B, H, T_k, d_v) |
# | a tile of scores | (B, H, block_size, block_size) |
# | m, l; o of a tile | (B, H, block_size); (B, H, block_size, d_v) |
# | output; logsumexp | (B, H, T_q, d_v); (B, H, T_q) |

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners leave with FlashAttention's forward pass in their own code, with a proof that it needs no score matrix, and with the count that
# says why it is fast. The one idea is that a change of the maximum is one factor for a whole sum. The rest is bookkeeping with tiles.
#
# ## Cut for 60 minutes
#
# The four words by hand, `merge_partial`, the two pictures of "Tiles over queries and keys", and the memory measurement from the solved
# notebook. Leave `tiled_attention` as homework, and "Which tile fits, and why it matters" as reading.
#
# ## Cut for 90 minutes
#
# Keep `tiled_attention` in pairs, one writing the loop and one the mask, and "Which tile fits, and why it matters" with its
# prediction. The further parts stay at home. For a group that tests numerical code, "slips that random scores do not find" takes ten
# minutes and is worth them.
#
# ## Mistakes to expect
#
# - merge_partial FL1: Which maximum are the numbers in o_a relative to, and which those in the result?
# - merge_partial FL5: What does Python give for `-math.inf - -math.inf`? In which rows does your code compute that?
# - merge_partial OS3: If o is divided already, how would the next merge know how many keys are behind it?
# - tiled_attention FL3: Two tiles, the second with lower scores. What is each p relative to?
# - tiled_attention TI1: This tile begins at query 4 and key 8. Which position does its row 0 have in the whole sequence?
# - tiled_attention OS8: Which maximum does a query keep that has seen no key yet, and which is subtracted?
# - tiled_attention MK14: One new query, nine keys: which of them may it see?
# - tiled_attention_backward FB1: Over which keys does this sum run, and over which should it?
# - tiled_attention_backward FB3: How many tiles of keys does query 0 meet? How often is its gradient written?
#
# ## To discuss
#
# - Is FlashAttention an approximation? (A good answer: no; each output is the same sum in another order, so it differs by rounding, as two
#   right programs do. Sparse and low-rank attention approximate.)
# - Why is it faster although training computes the scores twice? (It moves fewer bytes, and attention waits for memory. Where arithmetic is
#   the limit, computing twice would cost time.)
# - A new chip has the same main memory and half the fast memory. What happens to attention on it? (With as many keys in a tile as before,
#   half as many queries, so K and V travel twice as often; it is slower if it was waiting for memory before.)
#
# ## On paper
#
# Scores (ln 3, 0, 0, ln 3), values (4, 0, 8, 4), tiles of two. Write down both partial results, merge them, and give output and
# logsumexp. Solution: (ln 3, 4/3, 4) and (ln 3, 4/3, 4 + 8/3 = 20/3). The maxima agree, so both factors are 1: l = 8/3, o = 32/3, output 4,
# logsumexp ln 3 + ln (8/3) = ln 8. All at once: (3 · 4 + 1 · 0 + 1 · 8 + 3 · 4) / 8 = 32 / 8 = 4.
