# %% [markdown]
# # 06 · Masks
#
# **Who may look at whom, and how do we make sure that nobody peeks?**
#
# **Before this lesson:** attention in torch and as an `nn.Module` (lesson 05), softmax (lesson 02), broadcasting, boolean tensors.
#
# So far every query saw every key. In two situations it must not. A model that learns to predict the next word must
# not see that word. And in a batch of sentences of different lengths, the short ones are filled up with tokens that
# mean nothing, and no query should use those.
#
# A *mask* says which query may look at which key. It takes one line of code, and a mistake in it is hard to notice:
# no error is raised, and a model that can peek at the answer even reports a better loss. So in this lesson you also
# build a test that reveals such a leak.

# %% role="given"
import math

import torch
import torch.nn.functional as F
from torch import nn

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution


def plain_attention(q, k, v):
    """Scaled dot-product attention as written in lesson 05: (output, weights), no mask."""
    weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights

# %% [markdown]
# ## One pass, many questions
#
# A language model learns to say which token comes next. The sentence "The animal didn't cross the street" holds five such questions.
# What comes after *The*? What after *The animal*? And so on. We could ask them one by one, with five passes through the model.
#
# Attention can answer all of them in a single pass, since it computes an output for every position. The output at each position has
# to predict the token one place further on. So input and target are the same text, shifted by one.

# %% role="demo"
figures.masks.shifted("The animal didn't cross the street".split())

# %% [markdown]
# Look at what this asks for. The output at *animal* must predict *didn't*, and *didn't* is right there in the input,
# one place to the right. A model that may look there has nothing to learn, because it can copy. Its training loss
# looks wonderful, but when it has to write on its own, there is no token to the right to copy. This is why each query
# may see only its past and itself. Attention with such a mask is called **causal**.
#
# ## A leak, made visible
#
# Whether attention is causal can be tested without knowing a single weight. Change one token, and watch the outputs
# *before* it. If one of them moves, it has looked ahead. We change a token by adding random numbers to its features.
# Adding 1 to each would not do, because some models do not notice a change that is the same in all features; you will
# see one below.

# %% [markdown]
# @predict
#
# Five tokens go through attention without a mask. Token 3 is changed. Which outputs move?
#
# - **A** Output 3 only.
# - **B** Outputs 3 and 4.
# - **C** All five.
#
# @answer
#
# **C.** Every query sees key 3 and value 3, so every output depends on token 3. To be causal, outputs 0, 1 and 2 would have to stay
# exactly where they were.
#
# @wrong
#
# If you said A, you thought of a layer that treats each token by itself, such as `nn.Linear`. Mixing tokens is what attention is
# for. If you said B, you took it to be causal already: nothing in its equation makes it so.

# %% role="given"
def influence(attend, x):
    """How far output i moves when token j changes, as a matrix (i, j). attend: from tokens (T, d) to outputs (T, d)."""
    generator = torch.Generator().manual_seed(0)
    moved = torch.zeros(len(x), len(x))
    for j in range(len(x)):
        changed = x.clone()
        changed[j] += torch.randn(x.shape[-1], generator=generator)
        moved[:, j] = (attend(changed) - attend(x)).abs().amax(dim=-1)
    return moved

# %% role="demo"
torch.manual_seed(6)
x = torch.randn(5, 4)
without_mask = influence(lambda y: plain_attention(y, y, y)[0], x)
print("token 3 changes; the outputs move by", [round(by, 3) for by in without_mask[:, 3].tolist()])
assert (without_mask > 0).all()

# %% [markdown]
# ## True means may attend
#
# We write a mask as a boolean matrix with a row for each query and a column for each key, **True where attention is allowed**.
# For three tokens, each of which may see its past and itself:
#
# ```text
#          key 0  key 1  key 2
# query 0  True   False  False
# query 1  True   True   False
# query 2  True   True   True
# ```
#
# There need not be as many queries as keys. A model that writes has already processed the beginning and keeps its keys and values,
# which is called a *cache*. When new tokens arrive, only these ask, but they may look at everything before them. So the queries always
# belong to the *last* of the positions that the keys cover.

