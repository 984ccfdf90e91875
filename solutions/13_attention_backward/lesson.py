# %% [markdown]
# # 13 · Gradients by hand
#
# **How does an error in the output find its way back to the queries, keys and values?**
#
# **Before this lesson:** matrix products and transposes; partial derivatives and the chain rule; softmax and its Jacobian
# (lesson 02), attention in NumPy (lesson 03), what `backward()` does (lesson 05).
#
# In lesson 05 torch computed the gradients. In this lesson you compute them yourself, in NumPy, and check each one as
# soon as you have derived it. There are three reasons to do this once. You see how an error in the output changes a
# query so that it fits the right key better next time. You see when attention stops learning. And you come to
# understand the fast GPU programs (*kernels*) of lesson 11. They do not use autograd inside: people wrote their
# backward pass by hand, with the formulas that you are about to derive.

# %% role="given"
import numpy as np

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution


def softmax(scores):
    """Softmax over the last axis, as written in lesson 02."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(q, k, v):
    """Scaled dot-product attention, as written in lesson 03: (output, weights)."""
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return weights @ v, weights

# %% [markdown]
# ## One example for the whole lesson
#
# Our sentence is "The animal didn't cross the street because it was too tired." Two of its words are queries, *it*
# and *was*. Three others, *animal*, *street* and *tired*, have a key and a value each. The values have two features,
# "is alive" and "is a place". We chose the numbers by hand so that all weights are halves and quarters; they do not
# come from a trained model. The scaled scores of *it*, for example, are ln 2, 0 and 0. Their exponentials are 2, 1
# and 1, and so the weights are ½, ¼ and ¼.

# %% role="demo" tags=["nbval-check-output"]
q = np.log(2) * np.array([[1.0, 0, 0, 0], [0, 0, 1, 0]])  # it, was
k = np.array([[2.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0]])  # animal, street, tired
v = np.array([[2.0, 0], [0, 1], [1, 0]])  # columns: is alive, is a place
output, weights = attention(q, k, v)
print("weights of 'it' :", weights[0].round(4), "  output:", output[0].round(4))
print("weights of 'was':", weights[1].round(4), "  output:", output[1].round(4))

# %% [markdown]
# ## What a gradient says
#
# A *loss* L is one number that says how wrong the outputs are. For any array X on the way to it, we write **∂X** for the array of
# all ∂L/∂x, one for each entry x of X. So ∂X has the shape of X. Each of its entries says **how much the loss grows when that entry
# of X grows**, per unit of growth and for small changes. A negative entry means that the loss falls.
#
# Training wants the loss to fall, so it moves each number *against* its gradient: *x* − rate · ∂*x*. This minus sign belongs to
# the step and never to the gradient itself.
#
# For our example, suppose that the output of *it* should become more alive and less of a place, and that the output of *was* is too
# much of a place. So the loss should fall when the first number of *it* grows (a negative gradient), and grow with the second
# numbers of *it* and *was* (positive ones). Here is a ∂O that says so:

# %% role="demo"
grad_output = np.array([[-1.0, 1.0], [0.0, 2.0]])  # it: alive should grow, place should shrink; was: place should shrink

# %% [markdown]
# Going forward, attention takes three steps: a product, a softmax, a product. The backward pass goes through them in reverse. It
# starts from ∂O and asks the same question at each step: given the gradient of what came out, what is the gradient of what went in?
# In the figure each question mark is a gradient that you will derive.

# %% role="demo"
figures.attention_backward.road_back(solved=False)

# %% [markdown]
# ## An instrument that knows no formula
#
# Before we derive anything, you build an instrument that can check it. A gradient can be *measured*. Move one number of the input
# up by a little step h, move it down by h, and divide the difference of the two losses by the distance 2h between the two points:
#
# $$\partial x \;\approx\; \frac{L(x + h) - L(x - h)}{2h}$$
#
# This is called a central difference. It costs two evaluations of the loss for every single number, which is why nobody trains a
# model like this. It makes a good check, because it uses no formula for the gradient and so cannot repeat a mistake in yours.

# %% [markdown]
# @exercise numerical_gradient
#
# `f` takes an array of the shape of x and returns a float, `x` is a float64 array of any shape, `step` is the h of the formula
# → float64 array of the shape of x
#
# ```text
# for each entry e of x:
#     result[e] = (f(x with entry e moved up by step) − f(x with entry e moved down by step)) / (2 · step)
# ```
#
# All other entries of x stay where they are meanwhile. Call `f` with float64 arrays of the shape of x only. It may keep or change
# what it is given, so give it a fresh copy at each call. x itself must not change. "Any shape" includes a single number, which is
# an array of shape ().

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
# How good is the instrument? We try it on a function whose derivative we know: the derivative of the sine is the cosine.

# %% [markdown]
# @predict
#
# You measure the slope of sin at 1 with steps of 0.1, 0.01, 0.001, and so on down to 1e-12. How does the error behave?
#
# - **A** It shrinks with every smaller step.
# - **B** It shrinks, reaches a smallest value, and grows again.
# - **C** It stays about the same, since a slope does not depend on the step.
#
# @answer
#
# **B.** There are two errors. When h is large, the curve bends away from its tangent between the two points. This
# error is about h²/6 times the third derivative, so it falls a hundredfold when h falls tenfold. When h is small, we
# subtract two nearly equal numbers. float64 keeps about 16 digits of each, and this rounding error of about 1e-16 is
# divided by 2h, so it grows as h falls. Their sum is smallest where the two are about equal, near h = 1e-5. The
# figure below shows both.
#
# @wrong
#
# If you said A, you thought of mathematics, where h goes to 0. In floating point the subtraction runs out of digits first.

# %% role="payoff" exercise="numerical_gradient"
if passed(numerical_gradient):
    steps = 10.0 ** np.arange(-12, -0.5, 0.5)
    slopes = np.array([numerical_gradient(np.sin, np.array(1.0), step) for step in steps])
    errors = np.abs(slopes - np.cos(1.0))
    one_sided = np.abs((np.sin(1.0 + steps) - np.sin(1.0)) / steps - np.cos(1.0))
    figures.attention_backward.step_errors(steps, errors, one_sided)
    assert 1e-6 < steps[errors.argmin()] < 1e-4 and errors.min() < 1e-10 < one_sided.min()

# %% [markdown]
# The default step of 1e-5 is near the best. It gives about ten right digits, which is more than enough to tell a right formula from
# a wrong one. A one-sided difference, (f(x + h) − f(x)) / h, never gets that far, because its error falls with h and not with h².
#
# ## Backward through the last product
#
# The last step is $O = W V$. Written out, the output of query *i* in feature *c* is a sum over the keys *j*:
#
# $$O_{ic} = \sum_j W_{ij}\, V_{jc}$$
#
# Which outputs does one value $V_{jc}$ touch? It is used by every query *i*, each time with the factor $W_{ij}$, and always in
# feature *c*. The chain rule adds up all the paths by which the loss feels it:
#
# $$\partial V_{jc} = \sum_i W_{ij}\; \partial O_{ic}$$
#
# So every query contributes to a value's gradient, in proportion to the weight that it gave to this value.
#
# To measure this with your instrument we need a loss whose gradient with respect to the output is our ∂O. We take
# `(output * grad_output).sum()`, which has this gradient by construction. For small changes of the output, any loss
# with the same ∂O changes by the same amount. So we can test every formula without inventing a real task.

# %% [markdown]
# @predict
#
# Weights: *it* gives ½ to animal, *was* gives it ¼. The gradients of their outputs are ∂O = (−1, 1) for *it* and (0, 2) for *was*.
# What is ∂V for *animal*, both features? A line or two on paper is enough.
#
# @answer
#
# "Is alive": ½ · (−1) + ¼ · 0 = **−½**. "Is a place": ½ · 1 + ¼ · 2 = **1**. So the loss falls when the animal becomes more
# alive, and grows when it becomes more of a place.
#
# @wrong
#
# If you have (−1, 3), you added the gradients of the outputs and left out the weights. If you have (−½, ½), you counted only *it*.
# Both queries used this value, so both contribute.

# %% role="payoff" exercise="numerical_gradient"
if passed(numerical_gradient):
    measured = numerical_gradient(lambda v: (weights @ v * grad_output).sum(), v)
    print("∂V measured:\n", measured.round(6))
    print("∂V = Wᵀ ∂O:\n", (weights.T @ grad_output).round(6))
    assert np.allclose(weights.T @ grad_output, measured) and np.allclose(measured[0], [-0.5, 1.0])

# %% [markdown]
# The sum runs over *i*, the *first* index of W. A matrix product sums over the last index of its left factor, so W has to be
# transposed: $\partial V = W^\top \partial O$.
#
# Now the other factor. One weight $W_{ij}$ touches only the output of its own query *i*, but all features *c* of it, each with the
# factor $V_{jc}$:
#
# $$\partial W_{ij} = \sum_c \partial O_{ic}\, V_{jc} \qquad\text{that is}\qquad \partial W = \partial O\; V^\top$$
#
# For *it* and *animal* this is −1 · 2 + 1 · 0 = −2: the loss falls at a rate of 2 for each unit of weight that *it* adds to
# *animal*.

# %% role="payoff" exercise="numerical_gradient"
if passed(numerical_gradient):
    measured = numerical_gradient(lambda w: (w @ v * grad_output).sum(), weights)
    print("∂W measured:\n", measured.round(6))
    print("∂W = ∂O Vᵀ:\n", grad_output @ v.T)
    assert np.allclose(grad_output @ v.T, measured)

# %% [markdown]
# Both are cases of one rule (Goodfellow, Bengio and Courville 2016, section 6.5). For a product $C = A B$:
#
# $$\partial A = \partial C\; B^\top \qquad \partial B = A^\top\, \partial C$$
#
# Many people find the right order from the shapes alone, because only one order fits. That works while all sizes differ. With T_q =
# T_k = d_v every order fits, with and without a transpose, and only the indices tell you which one is right. So when you are in
# doubt, write down the sum.
#
# ## Backward through softmax
#
# The weights of a query cannot change independently. If one grows, others must shrink, because the row sums to 1. The Jacobian of
# lesson 02 says how they move together. For one row, with scores *s* and weights *p*:
#
# $$\frac{\partial p_i}{\partial s_j} = p_i\,(\delta_{ij} - p_j) \qquad \delta_{ij} = 1 \text{ where } i = j,\text{ else } 0$$
#
# Write $g_i$ for the gradient of weight *i*, a row of ∂W. One score touches all weights of its row, so we sum over *i*:
#
# $$\partial s_j \;=\; \sum_i g_i\, p_i\,(\delta_{ij} - p_j) \;=\; g_j\, p_j - p_j \sum_i g_i\, p_i
# \;=\; p_j \Bigl(g_j - \sum_i p_i\, g_i\Bigr)$$
#
# The sum at the end is the mean of the row's gradients, each counted by its weight. We call it the row's **weighted mean**. So the
# sign of a score's gradient depends on a comparison: is this weight's gradient above the mean of its row or below it?

# %% [markdown]
# @predict
#
# For *it* we have p = (½, ¼, ¼) and g = (−2, 1, −1), for *animal*, *street* and *tired*. Gradient *descent* now takes a small step.
# What happens to the score of *tired*, whose g of −1 says that more of its weight would lower the loss?
#
# - **A** It rises.
# - **B** It falls.
# - **C** It stays.
#
# @answer
#
# **C.** The weighted mean is ½ · (−2) + ¼ · 1 + ¼ · (−1) = −1. For *tired* the comparison gives −1 − (−1) = 0. More
# weight on *tired* would lower the loss. But softmax takes that weight from *animal* and *street*, in proportion to
# what they have, and the mean of their gradients is also −1: ⅔ · (−2) + ⅓ · 1 = −1. So the loss falls as much by what
# *tired* gains as it grows by what the other two lose. The gradients of the three scores are (−½, ½, 0): descent
# raises *animal* and lowers *street*.
#
# @wrong
#
# If you said A, you treated the weight as if it could grow without taking anything from the others. If you said B, you may have
# read the gradient as the direction to go: it is the direction in which the loss *grows*, and descent goes the other way.

# %% role="payoff" exercise="numerical_gradient"
if passed(numerical_gradient):
    p, g = np.array([0.50, 0.25, 0.25]), np.array([-2.0, 1.0, -1.0])
    print("p · g    =", p @ g)
    print("formula  =", p * (g - p @ g))
    measured = numerical_gradient(lambda s: (softmax(s) * g).sum(), np.log(p))
    print("measured =", measured.round(6) + 0.0)
    assert np.allclose(p * (g - p @ g), measured)

# %% [markdown]
# So *it* learns to look more at *animal* and less at *street*. The three numbers must sum to 0, because raising all scores of a row
# by the same amount changes no weight and so cannot change the loss.

# %% [markdown]
# @exercise softmax_backward
#
# `grad_weights` (..., n), `weights` (..., n) → (..., n), the gradient with respect to the scores
#
# One row as a loop, with the Jacobian spelled out:
#
# ```text
# for each score j:
#     grad_scores[j] = sum over i of  grad_weights[i] · weights[i] · ((1 if i is j else 0) − weights[j])
# ```
#
# Do it for all rows at once, with the short form derived above. In this exercise and the next, use NumPy alone: no
# torch or other library that differentiates for you, and no finite differences. You will check your formula against
# finite differences, and that check shows something only if your function does not use them itself.

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
# Here are the gradients for all six pairs of a query and a key: first of the weights, as if each could change alone, then of the
# scores. A negative number (blue) means that descent raises this weight or score.

# %% role="payoff" exercise="softmax_backward"
if passed(softmax_backward):
    grad_weights = grad_output @ v.T
    grad_scores = softmax_backward(grad_weights, weights)
    figures.attention_backward.pairs(weights, grad_weights, grad_scores)
    assert np.allclose(grad_scores, [[-0.5, 0.5, 0], [-0.125, 0.375, -0.25]])

# %% [markdown]
# ### Where attention stops learning
#
# The formula multiplies by the weight $p_j$, so a score with a small weight gets a small gradient. A weight near 1
# has the same effect, as an example shows. Take two keys with weights *w* and 1 − *w*, and suppose that the loss
# grows with the first weight only: g = (1, 0). The weighted mean is then w, and the gradient of the first score is
# w · (1 − w).

# %% role="payoff" exercise="softmax_backward"
if passed(softmax_backward):
    first = np.linspace(0, 1, 101)
    two = np.stack([first, 1 - first], axis=-1)
    passed_on = softmax_backward(np.tile([1.0, 0.0], (101, 1)), two)[:, 0]
    figures.attention_backward.passed_on(first, passed_on)
    assert np.isclose(passed_on.max(), 0.25) and passed_on[0] == passed_on[-1] == 0

# %% [markdown]
# In this example at most a quarter of the gradient gets through, when both weights are ½. At a weight of 0 or 1
# nothing gets through, however wrong the output is. This explains lesson 04: without the factor 1/√d_k most weights
# lie near the two ends of this curve.
#
# ### Why a mask needs no line of its own
#
# A hidden score was set to −∞ (lesson 06), so its weight is 0. The formula multiplies by this weight, so the gradient
# of the score is 0 · (g − mean) = 0 for every finite g. The hidden key adds nothing to the mean, either. So the
# backward pass needs no mask.

# %% role="payoff" exercise="softmax_backward"
if passed(softmax_backward):
    hidden = softmax(np.array([[2.0, 1.0, -np.inf], [0.5, -np.inf, -np.inf]]))
    back = softmax_backward(np.array([[1.0, 5.0, 100.0], [3.0, 100.0, 100.0]]), hidden)
    print(back.round(4) + 0.0)
    assert (back[hidden == 0] == 0).all() and (back[1] == 0).all()

# %% [markdown]
# The second row sees one key only. Its weight is 1 and cannot change, so no score of that row gets a gradient.
#
# ## Backward through the scores
#
# What is left is $S = Q K^\top / \sqrt{d_k}$. Each score is a sum over the features *a*:
#
# $$S_{ij} = \frac{1}{\sqrt{d_k}} \sum_a Q_{ia}\, K_{ja} \qquad\text{so}\qquad
# \partial Q_{ia} = \frac{1}{\sqrt{d_k}} \sum_j \partial S_{ij}\, K_{ja}
# \qquad\text{that is}\qquad \partial Q = \frac{\partial S\; K}{\sqrt{d_k}}$$
#
# Take the query *it*, where ∂s = (−½, ½, 0). The gradient of its query vector is ½ (street's key − animal's key),
# divided by √d_k. Descent subtracts this, so the query moves *toward* the key of *animal* and *away from* the key of
# *street*. This is how a query learns which key to look for. The factor 1/√d_k, which made the scores smaller in the
# forward pass, makes the gradients smaller in the backward pass.

# %% role="payoff" exercise="softmax_backward"
if passed(softmax_backward) and passed(numerical_gradient):
    measured = numerical_gradient(lambda q: (q @ k.T / np.sqrt(4) * grad_scores).sum(), q)
    print("∂Q measured:\n", measured.round(6) + 0.0)
    print("∂Q = ∂S K / √d_k:\n", (grad_scores @ k / np.sqrt(4)).round(6) + 0.0)
    assert np.allclose(grad_scores @ k / np.sqrt(4), measured)

# %% [markdown]
# The keys are left to you. Which scores does one number $K_{ja}$ touch, and with which factors? Write down the sum, then write it
# as a product of matrices: which of them has to be transposed? The exercise checks your answer.

# %% [markdown]
# @exercise attention_backward
#
# `q` (..., T_q, d_k), `k` (..., T_k, d_k), `v` (..., T_k, d_v), `grad_output` (..., T_q, d_v)
# → `(grad_q, grad_k, grad_v)`, each with the shape of its input
#
# The steps, in reverse:
#
# ```text
# compute the weights again, as in the forward pass
# output  = weights v       →  gradients of v and of the weights
# weights = softmax(scores) →  gradient of the scores
# scores  = q kᵀ / √d_k     →  gradients of q and of k
# ```
#
# NumPy alone, and no finite differences. Leading dimensions may be any; scores may be in the thousands. You may call your
# `softmax_backward`. If you have not finished it, write its formula from above into this function.

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

# %% role="payoff" exercise="attention_backward"
if passed(attention_backward):
    figures.attention_backward.road_back(solved=True)

# %% [markdown]
# ### One step of descent
#
# Do these gradients do what they should? We move q, k and v of the example a small step against their gradients. Each
# number x changes by −rate · ∂x, and this changes the loss by about ∂x times as much, which is −rate · (∂x)². So the
# gradients also predict how much the loss changes in a small step: −rate times the sum of all their squares.

# %% role="payoff" exercise="attention_backward"
if passed(attention_backward):
    dq, dk, dv = attention_backward(q, k, v, grad_output)
    rate = 0.01
    new_output, new_weights = attention(q - rate * dq, k - rate * dk, v - rate * dv)
    change = ((new_output - output) * grad_output).sum()
    expected = -rate * sum((grad**2).sum() for grad in (dq, dk, dv))
    print(f"the loss changes by {change:.4f}; the gradients predicted {expected:.4f}")
    print("weights of 'it' before and after:", weights[0].round(4), new_weights[0].round(4))
    assert np.isclose(change, expected, rtol=0.03)
    assert new_weights[0, 0] > weights[0, 0] and new_weights[0, 1] < weights[0, 1]

# %% [markdown]
# *It* looks a little more at *animal* and a little less at *street*. A few thousand such steps, on many sentences, are what training is.

# %% [markdown]
# ## Which gradient is wrong?
#
# You can now check a backward pass that somebody else wrote, without reading it. Suppose a stranger hands you a function and
# the code that claims to be its backward pass. Which of its gradients would you trust?

# %% [markdown]
# @exercise wrong_gradients
#
# `forward`, `backward`, `inputs` (a tuple of float64 arrays), `grad_output` → the list of the positions in `inputs` whose claimed
# gradient is wrong, in ascending order; `[]` where all are right
#
# `forward(*inputs)` returns an array. `backward(*inputs, grad_output)` returns one array for each input: what it claims to be
# the gradients of `(forward(*inputs) * grad_output).sum()`. A gradient is *wrong* if it has another shape than its input, or
# holds a NaN, or is off anywhere by more than 1e-4 · (1 + the largest entry of the true one). Leave the inputs as they are.
#
# Finite differences are allowed here, with your own `numerical_gradient` or without it.

# %% role="exercise" exercise="wrong_gradients"
def wrong_gradients(forward, backward, inputs: tuple[np.ndarray, ...], grad_output: np.ndarray) -> list[int]:
    """The positions of the inputs whose claimed gradient is wrong.

    forward: (*inputs) → an array. backward: (*inputs, grad_output) → claimed gradients, one for each input.
    """
    # region solution
    def loss_at(place):
        return lambda moved: (forward(*inputs[:place], moved, *inputs[place + 1 :]) * grad_output).sum()

    claimed = backward(*inputs, grad_output)
    wrong = []
    for i, x in enumerate(inputs):
        true = numerical_gradient(loss_at(i), x)
        given = np.asarray(claimed[i])
        if given.shape != x.shape or not (np.abs(given - true) <= 1e-4 * (1 + np.abs(true).max())).all():
            wrong.append(i)
    return wrong
    # endregion

# %% role="check" exercise="wrong_gradients"
check(wrong_gradients)

# %% role="payoff" exercise="wrong_gradients" tags=["nbval-check-output"]
if passed(wrong_gradients) and passed(numerical_gradient) and passed(attention_backward):
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(5, 4)), rng.normal(size=(7, 4)), rng.normal(size=(7, 6))

    def without_scale(q, k, v, grad_output):
        grad_q, grad_k, grad_v = attention_backward(q, k, v, grad_output)
        return grad_q * 2, grad_k * 2, grad_v  # √d_k = 2 was forgotten

    for backward in (attention_backward, without_scale):
        print(f"{backward.__name__:18}", wrong_gradients(lambda q, k, v: attention(q, k, v)[0], backward, inputs, rng.normal(size=(5, 6))))

# %% [markdown]
# ## Two independent witnesses
#
# Now we test the whole backward pass at once, on random numbers. Two witnesses know nothing of your formulas: your own instrument,
# which only runs the forward pass, and torch, which derives the backward pass from the forward pass by itself.

# %% [markdown]
# @predict
#
# Everything is in float64. How large is the largest difference between your gradients and those of each witness?
#
# - **A** About 1e-16 for both.
# - **B** About 1e-10 for the instrument, 1e-15 for torch.
# - **C** About 1e-5 for the instrument, since that is its step, and 1e-15 for torch.
#
# @answer
#
# **B.** torch does the same arithmetic in another order, so only the last digits of float64 differ. The instrument has about ten
# right digits with this step, as measured above. Its error is not of the size of the step, 1e-5, but of its square, 1e-10, with
# some rounding on top.
#
# @wrong
#
# If you said C, you took the step for the error. A one-sided difference would have an error of that order; in the central one the
# first-order part cancels.

# %% role="payoff" exercise="attention_backward"
if passed(attention_backward) and passed(numerical_gradient):
    rng = np.random.default_rng(8)
    queries, keys, values = rng.normal(size=(5, 4)), rng.normal(size=(7, 4)), rng.normal(size=(7, 6))
    direction = rng.normal(size=(5, 6))  # the ∂O of this test

    def loss(q, k, v):
        return (attention(q, k, v)[0] * direction).sum()

    by_hand = attention_backward(queries, keys, values, direction)
    measured = (
        numerical_gradient(lambda q: loss(q, keys, values), queries),
        numerical_gradient(lambda k: loss(queries, k, values), keys),
        numerical_gradient(lambda v: loss(queries, keys, v), values),
    )
    for name, one, other in zip("qkv", by_hand, measured):
        print(f"∂{name}: measured and by hand differ by {np.abs(one - other).max():.0e}")
        assert np.abs(one - other).max() < 1e-8

# %% role="payoff" exercise="attention_backward"
if passed(attention_backward) and passed(numerical_gradient):
    import torch

    tensors = [torch.tensor(x, requires_grad=True) for x in (queries, keys, values)]
    torch_output = torch.softmax(tensors[0] @ tensors[1].mT / 4**0.5, dim=-1) @ tensors[2]
    torch_output.backward(torch.from_numpy(direction))
    for name, one, tensor in zip("qkv", by_hand, tensors):
        print(f"∂{name}: torch and by hand differ by {np.abs(one - tensor.grad.numpy()).max():.0e}")
        assert np.abs(one - tensor.grad.numpy()).max() < 1e-13

# %% [markdown]
# ## On to the projections
#
# In a model q, k and v are not given but computed from the tokens: $Q = X W_Q$, $K = X W_K$, $V = X W_V$. What is trained are the
# three matrices, and the rule for products gives their gradients at once: $\partial W_Q = X^\top \partial Q$, and likewise for the
# others.
#
# The tokens X are used three times. A change of X reaches the loss on three paths, and as before the contributions of all paths
# *add up*:
#
# $$\partial X = \partial Q\, W_Q^\top + \partial K\, W_K^\top + \partial V\, W_V^\top$$

# %% role="payoff" exercise="attention_backward"
if passed(attention_backward) and passed(numerical_gradient):
    x, w_q, w_k, w_v = (rng.normal(size=size) for size in ((5, 3), (3, 4), (3, 4), (3, 6)))

    def projected_loss(x, w_q):
        return loss(x @ w_q, x @ w_k, x @ w_v)

    dq, dk, dv = attention_backward(x @ w_q, x @ w_k, x @ w_v, direction)
    dx = dq @ w_q.T + dk @ w_k.T + dv @ w_v.T
    off_w = np.abs(numerical_gradient(lambda w: projected_loss(x, w), w_q) - x.T @ dq).max()
    off_x = np.abs(numerical_gradient(lambda x: projected_loss(x, w_q), x) - dx).max()
    print(f"∂W_Q: measured and by hand differ by {off_w:.0e}; ∂X: by {off_x:.0e}")
    assert max(off_w, off_x) < 1e-8

# %% [markdown]
# ## A shortcut that the fast kernels use
#
# The row's weighted mean can be computed without ∂W. Put in the sum for ∂W, and exchange the two sums:
#
# $$\sum_j W_{ij}\, \partial W_{ij} \;=\; \sum_j W_{ij} \sum_c \partial O_{ic}\, V_{jc} \;=\; \sum_c \partial O_{ic} \sum_j W_{ij}\, V_{jc}
# \;=\; \sum_c \partial O_{ic}\, O_{ic}$$
#
# So the weighted mean of a row is the dot product of the query's output with that output's gradient. This takes d_v products for
# each query. The sum over all keys takes T_k of them and needs a whole row of weights at once.

# %% role="demo" tags=["nbval-check-output"]
print("sum over keys    :", (weights * (grad_output @ v.T)).sum(axis=-1).round(6))
print("sum over features:", (output * grad_output).sum(axis=-1).round(6))
assert np.allclose((weights * (grad_output @ v.T)).sum(axis=-1), (output * grad_output).sum(axis=-1))

# %% [markdown]
# ## Break it on purpose: a gradient without the row's mean
#
# The most common slip in this lesson is to write `weights * grad_weights` and leave out the row's mean. Does training
# still work then? We choose three outputs as targets, and let gradient descent change three rows of scores until
# attention gives these outputs: once with your formula, and once without the mean. The loss is the mean squared error
# of each row.

# %% [markdown]
# @predict
#
# What does the loss do with the wrong gradient?
#
# - **A** It rises from the first step on.
# - **B** It falls as it should, only more slowly.
# - **C** It falls at first, and ends above where it should.
#
# @answer
#
# **C.** For a while the wrong gradient points downhill, too. Rows 0 and 1 even reach their targets. Row 2 comes
# closer at first, and is then driven away again. The text below the figure explains why.
#
# @wrong
#
# If you said A, you expected a wrong gradient to show at once. The dangerous mistakes are those that still let the
# loss fall. If you said B, you may have thought of a missing factor, such as a forgotten 1/√d_k. That changes only
# the size of the steps. A missing mean changes their direction.

# %% role="demo"
def descend(rule, seed=3, steps=400, rate=1.0):
    """At each step: the loss of each row, the gradients g of its weights, and the weights p."""
    rng = np.random.default_rng(seed)
    values, scores = rng.normal(size=(5, 2)), rng.normal(size=(3, 5))
    target = softmax(rng.normal(size=(3, 5)) * 2) @ values
    seen = []
    for _ in range(steps):
        p = softmax(scores)
        error = p @ values - target
        g = error @ values.T  # of the mean of two squares, so that the 2 cancels
        seen.append(((error**2).mean(axis=-1), g, p))
        scores = scores - rate * rule(g, p)
    return [np.array(each) for each in zip(*seen)]


def no_mean(grad_weights, weights):
    """The wrong rule."""
    return weights * grad_weights

# %% role="payoff" exercise="softmax_backward"
if passed(softmax_backward):
    (right, _, _), (wrong, g, p) = descend(softmax_backward), descend(no_mean)
    lowest, end = wrong.mean(axis=-1).min(), wrong.mean(axis=-1)[-1]
    assert right[-1].mean() < 1e-10 and (wrong[-1, :2] < 1e-20).all() and end > 2 * lowest
    g, p = g[:, 2], p[:, 2]  # row 2, (steps, keys)
    key = p[-1].argmax()
    own, mean = g[:, key], (p * g).sum(axis=-1)
    crossing = (own > mean).argmax()  # the first step with g above the mean
    assert (own < 0).all() and (own[crossing:100] > mean[crossing:100]).all() and p[-1, key] > 0.999
    assert (p.argmax(axis=-1) == key).all() and ((p * g).argmin(axis=-1) == key).all()  # largest weight, raised fastest
    figures.attention_backward.descents(right, wrong, own, mean)
    print("weights of row 2 in the end:", p[-1].round(3))
    starts = np.array([descend(no_mean, seed)[0].mean(axis=-1) for seed in range(40)])  # (start, step)
    sound = np.array([descend(softmax_backward, seed)[0].mean(axis=-1) for seed in range(40)])
    ahead = (starts[:, -1] < sound[:, -1]).sum()
    turned = (starts[:, -1] > 1.05 * starts.min(axis=-1) + 1e-6).sum()

# %% [markdown]
# With the wrong rule the loss falls from {{ wrong[0].mean():.3f }} to {{ lowest:.3f }} within
# {{ wrong.mean(axis=-1).argmin() }} steps, and then *rises* to {{ end:.3f }}, where it stays. The panel in the middle
# shows the rows one by one: rows 0 and 1 reach their targets, row 2 does not. The panel on the right follows one key
# of row 2, the one that has all the weight in the end. Its gradient is negative at every step: more weight on it would
# lower the loss. But from step {{ crossing }} on its gradient lies *above* the weighted mean of the row (shaded),
# because the other keys would, on average, lower the loss more. So the right formula would lower its score. The wrong
# rule makes no such comparison. It raises the score at every step, and faster than any other, because this key has the
# largest weight. In the end that key has all the weight. Its score goes on rising, but the weights no longer change.
#
# We chose this start because it shows the turn so clearly. The loss rises again from {{ turned; 1 <= it <= 10 }} of 40 random starts,
# this one among them; from the others it keeps falling or levels off. From {{ ahead; 5 <= it <= 20 }} of the 40 the wrong rule even
# ends *lower* after these 400 steps than the right one, because where its direction happens to be good its steps are
# longer.
#
# So neither a falling loss nor a lower one shows that a gradient is right. Compare your
# gradient with one that was found in another way, as you did with the two witnesses.

# %% role="demo"
explain("BW1")

# %% [markdown]
# ## Where this leads
#
# The backward pass needs the weights. Either they are kept from the forward pass, or they are computed again.
# FlashAttention (Dao et al. 2022, section 3.1 and appendix B) computes them again, one block of queries and keys at a
# time. For this it keeps only two numbers for each query: the largest score of its row, and the sum by which softmax
# divides. FlashAttention-2 (Dao 2023) combines the two into one number. Both use the shortcut above. So they do a
# little more arithmetic and save a lot of memory. Lesson 07 splits attention into heads, and each head has exactly
# this backward pass.
#
# ## What we keep
#
# - ∂X has the shape of X and says how the loss *grows* with each entry. Descent goes the other way.
# - For a product C = A B: ∂A = ∂C Bᵀ and ∂B = Aᵀ ∂C. When sizes agree, only the indices tell which factor is transposed.
# - Softmax compares: ∂s_j = p_j (g_j − Σ_i p_i g_i). A weight near 0 or 1 lets almost no gradient through, and a hidden key gets
#   exactly 0.
# - What is used several times collects several gradients, and they add up.
# - Trust a gradient when an instrument that does not know its formula agrees with it, to nine or ten digits in float64.
#
# | array | shape | gradient |
# |---|---|---|
# | output O | (…, T_q, d_v) | ∂O, given |
# | values V | (…, T_k, d_v) | ∂V = Wᵀ ∂O |
# | weights W | (…, T_q, T_k) | ∂W = ∂O Vᵀ |
# | scores S | (…, T_q, T_k) | ∂S = W ⊙ (∂W − weighted mean of each row) |
# | queries Q | (…, T_q, d_k) | ∂Q = ∂S K / √d_k |
# | keys K | (…, T_k, d_k) | your answer to the last exercise |

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners leave with two things: the five gradients of attention, derived by sums over indices, and a habit, to measure a gradient
# before trusting it. The sign (a gradient says how the loss grows) and softmax's weighted mean are the two places where rooms
# split; both have a prediction. Everything is in NumPy, so that nothing is done by a library.
#
# ## Cut for 60 minutes
#
# Keep `numerical_gradient`, the last product with its prediction, softmax with its prediction, `softmax_backward`, and the
# experiment without the row's mean. Give `attention_backward` as homework. Leave out the projections, the shortcut and the section
# on masks.
#
# ## Cut for 90 minutes
#
# As for 60, with `attention_backward` in class and the two witnesses. Leave out the projections and the shortcut, or tell the
# shortcut in two minutes at the board.
#
# ## Mistakes to expect
#
# - numerical_gradient ND6: After `down = up`, how many arrays are there?
# - numerical_gradient ND8: What would f see if it had kept the array of the call before?
# - numerical_gradient ND14: For a 3 × 4 matrix, how many numbers does `x[i]` have?
# - softmax_backward BW1: What should each row of your result sum to, and why?
# - softmax_backward GB19: Does a key of weight 0.01 count as much for the mean as one of weight 0.9?
# - softmax_backward GB16: What shape does your sum have, and along which axis does NumPy line it up?
# - attention_backward GB7: Row j of ∂K belongs to key j. Does row j of what you multiply belong to a key or to a query?
# - attention_backward BW2: Through which factor does a score depend on q?
# - attention_backward GB10: With as many queries as keys, what could tell you that two results are exchanged?
# - wrong_gradients WG2: What is `float("nan") > 1e-4`?
# - wrong_gradients WG1: For which grad_output is a backward pass right that ignores it?
#
# ## To discuss
#
# 1. *Softmax's gradient vanishes where one weight is near 1. Is that a flaw?* A good answer has both sides: a decided model should
#    not be moved by noise, and a wrongly decided one cannot be moved by the truth. It names what keeps scores small at the start:
#    the factor 1/√d_k, small initial weights, normalization.
# 2. *A team's hand-written backward pass trains well for a week. What would convince you that it is right?* A good answer does not
#    accept the falling loss. It asks for a comparison with finite differences in float64, on sizes that all differ, for every input,
#    with some weights near 0 and 1, and for a comparison with autograd.
#
# ## On paper
#
# One query, two keys. The scores are equal, so p = (½, ½). The values are one number each, 3 and 1, and ∂O = 2. Compute ∂V, ∂W, ∂S,
# and say what descent does to the output.
#
# *Solution.* ∂V = (½ · 2, ½ · 2) = (1, 1). ∂W = (2 · 3, 2 · 1) = (6, 2). The weighted mean is ½ · 6 + ½ · 2 = 4, so
# ∂S = (½ · (6 − 4), ½ · (2 − 4)) = (1, −1). Descent lowers the first score and raises the second: weight moves from the value 3 to
# the value 1, and the output falls below 2, which is what a positive ∂O asks for. Check: O · ∂O = 2 · 2 = 4, the weighted mean.
