# %% [markdown]
# # 3 · Scaled dot-product attention, for a whole batch
#
# **How does one expression compute attention for every sentence of a batch at once?**
#
# In lesson 01 one sentence of three tokens went through attention line by line. A model reads many sentences at a
# time, and later each of them through many heads. We write attention once more, so that all of it happens without a
# loop, and we meet the ways in which that goes wrong without an error message:
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V$$
#
# (Vaswani et al. 2017, equation 1). Three exercises; `hint(project_qkv)` and its like help wherever we are stuck.

# %% role="given"
import math
import timeit

import numpy as np

from grader import check, explain, figures, hint, passed, progress, solution

# %% [markdown]
# What we are after: a batch of three sentences goes in, above, and the weights of all three come out of one line, below. No
# sentence sees another.

# %% role="demo"
figures.lesson_03.batch()

# %% [markdown]
# ## A sentence is an array
#
# "The quick brown fox jumps" has five tokens. A trained model has learnt a vector for each; we have no trained model
# here, so we draw eight random numbers a token. The code that follows does not care where they come from. A batch
# axis stands in front even for one sentence: shape (B, T, d_model).
#
# **Predict** the shape of `x`, and of `x[0, 3]`, the vector of "fox".

# %% role="given"
words = ["The", "quick", "brown", "fox", "jumps"]
rng = np.random.default_rng(3)
x = rng.normal(size=(1, len(words), 8))

# %% role="demo" tags=["nbval-check-output"]
print("x      ", x.shape)
print("x[0, 3]", x[0, 3].shape, x[0, 3].round(1))

# %% [markdown]
# ## Three roles for each token
#
# In the table of lesson 01, Q, K and V fell from the sky. In **self-attention** all three are made from the same x,
# each by a weight matrix of its own: what a token looks for (query), what it can be found by (key), what it passes
# on (value). Vaswani et al. (2017, section 3.2.2) call these matrices the *projections*.
#
# Queries and keys are compared, so both have length d_k. Values are only averaged: d_v may differ. We choose sizes
# that all differ, 8, 4 and 6, so that a wrong axis cannot hide.

# %% role="given"
w_q = rng.normal(size=(8, 4)) / math.sqrt(8)  # (d_model, d_k); the division keeps the numbers of q near 1
w_k = rng.normal(size=(8, 4)) / math.sqrt(8)  # (d_model, d_k)
w_v = rng.normal(size=(8, 6)) / math.sqrt(8)  # (d_model, d_v)

# %% [markdown]
# One token first. Its query is a vector times a matrix, (8,) @ (8, 4).
#
# **Predict:** what shape would `x @ w_q` have, (1, 5, 8) @ (8, 4)? For arrays of more than two dimensions `@` works
# on a *stack* of matrices that live in the last two axes (NumPy reference, `numpy.matmul`).

# %% role="demo" tags=["nbval-check-output"]
fox_query = x[0, 3] @ w_q
print("one token:", x[0, 3].shape, "@", w_q.shape, "->", fox_query.shape)

# %% [markdown]
# @exercise project_qkv
#
# `x` (..., T, d_model), `w_q` and `w_k` (d_model, d_k), `w_v` (d_model, d_v) → `(q, k, v)` of shapes (..., T, d_k),
# (..., T, d_k) and (..., T, d_v)
#
# The three dots stand for any number of leading dimensions: none for one sentence, one for a batch, two or more. For a
# batch, the slow loop says what is meant:
#
# ```python
# for b in range(B):
#     for t in range(T):
#         q[b, t] = x[b, t] @ w_q  # and likewise k with w_k, v with w_v
# ```

