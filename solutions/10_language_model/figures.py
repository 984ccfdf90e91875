"""Figures of lesson 10: surprise, pairs of characters, the parts of the model, the course of a training, each character's cost."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grader.figures import COLOURS, matrix, panels, show
from grader.notebook.record import default_path

from ..shared.data import python_reference

__all__ = ["checkpoint", "each_character", "loss_curve", "model_parts", "pairs", "reference_text", "surprise"]


def reference_text() -> str:
    """The excerpt of Python's own language reference that ships with the course (© Python Software Foundation)."""
    return python_reference()


def checkpoint() -> Path:
    """Where the trained model is kept for later lessons: in the folder of the learner's record, which is made where it is missing.

    The environment variable ATTENTION_COURSE_KEPT names another folder, as it does while the course's own notebooks are built.
    """
    named = os.environ.get("ATTENTION_COURSE_KEPT")
    folder = Path(named) if named else default_path().parent
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "10_language_model.pt"


def surprise(marks: Mapping[str, float]) -> None:
    """The curve −ln p, with named probabilities on it."""
    p = np.linspace(0.004, 1, 400)
    fig, (ax,) = panels(1, width=6.6, height=3.2)
    ax.plot(p, -np.log(p))
    for name, at in marks.items():
        ax.plot(at, -math.log(at), "o", color=COLOURS["vermillion"], markersize=5)
        ax.annotate(f"{name}: {-math.log(at):.2f}", (at, -math.log(at)), (8, 6), textcoords="offset points", fontsize=9)
    ax.set(xlabel="probability given to what came", ylabel="surprise −ln p (nats)", xlim=(0, 1.12), ylim=(0, 5.4))
    ax.set_title("The less likely, the more surprising")
    on_it = ", ".join(f"{name} at {-math.log(at):.2f} nats" for name, at in marks.items())
    show(fig, alt=f"The curve −ln p, falling to 0 at p = 1; on it {on_it}.")


def _letter(character: str) -> str:
    return {" ": "␣", "\n": "↵"}.get(character, character)


def pairs(table: Any, characters: Sequence[str], shown: str) -> None:
    """The rows and columns of a table of follow-up probabilities that belong to the characters `shown`."""
    at = [characters.index(character) for character in shown]
    part = np.asarray(table)[np.ix_(at, at)]
    names = [_letter(character) for character in shown]
    fig, (ax,) = panels(1, width=6.4, height=5.4)
    matrix(
        part,
        "After q comes u; after a space, almost anything",
        rows=names,
        columns=names,
        ax=ax,
        xlabel="next character",
        ylabel="character",
        limits=(0, 0.7),
    )
    ax.images[0].colorbar.set_label("probability", fontsize=10)
    ax.tick_params(axis="x", rotation=0)
    top = np.unravel_index(part.argmax(), part.shape)
    after, comes = names[top[0]], names[top[1]]
    show(
        fig,
        alt=f"A heat map of {len(at)} characters by {len(at)}. The largest entry, {part[top]:.2f}: after {after} comes {comes}.",
    )


_EDGE, _TALL = "#9A9A9A", 0.52  # of the boxes: the color of their frames, the height of a flat one


