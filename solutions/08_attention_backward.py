# %% [markdown]
# # 8 · Gradients by hand
#
# **How does an error in the output find its way back to the queries, keys and values?**
#
# In lesson 05 torch computed gradients for us. Here we derive them, write them in NumPy, and check them twice: by moving
# an input a little, and against torch. Whoever has done this once knows why attention is hard to train when softmax
# saturates, and what the faster kernels of lesson 13 have to compute again on the way back.

# %% role="given"
import numpy as np

from grader import check, explain, figures, hint, passed, progress, solution


def softmax(scores):
    """Softmax over the last axis, as written in lesson 02."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(q, k, v):
    """Scaled dot-product attention, as written in lesson 03: (output, weights)."""
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return weights @ v, weights

# %% [markdown]
# ## The road back
#
# Forward, attention takes three steps: a product, a softmax, a product. A loss looks at the output and says, for each of its
# numbers, how much the loss grows when that number grows: this is `grad_output`, with the output's shape. The backward
# pass walks the three steps in reverse and turns it into the same statement about `v`, `k` and `q`.

# %% role="demo"
figures.lesson_08.road_back()

# %% [markdown]
# ## Measuring a gradient
#
# Before we derive anything, we build an instrument that knows no formula. A gradient says how much a loss grows when one
# number of the input grows. That can be tried out: move the number a little up, then a little down, and divide the
# difference of the two losses by the way between the two points.
#
# $$\frac{\partial f}{\partial x_e} \;\approx\; \frac{f(x + h\,e) - f(x - h\,e)}{2h}$$

# %% [markdown]
# @exercise numerical_gradient
#
# `f` takes an array of the shape of x and returns a float, `x` a float64 array of any shape, `step` the h of the formula
# → float64 array of the shape of x
#
# ```text
# for each entry e of x:
#     result[e] = (f(x with entry e moved up by step) − f(x with entry e moved down by step)) / (2 · step)
# ```
#
# `f` gets nothing but arrays of the shape of x in float64, and may keep or change what it was given: hand it a fresh copy at
# each call. x is left as it is. "Any shape" includes a single number, an array of shape ().

# %% role="exercise" exercise="numerical_gradient"
def numerical_gradient(f, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Measure the gradient of f at x by central differences.

    f: takes an array of the shape of x, returns a float. x: float64, any shape. step: how far each entry is moved.
    Returns: float64, the shape of x.
    """
    # region solution
    grad = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()  # f may keep or change what it is given
        up[at] += step
        down[at] -= step
        grad[at] = (f(up) - f(down)) / (2 * step)
    return grad
    # endregion

# %% role="check" exercise="numerical_gradient"
check(numerical_gradient)

# %% [markdown]
# ## One product, by hand
#
# The last step is $O = W V$. Take one query with the weights (½, ¼, ¼) and values of one number each, (1, 0, 2): the output
# is ½·1 + ¼·0 + ¼·2 = 1.
#
# **Predict:** the loss grows by 1 when the output grows by 1. By how much does it grow when the third value grows by 1? And
# when the third *weight* grows by 1?

# %% role="demo" tags=["nbval-check-output"]
weights = np.array([[0.50, 0.25, 0.25]])
values = np.array([[1.0], [0.0], [2.0]])
grad_output = np.array([[1.0]])
print("gradient of the values :", (weights.T @ grad_output).ravel())
print("gradient of the weights:", (grad_output @ values.T).ravel())

