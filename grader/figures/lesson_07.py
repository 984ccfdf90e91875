"""Figures of lesson 07: a bag of tokens, sines over positions, arrows that turn, slopes, and what lies beyond the trained length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from grader.figures import COLOURS, arrows, matrix, panels, show

NEARLY_CONSTANT = 0.01  # standard deviation of a column over the positions


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
    show(fig, alt=f"Two 3 by 3 heat maps of weights, {' '.join(first)} and {' '.join(second)}. Each pair of words has the same weight in "
                  f"both; the largest difference is {apart:.0e}.")  # fmt: skip


def constant_columns(published: Any, right: Any) -> None:
    """Standard deviation of each column over the positions, of the published table and of the right one."""
    fig, (ax,) = panels(1, width=7.4, height=3.3)
    counts = []
    for name, table, colour in (("published code", published, "vermillion"), ("your function", right, "blue")):
        spread = _numpy(table).std(axis=0)
        counts.append(int((spread < NEARLY_CONSTANT).sum()))
        ax.plot(np.maximum(spread, 1e-12), ".", markersize=3, color=COLOURS[colour],
                label=f"{name}: {counts[-1]} of {len(spread)} columns below the line")  # fmt: skip
    ax.axhline(NEARLY_CONSTANT, color=COLOURS["black"], linewidth=1, linestyle="--")
    ax.set(yscale="log", ylim=(1e-9, 3), xlabel="column", ylabel="standard deviation",
           title=f"How much each column changes over {len(_numpy(right))} positions")  # fmt: skip
    ax.legend(loc="lower left", frameon=True, markerscale=3)
    show(fig, alt=f"Standard deviation of each column, falling to the right. Below {NEARLY_CONSTANT} lie {counts[0]} columns of the "
                  f"published table and {counts[1]} of ours.")  # fmt: skip


def sinusoids(sinusoidal_positions: Callable[..., Any]) -> None:
    """The table as a heat map, and the dot products of its rows against their distance."""
    table = _numpy(sinusoidal_positions(60, 64))
    fig, (left, right) = panels(2, width=8.6, height=3.6)
    matrix(table, "Sixty positions, 64 columns", kind="scores", limits=(-1, 1), ax=left, xlabel="column", ylabel="position")
    products = table @ table.T
    apart = 0.0
    for position, colour, style in ((0, "blue", "-"), (15, "orange", "--"), (30, "green", ":")):
        line = products[position, position : position + 30]
        apart = max(apart, float(np.abs(line - products[0, :30]).max()))
        right.plot(line, style, color=COLOURS[colour], label=f"from position {position}")
    right.set(xlabel="distance", ylabel="dot product", title="Three rows, one curve")
    right.legend(frameon=False)
    show(fig, alt="Left: a heat map of sines and cosines, fast stripes in the first columns and none in the last. Right: the dot product "
                  f"with a row further on, from positions 0, 15 and 30; the curves agree within {apart:.0e}.")  # fmt: skip


def turning(apply_rope: Callable[..., Any]) -> None:
    """One vector of two pairs at six positions: the first pair turns fast, the second slowly."""
    import torch

    turned = _numpy(apply_rope(torch.tensor([1.0, 0, 1, 0]).repeat(6, 1), torch.arange(6), base=100.0))
    fig, axes = panels(2, width=7.2, height=3.7)
    colours = ("black", "blue", "sky", "green", "orange", "vermillion")
    steps = []
    for ax, pair in zip(axes, (0, 1), strict=True):
        ends = turned[:, 2 * pair : 2 * pair + 2]
        steps.append(float(np.arctan2(ends[1, 1], ends[1, 0])))
        arrows({str(p): end for p, end in enumerate(ends)}, f"Pair {pair}: {steps[-1]:.2f} rad a position", colour=colours, ax=ax,
               reach=1.3)  # fmt: skip
        ax.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), xlabel=f"x[{2 * pair}]", ylabel=f"x[{2 * pair + 1}]")
    show(fig, alt="Arrows of length 1 labeled with positions 0 to 5. Those of pair 0 turn counter-clockwise by "
                  f"{steps[0]:.2f} rad a position, nearly once around; those of pair 1 by {steps[1]:.2f} rad.")  # fmt: skip


def relative(apply_rope: Callable[..., Any]) -> None:
    """Scores of one query and one key at all pairs of positions, near the start and far from it."""
    import torch

    generator = torch.Generator().manual_seed(7)
    q, k = torch.randn(2, 1, 8, generator=generator)
    fig, axes = panels(2, width=8.4, height=4.5)  # square cells take the width; the titles need what is above them
    seen = []
    for ax, start in zip(axes, (0, 100), strict=True):
        positions = torch.arange(start, start + 6)
        seen.append(_numpy(apply_rope(q.expand(6, 8), positions) @ apply_rope(k.expand(6, 8), positions).mT))
        names = [str(p) for p in positions.tolist()]
        matrix(seen[-1], f"Positions {start} to {start + 5}", kind="scores", limits=(-6, 6), ax=ax, rows=names, columns=names, fmt=".1f")
    show(fig, alt="Two heat maps of the scores of one query and one key at six positions each, 0 to 5 and 100 to 105. Every diagonal holds "
                  f"one number, and both maps agree within {np.abs(seen[0] - seen[1]).max():.0e}.")  # fmt: skip


def slopes(alibi_bias: Callable[..., Any]) -> None:
    """The bias of the last query in each of four heads, and the weights that equal scores get from it."""
    bias = _numpy(alibi_bias(4, 32))[:, -1, ::-1]
    weights = np.exp(bias) / np.exp(bias).sum(axis=1, keepdims=True)
    fig, (left, right) = panels(2, width=8.4, height=3.5)
    for h, style in enumerate(("-", "--", "-.", ":")):
        left.plot(bias[h], style, label=f"head {h}: slope {-bias[h, 1]:.4f}".replace("-", "−"))
        right.plot(weights[h], style)
    left.set(xlabel="distance to the key", ylabel="bias", title="Four heads, four slopes")
    right.set(xlabel="distance to the key", ylabel="weight", ylim=(0, None), title="Weights, were all scores equal")
    left.legend(frameon=False)
    near = ", ".join(f"{value:.2f}" for value in weights[:, :4].sum(axis=1))
    show(fig, alt=f"Left: four straight lines that fall with the distance. Right: the weights; the nearest four keys get {near} of them.")


def beyond(accuracy: Mapping[str, Mapping[str, Any]], trained: int) -> None:
    """Accuracy against the position for each task and each way of giving positions.

    accuracy: task -> name -> the share of right answers at each position.
    """
    fig, axes = panels(len(accuracy), width=8.8, height=3.8)
    said = []
    styles = dict(zip(next(iter(accuracy.values())), (("grey", ":"), ("orange", "--"), ("blue", "-"), ("green", "-.")), strict=False))
    for ax, (task, curves) in zip(axes, accuracy.items(), strict=True):
        for name, curve in curves.items():
            curve = np.asarray(curve)
            edges = [0, 4, 8, 16, 24, 32, 48, 64, 96, 128]
            middles = [(a + b) / 2 for a, b in zip(edges, edges[1:], strict=False)]
            means = [np.nanmean(curve[a:b]) for a, b in zip(edges, edges[1:], strict=False)]
            colour, style = styles[name]
            ax.plot(middles, means, style, color=COLOURS[colour], marker="o", markersize=3, label=name)
            # From position 2 on, as the lesson prints it: earlier ones have one answer to give, or none.
            said.append(f"{task}, {name}: {np.nanmean(curve[2:trained]):.2f} inside and {np.nanmean(curve[64:]):.2f} beyond 64")
        ax.axvline(trained, color=COLOURS["black"], linewidth=1)
        ax.set(xscale="log", xlabel="position (trained up to the line)", ylabel="right answers", ylim=(0, 1.05), title=task)
        ax.set_xticks([2, 4, 8, 16, 32, 64, 128], ["2", "4", "8", "16", "32", "64", "128"])
        ax.minorticks_off()
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    show(fig, alt=f"Share of right answers against position, trained on positions below {trained}. {'; '.join(said)}.")
