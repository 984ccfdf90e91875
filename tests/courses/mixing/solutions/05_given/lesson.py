# %% [markdown]
# # 05 · Given
#
# **How often do two draws agree?**
#
# **Before this lesson:** a mean.

# %% role="given"
import numpy as np

from grader import check, passed


def shares(scores: np.ndarray) -> np.ndarray:
    """Softmax of each row of small scores."""
    exponentials = np.exp(scores)
    return exponentials / exponentials.sum(axis=1, keepdims=True)


# %% role="demo"
for score in (0.0, 1.0, 3.0):
    print(shares(np.array([[0.0, score]])))

# %% [markdown]
# @exercise agreement
#
# `scores` (m, n) → (m,)


# %% role="exercise" exercise="agreement"
def agreement(scores: np.ndarray) -> np.ndarray:
    """Return the chance that two draws from a row's shares agree.

    scores: (m, n), none of them large. Returns: (m,).
    """
    # region solution
    weights = shares(scores)
    return (weights**2).sum(axis=1)
    # endregion


# %% role="check" exercise="agreement"
check(agreement)

# %% role="payoff" exercise="agreement"
if passed(agreement):
    print(agreement(np.zeros((1, 4))))

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
# - agreement MX50: What does this give for 1 and 3?
# - agreement MX51: What does this give for 1 and 3?
#
# ## To discuss
#
# Is a mean a mix?
#
# ## On paper
#
# The mean of 1 and 3. Solution: 2.
