"""Figures of lesson 05: rounding, two libraries side by side, a cut graph, a query that learns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.figures import COLOURS, matrix, panels, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOUR_WORDS = ("red", "green", "blue")  # the three colours of the training task, as words


def rounding(attention: Callable[..., tuple[np.ndarray, np.ndarray]]) -> None:
    """How far float32 weights are from float64 ones, as all scores grow by the same amount, 1 to 10,000."""
    rng = np.random.default_rng(0)
    scores, errors = [], []
    for offset in np.repeat(np.logspace(0, 4, 17), 8):
        q, k, v = rng.normal(size=(3, 6, 9))
        q[:, -1], k[:, -1] = 3 * offset, 1  # adds the offset to every score: the scale is √9
        exact, rounded = (attention(*(a.astype(t) for a in (q, k, v)))[1] for t in (np.float64, np.float32))
        scores.append(offset)
        errors.append(np.abs(exact - rounded).max())
    fig, (ax,) = panels(1, width=6.8, height=3.9)
    ax.loglog(scores, errors, "o", color=COLOURS["blue"], markersize=4, alpha=0.6, label="one draw of q, k and v")
    span = np.array([min(scores), max(scores)])
    spacing = span * np.finfo(np.float32).eps
    ax.loglog(span, spacing, color=COLOURS["black"], linewidth=1.4, label="spacing of float32 there")
    ax.axhline(1e-6, color=COLOURS["vermillion"], linestyle="--", linewidth=1.6, label="the published tolerance, 10⁻⁶")
    ax.set_ylim(5e-9, 3e-3)
    ax.set_title("The larger the scores, the larger the rounding error")
    ax.set_xlabel("number added to every score")
    ax.set_ylabel("largest difference of a weight,\nfloat32 against float64")
    ax.legend(loc="upper left", frameon=False)
    above = np.mean(np.array(errors)[np.array(scores) > 100] > 1e-6)
    show(fig, alt="Scatter plot on two logarithmic axes. The largest difference between float32 and float64 weights "
                  f"rises with the number added to every score, from {min(errors):.0e} to {max(errors):.0e}, along the "
                  f"spacing of float32. Where it is above 100, {above:.0%} of the draws lie above the dashed line "
                  "at 10⁻⁶.")


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
    show(fig, alt=f"{claim}. Three heat maps: {names[0]}, {names[1]} and their difference, "
                  f"whose largest entry is {_short(largest)}.")


def compare_weights(expected: np.ndarray, got: np.ndarray, words: Sequence[str]) -> None:
    """NumPy's weights (T, T), PyTorch's, and the difference."""
    difference = got - expected
    largest = float(np.abs(difference).max())
    fig, axes = panels(3, width=9.6, height=3.95)
    labels = {"rows": words, "columns": words, "xlabel": "key", "ylabel": "query"}
    matrix(expected, "NumPy, float64", ax=axes[0], **labels)
    matrix(got, "PyTorch, float32", ax=axes[1], **labels)
    _difference(axes[2], difference, largest, **labels)
    for ax in axes:
        ax.tick_params(axis="x", rotation=45)
    fig.suptitle("The same attention in two libraries", fontsize=11.5)
    show(fig, alt=f"Weights of {len(words)} words computed in NumPy and in PyTorch, two heat maps that look alike; "
                  f"in the third their difference, at most {_short(largest)}.")


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


_PLACES = {"q": (0, 2), "k": (0, 1), "v": (0, 0), "scores": (1.15, 1.5), "weights": (2.3, 1.5), "output": (3.45, 0.75)}
_HALF = {"q": 0.13, "k": 0.13, "v": 0.13, "scores": 0.32, "weights": 0.36, "output": 0.32}  # widths of the boxes
_EDGES = (("q", "scores"), ("k", "scores"), ("scores", "weights"), ("weights", "output"), ("v", "output"))


def graph() -> None:
    """Attention's graph with the gradients that arrive at its three inputs."""
    fig, (ax,) = panels(1, width=5.6, height=2.9)
    sizes = _gradient_sizes(cut=False)
    _draw_graph(ax, sizes, cut=False)
    ax.set_title("Numbers run to the right, gradients come back")
    show(fig, alt="A diagram in which q and k lead to scores, weights and output, and v to output. Gradients come back to all three: "
                  + ", ".join(f"{name} {_said(size)}" for name, size in sizes.items()) + ".")  # fmt: skip


