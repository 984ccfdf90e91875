"""Figures of lesson 04: how scores grow with the width, and what softmax makes of them. Everything drawn is measured in the lesson."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from grader.figures import COLOURS, Picture, follow, matrix, panels, picture, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray
_STYLES = {  # name of a scale -> colour, marker
    "divided by √d_k": (COLOURS["blue"], "o"),
    "unscaled": (COLOURS["vermillion"], "s"),
    "divided by d_k": (COLOURS["green"], "^"),
    "unscaled, smaller initialization": (COLOURS["purple"], "D"),
}
_WIDEST, _KEYS = 4096, 8


def _scores(d_k: int) -> Array:
    """One query against eight keys, cut to their first d_k numbers, so that a wider vector begins like a narrower one."""
    rng = np.random.default_rng(4)
    q, keys = rng.standard_normal(_WIDEST), rng.standard_normal((_KEYS, _WIDEST))
    return keys[:, :d_k] @ q[:d_k]


def _weights(ax: Axes, row: Array, name: str, title: str) -> None:
    ax.bar(np.arange(len(row)), row, 0.7, color=_STYLES[name][0])
    ax.set(xlabel="key position", ylim=(0, 1.05), title=title)
    ax.set_xticks(np.arange(len(row)))


def strip(softmax: Callable[[Array], Array]) -> None:
    """One random query's unscaled weights over eight keys, at four widths."""
    widths = (2, 16, 128, 1024)
    fig, axes = panels(len(widths), width=8.8, height=2.6)
    rows = [softmax(_scores(d_k)) for d_k in widths]
    for ax, d_k, row in zip(axes, widths, rows, strict=True):
        _weights(ax, row, "unscaled", f"d_k = {d_k}")
    axes[0].set_ylabel("weight, unscaled")
    fig.suptitle("The more numbers in a vector, the fewer keys get any weight", fontsize=12)
    tops = ", ".join(f"{row.max():.2f} at d_k {d_k}" for d_k, row in zip(widths, rows, strict=True))
    show(fig, alt=f"Bar charts of one query's unscaled weights over eight keys; the largest weight is {tops}.")


def width_slider(softmax: Callable[[Array], Array]) -> None:
    """The same query at any width, without the scale and with it; a strip of five widths where widgets do not run."""
    try:
        from ipywidgets import SelectionSlider
    except ImportError:
        _both(softmax)
        return

    def draw(d_k: int) -> Picture:
        scores = _scores(d_k)
        fig, axes = panels(2, width=7.2, height=2.7)
        tops = []
        for ax, (name, divisor) in zip(axes, (("unscaled", 1), ("divided by √d_k", np.sqrt(d_k))), strict=True):
            row = softmax(scores / divisor)
            tops.append(f"{row.max():.2f} {name}")
            _weights(ax, row, name, f"{name}: largest {row.max():.2f}")
        axes[0].set_ylabel(f"weight, d_k = {d_k}")
        return picture(fig, alt=f"Bar charts of eight weights at d_k = {d_k}; the largest is {', '.join(tops)}.")

    widths = [2**power for power in range(13)]
    follow(draw, SelectionSlider(options=widths, value=64, description="d_k"))


def _both(softmax: Callable[[Array], Array]) -> None:
    widths = (1, 8, 64, 512, 4096)
    fig, axes = panels(2 * len(widths), width=8.8, height=4.4, columns=len(widths))
    for at, d_k in enumerate(widths):
        for ax, name, divisor in ((axes[at], "unscaled", 1), (axes[at + 5], "divided by √d_k", np.sqrt(d_k))):
            _weights(ax, softmax(_scores(d_k) / divisor), name, f"d_k = {d_k}")
    for ax, name in ((axes[0], "weight, unscaled"), (axes[5], "weight, ÷ √d_k")):
        ax.set_ylabel(name)
    fig.suptitle("Divided by √d_k, no width gathers the weight on one key", fontsize=12)
    show(
        fig,
        alt="Bar charts of eight weights at five widths: unscaled they gather on one key, divided by √d_k they do not.",
    )


def spread(widths: Array, measured: Array) -> None:
    """Measured standard deviations on the line √d_k, both axes logarithmic."""
    fig, (ax,) = panels(1, width=5.6, height=3.3)
    ax.loglog(widths, np.sqrt(widths), color=COLOURS["grey"], linestyle="--", label="√d_k")
    ax.loglog(widths, measured, "o", color=COLOURS["blue"], label="measured, 1000 pairs each")
    ax.set(xlabel="d_k", ylabel="standard deviation of the scores")
    ax.set_title("The standard deviation of dot products is √d_k")
    ax.legend(frameon=False)
    off = float(np.abs(measured / np.sqrt(widths) - 1).max())
    show(
        fig,
        alt=f"Thirteen measured points from d_k 1 to 4096 on the line √d_k; none is further than {off:.0%} from it.",
    )


def curves(
    widths: Array, by_name: Mapping[str, Sequence[float]], title: str, ylabel: str, top: float | None = None
) -> None:
    """A measure against d_k, a curve for each scale. top: the value of equal weights, where a line is to show it."""
    fig, (ax,) = panels(1, width=6.2, height=3.4)
    for name, values in by_name.items():
        colour, marker = _STYLES[name]
        ax.semilogx(widths, values, marker=marker, markersize=4, color=colour, label=name)
    ax.set(xlabel="d_k", ylabel=ylabel)
    ax.set_ylim(bottom=0)
    if top is not None:
        ax.axhline(top, color=COLOURS["grey"], linestyle=":")
        ax.set_ylim(0, top * 1.15)
        ax.text(widths[0], top * 1.02, f"equal weights: {top:.2f}", color=COLOURS["grey"], fontsize=9)
    ax.set_title(title)
    ax.legend(frameon=False, loc="lower left")
    said = "; ".join(f"{name} goes from {values[0]:.2f} to {values[-1]:.3g}" for name, values in by_name.items())
    show(fig, alt=f"{ylabel} over d_k: {said}.")


