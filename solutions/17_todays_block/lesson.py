# %% [markdown]
# # 17 · Today's block, and a real model on your attention
#
# **What has changed in the block since 2017, and does yours run a model that others have trained?**
#
# **Before this lesson:** lesson 07 (heads), lesson 08 (RoPE), lesson 09 (the block), lesson 10 (a language model). Lesson 16
# (KV heads and the cache) helps.
#
# The block that you built in lesson 09 is GPT-2's. Today's open models are stacks of a block much like it, with four parts
# replaced and most biases gone. You wrote one of them, RoPE, in lesson 08; here you write the other three. Then we load an open
# model, 135 million parameters that others have trained, into a stack of *your* blocks, and it answers your questions.

# %% role="given"
import json
import math
import time
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="demo" tags=["hide-input"]
figures.todays_block.blocks()

# %% [markdown]
# Read each column from bottom to top. Blue marks what changed or moved from one generation to the next. The frame is lesson 09's:
# the **residual stream** runs through the block, and each branch adds to it.
#
# | part | Transformer 2017, GPT-2 | Llama 2 70B, Llama 3 | why |
# |---|---|---|---|
# | normalization | LayerNorm | RMSNorm | as good, with one sum fewer |
# | feed-forward network | ReLU, then GELU | SwiGLU | slightly better at the same cost |
# | positions | added to the tokens | RoPE in each block | relative distances; no table |
# | keys and values | one set per head | KV heads shared | a smaller cache (lesson 16) |
#
# (Vaswani et al. 2017, section 3; Radford et al. 2019, section 2.3; Touvron et al. 2023, both papers, section 2.2.)
#
# ## A norm that subtracts nothing
#
# LayerNorm shifts a token's mean to 0, and divides by the spread. Zhang and Sennrich 2019 (section 4) left
# out the shift. What remains is to divide a token by its root mean square. This is **RMSNorm**. Models train about as well,
# with one sum and one vector fewer.
#
# By hand, for the token (1, 2, 2, 4): the mean of the squares is (1 + 4 + 4 + 16)/4 = 6.25, and its root 2.5. Divided by 2.5
# the token becomes (0.4, 0.8, 0.8, 1.6). Then each feature is multiplied by its weight, as in LayerNorm.

# %% [markdown]
# @predict
#
# The token (3, 3, 3, 3) goes through both norms, with weight 1 and without a bias. What comes out?
#
# - **A** zeros from both
# - **B** zeros from LayerNorm, ones from RMSNorm
# - **C** ones from both
#
# @answer
#
# **B**. LayerNorm subtracts the mean, and nothing is left. The root mean square is 3 as well, and 3/3 = 1: RMSNorm keeps what
# all features have in common.
#
# @wrong
#
# **A** subtracts the mean in both, **C** in neither.

# %% [markdown]
# One trap is left: precision. Large models compute in 16-bit numbers, and the largest number in `float16` is 65,504. What
# is 300 squared?

# %% role="demo" tags=["nbval-check-output"]
number = torch.tensor(300.0, dtype=torch.float16)
print("300² in float16:", (number**2).item(), "  and 300 divided by the root of that:", (number / (number**2).sqrt()).item())

# %% [markdown]
# The square is infinite, and the token becomes 0 without an error. So the mean and its root are computed in float32, and only
# the result is converted back. The first `nn.RMSNorm`, in torch 2.4, squared in float16, and Llama gave wrong answers with
# it (pytorch/pytorch#134106).

# %% [markdown]
# @exercise rms_norm
#
# `x` (..., d), `weight` (d,) → (..., d), in the type of `x`
#
# Each token is divided by the root of (its mean square + eps), then multiplied feature by feature by `weight`, which has the type
# of `x`. For float16 and bfloat16 everything up to the division is computed in float32 or better. Without `F.rms_norm`,
# `nn.RMSNorm`, `F.normalize` and their like.

