"""Figures of lesson 14: a row in two tiles, the order of the loops, the grid of tiles, memory and time, traffic, what was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.figures import COLOURS, panels, show

_EAGER, _TILES, _FUSED = COLOURS["vermillion"], COLOURS["blue"], COLOURS["green"]
_LOOK = {"eager attention": (_EAGER, "s", "-"), "your tiles": (_TILES, "o", "-"), "fused operator": (_FUSED, "^", "--")}


_LOOP_ORDER = (
    "Left, main memory: Q, K, V and O, each cut into four tiles. Right, fast memory: a tile q of queries, a tile of keys and of values, the "
    "tile of scores of the two, used once and discarded, and o, m and l, which are kept while keys pass by. The outer loop takes one tile of "
    "Q after the other; for each, the inner loop takes all tiles of K and V; then a tile of O is written."
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
    fig, (ax,) = panels(1, width=9.4, height=4.9)
    ax.set_axis_off()
    ax.set(xlim=(0, 100), ylim=(0, 56))
    ink, faint, fill = "#444444", "#E6E6E6", {"Q": _TILES, "K": COLOURS["orange"], "V": COLOURS["green"], "O": _TILES}
    _chamber(ax, 0.5, 1, 43, 53, "#FBF3EA", "main memory (HBM): large, slow")
    _chamber(ax, 55.5, 1, 44, 53, "#EAF3FA", "fast memory (SRAM): 192 KB a processor")
    for name, x in (("Q", 3), ("K", 13.5), ("V", 20.5), ("O", 33)):
        for row in range(4):
            lit = row == (2 if name in "KV" else 1)
            done = name == "O" and row == 0
            colour = fill[name] if lit or done else faint
            look = {"alpha": 0.35 if done or (name == "O" and lit) else 1.0, "linewidth": 0}
            ax.add_patch(_rectangle(x, 34 - 8.5 * row, 5.5, 7.5, colour, **look))
        ax.text(x + 2.75, 44.6, name, ha="center", fontsize=12, weight="bold")
    ax.text(5.75, 4.0, "T × d", ha="center", fontsize=9, color="#666666")
    ax.text(19.75, 4.0, "T × d each", ha="center", fontsize=9, color="#666666")
    ax.text(35.75, 4.0, "T × d", ha="center", fontsize=9, color="#666666")
    ax.add_patch(_rectangle(60, 25.5, 5.5, 7.5, fill["Q"]))
    ax.text(62.75, 29.25, "q", ha="center", va="center", color="white", fontsize=11)
    ax.add_patch(_rectangle(70.5, 37, 11, 5.5, fill["K"]))
    ax.text(76, 39.75, "kᵀ", ha="center", va="center", fontsize=11)
    ax.add_patch(_rectangle(70.5, 23.75, 11, 11, "white", edgecolor=ink, linestyle="--", linewidth=1.3))
    ax.text(76, 29.25, "scores\nof this tile", ha="center", va="center", fontsize=9)
    ax.add_patch(_rectangle(86.5, 25.5, 5.5, 7.5, fill["V"]))
    ax.text(89.25, 29.25, "v", ha="center", va="center", color="white", fontsize=11)
    ax.add_patch(_rectangle(60, 8.5, 5.5, 7.5, fill["O"], alpha=0.35))
    ax.text(62.75, 12.25, "o", ha="center", va="center", fontsize=11)
    ax.text(67, 12.25, "m, l", ha="left", va="center", fontsize=11)
    ax.text(73.2, 12.25, "kept while keys pass by;\no / l is written at the end", ha="left", va="center", fontsize=9)
    ax.text(76, 20.7, "used once, then discarded", ha="center", va="center", fontsize=9, color=ink)
    for start, end, bend in (
        ((9, 30.2), (59.3, 28.4), 0.0),
        ((26.6, 21), (69.8, 39.0), -0.0),
        ((59.3, 11.2), (39.2, 26.8), 0.0),
    ):
        ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": ink, "linewidth": 1.6})
    show(fig, alt=_LOOP_ORDER)


def _chamber(ax: Any, x: float, y: float, width: float, height: float, colour: str, name: str) -> None:
    ax.add_patch(_rectangle(x, y, width, height, colour, edgecolor="#BBBBBB", linewidth=1))
    ax.text(x + width / 2, y + height - 3.2, name, ha="center", va="center", fontsize=10.5, weight="bold")


def _rectangle(x: float, y: float, width: float, height: float, colour: str, **look: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, facecolor=colour, **{"linewidth": 0, **look})


def tile_grid(tiles: int) -> tuple[int, int]:
    """The grid of tiles of a causal score matrix, `tiles` a side. Returns: how many are computed, and how many of those are masked."""
    fig, (ax,) = panels(1, width=5.6, height=4.3)
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
    for ax, at, what, unit in ((axes[0], 0, "Memory at the peak", "MiB"), (axes[1], 1, "Time, one thread", "seconds")):
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
    fig, (ax,) = panels(1, width=7.2, height=3.9)
    ax.axhline(eager, color=_EAGER, linestyle="--", label=f"eager attention in three kernels: {eager:.1f} MiB")
    ax.axhline(once, color=_FUSED, linestyle=":", label=f"q, k, v and output once: {once:.1f} MiB")
    ax.loglog(held, moved, color=_TILES, marker="o", markersize=5, label="tiles of so many queries, 64 keys")
    for x, y, number in zip(held, moved, queries, strict=True):
        ax.annotate(f"{number:,}", (x, y), (6, 5), textcoords="offset points", fontsize=9, color=_TILES)
    ax.axvline(192, color=COLOURS["grey"], linewidth=1)
    ax.annotate("192 KB", (192, 33), (4, 0), textcoords="offset points", va="center", fontsize=9, color="#555555")
    ax.set(xlabel="fast memory for one tile, KB", ylabel="traffic of one head, MiB", ylim=(0.35, 50), xlim=(20, 900))
    ax.set_xticks((25, 50, 100, 200, 400, 800), ("25", "50", "100", "200", "400", "800"))
    ax.set_yticks((0.5, 1, 2, 4, 8, 16, 32), ("0.5", "1", "2", "4", "8", "16", "32"))
    ax.minorticks_off()
    ax.set_title("The more fast memory, the less traffic (1,024 tokens, d = 64)")
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 0.1))
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