# %% role="exercise" exercise="project_qkv"
def project_qkv(
    x: np.ndarray, w_q: np.ndarray, w_k: np.ndarray, w_v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Project each token to its query, key and value.

    x: (..., T, d_model). w_q, w_k: (d_model, d_k). w_v: (d_model, d_v).
    Returns: q (..., T, d_k), k (..., T, d_k), v (..., T, d_v).
    """
    # region solution
    q = x @ w_q
    k = x @ w_k
    v = x @ w_v
    return q, k, v
    # endregion

# %% role="check" exercise="project_qkv"
check(project_qkv)

# %% [markdown]
# Does one token's query know of the other tokens? We give "brown" another vector, project again, and look at what
# changed in q. **Predict** how many rows differ. Keep the answer in mind: the same experiment returns after attention.

# %% role="payoff" exercise="project_qkv"
if passed(project_qkv):
    other_x = x.copy()
    other_x[0, 2] = -x[0, 2]  # another vector for "brown"
    q_before, q_after = (project_qkv(sentence, w_q, w_k, w_v)[0] for sentence in (x, other_x))
    figures.lesson_03.changes({"q after − before: one row changes": (q_before[0], q_after[0])}, words, token=2)

# %% [markdown]
# @exercise previous_token_projections
#
# `t` at least 2, `share` between 0 and 0.99 → `(w_q, w_k)`, both of shape (t, d_k), with a d_k of your choice
#
# The tokens are the rows of the identity matrix (t, t), so that each token is told from all others by the place of its 1.
# The attention weights are softmax(x w_q (x w_k)ᵀ / √d_k), row by row. In row i at least `share` of the weight is to lie on
# column i − 1, the token before. Row 0 has no token before it: it is to have at least `share` on column 0, itself.
#
# Any pair that does it passes. All numbers are finite.

# %% role="exercise" exercise="previous_token_projections"
def previous_token_projections(t: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Projections with which each token attends to the token before it, and token 0 to itself.

    t: the number of tokens, which are the rows of the identity. share: the least weight for the chosen token.
    Returns: w_q (t, d_k), w_k (t, d_k).
    """
    # region solution
    gap = math.log((t - 1) * share / (1 - share))  # e^gap beside t - 1 times e^0 is the share asked for
    w_q = np.eye(t, k=-1)  # the query of token i is the key of token i - 1
    w_q[0, 0] = 1
    w_k = gap * math.sqrt(t) * np.eye(t)  # attention divides by the root of d_k = t
    return w_q, w_k
    # endregion

# %% role="check" exercise="previous_token_projections"
check(previous_token_projections)

# %% [markdown]
# ## Two sentences by hand
#
# Now the scores. We stack two sentences: item 0 is the three-token table of lesson 01, item 1 the same tokens in
# reverse order. Each item has scores of its own; no query meets a key of the other sentence.
#
# **Predict** item 1 from item 0: by hand, in lesson 01, item 0 was [[1, 1, 0], [1, 0, 1], [2, 1, 1]].

# %% role="given"
Q = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
K = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
V = np.array([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])
q_pair, k_pair, v_pair = (np.stack([table, table[::-1]]) for table in (Q, K, V))  # (2, 3, 2) each


def scores_by_loops(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """One dot product at a time: q (B, T_q, d_k), k (B, T_k, d_k) -> (B, T_q, T_k)."""
    scores = np.empty((q.shape[0], q.shape[1], k.shape[1]))
    for b, i, j in np.ndindex(scores.shape):
        scores[b, i, j] = q[b, i] @ k[b, j]
    return scores

# %% role="demo" tags=["nbval-check-output"]
print(scores_by_loops(q_pair, k_pair))

# %% [markdown]
# Item 1 is item 0 with rows and columns reversed: the same tokens meet, in another order.
#
# ## Why `k.T` breaks
#
# The loop over i and j was `Q @ K.T` in lesson 01. A published chapter on attention writes the same line for
# batches. **Predict** the shape of `k.T` for k of shape (2, 3, 4), and whether `k @ k.T` runs.

# %% role="demo" tags=["nbval-check-output"]
k = np.arange(24.0).reshape(2, 3, 4)  # (B, T_k, d_k)
print("k.T                ", k.T.shape)
print("k.swapaxes(-1, -2) ", k.swapaxes(-1, -2).shape)
try:
    k @ k.T
except ValueError as error:
    print("k @ k.T             raises", type(error).__name__)

# %% [markdown]
# `.T` reverses *all* axes: it sends the batch to the end. What we want moves the last two and leaves everything in
# front alone. `k.swapaxes(-1, -2)` does that for any number of leading dimensions; since NumPy 2.0 `k.mT` is short
# for it.

# %% role="demo"
figures.lesson_03.axes_moved(k.shape)

# %% [markdown]
# The error was the lucky case. **Predict** what happens when batch, tokens and features are all 4: does `k @ k.T`
# raise? And if it runs, how many of its 64 numbers are right?

# %% role="demo" tags=["nbval-check-output"]
cube = np.random.default_rng(0).normal(size=(4, 4, 4))
right, wrong = cube @ cube.swapaxes(-1, -2), cube @ cube.T
print("shapes:", right.shape, wrong.shape)
print("numbers that agree:", int(np.isclose(right, wrong).sum()), "of", right.size)

# %% [markdown]
# The shapes are the same, no error is raised, and not one number is right. This is why the checks of this course use
# sizes that all differ, and sizes that all agree: the first turn a wrong axis into an error, the second look for
# those that slip through.
#
# ## Loops against one product
#
# Both forms compute the same numbers. **Predict** how much longer the loops take for 8 sentences of 64 tokens: 3
# times, 30 times, or more than 100? Seconds depend on the machine; the ratio says more.

# %% role="demo"
many_q, many_k, many_v = np.random.default_rng(1).normal(size=(3, 8, 64, 32))
assert np.allclose(scores_by_loops(many_q, many_k), many_q @ many_k.swapaxes(-1, -2))


def seconds(function, *arrays) -> float:
    """The quickest of five runs: the one that the rest of the machine disturbed least."""
    return min(timeit.repeat(lambda: function(*arrays), number=1, repeat=5))


by_loops_s = seconds(scores_by_loops, many_q, many_k)
at_once_s = seconds(lambda q, k: q @ k.swapaxes(-1, -2), many_q, many_k)
print(f"The loops take {by_loops_s / at_once_s:,.0f} times as long.")

# %% [markdown]
# The loops pay Python's price for each of 32,768 small products; the stack of matrices pays it once and leaves the
# rest to compiled code.
#
# ## Shapes are the map
#
# We follow the shapes through equation 1 for B = 2, three queries, five keys. In each product the axis that both sides
# share is summed away; softmax and the scale leave the shape as it is.

# %% role="demo"
shape_rng = np.random.default_rng(2)
q, k, v = (shape_rng.normal(size=shape) for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 6)))
figures.lesson_03.shapes(q, k, v)

