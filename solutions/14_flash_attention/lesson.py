# %% [markdown]
# # 14 · Flash attention: the T × T table is never needed
#
# **Softmax needs every score of a row. How can it be exact when no more than a few of them are ever in memory?**
#
# **Before this lesson:** lesson 02 (why softmax subtracts the maximum), lesson 06 (causal masks), lesson 13 (the backward pass of
# attention), and lesson 11 (what the fused operator is for).
#
# In lesson 11 you called `F.scaled_dot_product_attention`, and the T × T table disappeared from memory. The operator
# was a black box. In this lesson you write that operator yourself, forward and backward, in plain PyTorch. The result
# is exact: nothing is left out or approximated, and only the order of the computation changes.
#
# How large is the table? It has one score for each pair of a query and a key, in every head. A model with 32 heads that reads a long
# document meets these sizes in a *single* layer, for a single text:

# %% role="given"
import itertools
import json
import math
import os
import tempfile
import timeit
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="demo" tags=["nbval-check-output"]
for t in (1_024, 8_192, 131_072):
    table, output = 32 * t * t * 2, 32 * t * 128 * 2  # bytes: 32 heads, 2 bytes a number; d_head = 128
    print(f"{t:7,} tokens: the table takes {table / 2**30:8,.2f} GiB, the output {output / 2**30:.2f} GiB")

# %% [markdown]
# At 131,072 tokens the table would take 1,024 GiB, which is one tebibyte. Nobody needs it for its own sake: it is a
# step toward an output that is a thousand times smaller. But softmax seems to force it into memory. The weight of a
# key is exp(score) divided by a sum over *all* keys of the row, so not even the first weight is known until the last
# score has been computed.
#
# ## One row in two tiles, by hand
#
# "The cat sat on the mat because **it** was comfortable." Let *it* look at four words. We choose scores whose exponentials are whole
# numbers, and one number a word as its value:
#
# | | cat | sat | mat | because |
# |---|---|---|---|---|
# | score | ln 2 | 0 | ln 4 | 0 |
# | exp(score) | 2 | 1 | 4 | 1 |
# | value | 4 | 8 | 2 | 0 |
#
# All at once, the exponentials sum to 8 and the output is (2 · 4 + 1 · 8 + 4 · 2 + 1 · 0) / 8 = 3. Now suppose that
# only two scores fit into memory at a time, so we work through the row in pieces: first *cat* and *sat*, then *mat*
# and *because*. Such a piece is called a **tile**. As in lesson 02 we subtract the largest score before taking exp;
# in the first tile that is ln 2. Three numbers then hold everything that the output needs from this tile:
#
# - the largest score **m** = ln 2,
# - the sum **l** = Σ exp(score − m) = 1 + ½ = 1½,
# - the weighted values **o** = Σ exp(score − m) · value = 1 · 4 + ½ · 8 = 8, *not yet divided*.
#
# For the second tile the same three are m = ln 4, l = 1 + ¼ = 1¼ and o = 1 · 2 + ¼ · 0 = 2. A triple (m, l, o) over some of the keys is
# called a **partial result** in this lesson.

# %% [markdown]
# @predict
#
# Both tiles are done, and their scores are forgotten. You have (ln 2, 1½, 8) and (ln 4, 1¼, 2), and nothing else. Can you still get the
# output 3? What has to happen to the first triple?
#
# @answer
#
# Yes. The maximum over both tiles is ln 4. The first tile's sums are relative to ln 2, so each of their terms is too large by the factor
# exp(ln 4 − ln 2) = 2. Halve both sums, and add: l = ½ · 1½ + 1¼ = 2 and o = ½ · 8 + 2 = 6. The output is o / l = 6 / 2 = 3.
#
# @wrong
#
# If you added without a factor, you got (8 + 2) / (1½ + 1¼) = 3.64: *cat* and *sat* then count twice as much as they should. If you
# thought that the scores have to be read again, you overlooked that all terms of a tile change by the *same* factor.

# %% role="demo"
scores = torch.tensor([2.0, 1.0, 4.0, 1.0]).log()
values = torch.tensor([4.0, 8.0, 2.0, 0.0])
figures.flash_attention.two_tiles(scores.numpy(), values.numpy(), words=["cat", "sat", "mat", "because"])

