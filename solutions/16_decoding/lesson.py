# %% [markdown]
# # 16 · Decoding: one token at a time
#
# **Why does a model keep its keys and values while it writes, and what does that cost?**
#
# **Before this lesson:** lesson 05 (views), lesson 06 (the causal mask), lesson 07 (heads), lesson 10 (the model that
# writes).
#
# In a chat, we wait a moment for the first word of an answer, and the others follow quickly. Lesson 10's model would not
# do that: it reads the whole text again for every character. Chat programs keep what they have already computed. In this
# lesson you build that memory, find out what it saves and costs, and make it smaller. With it your own model from lesson
# 10 writes the same text as before.

# %% role="given"
import math
import time
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="demo" tags=["hide-input"]
torch.set_num_threads(1)  # one thread gives quieter times
query, keys = torch.tensor([1.0, 1.0]), torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])  # lesson 01's
values = torch.tensor([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])
table = figures.machine.Table(("animal", "street", "it"), "it", query.numpy(), keys.numpy(), values.numpy())
figures.machine.draw(lit=("key", "value"), title="What a new token needs from every earlier one", table=table)

# %% [markdown]
# The new token, in the last row, brings its own query, key and value. From every earlier token it needs the *kept* key and
# value, but no query: those have done their work.
#
# ## The same work, again and again
#
# A model that writes by reading its own output is called **autoregressive**. Lesson 10's `generate` feeds the whole text to
# the model, takes the last position's logits, appends a token and starts over. How much work is that?

# %% [markdown]
# @predict
#
# A model starts with one token and writes 100 more. Before each of them it reads the whole text so far. How many tokens
# go through the model altogether? And how many if each had to go through only once?
#
# @answer
#
# 1 + 2 + … + 100 = 100 · 101 / 2 = 5,050, against 100. For T tokens, that is about T²/2 against T.
#
# @wrong
#
# 100 · 100 = 10,000 gives every pass the full length; on average a pass is half as long.

# %% role="demo" tags=["hide-input"]
figures.decoding.passes()

# %% [markdown]
# Each row is a step; dark squares are computed in it, pale ones are kept. But may we keep what was computed? Only if no
# later token changes it.
#
# ## Why a row never changes
#
# Take the table of lesson 01, with a causal mask, and let its tokens arrive one after the other.

# %% role="demo" tags=["nbval-check-output"]
Q = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
K = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
V = torch.tensor([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])
for t in (1, 2, 3):
    out = F.scaled_dot_product_attention(Q[None, :t], K[None, :t], V[None, :t], is_causal=True)[0]
    print(f"{t} tokens:", "  ".join(f"[{a:.2f}, {b:.2f}]" for a, b in out.tolist()))

# %% [markdown]
# Rows 0 and 1 stay as they are: token 1 sees tokens 0 and 1, and token 2 arrives too late to affect
# it. The next layer reads only these rows, so the same holds there, and in all layers. Because of the causal mask **the
# past is final**, and so it can be kept.
#
# Here is token 2 by hand. Its query (1, 1) meets the kept keys (1, 1) and (1, 0) and its own, (0, 1). The scores are 2, 1
# and 1, divided by √2, and the weights 0.5035, 0.2483 and 0.2483. With the values (10, 0), (0, 10) and (5, 5) the blend is
# (6.28, 3.72), the last row above. That took one row of scores instead of a matrix, and no mask: nothing that is kept
# comes after the new token.
#
# The keys and values that we keep are called the **KV cache**.
#
# ## What it costs
#
# A cache takes memory: one key and one value for each token, in each head, in each layer, for each text. Some models
# let query heads share keys and values (below). What counts is how many different key/value heads there are, the **KV
# heads**.

# %% [markdown]
# @exercise cache_bytes
#
# `num_layers`, `num_kv_heads`, `d_head`, `t`, `batch`, `bytes_per_number` integers → an int
#
# The bytes of the keys and values of t tokens, all layers and all texts of the batch together. A whole number, no float.

# %% role="exercise" exercise="cache_bytes"
def cache_bytes(
    num_layers: int, num_kv_heads: int, d_head: int, t: int, batch: int = 1, bytes_per_number: int = 2
) -> int:
    """Bytes of the keys and values of t tokens, of all layers and all texts together.

    t: tokens so far. bytes_per_number: 2 for float16 and bfloat16, 4 for float32. Returns: a whole number.
    """
    # region solution
    return 2 * num_layers * num_kv_heads * d_head * t * batch * bytes_per_number
    # endregion

# %% role="check" exercise="cache_bytes"
check(cache_bytes)

