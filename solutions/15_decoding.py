# %% [markdown]
# # 15 · Decoding: one token at a time
#
# **Why does a model that writes keep its keys and values, and what does that cost?**
#
# **Before this lesson:** lesson 06 (the causal mask, T_q ≠ T_k included), lesson 09 (heads), lesson 12 (the model that writes), and what a
# view of a tensor is (lesson 05).

# %% role="given"
import math
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% [markdown]
# @exercise cache_bytes
#
# `num_layers`, `num_kv_heads`, `d_head`, `t`, `batch`, `bytes_per_number` integers → an int
#
# ```text
# for each layer, each text of the batch, each of its t tokens and each key-value head:
#     one key and one value of d_head numbers
# each number takes bytes_per_number bytes
# ```

# %% role="exercise" exercise="cache_bytes"
def cache_bytes(
    num_layers: int, num_kv_heads: int, d_head: int, t: int, batch: int = 1, bytes_per_number: int = 2
) -> int:
    """Bytes of the keys and values of t tokens in every layer.

    t: tokens so far. bytes_per_number: 2 for float16 and bfloat16, 4 for float32. Returns: a whole number.
    """
    # region solution
    return 2 * num_layers * num_kv_heads * d_head * t * batch * bytes_per_number
    # endregion

# %% role="check" exercise="cache_bytes"
check(cache_bytes)

# %% [markdown]
# @exercise KVCache
#
# `KVCache(batch, num_kv_heads, max_len, d_head, dtype=torch.float32, device=None)`; `append(k, v)`, both
# (batch, num_kv_heads, T_new, d_head) → (keys, values), both (batch, num_kv_heads, length, d_head)

# %% role="exercise" exercise="KVCache"
class KVCache:
    """Keys and values of all tokens so far, in memory that is taken once.

    dtype, device: of the numbers that are kept. len(cache) is the number of tokens in it.
    """

    def __init__(self, batch: int, num_kv_heads: int, max_len: int, d_head: int, dtype=torch.float32, device=None) -> None:
        """max_len: how many tokens there is room for."""
        # region solution
        shape = batch, num_kv_heads, max_len, d_head
        self.max_len = max_len
        self.keys = torch.zeros(shape, dtype=dtype, device=device)
        self.values = torch.zeros(shape, dtype=dtype, device=device)
        self.length = 0
        # endregion

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """k, v: (batch, num_kv_heads, T_new, d_head), copied. Returns: (keys, values) of all tokens so far, as views.

        Raises: ValueError where they do not fit; then nothing has changed.
        """
        # region solution
        for name, new in (("k", k), ("v", v)):  # written into the memory, another batch would be broadcast and a dtype converted
            if new.shape != (*self.keys.shape[:2], k.shape[2], self.keys.shape[3]):
                raise ValueError(f"{name} has shape {tuple(new.shape)}; this cache takes {(*self.keys.shape[:2], 'T', self.keys.shape[3])}")
            if (new.dtype, new.device) != (self.keys.dtype, self.keys.device):
                raise ValueError(f"{name} is {new.dtype} on {new.device}; this cache holds {self.keys.dtype} on {self.keys.device}")
        start, end = self.length, self.length + k.shape[2]
        if end > self.max_len:
            raise ValueError(f"{end} tokens do not fit into a cache of {self.max_len}")
        self.keys[:, :, start:end] = k.detach()
        self.values[:, :, start:end] = v.detach()
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]
        # endregion

    def __len__(self) -> int:
        """The number of tokens so far."""
        # region solution
        return self.length
        # endregion

# %% role="check" exercise="KVCache"
check(KVCache)

# %% [markdown]
# @exercise grouped_query_attention
#
# `q` (B, H, T_q, d), `k` and `v` (B, H_kv, T_k, d) → output (B, H, T_q, d)

# %% role="exercise" exercise="grouped_query_attention"
def grouped_query_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = True) -> Tensor:
    """Attention in which each key-value head serves a group of neighboring query heads.

    q: (B, H, T_q, d). k, v: (B, H_kv, T_k, d). Causal as in lesson 06: the last query sees every key.
    Returns: (B, H, T_q, d). Raises: ValueError where H_kv does not divide H.
    Source:  Ainslie et al. 2023, "GQA".
    """
    # region solution
    heads, kv_heads = q.shape[1], k.shape[1]
    t_q, t_k = q.shape[2], k.shape[2]
    if heads % kv_heads:
        raise ValueError(f"{kv_heads} key-value heads do not divide {heads} query heads")
    if causal and t_k < t_q:
        raise ValueError(f"{t_q} queries cannot be the last of {t_k} positions; causal attention needs T_k ≥ T_q")
    group = heads // kv_heads
    k = k.repeat_interleave(group, dim=1)
    v = v.repeat_interleave(group, dim=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        seen = torch.ones(t_q, t_k, dtype=torch.bool, device=q.device).tril(t_k - t_q)
        scores = scores.masked_fill(~seen, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v
    # endregion

# %% role="check" exercise="grouped_query_attention"
check(grouped_query_attention)

# %% [markdown]
# @exercise window_mask
#
# `t_q`, `t_k`, `window`, `sinks` integers → a bool tensor (t_q, t_k), True where attention is allowed

# %% role="exercise" exercise="window_mask"
def window_mask(t_q: int, t_k: int, window: int, sinks: int = 0) -> Tensor:
    """A causal mask in which each query sees `window` tokens, itself included, and the first `sinks` of the text.

    The queries are the last t_q of t_k positions. Returns: (t_q, t_k) bool, True where attention is allowed.
    Source:  Beltagy et al. 2020 (window), Xiao et al. 2024 (sinks).
    """
    # region solution
    if t_k < t_q:
        raise ValueError(f"{t_q} queries cannot be the last of {t_k} positions")
    if window < 1 or sinks < 0:
        raise ValueError(f"a window of {window} tokens and {sinks} sinks; window is 1 or more, sinks 0 or more")
    p = torch.arange(t_q)[:, None] + t_k - t_q  # positions of the queries
    j = torch.arange(t_k)[None, :]
    return (j <= p) & ((p - j < window) | (j < sinks))
    # endregion

# %% role="check" exercise="window_mask"
check(window_mask)

# %% [markdown]
# @exercise generate_cached
#
# `model.new_cache(batch)` → a cache; `model(ids, cache)`, ids (B, T) → logits (B, T, V), and the cache is longer by these tokens.
# `ids` (B, T) → (B, T + max_new_tokens)

# %% role="exercise" exercise="generate_cached"
def generate_cached(model: nn.Module, ids: Tensor, max_new_tokens: int) -> Tensor:
    """Continue each row of ids by the likeliest token, again and again, feeding each token once.

    model: has new_cache(batch); model(ids, cache) gives logits (B, T, V) and extends the cache. ids: (B, T) int64.
    Returns: (B, T + max_new_tokens) int64.
    """
    # region solution
    if max_new_tokens < 0:
        raise ValueError(f"max_new_tokens = {max_new_tokens}; it is 0 or more")
    with torch.no_grad():
        cache = model.new_cache(ids.shape[0])
        new = ids
        for _ in range(max_new_tokens):
            logits = model(new, cache)
            new = logits[:, -1].argmax(dim=-1, keepdim=True)
            ids = torch.cat([ids, new], dim=1)
    return ids
    # endregion

# %% role="check" exercise="generate_cached"
check(generate_cached)