# %% [markdown]
# The reason fits on one line: exp(score − m_old) · exp(m_old − m_new) = exp(score − m_new). When the maximum changes,
# every term of a sum is multiplied by the same factor. So we can multiply the *sum* by that factor, and no longer
# need its terms. This is **online softmax** (Milakov and Gimelshein 2018, section 3, for m and l). As a loop over
# tiles of one score each, it never holds a list of scores:

# %% role="demo" tags=["nbval-check-output"]
m, l, o = -math.inf, 0.0, 0.0
for score, value in zip(scores.tolist(), values.tolist()):
    m_new = max(m, score)
    rescale, p = math.exp(m - m_new), math.exp(score - m_new)  # at the first score: exp(−∞), which is 0
    m, l, o = m_new, l * rescale + p, o * rescale + p * value
    print(f"largest so far {m:.3f}, sum {l:.2f}, weighted values {o:.1f}, output if it ended here {o / l:.2f}")
assert abs(o / l - 3) < 1e-6

# %% [markdown]
# Before the first key, the triple is (−∞, 0, 0). That is the partial result over no keys, and merging it with any
# other must leave the other one unchanged.
#
# The loop merges a partial result with a single key. In your first exercise you merge any two partial results, for
# many queries at once. One case needs care. With a mask, a tile may contain no key that a given query may see. Its m
# is then −∞ for that query. If m is −∞ in both partial results, the difference of the maxima is −∞ − (−∞), which is
# NaN.

# %% [markdown]
# @exercise merge_partial
#
# `a` and `b`, each (m (..., T_q), l (..., T_q), o (..., T_q, d_v)) over keys that the other does not cover → (m, l,
# o) over the keys of both
#
# ```text
# for each query:
#     m = the larger of m_a and m_b
#     l = l_a · exp(m_a − m) + l_b · exp(m_b − m)
#     o = o_a · exp(m_a − m) + o_b · exp(m_b − m)
# ```
#
# A partial result over no keys is (−∞, 0, 0). Either argument may be one, in some rows or in all of them, and it
# changes nothing; merging two of them gives exactly (−∞, 0, 0), with no NaN. Maxima may be as large as ±10,000.
# Nothing is divided yet. `hint(merge_partial)` begins with a question.

# %% role="exercise" exercise="merge_partial"
Partial = tuple[Tensor, Tensor, Tensor]


