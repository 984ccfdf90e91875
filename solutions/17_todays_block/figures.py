"""Figures of lesson 17: three blocks, gates, the order of rows, and what a real model says next. All are handed their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.figures import COLOURS, panels, show

_OLD, _NEW = "#E4E4E4", "#CFE3F1"
_BLOCKS = {  # from the bottom up; True where the part is new against the column before
    "Transformer 2017": (
        ("multi-head attention", False),
        ("+", False),
        ("LayerNorm", False),
        ("ReLU feed-forward", False),
        ("+", False),
        ("LayerNorm", False),
    ),
    "GPT-2 2019": (
        ("LayerNorm", True),
        ("multi-head attention", False),
        ("+", False),
        ("LayerNorm", True),
        ("GELU feed-forward", True),
        ("+", False),
    ),
    "Llama 3, SmolLM2": (
        ("RMSNorm", True),
        ("grouped queries + RoPE", True),
        ("+", False),
        ("RMSNorm", True),
        ("SwiGLU feed-forward", True),
        ("+", False),
    ),
}
_POSITIONS = (
    "sines and cosines,\nadded to the tokens",
    "a learned table,\nadded to the tokens",
    "no table: RoPE turns\nq and k in each block",
)


def blocks() -> None:
    """One block of three generations, from its input below to its output above; blue: what the generation before did otherwise."""
    from matplotlib.patches import FancyBboxPatch

    fig, (ax,) = panels(1, width=8.6, height=5.0)
    ax.set(xlim=(0, 102), ylim=(-15, 84))
    ax.axis("off")
    ax.set_title("From GPT-2 on the frame stays and the parts change")
    for column, (name, parts) in enumerate(_BLOCKS.items()):
        stream, branch = (
            9 + 33 * column,
            24 + 33 * column,
        )  # where x runs straight up, and where the boxes stand that add to it
        post_norm = "Norm" not in parts[0][0]
        ax.text((stream + branch) / 2, 79, name, ha="center", fontweight="bold")
        ax.annotate(
            "", (stream, 75), (stream, -4), arrowprops={"arrowstyle": "-|>", "color": "#222222", "linewidth": 2}
        )
        ax.text(
            (stream + branch) / 2,
            -11,
            _POSITIONS[column],
            ha="center",
            va="center",
            fontsize=9,
            bbox={"facecolor": _NEW if column else _OLD, "edgecolor": "none", "pad": 3},
        )
        for row, (part, new) in enumerate(parts):
            height = 7 + 12 * row
            if part == "+":
                sign = {"boxstyle": "circle,pad=0.12", "facecolor": "white", "edgecolor": "#555555"}
                ax.text(
                    stream, height, "+", ha="center", va="center", fontsize=13, fontweight="bold", bbox=sign, zorder=4
                )
                start = _branch(parts, row)
                ax.plot([stream, branch, branch], [start, start, height], color="#555555", linewidth=1.2, zorder=1)
                back = {"arrowstyle": "-|>", "color": "#555555", "shrinkA": 0, "shrinkB": 7}
                ax.annotate("", (stream, height), (branch, height), arrowprops=back)
                continue
            on = stream if post_norm and "Norm" in part else branch
            style = {
                "boxstyle": "round,pad=0.3",
                "facecolor": _NEW if new else _OLD,
                "edgecolor": "#888888",
                "zorder": 3,
            }
            ax.add_patch(
                FancyBboxPatch((on - (8 if on == stream else 10.5), height - 4), 16 if on == stream else 21, 8, **style)
            )
            ax.text(on, height, part, ha="center", va="center", fontsize=9, zorder=4)
    show(
        fig,
        alt="Three blocks, read upwards. 2017: attention, sum, LayerNorm, ReLU feed-forward network, sum, LayerNorm. GPT-2: "
        "LayerNorm, attention, sum, LayerNorm, GELU feed-forward network, sum. Llama 3: RMSNorm, attention with "
        "grouped queries and RoPE, sum, RMSNorm, SwiGLU feed-forward network, sum. The residual stream runs straight up, and branches "
        "add to it. In 2017 both normalizations stand on it, in the last two none.",
    )


def _branch(parts: Sequence[tuple[str, bool]], plus: int) -> float:
    """The height at which the branch that ends in a '+' leaves the stream: below its parts."""
    earlier = [row for row in range(plus) if parts[row][0] == "+"]
    first = earlier[-1] + 1 if earlier else 0
    if parts[0][0] != "LayerNorm" and parts[0][0] != "RMSNorm" and first:
        first += 1  # post-norm: the path starts above the normalization
    return 12 * first + 0.8


def float16_range(sizes: Sequence[float], sides: Mapping[str, Sequence[float]]) -> None:
    """The size of what comes out, root mean square, against the size of what goes in, in float16."""
    fig, (ax,) = panels(1, width=7.0, height=3.3)
    for (name, values), colour, style in zip(sides.items(), ("blue", "vermillion"), ("o-", "s--")):
        ax.semilogx(sizes, values, style, color=COLOURS[colour], markersize=4, label=name)
    ax.axvline(256, color="#7A7A7A", linestyle=":", linewidth=1)
    ax.text(290, 0.5, "256² = 65,536:\nmore than float16 holds", fontsize=9, color="#555555", va="center")
    ax.set(xlabel="size of the token's numbers (root mean square)", ylabel="size of the result", ylim=(-0.08, 1.25))
    ax.set_title("A token with large numbers vanishes when it is squared in float16")
    ax.legend(frameon=False, loc="lower left")
    ends = "; ".join(
        f"{name}: {values[0]:.2f} at {sizes[0]:g}, {values[-1]:.2f} at {sizes[-1]:g}" for name, values in sides.items()
    )
    show(fig, alt=f"Size of the result against size of the token, in float16. {ends}.")


def gates() -> None:
    """Left: what comes through a gate, up · SiLU(z), against z for three values of up. Right: SiLU beside ReLU and GELU."""
    from math import erf

    z = np.linspace(-5, 4, 361)
    silu = z / (1 + np.exp(-z))
    fig, (ax, right) = panels(2, width=9.2, height=3.5)
    for up, colour in ((5, "blue"), (2, "green"), (-3, "vermillion")):
        ax.plot(z, up * silu, color=COLOURS[colour], linewidth=2)
        ax.text(4.35, up * silu[-1], f"up = {up}".replace("-", "−"), color=COLOURS[colour], va="center", fontsize=10)
    for at, drop in ((4.0, -1.2), (-4.0, 1.4)):
        through = 5 * at / (1 + np.exp(-at))
        ax.plot(at, through, "o", color=COLOURS["blue"], markersize=6)
        ax.text(
            at - 0.25,
            through + drop,
            f"{through:.3g}".replace("-", "−"),
            ha="right" if at > 0 else "center",
            fontsize=10,
        )
    ax.axhline(0, color="#AAAAAA", linewidth=0.8)
    ax.set(xlabel="z, what gate says", ylabel="up · SiLU(z)", xlim=(-5, 6.6), ylim=(-14, 23))
    ax.set_title("The gate closes for negative z")
    curves = {
        "ReLU: max(z, 0)": np.maximum(z, 0),
        "GELU: z · Φ(z)": z * np.array([(1 + erf(one / 2**0.5)) / 2 for one in z]),
        "SiLU: z · sigmoid(z)": silu,
    }
    for (name, values), colour, style in zip(curves.items(), ("grey", "orange", "blue"), ("--", "-.", "-")):
        right.plot(z, values, style, color=COLOURS[colour], label=name, linewidth=2)
    right.set(xlabel="z", ylabel="f(z)", xlim=(-5, 3), ylim=(-0.6, 3))
    right.set_title("SiLU is a smooth ReLU")
    right.legend(frameon=False, loc="upper left")
    show(
        fig,
        alt="Left: up times SiLU(z) against z, for up = 5, 2 and −3. Near 0 for negative z; at z = 4 it is 19.6, 7.9 and −11.8. Right: "
        f"ReLU, GELU and SiLU, near 0 for very negative z and near z for large z. SiLU dips to {silu.min():.2f} at z = "
        f"{z[silu.argmin()]:.2f}.",
    )


def loss_curves(histories: Mapping[str, Sequence[Sequence[float]]], every: int) -> None:
    """Loss against steps, one thin line a seed. histories: name -> a list of losses for each seed."""
    fig, (ax,) = panels(1, width=7.0, height=3.3)
    for (name, runs), colour in zip(histories.items(), ("vermillion", "blue")):
        for number, run in enumerate(runs):
            ax.semilogy(
                every * np.arange(len(run)),
                run,
                color=COLOURS[colour],
                linewidth=1.4,
                label=name if number == 0 else None,
            )
    ax.set(xlabel="step", ylabel="mean squared error")
    ax.set_title("Two networks of equal size learn to multiply")
    ax.legend(frameon=False)
    ends = "; ".join(f"{name}: {', '.join(f'{run[-1]:.2g}' for run in runs)}" for name, runs in histories.items())
    show(fig, alt=f"Loss against steps, both networks, a line for each seed. At the end: {ends}.")


def layouts(d_head: int) -> None:
    """Where the rows of one head move, from the order of halves to that of neighbors: 0, d_head/2, 1, d_head/2 + 1, …"""
    half, gap = d_head // 2, 0.9
    # the rows that are drawn, and where: the first and the last ones of each half
    pairs = (0, 1, 2, half - 1)
    spots = {0: 0.0, 1: 1.0, 2: 2.0, half - 1: 3.0 + gap}
    width = spots[half - 1] + 1
    above = {row: spot for row, spot in spots.items()} | {half + row: width + 0.5 + spot for row, spot in spots.items()}
    below = {row: 2 * spots[row] - (gap if row == half - 1 else 0) for row in pairs}
    below = {row: spot + 0.25 for row, spot in below.items()} | {half + row: spot + 1.25 for row, spot in below.items()}
    paints = dict(zip(pairs, ("blue", "orange", "green", "purple"), strict=True))
    fig, (ax,) = panels(1, width=8.6, height=3.1)
    ax.set(xlim=(-0.75, 2 * width + 0.4), ylim=(-0.78, 2.85))
    ax.axis("off")
    for row in above:
        paint = COLOURS[paints[row % half]]
        ink = "white" if paint == COLOURS["blue"] else "black"  # blue alone is too dark for black
        ax.annotate(
            "",
            (below[row], 0.31),
            (above[row], 1.69),
            arrowprops={"arrowstyle": "-|>", "color": paint, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0},
        )
        for spot, y in ((above[row], 2.0), (below[row], 0.0)):
            ax.bar(spot, 0.6, 0.86, y - 0.3, color=paint, zorder=3)
            ax.text(spot, y, row, ha="center", va="center", fontsize=10, color=ink, fontweight="bold", zorder=4)
    between = (spots[2] + spots[half - 1]) / 2
    dots = ((between, 2.0), (width + 0.5 + between, 2.0), ((below[half + 2] + below[half - 1]) / 2, 0.0))
    for spot, y in dots:
        ax.text(spot, y, "…", ha="center", va="center", fontsize=14, color="#555555")
    ax.text(
        -0.5,
        2.55,
        "in halves: rows i and i + 32 are rotated together (Hugging Face Hub)".replace("32", str(half)),
        fontsize=10,
    )
    ax.text(
        -0.5,
        -0.68,
        "neighbors: rows 2i and 2i + 1 are rotated together (lesson 08, and this course's file)",
        fontsize=10,
    )
    ax.set_title(f"The {d_head} rows of one head in two orders; a color is a pair")
    show(
        fig,
        alt=f"Two rows of boxes with arrows between them. Above, in halves: 0, 1, 2, …, {half - 1}, then {half}, {half + 1}, {half + 2}, "
        f"…, {d_head - 1}. Below, neighbors: 0, {half}, 1, {half + 1}, 2, {half + 2}, …, {half - 1}, {d_head - 1}. Rows i and "
        f"i + {half} have one color: above they lie apart, below side by side.",
    )


def parameter_counts(counts: Mapping[str, int]) -> None:
    """How many of a model's parameters sit in which part."""
    fig, (ax,) = panels(1, width=7.2, height=2.5)
    names, sizes = list(counts)[::-1], np.array(list(counts.values())[::-1])
    drawn = ax.barh(names, sizes / 1e6, color=COLOURS["blue"], height=0.6)
    said = [f"{size / 1e6:.1f} million, {size / sizes.sum():.0%}" if size > 5e5 else f"{size:,}" for size in sizes]
    ax.bar_label(drawn, said, padding=4, fontsize=9)
    ax.grid(False)
    ax.set(xlabel="parameters (millions)", xlim=(0, sizes.max() / 1e6 * 1.35))
    ax.set_title(f"{sizes.sum():,} parameters, and where they sit")
    show(fig, alt="Bars: " + "; ".join(f"{name} {size / 1e6:.1f} million" for name, size in counts.items()) + ".")


