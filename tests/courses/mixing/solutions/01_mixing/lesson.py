# %% [markdown]
# # 01 · Mixing
#
# **What is a mean that listens to a query?**
#
# **Before this lesson:** a mean.

# %% role="given"
import math

import numpy as np

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="given"
Q = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
K = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
V = np.array([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])

# %% [markdown]
# @predict
#
# The first query is [1, 0]. Which key fits it best?
#
# - **A** the first
# - **B** the second
# - **C** both fit equally well
#
# @answer
#
# **C**: both dot products are 1.
#
# @wrong
#
# **A** and **B** compare lengths or directions alone.

# %% role="demo"
figures.mixing.draw_scores(Q @ K.T)

# %% [markdown]
# @exercise products
#
# `Q` (n_q, d), `K` (n_k, d) → (n_q, n_k)


# %% role="exercise" exercise="products"
def products(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Return the dot product of every query with every key.

    Q: (n_q, d). K: (n_k, d). Returns: (n_q, n_k).
    """
    # region solution
    return Q @ K.T
    # endregion


# %% role="check" exercise="products"
check(products)

# %% role="payoff" exercise="products"
if passed(products):
    print(products(Q, K))

# %% [markdown]
# @exercise scaled
#
# `scores` (n_q, n_k), `d` → (n_q, n_k)


# %% role="exercise" exercise="scaled"
def scaled(scores: np.ndarray, d: int) -> np.ndarray:
    """Return the scores divided by the root of d.

    scores: (n_q, n_k). d: how many numbers a key has. Returns: (n_q, n_k).
    """
    # region solution
    return scores / math.sqrt(d)
    # endregion


# %% role="check" exercise="scaled"
check(scaled)

# %% [markdown]
# @exercise shares
#
# `scores` (n_q, n_k) → (n_q, n_k)


# %% role="exercise" exercise="shares"
def shares(scores: np.ndarray) -> np.ndarray:
    """Return the softmax of each row.

    scores: (n_q, n_k). Returns: (n_q, n_k); each row sums to 1.
    """
    # region solution
    shifted = scores - scores.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    return exponentials / exponentials.sum(axis=1, keepdims=True)
    # endregion


# %% role="check" exercise="shares"
check(shares)

# %% role="payoff" exercise="shares" tags=["nbval-check-output"]
if passed(shares):
    print(np.round(shares(np.array([[2.0, 1.0], [1.0, 1.0]])), 2))

# %% [markdown]
# @exercise blend
#
# `weights` (n_q, n_k), `V` (n_k, d_v) → (n_q, d_v)


# %% role="exercise" exercise="blend"
def blend(weights: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return the sum of the values, each multiplied by its weight.

    weights: (n_q, n_k). V: (n_k, d_v). Returns: (n_q, d_v).
    """
    # region solution
    return weights @ V
    # endregion


# %% role="check" exercise="blend"
check(blend)

# %% [markdown]
# @exercise mix
#
# `Q` (n_q, d), `K` (n_k, d), `V` (n_k, d_v) → output (n_q, d_v), weights (n_q, n_k)


# %% role="exercise" exercise="mix"
def mix(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values, mixed by how well their keys fit each query, and the weights.

    Q: (n_q, d). K: (n_k, d). V: (n_k, d_v). Returns: output (n_q, d_v) and weights (n_q, n_k).
    """
    # region solution
    scores = products(Q, K)
    weights = shares(scaled(scores, Q.shape[1]))
    output = blend(weights, V)
    return output, weights
    # endregion


# %% role="check" exercise="mix"
check(mix)

# %% role="payoff" exercise="mix"
if passed(mix):
    output, weights = mix(Q, K, V)
    print(np.round(output, 2))

# %% [markdown]
# @exercise first_output
#
# `first_output`: two numbers

# %% role="exercise" exercise="first_output"
# region solution: first_output = None  # two numbers
first_output = [5.0, 5.0]
# endregion

# %% role="check" exercise="first_output"
check(first_output)

# %% role="payoff" exercise="first_output"
if passed(first_output):
    print("Each row of V sums to 10, and so does each output.")

# %% [markdown]
# ## What we keep
#
# One line.

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# To be graded by tests.
#
# ## Cut for 60 minutes
#
# Nothing.
#
# ## Cut for 90 minutes
#
# Nothing either.
#
# ## Mistakes to expect
#
# - products MX1: What does this give for 1 and 3?
# - products MX2: What does this give for 1 and 3?
# - scaled MX4: What does this give for 1 and 3?
# - scaled MX5: What does this give for 1 and 3?
# - shares MX7: What does this give for 1 and 3?
# - shares MX8: What does this give for 1 and 3?
# - blend MX13: What does this give for 1 and 3?
# - blend MX14: What does this give for 1 and 3?
# - mix MX16: What does this give for 1 and 3?
# - mix MX6: What does this give for 1 and 3?
# - first_output MX19: What does this give for 1 and 3?
# - first_output MX20: What does this give for 1 and 3?
#
# ## To discuss
#
# Is a mean a mix?
#
# ## On paper
#
# The mean of 1 and 3. Solution: 2.