def merge_partial(a: Partial, b: Partial) -> Partial:
    """Attention over two disjoint sets of keys, from what is known of each; nothing is divided yet.

    a, b: (m, l, o), where m (..., T_q) is the largest score, l (..., T_q) the sum of exp(score − m), o (..., T_q, d_v)
          the sum of exp(score − m) · value; over no keys (−∞, 0, 0).
    Returns: the same three over all keys of both.
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
# Merging pays at once. Here are 512 keys, shuffled, cut into pieces, and merged in two orders: one after the other, and in pairs like a
# tournament. Each result is compared with softmax over all keys.

# %% role="payoff" exercise="merge_partial"
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
        print(f"{pieces:3} pieces: off by {gaps[0]:.0e} in a row, {gaps[1]:.0e} in pairs")
    assert worst < 1e-5

# %% [markdown]
# However the keys are cut, and in whatever order the pieces are merged, the output is the same up to the rounding of
# float32. So the pieces can be computed on different processors. That is how many processors share the keys of one
# long text while a model writes (Flash-Decoding, Dao et al. 2023), and how a text too long for one GPU is spread over
# several (Ring Attention, Liu et al. 2023).
#
# ## What went wrong in published code
#
# The lines with the factors are easy to get right; the rows without keys are not. Here are four reports about
# published libraries, each of them about what you have just written:
#
# - **zhuzilin/ring-flash-attention#30**: the merge took exp of a difference that could be positive, and it
#   overflowed. The differences in your code are never positive, because m is the larger of the two maxima.
# - **flashinfer-ai/flashinfer#4450** and **#4051**: the library used −50,000 in place of −∞, so a row whose real
#   scores were all below that came back as zeros; and merging two empty states gave NaN.
# - **Dao-AILab/flash-attention#2082**: to avoid NaN, the code set the *kept* maximum of an empty tile to 0. When all
#   later scores were negative, the maximum stayed 0, and scores far below 0 vanished in exp. For some tokens whole
#   heads came out as zeros, and the report says that training runs suffered. The maximum may be replaced by 0 where
#   it is subtracted, but the maximum that is kept must stay −∞.
#
# ## Tiles over queries and keys
#
# The queries can be cut into tiles as well, since each query has its own row. Tiles of queries and tiles of keys
# divide the table into a grid of tiles of scores. Each tile of scores is computed when its turn comes, used, and
# discarded. One tile of queries stays in place while the loop goes through all tiles of keys (Dao 2023, algorithm 1).
# The loop keeps a partial result for each of these queries and divides once, at the end.
#
# With a causal mask, a tile of scores may lie entirely in the future. It is then not computed at all. A tile on the
# diagonal is computed and masked. The mask uses positions in the *whole* sequence: query i sees key j where j ≤ i +
# T_k − T_q, as in lesson 06.

# %% [markdown]
# @predict
#
# A causal text is cut into 8 tiles of queries and 8 tiles of keys. How many of the 64 tiles of scores have to be
# computed? And how many of those need a mask?
#
# @answer
#
# 36: row r of the grid computes the tiles 0 to r, so 1 + 2 + … + 8 in all. The eight on the diagonal need a mask. As
# the tiles get smaller, the share that is computed approaches one half. So skipping makes a causal kernel up to twice
# as fast as one without a mask.
#
# @wrong
#
# If you said 32, you cut the tiles on the diagonal in half. Such a tile is computed whole, and the part that lies in
# the future is thrown away.

# %% role="demo"
computed, masked = figures.flash_attention.tile_grid(tiles=8)
assert (computed, masked) == (36, 8)

# %% [markdown]
# Besides the output, the function returns one more number for each query, the **logsumexp** L = log Σ exp(score).
# From a partial result it is m + log l; for *it* above, ln 4 + ln 2 = ln 8. With this number alone, the backward pass
# can turn scores into weights again.

# %% [markdown]
# @exercise tiled_attention
#
# `q` (B, H, T_q, d_k), `k` (B, H, T_k, d_k), `v` (B, H, T_k, d_v), `block_size`, `causal` → (output (B, H, T_q, d_v),
# logsumexp (B, H, T_q))
#
# ```text
# for each tile of queries:
#     begin with the partial result over no keys
#     for each tile of keys (causal: only those that some of these queries may see):
#         scores = q kᵀ / √d_k of the two tiles (causal: −∞ where a key lies in the future)
#         merge what these keys contribute
#     output = o / l, logsumexp = m + log l
# ```
#
# T_q and T_k need not be multiples of `block_size`, which may also be larger than both. With a causal mask T_k ≥ T_q;
# without one, T_q > T_k is allowed. **No tensor that your code makes, masks included, may ever have T_q · T_k numbers
# or more per item and head, and keys are taken tile by tile.** The check watches every tensor that is made, and names
# the line. (A view, such as the result of `expand`, takes no memory and does not count.) You may use `merge_partial`,
# but you need not.
# `F.scaled_dot_product_attention` and its relatives are not allowed, and the work stays in PyTorch.

# %% role="exercise" exercise="tiled_attention"
def tiled_attention(q: Tensor, k: Tensor, v: Tensor, block_size: int, causal: bool = False) -> tuple[Tensor, Tensor]:
    """Exact attention, one tile of scores at a time: no tensor has T_q · T_k entries.

    q: (B, H, T_q, d_k), k: (B, H, T_k, d_k), v: (B, H, T_k, d_v). causal: query i sees key j where j ≤ i + T_k − T_q.
    Returns: output (B, H, T_q, d_v), logsumexp (B, H, T_q) of the scaled scores.
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
# First the numbers. We compare with PyTorch's own operator, with and without a mask, for lengths that are not
# multiples of the tile size. Where T_q ≠ T_k, the operator's `is_causal` would align its mask at the top left (lesson
# 11), so it gets lesson 06's mask instead.

