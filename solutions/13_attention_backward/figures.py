"""Figures of lesson 13: the backward pass, the error of a difference, what softmax passes on, descent with a wrong gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from grader.figures import COLOURS, matrix, panels, show

_STATIONS = (
    (0.4, "Q, K", "T_q × d_k, T_k × d_k"),
    (3.6, "scores S", "T_q × T_k"),
    (6.6, "weights W", "T_q × T_k"),
    (9.6, "output O", "T_q × d_v"),
)
_FORWARD = ("S = Q Kᵀ / √d_k", "softmax", "O = W V")
_BACK = (
    ("∂Q = ∂S K / √d_k", "∂K = ∂Sᵀ Q / √d_k"),
    ("∂S = W ⊙ (∂W − weighted", "mean of each row)"),
    ("∂W = ∂O Vᵀ", "∂V = Wᵀ ∂O"),
)
_ASKED = (("∂Q = ?", "∂K = ?"), ("∂S = ?",), ("∂W = ?", "∂V = ?"))


def road_back(solved: bool) -> None:
    """The three steps of attention and their gradients, which run the other way; solved: with the formulas that were derived."""
    fig, (ax,) = panels(1, width=8.8, height=3.0)
    ax.set_axis_off()
    ax.set(xlim=(-0.9, 10.7), ylim=(-1.45, 1.25))
    for x, name, shape in _STATIONS:
        ax.text(x, 0.12, name, ha="center", va="center", fontsize=11, weight="bold")
        ax.text(x, -0.16, shape, ha="center", va="center", fontsize=9, color="#555555")
    for at, (forward, backward) in enumerate(zip(_FORWARD, _BACK if solved else _ASKED, strict=True)):
        left, right = _STATIONS[at][0], _STATIONS[at + 1][0]
        _arc(ax, (left + 0.3, 0.36), (right - 0.3, 0.36), COLOURS["blue"])
        _arc(ax, (right - 0.3, -0.36), (left + 0.3, -0.36), COLOURS["vermillion"])
        ax.text((left + right) / 2, 0.86, forward, ha="center", color=COLOURS["blue"])
        ax.text(
            (left + right) / 2,
            -0.92,
            "\n".join(backward),
            ha="center",
            va="top",
            color=COLOURS["vermillion"],
            linespacing=1.4,
        )
    ax.text(-0.9, 1.1, "forward", color=COLOURS["blue"], weight="bold")
    ax.text(-0.9, -1.4, "backward", color=COLOURS["vermillion"], weight="bold")
    said = "; ".join(", ".join(lines) if at != 1 else " ".join(lines) for at, lines in enumerate(_BACK))
    end = f", with the formulas {said}." if solved else ", each with a question mark."
    show(
        fig,
        alt="Four stations in a row: Q and K, scores, weights, output. Blue arrows lead forward by the product Q Kᵀ over √d_k, "
        f"softmax and the product W V; red arrows lead back{end}",
    )


def _arc(ax: Any, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    from matplotlib.patches import FancyArrowPatch

    ax.add_patch(
        FancyArrowPatch(
            start, end, connectionstyle="arc3,rad=-0.25", arrowstyle="-|>", mutation_scale=12, color=colour, lw=1.6
        )
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
    fig, axes = panels(3, width=9.4, height=2.7)
    asks, answers = ("it", "was"), ("animal", "street", "tired")
    shown = (
        (weights, "Weights W", "weights"),
        (grad_weights, "∂W, if each weight\ncould change alone", "difference"),
        (grad_scores, "∂S: each row sums to 0", "difference"),
    )
    for ax, (values, title, kind) in zip(axes, shown, strict=True):
        ylabel = "query" if ax is axes[0] else ""
        matrix(values, title, kind=kind, ax=ax, rows=asks, columns=answers, xlabel="key", ylabel=ylabel, fmt=".3g")
    said = "; ".join(
        f"{ask}: {', '.join(f'{value:g}' for value in row)}" for ask, row in zip(asks, grad_scores, strict=True)
    )
    show(
        fig,
        alt="Three matrices of the queries it and was over the keys animal, street and tired: weights, gradients of the weights, "
        f"gradients of the scores. The last are {said}.",
    )


def passed_on(first: np.ndarray, gradient: np.ndarray) -> None:
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
    ax.set_title("Near 0 and 1, softmax passes no gradient")
    show(
        fig,
        alt=f"A parabola over the weight from 0 to 1: the gradient is 0 at both ends and {gradient[top]:.2f} in the middle.",
    )


def descents(right: np.ndarray, wrong: np.ndarray, own: np.ndarray, mean: np.ndarray) -> None:
    """Squared errors during descent, and why one row goes astray.

    right, wrong: (steps, rows), with the right gradient and with the wrong one. own, mean: (steps,), under the wrong rule the
    gradient of the key of row 2 that ends with all the weight, and the weighted mean of its row.
    """
    fig, (left, rows, key) = panels(3, width=10.4, height=3.7)
    left.semilogy(right.mean(axis=1), label="your formula")
    left.semilogy(wrong.mean(axis=1), linestyle="--", color=COLOURS["vermillion"], label="without the row's mean")
    left.set(xlabel="step", ylabel="mean squared error", ylim=(1e-6, 1), title="All three rows together")
    for row, style in enumerate(("-", "-.", "--")):
        rows.semilogy(
            wrong[:, row], linestyle=style, color=COLOURS[("sky", "green", "vermillion")[row]], label=f"row {row}"
        )
    rows.set(xlabel="step", ylim=(1e-6, 1), title="Without the mean, row by row")
    shown = 100  # the two curves are one from there on
    key.axhline(0, color=COLOURS["grey"], linewidth=1)
    key.plot(own[:shown], color=COLOURS["blue"], label="gradient g of this key")
    key.plot(mean[:shown], linestyle="--", color=COLOURS["orange"], label="weighted mean p · g")
    key.fill_between(
        range(shown),
        own[:shown],
        mean[:shown],
        where=own[:shown] > mean[:shown],
        color=COLOURS["orange"],
        alpha=0.25,
        linewidth=0,
    )
    key.set(xlabel="step", ylabel="gradient of a weight", title="Row 2: below 0, above the mean")
    for ax in (left, rows):
        ax.legend(frameon=False, loc="center right")
    key.legend(frameon=False, loc="lower center")
    ends = ", ".join(f"{value:.1e}" for value in wrong[-1])
    lowest, last = wrong.mean(axis=1).min(), wrong[-1].mean()
    show(
        fig,
        alt=f"Left: over {len(right)} steps the error falls to {right[-1].mean():.0e} with the right gradient; without the mean it "
        f"falls to {lowest:.3f} and rises to {last:.3f}. Middle: the three rows without the mean, in the end {ends}. Right: the "
        f"gradient of one key of row 2 is below 0 at every step, and above the row's weighted mean from step "
        f"{int(np.argmax(own > mean))} on.",
    )
