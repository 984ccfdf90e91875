"""Figures of lesson 10: surprise, pairs of characters, the course of a training, and what heads look at. All are handed their numbers."""

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
from ..shared.figures.meter import Meter

__all__ = ["Meter", "checkpoint", "heads", "learned", "pairs", "reference_text", "surprise"]


def reference_text() -> str:
    """The excerpt of Python's own language reference that ships with the course (© Python Software Foundation)."""
    return python_reference()


def checkpoint() -> Path:
    """Where the trained model is kept for lesson 11: in the folder of the learner's record, which is made where it is missing.

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
    fig, (ax,) = panels(1, width=7.4, height=5.2)
    matrix(
        part,
        "How often each character follows each",
        rows=names,
        columns=names,
        ax=ax,
        xlabel="next character",
        ylabel="character",
        limits=(0, 0.6),
    )
    ax.tick_params(axis="x", rotation=0)
    top = np.unravel_index(part.argmax(), part.shape)
    after, comes = names[top[0]], names[top[1]]
    show(
        fig,
        alt=f"A heat map of {len(at)} characters by {len(at)}. The largest entry, {part[top]:.2f}: after {after} comes {comes}.",
    )


def learned(history: Sequence[tuple[int, float, float]], vocabulary: int, bigram: float) -> None:
    """The loss on training text and on held-out text by step, between knowing nothing and counting pairs. history: (step, loss, held)."""
    steps, losses, held = zip(*history, strict=True)
    fig, (ax,) = panels(1, width=7.2, height=3.4)
    ax.plot(steps, losses, label="training text, running mean")
    ax.plot(steps, held, "o-", markersize=4, label="held-out text")
    for level, name in (
        (math.log(vocabulary), f"knowing nothing: {math.log(vocabulary):.2f}"),
        (bigram, f"counting pairs: {bigram:.2f}"),
    ):
        ax.axhline(level, color="#7A7A7A", linestyle="--", linewidth=1)
        ax.text(steps[-1], level, name, ha="right", va="bottom", color="#555555", fontsize=9)
    ax.set(xlabel="step", ylabel="loss (nats a character)", ylim=(0, math.log(vocabulary) * 1.12))
    ax.set_title(f"{held[-1]:.2f} nats on text it has never seen")
    ax.legend(frameon=False, loc="lower left")
    show(
        fig,
        alt=f"Loss against step: the held-out loss falls from {held[0]:.2f} to {held[-1]:.2f} nats a character; pairs alone give "
        f"{bigram:.2f}.",
    )


def heads(weights: Sequence[Any], letters: Sequence[str], favourites: Sequence[Sequence[tuple[int, float]]]) -> None:
    """The weights of each head of each block on a short passage. weights: (H, T, T) a block; favourites: (distance back, share) a head."""
    count, names = len(weights[0]), [_letter(letter) for letter in letters]
    fig, axes = panels(len(weights) * count, width=10.4, height=2.9 * len(weights) + 0.6, columns=count)
    said = []
    for number, ax in enumerate(axes):
        layer, head = divmod(number, count)
        back, share = favourites[layer][head]
        place = "itself" if back == 0 else f"{back} back"
        matrix(
            np.asarray(weights[layer][head]),
            f"block {layer}, head {head}",
            ax=ax,
            rows=names,
            columns=names,
            xlabel="",
            ylabel="",
            limits=(0, 1),
        )
        ax.set_title(f"block {layer}, head {head}\n{share:.0%} on {place}", fontsize=10)
        ax.tick_params(labelsize=6, rotation=0)
        said.append(f"block {layer} head {head}: {place}, {share:.2f}")
    while len(fig.axes) > len(axes):
        fig.axes[-1].remove()  # one scale, 0 to 1, serves all
    show(
        fig,
        alt="Heat maps of the learned heads on a short passage. The distance that each looks back most: "
        + "; ".join(said)
        + ".",
    )