# %% role="payoff" exercise="tiled_attention"
if passed(tiled_attention):
    torch.manual_seed(0)
    for (t_q, t_k), block_size, causal in itertools.product(((100, 100), (37, 150)), (16, 64), (False, True)):
        q, k, v = torch.randn(2, 4, t_q, 32), torch.randn(2, 4, t_k, 32), torch.randn(2, 4, t_k, 32)
        mask = torch.ones(t_q, t_k, dtype=torch.bool).tril(t_k - t_q) if causal else None
        gap = (tiled_attention(q, k, v, block_size, causal)[0] - F.scaled_dot_product_attention(q, k, v, mask)).abs().max()
        print(f"{t_q:3} queries, {t_k} keys, tiles of {block_size}, causal {causal!s:5}: largest difference {gap:.0e}")
        assert gap < 1e-5

# %% [markdown]
# Then the claim of this lesson. PyTorch can hand every operator's result to a class of ours, which keeps the shape of the largest. This is
# how the check watches your code, too.

# %% role="demo"
class Largest(TorchDispatchMode):
    """Remembers the shape of the largest tensor that any operator makes inside the block."""

    shape = (0,)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor) and made.numel() > math.prod(self.shape):
            self.shape = tuple(made.shape)
        return made


def explicit_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention with the whole table. q, k, v: (B, H, T, d)."""
    hidden = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1) @ v

# %% [markdown]
# Eight heads of 64 numbers, 1,024 tokens, tiles of 128. Which is the largest tensor that your function makes?

# %% role="payoff" exercise="tiled_attention"
if passed(tiled_attention):
    q, k, v = torch.randn(3, 1, 8, 1024, 64)
    ways = {"explicit scores": explicit_attention, "your tiles": lambda q, k, v: tiled_attention(q, k, v, 128, causal=True)}
    for name, way in ways.items():
        with Largest() as largest:
            way(q, k, v)
        print(f"{name:16} largest tensor {largest.shape}: {math.prod(largest.shape):9,} numbers")
    assert math.prod(largest.shape) < 8 * 1024**2

# %% [markdown]
# In the course's solution the largest tensor is the output itself, which has to exist. A tile of scores has 8 · 128 ·
# 128 = 131,072 numbers, a quarter as many, and that number does not change when T grows.
#
# ## Memory against T
#
# With the table, memory grows with T². With your tiles it grows with T: a text twice as long takes twice as much, not
# four times as much. PyTorch's profiler shows it. It records every allocation and every release of memory, so a
# running sum tells how much is held at each moment, and the largest value of that sum is the peak. (q, k and v were
# allocated before, so they are not counted.)

# %% role="demo"
os.environ["KINETO_LOG_LEVEL"] = "99"  # the profiler's own log stays out of the notebook


def peak_and_time(way, t):
    """MiB at the peak of way(q, k, v) for t tokens in eight heads of 64 numbers; seconds, the best of three where one is short."""
    q, k, v = torch.randn(3, 1, 8, t, 64)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as record:
        way(q, k, v)
    with tempfile.TemporaryDirectory() as folder:
        record.export_chrome_trace(f"{folder}/record.json")
        events = json.loads(Path(folder, "record.json").read_text(encoding="utf-8"))["traceEvents"]
    pieces = sorted((event["ts"], event["args"]["Bytes"]) for event in events if event.get("name") == "[memory]")
    seconds = timeit.repeat(lambda: way(q, k, v), number=1, repeat=1 if t > 2048 else 3)
    return max(itertools.accumulate(size for _, size in pieces)) / 2**20, min(seconds)

# %% [markdown]
# @predict
#
# Now the time. On logarithmic axes a power of T is a line, and its exponent the slope. For memory the slopes are 2 with the table and 1
# without. Which slopes does the *time* have, for explicit scores, your tiles, and the fused operator?
#
# @answer
#
# 2 for all three. Skipping the future halves the work of the tiles, and a factor moves a line without tilting it.
#
# @wrong
#
# If you expected tiles to save operations: every pair of a query and a key that it may see still has its score. If you expected your
# tiles to be as fast as the fused operator: each step of your loop is a call from Python.

# %% role="payoff" exercise="tiled_attention"
if passed(tiled_attention):
    ways["fused operator"] = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    longest = {"explicit scores": 2048, "your tiles": 4096, "fused operator": 8192}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for quieter times
    taken = {name: {t: peak_and_time(ways[name], t) for t in (256, 512, 1024, 2048, 4096, 8192) if t <= longest[name]} for name in ways}
    torch.set_num_threads(threads)
    slopes = figures.flash_attention.memory_and_time(taken)
    table, tiles = (taken[name][2048][0] for name in ("explicit scores", "your tiles"))
    assert slopes["explicit scores"] > 1.9 > 1.2 > slopes["your tiles"] and 380 < table < 400 and table > 20 * tiles

# %% [markdown]
# At 2,048 tokens explicit scores hold {{ table:.0f }} MiB: the scores, the masked scores and the weights, three
# tables of 8 · 2,048² · 4 bytes = 128 MiB each, and the mask. Your tiles hold {{ tiles:.0f }} MiB; the table takes
# {{ table / tiles:.0f }} times as much. (The slope for your tiles is a little below 1, because one part of their
# memory, the current tile of scores, does not grow with T.)
#
# The right panel shows the time. Your tiles skip the future, and their numbers stay near the processor, but each of
# their steps is a separate call. Which effect is larger depends on the machine. The fused operator is faster than
# both of the others, because its loop is compiled and runs inside a single call.
#
# ## The backward pass
#
# Training needs gradients. Lesson 13's backward pass starts from the weights W, which are a T × T table again.
# FlashAttention does not keep them. It computes them *again*, tile by tile, when they are needed. With S for the
# scores, scaled and masked as in the forward pass:
#
# $$W_{ij} = e^{S_{ij}} / \sum_{j'} e^{S_{ij'}} = e^{S_{ij} - L_i}$$
#
# So one number for each query, the logsumexp L_i, replaces the maximum and the sum of its whole row. Neither has to
# be computed a second time.
#
# One obstacle remains. The gradient of the scores is ∂S = W ⊙ (∂W − D), where D_i = Σ_j W_ij ∂W_ij is lesson 13's
# weighted mean of a row. It runs over *all* keys of a query, and a tile has only some of them. Lesson 13 also proved
# an identity that helps here. Since ∂W_ij = ∂O_i · V_j,
#
# $$D_i = \sum_j W_{ij}\,(\partial O_i \cdot V_j) = \partial O_i \cdot \sum_j W_{ij} V_j = \partial O_i \cdot O_i$$
#
# So D = rowsum(∂O ⊙ O): multiply the two arrays entry by entry, and sum each row. Both are known before the first
# tile.
#
# By hand, with the four words from above and ∂O = 1: L = ln 8, so the weights are 2/8, 1/8, 4/8 and 1/8. D is ∂O
# times the output, 1 · 3 = 3. ∂W is the row of values, (4, 8, 2, 0). Then ∂S = W ⊙ (∂W − 3) = (2 · 1, 1 · 5, 4 ·
# (−1), 1 · (−3)) / 8 = (2, 5, −4, −3) / 8, and it sums to 0, as lesson 13 says it must. Each entry needed only the
# score and value of its own word and two numbers of the row, ln 8 and 3. It needed nothing from the other tile.
# Autograd gives the same:

# %% role="demo" tags=["nbval-check-output"]
scores = torch.tensor([2.0, 1.0, 4.0, 1.0]).log().requires_grad_()
output = torch.softmax(scores, dim=0) @ torch.tensor([4.0, 8.0, 2.0, 0.0])
output.backward()
print("8 · ∂S =", [round(8 * number, 4) for number in scores.grad.tolist()])

# %% [markdown]
# With ∂S of a tile at hand, the rest is lesson 13's last step, tile by tile: ∂V = Wᵀ∂O, ∂Q = ∂S K / √d_k and ∂K = ∂Sᵀ Q / √d_k. Each
# tile *adds* its share, because a key is used by the queries of every tile, and a query by the keys of every tile.

# %% [markdown]
# @exercise tiled_attention_backward
#
# `q`, `k`, `v`, `output`, `logsumexp` as above, `grad_output` (B, H, T_q, d_v), `block_size`, `causal` → (grad_q, grad_k, grad_v),
# shaped as q, k and v
#
# ```text
# D = rowsum(grad_output · output)
# for each tile of queries, for each tile of keys (causal: that some of these queries see):
#     W  = exp(scores − logsumexp), 0 where a key is hidden
#     ∂W = grad_output vᵀ of the two tiles
#     ∂S = W · (∂W − D)
#     add the tile's share to grad_q, grad_k and grad_v
# ```
#
# The scores reach ±100. Small memory as before, no autograd, no finite differences, and no
# ready-made attention.

# %% role="exercise" exercise="tiled_attention_backward"
def tiled_attention_backward(
    q: Tensor, k: Tensor, v: Tensor, output: Tensor, logsumexp: Tensor, grad_output: Tensor, block_size: int, causal: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `tiled_attention`'s output, the weights computed again tile by tile.

    output, logsumexp: what `tiled_attention` returned; grad_output: shaped as output.
    Returns: grad_q, grad_k, grad_v, shaped as q, k and v.
    Source:  Dao 2023, "FlashAttention-2", algorithm 2.
    """
    # region solution
    t_q, t_k, root = q.shape[-2], k.shape[-2], math.sqrt(q.shape[-1])
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}; a tile needs at least one query and one key")
    if causal and t_k < t_q:
        raise ValueError(f"causal attention of {t_q} queries needs as many keys or more, and there are {t_k}")
    delta = (grad_output * output).sum(dim=-1)  # rowsum(∂O ⊙ O), which equals rowsum(∂W ⊙ W): lesson 13
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
# With your two functions, autograd can treat attention as a single operation. `forward` says what to keep, and
# `backward` gets it back. We count what is kept for the backward pass as in lesson 11.

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

