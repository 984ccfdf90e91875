"""Figures of lesson 09: the block; and, handed their numbers, a fused projection, dropped weights, a sequence reversed, stacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.figures import COLOURS, CYCLE, matrix, panels, show

__all__ = ["ablation", "block", "curves", "dropout_weights", "fused", "gradients", "reverse", "token_similarity"]


_PALE = {"stream": "#0072B2", "norm": "#F6E7A8", "attention": "#F9CDAE", "mlp": "#BFE5D6", "edge": "#5A5A5A"}


class _Block:
    """The block in screen pixels: the residual stream upward on the left, its two branches in the middle, who meets whom on the right."""

    STREAM, BRANCH, TOKENS, HALF = 170, 385, 643, 124  # the middles of the columns; half of a box's width

    def __init__(self, ax: Any) -> None:
        self.ax = ax

    def text(self, x: float, y: float, words: str, **look: Any) -> None:
        self.ax.text(x, y, words, **{"ha": "center", "va": "center", "fontsize": 10, "zorder": 6, **look})

    def arrow(
        self, start: tuple[float, float], end: tuple[float, float], width: float = 1.8, colour: str = _PALE["edge"]
    ) -> None:
        head = f"-|>,head_width={0.16 + 0.07 * width:.2f},head_length={0.3 + 0.12 * width:.2f}"
        look = {
            "arrowstyle": head,
            "linewidth": width,
            "color": colour,
            "shrinkA": 0,
            "shrinkB": 0,
            "joinstyle": "miter",
        }
        self.ax.annotate("", end, start, arrowprops=look, zorder=3)

    def box(self, y: float, height: float, name: str, what: str, colour: str) -> None:
        from matplotlib.patches import FancyBboxPatch

        self.ax.add_patch(
            FancyBboxPatch(
                (self.BRANCH - self.HALF, y - height / 2),
                2 * self.HALF,
                height,
                boxstyle="round,pad=0,rounding_size=9",
                facecolor=colour,
                edgecolor=_PALE["edge"],
                linewidth=1.2,
                zorder=4,
            )
        )
        self.text(self.BRANCH, y + (9 if what else 0), name, fontsize=11.5, fontweight="bold")
        if what:
            self.text(self.BRANCH, y - 11, what, color="#444444")

    def ground(self, low: float, high: float) -> None:
        """What lies under a branch and its tokens."""
        from matplotlib.patches import FancyBboxPatch

        look = {"boxstyle": "round,pad=0,rounding_size=12", "facecolor": "#F5F5F5", "edgecolor": "none", "zorder": 1}
        self.ax.add_patch(FancyBboxPatch((240, low), 518, high - low, **look))

    def plus(self, y: float) -> None:
        from matplotlib.patches import Circle

        self.ax.add_patch(
            Circle((self.STREAM, y), 14, facecolor="white", edgecolor=_PALE["stream"], linewidth=2.4, zorder=5)
        )
        self.ax.plot([self.STREAM - 7, self.STREAM + 7], [y, y], color=_PALE["stream"], linewidth=2.4, zorder=6)
        self.ax.plot([self.STREAM, self.STREAM], [y - 7, y + 7], color=_PALE["stream"], linewidth=2.4, zorder=6)

    def branch(self, leaves: float, norm: float, part: float, height: float, joins: float) -> None:
        """The lines of one branch: out of the stream, up through both boxes, and back into the sum."""
        edge = _PALE["edge"]
        self.ax.plot(
            [self.STREAM, self.BRANCH, self.BRANCH], [leaves, leaves, norm - 30], color=edge, linewidth=1.8, zorder=2
        )
        self.ax.plot([self.STREAM], [leaves], "o", color=_PALE["stream"], markersize=8, zorder=5)
        self.arrow((self.BRANCH, leaves), (self.BRANCH, norm - 20))
        self.arrow((self.BRANCH, norm + 20), (self.BRANCH, part - height / 2))
        self.ax.plot([self.BRANCH] * 2, [part + height / 2, joins], color=edge, linewidth=1.8, zorder=2)
        self.arrow((self.BRANCH, joins), (self.STREAM + 15, joins))

    def tokens(self, y: float, height: float, meets: Any, colour: str, says: str) -> None:
        """Four tokens below and above a part, and a line from each token that is read to the one that reads it."""
        places = self.TOKENS + 34 * (np.arange(4) - 1.5)
        low, high = y - height / 2 + 7, y + height / 2 - 7
        for reads, x in enumerate(places):
            for seen in range(4):
                if meets(seen, reads):
                    own = seen == reads
                    self.ax.plot([places[seen], x], [low, high], color=colour, linewidth=2.4 if own else 1.5, zorder=3)
        for at in (low, high):
            self.ax.plot(places, [at] * 4, "o", color="white", markeredgecolor="#444444", markersize=9, zorder=5)
        self.text(self.TOKENS, y - height / 2 - 12, says, fontsize=10, color="#444444")


def block(title: str = "The block: two branches read from the residual stream, and add to it") -> None:
    """The pre-norm block of a Transformer, read from the bottom up."""
    fig, (ax,) = panels(1, width=8, height=6.9)
    ax.set(xlim=(0, 768), ylim=(0, 650), title="")
    ax.axis("off")
    ax.set_title(title, fontsize=12, fontweight="bold")
    draw = _Block(ax)
    draw.arrow((draw.STREAM, 34), (draw.STREAM, 622), width=5, colour=_PALE["stream"])
    draw.text(draw.STREAM, 18, "x: a vector for each token", color=_PALE["stream"], fontweight="bold")
    draw.text(draw.STREAM, 638, "x, of the same shape, to the next block", color=_PALE["stream"], fontweight="bold")
    draw.text(
        draw.STREAM - 22, 309, "residual stream", color=_PALE["stream"], fontsize=11, fontweight="bold", ha="right"
    )
    for leaves, joins, height, part, name, what, colour in (
        (66, 282, 58, 208, "causal attention", "many heads side by side", "attention"),
        (336, 552, 58, 478, "feed-forward network", "(MLP) wider, GELU, narrow again", "mlp"),
    ):
        draw.ground(leaves - 14, joins - 24)
        draw.branch(leaves, leaves + 52, part, height, joins)
        draw.box(leaves + 52, 40, "LayerNorm", "", _PALE["norm"])
        draw.box(part, height, name, what, _PALE[colour])
        draw.plus(joins)
        middle = (leaves + joins) / 2
        for line, words in enumerate(("residual", "connection:", "x goes past", "the branch")):
            draw.text(
                draw.STREAM - 22, middle + 27 - 18 * line, words, ha="right", color=_PALE["stream"], fontsize=10.5
            )
        draw.text((draw.STREAM + draw.BRANCH) / 2 + 8, joins + 13, "what is added to x", fontsize=10, color="#444444")
    draw.text(draw.TOKENS, 550, "who meets whom", fontsize=11, fontweight="bold", color="#444444")
    own, past = (lambda seen, reads: seen == reads), (lambda seen, reads: seen <= reads)
    draw.tokens(118, 46, own, "#C9A400", "each token by itself")
    draw.tokens(208, 72, past, COLOURS["vermillion"], "a token and those before it")
    draw.tokens(388, 46, own, "#C9A400", "each token by itself")
    draw.tokens(478, 72, own, COLOURS["green"], "each token by itself")
    show(
        fig,
        alt="The block, from the bottom up. A thick arrow, the residual stream, carries x past two branches. In the first, x goes "
        "through LayerNorm and causal attention, in which each token meets itself and those before it; the result is added to the "
        "stream. In the second, x with that sum goes through a second LayerNorm and the feed-forward network, both on each token by "
        "itself; the result is added, too. What leaves has the shape of what came in.",
    )


def fused() -> None:
    """The numbers that a fused projection gives for one token, and whose they are."""
    fig, (ax,) = panels(1, width=8.2, height=1.5)
    colours = ("#CFE3F2", "#CFE3F2", "#FCE3B8", "#FCE3B8", "#CDEBE0", "#CDEBE0")
    names = ("q, head 0", "q, head 1", "k, head 0", "k, head 1", "v, head 0", "v, head 1")
    for group, (name, colour) in enumerate(zip(names, colours, strict=True)):
        ax.bar(4 * group + np.arange(4), 1, width=0.94, color=colour)
        ax.text(4 * group + 1.5, 0.5, name, ha="center", va="center", fontsize=10)
        ax.plot([4 * group - 0.5] * 2, [0, 1], color=COLOURS["black"], linewidth=1)
    ax.set(
        title="One token's 24 numbers: q, k and v, each with two heads of four",
        xlabel="number in qkv(x)",
        xlim=(-0.5, 23.5),
        ylim=(0, 1),
        xticks=range(24),
        yticks=[],
    )
    ax.grid(False)
    show(
        fig, alt="A row of 24 cells in six groups of four: q head 0, q head 1, k head 0, k head 1, v head 0, v head 1."
    )


def dropout_weights(still: Any, once: Any, mean: Any, p: float) -> None:
    """A head's weights in evaluation, in one pass in training mode, and averaged over many.

    What the mask hides is gray, what dropout took is 0.
    """
    hidden = np.triu(np.ones(np.shape(still), dtype=bool), 1)
    fig, axes = panels(3, width=8.8, height=4.0)
    fig.suptitle(
        f"Dropout takes weights away and multiplies the others by {1 / (1 - p):g}; on average, each stays about as it was",
        fontsize=11.5,
    )
    titles = ("In evaluation", f"One training pass, dropout={p}", "Mean of 400 such passes")
    for ax, values, title in zip(axes, (still, once, mean), titles, strict=True):
        matrix(np.where(hidden, -np.inf, values), title, ax=ax, limits=(0, 2), fmt=".2f")
    for text in [text for ax in axes for text in ax.texts if text.get_text() == "−∞"]:
        text.set_text("")  # grey says it: the mask hid these before softmax
    gone = int((np.asarray(once)[~hidden] == 0).sum())
    gap = np.abs(mean - still).max()
    show(
        fig,
        alt=f"Three causal weight matrices, the hidden half gray. In one pass in training mode {gone} of {int((~hidden).sum())} weights "
        f"are 0 and the others doubled; the mean of 400 steps differs from evaluation by at most {gap:.2f}.",
    )


def reverse(losses: Sequence[float], guess: float, weights: Any, written: str) -> None:
    """The loss of a layer that learns to write backwards, and where each position looks."""
    fig, (left, right) = panels(2, width=8.8, height=4.2, ratios=(1, 1.3))
    left.plot(range(1, len(losses) + 1), losses)
    left.axhline(guess, color="#7A7A7A", linestyle="--", linewidth=1)
    left.text(len(losses), guess, f"guessing: {guess:.2f}", ha="right", va="bottom", color="#555555")
    left.set(xlabel="step", ylabel="loss (nats per letter)", ylim=(0, None))
    left.set_title("It learns to reverse")
    matrix(weights, "Each query looks at the letter it writes next", ax=right, rows=written, columns=written)
    right.tick_params(axis="x", rotation=0)
    bar, box = len(written) // 2, {"facecolor": "white", "edgecolor": "none", "pad": 3}
    right.axhspan(
        -0.5, bar - 0.5, facecolor="white", edgecolor="#BFBFBF", hatch="///", alpha=0.85, linewidth=0, zorder=4
    )
    right.plot([-0.5, len(written) - 0.5], [bar - 0.5] * 2, color=COLOURS["grey"], linewidth=1, zorder=5)
    right.text(
        14.5,
        bar / 2 - 0.5,
        "queries before the bar\nwrite nothing:\nnever trained",
        zorder=6,
        ha="center",
        va="center",
        bbox=box,
    )
    right.text(14.5, 1.5 * bar, "queries that write", zorder=6, ha="center", va="center")
    asked = np.asarray(weights)[len(written) // 2 :, : len(written) // 2]
    on = float(np.fliplr(asked).diagonal().mean())
    show(
        fig,
        alt=f"Left the loss falls from {losses[0]:.2f} to {losses[-1]:.2f} nats. Right the weights: behind the bar they lie on the "
        f"anti-diagonal, {on:.2f} on average.",
    )


_LINES = ((0, (1, 1.2)), "--", (0, (6, 1.5, 1, 1.5)), "-")
_PAINT = ("vermillion", "orange", "green", "blue")


def _line(ax: Any, at: int, *points: Any, **more: Any) -> None:
    """The line of one of the four ways to stack, which looks alike in every figure."""
    ax.plot(*points, color=COLOURS[_PAINT[at]], linestyle=_LINES[at], linewidth=2.2, **more)


def gradients(norms: Mapping[str, Sequence[float]]) -> None:
    """The size of the gradient that each block's attention gets, by its place in the stack."""
    fig, (ax,) = panels(1, width=7.4, height=3.6)
    for at, (name, values) in enumerate(norms.items()):
        _line(ax, at, range(1, len(values) + 1), values, label=name)
    ax.set(
        xlabel="block, counted from the input",
        ylabel="norm of the gradient of qkv",
        yscale="log",
        ylim=(1e-32, 1e4),
        xticks=(1, 6, 12, 18, 24),
        yticks=[10.0**power for power in range(-30, 1, 5)],
    )
    ax.minorticks_off()
    ax.set_title("Stacked plainly, the gradient vanishes on its way back to the first block")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.02, 0.8), handlelength=3)
    show(
        fig,
        alt="Gradient norms by block, logarithmic: "
        + "; ".join(
            f"{name}: {values[0]:.1e} at the first, {values[-1]:.1e} at the last" for name, values in norms.items()
        )
        + ".",
    )


