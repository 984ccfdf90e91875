"""Figures of lesson 08: a bag of tokens, sines over positions, hands and arrows that turn, slopes, what lies beyond the trained length."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.figures import COLOURS, matrix, panels, show


def _numpy(tensor: Any) -> np.ndarray:
    return tensor.detach().double().numpy()


def two_orders(orders: Sequence[Sequence[str]], weights: Sequence[Any]) -> None:
    """Attention weights of one sentence in two orders; rows in the order of the sentence, columns in the first one's."""
    fig, axes = panels(2, width=7.4, height=3.7)
    fig.suptitle("In either order, the weight from one word to another is the same", fontsize=11.5)
    first, second = orders
    for ax, words, one in zip(axes, orders, weights, strict=True):
        sorted_keys = _numpy(one)[:, [words.index(word) for word in first]]
        matrix(
            sorted_keys,
            " ".join(words),
            rows=words,
            columns=first,
            ax=ax,
            xlabel="key (same order in both)",
            ylabel="query",
        )
    back = [second.index(word) for word in first]
    apart = np.abs(_numpy(weights[0]) - _numpy(weights[1])[np.ix_(back, back)]).max()
    show(
        fig,
        alt=f"Two 3 by 3 heat maps of weights, {' '.join(first)} and {' '.join(second)}. Each pair of words has the same weight in "
        f"both; the largest difference is {apart:.0e}.",
    )


def sinusoids(table: Any, published: Any, products: Any) -> None:
    """The sines of two tables of positions, the right one and the published one, and the dot products of the right one's encodings over
    their distance."""
    table, published, products = _numpy(table), _numpy(published), _numpy(products)
    fig, (sines, doubled, right) = panels(3, width=8.6, height=3.8, ratios=(1, 1.22, 1.25))
    for ax, columns, title in (
        (sines, table[:, ::2], "Your sines"),
        (doubled, published[:, ::2], "The published code's"),
    ):
        matrix(
            columns,
            title,
            kind="scores",
            limits=(-1, 1),
            ax=ax,
            xlabel="pair",
            ylabel="position" if ax is sines else "",
        )
        ax.set_aspect("auto")
    sines.images[0].colorbar.remove()  # both have the same range
    apart = 0.0
    for position, colour, style in ((0, "blue", "-"), (15, "orange", "--"), (30, "green", ":")):
        line = products[position, position:]
        apart = max(apart, float(np.abs(line - products[0, : len(line)]).max()))
        right.plot(line, style, color=COLOURS[colour], label=f"from position {position}")
    right.set(xlabel="distance", ylabel="dot product", title="The same curve from every start")
    right.legend(frameon=False)
    show(
        fig,
        alt="Two heat maps of sines: fast stripes in the first pairs and none in the last; in the published code the stripes end "
        "after half as many pairs. Right: dot products with encodings further on, from positions 0, 15, 30; equal within "
        f"{apart:.0e}.",
    )


def _arc(ax: Any, start: float, end: float, radius: float, colour: str, filled: bool = False) -> None:
    """A part of a circle around the origin, from one angle to another, in radians; filled: as a wedge."""
    angles = np.linspace(start, end, 60)
    x, y = radius * np.cos(angles), radius * np.sin(angles)
    if filled:
        ax.fill(np.append(x, 0), np.append(y, 0), color=colour, alpha=0.28, linewidth=0)
    ax.plot(x, y, color=colour, linewidth=1.6)


def _arrow(ax: Any, angle: float, length: float, colour: str, name: str = "", pale: bool = False) -> None:
    """An arrow from the origin; pale: where it was before a turn."""
    end = (length * math.cos(angle), length * math.sin(angle))
    look = {
        "color": colour,
        "linewidth": 1.3 if pale else 2.6,
        "alpha": 0.45 if pale else 1,
        "shrinkA": 0,
        "shrinkB": 0,
    }
    ax.annotate("", end, (0, 0), arrowprops={"arrowstyle": "-|>,head_width=0.25,head_length=0.5", **look})
    out = 1 + 0.13 / length
    ax.text(out * end[0], out * end[1], name, color=colour, ha="center", va="center", fontweight="bold", fontsize=12)


def _around(ax: Any, title: str, reach: float = 1.3) -> None:
    """Axes of equal scale around the origin, with the unit circle and without numbers."""
    circle = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.cos(circle), np.sin(circle), color="#D0D0D0", linewidth=1)
    ax.axhline(0, color="#E6E6E6", linewidth=1)
    ax.axvline(0, color="#E6E6E6", linewidth=1)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[], title=title)
    ax.set_aspect("equal")
    ax.grid(False)
    ax.spines[:].set_visible(False)


