# %% [markdown]
# # 6 · Masks
#
# **Who may look at whom, and how do we make sure that nobody peeks?**
#
# So far every query saw every key. A model that writes text must not see the words it is about to write, and a batch of
# sentences of different lengths is filled up with tokens that mean nothing. A *mask* says which pairs may meet. It is one line of
# code and the source of more silent mistakes than anything else in attention, so we make them visible.

# %% role="given"
import math

import torch
from torch import nn

from grader import check, explain, figures, hint, passed, progress, solution


def plain_attention(q, k, v):
    """Scaled dot-product attention as written in lesson 05: (output, weights), no mask."""
    weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights

# %% [markdown]
# Three rules for one sentence, "The cat sat on" and two fill-ups. A dark cell means that this query may look at this key.

# %% role="demo"
figures.lesson_06.who_may_look()

# %% [markdown]
# ## A leak, made visible
#
# A published chapter prints attention weights for "The cat sat" and calls them causal. Whether they are can be tested without
# knowing any weight: change a later token and watch the earlier outputs. If one of them moves, it has looked ahead.
#
# **Predict:** in attention without a mask we change token 3 of five. Which outputs move?

# %% role="demo" tags=["nbval-check-output"]
torch.manual_seed(6)
x = torch.randn(5, 4)
changed = x.clone()
changed[3] += 1.0
moved = (plain_attention(x, x, x)[0] - plain_attention(changed, changed, changed)[0]).abs().amax(dim=-1)
for position, by in enumerate(moved):
    print(f"output {position} moves by {by:.3f}")

# %% [markdown]
# All of them. To be causal, outputs 0, 1 and 2 have to stay exactly where they were.
#
# ## True means may attend
#
# We write a mask as a boolean matrix with a row for each query and a column for each key, **True where attention is allowed**.
# For a sequence of three tokens, with its past and itself allowed:
#
# ```text
#          key 0  key 1  key 2
# query 0  True   False  False
# query 1  True   True   False
# query 2  True   True   True
# ```
#
# **Predict:** a model has already processed five tokens and kept their keys; now two more queries arrive, the last two of seven
# positions. How many keys may the first of them see? With how many would a mask "from the top left" leave it?

# %% [markdown]
# @exercise causal_mask
#
# `t_q` and `t_k` integers with t_k ≥ t_q ≥ 1 → bool tensor (t_q, t_k); `t_k` left out means t_q
#
# ```text
# query i may see key j where  j ≤ i + (t_k − t_q)
# ```
#
# The queries are the *last* t_q of t_k positions (Vaswani et al. 2017, section 3.2.3, for t_q = t_k; the offset serves
# models that keep earlier keys).

# %% role="exercise" exercise="causal_mask"
def causal_mask(t_q: int, t_k: int | None = None) -> torch.Tensor:
    """Which keys each query may attend to; True means may attend.

    t_k: number of keys, t_q where it is left out. The queries are the last t_q of the t_k positions.
    Returns: (t_q, t_k) bool.
    """
    # region solution
    t_k = t_q if t_k is None else t_k
    return torch.ones(t_q, t_k, dtype=torch.bool).tril(diagonal=t_k - t_q)
    # endregion

# %% role="check" exercise="causal_mask"
check(causal_mask)

# %% role="payoff" exercise="causal_mask"
if passed(causal_mask):
    figures.lesson_06.masks(causal_mask)

# %% [markdown]
# ## Padding
#
# Sentences of 2 and 3 tokens in one batch need the same width, say 4; the rest is filled with a token that means nothing. No
# query may look there. This mask depends on the keys alone, so all queries of an item share one row: its shape is
# (B, 1, max_len), and the axis of length 1 lets it broadcast over the queries.

# %% [markdown]
# @exercise padding_mask
#
# `lengths` (B,) integers with 0 ≤ length ≤ max_len, `max_len` an integer → bool (B, 1, max_len), True on real tokens
#
# ```text
# mask[b, 0, j] is True where  j < lengths[b]
# ```

# %% role="exercise" exercise="padding_mask"
def padding_mask(lengths: torch.Tensor, max_len: int) -> torch.Tensor:
    """Which positions hold real tokens; True means may attend.

    lengths: (B,) integers. Returns: (B, 1, max_len) bool, ready to broadcast over the queries.
    """
    # region solution
    positions = torch.arange(max_len, device=lengths.device)
    real = positions < lengths[:, None]
    return real[:, None, :]
    # endregion

