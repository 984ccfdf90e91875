# %% [markdown]
# # 13 · Gradients by hand
#
# **How does an error in the output find its way back to the queries, keys and values?**
#
# **Before this lesson:** matrix products and transposes; partial derivatives and the chain rule; softmax (lesson 02),
# attention in NumPy (lesson 03), what `backward()` does (lesson 05).
#
# In lesson 05 one call of torch computed every gradient. Here you compute them yourself, in NumPy, and build a test that finds a wrong
# gradient without reading the code. At the end, attention learns a task from your gradients alone.

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
# ## One example
#
# "The animal didn't cross the street because it was too tired." Two words are queries, *it* and *was*. Three others,
# *animal*, *street* and *tired*, have a key and a value each. The values have two features, "is alive" and "is a place".
# We chose the numbers by hand: the scaled scores of *it* are ln 2, 0 and 0, and so its weights are ½, ¼ and ¼.

# %% role="demo" tags=["nbval-check-output"]
# a fourth feature, always 0, makes √d_k a 2
q = np.log(2) * np.array([[1.0, 0, 0, 0], [0, 0, 1, 0]])  # it, was
k = np.array([[2.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0]])  # animal, street, tired
v = np.array([[2.0, 0], [0, 1], [1, 0]])  # columns: is alive, is a place
output, weights = attention(q, k, v)
print("weights of 'it' :", weights[0].round(4), "  output:", output[0].round(4))
print("weights of 'was':", weights[1].round(4), "  output:", output[1].round(4))

# %% [markdown]
# ## What a gradient says
#
# A **loss** L is one number that says how wrong the outputs are. The **gradient** of an array X holds the derivatives ∂L/∂x, one for
# each entry x. We write **dX** for it. dX has the shape of X, and each entry says **how much the loss grows when that entry of X
# grows**, per unit of growth and for small changes. A negative entry means that the loss falls.
#
# Training wants the loss to fall, so **gradient descent** moves each number *against* its gradient: *x* − learning rate · *dx*.
# The minus sign belongs to this step and never to the gradient.
#
# Suppose that the loss falls when *it* becomes more alive or less of a place, and when *was* becomes less of a place. This dO says so;
# the code calls it `grad_output`.

# %% role="demo"
grad_output = np.array([[-1.0, 1.0], [0.0, 2.0]])  # it: alive should grow, place should shrink; was: place should shrink

# %% [markdown]
# Attention takes three steps: a product, a softmax, a product. **Backpropagation** goes through them in reverse, from dO on. At each
# step it asks: given the gradient of what came out (the **upstream gradient**), what is the gradient of what went in? We derive dV
# and dW; the others are yours:

# %% role="demo"
figures.attention_backward.road_back(solved=False)

# %% [markdown]
# ## First, a way to measure
#
# Move one number of the input up by a small step h, move it down by h, and divide the difference of the two losses by the distance
# 2h:
#
# $$dx \approx \frac{L(x + h) - L(x - h)}{2h}$$
#
# This is a **central difference**, one of the **finite differences**. It costs two evaluations of the loss for every single number, so
# nobody trains a model like this. But it uses no formula, and so it cannot repeat a mistake in yours. Comparing the two is called a
# **gradient check**.

# %% [markdown]
# @exercise numerical_gradient
#
# `f` takes an array of the shape of x and returns a float, `x` is a float64 array of any shape, `step` is the h of the formula
# → float64 array of the shape of x
#
# Each entry of the result is the central difference of that entry of x, while all others stay where they are. Call `f` with
# float64 arrays of the shape of x only. It may keep or change what it is given, so give it a fresh copy at each call. x itself
# must not change. "Any shape" includes a single number, which is an array of shape ().

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
# ## Backward through the last product
#
# The last step is O = W V. The output of query *i* in feature *c* is a sum over the keys *j*:
#
# $$O_{ic} = \sum_j W_{ij} V_{jc}$$
#
# Every query *i* uses the value of key *j*, each with its own weight. The chain rule adds up all paths from that value to the loss:
#
# $$dV_{jc} = \sum_i W_{ij}\,dO_{ic}$$
#
# To measure this we need a loss. Take the sum of O · dO over all entries, with dO held fixed: its derivative with respect to $O_{ic}$ is
# $dO_{ic}$. So `(output * grad_output).sum()` can test every formula.