# %% [markdown]
# The sizes of four models, from their papers and released configurations:
#
# | model | layers | query heads | KV heads | d_head |
# |---|---|---|---|---|
# | Llama 2 7B (Touvron et al. 2023) | 32 | 32 | 32 | 128 |
# | Llama 2 70B (the same) | 80 | 64 | 8 | 128 |
# | Llama 3 8B (Grattafiori et al. 2024, Table 3) | 32 | 32 | 8 | 128 |
# | SmolLM2-135M (lesson 17 loads it) | 30 | 9 | 3 | 64 |

# %% [markdown]
# @predict
#
# Llama 2 7B has 6.7 billion parameters, 13.5 GB in 16 bits. Several texts of 4,096 tokens are being written at once. How
# many does it take until their caches need more memory than the model?
#
# - **A** 7
# - **B** 200
# - **C** the parameters always take more
#
# @answer
#
# **A**. A token takes 2 · 32 · 32 · 128 numbers of 2 bytes, half a MiB, and a text 2.15 GB. Seven take 15.0 GB.
#
# @wrong
#
# **B** may leave out the layers or the heads, a factor of 32. **C** forgets that every text brings a cache.

# %% role="payoff" exercise="cache_bytes" tags=["hide-input"]
if passed(cache_bytes):
    models = {"Llama 2 7B": (32, 32, 128), "Llama 2 70B": (80, 8, 128), "Llama 3 8B": (32, 8, 128),
              "SmolLM2-135M": (30, 3, 64)}
    names = [f"{name}: {layers} layers, {kv_heads} KV heads" for name, (layers, kv_heads, _) in models.items()]
    figures.decoding.sizes({name: cache_bytes(*sizes, 1) / 2**10 for name, sizes in zip(names, models.values())})
    assert cache_bytes(32, 32, 128, 4096, 7) > 13.5e9 > cache_bytes(32, 32, 128, 4096, 6)

# %% [markdown]
# Llama 2 70B is ten times as large as Llama 2 7B, and still its tokens cost less: it has a quarter of the KV heads.
#
# ## What one token waits for
#
# We count as in lesson 11, for one token of Llama 2 7B, one text, in 16 bits. Each parameter is multiplied by one number and added to
# a sum: 2 operations, for which its 2 bytes have to come from the GPU's main memory. Each number in the cache is read
# once, too, for 2 operations. So here the **arithmetic intensity** is about 1 operation per byte.
#
# An A100 can do 153 operations in the time in which it moves one byte (lesson 11). The token after 4,095 others reads
# 13.5 GB of parameters and 2.15 GB of cache. At 2,039 GB per second that takes 7.7 ms, its arithmetic 0.05 ms: the
# token waits for memory.
#
# ## Allocating the memory once
#
# The obvious way to append is `keys = torch.cat([keys, k], dim=2)`. It works, but every call copies everything so far. We can
# instead allocate memory for the longest text once, write each token into its place, and return a *view* of the part that
# is filled. A slice copies nothing (lesson 05).

# %% [markdown]
# @exercise KVCache
#
# `KVCache(batch, num_kv_heads, max_len, d_head, dtype=torch.float32, device=None)`. `append(k, v)`, both (batch, num_kv_heads,
# T_new, d_head) → (keys, values), both (batch, num_kv_heads, length, d_head)
#
# - Memory for `max_len` tokens is allocated when the cache is made, of this dtype, on this device.
# - `append` takes a *chunk* of any number of tokens, and returns all keys and values so far, oldest first, as views of that
#   memory. What is stored shares no memory with k and v.
# - More than `max_len` tokens raise `ValueError` and change nothing. `len(cache)` is the number of tokens.

# %% role="exercise" exercise="KVCache"
class KVCache:
    """Keys and values of all tokens so far, in memory that is allocated once.

    dtype, device: of the numbers that are kept. len(cache) is the number of tokens in it.
    """

    def __init__(
        self, batch: int, num_kv_heads: int, max_len: int, d_head: int, dtype=torch.float32, device=None
    ) -> None:
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

        Raises: ValueError for more than max_len tokens; then nothing has changed.
        """
        # region solution
        b, h, _, d = self.keys.shape
        for name, new in (("k", k), ("v", v)):  # else another batch would be broadcast, and another dtype converted
            if new.shape != (b, h, k.shape[2], d):
                raise ValueError(f"{name} has shape {tuple(new.shape)}; this cache takes ({b}, {h}, T, {d})")
            if (new.dtype, new.device) != (self.keys.dtype, self.keys.device):
                raise ValueError(f"{name} is {new.dtype} on {new.device}; the cache is {self.keys.dtype} on {self.keys.device}")
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
# Reading the prompt, in one chunk, is called **prefill**; writing, one token at a time, is called **decode**.

# %% [markdown]
# @predict
#
# Five tokens are in a cache, and a chunk of three arrives. How many keys may each of the three new queries see?
#
# - **A** 8, 8 and 8: everything in the cache
# - **B** 6, 7 and 8
# - **C** 1, 2 and 3
#
# @answer
#
# **B**. The new tokens are at positions 5, 6 and 7. Each sees itself and all before it.
#
# @wrong
#
# **A** leaves out the mask, so the first of the three reads the two after it. **C** puts the mask's corner at the top
# left, as `is_causal=True` does: the new queries do not even see their own keys.

# %% [markdown]
# The queries of a chunk are the *last* positions of the text so far, so their mask is lesson 06's for fewer queries than keys.

# %% role="given"
def causal(t_q, t_k):
    """Lesson 06's mask: the queries are the last t_q of t_k positions."""
    return torch.ones(t_q, t_k, dtype=torch.bool).tril(t_k - t_q)