# %% role="check" exercise="padding_mask"
check(padding_mask)

# %% role="payoff" exercise="padding_mask"
if passed(padding_mask) and passed(causal_mask):
    print("causal and padded, for lengths 2 and 3 of 4:")
    print((causal_mask(4) & padding_mask(torch.tensor([2, 3]), 4)).int())

# %% [markdown]
# Two masks are combined by `&`: a pair may meet where both allow it. That is one reason to keep masks boolean.
#
# ## Hiding a score
#
# Where does the mask act? **Predict** what each of three candidates does to the row of scores (2, 1, 0) whose last key is
# hidden: multiply the *weights* by the mask, fill the hidden *score* with 0, fill it with −∞.

# %% role="demo" tags=["nbval-check-output"]
scores, allowed = torch.tensor([2.0, 1.0, 0.0]), torch.tensor([True, True, False])
after = torch.softmax(scores, -1) * allowed
print("weights * mask  ", after, "sum", after.sum())
print("score filled 0  ", torch.softmax(scores.masked_fill(~allowed, 0.0), -1))
print("score filled -∞ ", torch.softmax(scores.masked_fill(~allowed, -torch.inf), -1))

# %% [markdown]
# The first no longer sums to 1. The second leaves the hidden key a weight of e⁰, here the very one it had. Only the third does what
# we want. Until a row has nothing left to see:

# %% role="demo" tags=["nbval-check-output"]
row, nothing = torch.tensor([2.0, 1.0, 0.0]), torch.tensor([False, False, False])
for name, fill in (("-∞  ", -torch.inf), ("-1e9", -1e9)):
    print(name, torch.softmax(row.masked_fill(~nothing, fill), -1))
try:
    row.half().masked_fill(~nothing, -1e9)
except RuntimeError as error:
    print("float16:", error)

# %% [markdown]
# Padding makes such rows: an empty sequence, or a query that is padding itself. With −∞ softmax divides 0 by 0. With −1e9,
# as many published walk-throughs write it, the row becomes *uniform*: it attends to everything it must not see. And in float16, which
# ends at ±65504, the number −1e9 does not exist. We ask for zeros: who may see nothing receives nothing, which is also what
# `F.scaled_dot_product_attention` returns.
#
# The lowest finite number of each dtype, `torch.finfo(dtype).min`, works in all of them.

# %% [markdown]
# @exercise masked_attention
#
# `q` (..., T_q, d_k), `k` (..., T_k, d_k), `v` (..., T_k, d_v), `mask` bool, broadcastable to (..., T_q, T_k), or None
# → `(output (..., T_q, d_v), weights (..., T_q, T_k))`
#
# ```text
# for each query: softmax over the scores of the keys that it may see; hidden keys get weight 0
# a query that may see no key gets zeros in both
# ```
#
# No NaN, not in the gradients either. float16, bfloat16 and float32, the output in the input's dtype; scores may reach ±1e4. From
# scratch: without `F.scaled_dot_product_attention` and the like; `torch.softmax` is fine.

