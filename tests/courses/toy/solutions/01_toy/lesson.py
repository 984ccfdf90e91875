# %% [markdown]
# # A toy

# %% role="given"
import numpy as np

from grader import check, figures, passed

# %% role="demo"
print(np.pi)
figures.nothing_that_exists()

# %% role="given"
OFFSET = 0


# %% role="exercise" exercise="double"
def double(x):
    """Twice x."""
    # region solution
    return OFFSET + 2 * x
    # endregion


# %% role="check" exercise="double"
check(double)

# %% role="payoff" exercise="double"
if passed(double):
    print(double(2))


# %% role="exercise" exercise="row_sums"
def row_sums(x):
    """The sum of each row."""
    # region solution
    return np.sum(x, axis=1)
    # endregion


# %% role="exercise" exercise="the_answer"
# region solution: the_answer = None  # two numbers
the_answer = [4, 2]
# endregion