def attend(q, k, v, mask=causal):
    """Attention on torch's operator. mask: makes a boolean mask of the numbers of queries and keys."""
    t_q, t_k = q.shape[-2], k.shape[-2]
    if mask is causal and t_q in (1, t_k):  # no mask matrix needed: one query sees all, a whole text has is_causal
        return F.scaled_dot_product_attention(q, k, v, is_causal=t_q == t_k)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask(t_q, t_k).to(q.device))

# %% role="payoff" exercise="KVCache"
if passed(KVCache):
    torch.manual_seed(15)
    qkv = torch.randn(3, 1, 2, 24, 8)  # queries, keys and values of one text of 24 tokens, two heads
    whole = attend(*qkv)
    for chunks in ([24], [1] * 24, [7, 1, 9, 7], [10, 14]):
        cache = KVCache(1, 2, 24, 8)
        parts = [attend(q, *cache.append(k, v)) for q, k, v in qkv.split(chunks, dim=3)]
        gap = (torch.cat(parts, dim=2) - whole).abs().max().item()
        print(f"appends: {len(chunks):2}, largest difference from the run in one piece {gap:.0e}")
        assert gap < 1e-5
    figures.decoding.strips((7, 1, 9, 7))

# %% [markdown]
# All four ways agree, up to rounding. This is the best test of a cache: **filled in chunks of several sizes, it gives what
# one full run gives.**
#
# ## Fewer heads to keep
#
# Keys and values have to stay, because all later tokens read them; queries don't. So to keep less, several query heads can
# read *one* KV head. If all share one, this is **multi-query attention** (Shazeer 2019). If each group of neighboring
# query heads shares one, it is **grouped-query attention**. Ainslie et al. (2023, section 3) found groups nearly as good as a
# KV head for each query head; a single KV head lost more.

# %% role="demo" tags=["hide-input"]
figures.decoding.sharing()

# %% [markdown]
# @exercise grouped_query_attention
#
# `q` (B, H, T_q, d), `k` and `v` (B, H_kv, T_k, d) → output (B, H, T_q, d)
#
# Query head h reads KV head h // (H / H_kv); if H_kv does not divide H, `ValueError`. With `causal` the queries are the
# last of the T_k positions. From scratch: no `F.scaled_dot_product_attention`. Stable for scores of ±10,000.

# %% role="exercise" exercise="grouped_query_attention"
def grouped_query_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = True) -> Tensor:
    """Attention in which each KV head serves a group of neighboring query heads.

    q: (B, H, T_q, d). k, v: (B, H_kv, T_k, d). Causal as in lesson 06: the last query sees every key.
    Returns: (B, H, T_q, d), on the device of q. Raises: ValueError where H_kv does not divide H.
    Source:  Ainslie et al. 2023, "GQA".
    """
    # region solution
    heads, kv_heads = q.shape[1], k.shape[1]
    t_q, t_k = q.shape[2], k.shape[2]
    if heads % kv_heads:
        raise ValueError(f"{kv_heads} KV heads do not divide {heads} query heads")
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
# The shortest solution repeats each KV head in memory. That is right, but it copies the cache at every step. The helper
# in the closed cell, which our model will use, copies nothing: the query heads of a group become rows of one head. It has to
# agree with your function, here with the heads of Llama 3 8B.

# %% role="given" tags=["hide-input"]
def attend_grouped(q, k, v, mask=causal):
    """attend, where each KV head serves a group of query heads; no key and no value is copied."""
    t_q, group = q.shape[2], q.shape[1] // k.shape[1]
    if group == 1:
        return attend(q, k, v, mask)
    rows = q.reshape(q.shape[0], k.shape[1], group * t_q, q.shape[3])
    if mask is causal and t_q == 1:
        return F.scaled_dot_product_attention(rows, k, v).reshape(q.shape)
    return attend(rows, k, v, lambda _, t_k: mask(t_q, t_k).repeat(group, 1)).reshape(q.shape)

# %% role="payoff" exercise="grouped_query_attention"
if passed(grouped_query_attention):
    torch.manual_seed(15)
    q, k, v = torch.randn(1, 32, 3, 128), *torch.randn(2, 1, 8, 64, 128)  # the last three of 64 tokens
    out = grouped_query_attention(q, k, v)
    gap = (out - attend_grouped(q, k, v)).abs().max().item()
    print(f"output {tuple(out.shape)}, largest difference from the helper {gap:.0e}")
    assert gap < 1e-5