def token_similarity(similarity: Mapping[str, Sequence[float]]) -> None:
    """How alike the tokens of a sequence are after each block of an untrained stack. similarity: name → mean cosines, from block 0 on."""
    fig, (ax,) = panels(1, width=7.4, height=3.4)
    for at, (name, values) in enumerate(similarity.items()):
        _line(ax, at, range(len(values)), values, label=name)
    ax.set(xlabel="untrained blocks passed", ylabel="mean cosine similarity", ylim=(0, 1.08))
    ax.set_title("Without a residual connection, all tokens point the same way")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.24, 0.9), handlelength=3)
    ends = (
        f"{name}: {values[0]:.2f} before the first block, {values[-1]:.2f} after the last"
        for name, values in similarity.items()
    )
    show(fig, alt="Mean cosine similarity of two tokens of a sequence: " + "; ".join(ends) + ".")


def _smooth(values: Sequence[float]) -> np.ndarray:
    """The mean of the last nine."""
    return np.convolve(np.pad(values, (8, 0), mode="edge"), np.ones(9) / 9, mode="valid")


def ablation(runs: Mapping[str, Mapping[str, Sequence[float]]], guess: float) -> None:
    """Losses of the four ways to stack: runs: learning rate → name → loss by step. guess: what guessing costs."""
    fig, axes = panels(len(runs), width=8.4, height=3.7)
    fig.suptitle("Residual connections let the stack learn; normalization allows a larger learning rate", fontsize=11.5)
    said = []
    for ax, (rate, losses) in zip(axes, runs.items(), strict=True):
        for at, (name, values) in enumerate(losses.items()):
            _line(ax, at, range(1, len(values) + 1), _smooth(values), label=name)
            said.append(f"{rate}, {name}: {np.mean(values[-9:]):.2f}")
        ax.axhline(guess, color="#7A7A7A", linewidth=1)
        stuck = ", ".join(name for name, values in losses.items() if np.mean(values[-9:]) > 0.98 * guess)
        at_level = {"ha": "right", "va": "bottom", "color": "#555555", "fontsize": 9.5}
        ax.text(len(values), 1.03 * guess, f"{stuck}:\nas good as guessing (ln 8)", **at_level)
        ax.set(xlabel="step", ylim=(0, 1.3 * guess), title=rate)
    axes[0].set_ylabel("loss (nats)")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, handlelength=3)
    show(fig, alt=f"Losses of stacks of 24 blocks; guessing costs {guess:.2f}. At the end: {'; '.join(said)}.")


def curves(title: str, losses: Mapping[str, Sequence[float]], level: float, of_level: str) -> None:
    """Training losses by step, each smoothed over nine steps, and a level that means something."""
    fig, (ax,) = panels(1, width=7.0, height=3.3)
    for (name, values), style, colour in zip(losses.items(), ("-", "--", "-.", ":"), CYCLE, strict=False):
        ax.plot(range(1, len(values) + 1), _smooth(values), label=name, linestyle=style, color=colour)
    ax.axhline(level, color="#7A7A7A", linestyle=":", linewidth=1)
    clear = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # of the lines of the grid
    ax.text(len(values), 0.97 * level, of_level, ha="right", va="top", color="#555555", fontsize=9, bbox=clear)
    ax.set(xlabel="step", ylabel="loss (nats)", ylim=(0, 1.4 * level))
    ax.set_title(title)
    ax.legend(frameon=False, loc="upper center", ncols=len(losses), fontsize=8.5)
    show(
        fig,
        alt=f"{title}: "
        + "; ".join(f"{name} ends at {np.mean(values[-9:]):.2f} nats" for name, values in losses.items())
        + f"; {of_level} at {level:.2f}.",
    )
