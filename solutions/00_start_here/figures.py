"""Figures of lesson 00: a soft look-up whose query moves, hard and soft answers as it turns, and the same for stopping cars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from grader.figures import COLOURS, Picture, follow, panels, picture, show

from ..shared.figures.plane import arrow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray

# The machine that opens the lesson; its second section writes the same numbers down.
WORDS = ("animal", "street", "it")
KEYS = np.array([[3.0, 0.0], [0.0, 3.0], [1.0, 1.0]])  # how well a word goes with "tired", and with "wide"
VALUES = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])  # what it tells: of an animal, of a street

_WEIGHT = "#A04578"  # as in the machine that all lessons share
_ANIMAL, _STREET = COLOURS["green"], COLOURS["orange"]
_INK = "#444444"
_STRIP = (0, 30, 60, 90)  # the query positions of the static picture


def moving_query() -> None:
    """A slider that turns the query, where widgets run; the picture is four positions side by side until it is moved."""
    unmoved = [_strip()]

    def draw(degrees: int) -> Picture:
        return unmoved.pop() if unmoved else _one(degrees)

    try:
        from ipywidgets import IntSlider
    except ImportError:
        print(draw(0))
        return
    wide = {"description_width": "initial"}
    follow(
        draw,
        IntSlider(
            0,
            min=0,
            max=90,
            step=3,
            description="“it” asks: tired (0°) … wide (90°)",
            style=wide,
            layout={"width": "34em"},
        ),
    )


def _look_up(degrees: float) -> tuple[Array, Array, Array, Array]:
    """(query, scores, weights, answer) of a query in this direction, an arrow of length 1."""
    query = np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
    scores = KEYS @ query
    weights = np.exp(scores) / np.exp(scores).sum()
    return query, scores, weights, weights @ VALUES


def _one(degrees: float) -> Picture:
    query, scores, weights, answer = _look_up(degrees)
    fig, (left, right) = panels(2, width=8.4, height=3.9, ratios=(1, 1.35))
    _plane(left, query)
    left.set_title("The query meets the keys")
    _answer(right, weights, answer, [f"{word}\nscore {score:.1f}" for word, score in zip(WORDS, scores, strict=True)])
    right.set_title("Every word counts by its weight")
    return picture(fig, alt=f"A soft look-up. {_said(degrees, weights, answer)}")


def _strip() -> Picture:
    fig, axes = panels(8, width=8.8, height=4.9, columns=4)
    said = []
    for number, degrees in enumerate(_STRIP):
        query, _, weights, answer = _look_up(degrees)
        plane, below = axes[number], axes[4 + number]
        _plane(plane, query, small=True)
        plane.set_title({0: "“it” asks: tired", 90: "“it” asks: wide"}.get(degrees, f"turned by {degrees}°"))
        _answer(below, weights, answer, WORDS if number == 0 else [""] * len(WORDS), small=True)
        if number:
            plane.set_ylabel("")
        said.append(_said(degrees, weights, answer))
    fig.suptitle("As the query of “it” turns, the answer goes from animal to street", fontsize=12, fontweight="bold")
    return picture(fig, alt=f"A soft look-up at four positions of the query. {' '.join(said)}")


def _plane(ax: Axes, query: Array, *, small: bool = False) -> None:
    """The keys as dots and the query as an arrow."""
    ax.plot(*zip((0, 0), 3.7 * query / query.max()), color=COLOURS["vermillion"], linewidth=1, linestyle="--", zorder=1)
    arrow(ax, query, reach=3.7)
    ax.annotate(
        "query",
        0.6 * query,
        (0, 5) if query[1] < 0.3 else (6, -4),
        textcoords="offset points",
        ha="center" if query[1] < 0.3 else "left",
        va="bottom" if query[1] < 0.3 else "top",
        color=COLOURS["vermillion"],
        fontweight="bold",
        fontsize=9 if small else 10.5,
    )
    ax.plot(*KEYS.T, "o", color=COLOURS["blue"], markersize=7 if small else 9, zorder=4)
    for word, key, (at, across) in zip(
        WORDS, KEYS, (((0, 7), "right"), ((7, 0), "left"), ((7, 4), "left")), strict=True
    ):
        ax.annotate(
            word,
            key,
            (at[0] + (9 if across == "right" else 0), at[1]),
            textcoords="offset points",
            ha=across,
            va="bottom" if across == "right" else "center",
            color=COLOURS["blue"],
            fontweight="bold",
            fontsize=9 if small else 10.5,
        )
    ax.set(xlim=(-0.35, 3.7), ylim=(-0.35, 3.7), xticks=[0, 1, 2, 3], yticks=[0, 1, 2, 3])
    ax.set_xlabel("goes with “tired”")
    ax.set_ylabel("goes with “wide”")


def _answer(ax: Axes, weights: Array, answer: Array, names: Sequence[str], *, small: bool = False) -> None:
    """One bar for the weight of each word, and below them the answer as shares of animal and street."""
    rows = np.arange(len(weights))[::-1] + 1.9
    ax.barh(rows, np.ones_like(weights), height=0.62, color="#F3F3F3")
    ax.barh(rows, weights, height=0.62, color=_WEIGHT)
    for row, weight in zip(rows, weights, strict=True):
        ax.text(
            weight + 0.03 if weight < 0.75 else weight - 0.03,
            row,
            f"{weight:.2f}",
            ha="left" if weight < 0.75 else "right",
            va="center",
            color=_INK if weight < 0.75 else "white",
            fontsize=9 if small else 10,
        )
    ax.barh(0.45, answer[0], height=0.8, color=_ANIMAL)
    ax.barh(0.45, answer[1], left=answer[0], height=0.8, color=_STREET)
    for x, share, word, color in ((0, answer[0], "animal", "#00664A"), (1, answer[1], "street", "#8A5A00")):
        ax.text(
            x,
            -0.12,
            f"{share:.0%} {word}",
            ha="left" if x == 0 else "right",
            va="top",
            color=color,
            fontsize=9 if small else 10.5,
            fontweight="bold",
        )
    ax.set(xlim=(0, 1), ylim=(-0.75, 4.4), xticks=[])
    ax.set_yticks([*rows, 0.45], [*names, "answer" if any(names) else ""])
    ax.tick_params(axis="y", length=0, labelsize=9 if small else 10)
    ax.spines[:].set_visible(False)
    ax.grid(False)
    if small:
        ax.set_title("weights" if any(names) else "", fontsize=9.5, loc="left")


def _said(degrees: float, weights: Array, answer: Array) -> str:
    given = ", ".join(f"{word} {weight:.2f}" for word, weight in zip(WORDS, weights, strict=True))
    return (
        f"With the query turned by {degrees:g} degrees from “tired” toward “wide” the weights are {given}, and the answer is "
        f"{answer[0]:.0%} animal and {answer[1]:.0%} street."
    )


def turning_query(degrees: Array, hard: Array, soft: Array) -> None:
    """The share of animal in the answers, each (m,), while the query turns."""
    fig, (ax,) = panels(1, width=7.4, height=3.6)
    jumps = np.flatnonzero(np.diff(hard)) + 1
    for part in np.split(np.arange(len(degrees)), jumps):
        ax.plot(degrees[part], hard[part], color=COLOURS["vermillion"], linewidth=2.6)
    for at in jumps:
        ax.plot(degrees[[at, at]], hard[[at - 1, at]], color=COLOURS["vermillion"], linewidth=1, linestyle=":")
    ax.plot(degrees, soft, color=COLOURS["blue"], linestyle="--", linewidth=2.4)
    place = len(degrees) // 6
    for line, name, colour, lift in (
        (hard, "hard: one word’s value", "vermillion", 8),
        (soft, "soft: a blend", "blue", -26),
    ):
        ax.annotate(
            name,
            (degrees[place], line[place]),
            (0, lift),
            ha="center",
            textcoords="offset points",
            color=COLOURS[colour],
            fontweight="bold",
        )
    ax.set_title("The hard answer jumps, the soft one glides")
    ax.set_xlabel("direction of the query in degrees: 0 is “tired”, 90 is “wide”")
    ax.set_ylabel("animal in the answer")
    ax.set_xticks(range(0, 91, 15))
    ax.set(xlim=(0, 90), ylim=(-0.06, 1.18))
    said = ", ".join(f"from {hard[at - 1]:g} to {hard[at]:g} at {degrees[at]:.1f} degrees" for at in jumps)
    show(
        fig,
        alt=f"The share of animal in the answer against the direction of the query. The hard look-up jumps {said} and is constant "
        f"elsewhere. The soft one changes smoothly from {soft[0]:.2f} to {soft[-1]:.2f}.",
    )


def stopping(speeds: Array, distances: Array, asked: Array, hard: Array, soft: Array, line: Array) -> None:
    """Recorded stops (n,), and what three ways to predict say for the speeds asked (m,)."""
    fig, (ax,) = panels(1, width=7.4, height=4.2)
    ax.plot(speeds, distances, "o", color=COLOURS["grey"], markersize=5, alpha=0.7, label="recorded stops")
    starts = [0, *(np.flatnonzero(np.diff(hard)) + 1), len(asked)]
    for start, end in zip(starts, starts[1:]):
        ax.plot(
            asked[start:end],
            hard[start:end],
            color=COLOURS["vermillion"],
            linewidth=2.2,
            label="hard: mean of the nearest stops" if start == 0 else None,
        )
    ax.plot(asked, line, color=COLOURS["black"], linewidth=1.4, linestyle="-.", label="a straight line")
    ax.plot(asked, soft, color=COLOURS["blue"], linestyle="--", linewidth=2.4, label="soft: a blend of all stops")
    ax.legend(frameon=False, loc="upper left")
    ax.set_title("The blend follows the stops, with no line assumed")
    ax.set_xlabel("speed, miles per hour")
    ax.set_ylabel("stopping distance, feet")
    at = int(np.abs(asked - 21).argmin())
    show(
        fig,
        alt=f"{len(speeds)} recorded stops as dots, distance against speed. The mean of the nearest stops is a staircase through "
        f"them, the blend a smooth rising curve, close to a straight line. At 21 miles per hour the staircase says "
        f"{hard[at]:.0f} feet, the blend {soft[at]:.0f}, the line {line[at]:.0f}.",
    )
