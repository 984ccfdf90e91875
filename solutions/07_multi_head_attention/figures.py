"""Figures of lesson 07: heads in parallel, where numbers go, heads that divide the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.figures import COLOURS, matrix, panels, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def two_heads(one: np.ndarray, two: np.ndarray, values: np.ndarray) -> None:
    """one: (3,) weights of a single head; two: (2, 3) weights of two heads, each for its own column of values (3, 2)."""
    fig, axes = panels(3, width=9.2, height=3.0, ratios=(2, 3, 3))
    fig.get_layout_engine().set(wspace=0.1)
    tokens = ["token 0", "token 1", "token 2"]
    matrix(
        values,
        "values",
        kind="values",
        ax=axes[0],
        rows=tokens,
        columns=["first", "second"],
        xlabel="number",
        ylabel="",
    )
    mixed, apart = one @ values, [two[h] @ values[:, h] for h in (0, 1)]
    for ax, weights, title, rows in (
        (axes[1], one[None], f"one head: output ({mixed[0]:g}, {mixed[1]:g})", ["both\nnumbers"]),
        (axes[2], two, f"two heads: output ({apart[0]:g}, {apart[1]:g})", ["first\nnumber", "second\nnumber"]),
    ):
        matrix(weights, title, ax=ax, rows=rows, columns=tokens, xlabel="", ylabel="", fmt="g")
    fig.suptitle(
        "One row of weights gives (5, 5); one row for each number gives (10, 10)", fontsize=12, fontweight="bold"
    )
    show(
        fig,
        alt=f"Three matrices: values of three tokens; one row of weights, whose output is ({mixed[0]:g}, {mixed[1]:g}); two rows of "
        f"weights, one for each number, whose output is ({apart[0]:g}, {apart[1]:g}).",
    )


def where_numbers_go(split: Callable[..., Any]) -> None:
    """Three tokens whose numbers tell where they come from, split by the learner's function and by a view alone."""
    import torch
    from matplotlib.patches import Rectangle

    x = (10 * torch.arange(3)[:, None] + torch.arange(4)).float()[None]  # number j of token i is 10 i + j
    fig, axes = panels(5, width=8.8, height=3.4, ratios=(4, 2, 2, 2, 2), columns=5)
    heads, viewed = split(x, 2)[0], x.view(1, 2, 3, 2)[0]
    shown = (x[0], *heads, *viewed)
    titles = ("x: token i holds 10 i + j", "split: head 0", "split: head 1", "view: head 0", "view: head 1")
    for number, (ax, part, title) in enumerate(zip(axes, shown, titles, strict=True)):
        part = part.detach().numpy()
        rows = [f"token {i}" for i in range(3)] if number in (0, 1) else [""] * 3
        columns = [str(j) for j in range(part.shape[1])]
        limits = (0.0, 30.0)
        matrix(
            part,
            title,
            ax=ax,
            kind="values",
            limits=limits,
            rows=rows,
            columns=columns,
            xlabel="",
            ylabel="",
            fmt=".0f",
        )
        for row in range(3):
            if (part[row] // 10 != row).any():
                corner, wide = (-0.46, row - 0.46), part.shape[1] - 0.08
                ax.add_patch(
                    Rectangle(corner, wide, 0.92, fill=False, edgecolor=COLOURS["vermillion"], linewidth=2.5, zorder=6)
                )
    axes[0].set_xlabel("number")
    while len(fig.axes) > len(axes):
        fig.axes[-1].remove()  # the numbers are written in; a scale would say it twice
    fig.suptitle("A view alone gives rows to the wrong token (framed)", fontsize=12, fontweight="bold")
    said = [part.int().tolist() for part in shown[1:]]
    show(
        fig,
        alt=f"Five matrices. x has rows of four numbers. The split gives head 0 {said[0]} and head 1 {said[1]}; a view alone gives "
        f"{said[2]} and {said[3]}, and the rows that hold numbers of another token are framed.",
    )


def heads_in_parallel() -> None:
    """Every head reads whole tokens through matrices of its own; what they find is concatenated and mixed by w_o. Nothing is computed."""
    fig, (ax,) = panels(1, width=8.8, height=4.0)
    ax.set(xlim=(5, 985), ylim=(48, 376))
    ax.axis("off")
    ax.set_title("Each head attends with matrices of its own; w_o mixes what they find", fontsize=12, fontweight="bold")
    middle, lanes = 212, (302, 122)
    _grid(ax, 14, middle, 5, 6, ["#C9CED3"] * 6)
    _said(ax, 53, middle, "tokens x", "T × d_model", 46)
    for h, (y, paint) in enumerate(zip(lanes, _HEADS, strict=True)):
        _arrow(ax, (98, middle), (140, y), "#777777")
        _box(ax, 144, y, 108, 60, paint)
        ax.text(198, y + 13, f"head {h}", ha="center", va="center", fontsize=10, fontweight="bold", color=paint)
        ax.text(198, y - 10, "w_q w_k w_v", ha="center", va="center", fontsize=9.5)
        _arrow(ax, (256, y), (282, y), paint)
        for at, name in enumerate("qkv"):
            _grid(ax, 288 + 48 * at, y, 5, 3, [paint] * 3)
            ax.text(307 + 48 * at, y + 43, name, ha="center", va="center", fontsize=9.5, color=paint)
        _arrow(ax, (429, y), (455, y), paint)
        _grid(ax, 461, y, 5, 5, ["#F3F3F3"] * 5)
        ax.text(493, y + 43, "weights", ha="center", va="center", fontsize=9.5, color=paint)
        _arrow(ax, (532, y), (558, y), paint)
        _grid(ax, 564, y, 5, 3, [paint] * 3)
        _arrow(ax, (609, y), (644, middle + 15 * (1 - 2 * h)), paint)
    ax.text(198, lanes[-1] - 53, "each d_model\n× d_head", ha="center", va="center", fontsize=9, color="#555555")
    ax.text(355, lanes[-1] - 46, "each T × d_head", ha="center", va="center", fontsize=9, color="#555555")
    ax.text(493, lanes[-1] - 46, "T × T", ha="center", va="center", fontsize=9, color="#555555")
    ax.text(583, lanes[-1] - 46, "T × d_head", ha="center", va="center", fontsize=9, color="#555555")
    _grid(ax, 650, middle, 5, 6, [paint for paint in _HEADS for _ in range(3)])
    ax.text(693, middle - 47, "concatenated", ha="center", va="center", fontsize=9.5, fontweight="bold")
    ax.text(689, middle - 63, "T × d_model", ha="center", va="center", fontsize=9, color="#555555")
    ax.text(744, middle, "·", ha="center", va="center", fontsize=18, fontweight="bold")
    _grid(ax, 760, middle, 6, 6, ["#E3D6E8"] * 6)
    _said(ax, 799, middle, "w_o", "d_model\n× d_model", 58)
    _arrow(ax, (844, middle), (880, middle), "#777777")
    _grid(ax, 886, middle, 5, 6, ["#B79CC4"] * 6)
    _said(ax, 925, middle, "output", "T × d_model", 46)
    show(
        fig,
        alt="A diagram with two heads, for five tokens of six numbers. Whole tokens x (T × d_model) go to each of them. Each head has "
        "small matrices w_q, w_k and w_v of its own (d_model × d_head), which make its queries, keys and values (T × d_head), then its "
        "weights (T × T), and with them its result (T × d_head). The two results lie side by side, concatenated (T × d_model), and the "
        "matrix w_o (d_model × d_model) turns them into the output (T × d_model).",
    )


_HEADS = (COLOURS["blue"], COLOURS["vermillion"])


def _grid(ax: Axes, x: float, y: float, rows: int, columns: int, paints: list[str]) -> None:
    """A matrix of 13-pixel cells, its left edge at x, its middle at height y; one color for each column."""
    from matplotlib.patches import Rectangle

    for column, paint in enumerate(paints):
        for row in range(rows):
            corner = (x + 13 * column, y + 13 * (rows / 2 - 1 - row))
            ax.add_patch(Rectangle(corner, 13, 13, facecolor=paint, edgecolor="white", linewidth=1))
    ax.add_patch(
        Rectangle((x, y - 6.5 * rows), 13 * columns, 13 * rows, fill=False, edgecolor="#9A9A9A", linewidth=0.8)
    )


def _box(ax: Axes, x: float, y: float, width: float, height: float, edge: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0,rounding_size=8"
    corner = (x, y - height / 2)
    ax.add_patch(
        FancyBboxPatch(corner, width, height, boxstyle=style, facecolor="white", edgecolor=edge, linewidth=1.8)
    )


def _said(ax: Axes, x: float, y: float, name: str, size: str, away: float) -> None:
    """The name of a matrix above it, its size below."""
    ax.text(x, y + away, name, ha="center", va="center", fontsize=10, fontweight="bold")
    ax.text(x, y - away, size, ha="center", va="center", fontsize=9, color="#555555")


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], paint: str) -> None:
    style = {"arrowstyle": "-|>", "color": paint, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops=style)


def weights_of_heads(single: np.ndarray, pair: np.ndarray) -> None:
    """single: (1, 3), the weight of the only head on first friend, second friend and all others; pair: (2, 3) of two heads."""
    on = ["first friend", "second friend", "all others"]
    fig, (left, right) = panels(2, width=8.4, height=3.2)
    for ax, weights, title, names in (
        (left, single, "One head", ["head 0"]),
        (right, pair, "Two heads: one friend each", ["head 0", "head 1"]),
    ):
        matrix(weights, title, ax=ax, rows=names, columns=on, xlabel="mean weight on", ylabel="", fmt=".2f")
        ax.tick_params(axis="x", rotation=0)
    said = "; ".join(
        f"{name}: {first:.2f} on the first friend, {second:.2f} on the second, {others:.2f} on all others"
        for name, (first, second, others) in zip(
            ("the only head", "head 0 of two", "head 1 of two"), (*single, *pair), strict=True
        )
    )
    show(fig, alt=f"Two tables of mean weights, for one head and for two. {said}.")