def hands(starts: Sequence[int], step: int, frequencies: Sequence[float]) -> None:
    """The hands of some positions and where they are `step` positions later: one column for each pair, one row for each start."""
    fig, axes = panels(len(starts) * len(frequencies), width=7.6, height=5.1, columns=len(frequencies))
    fig.suptitle(f"{step} positions later, each hand has turned by its own angle, wherever it started", fontsize=11.5)
    for row, start in enumerate(starts):
        for pair, omega in enumerate(frequencies):
            ax = axes[row * len(frequencies) + pair]
            _around(ax, f"pair {pair}: {omega:.2f} rad a position" if row == 0 else "")
            before, after = start * omega, (start + step) * omega
            _arc(ax, before, after, 0.55, COLOURS["orange"], filled=True)
            _arrow(ax, before, 1, COLOURS["sky"], str(start))
            _arrow(ax, after, 1, COLOURS["blue"], str(start + step))
            if pair == 0:
                ax.set_ylabel(f"position {start} to {start + step}")
    said = ", ".join(f"{step * omega:.2g} rad in pair {pair}" for pair, omega in enumerate(frequencies))
    show(
        fig,
        alt=f"Circles with a hand before and after a step of {step} positions, from positions {' and '.join(map(str, starts))}. "
        f"From either start the hand turns by the same angle: {said}.",
    )


def rotation(places: Sequence[tuple[int, int]], omega: float) -> None:
    """A pair of a query and of a key as arrows, turned by their positions. places: (of the query, of the key) for each panel."""
    alpha, beta, r, t = math.radians(75), math.radians(35), 1.0, 0.85
    fig, axes = panels(len(places), width=8.6, height=2.75)
    fig.suptitle("Turned by their positions: the angle between q and k depends on the offset alone", fontsize=11.5)
    said = []
    for ax, (p, s) in zip(axes, places, strict=True):
        _around(ax, f"query at position {p}, key at {s}")
        q, k = alpha + p * omega, beta + s * omega
        if p or s:
            _arrow(ax, alpha, r, COLOURS["vermillion"], pale=True)
            _arrow(ax, beta, t, COLOURS["blue"], pale=True)
        _arc(ax, k, q, 0.42, COLOURS["orange"], filled=True)
        _arrow(ax, q, r, COLOURS["vermillion"], "q")
        _arrow(ax, k, t, COLOURS["blue"], "k")
        between, middle = math.degrees(q - k), (q + k) / 2
        ax.text(
            0.68 * math.cos(middle), 0.68 * math.sin(middle), f"{between:.0f}°", ha="center", va="center", fontsize=11
        )
        ax.set_ylim(-0.35, 1.3)
        score = r * t * math.cos(q - k)
        ax.set_xlabel(f"q · k = {score:.2f}".replace("-", "−"), fontsize=11)
        said.append(f"query at {p}, key at {s}: {between:.0f}° between them, q · k = {score:.2f}")
    show(fig, alt=f"A query and a key as arrows, turned by {math.degrees(omega):.0f}° a position. {'; '.join(said)}.")


def relative(maps: Sequence[Any]) -> None:
    """Three maps over pairs of positions: sinusoidal encodings, a query and a key turned by RoPE near the start, and far from it."""
    from matplotlib.patches import Rectangle

    fig, axes = panels(3, width=8.8, height=4.2)
    fig.suptitle("One number on each diagonal: only the offset counts, and with RoPE also its sign", fontsize=11.5)
    titles = ("Sinusoidal, positions 0–7", "RoPE, positions 0–7", "RoPE, positions 100–107")
    framed = {1: ("-", "query one place after the key (offset +1)"), -1: (":", "query one place before it (offset −1)")}
    seen = [_numpy(one) for one in maps]
    for ax, values, title, start in zip(axes, seen, titles, (0, 0, 100), strict=True):
        names = [str(start + p) for p in range(len(values))]
        reach = float(np.abs(values).max())
        ylabel = "query position" if ax is axes[0] else ""
        matrix(
            values,
            title,
            kind="scores",
            limits=(-reach, reach),
            ax=ax,
            rows=names,
            columns=names,
            fmt=".1f",
            ylabel=ylabel,
        )
        for number in ax.texts:
            number.set_text(number.get_text().replace("−", "–"))  # a minus is too wide for the frames
        marks = []
        for offset, (style, name) in framed.items():
            look = {"fill": False, "edgecolor": COLOURS["black"], "linewidth": 1.5, "linestyle": style, "zorder": 7}
            for p in range(max(0, offset), len(values) + min(0, offset)):
                ax.add_patch(Rectangle((p - offset - 0.48, p - 0.48), 0.96, 0.96, **look))
            marks.append(Rectangle((0, 0), 1, 1, label=name, **look))
    fig.legend(handles=marks, loc="outside lower center", ncols=2, frameon=False)
    show(
        fig,
        alt="Three heat maps of 8 by 8 positions. In each, every diagonal holds one number. The first is symmetric; those of RoPE "
        f"are not ({seen[1][1, 0]:.1f} for a query one place after the key, {seen[1][0, 1]:.1f} one place before it), and agree "
        f"with each other within {np.abs(seen[1] - seen[2]).max():.0e}.",
    )


