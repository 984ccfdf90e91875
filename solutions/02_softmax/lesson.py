# %% [markdown]
# # 02 · Softmax: from scores to weights
#
# **Two keys score 1000 each, so each should get half the weight. The textbook formula, typed as it stands, gives NaN. Why?**
#
# **Before this lesson:** lesson 01, the function eˣ, and `axis` and `keepdims` in NumPy. The further parts at the end also use
# logarithms; they explain derivatives where they need them.
#
# In lesson 01 softmax turned scores into weights. All other steps of attention are made of products and sums. Softmax is the only
# step in which tokens compete: what one of them gains, the others lose. It decides which tokens count.
#
# First we ask why it uses exponentials. Then you write it so that no scores break it, and make its choice sharper or
# flatter. Finally you find out whether somebody else's softmax can be trusted.

# %% role="given"
import numpy as np

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="demo"
figures.machine.draw(lit=("scores", "weights"), title="From scores to weights")

# %% [markdown]
# ## Why exponentials?
#
# Scores can be any numbers, negative ones included. Weights have to be positive and sum to 1. Here are four ways to get from the
# scores x to weights:
#
# - divide by the sum: x / Σx
# - square first: x² / Σx²
# - give everything to the largest score (**argmax**, the place of the maximum)
# - take the exponential first: eˣ / Σeˣ
#
# We try them on the scores (2, 1, 0, −1).

# %% [markdown]
# @predict
#
# A good way gives no negative weight, gives a larger score a larger weight, and moves the weights a little when a score moves a
# little. What is wrong with each of the first three?
#
# @answer
#
# Dividing by the sum keeps −1 negative. (And for scores that sum to 0 it divides by 0.) Squaring makes 1 and −1 equal, so the
# order is lost. Argmax stays where it is while a score moves, then jumps, so there is nothing to learn from. The exponential
# has none of these faults: it is positive everywhere, it rises everywhere, and it is smooth.
#
# @wrong
#
# The squares look harmless as long as all scores are positive: compare 1 and −1. Argmax is the staircase of lesson 00.

# %% role="demo"
row = np.array([2.0, 1.0, 0.0, -1.0])
ways = {
    "x / Σx": row / row.sum(),
    "x² / Σx²": row**2 / (row**2).sum(),
    "argmax": (row == row.max()) * 1.0,
    "eˣ / Σeˣ": np.exp(row) / np.exp(row).sum(),
}
assert ways["x / Σx"].min() < 0 and ways["x² / Σx²"][1] == ways["x² / Σx²"][3]
figures.softmax.four_ways(row, ways)

# %% [markdown]
# The fourth way is **softmax**: e to the power of each score, divided by the sum of all of them. (The name is Bridle's, 1990;
# Goodfellow, Bengio and Courville 2016, section 6.2.2.3.)
#
# $$\operatorname{softmax}(x)_i = \frac{e^{x_i}}{\sum_j e^{x_j}}$$
#
# What does a lead of one point bring? The sum cancels in the ratio of two weights:
#
# $$\frac{\operatorname{softmax}(x)_i}{\operatorname{softmax}(x)_j} = \frac{e^{x_i}}{e^{x_j}} = e^{x_i - x_j}$$
#
# So the ratio depends on the *difference* of the two scores and on nothing else. Only exponentials do that, to any base; another
# base is only another temperature (below). A score that is one point higher always has e ≈ 2.7 times the weight.

# %% role="demo"
figures.softmax.equal_steps(row, np.exp(row))

# %% [markdown]
# One consequence will save us soon. Adding the same number to all scores changes no difference, so it changes no weight.

# %% role="demo" tags=["nbval-check-output"]
row = np.array([1.0, 0.0, 2.0])
for shift in (0, 100, -100):
    grown = np.exp(row + shift)
    print(f"{shift:5}", np.round(grown / grown.sum(), 4))

# %% [markdown]
# ## Typed as it stands, it breaks
#
# That is the formula on paper. Now we type it for the scores (1000, 1000). Both weights should be ½.

# %% role="demo" tags=["nbval-check-output"]
with np.errstate(over="ignore", invalid="ignore"):
    grown = np.exp(np.array([1000.0, 1000.0]))
    print("exp:", grown, " weights:", grown / grown.sum())
    grown = np.exp(np.array([88.0, 88.0, 88.0], np.float32))
    print("three scores of 88 in float32: exp", grown, " weights:", grown / grown.sum())