def model_parts(text: str, numbers: Sequence[int], d_model: int, vocabulary: int) -> None:
    """Draws a language model from bottom to top: ids, embeddings, blocks, logits. text: one character more than is read."""
    from matplotlib.patches import FancyBboxPatch

    read, asked = text[:-1], text[1:]
    fig, (ax,) = panels(1, width=8.2, height=6.2)
    ax.set_axis_off()
    ax.set(xlim=(-1.75, len(read) + 1.35), ylim=(-0.65, 7.85))
    middle = (len(read) - 1) / 2

    def wide(y: float, name: str, tall: float = _TALL, color: str = "#F4F4F4") -> None:
        box = FancyBboxPatch(
            (-0.42, y - tall / 2), len(read) - 0.16, tall, boxstyle="round,pad=0.05", facecolor=color, edgecolor=_EDGE
        )
        ax.add_patch(box)
        ax.text(middle, y, name, ha="center", va="center", fontsize=10)

    def up(x: float, start: float, end: float) -> None:
        ax.annotate(
            "", (x, end), (x, start), arrowprops={"arrowstyle": "-|>", "color": _EDGE, "shrinkA": 0, "shrinkB": 0}
        )

    shade = np.random.default_rng(3).uniform(0.1, 0.9, size=(len(read), 2, 6))
    heights = np.random.default_rng(8).uniform(0.06, 0.32, size=(len(read), 7))
    for x, (letter, number, answer) in enumerate(zip(read, numbers, asked, strict=False)):
        ax.text(x, -0.42, _letter(letter), ha="center", va="center", fontsize=12, weight="bold")
        ax.text(
            x, 0.1, str(number), ha="center", va="center", fontsize=10, bbox={"facecolor": "white", "edgecolor": _EDGE}
        )
        up(x, 0.38, 0.88)
        for row, color in enumerate(("blue", "orange")):
            for cell, alpha in enumerate(shade[x, row]):
                y, width = 1.12 + 0.44 * row, 0.7 / 6
                ax.bar(
                    x - 0.35 + (cell + 0.5) * width,
                    0.26,
                    width,
                    y - 0.13,
                    color=COLOURS[color],
                    alpha=alpha,
                    linewidth=0,
                )
        ax.text(x, 1.34, "+", ha="center", va="center", fontsize=9)
        for start, end in ((1.75, 2.07), (4.0, 4.4), (4.98, 5.4), (6.1, 6.5)):
            up(x, start, end)
        top = heights[x].argmax()
        for bar, height in enumerate(heights[x]):
            color = COLOURS["vermillion"] if bar == top else "#BDBDBD"
            ax.bar(x - 0.3 + bar * 0.1, 2 * height, 0.075, 6.58, color=color, linewidth=0)
        ax.text(
            x, 7.6, _letter(answer), ha="center", va="center", fontsize=12, weight="bold", color=COLOURS["vermillion"]
        )
    wide(3.02, "", 1.75, "#E4EEF6")
    ax.text(middle, 3.62, "feed-forward network, for each position alone", ha="center", va="center", fontsize=10)
    ax.text(middle, 3.15, "causal attention, from left to right", ha="center", va="center", fontsize=10)
    for later in range(1, len(read)):
        for earlier in range(later):
            ax.annotate(
                "",
                (later, 2.87),
                (earlier, 2.27),
                arrowprops={"arrowstyle": "-", "color": COLOURS["blue"], "alpha": 0.55},
            )
        ax.plot([later, later], [2.27, 2.87], color=COLOURS["blue"], alpha=0.55, linewidth=1)
    ax.plot([0, 0], [2.27, 2.87], color=COLOURS["blue"], alpha=0.55, linewidth=1)
    ax.text(middle, 4.69, "more blocks of the same kind", ha="center", va="center", fontsize=9.5, color="#555555")
    wide(5.75, "last LayerNorm, then the linear layer “head”")
    for y, name, shape in (
        (0.1, "ids", "(B, T)"),
        (1.34, "embeddings", ""),
        (3.02, "blocks", f"(B, T, {d_model})"),
        (6.95, "logits", f"(B, T, {vocabulary})"),
    ):
        ax.text(-0.75, y, name, ha="right", va="center", fontsize=10.5, weight="bold")
        ax.text(len(read) - 0.3, y, shape, ha="left", va="center", fontsize=10, color="#555555")
    for y, name in ((1.56, "+ one of the position"), (1.12, "one of the character")):
        ax.text(len(read) - 0.3, y, name, ha="left", va="center", fontsize=9, color="#555555")
    ax.text(-0.75, -0.42, "what it reads", ha="right", va="center", fontsize=9.5, color="#555555")
    ax.text(-0.75, 7.6, "what comes next", ha="right", va="center", fontsize=9.5, color=COLOURS["vermillion"])
    ax.set_title("At every position, the model predicts the character that comes next")
    show(
        fig,
        alt=f"A language model, from bottom to top. It reads {' '.join(map(_letter, read))} as ids of shape (B, T). Each id becomes the "
        f"sum of two embeddings, one of the character and one of the position: (B, T, {d_model}). Blocks of causal attention and "
        f"a feed-forward network keep this shape. A last LayerNorm and the layer head give {vocabulary} logits at each position; "
        f"these are compared with the next characters, {' '.join(map(_letter, asked))}. The bars of the logits are drawn by hand.",
    )


