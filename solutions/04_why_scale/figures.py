"""Figures of lesson 04: how scores grow with the width, and what softmax makes of them. Everything drawn is measured in the lesson."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from grader.figures import COLOURS, matrix, panels, show

Array = np.ndarray
_STYLES = {  # name of a scale -> colour, marker
    "divided by √d_k": (COLOURS["blue"], "o"),
    "undivided": (COLOURS["vermillion"], "s"),
    "divided by d_k": (COLOURS["green"], "^"),
}


def bars_of(rows: Mapping[str, Array]) -> None:
    """One query's weights over its keys, a panel for each title."""
    fig, axes = panels(len(rows), width=8.8, height=2.6)
    for ax, (title, row) in zip(axes, rows.items(), strict=True):
        ax.bar(np.arange(len(row)), row, 0.7, color=COLOURS["vermillion"])
        ax.set(xlabel="key position", ylabel="weight", ylim=(0, 1.05), title=title)
    tops = ", ".join(f"{row.max():.2f} for {title}" for title, row in rows.items())
    show(fig, alt=f"Bar charts of one query's weights over eight keys, without a scale; the largest weight is {tops}.")


def spread(widths: Array, measured: Array) -> None:
    """Measured standard deviations on the line √d_k, both axes logarithmic."""
    fig, (ax,) = panels(1, width=5.6, height=3.3)
    ax.loglog(widths, np.sqrt(widths), color=COLOURS["grey"], linestyle="--", label="√d_k")
    ax.loglog(widths, measured, "o", color=COLOURS["blue"], label="measured, 1000 pairs each")
    ax.set(xlabel="d_k", ylabel="standard deviation of the scores")
    ax.set_title("Dot products spread by √d_k")
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


def histograms(by_name: Mapping[str, Array], xlabel: str) -> None:
    """Histograms of numbers from 0 to 1, side by side, with one vertical axis."""
    fig, axes = panels(len(by_name), width=8.0, height=2.9)
    most = 0.0
    for ax, (name, numbers) in zip(axes, by_name.items(), strict=True):
        counts, *_ = ax.hist(numbers, bins=np.linspace(0, 1, 26), color=_STYLES[name][0])
        most = max(most, counts.max())
        ax.set(xlabel=xlabel, ylabel="rows")
        ax.set_title(f"{name}: {numbers.mean():.2f} on average")
    for ax in axes:
        ax.set_ylim(0, most * 1.05)
    means = " and ".join(f"{numbers.mean():.2f} ({name})" for name, numbers in by_name.items())
    show(fig, alt=f"Histograms of the {xlabel}: {means} on average.")


def means_and_medians(widths: Array, reached: Mapping[str, Array]) -> None:
    """The mean and the median over rows of what reaches the query, for each scale: name -> (widths, rows)."""
    fig, axes = panels(2, width=8.8, height=3.6)
    said = []
    for ax, what, of in zip(axes, ("mean", "median"), (np.mean, np.median), strict=True):
        ends = []
        for name, numbers in reached.items():
            colour, marker = _STYLES[name]
            line = of(numbers, axis=1)
            ax.loglog(widths, line, marker=marker, markersize=4.5, color=colour, label=name)
            ends.append(f"{name} {line[-1]:.2g}")
        ax.set(xlabel="d_k", ylabel="norm of ∂p/∂q", title=f"{what.capitalize()} over 500 rows")
        said.append(f"{what} at {widths[-1]}: {', '.join(ends)}")
    low, high = min(ax.get_ylim()[0] for ax in axes), max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(low, high)
    axes[0].legend(frameon=False, loc="lower left")
    show(
        fig,
        alt="Two panels on logarithmic axes: the norm of ∂p/∂q against d_k for three scales. " + "; ".join(said) + ".",
    )


def losses(runs: Mapping[str, Sequence[float]], steps: Mapping[str, float]) -> None:
    """Loss curves of heads: name of a scale -> losses, and -> its step size."""
    fig, (ax,) = panels(1, width=6.6, height=3.6)
    for name, values in runs.items():
        ax.semilogy(values, color=_STYLES[name][0], label=f"{name}, steps of {steps[name]:.3g}")
    ax.set_xlim(0, max(map(len, runs.values())) * 1.02)
    ax.set(xlabel="step", ylabel="loss")
    ax.set_title("Each with its best step size: without the scale the head is stuck")
    ax.legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.62))
    said = "; ".join(f"{name} goes from {values[0]:.2f} to {values[-1]:.3f}" for name, values in runs.items())
    show(fig, alt=f"Loss curves of three heads on a logarithmic axis. {said}.")


def side_by_side(maps: Mapping[str, Array]) -> None:
    """Weights of a dozen queries over eight keys: title -> (queries, keys)."""
    fig, axes = panels(len(maps), width=8.0, height=4.0)
    columns = []
    for ax, (name, weights) in zip(axes, maps.items(), strict=True):
        columns.append(f"{name}: {len(set(weights.argmax(axis=-1)))}")
        matrix(weights, name, ax=ax)
    show(
        fig,
        alt="Heat maps of weights, twelve queries by eight keys. Number of keys that are some query's favorite: "
        f"{', '.join(columns)}.",
    )