# %% [markdown]
# @predict
#
# *It* gives ½ of its weight to *animal*, *was* gives ¼. The gradients of their outputs are (−1, 1) for *it* and (0, 2) for *was*. What
# is dV for *animal*, both features?
#
# @answer
#
# "Is alive": ½ · (−1) + ¼ · 0 = **−½**. "Is a place": ½ · 1 + ¼ · 2 = **1**. The loss falls when the animal becomes more alive, and
# grows when it becomes more of a place.
#
# @wrong
#
# With (−1, 3) you left out the weights. With (−½, ½) you counted only *it*, but both queries used this value.

# %% role="payoff" exercise="numerical_gradient"
if passed(numerical_gradient):
    measured = numerical_gradient(lambda v: (weights @ v * grad_output).sum(), v)
    print("dV measured:\n", measured.round(6))
    print("dV = Wᵀ dO:\n", (weights.T @ grad_output).round(6))
    assert np.allclose(weights.T @ grad_output, measured) and np.allclose(measured[0], [-0.5, 1.0])

# %% [markdown]
# The sum runs over *i*, the *first* index of W. A matrix product sums over the last index of its left factor, so W has to be
# transposed: dV = Wᵀ dO.
#
# One weight touches only the output of its own query *i*, but all features *c* of it:
#
# $$dW_{ij} = \sum_c dO_{ic} V_{jc} \quad\text{that is}\quad dW = dO\,V^\top$$
#
# For *it* and *animal* this is −1 · 2 + 1 · 0 = −2.
#
# Both are cases of one rule (Goodfellow, Bengio and Courville 2016, section 6.5). For a product C = A B, **dA = dC Bᵀ** and **dB = Aᵀ
# dC**. Often the shapes leave only one order. Where T_q = T_k, only the indices tell whether W dO or Wᵀ dO is right.
#
# ## Backward through softmax
#
# The weights of a query cannot change independently, because they sum to 1. How do they move together? Take the row (½, ¼, ¼), and
# raise its first score by 0.01:

# %% role="demo" tags=["nbval-check-output"]
row = np.log([0.5, 0.25, 0.25])
gained = softmax(row + [0.01, 0, 0]) - softmax(row)
print("what each weight gains, divided by the step:", (gained / 0.01).round(3))

# %% [markdown]
# The first weight gains ½ · ½ of the step, each of the others loses ½ · ¼. Why? Raise one score $s_j$ of a row with weights *p* by a tiny
# ε. Its exponential grows by the factor 1 + ε. It is the share $p_j$ of the sum, so the sum grows by the factor $1+εp_j$. Dividing by
# it takes $εp_j$ of itself from every weight, to first order: weight *i* loses $εp_jp_i$. Weight *j* also gains $εp_j$. So we have
# lesson 04's **Jacobian**:
#
# $$\frac{\partial p_i}{\partial s_j} = p_i(\delta_{ij} - p_j) \quad \delta_{ij} = 1 \text{ where } i = j\text{, else } 0$$
#
# The paths over all weights of the row add up. With $g_i$ for the gradient of weight *i*:
#
# $$ds_j = \sum_i g_i p_i(\delta_{ij} - p_j)$$
#
# The last step is yours: take this sum apart. What is left of the part with δ? And which number is the same for all *j*?

# %% [markdown]
# @exercise softmax_backward
#
# `grad_weights` (..., n), `weights` (..., n) → (..., n), the gradient with respect to the scores
#
# The last axis is a row; any number of axes may stand in front. Here and in the next exercise, use NumPy alone, and no finite
# differences.

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
# Taken apart, the sum is
#
# $$ds_j = p_j\Bigl(g_j - \sum_i p_i g_i\Bigr)$$
#
# The sum that is left is the mean of the row's gradients, each counted by its weight: the row's **weighted mean**. So a score's gradient
# is a comparison: does the gradient of its weight lie above the mean of its row, or below?