# %% role="demo"
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

# %% [markdown]
# Both ways get the same q, k and v of 512 tokens in four heads, and the same gradient of the output.

# %% role="payoff" exercise="tiled_attention_backward"
if passed(tiled_attention) and passed(tiled_attention_backward):
    q, k, v = torch.randn(3, 1, 4, 512, 32)
    table_bytes, right = kept_bytes(explicit_attention, q, k, v)
    flash_bytes, mine = kept_bytes(Flash.apply, q, k, v)
    for name, one, other in zip(("∂Q", "∂K", "∂V"), right, mine):
        gap = (one - other).abs().max()
        print(f"{name}: off by {gap:.0e} from autograd through the table; largest entry {one.abs().max():.1f}")
        assert gap < 1e-4
    print(f"kept for the backward pass: {table_bytes / 2**20:.2f} MiB by the table, {flash_bytes / 2**20:.2f} MiB by your functions")

# %% [markdown]
# The gradients agree. At 512 tokens the table keeps {{ table_bytes / flash_bytes:.0f; it > 3 }} times as much for the
# backward pass as your functions do, and the ratio about doubles each time T doubles. The price is arithmetic,
# because the scores are computed twice.
#
# ## Break it on purpose
#
# Four slips are easy to make:
#
# - *no rescaling*: the sums stay as they are when the maximum grows;
# - *own maximum*: each tile subtracts its own maximum and not the running one;
# - *start at 0*: the running maximum starts at 0 and not at −∞;
# - *no guard*: nothing protects a first tile that is masked entirely.
#
# A fifth, *0 is kept*, is the published one from above: the guard sets the kept maximum to 0. Each of the five gives
# the right answer on some inputs, and that is the danger. Here is the correct update first, online softmax on one row
# in tiles of two. The parts that a slip can change are functions of their own.

