"""Figures of lesson 04: how scores grow with the width, and what softmax makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from grader.figures import COLOURS, matrix, panels, show

Array = np.ndarray
WIDTHS = 2 ** np.arange(13)  # 1 to 4096
N_KEYS = 8
_SCALED, _UNSCALED = COLOURS["blue"], COLOURS["vermillion"]


def _scores(d_k: int, rows: int, rng: np.random.Generator) -> Array:
    """(rows, N_KEYS) dot products of standard-normal queries with keys of their own, unscaled."""
    q, k = rng.standard_normal((rows, 1, d_k)), rng.standard_normal((rows, N_KEYS, d_k))
    return (q * k).sum(axis=-1)


def decided(softmax: Callable[[Array], Array]) -> None:
    """One query over eight keys without the scale, for three widths of random vectors."""
    rng = np.random.default_rng(4)
    fig, axes = panels(3, width=8.8, height=2.6)
    tops = []
    for ax, d_k in zip(axes, (2, 64, 1024), strict=True):
        row = softmax(_scores(d_k, 1, rng)[0])
        ax.bar(np.arange(N_KEYS), row, 0.7, color=_UNSCALED)
        ax.set(xlabel="key position", ylabel="weight", ylim=(0, 1.05), title=f"vectors of {d_k} numbers")
        tops.append(f"{row.max():.2f} for {d_k}")
    show(fig, alt="Three bar charts of one query's weights over eight keys, without a scale; the largest weight is "
                  + ", ".join(tops) + ".")  # fmt: skip


def spread(dot_product_std: Callable[..., float]) -> None:
    """Measured standard deviations on the line √d_k, both axes logarithmic."""
    rng = np.random.default_rng(1)
    measured = [dot_product_std(int(d_k), 1000, rng) for d_k in WIDTHS]
    fig, (ax,) = panels(1, width=5.6, height=3.3)
    ax.loglog(WIDTHS, np.sqrt(WIDTHS), color=COLOURS["grey"], linestyle="--", label="√d_k")
    ax.loglog(WIDTHS, measured, "o", color=_SCALED, label="measured, 1000 pairs each")
    ax.set(xlabel="d_k", ylabel="standard deviation of the scores")
    ax.set_title("Dot products spread by √d_k")
    ax.legend(frameon=False)
    off = float(np.abs(np.array(measured) / np.sqrt(WIDTHS) - 1).max())
    show(fig, alt=f"Thirteen measured points from d_k 1 to 4096 on the line √d_k; none is further than {off:.0%} from it.")


def _both(measure: Callable[[Array], Array], rows: int = 200) -> tuple[Array, Array]:
    """The mean of a measure of scores over random rows, scaled and unscaled, for each width."""
    rng = np.random.default_rng(2)
    scaled, unscaled = [], []
    for d_k in WIDTHS:
        scores = _scores(int(d_k), rows, rng)
        scaled.append(np.mean(measure(scores / np.sqrt(d_k))))
        unscaled.append(np.mean(measure(scores)))
    return np.array(scaled), np.array(unscaled)


def _curves(title: str, ylabel: str, scaled: Array, unscaled: Array) -> tuple[Any, Any]:
    fig, (ax,) = panels(1, width=5.8, height=3.3)
    ax.semilogx(WIDTHS, scaled, marker="o", markersize=4, color=_SCALED, label="scaled by 1/√d_k")
    ax.semilogx(WIDTHS, unscaled, marker="s", markersize=4, color=_UNSCALED, label="unscaled")
    ax.set(xlabel="d_k", ylabel=ylabel)
    ax.set_ylim(bottom=0)
    ax.set_title(title)
    ax.legend(frameon=False)
    return fig, ax


def undecided(softmax: Callable[[Array], Array], row_entropy: Callable[[Array], Array]) -> None:
    """Mean entropy of the weights over eight keys against d_k."""
    scaled, unscaled = _both(lambda scores: row_entropy(softmax(scores)))
    fig, ax = _curves("Unscaled rows are decided before they learn", "entropy (nats)", scaled, unscaled)
    ax.axhline(np.log(N_KEYS), color=COLOURS["grey"], linestyle=":")
    ax.set_ylim(0, np.log(N_KEYS) * 1.12)
    ax.text(1, np.log(N_KEYS) + 0.04, f"equal weights: ln {N_KEYS}", color=COLOURS["grey"], fontsize=9)
    show(fig, alt=f"Entropy over d_k: scaled stays near {scaled[-1]:.2f} nats, unscaled falls to {unscaled[-1]:.2f}.")


def largest_weight(softmax: Callable[[Array], Array], d_k: int = 64) -> None:
    """Histograms of each row's largest weight, scaled and unscaled."""
    scores = _scores(d_k, 2000, np.random.default_rng(3))
    fig, axes = panels(2, width=8.0, height=2.9)
    means, most = [], 0.0
    for ax, name, colour, divisor in zip(axes, ("scaled", "unscaled"), (_SCALED, _UNSCALED), (np.sqrt(d_k), 1.0), strict=True):
        top = softmax(scores / divisor).max(axis=-1)
        means.append(top.mean())
        counts, *_ = ax.hist(top, bins=np.linspace(0, 1, 26), color=colour)
        most = max(most, counts.max())
        ax.set(xlabel="largest weight of a row", ylabel="rows")
        ax.set_title(f"{name}: {top.mean():.2f} on average")
    for ax in axes:
        ax.set_ylim(0, most * 1.05)
    show(fig, alt=f"Two histograms for d_k = {d_k} and {N_KEYS} keys. The largest weight is {means[0]:.2f} on average when scaled, "
                  f"{means[1]:.2f} when not, with most rows near 1.")  # fmt: skip


