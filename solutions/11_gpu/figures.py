"""Figures of lesson 11: where time goes on a processor. What is measured is measured in the lesson's cells and handed over."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from grader.figures import COLOURS, panels, show

_EXPLICIT, _FUSED, _OTHER = COLOURS["vermillion"], COLOURS["blue"], COLOURS["grey"]
_LOOK = {"explicit": _EXPLICIT, "fused": _FUSED, "projections": _OTHER}


def device() -> torch.device:
    """The best device that is here."""
    names = [name for name, here in (("cuda", torch.cuda), ("mps", torch.backends.mps)) if here.is_available()]
    return torch.device((names or ["cpu"])[0])


def name() -> str:
    """The device in words: its model for CUDA, the processor and the number of threads otherwise."""
    kind = device().type
    if kind == "cuda":
        return f"cuda ({torch.cuda.get_device_name()})"
    if kind == "mps":
        return f"mps ({platform.machine()})"
    threads = torch.get_num_threads()
    return f"cpu ({platform.machine()}, {threads} thread{'s' if threads > 1 else ''})"


def numbers_in_memory(num_heads: int = 8, d_head: int = 64) -> None:
    """Bytes of q, k, v and output against those of the scores, computed."""
    lengths = 2 ** np.arange(7, 16)
    ends, scores = 16 * num_heads * lengths * d_head, 4 * num_heads * lengths**2
    fig, (ax,) = panels(1, width=6.0, height=3.3)
    ax.loglog(lengths, scores / 2**20, color=_EXPLICIT, marker="o", markersize=4, label="scores (T, T): slope 2")
    ax.loglog(lengths, ends / 2**20, color=_FUSED, marker="s", markersize=4, label="q, k, v and output: slope 1")
    ax.set(xlabel="tokens T", ylabel="MiB in float32")
    _tick_lengths(ax, lengths)
    ax.set_title(f"Only the scores grow with T² ({num_heads} heads of {d_head})")
    ax.legend(frameon=False)
    show(
        fig,
        alt=f"Memory against tokens, both axes logarithmic. At 8192 tokens the scores take {scores[6] / 2**20:.0f} MiB, "
        f"the four other tensors together {ends[6] / 2**20:.0f} MiB.",
    )


def _tick_lengths(ax: Any, lengths: Any) -> None:
    ax.set_xticks(list(lengths), [str(int(length)) for length in lengths])
    ax.minorticks_off()


def hierarchy() -> None:
    """The memories of an A100, small and fast above large and slow, and tiles of q, k and v on their way."""
    fig, (ax,) = panels(1, width=8.8, height=3.9)
    ax.set(xlim=(0, 100), ylim=(0, 62))
    ax.axis("off")
    for x, y, width, height, colour, words in (
        (12, 40, 26, 19, "#D9ECF8", "on-chip memory (SRAM)\n20 MB in all, 19 TB/s"),
        (2, 4, 46, 24, "#FBE6D2", "the GPU's main memory (HBM)\n40 GB, 1.5 TB/s"),
    ):
        ax.add_patch(_box(x, y, width, height, colour))
        ax.text(x + width / 2, y + height / 2, words, ha="center", va="center", fontsize=10)
    ax.annotate("", (25, 39), (25, 29), arrowprops={"arrowstyle": "<|-|>", "color": "#555555", "linewidth": 2})
    ax.text(27, 34, "every number that is not\non the chip has to come this way", fontsize=9, va="center")
    for at, (letter, rows, colour) in enumerate((("q", 4, _EXPLICIT), ("k", 4, _FUSED), ("v", 4, COLOURS["green"]))):
        x = 60 + 13 * at
        for row in range(rows):
            lit = row == (1 if letter == "q" else 2)
            ax.add_patch(_box(x, 42 - 9 * row, 9, 8, colour if lit else "#EEEEEE"))
        ax.text(x + 4.5, 53, letter, ha="center", fontsize=11, fontweight="bold")
    ax.text(
        78.5,
        8.5,
        "One tile of q meets one tile of k and v after the other. Scores\nand weights of the two tiles live and die on the "
        "chip;\nonly a running maximum, a running sum and the output stay.",
        ha="center",
        va="center",
        fontsize=9,
    )
    ax.set_title("Two memories, and tiles small enough for the fast one")
    show(
        fig,
        alt="Left: an A100's on-chip memory, 20 MB at 19 TB/s, above its main memory, 40 GB at 1.5 TB/s. Right: q, k and v cut "
        "into four tiles each; one tile of q is lit, and one of k and v.",
    )


def _box(x: float, y: float, width: float, height: float, colour: str) -> Any:
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch(
        (x, y), width, height, boxstyle="round,pad=0.2", facecolor=colour, edgecolor="white", linewidth=1
    )


def share_of_work(attention_flops: Callable[..., float], d_model: int = 512, num_heads: int = 8) -> None:
    """Operations of the projections and of causal attention, by length."""
    lengths = 2 ** np.arange(7, 15)
    attention = [attention_flops(1, num_heads, int(t), int(t), d_model // num_heads, causal=True) for t in lengths]
    projections = 8 * lengths * d_model**2
    fig, (ax,) = panels(1, width=6.0, height=3.3)
    ax.loglog(lengths, projections, color=_OTHER, linestyle="--", label="the four projections: slope 1")
    ax.loglog(lengths, attention, color=_FUSED, marker="o", markersize=4, label="causal attention: slope 2")
    ax.axvline(4 * d_model, color=COLOURS["green"], linestyle=":", label=f"T = 4 · d_model = {4 * d_model}")
    ax.set(xlabel="tokens T", ylabel="operations")
    _tick_lengths(ax, lengths)
    ax.set_title("From T = 4 · d_model on, attention is the larger part")
    ax.legend(frameon=False)
    show(
        fig,
        alt=f"Operations against tokens for d_model {d_model}: the projections lead until T = {4 * d_model}, attention after.",
    )


def readings(single: Sequence[float], asked: float, done: float) -> None:
    """Single readings of one call, and how long asking took beside doing; in milliseconds."""
    fig, axes = panels(2, width=8.6, height=3.0)
    axes[0].bar(range(1, len(single) + 1), single, color=[_EXPLICIT] + [_FUSED] * (len(single) - 1))
    axes[0].set(xlabel="reading", ylabel="milliseconds", xticks=range(1, len(single) + 1))
    axes[0].set_title("The same product, read ten times")
    axes[1].barh(["not waited for", "waited for"], [asked, done], color=[_EXPLICIT, _FUSED], height=0.55)
    for row, value in enumerate((asked, done)):
        axes[1].annotate(f"{value:.3g} ms", (value, row), (4, 0), textcoords="offset points", va="center", fontsize=9)
    axes[1].set(xscale="log", xlim=(asked / 3, done * 20), xlabel="milliseconds")
    axes[1].invert_yaxis()
    axes[1].set_title("A product computed by another thread")
    show(
        fig,
        alt=f"Readings in ms: {', '.join(f'{one:.2f}' for one in single)}. Not waited for {asked:.3g} ms, waited for {done:.3g} ms.",
    )


def regimes(sizes: Sequence[int], adding: Sequence[float], widths: Sequence[int], products: Sequence[float]) -> None:
    """Milliseconds of adding vectors of so many numbers, and GFLOP/s of products of square matrices."""
    fig, axes = panels(2, width=8.8, height=3.4)
    axes[0].loglog(sizes, adding, color=_FUSED, marker="o", markersize=4)
    axes[0].set(xlabel="numbers in x", ylabel="milliseconds for x + x")
    axes[0].set_title("Overhead dominates first, then memory")
    rates = [2 * n**3 / ms / 1e6 for n, ms in zip(widths, products, strict=True)]
    axes[1].semilogx(widths, rates, color=_EXPLICIT, marker="o", markersize=4)
    axes[1].set_xticks(list(widths), [str(n) for n in widths])
    axes[1].minorticks_off()
    axes[1].set(xlabel="n", ylabel="GFLOP/s of an n × n product", ylim=(0, None))
    axes[1].set_title("Large products are limited by arithmetic")
    show(
        fig,
        alt=f"Left: adding takes {adding[0]:.4f} ms for {sizes[0]} numbers and {adding[-1]:.2f} ms for {sizes[-1]}. Right: a product "
        f"reaches {rates[0]:.1f} GFLOP/s at width {widths[0]} and {rates[-1]:.1f} at {widths[-1]}.",
    )


def against_length(
    times: Mapping[str, Mapping[int, float]],
    memory: Mapping[str, Mapping[int, float]],
    full: Mapping[str, int],
    slopes: Mapping[str, Mapping[str, float]],
    crossing: int,
) -> None:
    """Milliseconds and MiB by length for each way.

    full: the length at which a way ran out of memory, by its name. slopes: under "time" and "memory", by the names of
    those ways whose slope is told. crossing: the length from which on attention does more operations than the projections.
    """
    fig, axes = panels(2, width=9.2, height=4.0)
    said = []
    titles = ("Time: both ways approach slope 2", "Memory: slope 2 with the table, 1 without")
    for ax, what, unit, curves, title in zip(
        axes, ("time", "memory"), ("milliseconds", "MiB"), (times, memory), titles, strict=True
    ):
        lengths = sorted({t for curve in curves.values() for t in curve} | set(full.values()))
        top = max(value for curve in curves.values() for value in curve.values())
        for name, curve in curves.items():
            t, values = np.array(list(curve)), np.maximum(list(curve.values()), 1e-3)
            colour, narrow = _LOOK[name.split(",")[0]], "16 bits" in name
            slope = f": slope {slopes[what][name]:.1f}" if name in slopes[what] else ""
            ax.loglog(
                t,
                values,
                color=colour,
                marker="s" if narrow else "o",
                markersize=4,
                linestyle="--" if narrow else "-",
                label=f"{name}{slope}",
            )
            said.append(f"{what} of {name}{slope}, {values[-1]:.3g} {unit} at {t[-1]} tokens")
        for name, t in full.items():
            ax.plot(t, 3 * top, marker="x", markersize=9, color=_LOOK[name.split(",")[0]], linestyle="")
        for t in set(full.values()):
            ax.annotate(
                "out of memory",
                (t, 3 * top),
                (-6, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=8.5,
            )
        _tick_lengths(ax, lengths[len(lengths) % 2 :: 2] if len(lengths) > 9 else lengths)
        ax.set(xlabel="tokens T", ylabel=unit, ylim=(None, 60 * top))
        ax.set_title(title)
    axes[0].axvline(
        crossing,
        ymax=0.58,
        color=COLOURS["green"],
        linestyle=":",
        linewidth=1.2,
        label=f"equal operations: T = {crossing}",
    )
    for ax in axes:
        ax.legend(frameon=False, fontsize=8.5, loc="upper left")
    said += [f"{name} runs out of memory at {t} tokens" for name, t in full.items()]
    said.append(f"attention and projections do equally many operations at {crossing} tokens")
    show(
        fig,
        alt=f"Two log-log panels measured on {globals()['name']()}, slopes between the last two points: "
        + "; ".join(said)
        + ".",
    )


def roofline(
    rate: float,
    bandwidth: float,
    points: Mapping[str, Sequence[tuple[float, float]]],
    roofs: Mapping[str, tuple[float, float]],
    published: Mapping[str, tuple[float, float]],
) -> None:
    """This machine's roof and points, in GFLOP/s and GB/s, beside published roofs and points."""
    fig, (ax,) = panels(1, width=8.4, height=4.8)
    intensity = np.logspace(-1, 4.2, 300)
    for number, (label, (top, moved)) in enumerate(roofs.items()):
        ax.loglog(
            intensity,
            np.minimum(top, moved * intensity),
            color="#9A9A9A",
            linestyle=("--", "-.", ":")[number % 3],
            label=label,
        )
    ax.loglog(
        intensity, np.minimum(rate, bandwidth * intensity), color="black", linewidth=2, label="this machine, measured"
    )
    for label, here in points.items():
        narrow = "16 bits" in label
        ax.plot(
            *zip(*here, strict=True),
            color=_LOOK[label.split(",")[0]],
            marker="s" if narrow else "o",
            markersize=5,
            linewidth=1,
            linestyle="--" if narrow else "-",
            label=f"{label}, here",
        )
    for number, (label, (x, y)) in enumerate(sorted(published.items(), key=lambda item: item[1][1])):
        ax.plot(x, y, marker="*", color=COLOURS["green"], markersize=11, linestyle="")
        ax.annotate(
            label,
            (x, y),
            (-60, -34 + 18 * number),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=8.5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            arrowprops={"arrowstyle": "-", "color": COLOURS["green"], "linewidth": 0.8},
        )
    ax.set(xlabel="operations for each byte moved", ylabel="GFLOP/s", xlim=(0.1, 16_000))
    ax.set_title("Under the slope memory is the limit, under the flat part arithmetic")
    ax.legend(frameon=False, fontsize=8.5, loc="upper left")
    show(
        fig,
        alt=f"Rooflines. This machine: {rate:.0f} GFLOP/s and {bandwidth:.0f} GB/s. Published: "
        + "; ".join(f"{label} {top:.0f} GFLOP/s, {moved:.0f} GB/s" for label, (top, moved) in roofs.items())
        + "; "
        + "; ".join(f"{label}: {y:.0f} GFLOP/s" for label, (_, y) in published.items())
        + ".",
    )
