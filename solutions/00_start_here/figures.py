"""Figures of lesson 00: keys in the plane, a hard and a soft look-up as the query turns, and the same for stopping cars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from grader.figures import COLOURS, arrows, panels, show

Array = np.ndarray


def keys_in_the_plane(keys: Array, names: Sequence[str], query: Array) -> None:
    """Keys (n, 2) and a query (2,) as arrows; how far each key reaches in the query's direction, with its dot product."""
    fig, (ax,) = panels(1, width=5.8, height=5.0)
    scores = keys @ query
    direction = query / np.linalg.norm(query)
    reach = 1.2 * float(np.abs(keys).max())
    ax.plot(
        *zip((0, 0), reach * direction / direction.max()), color=COLOURS["vermillion"], linewidth=1.2, linestyle="--"
    )
    for key, name, score in zip(keys, names, scores, strict=True):
        arrows({"": key}, "", ax=ax, reach=reach)
        foot = (key @ direction) * direction
        ax.plot(*zip(key, foot), color=COLOURS["grey"], linewidth=1.2, linestyle=":")
        ax.plot(*foot, "o", color=COLOURS["vermillion"], markersize=7, zorder=4)
        off = (
            (11, -6)
            if np.linalg.norm(key) < 0.5 * reach
            else (-9, 9)
            if (key - foot) @ np.array([1.0, -1.0]) > 0
            else (9, -10)
        )
        ax.annotate(
            f"{score:.2f}",
            foot,
            off,
            textcoords="offset points",
            ha="right" if off[0] < 0 else "left",
            va="center",
            color=COLOURS["vermillion"],
            fontsize=9.5,
        )
        place = (6, 6) if key[0] == 0 else (0, -14) if key[1] < 0.5 else (-6, 9)
        ax.annotate(
            name,
            key,
            place,
            textcoords="offset points",
            color=COLOURS["blue"],
            fontweight="bold",
            ha="left" if key[0] == 0 else "center",
        )
    arrows({"": query}, "", ax=ax, colour="vermillion", reach=reach)
    far = 0.82 * reach * direction / direction.max()
    ax.annotate(
        "direction of\nthe query",
        far,
        (10, -8),
        textcoords="offset points",
        va="top",
        color=COLOURS["vermillion"],
        fontsize=9.5,
    )
    best = names[int(np.argmax(scores))]
    ax.set_ylim(-0.25, reach)
    ax.set_title(f"The {best} reaches furthest in the direction of the query")
    ax.set_xlabel("sweet")
    ax.set_ylabel("spicy")
    listed = ", ".join(
        f"{name} at ({x:g}, {y:g}) with dot product {score:.2f}"
        for name, (x, y), score in zip(names, keys, scores, strict=True)
    )
    asked = f"({query[0]:g}, {query[1]:g})"
    show(
        fig,
        alt=f"Arrows in a plane, sweet to the right and spicy upward: {listed}. The query {asked} is another arrow, and a "
        f"dashed line marks its direction. Of the points where the keys reach that line, the {best}'s is "
        "the furthest out.",
    )


def turning_query(degrees: Array, hard: Array, soft: Array, named: Mapping[float, str]) -> None:
    """Sugar in the answers, each (m,), while the query turns. named: the dish of each hard answer."""
    fig, (ax,) = panels(1, width=7.4, height=3.6)
    starts = [0, *(np.flatnonzero(np.diff(hard)) + 1)]
    for start, end in zip(starts, [*starts[1:], len(degrees)], strict=True):
        span = degrees[start], degrees[end - 1]
        ax.plot(span, hard[[start, end - 1]], color=COLOURS["vermillion"], linewidth=2.6)
        ax.annotate(
            f"hard: {named[hard[start]]}",
            (sum(span) / 2, hard[start]),
            (0, 6),
            ha="center",
            textcoords="offset points",
            color=COLOURS["vermillion"],
            fontweight="bold",
        )
        if end < len(degrees):
            ax.axvline(degrees[end], color=COLOURS["grey"], linewidth=1, linestyle=":")
            ax.annotate(
                f"{degrees[end]:.1f}°",
                (degrees[end], 0),
                (4, 5),
                textcoords="offset points",
                color="#555555",
                fontsize=9,
            )
    ax.plot(degrees, soft, color=COLOURS["blue"], linestyle="--")
    at = 2 * len(degrees) // 3
    ax.annotate(
        "soft", (degrees[at], soft[at]), (12, 8), textcoords="offset points", color=COLOURS["blue"], fontweight="bold"
    )
    ax.set_title("A hard look-up jumps, a soft one glides")
    ax.set_xlabel("direction of the query in degrees: 0 is sweet, 90 is spicy")
    ax.set_ylabel("sugar in the answer, g")
    ax.set_xticks(range(0, 91, 15))
    ax.set(xlim=(0, 90), ylim=(0, 1.2 * float(hard.max())))
    steps = ", then ".join(
        f"{named[hard[start]]} ({hard[start]:g} g) from {degrees[start]:.1f} degrees" for start in starts
    )
    show(
        fig,
        alt=f"Sugar in the answer against the direction of the query. The hard look-up is a staircase: {steps}. The soft look-up "
        f"falls smoothly from {soft[0]:.1f} g to {soft[-1]:.1f} g.",
    )


def stopping(speeds: Array, distances: Array, asked: Array, hard: Array, soft: Array) -> None:
    """Recorded stops (n,), and what the two look-ups say for the speeds asked (m,)."""
    fig, (ax,) = panels(1, width=7.4, height=3.9)
    ax.plot(speeds, distances, "o", color=COLOURS["grey"], markersize=5, alpha=0.7)
    starts = [0, *(np.flatnonzero(np.diff(hard)) + 1), len(asked)]
    for start, end in zip(starts, starts[1:]):
        ax.plot(asked[start:end], hard[start:end], color=COLOURS["vermillion"], linewidth=2.2)
    ax.plot(asked, soft, color=COLOURS["blue"], linestyle="--", linewidth=2.4)
    handles = [ax.lines[i] for i in (-1, -2, 0)]
    ax.legend(
        handles, ("soft: a blend of stops", "hard: the nearest stop", "recorded stops"), frameon=False, loc="upper left"
    )
    ax.axvline(21, color=COLOURS["grey"], linewidth=1, linestyle=":")
    ax.annotate(
        "21 mph:\nno stop recorded",
        (21, ax.get_ylim()[1]),
        (-6, -2),
        textcoords="offset points",
        ha="right",
        va="top",
        color="#555555",
        fontsize=9,
    )
    ax.set_title("A single nearest stop jumps, a blend of stops changes smoothly")
    ax.set_xlabel("speed, miles per hour")
    ax.set_ylabel("stopping distance, feet")
    at = int(np.abs(asked - 21).argmin())
    show(
        fig,
        alt=f"Fifty recorded stops as dots, distance against speed. The hard look-up is a ragged staircase through single dots, the "
        f"soft one a smooth rising curve. At 21 miles per hour the hard one says {hard[at]:.0f} feet, the soft one "
        f"{soft[at]:.0f}.",
    )
