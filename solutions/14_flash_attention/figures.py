"""Figures of lesson 14: a row in two tiles, the order of the loops, the grid of tiles, memory and time, traffic, what was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.figures import COLOURS, panels, show

_EAGER, _TILES, _FUSED = COLOURS["vermillion"], COLOURS["blue"], COLOURS["green"]
_LOOK = {"eager attention": (_EAGER, "s", "-"), "your tiles": (_TILES, "o", "-"), "fused operator": (_FUSED, "^", "--")}


_LOOP_ORDER = (
    "Left, main memory: Q, K, V and O in four tiles each, around a four by four grid, the score matrix, which is never stored. The outer "
    "loop runs down the tiles of Q, the inner loop along those of K and V. Right, fast memory: one tile each of q, k and v, the tile of "
    "their scores, which is used and discarded, and o, m and l, kept until all keys have passed. Then o / l is written to O."
)


def two_tiles(scores: np.ndarray, values: np.ndarray, words: Sequence[str]) -> None:
    """exp(score − maximum) of a row of four: each tile relative to its own maximum, then both relative to the larger one."""
    fig, axes = panels(3, width=9.4, height=3.0, ratios=(2, 2, 4))
    tiles = ((slice(0, 2), _TILES, "tile 1"), (slice(2, 4), COLOURS["orange"], "tile 2"))
    said = []
    for ax, (at, colour, name) in zip(axes, tiles, strict=False):
        terms = np.exp(scores[at] - scores[at].max())
        _terms(ax, terms, words[at.start : at.stop], [colour] * 2)
        ax.set_title(f"{name}: l = {terms.sum():g}, o = {terms @ values[at]:g}")
        said.append(f"{name}: {', '.join(f'{term:g}' for term in terms)}")
    terms = np.exp(scores - scores.max())
    _terms(axes[2], terms, words, [colour for _, colour, _ in tiles for _ in range(2)])
    axes[2].bar(
        range(2), np.exp(scores[:2] - scores[:2].max()), width=0.62, fill=False, edgecolor="#9A9A9A", linestyle=":"
    )
    axes[2].set_title(f"merged: l = {terms.sum():g}, o = {terms @ values:g}")
    axes[0].set_ylabel("exp(score − m)")
    show(
        fig,
        alt=f"Bars of exp(score − m). {'; '.join(said)}. Merged, relative to the larger maximum: "
        f"{', '.join(f'{word} {term:g}' for word, term in zip(words, terms, strict=True))}.",
    )


def _terms(ax: Any, terms: np.ndarray, words: Sequence[str], colours: Sequence[str]) -> None:
    ax.bar(range(len(terms)), terms, width=0.62, color=list(colours))
    for at, term in enumerate(terms):
        ax.annotate(f"{term:g}", (at, term), (0, 3), textcoords="offset points", ha="center", fontsize=9)
    ax.set_xticks(range(len(terms)), list(words))
    ax.set(ylim=(0, 1.2), yticks=(0, 0.5, 1))


def loop_order() -> None:
    """Which memory holds what while one tile of queries meets one tile of keys and values, and the order in which tiles come."""
    fig, (ax,) = panels(1, width=9.4, height=5.2)
    ax.set_axis_off()
    ax.set(xlim=(0, 116), ylim=(-2, 62))
    ink, faint, wide = "#444444", "#E3E3E3", 7.2
    q, k, v, o = _TILES, COLOURS["orange"], COLOURS["green"], COLOURS["sky"]
    _chamber(ax, 0.5, -1.5, 66, 62.5, "#FCF6EE", "main memory (HBM): large, slow")
    _chamber(ax, 77, 1.5, 38.5, 49, "#EDF5FB", "fast memory (SRAM): small, fast")
    row, column = 1, 2  # of the tiles that meet
    for at in range(4):
        x, y = 18 + 8 * at, 26 - 8 * at
        ax.add_patch(_rectangle(8, y, 5.5, wide, q if at == row else faint))
        coming = (
            {"linewidth": 1.6, "linestyle": "--", "edgecolor": o} if at == row else {}
        )  # written when its loop ends
        ax.add_patch(_rectangle(57, y, 5.5, wide, o if at < row else "none" if at == row else faint, **coming))
        ax.add_patch(_rectangle(x, 43.5, wide, 5, k if at == column else faint))
        ax.add_patch(_rectangle(x, 36.5, wide, 5, v if at == column else faint))
        for other in range(4):
            lit = (other, at) == (row, column)
            look = (
                {"linewidth": 1.6, "linestyle": "-", "edgecolor": ink}
                if lit
                else {"linewidth": 0.9, "linestyle": ":", "edgecolor": "#AAAAAA"}
            )
            ax.add_patch(_rectangle(x, 26 - 8 * other, wide, wide, "white" if lit else "none", **look))
    for x, y, name in ((10.75, 35.2, "Q"), (59.75, 35.2, "O"), (15.4, 46, "Kᵀ"), (15.4, 39, "Vᵀ")):
        ax.text(x, y, name, ha="center", va="center", fontsize=11.5, weight="bold")
    ax.text(33.6, -0.1, "score matrix: never stored", ha="center", va="center", fontsize=9.5, color=ink)
    ax.annotate("", (50, 51), (18, 51), arrowprops={"arrowstyle": "-|>", "color": ink, "linewidth": 1.8})
    ax.text(34, 53.2, "inner loop: all keys and values", ha="center", va="center", fontsize=9.5, color=ink)
    ax.annotate("", (5.8, 2), (5.8, 33), arrowprops={"arrowstyle": "-|>", "color": ink, "linewidth": 1.8})
    ax.text(3.4, 17.5, "outer loop: queries", ha="center", va="center", rotation=90, fontsize=9.5, color=ink)
    _tile(ax, 80, 18, 5.5, wide, q, "q", "white")
    _tile(ax, 90, 35.5, wide, 5, k, "kᵀ", "black")
    _tile(ax, 90, 28.5, wide, 5, v, "vᵀ", "white")
    _tile(ax, 90, 18, wide, wide, "white", "s", "black", edgecolor=ink, linewidth=1.6)
    _tile(ax, 102, 18, 5.5, wide, o, "o", "black")
    ax.text(109.5, 21.6, "m, l", ha="left", va="center", fontsize=10.5)
    ax.text(93.6, 13.4, "scores:\nused, then\ndiscarded", ha="center", va="center", fontsize=9, color=ink)
    ax.text(107.5, 13.4, "kept until\nall keys\nhave passed", ha="center", va="center", fontsize=9, color=ink)
    ax.annotate("", (79, 38), (64.5, 38), arrowprops={"arrowstyle": "-|>", "color": ink, "linewidth": 2.2})
    ax.text(71.75, 42.2, "one tile\nof each", ha="center", va="center", fontsize=9, color=ink)
    ax.annotate("", (64.5, 8), (79, 8), arrowprops={"arrowstyle": "-|>", "color": ink, "linewidth": 2.2})
    ax.text(71.75, 3.8, "o / l, at\nthe end", ha="center", va="center", fontsize=9, color=ink)
    ax.set_title("A tile of scores lives in fast memory only")
    show(fig, alt=_LOOP_ORDER)


def _tile(
    ax: Any, x: float, y: float, width: float, height: float, colour: str, name: str, ink: str, **look: Any
) -> None:
    ax.add_patch(_rectangle(x, y, width, height, colour, **look))
    ax.text(x + width / 2, y + height / 2, name, ha="center", va="center", fontsize=11, color=ink)


def _chamber(ax: Any, x: float, y: float, width: float, height: float, colour: str, name: str) -> None:
    ax.add_patch(_rectangle(x, y, width, height, colour, edgecolor="#BBBBBB", linewidth=1))
    ax.text(x + width / 2, y + height - 3.2, name, ha="center", va="center", fontsize=10.5, weight="bold")


def _rectangle(x: float, y: float, width: float, height: float, colour: str, **look: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, facecolor=colour, **{"linewidth": 0, **look})


def tile_grid(tiles: int) -> tuple[int, int]:
    """The grid of tiles of a causal score matrix, `tiles` a side. Returns: how many are computed, and how many of those are masked."""
    fig, (ax,) = panels(1, width=5.6, height=3.6)
    row, column = np.indices((tiles, tiles))
    kind = np.select([column < row, column == row], [0, 1], 2)
    look = (("#A9CCE6", "", "computed"), ("#F3C892", "////", "computed and masked"), ("#F4F4F4", "", "skipped"))
    for (fill, hatch, label), number in zip(look, range(3), strict=True):
        for i, j in np.argwhere(kind == number):
            ax.bar(j, 0.94, width=0.94, bottom=i - 0.47, color=fill, hatch=hatch, edgecolor="white", label=label)
            label = None
    ax.set(
        xlabel="tiles of keys",
        ylabel="tiles of queries",
        xlim=(-0.6, tiles - 0.4),
        ylim=(tiles - 0.4, -0.6),
        xticks=range(tiles),
        yticks=range(tiles),
        aspect="equal",
    )
    computed, masked = int((kind < 2).sum()), int((kind == 1).sum())
    ax.set_title(f"{computed} of {tiles * tiles} computed, {masked} masked")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    show(
        fig,
        alt=f"A grid of {tiles} by {tiles} tiles: below the diagonal computed, on it computed and masked, above it skipped.",
    )
    return computed, masked


def memory_and_time(taken: Mapping[str, Mapping[int, tuple[float, float]]]) -> dict[str, float]:
    """MiB at the peak and seconds, by way and length. Returns: of each way the slope of its memory over the last three lengths."""
    fig, axes = panels(2, width=9.0, height=3.7)
    slopes, said = {}, []
    for ax, at, what, unit in (
        (axes[0], 0, "Peak memory: from T² to T", "MiB"),
        (axes[1], 1, "Time on one thread: near T² for all", "seconds"),
    ):
        for way, by_length in taken.items():
            lengths = np.array(list(by_length))
            numbers = np.array([by_length[t][at] for t in by_length])
            slope = float(np.polyfit(np.log(lengths[-3:]), np.log(numbers[-3:]), 1)[0])
            colour, marker, line = next(look for name, look in _LOOK.items() if way.startswith(name))
            ax.loglog(
                lengths,
                numbers,
                color=colour,
                marker=marker,
                markersize=4,
                linestyle=line,
                label=f"{way}: slope {slope:.1f}",
            )
            said.append(f"{what} of {way}: {numbers[-1]:.3g} {unit} at {lengths[-1]} tokens, slope {slope:.1f}")
            if at == 0:
                slopes[way] = slope
        every = sorted({t for by_length in taken.values() for t in by_length})
        ax.set_xticks(every, [f"{t:,}" for t in every])
        ax.minorticks_off()
        ax.set(xlabel="tokens T", ylabel=unit)
        ax.set_title(what)
        ax.legend(frameon=False, fontsize=8.5, loc="upper left")
        low, high = ax.get_ylim()
        ax.set_ylim(low, high * 20)
    show(fig, alt="; ".join(said) + ".")
    return slopes


def traffic(queries: Sequence[int], held: Sequence[float], moved: Sequence[float], eager: float, once: float) -> None:
    """MiB to and from main memory by the fast memory (KB) that a tile of so many queries takes; two levels to compare with."""
    fig, (ax,) = panels(1, width=7.6, height=4.0)
    ax.axhline(eager, color=_EAGER, linestyle="--")
    ax.axhline(once, color=_FUSED, linestyle=":")
    ax.loglog(held, moved, color=_TILES, marker="o", markersize=5)
    for x, y, number in zip(held, moved, queries, strict=True):
        to, side = ((6, 5), "left") if x > 192 else ((-6, -11), "right")
        ax.annotate(f"{number:,}", (x, y), to, textcoords="offset points", fontsize=9, color=_TILES, ha=side)
    ax.axvline(192, color=COLOURS["grey"], linewidth=1)
    for x, y, said, colour in (
        (21, 1.7, "tiles of so many queries,\n64 keys each", _TILES),
        (205, 9.4, f"eager attention, three kernels: {eager:.1f} MiB", _EAGER),
        (21, 0.55, f"q, k, v and output once: {once:.1f} MiB", _FUSED),
        (205, 26, "192 KB, one processor\nof an A100", "#555555"),
    ):
        ax.text(x, y, said, color=colour, fontsize=9, va="bottom", linespacing=1.3)
    ax.set(xlabel="fast memory for one tile, KB", ylabel="traffic of one head, MiB", ylim=(0.35, 50), xlim=(20, 1000))
    ax.set_xticks((25, 50, 100, 200, 400, 800), ("25", "50", "100", "200", "400", "800"))
    ax.set_yticks((0.5, 1, 2, 4, 8, 16, 32), ("0.5", "1", "2", "4", "8", "16", "32"))
    ax.minorticks_off()
    ax.set_title("The more fast memory, the less traffic (1,024 tokens, d = 64)")
    said = ", ".join(
        f"{number:,} queries: {x:.0f} KB, {y:.1f} MiB" for number, x, y in zip(queries, held, moved, strict=True)
    )
    show(
        fig,
        alt=f"Traffic against fast memory, both axes logarithmic; it falls. {said}. Eager: {eager:.1f} MiB; once: {once:.1f} MiB.",
    )


def published(standard: Mapping[str, float], flash: Mapping[str, float]) -> None:
    """Two implementations in published numbers, by quantity; every quantity relative to the first implementation's."""
    fig, axes = panels(len(standard), width=9.0, height=2.3)
    for ax, name in zip(axes, standard, strict=True):
        ax.barh(["standard", "FlashAttention"], [standard[name], flash[name]], color=[_EAGER, _FUSED], height=0.55)
        for row, number in enumerate((standard[name], flash[name])):
            ax.annotate(f"{number:g}", (number, row), (4, 0), textcoords="offset points", va="center", fontsize=9)
        ax.set(xlim=(0, 1.25 * max(standard[name], flash[name])), xlabel=name)
        ax.invert_yaxis()
        if ax is not axes[0]:
            ax.set_yticks([])
        ax.set_title(f"{100 * flash[name] / standard[name]:.0f} % of the standard's")
    show(
        fig,
        alt="; ".join(f"{name}: standard {standard[name]:g}, FlashAttention {flash[name]:g}" for name in standard)
        + ".",
    )