for kind in (np.float64, np.float32):
    print(f"exp is finite up to {np.log(np.finfo(kind).max):.1f} in {np.dtype(kind).name}")

# %% [markdown]
# e¹⁰⁰⁰ is too large for a float and becomes ∞: an **overflow**. Then ∞ divided by ∞ is NaN, "not a number". In float32 a score
# above 88.7 is enough; three scores of 88 overflow in their sum, and each gets the weight 0, without a NaN to warn you. Such
# scores are not exotic: if all 64 numbers of a query and of a key are 4, their score is 64 · 16 / √64 = 128.
#
# But we may add any number to all scores, so we may subtract *the largest score* from all of them. Then the largest exponent is
# 0, and nothing overflows. The sum contains e⁰ = 1, so we never divide by 0 either (Goodfellow, Bengio and Courville 2016,
# section 4.1). A softmax written like this is called numerically **stable**: it is right for every size of score.

# %% [markdown]
# ## One sum for each row
#
# So much for one row. Attention has a row of scores for each query, and the article *Explained: attention mechanism in AI*
# normalizes the whole matrix at once: `np.exp(s) / np.sum(np.exp(s))`.

# %% [markdown]
# @predict
#
# Three queries, three keys, nine scores, and this formula. What do the weights of each query sum to?
#
# - **A** 1, as they should
# - **B** ⅓ each
# - **C** numbers that differ from query to query and sum to 1 together
#
# @answer
#
# **C**. All nine exponentials are divided by one sum, so the three queries share a single unit. A query with larger scores
# takes more of it. In attention each query has a unit of its own, whatever the other queries are doing.
#
# @wrong
#
# **A** would need three sums, and `np.sum` without an axis adds up everything. **B** would be right if all queries had equally
# large exponentials; nothing makes them so.

# %% role="demo" tags=["nbval-check-output"]
table = np.array([[2.0, 0.5, -1.0], [0.0, 1.5, 1.0], [3.0, 2.0, -0.5]])  # scores: a row for each query
whole = np.exp(table) / np.sum(np.exp(table))
print("rows sum to", np.round(whole.sum(axis=1), 3), "- all together", whole.sum().round(3))

# %% [markdown]
# The sums have to be taken **along an axis**, and the axis has to be kept (`keepdims=True`), so that each row is
# divided by its own sum. If you forget `keepdims` and there are as many queries as keys, NumPy raises no error. Say the
# exponentials are [[1, 1], [1, 3]]. Their rows sum to 2 and 4. Without the kept axis NumPy lines these sums up with the *columns*:
# it divides the first column by 2 and the second by 4. So the first row becomes (½, ¼), and it should be (½, ½).

# %% [markdown]
# @exercise softmax
#
# `x` with any number of dimensions, `axis` one integer → the same shape, summing to 1 along `axis`
#
# Finite for entries of ±10000. For float32 it returns float32, and `x` is left as it is. An entry of −∞ gets the weight 0,
# which is how lesson 06 hides keys (never all −∞ along `axis`). Write it from scratch, without `scipy.special.softmax`,
# `torch.softmax` and the like.

