"""Figures of lesson 07: the module as a pipeline, where numbers go, heads that differ, a merge that scrambles, what heads cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from grader.figures import COLOURS, matrix, panels, show


def two_heads(one: np.ndarray, two: np.ndarray, values: np.ndarray) -> None:
    """one: (3,) weights of a single head; two: (2, 3) weights of two heads, each for its own column of values (3, 2)."""
    fig, axes = panels(3, width=9.0, height=2.6, ratios=(2, 3, 3))
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
    mixed = one @ values
    matrix(
        one[None],
        f"one head: output ({mixed[0]:g}, {mixed[1]:g})",
        ax=axes[1],
        rows=["both"],
        columns=tokens,
        xlabel="",
        ylabel="",
    )
    apart = [two[h] @ values[:, h] for h in (0, 1)]
    matrix(
        two,
        f"two heads: output ({apart[0]:g}, {apart[1]:g})",
        ax=axes[2],
        rows=["first", "second"],
        columns=tokens,
        xlabel="",
        ylabel="",
    )
    show(
        fig,
        alt=f"Three matrices: values of three tokens; one row of weights, whose output is ({mixed[0]:g}, {mixed[1]:g}); two rows of "
        f"weights, one for each number, whose output is ({apart[0]:g}, {apart[1]:g}).",
    )


def where_numbers_go(split: Callable[..., Any]) -> None:
    """Three tokens whose numbers tell where they come from, split by the learner's function and by a view alone."""
    import torch

    x = (10 * torch.arange(3)[:, None] + torch.arange(4)).float()[None]  # number j of token i is 10 i + j
    fig, axes = panels(5, width=10.4, height=3.1, ratios=(4, 2, 2, 2, 2), columns=5)
    owner = [f"token {i}" for i in range(3)]
    matrix(
        x[0].numpy(),
        "x: number j of token i is 10 i + j",
        ax=axes[0],
        kind="values",
        limits=(0, 30),
        rows=owner,
        columns=[str(j) for j in range(4)],
        xlabel="number",
        ylabel="",
        fmt=".0f",
    )
    heads, cut = split(x, 2)[0], x.view(1, 2, 3, 2)[0]
    for ax, part, title in zip(
        axes[1:], (*heads, *cut), ("head 0", "head 1", "view alone: 0", "view alone: 1"), strict=True
    ):
        rows = owner if ax is axes[1] else [""] * 3
        matrix(
            part.detach().numpy(),
            title,
            ax=ax,
            kind="values",
            limits=(0, 30),
            rows=rows,
            columns=["", ""],
            xlabel="",
            ylabel="",
            fmt=".0f",
        )
    while len(fig.axes) > len(axes):
        fig.axes[-1].remove()  # the numbers are written in; a scale would say it twice
    said = [part.int().tolist() for part in (*heads, *cut)]
    show(
        fig,
        alt=f"Five matrices. x has rows of four numbers. The split gives head 0 {said[0]} and head 1 {said[1]}; a view alone gives "
        f"{said[2]} and {said[3]}.",
    )


def pipeline() -> None:
    """The way of a query through the module, as boxes with shapes; split and merge in color. Nothing is computed."""
    from matplotlib.patches import FancyBboxPatch

    steps = (
        ("query, key, value", "(B, T, d_model)", "plain"),
        ("w_q, w_k, w_v", "(B, T, d_model)", "plain"),
        ("split_heads", "(B, H, T, d_head)", "new"),
        ("scores, weights", "(B, H, T_q, T_k)", "plain"),
        ("weights · values", "(B, H, T_q, d_head)", "plain"),
        ("merge_heads", "(B, T_q, d_model)", "new"),
        ("w_o", "(B, T_q, d_model)", "plain"),
    )
    fig, (ax,) = panels(1, width=10.4, height=1.7)
    ax.set_axis_off()
    ax.set(xlim=(-0.6, len(steps) - 0.4), ylim=(-1.0, 0.75))
    for i, (name, shape, kind) in enumerate(steps):
        edge = COLOURS["vermillion"] if kind == "new" else "#9A9A9A"
        ax.add_patch(
            FancyBboxPatch(
                (i - 0.4, -0.32),
                0.8,
                0.64,
                boxstyle="round,pad=0.02",
                facecolor="white",
                edgecolor=edge,
                linewidth=2.4 if kind == "new" else 1.2,
            )
        )
        ax.text(
            i,
            0,
            name.replace(", value", ",\nvalue").replace(" · ", " ·\n"),
            ha="center",
            va="center",
            fontsize=9,
            fontweight="bold" if kind == "new" else "normal",
        )
        ax.text(i, -0.62, shape, ha="center", va="center", fontsize=8.5, color="#555555")
        if i:
            ax.annotate(
                "",
                (i - 0.42, 0),
                (i - 0.58, 0),
                arrowprops={"arrowstyle": "-|>", "color": "#777777", "shrinkA": 0, "shrinkB": 0},
            )
    said = ", ".join(f"{name} {shape}" for name, shape, _ in steps)
    show(
        fig,
        alt=f"Seven boxes in a row, each with the shape that leaves it; split_heads and merge_heads are in color. {said}.",
    )


