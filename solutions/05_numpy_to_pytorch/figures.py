"""Figures of lesson 05: a graph of numbers, a cut graph, two libraries side by side, training, rounding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.figures import COLOURS, matrix, panels, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOUR_WORDS = ("red", "green", "blue")  # the three colours of the training task, as words


def rounding(offsets: Sequence[float], errors: Sequence[float], spacing: Sequence[float]) -> None:
    """How far float32 weights are from float64 ones, beside float32's spacing, where a number is added to every score."""
    fig, (ax,) = panels(1, width=6.8, height=3.9)
    ax.loglog(offsets, errors, "o", color=COLOURS["blue"], markersize=4, alpha=0.6, label="one draw of q, k and v")
    ax.step(offsets, spacing, where="post", color=COLOURS["black"], linewidth=1.4, label="from one float32 to the next")
    ax.axhline(1e-6, color=COLOURS["vermillion"], linestyle="--", linewidth=1.6, label="a tolerance of 10⁻⁶")
    ax.set_ylim(5e-9, 3e-2)
    ax.set_title("The larger the scores, the larger the rounding error")
    ax.set_xlabel("number added to every score")
    ax.set_ylabel("largest difference of a weight,\nfloat32 against float64")
    ax.legend(loc="upper left", frameon=False)
    above = np.mean(np.array(errors)[np.array(offsets) > 100] > 1e-6)
    show(
        fig,
        alt="Scatter plot on two logarithmic axes. The largest difference between float32 and float64 weights "
        f"rises with the number added to every score, from {min(errors):.0e} to {max(errors):.0e}, below the "
        f"spacing of float32. Where it is above 100, {above:.0%} of the draws lie above the dashed line "
        "at 10⁻⁶.",
    )


def compare(expected: np.ndarray, got: np.ndarray, names: tuple[str, str], claim: str) -> None:
    """Two results (rows, columns) on one colour scale, and their difference with its largest entry."""
    difference = got - expected
    largest = float(np.abs(difference).max())
    reach = float(max(np.abs(expected).max(), np.abs(got).max()))
    rows, columns = expected.shape
    fig, axes = panels(3, width=3 * (0.62 * columns + 1.0), height=0.72 * rows + 2.0)
    labels = {"xlabel": "output feature", "ylabel": "row of x"}
    for ax, array, name in zip(axes, (expected, got), names):
        matrix(array, name, kind="scores", limits=(-reach, reach), ax=ax, **labels)
    _difference(axes[2], difference, largest, **labels)
    fig.suptitle(claim, fontsize=11.5)
    show(
        fig,
        alt=f"{claim}. Three heat maps: {names[0]}, {names[1]} and their difference, "
        f"whose largest entry is {_short(largest)}.",
    )


def compare_weights(expected: np.ndarray, got: np.ndarray, words: Sequence[str]) -> None:
    """NumPy's weights (T, T), PyTorch's, and the difference."""
    difference = got - expected
    largest = float(np.abs(difference).max())
    fig, axes = panels(3, width=8.8, height=3.95)
    labels = {"rows": words, "columns": words, "xlabel": "key", "ylabel": "query"}
    matrix(expected, "NumPy, float64", ax=axes[0], **labels)
    matrix(got, "PyTorch, float32", ax=axes[1], **labels)
    _difference(axes[2], difference, largest, **labels)
    for ax in axes:
        ax.tick_params(axis="x", rotation=45)
    fig.suptitle("The same attention in two libraries", fontsize=11.5)
    show(
        fig,
        alt=f"Weights of {len(words)} words computed in NumPy and in PyTorch, two heat maps that look alike; "
        f"in the third their difference, at most {_short(largest)}.",
    )


def _difference(ax: Axes, difference: np.ndarray, largest: float, **labels: Any) -> None:
    """A tiny difference is written in units of its own size, so that the cells stay readable."""
    if largest >= 1e-2 or largest == 0:
        matrix(difference, "", kind="difference", ax=ax, **labels)
        ax.set_title(f"Difference\n(at most {_short(largest)})")
        return
    power = int(np.floor(np.log10(largest)))
    matrix(difference / 10.0**power, "", kind="difference", ax=ax, fmt=".1f", **labels)
    ax.set_title(f"Difference × 10{_raised(-power)}\n(at most {_short(largest)})")