# %% [markdown]
# @predict
#
# For *it* we have p = (½, ¼, ¼) and g = (−2, 1, −1), for *animal*, *street* and *tired*. Gradient *descent* takes a small step. What
# happens to the score of *tired*, whose g of −1 says that more of its weight would lower the loss?
#
# - **A** It rises.
# - **B** It falls.
# - **C** It stays.
#
# @answer
#
# **C.** The weighted mean is ½ · (−2) + ¼ · 1 + ¼ · (−1) = −1, exactly the g of *tired*. What *tired* would gain, the other two
# would lose. The three scores' gradients are (−½, ½, 0): descent raises *animal* and lowers *street*.
#
# @wrong
#
# A lets the weight grow without taking anything from the others. B takes the gradient for the direction to go, but it is the direction
# in which the loss *grows*.

# %% role="payoff" exercise="softmax_backward"
if passed(softmax_backward) and passed(numerical_gradient):
    p, g = np.array([0.50, 0.25, 0.25]), np.array([-2.0, 1.0, -1.0])
    measured = numerical_gradient(lambda s: (softmax(s) * g).sum(), np.log(p))
    print("yours    =", softmax_backward(g, p))
    print("measured =", measured.round(6) + 0.0)
    assert np.allclose(softmax_backward(g, p), measured)

# %% [markdown]
# The three numbers sum to 0: raising all scores of a row alike changes no weight, so it cannot change the loss.
#
# All six pairs (descent raises what is negative):

# %% role="payoff" exercise="softmax_backward"
if passed(softmax_backward):
    grad_weights = grad_output @ v.T
    grad_scores = softmax_backward(grad_weights, weights)
    figures.attention_backward.pairs(weights, grad_weights, grad_scores)
    assert np.allclose(grad_scores, [[-0.5, 0.5, 0], [-0.125, 0.375, -0.25]])

# %% [markdown]
# ### Where scores stop learning
#
# The formula multiplies by the weight, so a small weight lets only a small gradient through. A weight near 1 has the same effect. Take
# two keys with weights *w* and 1 − *w*, and g = (1, 0). The weighted mean is *w*, and the first score's gradient is *w* · (1 − *w*).

# %% role="payoff" exercise="softmax_backward"
if passed(softmax_backward):
    first = np.linspace(0, 1, 101)
    two = np.stack([first, 1 - first], axis=-1)
    passed_on = softmax_backward(np.tile([1.0, 0.0], (101, 1)), two)[:, 0]
    figures.attention_backward.gradient_by_weight(first, passed_on)
    assert np.isclose(passed_on.max(), 0.25) and passed_on[0] == passed_on[-1] == 0

# %% [markdown]
# At a weight of 0 or 1 nothing reaches the score, however wrong the output is; near 1 the whole row is saturated (lesson 04). So a
# mask needs no line of its own in the backward pass: a hidden score has weight 0, and gradient 0.
#
# ## Backward through the scores
#
# What is left is S = Q Kᵀ / √d_k. Each score sums over the features *a*:
#
# $$S_{ij} = \frac{1}{\sqrt{d_k}}\sum_a Q_{ia}K_{ja}$$
#
# Both gradients are yours. Which scores does one entry of Q reach, and which does one of K? Write down the two sums, then two
# products of matrices.

# %% [markdown]
# @exercise attention_backward
#
# `q` (..., T_q, d_k), `k` (..., T_k, d_k), `v` (..., T_k, d_v), `grad_output` (..., T_q, d_v)
# → `(grad_q, grad_k, grad_v)`, each with the shape of its input
#
# Leading dimensions may be any; scores may be in the thousands. You may call your `softmax_backward`.

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
# For *it*, ds is (−½, ½, 0). So the gradient of its query is ½ (street's key − animal's key), divided by √d_k. Descent subtracts this:
# the query moves *toward* the key of *animal* and *away from* that of *street*. The score of *tired* stays at first, but its
# weight falls: the sum has grown. 60 steps with keys, values and dO held fixed:

# %% role="payoff" exercise="attention_backward"
if passed(attention_backward):
    moving, path = q.copy(), []
    for _ in range(61):
        path.append(attention(moving, k, v)[1][0])  # the weights of 'it'
        moving -= 0.2 * attention_backward(moving, k, v, grad_output)[0]
    figures.attention_backward.path(np.array(path))
    assert path[-1][0] > 0.9 and path[10][0] - path[0][0] > path[-1][0] - path[10][0]

# %% [markdown]
# ## Which gradient is wrong?
#
# People write the backward passes of fast GPU programs by hand, and make mistakes. You can now check such a pass, even for a layer
# that you never derived.

# %% [markdown]
# @exercise wrong_gradients
#
# `forward`, `backward`, `inputs` (a tuple of float64 arrays), `grad_output` → the list of the positions in `inputs` whose claimed
# gradient is wrong, in ascending order; `[]` where all are right
#
# `forward(*inputs)` returns an array. `backward(*inputs, grad_output)` claims to return, for each input, the gradient of
# `(forward(*inputs) * grad_output).sum()`. A gradient is *wrong* if it has another shape than its input, or holds a NaN, or differs
# anywhere from the true one by more than 1e-4 · (1 + max |true|). Leave the inputs as they are. Finite differences are allowed here.

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

# %% [markdown]
# ### Break it on purpose: three strangers
#
# Three backward passes by strangers: A and B for a softmax and the product with the values, C for a linear layer. Each runs, and has one
# mistake.

# %% role="payoff" exercise="wrong_gradients"
if passed(wrong_gradients) and passed(softmax_backward):

    def attend(s, v):
        return softmax(s) @ v

    def linear(x, w, b):
        return x @ w + b

    claims = {
        "A": (attend, lambda s, v, g: (softmax(s) * (g @ v.T), softmax(s).T @ g)),
        "B": (attend, lambda s, v, g: (softmax_backward(g @ v.T, softmax(s)), softmax(s) @ g)),
        "C": (linear, lambda x, w, b, g: (g @ w.T, x.T @ g, g.mean(axis=0))),
    }

# %% [markdown]
# @predict
#
# Which of the returned gradients is wrong in A, which in B, and which in C?
#
# @answer
#
# A: that of the scores. The row's weighted mean is missing. B: that of the values. W is not transposed, and with as many queries as
# keys the shapes fit all the same. C: that of the bias. Every row of the output uses b, so the contributions of all rows *add up*:
# g.sum(axis=0), not the mean.
#
# @wrong
#
# The rows of A's first result do not sum to 0. In B and C, write down the sum.

# %% role="payoff" exercise="wrong_gradients" tags=["nbval-check-output"]
if passed(wrong_gradients) and passed(softmax_backward) and passed(attention_backward):
    whole = lambda q, k, v: attention(q, k, v)[0]
    claims["yours"] = (whole, attention_backward)
    sizes = {attend: [(4, 4), (4, 4), (4, 4)], linear: [(4, 3), (3, 2), (2,), (4, 2)], whole: [(5, 4), (7, 4), (7, 6), (5, 6)]}
    rng = np.random.default_rng(3)
    found = {}
    for name, (forward, backward) in claims.items():
        *inputs, upstream = [rng.normal(size=size) for size in sizes[forward]]
        found[name] = wrong_gradients(forward, backward, tuple(inputs), upstream)
    print(found)
    assert found == {"A": [0], "B": [1], "C": [2], "yours": []}

# %% [markdown]
# Your test found all three.
#
# ## It learns to read backwards
#
# Nine places have a query and a key each, random at first. The values are nine random letters, and the output should be these letters
# from right to left. Nobody says where a place should look. The loss is half the squared error, so dO is the output minus what it
# should be. Now and then we try a fixed word:

