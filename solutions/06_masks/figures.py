"""Figures of lesson 06: a text shifted by one, masks, how scores become weights, leaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.figures import COLOURS, matrix, panels, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORDS = ["The", "cat", "sat", "on", "the", "mat"]


def next_token_targets(words: Sequence[str]) -> None:
    """Inputs below, the targets of each position above; one output's allowed inputs in blue, the forbidden one in red."""
    from matplotlib.patches import FancyArrowPatch

    n, asks = len(words) - 1, 2
    fig, (ax,) = panels(1, width=8.4, height=3.1)
    ax.set_axis_off()
    ax.set(xlim=(-1.2, n - 0.3), ylim=(-0.35, 2.5))
    for name, y in (("input", 0.0), ("attention", 1.0), ("must predict", 2.0)):
        ax.text(-1.15, y, name, ha="left", va="center", color="#555555")
    ax.axhspan(0.8, 1.2, xmin=0.14, color="#EEF3F7", zorder=0)
    for i in range(n):
        ax.text(i, 0, words[i], ha="center", va="center", fontsize=11)
        ax.text(i, 1, f"output {i}", ha="center", va="center", fontsize=9.5, color="#555555")
        ax.text(i, 2, words[i + 1], ha="center", va="center", fontsize=11, weight="bold", color=COLOURS["green"])
        ax.add_patch(
            FancyArrowPatch((i, 1.25), (i, 1.8), arrowstyle="-|>", mutation_scale=11, color=COLOURS["green"], lw=1.5)
        )
    for j in range(asks + 2):
        late = j > asks
        paint, style = (COLOURS["vermillion"], "--") if late else (COLOURS["blue"], "-")
        ax.add_patch(
            FancyArrowPatch(
                (j, 0.2), (asks, 0.78), arrowstyle="-|>", mutation_scale=11, color=paint, lw=1.5, linestyle=style
            )
        )
    ax.text(asks + 0.95, 0.5, "not this one:\nit is the answer", color=COLOURS["vermillion"], fontsize=9.5, va="center")
    ax.set_title("Each output predicts the next token")
    pairs, last = ", ".join(f"{a} → {b}" for a, b in zip(words, words[1:], strict=False)), asks + 1
    show(
        fig,
        alt=f"The input words in a row, an output above each, and above it the word that it must predict: {pairs}. Blue arrows "
        f"lead to output {asks} from inputs 0 to {asks}; a dashed red one from input {last} is not allowed.",
    )


def who_may_look(words: Sequence[str]) -> None:
    """Three rules for one padded sentence: causal, padding, both."""
    n, real = len(words), np.array([word != "<pad>" for word in words], dtype=float)
    past, seen = np.tri(n), np.tile(real, (n, 1))
    fig, axes = panels(3, width=8.8, height=3.8)
    rules, names = (past, seen, past * seen), ("causal", "padding", "both")
    for ax, mask, name in zip(axes, rules, names, strict=True):
        matrix(
            mask,
            f"{name}: {int(mask.sum())} of {n * n} pairs",
            ax=ax,
            rows=words,
            columns=words,
            xlabel="key",
            ylabel="",
        )
        _true_or_false(ax)
        ax.tick_params(axis="x", rotation=0)
    axes[0].set_ylabel("query")
    for ax in axes[1:]:
        ax.tick_params(axis="y", labelleft=False)
    fig.suptitle("Where both rules hold, a query sees the real words of its past", fontsize=12, fontweight="bold")
    counts = [int(mask.sum()) for mask in rules]
    show(
        fig,
        alt=f"Three matrices of {n} queries and {n} keys for the tokens {' '.join(words)}, True where a query may look. Causal: a "
        f"lower triangle of {counts[0]} pairs. Padding: the columns of real words, {counts[1]} pairs. Both rules: {counts[2]} pairs.",
    )


def masks(full: Any, late: Any) -> None:
    """A mask for a whole sequence, and one for queries that come after kept keys."""
    full, late = np.asarray(full, dtype=float), np.asarray(late, dtype=float)
    first = late.shape[1] - late.shape[0]
    fig, (left, right) = panels(2, width=9.0, height=3.7, ratios=(full.shape[1], late.shape[1]))
    matrix(full, "five queries, five keys", ax=left)
    matrix(late, "two queries, the last of seven positions", ax=right, rows=[str(first + i) for i in range(len(late))])
    for ax in (left, right):
        _true_or_false(ax)
    fig.suptitle("Each query sees its own position and all before it", fontsize=12, fontweight="bold")
    show(
        fig,
        alt=f"Two masks, True where a query may look. Left a lower triangle with {int(full.sum())} allowed pairs; right two rows with "
        f"{int(late[0].sum())} and {int(late[1].sum())} allowed keys of {late.shape[1]}.",
    )