def _short(number: float) -> str:
    if number == 0 or 1e-2 <= number < 1e4:
        return f"{number:.3g}"
    digits, power = f"{number:.1e}".split("e")
    return f"{digits} · 10{_raised(int(power))}"


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def number_graph(numbers: Mapping[str, Any]) -> None:
    """Four numbers a, b, c = a · b and y = c · a: their values, the edges' derivatives, and the gradients that came back."""
    spots = dict(zip(numbers, ((0, 1.0), (0, 0.0), (1.55, 0.3), (3.1, 0.75)), strict=True))
    fig, (ax,) = panels(1, width=8.2, height=3.3)
    ax.set_axis_off()
    for name, number in numbers.items():
        x, y = spots[name]
        box = {"boxstyle": "round,pad=0.55", "facecolor": "white", "edgecolor": COLOURS["black"], "linewidth": 1.2}
        text = f"{name} = {number.value:g}"
        ax.text(x, y, text, ha="center", va="center", bbox=box, zorder=3, fontsize=11)
        ways = [
            (result.grad, derivative)
            for result in numbers.values()
            for factor, derivative in result.made_from
            if factor is number
        ]
        parts = " + ".join(f"{grad * derivative:g}" for grad, derivative in ways)
        said = f"gradient {parts} = {number.grad:g}" if len(ways) > 1 else f"gradient {number.grad:g}"
        at, where = ((x - 0.3, y), ("right", "center")) if x == 0 else ((x, y - 0.2), ("center", "top"))
        ax.text(*at, said, color=COLOURS["blue"], ha=where[0], va=where[1], fontsize=10.5, fontweight="bold", zorder=3)
    for name, result in numbers.items():
        for factor, derivative in result.made_from:
            start = next(spots[other] for other, number in numbers.items() if number is factor)
            _number_edge(ax, start, spots[name], f"× {derivative:g}")
    ax.text(3.75, 0.14, "values →", color=COLOURS["grey"], ha="right", va="center", fontsize=10)
    ax.text(3.75, 0.0, "← gradients", color=COLOURS["blue"], ha="right", va="center", fontsize=10, fontweight="bold")
    ax.set(xlim=(-1.6, 3.8), ylim=(-0.2, 1.2))
    ax.set_title("Gradients from two paths add up")
    said = ", ".join(
        f"{name} with value {number.value:g} and gradient {number.grad:g}" for name, number in numbers.items()
    )
    show(fig, alt=f"A graph of four numbers: {said}. a and b lead to c, and c and a lead to y; gradients come back.")


def _number_edge(ax: Axes, start: tuple[float, float], end: tuple[float, float], factor: str) -> None:
    """An arrow forward and one back beside it, with the derivative that the gradient is multiplied with."""
    near, far = (
        30 if start[0] == 0 else 54,
        54,
    )  # how far arrows end from the middle of a box: those of results are wider
    across, up = np.subtract(end, start)
    aside = np.array((-up, across)) / np.hypot(across, up) * 0.04
    for way, points, shrinks, colour in (
        (1, (start, end), (near, far), "grey"),
        (-1, (end, start), (far, near), "blue"),
    ):
        arrow = {"arrowstyle": "-|>,head_width=0.22,head_length=0.45", "linewidth": 1.8, "color": COLOURS[colour]}
        arrow |= {"shrinkA": shrinks[0], "shrinkB": shrinks[1]}
        ax.annotate("", points[1] + way * aside, points[0] + way * aside, zorder=2, arrowprops=arrow)
    middle = 0.5 * np.add(start, end) - (0, 0.1)
    ax.text(*middle, factor, color=COLOURS["blue"], ha="center", va="top", fontsize=10.5)


_PLACES = {"q": (0, 2), "k": (0, 1), "v": (0, 0), "scores": (1.35, 1.5), "weights": (2.7, 1.5), "output": (4.2, 0.75)}
_HALF = {"q": 0.15, "k": 0.15, "v": 0.15, "scores": 0.36, "weights": 0.4, "output": 0.36}  # widths of the boxes
_EDGES = (("q", "scores"), ("k", "scores"), ("scores", "weights"), ("weights", "output"), ("v", "output"))
_APART = 0.075  # how far the two arrows of an edge lie from its middle


def graph(title: str, gradients: Mapping[str, Sequence[float | None]]) -> None:
    """Attention from q, k, v to its output, numbers forward and gradients back. gradients: at q, k and v, None where none arrives."""
    fig, (ax,) = panels(1, width=6.6, height=2.9)
    _draw_graph(ax, gradients)
    ax.set_title(title)
    said = ", ".join(f"{name} {_said(numbers)}" for name, numbers in gradients.items())
    show(
        fig,
        alt="A diagram in which q and k lead to scores, weights and output, and v to output. Gradients come back. "
        f"{title}, with gradients {said}.",
    )


def _said(numbers: Sequence[float | None]) -> str:
    return "None" if None in numbers else ", ".join(f"{number:.3f}".replace("-", "−") for number in numbers)


def _draw_graph(ax: Axes, gradients: Mapping[str, Sequence[float | None]]) -> None:
    cut = None in gradients["q"]
    ax.set_axis_off()
    for name, (x, y) in _PLACES.items():
        box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": COLOURS["black"], "linewidth": 1.2}
        ax.text(x, y, name, ha="center", va="center", bbox=box, zorder=3, fontsize=10.5)
    for start, end in _EDGES:
        lost = cut and start != "v"
        _arrow(ax, start, end, COLOURS["grey"], _APART)
        if not lost:
            _arrow(ax, end, start, COLOURS["blue"], _APART)
    for name, numbers in gradients.items():
        colour = COLOURS["vermillion"] if None in numbers else COLOURS["blue"]
        x, y = _PLACES[name]
        ax.text(x - 0.26, y, f"gradient: {_said(numbers)}", color=colour, ha="right", va="center", fontweight="bold")
    if cut:
        x, y = 3.35, 1.125  # halfway from the weights' box to that of the output
        ax.plot(x, y, "x", color=COLOURS["vermillion"], markersize=13, markeredgewidth=3, zorder=4)
        ax.text(x + 0.3, y + 0.16, "detach", color=COLOURS["vermillion"], ha="left", va="center", fontweight="bold")
    ax.text(4.0, 2.15, "numbers →", color=COLOURS["grey"], ha="left", va="center", fontsize=10)
    ax.text(4.0, 1.85, "← gradients", color=COLOURS["blue"], ha="left", va="center", fontsize=10, fontweight="bold")
    ax.set_xlim(-2.55, 5.3)
    ax.set_ylim(-0.35, 2.35)


