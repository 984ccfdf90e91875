# %% [markdown]
# # 17 · Today's block, and a real model on your attention
#
# **What has changed in the block since 2017, and does yours run a model that others have trained?**
#
# **Before this lesson:** lesson 08 (RoPE), lesson 07 (heads), lesson 09 (the block and LayerNorm), lesson 10 (a
# language model), and `nn.Module`. Lesson 16 says more about heads that share keys.
#
# The block that you built in lesson 09 is GPT-2's. Today's open models are stacks of a block that looks much like it.
# Four of its parts have been replaced, each by something smaller or better, and none of the four is hard. You wrote
# one of them, RoPE, in lesson 08. In this lesson you write the other three and put all of them together. Then we keep
# a promise of this course: we load an open model, 135 million numbers that someone else has trained, into a stack of
# *your* blocks, and it answers.

# %% role="given"
import math
from dataclasses import replace

import torch
from torch import nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="demo"
figures.todays_block.blocks()

# %% [markdown]
# Read each column from its input at the bottom to its output at the top. Blue marks what changed from one generation
# to the next. GPT-2 moved the norms off the residual path (lesson 09), and Llama keeps that frame.
#
# | part | Transformer (Vaswani et al. 2017) | GPT-2 (Radford et al. 2019) | Llama (Touvron et al. 2023) | why |
# |---|---|---|---|---|
# | normalization | LayerNorm after each sum (3.1) | LayerNorm before each branch (2.3) | RMSNorm there (2.2) | no mean needed |
# | network | ReLU, 4 · d_model wide (3.3) | GELU, 4 · d_model wide | SwiGLU, about 8/3 · d_model wide (2.2) | better at the same cost |
# | positions | sines and cosines, added (3.5) | a learned table, added | RoPE in each block (2.2) | relative; no table to outgrow |
# | keys and values | one set per head (3.2.2) | one set per head | from Llama 2 70B on, heads share them | a smaller cache (lesson 16) |
# | biases | in the network (3.3) | everywhere | none | steadier training of large models |
#
# The numbers in parentheses are sections of these papers; where GPT-2 has none, the source is its code. Heads that
# share keys came to Llama with its second version (Touvron et al. 2023, the later of that year's two papers, section
# 2.2). Most of the rest is also in PaLM, and that paper is the source of what the table says about biases (Chowdhery
# et al. 2022, section 2).
#
# ## A norm that subtracts nothing
#
# LayerNorm does two things to a token: it shifts the mean of its numbers to 0, and it divides by their spread. Zhang
# and Sennrich 2019 (section 4) asked which of the two matters, and left the first one out. What remains is to divide
# a token by the root of its mean square, the **RMS**. This is **RMSNorm**. In their experiments models train about as
# well with it, and it needs one sum and one parameter vector less.
#
# By hand, for the token (1, 2, 2, 4): the squares are 1, 4, 4 and 16. Their mean is 25/4 = 6.25, and the root of that is 2.5. Divided by
# 2.5 the token becomes (0.4, 0.8, 0.8, 1.6). Then each feature is multiplied by its weight, as in LayerNorm.

# %% role="demo" tags=["nbval-check-output"]
token = torch.tensor([1.0, 2.0, 2.0, 4.0])
rms = math.sqrt(sum(number**2 for number in token.tolist()) / len(token))
print("RMSNorm  ", [round(number / rms, 3) for number in token.tolist()], " divided by", rms)
print("LayerNorm", [round(number, 3) for number in F.layer_norm(token, (4,)).tolist()], " mean", token.mean().item())

# %% [markdown]
# @predict
#
# A token whose numbers are all the same, (3, 3, 3, 3), goes through both norms, with weight 1 and without a bias. What comes out?
#
# - **A** zeros from both
# - **B** zeros from LayerNorm, ones from RMSNorm
# - **C** ones from both
#
# @answer
#
# **B**. LayerNorm subtracts the mean, 3, and nothing is left. The root of the mean square is 3 as well, and 3/3 = 1. So RMSNorm keeps
# what all features have in common, and LayerNorm throws it away.
#
# @wrong
#
# If you said A, you subtracted the mean in both. If you said C, you subtracted it in neither.

# %% [markdown]
# One trap is left: precision. Large models compute in 16-bit numbers. The largest number in `float16` is 65,504, and
# the tokens of a real model hold numbers in the hundreds and more, as we shall see below. What is 300 squared?

# %% role="demo" tags=["nbval-check-output"]
number = torch.tensor(300.0, dtype=torch.float16)
print("300² in float16:", (number**2).item(), "  and 300 divided by the root of that:", (number / (number**2).sqrt()).item())
number = torch.tensor(1.0039, dtype=torch.float32)
print("1.0039 in bfloat16:", number.bfloat16().item(), "  the next one up:", 1 + 2**-7)

# %% [markdown]
# The square is infinite, and the token becomes 0 without an error. `bfloat16` has the range, but fewer than three
# decimal digits: a root that is rounded to it is off by up to 0.4 %, and so is the whole token. For both reasons we
# compute the mean and its root in float32 and convert only the result back. The first `nn.RMSNorm`, in torch 2.4,
# squared in float16, and Llama gave wrong answers with it in that type (pytorch/pytorch#133085).

