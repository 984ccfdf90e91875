# %% [markdown]
# # 14 · Flash attention: the T × T table is never needed
#
# **Softmax needs every score of a row. How can it be exact when no more than a few of them are ever in memory?**
#
# **Before this lesson:** lesson 06 (causal masks), lesson 08 (the backward pass of attention), lesson 13 (where the time goes).
#
# In progress.

# %% role="given"
import math

import torch
from torch import Tensor

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% [markdown]
# ## Two parts of a row
#
# In progress.

# %% [markdown]
# @exercise merge_partial
#
# `merge_partial(a, b)`

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

# %% role="payoff" exercise="merge_partial"
if passed(merge_partial):
    print("merged")

# %% [markdown]
# ## Tiles
#
# In progress.

# %% [markdown]
# @exercise tiled_attention
#
# `tiled_attention(q, k, v, block_size, causal=False)`

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

# %% role="payoff" exercise="tiled_attention"
if passed(tiled_attention):
    print("tiled")

# %% [markdown]
# ## Backwards
#
# In progress.

# %% [markdown]
# @exercise tiled_attention_backward
#
# `tiled_attention_backward(q, k, v, output, logsumexp, grad_output, block_size, causal=False)`

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
    delta = (grad_output * output).sum(dim=-1)  # rowsum(∂O ⊙ O), which equals rowsum(∂W ⊙ W): lesson 08
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

# %% role="payoff" exercise="tiled_attention_backward"
if passed(tiled_attention_backward):
    print("backward")

# %% [markdown]
# ## What we keep
#
# - In progress.
#
# | built | takes | gives |
# |---|---|---|
# | `merge_partial` | two (m, l, o) | (m, l, o) |

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# In progress.
#
# ## Cut for 60 minutes
#
# In progress.
#
# ## Cut for 90 minutes
#
# In progress.
#
# ## Mistakes to expect
#
# - merge_partial FL1: What is o_a relative to?
# - merge_partial FL5: What is −∞ − (−∞)?
# - tiled_attention FL1: What is o relative to?
# - tiled_attention TI1: Where does this tile begin?
# - tiled_attention_backward TB1: Which keys does this sum run over?
# - tiled_attention_backward TB3: How many tiles move this query?
#
# ## To discuss
#
# In progress.
#
# ## On paper
#
# In progress.