def _true_or_false(ax: Axes) -> None:
    """Write the cells of a boolean mask as the text does."""
    for cell in ax.texts:
        true = cell.get_text() == "1"
        cell.set(text=str(true), fontsize=9, color="white" if true else "#6A6A6A")


def masking_steps(words: Sequence[str]) -> None:
    """A causal mask at work: random scores, the same with −∞ where the mask is False, and the weights of each row."""
    n = len(words)
    scores = np.round(np.random.default_rng(6).normal(size=(n, n)) * 1.2, 1)
    hidden = np.where(np.tri(n, dtype=bool), scores, -np.inf)
    weights = np.exp(hidden - hidden.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    reach = float(np.abs(scores).max())
    fig, axes = panels(3, width=8.8, height=3.75)
    for ax, array, title, kind, limits, fmt in (
        (axes[0], scores, "scores", "scores", (-reach, reach), ".1f"),
        (axes[1], hidden, "hidden scores are −∞", "scores", (-reach, reach), ".1f"),
        (axes[2], weights, "weights: rows sum to 1", "weights", (0.0, 1.0), ".2f"),
    ):
        matrix(
            array, title, kind=kind, limits=limits, ax=ax, rows=words, columns=words, fmt=fmt, xlabel="key", ylabel=""
        )
        if ax is not axes[0]:
            ax.tick_params(axis="y", labelleft=False)
    axes[0].set_ylabel("query")
    for ax, does in ((axes[1], "mask"), (axes[2], "softmax")):
        ax.annotate(
            "",
            (-0.07, 0.5),
            (-0.27, 0.5),
            xycoords="axes fraction",
            arrowprops={"arrowstyle": "-|>,head_width=0.3,head_length=0.6", "color": "#555555", "linewidth": 1.8},
        )
        ax.text(-0.17, 0.55, does, transform=ax.transAxes, ha="center", va="bottom", fontsize=9, color="#555555")
    fig.suptitle(
        "A score of −∞ gets the weight 0, and the visible keys share the whole", fontsize=12, fontweight="bold"
    )
    fig.get_layout_engine().set(wspace=0.12)
    said = "; ".join(
        f"{word}: " + ", ".join(f"{weight:.2f}" for weight in row) for word, row in zip(words, weights, strict=True)
    )
    show(
        fig,
        alt=f"Three matrices of {n} queries and {n} keys, the words {' '.join(words)}. First random scores. An arrow 'mask' leads to "
        "the same scores with −∞ above the diagonal. An arrow 'softmax' leads to the weights, which are 0 where the score is −∞ "
        f"and sum to 1 in each row. {said}.",
    )


def _influence(attend: Callable[..., Any], x: Any) -> np.ndarray:
    """How far output i moves when token j changes by random numbers, as a matrix (i, j)."""
    import torch

    generator = torch.Generator().manual_seed(0)
    moved = np.zeros((len(x), len(x)))
    for j in range(len(x)):
        changed = x.clone()
        changed[j] += torch.randn(x.shape[-1], generator=generator)
        moved[:, j] = (attend(changed) - attend(x)).abs().amax(dim=-1).numpy()
    return moved


def leaks(without_mask: Callable[..., Any], with_mask: Callable[..., Any]) -> None:
    """How far each output moves when one token changes, for two functions from tokens (6, 4) to outputs; 0 means not at all."""
    import torch

    x = torch.randn(len(WORDS), 4, generator=torch.Generator().manual_seed(6))
    without, causal = _influence(without_mask, x), _influence(with_mask, x)
    above = [float(moved[np.triu_indices(len(moved), 1)].max()) for moved in (without, causal)]
    assert (without > 0).all() and above[1] == 0 and (causal > 0).sum() == len(x) * (len(x) + 1) // 2
    fig, axes = panels(2, width=8.4, height=3.9)
    titles, largest = (
        ("Without a mask: everything moves", "Causal: no earlier output moves"),
        max(without.max(), causal.max()),
    )
    for ax, moved, title in zip(axes, (without, causal), titles, strict=True):
        matrix(
            moved,
            title,
            kind="values",
            limits=(0, largest),
            ax=ax,
            rows=WORDS,
            columns=WORDS,
            xlabel="changed token",
            ylabel="output",
            fmt=".2g",
        )
    show(
        fig,
        alt="Two heat maps of how far each output moves when a token changes. Above the diagonal the largest movement is "
        f"{above[0]:.2f} without a mask and exactly {above[1]:g} with the causal one.",
    )
