"""Figures of lesson 03: projections with their sizes, what tokens look at, shapes that flow, axes that move, letters that are summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from grader.figures import COLOURS, matrix, panels, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_AXIS_COLOURS = {"T_q": "blue", "T_k": "vermillion", "d_k": "green", "d_v": "black", "B": "grey"}
_FILL = "#F4F7FA"
_LINE = "#8A9AA8"
_SEAM = "#D5DDE4"
_CELL = 0.34  # side of one number, in the drawing's units
_WIDTH = 8.4  # of a figure, in inches
_LIFT = 0.16  # how far each further batch item peeps out behind the one before


def projections(
    x: np.ndarray,
    w_q: np.ndarray,
    w_k: np.ndarray,
    w_v: np.ndarray,
    words: Sequence[str],
    features: Sequence[str],
    follow: str,
) -> None:
    """X W = Q, K, V with every number: each result stands below its matrix and beside X, where rows meet columns.

    x: (T, d_model). w_q, w_k, w_v: (d_model, d). follow: the word whose rows are framed.
    """
    tokens, d_model = x.shape
    fig, (ax,) = panels(1, width=_WIDTH)
    ax.set_axis_off()
    gap = 1.15  # between the matrices and what is made of them: the names of X's columns stand there, too
    _numbers(ax, 0, 0, x, COLOURS["grey"])
    for row, word in enumerate(words):
        ax.text(
            -0.25,
            row + 0.5,
            word,
            ha="right",
            va="center",
            fontsize=10.5,
            fontweight="bold" if word == follow else None,
        )
    for column, name in enumerate(features):
        ax.text(column + 0.38, -0.15, name, rotation=50, ha="left", va="bottom", fontsize=9.5, rotation_mode="anchor")
    size = {"ha": "center", "fontsize": 9, "color": "#555555"}
    ax.text(
        d_model / 2, tokens + 0.2, f"X\n{tokens} × {d_model}", ha="center", va="top", fontweight="bold", fontsize=10.5
    )
    ax.text(d_model / 2, tokens + 1.65, "$T$ × $d_{model}$", va="top", **size)
    left, top = d_model + 3.3, -gap - d_model
    for row, name in enumerate(features):
        ax.text(left - 0.25, top + row + 0.5, name, ha="right", va="center", fontsize=9.5)
    framed = [(0, d_model)]
    for letter, w, paint in (("Q", w_q, "vermillion"), ("K", w_k, "blue"), ("V", w_v, "green")):
        width = w.shape[1]
        _numbers(ax, left, top, w, COLOURS[paint])
        _numbers(ax, left, 0, x @ w, COLOURS[paint])
        middle, length = left + width / 2, "d_v" if letter == "V" else "d_k"
        bold = {"ha": "center", "color": COLOURS[paint], "fontweight": "bold", "fontsize": 10.5}
        ax.text(middle, top - 0.9, f"$W_{letter}$\n{d_model} × {width}", va="bottom", **bold)
        ax.text(middle, top - 0.22, f"$d_{{model}}$ × ${length}$", va="bottom", **size)
        ax.text(middle, tokens + 0.2, f"{letter} = X $W_{letter}$\n{tokens} × {width}", va="top", **bold)
        ax.text(middle, tokens + 1.65, f"$T$ × ${length}$", va="top", **size)
        framed.append((left, width))
        left += width + 1.1
    for start, width in framed:
        _frame(ax, start, words.index(follow), width)
    ax.text(
        d_model / 2 - 0.6,
        top + 1.6,
        "Each number of Q, K and V:\nmultiply its row of X with its\ncolumn of W, entry by entry,\nand add up.",
        ha="center",
        va="center",
        fontsize=10.5,
        color="#555555",
    )
    right, bottom, high = left - 0.8, tokens + 2.3, top - 2.7
    ax.set_xlim(-2.2, right)
    ax.set_ylim(bottom, high)
    ax.set_title("Each token's row, times three matrices, gives its query, its key and its value")
    fig.set_size_inches(_WIDTH, _WIDTH * 0.74 * (bottom - high) / (right + 2.2) + 0.35)
    at = words.index(follow)
    made = ", ".join(f"{name} {(x @ w)[at].tolist()}" for name, w in (("query", w_q), ("key", w_k), ("value", w_v)))
    sizes = ", ".join(f"W_{name} is {w.shape[0]} by {w.shape[1]}" for name, w in (("Q", w_q), ("K", w_k), ("V", w_v)))
    show(
        fig,
        alt=f"""Matrices with all their numbers. X, {tokens} by {d_model}, has a row for each of {", ".join(words)} and a column for
         each of {", ".join(features)}. {sizes}. Beside X and below them stand the products Q, K and V, {tokens} rows each. The row of
         '{follow}' is framed: {made}.""",
    )


def _numbers(ax: Axes, left: float, top: float, array: np.ndarray, paint: str) -> None:
    """A matrix of whole numbers with its upper left corner at (left, top); what is not 0 stands out."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    for (row, column), number in np.ndenumerate(array):
        fill = to_rgba(paint, 0.25) if number else "white"
        ax.add_patch(Rectangle((left + column, top + row), 1, 1, facecolor=fill, edgecolor=_SEAM, linewidth=0.8))
        ax.text(
            left + column + 0.5,
            top + row + 0.53,
            f"{number:g}",
            ha="center",
            va="center",
            fontsize=10,
            color="#222222" if number else "#B5B5B5",
            fontweight="bold" if number else None,
        )
    rows, columns = array.shape
    ax.add_patch(Rectangle((left, top), columns, rows, fill=False, edgecolor=paint, linewidth=1.4))


