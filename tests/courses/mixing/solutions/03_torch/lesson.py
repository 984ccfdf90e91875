# %% [markdown]
# # 03 · Torch
#
# **How does a mix learn?**
#
# **Before this lesson:** a mean.

# %% role="given"
import math

import numpy as np
import torch
import torch.nn as nn

from grader import check, passed

# %% [markdown]
# @exercise mix_torch
#
# `q` (..., n_q, d), `k` (..., n_k, d), `v` (..., n_k, d_v) → output (..., n_q, d_v), weights (..., n_q, n_k)


# %% role="exercise" exercise="mix_torch"
def mix_torch(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mix of the values and the weights, so that gradients flow.

    q: (..., n_q, d). k: (..., n_k, d). v: (..., n_k, d_v). Returns: output (..., n_q, d_v) and weights (..., n_q, n_k).
    """
    # region solution
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    output = weights @ v
    return output, weights
    # endregion


# %% role="check" exercise="mix_torch"
check(mix_torch)

# %% [markdown]
# @exercise Mixer
#
# `x` (B, T, d_model) → output (B, T, d_v), weights (B, T, T)


# %% role="exercise" exercise="Mixer"
class Mixer(nn.Module):
    """Mixes tokens by three projections that can be learned.

    d_model: of a token. d: of a query or a key. d_v: of a value.
    """

    def __init__(self, d_model: int, d: int, d_v: int):
        # region solution
        super().__init__()
        self.w_q = nn.Linear(d_model, d, bias=False)
        self.w_k = nn.Linear(d_model, d, bias=False)
        self.w_v = nn.Linear(d_model, d_v, bias=False)
        # endregion

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the mix of all tokens for each, and the weights. x: (B, T, d_model)."""
        # region solution
        output, weights = mix_torch(self.w_q(x), self.w_k(x), self.w_v(x))
        return output, weights
        # endregion


# %% role="check" exercise="Mixer"
check(Mixer)

# %% role="payoff" exercise="Mixer"
if passed(Mixer):
    print(Mixer(2, 3, 4)(torch.ones(1, 5, 2))[0].shape)

# %% [markdown]
# @exercise twice
#
# `tensor` (n,) → (n,)


# %% role="exercise" exercise="twice"
def twice(tensor: torch.Tensor) -> torch.Tensor:
    """Return twice the tensor. tensor: (n,). Returns: (n,)."""
    # region solution
    return 2 * tensor
    # endregion


# %% role="check" exercise="twice"
check(twice)

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
# - mix_torch MX7: What does this give for 1 and 3?
# - mix_torch MX16: What does this give for 1 and 3?
# - Mixer MX28: What does this give for 1 and 3?
# - Mixer MX29: What does this give for 1 and 3?
# - twice MX30: What does this give for 1 and 3?
# - twice MX31: What does this give for 1 and 3?
#
# ## To discuss
#
# Is a mean a mix?
#
# ## On paper
#
# The mean of 1 and 3. Solution: 2.
