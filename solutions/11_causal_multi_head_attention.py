# %% [markdown]
# # 11 · Causal multi-head attention, and the block around it
#
# **What turns attention into a block that can be stacked many times?**
#
# Lesson 09 gave attention its heads, and lesson 06 hid the future from it. In this lesson both become one module, and the module
# becomes a block. Lesson 12 stacks two such blocks into a language model.

# %% role="given"
import math

import torch
from torch import nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% [markdown]
# ## One projection for three
#
# Three layers `w_q`, `w_k` and `w_v` read the same x. One layer with three times as many outputs computes the same numbers in one
# larger product, which a processor likes better. Then it has to be known which numbers are whose. The common order is q, k, v, and
# in each of them head after head, as contiguous slices like those of lesson 09:

# %% role="demo"
figures.lesson_11.fused()

# %% [markdown]
# Another order trains as well, since every row of the weight learns its own role. It matters as soon as weights are exchanged: a
# published loader that expects q, k and v *per head* reads a checkpoint stored in this order without any error, and computes
# something else.
#
# **Predict:** for d_model = 4 and two heads, which of the twelve numbers below belong to the *keys of head 1*?

# %% role="demo" tags=["nbval-check-output"]
numbers = torch.arange(12)
print("stored q, k, v, then heads:", numbers.view(3, 2, 2)[1, 1].tolist())
print("read per head, then q, k, v:", numbers.view(2, 3, 2)[1, 1].tolist())

# %% [markdown]
# ## Dropout on the weights
#
# *Dropout* sets a random share p of numbers to zero in each training step and divides the others by 1 − p, so that their mean stays
# (Srivastava et al. 2014, section 4). On attention weights it hides, now and then, the very key that a head relies on, and makes
# other heads learn to help. It must not act once training is over.
#
# **Predict** with four equal weights of ¼ and p = ½: which values can a weight take in training, and to what does a row sum on average?

# %% role="demo" tags=["nbval-check-output"]
torch.manual_seed(0)
layer, weights = nn.Dropout(0.5), torch.full((4,), 0.25)
for _ in range(3):
    print("training  ", layer(weights).tolist())
print("mean of the sums:", round(layer(weights.repeat(10_000, 1)).sum(dim=-1).mean().item(), 1))
print("evaluation", layer.eval()(weights).tolist())

# %% [markdown]
# A single row may sum to 0 or to 2; it is 1 on average. `nn.Dropout` is a module, so it follows `.train()` and `.eval()` of the module
# that owns it. `F.dropout` is a function and drops whenever nobody tells it not to. So does `dropout_p` of
# `F.scaled_dot_product_attention`, which PyTorch's own tracker knows as a surprise (pytorch/pytorch#124464).

# %% [markdown]
# @exercise CausalMultiHeadAttention
#
# `CausalMultiHeadAttention(d_model, num_heads, max_len, dropout=0.0)`: bias-free `nn.Linear` layers `qkv` (d_model → 3 · d_model)
# and `proj` (d_model → d_model). forward: `x` (B, T, d_model) → (B, T, d_model)
#
# ```text
# q, k, v    the three thirds of qkv(x), each cut into num_heads contiguous slices of d_head = d_model / num_heads
# each head  weights = softmax(q kᵀ / √d_head over the keys j ≤ i), then dropout on the weights, then weights · v
# result     proj(heads side by side)
# ```
#
# T > max_len and a d_model that num_heads does not divide raise `ValueError`. `state_dict` holds `qkv.weight` and `proj.weight`
# alone, so a mask that is kept is a buffer with `persistent=False`, as in lesson 06. From scratch: without
# `F.scaled_dot_product_attention` and its like.
#
# When stuck, `hint(CausalMultiHeadAttention)` in a new cell asks a question first; called again it says where to look.

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
# Our module returns no weights, and still they can be seen: with unit vectors as values and an identity as `proj`, the output of a query
# *is* its row of weights. The check reads dropout in this way, and so does the next picture.

# %% role="payoff" exercise="CausalMultiHeadAttention"
if passed(CausalMultiHeadAttention):
    figures.lesson_11.dropped(CausalMultiHeadAttention)

# %% [markdown]
# ## A proof in seconds
#
# Before a minute is spent on training, we let one layer with one head learn something whose solution we know. It reads ten random
# letters and a bar, then has to write the letters backwards: `abc|cba`. Guessing costs ln 16 = 2.77 nats a letter.
#
# **Predict** the weights behind the bar: at which position must the query look that writes the *first* letter of the answer?