def loss_curve(history: Sequence[Sequence], vocabulary: int, bigram: float) -> None:
    """The loss on training text and on held-out text by step, between knowing nothing and counting pairs.

    history: (step, loss, held, …).
    """
    steps, losses, held = (list(numbers) for numbers in zip(*(noted[:3] for noted in history), strict=True))
    fig, (ax,) = panels(1, width=7.2, height=3.4)
    ax.plot(steps, losses, label="training text, mean of the last 20 batches")
    ax.plot(steps, held, "o-", markersize=4, label="held-out text")
    for level, name in (
        (math.log(vocabulary), f"knowing nothing: {math.log(vocabulary):.2f}"),
        (bigram, f"counting pairs: {bigram:.2f}"),
    ):
        ax.axhline(level, color="#7A7A7A", linestyle="--", linewidth=1)
        ax.text(steps[-1], level + 0.06, name, ha="right", va="bottom", color="#555555", fontsize=9)
    ax.set(xlabel="step", ylabel="loss (nats a character)", ylim=(0, math.log(vocabulary) * 1.12))
    ax.set_title(f"{held[-1]:.2f} nats on text it has never seen")
    ax.legend(frameon=False, loc="lower left")
    show(
        fig,
        alt=f"Loss against step: the held-out loss falls from {held[0]:.2f} to {held[-1]:.2f} nats a character; pairs alone give "
        f"{bigram:.2f}.",
    )


def each_character(text: str, costs: Any, line: int = 45) -> None:
    """A text in lines of so many characters, with a bar above each character: what it costs the model, in nats.

    costs: one for each character of text. Bars of letters that begin a word, of other letters and of the rest have different colors.
    """
    costs = np.asarray(costs, dtype=float)
    rows = -(-len(text) // line)
    fig, axes = panels(rows, width=8.2, height=0.35 + 1.35 * rows, columns=1)
    begins = [now.isalpha() and not before.isalpha() for before, now in zip(" " + text, text, strict=False)]
    letters = [character.isalpha() for character in text]
    kinds = (
        ("vermillion", "a word's first letter", begins),
        ("blue", "its other letters", [letter and not begin for letter, begin in zip(letters, begins, strict=True)]),
        ("grey", "spaces and signs", [not letter for letter in letters]),
    )
    for row, ax in enumerate(axes):
        part = range(row * line, min((row + 1) * line, len(text)))
        for color, label, those in kinds:
            at = [number for number in part if those[number]]
            ax.bar([number - part.start for number in at], costs[at], 0.8, color=COLOURS[color], label=label)
        ax.set_xticks(range(len(part)), [_letter(text[number]) for number in part], fontsize=11, family="monospace")
        ax.set(xlim=(-0.7, line - 0.3), ylim=(0, costs.max() * 1.05))
        ax.tick_params(axis="x", length=0)
        ax.grid(axis="x", visible=False)
    fig.supylabel("surprise (nats)", fontsize=10)
    axes[0].legend(frameon=False, loc="upper right", ncols=3, fontsize=9)
    axes[0].set_title("Words begin with a surprise")
    of_first, of_others = (costs[np.array(those)].mean() for _, _, those in kinds[:2])
    show(
        fig,
        alt=f"The held-out text {text!r}, with a bar above each character: letters that begin a word cost {of_first:.1f} nats on "
        f"average, other letters {of_others:.1f}.",
    )