# %% role="exercise" exercise="softmax"
def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Weights that sum to 1 along an axis, in the order of x.

    x: any shape; entries of −∞ get weight 0. Returns: the same shape; float32 for float32.
    """
    # region solution
    top = x.max(axis=axis, keepdims=True)  # then no exponent is above 0, and nothing overflows
    grown = np.exp(x - top)
    total = grown.sum(axis=axis, keepdims=True)
    return grown / total
    # endregion

# %% role="check" exercise="softmax"
check(softmax)

# %% role="payoff" exercise="softmax"
if passed(softmax):
    along = {"axis=1": softmax(table, 1), "axis=0": softmax(table, 0), "no axis": whole}
    assert np.allclose(along["axis=1"].sum(axis=1), 1) and np.allclose(along["axis=0"].sum(axis=0), 1)
    figures.softmax.axis_comparison(along)

# %% [markdown]
# The same nine scores give three different maps. The sums are written next to each row and below each column. In
# attention softmax runs along the keys, the last axis. A map made along the wrong axis looks just as convincing; only
# the sums give it away.

# %% [markdown]
# ## One maximum for each row
#
# The sum needs an axis. Does the maximum need one, too? Any number may be subtracted from a row, so the largest of the whole array,
# `x.max()`, looks good enough. We try it on two rows that lie far apart.

# %% role="demo" tags=["nbval-check-output"]
rows = np.array([[0.0, 1.0], [-2000.0, -2001.0]])
with np.errstate(invalid="ignore"):
    grown = np.exp(rows - rows.max())
    print(grown / grown.sum(axis=1, keepdims=True))

# %% [markdown]
# The first row is right. In the second, the exponents are −2001 and −2002. Their exponentials are too small for any float and are
# rounded to 0, which is called **underflow**, and 0/0 is NaN. Each row needs its *own* maximum. A test on rows of similar size
# would never have noticed.

# %% [markdown]
# ## Sharper or flatter: temperature
#
# A score that is one point ahead gets 2.7 times the weight. What if we want a softmax that is more cautious, or more determined?
# We divide all scores by a positive number first. This number is the **temperature**; we write it τ, the Greek letter tau. One
# point ahead then means e^(1/τ) times the weight.

# %% [markdown]
# @predict
#
# What happens to the weights as τ → 0, and what as τ → ∞?
#
# @answer
#
# As τ → 0, all differences grow without bound, and the largest score takes all the weight, as in the hard
# look-up of lesson 00, except that scores tied for the lead share it. As τ → ∞, all differences shrink to 0 and all weights become equal:
# the plain average.
#
# @wrong
#
# The other way around is what *multiplying* by τ would do. We divide, so a small τ makes large differences. The name comes from
# physics, where a cold system settles into its state of lowest energy.

# %% [markdown]
# @exercise softmax_with_temperature
#
# `x` as above, `temperature` a number, `axis` → softmax(x / temperature); a temperature of 0 or below raises ValueError
#
# Temperatures go from 0.001 to 10000. You can use your own `softmax` or do without it.

# %% role="exercise" exercise="softmax_with_temperature"
def softmax_with_temperature(x: np.ndarray, temperature: float, axis: int = -1) -> np.ndarray:
    """Softmax of x / temperature: sharper below 1, flatter above.

    x: any shape. Returns: the same shape. Raises: ValueError for a temperature of 0 or below.
    """
    # region solution
    if temperature <= 0:
        raise ValueError(f"the temperature must be positive; got {temperature}")
    scaled = x / temperature
    top = scaled.max(axis=axis, keepdims=True)
    grown = np.exp(scaled - top)
    total = grown.sum(axis=axis, keepdims=True)
    return grown / total
    # endregion

# %% role="check" exercise="softmax_with_temperature"
check(softmax_with_temperature)

# %% role="payoff" exercise="softmax_with_temperature"
if passed(softmax_with_temperature):
    row = np.array([2.0, 1.5, 0.5, 0.0, -1.0])
    at_temperature = {tau: softmax_with_temperature(row, tau) for tau in (0.1, 0.5, 1.0, 5.0)}
    assert at_temperature[0.1].max() > 0.99 and at_temperature[5.0].max() < 0.3
    figures.softmax.temperatures(row, at_temperature)

# %% [markdown]
# Temperature is best known from language models that write text. The model gives a score to every token that could come next; a
# model's scores before softmax are called **logits**. Softmax turns them into a **probability distribution**: numbers from 0 to 1
# that sum to 1. The next token is then drawn at random with these probabilities, which is called **sampling**. Suppose the text so
# far is *… because it was too*, and five words get the logits below.

# %% role="given"
words = np.array(["tired", "wide", "busy", "dark", "purple"])
word_scores = np.array([3.0, 2.3, 1.8, 0.9, -1.5])  # designed: how well each word continues the sentence

# %% role="payoff" exercise="softmax_with_temperature" tags=["nbval-check-output"]
if passed(softmax_with_temperature):
    for tau in (0.2, 1.0, 4.0):
        weights = softmax_with_temperature(word_scores, tau)
        drawn = np.random.default_rng(0).choice(words, size=8, p=weights)
        print(f"temperature {tau}: tired {weights[0]:.2f}, purple {weights[4]:.1e}   " + " ".join(drawn))
    coldest, plain, hottest = (softmax_with_temperature(word_scores, tau)[4] for tau in (0.2, 1.0, 4.0))
    assert coldest < 1e-9 and plain < 0.01 and hottest > 0.08

# %% [markdown]
# The colder the model, the more often it draws its favorite word; the hotter, the closer it comes to drawing evenly. *purple*
# has less than one chance in a billion at τ = 0.2, and {{ 100 * hottest:.0f; 8 < it < 12 }} in a hundred at τ = 4. Another seed
# draws other words: change it, or the temperatures, and run the cell again.
#
# Lesson 00's sharpness was 1/τ. In attention the factor 1/√d_k (Vaswani et al. 2017, section 3.2.1) means τ = √d_k; lesson 04 asks
# why. If your notebook can show widgets, a slider moves the temperature.

# %% role="payoff" exercise="softmax_with_temperature"
if passed(softmax_with_temperature):
    figures.softmax.temperature_slider(softmax_with_temperature)

# %% [markdown]
# ## Would you notice?
#
# Each wrong softmax of this lesson was right for *some* scores. Without a shift, all small scores are fine. With one sum for the
# whole table, a single row is fine. With one maximum, rows of similar size are fine. A test is only worth something if its scores
# show the mistake. Now you write such a test. It gets a stranger's softmax and has to say whether it can be trusted, and nobody
# tells it what may be wrong.

# %% [markdown]
# @exercise find_failure
#
# `candidate`, a function of one array `scores` (m, n) that should return the softmax of each row → an array of scores for
# which it is wrong, or `None` where it is right
#
# - *Wrong* means: it raises, or returns another shape, or a NaN, or numbers that differ from the softmax by more than 1e-6.
# - The array has m ≥ 1 rows and n ≥ 1 columns, at most 10,000 entries, and finite scores up to ±10,000.
# - The candidate may be called 1,000 times. It gives the same answer each time and does not change its input. Only its
#   numbers count: a result in float32, for example, is right where none is off by more than 1e-6.
#
# You may use your own `softmax`. The candidates that the check tries have mistakes like those of lessons 01 and 02, and some have
# none.

# %% role="exercise" exercise="find_failure"
def find_failure(candidate) -> np.ndarray | None:
    """Scores (m, n) for which a function is not the softmax of each row; None where it is.

    candidate: takes scores (m, n), returns weights (m, n).
    """
    # region solution
    tables = [[[1.0, 2.0, 4.0]], [[0.5, -2.0, 1.0], [3.0, 1.0, -1.0]], [[1.0, 5.0], [2.0, 0.4], [0.0, -3.0]],
              [[1000.0, 0.0, 999.0]], [[-1000.0, -1001.0]], [[0.0, 1.0], [2000.0, 2001.0]], [[0.0, 0.0, 0.0, 9000.0]]]
    for table in tables:
        scores = np.array(table)
        fits = np.exp(scores - scores.max(axis=1, keepdims=True))
        right = fits / fits.sum(axis=1, keepdims=True)
        try:
            out = np.asarray(candidate(scores.copy()))
        except Exception:
            return scores
        wrong = out.shape != right.shape or not np.all(np.abs(out - right) <= 1e-6)  # a comparison with NaN is False
        if wrong:
            return scores
    return None
    # endregion

# %% role="check" exercise="find_failure"
check(find_failure)

# %% role="payoff" exercise="find_failure" tags=["nbval-check-output"]
if passed(find_failure):
    def hidden_slip(scores):
        fits = np.exp(scores - scores.mean(axis=1, keepdims=True))
        return fits / fits.sum(axis=1, keepdims=True)

    print("looks right:", hidden_slip(np.array([[0.0, 1.0], [5.0, 5.0]])).round(3).tolist())
    with np.errstate(all="ignore"):
        found = find_failure(hidden_slip)
        row = found[np.ptp(found, axis=1).argmax()][None]  # of many, the one whose scores lie furthest apart
        print("wrong for:  ", row[0, :6].tolist(), "where it returns", hidden_slip(row)[0, :6].tolist())

# %% [markdown]
# A function that is right on every example you tried may still be wrong. What tells are extreme scores, rows that differ, and
# shapes that are not square, and these seldom come to mind first.

# %% [markdown]
# ## Further: logarithms, and what a prediction costs
#
# For those who want to see how a model is trained with softmax: the logarithm of a weight, the cross entropy that is made of it, and
# the gradient of that loss. Lesson 10 explains the loss again, so no later lesson needs this part.

# %% [markdown]
# ### The logarithm of a weight
#
# A model is judged by the logarithms of its weights, as we shall see. Computing them has a trap. Take the scores (0, −10000) and
# ask for the logarithm of the second weight.

# %% [markdown]
# @predict
#
# What does `np.log` of the second weight give, and what is the true value?
#
# - **A** both are −∞
# - **B** `np.log` gives −∞, the true value is −10000
# - **C** both are −10000
#
# @answer
#
# **B**. The weight is e⁻¹⁰⁰⁰⁰ divided by a sum near 1, and its logarithm is −10000, an ordinary number. But the weight itself
# is smaller than any float and was rounded to 0, and ln 0 is −∞.
#
# @wrong
#
# **A** takes the rounded 0 for the truth, but no finite score gets the weight 0. **C** trusts the computer to keep what a float
# cannot hold.

# %% role="demo" tags=["nbval-check-output"]
grown = np.exp(np.array([0.0, -10000.0]))
with np.errstate(divide="ignore"):
    print("weights:", grown / grown.sum(), " logarithms:", np.log(grown / grown.sum()))

# %% [markdown]
# What was rounded to 0 cannot be brought back. But the logarithm does not need the weight: ln(eᵃ / b) is a − ln b, in which no eᵃ
# has to be computed. It remains to keep the sum b from overflowing, and from becoming 0, before we take its logarithm.

# %% [markdown]
# @exercise log_softmax
#
# `x` as above, `axis` → the same shape: the logarithms of the weights, finite for finite x
#
# log_softmax([0, −10000]) is [0, −10000].

# %% role="exercise" exercise="log_softmax"
def log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Natural logarithms of softmax along an axis, without rounding a weight to 0 on the way.

    x: any shape. Returns: the same shape, finite where x is.
    """
    # region solution
    top = x.max(axis=axis, keepdims=True)
    shifted = x - top
    total = np.exp(shifted).sum(axis=axis, keepdims=True)  # at least 1, so that its logarithm is safe
    logs = shifted - np.log(total)
    return logs
    # endregion

