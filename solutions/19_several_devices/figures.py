"""Figures of lesson 19: heads over two ranks, chunks on their way around the ring, what each process holds, who waits in a causal ring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.figures import COLOURS, panels, show

_INK = "#444444"
_CHUNKS = [COLOURS[name] for name in ("blue", "orange", "green", "purple")]
_PALE = {"blue": "#CFE3F1", "orange": "#FBE6B8"}

_HEADS = (
    "Two ranks side by side, four heads. The input x, the same on both, enters at the top. Rank 0 has the rows of q, k and v that belong "
    "to heads 0 and 1, and the columns 0 and 1 of proj; rank 1 has those of heads 2 and 3. Each rank goes its own way: its rows of qkv, "
    "attention of its two heads, its columns of proj, and a part of the output. No arrow leads from one rank to the other, until at the "
    "bottom one all-reduce adds both parts, and both ranks have the whole output."
)


def heads_over_ranks() -> None:
    """The weights of a module with four heads on two ranks, and the one place where these meet."""
    fig, (ax,) = panels(1, width=7.8, height=4.9)
    ax.set_axis_off()
    ax.set(xlim=(0, 100), ylim=(0, 67))
    _box(ax, 27, 61, 46, 5, "#F1F1F1", "x: all tokens, the same on every rank", weight="bold")
    for rank, (left, name) in enumerate(((2, "blue"), (54, "orange"))):
        pale, first = _PALE[name], 2 * rank
        _box(ax, left, 9.5, 44, 47.5, "none", "", edgecolor=COLOURS[name], linewidth=1.4)
        ax.text(left + 30.2, 53.3, f"rank {rank}", fontsize=11, weight="bold", ha="center", va="center", color=_INK)
        _arrow(ax, (37 if rank == 0 else 63, 61), (left + 22, 57.2))
        _cut(ax, left + 3, 38.2, "rows", first, name)
        _box(ax, left + 19, 43, 22.5, 5.4, pale, "q, k, v of two heads")
        _arrow(ax, (left + 14.5, 45.7), (left + 18.7, 45.7))
        _box(ax, left + 19, 32.5, 22.5, 5.4, pale, f"attention: heads {first}, {first + 1}")
        _arrow(ax, (left + 30.2, 43), (left + 30.2, 38.2))
        _cut(ax, left + 3, 14.5, "columns", first, name)
        _box(ax, left + 19, 20.5, 22.5, 5.4, pale, "a part of the output")
        _arrow(ax, (left + 30.2, 32.5), (left + 30.2, 26.2))
        _arrow(ax, (left + 14.5, 23.2), (left + 18.7, 23.2))
        _arrow(ax, (left + 30.2, 20.5), (40 if rank == 0 else 66, 6.3))
    _box(ax, 22, 0.8, 56, 5.4, "#F1F1F1", "all-reduce: both parts added, on both ranks", weight="bold")
    ax.set_title("Heads over ranks: no rank needs another before the last sum")
    show(fig, alt=_HEADS)


def _cut(ax: Any, x: float, y: float, along: str, first: int, name: str) -> None:
    """A rank's own stripes of a weight: of qkv rows in each of q, k and v, of proj columns."""
    if along == "rows":
        for part, label in enumerate("qkv"):
            top = y + 11.2 - 5.6 * part
            for head in range(4):
                own = head in (first, first + 1)
                _box(ax, x, top + 3.6 - 1.2 * head, 11, 1.2, COLOURS[name] if own else "#EDEDED", "", edgecolor="white")
            ax.text(x - 1.2, top + 2.4, label, ha="center", va="center", fontsize=9.5, color=_INK)
        ax.text(x + 5.5, y - 1.6, "rows of qkv", ha="center", va="center", fontsize=9, color=_INK)
        return
    for head in range(4):
        own = head in (first, first + 1)
        _box(ax, x + 2.75 * head, y + 3.2, 2.75, 11, COLOURS[name] if own else "#EDEDED", "", edgecolor="white")
    ax.text(x + 5.5, y + 1.3, "columns of proj", ha="center", va="center", fontsize=9, color=_INK)