def slopes(bias: Any, weights: Any) -> None:
    """The bias of one query in each head over the distance, and the weights that equal scores get from it: both (heads, distances)."""
    bias, weights = _numpy(bias), _numpy(weights)
    fig, (left, right) = panels(2, width=8.4, height=3.5)
    for h, style in enumerate(("-", "--", "-.", ":")):
        left.plot(bias[h], style, label=f"head {h}: slope {-bias[h, 1]:.4f}")
        right.plot(weights[h], style)
    left.set(xlabel="distance to the key", ylabel="bias", title="Four heads, four slopes")
    right.set(xlabel="distance to the key", ylabel="weight", ylim=(0, None), title="Weights if all scores were equal")
    left.legend(frameon=False)
    near = ", ".join(f"{value:.2f}" for value in weights[:, :4].sum(axis=1))
    show(
        fig,
        alt=f"Left: four straight lines that fall with the distance. Right: the weights; the nearest four keys get {near} of them.",
    )


_INSIDE, _BEYOND = (2, 4, 8, 12, 16), (16, 20, 24, 32, 48, 64, 96, 128)
_STYLES = (  # colour, line, marker
    ("grey", ":", "x"),
    ("purple", "--", "s"),
    ("orange", (0, (6, 1.5, 1, 1.5)), "D"),
    ("blue", "-", "o"),
    ("green", (0, (8, 2)), "^"),
)


def _apart(heights: Sequence[float], gap: float, low: float, high: float) -> np.ndarray:
    """The heights, moved as little as needed so that labels at them do not overlap."""
    order, placed = np.argsort(heights), np.array(heights, float)
    for _ in range(400):
        for a, b in zip(order, order[1:], strict=False):
            short = gap - (placed[b] - placed[a])
            if short > 0:
                placed[[a, b]] += np.array([-short / 2, short / 2])
        placed = np.clip(placed, low, high)
    return placed


def extrapolation(accuracy: Mapping[str, Mapping[str, Any]], trained: int, guessing: Mapping[str, float]) -> None:
    """Accuracy against the position for each task and each way of giving positions; nothing is joined across the trained length.

    accuracy: task -> name -> the share of right answers, (seeds, positions). guessing: task -> what guessing achieves.
    """
    fig, axes = panels(len(accuracy), width=8.4, height=7.2, columns=1)
    fig.suptitle("Right answers within the trained length say little about what lies beyond it", fontsize=11.5)
    clear = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    said = []
    for ax, (task, curves) in zip(axes, accuracy.items(), strict=True):
        ends = []
        for (name, curve), (colour, style, marker) in zip(curves.items(), _STYLES, strict=True):
            for edges in (_INSIDE, _BEYOND):
                middles = [math.sqrt(a * (b - 1)) for a, b in zip(edges, edges[1:], strict=False)]
                means = np.array(
                    [np.nanmean(_numpy(curve)[:, a:b], axis=1) for a, b in zip(edges, edges[1:], strict=False)]
                )
                paint = {"color": COLOURS[colour]}
                ax.plot(middles, means.mean(axis=1), linestyle=style, marker=marker, markersize=4.5, **paint)
            ends.append((middles[-1], means[-1].mean()))
            inside, late = np.nanmean(_numpy(curve)[:, 2:trained]), np.nanmean(_numpy(curve)[:, 64:])
            said.append(f"{task}, {name}: {inside:.2f} inside and {late:.2f} from 64 on")
        for (name, (x, y)), at, (colour, *_) in zip(
            zip(curves, ends, strict=True), _apart([y for _, y in ends], 0.075, 0.03, 1.0), _STYLES, strict=True
        ):
            ax.plot([1.03 * x, 1.14 * x], [y, at], color=COLOURS[colour], linewidth=0.8)
            ax.text(1.16 * x, at, name, color=COLOURS[colour], va="center", fontsize=10, bbox=clear)
        ax.axvline(trained - 0.5, color=COLOURS["black"], linewidth=1)
        ax.text(trained - 0.8, 0.02, "trained ", ha="right", fontsize=9.5)
        ax.text(trained - 0.2, 0.02, " never trained", ha="left", fontsize=9.5)
        ax.text(2.1, 1.03, "learned, sinusoidal, RoPE: on top of one another", color="#555555", fontsize=9.5)
        ax.axhline(guessing[task], color="#555555", linewidth=1, linestyle=(0, (2, 2)))
        ax.text(2.1, guessing[task] + 0.015, "guessing", color="#555555", fontsize=9.5)
        ax.set(xscale="log", xlim=(2, 205), ylim=(0, 1.12), ylabel="right answers", title=task)
        ax.set_xticks([2, 4, 8, 16, 32, 64, 128], ["2", "4", "8", "16", "32", "64", "128"])
        ax.minorticks_off()
    axes[-1].set_xlabel("position (logarithmic)")
    show(fig, alt=f"Share of right answers against position, trained on positions below {trained}. {'; '.join(said)}.")