def _arrow(ax: Axes, start: str, end: str, colour: str, aside: float) -> None:
    """An arrow between two boxes, a little to its own left, so that the one back lies beside it."""
    (x, y), (x_end, y_end) = _PLACES[start], _PLACES[end]
    apart = 0.12 * np.sign(y_end - y)  # so that edges that meet at a box do not cross before it
    y, y_end = y + apart, y_end - apart
    way = 1 if x_end > x else -1
    x, x_end = x + way * (_HALF[start] + 0.06), x_end - way * (_HALF[end] + 0.06)
    length = np.hypot(x_end - x, y_end - y)
    left, up = -(y_end - y) / length * aside, (x_end - x) / length * aside
    ax.annotate(
        "",
        (x_end + left, y_end + up),
        (x + left, y + up),
        zorder=2,
        arrowprops={
            "arrowstyle": "-|>,head_width=0.22,head_length=0.45",
            "linewidth": 1.8,
            "shrinkA": 0,
            "shrinkB": 0,
            "color": colour,
        },
    )


def training(
    losses: Mapping[str, Sequence[float]], before: np.ndarray, after: np.ndarray, colours: Sequence[int]
) -> None:
    """Loss curves by name; weights (T, T) before and after training for tokens of the given colours."""
    fig, (ax, left, right) = panels(3, width=8.8, height=3.7)
    for (name, curve), style in zip(losses.items(), ("-", "--")):
        ax.semilogy(_smooth(curve), style, linewidth=2, label=name)
    ax.set_title("Only one learns where to look")
    ax.set_xlabel("step")
    ax.set_ylabel("loss (mean of the last 10 steps)")
    ax.legend(frameon=False, loc="lower left", fontsize=9.5)
    order = np.argsort(colours, kind="stable")  # neighbours in the figure share a colour
    names = [COLOUR_WORDS[colours[i]] for i in order]
    labels = {"rows": names, "columns": names, "xlabel": "key", "ylabel": "query"}
    for axis, weights, title in ((left, before, "Weights before training"), (right, after, "Weights after training")):
        matrix(weights[np.ix_(order, order)], title, ax=axis, **labels)
        axis.tick_params(axis="x", rotation=45)
    same = np.equal.outer(colours, colours)
    share = [float((weights * same).sum() / len(colours)) for weights in (before, after)]
    ends = ", ".join(f"{name} ends at {np.mean(curve[-10:]):.2g}" for name, curve in losses.items())
    show(
        fig,
        alt=f"Left: loss curves on a logarithmic axis; {ends}. Right: heat maps of the weights for six tokens "
        f"sorted by color. On average a token gives {share[0]:.0%} of its weight to its own color before "
        f"training and {share[1]:.0%} after.",
    )


def _smooth(curve: Sequence[float], width: int = 10) -> np.ndarray:
    sums = np.cumsum(np.concatenate([[0.0], curve]))
    counts = np.minimum(np.arange(1, len(curve) + 1), width)
    return (sums[1:] - sums[np.arange(1, len(curve) + 1) - counts]) / counts


def staircase(fine: np.ndarray, rounded: Mapping[Any, np.ndarray]) -> None:
    """Numbers (n,), and the same numbers after a stay in each of several types, by type."""
    fig, axes = panels(len(rounded), width=8.8, height=3.4)
    said = []
    for ax, (dtype, numbers) in zip(axes, rounded.items()):
        name = str(dtype).removeprefix("torch.")
        steps = len(np.unique(numbers))
        ax.plot(fine, fine, color=COLOURS["grey"], linewidth=1, linestyle=":")
        ax.plot(fine, numbers, linewidth=1.8)
        ax.set_title(f"{name}\n{steps} different numbers")
        ax.set_xlabel("before")
        ax.set_xticks(np.linspace(1, 1.05, 6)[::2])
        ax.set_xlim(fine[0], fine[-1])
        ax.set_ylim(fine[0] - 0.002, fine[-1] + 0.002)
        said.append(f"{name} leaves {steps}")
    axes[0].set_ylabel("after")
    show(
        fig,
        alt=f"Line plots of {len(fine)} numbers from {fine[0]:g} to {fine[-1]:g} before and after rounding: "
        + ", ".join(said)
        + " different numbers. bfloat16 is a staircase with few wide steps.",
    )