def ring_steps(world_size: int = 4) -> list[list[int]]:
    """Which chunk of keys and values each rank has at each step. Returns: the chunks by rank, then by step."""
    held = [[(rank - step) % world_size for step in range(world_size)] for rank in range(world_size)]
    fig, (ax,) = panels(1, width=7.6, height=3.9)
    for rank, row in enumerate(held):
        for step, chunk in enumerate(row):
            _box(
                ax,
                step - 0.3,
                rank - 0.29,
                0.6,
                0.58,
                _CHUNKS[chunk],
                f"k, v of\nchunk {chunk}",
                ink=_on(_CHUNKS[chunk]),
            )
            if step < world_size - 1:
                to = (rank + 1) % world_size
                way = {"color": _CHUNKS[chunk], "linewidth": 1.8}
                if to > rank:
                    _arrow(ax, (step + 0.31, rank + 0.1), (step + 0.69, to - 0.1), **way)
                else:  # from the last rank to rank 0, out below and in above
                    _arrow(ax, (step + 0.31, rank + 0.1), (step + 0.52, rank + 0.5), **way)
                    _arrow(ax, (step + 0.48, -0.55), (step + 0.69, -0.12), **way)
                    if step == 0:
                        ax.text(0.44, -0.5, f"from rank {rank}", ha="right", va="center", fontsize=9, color=_INK)
                        ax.text(0.57, rank + 0.5, f"to rank {to}", ha="left", va="center", fontsize=9, color=_INK)
    ax.set(
        xlim=(-0.5, world_size - 0.5),
        ylim=(world_size - 0.38, -0.62),
        xticks=range(world_size),
        yticks=range(world_size),
        xlabel="step",
    )
    ax.set_yticklabels([f"rank {rank}\nq of chunk {rank}" for rank in range(world_size)])
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.set_title("Queries stay, keys and values go around: every query meets every key")
    said = "; ".join(f"rank {rank}: " + ", ".join(map(str, row)) for rank, row in enumerate(held))
    show(
        fig,
        alt=f"A table of {world_size} ranks by {world_size} steps, an arrow from each cell to the next rank at the next step, from the "
        f"last rank to rank 0. The chunk of keys and values that is there, step by step: {said}.",
    )
    return held


def ring_timeline(order: str, pieces: Sequence[Sequence[int]], until: float | None = None) -> float:
    """A causal ring in time: when each rank works, and when it waits for the slowest one.

    order: what this way to give the text to ranks is called. pieces: which pieces of the text each rank has, numbered in the order of
    the text and of one length. until: where the axis of time ends, if it ends later.
    Returns: how long all steps take; 1 is a chunk of queries with a chunk of keys, unmasked.
    """
    fig, (ax,) = panels(1, width=8.2, height=2.9)
    work, ranks, start = _work(pieces), len(pieces), 0.0
    for step in range(ranks):
        span = work[:, step].max()
        for rank in range(ranks):
            busy, chunk = work[rank, step], (rank - step) % ranks
            if busy:
                _bar(ax, start, rank, busy, _CHUNKS[chunk], str(chunk))
            if span > busy:
                _bar(ax, start + busy, rank, span - busy, "#F4F4F4", "waits", hatch="////")
        start += span
        ax.axvline(start, color="#888888", linewidth=0.9)
    ax.set_title(f"{order}: {start:g} units of time, ranks busy for {100 * work.sum() / (start * ranks):.0f} % of it")
    has = [f"chunk {own[0]}" if len(own) == 1 else f"pieces {', '.join(map(str, own))}" for own in pieces]
    ax.set_yticks(range(ranks), [f"rank {rank}: {own}" for rank, own in enumerate(has)])
    ax.set(xlim=(0, max(start, until or 0)), ylim=(ranks - 0.5, -0.5))
    ax.set_xlabel("time; 1 is a chunk of queries with a chunk of keys, unmasked (in the bars: whose keys)")
    ax.grid(False)
    steps = "; ".join(f"rank {rank} works {', '.join(f'{part:g}' for part in work[rank])}" for rank in range(ranks))
    show(fig, alt=f"{order}, in the steps one after another: {steps}; all wait for the slowest, {start:g} in all.")
    return float(start)