# %% [markdown]
# All 32 query heads still ask; only what is stored is less. Each byte of the cache is now used by four query heads, so the
# intensity of this part rises from 1 to 4.
#
# ## Writing with a cache
#
# Now the cache goes into lesson 10's model (in a closed cell). Attention appends its keys and values to a cache, if
# there is one, and reads all that are there.

# %% role="given" tags=["hide-input"]
class CachedAttention(nn.Module):
    """Lesson 09's attention; with a cache, x holds the new tokens alone."""

    mask = staticmethod(causal)

    def __init__(self, d, heads, kv_heads):
        super().__init__()
        self.d_head = d // heads
        self.widths = d, kv_heads * self.d_head, kv_heads * self.d_head  # of all queries, keys and values
        self.qkv, self.proj = nn.Linear(d, sum(self.widths), bias=False), nn.Linear(d, d, bias=False)

    def forward(self, x, cache=None):
        parts = self.qkv(x).split(self.widths, dim=-1)
        q, k, v = (part.unflatten(-1, (-1, self.d_head)).transpose(1, 2) for part in parts)
        if cache is not None:
            k, v = cache.append(k, v)
        return self.proj(attend_grouped(q, k, v, self.mask).transpose(1, 2).flatten(2))


class Layers(nn.Module):
    """The layers of lesson 10's model, names as in its checkpoint."""

    def __init__(self, vocabulary, d=128, heads=4, layers=2, max_len=64, kv_heads=None):
        super().__init__()
        kv_heads = kv_heads or heads
        self.sizes = kv_heads, max_len, d // heads  # of a cache
        self.token, self.position = nn.Embedding(vocabulary, d), nn.Embedding(max_len, d)
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "ln1": nn.LayerNorm(d), "attn": CachedAttention(d, heads, kv_heads), "ln2": nn.LayerNorm(d),
            "mlp": nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)),
        }) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)

# %% [markdown]
# The number of tokens in a cache is also the position of the next token. The first line of `forward` reads it, and is easily
# forgotten.

# %% role="given"
class CachedWriter(Layers):
    """Lesson 10's model with a cache: your KVCache, one for each block."""

    def new_cache(self, batch):
        return [KVCache(batch, *self.sizes) for _ in self.blocks]

    def places(self, start, t):
        return torch.arange(start, start + t, device=self.head.weight.device)

    def forward(self, ids, cache=None):
        start = len(cache[0]) if cache else 0
        if start + ids.shape[1] > self.sizes[1]:
            raise ValueError(f"{start + ids.shape[1]} tokens; this model has {self.sizes[1]} positions")
        x = self.token(ids) + self.position(self.places(start, ids.shape[1]))
        for i, block in enumerate(self.blocks):
            x = x + block["attn"](block["ln1"](x), cache[i] if cache else None)
            x = x + block["mlp"](block["ln2"](x))
        return self.head(self.norm(x))

# %% [markdown]
# @exercise generate_cached
#
# `model.new_cache(batch)` → a cache. `model(ids, cache)` → logits (B, T, V) of these tokens; the cache is then longer by them.
# `ids` (B, T) int64 → (B, T + max_new_tokens) int64, the given ids first
#
# Greedy: the likeliest token each time, for each row. The prompt goes in at once, then each new token once, alone (the last one
# need not). No graph is built, the model's mode and `ids` stay as they were. `max_new_tokens` may be 0.

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

# %% [markdown]
# Now your checkpoint of lesson 10 writes twice: as in lesson 10, and with your cache. (Without the checkpoint the
# parameters are random and the text is noise, but both ways must agree.)

# %% role="payoff" exercise="generate_cached"
if passed(KVCache) and passed(generate_cached):
    characters, kept = sorted(set(figures.language_model.reference_text())), figures.language_model.checkpoint()
    torch.manual_seed(15)
    writer = CachedWriter(len(characters)).eval()
    if kept.is_file():
        writer.load_state_dict(torch.load(kept, weights_only=True)["model"])
    start = again = torch.tensor([[characters.index(c) for c in "If the object is "]])
    for _ in range(47):  # lesson 10's loop, greedy; the model has 64 positions
        again = torch.cat([again, writer(again)[:, -1:].argmax(dim=-1)], dim=1)
    texts = again, generate_cached(writer, start, 47)
    for ids in texts:
        print("".join(characters[i] for i in ids[0].tolist()))
    assert torch.equal(*texts)

# %% [markdown]
# The text is the same.
#
# ## Break it on purpose
#
# A broken cache raises no error; the model writes as if it were badly trained. So `largest_gap` tests the whole model: logits of one
# full run over 48 characters against those in chunks. We break the given model in two ways.

