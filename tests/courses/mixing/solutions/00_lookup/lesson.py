# %% [markdown]
# # 00 · Looking up
#
# **Which value belongs to a query?**
#
# **Before this lesson:** a mean.

# %% role="given"
import numpy as np

from grader import check, figures, passed, progress

# %% [markdown]
# @exercise nearest
#
# `query` (d,), `keys` (n, d), `values` (n, d_v) → (d_v,)


# %% role="exercise" exercise="nearest"
def nearest(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the value whose key has the largest dot product with the query.

    query: (d,). keys: (n, d). values: (n, d_v). Returns: (d_v,).
    """
    # region solution
    scores = keys @ query
    return values[np.argmax(scores)]
    # endregion


# %% role="check" exercise="nearest"
check(nearest)

# %% role="payoff" exercise="nearest"
if passed(nearest):
    print(nearest(np.array([1.0, 0.0]), np.eye(2), np.array([[10.0], [20.0]])))

# %% role="demo"
progress()

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
# - nearest LU1: What does this give for 1 and 3?
# - nearest LU2: What does this give for 1 and 3?
#
# ## To discuss
#
# Is a mean a mix?
#
# ## On paper
#
# The mean of 1 and 3. Solution: 2.
