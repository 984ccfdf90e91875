# %% [markdown]
# # 04 · Why √d_k
#
# **What goes wrong without the factor 1/√d_k, and how would we notice?**
#
# **Before this lesson:** variance and standard deviation, the chain rule for partial derivatives; lesson 02 (softmax)
# and lesson 03 (scaled dot-product attention).
#
# Since lesson 01 we have divided the scores by √d_k. The paper gives its reason in one sentence:
#
# > We suspect that for large values of d_k, the dot products grow large in magnitude, pushing the softmax function
# > into regions where it has extremely small gradients.
# >
# > (Vaswani et al. 2017, section 3.2.1)
#
# "We suspect" is not "we measured". So we measure: how fast dot products grow, what large scores do to softmax, how
# much gradient is left, and whether a head without the scale still learns.

# %% role="given"
import numpy as np

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution


def softmax(scores):
    """Softmax over the last axis, as written in lesson 02."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

# %% [markdown]
# Here a random query meets eight random keys, and the dot products go into softmax unscaled. From panel to panel the
# vectors get more numbers. There is no reason to prefer one random key to another, and yet fewer and fewer get any weight.

# %% role="demo"
figures.why_scale.strip(softmax)

# %% [markdown]
# If your notebook shows widgets, move d_k yourself. On the right the same scores are divided by √d_k.

# %% role="demo"
figures.why_scale.width_slider(softmax)

# %% [markdown]
# ## How large is a dot product?
#
# Let the numbers in a query and a key be independent, each with mean 0 and variance 1, such as *standard normal*
# numbers. How far does their dot product spread? Footnote 4 of the paper states it. We derive it in two steps.
#
# **One product.** Write E for the mean. The numbers are independent, so the mean of a product is the product of the
# means: $E[q_i k_i] = E[q_i]\,E[k_i] = 0$. Where the mean is 0, the variance is the mean of the squares. So
# $E[q_i^2] = E[k_i^2] = 1$, and
#
# $$\operatorname{Var}(q_i k_i) = E[q_i^2 k_i^2] = E[q_i^2]\,E[k_i^2] = 1 \cdot 1 = 1$$
#
# **The sum.** Variances of independent terms add up, and a dot product has d_k terms:
#
# $$\operatorname{Var}(q \cdot k) = \sum_{i=1}^{d_k} \operatorname{Var}(q_i k_i) = d_k,
# \qquad \text{so the standard deviation of } q \cdot k \text{ is } \sqrt{d_k}$$

# %% [markdown]
# @exercise dot_product_std
#
# `d_k` and `n_samples` integers, `rng` a `np.random.Generator` → a float
#
# Test the derivation on `n_samples` pairs of a standard normal query and key. Every number comes from `rng`, so that the
# same state of it repeats the experiment. The deviation may divide by n or by n − 1.

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
# The points lie on the line √d_k. Dividing by √d_k brings the scores of any width back to a standard deviation of 1. So
# the first half of the suspicion is right: dot products grow.
#
# ## What large scores do to softmax
#
# For d_k = 64 the standard deviation is 8. Why would that hurt? Softmax turns differences between scores into ratios
# between weights. With scores of 0, 8 and −8 one key gets 0.9997 of the weight. We call a row **saturated** if nearly
# all of its weight is on one key.
#
# **Entropy** measures how far a row is from that. It is 0 if one key has all the weight, and largest, ln n, if all n
# weights are equal (Shannon 1948, section 6). With the natural logarithm its unit is the nat.
#
# $$H(p) = -\sum_j p_j \ln p_j, \qquad \text{with } 0 \cdot \ln 0 = 0$$
#
# For (½, ½, 0) that is −2 · ½ ln ½ = ln 2 ≈ 0.693, the entropy of a fair coin. The rule for 0 has to be written into
# the code: NumPy's own `0 * np.log(0)` is NaN.

# %% [markdown]
# @exercise row_entropy
#
# `weights` (..., n), each row summing to 1 → (...)
#
# Any leading dimensions; a single row gives a single number.

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
# How does the mean entropy depend on d_k? We take 200 random queries for each width, each with eight random keys of its
# own.

# %% role="given"
def random_scores(d_k: int, n_rows: int, rng: np.random.Generator, n_keys: int = 8) -> np.ndarray:
    """Unscaled scores (n_rows, n_keys) of standard-normal queries, each with keys of its own."""
    q, keys = rng.standard_normal((n_rows, 1, d_k)), rng.standard_normal((n_rows, n_keys, d_k))
    return (q * keys).sum(axis=-1)

widths = 2 ** np.arange(13)  # of d_k: 1 to 4096

# %% role="payoff" exercise="row_entropy"
if passed(row_entropy):
    entropies = {"divided by √d_k": [], "unscaled": []}
    for d_k in widths:
        scores = random_scores(int(d_k), 200, np.random.default_rng(2))
        entropies["divided by √d_k"].append(row_entropy(softmax(scores / np.sqrt(d_k))).mean())
        entropies["unscaled"].append(row_entropy(softmax(scores)).mean())
    flat, falling = entropies["divided by √d_k"], entropies["unscaled"]
    assert max(flat[4:]) - min(flat[4:]) < 0.1 and falling[-1] < 0.1
    title = "Without the scale the entropy falls toward 0"
    figures.why_scale.curves(widths, entropies, title, "mean entropy (nats)", top=np.log(8))

# %% [markdown]
# At d_k = 4096 the mean entropy is {{ falling[-1]:.2f }} nats without the scale and {{ flat[-1]:.2f }} nats with it.
# An unscaled wide head has made its choices before it has learned anything.
#
# ## How much gradient is left
#
# That would do no harm if training could still change those choices. Training changes w_q and w_k, and with them the
# queries and keys. So we ask how much a row's weights change when its query changes a little: ∂p/∂q. The chain rule
# splits it into two factors:
#
# $$p = \operatorname{softmax}(s), \quad s = \text{scale} \cdot K q \qquad\Rightarrow\qquad
# \frac{\partial p}{\partial q} = J \cdot \frac{\partial s}{\partial q}$$
#
# The first factor is the **Jacobian** of softmax, the matrix of all its derivatives: entry (i, j) is ∂p_i/∂s_j. A score
# that rises lifts its own weight at the rate p_i(1 − p_i), and takes p_i p_j from each other weight j (lesson 02, Further):
#
# $$J = \operatorname{diag}(p) - p\,p^\top$$

# %% role="given"
def J(p):
    """The Jacobian of softmax, (n, n), at the weights p (n,)."""
    return np.diag(p) - np.outer(p, p)

# %% role="demo" tags=["nbval-check-output"]
print(J(np.array([0.5, 0.5])))
print(J(np.array([1.0, 0.0])))

# %% [markdown]
# For the saturated row every entry is 0: a small change of the scores moves no weight. This is a **vanishing
# gradient**: a derivative so small that nothing before it in the chain can learn. The paper suspects it here. But J
# stops at the scores; w_q, which learns, lies behind the query.

# %% [markdown]
# @exercise query_gradient_norm
#
# `q` (d,), `keys` (n, d), `scale` a positive float → a float
#
# How large is ∂p/∂q, an (n, d) matrix, for p = softmax(scale · keys q)? Return its Frobenius norm, the root of the sum
# of its squared entries. The result should be right for scores of ±10,000, and for very small or large entries of q and
# the keys, which rules out a finite difference.
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
# *typical* query (the median) get the most gradient? And which has the largest *mean*?
#
# @answer
#
# The typical query gets the most with √d_k. The largest mean belongs to no division at all. Unscaled rows are mostly
# saturated and pass next to nothing. But ∂s/∂q is 64 times as large as with √d_k, and the few rows whose two largest
# scores nearly tie pass up to half of it.
#
# @wrong
#
# "d_k, because nothing saturates there" forgets ∂s/∂q: the arrow of a key of 4096 numbers is about 64 long, and 64/4096 is only 1/64.
# "No division comes last in both" expects mean and median to agree, as they need not where rows differ.

# %% [markdown]
# Here is the measurement that the paper left out: 2,000 random queries for each width, your norm for each of the three
# scales. It takes some seconds.

# %% role="given"
divisors = {"unscaled": lambda d_k: 1.0, "divided by √d_k": np.sqrt, "divided by d_k": lambda d_k: d_k}

# %% role="payoff" exercise="query_gradient_norm"
if passed(query_gradient_norm):
    some_widths = 4 ** np.arange(1, 7)  # 4 to 4096
    reached = {name: np.empty((len(some_widths), 2000)) for name in divisors}
    rng = np.random.default_rng(4)
    for at, d_k in enumerate(map(int, some_widths)):
        for row in range(2000):
            q, keys = rng.standard_normal(d_k), rng.standard_normal((16, d_k))
            for name, divisor in divisors.items():
                reached[name][at, row] = query_gradient_norm(q, keys, 1 / divisor(d_k))
    mean = {name: norms.mean(axis=1) for name, norms in reached.items()}
    median = {name: np.median(norms, axis=1) for name, norms in reached.items()}
    assert 0.25 < min(median["divided by √d_k"]) and max(mean["divided by √d_k"]) < 0.35
    share = (reached["unscaled"] > 0.3).mean(axis=1)
    spread = {name: np.divide(*np.percentile(norms[2], [90, 10])) for name, norms in reached.items()}  # at d_k = 64
    assert spread["unscaled"] > 100 > 2 > spread["divided by √d_k"]
    assert 1 < min(mean["unscaled"][1:]) and max(mean["unscaled"]) < 2
    assert median["unscaled"][-1] < 1e-6 and mean["divided by d_k"][-1] < 0.005
    figures.why_scale.means_and_medians(some_widths, reached)

# %% [markdown]
# - **Divided by √d_k:** the norm is about 0.3 at every width, in the mean and in the median.
# - **Divided by d_k:** no row is saturated, but the factor 1/d_k makes every gradient small. At 4096 the norm is
#   {{ mean["divided by d_k"][-1]:.4f }}.
# - **Unscaled:** the median falls to {{ median["unscaled"][-1]:.0e }}, while the mean levels off between 1 and 2. Ever
#   fewer rows make up this mean: the norm exceeds 0.3 in {{ 100 * share[1]:.0f; it > 75 }} % of them at d_k = 16,
#   in {{ 100 * share[-1]:.0f; it < 20 }} % at 4096. So "extremely small gradients" is half the story.
#
# The other half is the band. At d_k = 64 the typical unscaled row passes enough. But of ten rows, the one that passes most gets about
# {{ spread["unscaled"]:.0f; it > 100 }} times as much as the one that passes least (with √d_k,
# {{ spread["divided by √d_k"]:.1f; it < 2 }} times).
#
# Why the root? It keeps the spread of the scores the same at every width, and so J. In ∂s/∂q, the second factor, it
# divides out the length of a key's arrow, which grows like √d_k. All this is *before training*.
#
# ## What training makes of the start
#
# Does a head learn worse without the scale? We train a small one to retrieve: each of 64 tokens has to find one of 16
# entries, chosen for it at random, and return its value. Queries come from the tokens by a learned w_q, keys from the
# entries by a learned w_k. The values are fixed. The **loss**, the number that training makes small, is the mean squared
# difference from the wanted values.
#
# Training begins with random w_q and w_k, the **initialization**. Each step moves them a little against the gradient of
# the loss, and the **learning rate** sets how far. An **optimizer** is a rule for such steps. Plain **gradient
# descent** moves by learning rate times gradient. **Adam** (Kingma and Ba 2015) first divides each number of a gradient by its own
# recent size, so multiplying all gradients by ten changes next to nothing.
#
# We compare four starts. The fourth has no scale. Its initial w_q and w_k are smaller instead, so that its scores, too,
# begin with a standard deviation of 1.

# %% role="given"
starts = {  # name -> what the scores are multiplied with, and what the initial w_q and w_k are multiplied with
    "unscaled": lambda d_k: (1, 1),
    "divided by √d_k": lambda d_k: (d_k**-0.5, 1),
    "divided by d_k": lambda d_k: (1 / d_k, 1),
    "unscaled, smaller initialization": lambda d_k: (1, d_k**-0.25),
}

# %% [markdown]
# The folded functions draw the task for five seeds, take 300 steps with each of eight learning rates, and compute the
# gradients by the chain rule (lesson 13 derives them).

# %% role="given" tags=["hide-input"]
# Draws the task, and trains a head with every learning rate.
def draw_task(seed: int, d_k: int, gain: float) -> tuple[np.ndarray, ...]:
    """Tokens, entries, values, the values wanted, and the initial w_q and w_k."""
    rng = np.random.default_rng(seed)
    x, entries, values = (rng.standard_normal(shape) for shape in ((64, 32), (16, 32), (16, 8)))
    w_q, w_k = (gain * rng.standard_normal((32, d_k)) / np.sqrt(32) for _ in range(2))
    return x, entries, values, values[rng.integers(16, size=64)], w_q, w_k


def train_heads(scale: float, gain: float, d_k: int, rates: np.ndarray, optimizer: str, seeds=range(5), steps=300):
    """The loss after training, (seeds, rates): a head for each draw of the task and each learning rate, all at once."""
    drawn = (np.stack(arrays)[:, None] for arrays in zip(*(draw_task(seed, d_k, gain) for seed in seeds)))
    x, entries, values, wanted, *weights = (array.astype(np.float32) for array in drawn)
    weights = [np.repeat(w, len(rates), axis=1) for w in weights]
    firsts, seconds = [np.zeros_like(w) for w in weights], [np.zeros_like(w) for w in weights]
    rate, scale = rates.astype(np.float32)[:, None, None], np.float32(scale)
    with np.errstate(all="ignore"):  # rates that are too large overflow; they lose
        for step in range(1, steps + 1):
            q, k = x @ weights[0], entries @ weights[1]
            p = softmax(scale * (q @ k.swapaxes(-1, -2)))
            error = p @ values - wanted
            grad_p = error @ values.swapaxes(-1, -2) * np.float32(2 / (64 * 8))  # backward: from the loss to the weights,
            grad_scores = scale * p * (grad_p - (p * grad_p).sum(axis=-1, keepdims=True))  # through J of each row,
            grads = x.swapaxes(-1, -2) @ (grad_scores @ k), entries.swapaxes(-1, -2) @ (grad_scores.swapaxes(-1, -2) @ q)
            for w, grad, first, second in zip(weights, grads, firsts, seconds):
                if optimizer == "Adam":
                    first += np.float32(0.1) * (grad - first)
                    second += np.float32(0.001) * (grad**2 - second)
                    size = np.sqrt(second / np.float32(1 - 0.999**step)) + np.float32(1e-8)
                    grad = first / np.float32(1 - 0.9**step) / size
                w -= rate * grad
        p = softmax(scale * ((x @ weights[0]) @ (entries @ weights[1]).swapaxes(-1, -2)))
        return np.nan_to_num(((p @ values - wanted) ** 2).mean(axis=(-1, -2)), nan=np.inf)

# %% [markdown]
# @predict
#
# Each head gets the best of eight learning rates. At d_k = 64, which of the four heads are left far behind?
#
# - **A** All but the one divided by √d_k.
# - **B** Only the unscaled one with an ordinary initialization.
# - **C** None, since each has the learning rate that suits it best.
#
# @answer
#
# **B.** Divided by d_k, every gradient is small *by the same factor*, and a larger learning rate makes up for it. A
# smaller initialization keeps rows from saturating as a scale does. In the unscaled head the rows' gradients differ
# too much, as the band showed, and none of the eight rates suits all.
#
# @wrong
#
# A takes √d_k for the only way to small scores. C forgets that a learning rate multiplies all rows alike.

# %% role="demo"
rates = {"gradient descent": 10.0 ** np.arange(-1.5, 2.1, 0.5), "Adam": 10.0 ** np.arange(-4, -0.4, 0.5)}
ends = {}
for optimizer, tried in rates.items():
    for name, start in starts.items():
        for d_k in (4, 16, 64):
            losses = train_heads(*start(d_k), d_k, tried, optimizer)  # (five seeds, eight learning rates)
            best = losses.mean(axis=0).argmin()
            ends[optimizer, name, d_k] = tried[best], losses[:, best]
figures.why_scale.losses_of_seeds(ends)

# %% role="demo" tags=["hide-input"]
def ends_of(name: str, optimizer: str, d_k: int) -> np.ndarray:
    """The losses of the five seeds."""
    return ends[optimizer, name, d_k][1]

runs = [(optimizer, d_k) for optimizer in rates for d_k in (4, 16, 64)]
behind = sum(
    (ends_of("unscaled", optimizer, 64) > 2 * np.max([ends_of(name, optimizer, 64) for name in starts if name != "unscaled"], axis=0)).sum()
    for optimizer in rates
)
narrow = max(ends_of("unscaled", o, 4).mean() / ends_of("divided by √d_k", o, 4).mean() for o in rates)
lower = sum((ends_of("divided by d_k", *run) < ends_of("divided by √d_k", *run)).sum() for run in runs)
small = {o: train_heads(64**-0.5, 64**-0.25, 64, tried, o).mean(axis=0).min() for o, tried in rates.items()}
as_small = [small[o] / ends_of("divided by d_k", o, 64).mean() for o in rates]
alike = [ends_of("unscaled, smaller initialization", *run).mean() / ends_of("divided by √d_k", *run).mean() for run in runs]
faster = ends["gradient descent", "divided by d_k", 64][0] / ends["gradient descent", "divided by √d_k", 64][0]
assert max(alike) < 1.5 and min(alike) > 0.7

# %% [markdown]
# Dots are seeds, bars their means. In this one small task the folded cell counts what held:
#
# - **The unscaled head falls behind as it gets wider.** At d_k = 64 its loss is more than twice that of each of the
#   other three in {{ behind; it >= 9 }} of 10 runs (five seeds, two optimizers). At d_k = 4 its mean is only
#   {{ narrow:.1f; 1 < it < 1.8 }} times that of √d_k.
# - **A smaller initialization does the same work.** At every width and with both optimizers its mean loss is within
#   {{ 100 * max(abs(ratio - 1) for ratio in alike):.0f; it < 50 }} % of that of √d_k. The released code of T5 has no
#   scale and starts with a smaller w_q (Raffel et al. 2020).
# - **Dividing by d_k ends lower than dividing by √d_k** in {{ lower; it >= 22 }} of 30 runs. (Plain descent needs
#   another learning rate for it: at d_k = 64, {{ faster:.0f; 3 <= it <= 33 }} times that of √d_k.)
# - **Here the smaller start helps, not the divisor.** We divided by √d_k once more, with w_q and w_k so much smaller that
#   scores begin as small as divided by d_k. At d_k = 64 the loss then ends within
#   {{ 100 * max(abs(ratio - 1) for ratio in as_small):.0f; it < 30 }} % of that of d_k.
#
# So what matters is that scores do not **start** large. √d_k guarantees that at every width, and most models keep it. Something
# smaller often works as well, and worked better here. **μP**, a recipe for carrying settings from narrow models to wide ones,
# divides by d_k, because training correlates queries with keys, and then dot products grow like d_k (Yang et al. 2022, section 4).

# %% [markdown]
# ## Further: the Jacobian on its own
#
# The paper's sentence is about J alone. Measured there, dividing by d_k looks almost as good as dividing by √d_k. You
# write that measure, and see in float32 how exactly a gradient can vanish.

# %% [markdown]
# The Frobenius norm of J is largest, ½, for two keys that share the weight equally: four entries of ±¼. Saturation
# brings it near 0.

# %% [markdown]
# @exercise softmax_gradient_norm
#
# `scores` (..., n) → (...)
#
# Stable: the scores (10,000, 0) give 0 and not NaN. A finite difference is not accepted. `J` above takes one
# row; here there are any leading dimensions.

# %% role="exercise" exercise="softmax_gradient_norm"
def softmax_gradient_norm(scores: np.ndarray) -> np.ndarray:
    """Frobenius norm of the softmax Jacobian at each row of scores.

    scores: (..., n). Returns: (...). Near 0 where a row is saturated, at most ½.
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
    norms = {name: [] for name in divisors}
    for d_k in widths:
        scores = random_scores(int(d_k), 200, np.random.default_rng(2), n_keys=16)
        for name, divisor in divisors.items():
            norms[name].append(softmax_gradient_norm(scores / divisor(d_k)).mean())
    assert norms["unscaled"][-1] < 0.06 and norms["divided by d_k"][-1] > 0.2
    title = "At the scores, dividing by d_k looks almost as good"
    figures.why_scale.curves(widths, norms, title, "mean norm of J, 16 keys")