# %% [markdown]
# @exercise rms_norm
#
# `x` (..., d), `weight` (d,) → (..., d), in the type of `x`
#
# ```text
# for each token of d numbers:
#     r       the root of (the mean of its squared numbers + eps)
#     result  its numbers divided by r, each times its weight
# ```
#
# Where `x` is float16 or bfloat16, square, mean, root and division are computed in float32 or better. `weight` has the type of `x`, and
# rounding once more before it multiplies is fine. Without `F.rms_norm`, `nn.RMSNorm`, `F.normalize` and their like.

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
# Does yours survive? Tokens of growing size in float16, through your function and through one that does not convert. What comes out
# should have the size 1, whatever goes in.

# %% role="payoff" exercise="rms_norm"
if passed(rms_norm):
    torch.manual_seed(16)
    sizes, one = [2.0**k for k in range(-4, 13)], torch.randn(512)
    ones = torch.ones(512, dtype=torch.float16)

    def size_of(result):
        return result.float().square().mean().sqrt().item()

    tokens = [(size * one / size_of(one)).half() for size in sizes]
    yours = [size_of(rms_norm(x, ones)) for x in tokens]
    squared = [size_of(x / ((x**2).mean() + 1e-5).sqrt()) for x in tokens]
    figures.todays_block.half(sizes, {"yours": yours, "squared in float16": squared})
    assert max(abs(each - 1) for each in yours[1:]) < 0.01 and squared[-1] == 0

# %% [markdown]
# The other curve drops to 0 at 128 already, though 128² fits into float16. Among 512 numbers some are more than twice
# the root of their mean square, and one infinite square is enough.
#
# ## A network with a gate
#
# The network of lesson 09 widens a token to 4 · d_model numbers, sends each through an activation and comes back.
# There, each number alone decides how much of it passes. In a gated network *another* number decides. One projection,
# `up`, says what could pass; a second one, `gate`, says how far the gate is open; and the two are multiplied (Dauphin
# et al. 2017; Shazeer 2020, section 2).

# %% role="demo"
figures.todays_block.gates()

# %% [markdown]
# The gate goes through **SiLU**, z · sigmoid(z), also called Swish. By hand, with up = 5. At z = 4 the sigmoid is
# 0.982, so SiLU is 3.93 and 19.6 comes through. At z = −4 the sigmoid is 0.018, SiLU is −0.07, and −0.36 comes
# through: nearly closed. Swish and the *gated linear unit* (GLU) together give the name **SwiGLU**.
#
# Three matrices cost more than two. For the same cost each has to be narrower. With a hidden width of h, the cost is
# the same when 3 · h · d = 2 · 4 · d², so h = 8/3 · d.

