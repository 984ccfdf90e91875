"""Figures of lesson 02: ways from scores to weights, one point more, what an axis does, temperature, logarithms, the Jacobian."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from grader.figures import COLOURS, Picture, follow, matrix, panels, picture, show

Array = np.ndarray


def four_ways(row: Array, ways: Mapping[str, Array]) -> None:
    """What each way makes of one row of scores (n,); bars that break a rule are vermillion."""
    fig, axes = panels(len(ways), width=8.8, height=3.0)
    faults = ("a negative weight", "1 and −1 alike", "all or nothing", "no such fault")
    bad = ({3}, {1, 3}, {1, 2, 3}, set())
    labels = [f"{score:g}".replace("-", "−") for score in row]
    for ax, (name, weights), fault, wrong in zip(axes, ways.items(), faults, bad, strict=True):
        drawn = ax.bar(
            labels,
            weights,
            color=[COLOURS["vermillion" if at in wrong else "blue"] for at in range(len(row))],
            width=0.7,
        )
        ax.bar_label(drawn, [f"{weight:.2f}".replace("-", "−") for weight in weights], padding=2, fontsize=9)
        ax.axhline(0, color=COLOURS["grey"], linewidth=0.8)
        ax.set_title(f"{name}\n{fault}", color=COLOURS["green"] if not wrong else "#222222")
        ax.set(ylim=(-0.68, 1.18), xlabel="score")
        ax.grid(False, axis="x")
    axes[0].set_ylabel("weight")
    said = "; ".join(
        f"{name} gives {', '.join(f'{weight:.2f}' for weight in weights)}" for name, weights in ways.items()
    )
    show(
        fig,
        alt=f"Four bar charts of the weights that four functions give to the scores {', '.join(labels)}: "
        f"{said}. Only the exponential is positive, keeps the "
        "order and is smooth.",
    )


def equal_steps(row: Array, grown: Array) -> None:
    """The exponentials of scores (n,) one point apart as bars; from each to the next the factor e."""
    order = np.argsort(row)
    scores, heights = row[order], grown[order]
    fig, (ax,) = panels(1, width=6.4, height=3.3)
    drawn = ax.bar(scores, heights, width=0.36, color=COLOURS["blue"])
    ax.bar_label(drawn, [f"{height:.2f}" for height in heights], padding=3, fontsize=10)
    for left, low, high in zip(scores, heights, heights[1:], strict=False):
        arrow = {"arrowstyle": "-|>", "color": COLOURS["vermillion"], "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
        arrow["connectionstyle"] = (
            "arc3,rad=-0.25"  # from top to top: what the bars' heights are multiplied by, not what is added
        )
        ax.annotate("", (left + 0.82, high), (left + 0.18, low), arrowprops=arrow)
        ax.text(
            left + 0.4, 0.4 * low + 0.6 * high + 0.55, "× 2.72", color=COLOURS["vermillion"], ha="right", va="center"
        )
    ax.set_xticks(scores, [f"{score:g}".replace("-", "−") for score in scores])
    ax.set(xlabel="score", ylabel="e to the power of the score", ylim=(0, 8.4))
    ax.grid(False, axis="x")
    ax.set_title("One point more always means 2.72 times as much")
    said = ", ".join(f"{height:.2f} at {score:g}" for score, height in zip(scores, heights, strict=True))
    show(
        fig, alt=f"Bars of the exponentials of four scores one point apart: {said}. Each is 2.72 times the one before."
    )


def axis_comparison(along: Mapping[str, Array]) -> None:
    """The same scores normalized in three ways, each (n, n), with the sums of rows and columns beside them."""
    fig, axes = panels(len(along), width=8.8, height=3.5)
    titles = {
        "axis=1": "axis=1: rows sum to 1",
        "axis=0": "axis=0: columns sum to 1",
        "no axis": "no axis: all sum to 1",
    }
    for ax, (name, weights) in zip(axes, along.items(), strict=True):
        matrix(weights, titles.get(name, name), ax=ax, xlabel="key", ylabel="query")
        for number, weight in zip(ax.texts, weights.ravel(), strict=True):
            number.set_color("white" if weight > 0.55 else "black")  # on the darker half of the blues
        rows, columns = weights.shape
        for sums, places in (
            (weights.sum(axis=1), [(columns - 0.05, i) for i in range(rows)]),
            (weights.sum(axis=0), [(j, rows - 0.15) for j in range(columns)]),
        ):
            for total, (x, y) in zip(sums, places, strict=True):
                one = abs(total - 1) < 1e-9
                ax.text(
                    x,
                    y,
                    f"{total:.2f}",
                    ha="center",
                    va="center",
                    color=COLOURS["green" if one else "vermillion"],
                    fontsize=10,
                    fontweight="bold" if one else "normal",
                )
        ax.set_xlim(-0.5, columns + 0.45)
        ax.set_ylim(rows + 0.25, -0.5)
    fig.suptitle("The same nine scores as three maps: the sums tell them apart", fontsize=12)
    last = ", ".join(f"{value:.3f}" for value in list(along.values())[-1].sum(axis=1))
    show(
        fig,
        alt="Three heat maps of one 3 by 3 table, with the sums of rows at the right and of columns below: normalized along rows, "
        f"along columns, and as a whole; then its rows sum to {last}.",
    )


def temperatures(row: Array, weights_at: Mapping[float, Array]) -> None:
    """Weights of one row of scores (n,) at several temperatures."""
    fig, axes = panels(len(weights_at), width=8.8, height=2.9)
    for ax, (temperature, weights) in zip(axes, weights_at.items(), strict=True):
        _row_at(ax, weights, temperature)
    axes[0].set_ylabel("weight")
    written = ", ".join(f"{score:g}" for score in row).replace("-", "−")
    fig.suptitle(f"Scores ({written}): a low temperature picks one key, a high one shares", fontsize=12)
    tops = ", ".join(f"{temperature:g}: {weights.max():.2f}" for temperature, weights in weights_at.items())
    show(fig, alt=f"Bars of five weights at several temperatures; the largest weight at each: {tops}.")


def _row_at(ax, weights: Array, temperature: float) -> None:
    ax.bar(range(len(weights)), weights, color=COLOURS["blue"])
    ax.set(ylim=(0, 1.05), xlabel="key position")
    ax.set_xticks(range(len(weights)))
    ax.set_title(f"temperature {temperature:.3g}", fontsize=10.5)


def temperature_slider(softmax_with_temperature: Callable[..., Array]) -> None:
    """One row at any temperature, where widgets run; elsewhere one static picture."""
    scores = np.array([2.0, 1.5, 0.5, 0.0, -1.0])

    def draw(temperature: float) -> Picture:
        weights = softmax_with_temperature(scores, temperature)
        fig, (ax,) = panels(1, width=4.2, height=2.9)
        _row_at(ax, weights, temperature)
        ax.set_ylabel("weight")
        ahead = f"{weights[0] / weights[1]:.3g} times"
        ax.set_title(f"temperature {temperature:.3g}: half a point ahead\nmeans {ahead} the weight")
        return picture(
            fig,
            alt=f"Five weights at temperature {temperature:.3g}, the largest {weights.max():.2f}: "
            f"{ahead} that of the second key, which scores half a point less.",
        )

    try:
        from ipywidgets import FloatLogSlider
    except ImportError:
        print(draw(2.0))
        return
    whole_label = {"description_width": "initial"}
    follow(draw, FloatLogSlider(2.0, min=-2, max=2, step=0.05, description="temperature", style=whole_label))


def logarithms(gaps: Array, errors: Mapping[str, tuple[Array, Array]]) -> None:
    """Errors (n,) of the logarithm of the smaller weight, taken after softmax and directly, near where the first ends in −∞."""
    fig, axes = panels(len(errors), width=8.8, height=3.3)
    ends = []
    for ax, (kind, (late, direct)) in zip(axes, errors.items(), strict=True):
        finite = np.isfinite(late)
        last = float(gaps[finite].max())
        ends.append(f"{last:g} in {kind}")
        near = (gaps > last - 30) & (gaps < last + 20)
        ax.axvspan(last + 0.5, last + 19, color="#FBE3D6", linewidth=0)
        ax.plot(
            gaps[near & finite], late[near & finite], "o--", color=COLOURS["vermillion"], linewidth=1.4, markersize=4
        )
        ax.plot(gaps[near], direct[near], color=COLOURS["blue"], linewidth=2.6)
        ax.text(last + 10, 0.45, "here it is\n−∞", color=COLOURS["vermillion"], ha="center", va="center")
        ax.set(ylim=(-0.04, 0.8), xlabel="difference of the two scores", xlim=(last - 29, last + 19))
        ax.set_title(f"{kind}: −∞ beyond {last:g}")
    axes[0].set_ylabel("error, nats")
    for height, said, paint in ((0.2, "np.log(softmax(x))", "vermillion"), (0.1, "log_softmax(x)", "blue")):
        axes[0].text(0.03, height, said, transform=axes[0].transAxes, color=COLOURS[paint], fontweight="bold")
    largest = max(float(direct.max()) for _, direct in errors.values())
    show(
        fig,
        alt="Errors of two ways to compute the logarithm of a weight. Taken after softmax, it goes wrong and is "
        "−∞ beyond a difference of "
        f"{' and '.join(ends)}; log_softmax errs by {largest:.1g} at most.",
    )


def jacobians(weights: Mapping[str, Array], found: Mapping[str, Array]) -> None:
    """Jacobians (n, n) at several weights (n,), by the same names."""
    fig, axes = panels(len(found), width=8.8, height=3.8)
    for ax, (name, jacobian) in zip(axes, found.items(), strict=True):
        written = ", ".join(f"{value:.3f}" for value in weights[name])
        matrix(
            jacobian,
            f"{name}\np = ({written})",
            kind="difference",
            limits=(-0.25, 0.25),
            ax=ax,
            xlabel="score",
            ylabel="weight",
            fmt=".2g",  # two decimals would print nine times 0.00 where the weights are saturated
        )
    fig.suptitle("With nearly all weight on one key, hardly any derivative is left", fontsize=12)
    largest = ", ".join(f"{np.abs(jacobian).max():.2g}" for jacobian in found.values())
    show(fig, alt=f"Three Jacobians, positive on the diagonal, negative elsewhere. The largest entries are {largest}.")
