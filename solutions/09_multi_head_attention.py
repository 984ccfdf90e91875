# %% [markdown]
# # 9 · Multi-head attention
#
# **One row of weights can look at one place: how does a token look at several at once?**
#
# A query asks one question and gets one answer, a weighted mean of values. Reading often needs two answers at the same time: which
# letter came before me, and which stands at the other end? In this lesson we cut the vectors into slices, let each slice attend on its
# own, and put the answers side by side. Nothing in it is new mathematics. Nearly everything in it is about axes, and there the
# mistakes are silent.

# %% role="given"
import math

import torch
from torch import nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, solution

# %% [markdown]
# ## A mean of two places
#
# Three tokens carry two numbers each, (10, 0), (5, 5) and (0, 10). The token in the middle wants the *first* number of its left neighbour
# and the *second* number of its right neighbour: (10, 10).
#
# **By hand:** which three weights come closest, and what do the weights (½, 0, ½) give? Could anybody tell that result from
# the weights (0, 1, 0)?

# %% role="demo"
values = torch.tensor([[10.0, 0.0], [5.0, 5.0], [0.0, 10.0]])
one = torch.tensor([0.5, 0.0, 0.5])  # one row of weights for both numbers
two = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # a row of its own for each number
figures.lesson_09.two_heads(one.numpy(), two.numpy(), values.numpy())

# %% [markdown]
# The two numbers of every token sum to 10, so every weighted mean sums to 10: (10, 10) is out of reach for one row, whatever the
# weights. Two rows, each with its own slice of the values, reach it. Such a row with its slice is a **head**.
#
# ## Cutting vectors into heads
#
# With num_heads heads, each gets d_head = d_model / num_heads numbers of every token, as contiguous slices: head 0 the first d_head
# numbers, head 1 the next. From then on heads are one more axis of the batch: (B, T, d_model) becomes (B, num_heads, T, d_head), and a
# matrix product treats all heads alike.
#
# **Predict:** two tokens hold the numbers 0 to 3 and 4 to 7. Which of the following is head 1 of two?

# %% role="demo" tags=["nbval-check-output"]
x = torch.arange(8).view(1, 2, 4)
print("A", x.view(1, 2, 2, 2)[0, 1].tolist())
print("B", x[0, :, 2:].tolist())
print("C", x[0, :, 1::2].tolist())

# %% [markdown]
# All three have the shape (T, d_head), and no error will ever tell them apart. A holds all of token 1 and nothing of token 0.
# B holds the second slice of both tokens. C deals the numbers out like cards.

# %% [markdown]
# @exercise split_heads
#
# `x` (B, T, d_model), `num_heads` → (B, num_heads, T, d_head) with d_head = d_model / num_heads
#
# ```text
# for each item b, head h, token t:
#     result[b, h, t] = x[b, t, h · d_head  to  (h + 1) · d_head]
# ```
#
# A d_model that num_heads does not divide raises ValueError. Gradients flow to x. When stuck, `hint(split_heads)` in a new cell asks a
# question first.