# %% [markdown]
# Read from the right end, the same picture holds for one sentence without B and for a batch of heads, (B, H, T, d).
# So we count axes from the end: −1 is the features of q, k and v, −2 their tokens. In the scores −1 is the keys, −2
# the queries. Counted from the front, "axis 1" would be the keys of one sentence, the queries of a batch, the heads
# of a batch of heads.
#
# **Predict:** which axis does softmax run along, and what would its rows sum to if we took the other one?

# %% [markdown]
# @exercise scaled_dot_product_attention
#
# `q` (..., T_q, d_k), `k` (..., T_k, d_k), `v` (..., T_k, d_v) → `(output, weights)` of shapes (..., T_q, d_v) and
# (..., T_q, T_k)
#
# For one sentence, as a loop:
#
# ```text
# for each query i: score[j] = q[i] · k[j] / √d_k for every key j
#                   weights[i] = softmax of these scores, as in lesson 02
#                   output[i] = sum over j of weights[i, j] · v[j]
# ```
#
# There may be none, one or more leading dimensions, equal for q, k and v; T_q, T_k, d_k and d_v may all
# differ. The result is right for scores of ±10,000. A ready-made attention is not allowed; any style is.

# %% role="exercise" exercise="scaled_dot_product_attention"
def scaled_dot_product_attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Attend with each query to all keys of its own item.

    q: (..., T_q, d_k). k: (..., T_k, d_k). v: (..., T_k, d_v).
    Returns: output (..., T_q, d_v), weights (..., T_q, T_k). Right for scores of ±10,000.
    Source: Vaswani et al. 2017, equation 1.
    """
    # region solution
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))  # the largest exponent is 0: nothing overflows
    weights = exps / exps.sum(axis=-1, keepdims=True)
    output = weights @ v
    return output, weights
    # endregion

# %% role="check" exercise="scaled_dot_product_attention"
check(scaled_dot_product_attention)

# %% [markdown]
# Three experiments with our function. The first: the pair of sentences again. Item 0 must give the numbers of lesson
# 01, and item 1 the same rows in reverse order, because reversing the tokens reverses the queries and changes
# nothing else.

# %% role="payoff" exercise="scaled_dot_product_attention" tags=["nbval-check-output"]
if passed(scaled_dot_product_attention):
    pair_output, pair_weights = scaled_dot_product_attention(q_pair, k_pair, v_pair)
    print("weights of item 0:", *pair_weights[0].round(4), sep="\n")
    print("output of item 0: ", *pair_output[0].round(4), sep="\n")
    assert np.allclose(pair_output[1], pair_output[0, ::-1])

# %% [markdown]
# The second: the change of "brown" once more. In the projection one row of q changed. **Predict** how many rows of the
# *output* change.

# %% role="payoff" exercise="scaled_dot_product_attention"
if passed(scaled_dot_product_attention) and passed(project_qkv):
    other_x = x.copy()
    other_x[0, 2] = -x[0, 2]
    (q_1, k_1, v_1), (q_2, k_2, v_2) = (project_qkv(sentence, w_q, w_k, w_v) for sentence in (x, other_x))
    before, weights = scaled_dot_product_attention(q_1, k_1, v_1)
    after, _ = scaled_dot_product_attention(q_2, k_2, v_2)
    pairs = {"q: one row changes": (q_1[0], q_2[0]), "output: every row changes": (before[0], after[0])}
    figures.lesson_03.changes(pairs, words, token=2)

# %% [markdown]
# Attention is the one place where tokens meet. The rest of a transformer works "position-wise": projections, and the
# layers between attentions, treat each token by itself (Vaswani et al. 2017, section 3.3).
#
# ## A heat map that means nothing yet
#
# Here are weights over our five words, the picture that articles on attention like to show. These come from
# **random** embeddings and random projections: "fox" and "brown" are as much strangers as any two tokens. A heat map
# says something only after training (lessons 10 and 11).
#
# The right panel draws embeddings and projections from the numbers between 0 and 1, as `np.random.rand` gives them
# and as published examples do. One call takes a thousand such sentences. **Predict** what the rows of the right
# panel have in common.

# %% role="payoff" exercise="scaled_dot_product_attention"
if passed(scaled_dot_product_attention):
    draws, maps = np.random.default_rng(3), {}
    for name, draw in (("standard normal", draws.standard_normal), ("uniform from 0 to 1", draws.random)):
        many_x, many_w_q, many_w_k = draw((1000, 5, 8)), draw((1000, 8, 4)), draw((1000, 8, 4))
        _, weights = scaled_dot_product_attention(many_x @ many_w_q, many_x @ many_w_k, many_x)
        sharing = [np.bincount(best).max() for best in weights.argmax(axis=-1)]
        print(f"{name}: on average {np.mean(sharing):.2f} of 5 queries share their favourite key")
        maps[f"{name}: {sharing[0]} of 5 share a favourite"] = weights[0]
    figures.lesson_03.sentence_weights(maps, words)

# %% [markdown]
# With numbers that are all positive, every query and every key point into the same corner, so one long key wins for
# all queries. Either picture looks like a discovery and shows nothing but a choice of random numbers. Why a few
# weights come so near to 1 is the subject of lesson 04.
#
# ## Letters for axes
#
# `swapaxes(-1, -2)` says how to move axes. `np.einsum` lets us say what they *are*: one letter for each axis of each
# operand, an arrow, the letters of the result. A letter that is missing right of the arrow is summed (NumPy reference,
# `numpy.einsum`, explicit mode). The letters are the variables of the loops that we saved:
#
# ```text
# bqd,bkd->bqk    for every b, q, k:  scores[b, q, k] = sum over d of q[b, q, d] * k[b, k, d]
# ```

# %% role="demo"
scores = np.einsum("bqd,bkd->bqk", q, k)
assert np.allclose(scores, scores_by_loops(q, k))
figures.lesson_03.letters("bqd,bkd->bqk", q, k)

# %% [markdown]
# No axis had to be moved: k keeps its shape, and its letters say which of its axes meets which of q. But einsum
# computes whatever the letters say. **Predict** for each line below: an error, or a result, and of which shape? The
# sizes are b 2, q 3, k 5, d 4.

# %% role="demo" tags=["nbval-check-output"]
for spelling in ("bqd,bkd->bqk", "bqd,bkd->bkq", "bqd,bkd->bqkd", "bqd,bkd->qk", "bqd,bkd->bq", "bqd,bdk->bqk"):
    try:
        print(spelling, np.einsum(spelling, q, k).shape)
    except ValueError as error:
        print(spelling, type(error).__name__)

# %% [markdown]
# Five of six run, and one is attention. The second has queries and keys exchanged; the third forgets to sum; the
# fourth sums over the sentences, so that each would see the others; the fifth sums over the keys before softmax
# could choose. Only the sixth, which calls k's axes by each other's names, is caught, because 5 is not 4.

# %% [markdown]
# @exercise attention_einsum
#
# `q` (B, T_q, d_k), `k` (B, T_k, d_k), `v` (B, T_k, d_v) → output (B, T_q, d_v), without the weights
#
# ```text
# scores[b, q, k] = sum over d of q[b, q, d] * k[b, k, d]
# output[b, q, e] = sum over k of weights[b, q, k] * v[b, k, e]
# ```
#
# Both products by `np.einsum`, and none by `@`, `matmul`, `dot`, `tensordot`, `inner`, `vdot` or a broadcast
# multiplication. Scale and softmax may be written as before, and must hold for scores of ±10,000.

# %% role="exercise" exercise="attention_einsum"
def attention_einsum(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attention with both products spelt in letters.

    q: (B, T_q, d_k). k: (B, T_k, d_k). v: (B, T_k, d_v). Returns: output (B, T_q, d_v).
    """
    # region solution
    scores = np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exps / exps.sum(axis=-1, keepdims=True)
    return np.einsum("bqk,bke->bqe", weights, v)
    # endregion

