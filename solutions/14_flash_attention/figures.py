"""Figures of lesson 14: a row in two tiles, the grid of tiles, memory and time against length, what was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.figures import COLOURS, panels, show

_TABLE, _TILES, _FUSED = COLOURS["vermillion"], COLOURS["blue"], COLOURS["green"]
_LOOK = {"explicit scores": (_TABLE, "s", "-"), "your tiles": (_TILES, "o", "-"), "fused operator": (_FUSED, "^", "--")}


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


def tile_grid(tiles: int) -> tuple[int, int]:
    """The grid of tiles of a causal table, `tiles` a side. Returns: how many are computed, and how many of those are masked."""
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


def published(standard: Mapping[str, float], flash: Mapping[str, float]) -> None:
    """Two implementations in published numbers, by quantity; every quantity relative to the first implementation's."""
    fig, axes = panels(len(standard), width=9.0, height=2.3)
    for ax, name in zip(axes, standard, strict=True):
        ax.barh(["standard", "FlashAttention"], [standard[name], flash[name]], color=[_TABLE, _FUSED], height=0.55)
        for row, number in enumerate((standard[name], flash[name])):
            ax.annotate(f"{number:g}", (number, row), (4, 0), textcoords="offset points", va="center", fontsize=9)
        ax.set(xlim=(0, 1.25 * max(standard[name], flash[name])), xlabel=name)
        ax.invert_yaxis()
        if ax is not axes[0]:
            ax.set_yticks([])
        ax.set_title(f"{100 * flash[name] / standard[name]:.0f} % of the standard way's")
    show(
        fig,
        alt="; ".join(f"{name}: standard {standard[name]:g}, FlashAttention {flash[name]:g}" for name in standard)
        + ".",
    )