# %% role="check" exercise="log_softmax"
check(log_softmax)

# %% [markdown]
# How wrong is the logarithm taken after softmax? The folded cell compares both ways with the exact value for the scores (0, −a), for
# a up to 1000, in both precisions.

# %% role="payoff" exercise="log_softmax" tags=["hide-input"]
if passed(log_softmax) and passed(softmax):
    gaps = np.arange(0.0, 1001.0)
    exact = -gaps - np.log1p(np.exp(-gaps))
    errors, last = {}, {}
    for kind in ("float32", "float64"):
        pairs = np.stack([0 * gaps, -gaps], axis=-1).astype(kind)
        with np.errstate(divide="ignore"):
            late = np.log(softmax(pairs))[:, 1]
        errors[kind] = np.abs(late - exact), np.abs(log_softmax(pairs)[:, 1] - exact)
        last[kind] = gaps[np.isfinite(late)].max()
    assert all(direct.max() < 1e-3 for _, direct in errors.values())
    figures.softmax.logarithms(gaps, errors)

# %% [markdown]
# Taken after softmax, the logarithm is −∞ for differences beyond about {{ last["float32"]:.0f; 103 <= it < 105 }} in float32 and
# {{ last["float64"]:.0f; 744 <= it < 746 }} in float64. Shortly before, it is already wrong, because the smallest floats
# have few digits left. Yours stays exact to rounding.