# %% role="payoff" exercise="attention_backward"
if passed(attention_backward):
    letters, rng, word, stages = np.eye(26), np.random.default_rng(13), "NOITNETTA", {}  # a letter has one feature of its own
    queries, keys = rng.normal(size=(2, 9, 8))
    for count in range(101):
        if count in (0, 10, 30, 100):
            stages[count] = attention(queries, keys, letters[[ord(letter) - ord("A") for letter in word]])
        values = letters[rng.integers(26, size=9)]
        wrong_by = attention(queries, keys, values)[0] - values[::-1]
        dq, dk, _ = attention_backward(queries, keys, values, wrong_by)
        queries, keys = queries - dq, keys - dk
    written = figures.attention_backward.backwards(word, stages)
    assert written[0] != written[100] == "ATTENTION"

# %% [markdown]
# Each place has found its mirror image. dO said only which letters were wrong; your dQ and dK turned this into where to look.

# %% [markdown]
# ## Further: how small a step?
#
# A central difference has the step h, and 1e-5 is the default. For anyone who wants to know what decides it: mathematics says "the
# smaller the better", and floating point disagrees.

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
# **B.** There are two errors. When h is large, the curve bends away from its tangent between the two points. This error is about
# h²/6 times the third derivative, so it falls a hundredfold when h falls tenfold. When h is small, we subtract two nearly equal
# numbers. float64 keeps about 16 digits of each, and this rounding error of about 1e-16 is divided by 2h, so it grows as h falls. The
# sum is smallest where the two are about equal, near h = 1e-5.
#
# @wrong
#
# A is right on paper, where h goes to 0. In floating point the subtraction runs out of digits first.

# %% role="payoff" exercise="numerical_gradient"
if passed(numerical_gradient):
    steps = 10.0 ** np.arange(-12, -0.5, 0.5)
    slopes = np.array([numerical_gradient(np.sin, np.array(1.0), step) for step in steps])
    errors = np.abs(slopes - np.cos(1.0))
    one_sided = np.abs((np.sin(1.0 + steps) - np.sin(1.0)) / steps - np.cos(1.0))
    figures.attention_backward.step_errors(steps, errors, one_sided)
    assert 1e-6 < steps[errors.argmin()] < 1e-4 and errors.min() < 1e-10 < one_sided.min()

# %% [markdown]
# A one-sided difference, (f(x + h) − f(x)) / h, never gets that far, because its error falls with h and not with h².

# %% [markdown]
# ## Further: on to the projections
#
# In a model q, k and v are computed from the tokens X. For anyone who wants the gradients of what is trained: the three projections,
# and X itself.

# %% [markdown]
# With $Q = X W_Q$, $K = X W_K$ and $V = X W_V$, the rule for products gives the gradients of the three matrices at once:
# $dW_Q = X^\top dQ$, and likewise for the others. The tokens X are used three times. A change of X reaches the loss on three paths,
# and as before the contributions of all paths *add up*:
#
# $$dX = dQ\, W_Q^\top + dK\, W_K^\top + dV\, W_V^\top$$

# %% role="payoff" exercise="attention_backward"
if passed(attention_backward) and passed(numerical_gradient):
    rng = np.random.default_rng(13)
    x, w_q, w_k, w_v, upstream = (rng.normal(size=size) for size in ((5, 3), (3, 4), (3, 4), (3, 6), (5, 6)))

    def projected_loss(x, w_q):
        return (attention(x @ w_q, x @ w_k, x @ w_v)[0] * upstream).sum()

    dq, dk, dv = attention_backward(x @ w_q, x @ w_k, x @ w_v, upstream)
    off_w = np.abs(numerical_gradient(lambda w: projected_loss(x, w), w_q) - x.T @ dq).max()
    dx = dq @ w_q.T + dk @ w_k.T + dv @ w_v.T
    off_x = np.abs(numerical_gradient(lambda x: projected_loss(x, w_q), x) - dx).max()
    print(f"measured and by hand differ by {off_w:.0e} in dW_Q, by {off_x:.0e} in dX")
    assert max(off_w, off_x) < 1e-8

# %% [markdown]
# ## Further: descent, with a right gradient and a wrong one
#
# What does a step with these gradients change? And would a falling loss have told us that stranger A's gradient is wrong? For anyone
# who trusts loss curves. First a published bug of the same kind as A's (A keeps even less), deeplearning4j/libnd4j#440:

# %% role="demo"
explain("GB5")

# %% [markdown]
# We move q, k and v of the example one small step against their gradients. Each number x changes by −rate · dx, and the loss
# changes by about dx times that: −rate · (dx)². So the gradients also predict how much the loss changes: −rate times the sum
# of all their squares.

# %% role="payoff" exercise="attention_backward"
if passed(attention_backward):
    dq, dk, dv = attention_backward(q, k, v, grad_output)
    rate = 0.01
    new_output, _ = attention(q - rate * dq, k - rate * dk, v - rate * dv)
    change = ((new_output - output) * grad_output).sum()
    expected = -rate * sum((grad**2).sum() for grad in (dq, dk, dv))
    print(f"the loss changes by {change:.4f}; the gradients predicted {expected:.4f}")
    assert np.isclose(change, expected, rtol=0.03)

# %% [markdown]
# Now many steps. Three rows of scores over five keys are to reach three given outputs; the loss is the mean squared error, and its
# gradient with respect to the outputs is the error itself, up to a constant that the rate absorbs. We run 400 steps from 40 random starts,
# once with your softmax gradient and once with stranger A's, which lacks the row's mean:

# %% role="demo"
def descend(rule, seed, steps=400, rate=1.0):
    """The loss at the start and at the end of gradient descent on the scores."""
    rng = np.random.default_rng(seed)
    values, scores = rng.normal(size=(5, 2)), rng.normal(size=(3, 5))
    target = softmax(rng.normal(size=(3, 5)) * 2) @ values
    for step in range(steps + 1):
        p = softmax(scores)
        error = p @ values - target
        if step in (0, steps):
            yield (error**2).mean()
        scores = scores - rate * rule(error @ values.T, p)

# %% role="payoff" exercise="softmax_backward"
if passed(softmax_backward):
    right = np.array([list(descend(softmax_backward, seed)) for seed in range(40)])  # (seed, start and end)
    wrong = np.array([list(descend(lambda g, p: p * g, seed)) for seed in range(40)])
    figures.attention_backward.descent_ends(right[:, 1], wrong[:, 1])
    halved, ahead = (wrong[:, 1] < wrong[:, 0] / 2).sum(), (wrong[:, 1] < right[:, 1]).sum()

# %% [markdown]
# With the wrong gradient the loss falls to less than half from {{ halved; it >= 36 }} of the 40 starts. From
# {{ ahead; 5 <= it <= 20 }} of them it even ends *lower* than with the right one. How many depends on the rate and on the number of steps:

# %% role="payoff" exercise="softmax_backward"
if passed(softmax_backward):
    lower = {rate: 0 for rate in (0.1, 0.3)}
    for rate in lower:
        for seed in range(40):
            (_, mine), (_, strange) = (descend(rule, seed, rate=rate) for rule in (softmax_backward, lambda g, p: p * g))
            lower[rate] += int(strange < mine)
    print("starts from which the wrong gradient ends lower, by rate:", lower)

# %% [markdown]
# Why does p · g work at all? Its direction is wrong, but seldom very wrong. In nearly all of these steps it makes an angle below 90°
# with the true gradient, and a small step against such a direction still lowers the loss.

# %% role="payoff" exercise="softmax_backward"
if passed(softmax_backward):
    downhill = []

    def strange_rule(g, p):
        downhill.append((p * g * softmax_backward(g, p)).sum() > 0)
        return p * g

    for seed in range(40):
        list(descend(strange_rule, seed))
    print(f"{np.mean(downhill):.0%} of the wrong steps make an angle below 90° with the true gradient")
    assert np.mean(downhill) > 0.85

# %% [markdown]
# So a falling loss does not show that a gradient is right, and neither does a lower one. A gradient check does, where you try it.