def different_heads(single: np.ndarray, pair: np.ndarray) -> None:
    """single: (1, T, T) mean weights of the only head; pair: (2, T, T) those of two heads. Query 0 asks one question, and is not shown."""
    fig, axes = panels(3, width=10.2, height=3.5)
    asking = [str(position) for position in range(1, single.shape[-1])]
    for ax, weights, title in zip(
        axes, (*single, *pair), ("the only head", "head 0 of two", "head 1 of two"), strict=True
    ):
        matrix(weights[1:], title, ax=ax, limits=(0, 1), rows=asking, ylabel="query position" if ax is axes[0] else "")
        if ax.images[0].colorbar:
            ax.images[0].colorbar.remove()  # the numbers that count are written in; a scale would say it twice
        for (row, column), weight in np.ndenumerate(weights[1:]):
            if weight >= 0.1:
                ax.text(
                    column,
                    row,
                    f"{weight:.2f}".lstrip("0"),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if weight > 0.72 else "black",
                )
    before, mirrored = 5, single.shape[-1] - 1 - 6
    show(
        fig,
        alt="Three weight matrices of a layer trained to look at two places at once. The only head has two diagonals of about one "
        f"half each; position 6 gives {single[0, 6, before]:.2f} to the letter before it and {single[0, 6, mirrored]:.2f} to the "
        f"mirrored one. With two heads, head 0 gives these {pair[0, 6, before]:.2f} and {pair[0, 6, mirrored]:.2f}, head 1 "
        f"{pair[1, 6, before]:.2f} and {pair[1, 6, mirrored]:.2f}.",
    )


def by_length(lengths: Sequence[int], shares: Mapping[str, Sequence[float]], trained_at: int, guessing: float) -> None:
    """Share of right answers against the length of the sequence, a line for each name in shares."""
    fig, (ax,) = panels(1, width=6.4, height=3.3)
    said = []
    for (name, share), style in zip(shares.items(), ("s--", "o-"), strict=True):
        ax.plot(list(lengths), list(share), style, label=name)
        said.append(
            f"{name}: " + ", ".join(f"{right:.0%} at length {t}" for t, right in zip(lengths, share, strict=True))
        )
    ax.axhline(guessing, color=COLOURS["grey"], linewidth=1.2, linestyle=":", label="guessing")
    ax.set(
        xlabel=f"length of the sequence (trained at {trained_at})",
        ylabel="letter before: share right",
        ylim=(0, 1.05),
        title="Scrambled tokens: right at one length only",
    )
    ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0.95))
    show(fig, alt="Share of right answers against the length of the sequence. " + "; ".join(said) + ".")


def price(heads: Sequence[int], took_ms: Sequence[float], fused_ms: Sequence[float], weights: Sequence[int]) -> None:
    """Times relative to the module with one head, and the number of weights, against the number of heads at one width."""
    fig, (left, right) = panels(2, width=8.8, height=3.2)
    ratios, fused = ([each / took_ms[0] for each in times] for times in (took_ms, fused_ms))
    left.plot(heads, [each / 1e6 for each in weights], "o-", color=COLOURS["blue"])
    left.set(
        xscale="log", xlabel="heads", ylabel="million weights", ylim=(0, None), title="Each head has T × T weights"
    )
    right.plot(heads, ratios, "o-", color=COLOURS["vermillion"], label="your module")
    right.plot(heads, fused, "s--", color=COLOURS["blue"], label="the fused operator")
    right.set(
        xscale="log",
        ylim=(0, None),
        xlabel="heads",
        ylabel="time (module, one head = 1)",
        title="Same products, more time",
    )
    right.legend(frameon=False, loc="upper left")
    for ax in (left, right):
        ax.set_xticks(heads, [str(count) for count in heads])
        ax.minorticks_off()
    said, also = (
        ", ".join(f"{ratio:.1f} with {count}" for count, ratio in zip(heads, times, strict=True))
        for times in (ratios, fused)
    )
    show(
        fig,
        alt=f"Left: the number of weights grows from {weights[0]:,} with one head to {weights[-1]:,} with {heads[-1]}. Right: "
        f"the module's time, as a multiple of its time with one head: {said}; the fused operator's: {also}.",
    )