# %% role="demo"
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

# %% role="demo"
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

# %% [markdown]
# Each slip replaces one of these functions, or the start. Only *no guard* replaces two, since the guard stands in both:

# %% role="demo"
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
# If you thought that random scores would find all five: some slips show only when every score is very negative, or
# when a whole tile is masked, and random scores are neither.

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
# Three of these rows catch all five slips: *rising*, *falling* and *both*. Random scores of ordinary size catch the
# first two slips and none of the other three. The checks of this lesson have such rows, and more: lengths that tiles
# do not divide, tiles that are larger than the text, fewer queries than keys.
#
# ## Why tiles are fast on a GPU
#
# On a CPU the tiles saved memory. On a GPU they save time as well, for the reason that you found in lesson 11:
# attention waits for memory. The picture below is from that lesson. An A100's main memory moves 1.5 to 2.0 TB/s; its
# on-chip memory, 192 KB on each of 108 processors, about 19 TB/s (Dao et al. 2022, section 2.1). A tile of scores
# that is made and used up on the chip never travels to main memory and back.

# %% role="demo"
figures.gpu.hierarchy()

# %% [markdown]
# How much traffic is that? Count it for one head of d = 64 numbers, T = 1,024 tokens and tiles of 128, without a mask.
# Each of q, k, v and the output has T · d = 65,536 numbers. The table has T · T = 1,048,576, which is 16 times as many.
#
# - Step by step, the table is written or read eight times, as lesson 11 counted. With q, k, v and the output once each,
#   that makes 8 · 16 + 4 = 132 times T · d.
# - With tiles, q is read once and the output written once. There are 1,024 / 128 = 8 tiles of queries, and each of
#   them reads all of K and V. That makes 2 + 8 · 2 = 18 times T · d.
#
# Reading K and V eight times sounds wasteful. But all of it, 16 times T · d, is no more than one pass over the table,
# and step by step there are eight such passes.