# %% role="payoff" exercise="generate_cached"
if passed(KVCache) and passed(generate_cached):
    @torch.no_grad()
    def largest_gap(model, n):
        """The largest difference between the logits of a full run and of a run in chunks of n."""
        cache, ids = model.new_cache(1), texts[0][:, :48]
        rows = [model(chunk, cache) for chunk in ids.split(n, dim=1)]
        return (torch.cat(rows, dim=1) - writer(ids)).abs().max().item()

    restarted, unmasked = CachedWriter(len(characters)).eval(), CachedWriter(len(characters)).eval()
    restarted.places = lambda start, t: torch.arange(t)  # as if every chunk were a text of its own
    for block in unmasked.blocks:
        block["attn"].mask = lambda t_q, t_k: torch.ones(t_q, t_k, dtype=torch.bool)  # "a cache needs no mask"

# %% [markdown]
# @predict
#
# We test both with all 48 characters at once, in chunks of 16, and one by one. Which of these tests find positions that
# restart at 0, and which find the missing mask?
#
# @answer
#
# *At once* misses the restart: a single chunk does begin at 0. *One by one* misses the missing mask: nothing in the cache
# comes after the new token. Only chunks of several tokens find both.
#
# @wrong
#
# If you trust one test, ask which errors it cannot show.

# %% role="payoff" exercise="generate_cached" tags=["hide-input"]
if passed(KVCache) and passed(generate_cached):
    found = {}
    for name, model in (("right", writer), ("positions restart at 0", restarted), ("no mask", unmasked)):
        model.load_state_dict(writer.state_dict())
        found[name] = at_once, in_chunks, one_by_one = [largest_gap(model, n) for n in (48, 16, 1)]
        print(f"{name:22}   at once: {at_once:7.1e}   chunks of 16: {in_chunks:7.1e}   one by one: {one_by_one:7.1e}")
    wrong = [[value > 1e-3 for value in values] for values in found.values()]
    assert wrong == [[False, False, False], [False, True, True], [True, True, False]]

# %% [markdown]
# Published code has had both errors: positions that restart (Blaizzy/mlx-vlm#1983), and no mask (Mikyx-1/TinyLLM#17).
#
# ## The pause before an answer
#
# Your model has 64 positions, so a random one with 2,100 positions shows how long *one more token* takes.

# %% role="payoff" exercise="generate_cached" tags=["hide-input"]
if passed(KVCache) and passed(generate_cached):
    @torch.no_grad()
    def quickest_ms(run, runs=8, best=math.inf):
        """Milliseconds that a function takes, the quickest of several runs: other programs only ever make it slower."""
        for _ in range(runs):
            started = time.perf_counter()
            run()
            best = min(best, 1000 * (time.perf_counter() - started))
        return best

    @torch.no_grad()
    def one_more(t):
        """The time of the token after t others, which are in the cache beforehand. Each run appends one more."""
        cache, new = long.new_cache(1), text[:, t : t + 1]
        long(text[:, :t], cache)
        return {"without a cache": quickest_ms(lambda: long(text[:, : t + 1])),
                "with a cache": quickest_ms(lambda: long(new, cache), runs=40)}  # eight runs are over so soon that one pause could hit all

    long, text = CachedWriter(100, max_len=2100).eval(), torch.randint(100, (1, 2100))
    times = {t: one_more(t) for t in (64, 128, 256, 512, 1024, 2048)}
    figures.decoding.one_more(times)
    rise, flat = (times[2048][name] / times[64][name] for name in times[64])
    gain = times[2048]["without a cache"] / times[2048]["with a cache"]
    assert gain > 5 and rise > 3 * flat

# %% [markdown]
# Without a cache all tokens go through the layers again. With a cache one token does, and only attention has more to read:
# after 2,048 tokens the next one came {{ gain:.0f; it > 5 }} times as fast in this run. Here is an answer on a time line: a
# prompt of 256 tokens, then 32 new ones.

# %% role="payoff" exercise="generate_cached" tags=["hide-input"]
if passed(KVCache) and passed(generate_cached):
    cache = long.new_cache(1)
    prefill = quickest_ms(lambda: long(text[:, :256], long.new_cache(1)))
    with torch.no_grad():
        long(text[:, :256], cache)
    answer = {"without a cache": [prefill] + [quickest_ms(lambda t=t: long(text[:, :t])) for t in range(257, 288)],
              "with a cache": [prefill] + [quickest_ms(lambda t=t: long(text[:, t : t + 1], cache)) for t in range(256, 287)]}
    figures.decoding.timeline(answer, prompt=256)
    assert sum(answer["without a cache"]) > 2 * sum(answer["with a cache"])

# %% [markdown]
# The first token takes the same call both ways (measured once). How long it takes, the **time to first token**, is most of the
# pause before an answer in a chat.