# %% role="demo" tags=["nbval-check-output"]
d_model, d_hidden = 576, 1536  # of the model that waits at the end of this lesson
print("8/3 · d_model =", 8 * d_model // 3)
print("plain:", 2 * 4 * d_model * d_model, " gated:", 3 * d_hidden * d_model)
assert 2 * 4 * d_model * d_model == 3 * d_hidden * d_model

# %% [markdown]
# @exercise SwiGLU
#
# `SwiGLU(d_model, d_hidden)` with three `nn.Linear` layers, none with a bias: `gate` and `up` (d_model → d_hidden), `down` (d_hidden →
# d_model). forward: `x` (..., d_model) → (..., d_model)
#
# ```text
# result = down(silu(gate(x)) · up(x))      silu(z) = z · sigmoid(z), the dot number by number
# ```
#
# `F.silu` is fine. `d_hidden` is the width itself; nothing is taken off it.

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

# %% [markdown]
# What is a gate good for? Multiplying two features is hard for a network of weighted sums and activations, and it is
# exactly what a gate does. Each network below has 288 numbers, no biases, and the same task: from six numbers
# x₀ … x₅, give x₀·x₁, x₁·x₂, …, x₅·x₀.

# %% role="payoff" exercise="SwiGLU"
if passed(SwiGLU):
    def losses(network, steps=600):
        optimizer, seen = torch.optim.Adam(network.parameters(), lr=1e-2), []
        for step in range(steps + 1):
            x = torch.randn(128, 6)
            loss = F.mse_loss(network(x), x * x.roll(-1, dims=1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += [loss.item()] if step % 20 == 0 else []
        return seen

# %% role="payoff" exercise="SwiGLU"
if passed(SwiGLU):
    histories = {"plain, 6 → 24 → 6, GELU": [], "gated, 6 → 16 → 6": []}
    for seed in range(3):
        torch.manual_seed(seed)
        plain = nn.Sequential(nn.Linear(6, 24, bias=False), nn.GELU(), nn.Linear(24, 6, bias=False))
        for history, network in zip(histories.values(), (plain, SwiGLU(6, 16))):
            assert sum(p.numel() for p in network.parameters()) == 288
            history.append(losses(network))
    figures.todays_block.learned(histories, every=20)
    plain_end, gated_end = (sum(run[-1] for run in runs) / 3 for runs in histories.values())
    assert 3 * gated_end < plain_end

# %% [markdown]
# The gated network ends at an error of {{ gated_end:.3f }}, the plain one at {{ plain_end:.3f }}, on average over
# three seeds. This task was made for gates. Language was not, and there the gain is small: at equal cost, Shazeer's
# gated networks predicted text better than the plain ones, and the paper says openly that it has no explanation
# (section 4).
#
# One more trap awaits anyone who loads weights. The two projections have the same shape, and every program has its
# own names for them: w1 and w3, gate_proj and up_proj, ffn_gate and ffn_up. Swapping them raises no error: in
# ml-explore/mlx-lm#767 an activation took the two in the wrong order.

# %% [markdown]
# ## Heads that share their keys
#
# While a model writes, it keeps the keys and values of all earlier tokens, for every head of every layer (lesson 16). Most of that memory
# can be saved when several query heads share one head of keys and values. That is **grouped-query attention** (Ainslie et al. 2023,
# section 2): with 9 query heads and 3 heads of keys, query heads 0, 1 and 2 read keys 0, the next three read keys 1, and the last three
# keys 2.

# %% role="demo"
figures.todays_block.shared(9, 3)

# %% [markdown]
# @predict
#
# A program copies the 3 heads of keys to 9 places by `keys.repeat(1, 3, 1, 1)`. Which of the nine query heads read the right keys?
#
# @answer
#
# Three of them: 0, 4 and 8. `repeat` lays the keys down as 0 1 2 0 1 2 0 1 2, but the right order is
# 0 0 0 1 1 1 2 2 2, which `repeat_interleave` gives. The shapes agree, so nothing raises an error. And with a single
# head of keys, or as many as query heads, the two orders are the same, so a test at those sizes passes.
#
# @wrong
#
# If you said all of them, you read `repeat` as "each three times"; it repeats the whole row. The specification of an operator in ONNX
# had this very slip (onnx/onnx#7274).

# %% [markdown]
# RoPE comes from lesson 08, and stands here once more. It turns neighboring pairs of numbers, x[2i] and x[2i + 1], by an angle that
# grows with the position.

# %% role="given"
def apply_rope(x, positions, base=10000.0):
    """Lesson 08: turns each pair (x[2i], x[2i + 1]) by positions · base^(−2i/d). x: (..., T, d), positions: (T,)."""
    d = x.shape[-1]
    frequencies = base ** (-torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d)
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
# ```text
# for each query head h, with the key-value head g = h // (num_heads / num_kv_heads):
#     q       slice h of w_q(x), rotated by positions 0 … T − 1        slices of d_head numbers, contiguous
#     k       slice g of w_k(x), rotated in the same way
#     v       slice g of w_v(x)
#     head h  causal softmax attention of q, k, v, scores divided by √d_head
# result = w_o(the heads side by side)
# ```
#
# d_model not divisible by num_heads, num_heads not divisible by num_kv_heads, or an odd d_head raise `ValueError` when the module is built.
# `state_dict` holds the four weights alone. `F.scaled_dot_product_attention` is allowed; `nn.MultiheadAttention` is not.

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
# Grouped-query attention is ordinary attention with a constraint: some heads have equal keys and values. To see it,
# we build one module with 3 heads of keys and one with 9, and copy each key and value head of the first to three
# heads of the second. The outputs agree. The cache of the first is a third as large:

# %% role="payoff" exercise="GroupedQuerySelfAttention"
if passed(GroupedQuerySelfAttention):
    torch.manual_seed(16)
    grouped, full = GroupedQuerySelfAttention(576, 9, 3), GroupedQuerySelfAttention(576, 9, 9)
    copies = {name: weight for name, weight in grouped.state_dict().items()}
    for name in ("w_k.weight", "w_v.weight"):
        copies[name] = copies[name].unflatten(0, (3, 64)).repeat_interleave(3, dim=0).flatten(0, 1)
    full.load_state_dict(copies)
    x = torch.randn(1, 12, 576)
    apart = (grouped(x) - full(x)).abs().max().item()
    print(f"largest difference {apart:.1e}")
    for name, module in (("3 heads of keys", grouped), ("9 heads of keys", full)):
        kept = 2 * module.w_k.out_features * 2 * 30  # keys and values, two bytes each, 30 layers
        print(f"{name}: {sum(p.numel() for p in module.parameters()):,} weights, {kept:,} bytes of cache a token")
    assert apart < 1e-5

# %% [markdown]
# ## The block
#
# Now put the parts together. The frame is that of lesson 09: each branch reads a normalized x and adds its result to
# x itself. A norm here is a module with one parameter, `weight`. You can use torch's `nn.RMSNorm(d_model, eps=eps)`
# or wrap your own `rms_norm` in a class. Pass eps on: without it torch uses 1.2e-7 for float32. The weights of Llama
# 2 7B-chat were once handed out with the eps of the first Llama, 1e-6 instead of 1e-5, and a user saw stray German
# words (meta-llama/llama#771).

# %% [markdown]
# @exercise LlamaBlock
#
# `LlamaBlock(d_model, num_heads, num_kv_heads, d_hidden, base=10000.0, eps=1e-5)` with four attributes. forward: `x` (B, T, d_model) →
# (B, T, d_model)
#
# ```text
# attn_norm, mlp_norm   modules with one parameter, weight (d_model,), ones at first: RMSNorm with this eps
# attn                  as GroupedQuerySelfAttention, with this base
# mlp                   as SwiGLU
# result                y + mlp(mlp_norm(y)), where y = x + attn(attn_norm(x))
# ```
#
# Any implementation of RMSNorm may be used here, ready-made ones included.

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
# How large is a model of thirty such blocks? One block is enough to count. The rest is a table with a vector for each of 49,152 tokens,
# which serves twice: it turns numbers of tokens into vectors, and at the end it compares what came out with each of these vectors.

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock):
    block = LlamaBlock(576, 9, 3, 1536)
    size = {name: sum(p.numel() for p in part.parameters()) for name, part in block.named_children()}
    counts = {"30 × attention": 30 * size["attn"], "30 × network": 30 * size["mlp"], "table of tokens": 49_152 * 576,
              "61 norms": 30 * (size["attn_norm"] + size["mlp_norm"]) + 576}
    figures.todays_block.parts(counts)
    assert sum(counts.values()) == 134_515_008

# %% [markdown]
# ## A real model on your attention
#
# SmolLM2-135M-Instruct (Allal et al. 2025) is an open model, free to use under the Apache 2.0 license. It was trained
# on two trillion tokens, far more than a model of its size is usually given. It is made of blocks like yours: 30 of
# them, d_model 576, 9 query heads and 3 heads of keys, d_hidden 1536, RoPE with base 100,000. All that is missing is
# a class that stacks them.

# %% role="given"
class Llama(nn.Module):
    """A stack of your blocks between the table of tokens and the same table once more."""

    def __init__(self, config, weights):
        super().__init__()
        c, self.blocks = config, nn.ModuleList()
        for i in range(c.layers):
            block = LlamaBlock(c.d_model, c.heads, c.kv_heads, c.d_hidden, c.base, c.eps)
            start = f"blocks.{i}."
            own = {name.removeprefix(start): weight for name, weight in weights.items() if name.startswith(start)}
            left = block.load_state_dict(own, strict=False, assign=True)  # assign: the weights are not copied
            assert not left.unexpected_keys, left
            self.blocks.append(block)
        self.norm, self.token = nn.RMSNorm(c.d_model, eps=c.eps), nn.Embedding.from_pretrained(weights["token.weight"])
        self.norm.load_state_dict({"weight": weights["norm.weight"]}, assign=True)

    def forward(self, ids):
        x = self.token(ids)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.token.weight.T

# %% [markdown]
# The weights are an optional extra of this course: a package of 94 MB, with 4 bits for most numbers, which takes
# 540 MB when unpacked to float32. If you don't have them, the next cell says how to get them, and the tables below
# show the run that is stored with this copy.

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock):
    from grader.data import smollm2

    smol = smollm2.load() if smollm2.available() else None
    if smol:
        torch.set_num_threads(1)  # beside other programs, threads that wait for each other cost more than they bring
        model = Llama(smol.config, smol.weights)
        print(f"{sum(weight.numel() for weight in smol.weights.values()):,} numbers in {len(model.blocks)} of your blocks")
    else:
        print(smollm2.how_to_get())

# %% [markdown]
# Text becomes tokens before the model sees it: pieces of words, found by counting which neighbors often stand together (byte-pair
# encoding, Sennrich et al. 2016). A space belongs to the token that follows it.

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
# After "The capital of France is", which token comes first, with about which probability? And what kind of tokens come next on the list?
#
# @answer
#
# ` Paris`, with {{ likely[0][1]:.2f }}. The second is `{{ likely[1][0] }}`, with {{ likely[1][1]:.2f }}: the sentence may go on "is the
# city of …". Behind these two come another capital and beginnings of names. The rest is spread thin over thousands of tokens.
#
# @wrong
#
# If you said nearly 1, you took knowing the capital for knowing the next word: many true sentences begin like this.
# If you said that it cannot work, since no one told your code about France: what a model knows lies in its weights,
# and it doesn't matter whose code multiplies by them.

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock) and smol:
    likely = next_tokens(prompt)
    figures.todays_block.next_tokens(prompt, likely)
    assert likely[0][0] == " Paris" and likely[0][1] > 0.7

