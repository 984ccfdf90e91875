# %% [markdown]
# # 2 · Softmax: the one non-linear step
#
# **What does the one non-linear step of attention do, and how does it break?**
#
# With keys and values held fixed, the scores are straight lines in the query, and the output in the weights; softmax, between them,
# is where attention makes up its mind. It fits in one line of code, and that line has been published wrong in several ways. We break
# it first, then mend it, then learn to steer it.

# %% role="given"
import numpy as np

from grader import check, explain, figures, hint, passed, progress, solution

scores = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [2.0, 1.0, 1.0]])  # the unscaled scores of lesson 01

# %% role="demo"
figures.lesson_02.what_softmax_does()

# %% [markdown]
# ## From scores to weights
#
# Softmax raises e to the power of each score and divides by the sum (the name is Bridle's, 1990; Goodfellow, Bengio and Courville
# 2016, section 6.2.2.3):
#
# $$\operatorname{softmax}(x)_i = \frac{e^{x_i}}{\sum_j e^{x_j}}$$
#
# The exponential makes everything positive and keeps the order. Differences of scores become *ratios* of weights: one more point is
# e ≈ 2.7 times the weight, whatever else is in the row.
#
# **Predict:** what happens to the weights if we add 100 to every score of the row?

# %% role="demo" tags=["nbval-check-output"]
row = np.array([1.0, 0.0, 2.0])
for shift in (0, 100, -100):
    grown = np.exp(row + shift)
    print(f"{shift:5}", np.round(grown / grown.sum(), 4))

# %% [markdown]
# Nothing: e^100 appears above and below the line and cancels. Remember this; it is about to save us.
#
# ## Broken, first way: numbers that are too large
#
# **Predict** what the formula gives for the scores (1000, 1000), typed as it stands.

# %% role="demo" tags=["nbval-check-output"]
with np.errstate(over="ignore", invalid="ignore"):
    grown = np.exp(np.array([1000.0, 1000.0]))
    print("exp:", grown, " weights:", grown / grown.sum())
print("the largest x with a finite exp:", round(float(np.log(np.finfo(np.float64).max)), 1), "in float64,",
      round(float(np.log(np.finfo(np.float32).max)), 1), "in float32")

# %% [markdown]
# ∞ divided by ∞ is NaN. Float32 gives up above 88.7: a query and a key of length 10 that point the same way already score 100. But
# adding a constant changes nothing, so we may add *minus the largest score*. Then the largest exponent is 0, nothing overflows, and
# the sum is at least 1, so nothing is divided by 0 (Goodfellow, Bengio and Courville 2016, section 4.1).
#
# ## Broken, second way: no axis
#
# A published listing normalises a whole matrix at once: `np.exp(s) / np.sum(np.exp(s))`. **Predict** what the three rows of our
# table then sum to.

# %% role="demo" tags=["nbval-check-output"]
scaled = scores / np.sqrt(2)
whole = np.exp(scaled) / np.sum(np.exp(scaled))
print("rows sum to", np.round(whole.sum(axis=1), 3), "- all together", whole.sum().round(3))

# %% [markdown]
# Each query was to share out one unit among the keys. Here all queries share a single unit, and the third, whose scores are larger,
# takes nearly half of it. The sums have to be taken **along an axis**, and kept as an axis (`keepdims=True`), so that each row is
# divided by its own. With T queries and T keys, losing that axis raises no error: it divides by the wrong sums.

# %% [markdown]
# @exercise softmax
#
# `x` with any number of dimensions, `axis` one integer → the same shape, summing to 1 along `axis`
#
# ```text
# for each slice of x along axis:
#     weight_i = exp(x_i − the slice's largest) / sum over j of exp(x_j − the slice's largest)
# ```
#
# Finite for entries of ±10000; float32 gives float32; `x` is left as it is. An entry of −∞ gets weight 0, which is how lesson 06
# hides keys (no slice is −∞ throughout). From scratch, without `scipy.special.softmax`, `torch.softmax` and the like.
# `hint(softmax)` helps.

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
    figures.lesson_02.axes_compared(softmax, scaled)

# %% [markdown]
# The same nine numbers, three meanings. In attention row i belongs to query i, so the weights are taken along the keys: the last
# axis. A softmax over the wrong one still looks like a heat map.
#
# ## Weights from something simple
#
# A published toy gives each word of a sentence a score that needs no learning: its length. **Predict:** in *Awareness is power in a
# world where knowledge is everywhere*, do three long words share the weight evenly?

# %% role="payoff" exercise="softmax"
if passed(softmax):
    figures.lesson_02.word_lengths(softmax)

# %% [markdown]
# They do not: *everywhere* has one letter more than *Awareness* and *knowledge*, so it gets e times their weight. The toy shows two
# things. Softmax exaggerates differences; and a score that is not learnt knows nothing of meaning. Lesson 10 learns its scores.
#
# ## Steering it: temperature
#
# If differences are exaggerated, we can shrink or stretch them first, by dividing all scores by a number T > 0.
#
# **Predict:** which way do the weights go for T → 0, and which way for T → ∞?

# %% [markdown]
# @exercise softmax_with_temperature
#
# `x` as above, `temperature` a number, `axis` → softmax(x / temperature); a temperature of 0 or below raises ValueError
#
# ```text
# T = 1 changes nothing, a small T sharpens, a large T flattens
# ```
#
# Temperatures from 0.001 to 10000. The exercise can be written with our own `softmax` or without it.

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
    figures.lesson_02.temperatures(softmax_with_temperature)

