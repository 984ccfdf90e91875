# %% [markdown]
# # 09 · Causal multi-head attention, and the block around it
#
# **What turns attention into a block that can be stacked many times?**
#
# **Before this lesson:** lessons 06 (the causal mask), 07 (heads) and 08 (positions),
# `nn.Module`, and the mean and variance of a few numbers.
#
# The smallest GPT-2 is twelve blocks of one design, one above the other; GPT-3 has ninety-six (Brown et al. 2020). Attention does not
# stack like that by itself. At the end of this lesson, 24 blocks whose parts simply feed one another learn nothing. What do they
# lack?
#
# You build the block that works, then take its parts away again, and see what each of them is for.

# %% role="given"
import math

import torch
from torch import nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% [markdown]
# ## The block in one picture

# %% role="demo"
figures.causal_multi_head_attention.block()

# %% [markdown]
# Read it from the bottom up. Each token is a vector x, and it travels along the thick arrow on the left, the
# **residual stream**: what all blocks read from, and what they all add to. Each of the two branches takes a copy of x,
# computes something from it, and *adds* the result to x. The way around a branch is called a **residual connection** or
# *skip connection*. The branch only has to find what should be added (He et al. 2016).
#
# Attention is the only part in which tokens meet. All other parts treat each token by itself, with the same
# parameters for every token. And what leaves the block has the shape of what came in, so another block fits on top.
#
# ## Attention in one module
#
# Lesson 07 had three layers `w_q`, `w_k` and `w_v` that read the same x. One layer with three times as many outputs computes the same
# numbers in a single larger product, which usually runs faster. The common order of its outputs is
# all of q, then all of k, then all of v, and within each of them one head after another, as contiguous slices:

# %% role="demo"
figures.causal_multi_head_attention.fused()

# %% [markdown]
# @predict
#
# For d_model = 4 and two heads, `qkv(x)` has twelve numbers a token, 0 to 11. Which of them are the *keys of head 1*?
#
# - **A** 4 and 5
# - **B** 6 and 7
# - **C** 8 and 9
#
# @answer
#
# **B.** The first four are q, the next four k, the last four v; of k's four the first two are head 0's.
#
# @wrong
#
# A are the keys of head 0. C reads head by head, which is another order.

# %% [markdown]
# The module also has **dropout**. In every training step it sets each number to zero with probability p, and divides the others
# by 1 − p, so that each stays the same on average (Srivastava et al. 2014, sections 4 and 10). Applied to attention weights, it now
# and then hides the very key that a head relies on, which punishes relying on a single one. Once training is over, dropout has to be
# off.
#
# Take four weights of ¼ each, and p = ½. In training each of them becomes 0 or ½, so a row sums to between 0 and
# 2, and on average to 1. `nn.Dropout` is a module: `.train()` and `.eval()` on the module that owns it switch it on and off.

# %% [markdown]
# @exercise CausalMultiHeadAttention
#
# `CausalMultiHeadAttention(d_model, num_heads, max_len, dropout=0.0)`: bias-free `nn.Linear` layers `qkv` (d_model → 3 · d_model)
# and `proj` (d_model → d_model). forward: `x` (B, T, d_model) → (B, T, d_model)
#
# In every head each token sees itself and those before it. Dropout acts on the weights. `proj` reads the heads side by side.
#
# T > max_len and a d_model that num_heads does not divide raise `ValueError`. From scratch: without
# `F.scaled_dot_product_attention` and its like.
#
# A mask is no parameter, but should move to a GPU with its module. Such a tensor is a **buffer**: `self.register_buffer(name,
# tensor, persistent=False)`, where `persistent=False` keeps it out of `state_dict`. The `state_dict` should hold only
# `qkv.weight` and `proj.weight`.

