"""Figures of lesson 01: the three-token table from queries and keys to outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from grader.figures import COLOURS, arrows, matrix, panels, show

Attention = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def queries_and_keys(Q: np.ndarray, K: np.ndarray) -> None:
    """One panel a query (n, 2): the query as a pale band behind the keys, each key with its dot product."""
    fig, axes = panels(len(Q), width=8.8, height=3.4)
    for i, (ax, query) in enumerate(zip(axes, Q, strict=True)):
        ax.plot(*zip((0, 0), query), color=COLOURS["vermillion"], alpha=0.35, linewidth=9, solid_capstyle="butt")
        ax.annotate(f"query {i}", 0.7 * query, (-14, -14) if query[1] == 0 else (28, -4), textcoords="offset points",
                    ha="center", va="center", color=COLOURS["vermillion"], fontweight="bold")
        for j, key in enumerate(K):
            arrows({"": key}, "", ax=ax, reach=1.45)
            ax.annotate(f"key {j}: {query @ key:g}", key, (10, 12), textcoords="offset points", ha="center",
                        va="center", color=COLOURS["blue"], fontweight="bold")
        ax.set_title(f"Query {i} asks for [{query[0]:g}, {query[1]:g}]")
        ax.set_xticks([0, 1])
        ax.set_yticks([0, 1])
        ax.set_xlabel("first feature")
    axes[0].set_ylabel("second feature")
    said = "; ".join(f"query {i} [{q[0]:g}, {q[1]:g}] has dot products " + ", ".join(f"{q @ k:g}" for k in K)
                     for i, q in enumerate(Q))
    keys = ", ".join(f"[{x:g}, {y:g}]" for x, y in K)
    show(fig, alt=f"Three panels, one a query, with the keys {keys} as arrows: {said}, in the order of the keys.")


def scores_map(scores: np.ndarray) -> None:
    """The scores (n_q, n_k) as one labelled heat map."""
    fig, (ax,) = panels(1, width=3.9, height=3.6)
    matrix(scores, "Scores: every query meets every key", kind="scores", ax=ax)
    show(fig, alt=f"Heat map of the scores, one row a query: {_rows(scores)}.")


def whole_step(Q: np.ndarray, K: np.ndarray, weights: np.ndarray, output: np.ndarray) -> None:
    """The four stages of one attention step side by side; scores and scaled scores share their colours."""
    scores = Q @ K.T
    sizes = [array.shape[1] for array in (scores, scores, weights, output)]
    fig, axes = panels(4, width=8.8, height=2.9, ratios=sizes)
    scaled, reach = scores / np.sqrt(Q.shape[1]), float(np.abs(scores).max())
    matrix(scores, "Scores", kind="scores", ax=axes[0], limits=(-reach, reach), fmt=".2f")
    matrix(scaled, "Scores ÷ √d_k", kind="scores", ax=axes[1], limits=(-reach, reach), ylabel="")
    matrix(weights, "Weights: a row sums to 1", ax=axes[2], ylabel="")
    matrix(output, "Output", kind="values", ax=axes[3], limits=(0, 10), ylabel="", xlabel="feature of V")
    show(fig, alt=f"Four heat maps, one row a query. Scores: {_rows(scores)}. Divided by the root of d_k: "
                  f"{_rows(scaled)}. "
                  f"Weights: {_rows(weights)}. Output: {_rows(output)}.")


def impossible_outputs(V: np.ndarray, output: Sequence[Sequence[float]], printed: Sequence[Sequence[float]]) -> None:
    """Outputs (n, 2) of the first n tokens on the line where the rows of V (n_k, 2) lie, printed results beside it."""
    output = np.asarray(output, dtype=float)
    fig, (ax,) = panels(1, width=5.6, height=5.0)
    total = float(V[0].sum())
    ax.axline((0, total), slope=-1, color=COLOURS["green"], linewidth=1.6)
    ax.annotate(f"all that sums to {total:g}:\nevery blend of the values", (4.1, total - 4.1), (10, 8),
                textcoords="offset points", color=COLOURS["green"])
    ax.plot(*output.T, "o", color=COLOURS["blue"], markersize=8)
    for i, point in enumerate(output):
        ax.annotate(f"token {i}", point, (9, 5), textcoords="offset points", color=COLOURS["blue"], fontweight="bold")
    for x, y in printed:
        ax.plot(x, y, "X", color=COLOURS["vermillion"], markersize=10)
        ax.annotate(f"printed: [{x:g}, {y:g}] sums to {x + y:g}", (x, y), (-10, 0), textcoords="offset points",
                    ha="right", va="center", color=COLOURS["vermillion"])
    ax.set_title("No blend of the values reaches the printed outputs")
    ax.set_xlim(3.2, 7.4)
    ax.set_ylim(2.6, 6.8)
    ax.set_xlabel("first number")
    ax.set_ylabel("second number")
    ax.set_aspect("equal")
    show(fig, alt=f"The rows of V and the computed output {_rows(output)} lie on the straight line where both numbers "
                  f"sum to {total:g}. The printed results {_rows(np.asarray(printed))} lie below it.")


def scale_sweep(attention: Attention, Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> None:
    """First number of each token's output against what the scores are divided by, right scale marked."""
    root = float(np.sqrt(Q.shape[1]))
    divisors = np.geomspace(0.2, 20, 121)
    first = np.array([attention(Q * (root / divisor), K, V)[0][:, 0] for divisor in divisors])
    fig, (ax,) = panels(1, width=6.8, height=3.6)
    looks = (("-", "black", 7), ("--", "blue", -17), ("-.", "vermillion", -32))
    for i, (line, (style, colour, lift)) in enumerate(zip(first.T, looks)):
        ax.plot(divisors, line, style, color=COLOURS[colour])
        ax.annotate(f"token {i}", (divisors[0], line[0]), (4, lift), textcoords="offset points",
                    color=COLOURS[colour], fontweight="bold")
    ax.set_xscale("log")
    ticks = {0.2: "0.2", 1: "1\n(no scale)", root: "√2", Q.shape[1]: "2\n(d_k)", 20: "20"}
    ax.set_xticks(list(ticks), list(ticks.values()))
    ax.minorticks_off()
    ax.axvline(root, color=COLOURS["grey"], linewidth=1, linestyle=":")
    ax.set_title("Token 0 gives the same output whatever the scale")
    ax.set_xlabel("the scores are divided by")
    ax.set_ylabel("first number of the output")
    ends = ", ".join(f"token {i} from {first[0, i]:.2f} to {first[-1, i]:.2f}" for i in range(len(Q)))
    show(fig, alt=f"First number of each output as the divisor of the scores grows from 0.2 to 20: {ends}. Token 0 "
                  f"stays at "
                  "5 all along; the others move towards 5.")


def _rows(array: np.ndarray) -> str:
    return "; ".join(", ".join(f"{number:.4g}" for number in row) for row in array)