# %% [markdown]
# ## What we keep
#
# - dX has the shape of X and says how the loss *grows* with each entry.
# - For a product C = A B: dA = dC Bᵀ and dB = Aᵀ dC.
# - A score's gradient compares the gradient of its weight with the weighted mean of its row's. Near 0 or 1 almost nothing gets through.
# - What is used several times collects several gradients, and they add up.
# - Trust a gradient when a measurement agrees with it.
#
# | array | shape | gradient |
# |---|---|---|
# | output O | (…, T_q, d_v) | dO, given |
# | values V | (…, T_k, d_v) | dV = Wᵀ dO |
# | weights W | (…, T_q, T_k) | dW = dO Vᵀ |
# | scores S | (…, T_q, T_k) | dS = W ⊙ (dW − weighted mean of each row) |
# | queries Q, keys K | (…, T_q, d_k), (…, T_k, d_k) | dQ = dS K / √d_k, dK = dSᵀ Q / √d_k |

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners leave with two things: the five gradients of attention, derived by sums over indices, and a habit, to measure a gradient
# before trusting it. The sign (a gradient says how the loss grows) and softmax's weighted mean are the two places where rooms
# split; both have a prediction. Everything is in NumPy, so that nothing is done by a library. The Jacobian of softmax is derived
# here in three sentences, since lesson 02 has it in a further part.
#
# ## Cut for 60 minutes
#
# Keep "First, a way to measure", "Backward through the last product" and "Backward through softmax" with their predictions and
# `softmax_backward`, then show "Which gradient is wrong?" and "It learns to read backwards" from the solved notebook. Give
# `attention_backward` and `wrong_gradients` as homework.
#
# ## Cut for 90 minutes
#
# As for 60, with `wrong_gradients` in class, in pairs, and the three strangers as a contest. `attention_backward` is homework. The
# further parts stay at home: the step, the projections, descent.
#
# ## Mistakes to expect
#
# - numerical_gradient ND6: After `down = up`, how many arrays are there?
# - numerical_gradient ND8: What would f see if it had kept the array of the call before?
# - numerical_gradient ND14: For a 3 × 4 matrix, how many numbers does `x[i]` have?
# - softmax_backward BW1: What should each row of your result sum to, and why?
# - softmax_backward GB19: Does a key of weight 0.01 count as much for the mean as one of weight 0.9?
# - softmax_backward GB16: What shape does your sum have, and along which axis does NumPy line it up?
# - attention_backward GB7: Row j of dK belongs to key j. Does row j of what you multiply belong to a key or to a query?
# - attention_backward BW2: Through which factor does a score depend on q?
# - attention_backward GB10: With as many queries as keys, what could tell you that two results are exchanged?
# - wrong_gradients FF4: What is `float("nan") > 1e-4`?
# - wrong_gradients WG13: If the true gradient is about 1,000, how many digits does a tolerance of 1e-4 ask for?
# - wrong_gradients WG1: For which grad_output is a backward pass right that ignores it?
#
# ## To discuss
#
# 1. *Softmax's gradient vanishes where one weight is near 1. Is that a flaw?* A good answer has both sides: a query that has
#    rightly settled on a key should not be moved by noise, and one that has wrongly settled cannot be moved by the truth. It names
#    what keeps scores small at the start: the factor 1/√d_k, small initial weights, normalization.
# 2. *A team's hand-written backward pass trains well for a week. What would convince you that it is right?* A good answer does not
#    accept the falling loss. It asks for a comparison with finite differences in float64, on sizes that all differ, for every input,
#    with some weights near 0 and 1, and for a comparison with autograd. The last further part has the numbers: without the row's
#    mean the loss falls from every one of 40 starts, and from 11 of them (at rate 1, after 400 steps; at rate 0.1 from 24) it ends
#    below that of the right gradient.
#
# ## On paper
#
# One query, two keys. The scores are equal, so p = (½, ½). The values are one number each, 3 and 1, and dO = 2. Compute dV, dW, dS,
# and say what descent does to the output.
#
# *Solution.* dV = (½ · 2, ½ · 2) = (1, 1). dW = (2 · 3, 2 · 1) = (6, 2). The weighted mean is ½ · 6 + ½ · 2 = 4, so
# dS = (½ · (6 − 4), ½ · (2 − 4)) = (1, −1). Descent lowers the first score and raises the second: weight moves from the value 3 to
# the value 1, and the output falls below 2, which is what a positive dO asks for.