# %% [markdown]
# @predict
#
# A model has processed five tokens and kept their keys. Now two more arrive, so that two queries meet seven keys. How many keys may
# the first of the two queries see? And how many would it see if somebody built the mask as a triangle from the top left corner?
#
# @answer
#
# **Six**, the five kept keys and its own. From the top left corner it would see **one**: that triangle treats the first query as if
# it were the first token of the text.
#
# @wrong
#
# If you said seven, you counted the key of the second new token, which lies in the future. If you said five, you left out the
# query's own key: a token may see itself.

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
    figures.masks.masks(causal_mask(5), causal_mask(2, 7))

# %% [markdown]
# torch has a causal mask built in, `is_causal=True`, and it is the triangle from the top left. As long as there are as many queries as
# keys, the two are the same. With kept keys they are not. In the next cell the values are rows of the identity matrix, so that the
# output *is* the weights:

# %% role="payoff" exercise="causal_mask"
if passed(causal_mask):
    two, seven = torch.randn(2, 4), torch.randn(7, 4)
    built_in = F.scaled_dot_product_attention(two, seven, torch.eye(7), is_causal=True)
    yours = F.scaled_dot_product_attention(two, seven, torch.eye(7), causal_mask(2, 7))
    print("keys seen with is_causal:", (built_in > 0).sum(dim=-1).tolist())
    print("keys seen with your mask:", (yours > 0).sum(dim=-1).tolist())
    assert (built_in > 0).sum(dim=-1).tolist() == [1, 2] and (yours > 0).sum(dim=-1).tolist() == [6, 7]

# %% [markdown]
# No error is raised, yet a model that writes this way loses sight of most of what it has read (pytorch/pytorch#144858
# is one report of it).
#
# ## Padding
#
# Sentences of 2 and 3 tokens in one batch need the same width, say 4. The remaining places are filled with a token
# `<pad>` that means nothing, and no query may look there. This mask depends on the keys alone, so all queries of a
# sentence share one row of it. For B sentences its shape is (B, 1, max_len), and the axis of length 1 broadcasts over
# the queries.

# %% role="demo"
figures.masks.who_may_look(["The", "cat", "sat", "on", "<pad>", "<pad>"])

# %% [markdown]
# On the left is the causal mask, in which each query sees its past and itself. In the middle is the padding mask, the
# same row for every query, with 0 in the two `<pad>` columns. On the right a query may see a key only where *both*
# rules allow it, which is `causal & real` for boolean masks. That is one reason to keep masks boolean.

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
# Look at the last rows of each sentence. They belong to `<pad>` tokens, and these still see the real ones. That is fine. Their outputs
# mean nothing, and nobody reads them: a training loss leaves these positions out.
#
# ## Hiding a score
#
# Where does the mask act? Take one row of scores, (2, 1, 3), and hide the last key, the one with the largest score. People try four
# things. Two change the *weights*: multiply them by the mask, or do that and divide by the new sum. Two change the hidden *score*:
# fill it with 0, or fill it with −∞.

# %% [markdown]
# @predict
#
# Which two of the four give the same weights?
#
# - **A** The weights times the mask, and the score filled with 0.
# - **B** The weights times the mask divided by the new sum, and the score filled with −∞.
# - **C** The score filled with 0, and the score filled with −∞.
#
# @answer
#
# **B.** Softmax is exp(score) over a sum. Dividing by the sum of what is left cancels the old sum, and what remains is
# exp(score) over the sum of the visible ones. A score of −∞ gives exp(−∞) = 0, which is the same thing.
#
# @wrong
#
# If you said A or C, you took a score of 0 for "no attention". A score of 0 has the weight e⁰ = 1 before the division, more than any
# negative score.

# %% role="demo" tags=["nbval-check-output"]
scores, allowed = torch.tensor([2.0, 1.0, 3.0]), torch.tensor([True, True, False])
cut = torch.softmax(scores, -1) * allowed
filled_0 = torch.softmax(scores.masked_fill(~allowed, 0.0), -1)
filled_inf = torch.softmax(scores.masked_fill(~allowed, -torch.inf), -1)
rows = {
    "weights · mask   ": cut,
    "… / their sum    ": cut / cut.sum(),
    "score filled 0   ": filled_0,
    "score filled -inf": filled_inf,
}
for name, row in rows.items():
    print(name, row, f"  sum {row.sum():.3f}")
assert torch.allclose(cut / cut.sum(), filled_inf) and filled_0[2] > 0.05

