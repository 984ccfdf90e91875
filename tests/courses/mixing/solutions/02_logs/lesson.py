# %% [markdown]
# # 02 · Logarithms
#
# **How surprised is a model?**
#
# **Before this lesson:** a mean.

# %% role="given"
import numpy as np

from grader import check, passed

# %% [markdown]
# @exercise log_shares
#
# `scores` (..., n) → (..., n)


# %% role="exercise" exercise="log_shares"
def log_shares(scores: np.ndarray) -> np.ndarray:
    """Return the logarithm of the softmax over the last axis.

    scores: (..., n). Returns: (..., n).
    """
    # region solution
    shifted = scores - scores.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    # endregion


# %% role="check" exercise="log_shares"
check(log_shares)

# %% [markdown]
# @exercise surprise
#
# `scores` (n, m), `target` (n,) → a number


# %% role="exercise" exercise="surprise"
def surprise(scores: np.ndarray, target: np.ndarray) -> float:
    """Return the mean of −log of each row's share at its target.

    scores: (n, m). target: (n,), whole numbers. Returns: a number.
    """
    # region solution
    logs = log_shares(scores)
    return -logs[np.arange(len(target)), target].mean()
    # endregion


# %% role="check" exercise="surprise"
check(surprise)

# %% role="payoff" exercise="surprise"
if passed(surprise):
    print(round(surprise(np.zeros((1, 4)), np.array([2])), 4))

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
# - log_shares MX22: What does this give for 1 and 3?
# - log_shares MX9: What does this give for 1 and 3?
# - surprise MX24: What does this give for 1 and 3?
# - surprise MX25: What does this give for 1 and 3?
#
# ## To discuss
#
# Is a mean a mix?
#
# ## On paper
#
# The mean of 1 and 3. Solution: 2.
