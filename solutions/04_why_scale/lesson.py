# %% [markdown]
# # 04 · Why √d_k
#
# **What goes wrong without the factor 1/√d_k, and how would we notice?**
#
# **Before this lesson:** variance and standard deviation, the chain rule for partial derivatives; lesson 02 (softmax
# and its Jacobian), lesson 03 (scaled dot-product attention).
#
# Every attention so far divided the scores by √d_k. The paper gives its reason in one sentence:
#
# > We suspect that for large values of d_k, the dot products grow large in magnitude, pushing the softmax function
# > into regions where it has extremely small gradients.
# >
# > (Vaswani et al. 2017, section 3.2.1)
#
# "We suspect" is not "we measured". In this lesson you measure the claims one after another: how fast dot products
# grow, what large scores do to softmax, and how much of the gradient is left. The last claim turns out to be only
# half true.

# %% role="given"
import numpy as np

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution


def softmax(scores):
    """Softmax over the last axis, as written in lesson 02."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

# %% [markdown]
# The three panels below show the effect that the paper suspects. In each one, a random query meets eight random keys,
# and the dot products go into softmax undivided. The more numbers the vectors have, the fewer keys get any noticeable
# weight. Yet all the vectors are random, so there is no reason to prefer one key to another.

# %% role="demo"
rng = np.random.default_rng(4)
rows = {}
for d_k in (2, 64, 1024):
    q, keys = rng.standard_normal(d_k), rng.standard_normal((8, d_k))
    rows[f"vectors of {d_k} numbers"] = softmax(keys @ q)
figures.why_scale.bars_of(rows)

# %% [markdown]
# ## The table of lesson 01 cannot tell
#
# One of the two published walk-throughs in lesson 01 left the scale out. Could a reader have noticed from the output of
# the first token?

# %% role="demo" tags=["nbval-check-output"]
Q = np.array([[1.0, 0], [0, 1], [1, 1]])
K = np.array([[1.0, 1], [1, 0], [0, 1]])
V = np.array([[10.0, 0], [0, 10], [5, 5]])
for name, divisor in (("scaled  ", np.sqrt(2)), ("unscaled", 1.0)):
    print(name, np.round(softmax(Q @ K.T / divisor) @ V, 3).tolist())

# %% [markdown]
# No. The output of token 0 is [5, 5] either way. Its two large weights are equal, so they pull equally hard toward
# (10, 0) and (0, 10), and the third value is (5, 5) anyway. The other rows change only a little, because the numbers
# in the table are small: no score is above 2, and the scale makes a visible difference only when scores are large. In
# lesson 01 we got large scores with just two dimensions, by making a query longer. Nobody does that on purpose in a
# model. There, scores grow because vectors have many components.
#
# ## How large is a dot product?
#
# Let the components of a query and a key be independent, each with mean 0 and variance 1 (for example *standard
# normal* numbers). Footnote 4 of the paper states what follows; here we derive it step by step. We write E for the
# mean. A single product has the mean $E[q_i k_i] = E[q_i]\,E[k_i] = 0$, so its variance is the mean of its square:
#
# $$\operatorname{Var}(q_i k_i) = E[q_i^2 k_i^2] - 0^2 = E[q_i^2]\,E[k_i^2] = 1 \cdot 1 = 1$$
#
# The mean of a product splits into a product of means because the components are independent, and the mean square of
# a number with mean 0 *is* its variance. The variances of independent terms add up:
#
# $$\operatorname{Var}(q \cdot k) = \sum_{i=1}^{d_k} \operatorname{Var}(q_i k_i) = d_k,
# \qquad \text{so the standard deviation of } q \cdot k \text{ is } \sqrt{d_k}$$
#
# Below, the *spread* of the scores means this standard deviation.

# %% [markdown]
# @predict
#
# For d_k = 64 the standard deviation of the scores is √64 = 8. Is 8 also the average *size* of a score, the mean of
# |q · k|?
#
# - **A** Yes, that is what a standard deviation is.
# - **B** No, the average size is smaller.
# - **C** No, the average size is larger.
#
# @answer
#
# **B.** A sum of 64 independent terms is nearly normal, and of a normal quantity the mean size is √(2/π) ≈ 0.8 of the
# standard deviation: about 6.4. The standard deviation is the root of the mean *square*, and squares give large numbers
# more influence. Take the sizes 2 and 10: their mean is 6, and the root of their mean square is √52 ≈ 7.2.
#
# @wrong
#
# A: "±8 on average" mixes up two averages. The difference is small, but you need it as soon as you compare a measurement
# with a formula. C: the mean of some sizes is never above the root of their mean square.

# %% role="demo" tags=["nbval-check-output"]
rng = np.random.default_rng(4)
q, k = rng.standard_normal((100_000, 64)), rng.standard_normal((100_000, 64))
dots = (q * k).sum(axis=1)
print(f"standard deviation {dots.std():.1f}, mean size {np.abs(dots).mean():.1f}, mean {dots.mean():.1f}")

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
# Every number comes from `rng`, so that anyone who passes a generator in the same state can repeat the experiment. You
# may divide by n or by n − 1.

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
    lengths = 2 ** np.arange(13)  # 1 to 4096
    measured = np.array([dot_product_std(int(d_k), 1000, np.random.default_rng(d_k)) for d_k in lengths])
    assert np.abs(measured / np.sqrt(lengths) - 1).max() < 0.25
    figures.why_scale.spread(lengths, measured)

# %% [markdown]
# The measured points lie on the line √d_k, from one dimension to four thousand. So dividing by √d_k brings the scores of
# *any* width back to a spread of 1. The first half of the suspicion is right: dot products grow.
#
# ## What large scores do to softmax
#
# Why would a spread of 8 hurt? Because softmax turns differences between scores into ratios between weights: with
# scores of 0, 8 and −8 one key gets 0.9997 of the weight. We call a row *decided* if nearly all of its weight is on
# one key, and we need a number that says how far a row is from that. **Entropy** is such a number: it is 0 for a row
# with all its weight on one key, and it is largest, ln n, for n equal weights (Shannon 1948, section 6). With the
# natural logarithm its unit is the nat.
#
# $$H(p) = -\sum_j p_j \ln p_j, \qquad \text{with } 0 \cdot \ln 0 = 0$$
#
# For (½, ½, 0) that is −2 · ½ ln ½ = ln 2 ≈ 0.693, the entropy of a fair coin. The rule for 0 has to be written into the
# code, because NumPy's own result is NaN:

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
# Now the experiment. The function below draws random queries, each with eight keys of its own, and returns their dot
# products. We compare three divisors of the scores. The third, d_k without the root, comes up later.

# %% role="given"
def random_scores(d_k: int, n_rows: int, rng: np.random.Generator, n_keys: int = 8) -> np.ndarray:
    """Unscaled scores (n_rows, n_keys) of standard-normal queries, each with keys of its own."""
    q, keys = rng.standard_normal((n_rows, 1, d_k)), rng.standard_normal((n_rows, n_keys, d_k))
    return (q * keys).sum(axis=-1)


widths = 2 ** np.arange(13)  # of d_k: 1 to 4096
divisors = {"undivided": lambda d_k: 1.0, "divided by √d_k": np.sqrt, "divided by d_k": lambda d_k: d_k}

# %% [markdown]
# @predict
#
# Eight equal weights have the entropy ln 8 ≈ 2.08. We take random queries and keys, with d_k from 1 to 4096. Which way
# does the mean entropy go as d_k grows, with the scale and without?
#
# - **A** Both fall, the unscaled one faster.
# - **B** The scaled one stays where it is, a little below 2.08; the unscaled one falls towards 0.
# - **C** The scaled one rises to 2.08; the unscaled one stays where it is.
#
# @answer
#
# **B.** With the scale the scores spread by 1 at every width, so the rows look alike at every width. Without it they
# spread by √d_k, so the lead of the largest score over the others grows with d_k, and in the end its key takes nearly all
# the weight.
#
# @wrong
#
# A: you may have thought that dividing by √d_k only slows the growth. It cancels it exactly. C would be dividing by
# more than √d_k.

# %% role="payoff" exercise="row_entropy"
if passed(row_entropy):
    entropies = {"divided by √d_k": [], "undivided": []}
    for d_k in widths:
        scores = random_scores(int(d_k), 200, np.random.default_rng(2))
        for name, means in entropies.items():
            means.append(row_entropy(softmax(scores / divisors[name](d_k))).mean())
    flat, falling = entropies["divided by √d_k"], entropies["undivided"]
    assert max(flat[4:]) - min(flat[4:]) < 0.1 and falling[-1] < 0.1
    title = "Undivided rows are decided before they learn"
    figures.why_scale.curves(widths, entropies, title, "entropy (nats)", top=np.log(8))

# %% [markdown]
# Without the scale a wide head is decided before it has learned anything: at d_k = 4096 its mean entropy is
# {{ falling[-1]:.2f }} nats. With the scale it is {{ flat[-1]:.2f }}, as at d_k = 16. The histogram of the largest weight
# shows the same for a single width. In most undivided rows the largest weight is close to 1.

# %% role="payoff" exercise="row_entropy"
if passed(row_entropy):
    scores = random_scores(64, 2000, np.random.default_rng(3))
    tops = {"divided by √d_k": softmax(scores / 8).max(axis=-1), "undivided": softmax(scores).max(axis=-1)}
    figures.why_scale.histograms(tops, "largest weight of a row, d_k = 64")

# %% [markdown]
# ## What is left to learn from
#
# A decided row would do no harm if training could still change it. Training does not change weights or scores directly.
# It changes w_q and w_k, and with them the queries and keys. So what matters is ∂p/∂q: how much the weights of a row
# change when its query changes a little. (The step from the query back to w_q brings in only the token's vector, which
# does not depend on the scale, and the way to the keys is much the same.) By the chain rule ∂p/∂q has two factors:
#
# $$p = \operatorname{softmax}(s), \quad s = \text{scale} \cdot K q \qquad\Rightarrow\qquad
# \frac{\partial p}{\partial q} = J \cdot \frac{\partial s}{\partial q}$$
#
# The first factor is the softmax Jacobian of lesson 02, $J = \operatorname{diag}(p) - p\,p^\top$. The paper blames this
# one: "regions where it has extremely small gradients". So a first attempt is to measure J alone, by its Frobenius norm,
# the root of the sum of the squared entries. We will see how far that gets us.

# %% [markdown]
# @predict
#
# What is the norm of J for the weights (½, ½), and what is it for (1, 0)?
#
# @answer
#
# ½ and 0. For (½, ½) the entries are ½ − ¼ = ¼ on the diagonal and −¼ beside it: four squares of 1/16, whose sum is ¼,
# and the root of that is ½. No row of weights has a larger norm. For (1, 0) every entry is 0: 1 − 1, 0 − 0, −1 · 0.
#
# @wrong
#
# "¼" is the sum of the squares, before the root. If you said "½ and 1": J does not measure how large the weights are. It
# measures how they *move* when the scores move, and (1, 0) does not move.

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
# Stable: scores of ten thousand give a norm of 0 and not NaN. The given `softmax` may be used; a finite difference is not
# accepted.

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

# %% [markdown]
# This time we compare all three: undivided, divided by √d_k, and divided by d_k, which makes the scores smaller still.

# %% role="payoff" exercise="softmax_gradient_norm"
if passed(softmax_gradient_norm):
    norms = {name: [] for name in divisors}
    for d_k in widths:
        scores = random_scores(int(d_k), 200, np.random.default_rng(2), n_keys=16)
        for name, divisor in divisors.items():
            norms[name].append(softmax_gradient_norm(scores / divisor(d_k)).mean())
    assert norms["undivided"][-1] < 0.06 and norms["divided by d_k"][-1] > 0.2
    title = "Through softmax: dividing by d_k looks almost as good"
    figures.why_scale.curves(widths, norms, title, "mean norm of J, 16 keys")

# %% [markdown]
# Without division, little gets through softmax. But divided by d_k, the norm at 4096 is
# {{ norms["divided by d_k"][-1]:.2f }}, and divided by √d_k it is {{ norms["divided by √d_k"][-1]:.2f }}. If that were
# the whole story, dividing by d_k would do nearly as well. Why the root?
#
# The first attempt is not enough, because J stops at the *scores*. The second factor of ∂p/∂q is missing, the step from
# the scores to the query. So now we measure the product.

# %% [markdown]
# @exercise query_gradient_norm
#
# `q` (d,), `keys` (n, d), `scale` a positive float → a float
#
# The Frobenius norm of ∂p/∂q, an (n, d) matrix, where p = softmax(scale · keys q). Find ∂s/∂q yourself: score j is scale
# times the dot product of `keys[j]` with q. The result is right for scores of ±10,000, and for entries of q and the keys that
# are very small or large, which no finite difference is.
#
# By hand: for q = (0), the keys (1) and (−1) and the scale 1, the weights are (½, ½), and a small step ε of q makes the
# scores ε and −ε. The weights change by ε/2 and −ε/2, so ∂p/∂q is (½, −½) and its norm √½ ≈ 0.707.

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
# @predict
#
# Let d_k = 4096, with sixteen random keys. We divide by nothing, by √d_k or by d_k. With which of the three does the
# *typical* query (the median) get the most gradient? And which has the largest *mean*? Two factors are multiplied: J,
# which is close to 0 for a decided row, and ∂s/∂q, which contains the scale.
#
# @answer
#
# The typical query gets the most with √d_k. The largest mean belongs to no division at all. Undivided rows are mostly
# decided and pass next to nothing, but ∂s/∂q = scale · keys is then 64 times as large as with √d_k, and the few rows
# that are still undecided pass that in full.
#
# @wrong
#
# If you said "d_k, because J is not small": the scale, 1/4096, is a factor of ∂s/∂q, too. If you said that no division
# comes last in both: you expected mean and median to agree, and they agree only where most rows are alike.

# %% [markdown]
# Here is the experiment that the paper left out. For each width we draw 500 random queries, each with 16 random keys, and
# compute your norm for the three scales. We keep all 500 numbers, because a mean can hide what a typical row does. It
# takes some seconds.

# %% role="payoff" exercise="query_gradient_norm"
if passed(query_gradient_norm):
    some_widths = 4 ** np.arange(1, 7)  # 4 to 4096
    reached = {name: np.empty((len(some_widths), 500)) for name in divisors}
    rng = np.random.default_rng(4)
    for at, d_k in enumerate(map(int, some_widths)):
        for row in range(500):
            q, keys = rng.standard_normal(d_k), rng.standard_normal((16, d_k))
            for name, divisor in divisors.items():
                reached[name][at, row] = query_gradient_norm(q, keys, 1 / divisor(d_k))
    figures.why_scale.means_and_medians(some_widths, reached)

# %% role="payoff" exercise="query_gradient_norm"
if passed(query_gradient_norm):
    mean = {name: numbers.mean(axis=1) for name, numbers in reached.items()}
    median = {name: np.median(numbers, axis=1) for name, numbers in reached.items()}
    print("d_k  ", *(f"{d_k:>9}" for d_k in some_widths))
    for name in divisors:
        print(f"{name}\n mean ", *(f"{number:9.2g}" for number in mean[name]))
        print(" median", *(f"{number:9.2g}" for number in median[name]))
    assert 0.25 < min(median["divided by √d_k"]) and max(mean["divided by √d_k"]) < 0.35
    assert mean["undivided"][-1] > 1 and median["undivided"][-1] < 1e-6 and mean["divided by d_k"][-1] < 0.005

# %% [markdown]
# Take the three in turn.
#
# - **Divided by √d_k:** the gradient at the query has a norm of about 0.3 at every width, in the mean and in the
#   median.
# - **Divided by d_k:** the rows are undecided and J is not small, but the factor 1/d_k in ∂s/∂q makes the gradient
#   tiny: at 4096 its norm is {{ mean["divided by d_k"][-1]:.4f }}. The root is the only power of d_k that keeps the
#   gradient the same at every width before training.
# - **Undivided:** the *mean* even grows, to {{ mean["undivided"][-1]:.1f }}, while the *median* falls to
#   {{ median["undivided"][-1]:.0e }}. So "extremely small gradients" is only half of the story. The typical row
#   passes next to nothing. A few rows, in which the two highest scores happen to be nearly equal, pass a great deal,
#   because their factor ∂s/∂q is √d_k times as large as with the paper's scale.
#
# *Dive into Deep Learning* (Zhang et al. 2023, section 11.1) says of softmax that "its gradient never vanishes". In exact
# arithmetic that is true: no weight is ever 0 or 1. We test it in float32, in which models compute.

# %% role="demo"
scores = random_scores(4096, 300, np.random.default_rng(6), n_keys=16).astype(np.float32)
stuck = {}
for name, divisor in (("undivided", 1), ("divided by √d_k", 64)):
    top = softmax(scores / np.float32(divisor)).max(axis=-1)
    stuck[name] = np.mean(top * (1 - top) == 0)  # its entry on the diagonal of J
    print(f"{name:15} in {stuck[name]:.0%} of the rows the largest weight's derivative by its own score is exactly 0")
assert stuck["undivided"] > 0.5 and stuck["divided by √d_k"] == 0

# %% [markdown]
# In float32 more than half of the undivided rows have a largest weight p of exactly 1. The derivative of that weight
# with respect to its own score, p(1 − p), is then exactly 0. Other entries of J in such a row usually survive, but
# none of them is larger than the total weight of the remaining keys, which is below 10⁻⁶. So in float32 the gradient
# of softmax does vanish, for all practical purposes, once the scores of a row lie far apart. The scale keeps them
# close together.
#
# ## The consequence: three heads try to learn
#
# What matters in the end is whether a head learns worse without the scale. We train a small one, and the next cell
# contains the whole training. There are 64 tokens and 16 entries. Each token has to retrieve the value of one entry,
# which was chosen for it at random. Queries are computed from the tokens with a learned w_q, and keys from the
# entries with a learned w_k, as in lesson 03. The values are fixed. The loss is the mean squared difference from the
# value that was wanted. The four lines that begin at the comment "backwards" apply the chain rule once more. You need
# not follow them now, because lesson 13 derives them step by step.

# %% role="given"
def train_head(scale: float, step: float, d_k: int, seed: int = 0, gain: float = 1.0) -> list[float]:
    """The loss at each of 300 steps of plain gradient descent; scale, gain: what the scores, the first weights are multiplied with."""
    rng = np.random.default_rng(seed)
    x, entries, values = (rng.standard_normal(shape) for shape in ((64, 32), (16, 32), (16, 8)))
    w_q, w_k = (gain * rng.standard_normal((32, d_k)) / np.sqrt(32) for _ in range(2))
    wanted = values[rng.integers(16, size=64)]
    losses = []
    for _ in range(300):
        q, k = x @ w_q, entries @ w_k
        p = softmax(scale * (q @ k.T))
        error = p @ values - wanted
        losses.append((error**2).mean())
        grad_p = 2 / error.size * error @ values.T  # backwards: from the loss to the weights,
        grad_scores = p * (grad_p - (p * grad_p).sum(axis=-1, keepdims=True))  # through J of each row,
        grad_q, grad_k = scale * grad_scores @ k, scale * grad_scores.T @ q  # to queries and keys,
        w_q, w_k = w_q - step * x.T @ grad_q, w_k - step * entries.T @ grad_k  # and one step downhill
    return losses

# %% [markdown]
# To compare the heads at one step size would be unfair: a head with larger gradients may just need smaller steps. So
# each head gets twelve step sizes, from 0.01 to 3,000, and shows its best.

# %% role="given"
def compare_heads(d_k: int) -> tuple[dict[str, list[float]], dict[str, float]]:
    """For each of the three scales, the losses with the best of twelve step sizes, and that step size."""
    runs, steps = {}, {}
    for name, divisor in divisors.items():
        with np.errstate(all="ignore"):  # steps that are too large overflow; they lose
            tried = {step: train_head(1 / divisor(d_k), step, d_k) for step in 10.0 ** np.arange(-2, 4, 0.5)}
        ends = {step: np.nan_to_num(losses[-1], nan=np.inf) for step, losses in tried.items()}
        steps[name] = min(ends, key=ends.get)
        runs[name] = tried[steps[name]]
    return runs, steps

# %% [markdown]
# @predict
#
# d_k = 256, each head with the best of twelve step sizes. Which heads learn to retrieve?
#
# - **A** Only the one divided by √d_k.
# - **B** Those divided by √d_k and by d_k; not the undivided one.
# - **C** All three, since each has its best step size.
#
# @answer
#
# **B.** Divided by d_k, every row's gradient is small *by the same factor*, so a larger step makes up for it. Undivided,
# the typical row's gradient is nearly 0 while a few rows' are large. No single step size suits both: one that is large
# enough to move the stuck rows is far too large for the others.
#
# @wrong
#
# A: a gradient that is small in every row can be made up for by larger steps. Compare mean and median of each scale in
# the table above. C: a step size multiplies the gradients of all rows alike, and ten times nearly 0 is still nearly 0.

# %% role="demo"
runs, steps = compare_heads(d_k=256)
ends = {name: losses[-1] for name, losses in runs.items()}
assert ends["undivided"] > runs["divided by √d_k"][0] > 10 * max(ends["divided by √d_k"], ends["divided by d_k"])
figures.why_scale.losses(runs, steps)

# %% [markdown]
# The undivided head ends at {{ ends["undivided"]:.2f }}. The other two *begin* no higher than
# {{ runs["divided by √d_k"][0]:.2f }}, where no entry is clearly preferred yet. So after 300 steps the undivided head
# is still worse than the other two were before their first. Divided by √d_k, the head ends at
# {{ ends["divided by √d_k"]:.3f }}.
#
# Dividing by d_k works too, with steps {{ steps["divided by d_k"] / steps["divided by √d_k"]:.0f; 5 < it < 20 }} times as
# long. Is √d_k then the best scale? One draw of the task cannot say, so we take five. We also add a head that has no
# scale at all, and begins with smaller weights instead, so that its scores begin as small as those of √d_k.

# %% role="demo"
def best_end(scale, gain, seed, d_k=64):
    """The last loss with the best of eight step sizes."""
    with np.errstate(all="ignore"):
        ends = [train_head(scale, step, d_k, seed, gain)[-1] for step in 10.0 ** np.arange(-1.5, 2.5, 0.5)]
    return np.nanmin(ends)

heads = {"undivided": (1, 1), "divided by √d_k": (64**-0.5, 1), "divided by d_k": (1 / 64, 1), "smaller weights": (1, 64**-0.25)}
five = {name: [best_end(*head, seed) for seed in range(5)] for name, head in heads.items()}
for name, ends_of in five.items():
    print(f"{name:15}", "  ".join(f"{end:.3f}" for end in ends_of))
lower = sum(d < root for d, root in zip(five["divided by d_k"], five["divided by √d_k"]))
assert min(five["undivided"]) > 2 * max(five["divided by √d_k"]) and lower >= 4
assert 0.5 < np.mean(five["smaller weights"]) / np.mean(five["divided by √d_k"]) < 1.5

# %% [markdown]
# In all five draws the undivided head ends far above the others. Dividing by d_k ends *lower* than dividing by √d_k in
# {{ lower; it >= 4 }} of the five, and the head with smaller weights does about as well as √d_k without any scale.
#
# So the scale is about the **start**. It gives the scores a variance of 1 at initialization, whatever the width, and
# smaller initial weights could do the same work. What training does after that depends on the optimizer and on the
# width. With plain gradient descent each scale needs its own step size; Adam divides by the gradient's own size, so a
# common factor hardly matters to it. In training, queries and keys become correlated, and then a dot product grows like
# d_k and not like √d_k. For this reason μP, a recipe for carrying settings from narrow to wide models, divides by d_k
# (Yang et al. 2022, section 4). √d_k has remained the common choice because it is a good start at every width.
#
# Is the width really the cause? Then a narrow head should not need the scale. We give the same comparison d_k = 4:

# %% role="demo"
narrow, _ = compare_heads(d_k=4)
for name, losses in narrow.items():
    print(f"d_k = 4, {name:15} the loss goes from {losses[0]:.2f} to {losses[-1]:.2f}")
assert narrow["divided by √d_k"][-1] < narrow["undivided"][-1] < 1.5 * narrow["divided by √d_k"][-1]

# %% [markdown]
# The narrow head learns without the scale, too. It ends at {{ narrow["undivided"][-1]:.2f }}, and with the scale at
# {{ narrow["divided by √d_k"][-1]:.2f }}. Put `compare_heads(16)` and `compare_heads(64)` into a new cell and print the
# last losses: the gap widens with the width. (We tried five random draws of the task; the gap widened in each.)
#
# ## Break it on purpose: an experiment that sees nothing
#
# All numbers above were standard normal. Suppose you had drawn tokens and projections with `np.random.rand`, uniform
# between 0 and 1, so that all of them are positive. Which key does a query then prefer, and does that depend on the
# query?

# %% role="demo" tags=["nbval-check-output"]
rng = np.random.default_rng(0)
maps = {}
for name, draw in (("uniform from 0 to 1", rng.random), ("standard normal", rng.standard_normal)):
    q = draw((1000, 64)) @ draw((64, 64)) / 8  # 1000 tokens, projected
    k = draw((8, 64)) @ draw((64, 64)) / 8
    weights = softmax(q @ k.T / np.sqrt(64))
    favorite = weights.argmax(axis=1)
    print(f"{name:19} {np.bincount(favorite).max() / 10:.0f} % of the queries share one favorite key")
    maps[name] = weights[:12]

# %% role="demo"
figures.why_scale.side_by_side(maps)

# %% [markdown]
# With positive numbers all projected vectors point in nearly the same direction. A dot product then depends mostly on
# the length of the key, so nearly all queries share one favorite, scaled or not: the column that stands out in the
# left map. It looks like a choice that attention made, but it has nothing to do with the query. The right map means
# nothing either, however striking it looks, because its numbers are random. A heat map can tell you something only
# after training (lesson 12).
#
# ## What we keep
#
# - Dot products of vectors with independent components have a standard deviation of √d_k, because variances add up.
#   Dividing by √d_k brings it back to 1 at every width.
# - With large scores, softmax puts nearly all the weight on one key before anything is learned, and the typical row
#   then passes next to no gradient.
# - Look at the mean *and* the median: without the scale, a few rows whose two highest scores nearly tie pass so much
#   gradient that the mean hides all the other rows.
# - The scale sets the *start*: scores with a variance of 1 at every width. Smaller initial weights could do that, too.
#   What training makes of it depends on the optimizer and the width.
# - Measure at the thing that learns. At the scores, dividing by d_k looks almost as good as dividing by √d_k; at the
#   query, at the start, it does not.
#
# | what | shape |
# |---|---|
# | scores, weights | (..., n) |
# | entropy, norm of J | (...) |
# | J = ∂p/∂scores | (n, n) |
# | ∂p/∂q = J · scale · keys | (n, d) |
#
# The argument holds at the start of training, for independent components. Trained heads grow sharp where that is useful,
# and some models divide by a learned temperature or normalize queries and keys first (Henry et al. 2020, *Query-Key
# Normalization for Transformers*).
#
# **Sources.** Vaswani et al. 2017, *Attention is all you need*, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762),
# section 3.2.1 with footnote 4. Shannon 1948, *A Mathematical Theory of Communication*, section 6. Yang et al. 2022, *Tensor
# Programs V*, [arXiv:2203.03466](https://arxiv.org/abs/2203.03466) (μP). Zhang, Lipton, Li and
# Smola 2023, *Dive into Deep Learning*,
# [section 11.1](https://d2l.ai/chapter_attention-mechanisms-and-transformers/queries-keys-values.html).

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# To take one sentence of the paper that begins with "We suspect" and test it. The learner meets a derivation that holds
# (variances add up), a measure that misleads (the norm of J makes d_k look as good as √d_k), and a mean that hides what
# its median shows. What stays is a habit: measure at the thing that learns, and look at more than the mean.
#
# ## Cut for 60 minutes
#
# Opening picture, the derivation at the board, `dot_product_std`, then straight to the chain rule and
# `query_gradient_norm` with its table. Tell the entropy section in two sentences. Show the loss curves without reading the
# training code.
#
# ## Cut for 90 minutes
#
# Leave out the table of lesson 01, the histogram and the uniform numbers. Do the other four exercises; let the room
# predict the loss curves by a show of hands before the cell runs.
#
# ## Mistakes to expect
#
# - dot_product_std WS2: What is the unit of a variance, if scores were meters?
# - dot_product_std WS8: If I pass the same generator state twice, do I get the same number twice?
# - row_entropy WS9: What does your line give for a weight of exactly 0, and what should it add?
# - row_entropy WS12: How many numbers should come back for three rows?
# - softmax_gradient_norm WS16: When one score rises, do only its own weight and nothing else change?
# - softmax_gradient_norm SM5: What is exp(1000) to NumPy?
# - query_gradient_norm QG4: At which quantity does your derivative end, and is that the one that learns?
# - query_gradient_norm QG1: The scale multiplies the scores. What does it do to their derivative?
# - query_gradient_norm QG6: Score j is scale · (k · q). Which of the two vectors remains when you differentiate by q?
#
# ## To discuss
#
# **The undivided mean of ‖∂p/∂q‖ grows with d_k. Why does the head not learn better?** A good answer separates typical rows
# from rare ones, says that one step size has to suit all rows, and points to the median or to the loss curves.
#
# **If dividing by d_k works with larger steps, is √d_k a matter of taste?** A good answer separates the start from what follows:
# √d_k gives rows that are neither decided nor all alike at initialization, at every width; later the best scale depends on the
# optimizer, and μP divides by d_k. It may mention that optimizers such as Adam choose step lengths for each parameter, and so
# hide a common factor, but not a gradient that is 0.
#
# ## On paper
#
# Two keys, (1, 0) and (0, 1), and the query (a, a). Compute p, J and ∂p/∂q for scale 1. Then for the query (a + 10, a). What
# of the two results depends on a?
#
# *Solution.* For (a, a) both scores are a, p = (½, ½), J = ¼ · [[1, −1], [−1, 1]], and since the keys form the identity ∂p/∂q = J,
# with norm ½. For (a + 10, a) the scores differ by 10, p ≈ (0.99995, 0.00005), each entry of J has size p₀ p₁ ≈ 0.000045, and
# the norm is 0.00009. Neither depends on a: softmax sees differences only.
