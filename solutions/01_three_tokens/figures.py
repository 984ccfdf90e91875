"""Figures of lesson 01: the three-token table from queries and keys to outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from grader.figures import COLOURS, matrix, panels, show

from ..shared.figures.plane import arrow

if TYPE_CHECKING:
    pass

Array = np.ndarray


def queries_and_keys(Q: Array, K: Array, names: Sequence[str]) -> None:
    """One panel a query (n, 2): the query as an arrow, each key's tip as a dot with its projection and its dot product."""
    fig, axes = panels(len(Q), width=8.8, height=3.7)
    fig.suptitle(
        "In each panel: the further out a key lands on the query’s line, the higher its score",
        fontsize=12,
        fontweight="bold",
    )
    for ax, query, asks in zip(axes, Q, names, strict=True):
        ax.axline((0, 0), query, color=COLOURS["vermillion"], linewidth=1, linestyle="--", zorder=1)
        arrow(ax, query, gap=6 if (K == query).all(axis=1).any() else 0)  # else its head covers the dot at its tip
        for key, name in zip(K, names, strict=True):
            landing = (key @ query) / (query @ query) * query
            ax.plot(*zip(key, landing), color=COLOURS["grey"], linewidth=1.4, linestyle=":", zorder=2)
            ax.plot(
                *landing, "o", markersize=6, markerfacecolor="white", markeredgecolor=COLOURS["vermillion"], zorder=3
            )
            ax.plot(*key, "o", color=COLOURS["blue"], markersize=9, zorder=4)
            ax.annotate(
                f"{name}: {query @ key:g}",
                key,
                (9, 9),
                textcoords="offset points",
                ha="left" if not key[0] else "center",
                color=COLOURS["blue"],
                fontweight="bold",
                zorder=5,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85},
            )
        ax.set_title(f"{asks} asks [{query[0]:g}, {query[1]:g}]")
        ax.set(
            xticks=[0, 1], yticks=[0, 1], xlabel="names a thing", xlim=(-0.2, 1.55), ylim=(-0.2, 1.55), aspect="equal"
        )
    axes[0].set_ylabel("can be tired")
    products = [", ".join(f"{q @ k:g} with {name}" for k, name in zip(K, names, strict=True)) for q in Q]
    said = "; ".join(f"{asks} has the dot products {listed}" for asks, listed in zip(names, products, strict=True))
    show(
        fig,
        alt="Three panels, one for each query, which is an arrow. The keys are dots, and a dotted line leads from each of them to "
        f"its projection on the query's line. {said}.",
    )


def scores_map(scores: Array, names: Sequence[str]) -> None:
    """The scores (n_q, n_k) as one labeled heat map."""
    fig, (ax,) = panels(1, width=4.4, height=3.6)
    matrix(
        scores,
        "Scores: every query meets every key",
        kind="scores",
        ax=ax,
        rows=names,
        columns=names,
        xlabel="key of",
        ylabel="query of",
    )
    show(fig, alt=f"Heat map of the scores, one row a query: {_rows(scores)}.")


def whole_step(Q: Array, K: Array, V: Array, weights: Array, output: Array, names: Sequence[str]) -> None:
    """The stages of one attention step side by side: rows of queries, but those of V, which are the tokens' values."""
    scores = Q @ K.T / np.sqrt(Q.shape[1])
    sizes = [array.shape[1] for array in (scores, weights, V, output)]
    fig, axes = panels(4, width=8.8, height=3.0, columns=4, ratios=sizes)
    fig.suptitle("Each query’s weights blend the values into its output", fontsize=12, fontweight="bold")
    reach = float(np.abs(scores).max())
    keys = {"rows": names, "columns": names, "ylabel": "query of", "xlabel": "key of"}
    about = {
        "kind": "values",
        "limits": (0, 10),
        "rows": names,
        "xlabel": "about",
        "columns": ["animal", "street"][: V.shape[1]],
    }
    matrix(scores, "Scores QKᵀ / √d$_k$", kind="scores", ax=axes[0], limits=(-reach, reach), fmt=".2f", **keys)
    matrix(weights, "softmax → Weights", ax=axes[1], **keys)
    matrix(V, "× V", ax=axes[2], ylabel="value of", **about)
    matrix(output, "= Output", ax=axes[3], fmt=".2f", ylabel="query of", **about)
    for ax in axes:
        ax.tick_params(axis="x", labelrotation=40, labelsize=8.5)
    show(
        fig,
        alt=f"Four heat maps. Scores divided by the root of d_k, a row for each query: {_rows(scores)}. "
        f"Weights, a row for each query: {_rows(weights)}. V, a row for each token's value: {_rows(V)}. "
        f"Output, a row for each query: {_rows(output)}.",
    )