# %% role="payoff" exercise="CausalMultiHeadAttention"
if passed(CausalMultiHeadAttention):
    figures.lesson_11.reverse(CausalMultiHeadAttention)

# %% [markdown]
# Nobody told the layer about reversing. It found the anti-diagonal because that was the way to lower the loss, and it could find it
# because positions were added to the tokens (lesson 07) and queries could compare them. With a leaking mask the loss falls as well,
# and faster: the answer is then read from the next position. So a falling loss proves little, and this picture a good deal.
#
# ## From attention to a block
#
# Attention moves information between tokens. What a token then does with it is the task of a small network, the same for every token:
# widen to four times the width, bend, narrow again (Vaswani et al. 2017, section 3.3). A *block* is both, with two additions that
# make deep stacks trainable: a **residual path**, x + f(x), on which a token and its gradient pass unchanged, and a **normalisation**
# in front of each f. The original normalises after the sum; in front ("pre-norm") no warm-up is needed (Xiong et al. 2020, section
# 3).
#
# The bend is GELU, x · Φ(x) with the normal distribution Φ (Hendrycks and Gimpel 2016, section 2). **Predict:** by how much does its
# popular approximation by tanh differ: in the third, the fourth or the seventh digit?

# %% role="demo" tags=["nbval-check-output"]
x = torch.linspace(-4, 4, 8001)
gap = (nn.GELU()(x) - nn.GELU(approximate="tanh")(x)).abs().max().item()
print(f"exact against tanh: up to {gap:.4f}")

# %% [markdown]
# @exercise layer_norm
#
# `x` (..., d), `weight` and `bias` (d,), `eps` a number → (..., d)
#
# ```text
# for each token, over its d numbers:
#     mean      the sum over d
#     variance  the sum of the squared distances from the mean, over d
#     result    (number − mean) / √(variance + eps) · weight + bias, feature by feature
# ```
#
# Without `nn.LayerNorm`, `F.layer_norm` and other ready-made normalizations; `var` is none of them. A token whose numbers are all the
# same gives the bias.

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

# %% [markdown]
# No loss curve would show it. A comparison with somebody else's weights does, and that is how such differences are found.
#
# Should `CausalMultiHeadAttention` not be finished yet, the next exercise can use the class below instead: the same names and shapes of
# weights, around the ready-made operator.

# %% role="given"
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
# `TransformerBlock(d_model, num_heads, max_len, dropout=0.0)` with four attributes: `ln1` and `ln2`, each `nn.LayerNorm(d_model)`;
# `attn`, a `CausalMultiHeadAttention`; `mlp`, an `nn.Sequential` of `nn.Linear(d_model, 4 * d_model)`, `nn.GELU()` and
# `nn.Linear(4 * d_model, d_model)`. forward: `x` (B, T, d_model) → (B, T, d_model)
#
# ```text
# x = x + attn(ln1(x))
# x = x + mlp(ln2(x))
# ```
#
# The exact GELU. Dropout acts inside attention only.

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
# Where do a block's parameters sit? **Predict** which of the two branches holds more of them.

# %% role="payoff" exercise="TransformerBlock"
if passed(TransformerBlock):
    block = TransformerBlock(128, 4, 64)
    for name, part in block.named_children():
        print(f"{name:5} {sum(p.numel() for p in part.parameters()):7,} parameters")

# %% [markdown]
# Two thirds are in the network, one third in attention. The four matrices of attention hold 4 · 128² numbers, the two of the network
# 8 · 128².
#
# Typically some heads look at the character just before, which is how spelling is learnt, others spread over the word or search for
# its beginning. Nobody assigned these roles. They differ from run to run, and a picture of weights shows where information may come
# from, not what is done with it (Jain and Wallace 2019).
#
# ## Break it on purpose: a model that sees the future
#
# One off-by-one in the mask and every position sees its answer. We train the same small layer on *random* letters, for which nothing
# better than ln 16 = 2.77 nats is possible. **Predict** the loss with `tril(1)` in place of `tril(0)`.

# %% role="demo"
figures.lesson_11.leaking()

# %% [markdown]
# Below what is possible: that is the signature of a leak. Such a model has learned to copy and can't write a single word, because
# when it writes there is no next token to copy. It is why a test that changes a later token (lesson 06) belongs to every causal
# model.
#
# ## Where this goes on
#
# Lesson 12 puts two of these blocks between an embedding and a vocabulary, and lets them learn to write.