# %% [markdown]
# A value is felt as much as it was weighted: ¼. A weight is felt as much as its value says: 2. In matrices, with shapes that
# leave no other choice:
#
# $$\underbrace{\partial V}_{T_k \times d_v} = \underbrace{W^\top}_{T_k \times T_q}\, \underbrace{\partial O}_{T_q \times d_v}
# \qquad \underbrace{\partial W}_{T_q \times T_k} = \underbrace{\partial O}_{T_q \times d_v}\, \underbrace{V^\top}_{d_v \times T_k}$$
#
# This is the rule for every product (Goodfellow, Bengio and Courville 2016, section 6.5): the gradient of one factor is
# the gradient of the result times the other factor, transposed.
#
# ## Through softmax
#
# The weights are not free: each row sums to 1. In lesson 02 the Jacobian was $\operatorname{diag}(p) - p\,p^\top$. Multiplied
# with a gradient $g$ it needs no matrix at all:
#
# $$\bigl(\operatorname{diag}(p) - p\,p^\top\bigr)\, g \;=\; p \odot g - p\,(p \cdot g) \;=\; p \odot \bigl(g - p \cdot g\bigr)$$
#
# **Predict**, with p = (½, ¼, ¼) and g = (1, 0, 2): what is p · g? Which of the three scores should grow?

# %% role="demo" tags=["nbval-check-output"]
p, g = np.array([0.50, 0.25, 0.25]), np.array([1.0, 0.0, 2.0])
jacobian = np.diag(p) - np.outer(p, p)
print("p · g =", p @ g)
print("Jacobian times g:", jacobian @ g)

# %% [markdown]
# The weighted mean of g is 1. The first weight is exactly average, so its score stays; the second is below it and falls; the
# third is above and rises. What one wins the others lose: the three numbers sum to 0. That must be so, since raising all
# scores of a row alike changes no weight.

# %% [markdown]
# @exercise softmax_backward
#
# `grad_weights` (..., n), `weights` (..., n) → (..., n), the gradient with respect to the scores
#
# One row as a loop, with the Jacobian spelt out:
#
# ```text
# for each score j:
#     grad_scores[j] = sum over i of  grad_weights[i] · weights[i] · ((1 if i is j else 0) − weights[j])
# ```
#
# The contracted form above does it for all rows at once. NumPy alone; torch and other libraries that differentiate by
# themselves are left aside in this lesson, and so are finite differences.