def impossible_outputs(V: Array, output: Sequence[float], printed: Sequence[Sequence[float]]) -> None:
    """The first token's output (2,) on the line where the rows of V (n_k, 2) lie, printed results beside it."""
    x, y = map(float, output)
    fig, (ax,) = panels(1, width=5.8, height=4.6)
    total = float(V[0].sum())
    ax.axline((0, total), slope=-1, color=COLOURS["green"], linewidth=1.8)
    ax.annotate(
        f"the numbers sum to {total:g}:\nevery blend is on this line",
        (6.0, total - 6.0),
        (12, 2),
        textcoords="offset points",
        color=COLOURS["green"],
    )
    ax.plot(x, y, "o", color=COLOURS["blue"], markersize=9)
    ax.annotate(
        f"computed: [{x:g}, {y:g}]\nwith and without the scale",
        (x, y),
        (9, 5),
        textcoords="offset points",
        color=COLOURS["blue"],
        fontweight="bold",
    )
    for at, (x, y) in enumerate(printed):
        ax.plot(x, y, "X", color=COLOURS["vermillion"], markersize=10)
        ax.annotate(
            f"printed: [{x:g}, {y:g}]\nsums to {x + y:g}",
            (x, y),
            (-12, 14 - 26 * at),
            textcoords="offset points",
            ha="right",
            va="center",
            color=COLOURS["vermillion"],
        )
    ax.set_title("No blend of the values reaches the printed outputs")
    ax.set(
        xlim=(3.3, 8.1),
        ylim=(2.7, 6.6),
        xlabel="first number: about the animal",
        ylabel="second number: about the street",
    )
    ax.set_aspect("equal")
    show(
        fig,
        alt=f"The computed output {_rows(np.array([output], float))}, with and without the scale, lies on the straight line where "
        f"both numbers sum to {total:g}, as every row of V does. The printed results {_rows(np.asarray(printed))} lie below it.",
    )


def longer_query(keys: Array, query: Array, factors: Array, weights: Array, *, target: int) -> None:
    """Keys (n, 2) and a query's direction in the plane; the weights (m, n) for the query times each factor (m,)."""
    fig, (left, right) = panels(2, width=8.8, height=4.1, ratios=(1, 1.35))
    paints = ["sky", "blue", "orange", "purple", "black"]
    paints[target] = "blue"
    left.add_patch(_circle())
    direction = query / np.linalg.norm(query)
    arrow(left, 0.8 * direction, reach=1.35)
    left.annotate(
        "query:\ndirection only",
        0.5 * direction,
        (-6, 2),
        textcoords="offset points",
        ha="right",
        color=COLOURS["vermillion"],
        fontweight="bold",
    )
    for at, (key, paint) in enumerate(zip(keys, paints, strict=False)):
        left.plot(*key, "o", color=COLOURS[paint], markersize=11 if at == target else 8)
        left.annotate(
            f"key {at}",
            1.3 * key,
            ha="center",
            va="center",
            color=COLOURS[paint],
            fontweight="bold" if at == target else None,
        )
        right.plot(
            factors, weights[:, at], color=COLOURS[paint], linewidth=2.8 if at == target else 1.8, label=f"key {at}"
        )
    left.set(xlim=(-1.6, 1.6), ylim=(-1.45, 1.45), xticks=[], yticks=[])
    left.spines[:].set_visible(False)
    left.grid(False)
    left.set_title("Direction: which key wins")
    right.axvline(1, color=COLOURS["grey"], linewidth=1, linestyle=":")
    right.annotate("your query", (1, 0.5), (5, 0), textcoords="offset points", color="#555555", fontsize=9)
    right.set(
        xlabel="length of the arrow, as a multiple of your query’s",
        ylabel="weight",
        ylim=(0, 1.03),
        xlim=(0, float(factors[-1])),
    )
    right.set_title("Length of the arrow: how clearly")
    right.legend(frameon=False, loc="center right")
    fig.suptitle(
        "The direction of a query decides which key wins, its length how clearly", fontsize=12, fontweight="bold"
    )
    at_0, at_1, at_2 = (weights[at, target] for at in (0, len(factors) // 2, -1))
    show(
        fig,
        alt=f"Left: five keys on a circle and a query that points to key {target}. Right: the weights as the query grows from length "
        f"0, where each key has {at_0:.2f}, to its full length, where key {target} has {at_1:.2f}, and to twice that, where it "
        f"has {at_2:.2f}.",
    )


def _circle():
    from matplotlib.patches import Circle

    return Circle((0, 0), 1, fill=False, edgecolor="#BFBFBF", linewidth=1)


def _rows(array: Array) -> str:
    return "; ".join(", ".join(f"{number:.4g}" for number in row) for row in array)