# %% [markdown]
# ## Further: windows and sinks
#
# Another way to keep less is to forget. For those who want to see how Mistral's window works, and why the first tokens of a
# text must not be forgotten.

# %% [markdown]
# With a **sliding window** of w, each token sees itself and the w − 1 tokens before it
# (Beltagy et al. 2020; Mistral 7B, Jiang et al. 2023, with w = 4,096). Then w places are enough for a cache, however
# long the text is. Information can travel further than that, since layers are stacked: what a token passes on already
# contains what it read one layer below. Each layer can carry information w − 1 tokens further, so Mistral 7B's 32 layers
# could reach back about 131,000 tokens (section 2 of its paper).
#
# Forgetting the beginning has an unexpected price. Many trained models put much of their weight on the first few tokens
# of a text, whatever these say. Xiao et al. (2024) explain it this way. The weights of a softmax have to sum to 1. So a
# head that finds nothing relevant must still put its weight somewhere, and it learns to use the first tokens, which
# every query sees. They are called **attention sinks**. When they leave the window, the model begins to write
# nonsense; keeping as few as four of them repairs it. So your mask has both: a window, and the first `sinks` keys,
# which always stay visible.

# %% [markdown]
# @exercise window_mask
#
# `t_q`, `t_k`, `window`, `sinks` integers → a bool tensor (t_q, t_k), True where attention is allowed
#
# Each query sees no later key; of the others it sees the last `window`, itself included, and the first `sinks` of the text.
# The queries are the last t_q of t_k positions. t_k ≥ t_q ≥ 1, window ≥ 1, sinks ≥ 0.

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

# %% role="payoff" exercise="window_mask"
if passed(window_mask):
    figures.decoding.windows({"causal": causal(12, 12), "a window of 4": window_mask(12, 12, 4),
                               "and two sinks": window_mask(12, 12, 4, sinks=2)})

# %% [markdown]
# The mask says who sees whom, but it frees no memory: the hidden keys are still there. To save memory, a cache has to
# overwrite them. It keeps w places, and position p goes to place p mod w, where the token w positions earlier was: a
# **ring**. The first `sinks` tokens get places of their own, in front of the ring. With w = 4 and two sinks, tokens 0
# and 1 stay, tokens 2 to 5 fill the ring, and token 6 takes the place of token 2.
#
# So the keys are soon out of order. To a single query that does not matter: it sums over all keys, whatever their
# order, and each token's position was added to it before its key was made. `RingCache` keeps these positions as they
# were, so it gives what your mask gives.
#
# StreamingLLM, which found the sinks, does something else: it numbers positions *within the cache*, anew at each step
# (Xiao et al. 2024, section 3.2). With eight tokens kept, their positions are 0 to 7, however long the text has become,
# so that no position ever exceeds what the model was trained on. Our ring does not do that: past
# its last position our model still raises `ValueError`, and with RoPE the distance to the sinks still grows.

# %% role="given"
class RingCache:
    """The first `sinks` tokens and the last `window` ones; used like your KVCache, one token at a time."""

    def __init__(self, batch, num_kv_heads, window, d_head, sinks=0):
        self.keys, self.values = torch.zeros(2, batch, num_kv_heads, sinks + window, d_head)
        self.window, self.sinks, self.seen = window, sinks, 0

    def append(self, k, v):
        p, s = self.seen, self.sinks
        place = p if p < s else s + (p - s) % self.window
        self.keys[:, :, place : place + 1], self.values[:, :, place : place + 1] = k, v
        self.seen += 1
        return self.keys[:, :, : self.seen], self.values[:, :, : self.seen]  # a slice ends where the memory ends

    def __len__(self):
        return self.seen

# %% role="payoff" exercise="window_mask"
if passed(window_mask):
    torch.manual_seed(15)
    qkv = torch.randn(3, 1, 2, 24, 8)  # one text of 24 tokens, two heads
    for window, sinks in ((4, 0), (4, 2), (7, 1), (30, 2)):
        ring = RingCache(1, 2, window, 8, sinks)
        parts = [attend(q, *ring.append(k, v)) for q, k, v in qkv.split(1, dim=3)]
        masked = attend(*qkv, partial(window_mask, window=window, sinks=sinks))
        gap = (torch.cat(parts, dim=2) - masked).abs().max().item()
        print(f"window {window:2}, sinks {sinks}: {ring.keys.shape[2]:2} places, largest difference from the mask {gap:.0e}")
        assert gap < 1e-5

# %% [markdown]
# The ring gives what your mask gives over all 24 keys, up to rounding. It takes one token at a time, because in a chunk
# the last tokens would overwrite keys that the first ones still need.
#
# ### The same model with less to keep
#
# Now the two smaller caches go into the model. We compare three models: the long one from above with its full cache, the
# same with 2 KV heads instead of 4, and the same with a ring of 252 places and 4 sinks. We fill the caches of
# 16 texts with 2,048 random tokens each, ask torch for the bytes of the memory behind what `append` returns, and time
# one more token.