def cut_graph() -> None:
    """Attention's graph, whole and with the weights detached, and the gradients that really arrive."""
    fig, axes = panels(2, width=9.6, height=3.1)
    said = []
    titles = ("The whole graph: q, k and v learn", "weights.detach(): only v learns")
    for ax, cut, title in zip(axes, (False, True), titles):
        sizes = _gradient_sizes(cut)
        _draw_graph(ax, sizes, cut)
        ax.set_title(title)
        said.append(title + ", with gradients " + ", ".join(f"{name} {_said(size)}" for name, size in sizes.items()))
    show(fig, alt="Two diagrams in which q and k lead to scores, weights and output, and v to output. "
                  + "; ".join(said) + ".")


def _gradient_sizes(cut: bool) -> dict[str, float | None]:
    """The norm of the gradient of q, k and v for one random draw, None where no gradient arrives."""
    import torch

    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(3, 4, generator=generator, requires_grad=True) for _ in range(3))
    weights = torch.softmax(q @ k.mT / 2, dim=-1)
    output = (weights.detach() if cut else weights) @ v
    output.square().sum().backward()
    return {name: None if t.grad is None else t.grad.norm().item() for name, t in (("q", q), ("k", k), ("v", v))}


def _said(size: float | None) -> str:
    return "None" if size is None else f"norm {size:.2f}"


def _draw_graph(ax: Axes, sizes: Mapping[str, float | None], cut: bool) -> None:
    ax.set_axis_off()
    for name, (x, y) in _PLACES.items():
        box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": COLOURS["black"], "linewidth": 1.2}
        ax.text(x, y, name, ha="center", va="center", bbox=box, zorder=3, fontsize=10.5)
    for start, end in _EDGES:
        lost = cut and start != "v"
        style = {"arrowstyle": "<|-,head_width=0.3,head_length=0.6", "linewidth": 2, "shrinkA": 2, "shrinkB": 2}
        style |= {"color": "#A8A8A8", "linestyle": ":"} if lost else {"color": COLOURS["blue"]}
        (x, y), (x_end, y_end) = _PLACES[start], _PLACES[end]
        ax.annotate("", (x_end - _HALF[end], y_end), (x + _HALF[start], y), arrowprops=style, zorder=2)
    for name, size in sizes.items():
        colour = COLOURS["vermillion"] if size is None else COLOURS["blue"]
        x, y = _PLACES[name]
        ax.text(x - 0.22, y, f"gradient: {_said(size)}", color=colour, ha="right", va="center", fontweight="bold")
    if cut:
        x, y = 2.9, 1.125  # halfway from the weights' box to that of the output
        ax.plot(x, y, "x", color=COLOURS["vermillion"], markersize=13, markeredgewidth=3, zorder=4)
        ax.text(x + 0.14, y + 0.2, "detach", color=COLOURS["vermillion"], ha="left", va="center", fontweight="bold")
    ax.set_xlim(-1.75, 3.85)
    ax.set_ylim(-0.3, 2.3)


def query_walk(attention: Callable[..., Any], path: Any, keys: Any, values: Any) -> None:
    """A query (steps, 2) on its way uphill, over the output's second number; and its weights on the way."""
    import torch

    path = path.double()
    keys, values = keys.double(), values.double()
    across, up = np.linspace(-2.2, 2.6, 80), np.linspace(-6.4, 1.8, 120)
    grid = torch.tensor(np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2))
    with torch.no_grad():
        height = attention(grid, keys, values)[0][:, 1].reshape(len(up), len(across)).numpy()
        weights = attention(path, keys, values)[1].numpy()
    fig, (ax, right) = panels(2, width=9.2, height=4.3)
    _draw_walk(ax, across, up, height, path.numpy())
    for token, style in zip(range(3), ("-", "--", ":")):
        first, second = values[token]
        right.plot(weights[:, token], style, label=f"token {token + 1}, value ({first:g}, {second:g})")
    right.set_title("Its weight moves to the token with that value")
    right.set_xlabel("step")
    right.set_ylabel("weight")
    right.set_ylim(0, 1.02)
    right.legend(frameon=False, loc="center right")
    show(fig, alt=f"Left: the plane of queries, shaded by the second number of the output; a path of {len(path) - 1} "
                  f"steps leads from ({path[0][0]:g}, {path[0][1]:g}) uphill to ({path[-1][0]:.2f}, {path[-1][1]:.2f})."
                  " Right: the weight of the second token "
                  f"rises from {weights[0, 1]:.2f} to {weights[-1, 1]:.2f}.")