# %% role="demo" tags=["nbval-check-output"]
t, d, tile = 1_024, 64, 128
whole, table = t * d, t * t
by_table = 8 * table + 4 * whole
by_tiles = 2 * whole + t // tile * 2 * whole
print(f"step by step {by_table:,} numbers, in tiles {by_tiles:,}: {by_table / by_tiles:.1f} times fewer")
assert (table / whole, by_table / whole, by_tiles / whole) == (16, 132, 18)

# %% [markdown]
# @predict
#
# That was the forward pass. Now take the forward and backward pass of GPT-2's attention, measured on an A100 with
# texts of this length and heads of this size. FlashAttention computes the scores twice. Compared with the standard
# implementation, does it do more operations or fewer? Do the bytes fall by about as much as in the count, or much less?
# And is it faster?
#
# @answer
#
# It does 13 % more operations (75.2 against 66.6 GFLOP), moves about one ninth of the bytes (4.4 against 40.3 GB),
# and is 5.7 times as fast (7.3 against 41.7 ms). The count above said {{ by_table / by_tiles:.1f }} times fewer,
# for the forward pass alone and for tiles of one size, so the two numbers cannot be compared digit by digit. Their cause
# is the same: scores that never reach the main memory. The standard implementation spends most of its time waiting for
# memory.
#
# @wrong
#
# If you said slower, because it does more operations: that would be so if arithmetic were the limit. Lesson 11's
# roofline tells you whether arithmetic or memory is.

# %% role="demo"
standard = {"operations, GFLOP": 66.6, "main memory, GB": 40.3, "time, ms": 41.7}  # Dao et al. 2022, figure 2, left
flash = {"operations, GFLOP": 75.2, "main memory, GB": 4.4, "time, ms": 7.3}
figures.flash_attention.published(standard, flash)