# %% role="exercise" exercise="softmax_backward"
def softmax_backward(grad_weights: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Carry a gradient back through softmax over the last axis.

    grad_weights: (..., n), the gradient with respect to the weights. weights: (..., n), what softmax returned.
    Returns: (..., n), the gradient with respect to the scores.
    """
    # region solution
    mean = (grad_weights * weights).sum(axis=-1, keepdims=True)  # of the gradient, under the weights
    return weights * (grad_weights - mean)
    # endregion

# %% role="check" exercise="softmax_backward"
check(softmax_backward)

# %% [markdown]
# The formula says when attention stops learning. With two keys the gradient of a score is at most ¼ of the difference of the
# two gradients, reached at equal weights; with a weight near 1 it vanishes. **Predict** the curve before it is drawn: the
# weight of the first key runs from 0 to 1, the gradient is (1, 0).

# %% role="payoff" exercise="softmax_backward"
if passed(softmax_backward):
    figures.lesson_08.vanishing(softmax_backward)

# %% [markdown]
# This is the curve behind lesson 04: without the factor 1/√d_k the weights live at the two ends, where nothing is learnt.
#
# ## The first product, and its scale
#
# What is left is $S = Q K^\top / \sqrt{d_k}$. By the rule for products, and because row i of the scores belongs to query i:
#
# $$\partial Q = \frac{\partial S\; K}{\sqrt{d_k}} \qquad \partial K = \frac{\partial S^\top\, Q}{\sqrt{d_k}}$$
#
# The scale that made the scores smaller on the way in makes the gradients smaller on the way out, once for each.

# %% [markdown]
# @exercise attention_backward
#
# `q` (..., T_q, d_k), `k` (..., T_k, d_k), `v` (..., T_k, d_v), `grad_output` (..., T_q, d_v)
# → `(grad_q, grad_k, grad_v)`, each with the shape of its input
#
# The steps, backwards:
#
# ```text
# compute the weights again, as in the forward pass
# output  = weights v      →  gradients of v and of the weights
# weights = softmax(scores) →  gradient of the scores
# scores  = q kᵀ / √d_k     →  gradients of q and of k
# ```
#
# NumPy alone, as before. Leading dimensions may be any; scores may be in the thousands. If `softmax_backward` still
# resists, its formula stands above: this exercise needs the formula and not our function.

# %% role="exercise" exercise="attention_backward"
def attention_backward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, grad_output: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients of scaled dot-product attention's output with respect to its inputs.

    q: (..., T_q, d_k). k: (..., T_k, d_k). v: (..., T_k, d_v). grad_output: (..., T_q, d_v).
    Returns: (grad_q, grad_k, grad_v), shaped like q, k and v.
    """
    # region solution
    root = np.sqrt(q.shape[-1])
    scores = q @ k.swapaxes(-1, -2) / root
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exps / exps.sum(axis=-1, keepdims=True)

    grad_v = weights.swapaxes(-1, -2) @ grad_output
    grad_weights = grad_output @ v.swapaxes(-1, -2)
    mean = (grad_weights * weights).sum(axis=-1, keepdims=True)
    grad_scores = weights * (grad_weights - mean)
    grad_q = grad_scores @ k / root
    grad_k = grad_scores.swapaxes(-1, -2) @ q / root
    return grad_q, grad_k, grad_v
    # endregion

# %% role="check" exercise="attention_backward"
check(attention_backward)

# %% [markdown]
# ## Two independent witnesses
#
# A gradient can be measured: move one number a little and see how the loss moves. That is slow, two forward passes a
# number, and it is how a formula is tested. The second witness is torch, in float64, which derives the same thing by itself.
#
# **Predict** the size of the two differences: about 1e-3, 1e-9 or 1e-16?

# %% role="payoff" exercise="attention_backward"
if passed(attention_backward):
    rng = np.random.default_rng(8)
    q, k, v = rng.normal(size=(5, 4)), rng.normal(size=(7, 4)), rng.normal(size=(7, 6))
    direction = rng.normal(size=(5, 6))
    gradients = attention_backward(q, k, v, direction)
    figures.lesson_08.witnesses(attention, (q, k, v), direction, gradients)

# %% [markdown]
# torch agrees to the last digits of float64. The measured gradient agrees to fewer: too long a step bends away from the
# tangent, too short a step drowns in rounding. The best step lies between, and even there a formula is better.
#
# ## Break it on purpose: a gradient without the row's mean
#
# The most common slip writes `weights * grad_weights` and forgets what the other weights lose. **Predict:** does a model
# still learn with it? We move three rows of scores by gradient descent until attention gives three outputs that we chose,
# once with each formula.

# %% role="payoff" exercise="softmax_backward"
if passed(softmax_backward):
    def without_mean(grad_weights, weights):
        return weights * grad_weights

    figures.lesson_08.training(softmax, {"our formula": softmax_backward, "without the mean": without_mean})

# %% [markdown]
# The wrong gradient still points downhill for a while, which is why nobody notices: the loss falls, then stops above where
# it should end. Two rows arrive. In the third, one key has all the weight, and the wrong rule still raises its score at every
# step: softmax is saturated, so no weight moves any more. The right rule gives 0 there. A loss that falls is no proof of a right
# gradient. Two witnesses are.

# %% role="demo"
explain("BW1")

# %% [markdown]
# ## Where this goes on
#
# The weights had to be computed again. FlashAttention (Dao et al. 2022, section 3.1 and appendix B) keeps only two numbers a
# row, its largest score and softmax's sum (FlashAttention-2, Dao 2023, keeps one, the logarithm of that sum with the maximum in it),
# and rebuilds the weights tile by tile in its backward pass: less memory for more arithmetic. Its row total is computed as the
# dot product of the output with its gradient, the same number as our mean. Lesson 09 splits attention into heads; each of
# them has exactly this backward pass.
