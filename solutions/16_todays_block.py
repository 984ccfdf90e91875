# %% [markdown]
# # 16 · Today's block, and a real model on your attention
#
# **What has changed in the block since 2017, and does yours run a model that others have trained?**
#
# **Before this lesson:** lesson 07 (RoPE), lesson 09 (heads), lesson 11 (the block and LayerNorm), and `nn.Module`.

# %% role="given"
import math
import time

import torch
from torch import nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% [markdown]
# @exercise rms_norm
#
# `x` (..., d), `weight` (d,) → (..., d)

# %% role="exercise" exercise="rms_norm"
def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Each token divided by the root of its mean square, then scaled feature by feature.

    x: (..., d) of any float type. weight: (d,). Returns: (..., d) in the type of x, computed in float32 or better.
    """
    # region solution
    wide = x.to(torch.promote_types(x.dtype, torch.float32))  # a float16 above 255 has no square in float16
    root = torch.sqrt((wide**2).mean(dim=-1, keepdim=True) + eps)
    return (wide / root * weight).to(x.dtype)
    # endregion

# %% role="check" exercise="rms_norm"
check(rms_norm)

# %% [markdown]
# @exercise SwiGLU
#
# x

# %% role="exercise" exercise="SwiGLU"
class SwiGLU(nn.Module):
    """The gated network of a block: down(silu(gate(x)) · up(x)), three layers without bias."""

    def __init__(self, d_model: int, d_hidden: int) -> None:
        # region solution
        super().__init__()
        self.gate = nn.Linear(d_model, d_hidden, bias=False)
        self.up = nn.Linear(d_model, d_hidden, bias=False)
        self.down = nn.Linear(d_hidden, d_model, bias=False)
        # endregion

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (..., d_model). Returns: the same shape."""
        # region solution
        return self.down(F.silu(self.gate(x)) * self.up(x))
        # endregion

# %% role="check" exercise="SwiGLU"
check(SwiGLU)

# %% role="given"
def apply_rope(x, positions, base=10000.0):
    """Lesson 07: turns each pair (x[2i], x[2i + 1]) by positions · base^(−2i/d). x: (..., T, d), positions: (T,)."""
    d = x.shape[-1]
    frequencies = base ** (-torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d)
    angles = positions[:, None] * frequencies
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)

# %% [markdown]
# @exercise GroupedQuerySelfAttention
#
# x

# %% role="exercise" exercise="GroupedQuerySelfAttention"
class GroupedQuerySelfAttention(nn.Module):
    """Causal self-attention with RoPE; num_heads // num_kv_heads neighboring query heads share one head of keys and values.

    Raises: ValueError, when it is built, for sizes that do not divide or an odd d_head.
    """

    def __init__(self, d_model: int, num_heads: int, num_kv_heads: int, base: float = 10000.0) -> None:
        # region solution
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model = {d_model} is not divisible by num_heads = {num_heads}")
        if num_heads % num_kv_heads:
            raise ValueError(f"num_heads = {num_heads} is not divisible by num_kv_heads = {num_kv_heads}")
        self.num_heads, self.num_kv_heads, self.d_head = num_heads, num_kv_heads, d_model // num_heads
        if self.d_head % 2:
            raise ValueError(f"heads of {self.d_head} numbers cannot be rotated in pairs")
        self.base = base
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, num_kv_heads * self.d_head, bias=False)
        self.w_v = nn.Linear(d_model, num_kv_heads * self.d_head, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)
        # endregion

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (B, T, d_model). Returns: (B, T, d_model)."""
        # region solution
        q, k, v = (layer(x).unflatten(-1, (-1, self.d_head)).transpose(1, 2) for layer in (self.w_q, self.w_k, self.w_v))
        positions = torch.arange(x.shape[1], device=x.device)
        q, k = apply_rope(q, positions, self.base), apply_rope(k, positions, self.base)
        shared = self.num_heads // self.num_kv_heads
        k, v = k.repeat_interleave(shared, dim=1), v.repeat_interleave(shared, dim=1)  # 0 0 1 1, not 0 1 0 1
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        merged = heads.transpose(1, 2).flatten(2)
        return self.w_o(merged)
        # endregion

# %% role="check" exercise="GroupedQuerySelfAttention"
check(GroupedQuerySelfAttention)

# %% [markdown]
# @exercise LlamaBlock
#
# x

# %% role="exercise" exercise="LlamaBlock"
class LlamaBlock(nn.Module):
    """x + attn(attn_norm(x)), then x + mlp(mlp_norm(x)), both norms RMSNorms with this eps."""

    def __init__(
        self, d_model: int, num_heads: int, num_kv_heads: int, d_hidden: int, base: float = 10000.0, eps: float = 1e-5
    ) -> None:
        # region solution
        super().__init__()
        self.attn_norm = nn.RMSNorm(d_model, eps=eps)
        self.attn = GroupedQuerySelfAttention(d_model, num_heads, num_kv_heads, base)
        self.mlp_norm = nn.RMSNorm(d_model, eps=eps)
        self.mlp = SwiGLU(d_model, d_hidden)
        # endregion

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (B, T, d_model). Returns: (B, T, d_model)."""
        # region solution
        x = x + self.attn(self.attn_norm(x))
        return x + self.mlp(self.mlp_norm(x))
        # endregion

# %% role="check" exercise="LlamaBlock"
check(LlamaBlock)

# %% [markdown]
# ## What we keep
#
# - RMSNorm divides by the root of the mean square and subtracts nothing.

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# To open today's block and find the parts of lesson 11 in it.
#
# ## Cut for 60 minutes
#
# x
#
# ## Cut for 90 minutes
#
# x
#
# ## Mistakes to expect
#
# - rms_norm TB1: What does your function give for a token whose numbers are all 3?
# - rms_norm TB11: What is 300 squared in float16?
# - SwiGLU TB21: Which of the two layers does silu act on, and what is that layer called in the file of weights?
# - SwiGLU TB31: How wide is your `gate` layer, and how wide should it be?
# - GroupedQuerySelfAttention GQ1: With 9 query heads and 3 heads of keys, which keys does query head 1 read?
# - GroupedQuerySelfAttention TB46: Which axis does `apply_rope` take for the tokens?
# - LlamaBlock TB67: With which eps do your two normalizations compute?
# - LlamaBlock TB64: How many weights named `…norm.weight` does your block have?
#
# ## To discuss
#
# - x
#
# ## On paper
#
# x