def next_tokens(prompt: str, tokens: Sequence[Sequence[Any]]) -> None:
    """The likeliest next tokens as bars. tokens: (text, probability) pairs, the likeliest first."""
    fig, (ax,) = panels(1, width=7.2, height=0.31 * len(tokens) + 1.2)
    names, sizes = [_written(str(text)) for text, _ in tokens][::-1], np.array([float(p) for _, p in tokens])[::-1]
    drawn = ax.barh(
        range(len(names)), sizes, color=[COLOURS["sky"]] * (len(names) - 1) + [COLOURS["blue"]], height=0.65
    )
    ax.set_yticks(range(len(names)), names)
    ax.bar_label(drawn, [f"{size:.3f}" for size in sizes], padding=4, fontsize=9)
    ax.grid(False)
    ax.set(xlabel="probability", xlim=(0, max(1.12 * sizes.max(), 0.1)))
    ax.set_title(f"After “{prompt}” the model expects “{_written(str(tokens[0][0]))}”")
    show(
        fig,
        alt=f"Bars for the next token after “{prompt}”: "
        + ", ".join(f"{_written(str(t))} {p:.3f}" for t, p in tokens)
        + ".",
    )


def _written(token: str) -> str:
    return token.replace(" ", "␣").replace("\n", "↵") or "(nothing)"