# %% [markdown]
# **Paris.** If the weights are on your machine, your blocks have just run a model that others have trained. In the run that came with
# this copy the list was:
#
# | next token | probability |
# |---|---|
# | {{ likely[0][0] }} | {{ likely[0][1]:.3f }} |
# | {{ likely[1][0] }} | {{ likely[1][1]:.3f }} |
# | {{ likely[2][0] }} | {{ likely[2][1]:.3f }} |
# | {{ likely[3][0] }} | {{ likely[3][1]:.3f }} |
#
# How much of that is yours? The blocks are, but two of their parts may be torch's. Your `GroupedQuerySelfAttention` may
# leave the softmax to `F.scaled_dot_product_attention`, and your `LlamaBlock` may use `nn.RMSNorm`, as `Llama` does for
# its last norm. So we run the model once more without either. In place of torch's operator we put the formula that you
# wrote in lesson 03, and with a mask in lesson 06. It takes the operator's arguments and always hides the future, as
# this model does:

# %% role="demo"
def by_formula(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=True, scale=None, enable_gqa=False):
    """Lessons 03 and 06: softmax(q kᵀ / √d) v, the future hidden. The arguments are those of torch's operator."""
    if enable_gqa:  # the operator was asked to share the keys
        key, value = (each.repeat_interleave(query.shape[-3] // each.shape[-3], dim=-3) for each in (key, value))
    scores = query @ key.mT * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(future, -math.inf), dim=-1) @ value

# %% [markdown]
# In place of torch's norm we put your `rms_norm`. Your classes stay as they are: while a `TorchFunctionMode` is open, torch
# asks it about every call of a torch function, and the one below answers two of them itself.

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock) and passed(rms_norm) and smol:
    from torch.overrides import TorchFunctionMode

    def by_yours(x, shape, weight=None, eps=None):
        return rms_norm(x, torch.ones(shape) if weight is None else weight, eps)

    instead, replaced = {F.scaled_dot_product_attention: by_formula, F.rms_norm: by_yours}, []

    class WithoutTorchs(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function in instead:
                replaced.append(function.__name__)
            return instead.get(function, function)(*args, **(kwargs or {}))

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock) and passed(rms_norm) and smol:
    replaced.clear()
    ids = torch.tensor([smol.encode(prompt)])
    with torch.no_grad():
        before = model(ids)[0]
        with WithoutTorchs():
            after = model(ids)[0]
    rounding, word = (after - before).abs().max().item(), smol.token(after[-1].argmax().item())
    print({name: replaced.count(name) for name in ("scaled_dot_product_attention", "rms_norm")}, "calls replaced")
    print(f"next token {word!r}; {after.numel():,} logits differ by at most {rounding:.0e}")
    assert rounding < 1e-3 and word == likely[0][0]