# %% role="exercise" exercise="rms_norm"
def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Each token divided by the root of its mean square, then scaled feature by feature.

    x: (..., d) of any float type. weight: (d,). Returns: (..., d) in the type and on the device of x, computed in float32
    or better.
    """
    # region solution
    wide = x.to(torch.promote_types(x.dtype, torch.float32))  # a float16 above 255 has no square in float16
    root = torch.sqrt((wide**2).mean(dim=-1, keepdim=True) + eps)
    return (wide / root * weight).to(x.dtype)
    # endregion

# %% role="check" exercise="rms_norm"
check(rms_norm)

# %% [markdown]
# Tokens of growing size in float16, through your function and through one that does not convert. What comes out should have
# the size 1.

# %% role="payoff" exercise="rms_norm" tags=["hide-input"]
if passed(rms_norm):
    torch.manual_seed(16)
    sizes, one = [2.0**k for k in range(-4, 13)], torch.randn(512)
    ones = torch.ones(512, dtype=torch.float16)

    def size_of(result):
        return result.float().square().mean().sqrt().item()

    tokens = [(size * one / size_of(one)).half() for size in sizes]
    yours = [size_of(rms_norm(x, ones)) for x in tokens]
    squared = [size_of(x / ((x**2).mean() + 1e-5).sqrt()) for x in tokens]
    figures.todays_block.float16_range(sizes, {"yours": yours, "squared in float16": squared})
    assert max(abs(each - 1) for each in yours[1:]) < 0.01 and squared[-1] == 0

# %% [markdown]
# The other curve drops to 0 at 128 already: one infinite square among 512 is enough.
#
# ## A network with a gate
#
# In the **feed-forward network** (MLP) of lesson 09, each number goes through an activation and so decides alone how much of
# it passes. In a gated network *another* number decides. One projection, `up`, says what could pass; a second one, `gate`,
# how much of it does (it may also amplify); the two are multiplied, number by number (Dauphin et al. 2017; Shazeer 2020,
# section 2).

# %% role="demo" tags=["hide-input"]
figures.todays_block.gates()

# %% [markdown]
# The gate goes through **SiLU**, z · sigmoid(z), also called Swish. By hand, with up = 5: at z = 4 SiLU is 4 · 0.982 = 3.93,
# and 19.6 comes through. At z = −4 it is −4 · 0.018 = −0.07, and −0.36 comes through: nearly closed. Swish and the *gated
# linear unit* (GLU) together give the name **SwiGLU**.
#
# Three matrices cost more than two, so each is narrower. The plain network is 4 · d wide; for as many parameters,
# 3 · h · d = 2 · 4 · d², the gated one is h = 8/3 · d wide. For our model's d_model = 576 that is 1536.

# %% [markdown]
# @exercise SwiGLU
#
# `SwiGLU(d_model, d_hidden)` with three `nn.Linear` layers, none with a bias: `gate` and `up` (d_model → d_hidden), `down` (d_hidden →
# d_model). forward: `x` (..., d_model) → (..., d_model)
#
# `F.silu` is fine. Use `d_hidden` as it is, without the factor 8/3.

# %% role="exercise" exercise="SwiGLU"
class SwiGLU(nn.Module):
    """The gated feed-forward network of a block: three layers without bias, and silu on one of them."""

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

# %% [markdown]
# A trap: gate and up have the same shape, and swapping them raises no error
# (ml-explore/mlx-lm#767).
#
# ## Attention with rotated keys
#
# Two changes to lesson 09's attention. Queries and keys are rotated by RoPE (folded: lesson 08's), in every block, so that no
# position is added to the tokens. And neighboring query heads share one **KV head**: grouped-query attention, as in lesson
# 16. Our model has 9 query heads and 3 KV heads.

# %% role="given" tags=["hide-input"]
def apply_rope(x, positions, base=10000.0):
    """Lesson 08: turns each pair (x[2i], x[2i + 1]) by positions · base^(−2i/d). x: (..., T, d), positions: (T,)."""
    d = x.shape[-1]
    frequencies = base ** (-torch.arange(0, d, 2, dtype=torch.float32, device=x.device) / d)
    angles = positions[:, None] * frequencies
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)

# %% [markdown]
# @exercise GroupedQuerySelfAttention
#
# `GroupedQuerySelfAttention(d_model, num_heads, num_kv_heads, base=10000.0)` with four `nn.Linear` layers, none with a bias: `w_q` and
# `w_o` (d_model → d_model), `w_k` and `w_v` (d_model → num_kv_heads · d_head). forward: `x` (B, T, d_model) → (B, T, d_model)
#
# - Heads are contiguous slices of d_head numbers. Query head h reads KV head h // (num_heads / num_kv_heads).
# - Queries and keys (…, T, d_head) are rotated by `apply_rope(x, positions, base)` at positions 0 … T − 1. Attention is causal.
# - d_model not divisible by num_heads, num_heads not divisible by num_kv_heads, or an odd d_head raise `ValueError` when the module
#   is built. `state_dict` holds the four weights alone.
# - `F.scaled_dot_product_attention` is allowed; `nn.MultiheadAttention` is not.

# %% role="exercise" exercise="GroupedQuerySelfAttention"
class GroupedQuerySelfAttention(nn.Module):
    """Causal self-attention with RoPE, on any device; num_heads // num_kv_heads neighboring query heads share one KV head.

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
# ## The block
#
# Now put the parts together, as in the right column of the first figure. A norm here is a module with one parameter,
# `weight`: torch's `nn.RMSNorm(d_model, eps=eps)`, or your own `rms_norm` in a class. Pass eps on: without it torch uses
# 1.2e-7 for float32.

