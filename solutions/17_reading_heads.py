# %% [markdown]
# # 17 · Reading heads
#
# **What does a head do in a trained model, and how do we find out?**
#
# **Before this lesson:** lesson 11 (causal multi-head attention).

# %% role="given"
import math

import torch
from torch import nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% [markdown]
# @exercise previous_token_score
#
# `weights` (B, H, T, T), causal, T ≥ 2 → (H,)

# %% role="exercise" exercise="previous_token_score"
def previous_token_score(weights: torch.Tensor) -> torch.Tensor:
    """The mean weight of each head on the token just before.

    weights: (B, H, T, T), causal, T ≥ 2. Returns: (H,).
    """
    # region solution
    back = weights.diagonal(offset=-1, dim1=-2, dim2=-1)  # (B, H, T − 1)
    return back.mean(dim=(0, -1))
    # endregion

# %% role="check" exercise="previous_token_score"
check(previous_token_score)

# %% [markdown]
# @exercise induction_score
#
# `weights` (B, H, T, T), `period` ≥ 1, T > period → (H,)

# %% role="exercise" exercise="induction_score"
def induction_score(weights: torch.Tensor, period: int) -> torch.Tensor:
    """The mean weight of each head on the token that followed the last occurrence of the current one.

    weights: (B, H, T, T) on a sequence that repeats with this period, T > period ≥ 1. Returns: (H,).
    """
    # region solution
    i = torch.arange(period, weights.shape[-1], device=weights.device)  # the rows that have an earlier occurrence
    return weights[:, :, i, i - period + 1].mean(dim=(0, 2))
    # endregion

# %% role="check" exercise="induction_score"
check(induction_score)

# %% [markdown]
# @exercise head_contributions
#
# `module`, `x` (B, T, d_model) → (B, num_heads, T, d_model)

# %% role="exercise" exercise="head_contributions"
def head_contributions(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """What each head of a causal attention adds to its result.

    module: lesson 11's attention, in eval mode. x: (B, T, d_model). Returns: (B, num_heads, T, d_model), whose sum over heads is module(x).
    """
    # region solution
    heads, t = module.num_heads, x.shape[1]
    with torch.no_grad():
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in module.qkv(x).chunk(3, dim=-1))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1)
        slices = module.proj.weight.unflatten(1, (heads, -1))  # (d_model, heads, d_head): each head's columns
        return torch.einsum("bhtc,dhc->bhtd", weights @ v, slices)
    # endregion

# %% role="check" exercise="head_contributions"
check(head_contributions)

# %% [markdown]
# @exercise attention_rollout
#
# `layers` a list of weights (B, H, T, T) → (B, T, T)

# %% role="exercise" exercise="attention_rollout"
def attention_rollout(layers: list[torch.Tensor]) -> torch.Tensor:
    """The layers' attention rolled into one table.

    layers: weights (B, H, T, T), first layer first. Returns: (B, T, T), whose rows sum to 1.
    Source: Abnar and Zuidema 2020, section 3.
    """
    # region solution
    identity = torch.eye(layers[0].shape[-1], device=layers[0].device)
    rolled = identity.expand(layers[0].shape[0], -1, -1)
    for weights in layers:
        mixed = 0.5 * weights.mean(dim=1) + 0.5 * identity
        rolled = mixed @ rolled
    return rolled
    # endregion

# %% role="check" exercise="attention_rollout"
check(attention_rollout)

# %% [markdown]
# ## What we keep
#
# - A head adds its slice of `proj`, applied to what it found, and these contributions sum to the whole result.
#
# | what | shape |
# |---|---|
# | weights | (B, num_heads, T, T) |

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners leave able to measure what a head does.
#
# ## Cut for 60 minutes
#
# Skip the rollout.
#
# ## Cut for 90 minutes
#
# Everything.
#
# ## Mistakes to expect
#
# - previous_token_score PV4: For which row is there no token before? How many rows are left?
# - previous_token_score PV1: In the table, is the token before to the left of the diagonal or to its right?
# - induction_score IN1: You look at where the token stood before. What would help to guess the *next* one?
# - induction_score IN3: Which is the first row whose token has occurred before?
# - head_contributions HC1: `nn.Linear` computes x @ weight.T. With which axis of `proj.weight` do the heads' numbers meet?
# - head_contributions HC2: How many of the numbers of your contribution are 0, and would the residual stream see the same?
# - attention_rollout RL1: Which layer's table meets the input tokens first: the one on the left or on the right of the product?
# - attention_rollout RL2: If no head of a layer looked at a token, would its vector be gone after that layer?
#
# ## To discuss
#
# - Q (a good answer: A).
# - Q (a good answer: A).
#
# ## On paper
#
# A exercise.