# %% role="demo" tags=["hide-input"]
if passed(KVCache) and passed(generate_cached):
    def fill(model, texts=16, t=2048):
        """Caches with t random tokens for each text, and the MiB of memory that they lie in."""
        caches, memory = model.new_cache(texts), {}
        for cache in caches:
            for k, v in torch.randn(t, 2, texts, model.sizes[0], 1, model.sizes[2]):
                stores = [one.untyped_storage() for one in cache.append(k, v)]
            memory |= {store.data_ptr(): store.nbytes() for store in stores}  # each stretch of memory once
        return caches, sum(memory.values()) / 2**20

    slim, ringed = CachedWriter(100, max_len=2100, kv_heads=2).eval(), CachedWriter(100, max_len=2100).eval()
    ringed.new_cache = lambda batch: [RingCache(batch, 4, 252, 32, sinks=4) for _ in ringed.blocks]

# %% role="demo"
if passed(KVCache) and passed(generate_cached):
    mib, ms, token = {}, {}, text[:, :1].expand(16, 1)
    for name, model in {"full": long, "grouped": slim, "windowed": ringed}.items():
        caches, mib[name] = fill(model)
        ms[name] = quickest_ms(partial(model, token, caches), runs=40)
        print(f"{name:9} {mib[name]:7.3f} MiB   {ms[name]:6.2f} ms for one more token of 16 texts")
    assert mib["full"] == 2 * mib["grouped"] > 8 * mib["windowed"] and ms["windowed"] < ms["full"]

# %% [markdown]
# Two KV heads instead of four take half the memory, {{ mib["grouped"]:.1f }} instead of {{ mib["full"]:.1f }} MiB.
# The ring takes {{ mib["windowed"]:.1f }} MiB, and would take no more for a longer text. The 16 texts share the
# parameters, so nearly everything that a step reads is cache, and less cache means less time: in this run
# {{ ms["full"]:.1f }} ms with the full cache, {{ ms["grouped"]:.1f; it < 0.8 * ms["full"] }} ms with the grouped one and
# {{ ms["windowed"]:.1f }} ms with the window.
#
# Neither saving is free. A window with sinks can be given to a model that was trained without one, but it then forgets
# what has left the window. Shared heads forget nothing, but they have to be trained: from the start, as
# in Llama 3, or by taking the mean of each group's heads in a trained model and training it further (Ainslie et al.
# 2023, section 2.1).
#
# Sources of this part: Beltagy et al. 2020, *Longformer*; Jiang et al. 2023, *Mistral 7B*; Xiao et al. 2024, *Efficient
# streaming language models with attention sinks*.

# %% [markdown]
# ## Further: many texts at once
#
# For those who want to know what a server does with its memory: how far a batch helps, and what stops it.

# %% [markdown]
# Texts that are written at the same time share the parameters: a step reads them once and uses them once for each text.
# But each cache serves its own text alone. The next cell continues the count for Llama 2 7B in four cases: one text; 30
# texts, whose caches just fit beside the parameters into 80 GB; 120 texts, which fit with a quarter of the KV heads; and,
# for comparison, the prefill of a prompt. The count ignores softmax, everything between the layers, and the fact
# that `w_k` and `w_v` shrink where KV heads are shared.

# %% role="demo"
if passed(cache_bytes):
    weights = 2 * 6.74e9  # 2 bytes for each parameter, and 2 operations for each token
    cache, quarter = cache_bytes(32, 32, 128, 4096), cache_bytes(32, 8, 128, 4096)  # also 2 operations for 2 bytes
    steps = {  # operations and bytes
        "one text": (weights + cache, weights + cache),
        "30 texts": (30 * (weights + cache), weights + 30 * cache),
        "120 texts, 8 KV heads": (120 * (weights + cache), weights + 120 * quarter),
        "a prompt of 4,096 tokens": (4096 * weights + 32 * 2 * 4096**2 * 4096, weights + cache)}  # lesson 11: 2 T² d_model
    for name, (operations, moved) in steps.items():
        ms = 1000 * max(operations / 312e12, moved / 2039e9)  # the slower of the two
        print(f"{name:28} {moved / 1e9:5.1f} GB  {operations / moved:7.1f} operations per byte  {ms:6.1f} ms at least")
    figures.decoding.roof(312e12, 2039e9, steps)
    assert (weights + cache) / cache < 7.3 and weights + 30 * cache < 80e9 < weights + 31 * cache