# %% [markdown]
# The first row sums to only {{ cut.sum():.2f }}, so the output comes out too small. In the third row the hidden key
# still gets {{ filled_0[2]:.2f }} of the weight. The second and the fourth row agree here, and in exact arithmetic
# they always would. In floating point they may not. If the hidden score is far above the others, the visible weights
# are rounded to 0 before the division, and 0/0 gives NaN:

# %% role="demo" tags=["nbval-check-output"]
far = torch.tensor([2.0, 1.0, 200.0])
cut = torch.softmax(far, -1) * allowed
print("… / their sum    ", cut / cut.sum())
print("score filled -inf", torch.softmax(far.masked_fill(~allowed, -torch.inf), -1))

# %% [markdown]
# So we mask the scores, before softmax, and not the weights after it.
#
# ## Rows with nothing to see
#
# What if a row has no visible key left? This happens less often than one might think. A `<pad>` query at the end of a
# sentence still sees the sentence. But an empty sentence has no visible key at all. And when a batch is padded on the
# *left*, so that all sentences end at the last position, the `<pad>` queries at the front see nothing but `<pad>`
# under a causal mask, and their rows are empty:

# %% role="payoff" exercise="causal_mask"
if passed(causal_mask):
    real = torch.tensor([False, False, True, True])  # <pad> <pad> The cat
    print((causal_mask(4) & real).int())

# %% [markdown]
# @predict
#
# A row of three scores (2, 1, 0), all of them hidden, is filled with −1e9 and goes through softmax in float32. What are the weights?
#
# - **A** All 0.
# - **B** NaN.
# - **C** ⅓ each.
#
# @answer
#
# **C.** The three scores are equal now, and softmax of equal scores is uniform. The row attends evenly to everything that it must not
# see.
#
# @wrong
#
# If you said A, you took −1e9 for −∞ and left out the division: weights sum to 1 whatever the scores are. If you said B, you thought of
# −∞, where every exponential is 0 and softmax divides 0 by 0.

# %% role="demo" tags=["nbval-check-output"]
row, nothing = torch.tensor([2.0, 1.0, 0.0]), torch.tensor([False, False, False])
for name, fill in (("-inf", -torch.inf), ("-1e9", -1e9)):
    print(name, torch.softmax(row.masked_fill(~nothing, fill), -1))
try:
    row.half().masked_fill(~nothing, -1e9)
except RuntimeError as error:
    print("float16:", error)

# %% [markdown]
# Neither result is what anyone wants. *The Annotated Transformer* (Rush 2018) fills in −1e9, and so does much later
# code. In float16, where the largest number is 65504, −1e9 does not even exist (NVIDIA/apex#1052).
# `torch.finfo(dtype).min`, the lowest finite number of a type, exists for every floating-point type. But it gives the
# same uniform row.
#
# In such a row this course asks for zeros: a query that may see nothing receives nothing. What do torch's own
# operators do?

# %% role="demo"
torch.manual_seed(0)
x, none_allowed = torch.randn(1, 3, 4), torch.zeros(3, 3, dtype=torch.bool)
layer = nn.MultiheadAttention(4, 1, batch_first=True)
print("torch", torch.__version__)
print("F.scaled_dot_product_attention:", F.scaled_dot_product_attention(x, x, x, none_allowed)[0, 0].tolist())
print("nn.MultiheadAttention         :", layer(x, x, x, attn_mask=~none_allowed)[0][0, 0].tolist())

# %% [markdown]
# `F.scaled_dot_product_attention` has returned zeros since torch 2.5. Before that it returned NaN
# (pytorch/pytorch#103749, changed by #133882), and `nn.MultiheadAttention` still did so in torch 2.13, the version
# with which this notebook was written.

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
# No NaN, not in the gradients either (the last experiment shows why). float16, bfloat16 and float32, the output in the input's dtype;
# scores may reach ±1e4. From scratch: without `F.scaled_dot_product_attention` and the like; `torch.softmax` is fine.

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
# Back to the leak. The same test as before, on six words with random vectors, once without a mask and once with yours. A cell says 0
# only where the output did not move at all.

# %% role="payoff" exercise="masked_attention"
if passed(masked_attention) and passed(causal_mask):
    torch.manual_seed(6)
    x = torch.randn(6, 4)
    open_matrix = influence(lambda y: plain_attention(y, y, y)[0], x)
    causal_matrix = influence(lambda y: masked_attention(y, y, y, causal_mask(6))[0], x)
    figures.masks.leaks(open_matrix, causal_matrix)
    assert (open_matrix > 0).all() and (causal_matrix.triu(1) == 0).all() and (causal_matrix.tril() > 0).sum() == 21