# %% role="exercise" exercise="split_heads"
def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Give each head its own contiguous slice of every token.

    x: (B, T, d_model). Returns: (B, num_heads, T, d_head).
    Raises: ValueError where num_heads does not divide d_model.
    """
    # region solution
    b, t, d_model = x.shape
    if d_model % num_heads:
        raise ValueError(f"d_model = {d_model} is not divisible by num_heads = {num_heads}")
    return x.reshape(b, t, num_heads, d_model // num_heads).transpose(1, 2)
    # endregion

# %% role="check" exercise="split_heads"
check(split_heads)

# %% [markdown]
# To see where numbers go, we let them say where they come from: number j of token i is 10 i + j. Beside our split stands the one that a
# published implementation had for two years, a view straight into the final shape (mended in hyunwoongko/transformer#4).

# %% role="payoff" exercise="split_heads"
if passed(split_heads):
    figures.lesson_09.where_numbers_go(split_heads)

# %% [markdown]
# A row of a head must come from one token. In the view alone, "row 1 of head 0" holds two numbers of token 0, and the last head sees
# nothing of token 0 at all.
#
# ## Side by side again
#
# After attention each token's slices have to return to one vector. The numbers of one token are to be neighbours, so the tokens move
# back to axis 1 *before* the last two axes become one. `transpose` moves no number in memory; it changes the steps by which they are
# read. Therefore `view`, which needs numbers in order, refuses its result, and `reshape` copies where it must.

# %% [markdown]
# @exercise merge_heads
#
# `x` (B, num_heads, T, d_head) → (B, T, num_heads · d_head)
#
# ```text
# for each item b, token t, head h:
#     result[b, t, h · d_head  to  (h + 1) · d_head] = x[b, h, t]
# ```
#
# The inverse of `split_heads`. Gradients flow to x.

# %% role="exercise" exercise="merge_heads"
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    """Put the heads of each token side by side: the inverse of split_heads.

    x: (B, num_heads, T, d_head). Returns: (B, T, num_heads · d_head).
    """
    # region solution
    b, num_heads, t, d_head = x.shape
    return x.transpose(1, 2).reshape(b, t, num_heads * d_head)
    # endregion

# %% role="check" exercise="merge_heads"
check(merge_heads)

# %% [markdown]
# **Predict** what comes back for each pair of steps below: token 0, or something else?

# %% role="payoff" exercise="merge_heads"
if passed(merge_heads) and passed(split_heads):
    x = (10 * torch.arange(3)[:, None] + torch.arange(4))[None]
    print("split, then merge:         ", merge_heads(split_heads(x, 2))[0, 0].tolist())
    print("split, then reshape alone: ", split_heads(x, 2).reshape(1, 3, 4)[0, 0].tolist())
    assert torch.equal(merge_heads(split_heads(x, 2)), x)

# %% [markdown]
# Reshaping alone makes "token 0" of the first halves of tokens 0 *and* 1. We will train with that below.
#
# ## The whole module
#
# Query, key and value are projected, split, attended, merged, and projected once more (Vaswani et al. 2017, section 3.2.2):
#
# $$\operatorname{head}_h = \operatorname{softmax}\!\left(\frac{Q_h K_h^\top}{\sqrt{d_{head}}}\right) V_h \qquad
# \operatorname{output} = [\operatorname{head}_0, \ldots, \operatorname{head}_{H-1}]\, W_O$$
#
# One layer with d_model outputs computes all heads' queries at once: the rows of its weight are the heads' projections, one below the
# other. The last layer, `w_o`, is where what different heads found meets. Before it, no head knows of another.
#
# **Predict:** how many parameters has a module of width 64 with one head, and how many with sixteen?

# %% role="demo" tags=["nbval-check-output"]
for num_heads in (1, 4, 16):
    module = nn.MultiheadAttention(64, num_heads)
    print(f"{num_heads:2} heads: {sum(p.numel() for p in module.parameters()):,} parameters")

# %% [markdown]
# The same: heads divide what is there. And the root? Each score is a sum over d_head products, so it is √d_head that keeps scores
# near 1 (lesson 04), not √d_model.
#
# Should `split_heads` or `merge_heads` not be finished yet, the next exercise can use these two, which do the same by cutting and
# joining:

# %% role="given"
def cut(x, num_heads):
    """As split_heads, without its ValueError."""
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


def join(x):
    """As merge_heads."""
    return torch.cat(x.unbind(dim=1), dim=-1)

# %% [markdown]
# @exercise MultiHeadAttention
#
# `MultiHeadAttention(d_model, num_heads)`: four `nn.Linear(d_model, d_model)` with bias, `w_q`, `w_k`, `w_v`, `w_o`. forward: `query`
# (B, T_q, d_model), `key` and `value` (B, T_k, d_model), `mask` → (`output` (B, T_q, d_model), `weights` (B, num_heads, T_q, T_k))
#
# ```text
# q, k, v  = w_q(query), w_k(key), w_v(value), each split into heads
# each head: weights = softmax(q kᵀ / √d_head), hidden keys left out;  out = weights · v
# output   = w_o(heads side by side)
# ```
#
# `mask` is boolean, **True where attention is allowed**, and broadcasts to (B, num_heads, T_q, T_k); None allows everything. A padding mask
# (B, 1, T_k) of lesson 06 needs one more axis, `mask[:, None]`, before it is passed. Every query may see some key. A d_model that
# num_heads does not divide raises ValueError. From scratch: without `F.scaled_dot_product_attention` and its like.

# %% role="exercise" exercise="MultiHeadAttention"
class MultiHeadAttention(nn.Module):
    """Attention in num_heads slices of d_model, between two projections.

    Source: Vaswani et al. 2017, section 3.2.2.
    """

    def __init__(self, d_model: int, num_heads: int) -> None:
        # region solution
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model = {d_model} is not divisible by num_heads = {num_heads}")
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        # endregion

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """query: (B, T_q, d_model). key, value: (B, T_k, d_model).

        mask: bool, True where attention is allowed.

        Returns: output (B, T_q, d_model) and weights (B, num_heads, T_q, T_k).
        """
        # region solution
        q = split_heads(self.w_q(query), self.num_heads)
        k = split_heads(self.w_k(key), self.num_heads)
        v = split_heads(self.w_v(value), self.num_heads)
        scores = q @ k.mT / math.sqrt(q.shape[-1])  # one head's width, not d_model
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        output = self.w_o(merge_heads(weights @ v))
        return output, weights
        # endregion

# %% role="check" exercise="MultiHeadAttention"
check(MultiHeadAttention)

# %% [markdown]
# ## Heads that look at different places
#
# A small task asks for two places at once. At each of eight positions a layer is to name the letter before it *and* the letter at the
# mirrored position. We train our module on it with one head and with two, about two seconds each.
#
# **Predict** what the only head will do: find one of the letters, both half, or neither? And where will each of the two heads look?

# %% role="payoff" exercise="MultiHeadAttention"
if passed(MultiHeadAttention):
    figures.lesson_09.different_heads(MultiHeadAttention)

# %% [markdown]
# The single head has to divide its row between the two places, and a mean of two letters does not say which of them came from where.
# With two heads one finds the diagonal and the other the anti-diagonal. Which head does which is chance; nobody assigned it.
#
# ## The same numbers as PyTorch
#
# `nn.MultiheadAttention` is the module that most code meets. It computes what ours does, under other names. Its `in_proj_weight`
# (3 · d_model, d_model) stacks the three projections in the order q, k, v, `in_proj_bias` likewise, and `out_proj` is our `w_o`. If we
# copy its weights, every number has to agree.
#
# Two habits of it need care. It **averages** the weights over the heads unless `average_attn_weights=False` is passed. And its
# boolean mask is **the reverse of ours: True hides**. The same mask passed to both is a silent mistake.

# %% [markdown]
# @exercise copy_torch_weights
#
# `mine` a module with the attributes of `MultiHeadAttention` (it may hold more besides), `torch_mha` an
# `nn.MultiheadAttention(d_model, num_heads, batch_first=True)` → nothing; `mine` is changed in place
#
# ```text
# in_proj_weight, in_proj_bias   three blocks of d_model rows, for w_q, w_k, w_v
# out_proj.weight, out_proj.bias  w_o
# ```
#
# The parameters of `mine` stay the same objects, and no memory is shared: training one module must not change the other.

# %% role="exercise" exercise="copy_torch_weights"
def copy_torch_weights(mine: nn.Module, torch_mha: nn.MultiheadAttention) -> None:
    """Write the weights of torch's module into ours, in place, so that both give the same output."""
    # region solution
    layers = (mine.w_q, mine.w_k, mine.w_v, mine.w_o)
    weights = (*torch_mha.in_proj_weight.chunk(3), torch_mha.out_proj.weight)
    biases = (*torch_mha.in_proj_bias.chunk(3), torch_mha.out_proj.bias)
    with torch.no_grad():
        for layer, weight, bias in zip(layers, weights, biases):
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
    # endregion

