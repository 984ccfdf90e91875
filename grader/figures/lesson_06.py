"""Figures of lesson 06: masks, leaks, three languages for one mask, a module that reads from left to right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from grader.figures import matrix, panels, show

WORDS = ["The", "cat", "sat", "on", "the", "mat"]


def who_may_look() -> None:
    """Three rules for one sentence of four words and two fill-ups: causal, padding, both."""
    words = [*WORDS[:4], "·", "·"]
    past, real = np.tri(6), np.tile(np.arange(6) < 4, (6, 1)).astype(float)
    fig, axes = panels(3, width=9.4, height=3.5)
    for ax, mask, title in zip(axes, (past, real, past * real), ("the past and itself", "real words", "both"), strict=True):
        matrix(mask, f"{title}: {int(mask.sum())} of 36 pairs", ax=ax, rows=words, columns=words, fmt="g", xlabel="key", ylabel="query")
    while len(fig.axes) > len(axes):
        fig.axes[-1].remove()
    show(fig, alt="Three matrices of six queries and six keys with 1 where a query may look: a lower triangle of 21 pairs; the first four "
                  "columns, 24 pairs; and where both hold, 18 pairs.")  # fmt: skip


def masks(causal_mask: Callable[..., Any]) -> None:
    """The learner's mask for a full sequence, and for two queries after five kept keys."""
    fig, (left, right) = panels(2, width=8.0, height=3.1)
    full, late = causal_mask(5).numpy(), causal_mask(2, 7).numpy()
    matrix(full.astype(float), "Five queries, five keys", ax=left, fmt="g")
    matrix(late.astype(float), "The last two of seven positions", ax=right, rows=["5", "6"], fmt="g")
    show(fig, alt=f"Two masks with 1 for allowed. Left a lower triangle with {int(full.sum())} allowed pairs; right two rows with "
                  f"{int(late[0].sum())} and {int(late[1].sum())} allowed keys of 7.")  # fmt: skip


def leaks(plain: Callable[..., Any], masked: Callable[..., Any], causal_mask: Callable[..., Any]) -> None:
    """How far each output moves when one token changes, without a mask and with the causal one."""
    import torch

    generator = torch.Generator().manual_seed(6)
    x = torch.randn(6, 4, generator=generator)
    ways = {"Without a mask: everything moves": lambda y: plain(y, y, y)[0],
            "Causal: only the future moves": lambda y: masked(y, y, y, causal_mask(6))[0]}  # fmt: skip
    fig, axes = panels(2, width=8.2, height=3.7)
    above = []
    for ax, (title, attend) in zip(axes, ways.items(), strict=True):
        moved = np.zeros((6, 6))
        for token in range(6):
            changed = x.clone()
            changed[token] += 1.0
            moved[:, token] = (attend(changed) - attend(x)).abs().amax(dim=-1).numpy()
        above.append(float(moved[np.triu_indices(6, 1)].max()))
        matrix(moved, title, kind="values", limits=(0, 1.5), ax=ax, rows=WORDS, columns=WORDS, xlabel="changed token",
               ylabel="output", fmt=".1f")  # fmt: skip
    show(fig, alt="Two heat maps of how far each output moves when a token changes. Above the diagonal the largest movement is "
                  f"{above[0]:.2f} without a mask and {above[1]:.2f} with the causal one.")  # fmt: skip


def translations(masked_attention: Callable[..., Any]) -> None:
    """Prints how one mask is said in three conventions, and that they agree."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.manual_seed(0)
    x = torch.randn(1, 4, 6)
    allowed = torch.ones(4, 4, dtype=torch.bool).tril()
    ours = masked_attention(x, x, x, allowed)[0]
    added = torch.zeros(4, 4).masked_fill(~allowed, -torch.inf)
    layer = nn.MultiheadAttention(6, 1, batch_first=True, bias=False)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.eye(6).repeat(3, 1))
        layer.out_proj.weight.copy_(torch.eye(6))
        theirs = {
            "F.scaled_dot_product_attention, True = may attend    ": F.scaled_dot_product_attention(x, x, x, allowed),
            "F.scaled_dot_product_attention, 0 and -inf added     ": F.scaled_dot_product_attention(x, x, x, added),
            "nn.MultiheadAttention, attn_mask=~mask: True = hidden": layer(x, x, x, attn_mask=~allowed)[0],
        }
    for name, output in theirs.items():
        print(f"{name}  differs from ours by {(output - ours).abs().max():.0e}")


def first_words(cls: Callable[..., Any]) -> None:
    """How far each output of an untrained module depends on each word, by its gradient."""
    import torch

    torch.manual_seed(11)
    module = cls(8, 10)
    x = torch.randn(1, len(WORDS), 8, requires_grad=True)
    output = module(x)
    reach = np.zeros((len(WORDS), len(WORDS)))
    for position in range(len(WORDS)):
        (gradient,) = torch.autograd.grad(output[0, position].sum(), x, retain_graph=True)
        reach[position] = gradient[0].norm(dim=-1).numpy()
    reach = reach / reach.sum(axis=1, keepdims=True)
    ax = matrix(reach, "What each output depends on (untrained)", rows=WORDS, columns=WORDS, xlabel="word", ylabel="output at")
    show(ax.figure, alt="A lower-triangular heat map over the words The cat sat on the mat: the share of each output's gradient that "
                        f"reaches each word. Above the diagonal the largest is {np.triu(reach, 1).max():.2f}. Random weights.")  # fmt: skip