def _draw_walk(ax: Axes, across: np.ndarray, up: np.ndarray, height: np.ndarray, path: np.ndarray) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    ramp = LinearSegmentedColormap.from_list("height", ["#FFFFFF", "#C9E6DC", "#7FCBB4"])
    shade = ax.contourf(across, up, height, levels=np.arange(0, 11), cmap=ramp)
    bar = ax.figure.colorbar(shade, ax=ax, shrink=0.85, label="second number of the output")
    bar.outline.set_visible(False)
    ax.plot(*path.T, "o-", color=COLOURS["blue"], markersize=3.5, linewidth=1.2)
    for name, point, offset in (("start", path[0], (8, 4)), (f"step {len(path) - 1}", path[-1], (9, -4))):
        ax.annotate(name, point, offset, textcoords="offset points", color=COLOURS["blue"], fontweight="bold")
    ax.set_title("The query walks uphill along its gradient")
    ax.set_xlabel("first number of the query")
    ax.set_ylabel("second number of the query")
    ax.grid(False)


def training(
    losses: Mapping[str, Sequence[float]], before: np.ndarray, after: np.ndarray, colours: Sequence[int]
) -> None:
    """Loss curves by name; weights (T, T) before and after training for tokens of the given colours."""
    fig, (ax, left, right) = panels(3, width=11.4, height=4.0)
    for (name, curve), style in zip(losses.items(), ("-", "--")):
        ax.semilogy(_smooth(curve), style, linewidth=2, label=name)
    ax.set_title("One learns where to look, one cannot")
    ax.set_xlabel("step")
    ax.set_ylabel("loss (mean of the last 10 steps)")
    ax.legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.7))
    order = np.argsort(colours, kind="stable")  # neighbours in the figure share a colour
    names = [COLOUR_WORDS[colours[i]] for i in order]
    labels = {"rows": names, "columns": names, "xlabel": "key", "ylabel": "query"}
    for axis, weights, title in ((left, before, "Weights before training"), (right, after, "Weights after training")):
        matrix(weights[np.ix_(order, order)], title, ax=axis, **labels)
        axis.tick_params(axis="x", rotation=45)
    same = np.equal.outer(colours, colours)
    share = [float((weights * same).sum() / len(colours)) for weights in (before, after)]
    ends = ", ".join(f"{name} ends at {np.mean(curve[-10:]):.2g}" for name, curve in losses.items())
    show(fig, alt=f"Left: loss curves on a logarithmic axis; {ends}. Right: heat maps of the weights for six tokens "
                  f"sorted by color. On average a token gives {share[0]:.0%} of its weight to its own color before "
                  f"training and {share[1]:.0%} after.")


def _smooth(curve: Sequence[float], width: int = 10) -> np.ndarray:
    sums = np.cumsum(np.concatenate([[0.0], curve]))
    counts = np.minimum(np.arange(1, len(curve) + 1), width)
    return (sums[1:] - sums[np.arange(1, len(curve) + 1) - counts]) / counts


def staircase(fine: np.ndarray, rounded: Mapping[Any, np.ndarray]) -> None:
    """Numbers (n,), and the same numbers after a stay in each of several types, by type."""
    fig, axes = panels(len(rounded), width=9.2, height=3.4)
    said = []
    for ax, (dtype, numbers) in zip(axes, rounded.items()):
        name = str(dtype).removeprefix("torch.")
        steps = len(np.unique(numbers))
        ax.plot(fine, fine, color=COLOURS["grey"], linewidth=1, linestyle=":")
        ax.plot(fine, numbers, linewidth=1.8)
        ax.set_title(f"{name}: {steps} different numbers")
        ax.set_xlabel("before")
        ax.set_xticks(np.linspace(1, 1.05, 6)[::2])
        ax.set_xlim(fine[0], fine[-1])
        ax.set_ylim(fine[0] - 0.002, fine[-1] + 0.002)
        said.append(f"{name} leaves {steps}")
    axes[0].set_ylabel("after")
    show(fig, alt=f"Line plots of {len(fine)} numbers from {fine[0]:g} to {fine[-1]:g} before and after rounding: "
                  + ", ".join(said) + " different numbers. bfloat16 is a staircase with few wide steps.")