# %% [markdown]
# In this copy {{ replaced.count("scaled_dot_product_attention"); it == 30 }} calls of torch's attention were replaced, one in
# each block, and {{ replaced.count("rms_norm"); it == 61 }} of its norm: two in each block, and the last one. Your numbers may
# differ: what you wrote out yourself needs no replacing. The next word is again `{{ word }}`, and the logits differ by
# {{ rounding:.0e }} at most, which is float32's rounding.
#
# This is exactly what is yours in the second run: the blocks, the grouped attention, the gated network and all norms,
# the last one included, are your code from this lesson; the formula of attention and the rotation are the course's
# copies of what you wrote in lessons 06 and 08; `Llama`, which looks up the tokens, stacks the blocks and multiplies by
# the table, is given; the tokenizer and the weights are SmolLM2's; and torch does the arithmetic of each line.
#
# Is {{ likely[0][1]:.3f }} the right number, or only a plausible one? Both runs share your blocks. So we compute the
# same model with none of your code in it: in float64, one head at a time, each rotated pair as one complex number
# multiplied by e^(iθ).

# %% role="demo"
def heads_by_hand(y, w_q, w_k, w_v, c):
    """(T, d_model): all heads side by side. y: (T, d_model), normalized."""
    size, t = c.d_model // c.heads, len(y)
    speeds = c.base ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    turn = torch.exp(1j * torch.outer(torch.arange(t, dtype=torch.float64), speeds))
    found = []
    for h in range(c.heads):
        mine, theirs = slice(h * size, (h + 1) * size), slice(h * c.kv_heads // c.heads * size, (h * c.kv_heads // c.heads + 1) * size)
        q, k = (torch.view_as_complex((y @ w.T).unflatten(-1, (-1, 2))) * turn for w in (w_q[mine], w_k[theirs]))
        scores = (q @ k.conj().T).real / math.sqrt(size)
        scores = scores + torch.full((t, t), -torch.inf, dtype=torch.float64).triu(1)
        found.append(torch.softmax(scores, dim=-1) @ (y @ w_v[theirs].T))
    return torch.cat(found, dim=-1)

# %% role="demo"
def another_way(weights, ids, c):
    """(T, vocabulary): the logits of the same model, without any of the classes above."""
    def w(name):
        return weights[name + ".weight"].double()

    def normed(x, name):
        return torch.stack([row * (len(row) / (row @ row + len(row) * c.eps)) ** 0.5 for row in x]) * w(name)

    x = w("token")[ids]
    for b in (f"blocks.{i}." for i in range(c.layers)):
        y = normed(x, b + "attn_norm")
        x = x + heads_by_hand(y, *(w(b + "attn." + name) for name in ("w_q", "w_k", "w_v")), c) @ w(b + "attn.w_o").T
        y = normed(x, b + "mlp_norm")
        z = y @ w(b + "mlp.gate").T
        x = x + (z / (1 + torch.exp(-z)) * (y @ w(b + "mlp.up").T)) @ w(b + "mlp.down").T
    return normed(x, "norm") @ w("token").T

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock) and smol:
    ids = torch.tensor(smol.encode("The animal didn't cross the street because it was too"))
    with torch.no_grad():
        yours, theirs = model(ids[None])[0].double(), another_way(smol.weights, ids, smol.config)
    gap, reach = (yours - theirs).abs().max().item(), theirs.abs().max().item()
    print(f"{yours.numel():,} logits of up to {reach:.0f}; largest difference {gap:.1e}")
    assert gap < 1e-3