# %% [markdown]
# The figure shows published numbers, which the course did not measure: GPT-2 medium, 1,024 tokens, 16 heads of 64,
# batch 64 (Dao et al. 2022, figure 2). The operation counts are as printed there. Counted as in lesson 11 they would
# be about 825 and 962 GFLOP for this batch, so compare them only with each other. Three published versions share the
# algorithm, and each fits it more closely to the machine:
#
# - **FlashAttention** (Dao et al. 2022): tiles, online softmax, and weights that the backward pass computes again.
#   Published: 3 times the training speed of GPT-2 at 1,024 tokens.
# - **FlashAttention-2** (Dao 2023): one tile of queries stays in place, the division comes once, at the end, and the
#   work is also split among the processors along the sequence. Published: about 2 times as fast as the first version,
#   50 to 73 % of an A100's peak.
# - **FlashAttention-3** (Shah et al. 2024): matrix products and softmax overlap in time, and numbers may have 8 bits.
#   Published: in 16 bits on an H100, 1.5 to 2 times as fast as the second version, up to 740 TFLOP/s, which is 75 %
#   of the peak.
#
# You wrote the algorithm of the second version, except that its backward pass has the two loops the other way round.
# Rabe and Staats (2021) had used the same idea before, to save memory alone: as their title says, self-attention does
# not need O(n²) memory.
#
# ## What we keep
#
# - Softmax needs all scores of a row, but not all at once: (m, l, o) over any part of the keys is enough, and two
#   such parts merge with one factor each.
# - When the maximum changes from m_old to m_new, every sum that was taken relative to it is multiplied by exp(m_old −
#   m_new). Divide once, at the end.
# - A row that has seen no key is (−∞, 0, 0). Guard the maximum where it is subtracted; the maximum that is kept stays
#   −∞.
# - In the backward pass exp(score − logsumexp) is the weight, and rowsum(∂O ⊙ O) is the row's weighted mean, which
#   softmax's gradient subtracts. Neither takes a table.
# - The result is exact, memory grows with T, and the number of operations still grows with T². The time is saved by
#   moving fewer bytes.
#
# | step | shape |
# |---|---|
# | q; k; v | (B, H, T_q, d_k); (B, H, T_k, d_k); (B, H, T_k, d_v) |
# | a tile of scores | (B, H, block_size, block_size) |
# | m, l; o of a tile of queries | (B, H, block_size); (B, H, block_size, d_v) |
# | output; logsumexp | (B, H, T_q, d_v); (B, H, T_q) |
# | D; grad_q, grad_k, grad_v | (B, H, T_q); as q, k, v |

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners leave with FlashAttention's algorithm in their own code, forward and backward, and with a proof that it needs no table. The one
# idea is that a change of the maximum is one factor for a whole sum. Everything else is bookkeeping with tiles.
#
# ## Cut for 60 minutes
#
# The four words by hand, `merge_partial`, the tile grid, and the memory measurement from the solved notebook. Leave `tiled_attention` as
# homework, and leave out the backward pass.
#
# ## Cut for 90 minutes
#
# Keep `tiled_attention` in pairs, one writing the loop and one the mask. Show the backward pass on the board up to
# D = rowsum(∂O ⊙ O); leave its exercise as homework. "Break it on purpose" takes ten minutes and is worth them.
#
# ## Mistakes to expect
#
# - merge_partial FL1: Which maximum are the numbers in o_a relative to, and which those in the result?
# - merge_partial FL5: What does Python give for `-math.inf - -math.inf`? In which rows does your code compute that?
# - merge_partial OS3: If o is divided already, how would the next merge know how many keys are behind it?
# - tiled_attention FL3: Two tiles, the second with lower scores. What is each p relative to?
# - tiled_attention TI1: This tile begins at query 4 and key 8. Which position does its row 0 have in the whole sequence?
# - tiled_attention MK14: One new query, nine keys: which of them may it see?
# - tiled_attention_backward FB1: Over which keys does this sum run, and over which should it?
# - tiled_attention_backward FB3: How many tiles of keys does query 0 meet? How often is its gradient written?
#
# ## To discuss
#
# - Is FlashAttention an approximation? (A good answer: no; each output is the same sum in another order, so it differs by rounding, as two
#   right programs do. Sparse and low-rank attention approximate.)
# - Why is it faster although it computes the scores twice? (It moves fewer bytes, and attention waits for memory. Where arithmetic is the
#   limit, computing twice would cost time.)
#
# ## On paper
#
# Scores (ln 3, 0, 0, ln 3), values (4, 0, 8, 4), tiles of two. Write down both partial results, merge them, and give output and
# logsumexp. Solution: (ln 3, 4/3, 4) and (ln 3, 4/3, 4 + 8/3 = 20/3). The maxima agree, so both factors are 1: l = 8/3, o = 32/3, output 4,
# logsumexp ln 3 + ln (8/3) = ln 8. All at once: (3 · 4 + 1 · 0 + 1 · 8 + 3 · 4) / 8 = 32 / 8 = 4.