def _work(pieces: Sequence[Sequence[int]]) -> np.ndarray:
    """(ranks, steps): the part of a chunk's square of scores that a causal mask leaves, when hidden tiles are skipped.

    A tile on the diagonal counts half, which is what is left of it in fine tiles.
    """
    ranks = len(pieces)
    each = len(pieces[0])
    work = np.zeros((ranks, ranks))
    for rank in range(ranks):
        for step in range(ranks):
            keys = pieces[(rank - step) % ranks]
            pairs = sum(1.0 if key < query else 0.5 if key == query else 0.0 for query in pieces[rank] for key in keys)
            work[rank, step] = pairs / each**2
    return work


def skyline(peaks: Mapping[int, float]) -> None:
    """MiB that each process holds at its peak, a tower for each process. peaks: by the number of processes that share the text."""
    fig, (ax,) = panels(1, width=8.4, height=3.5)
    left, ticks, most = 0.0, [], max(peaks.values())
    for (processes, mib), colour in zip(peaks.items(), ("vermillion", "orange", "blue", "green"), strict=False):
        width = processes * 1.12 - 0.12
        for one in range(processes):
            ax.bar(left + one * 1.12 + 0.5, mib, width=1.0, color=COLOURS[colour])
        said = f"{mib:.0f} MiB" if processes == 1 else f"{mib:.0f} MiB each"
        ax.text(left + width / 2, mib + 0.02 * most, said, ha="center", va="bottom", fontsize=10)
        ticks.append((left + width / 2, "1 process" if processes == 1 else f"{processes} processes"))
        left += width + 1.0
    ax.set_xticks([at for at, _ in ticks], [name for _, name in ticks])
    ax.set(ylabel="MiB beside the inputs, at the peak", ylim=(0, 1.12 * most), xlim=(-0.6, left - 0.4))
    ax.grid(visible=False, axis="x")
    last = max(peaks)
    ax.set_title(
        f"Scores shrink like 1/N²: {last} processes need {peaks[last] / peaks[1]:.0%} of the memory each that one needs"
    )
    told = "; ".join(f"{processes}: {mib:.0f} MiB each" for processes, mib in peaks.items())
    show(
        fig, alt=f"Towers, one a process, as high as what it holds at its peak. Processes that share the text: {told}."
    )


def _bar(ax: Any, left: float, row: int, width: float, colour: str, label: str, **look: Any) -> None:
    ax.barh(
        row,
        width,
        left=left,
        height=0.72,
        color=colour,
        edgecolor="#B5B5B5" if look else "white",
        linewidth=0.8,
        **look,
    )
    text = ax.text(left + width / 2, row, label, ha="center", va="center", fontsize=9, color=_on(colour))
    if look:
        text.set_bbox({"facecolor": "#F4F4F4", "edgecolor": "none", "pad": 1.2})


def _on(colour: str) -> str:
    """What is written on it: blue alone is too dark for black."""
    return "white" if colour == COLOURS["blue"] else "black"


def _box(
    ax: Any,
    x: float,
    y: float,
    width: float,
    height: float,
    colour: str,
    label: str,
    ink: str = "black",
    weight: str = "normal",
    **look: Any,
) -> None:
    from matplotlib.patches import Rectangle

    ax.add_patch(
        Rectangle((x, y), width, height, facecolor=colour, **{"linewidth": 0.6, "edgecolor": "#B5B5B5", **look})
    )
    ax.text(x + width / 2, y + height / 2, label, ha="center", va="center", fontsize=9, color=ink, weight=weight)


def _arrow(ax: Any, start: tuple[float, float], end: tuple[float, float], **look: Any) -> None:
    arrow = {"arrowstyle": "-|>", "color": _INK, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0, **look}
    ax.annotate("", end, start, arrowprops=arrow, annotation_clip=False)