# %% [markdown]
# ### The cost of a prediction
#
# A model gives each token that could come next a probability p. Then we see which token really comes next, the **target**. The cost
# of the prediction is the **cross entropy**, the negative logarithm of the probability that the model gave to the target:
#
# $$\text{loss} = -\ln p_{\text{target}}$$
#
# A probability of 1 costs nothing, ½ costs ln 2 = 0.69, 0.1 costs 2.30, and 0.001 costs 6.91. The unit is the **nat**, after the
# natural logarithm. Why a logarithm? The probability of a whole text is the *product* of the probabilities of its tokens, each
# given those before it. The logarithm turns the product into a sum over tokens.

# %% [markdown]
# @exercise cross_entropy
#
# `scores` (..., n), `targets` (...) whole numbers from 0 to n − 1 → losses (...)
#
# One loss for each target; for a single row (n,) the target is 0-d and the result one number. Finite for entries of ±10000.
# Your own functions of this lesson may be used. A ready-made softmax, log-sum-exp (`np.logaddexp.reduce` is one) or cross
# entropy may not.

# %% role="exercise" exercise="cross_entropy"
def cross_entropy(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Minus the logarithm of the weight that each row of scores gives to its target.

    scores: (..., n). targets: (...) integers from 0 to n − 1, 0-d for scores of shape (n,). Returns: (...).
    """
    # region solution
    logs = log_softmax(scores)
    picked = np.take_along_axis(logs, np.expand_dims(targets, -1), axis=-1)  # (..., 1): one of each row
    return -picked[..., 0]
    # endregion

# %% role="check" exercise="cross_entropy"
check(cross_entropy)

# %% role="payoff" exercise="cross_entropy" tags=["nbval-check-output"]
if passed(cross_entropy):
    every_target = np.arange(len(words))
    losses = cross_entropy(np.broadcast_to(word_scores, (5, 5)), every_target)
    for word, loss in zip(words, losses):
        print(f"if the next word is {word:6}: {loss:.2f} nats")

# %% [markdown]
# ### How to pay less: the gradient
#
# To lower the loss, we ask of each score: if it grew a little and all other scores stayed the same, how fast would
# the loss grow? This rate is the **partial derivative** ∂loss/∂x_j. All of them together are the **gradient**.
# Written out, the loss of one row with target t has two terms:
#
# $$\text{loss} = -\ln \frac{e^{x_t}}{\sum_k e^{x_k}} = -x_t + \ln \sum_k e^{x_k}$$
#
# First with numbers. Let the scores be (ln 2, 0, 0) and the target token 1. The exponentials are 2, 1 and 1, their sum
# is 4, so the weights are ½, ¼ and ¼, and the loss is −0 + ln 4 = 1.386.
#
# - The first term, −x₁, falls at the rate 1 when the target's score grows. It does not depend on the other two scores.
# - The second term, ln 4, depends on all three. The derivative of ln u is 1/u times the derivative of u, and here u is
#   the sum, so 1/u is ¼. When a score grows, only its own exponential in the sum grows, at a rate that equals the
#   exponential itself: 2, 1 or 1. So the second term grows at the rate 2/4, 1/4 or 1/4.
#
# | score | from −x₁ | from the sum | together | weight |
# |---|---|---|---|---|
# | x₀ | 0 | 2/4 | **½** | ½ |
# | x₁, the target | −1 | 1/4 | **−¾** | ¼ |
# | x₂ | 0 | 1/4 | **¼** | ¼ |
#
# The next cell finds the same rates without any calculus: it moves one score at a time by a millionth and watches the
# loss.

# %% role="demo" tags=["nbval-check-output"]
x, target, step = np.array([np.log(2), 0.0, 0.0]), 1, 1e-6
for j in range(3):
    moved = x + step * np.eye(3)[j]
    before, after = (np.log(np.exp(z).sum()) - z[target] for z in (x, moved))
    print(f"nudge x{j}: the loss moves by {(after - before) / step:+.4f} per unit")

# %% [markdown]
# For any other row it goes the same way. The first term gives −1 at the target and 0 at the other scores. In the
# second, the exponential of x_j grows at the rate $e^{x_j}$, so the term grows at the rate
# $e^{x_j} / \sum_k e^{x_k}$. You know this number: it is the weight p_j.

# %% [markdown]
# @predict
#
# The weights are (0.7, 0.2, 0.1) and the target is token 1, whose weight is 0.2. What is the gradient? What does a small step
# *against* it do to the three scores?
#
# @answer
#
# (0.7, −0.8, 0.1): the weights p, with 1 subtracted at the target. We call this p − y, where y is 1 at the target and 0
# elsewhere. A step against it raises the target's score and lowers the other two, the one with the larger weight more. If the
# target already had the weight 1, the gradient would be 0: nothing left to learn.
#
# @wrong
#
# If your gradient is positive at the target, you have its negative: the direction in which the loss falls. If yours is 0 at the
# other tokens, you forgot that every score is in the sum: raising one takes weight from the target.

# %% [markdown]
# @exercise cross_entropy_gradient
#
# `scores` (..., n), `targets` (...) → gradient (..., n)
#
# The gradient of the *sum* of all losses with respect to every score. A score belongs to one row, and so to one loss
# only. The same functions are forbidden as in `cross_entropy`. Put the two terms above together into the formula for a
# row before you write it; a finite difference is not accepted.

# %% role="exercise" exercise="cross_entropy_gradient"
def cross_entropy_gradient(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Gradient of the sum of all cross entropies with respect to the scores.

    scores: (..., n). targets: (...) integers. Returns: (..., n).
    """
    # region solution
    weights = softmax(scores)
    one_hot = np.eye(scores.shape[-1])[targets]
    return weights - one_hot
    # endregion

# %% role="check" exercise="cross_entropy_gradient"
check(cross_entropy_gradient)

# %% [markdown]
# With a gradient you can train. Suppose ten readers were asked to continue *… because it was too*, and six said
# *tired*, three *wide* and one *busy* (made up, like the logits). We begin with logits of 0 and take 200 small steps
# against the gradient.

# %% role="payoff" exercise="cross_entropy_gradient" tags=["nbval-check-output"]
if passed(cross_entropy_gradient) and passed(cross_entropy) and passed(softmax):
    said = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 2])
    learned = np.zeros(5)
    for step in range(201):
        each = np.broadcast_to(learned, (10, 5))  # the same five scores before each answer
        if step in (0, 1, 10, 50, 200):
            mean_loss = cross_entropy(each, said).mean()
            print(f"step {step:3}: {mean_loss:.3f} nats, weights", np.round(softmax(learned), 2))
        learned = learned - 0.1 * cross_entropy_gradient(each, said).sum(axis=0)
    floor = -(0.6 * np.log(0.6) + 0.3 * np.log(0.3) + 0.1 * np.log(0.1))
    final = cross_entropy(each, said).mean()
    assert floor < final < floor + 0.03 and np.allclose(softmax(learned)[:3], [0.6, 0.3, 0.1], atol=0.01)