# %% [markdown]
# @exercise LlamaBlock
#
# `LlamaBlock(d_model, num_heads, num_kv_heads, d_hidden, base=10000.0, eps=1e-5)`. forward: `x` (B, T, d_model) → (B, T, d_model)
#
# Four attributes: `attn_norm` and `mlp_norm`, modules with one parameter `weight` (d_model,), ones at first; `attn`, as
# GroupedQuerySelfAttention with this base; `mlp`, as SwiGLU. Ready-made RMSNorms are fine.

# %% role="exercise" exercise="LlamaBlock"
class LlamaBlock(nn.Module):
    """A block of today's models, as in the right column of the lesson's first figure. eps: of both norms."""

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
# A model of thirty such blocks also has an **embedding matrix** with a vector for each of 49,152 tokens. It serves twice: at
# the end each logit is a dot product with one of its rows. This is called **weight tying** (Press and Wolf 2017).

# %% role="payoff" exercise="LlamaBlock" tags=["hide-input"]
if passed(LlamaBlock):
    block = LlamaBlock(576, 9, 3, 1536)
    size = {name: sum(p.numel() for p in part.parameters()) for name, part in block.named_children()}
    counts = {"30 × attention": 30 * size["attn"], "30 × feed-forward": 30 * size["mlp"], "embedding matrix": 49_152 * 576,
              "61 norms": 30 * (size["attn_norm"] + size["mlp_norm"]) + 576}
    figures.todays_block.parameter_counts(counts)
    assert sum(counts.values()) == 134_515_008

# %% [markdown]
# ## A real model on your attention
#
# SmolLM2-135M-Instruct (Allal et al. 2025) is an open model, free to use under the Apache 2.0 license, trained on two
# trillion tokens. It is made of blocks like yours: 30 of them, d_model 576, 9 query heads and 3 KV heads, d_hidden 1536,
# RoPE with base 100,000. `Llama` stacks them, and `load_state_dict` gives each weight to the parameter of its name.

# %% role="given"
class Llama(nn.Module):
    """A stack of your blocks between the embedding matrix and the same matrix once more."""

    def __init__(self, config, weights):
        super().__init__()
        c = self.config = config
        self.token, self.norm = nn.Embedding(len(weights["token.weight"]), c.d_model), nn.RMSNorm(c.d_model, eps=c.eps)
        sizes = c.d_model, c.heads, c.kv_heads, c.d_hidden, c.base, c.eps
        self.blocks = nn.ModuleList(LlamaBlock(*sizes) for _ in range(c.layers))
        left = self.load_state_dict(weights, strict=False, assign=True)  # assign: the weights are not copied
        assert not left.unexpected_keys, left

    def forward(self, ids):
        x = self.token(ids)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.token.weight.T

# %% [markdown]
# The weights are an optional extra of this course: a package of 94 MB, with most numbers rounded to 4 bits, so that answers
# differ a little from the original's. If you don't have them, the next cell says how to get them, and the answers and tables
# below come from a stored run.

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock):
    from grader.data import smollm2

    smol = smollm2.load() if smollm2.available() else None
    if smol:
        torch.set_num_threads(1)  # beside other programs, threads that wait for each other cost more than they bring
        model = Llama(smol.config, smol.weights)
        print(f"{sum(weight.numel() for weight in smol.weights.values()):,} parameters in {len(model.blocks)} of your blocks")
    else:
        print(smollm2.how_to_get())

# %% [markdown]
# Text becomes tokens before the model sees it: pieces of words, made by merging the neighbors that most often stand
# together (**byte-pair encoding**, Sennrich et al. 2016).

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock) and smol:
    def next_tokens(text, most=8, using=None):
        """The likeliest next tokens with their probabilities."""
        with torch.no_grad():
            logits = (using or model)(torch.tensor([smol.encode(text)]))[0, -1]
        top = torch.softmax(logits, dim=-1).topk(most)
        return [(smol.token(i), p) for i, p in zip(top.indices.tolist(), top.values.tolist())]

    prompt = "The capital of France is"
    print([smol.token(i) for i in smol.encode(prompt)])

# %% [markdown]
# @predict
#
# After "The capital of France is", which token is likeliest, and how likely, roughly? Which comes second?
#
# @answer
#
# ` Paris`, with {{ likely[0][1]:.2f }}. The second is `{{ likely[1][0] }}`, with {{ likely[1][1]:.2f }}: the sentence may go on "is the
# city of …".
#
# @wrong
#
# Nearly 1 would be right for knowing the capital. But the question is how the sentence goes on, and many true sentences
# begin like this.

