# %% [markdown]
# # 4 · Why √d_k
#
# **What goes wrong without the factor 1/√d_k, and how would we notice?**
#
# Every implementation so far divided the scores by √d_k, and the paper says why in one footnote. Here we do not believe the
# footnote: we measure how large dot products become, what softmax makes of them, and what is left to learn from. The measure
# we end with is the one that lesson 08 explains from the inside.

# %% role="given"
import numpy as np

from grader import check, explain, figures, hint, passed, progress, solution


def softmax(scores):
    """Softmax over the last axis, as written in lesson 02."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

# %% [markdown]
# This is what it is about: one random query, eight random keys, no scale. The longer the vectors, the fewer keys get a say, and nothing
# has been learnt yet that could justify it.

# %% role="demo"
figures.lesson_04.decided(softmax)

# %% [markdown]
# ## The table of lesson 01 cannot tell
#
# The three tokens had d_k = 2. Their first query meets the scores (1, 1, 0), and its output was (5, 5).
#
# **Predict:** what does the first output become without the scale? And the third?

# %% role="demo" tags=["nbval-check-output"]
Q = np.array([[1.0, 0], [0, 1], [1, 1]])
K = np.array([[1.0, 1], [1, 0], [0, 1]])
V = np.array([[10.0, 0], [0, 10], [5, 5]])
for name, divisor in (("scaled  ", np.sqrt(2)), ("unscaled", 1.0)):
    print(name, np.round(softmax(Q @ K.T / divisor) @ V, 3).tolist())

# %% [markdown]
# The first row is [5, 5] either way: its two large weights are equal, and they pull towards (10, 0) and (0, 10) alike. The
# third row moves, though not by much. With two-dimensional vectors nothing dramatic can happen. So we make them longer.
#
# ## How large is a dot product?
#
# Let query and key have independent components of mean 0 and variance 1. One product $q_i k_i$ has mean 0 and variance 1,
# and variances of independent terms add up:
#
# $$\operatorname{Var}(q \cdot k) = \sum_{i=1}^{d_k} \operatorname{Var}(q_i k_i) = d_k,
# \qquad \text{so } q \cdot k \text{ spreads by } \sqrt{d_k}$$
#
# This is footnote 4 of Vaswani et al. (2017, section 3.2.1). **Predict** for d_k = 64: what is the standard deviation? And is
# the average *size* of a score the same number?

# %% role="demo" tags=["nbval-check-output"]
rng = np.random.default_rng(4)
q, k = rng.standard_normal((100_000, 64)), rng.standard_normal((100_000, 64))
dots = (q * k).sum(axis=1)
print(f"standard deviation {dots.std():.1f}, mean size {np.abs(dots).mean():.1f}, mean {dots.mean():.1f}")

# %% [markdown]
# A published chapter says that such scores are "±8 on average". Eight is the standard deviation; the average size is 6.4, as
# for every normal quantity √(2/π) ≈ 0.8 of it. Small words, and they matter when we compare a measurement with a formula.

# %% [markdown]
# @exercise dot_product_std
#
# `d_k` and `n_samples` integers, `rng` a `np.random.Generator` → a float
#
# ```text
# repeat n_samples times: draw q and k, each d_k standard-normal numbers from rng; note their dot product
# the result is the standard deviation of the noted numbers
# ```
#
# Every number comes from `rng`, so that whoever passes the generator can repeat the experiment. Dividing by n or by n − 1 is
# both fine.

# %% role="exercise" exercise="dot_product_std"
def dot_product_std(d_k: int, n_samples: int, rng: np.random.Generator) -> float:
    """Standard deviation of the dot products of random standard-normal vectors.

    d_k: length of each vector. n_samples: number of pairs, at least 2. rng: the only source of numbers.
    """
    # region solution
    q = rng.standard_normal((n_samples, d_k))
    k = rng.standard_normal((n_samples, d_k))
    dots = (q * k).sum(axis=-1)
    return float(dots.std())
    # endregion

# %% role="check" exercise="dot_product_std"
check(dot_product_std)

# %% role="payoff" exercise="dot_product_std"
if passed(dot_product_std):
    figures.lesson_04.spread(dot_product_std)

# %% [markdown]
# The measured points lie on the line √d_k, from one dimension to four thousand. So dividing by √d_k brings the scores of *any* width
# back to a spread of 1, and dividing by d_k would shrink those of wide heads to nothing.
#
# ## What large scores do to softmax
#
# Why would a spread of 8 hurt? Because softmax sees differences: with scores of 0, 8 and −8 one key gets 0.9997 of the weight.
# We need a measure of how decided a row is. **Entropy** counts it in nats: 0 for a row that is sure of one key, ln n for n equal
# weights (Shannon 1948, section 6).
#
# $$H(p) = -\sum_j p_j \ln p_j, \qquad \text{with } 0 \cdot \ln 0 = 0$$
#
# **Predict:** the entropy of (½, ½, 0), and what NumPy says to `0 * np.log(0)`.

# %% role="demo" tags=["nbval-check-output"]
with np.errstate(divide="ignore", invalid="ignore"):
    print("0 * ln 0 =", 0 * np.log(0.0))
print("entropy of (½, ½):", round(-2 * 0.5 * np.log(0.5), 4))

# %% [markdown]
# @exercise row_entropy
#
# `weights` (..., n), each row summing to 1 → (...)
#
# ```text
# for each row: the sum over its entries p of  −p · ln p,  where an entry of 0 adds nothing
# ```
#
# Natural logarithm; any leading dimensions; a single row gives a single number.

# %% role="exercise" exercise="row_entropy"
def row_entropy(weights: np.ndarray) -> np.ndarray:
    """Entropy of each row of weights, in nats, with 0 · ln 0 = 0.

    weights: (..., n). Returns: (...).
    """
    # region solution
    logs = np.log(np.where(weights > 0, weights, 1))  # ln 1 = 0 where a weight of 0 adds nothing
    entropy = -(weights * logs).sum(axis=-1)
    return entropy
    # endregion

# %% role="check" exercise="row_entropy"
check(row_entropy)

# %% [markdown]
# Now the experiment. Eight keys, random queries and keys, d_k from 1 to 4096, with the scale and without.
#
# **Predict** both curves. Where do they start, and where does each of them end?

# %% role="payoff" exercise="row_entropy"
if passed(row_entropy):
    figures.lesson_04.undecided(softmax, row_entropy)

# %% [markdown]
# Without the scale a wide head is decided before it has learnt anything: its entropy falls towards 0. With the scale the
# curve is flat. The histogram of the largest weight shows the same for a single width: unscaled rows crowd at 1.

# %% role="payoff" exercise="row_entropy"
if passed(row_entropy):
    figures.lesson_04.largest_weight(softmax)

# %% [markdown]
# ## What is left to learn from
#
# A decided row would be no harm if it could change its mind. It can only do so through the gradient, and that passes through
# the softmax Jacobian of lesson 02, $J = \operatorname{diag}(p) - p\,p^\top$. Its Frobenius norm, the root of the sum of its squared
# entries, says how much gets through.
#
# **Predict** it for p = (½, ½) and for p = (1, 0).

# %% role="demo" tags=["nbval-check-output"]
for p in (np.array([0.5, 0.5]), np.array([1.0, 0.0])):
    jacobian = np.diag(p) - np.outer(p, p)
    print(p, "->", np.sqrt((jacobian**2).sum()))

# %% [markdown]
# @exercise softmax_gradient_norm
#
# `scores` (..., n) → (...)
#
# ```text
# for each row of scores:
#     p = softmax(row)
#     the result is √( sum over i and j of J[i, j]² ),   J[i, j] = p[i] · ((1 if i is j else 0) − p[j])
# ```
#
# Stable: scores of ten thousand give a norm of 0 and not NaN. The given `softmax` may be used.

# %% role="exercise" exercise="softmax_gradient_norm"
def softmax_gradient_norm(scores: np.ndarray) -> np.ndarray:
    """Frobenius norm of the softmax Jacobian at each row of scores.

    scores: (..., n). Returns: (...). 0 where a row is decided, at most ½.
    """
    # region solution
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    jacobian = p[..., :, None] * (np.eye(p.shape[-1]) - p[..., None, :])
    squares = (jacobian**2).sum(axis=(-1, -2))
    return np.sqrt(squares)
    # endregion

# %% role="check" exercise="softmax_gradient_norm"
check(softmax_gradient_norm)

# %% role="payoff" exercise="softmax_gradient_norm"
if passed(softmax_gradient_norm):
    figures.lesson_04.gradient(softmax_gradient_norm)

# %% [markdown]
# @exercise query_gradient_norm
#
# `q` (d,), `keys` (n, d), `scale` a positive float → a float
#
# The Frobenius norm of ∂p/∂q, an (n, d) matrix, where p = softmax(scale · keys q). Stable for scores of ±10,000.

# %% role="exercise" exercise="query_gradient_norm"
def query_gradient_norm(q: np.ndarray, keys: np.ndarray, scale: float) -> float:
    """Frobenius norm of ∂p/∂q for p = softmax(scale * keys q).

    q: (d,). keys: (n, d). scale: what the dot products are multiplied with, such as 1 / √d.
    """
    # region solution
    scores = scale * (keys @ q)
    e = np.exp(scores - scores.max())
    p = e / e.sum()
    jacobian = np.diag(p) - np.outer(p, p)
    by_query = jacobian @ (scale * keys)  # the chain rule: ∂p/∂scores times ∂scores/∂q
    return float(np.sqrt((by_query**2).sum()))
    # endregion

# %% role="check" exercise="query_gradient_norm"
check(query_gradient_norm)

# %% [markdown]
# Without the scale, what softmax lets through falls with the width; with it, the width does not matter. That is the whole
# reason for √d_k: not smaller numbers for their own sake, but a softmax that can still learn on the first day.
#
# A slider shows the same for one row of weights. Move d_k and watch the unscaled bars.

# %% role="demo"
figures.lesson_04.slider(softmax)

# %% [markdown]
# ## Break it on purpose: an experiment that sees nothing
#
# Several published examples draw everything from [0, 1) with `np.random.rand`, embeddings and projections alike. **Predict:** which
# key does a query then prefer, and does the choice depend on the query?

# %% role="demo" tags=["nbval-check-output"]
rng = np.random.default_rng(0)
for name, draw in (("uniform [0, 1)", rng.random), ("standard normal", rng.standard_normal)):
    q = draw((1000, 64)) @ draw((64, 64)) / 8  # 1000 tokens, projected
    k = draw((8, 64)) @ draw((64, 64)) / 8
    favourite = (q @ k.T / np.sqrt(64)).argmax(axis=1)
    print(f"{name:16} {np.bincount(favourite).max() / 10:.0f} % of the queries share one favourite key")

# %% [markdown]
# With positive numbers all projected vectors point into the same corner, so the longest key wins for everyone, scaled or not, and the
# heat map shows one bright column. It looks like attention and has nothing to do with the query. Trained projections produce both
# signs, and so do the random numbers of this course.

# %% role="demo"
figures.lesson_04.favourites()

# %% [markdown]
# ## Where this goes on
#
# The argument holds at the start of training, for independent components. Trained heads grow sharp where that is useful, and
# some models divide by a learnt temperature or normalise queries and keys first (Henry et al. 2020, "Query-Key
# Normalization for Transformers"). In lesson 05 the same attention moves to PyTorch, which computes the gradients for us; in
# lesson 08 we compute them by hand and meet the vanishing gradient again.