# %% [markdown]
# The weights go to 0.6, 0.3 and 0.1, the shares of the answers, because there the gradients p − y of the ten answers sum to 0.
# The mean loss falls from ln 5 = 1.609 to {{ final:.3f }} nats. It cannot reach 0: the readers disagree, and the best possible
# prediction costs {{ floor:.3f }} nats (the *entropy* of their answers; more on it in lesson 04).

# %% [markdown]
# ## Further: the derivative of softmax
#
# For those who like derivatives: how each weight changes with each score. Lesson 04 gives the result again where it needs it.

# %% [markdown]
# How does each weight p_i change when a score x_j does? These derivatives form a square matrix, the **Jacobian** J, with a row for
# each weight and a column for each score.
#
# We start from ln p_i = x_i − ln Σ e^x and let x_j grow. The first term, x_i, changes at the rate 1 if i = j and does not change
# otherwise. In the second term only $e^{x_j}$ grows. So the logarithm of the sum grows at the rate $e^{x_j} / \sum e^x$, which is p_j, and
# the second term, with its minus sign, changes at the rate −p_j.
#
# Their sum is the rate of ln p_i, which is the rate of p_i divided by p_i. So we multiply by p_i:
#
# $$\frac{\partial p_i}{\partial x_j} = \begin{cases} p_i\,(1 - p_i) & i = j \\ -\,p_i\, p_j & i \neq j \end{cases}$$
#
# For p = (½, ¼, ¼), moving the first score gives (¼, −⅛, −⅛). The next cell confirms it without a formula: it moves scores by a
# millionth and watches the weights.