# %% [markdown]
# Below the diagonal of the right picture, information flows forward in time. Above it every entry is exactly 0. The
# same few lines can test other models, however large, provided that dropout is off. It is worth running such a test
# once on every model that you build.
#
# And why random numbers? Many models begin with a LayerNorm, as the block of lesson 09 does: it subtracts from each token
# the mean of the token's own features. If we add 1 to all of them, the mean grows by 1, too, and is subtracted again.
# So the test would find no leak, even without any mask:

# %% role="demo"
def normalized_first(y):
    y = F.layer_norm(y, y.shape[-1:])
    return plain_attention(y, y, y)[0]  # no mask: every output sees every token

torch.manual_seed(6)
x = torch.randn(5, 4)
plus_one = x + torch.eye(5)[:, [3]]  # 1 in every feature of token 3
blind = (normalized_first(plus_one) - normalized_first(x)).abs().max()
moved = influence(normalized_first, x)
print(f"1 added to each feature of token 3: no output moves by more than {blind:.0e}, which is rounding")
print(f"random numbers added to token 3: every output moves, by {moved[:, 3].min():.2f} or more")
assert blind < 1e-5 and (moved > 1e-3).all()

# %% [markdown]
# @exercise leaks
#
# `attention`, a function from tokens (T, d) to outputs (T, d_out), and `x` (T, d), an example of its input → True or False: does
# any output depend on a later token?
#
# - x is float64, with 2 to 64 tokens. Differences up to 1e-9 are rounding, and no leak.
# - You may call `attention` 2,000 times. It gives the same answer each time. Leave x and its results as they are.
# - A leak may hide: it may come from a few tokens alone, reach a few outputs alone, be small, or show only for large changes
#   (try some whose largest entry is near 10) or in some directions.
#
# The attentions that the check tries are not those of this lesson.

# %% role="exercise" exercise="leaks"
def leaks(attention, x: torch.Tensor) -> bool:
    """Whether any output of attention depends on a later token.

    attention: from tokens (T, d) to outputs (T, d_out), float64. x: (T, d), an example.
    """
    # region solution
    generator = torch.Generator().manual_seed(0)
    base = attention(x)
    for t in range(1, len(x)):
        for size in (2.0, 10.0):
            change = torch.randn(x.shape[-1], dtype=x.dtype, generator=generator)
            changed = x.clone()
            changed[t] += size * change / change.abs().max()
            if (attention(changed)[:t] - base[:t]).abs().max() > 1e-7:
                return True
    return False
    # endregion

# %% role="check" exercise="leaks"
check(leaks)

# %% role="payoff" exercise="leaks" tags=["nbval-check-output"]
if passed(leaks) and passed(masked_attention) and passed(causal_mask):
    torch.manual_seed(6)
    x = torch.randn(6, 4, dtype=torch.float64)
    print("no mask:", leaks(lambda y: plain_attention(y, y, y)[0], x))
    print("yours:  ", leaks(lambda y: masked_attention(y, y, y, causal_mask(len(y)))[0], x))

# %% [markdown]
# ### What a leak does to a loss
#
# Now we train a tiny model to predict the next of eight symbols in *random* text. Nobody can predict that: the best
# possible loss is that of an even guess, ln 8 = 2.08. Each token also gets a learned vector for its position (the
# subject of lesson 08), so that a query can tell which key is on its right.