# %% [markdown]
# In this copy the largest of all these differences was {{ gap:.0e }}, on logits of up to {{ reach:.0f; 10 < it < 100 }}: float32's
# rounding. This confirms your blocks. It says nothing about the loading, which both computations share.
#
# And the float16 trap? For the first and the last token, here is the largest number after each block (its absolute
# value):

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock) and smol:
    x, largest = model.token(ids[None]), []
    with torch.no_grad():
        for block in model.blocks:
            x = block(x)
            largest.append((x[0, 0].abs().max().item(), x[0, -1].abs().max().item()))
    figures.todays_block.largest(largest)
    assert max(first for first, _ in largest) > 20_000 and max(last for _, last in largest) > 256

# %% [markdown]
# One number of the first token reaches {{ max(first for first, _ in largest):,.0f }}. With five other first tokens it
# was between 22,000 and 26,000. Its square is thousands of times larger than any number in float16. Such *massive
# activations* are found in many models, and heads put much of their weight on the tokens that have them (Sun et al.
# 2024). In lesson 18 you will see many heads look at the first token.
#
# Now let it write. The loop is that of lesson 10 at temperature 0. It recomputes the whole text for each token, which
# the cache of lesson 16 would avoid. The model was trained to follow instructions in a fixed form, a *chat template*:
# who speaks, what is said, and a mark at the end.

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock) and smol:
    def write(text, most=14):
        """The text and up to `most` tokens after it, the likeliest each time; stops at the mark that ends a turn."""
        ids, end = smol.encode(text), smol.encode("<|im_end|>")[0]
        with torch.no_grad():
            for _ in range(most):
                ids.append(model(torch.tensor([ids]))[0, -1].argmax().item())
                if ids[-1] == end:
                    break
        return smol.decode(ids)

    question = "What is the capital of France?"
    asked = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    answered = write(asked)
    print(answered)

# %% [markdown]
# In this copy it answered: "{{ answered.removeprefix(asked).removesuffix("<|im_end|>"); "Paris" in it }}" Ask it something else, and
# let it write more tokens. It is a small model: its sentences are good, and its facts are often wrong.
#
# And the sentence of this course? We stop it after "because it was too" and see how the model goes on.

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock) and smol:
    street = "The animal didn't cross the street because it was too"
    crossing = next_tokens(street)
    figures.todays_block.next_tokens(street, crossing)
    both = dict(next_tokens(street, most=2000))
    print("  ".join(f"{word.strip()} {both[word]:.4f}" for word in (" far", " tired", " wide")))

# %% [markdown]
# Its first choice is `{{ crossing[0][0]; it not in (" tired", " wide") }}` ({{ crossing[0][1]:.2f }}). *Tired* gets
# {{ both[" tired"]:.4f; it < 0.01 }}, and
# *wide* {{ both[" wide"]:.4f; it > both[" tired"] }}. What its heads look at in this sentence is the subject of lesson 18.
#
# ## The same weights in another order
#
# The course's file stores the weights for a program that rotates neighboring pairs, as lesson 08 does. The Hugging
# Face Hub has the same model for a program that rotates number i together with number i + d_head/2: *halves* instead
# of neighbors. As lesson 08 promised, we only have to move rows. Each row of `w_q` makes one number of q, so moving
# rows moves numbers, and `w_k` is treated alike. In each head, row i of the first half becomes row 2i, and row i of the
# second half becomes row 2i + 1. `w_v` and `w_o` stay as they are, since values are not rotated.

# %% role="demo"
def neighbors_from_halves(weight, num_heads):
    """The rows of w_q or w_k, moved from the order of halves to that of neighbors, in each head by itself.

    num_heads: how many heads *this* weight has: for w_k, num_kv_heads.
    """
    heads = weight.unflatten(0, (num_heads, 2, -1))  # (heads, half, i, d_model)
    return heads.transpose(1, 2).flatten(0, 2)  # (heads, i, half, d_model): 0, 32, 1, 33, …

# %% role="demo" tags=["nbval-check-output"]
rows = torch.arange(12.0)[:, None]  # two heads of six rows, each row holding its own number
print(neighbors_from_halves(rows, num_heads=2).flatten().int().tolist())