def _frame(ax: Axes, left: float, row: int, width: int) -> None:
    from matplotlib.patches import Rectangle

    ax.add_patch(
        Rectangle((left - 0.06, row), width + 0.12, 1, fill=False, edgecolor="#222222", linewidth=2.2, zorder=6)
    )


def shapes(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
    """Both products of attention as stacks of matrices, sizes to scale; q, k, v have shape (B, T, d)."""
    sizes = {"B": q.shape[0], "T_q": q.shape[1], "T_k": k.shape[1], "d_k": k.shape[2], "d_v": v.shape[2]}
    rows = (
        (("q", "T_q", "d_k", "B"), ("k.swapaxes(-1, -2)", "d_k", "T_k", "B"), ("scores", "T_q", "T_k", "B")),
        (("weights", "T_q", "T_k", "B"), ("v", "T_k", "d_v", "B"), ("output", "T_q", "d_v", "B")),
    )
    fig, (ax,) = panels(1, width=_WIDTH)
    _equations(ax, rows, sizes, _AXIS_COLOURS)
    ax.set_title("Each product sums one axis away; the batch axis passes through")
    said = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    show(
        fig,
        alt=f"""Two rows of stacked boxes, {said}. First row: q (B, T_q, d_k) times the swapped k (B, d_k, T_k)
         gives scores (B, T_q, T_k); d_k is summed away. Second row: weights (B, T_q, T_k) times v (B, T_k, d_v) gives
         the output (B, T_q, d_v); T_k is summed away. The batch axis passes through both.""",
    )


def letters(subscripts: str, left: np.ndarray, right: np.ndarray) -> None:
    """An einsum of two 3-D arrays drawn with one letter an axis; letters that are summed stand out."""
    terms, _, result = subscripts.partition("->")
    first, second = terms.split(",")
    sizes = dict(zip(first + second, left.shape + right.shape, strict=True))
    summed = [letter for letter in sizes if letter not in result]
    colours = {letter: "vermillion" if letter in summed else "blue" for letter in sizes}
    fig, (ax,) = panels(1, width=_WIDTH)
    _equations(ax, [[(term, term[1], term[2], term[0]) for term in (first, second, result)]], sizes, colours)
    ax.set_title(f"{' and '.join(summed)} is not right of the arrow, so it is summed")
    show(
        fig,
        alt=f"""Three stacks of boxes labeled {first}, {second} and {result}. The letters of the result,
         {", ".join(result)}, are axes that stay; {", ".join(summed)} stands in both inputs and not in the
         result, so it is summed.""",
    )


def _equations(
    ax: Axes, rows: Sequence[Sequence[tuple[str, ...]]], sizes: Mapping[str, int], colours: Mapping[str, str]
) -> None:
    """Draws each row as 'left times right gives result', columns aligned; a stack is (name, rows, columns, batch)."""
    ax.set_axis_off()
    ax.set_aspect("equal")
    widths = [
        max(sizes[columns] * _CELL + (sizes[depth] - 1) * _LIFT for _, _, columns, depth in column)
        for column in zip(*rows, strict=True)
    ]
    lefts = np.cumsum([1.0, widths[0] + 2.6, widths[1] + 2.6])
    y = 0.0
    for row in rows:
        half = max(sizes[height] * _CELL for _, height, *_ in row) / 2
        y -= half + 0.95  # room for the name above
        for (name, height, width, depth), left, sign in zip(row, lefts, ("", "times", "gives"), strict=True):
            _stack(ax, left, y, (name, height, width, depth), sizes, colours)
            ax.text(left - 1.45, y, sign, ha="center", va="center", color=COLOURS["grey"], fontsize=10)
        y -= half + 0.4
    right = lefts[-1] + widths[-1] + 0.9
    ax.set_xlim(0, right)
    ax.set_ylim(y, 0)
    ax.figure.set_size_inches(_WIDTH, _WIDTH * -y / right + 0.4)  # no empty paper around equal scales


def _stack(
    ax: Axes, x: float, y: float, axes: tuple[str, ...], sizes: Mapping[str, int], colours: Mapping[str, str]
) -> None:
    """One stack of matrices with its left edge at x and its middle at height y; axes: (name, rows, columns, batch)."""
    from matplotlib.patches import Rectangle

    name, rows, columns, depth = axes
    width, height = sizes[columns] * _CELL, sizes[rows] * _CELL
    bottom, behind = y - height / 2, (sizes[depth] - 1) * _LIFT
    for sheet in reversed(range(sizes[depth])):
        corner = (x + sheet * _LIFT, bottom + sheet * _LIFT)
        ax.add_patch(Rectangle(corner, width, height, facecolor=_FILL, edgecolor=_LINE, linewidth=1.1))
    for step in range(1, sizes[columns]):
        ax.plot([x + step * _CELL] * 2, [bottom, bottom + height], color=_SEAM, linewidth=0.7)
    for step in range(1, sizes[rows]):
        ax.plot([x, x + width], [bottom + step * _CELL] * 2, color=_SEAM, linewidth=0.7)
    _edge(ax, x - 0.12, y, rows, sizes, colours, ha="right", va="center")
    _edge(ax, x + width / 2, bottom - 0.08, columns, sizes, colours, ha="center", va="top")
    _edge(ax, x + width + behind + 0.08, bottom + height + behind, depth, sizes, colours, ha="left", va="top")
    ax.text(
        x + (width + behind) / 2,
        bottom + height + behind + 0.12,
        name,
        ha="center",
        va="bottom",
        fontweight="bold",
        fontsize=10,
    )


def _edge(
    ax: Axes, x: float, y: float, axis: str, sizes: Mapping[str, int], colours: Mapping[str, str], **where: str
) -> None:
    label = f"${axis}$" if "_" in axis else axis
    ax.text(x, y, f"{label} = {sizes[axis]}", color=COLOURS[colours[axis]], fontsize=9.5, **where)


def axis_permutation(shape: tuple[int, int, int], names: Sequence[str] = ("B", "T_k", "d_k")) -> None:
    """Where each axis of a 3-D array goes under `.T` and under `swapaxes(-1, -2)`."""
    fig, axes = panels(2, width=6.6, height=2.0)
    moves = (("k.T reverses all axes", (2, 1, 0)), ("k.swapaxes(-1, -2) leaves B in place", (0, 2, 1)))
    for ax, (title, order) in zip(axes, moves, strict=True):
        _move(ax, title, shape, names, order)
    mirrored, swapped = tuple(shape[i] for i in (2, 1, 0)), tuple(shape[i] for i in (0, 2, 1))
    show(
        fig,
        alt=f"""Two diagrams of three axes, before and after. k.T turns {shape} into {mirrored}: batch and
         features change places. k.swapaxes(-1, -2) turns {shape} into {swapped}: the batch axis stays first, the
         last two change places.""",
    )


def _move(ax: Axes, title: str, shape: Sequence[int], names: Sequence[str], order: Sequence[int]) -> None:
    ax.set_axis_off()
    ax.set_title(title)
    ax.set_xlim(-0.6, 2.6)
    ax.set_ylim(-0.3, 1.3)
    for place in range(3):
        for y, axis in ((1, place), (0, order[place])):
            name = f"${names[axis]}$" if "_" in names[axis] else names[axis]
            ax.text(
                place,
                y,
                f"{name} = {shape[axis]}",
                ha="center",
                va="center",
                fontsize=10.5,
                color=COLOURS[_AXIS_COLOURS[names[axis]]],
                bbox={"boxstyle": "round,pad=0.35", "facecolor": _FILL, "edgecolor": _LINE},
            )
        ax.annotate(
            "",
            (place, 0.22),
            (order[place], 0.78),
            arrowprops={"arrowstyle": "-|>", "color": COLOURS[_AXIS_COLOURS[names[order[place]]]], "linewidth": 1.6},
        )


def token_scores(maps: Mapping[str, np.ndarray], words: Sequence[str]) -> None:
    """Scores of named tokens as heat maps on one scale: title -> (T, T)."""
    fig, axes = panels(len(maps), width=4.2 * len(maps), height=3.7)
    reach = max(float(np.abs(scores).max()) for scores in maps.values())
    for ax, (title, scores) in zip(axes, maps.items(), strict=True):
        matrix(
            scores,
            title,
            rows=words,
            columns=words,
            kind="scores",
            limits=(-reach, reach),
            ax=ax,
            xlabel="key",
            ylabel="query",
        )
    said = " ".join(f"{title}: {scores.tolist()}." for title, scores in maps.items())
    show(fig, alt=f"Heat maps of scores between {', '.join(words)}. {said}")


def sentence_weights(maps: Mapping[str, np.ndarray], words: Sequence[str]) -> None:
    """Weights of one sentence as heat maps with its words on both axes: title -> (T, T)."""
    side = 4.3 if len(words) < 8 else 6.2
    fig, axes = panels(len(maps), width=side * len(maps), height=0.9 * side)
    for ax, (title, weights) in zip(axes, maps.items(), strict=True):
        matrix(weights, title, rows=words, columns=words, ax=ax, xlabel="key", ylabel="query")
        ax.tick_params(axis="x", rotation=45)
    said = " ".join(f"{title}: {_favourites(weights, words)}." for title, weights in maps.items())
    show(fig, alt=f"Heat maps of attention weights over '{' '.join(words)}'. {said}")


def two_steps(rows: Mapping[str, Sequence[np.ndarray]], tokens: Sequence[str]) -> None:
    """One token's weights in two steps of attention, for each sentence: how it ends -> (first (T,), second (T,))."""
    names = [f"{ending}: {step}" for ending in rows for step in ("1. read", "2. find")]
    weights = np.stack([row for steps in rows.values() for row in steps])
    fig, (ax,) = panels(1, width=5.6, height=1.9 + 0.35 * len(names))
    matrix(
        weights,
        "What 'it' attends to: the last word, then its noun",
        rows=names,
        columns=tokens,
        ax=ax,
        xlabel="key",
        ylabel="",
    )
    said = "; ".join(
        f"{name}: {tokens[int(row.argmax())]} ({row.max():.2f})" for name, row in zip(names, weights, strict=True)
    )
    show(
        fig,
        alt=f"A heat map of the weights of 'it', a row for each step of each sentence. The largest of each row: {said}.",
    )


def _favourites(weights: np.ndarray, words: Sequence[str]) -> str:
    best = [
        f"{word} looks most at {words[int(row.argmax())]} ({row.max():.2f})"
        for word, row in zip(words, weights, strict=True)
    ]
    return "; ".join(best)