def gradient(softmax_gradient_norm: Callable[[Array], Array]) -> None:
    """Mean norm of the softmax Jacobian against d_k."""
    scaled, unscaled = _both(softmax_gradient_norm)
    fig, _ = _curves("Unscaled, little gets through softmax", "norm of the Jacobian", scaled, unscaled)
    show(fig, alt=f"Norm of the softmax Jacobian over d_k: scaled stays near {scaled[-1]:.2f}, unscaled falls from "
                  f"{unscaled[0]:.2f} to {unscaled[-1]:.3f}.")  # fmt: skip


def favourites() -> None:
    """Scaled weights of twelve queries over eight keys, everything drawn uniform or everything normal."""
    rng = np.random.default_rng(0)
    fig, axes = panels(2, width=8.0, height=4.0)
    columns = []
    for ax, name, draw in zip(axes, ("uniform on [0, 1)", "standard normal"), (rng.random, rng.standard_normal), strict=True):
        q, k = draw((12, 64)) @ draw((64, 64)) / 8, draw((N_KEYS, 64)) @ draw((64, 64)) / 8
        scores = q @ k.T / 8
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = e / e.sum(axis=-1, keepdims=True)
        columns.append(len(set(weights.argmax(axis=-1))))
        matrix(weights, name, ax=ax)
    show(fig, alt=f"Two heat maps of scaled weights, twelve queries by eight keys. With uniform numbers the rows choose among "
                  f"{columns[0]} key(s), with normal numbers among {columns[1]}.")  # fmt: skip


def slider(softmax: Callable[[Array], Array]) -> None:
    """One row of weights, scaled and unscaled, at three widths; with widgets also at any width."""
    base = np.random.default_rng(5)
    q, k = base.standard_normal(4096), base.standard_normal((N_KEYS, 4096))
    _rows_at(softmax, q, k, (4, 64, 1024))
    try:
        from ipywidgets import SelectionSlider, interact
    except ImportError:
        return
    interact(lambda d_k: _rows_at(softmax, q, k, (d_k,)), d_k=SelectionSlider(options=[int(w) for w in WIDTHS], value=64))


def _rows_at(softmax: Callable[[Array], Array], q: Array, k: Array, widths: tuple[int, ...]) -> None:
    fig, axes = panels(len(widths), width=2.9 * max(len(widths), 1.5), height=2.6)
    tops = []
    for ax, d_k in zip(axes, widths, strict=True):
        scores = k[:, :d_k] @ q[:d_k]
        rows = softmax(scores / np.sqrt(d_k)), softmax(scores)
        for offset, row, colour, name in zip((-0.2, 0.2), rows, (_SCALED, _UNSCALED), ("scaled", "unscaled"), strict=True):
            ax.bar(np.arange(N_KEYS) + offset, row, 0.4, color=colour, label=name)
        tops.append(f"d_k {d_k}: {rows[0].max():.2f} and {rows[1].max():.2f}")
        ax.set(xlabel="key position", ylabel="weight", ylim=(0, 1.05))
        ax.set_title(f"d_k = {d_k}")
    axes[0].legend(frameon=False)
    show(fig, alt="Weights of one query over eight keys; the largest, scaled and unscaled: " + "; ".join(tops) + ".")