# %% role="check" exercise="copy_torch_weights"
check(copy_torch_weights)

# %% [markdown]
# Now the comparison, with a causal mask. **Predict** how large the difference is when both get the *same* mask.

# %% role="payoff" exercise="copy_torch_weights"
if passed(copy_torch_weights) and passed(MultiHeadAttention):
    torch.manual_seed(9)
    theirs, ours = nn.MultiheadAttention(8, 2, batch_first=True), MultiHeadAttention(8, 2)
    x = torch.randn(2, 5, 8)
    copy_torch_weights(ours, theirs)
    allowed = torch.ones(5, 5, dtype=torch.bool).tril()
    output, weights = ours(x, x, x, allowed)
    for name, mask in (("their mask reversed", ~allowed), ("the same mask", allowed)):
        their_output, their_weights = theirs(x, x, x, attn_mask=mask, average_attn_weights=False)
        gap = (output - their_output).abs().max().item()
        print(f"{name}: outputs differ by {gap:.0e}")

# %% [markdown]
# With the mask reversed both agree to the last digits of float32. With the same mask torch's last query may see nothing, and its
# answer is NaN: a mistake that announces itself, for once. A padding mask passed the wrong way round gives NaN for full-length items
# only; the shorter ones attend to their padding, in silence.
#
# `F.scaled_dot_product_attention` has the convention of this course. It takes tensors that are split already and returns no weights:

