"""Figures of lesson 14: a row in two tiles, the order of the loops, the grid of tiles, memory and time, traffic, a long text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.figures import COLOURS, panels, show

_EAGER, _TILES, _FUSED = COLOURS["vermillion"], COLOURS["blue"], COLOURS["green"]
_LOOK = {"eager attention": (_EAGER, "s", "-"), "your tiles": (_TILES, "o", "-"), "fused operator": (_FUSED, "^", "--")}


_LOOP_ORDER = (
    "Left, main memory: Q, K, V and O in four tiles each. Right, fast memory: one tile each of q, kᵀ and v, the tile of their scores, "
    "which is used and discarded, and o, m and l, kept until all keys have passed. Then o / l is written to O. Between the two, in neither "
    "of them, a four by four grid of dotted lines: the score matrix, which is never stored. The outer loop runs down its rows, the tiles "
    "of queries, the inner loop along its columns, the tiles of keys and values. One tile of it is framed: the one in fast memory."
)


def two_tiles(scores: np.ndarray, values: np.ndarray, words: Sequence[str]) -> None:
    """exp(score − maximum) of a row of four: each tile relative to its own maximum, then both relative to the larger one."""
    fig, axes = panels(3, width=9.4, height=3.5, ratios=(2, 2, 4))
    tiles = ((slice(0, 2), _TILES, "tile 1"), (slice(2, 4), COLOURS["orange"], "tile 2"))
    said = []
    for ax, (at, colour, name) in zip(axes, tiles, strict=False):
        terms = np.exp(scores[at] - scores[at].max())
        _terms(ax, terms, words[at.start : at.stop], [colour] * 2)
        ax.set_title(f"{name}: m = {_log(scores[at].max())}\nl = {terms.sum():g}, o = {terms @ values[at]:g}")
        said.append(f"{name}: {', '.join(f'{term:g}' for term in terms)}")
    terms = np.exp(scores - scores.max())
    _terms(axes[2], terms, words, [colour for _, colour, _ in tiles for _ in range(2)])
    axes[2].bar(
        range(2), np.exp(scores[:2] - scores[:2].max()), width=0.62, fill=False, edgecolor="#9A9A9A", linestyle=":"
    )
    axes[2].set_title(f"merged: m = {_log(scores.max())}\nl = {terms.sum():g}, o = {terms @ values:g}")
    fig.suptitle("Merged, every bar is relative to the larger maximum: tile 1 shrinks", fontsize=13)
    axes[0].set_ylabel("exp(score − m)")
    show(
        fig,
        alt=f"Bars of exp(score − m). {'; '.join(said)}. Merged, relative to the larger maximum: "
        f"{', '.join(f'{word} {term:g}' for word, term in zip(words, terms, strict=True))}.",
    )


def _log(score: float) -> str:
    return f"ln {np.exp(score):.3g}"


def _terms(ax: Any, terms: np.ndarray, words: Sequence[str], colours: Sequence[str]) -> None:
    ax.bar(range(len(terms)), terms, width=0.62, color=list(colours))
    for at, term in enumerate(terms):
        ax.annotate(f"{term:g}", (at, term), (0, 3), textcoords="offset points", ha="center", fontsize=9)
    ax.set_xticks(range(len(terms)), list(words))
    ax.set(ylim=(0, 1.2), yticks=(0, 0.5, 1))


def loop_order() -> None:
    """Which memory holds what while one tile of queries meets one tile of keys and values, and the order in which tiles come."""
    fig, (ax,) = panels(1, width=9.4, height=5.0)
    ax.set_axis_off()
    ax.set(xlim=(0, 118), ylim=(-6, 57.5))
    ink, wide = "#444444", 7.2
    row, column = 1, 2  # of the tiles that meet
    _chamber(ax, 0.5, -5.5, 38, 62.5, "#FCF6EE", "main memory (HBM):\nlarge, slow")
    _chamber(ax, 80.5, -5.5, 37, 62.5, "#EDF5FB", "fast memory (SRAM):\nsmall, fast")
    _main_memory(ax, row, column, wide, ink)
    _score_matrix(ax, row, column, wide, ink)
    _fast_memory(ax, wide, ink)
    for start, end, y, said in (
        (38.5, 80.5, 46, "Q's tile once, K's and V's in turn"),
        (80.5, 38.5, -3.4, "o / l to O, when all keys have passed"),
    ):
        ax.annotate("", (end, y), (start, y), arrowprops={"arrowstyle": "-|>", "color": ink, "linewidth": 2.2})
        ax.text(59.5, y + 2.3, said, ha="center", va="center", fontsize=9.5, color=ink)
    ax.set_title("A tile of scores lives in fast memory only")
    show(fig, alt=_LOOP_ORDER)


_Q, _K, _V, _O = _TILES, COLOURS["orange"], COLOURS["green"], COLOURS["sky"]


def _main_memory(ax: Any, row: int, column: int, wide: float, ink: str) -> None:
    faint = "#E3E3E3"
    for name, x, lit, colour in (
        ("Q", 4, row, _Q),
        ("K", 12.5, column, _K),
        ("V", 21, column, _V),
        ("O", 29.5, -1, _O),
    ):
        ax.text(x + 2.9, 38.6, name, ha="center", va="center", fontsize=11.5, weight="bold")
        for at in range(4):
            done, coming = name == "O" and at < row, name == "O" and at >= row
            fill = colour if at == lit or done else "none" if coming else faint
            look = {"linewidth": 1.6, "linestyle": "--", "edgecolor": colour} if coming else {}
            said = "done" if done else "now" if coming and at == row else ""
            _tile(ax, x, 28.5 - 8.4 * at, 5.8, wide, fill, said, ink, 8.5, **look)


def _score_matrix(ax: Any, row: int, column: int, wide: float, ink: str) -> None:
    """Between the memories, since it is in neither."""
    left, pitch = 47, 7.6
    for i in range(4):
        for j in range(4):
            framed = {"linewidth": 1.6, "linestyle": "-", "edgecolor": ink}
            dotted = {"linewidth": 0.9, "linestyle": ":", "edgecolor": "#AAAAAA"}
            lit = (i, j) == (row, column)
            box = (left + pitch * j, 28.5 - 7.6 * i + 0.6, pitch - 0.8, wide - 0.4)
            _tile(ax, *box, "none", "s" if lit else "", "black", 11, **(framed if lit else dotted))
    arrow = {"arrowstyle": "-|>", "color": ink, "linewidth": 1.8}
    ax.annotate("", (left + 4 * pitch, 38), (left, 38), arrowprops=arrow)
    ax.text(left + 2 * pitch, 40.4, "inner loop: tiles of K and V", ha="center", va="center", fontsize=9.5, color=ink)
    ax.annotate("", (44.8, 6), (44.8, 36), arrowprops=arrow)
    ax.text(42.2, 21, "outer loop: tiles of Q", ha="center", va="center", rotation=90, fontsize=9.5, color=ink)
    ax.text(left + 2 * pitch, 4.2, "score matrix: never stored", ha="center", va="center", fontsize=9.5, color=ink)


def _fast_memory(ax: Any, wide: float, ink: str) -> None:
    _tile(ax, 93.5, 37, wide, 5.4, _K, "kᵀ", "black")
    _tile(ax, 93.5, 30.4, wide, 5.4, _V, "v", "white")
    _tile(ax, 83.5, 20, 5.8, wide, _Q, "q", "white")
    _tile(ax, 93.5, 20, wide, wide, "white", "s", "black", edgecolor=ink, linewidth=1.6)
    _tile(ax, 104.5, 20, 5.8, wide, _O, "o", "black")
    ax.text(111.3, 23.6, "m, l", ha="left", va="center", fontsize=10.5)
    for x, said in ((97.1, "scores:\nused, then\ndiscarded"), (109.3, "kept until\nall keys\nhave passed")):
        ax.text(x, 13, said, ha="center", va="center", fontsize=9, color=ink)


def _tile(
    ax: Any,
    x: float,
    y: float,
    width: float,
    height: float,
    colour: str,
    name: str,
    ink: str,
    size: float = 11,
    **look: Any,
) -> None:
    ax.add_patch(_rectangle(x, y, width, height, colour, **look))
    ax.text(x + width / 2, y + height / 2, name, ha="center", va="center", fontsize=size, color=ink)


def _chamber(ax: Any, x: float, y: float, width: float, height: float, colour: str, name: str) -> None:
    ax.add_patch(_rectangle(x, y, width, height, colour, edgecolor="#BBBBBB", linewidth=1))
    ax.text(
        x + width / 2, y + height - 5, name, ha="center", va="center", fontsize=10.5, weight="bold", linespacing=1.3
    )


def _rectangle(x: float, y: float, width: float, height: float, colour: str, **look: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, facecolor=colour, **{"linewidth": 0, **look})


def tile_grid(tiles: int) -> tuple[int, int]:
    """The grid of tiles of a causal score matrix, `tiles` a side. Returns: how many are computed, and how many of those are masked."""
    fig, (ax,) = panels(1, width=5.6, height=3.6)
    row, column = np.indices((tiles, tiles))
    kind = np.select([column < row, column == row], [0, 1], 2)
    look = (("#A9CCE6", "", "computed"), ("#F3C892", "////", "computed and masked"), ("#DEDEDE", "", "skipped"))
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
        (axes[1], 1, "Processor time on one thread: about T²", "seconds"),
    ):
        for way, by_length in taken.items():
            lengths = np.array(list(by_length))
            numbers = np.array([by_length[t][at] for t in by_length])
            slope = float(np.polyfit(np.log(lengths[-3:]), np.log(numbers[-3:]), 1)[0])
            colour, marker, line = next(look for name, look in _LOOK.items() if way.startswith(name))
            ax.loglog(
                lengths, numbers, color=colour, marker=marker, markersize=4, linestyle=line, label=f"{way}: {slope:.1f}"
            )
            said.append(f"{what} of {way}: {numbers[-1]:.3g} {unit} at {lengths[-1]} tokens, slope {slope:.1f}")
            if at == 0:
                slopes[way] = slope
        every = sorted({t for by_length in taken.values() for t in by_length})
        ax.set_xticks(every, [f"{t:,}" for t in every])
        ax.minorticks_off()
        ax.set(xlabel="tokens T (a curve ends where a call gets slow)", ylabel=unit)
        ax.set_title(what)
        ax.legend(
            frameon=False, fontsize=8.5, loc="lower right", title="slope of the last three points", title_fontsize=8.5
        )
        low, high = ax.get_ylim()
        ax.set_ylim(low / (5 if at == 0 else 1.5), high)
    show(fig, alt="; ".join(said) + ".")
    return slopes


def traffic(queries: Sequence[int], held: Sequence[float], moved: Sequence[float], kernels: float, once: float) -> None:
    """MiB to and from main memory by the fast memory (KB) that a tile of so many queries takes; two levels to compare with."""
    fig, (ax,) = panels(1, width=7.6, height=4.0)
    ax.axhline(kernels, color=_EAGER, linestyle="--")
    ax.axhline(once, color=_FUSED, linestyle=":")
    ax.loglog(held, moved, color=_TILES, marker="o", markersize=5)
    for x, y, number in zip(held, moved, queries, strict=True):
        to, side = ((6, 5), "left") if x > 163 else ((-6, -11), "right")
        ax.annotate(f"{number:,}", (x, y), to, textcoords="offset points", fontsize=9, color=_TILES, ha=side)
    ax.axvline(163, color=COLOURS["grey"], linewidth=1)
    for x, y, said, colour in (
        (21, 1.7, "so many queries in\na tile of 64 keys", _TILES),
        (175, 9.4, f"three kernels (lesson 11): {kernels:.1f} MiB", _EAGER),
        (21, 0.55, f"q, k, v and output once: {once:.1f} MiB", _FUSED),
        (175, 24, "163 KB, what a program\ncan have on an A100", "#555555"),
    ):
        ax.text(x, y, said, color=colour, fontsize=9, va="bottom", linespacing=1.3)
    ax.set(xlabel="fast memory for one tile, KB", ylabel="traffic of one head, MiB", ylim=(0.35, 50), xlim=(20, 1000))
    ax.set_xticks((25, 50, 100, 200, 400, 800), ("25", "50", "100", "200", "400", "800"))
    ax.set_yticks((0.5, 1, 2, 4, 8, 16, 32), ("0.5", "1", "2", "4", "8", "16", "32"))
    ax.minorticks_off()
    ax.set_title("With 64 keys per tile: the more queries, the less traffic (1,024 tokens, d = 64)")
    said = ", ".join(
        f"{number:,} queries: {x:.0f} KB, {y:.1f} MiB" for number, x, y in zip(queries, held, moved, strict=True)
    )
    show(
        fig,
        alt=f"Traffic against fast memory, both axes logarithmic; it falls. {said}. "
        f"Three kernels: {kernels:.1f} MiB; once: {once:.1f} MiB.",
    )


def written(word: str, queries: int, t: int) -> np.ndarray:
    """Places (queries,) in a text of t tokens that draw a word, where a query's number is the height and its place the width."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 2), dpi=50)
    fig.text(0.5, 0.5, "\u2009".join(word), fontsize=60, weight="bold", ha="center", va="center", family="DejaVu Sans")
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    ink = np.asarray(canvas.buffer_rgba())[..., 0] < 128
    inked = np.flatnonzero(ink.any(axis=0))
    ink = ink[ink.mean(axis=1) > 0.1, inked[0] : inked[-1] + 1]  # without the rows that only a round letter reaches
    places = []
    for query in range(queries):
        columns = np.flatnonzero(ink[query * len(ink) // queries])
        spread = query * 0.618034 % 1 * len(columns)  # the golden ratio fills a row evenly
        places.append((0.04 + 0.9 * (columns[int(spread)] + spread % 1) / ink.shape[1]) * t)
    return np.array(places, dtype=np.int64)


def found(places: np.ndarray, t: int, tile: int) -> None:
    """The score matrix of t tokens to scale, with one of its tiles; and the place that each of its last queries has found."""
    fig, (whole, strip) = panels(2, width=9.6, height=3.1, ratios=(1, 2.3))
    gib, mib = t * t * 4 / 2**30, tile * tile * 4 / 2**20
    whole.imshow([[0]], cmap="Greys", vmin=-0.4, vmax=2, extent=(0, t, t, 0))
    whole.axhspan(t - len(places), t, color=_TILES, linewidth=0)
    left = t // 2 // tile * tile
    whole.add_patch(_rectangle(left, t - tile, tile, tile, COLOURS["orange"], zorder=3))
    arrow = {"arrowstyle": "->", "color": "#444444", "shrinkB": 1}
    whole.annotate(
        f"one tile: {mib:.0f} MiB", (left + tile / 2, t - tile), (0.5 * t, 0.7 * t), ha="center", arrowprops=arrow
    )
    whole.text(t / 2, 0.33 * t, f"never stored:\n{gib:.0f} GiB", ha="center", va="center", fontsize=12)
    whole.set(xticks=(0, t), yticks=(0, t), xlabel="key position", ylabel="query position", xlim=(0, t), ylim=(t, 0))
    whole.set_xticklabels(("0", f"{t:,}"), ha="center")
    whole.set_yticklabels(("0", f"{t:,}"))
    whole.grid(visible=False)
    whole.set_title("The score matrix, to scale")
    strip.plot(places, np.arange(len(places)) + t - len(places), ".", markersize=3.5, color=_TILES)
    strip.set(
        xlim=(0, t),
        ylim=(t + 40, t - len(places) - 40),
        xlabel="place of the key that was found",
        ylabel="query position",
    )
    strip.set_xticks(np.arange(0, t + 1, 32768), [f"{one:,}" for one in range(0, t + 1, 32768)])
    strip.set_yticks((t - len(places), t), (f"{t - len(places):,}", f"{t:,}"))
    strip.set_title(f"The blue strip: {len(places):,} queries, and what each has found")
    show(
        fig,
        alt=f"Left, a gray square, the score matrix of {t:,} tokens, {gib:.0f} GiB, never stored; along its lower edge a thin strip, the "
        f"last {len(places):,} queries, and in it a speck, one tile of {mib:.0f} MiB. Right, a point for each of these queries, at the "
        "place of the key that it has found. The points write the word FLASH.",
    )