# %% role="demo" tags=["nbval-check-output"]
x, step = np.log(np.array([0.5, 0.25, 0.25])), 1e-6
for name, moved in (("first score", x + np.array([step, 0, 0])), ("all scores ", x + step)):
    before, after = (np.exp(z) / np.exp(z).sum() for z in (x, moved))
    print(f"nudge {name}: weights move by", np.round((after - before) / step, 4) + 0.0, "per unit")

# %% [markdown]
# The first line is a **column** of J: one score moved, all weights answered. It sums to 0 because the weights always sum to 1:
# what one gains the others lose. The second line shows why each **row** sums to 0 as well, for another reason: moving all
# scores together changes no weight. The two facts agree because J is symmetric: entry (i, j) is −p_i p_j, and so is entry (j,
# i).

# %% [markdown]
# @exercise softmax_jacobian
#
# `p` (n,), what softmax returned → (n, n), entry (i, j) is ∂p_i/∂x_j, by the formula and not by a finite difference
#
# The two cases of the formula can be written as one difference of two matrices.

# %% role="exercise" exercise="softmax_jacobian"
def softmax_jacobian(p: np.ndarray) -> np.ndarray:
    """Derivatives of softmax's weights with respect to its scores.

    p: (n,), an output of softmax. Returns: (n, n), row i for weight i, column j for score j.
    """
    # region solution
    return np.diag(p) - np.outer(p, p)
    # endregion

# %% role="check" exercise="softmax_jacobian"
check(softmax_jacobian)

