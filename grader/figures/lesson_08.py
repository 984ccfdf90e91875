"""Figures of lesson 08: the road back, the vanishing gradient, two witnesses, training with a wrong gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from grader.figures import COLOURS, panels, show


def road_back() -> None:
    """Draws the three steps of attention with their gradients running the other way."""
    fig, (ax,) = panels(1, width=8.4, height=2.5)
    ax.set_axis_off()
    ax.set(xlim=(-0.6, 9.6), ylim=(-1.15, 1.15))
    boxes = [(0.3, "Q, K", "T × d_k"), (3.3, "scores S", "T_q × T_k"), (6.2, "weights W", "T_q × T_k"), (9.0, "output O", "T_q × d_v")]
    for x, name, shape in boxes:
        ax.text(x, 0.12, name, ha="center", va="center", fontsize=11, weight="bold")
        ax.text(x, -0.16, shape, ha="center", va="center", fontsize=9, color="#555555")
    steps = [
        ("Q Kᵀ / √d_k", "∂Q = ∂S K / √d_k,  ∂K = ∂Sᵀ Q / √d_k"),
        ("softmax", "∂S = W ⊙ (∂W − row mean)"),
        ("W V", "∂W = ∂O Vᵀ,  ∂V = Wᵀ ∂O"),
    ]
    for (left, *_), (right, *_), (forward, backward), tilt in zip(boxes, boxes[1:], steps, (1, -1, 1), strict=False):
        middle = (left + right) / 2
        _arc(ax, (left + 0.3, 0.38), (right - 0.3, 0.38), COLOURS["blue"], -0.25)
        _arc(ax, (right - 0.3, -0.38), (left + 0.3, -0.38), COLOURS["vermillion"], -0.25)
        ax.text(middle, 0.86, forward, ha="center", color=COLOURS["blue"])
        ax.text(middle, -0.88 if tilt > 0 else -1.1, backward, ha="center", fontsize=9, color=COLOURS["vermillion"])
    ax.text(-0.6, 1.02, "forward", color=COLOURS["blue"], weight="bold")
    ax.text(-0.6, -1.1, "backward", color=COLOURS["vermillion"], weight="bold")
    show(fig, alt="Four stations in a row: Q and K, scores, weights, output. Blue arrows lead forward by the product, "
                  "softmax and the second product; red arrows lead back with the formula of each gradient.")  # fmt: skip


def _arc(ax: Any, start: tuple[float, float], end: tuple[float, float], colour: str, bend: float) -> None:
    from matplotlib.patches import FancyArrowPatch

    style = f"arc3,rad={bend}"
    ax.add_patch(FancyArrowPatch(start, end, connectionstyle=style, arrowstyle="-|>", mutation_scale=12, color=colour, lw=1.6))


def vanishing(softmax_backward: Callable[..., np.ndarray]) -> None:
    """The gradient of the first of two scores against its weight, for the gradient (1, 0)."""
    first = np.linspace(0, 1, 101)
    weights = np.stack([first, 1 - first], axis=-1)
    back = softmax_backward(np.tile([1.0, 0.0], (101, 1)), weights)[:, 0]
    fig, (ax,) = panels(1, width=5.4, height=3.0)
    ax.plot(first, back)
    top = int(np.argmax(back))
    ax.annotate(f"{back[top]:.2f} at weight {first[top]:.2f}", (first[top], back[top]), (0.5, 0.14), ha="center",
                arrowprops={"arrowstyle": "-", "color": COLOURS["grey"]})  # fmt: skip
    ax.set(xlabel="weight of the first key", ylabel="gradient of its score", ylim=(0, 0.28))
    ax.set_title("A sure softmax passes no gradient on")
    show(fig, alt=f"A parabola over the weight from 0 to 1: the gradient is 0 at both ends and {back[top]:.2f} in the middle.")


def witnesses(attention: Callable[..., Any], inputs: tuple, direction: np.ndarray, gradients: tuple) -> None:
    """How far measured gradients are from the formula, over the step; and torch's, as a line."""
    steps = 10.0 ** np.arange(-12, 0.1, 0.5)
    errors = [max(_measured(attention, inputs, direction, gradients, step)) for step in steps]
    by_torch = max(np.abs(a - b).max() for a, b in zip(gradients, _autograd(inputs, direction), strict=True))
    fig, (ax,) = panels(1, width=6.0, height=3.3)
    ax.loglog(steps, errors, marker="o", markersize=4, label="finite differences")
    ax.axhline(max(by_torch, 1e-17), color=COLOURS["vermillion"], linestyle="--", label="torch, float64")
    best = int(np.argmin(errors))
    ax.set(xlabel="step", ylabel="largest difference from our formula")
    ax.set_title(f"Measured at best to {errors[best]:.0e}, torch to {by_torch:.0e}")
    ax.legend(frameon=False)
    show(fig, alt=f"A V-shaped curve on log axes: the error of finite differences falls to {errors[best]:.0e} at a step of "
                  f"{steps[best]:.0e} and rises on both sides; torch's line lies at {by_torch:.0e}.")  # fmt: skip


def _measured(attention: Callable[..., Any], inputs: tuple, direction: np.ndarray, gradients: tuple, step: float) -> list[float]:
    """The largest error of central differences for each input, over its first dozen numbers."""
    errors = []
    for which, gradient in enumerate(gradients):
        for at in list(np.ndindex(gradient.shape))[:12]:
            loss = []
            for sign in (1, -1):
                moved = [array.copy() for array in inputs]
                moved[which][at] += sign * step
                loss.append((attention(*moved)[0] * direction).sum())
            errors.append(abs((loss[0] - loss[1]) / (2 * step) - gradient[at]))
    return errors


def _autograd(inputs: tuple, direction: np.ndarray) -> list[np.ndarray]:
    import torch

    tensors = [torch.tensor(array, requires_grad=True) for array in inputs]
    q, k, v = tensors
    output = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v
    output.backward(torch.from_numpy(direction))
    return [tensor.grad.numpy() for tensor in tensors]


def training(softmax: Callable[..., np.ndarray], rules: Mapping[str, Callable[..., np.ndarray]], steps: int = 400) -> None:
    """Gradient descent on the scores of three queries towards given outputs, once with each rule."""
    rng = np.random.default_rng(3)
    values, start = rng.normal(size=(5, 2)), rng.normal(size=(3, 5))
    target = softmax(rng.normal(size=(3, 5)) * 2) @ values
    fig, (ax,) = panels(1, width=6.0, height=3.2)
    ends = []
    for name, rule in rules.items():
        scores, losses = start.copy(), []
        for _ in range(steps):
            weights = softmax(scores)
            error = weights @ values - target
            losses.append((error**2).mean())
            scores = scores - 0.5 * rule(2 * error @ values.T, weights)
        ends.append(f"{name}: {losses[-1]:.1e}")
        ax.semilogy(losses, label=name)
    ax.set(xlabel="step", ylabel="mean squared error")
    ax.set_title("A falling loss does not prove the gradient")
    ax.legend(frameon=False)
    show(fig, alt=f"Two loss curves over {steps} steps on a log axis; at the end " + ", ".join(ends) + ".")