# %% role="check" exercise="attention_einsum"
check(attention_einsum)

# %% [markdown]
# Two functions, one result. We compare them on 8 sentences of 64 tokens and take the time of both, beside the loops
# that made the scores alone. **Predict** the order.

# %% role="payoff" exercise="attention_einsum"
if passed(attention_einsum) and passed(scaled_dot_product_attention):
    many = many_q, many_k, many_v
    difference = np.abs(attention_einsum(*many) - scaled_dot_product_attention(*many)[0]).max()
    print(f"largest difference: {difference:.1e}")
    times = {"loops, scores alone": by_loops_s, "attention_einsum": seconds(attention_einsum, *many)}
    times["our attention with @"] = seconds(scaled_dot_product_attention, *many)
    figures.lesson_03.ratios(times, "our attention with @", "The same numbers at different prices")

# %% [markdown]
# Plain `np.einsum` runs a loop of its own, in compiled code; `@` calls a matrix product that is tuned to the
# machine. Add `optimize=True` to both calls in our function and run the cells again: einsum then hands the products
# over where the letters allow it (NumPy reference, `numpy.einsum`, parameter `optimize`).
#
# ## Break it on purpose
#
# Three small edits to `scaled_dot_product_attention`. For each, **predict** what the check will say, make the edit,
# run the check, and undo it.
#
# 1. `axis=1` in place of `axis=-1`, in both places. With how many dimensions is the result still right?
# 2. `k.T` in place of `k.swapaxes(-1, -2)`. Which inputs fail with an error, and which without?
# 3. `keepdims=True` removed from the sum. For which shapes is that an error, and for which does it run?
#
# A verdict that names a mistake gives its id, and `explain` tells that mistake at length:

# %% role="demo"
explain("AB16")

# %% [markdown]
# ## What we keep
#
# - `@` multiplies stacks of matrices: the last two axes are the matrix, everything in front passes through.
# - Axes are counted from the end. `k.swapaxes(-1, -2)`, softmax over axis −1: the same line serves one sentence, a
#   batch and a batch of heads.
# - `k.T` reverses all axes: an error where we are lucky, wrong numbers where all sizes agree.
# - Projections treat each token by itself; attention is where tokens meet.
# - `np.einsum` names axes. What is not named on the right is summed.
# - A heat map of random weights means nothing, however striking it looks.
#
# **Sources.** Vaswani et al. 2017, *Attention is all you need*, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762),
# equation 1 and sections 3.2.1 and 3.2.2. NumPy reference:
# [matmul](https://numpy.org/doc/stable/reference/generated/numpy.matmul.html),
# [einsum](https://numpy.org/doc/stable/reference/generated/numpy.einsum.html),
# [swapaxes](https://numpy.org/doc/stable/reference/generated/numpy.swapaxes.html).
#
# Where this goes on: what no loop touches, a fast kernel can do piece by piece, without ever keeping all scores (Dao et al. 2022,
# section 3.1); lesson 13 measures it. Next: **04 · Why √d_k**, the experiment behind the scale.