def largest(numbers: Sequence[tuple[float, float]]) -> None:
    """The largest number of the first and of the last token after each block, on a logarithmic axis. numbers: (first, last) a block."""
    fig, (ax,) = panels(1, width=7.2, height=3.3)
    blocks, (first, last) = range(len(numbers)), zip(*numbers)
    ax.semilogy(blocks, first, "o-", color=COLOURS["vermillion"], markersize=4, label="first token")
    ax.semilogy(blocks, last, "s-", color=COLOURS["blue"], markersize=4, label="last token")
    ax.axhline(256, color="#7A7A7A", linestyle=":", linewidth=1)
    ax.text(0.4 * len(numbers), 270, "above: its square overflows float16", fontsize=9, color="#555555", va="bottom")
    ax.set(xlabel="block", ylabel="largest number of the token")
    ax.set_title("One number of the first token is enormous")
    ax.legend(frameon=False, loc="upper left")
    show(
        fig,
        alt=f"Largest number against block, logarithmic. First token: {first[0]:.0f} after block 0, at most {max(first):,.0f}, "
        f"{first[-1]:,.0f} at the end. Last token: {last[0]:.0f} after block 0, at most {max(last):,.0f}.",
    )


def slips(found: Mapping[str, tuple[float, float]], word: str, prompts: tuple[str, str]) -> None:
    """The probability of a word after a short and a long prompt, for each way of loading the weights. prompts: what to call the two."""
    fig, (ax,) = panels(1, width=8.2, height=0.55 * len(found) + 1.3)
    at, height = np.arange(len(found))[::-1], 0.36
    for number, (name, colour) in enumerate(zip(prompts, ("blue", "orange"))):
        sizes = [pair[number] for pair in found.values()]
        drawn = ax.barh(at + height * (0.5 - number), sizes, height=height, color=COLOURS[colour], label=name)
        ax.bar_label(drawn, [f"{size:.2f}" if size >= 0.005 else "<0.01" for size in sizes], padding=3, fontsize=8.5)
    ax.set_yticks(at, list(found))
    ax.set(xlabel=f"probability of “{word}”", xlim=(0, 1.05))
    ax.legend(frameon=False, loc="center right")
    ax.set_title(f"After a short text, one broken model still says “{word.strip()}”")
    show(
        fig,
        alt=f"Probability of “{word}” for two prompts, {prompts[0]} and {prompts[1]}: "
        + "; ".join(f"{name} {short:.2f} and {long:.2f}" for name, (short, long) in found.items())
        + ".",
    )