# %% [markdown]
# At d_k = 4096 the norm is {{ norms["divided by d_k"][-1]:.2f }} divided by d_k and
# {{ norms["divided by √d_k"][-1]:.2f }} divided by √d_k. Only at the query, one factor further, does the difference show.
#
# *Dive into Deep Learning* (Zhang et al. 2023, section 11.1) says of softmax that "its gradient never vanishes". In exact
# arithmetic that is true: no weight is ever 0 or 1. Models compute in float32 or less.

# %% role="demo"
scores = random_scores(4096, 300, np.random.default_rng(6), n_keys=16).astype(np.float32)
stuck = {}
for name, divisor in (("unscaled", 1), ("divided by √d_k", 64)):
    top = softmax(scores / np.float32(divisor)).max(axis=-1)
    stuck[name] = np.mean(top * (1 - top) == 0)  # its entry on the diagonal of J
    print(f"{name:15} in {stuck[name]:.0%} of the rows the largest weight's derivative by its own score is exactly 0")
assert stuck["unscaled"] > 0.5 and stuck["divided by √d_k"] == 0

# %% [markdown]
# In more than half of the unscaled rows the largest weight p is exactly 1 in float32, so p(1 − p) is exactly 0. The other
# entries of J in such a row are no larger than the total weight of the remaining keys, which is below 10⁻⁶.

