# %% [markdown]
# # 15 · A kernel of your own
#
# **A tile of scores should never leave the chip. Which program can keep it there?**
#
# **Before this lesson:** lesson 11 (kernels, memory traffic, the fused operator) and lesson 14 (attention in tiles).

# %% role="given"
import math
import os
from types import SimpleNamespace

import torch
from torch import Tensor
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported: its interpreter runs kernels on a CPU
try:
    import triton
    import triton.language as tl
except ImportError:  # here kernels can be written, and not run
    triton, tl = SimpleNamespace(jit=lambda kernel: kernel), SimpleNamespace(constexpr=int)

# %% [markdown]
# @exercise triton_add
#
# `x`, `y` of one shape → `x + y`

# %% role="exercise" exercise="triton_add"
@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    """One program: the sum of one block. x, y, out: pointers to n numbers each."""
    # region solution
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask)
    tl.store(out + offsets, total, mask=mask)
    # endregion


def triton_add(x: Tensor, y: Tensor) -> Tensor:
    """x + y by a kernel. x, y: contiguous, of one shape, any number of entries from 1 on. Returns: their shape and dtype."""
    # region solution
    out = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    add_kernel[grid](x, y, out, n, BLOCK=1024)
    return out
    # endregion

# %% role="check" exercise="triton_add"
check(triton_add)

# %% [markdown]
# @exercise triton_softmax
#
# `x` (rows, n) → (rows, n)

# %% role="exercise" exercise="triton_softmax"
@triton.jit
def softmax_kernel(x, out, n, BLOCK: tl.constexpr):
    """One program: the softmax of one row. x, out: pointers to rows of n numbers each; BLOCK: a power of two, n or more."""
    # region solution
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    offsets = tl.program_id(0) * n + columns
    scores = tl.load(x + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    p = tl.exp(scores - tl.max(scores, axis=0))
    tl.store(out + offsets, p / tl.sum(p, axis=0), mask=mask)
    # endregion


def triton_softmax(x: Tensor) -> Tensor:
    """Softmax over the last axis by a kernel. x: (rows, n), contiguous, 1 ≤ n ≤ 2048. Returns: (rows, n) in x's dtype."""
    # region solution
    rows, n = x.shape
    out = torch.empty_like(x)
    softmax_kernel[(rows,)](x, out, n, BLOCK=triton.next_power_of_2(n))
    return out
    # endregion

# %% role="check" exercise="triton_softmax"
check(triton_softmax)

# %% [markdown]
# @exercise triton_attention
#
# `q` (B, H, T_q, d), `k`, `v` (B, H, T_k, d), `causal` → (B, H, T_q, d)

# %% role="exercise" exercise="triton_attention"
@triton.jit
def attention_kernel(
    q, k, v, out, t_q, t_k, scale, CAUSAL: tl.constexpr, D: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr
):
    """One program: the output of one tile of queries in one head.

    q, out: pointers to (heads, t_q, D); k, v: to (heads, t_k, D), the heads of all items of the batch one after the other.
    """
    # region solution
    top, head = tl.program_id(0) * QUERIES, tl.program_id(1)
    rows, features = top + tl.arange(0, QUERIES)[:, None], tl.arange(0, D)[None, :]
    q_at = (head * t_q + rows) * D + features
    q_tile = tl.load(q + q_at, mask=rows < t_q, other=0.0)
    m = tl.full((QUERIES,), -float("inf"), tl.float32)
    l = tl.zeros((QUERIES,), tl.float32)
    o = tl.zeros((QUERIES, D), tl.float32)
    visible = tl.minimum(t_k, top + QUERIES + t_k - t_q) if CAUSAL else t_k
    for left in range(0, visible, KEYS):
        columns = left + tl.arange(0, KEYS)
        k_at = (head * t_k + columns[:, None]) * D + features
        k_tile = tl.load(k + k_at, mask=columns[:, None] < t_k, other=0.0)
        v_tile = tl.load(v + k_at, mask=columns[:, None] < t_k, other=0.0)
        scores = tl.dot(q_tile, tl.trans(k_tile)) * scale
        seen = columns[None, :] < t_k
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows + (t_k - t_q))
        scores = tl.where(seen, scores, -float("inf"))
        m_new = tl.maximum(m, tl.max(scores, axis=1))  # finite from the first tile on: every query sees key 0
        rescale, p = tl.exp(m - m_new), tl.exp(scores - m_new[:, None])
        l = l * rescale + tl.sum(p, axis=1)
        o = o * rescale[:, None] + tl.dot(p.to(v_tile.dtype), v_tile)
        m = m_new
    tl.store(out + q_at, o / l[:, None], mask=rows < t_q)
    # endregion


def triton_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Exact attention in one kernel, a tile of queries a program. q: (B, H, T_q, d), k, v: (B, H, T_k, d), contiguous.

    d: 16, 32, 64 or 128. causal: query i sees key j where j ≤ i + T_k − T_q, and T_k ≥ T_q.
    Returns: (B, H, T_q, d) in q's dtype.
    Source:  Dao 2023, "FlashAttention-2", algorithm 1, forward.
    """
    # region solution
    b, h, t_q, d = q.shape
    t_k = k.shape[2]
    out = torch.empty_like(q)
    queries, keys = 64, 32
    grid = (triton.cdiv(t_q, queries), b * h)
    attention_kernel[grid](q, k, v, out, t_q, t_k, 1 / math.sqrt(d), CAUSAL=causal, D=d, QUERIES=queries, KEYS=keys)
    return out
    # endregion

# %% role="check" exercise="triton_attention"
check(triton_attention)

# %% [markdown]
# ## What we keep
#
# - To come.
