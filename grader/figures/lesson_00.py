"""Figures of lesson 00: keys in the plane, and a hard and a soft look-up as the query turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from grader.figures import COLOURS, arrows, panels, show

Lookup = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def keys_in_the_plane(keys: np.ndarray, names: Sequence[str], query: np.ndarray) -> None:
    """Keys (n, 2) as arrows, and how far each reaches along the direction of a query (2,)."""
    fig, (ax,) = panels(1, width=5.2, height=4.6)
    scores = keys @ query
    direction = query / np.linalg.norm(query)
    reach = 1.25 * float(np.abs(keys).max())
    far = reach * direction / direction.max()  # where the query's direction leaves the picture
    ax.plot(*zip((0, 0), far), color=COLOURS["vermillion"], linewidth=1.4, linestyle="--")
    for i in np.argsort(-np.linalg.norm(keys, axis=1)):  # long arrows first: a short one may lie on top
        arrows({"": keys[i]}, "", ax=ax, reach=reach)
        foot = (keys[i] @ direction) * direction
        ax.plot(*zip(keys[i], foot), color=COLOURS["grey"], linewidth=1.2, linestyle=":")
        ax.plot(*foot, "o", color=COLOURS["vermillion"], markersize=6)
        ax.annotate(f"{names[i]}: {scores[i]:g}", keys[i], (8, 4) if 0 in keys[i] else (8, -13),
                    textcoords="offset points", color=COLOURS["blue"], fontweight="bold")
    ax.annotate("direction of\nthe query", 0.88 * far, (-34, 6), textcoords="offset points",
                ha="center", va="center", color=COLOURS["vermillion"])
    best = names[int(np.argmax(scores))]
    ax.set_title(f"The {best} reaches furthest along the query")
    ax.set_xlabel("sweet")
    ax.set_ylabel("spicy")
    listed = ", ".join(f"{name} at ({x:g}, {y:g}) with dot product {score:g}"
                       for name, (x, y), score in zip(names, keys, scores, strict=True))
    show(fig, alt=f"Arrows in a plane, sweet to the right and spicy upwards: {listed}. A dashed line marks the "
                  f"direction "
                  f"of the query ({query[0]:g}, {query[1]:g}); of the points where the keys reach it, that of the "
                  f"{best} "
                  "lies furthest out.")


def turning_query(hard: Lookup, soft: Lookup, keys: np.ndarray, values: np.ndarray, names: Sequence[str]) -> None:
    """The first number of both answers while a query of length 1 turns from the first axis to the second."""
    degrees = np.linspace(0, 90, 361)
    queries = np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)
    answers = {look: np.array([look(query, keys, values)[0] for query in queries]) for look in (hard, soft)}
    # With one-hot values a look-up returns whom it chose.
    chosen = np.array([int(np.argmax(hard(query, keys, np.eye(len(keys))))) for query in queries])
    fig, (ax,) = panels(1, width=7.4, height=3.6)
    edges = [0, *(np.flatnonzero(np.diff(chosen)) + 1), len(degrees)]
    for start, end in zip(edges, edges[1:]):
        span = degrees[start], degrees[end - 1]
        ax.plot(span, answers[hard][[start, end - 1]], color=COLOURS["vermillion"], linewidth=2.6)
        ax.annotate(f"hard: {names[chosen[start]]}", (sum(span) / 2, answers[hard][start]), (0, 6), ha="center",
                    textcoords="offset points", color=COLOURS["vermillion"], fontweight="bold")
        if end < len(degrees):
            ax.axvline(degrees[end], color=COLOURS["grey"], linewidth=1, linestyle=":")
    ax.plot(degrees, answers[soft], color=COLOURS["blue"], linestyle="--")
    ax.annotate("soft", (degrees[225], answers[soft][225]), (8, 6), textcoords="offset points", color=COLOURS["blue"],
                fontweight="bold")
    ax.set_title("A hard look-up jumps, a soft one glides")
    ax.set_xlabel("direction of the query in degrees: 0 is sweet, 90 is spicy")
    ax.set_ylabel("sugar in the answer, g")
    ax.set_xticks(range(0, 91, 15))
    ax.set_xlim(0, 90)
    ax.set_ylim(0, 1.2 * float(values[:, 0].max()))
    steps = ", then ".join(f"{names[chosen[start]]} ({answers[hard][start]:g} g) from {degrees[start]:.0f} degrees"
                           for start in edges[:-1])
    show(fig, alt=f"Sugar in the answer against the direction of the query. The hard look-up is a staircase: "
                  f"{steps}. The "
                  f"soft look-up falls smoothly from {answers[soft][0]:.1f} g to {answers[soft][-1]:.1f} g.")