# %% [markdown]
# Towards 0 softmax becomes the hard look-up of lesson 00: it is a *soft argmax*, and Goodfellow et al. (section 6.2.2.3) would rather
# have called it that. Towards ∞ it becomes a plain average. The factor 1/√d_k of attention (Vaswani et al. 2017, section 3.2.1) is a
# temperature of √d_k, and lesson 04 asks why that one. Where widgets run, a slider follows.

# %% role="payoff" exercise="softmax_with_temperature"
if passed(softmax_with_temperature):
    figures.lesson_02.temperature_slider(softmax_with_temperature)

# %% [markdown]
# ## In logarithms
#
# A model is judged by the logarithm of the weight that it gave to the right answer. **Predict** `np.log` of the second weight for the
# scores (0, −10000). Is the true value −∞?

# %% role="demo" tags=["nbval-check-output"]
grown = np.exp(np.array([0.0, -10000.0]))
with np.errstate(divide="ignore"):
    print("weights:", grown / grown.sum(), " logarithms:", np.log(grown / grown.sum()))

# %% [markdown]
# The true value is −10000. The weight e^−10000 is smaller than any float, was rounded to 0, and 0 remembers nothing. We must not leave
# the logarithms in between:
#
# $$\ln \operatorname{softmax}(x)_i = (x_i - m) - \ln \sum_j e^{x_j - m}, \qquad m = \max_j x_j$$

# %% [markdown]
# @exercise log_softmax
#
# `x` as above, `axis` → the same shape: the logarithms of the weights, finite for finite x
#
# ```text
# for each slice along axis:  (x_i − max) − ln( sum over j of exp(x_j − max) )
# ```
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

# %% role="payoff" exercise="log_softmax"
if passed(log_softmax) and passed(softmax):
    figures.lesson_02.logarithms(softmax, log_softmax)

# %% [markdown]
# @exercise cross_entropy
#
# `scores` (..., n), `targets` (...) whole numbers → (...): −log softmax(scores)[target]

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

# %% [markdown]
# @exercise cross_entropy_gradient
#
# `scores` (..., n), `targets` (...) → (..., n): how the sum of all losses grows with each score

# %% role="exercise" exercise="cross_entropy_gradient"
def cross_entropy_gradient(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Gradient of the sum of all cross entropies with respect to the scores.

    scores: (..., n). targets: (...) integers. Returns: (..., n), in each row the weights minus 1 at the target.
    """
    # region solution
    weights = softmax(scores)
    one_hot = np.eye(scores.shape[-1])[targets]
    return weights - one_hot
    # endregion

# %% role="check" exercise="cross_entropy_gradient"
check(cross_entropy_gradient)

# %% [markdown]
# ## How weights answer to scores
#
# Learning needs to know how each weight moves when a score does. All these derivatives make a matrix, the Jacobian. Take the logarithm
# first: $\ln p_i = x_i - \ln \sum_k e^{x_k}$. A nudge to $x_j$ moves the first term only if $i = j$, and the second at the rate
# $e^{x_j} / \sum_k e^{x_k} = p_j$. A change of $\ln p_i$ times $p_i$ is the change of $p_i$, so:
#
# $$\frac{\partial p_i}{\partial x_j} = \begin{cases} p_i\,(1 - p_i) & i = j \\ -\,p_i\, p_j & i \neq j \end{cases}
# \qquad\text{so}\qquad J = \operatorname{diag}(p) - p\,p^\top$$
#
# **Predict** for p = (½, ¼, ¼): what is the first row, and what does it sum to? A small change of a score is a second witness.

# %% role="demo" tags=["nbval-check-output"]
x, step = np.log(np.array([0.5, 0.25, 0.25])), 1e-6
moved = x + np.array([step, 0, 0])
before, after = (np.exp(z) / np.exp(z).sum() for z in (x, moved))
print("weights move by", np.round((after - before) / step, 4), "for each unit of the first score")

# %% [markdown]
# @exercise softmax_jacobian
#
# `p` (n,), what softmax returned → (n, n), entry (i, j) is ∂p_i/∂x_j
#
# ```text
# for i, for j:  p[i] · ((1 if i is j else 0) − p[j])
# ```

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
    figures.lesson_02.jacobians(softmax, softmax_jacobian)

# %% [markdown]
# Each row sums to 0: what one weight gains the others lose. And where the weights are decided the Jacobian is nearly all zeros: hardly
# any error signal passes, whichever way it points. Softmax is *saturated* there. Keep this picture for lesson 04.
#
# ## Break it on purpose: one maximum for everything
#
# A shortcut subtracts `x.max()` of the whole array. **Predict** where it fails: rows of large numbers, or rows far from one another?

# %% role="demo" tags=["nbval-check-output"]
rows = np.array([[0.0, 1.0], [-2000.0, -2001.0]])
with np.errstate(invalid="ignore"):
    grown = np.exp(rows - rows.max())
    print(grown / grown.sum(axis=1, keepdims=True))

# %% role="demo"
explain("SM6")

# %% [markdown]
# ## Where this goes on
#
# Subtracting the maximum needs it beforehand, so a row is read three times: for the maximum, for the sum, for the weights. Milakov and
# Gimelshein (2018, section 3) keep a running maximum and mend the sum when it rises, which saves one of the three: this *online
# softmax* is what FlashAttention is made of. Lesson 03 puts our softmax between two products of batched arrays.