def means_and_medians(widths: Array, reached: Mapping[str, Array]) -> None:
    """The mean and the median over rows of what reaches the query, for each scale: name -> (widths, rows). A band beside the
    median reaches from the 10th percentile of the rows to the 90th."""
    fig, axes = panels(2, width=8.8, height=3.6)
    said = []
    for ax, what, of in zip(axes, ("Mean", "Median and the middle 80 %"), (np.mean, np.median), strict=True):
        ends = []
        for name, numbers in reached.items():
            colour, marker = _STYLES[name]
            line = of(numbers, axis=1)
            ax.loglog(widths, line, marker=marker, markersize=4.5, color=colour, label=name)
            ends.append(f"{name} {line[-1]:.2g}")
        ax.set(xlabel="d_k", ylabel="norm of ∂p/∂q", title=f"{what} of {numbers.shape[1]:,} rows")
        said.append(f"{what.split()[0].lower()} at {widths[-1]}: {', '.join(ends)}")
    low, high = min(ax.get_ylim()[0] for ax in axes), max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(low, high)
        ax.set_xticks(widths, [str(d_k) for d_k in widths])
        ax.minorticks_off()
        ax.tick_params(axis="y", labelsize=10)  # exponents are smaller than what they stand at
    for name, numbers in reached.items():
        lowest, highest = np.percentile(numbers, [10, 90], axis=1)
        axes[1].fill_between(
            widths, np.maximum(lowest, low), np.minimum(highest, high), color=_STYLES[name][0], alpha=0.15, lw=0
        )
    axes[0].legend(frameon=False, loc="lower left")
    fig.suptitle("Of the three, √d_k alone keeps the gradients the same", fontsize=12)
    show(
        fig,
        alt="Two panels on logarithmic axes: the norm of ∂p/∂q against d_k for three scales. " + "; ".join(said) + ".",
    )


def losses_of_seeds(ends: Mapping[tuple[str, str, int], tuple[float, Array]]) -> None:
    """(optimizer, start, d_k) -> (learning rate, the losses of several seeds with it): at each width the starts side by side."""
    optimizers, names = (list(dict.fromkeys(key[i] for key in ends)) for i in (0, 1))
    widths = sorted({d_k for *_, d_k in ends})
    fig, axes = panels(len(optimizers), width=8.8, height=4.0)
    said = []
    for ax, optimizer in zip(axes, optimizers, strict=True):
        for at, name in enumerate(names):
            colour, marker = _STYLES[name]
            losses = np.array([ends[optimizer, name, d_k][1] for d_k in widths])  # (widths, seeds)
            spots = np.arange(len(widths)) + 0.2 * (at - (len(names) - 1) / 2)
            for x, of_seeds in zip(spots, losses, strict=True):
                ax.plot(np.full(len(of_seeds), x), of_seeds, marker, color=colour, alpha=0.55, markersize=4.5, mew=0)
            means = losses.mean(axis=1)
            ax.hlines(means, spots - 0.085, spots + 0.085, color=colour, linewidth=2.6)
            ax.plot([], [], marker, color=colour, markersize=5, label=name)
            said.append(f"{optimizer}, {name}: " + ", ".join(f"{mean:.2f}" for mean in means))
        for between in np.arange(len(widths) - 1) + 0.5:
            ax.axvline(between, color=COLOURS["grey"], linewidth=0.7, alpha=0.5)
        ax.set_xticks(range(len(widths)), [str(d_k) for d_k in widths])
        ax.set(title=optimizer[0].upper() + optimizer[1:], xlabel="d_k", yscale="log")
        ax.set_xlim(-0.5, len(widths) - 0.5)
        ax.minorticks_off()
    low, high = min(ax.get_ylim()[0] for ax in axes), max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(low, high)
        ax.set_yticks([0.03, 0.1, 0.3, 1], ["0.03", "0.1", "0.3", "1"])
    axes[0].set_ylabel("loss after 300 steps (bars: means)")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=9.5)
    fig.suptitle(
        "The wider the head, the further the unscaled one falls behind; divided by d_k it ends lowest", fontsize=12
    )
    show(
        fig,
        alt="For four starts and three widths, the losses of five seeds after training, with a bar at their mean. Mean losses at "
        f"d_k = {', '.join(map(str, widths))}: " + "; ".join(said) + ".",
    )


def side_by_side(maps: Mapping[str, Array]) -> None:
    """Weights of a dozen queries over eight keys: title -> (queries, keys)."""
    fig, axes = panels(len(maps), width=8.0, height=4.0)
    columns = []
    for ax, (name, weights) in zip(axes, maps.items(), strict=True):
        columns.append(f"{name}: {len(set(weights.argmax(axis=-1)))}")
        matrix(weights, name, ax=ax)
    fig.suptitle("All-positive vectors give nearly every query the same favorite key", fontsize=12)
    show(
        fig,
        alt="Heat maps of weights, twelve queries by eight keys. Number of keys that are some query's favorite: "
        f"{', '.join(columns)}.",
    )