# %% role="payoff" exercise="copy_torch_weights"
if passed(copy_torch_weights) and passed(MultiHeadAttention):
    q, k, v = (cut(layer(x), 2) for layer in (ours.w_q, ours.w_k, ours.w_v))
    fused = ours.w_o(join(F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)))
    gap = (output - fused).abs().max().item()
    print(f"the fused operator, the same mask: outputs differ by {gap:.0e}")

# %% [markdown]
# ## Break it on purpose: a merge without its transpose
#
# We return to the reshape that scrambles tokens. A model with it raises nothing and has the right shapes. **Predict:** does it learn the
# task from above? And if it does, what could give it away?

# %% role="payoff" exercise="MultiHeadAttention"
if passed(MultiHeadAttention):
    figures.lesson_09.scrambled(MultiHeadAttention)

# %% [markdown]
# It learns, to perfection. For sequences of one length the scrambling is always the same rearrangement, and all weights before and
# after it learn to live with it. Another length rearranges otherwise, and everything learned is in the wrong place. Training at one
# fixed length, as most language models do, hides this mistake until the first short prompt. A test finds it at once: replace one
# token and see which outputs move, or compare with weights from elsewhere.

# %% role="demo"
explain("MH2")

# %% [markdown]
# ## What heads cost
#
# Both products of attention need 2 · T² · d_head multiplications and additions a head, times num_heads heads: with d_head = d_model /
# num_heads the number of heads cancels. But each head has its own T × T weights, to be computed, exponentiated and kept. **Predict:**
# how much slower than one head are 64 heads of four numbers, at the same width?

# %% role="payoff" exercise="MultiHeadAttention"
if passed(MultiHeadAttention):
    figures.lesson_09.price(MultiHeadAttention)

# %% [markdown]
# The products stay, and everything that touches weights grows with the number of heads. Wide heads are cheaper, many heads look at
# more places; common models settle near d_head = 64 to 128.
#
# ## What we keep
#
# - A head is a slice of the vectors with a row of weights of its own; w_o mixes what heads found.
# - Split: name the axes in memory order, then move the heads forward. Merge: move the tokens back, then flatten.
# - Shapes prove nothing here. Numbers that say where they come from do.
# - Masks have two conventions. Ours, and that of the fused operator, is True where attention is allowed.
#
# ## Where this goes on
#
# Many trained heads can be removed without loss (Michel et al. 2019, section 3), and keys and values can be shared among heads so
# that less has to be kept while writing: one pair for all (Shazeer 2019, section 3), or one for each group (Ainslie et al. 2023,
# section 2.2). Lesson 10 goes back to the sentence for which attention was invented; lesson 11 puts these heads into a language
# model.