# %% [markdown]
# Thirty texts take five times as long as one, not thirty times. More would gain little: however many texts there
# are, a step never does more than 15.6 / 2.15 = 7.3 operations per byte, because the bytes of the caches grow with the
# batch as fast as the operations do. And there is hardly room for more. With a quarter of the KV heads, 120 texts fit and a
# step takes the same time, so the GPU writes four times as many tokens: this is what a smaller cache is for. Prefill
# is another matter: all tokens of the prompt use each parameter that is read, so it waits for arithmetic.
#
# A server that reserves, for each text, the memory that the longest possible text would need wastes most of it: Kwon et
# al. (2023, section 1) found that only 20 to 38 % held tokens. Their **paged** cache (section 4) cuts the memory into
# blocks of, for example, 16 tokens and gives a text a new block only when its last one is full.
#
# DeepSeek-V2 keeps less in yet another way. For each token and layer it stores one vector of 512 numbers, the *latent*,
# from which the keys and values of all 128 heads are computed when they are needed, and one key of 64 numbers that
# carries the position and is shared by all heads. This is **multi-head latent attention** (DeepSeek-AI 2024, sections
# 2.1 and 3.1.2). Its 60 layers keep 60 · 576 numbers a token, 67.5 KiB in 16 bits: an eighth of Llama 2 7B's, for a
# model 35 times as large.
#
# Sources of this part: Kwon et al. 2023, *Efficient memory management for large language model serving with
# PagedAttention*; DeepSeek-AI 2024, *DeepSeek-V2*.

# %% [markdown]
# ## What we keep
#
# - Causal rows never change, so keys and values can be kept: T tokens are computed instead of about T²/2.
# - A cache costs 2 · layers · KV heads · d_head numbers a token, for every text.
# - Prefill reads the prompt in one call; decode feeds one token a call, and waits for memory.
# - The test of a cache: filled in chunks of several sizes, it gives what one full run gives.
# - Grouped-query attention keeps less: query head h reads KV head h // (H / H_kv).
#
# | what | shape |
# |---|---|
# | the memory of a layer, twice | (B, H_kv, max_len, d_head) |
# | keys, values so far: views of it | (B, H_kv, length, d_head) |
# | their mask | (T_new, length), its corner at the bottom right; none where T_new = 1 |
#
# Sources: Shazeer 2019, *Fast Transformer decoding*; Ainslie et al. 2023, *GQA*; the models' own papers, named in the table.

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners see that the speed of every chat program rests on one fact they already know: causal rows do not change. They leave with
# a cache that they trust, because they know the property that tests it, and with the arithmetic that explains why heads share keys:
# one token of one text does about one operation for each byte that it reads.
#
# ## Cut for 60 minutes
#
# `cache_bytes` together, on the board, with the table of models. `KVCache` and `generate_cached` in class, with the line of time
# at the end. Show the solution of `grouped_query_attention`. Both further parts are homework.
#
# ## Cut for 90 minutes
#
# The whole core. Keep ten minutes for "Break it on purpose": let learners say beforehand which of the three ways to cut the text
# finds which mistake. The further part "Many texts at once" is a good talk of ten minutes for those who run servers.
#
# ## Mistakes to expect
#
# - cache_bytes CB1: What does a new token read of an earlier one, besides its key?
# - cache_bytes BY15: What does `type(...)` say of your result, and can there be half a byte?
# - KVCache KC1: Where does the tensor lie that you return, and where did it lie one append ago?
# - KVCache KC4: What is in the places that nobody has written yet, and which weight would they get?
# - KVCache KC6: Into a cache of 5 come 5 tokens. Should it refuse?
# - KVCache KC7: After a refused append, what does `len` say?
# - grouped_query_attention GQ1: With 6 query heads and 3 KV heads, what does head 1 read in your code?
# - grouped_query_attention GH6: A chunk of three comes to a cache of five. Which keys does its first query see?
# - generate_cached GC5: Which call of the model gives the first new token?
# - generate_cached GC1: After the second call, what is in the cache?
# - window_mask SW1: With a window of 1, what should a token see?
# - window_mask WM4: Does query 0 see key 1, if there are two sinks?
#
# ## To discuss
#
# - A colleague's cache passes every test with one token at a time, and the chat program still writes nonsense after long prompts.
#   What do you ask? A good answer asks how the prompt goes in: a chunk needs a mask with its corner at the bottom right, and
#   positions that go on where the cache ends. Uneven chunks against a full run would tell.
# - You may halve the cache by halving the KV heads, the bits of each number, or the window. What does each cost? A good
#   answer: fewer heads have to be trained for and lose some difference between heads; fewer bits cost precision and no training; a
#   window loses what lies further back than layers · (w − 1), and needs sinks.
#
# ## On paper
#
# A model has 4 layers, 6 query heads, 2 KV heads and d_head 16, and its cache holds 16-bit numbers. How many bytes does a
# text of 100 tokens take? Which KV head do query heads 0 to 5 read? *Solution:* 2 · 4 · 2 · 16 · 100 · 2 = 51,200 bytes.
# Groups of three: 0, 0, 0, 1, 1, 1.