# %% role="payoff" exercise="softmax_jacobian"
if passed(softmax_jacobian) and passed(softmax):
    row = np.array([1.0, 0.5, 0.0])
    sharper = {"equal weights": softmax(0 * row), "leaning": softmax(1.5 * row), "saturated": softmax(12 * row)}
    jacobians = {name: softmax_jacobian(p) for name, p in sharper.items()}
    largest = {name: np.abs(jacobian).max() for name, jacobian in jacobians.items()}
    assert largest["saturated"] < 0.0025 and largest["equal weights"] > 0.2
    figures.softmax.jacobians(sharper, jacobians)

# %% [markdown]
# In the third map, where nearly all weight is on one key, no entry exceeds {{ largest["saturated"]:.4f }}. Whatever correction
# training sends back through softmax is multiplied by these entries, so hardly any of it reaches the scores. Softmax
# is then called **saturated**. Lesson 04 comes back to this picture.

# %% [markdown]
# ## What we keep
#
# - Softmax is positive, keeps the order, is smooth, and turns differences of scores into ratios of weights.
# - Adding one number to all scores of a row changes no weight. So subtract each row's own maximum, and nothing overflows.
# - Sum along the axis of the keys, and keep that axis.
# - A temperature below 1 sharpens, above 1 flattens; attention's is √d_k.
# - A test is as good as the scores it tries: extreme ones, rows that differ, shapes that are not square.
#
# | what | shape |
# |---|---|
# | softmax, with or without a temperature | (...) → (...), along one axis |

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners write the softmax that all later lessons use, for any axis and any size of numbers, and see how published versions
# break. Then they write a test that tells a right softmax from a wrong one, which asks for more thought than the softmax itself.
#
# ## Cut for 60 minutes
#
# The core fits. Leave out "Would you notice?" and give `find_failure` as homework if the room is slow.
#
# ## Cut for 90 minutes
#
# Nothing of the core. With time left, let learners exchange their `find_failure` and write a wrong softmax that another one
# misses. The further parts suit a class that knows derivatives; p − y is best derived at the board.
#
# ## Mistakes to expect
#
# - softmax SM4: For three rows, what shape has the sum without `keepdims`, and along which axis does NumPy line it up?
# - softmax SX1: What does your function do with `axis=0`?
# - softmax SM6: What becomes of a row that lies 2000 below another one?
# - softmax NT9: Which dtype came in, and which went out?
# - softmax_with_temperature SX11: Which of the two makes differences larger, a small temperature or a large one?
# - softmax_with_temperature SM5: You divided first. Can x / temperature still be too large for exp?
# - find_failure FF4: What is `float("nan") > 1e-6`?
# - find_failure FF1: How far above the mean of its row can a score lie, and how far below another row a whole row?
# - log_softmax SX30: What was the weight before you took its logarithm?
# - log_softmax SX35: You took the maximum out of the sum. Where does it have to come back?
# - cross_entropy CE2: How many losses were asked for, and how many came back?
# - cross_entropy CE7: For three rows and three targets, how many numbers do you pick?
# - cross_entropy SX31: What is the largest loss that your function can return?
# - cross_entropy_gradient CG1: What would one row's gradient be if there were twice as many other rows?
# - cross_entropy_gradient CG4: If another word's score grows, what happens to the target's weight?
# - cross_entropy_gradient CE7: Row 0 has target 2. At which places of row 0 did you subtract 1?
# - softmax_jacobian SX46: If the first score grows, which weights move?
# - softmax_jacobian SX49: Which shapes have diag(p) and p pᵀ, and which has what you wrote for each?
#
# ## To discuss
#
# - Is there a use for weights that can be exactly 0? A good answer names masks (a score of −∞), says that a finite score never
#   gets 0, and what it would cost: where a weight is 0, its score has no gradient.
# - Which failures of a softmax would you find by looking at a heat map of the weights? A good answer says that NaN shows as empty
#   cells and sums that are not 1 may show in the numbers, that a wrong axis looks convincing, and that overflow shows only on
#   scores that a small example does not have.
#
# ## On paper
#
# The scores are (0, ln 3, ln 4). Compute the weights. Which weights result if 7 is added to all three scores, and which at a
# temperature of ½? *Solution:* the exponentials are 1, 3, 4 and sum to 8, so the weights are (⅛, ⅜, ½). Adding 7 changes nothing.
# At τ = ½ the scores are doubled, so the exponentials are squared: 1, 9, 16, with the sum 26. The weights are (1/26, 9/26, 16/26),
# about (0.04, 0.35, 0.62).