# %% [markdown]
# ## Further: a heat map that means nothing
#
# Tokens drawn with `np.random.rand` give a heat map with a striking column. This part shows where the column comes from,
# for anyone who has drawn such a map.

# %% [markdown]
# All vectors above were standard normal. Here tokens and projections are uniform between 0 and 1, so all are positive.

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
# the length of the key, so nearly all queries share one favorite, scaled or not. It looks like a choice that attention
# made, but it has almost nothing to do with the query. The right map means nothing either, since nothing was trained.

# %% [markdown]
# ## What we keep
#
# - Dot products of vectors whose components are independent, of mean 0 and variance 1, have a standard deviation of √d_k, because
#   variances add up. Dividing by √d_k brings it back to 1 at every width.
# - With large scores softmax saturates before anything is learned. Some rows then pass hundreds of times the gradient of
#   others, and in very wide heads the typical row passes next to none. So look at the spread, and not at a mean alone.
# - What matters is that scores do not *start* large. √d_k guarantees it at every width; a smaller initialization can do the same
#   work, and μP divides by d_k.
# - Measure nearer to what learns: at the query, not at the scores.
#
# | what | shape |
# |---|---|
# | scores, weights | (..., n) |
# | entropy | (...) |
# | J = ∂p/∂scores | (n, n) |
# | ∂p/∂q = J · scale · keys | (n, d) |
#
# **Sources.** Vaswani et al. 2017, *Attention is all you need*, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762),
# section 3.2.1 with footnote 4. Shannon 1948, *A Mathematical Theory of Communication*, section 6. Kingma and Ba 2015,
# *Adam*, [arXiv:1412.6980](https://arxiv.org/abs/1412.6980). Yang et al. 2022, *Tensor Programs V*,
# [arXiv:2203.03466](https://arxiv.org/abs/2203.03466) (μP). Raffel et al. 2020, *T5*,
# [arXiv:1910.10683](https://arxiv.org/abs/1910.10683). Zhang, Lipton, Li and Smola 2023, *Dive into Deep Learning*,
# [section 11.1](https://d2l.ai/chapter_attention-mechanisms-and-transformers/queries-keys-values.html).

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# To take one sentence of the paper that begins with "We suspect" and test it. The learner meets a derivation that holds
# (variances add up), a mean that hides what its median shows, and an experiment whose result is narrower than the usual
# story: the scale sets the start, and other means do that as well. What stays is a habit: measure at what learns, over
# several seeds, and look at more than the mean.
#
# ## Cut for 60 minutes
#
# The slider, the derivation at the board, `dot_product_std`, then straight to the chain rule and `query_gradient_norm`
# with its figure. Tell entropy in two sentences. Show the figure of the trained heads without its code.
#
# ## Cut for 90 minutes
#
# The whole core. Both further parts are homework. Let the room vote on the trained heads before the cell runs; it takes
# about a quarter of a minute.
#
# ## Mistakes to expect
#
# - dot_product_std WS15: What is the unit of a variance, if scores were meters?
# - dot_product_std WS8: If I pass the same generator state twice, do I get the same number twice?
# - row_entropy WS9: What does your line give for a weight of exactly 0, and what should it add?
# - row_entropy WS12: How many numbers should come back for three rows?
# - softmax_gradient_norm SX46: When one score rises, do only its own weight and nothing else change?
# - softmax_gradient_norm SM5: What is exp(1000) to NumPy?
# - query_gradient_norm QG4: At which quantity does your derivative end, and is that the one that learns?
# - query_gradient_norm QG1: The scale multiplies the scores. What does it do to their derivative?
#
# ## To discuss
#
# **Unscaled, the mean of ‖∂p/∂q‖ is the largest of the three. Why does the head not learn better?** A good answer separates typical rows
# from rare ones, says that one learning rate has to suit all rows, and points to the median.
#
# **Dividing by d_k ends lower in most runs, and a smaller initialization needs no scale. Is √d_k a matter of taste?** A good answer
# separates the start from what follows. √d_k gives rows that are neither saturated nor all alike at initialization, at every
# width. After that the best scale depends on the optimizer and the width, and μP divides by d_k. Adam hides a factor common
# to all gradients, but no optimizer revives a gradient that is 0. And the experiment is one small task with 300 steps.
#
# ## On paper
#
# Two keys, (1, 0) and (0, 1), and the query (a, a). Compute p, J and ∂p/∂q for scale 1. Then for the query (a + 10, a). What
# of the two results depends on a?
#
# *Solution.* For (a, a) both scores are a, p = (½, ½), J = ¼ · [[1, −1], [−1, 1]], and since the keys form the identity ∂p/∂q = J,
# with norm ½. For (a + 10, a) the scores differ by 10, p ≈ (0.99995, 0.00005), each entry of J has size p₀ p₁ ≈ 0.000045, and
# the norm is 0.00009. Neither depends on a: softmax sees differences only.