# %% role="payoff" exercise="LlamaBlock" tags=["hide-input"]
if passed(LlamaBlock) and smol:
    likely = next_tokens(prompt)
    figures.todays_block.next_tokens(prompt, likely)
    assert likely[0][0] == " Paris" and likely[0][1] > 0.7

# %% [markdown]
# **Paris.** Your blocks have just run a model that others have trained. But do they run it correctly? `smollm2.LOGITS` holds
# ten logits after this text that separate code (NumPy, float64, one head at a time) has computed from the same weights:

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock) and smol:
    def gap(using):
        """The largest difference from those ten logits."""
        with torch.no_grad():
            logits = using(torch.tensor([smol.encode(prompt)]))[0, -1, list(smollm2.LOGITS)]
        return (logits - torch.tensor(list(smollm2.LOGITS.values()))).abs().max().item()

    print(f"Paris: {smollm2.LOGITS[smol.encode(' Paris')[0]]:.3f}; largest difference of ten logits: {gap(model):.4f}")
    assert gap(model) < 0.01

# %% [markdown]
# ## The same weights in another order
#
# The course's file is made for a rotation of neighboring pairs, as in lesson 08. The Hugging Face Hub has the same model for
# a program that rotates number i together with number i + d_head/2: *halves* instead of neighbors. To go from one to the
# other we move rows of `w_q` and `w_k`, since each row makes one number of q or k. Values are not rotated, so `w_v` stays.

# %% role="demo" tags=["hide-input"]
figures.todays_block.layouts(64)

# %% role="demo" tags=["nbval-check-output"]
def neighbors_from_halves(weight, num_heads):
    """The rows of w_q or w_k, moved from the order of halves to that of neighbors, in each head by itself.

    num_heads: how many heads *this* weight has: for w_k, num_kv_heads.
    """
    heads = weight.unflatten(0, (num_heads, 2, -1))  # (heads, half, i, d_model)
    return heads.transpose(1, 2).flatten(0, 2)  # (heads, i, half, d_model): 0, 32, 1, 33, …


rows = torch.arange(64.0)[:, None]  # one head of 64 rows, each row holding its own number
print(neighbors_from_halves(rows, num_heads=1).flatten().int().tolist()[:6], "…")

# %% [markdown]
# The scores stay the same: a dot product doesn't depend on the order of its terms.
#
# `w_k` has fewer heads than `w_q`; its rows must be moved with its own number of heads. The converter of llama.cpp took num_heads //
# num_kv_heads for it. Nobody noticed for two months, because the largest Llama 2 has 64 query heads and 8 KV heads, and
# 64 // 8 is also 8. Then a model with 32 and 4 wrote gibberish (ggml-org/llama.cpp#3364).
#
# ## Break it
#
# A model can be loaded wrongly in many ways that raise no error. For four of them we measure the probability of ` Paris`
# twice: after our short sentence, and with four sentences about other things before it.

# %% [markdown]
# @predict
#
# After the short sentence, the model still says Paris with one of these four mistakes. Which one?
#
# - **A** the rotation pairs halves, but the weights are ordered for neighbors
# - **B** KV heads are tiled, 0 1 2 0 1 2 …, instead of repeated in place, 0 0 0 1 1 1 …
# - **C** the norms keep their initial weights of 1
# - **D** gate and up are exchanged
#
# @answer
#
# **A**, with {{ found["rotated in halves"][0]:.2f }}. Within five tokens most of the 32 pairs hardly turn, so all seems well.
# After the longer text it is {{ found["rotated in halves"][1]:.2f }}. The other three fail at once, which is better: an error that
# shows up late is looked for in the wrong place.
#
# @wrong
#
# **B**, **C** and **D** change what every block computes, from the first token on.