# %% role="exercise" exercise="CausalMultiHeadAttention"
class CausalMultiHeadAttention(nn.Module):
    """Multi-head self-attention in which no token sees a later one, with one projection for q, k and v.

    d_model: width of the tokens, divisible by num_heads. max_len: the longest sequence that is accepted.
    dropout: the share of attention weights that is dropped in training.
    """

    def __init__(self, d_model: int, num_heads: int, max_len: int, dropout: float = 0.0) -> None:
        # region solution
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model = {d_model} is not divisible by num_heads = {num_heads}")
        self.num_heads, self.max_len = num_heads, max_len
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)
        hidden = torch.ones(max_len, max_len, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("hidden", hidden, persistent=False)  # follows from max_len: nothing to save
        # endregion

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (B, T, d_model). Returns: (B, T, d_model). Raises ValueError for T > max_len."""
        # region solution
        b, t, d_model = x.shape
        if t > self.max_len:
            raise ValueError(f"T = {t} is longer than max_len = {self.max_len}")
        split = self.qkv(x).view(b, t, 3, self.num_heads, -1)
        q, k, v = split.permute(2, 0, 3, 1, 4)  # each (B, H, T, d_head)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(self.hidden[:t, :t], -torch.inf)  # no row is empty: a token sees itself
        weights = torch.softmax(scores, dim=-1)
        heads = self.dropout(weights) @ v
        merged = heads.transpose(1, 2).reshape(b, t, d_model)
        return self.proj(merged)
        # endregion

# %% role="check" exercise="CausalMultiHeadAttention"
check(CausalMultiHeadAttention)

# %% [markdown]
# To see weights that your module does not return, the folded cell makes token 0's value (1, 0, 0, …), token 1's (0, 1, 0, …)
# and so on. The sum of the weighted values then *is* the row of weights. The mask hid the gray cells before softmax;
# dropout set those with 0.00 to zero after it.

# %% role="payoff" exercise="CausalMultiHeadAttention" tags=["hide-input"]
if passed(CausalMultiHeadAttention):
    torch.manual_seed(11)
    layer, x = CausalMultiHeadAttention(6, 1, 6, dropout=0.5), torch.eye(6)[None]
    with torch.no_grad():
        layer.qkv.weight[:12] = 0.9 * torch.randn(12, 6)
        layer.qkv.weight[12:] = torch.eye(6)  # the value of token j is the j-th unit vector
        layer.proj.weight.copy_(torch.eye(6))
        still = layer.eval()(x)[0].numpy()
        steps = layer.train()(x.repeat(400, 1, 1)).numpy()
    figures.causal_multi_head_attention.dropout_weights(still, steps[0], steps.mean(axis=0), 0.5)
    assert abs(steps.mean(axis=0) - still).max() < 0.15

# %% [markdown]
# ## LayerNorm
#
# Every block adds to x, so x can grow from block to block. **Layer normalization**, *LayerNorm* for short, gives each branch an
# input of the same size. It treats each token separately. For the numbers 1, 2 and 6 the mean is 3, the distances
# from it are −2, −1 and 3, and the variance is (4 + 1 + 9) / 3 = 4.67. Divided by the square root of the variance, 2.16, the
# distances become −0.93, −0.46 and 1.39: mean 0, variance 1. Then each feature is multiplied by a learned scale, and a learned
# shift is added (Ba, Kiros and Hinton 2016, section 3).

# %% [markdown]
# @exercise layer_norm
#
# `x` (..., d), `weight` and `bias` (d,), `eps` a number → (..., d)
#
# `weight` is the scale, `bias` the shift. A small `eps` is added to the variance, so that nothing is divided by 0: a token whose
# numbers are all the same gives the bias. Do not use `nn.LayerNorm`, `F.layer_norm` or any other ready-made
# normalization; `var` is allowed.

# %% role="exercise" exercise="layer_norm"
def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Each token with mean 0 and variance 1, then scaled and shifted feature by feature.

    x: (..., d). weight, bias: (d,). Returns: (..., d). Source: Ba, Kiros and Hinton 2016, section 3.
    """
    # region solution
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias
    # endregion

# %% role="check" exercise="layer_norm"
check(layer_norm)

# %% role="payoff" exercise="layer_norm"
if passed(layer_norm):
    torch.manual_seed(0)
    x, theirs = torch.randn(2, 4, 8), nn.LayerNorm(8)
    ours = layer_norm(x, theirs.weight, theirs.bias)
    louder = layer_norm(100 * x, theirs.weight, theirs.bias)
    print(f"difference from nn.LayerNorm: {(ours - theirs(x)).abs().max():.0e}")
    print(f"difference where every token is a hundred times as large: {(ours - louder).abs().max():.0e}")
    assert torch.allclose(ours, theirs(x), atol=1e-5) and torch.allclose(ours, louder, atol=1e-3)

# %% [markdown]
# A token a hundred times as large comes out the same. `nn.LayerNorm` is your function with `weight` and `bias` as parameters; the block
# uses it.
#
# ## The feed-forward network
#
# Attention brings together what several tokens know. For given attention weights, each output is a weighted mean of values. A
# mean can bring *not* and *bad* into one vector. But *not bad* is rather good, and that is no sum of what *not* and *bad* say
# separately. To give the pair its own meaning takes a nonlinear function.
#
# That is the work of the **feed-forward network** (also *MLP*, multi-layer perceptron): two linear layers with a nonlinear function
# between them, applied to each token by itself. The first layer widens the vector to four
# times its width, the second narrows it again (Vaswani et al. 2017, section 3.3).
#
# The nonlinear function is **GELU**: x · Φ(x), where Φ(x) is the probability that a standard normal number is below x
# (Hendrycks and Gimpel 2016, section 2). Large numbers pass nearly unchanged, and very negative ones become nearly 0:
# GELU(3) = {{ F.gelu(torch.tensor(3.0)).item():.3f; 2.9 < it < 3 }},
# GELU(−3) = −{{ -F.gelu(torch.tensor(-3.0)).item():.3f; 0 < it < 0.01 }}.
#
# ## Put it together
#
# In the picture, where does each branch start, what does it read, and to what is its result added? A norm inside
# the branch, in front of attention and of the network, is called **pre-norm**.
#
# If `CausalMultiHeadAttention` is not finished yet, use `GivenAttention` from the next cell, which calls torch's own operator.

# %% role="given" tags=["hide-input"]
class GivenAttention(nn.Module):
    """Stands in for CausalMultiHeadAttention; calls torch's fused operator."""

    def __init__(self, d_model, num_heads, max_len, dropout=0.0):
        super().__init__()
        self.sizes, self.max_len, self.p = (3, num_heads, d_model // num_heads), max_len, dropout
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        if x.shape[1] > self.max_len:
            raise ValueError("longer than max_len")
        q, k, v = self.qkv(x).unflatten(-1, self.sizes).unbind(2)
        p = self.p if self.training else 0.0
        heads = (part.transpose(1, 2) for part in (q, k, v))
        out = F.scaled_dot_product_attention(*heads, dropout_p=p, is_causal=True)
        return self.proj(out.transpose(1, 2).flatten(2))

# %% [markdown]
# @exercise TransformerBlock
#
# `TransformerBlock(d_model, num_heads, max_len, dropout=0.0)` with four attributes, connected as in the picture: `ln1` and `ln2`, each
# `nn.LayerNorm(d_model)`; `attn`, a `CausalMultiHeadAttention`; `mlp`, an `nn.Sequential` of a linear layer that widens to 4 · d_model,
# GELU (`nn.GELU()`) and a linear layer back. forward: `x` (B, T, d_model) → (B, T, d_model)
#
# The lower LayerNorm is `ln1`. Both linear layers have a bias. Dropout acts inside attention only.

# %% role="exercise" exercise="TransformerBlock"
class TransformerBlock(nn.Module):
    """Attention between tokens, then a network for each token, both pre-norm and residual.

    d_model, num_heads, max_len, dropout: as for CausalMultiHeadAttention.
    """

    def __init__(self, d_model: int, num_heads: int, max_len: int, dropout: float = 0.0) -> None:
        # region solution
        super().__init__()
        self.ln1 = nn.LayerNorm(d_model)
        self.attn = CausalMultiHeadAttention(d_model, num_heads, max_len, dropout)
        self.ln2 = nn.LayerNorm(d_model)
        self.mlp = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))
        # endregion

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (B, T, d_model). Returns: (B, T, d_model)."""
        # region solution
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))
        # endregion

# %% role="check" exercise="TransformerBlock"
check(TransformerBlock)

# %% [markdown]
# Where do a block's parameters sit? And is the way around the branches really free? We let both branches return zeros, and x must
# come through unchanged.

# %% role="payoff" exercise="TransformerBlock" tags=["nbval-check-output"]
if passed(TransformerBlock):
    block, x = TransformerBlock(128, 4, 64), torch.randn(2, 10, 128)
    held = {name: sum(p.numel() for p in part.parameters()) for name, part in block.named_children()}
    print("  ".join(f"{name} {count:,}" for name, count in held.items()))
    with torch.no_grad():
        for last in (block.attn.proj.weight, block.mlp[2].weight, block.mlp[2].bias):
            last.zero_()
        print("passes x on unchanged:", torch.equal(block.eval()(x), x))
        assert torch.equal(block(x), x) and 1.9 < held["mlp"] / held["attn"] < 2.1

# %% [markdown]
# Two thirds of the parameters are in the network: 8 · 128² against 4 · 128² in attention.
#
# ## Take the parts away
#
# What is each part good for? We stack 24 blocks and leave parts out. This is called an **ablation**: take something away to see what
# is lost without it. There are four ways to put a part f, attention or network, into the stack:

# %% role="given"
WAYS = {
    "plain": lambda x, f, norm: f(x),
    "norm only": lambda x, f, norm: f(norm(x)),
    "residual only": lambda x, f, norm: x + f(x),
    "pre-norm (both)": lambda x, f, norm: x + f(norm(x)),
}

# %% [markdown]
# The task is small: name the letter two places back. There are eight letters, so guessing costs ln 8 = 2.08. The folded
# cell builds and trains the stacks; `train_stack` returns the losses, the size of each block's `qkv` gradient in the first step, and the
# outputs' spread.

# %% role="given" tags=["hide-input"]
class AblatedBlock(nn.Module):
    """Attention, then a feed-forward network, put together in one way: a name of WAYS, or a function."""

    def __init__(self, way, d):
        super().__init__()
        self.join = WAYS.get(way, way)
        self.ln1, self.ln2, self.attn = nn.LayerNorm(d), nn.LayerNorm(d), GivenAttention(d, 2, 16)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        for f, norm in ((self.attn, self.ln1), (self.mlp, self.ln2)):
            x = self.join(x, f, norm)
        return x


def new_stack(way, seed=0, depth=24, d=32):
    """Untrained: embeddings of tokens and of positions, what makes logits of the last vectors, and the blocks."""
    torch.manual_seed(seed)
    token, place = nn.Embedding(8, d), nn.Embedding(12, d)
    blocks = nn.Sequential(*(AblatedBlock(way, d) for _ in range(depth)))
    return token, place, nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 8)), blocks


def train_stack(way, steps, rate, warm_up=0, seed=0):
    """(losses, gradient norms by block, spreads of what leaves the last block). warm_up: steps in which the rate grows from 0."""
    parts = token, place, head, blocks = new_stack(way, seed)
    optimizer = torch.optim.AdamW([p for part in parts for p in part.parameters()], lr=rate, fused=True)
    losses, norms, spreads = [], [], []
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / max(warm_up, 1))
        ids = torch.randint(8, (32, 12))
        x = blocks(token(ids) + place(torch.arange(12)))
        loss = F.cross_entropy(head(x)[:, 2:].flatten(0, 1), ids[:, :-2].flatten())
        optimizer.zero_grad()
        loss.backward()
        norms = norms or [block.attn.qkv.weight.grad.double().norm().item() for block in blocks]  # float32 loses the squares
        optimizer.step()
        losses.append(loss.item())
        spreads.append(x.std().item())
    return losses, norms, spreads

# %% [markdown]
# @predict
#
# 24 blocks, stacked plainly: x = attn(x), x = mlp(x), and so on. How much smaller is the gradient at the first block than at the last?
#
# - **A** about 24 times
# - **B** a million times
# - **C** about 10²⁸ times
#
# @answer
#
# **C**: {{ size["plain"][0]:.1e; it < 1e-27 }} at the first block, {{ size["plain"][-1]:.2f; it > 0.01 }} at the last. Between them
# lie 46 parts, attention or network. On the way back each multiplies the gradient, by
# {{ (size["plain"][0] / size["plain"][-1]) ** (1 / 46):.2f; 0.235 < it < 0.245 }} on average, and 0.24⁴⁶ ≈ 3 · 10⁻²⁹.
# This is a **vanishing gradient**.
#
# @wrong
#
# A adds where factors multiply. For B, a factor of 0.74 would be enough.

# %% role="demo"
torch.set_num_threads(1)  # on tensors this small, several threads mostly wait for one another
size = {way: train_stack(way, 1, 3e-3)[1] for way in WAYS}
figures.causal_multi_head_attention.gradients(size)
times = [one / other for one, other in zip(size["norm only"], size["pre-norm (both)"])]
assert 1e-32 < size["plain"][0] < 1e-27 and min(size[way][0] for way in list(WAYS)[1:]) > 1e-3

# %% [markdown]
# Either repair brings the gradient back. Where a part returns small numbers, the next LayerNorm divides them by their small
# spread. On the way back it divides the gradient by the same small number, and so makes up for what the part lost. A residual
# connection, x + f(x), gives the gradient a way around f: the derivative is 1 + f′, and however small f′ is, the 1 carries the
# gradient through any number of layers.

# %% [markdown]
# @predict
#
# The gradients of "norm only" are here {{ min(times):.0f; it > 1 }} to {{ max(times):.0f; it > 10 }} times as large as those of the whole
# block. We train all four stacks, at learning rates of 0.003 and 0.0003. What will "norm only" do?
#
# - **A** It learns at both rates.
# - **B** It learns at the smaller rate.
# - **C** It learns at neither.
#
# @answer
#
# **C.** Its loss ends at {{ learned["norm only"][-1]:.2f; it > 2 }} and {{ slowly["norm only"][-1]:.2f; it > 2 }}, no better than
# guessing.
#
# @wrong
#
# A and B look at the gradient alone. It says how to change the parameters, not whether the vectors, 24 blocks up, still
# tell tokens apart.

# %% role="demo"
runs = {way: train_stack(way, 70, 3e-3) for way in WAYS}
learned = {way: losses for way, (losses, _, _) in runs.items()}
slowly = {way: train_stack(way, 100, 3e-4)[0] for way in WAYS}
figures.causal_multi_head_attention.ablation({"learning rate 0.003": learned, "learning rate 0.0003": slowly}, math.log(8))
whole, residual = "pre-norm (both)", "residual only"
assert min(learned[way][-1] for way in WAYS if way != whole) > 2 and learned[whole][-1] < 0.5
spread = {way: (spreads[0], spreads[5]) for way, (_, _, spreads) in runs.items()}
assert max(slowly[way][-1] for way in (whole, residual)) < 1.95 and min(slowly[way][-1] for way in ("plain", "norm only")) > 2

# %% [markdown]
# That was one seed. We ran five (0 to 4), and all agree:
#
# | | learns at 0.003, 70 steps | learns at 0.0003, 100 steps |
# |---|---|---|
# | plain | in 0 of 5 | in 0 of 5 |
# | norm only | in 0 of 5 | in 0 of 5 |
# | residual only | in 0 of 5 | in 5 of 5 |
# | pre-norm (both) | in 5 of 5 | in 5 of 5 |
#
# So the two repairs do different work. Without residual connections these stacks do not learn. With them, normalization
# makes the higher of the two rates possible. In the run above, with "residual only" at 0.003, the numbers that leave
# the last block have a standard deviation of {{ spread["residual only"][0]:.0f; it < 10 }} at first and of
# {{ spread["residual only"][1]:.0f; it > 100 }} five steps later (in a longer run NaN, within 400 steps). With both it is
# {{ spread["pre-norm (both)"][0]:.0f; it < 3 }} at first, then {{ spread["pre-norm (both)"][1]:.0f; it < 10 }}.
#
# Why does "norm only" fail? How alike are two tokens of a sequence after each block, before any
# training? Their *cosine similarity* is the dot product of their vectors, each divided by its length. It is 1 if they
# point in the same direction.

# %% role="demo" tags=["hide-input"]
@torch.no_grad()
def alike(way):
    """The mean cosine similarity of two tokens of a sequence, before the untrained blocks and after each of them."""
    token, place, _, blocks = new_stack(way)
    x, found = token(torch.randint(8, (32, 12))) + place(torch.arange(12)), []
    for block in (nn.Identity(), *blocks):
        x = block(x)
        directions = F.normalize(x, dim=-1)
        found.append((directions @ directions.mT)[:, ~torch.eye(12, dtype=torch.bool)].mean().item())
    return found


tokens = {way: alike(way) for way in WAYS}
figures.causal_multi_head_attention.token_similarity(tokens)
assert min(tokens[way][-1] for way in ("plain", "norm only")) > 0.99
assert max(tokens[way][-1] for way in ("residual only", "pre-norm (both)")) < 0.9

# %% [markdown]
# In "norm only" each part *replaces* a token's vector, attention by a mean over the tokens up to it. After 24
# such blocks all tokens of a sequence point nearly the same way, and a layer can hardly read from it which letter stood two
# places back. (In "plain" the vectors also shrink, until only the layers' biases are left, the same for every token.) Dong,
# Cordonnier and Loukas (2021, section 2) prove that attention alone, stacked without a mask, makes its tokens equal. With a residual
# connection a token keeps its vector, and layers add to it. Tokens grow more alike there, too ("residual only" reaches
# {{ tokens["residual only"][-1]:.2f; 0.5 < it < 0.9 }}), but stay apart.

# %% [markdown]
# ## Further: a layer learns to write backwards
#
# One layer of your attention is trained on a task whose solution we know. For readers who want to see where a trained layer looks.

# %% [markdown]
# The layer reads ten random letters and a bar, and then has to write the letters backwards, as in `abc|cba`. Guessing among
# 16 letters costs ln 16 = 2.77.

# %% [markdown]
# @predict
#
# The query at the bar writes the *first* letter of the answer. At which position must it look? And the next query, which writes the
# second letter?
#
# @answer
#
# The first looks at the last letter, just before the bar; the second one place further back. Each step forward in the answer is a
# step back in the question, so the weights lie on an *anti*-diagonal.
#
# @wrong
#
# The first position would be right for copying. Here the answer begins with the letter that came last.

# %% role="payoff" exercise="CausalMultiHeadAttention" tags=["hide-input"]
if passed(CausalMultiHeadAttention):
    class Reverser(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(17, 64), nn.Embedding(20, 64)
            self.attn, self.head = CausalMultiHeadAttention(64, 1, 20, dropout=0.1), nn.Linear(64, 17)

        def forward(self, ids):
            x = self.token(ids) + self.position(torch.arange(20))
            return self.head(x + self.attn(x))

    def sequences(count):
        """Letters, the bar (number 16), and the letters backwards."""
        front = torch.randint(16, (count, 10))
        return torch.cat([front, torch.full((count, 1), 16), front.flip(1)], dim=1)

# %% role="payoff" exercise="CausalMultiHeadAttention"
if passed(CausalMultiHeadAttention):
    torch.manual_seed(11)
    model, losses = Reverser(), []
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(250):
        ids = sequences(64)
        logits = model(ids[:, :-1])[:, 10:]  # only what comes after the bar can be known
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 11:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 1.0

# %% [markdown]
# Where does the layer look, once it is trained? The folded cell computes the weights from `qkv`, and checks that they explain
# what the layer returns.

# %% role="given" tags=["hide-input"]
def weights_of(attention, x, num_heads):
    """(B, H, T, T): the weights of an attention of this form; raises where they do not explain its output."""
    q, k, v = (part.unflatten(-1, (num_heads, -1)).transpose(1, 2) for part in attention.qkv(x).chunk(3, dim=-1))
    future = torch.full((x.shape[1], x.shape[1]), -torch.inf).triu(1)
    weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]) + future, dim=-1)
    again = (weights @ v).transpose(1, 2).flatten(2) @ attention.proj.weight.T
    assert torch.allclose(again, attention(x), rtol=1e-3, atol=1e-4)
    return weights

# %% role="payoff" exercise="CausalMultiHeadAttention"
if passed(CausalMultiHeadAttention):
    front = torch.randperm(16)[:10]  # ten different letters, so that each row of the picture has a name of its own
    ids = torch.cat([front, torch.tensor([16]), front.flip(0)])[None]
    with torch.no_grad():
        x = model.eval().token(ids[:, :-1]) + model.position(torch.arange(20))
        looked = weights_of(model.attn, x, 1)[0, 0].numpy()
    shown = "".join("abcdefghijklmnop|"[i] for i in ids[0, :-1].tolist())
    figures.causal_multi_head_attention.reverse(losses, math.log(16), looked, shown)

# %% [markdown]
# Nobody told the layer about reversing. It found the anti-diagonal because that was the way to lower the loss, and it could find it
# because positions were added to the tokens (lesson 08). The queries before the bar have nothing to write, so no loss asks
# where they look.
#
# But why does the loss stay near 0.28? We compute it once more with the trained layer, in both modes:

# %% role="payoff" exercise="CausalMultiHeadAttention"
if passed(CausalMultiHeadAttention):
    at_end = {}
    with torch.no_grad():
        ids = sequences(1000)
        for mode in ("training", "evaluation"):
            logits = model.train(mode == "training")(ids[:, :-1])[:, 10:]
            at_end[mode] = F.cross_entropy(logits.flatten(0, 1), ids[:, 11:].flatten()).item()
            print(f"loss in {mode} mode: {at_end[mode]:.4f}")
    assert abs(at_end["training"] - 0.1 * math.log(16)) < 0.03 and at_end["evaluation"] < 0.002

# %% [markdown]
# The layer is right nearly always, and the loss is dropout's doing. Each letter depends on one weight. Dropout takes it away in one
# case of ten, and then the layer has to guess among 16 letters: 0.1 · ln 16 = 0.28. We trained with six seeds, and all six
# ended between 0.27 and 0.29 in training mode and below 0.001 in evaluation.

# %% [markdown]
# ## Further: after the sum, and a warm-up
#
# The first Transformer normalized after the sum. For readers who want to see that its training needs a warm-up.

# %% [markdown]
# x = norm(x + f(x)) is called **post-norm** (Vaswani et al. 2017, section 3.1). In pre-norm a path without any normalization leads
# from the first layer to the last; in post-norm every sum passes through one. Xiong et al. (2020, section 3) say that post-norm needs a
# **warm-up**, a learning rate that grows from 0 in the first steps, and pre-norm does not. Our 24 blocks can test that:

# %% role="demo"
def post_norm(x, f, norm):
    return norm(x + f(x))


started = {
    "pre-norm": learned["pre-norm (both)"],  # as above
    "post-norm": train_stack(post_norm, 70, 3e-3)[0],
    "post-norm, 40 steps of warm-up": train_stack(post_norm, 70, 3e-3, warm_up=40)[0],
}
figures.causal_multi_head_attention.curves("Post-norm needs a warm-up here, pre-norm does not", started, math.log(8), "guessing: ln 8")
ends = {way: sum(curve[-5:]) / 5 for way, curve in started.items()}
assert ends["pre-norm"] < 0.5 and ends["post-norm, 40 steps of warm-up"] < 1 < 2 < ends["post-norm"]

# %% [markdown]
# The cell shows one seed. We ran five (0 to 4). Without a warm-up, pre-norm learns in all five. Post-norm is still near
# guessing after 70 steps in four of them (2.05 to 2.08), and has just begun to learn in one (1.93). With 40 steps of warm-up it
# learns in all five and ends at 0.1 or below. One depth and one small task prove no general rule, but the paper found the
# same on translation.

# %% [markdown]
# ## What we keep
#
# - A block has two branches, attention and a feed-forward network. Each reads a normalized x and adds its result to the
#   residual stream.
# - One projection computes q, k and v. Dropout acts on the weights, in training only.
# - LayerNorm treats each token separately: mean 0, variance 1 (dividing by d, not d − 1), then a scale and a shift
#   for each feature.
# - In our stack of 24 blocks nothing was learned without residual connections; with them, normalization allowed at least ten
#   times the learning rate.
#
# | what | shape |
# |---|---|
# | x, before and after attention, network and block | (B, T, d_model) |
# | qkv(x) | (B, T, 3 · d_model) |
# | q, k, v of all heads | (B, num_heads, T, d_head) |
# | scores and weights | (B, num_heads, T, T) |
# | inside the feed-forward network | (B, T, 4 · d_model) |
#
# **Sources.** Vaswani et al. 2017, *Attention is all you need*, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762). Brown et al. 2020,
# *Language models are few-shot learners*, [arXiv:2005.14165](https://arxiv.org/abs/2005.14165). He et al. 2016, *Deep residual learning
# for image recognition*, [arXiv:1512.03385](https://arxiv.org/abs/1512.03385). Srivastava et al. 2014, *Dropout*, Journal of Machine
# Learning Research 15. Ba, Kiros and Hinton 2016, *Layer normalization*, [arXiv:1607.06450](https://arxiv.org/abs/1607.06450). Hendrycks
# and Gimpel 2016, *Gaussian error linear units*, [arXiv:1606.08415](https://arxiv.org/abs/1606.08415). Dong, Cordonnier and Loukas 2021,
# *Attention is not all you need*, [arXiv:2103.03404](https://arxiv.org/abs/2103.03404). Xiong et al. 2020, *On layer normalization in the
# Transformer architecture*, [arXiv:2002.04745](https://arxiv.org/abs/2002.04745).

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# The module that language models use, and the block around it. Learners should be able to draw the block from memory, and leave with the
# experiment in mind in which gradients arrive and nothing is learned.
#
# ## Cut for 60 minutes
#
# "The block in one picture", `CausalMultiHeadAttention` and `TransformerBlock`. Show the figures of "Take the parts away" from the solved
# notebook; `layer_norm` is homework.
#
# ## Cut for 90 minutes
#
# All three exercises and "Take the parts away". Leave out the further parts.
#
# ## Mistakes to expect
#
# - CausalMultiHeadAttention MH1: What are the numbers of one token after your `view`, and do they all belong to it?
# - CausalMultiHeadAttention PJ3: Which of the 3 · d_model numbers are the keys of head 1?
# - CausalMultiHeadAttention MH5: What does your module return if you call it twice in evaluation?
# - CausalMultiHeadAttention MH2: In which order do heads and tokens stand when you merge them?
# - layer_norm LN1: By what does your variance divide, and how many numbers are there?
# - layer_norm LN6: If I change another token, may this one's result change?
# - layer_norm LN2: What is the denominator for a token whose numbers are all 3?
# - TransformerBlock CM21: On which path does a number travel from the first block to the last without being rescaled?
# - TransformerBlock CM29: What does the network read: the block's input, or what attention has added to?
# - TransformerBlock CM22: If attention returned zeros, what would be left of the token?
#
# ## To discuss
#
# - "Norm only" has healthy gradients and learns nothing. Why? A good answer says that a gradient tells how to change the parameters,
#   not that the input still says something: 24 untrained blocks without a residual connection have turned all tokens nearly the same way.
# - "Residual only" learns at a small learning rate and not at a large one. What does that say about the sentence "deep networks need
#   normalization"? A good answer asks: at which learning rate, with which initialization, in how many runs?
# - Why is the mask a buffer and not a parameter, and why not saved? A good answer: there is nothing to learn about it, it has to move
#   with the module to a GPU, and it follows from max_len.
#
# ## On paper
#
# Normalize the token (2, 4, 4, 6) by hand, with weight (1, 1, 2, 1), bias (0, 0, 0, 1) and eps = 0. *Solution:* mean 4, distances −2,
# 0, 0, 2, variance 8/4 = 2, root 1.414: −1.414, 0, 0, 1.414. With weight and bias: −1.414, 0, 0, 2.414.
