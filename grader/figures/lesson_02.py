"""Figures of lesson 02: where exp breaks, what an axis does, temperature, logarithms, the derivative."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grader.figures import COLOURS, Picture, follow, matrix, panels, picture, show

Array = np.ndarray
SENTENCE = "Awareness is power in a world where knowledge is everywhere".split()


def what_softmax_does() -> None:
    """Scores, their exponentials, and the weights: three bar charts of one row."""
    scores = np.array([2.0, 1.0, 0.0, -1.0])
    grown = np.exp(scores)
    steps = (("scores: any size, any sign", scores), ("exp: all positive", grown), ("divided by their sum: weights", grown / grown.sum()))
    fig, axes = panels(3, width=8.8, height=2.7)
    for ax, (title, values), colour in zip(axes, steps, ("blue", "orange", "green"), strict=True):
        ax.bar(range(4), values, color=COLOURS[colour])
        ax.axhline(0, color=COLOURS["grey"], linewidth=0.8)
        ax.set_title(title)
        ax.set_xlabel("key position")
        ax.set_xticks(range(4))
        ax.margins(y=0.18)
        for at, value in enumerate(values):
            written, lift = f"{value:.2f}".replace("-", "−"), 3 if value >= 0 else -11
            ax.annotate(written, (at, value), (0, lift), textcoords="offset points", ha="center", fontsize=9)
    show(fig, alt="Three bar charts of four numbers: scores 2, 1, 0, -1; their exponentials 7.39, 2.72, 1, 0.37; and the weights "
                  "0.64, 0.24, 0.09, 0.03, which sum to 1.")  # fmt: skip


def axes_compared(softmax: Callable[..., Array], scores: Array) -> None:
    """The same scores normalised along rows, along columns, and all at once."""
    whole = np.exp(scores) / np.exp(scores).sum()
    ways = (
        ("axis=1: rows sum to 1", softmax(scores, 1)),
        ("axis=0: columns sum to 1", softmax(scores, 0)),
        ("no axis: everything sums to 1", whole),
    )
    fig, axes = panels(3, width=8.8, height=3.5)
    for ax, (title, weights) in zip(axes, ways, strict=True):
        matrix(weights, title, ax=ax)
    sums = ", ".join(f"{value:.3f}" for value in whole.sum(axis=1))
    show(fig, alt="Three heat maps of one 3 by 3 table: normalized along rows, along columns, and as a whole; "
         f"then its rows sum to {sums}.")


def temperatures(softmax_with_temperature: Callable[..., Array]) -> None:
    """Weights of one row of scores at four temperatures."""
    scores = np.array([2.0, 1.5, 0.5, 0.0, -1.0])
    fig, axes = panels(4, width=8.8, height=2.9)
    tops = []
    for ax, temperature in zip(axes, (0.1, 0.5, 1.0, 5.0), strict=True):
        _row_at(ax, softmax_with_temperature(scores, temperature), temperature)
        tops.append(f"{temperature:g}: {softmax_with_temperature(scores, temperature).max():.2f}")
    axes[0].set_ylabel("weight")
    written = ", ".join(f"{score:g}" for score in scores).replace("-", "−")
    fig.suptitle(f"Scores ({written}): cold decides for one key, hot shares among all", fontsize=12)
    show(fig, alt="Bars of five weights at four temperatures; the largest weight at each: " + ", ".join(tops) + ".")


def _row_at(ax, weights: Array, temperature: float) -> None:
    ax.bar(range(len(weights)), weights, color=COLOURS["blue"])
    ax.set(ylim=(0, 1.05), xlabel="key position")
    ax.set_xticks(range(len(weights)))
    ax.set_title(f"temperature {temperature:.3g}", fontsize=10.5)


def temperature_slider(softmax_with_temperature: Callable[..., Array]) -> None:
    """The same row at any temperature, where widgets run; elsewhere one static picture."""
    scores = np.array([2.0, 1.5, 0.5, 0.0, -1.0])

    def draw(temperature: float) -> Picture:
        weights = softmax_with_temperature(scores, temperature)
        fig, (ax,) = panels(1, width=4.2, height=2.6)
        _row_at(ax, weights, temperature)
        ax.set_ylabel("weight")
        return picture(fig, alt=f"Five weights at temperature {temperature:.3g}, the largest {weights.max():.2f}.")

    try:
        from ipywidgets import FloatLogSlider
    except ImportError:
        print(draw(1.0))
        return
    whole_label = {"description_width": "initial"}
    follow(draw, FloatLogSlider(1.0, min=-2, max=2, step=0.05, description="temperature", style=whole_label))


def word_lengths(softmax: Callable[..., Array]) -> None:
    """Weights made of something simple, the length of each word."""
    lengths = np.array([len(word) for word in SENTENCE], dtype=float)
    weights = softmax(lengths)
    fig, (ax,) = panels(1, width=7.6, height=2.8)
    ax.bar(range(len(SENTENCE)), weights, color=COLOURS["blue"])
    ax.set_xticks(range(len(SENTENCE)), SENTENCE, rotation=30, ha="right")
    ax.set_ylabel("weight")
    ax.set_title("Softmax of the word lengths: the longest words take nearly all")
    top = [SENTENCE[at] for at in np.argsort(-weights)[:3]]
    show(fig, alt=f"Bars over the ten words of the sentence; {', '.join(top)} have the largest weights, {weights.max():.2f} at most.")


def logarithms(softmax: Callable[..., Array], log_softmax: Callable[..., Array]) -> None:
    """ln softmax of (0, −a) for growing a, in one step and in two."""
    gaps = np.linspace(0, 1000, 201)
    pairs = np.stack([np.zeros_like(gaps), -gaps], axis=-1)
    with np.errstate(divide="ignore"):
        late = np.log(softmax(pairs))[:, 1]
    direct = log_softmax(pairs)[:, 1]
    last = gaps[np.isfinite(late)].max()
    fig, (ax,) = panels(1, width=5.8, height=3.0)
    ax.plot(gaps, direct, label="log_softmax")
    ax.plot(gaps, np.where(np.isfinite(late), late, np.nan), "--", color=COLOURS["vermillion"], label="np.log(softmax(x))")
    ax.axvline(last, color=COLOURS["grey"], linestyle=":")
    ax.text(last + 10, -150, f"−∞ beyond {last:g}", color=COLOURS["vermillion"])
    ax.set(xlabel="difference of the two scores", ylabel="logarithm of the smaller weight")
    ax.set_title("Taken too late, the logarithm falls off a cliff")
    ax.legend(frameon=False, loc="lower left")
    show(fig, alt=f"Two lines falling together; the logarithm of softmax ends at a difference of {last:g}, log_softmax goes on to -1000.")


def jacobians(softmax: Callable[..., Array], softmax_jacobian: Callable[..., Array]) -> None:
    """The Jacobian at undecided, leaning and decided weights."""
    fig, axes = panels(3, width=8.8, height=3.5)
    largest = []
    for ax, (title, scale) in zip(axes, (("undecided", 0.0), ("leaning", 1.5), ("decided", 12.0)), strict=True):
        p = softmax(np.array([1.0, 0.5, 0.0]) * scale)
        jacobian = softmax_jacobian(p)
        largest.append(f"{np.abs(jacobian).max():.2f}")
        weights = ", ".join(f"{value:.2f}" for value in p)
        matrix(jacobian, f"{title}: p = ({weights})", kind="difference", limits=(-0.25, 0.25), ax=ax, xlabel="score", ylabel="weight")
    show(fig, alt="Three Jacobians, positive on the diagonal, negative elsewhere. The largest entries are " + ", ".join(largest) + ".")
