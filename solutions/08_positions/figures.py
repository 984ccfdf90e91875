"""Figures of lesson 08: a bag of tokens, sines over positions, arrows that turn, slopes, and what lies beyond the trained length."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.figures import COLOURS, arrows, matrix, panels, show


def _numpy(tensor: Any) -> np.ndarray:
    return tensor.detach().double().numpy()


def bag(orders: Sequence[Sequence[str]], weights: Sequence[Any]) -> None:
    """Attention weights of one sentence in two orders."""
    fig, axes = panels(2, width=7.4, height=3.4)
    for ax, words, one in zip(axes, orders, weights, strict=True):
        matrix(_numpy(one), " ".join(words), rows=words, columns=words, ax=ax, xlabel="key", ylabel="query")
    first, second = orders
    back = [second.index(word) for word in first]
    apart = np.abs(_numpy(weights[0]) - _numpy(weights[1])[np.ix_(back, back)]).max()
    show(
        fig,
        alt=f"Two 3 by 3 heat maps of weights, {' '.join(first)} and {' '.join(second)}. Each pair of words has the same weight in "
        f"both; the largest difference is {apart:.0e}.",
    )


def constant_columns(spread: Mapping[str, Any], threshold: float) -> None:
    """The standard deviation of each column over the positions. spread: name -> (columns,)."""
    fig, (ax,) = panels(1, width=7.4, height=3.3)
    said = []
    for (name, values), colour in zip(spread.items(), ("vermillion", "blue"), strict=True):
        values = _numpy(values)
        low = int((values < threshold).sum())
        said.append(f"{low} of {name}")
        ax.plot(
            np.maximum(values, 1e-12),
            ".",
            markersize=3,
            color=COLOURS[colour],
            label=f"{name}: {low} of {len(values)} below the line",
        )
    ax.axhline(threshold, color=COLOURS["black"], linewidth=1, linestyle="--")
    ax.set(yscale="log", ylim=(1e-9, 3), xlabel="column", ylabel="standard deviation")
    ax.set_title("How much each column changes over the positions")
    ax.legend(loc="lower left", frameon=True, markerscale=3)
    show(
        fig,
        alt=f"Standard deviation of each column, falling to the right. Below {threshold} lie columns: {', '.join(said)}.",
    )


def sinusoids(table: Any, products: Any) -> None:
    """The sines and the cosines of a table of positions, and the dot products of its rows over their distance."""
    table, products = _numpy(table), _numpy(products)
    fig, (sines, cosines, right) = panels(3, width=9.6, height=3.6)
    for ax, columns, title in (
        (sines, table[:, ::2], "Sines (columns 0, 2, …)"),
        (cosines, table[:, 1::2], "Cosines (1, 3, …)"),
    ):
        matrix(
            columns,
            title,
            kind="scores",
            limits=(-1, 1),
            ax=ax,
            xlabel="pair",
            ylabel="position" if ax is sines else "",
        )
    apart = 0.0
    for position, colour, style in ((0, "blue", "-"), (15, "orange", "--"), (30, "green", ":")):
        line = products[position, position : position + 30]
        apart = max(apart, float(np.abs(line - products[0, :30]).max()))
        right.plot(line, style, color=COLOURS[colour], label=f"from position {position}")
    right.set(xlabel="distance", ylabel="dot product", title="Three rows, one curve")
    right.legend(frameon=False)
    show(
        fig,
        alt="Two heat maps, sines and cosines: fast stripes in the first pairs and none in the last; at position 0 all sines "
        "are 0 and all cosines 1. Right: dot products with rows further on, from positions 0, 15, 30; equal within "
        f"{apart:.0e}.",
    )


def turning(turned: Any) -> None:
    """One vector of two pairs at six positions, (6, 4): the first pair turns fast, the second slowly."""
    turned = _numpy(turned)
    fig, axes = panels(2, width=7.2, height=3.7)
    colours = ("black", "blue", "sky", "green", "orange", "vermillion")
    steps = []
    for ax, pair in zip(axes, (0, 1), strict=True):
        ends = turned[:, 2 * pair : 2 * pair + 2]
        steps.append(float(np.arctan2(ends[1, 1], ends[1, 0])))
        arrows(
            {str(p): end for p, end in enumerate(ends)},
            f"Pair {pair}: {steps[-1]:.2f} rad a position",
            colour=colours,
            ax=ax,
            reach=1.3,
        )
        ax.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), xlabel=f"x[{2 * pair}]", ylabel=f"x[{2 * pair + 1}]")
    show(
        fig,
        alt="Arrows of length 1 labeled with positions 0 to 5. Those of pair 0 turn counter-clockwise by "
        f"{steps[0]:.2f} rad a position, nearly once around; those of pair 1 by {steps[1]:.2f} rad.",
    )


def relative(maps: Sequence[Any]) -> None:
    """Three maps over pairs of positions: rows of a sinusoidal table, a query and a key turned by RoPE near the start, and far from it."""
    fig, axes = panels(3, width=9.6, height=4.1)
    titles = ("Sinusoidal rows, positions 0–7", "RoPE, positions 0–7", "RoPE, positions 100–107")
    seen = [_numpy(one) for one in maps]
    for ax, values, title, start in zip(axes, seen, titles, (0, 0, 100), strict=True):
        names = [str(start + p) for p in range(len(values))]
        reach = float(np.abs(values).max())
        ylabel = "query position" if ax is axes[0] else ""
        matrix(
            values,
            title,
            kind="scores",
            limits=(-reach, reach),
            ax=ax,
            rows=names,
            columns=names,
            fmt=".1f",
            ylabel=ylabel,
        )
    show(
        fig,
        alt="Three heat maps of 8 by 8 positions. In each, every diagonal holds one number. The first is symmetric; those of RoPE "
        f"are not, and agree with each other within {np.abs(seen[1] - seen[2]).max():.0e}.",
    )


def slopes(bias: Any, weights: Any) -> None:
    """The bias of one query in each head over the distance, and the weights that equal scores get from it: both (heads, distances)."""
    bias, weights = _numpy(bias), _numpy(weights)
    fig, (left, right) = panels(2, width=8.4, height=3.5)
    for h, style in enumerate(("-", "--", "-.", ":")):
        left.plot(bias[h], style, label=f"head {h}: slope {-bias[h, 1]:.4f}")
        right.plot(weights[h], style)
    left.set(xlabel="distance to the key", ylabel="bias", title="Four heads, four slopes")
    right.set(xlabel="distance to the key", ylabel="weight", ylim=(0, None), title="Weights if all scores were equal")
    left.legend(frameon=False)
    near = ", ".join(f"{value:.2f}" for value in weights[:, :4].sum(axis=1))
    show(
        fig,
        alt=f"Left: four straight lines that fall with the distance. Right: the weights; the nearest four keys get {near} of them.",
    )


_INSIDE, _BEYOND = (2, 4, 8, 12, 16), (16, 20, 24, 32, 48, 64, 96, 128)
_STYLES = (("grey", ":"), ("purple", "--"), ("orange", "--"), ("blue", "-"), ("green", "-."))


def beyond(accuracy: Mapping[str, Mapping[str, Any]], trained: int, guessing: Mapping[str, float]) -> None:
    """Accuracy against the position for each task and each way of giving positions; nothing is joined across the trained length.

    accuracy: task -> name -> the share of right answers, (seeds, positions). guessing: task -> what guessing achieves.
    """
    fig, axes = panels(len(accuracy), width=9.2, height=4.1)
    said = []
    for ax, (task, curves) in zip(axes, accuracy.items(), strict=True):
        for (name, curve), (colour, style) in zip(curves.items(), _STYLES, strict=True):
            for edges in (_INSIDE, _BEYOND):
                middles = [math.sqrt(a * (b - 1)) for a, b in zip(edges, edges[1:], strict=False)]
                means = np.array(
                    [np.nanmean(_numpy(curve)[:, a:b], axis=1) for a, b in zip(edges, edges[1:], strict=False)]
                )
                ax.fill_between(
                    middles, means.min(axis=1), means.max(axis=1), color=COLOURS[colour], alpha=0.18, linewidth=0
                )
                label = name if edges is _INSIDE else None
                ax.plot(
                    middles, means.mean(axis=1), style, color=COLOURS[colour], marker="o", markersize=3, label=label
                )
            inside, late = np.nanmean(_numpy(curve)[:, 2:trained]), np.nanmean(_numpy(curve)[:, 64:])
            said.append(f"{task}, {name}: {inside:.2f} inside and {late:.2f} from 64 on")
        ax.axvline(trained - 0.5, color=COLOURS["black"], linewidth=1)
        ax.axhline(guessing[task], color=COLOURS["vermillion"], linewidth=1, label="guessing")
        ax.set(xscale="log", xlabel="position (trained up to the line)", ylim=(0, 1.05), title=task)
        ax.set_xticks([2, 4, 8, 16, 32, 64, 128], ["2", "4", "8", "16", "32", "64", "128"])
        ax.minorticks_off()
    axes[0].set_ylabel("right answers")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    show(fig, alt=f"Share of right answers against position, trained on positions below {trained}. {'; '.join(said)}.")
