"""Figures of lesson 09, all handed their numbers: a fused projection, dropped weights, a sequence reversed, stacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.figures import COLOURS, CYCLE, matrix, panels, show

__all__ = ["alike", "curves", "dropped", "fused", "gradients", "reverse"]


def fused() -> None:
    """The numbers that a fused projection gives for one token, and whose they are."""
    fig, (ax,) = panels(1, width=8.2, height=1.5)
    colours = ("#CFE3F2", "#CFE3F2", "#FCE3B8", "#FCE3B8", "#CDEBE0", "#CDEBE0")
    names = ("q, head 0", "q, head 1", "k, head 0", "k, head 1", "v, head 0", "v, head 1")
    for group, (name, colour) in enumerate(zip(names, colours, strict=True)):
        ax.bar(4 * group + np.arange(4), 1, width=0.94, color=colour)
        ax.text(4 * group + 1.5, 0.5, name, ha="center", va="center", fontsize=10)
        ax.plot([4 * group - 0.5] * 2, [0, 1], color=COLOURS["black"], linewidth=1)
    ax.set(
        title="One token's 24 numbers: q, k and v, each with two heads of four",
        xlabel="number in qkv(x)",
        xlim=(-0.5, 23.5),
        ylim=(0, 1),
        xticks=range(24),
        yticks=[],
    )
    ax.grid(False)
    show(
        fig, alt="A row of 24 cells in six groups of four: q head 0, q head 1, k head 0, k head 1, v head 0, v head 1."
    )


def dropped(still: Any, once: Any, mean: Any, p: float) -> None:
    """A head's weights in evaluation, in one training step and averaged over many; what the mask hides is grey, what dropout took is 0."""
    hidden = np.triu(np.ones(np.shape(still), dtype=bool), 1)
    fig, axes = panels(3, width=9.4, height=3.7)
    titles = ("In evaluation", f"One training step, dropout={p}", "Mean of 400 training steps")
    for ax, values, title in zip(axes, (still, once, mean), titles, strict=True):
        matrix(np.where(hidden, -np.inf, values), title, ax=ax, limits=(0, 2), fmt=".2f")
    for text in [text for ax in axes for text in ax.texts if text.get_text() == "−∞"]:
        text.set_text("")  # grey says it: the mask hid these before softmax
    gone = int((np.asarray(once)[~hidden] == 0).sum())
    gap = np.abs(mean - still).max()
    show(
        fig,
        alt=f"Three causal weight matrices, the hidden half gray. In one training step {gone} of {int((~hidden).sum())} weights "
        f"are 0 and the others doubled; the mean of 400 steps differs from evaluation by at most {gap:.2f}.",
    )


def reverse(losses: Sequence[float], guess: float, weights: Any, written: str) -> None:
    """The loss of a layer that learns to write backwards, and where each position looks."""
    fig, (left, right) = panels(2, width=9.2, height=4.2, ratios=(1, 1.3))
    left.plot(range(1, len(losses) + 1), losses)
    left.axhline(guess, color="#7A7A7A", linestyle="--", linewidth=1)
    left.text(len(losses), guess, f"guessing: {guess:.2f}", ha="right", va="bottom", color="#555555")
    left.set(xlabel="step", ylabel="loss (nats a letter)", ylim=(0, None))
    left.set_title("It learns to reverse")
    matrix(weights, "Each written letter looks at the one it copies", ax=right, rows=written, columns=written)
    right.tick_params(axis="x", rotation=0)
    asked = np.asarray(weights)[len(written) // 2 :, : len(written) // 2]
    on = float(np.fliplr(asked).diagonal().mean())
    show(
        fig,
        alt=f"Left the loss falls from {losses[0]:.2f} to {losses[-1]:.2f} nats. Right the weights: behind the bar they lie on the "
        f"anti-diagonal, {on:.2f} on average.",
    )


def gradients(norms: Mapping[str, Sequence[float]]) -> None:
    """The size of the gradient that each block's attention gets, by its place in the stack."""
    fig, (ax,) = panels(1, width=7.4, height=3.6)
    for name, values in norms.items():
        seen = np.where(
            np.asarray(values) < 1e-13, np.nan, values
        )  # what float32 has rounded to 0 has no place on this axis
        ax.semilogy(range(1, len(values) + 1), seen, marker="o", markersize=3, label=name)
    ax.set(xlabel="block, counted from the input", ylabel="norm of the gradient of qkv", ylim=(1e-12, 100))
    ax.set_title("How much gradient reaches each block")
    ax.legend(frameon=False)
    show(
        fig,
        alt="Gradient norms by block, logarithmic: "
        + "; ".join(
            f"{name}: {values[0]:.1e} at the first, {values[-1]:.1e} at the last" for name, values in norms.items()
        )
        + ".",
    )


def alike(similarity: Mapping[str, Sequence[float]]) -> None:
    """How alike the tokens of a sequence are after each block of an untrained stack. similarity: name → mean cosines, from block 0 on."""
    fig, (ax,) = panels(1, width=7.0, height=3.3)
    for (name, values), style, colour in zip(similarity.items(), ("-", "--", "-.", ":"), CYCLE, strict=False):
        ax.plot(range(len(values)), values, label=name, linestyle=style, color=colour)
    ax.set(xlabel="untrained blocks passed", ylabel="mean cosine similarity", ylim=(0, 1.08))
    ax.set_title("Without a residual path, all tokens become one vector")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.2, 0.93), fontsize=8.5)
    ends = (
        f"{name}: {values[0]:.2f} before the first block, {values[-1]:.2f} after the last"
        for name, values in similarity.items()
    )
    show(fig, alt="Mean cosine similarity of two tokens of a sequence: " + "; ".join(ends) + ".")


def curves(title: str, losses: Mapping[str, Sequence[float]], level: float, of_level: str) -> None:
    """Training losses by step, each smoothed over nine steps, and a level that means something."""
    fig, (ax,) = panels(1, width=7.0, height=3.3)
    for (name, values), style, colour in zip(losses.items(), ("-", "--", "-.", ":"), CYCLE, strict=False):
        smooth = np.convolve(np.pad(values, (8, 0), mode="edge"), np.ones(9) / 9, mode="valid")
        ax.plot(range(1, len(values) + 1), smooth, label=name, linestyle=style, color=colour)
    ax.axhline(level, color="#7A7A7A", linestyle=":", linewidth=1)
    ax.text(len(values), 0.98 * level, of_level, ha="right", va="top", color="#555555", fontsize=9)
    ax.set(xlabel="step", ylabel="loss (nats)", ylim=(0, 1.4 * level))
    ax.set_title(title)
    ax.legend(frameon=False, loc="upper center", ncols=len(losses), fontsize=8.5)
    show(
        fig,
        alt=f"{title}: "
        + "; ".join(f"{name} ends at {np.mean(values[-9:]):.2f} nats" for name, values in losses.items())
        + f"; {of_level} at {level:.2f}.",
    )