# %% role="demo"
def predict_random_text(attend, steps=300):
    """Train on random text; the loss in the end. attend: from q, k, v (32, 16, 32) to outputs of the same shape."""
    torch.manual_seed(0)
    embed, place, qkv, out = nn.Embedding(8, 32), nn.Embedding(16, 32), nn.Linear(32, 96), nn.Linear(32, 8)
    optimizer = torch.optim.Adam(nn.ModuleList([embed, place, qkv, out]).parameters(), lr=0.01)
    for _ in range(steps):
        ids = torch.randint(0, 8, (32, 17))
        inputs, targets = ids[:, :-1], ids[:, 1:]
        q, k, v = qkv(embed(inputs) + place.weight).chunk(3, dim=-1)
        loss = F.cross_entropy(out(attend(q, k, v)).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()

# %% role="payoff" exercise="masked_attention"
if passed(masked_attention) and passed(causal_mask):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # on tensors this small, several threads mostly wait for one another
    causal_loss = predict_random_text(lambda q, k, v: masked_attention(q, k, v, causal_mask(16))[0])
    leaky_loss = predict_random_text(lambda q, k, v: masked_attention(q, k, v)[0])
    torch.set_num_threads(threads)
    print(f"loss with your causal mask: {causal_loss:.3f}   without a mask: {leaky_loss:.3f}")
    assert abs(causal_loss - math.log(8)) < 0.02 and leaky_loss < 0.3

# %% [markdown]
# With the mask the loss is {{ causal_loss:.2f }}, that of an even guess, as it has to be. Without the mask the model
# "predicts" random symbols with a loss of {{ leaky_loss:.2f }}. Nearly all of that comes from the last position,
# whose target is not among the inputs: one position of 16 at 2.08 adds 2.08 / 16 = 0.13 to the mean. If a loss is too
# good to be true, look for a leak.

# %% [markdown]
# ## Three languages for one mask
#
# Libraries disagree on what a mask means. In this course and in `F.scaled_dot_product_attention`, True means *may
# attend*. In `nn.MultiheadAttention` True means *may not*, both in `attn_mask` and in `key_padding_mask`. Both
# functions also accept a mask of numbers that are added to the scores: 0 where attention is allowed, −∞ where it is
# not. Each translation takes one line:

# %% role="payoff" exercise="masked_attention"
if passed(masked_attention):
    torch.manual_seed(0)
    x, allowed = torch.randn(1, 4, 6), torch.ones(4, 4, dtype=torch.bool).tril()
    layer = nn.MultiheadAttention(6, 1, batch_first=True, bias=False)
    with torch.no_grad():  # projections that change nothing, so that only the mask is compared
        layer.in_proj_weight.copy_(torch.eye(6).repeat(3, 1))
        layer.out_proj.weight.copy_(torch.eye(6))
        yours = masked_attention(x, x, x, allowed)[0]
        same = {
            "F.sdpa, True = may attend": F.scaled_dot_product_attention(x, x, x, allowed),
            "F.sdpa, 0 and -inf added ": F.scaled_dot_product_attention(x, x, x, torch.where(allowed, 0.0, -torch.inf)),
            "nn.MHA, True = may not   ": layer(x, x, x, attn_mask=~allowed)[0],
        }
    for name, output in same.items():
        print(f"{name}  differs from yours by {(output - yours).abs().max():.0e}")
        assert torch.allclose(output, yours, atol=1e-5)

# %% [markdown]
# What happens if the `~` is forgotten? Try it in the cell above, which then stops at its own assertion. The layer
# sees the future instead of the past, and the last token, which has no future, sees nothing:

# %% role="payoff" exercise="masked_attention"
if passed(masked_attention):
    forgotten = layer(x, x, x, attn_mask=allowed)[0]
    print("without ~, the last output is", forgotten[0, -1].tolist())
    assert forgotten[0, -1].isnan().all() and forgotten[0, :-1].isfinite().all()

# %% [markdown]
# ## A mask inside a module
#
# A module that always uses the same mask can build it once. The mask is not learned, so it is no parameter. But it has to follow the
# module to a GPU, so it cannot be a plain attribute. torch calls this third kind of tensor a **buffer**. The difference shows without
# any GPU, on the *meta* device, where tensors have shapes and no numbers:

# %% role="demo" tags=["nbval-check-output"]
class Forgetful(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = torch.ones(3, 3).tril().bool()
        self.register_buffer("kept", torch.ones(3, 3).tril().bool(), persistent=False)

module = Forgetful().to("meta")
print("attribute:", module.mask.device, "  buffer:", module.kept.device, "  saved:", list(module.state_dict()))

# %% [markdown]
# The attribute stayed behind on the CPU. `persistent=False` keeps the buffer out of what is saved: it follows from `max_len` and need
# not be stored.

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
# Your module now reads a sentence from left to right. Which words does each output depend on? The gradient tells us:
# it is 0 where an output does not depend on a word at all.

# %% role="payoff" exercise="CausalSelfAttention"
if passed(CausalSelfAttention):
    torch.manual_seed(11)
    module, x = CausalSelfAttention(8, 10), torch.randn(1, 6, 8, requires_grad=True)
    output, reach = module(x), torch.zeros(6, 6)
    for i in range(6):
        (grad,) = torch.autograd.grad(output[0, i].sum(), x, retain_graph=True)
        reach[i] = grad[0].norm(dim=-1) / grad[0].norm(dim=-1).sum()
    figures.masks.reach(reach)
    assert (reach.triu(1) == 0).all() and reach[0, 0] == 1

# %% [markdown]
# The weights are random, so the picture shows who *may* be looked at, and not yet who *should* be. Lesson 10 trains a model with this
# mask inside.
#
# ## Break it on purpose: a NaN that hides
#
# A quick repair is popular. Let softmax divide 0 by 0 in an empty row, and turn the NaN into 0 with `nan_to_num`. The output is right.
# Is the training? We give a small attention layer a left-padded item, hide scores in both ways that are in use, and
# train six steps with each.

# %% [markdown]
# @predict
#
# Only the first row of four is empty, and `nan_to_num` repairs its weights. One layer *adds* a mask of 0 and −∞ to its
# scores, the other *fills* the hidden scores with −∞ by `masked_fill`. Which of them trains?
#
# - **A** Both: the weights are repaired before anything uses them.
# - **B** Neither: the backward pass meets the NaN in both.
# - **C** Only the one that fills.
#
# @answer
#
# **C.** In both, the backward pass of softmax multiplies by the NaN that it computed, so the gradient of the empty
# row's scores is NaN. An addition hands this gradient on to the scores, and from there it reaches every number in w_q
# and w_k. `masked_fill` does not hand it on: a score that was replaced had no influence, so its gradient is 0.
#
# @wrong
#
# If you said A, you thought of the forward pass alone: `nan_to_num` repairs the value, and the gradient still has to
# pass through the softmax that made the NaN. If you said B, you were right about softmax, and one step short.

# %% role="demo"
hidden = torch.ones(4, 4).triu(1).bool()
hidden[:, 0] = True  # token 0 is <pad>, so row 0 is empty
HIDE = {
    "added": lambda scores: scores + torch.zeros(4, 4).masked_fill(hidden, -torch.inf),
    "filled": lambda scores: scores.masked_fill(hidden, -torch.inf),
}

def six_steps(hide, seed=0):
    """The loss before each step, and how many numbers of w_q are NaN at the end."""
    torch.manual_seed(seed)
    x, target = torch.randn(4, 8), torch.randn(4, 8)
    w_q, w_k, w_v = (nn.Linear(8, 8, bias=False) for _ in range(3))
    optimizer = torch.optim.SGD([*w_q.parameters(), *w_k.parameters(), *w_v.parameters()], lr=0.1)
    losses = []
    for _ in range(6):
        weights = torch.softmax(hide(w_q(x) @ w_k(x).mT / math.sqrt(8)), dim=-1).nan_to_num(0.0)
        loss = ((weights @ w_v(x) - target) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, w_q.weight.isnan().sum().item()

# %% role="demo"
for name, hide in HIDE.items():
    losses, nans = six_steps(hide)
    print(f"{name:6}", " ".join(f"{loss:.3f}" for loss in losses), f"  NaN in w_q: {nans} of 64")
for losses, nans in (six_steps(HIDE["added"], seed) for seed in range(5)):
    assert nans == 64 and losses[1] == losses[-1]  # from the second step on nothing changes
for losses, nans in (six_steps(HIDE["filled"], seed) for seed in range(5)):
    assert nans == 0 and losses[-1] < losses[0]

# %% [markdown]
# The added mask ruins the layer at the first step, with each of five seeds. Every row of scores is NaN from then on,
# `nan_to_num` turns *all* attention into 0, and the loss is finite and constant, so nothing reports an error. The
# filled mask trains. This is why the exercise asks for finite gradients, and not for a certain spelling. A finite fill
# (then zeros for the weights of hidden keys) is safe in both: no NaN ever arises.
#
# ## Where this leads
#
# Where a mask hides most scores, the work of computing them is wasted. Sliding windows (Beltagy et al. 2020, section
# 3.1) keep only a band along the diagonal. FlexAttention compiles a mask that is written as a function; lesson 11
# tries it. A mask says *who* may be looked at, but a score still does not know *where* a key is: it depends on the
# two tokens and not on their places. Lesson 08 changes that.
#
# ## What we keep
#
# - True means *may attend*. The queries are the last t_q of t_k positions: query i sees key j where j ≤ i + (t_k −
#   t_q).
# - The mask acts on the scores, before softmax. Weights that are cut afterward no longer sum to 1, and a score of 0
#   hides nothing.
# - A query that sees nothing gets zeros. −∞ would give NaN there, −1e9 a uniform row.
# - To test a model for leaks, change each token in turn, by random numbers of several sizes, and check that no earlier output
#   moves.
# - Where −∞ is *added*, replacing NaN in the output does not repair the gradient. Fill, best with a finite number, so
#   that no NaN arises.
#
# | built | shape |
# |---|---|
# | `causal_mask` | (t_q, t_k) bool |
# | `padding_mask` | (B, 1, max_len) bool |
# | `masked_attention` | q (…, T_q, d_k), k (…, T_k, d_k), v (…, T_k, d_v) → (…, T_q, d_v), (…, T_q, T_k) |
# | `CausalSelfAttention` | (B, T, d_model) → (B, T, d_model) |
#
# **Sources.** Vaswani et al. 2017, *Attention is all you need*, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762),
# section 3.2.3. Rush 2018, [*The Annotated Transformer*](https://nlp.seas.harvard.edu/2018/04/03/attention.html).
# Beltagy et al. 2020, *Longformer*, [arXiv:2004.05150](https://arxiv.org/abs/2004.05150).

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners can say why a language model must be causal, write the two masks that every model uses, and *test* attention for a leak
# instead of believing it. Numerically, they learn to keep NaN out of the backward pass. The polarity of masks costs people more hours
# than anything else here, so it is worth saying "True means may attend" aloud several times.
#
# ## Cut for 60 minutes
#
# Keep the shifted text, the leak test, `causal_mask`, "Hiding a score" and `masked_attention`. Leave out padding and rows with nothing
# to see (say in a sentence that empty rows must give zeros), the three languages, the module, and the NaN that hides.
#
# ## Cut for 90 minutes
#
# Add padding with `padding_mask`, rows with nothing to see, and the NaN that hides. `CausalSelfAttention` is good homework: it joins
# lessons 05 and 06.
#
# ## Mistakes to expect
#
# - causal_mask MA1: Which of your rows belongs to the first token, and what does it see?
# - causal_mask MK7: May a token see itself? What would the first token see otherwise?
# - causal_mask MK14: Two new tokens after five: at which position does your first query stand?
# - padding_mask MA5: Along which axis should this mask be the same for everyone?
# - padding_mask MK1: Does your mask say who may be seen, or who may not?
# - masked_attention MK2: What does a row of your weights sum to when a key is hidden?
# - masked_attention MK3: What is e to the power of 0?
# - masked_attention MK9: What does softmax make of a row in which nothing is left?
# - leaks LK4: What does a LayerNorm make of a token to which 1 was added everywhere?
# - leaks LK8: May output 3 move when token 3 changes?
# - CausalSelfAttention DT3: Your mask is an attribute. Who tells it that the module has moved?
# - CausalSelfAttention MA15: The sentence has 3 tokens and the mask is 10 by 10. Which part of it do you need?
#
# ## To discuss
#
# 1. *A colleague's model reaches a training loss near 0 in an hour. What do you ask first?* A good answer suspects a leak, names the
#    shift by one and the mask, and describes the test: change a late token, look at early outputs.
# 2. *Should a library raise an error where a query sees no key?* A good answer weighs both: an error finds mistakes early, but empty
#    rows are normal in left-padded batches, and a check on every call costs a synchronization on a GPU. Zeros are quiet. NaN is loud,
#    but late.
#
# ## On paper
#
# Three keys with scores (0, 0, 0) and values 3, 6, 30. The third is hidden. Compute the output if (a) the weights are multiplied by
# the mask, (b) the hidden score is filled with 0, (c) with −∞.
#
# *Solution.* (a) ⅓ · 3 + ⅓ · 6 = 3: the weights sum to ⅔ only. (b) Nothing changes, since the score was 0 already:
# ⅓ · (3 + 6 + 30) = 13. (c) ½ · 3 + ½ · 6 = 4.5. This is also why (b) is a poor test when the hidden score is 0 to begin with.
