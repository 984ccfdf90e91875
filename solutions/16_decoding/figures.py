"""Figures of lesson 16: repeated work, what caches take, chunks, shared heads, prefill and decode in time, windows, a roofline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.figures import COLOURS, matrix, panels, show

KINDS = ("blue", "orange", "green", "purple", "sky", "vermillion")


def passes(t: int = 8) -> None:
    """Which tokens go through the model at each step, without a cache and with one."""
    again = np.tri(t)
    fig, axes = panels(2, width=8.2, height=3.7)
    titles = f"without a cache: {t * (t + 1) // 2} tokens computed", f"with a cache: {t} computed, the pale ones kept"
    for ax, cells, title in zip(axes, (again, np.eye(t)), titles, strict=True):
        shown = cells + 0.35 * (again - cells)  # pale: kept, and not computed again
        matrix(np.where(again > 0, shown, 0), title, ax=ax, xlabel="token", ylabel="step", fmt="")
        for text in ax.texts:
            text.set_visible(False)
    axes[1].set_ylabel("")
    show(
        fig,
        alt=f"Two triangles of {t} steps. Without a cache step t computes all t tokens, {t * (t + 1) // 2} in all; with a cache "
        f"it computes only the newest, {t} in all, and the others are kept.",
    )


def sizes(kib_a_token: Mapping[str, float]) -> None:
    """Bars of what one token takes in the cache of each model."""
    names, heights = list(kib_a_token), list(kib_a_token.values())
    fig, (ax,) = panels(1, width=8.2, height=2.6)
    drawn = ax.barh(range(len(names)), heights, color=COLOURS["blue"], height=0.6)
    ax.bar_label(drawn, [f"{height:,.1f} KiB" for height in heights], padding=4, fontsize=9.5)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.18 * max(heights)), xlabel="KiB per token, in 16 bits")
    ax.grid(False, axis="y")
    ax.set_title("A token's keys and values take less where heads share them")
    show(fig, alt="Horizontal bars: " + ", ".join(f"{n} {h:,.1f} KiB per token" for n, h in kib_a_token.items()) + ".")


def strips(chunks: Sequence[int]) -> None:
    """The causal table of one run, each row painted by the append that computes it."""
    from matplotlib.patches import Patch

    t = sum(chunks)
    fig, (ax,) = panels(1, width=5.6, height=4.4)
    start, legend = 0, []
    for i, chunk in enumerate(chunks):
        paint = COLOURS[KINDS[i % len(KINDS)]]
        for row in range(start, start + chunk):
            ax.barh(row, row + 1, left=-0.5, height=0.92, color=paint, alpha=0.85)
        legend.append(Patch(color=paint, label=f"{chunk} quer{'y' if chunk == 1 else 'ies'}, {start + chunk} keys"))
        start += chunk
    ax.set(xlim=(-0.5, t - 0.5), ylim=(t - 0.5, -0.5), xlabel="key position", ylabel="query position")
    ax.grid(False)
    ax.legend(handles=legend, frameon=False, loc="upper right")
    ax.set_title("One causal table, computed in strips")
    said = "; ".join(patch.get_label() for patch in legend)
    show(fig, alt=f"A lower triangle of {t} by {t}, cut into horizontal strips, one for each append: {said}.")


def sharing(heads: int = 6) -> None:
    """Which KV head each query head reads: one each, groups, one for all."""
    counts = (heads, heads // 2, 1)
    names = ("multi-head: one each", "grouped: pairs share", "multi-query: all share")
    fig, axes = panels(3, width=8.8, height=3.0)
    for ax, kv, title in zip(axes, counts, names, strict=True):
        ax.set_axis_off()
        ax.set(xlim=(-0.7, heads - 0.3), ylim=(-0.85, 1.8))
        places = [(2 * g + 1) * heads / kv / 2 - 0.5 for g in range(kv)]
        for h in range(heads):
            g = h // (heads // kv)
            paint = COLOURS[KINDS[g % len(KINDS)]]
            ax.plot([h, places[g]], [1, 0], color=paint, linewidth=1.8, zorder=1)
            ax.plot(h, 1, "o", color=paint, markersize=17)
            ax.text(h, 1, h, ha="center", va="center", color=_on(paint), fontsize=11)
        for g, x in enumerate(places):
            paint = COLOURS[KINDS[g % len(KINDS)]]
            ax.plot(x, 0, "s", color=paint, markersize=18)
            ax.text(x, 0, g, ha="center", va="center", color=_on(paint), fontsize=11)
        ax.text((heads - 1) / 2, 1.5, "query heads", ha="center", color="#555555", fontsize=11)
        ax.text((heads - 1) / 2, -0.55, "KV heads, in the cache", ha="center", color="#555555", fontsize=11)
        ax.set_title(title)
    show(
        fig,
        alt=f"{heads} query heads above, KV heads below, lines between them. Left: each query head has its own. Middle: "
        f"heads 0 and 1 share KV head 0, heads 2 and 3 share 1, and so on. Right: all share one.",
    )


def _on(colour: str) -> str:
    """What is written on it: blue alone is too dark for black."""
    return "white" if colour == COLOURS["blue"] else "black"


def windows(masks: Mapping[str, Any]) -> None:
    """Masks side by side, each with how many keys its last query sees."""
    fig, axes = panels(len(masks), width=8.8, height=3.5)
    said = []
    for ax, (name, mask) in zip(axes, masks.items(), strict=True):
        mask = np.asarray(mask, dtype=float)
        matrix(mask, f"{name}\nthe last query sees {int(mask[-1].sum())}", ax=ax, fmt="")
        for text in ax.texts:
            text.set_visible(False)
        while len(ax.figure.axes) > len(axes):
            ax.figure.axes[-1].remove()  # True and False need no scale
        said.append(f"{name}: {', '.join(str(int(row.sum())) for row in mask)} keys by row")
    for ax in axes[1:]:
        ax.set_ylabel("")
    show(fig, alt="Masks with blue where a query may look. " + "; ".join(said) + ".")


def one_more(times: Mapping[int, Mapping[str, float]]) -> None:
    """Milliseconds for one more token against the length of the text, both logarithmic. times: by length, then by way."""
    lengths = list(times)
    fig, (ax,) = panels(1, width=6.8, height=3.5)
    last, said = [], []
    for name, marker, paint in zip(times[lengths[0]], "os", ("orange", "blue"), strict=True):
        values = [times[n][name] for n in lengths]
        ax.plot(lengths, values, marker + "-", color=COLOURS[paint], label=name, markersize=5)
        last.append(values[-1])
        said.append(f"{name} from {values[0]:.2f} to {values[-1]:.2f} ms")
    ax.set(xscale="log", yscale="log", xlabel="tokens before it", ylabel="ms for one more token")
    ax.set_xticks(lengths, [f"{n:,}" for n in lengths])
    bottom, top = ax.get_ylim()
    ticks = [tick for power in range(-3, 5) for tick in (10.0**power, 3 * 10.0**power) if bottom <= tick <= top]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.legend(frameon=False)
    ax.set_title(f"After {lengths[-1]:,} tokens one more takes {last[0]:.0f} ms, with a cache {last[1]:.1f} ms")
    show(
        fig,
        alt=f"Time of one more token against the number of tokens before it, {lengths[0]} to {lengths[-1]}: {'; '.join(said)}.",
    )


def timeline(steps: Mapping[str, Sequence[float]], prompt: int) -> None:
    """The beginning of an answer on a line of time, a box for each call of the model; the last way's calls are all there.

    steps: by way, first without a cache, then with one, the milliseconds of its calls, in order.
    """
    from matplotlib.patches import Rectangle

    fig, (ax,) = panels(1, width=8.6, height=3.3)
    said, until = [], 1.32 * sum(list(steps.values())[-1])
    for row, (name, times) in enumerate(steps.items()):
        cached, ends = row == len(steps) - 1, np.cumsum(times)
        for i, (ms, end) in enumerate(zip(times, ends, strict=True)):
            if end - ms < until:
                paint = COLOURS["blue" if cached and i else "orange"]
                ax.add_patch(
                    Rectangle((end - ms, row - 0.22), ms, 0.44, facecolor=paint, edgecolor="white", linewidth=1)
                )
        seen = int(np.sum(ends < 0.97 * until))
        for i in (0, seen - 1) if cached else range(seen):
            ax.plot([ends[i]] * 2, [row - 0.3, row + 0.22], color="#222222", linewidth=1.4)
            ax.text(ends[i], row - 0.33, f"token {i + 1}", ha="center", va="bottom", fontsize=9)
        middle = {"ha": "center", "va": "top", "fontsize": 9.5}
        if cached:
            ax.text(times[0] / 2, row + 0.28, "prefill", color="#8A5A00", **middle)
            ax.text((ends[0] + ends[-1]) / 2, row + 0.28, "decode: one token a call", color=COLOURS["blue"], **middle)
        else:
            ax.text(
                0.005 * until,
                row + 0.28,
                "reads the whole text for each token",
                color="#8A5A00",
                va="top",
                fontsize=9.5,
            )
            box = {"facecolor": "white", "edgecolor": "none", "pad": 2}
            words = f"… token {len(times)} after {ends[-1]:,.0f} ms →"
            ax.text(0.995 * until, row, words, ha="right", va="center", fontsize=9, bbox=box)
        said.append(f"{name}: token 1 after {ends[0]:.1f} ms, token {len(times)} after {ends[-1]:.0f} ms")
    ax.set_yticks(range(len(steps)), list(steps))
    ax.set(
        xlim=(0, until),
        ylim=(len(steps) - 0.42, -0.62),
        xlabel=f"milliseconds since the prompt of {prompt:,} tokens arrived",
    )
    ax.grid(False, axis="y")
    ax.set_title("With a cache the prompt is read once")
    show(
        fig,
        alt=f"Two rows of boxes on an axis of time, a box for each call of the model. {'; '.join(said)}. With the cache one long box, "
        "prefill, is followed by many narrow ones, decode; without it every box is as long as the first.",
    )


def roof(peak: float, bandwidth: float, steps: Mapping[str, tuple[float, float]]) -> None:
    """Steps on one GPU's roofline. peak: operations a second. bandwidth: bytes a second. steps: operations and bytes of each."""
    fig, (ax,) = panels(1, width=7.6, height=3.7)
    intensity = np.logspace(-0.5, 5, 200)
    ax.loglog(intensity, np.minimum(peak, bandwidth * intensity) / 1e12, color=COLOURS["grey"], linewidth=2)
    said = []
    for i, (name, (operations, moved)) in enumerate(steps.items()):
        x = operations / moved
        y = min(peak, bandwidth * x) / 1e12
        ax.plot(x, y, "o", color=COLOURS[KINDS[i % len(KINDS)]], markersize=9)
        where = {"ha": "right", "xytext": (-9, 6)} if 3 < x < peak / bandwidth else {"ha": "left", "xytext": (9, -9)}
        ax.annotate(name, (x, y), textcoords="offset points", va="center", fontsize=9.5, **where)
        said.append(f"{name}: {x:,.1f} operations a byte, {y:,.1f} TFLOP/s")
    ridge = peak / bandwidth
    ax.axvline(ridge, color=COLOURS["grey"], linestyle=":", linewidth=1)
    ax.annotate(f"{ridge:.0f}", (ridge, 0.7), (5, 0), textcoords="offset points", fontsize=9.5)
    ax.set(
        xlabel="operations for each byte moved", ylabel="TFLOP/s at most", xlim=(0.5, 1e5), ylim=(0.6, 3 * peak / 1e12)
    )
    ax.set_title("A token waits for memory, a prompt for arithmetic")
    show(
        fig, alt=f"Roofline of an A100, with its bend at {ridge:.0f} operations a byte. On it " + "; ".join(said) + "."
    )
