"""Figures of lesson 13: the backward pass, the error of a difference, what softmax passes on, descent, strings that are reversed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grader.figures import COLOURS, matrix, panels, show

_Q, _K, _S, _W, _O, _V = (0.9, 3.5), (0.9, 1.3), (4.7, 2.4), (8.1, 2.4), (11.4, 2.4), (9.6, 0.0)
_BOXES = (
    (_Q, "queries Q", "T_q × d_k"),
    (_K, "keys K", "T_k × d_k"),
    (_S, "scores S", "T_q × T_k"),
    (_W, "weights W", "T_q × T_k"),
    (_O, "output O", "T_q × d_v"),
    (_V, "values V", "T_k × d_v"),
)
# the place of each gradient, and its formula
_GRADIENTS = (
    ("dQ", (3.3, 3.66), "dS K / √d_k"),
    ("dK", (3.3, 1.14), "dSᵀ Q / √d_k"),
    ("dS", (6.4, 1.62), "W ⊙ (dW − each\nrow's weighted mean)"),
    ("dW", (9.75, 1.98), "dO Vᵀ"),
    ("dV", (11.68, 1.15), "Wᵀ dO"),
)


def road_back(solved: bool) -> None:
    """The three steps of attention and their gradients, which run the other way; solved: with the formulas that were derived."""
    fig, (ax,) = panels(1, width=8.7, height=3.9)
    ax.set_axis_off()
    ax.set(xlim=(-0.1, 13.6), ylim=(-0.6, 4.1))
    forward, back = COLOURS["blue"], COLOURS["vermillion"]
    for (x, y), name, shape in _BOXES:
        _box(ax, x, y)
        ax.text(x, y + 0.16, name, ha="center", va="center", fontsize=11, weight="bold")
        ax.text(x, y - 0.22, shape, ha="center", va="center", fontsize=10.5, color="#555555")
    for start, end in ((_S, _W), (_W, _O)):
        _arrow(ax, (start[0] + 0.95, start[1] + 0.17), (end[0] - 0.95, end[1] + 0.17), forward)
        _arrow(ax, (end[0] - 0.95, end[1] - 0.17), (start[0] + 0.95, start[1] - 0.17), back)
    _arrow(ax, (1.85, 3.36), (3.75, 2.72), forward)
    _arrow(ax, (3.75, 2.98), (1.85, 3.62), back)
    _arrow(ax, (1.85, 1.44), (3.75, 2.08), forward)
    _arrow(ax, (3.75, 1.82), (1.85, 1.18), back)
    _arrow(ax, (10.05, 0.5), (10.95, 1.87), forward)
    _arrow(ax, (11.3, 1.87), (10.4, 0.5), back)
    _arrow(ax, (13.45, 2.23), (12.35, 2.23), back)
    for x, y, step in ((6.4, 2.83, "softmax"), (9.75, 2.83, "O = W V"), (2.2, 2.4, "S = Q Kᵀ / √d_k")):
        ax.text(x, y, step, ha="center", va="center", color=forward)
    for name, (x, y), formula in _GRADIENTS:
        said = f"{name} = {formula if solved else '?'}"
        y += 0.36 if name == "dS" and not solved else 0  # one line instead of two
        ax.text(x, y, said, ha="center", va="center", color=back, linespacing=1.35, fontsize=10 if solved else 12)
    ax.text(12.95, 1.93, "dO: given", ha="center", va="center", color=back)
    ax.text(-0.05, -0.35, "forward", color=forward, weight="bold")
    ax.text(1.35, -0.35, "backward", color=back, weight="bold")
    ax.set_title("Every step forward has a step back" if solved else "Given dO: which gradients follow?")
    end = "; ".join(f"{name} = {' '.join(formula.split())}" for name, _, formula in _GRADIENTS)
    show(
        fig,
        alt="Boxes: queries and keys lead to scores, scores to weights, weights together with values to the output. Blue arrows run "
        "forward by S = Q Kᵀ / √d_k, softmax and O = W V. Orange arrows run back along each of them, "
        + (
            f"with the formulas {end}."
            if solved
            else "each with a gradient that is still a question mark; dO is given."
        ),
    )


def _box(ax: Any, x: float, y: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    look = {"boxstyle": "round,pad=0.02,rounding_size=0.12", "facecolor": "#F4F6F8", "edgecolor": "#9A9A9A"}
    ax.add_patch(FancyBboxPatch((x - 0.85, y - 0.45), 1.7, 0.9, **look))


def _arrow(ax: Any, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    ax.annotate(
        "", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
    )


def step_errors(steps: np.ndarray, central: np.ndarray, one_sided: np.ndarray) -> None:
    """How far measured slopes are from the derivative, over the step, on log axes."""
    fig, (ax,) = panels(1, width=6.4, height=3.5)
    ax.loglog(steps, central, marker="o", markersize=4, label="central difference")
    ax.loglog(steps, one_sided, marker="s", markersize=4, linestyle="--", label="one-sided difference")
    best = int(np.argmin(central))
    ax.annotate(
        f"{central[best]:.0e} at h = {steps[best]:.0e}",
        (steps[best], central[best]),
        (1e-6, 1e-12),
        ha="right",
        va="center",
        arrowprops={"arrowstyle": "-", "color": COLOURS["grey"]},
    )
    ax.set(xlabel="step h", ylabel="error of the slope", ylim=(1e-13, 1))
    ax.set_title("Large steps: curvature. Small steps: rounding")
    ax.legend(frameon=False, loc="upper center", ncols=2)
    show(
        fig,
        alt=f"Two V-shaped curves on log axes. The error of the central difference is smallest, {central[best]:.0e}, at a step of "
        f"{steps[best]:.0e}; that of the one-sided one is never below {one_sided.min():.0e}.",
    )


def pairs(weights: np.ndarray, grad_weights: np.ndarray, grad_scores: np.ndarray) -> None:
    """Weights of two queries over three keys, and the gradients of the weights and of the scores."""
    fig, axes = panels(3, width=9.4, height=3.0)
    asks, answers = ("it", "was"), ("animal", "street", "tired")
    shown = (
        (weights, "Weights W", "weights"),
        (grad_weights, "dW, if each weight\ncould change alone", "difference"),
        (grad_scores, "dS: each row sums to 0", "difference"),
    )
    for ax, (values, title, kind) in zip(axes, shown, strict=True):
        ylabel = "query" if ax is axes[0] else ""
        matrix(values, title, kind=kind, ax=ax, rows=asks, columns=answers, xlabel="key", ylabel=ylabel, fmt=".3g")
    fig.supxlabel("Each panel has a color scale of its own. dW and dS: blue is negative, orange positive.", fontsize=9)
    said = "; ".join(
        f"{ask}: {', '.join(f'{value:g}' for value in row)}" for ask, row in zip(asks, grad_scores, strict=True)
    )
    show(
        fig,
        alt="Three matrices of the queries it and was over the keys animal, street and tired: weights, gradients of the weights, "
        f"gradients of the scores. The last are {said}.",
    )


def gradient_by_weight(first: np.ndarray, gradient: np.ndarray) -> None:
    """The gradient of the first of two scores against its weight."""
    fig, (ax,) = panels(1, width=5.6, height=3.1)
    ax.plot(first, gradient)
    top = int(np.argmax(gradient))
    ax.annotate(
        f"{gradient[top]:.2f} at weight {first[top]:.2f}",
        (first[top], gradient[top]),
        (0.5, 0.13),
        ha="center",
        arrowprops={"arrowstyle": "-", "color": COLOURS["grey"]},
    )
    ax.set(xlabel="weight w of the first key", ylabel="gradient of its score, w (1 − w)", ylim=(0, 0.28))
    ax.set_title("Near 0 and 1, softmax passes hardly any gradient")
    show(
        fig,
        alt=f"A parabola over the weight from 0 to 1: the gradient is 0 at both ends and {gradient[top]:.2f} in the middle.",
    )


def path(weights: np.ndarray) -> None:
    """The weights (steps, 3) of the query 'it' while queries descend."""
    fig, (ax,) = panels(1, width=6.4, height=3.3)
    steps, answers = range(len(weights)), ("animal", "street", "tired")
    for name, row, style, lift in zip(answers, weights.T, ("-", "--", ":"), (-0.05, -0.045, 0.045), strict=True):
        (line,) = ax.plot(steps, row, style)
        colour = (
            "#8A5A00" if line.get_color() == COLOURS["orange"] else line.get_color()
        )  # orange is too pale for letters
        ax.text(steps[-1], row[-1] + lift, name, color=colour, ha="right", va="center", fontsize=10)
    ax.set(xlabel="step", ylabel="weight given by 'it'", ylim=(-0.08, 1.02))
    ax.set_title("Step by step, 'it' turns to the animal")
    said = ", ".join(f"{name} from {row[0]:.2f} to {row[-1]:.2f}" for name, row in zip(answers, weights.T, strict=True))
    show(fig, alt=f"The weights of the query 'it' against the steps of descent: {said}. The curves flatten.")


def backwards(word: str, stages: Mapping[int, tuple[np.ndarray, np.ndarray]]) -> dict[int, str]:
    """What attention makes of a word, as it learns to reverse strings. stages: after so many of them the output (T, 26) and the weights
    (T, T). Returns: what it has then written."""
    fig, axes = panels(len(stages), width=9.8, height=3.2)
    written, said = {}, []
    for ax, (count, (output, weights)) in zip(axes, stages.items(), strict=True):
        written[count] = "".join(chr(ord("A") + letter) for letter in output.argmax(axis=-1))
        title = f"after {count} strings" if count else "before it learns"
        names = {"rows": list(written[count]), "columns": list(word), "xlabel": "looks at", "ylabel": "writes"}
        matrix(weights, f"{title}:\n{written[count]}", ax=ax, **names)
        if ax is not axes[-1]:  # one bar of colors for all four
            ax.images[0].colorbar.remove()
        said.append(f"{title} it writes {written[count]}, with {np.fliplr(weights).diagonal().min():.2f} or more there")
    fig.suptitle(f"From random letters it learns where to look, and writes {written[max(stages)]}", fontsize=12)
    alt = f"Weights of nine places over the letters {word}. What grows is the diagonal from the lower left to the upper right"
    show(fig, alt=f"{alt}: {'; '.join(said)}.")
    return written


def descent_ends(right: np.ndarray, wrong: np.ndarray) -> None:
    """The loss at the end of descent from each start, with the right gradient and with a wrong one."""
    fig, (ax,) = panels(1, width=5.6, height=4.3)
    low, high = 1e-20, 2.0
    ahead = wrong < right
    ax.fill_between([low, high], [low, high], low, color="#E8E8E8", linewidth=0)
    ax.plot([low, high], [low, high], color=COLOURS["grey"], linewidth=1)
    for which, colour, marker, label in (
        (~ahead, COLOURS["blue"], "o", "right gradient ends lower"),
        (ahead, COLOURS["vermillion"], "^", "wrong gradient ends lower"),
    ):
        said = f"{label} ({int(which.sum())})"
        ax.loglog(right[which], wrong[which], linestyle="", marker=marker, markersize=6, color=colour, label=said)
    ax.set(xlim=(low, high), ylim=(low, high), xlabel="last loss with the right gradient")
    ax.set_ylabel("last loss without the row's mean")
    ax.set_title(f"The wrong gradient ends lower from {int(ahead.sum())} of {len(right)} starts")
    ax.legend(frameon=False, loc="lower right")
    show(
        fig,
        alt=f"{len(right)} points on logarithmic axes: the last loss with the right gradient, and without the row's mean. "
        f"{int(ahead.sum())} lie below the diagonal, where the wrong gradient ends lower.",
    )