# %% role="exercise" exercise="masked_attention"
def masked_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scaled dot-product attention that looks only where the mask is True.

    q: (..., T_q, d_k). k: (..., T_k, d_k). v: (..., T_k, d_v).
    mask: bool, broadcastable to (..., T_q, T_k); None allows all.
    Returns: (output (..., T_q, d_v), weights (..., T_q, T_k)); zeros for a query that may see no key.
    """
    # region solution
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        lowest = torch.finfo(scores.dtype).min  # finite, so that an empty row gives no 0/0, not even in the gradient
        scores = scores.masked_fill(~mask, lowest)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)  # an empty row was uniform until here
    return weights @ v, weights
    # endregion

# %% role="check" exercise="masked_attention"
check(masked_attention)

# %% [markdown]
# Back to the leak. The same experiment, every token changed in turn, with our own mask:

# %% role="payoff" exercise="masked_attention"
if passed(masked_attention) and passed(causal_mask):
    figures.lesson_06.leaks(plain_attention, masked_attention, causal_mask)

# %% [markdown]
# Below the diagonal of the right picture lies information that flows forward in time; above it there is nothing.
#
# ## Three languages for one mask
#
# Libraries disagree on what a mask is. Ours and `F.scaled_dot_product_attention` say True for *may attend*;
# `nn.MultiheadAttention` says True for *may not*; and both accept numbers that are added to the scores, 0 and −∞. Translating is
# one line each. **Predict** which line of the next cell prints a difference if we forget the `~`.

# %% role="payoff" exercise="masked_attention"
if passed(masked_attention):
    figures.lesson_06.translations(masked_attention)

# %% [markdown]
# ## A mask inside a module
#
# A module that always uses the same mask can build it once. It is not learnt, so it is no parameter; it has to follow the module
# to a GPU, so it cannot be a plain attribute. torch calls this third kind of tensor a **buffer**. We see the difference without any
# GPU, on the *meta* device, where tensors have shapes and no numbers:

# %% role="demo" tags=["nbval-check-output"]
class Forgetful(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = torch.ones(3, 3).tril().bool()
        self.register_buffer("kept", torch.ones(3, 3).tril().bool(), persistent=False)

module = Forgetful().to("meta")
print("attribute:", module.mask.device, "  buffer:", module.kept.device, "  saved:", list(module.state_dict()))

# %% [markdown]
# @exercise CausalSelfAttention
#
# `CausalSelfAttention(d_model, max_len)`: bias-free `nn.Linear` layers `w_q`, `w_k`, `w_v` (d_model → d_model)
# forward: `x` (B, T, d_model) → (B, T, d_model); T > max_len raises ValueError
#
# ```text
# q, k, v = w_q(x), w_k(x), w_v(x)
# causal attention among the T tokens, with a mask that was built once for max_len
# ```
#
# The mask is a non-persistent buffer: it follows `.to(device)` and is absent from `state_dict`. The given `plain_attention`
# shows the unmasked form; from scratch, as before.

# %% role="exercise" exercise="CausalSelfAttention"
class CausalSelfAttention(nn.Module):
    """Self-attention in which no token sees a later one.

    d_model: width of tokens, queries, keys and values. max_len: the longest sequence that is accepted.
    """

    def __init__(self, d_model: int, max_len: int) -> None:
        # region solution
        super().__init__()
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w_v = nn.Linear(d_model, d_model, bias=False)
        self.max_len = max_len
        hidden = torch.ones(max_len, max_len, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("hidden", hidden, persistent=False)  # follows from max_len: nothing to save
        # endregion

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (B, T, d_model). Returns: (B, T, d_model). Raises ValueError for T > max_len."""
        # region solution
        t, d_model = x.shape[-2:]
        if t > self.max_len:
            raise ValueError(f"T = {t} is longer than max_len = {self.max_len}")
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        scores = q @ k.mT / math.sqrt(d_model)
        scores = scores.masked_fill(self.hidden[:t, :t], -torch.inf)
        weights = torch.softmax(scores, dim=-1)  # no row is empty
        return weights @ v
        # endregion

# %% role="check" exercise="CausalSelfAttention"
check(CausalSelfAttention)

# %% [markdown]
# Our module now reads a sentence from left to right. Its weights are random, so the picture shows who *may* be looked at and not
# yet who *should* be: lesson 11 trains it.

# %% role="payoff" exercise="CausalSelfAttention"
if passed(CausalSelfAttention):
    figures.lesson_06.first_words(CausalSelfAttention)

# %% [markdown]
# ## Break it on purpose: a NaN that hides
#
# `nan_to_num` mends the output of an empty row. **Predict:** is the gradient mended too, if the mask was *added* as −∞?

# %% role="demo" tags=["nbval-check-output"]
q = torch.ones(1, 2, requires_grad=True)
scores = q @ torch.ones(3, 2).mT + torch.full((1, 3), -torch.inf)
output = torch.softmax(scores, dim=-1).nan_to_num(0.0) @ torch.ones(3, 1)
output.sum().backward()
print("output", output.detach(), " gradient", q.grad)

# %% [markdown]
# The output looks right and the first optimiser step destroys the model. Such a NaN shows up a thousand steps later, in another
# place. It is why the exercise asks for gradients, and why we fill with a finite number.
#
# ## Where this goes on
#
# Masks that are mostly empty need not be computed: sliding windows (Beltagy et al. 2020, section 3.1) keep a band beside the
# diagonal, and FlexAttention compiles a mask written as a function, which lesson 13 tries. A mask says *who*, not *where*: without it
# attention has no idea of order at all. Lesson 07 gives it one.