# %% role="payoff" exercise="LlamaBlock" tags=["hide-input"]
if passed(LlamaBlock) and smol:
    tiled = [h for g in range(3) for h in range(9) if h % 3 == g]  # the query heads that share KV head g where they are tiled

    def in_halves(name, w):
        return neighbors_from_halves(w, len(w) // 64) if "w_q" in name or "w_k" in name else w

    def in_tiles(name, w):
        if "w_q" in name:
            return w.unflatten(0, (9, 64))[tiled].flatten(0, 1)
        return w.unflatten(1, (9, 64))[:, tiled].flatten(1, 2) if "w_o" in name else w

    def norms_of_one(name, w):
        return torch.ones_like(w) if "norm" in name else w

    def exchanged(name, w):
        other = name.replace("gate", "up") if "gate" in name else name.replace("mlp.up", "mlp.gate")
        return smol.weights[other]

    before = "Water boils at 100 degrees. The sun rises in the east. A year has twelve months. Snow is white, and grass is green."
    long = f"{before} {prompt}"

    def says_paris(using):
        return tuple(dict(next_tokens(text, 49_152, using))[" Paris"] for text in (prompt, long))

    found, gaps = {"as they are": says_paris(model)}, {"as they are": gap(model)}
    for name, spoil in {"rotated in halves": in_halves, "KV heads tiled": in_tiles, "norms of 1": norms_of_one,
                        "gate and up exchanged": exchanged}.items():
        model.load_state_dict({each: spoil(each, w) for each, w in smol.weights.items()}, strict=False, assign=True)
        found[name], gaps[name] = says_paris(model), gap(model)
    model.load_state_dict(smol.weights, strict=False, assign=True)
    figures.todays_block.slips(found, " Paris", (f"after {len(smol.encode(prompt))} tokens", f"after {len(smol.encode(long))} tokens"))
    assert found["rotated in halves"][0] > 0.5 > 0.1 > found["rotated in halves"][1]
    assert all(found[name][0] < 0.01 for name in ("KV heads tiled", "norms of 1", "gate and up exchanged"))
    assert min(each for name, each in gaps.items() if name != "as they are") > 100 * gaps["as they are"]

# %% [markdown]
# Good answers to short questions don't show that a model was loaded correctly; equal logits do. Rotated in halves, the model still
# says Paris, but its logits are off from NumPy's by up to {{ gaps["rotated in halves"]:.1f; it > 0.2 }}; yours by
# {{ gaps["as they are"]:.4f; it < 0.01 }}.

# %% [markdown]
# ## Chatting with your cache
#
# As it stands, the model reads the whole text again for each token. Lesson 16's cache avoids that: a key's rotation
# depends on its own position alone, so rotated keys can be kept. The folded cell takes `KVCache` and `grouped_query_attention` from
# your notebook of lesson 16, if it lies beside this one and you have solved them. If not, stand-ins do the same.

# %% role="demo" tags=["hide-input"]
class GivenCache:
    """Stands in for lesson 16's KVCache."""

    def __init__(self, batch, num_kv_heads, max_len, d_head):
        self.keys, self.values, self.length = *torch.zeros(2, batch, num_kv_heads, max_len, d_head), 0

    def append(self, k, v):
        start, self.length = self.length, self.length + k.shape[2]
        self.keys[:, :, start : self.length], self.values[:, :, start : self.length] = k, v
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def __len__(self):
        return self.length


def given_attention(q, k, v):
    """Stands in for lesson 16's grouped_query_attention: the queries are the last positions."""
    k, v = (each.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for each in (k, v))
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril(k.shape[2] - q.shape[2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)


def of_lesson_16(name, stand_in, result, notebook="16_decoding.ipynb"):
    """Your answer to an exercise of lesson 16, where it gives the same result as the stand-in; or the stand-in."""
    known = {"torch": torch, "nn": nn, "F": F, "math": math, "Tensor": torch.Tensor}
    try:
        cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
        about = [(cell.get("metadata", {}).get("grader", {}), "".join(cell["source"])) for cell in cells]
        exec(next(code for tags, code in about if (tags.get("exercise"), tags.get("role")) == (name, "exercise")), known)
        with torch.no_grad():
            right = torch.allclose(result(known[name]), result(stand_in), atol=1e-4)
        why = "" if right else "yours gives another result"
    except FileNotFoundError:
        why = f"no {Path(notebook).name} lies beside this notebook"
    except Exception as error:  # not solved, or solved with the help of other cells
        why = f"yours does not run by itself: {error!r}"
    print(f"{name}: a stand-in, because {why}" if why else f"{name}: yours, from lesson 16")
    return stand_in if why else known[name]


def filled(cache, k=torch.arange(48.0).view(1, 2, 6, 4)):
    cache = cache(1, 2, 6, 4)
    return torch.stack([torch.cat(cache.append(part, -part)).sum() + len(cache) for part in k.split([3, 1, 2], dim=2)])


KVCache = of_lesson_16("KVCache", GivenCache, filled)
torch.manual_seed(16)
some = torch.randn(1, 6, 3, 4), *torch.randn(2, 1, 2, 5, 4)
grouped_query_attention = of_lesson_16("grouped_query_attention", given_attention, lambda attend: attend(*some))

# %% [markdown]
# One step of a block on the new tokens alone, with the layers of your module and what the cache holds:

# %% role="given" tags=["hide-input"]
def step(block, x, cache, c):
    """One of your blocks on new tokens x (B, T_new, d_model); the keys and values of all others are in the cache."""
    attn, at = block.attn, torch.arange(len(cache), len(cache) + x.shape[1])
    y = block.attn_norm(x)
    q, k, v = (layer(y).unflatten(-1, (-1, c.d_model // c.heads)).transpose(1, 2) for layer in (attn.w_q, attn.w_k, attn.w_v))
    keys, values = cache.append(apply_rope(k, at, c.base), v)
    heads = grouped_query_attention(apply_rope(q, at, c.base), keys, values)
    x = x + attn.w_o(heads.transpose(1, 2).flatten(2))
    return x + block.mlp(block.mlp_norm(x))

# %% [markdown]
# The model was trained to follow instructions in a fixed form, a **chat template**: who speaks, what is said, and a mark at
# the end.

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock) and smol:
    @torch.no_grad()
    def chat(question, most=40, cached=True):
        """The answer, the likeliest token each time, and how many tokens came each second."""
        ids, end = smol.encode(f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"), smol.encode("<|im_end|>")[0]
        c, start, new, started = smol.config, len(ids), ids, time.perf_counter()
        caches = [KVCache(1, c.kv_heads, len(ids) + most, c.d_model // c.heads) for _ in model.blocks]
        while len(ids) < start + most and ids[-1] != end:
            if cached:
                x = model.token(torch.tensor([new]))
                for block, cache in zip(model.blocks, caches):
                    x = step(block, x, cache, c)
                logits = model.norm(x[:, -1]) @ model.token.weight.T
            else:
                logits = model(torch.tensor([ids]))[:, -1]
            new = [logits.argmax().item()]
            ids = ids + new
        return smol.decode(ids[start:]).removesuffix("<|im_end|>"), (len(ids) - start) / (time.perf_counter() - started)

# %% [markdown]
# We ask two questions, and the second one twice: without the cache and with it.

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock) and smol:
    answered, _ = chat("What is the capital of France?")
    print("What is the capital of France?  ", answered)
    again, slowly = chat("Write a short story about a cat.", cached=False)
    story, quickly = chat("Write a short story about a cat.")
    print("Write a short story about a cat.", story, "…")
    cache_used = "a stand-in for your cache" if KVCache is GivenCache else "your cache of lesson 16"
    print(f"without a cache {slowly:.1f} tokens a second, with {cache_used} {quickly:.1f}")
    assert story == again and quickly > 1.5 * slowly

# %% [markdown]
# In this copy it answered "{{ answered; "Paris" in it }}" The story was the same both times, at {{ slowly:.1f }} tokens a second
# without a cache and {{ quickly:.1f }} with {{ cache_used; it }}. In yours the last line says which cache ran. Ask it something else:
# `chat("…")`.

# %% [markdown]
# ## Further: what a gate is good for
#
# For those who ask why three matrices should beat two: a task that gates are made for.

# %% [markdown]
# A gate multiplies two features, which weighted sums and activations can only approximate. A gated and a plain network with
# 288 parameters each learn to multiply neighbors, from five seeds.

# %% role="demo" tags=["hide-input"]
if passed(SwiGLU):
    def losses(network, steps=600):
        optimizer, seen = torch.optim.Adam(network.parameters(), lr=1e-2), []
        for step in range(steps + 1):
            x = torch.randn(128, 6)
            loss = F.mse_loss(network(x), x * x.roll(-1, dims=1))  # x₀·x₁, x₁·x₂, …, x₅·x₀
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += [loss.item()] if step % 20 == 0 else []
        return seen

    histories = {"plain, 6 → 24 → 6, GELU": [], "gated, 6 → 16 → 6": []}
    for seed in range(5):
        torch.manual_seed(seed)
        plain = nn.Sequential(nn.Linear(6, 24, bias=False), nn.GELU(), nn.Linear(24, 6, bias=False))
        for history, network in zip(histories.values(), (plain, SwiGLU(6, 16))):
            assert sum(p.numel() for p in network.parameters()) == 288
            history.append(losses(network))
    figures.todays_block.loss_curves(histories, every=20)
    plain_ends, gated_ends = ([run[-1] for run in runs] for runs in histories.values())
    better = sum(gated < plain for gated, plain in zip(gated_ends, plain_ends))

# %% [markdown]
# In {{ better; it == 5 }} of 5 runs the gated network ends lower. This task was made for gates. In language the gain is
# small: at equal cost Shazeer's gated networks predicted text better than the plain ones, and the paper says openly that
# it has no explanation (section 4).

# %% [markdown]
# ## Further: the quietest slip
#
# For those who load models: one mistake that neither text of "Break it" shows, and how to find it.

# %% [markdown]
# What if RoPE is given another base, 10,000 for 100,000? Every pair but the first then turns too fast, by at most 0.08
# radians per token: little within a sentence, whole turns over hundreds of tokens. So we measure how surprised the model
# is by each token of longer texts, in nats (lesson 10): 600 tokens from each of six places in Python's reference manual.

# %% role="demo"
if passed(LlamaBlock) and smol:
    other_base = Llama(replace(smol.config, base=10_000.0), smol.weights)
    manual = figures.language_model.reference_text()
    passages = [smol.encode(manual[at : at + 4000])[:601] for at in (5000, 20_000, 40_000, 60_499, 90_000, 140_000)]

    @torch.no_grad()
    def surprise(using):
        """Mean surprise in nats about the tokens of each passage."""
        return [F.cross_entropy(using(torch.tensor([ids[:-1]]))[0], torch.tensor(ids[1:])).item() for ids in passages]

    quiet, right_base, wrong_base = says_paris(other_base), surprise(model), surprise(other_base)
    costs = [wrong - right for wrong, right in zip(wrong_base, right_base)]
    print("base 100,000:", [round(each, 2) for each in right_base], "nats")
    print("base  10,000:", [round(each, 2) for each in wrong_base], "nats")
    assert min(costs) > 0

# %% [markdown]
# With the wrong base ` Paris` has {{ quiet[0]:.2f; it > 0.5 }} after the short text and {{ quiet[1]:.2f; it > 0.5 }} after the
# longer one: nothing looks wrong. But in all six passages the model is more surprised, by {{ min(costs):.2f; it > 0 }} to
# {{ max(costs):.2f }} nats a token, {{ sum(costs) / 6:.2f; 0.05 < it < 0.15 }} on average, of
# {{ sum(right_base) / 6:.1f; 2 < it < 3 }}. Programs with 10,000 written
# into their code were right for Llama 2 and wrong for Llama 3, whose base is 500,000 (google-deepmind/penzai#102); in one
# report the text fell apart after some 800 tokens (lyogavin/airllm#368).

# %% [markdown]
# ## Further: one enormous number
#
# For those who wonder whether the float16 trap matters in practice. We look at the largest number of two tokens after each block.

# %% role="demo"
if passed(LlamaBlock) and smol:
    @torch.no_grad()
    def largest_after_each_block(first):
        """The largest numbers of the first and of the last token."""
        x, sizes = model.token(torch.tensor([smol.encode(first + " animal didn't cross the street because it was too")])), []
        for block in model.blocks:
            x = block(x)
            sizes.append((x[0, 0].abs().max().item(), x[0, -1].abs().max().item()))
        return sizes

    largest = largest_after_each_block("The")
    peaks = [max(largest_after_each_block(first))[0] for first in ("Paris", "seven", "(", "Although", "Water")]
    figures.todays_block.largest(largest)
    assert max(first for first, _ in largest) > 20_000 and max(last for _, last in largest) > 256

# %% [markdown]
# One number of the first token reaches {{ max(first for first, _ in largest):,.0f }}, and the largest of the last token
# passes 256, too, in the last blocks. With *Paris*, *seven*, *(*, *Although*
# or *Water* in its place it is between {{ min(peaks):,.0f; it > 15_000 }} and {{ max(peaks):,.0f }}. Its square is thousands
# of times larger than float16's largest. Such **massive activations** are found in many models, and heads put much of
# their weight on the tokens that have them (Sun et al. 2024). In lesson 18 you will see many heads look at the first token.

# %% [markdown]
# ## Further: after Llama
#
# For those who read the papers of newer models: what they change in this block.

# %% [markdown]
# Newer models keep the block and change four things. **QK-norm:** q and k are normalized in each head, which keeps the
# scores from growing too large in training (Dehghani et al. 2023, section 2; Qwen3: Yang et al. 2025, section 2).
# **Output layer:** SmolLM2 ties its weights, Qwen3 does so up to 4B; its dense models from 8B on have a second matrix (table
# 1). **Longer texts:** positions are scaled down to the range that RoPE was trained on, and training goes on for a while
# (Chen et al. 2023, section 2.3); YaRN leaves the pairs that turn fast as they are (Peng et al. 2023, section 3).
# **Mixture of experts:** a block has several feed-forward networks, and a router picks a few of them for each token: two of
# eight SwiGLUs in Mixtral (Jiang et al. 2024, section 2.1).

# %% [markdown]
# ## Further: the Hub's file
#
# For those who want to load a model from the Hugging Face Hub into their own blocks.

# %% [markdown]
# First a check of the move, on made-up weights: a rotation in halves before it, and lesson 08's rotation of
# neighbors after it, give the same scores.

# %% role="demo"
torch.manual_seed(16)
w_q, w_k, x, at = torch.randn(24, 10), torch.randn(24, 10), torch.randn(7, 10), torch.arange(7)

def halves(y, base=10000.0):
    a, b = y.chunk(2, dim=-1)
    angles = at[:, None] * base ** (-torch.arange(0, y.shape[-1], 2) / y.shape[-1])
    return torch.cat((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), dim=-1)

def scores_of(w_q, w_k, rotate):
    q, k = (rotate((x @ w.T).unflatten(-1, (3, 8)).transpose(0, 1)) for w in (w_q, w_k))  # three heads of eight
    return q @ k.mT

before = scores_of(w_q, w_k, halves)
after = scores_of(*(neighbors_from_halves(w, 3) for w in (w_q, w_k)), lambda y: apply_rope(y, at))
assert torch.allclose(before, after, atol=1e-4)

# %% [markdown]
# The Hub has the model as a safetensors file, whose numbers are not rounded to 4 bits. Its names differ from ours, too.

# %% role="demo"
def from_the_hub(state, c):
    """Weights by the names of a hub, as the course names and orders them."""
    ours = {"model.embed_tokens": "token", "model.norm": "norm", "model.layers.": "blocks.", "input_layernorm": "attn_norm",
            "post_attention_layernorm": "mlp_norm", "self_attn.": "attn.", "_proj": "", "attn.q": "attn.w_q", "attn.k": "attn.w_k",
            "attn.v": "attn.w_v", "attn.o": "attn.w_o"}
    weights = {}
    for name, weight in state.items():
        for theirs, mine in ours.items():
            name = name.replace(theirs, mine)
        heads = c.heads if "w_q" in name else c.kv_heads if "w_k" in name else 0
        weights[name] = neighbors_from_halves(weight.float(), heads) if heads else weight.float()
    return weights

# %% [markdown]
# If your machine can reach the Hub, run `pip install huggingface_hub safetensors`. Then this is all it takes:
#
# ```python
# from huggingface_hub import hf_hub_download
# from safetensors.torch import load_file
#
# state = load_file(hf_hub_download("HuggingFaceTB/SmolLM2-135M-Instruct", "model.safetensors"))
# model = Llama(smollm2.CONFIG, from_the_hub(state, smollm2.CONFIG))
# ```

# %% [markdown]
# ## What we keep
#
# - RMSNorm divides by the root mean square and subtracts nothing; compute it in float32, whatever type the model uses.
# - SwiGLU: one projection is the gate for another. A hidden width of 8/3 · d_model costs as much as the plain network.
# - RoPE turns q and k in every block; neighboring query heads share a KV head, 0 0 0 1 1 1 2 2 2.
# - Llama kept the frame of GPT-2: x + attn(norm(x)), then x + mlp(norm(x)).
# - Weights fit only where conventions agree. A slip raises no error; compare logits, on a long text.
#
# | what | shape |
# |---|---|
# | q | (B, num_heads, T, d_head) |
# | k, v | (B, num_kv_heads, T, d_head) |
# | logits | (B, T, vocabulary), by the embedding matrix itself |

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners open today's block and find lesson 09 in it, with four parts replaced and most biases gone. What they have written is no
# toy: a real model runs on it, and chats on their cache. Download the weights before the lesson (`make model`), so that the room
# doesn't wait while everyone fetches 100 MB.
#
# ## Cut for 60 minutes
#
# `rms_norm` and `LlamaBlock` as exercises, `SwiGLU` and the attention as given solutions. Then Paris, and the prediction on slips.
#
# ## Cut for 90 minutes
#
# All four exercises and the chat. Leave out the further parts; keep the picture of moved rows.
#
# ## Mistakes to expect
#
# - rms_norm TB1: What does your function give for a token whose numbers are all 3?
# - rms_norm TB11: What is 300 squared in float16?
# - SwiGLU TB21: Which of the two layers does silu act on, and what is that layer called in the file of weights?
# - SwiGLU TB31: How wide is your `gate` layer, and how wide should it be?
# - GroupedQuerySelfAttention GQ1: With 9 query heads and 3 KV heads, which keys does query head 1 read?
# - GroupedQuerySelfAttention TB81: Which axis does `apply_rope` take for the tokens, and what stands there before the transpose?
# - LlamaBlock TB67: With which eps do your two normalizations compute?
# - LlamaBlock TB64: How many weights named `…norm.weight` does your block have?
#
# ## To discuss
#
# - A colleague loads a model into a program of her own. It answers ten short questions well. What do you ask before you trust it? A good
#   answer asks for logits against another program's, for a long text, and for sizes that differ (query heads and KV heads).
# - Each of the four parts was replaced because a comparison at equal cost favored it, and often nobody knows why. What would you want
#   to see before you replace a fifth? A good answer names equal numbers of parameters and operations, several sizes and seeds, and a loss
#   on text that was held out.
#
# ## On paper
#
# A model has d_model = 512, 8 query heads, 2 KV heads and a hidden width of 1344. How many parameters does a block
# have, norms included, and
# which query heads read KV head 1? *Solution:* w_q and w_o 2 · 512² = 524,288; w_k and w_v 2 · 512 · 128 = 131,072; the network
# 3 · 512 · 1344 = 2,064,384; two norms 1024; together 2,720,768. Heads 4 to 7.