# %% [markdown]
# The scores stay the same. A dot product doesn't depend on the order of its terms; q and k are reordered alike, and
# each pair keeps its frequency. The appendix confirms it with numbers, and loads the Hub's file.
#
# ### What is wrong in print
#
# With grouped keys, `w_k` has fewer heads than `w_q`, so the move has to use *its* number of heads. The converter of
# llama.cpp computed that number as num_heads // num_kv_heads. Nobody noticed for two months, because the largest
# Llama 2 has 64 query heads and 8 heads of keys, and 64 // 8 is also 8. Then came a model with 32 query heads and 4
# heads of keys. The converter again computed 32 // 4 = 8 where 4 was right, and the model wrote gibberish
# (ggml-org/llama.cpp#3364). Another loader moved keys as if they had as many heads as the queries
# (huggingface/transformers#31788). Sizes that agree by chance hide errors, which is why the checks of this course use
# sizes that differ.
#
# ## Break it
#
# A model can be loaded wrongly in many ways that raise no error. Five of them follow. For each we measure the
# probability of ` Paris` twice: after our short sentence, and after a longer text that first names the capitals of
# five countries.

# %% [markdown]
# @predict
#
# After the short sentence, the model still says Paris with one of these four mistakes. Which one?
#
# - **A** the rotation pairs halves, but the weights are ordered for neighbors
# - **B** heads of keys are tiled, 0 1 2 0 1 2 …, instead of repeated in place, 0 0 0 1 1 1 …
# - **C** the norms keep their initial weights of 1
# - **D** gate and up are exchanged
#
# @answer
#
# **A**, with {{ found["rotated in halves"][0]:.2f }}, nearly as before. In a text of five tokens positions matter
# little, so all seems well. After the long text it is {{ found["rotated in halves"][1]:.2f }}. The other three fail
# at once. That is the better way to fail, because an error that shows up late is looked for in the wrong place.
# People who exported such weights to llama2.c saw gibberish begin after some twenty tokens (karpathy/llama2.c#286).
#
# @wrong
#
# If you said B, C or D: each of them changes what every block computes, from the first token on. A changes only which
# numbers are rotated together. The first token is not rotated at all, and over a distance of a few tokens most pairs
# hardly turn.

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock) and smol:
    tiled = [h for g in range(3) for h in range(9) if h % 3 == g]  # the query heads that share keys g where heads are tiled

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

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock) and smol:
    land = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Germany": "Berlin", "Austria": "Vienna"}
    long = " ".join(f"{city} is the capital of {country}." for country, city in land.items()) + " " + prompt

    def says_paris(using):
        return tuple(dict(next_tokens(text, 49_152, using))[" Paris"] for text in (prompt, long))

    found = {"as they are": says_paris(model)}
    for name, spoil in {"rotated in halves": in_halves, "heads tiled": in_tiles, "norms of 1": norms_of_one,
                        "gate and up exchanged": exchanged}.items():
        model.load_state_dict({each: spoil(each, w) for each, w in smol.weights.items()}, strict=False, assign=True)
        found[name] = says_paris(model)
    other_base = Llama(replace(smol.config, base=10_000.0), smol.weights)
    found["base 10,000 for 100,000"] = says_paris(other_base)
    model.load_state_dict(smol.weights, strict=False, assign=True)

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock) and smol:
    figures.todays_block.slips(found, " Paris", (f"after {len(smol.encode(prompt))} tokens", f"after {len(smol.encode(long))} tokens"))
    assert found["rotated in halves"][0] > 0.5 > 0.1 > found["rotated in halves"][1]
    assert all(found[name][0] < 0.01 for name in ("heads tiled", "norms of 1", "gate and up exchanged"))

# %% [markdown]
# | loaded | short text | longer text |
# |---|---|---|
# | as they are | {{ found["as they are"][0]:.2f }} | {{ found["as they are"][1]:.2f }} |
# | rotated in halves | {{ found["rotated in halves"][0]:.2f }} | {{ found["rotated in halves"][1]:.2f }} |
# | base 10,000 for 100,000 | {{ found["base 10,000 for 100,000"][0]:.2f }} | {{ found["base 10,000 for 100,000"][1]:.2f }} |
# | heads tiled, norms of 1, or gate and up exchanged | below 0.01 | below 0.01 |
#
# The wrong base is the quietest slip of all: neither text shows it. It changes the slowly turning pairs most, and
# those are the ones that tell distant positions apart. So we measure something else: how surprised is the model by
# each token of a long text, in nats (lesson 10)? We take 600 tokens of Python's reference manual:

# %% role="payoff" exercise="LlamaBlock"
if passed(LlamaBlock) and smol:
    manual = torch.tensor([smol.encode(figures.language_model.reference_text()[5000:9000])[:601]])

    def surprise(using):
        """Mean surprise in nats about the first 100 tokens, and about all later ones."""
        with torch.no_grad():
            each = F.cross_entropy(using(manual[:, :-1])[0], manual[0, 1:], reduction="none")
        return each[:100].mean().item(), each[100:].mean().item()

    right_base, wrong_base = surprise(model), surprise(other_base)
    for name, (early, late) in (("base 100,000", right_base), ("base 10,000", wrong_base)):
        print(f"{name:>12}: {early:.3f} nats on the first 100 tokens, {late:.3f} on the rest")
    assert wrong_base[1] - right_base[1] > 0.05 > abs(wrong_base[0] - right_base[0])

# %% [markdown]
# On the first hundred tokens the wrong base costs nothing ({{ wrong_base[0]:.2f }} against {{ right_base[0]:.2f }}). On the rest it costs
# {{ wrong_base[1] - right_base[1]:.2f }} nats a token. Programs with 10,000 written into their code were right for
# Llama 2 and wrong for Llama 3, whose base is 500,000 (google-deepmind/penzai#102); in one report the text fell apart
# after some 800 tokens (lyogavin/airllm#368). Good answers don't show that a model was loaded correctly. The same
# logits as another program's, on a long text, do.
#
# ## After Llama
#
# Newer models keep this block and change four things. **QK-norm:** q and k are normalized in each head, which keeps the
# scores from growing too large in training (Dehghani et al. 2023, section 2; Qwen3: Yang et al. 2025, section 2).
# **Output layer:** SmolLM2 uses its table of tokens twice (Press and Wolf 2017). Qwen3 does so up to 4B; its dense
# models from 8B on have a second matrix (table 1). **Longer texts:** positions are scaled down to the range that RoPE
# was trained on, and training goes on for a while (Chen et al. 2023, section 2.3); YaRN leaves the pairs that turn fast
# as they are (Peng et al. 2023, section 3). **Mixture of experts:** a block has several networks, and a router picks a
# few of them for each token: two of eight SwiGLUs in Mixtral (Jiang et al. 2024, section 2.1).
#
# ## Appendix: the Hub's file
#
# First the promised check, on made-up weights: a rotation in halves before the move, and lesson 08's rotation of
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
# The Hub has the model as a safetensors file, whose numbers are not rounded to 4 bits. If your machine can reach it, run
# `pip install huggingface_hub safetensors`. Then this is all it takes, with `from_the_hub` from the next cell:
#
# ```python
# from huggingface_hub import hf_hub_download
# from safetensors.torch import load_file
#
# state = load_file(hf_hub_download("HuggingFaceTB/SmolLM2-135M-Instruct", "model.safetensors"))
# model = Llama(smollm2.CONFIG, from_the_hub(state, smollm2.CONFIG))
# ```

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
# ## What we keep
#
# - RMSNorm divides by the root of the mean square and subtracts nothing; compute it in float32, whatever type the
#   model uses.
# - SwiGLU: one projection is the gate for another, and a hidden width of 8/3 · d_model costs as much as the plain
#   network did.
# - Grouped-query attention: neighboring query heads share a head of keys and values, 0 0 0 1 1 1 2 2 2. Positions
#   come in through RoPE, in every block.
# - Llama kept the frame of GPT-2: x + attn(norm(x)), then x + mlp(norm(x)).
# - Weights fit only if both programs share the same conventions. A slip raises no error; compare logits, on a long
#   text, with another program's.
#
# | what | shape |
# |---|---|
# | x, and every block's output | (B, T, d_model) |
# | q | (B, num_heads, T, d_head) |
# | k, v | (B, num_kv_heads, T, d_head), copied to num_heads for the product |
# | gate(x), up(x) | (B, T, d_hidden) |
# | logits | (B, T, vocabulary), by the table of tokens itself |

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners open today's block and find lesson 09 in it, with four parts replaced. And the promise of the course is
# kept: what they have written is no toy, since a real model runs on it. Download the weights before the lesson
# (`make model`), so that the room doesn't wait while everyone fetches 100 MB.
#
# ## Cut for 60 minutes
#
# `rms_norm` and `LlamaBlock` as exercises, `SwiGLU` and the attention as given solutions. Then Paris, and the prediction on slips.
#
# ## Cut for 90 minutes
#
# All four exercises. Leave out the task with products and the appendix; keep the move of rows.
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
# - A colleague loads a model into a program of her own. It answers ten short questions well. What do you ask before you trust it? A good
#   answer asks for logits against another program's, for a long text, and for sizes that differ (heads of queries and of keys).
# - Each of the four parts was replaced because a comparison at equal cost favored it, and often nobody knows why. What would you want
#   to see before you replace a fifth? A good answer names equal numbers of weights and operations, several sizes and seeds, and a loss
#   on text that was held out.
#
# ## On paper
#
# A model has d_model = 512, 8 query heads, 2 heads of keys and a hidden width of 1344. How many weights does a block
# have, norms included, and
# which query heads read keys 1? *Solution:* w_q and w_o 2 · 512² = 524,288; w_k and w_v 2 · 512 · 128 = 131,072; the network
# 3 · 512 · 1344 = 2,064,384; two norms 1024; together 2,720,768. Heads 4 to 7.
