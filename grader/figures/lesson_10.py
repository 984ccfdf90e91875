"""Figures of lesson 10: a state that fades, two roads through a sentence, why tanh, the bottleneck, alignment maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.figures import COLOURS, matrix, panels, show

FRENCH, ENGLISH = ("la", "voiture", "bleue"), ("the", "blue", "car")
LINKS = ((0, 0), (1, 2), (2, 1))  # French word, English word: drawn by hand, not by a model


def two_roads() -> None:
    """Draws an encoder and a decoder joined by one vector, and joined by links to every state; nothing is computed."""
    fig, (left, right) = panels(2, width=9.6, height=3.4)
    for ax, title in ((left, "One vector for the whole sentence"), (right, "Each new word looks back")):
        ax.set_axis_off()
        ax.set(xlim=(-1.1, 3.1), ylim=(-0.45, 2.45), title=title)
        for names, y, side in ((FRENCH, 0.0, "encoder"), (ENGLISH, 2.0, "decoder")):
            ax.text(-0.62, y, side, ha="right", va="center", fontsize=9, color="#555555")
            for x, name in enumerate(names):
                ax.text(x, y, name, ha="center", va="center", fontsize=11, zorder=3, bbox=_BOX)
                if x:
                    _arrow(ax, (x - 0.62, y), (x - 0.38, y), "grey")
    _arrow(left, (2, 0.25), (1.25, 0.84), "vermillion")
    _arrow(left, (0.75, 1.16), (0, 1.75), "vermillion")
    left.text(1, 1, "last state", ha="center", va="center", zorder=3, weight="bold",
              bbox={**_BOX, "edgecolor": COLOURS["vermillion"], "linewidth": 2})  # fmt: skip
    for source, target in LINKS:
        _arrow(right, (source, 0.25), (target, 1.75), "blue")
    show(fig, alt="Two diagrams. Below, an encoder reads la, voiture, bleue from left to right; above, a decoder writes the, blue, car. "
                  "Left: the encoder's last state alone goes to the decoder's first step. Right: arrows lead from la to the, from bleue to "
                  "blue and from voiture to car; the last two cross. Both are drawn by hand.")  # fmt: skip


def _arrow(ax: Any, start: tuple[float, float], end: tuple[float, float], color: str) -> None:
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": COLOURS[color], "linewidth": 2, "shrinkA": 0, "shrinkB": 0})


def fading(felt: Any) -> None:
    """felt: (T,) by how much the last state moves with each token."""
    felt = np.asarray(felt)
    fig, (ax,) = panels(1, width=6.6, height=3.0)
    ax.plot(range(len(felt)), felt, "o-", markersize=4)
    ax.set(yscale="log", xlabel="token", ylabel="gradient of the last state", xticks=range(0, len(felt), 3))
    ax.set_title("The last state hardly feels the first tokens")
    show(fig, alt=f"The size of the gradient of the last state against the token, on a logarithmic scale. It rises from {felt[0]:.1e} for "
                  f"token 0 to {felt[-1]:.1e} for the last.")  # fmt: skip


_BOX = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "#9A9A9A", "linewidth": 1.2}


def why_tanh(projected: np.ndarray, v: np.ndarray) -> None:
    """The weight of the first of two projected keys (2, 2) against the difference of the query's two numbers; v (2,)."""
    parts = np.linspace(-4, 4, 161)
    queries = np.stack([np.maximum(parts, 0), np.maximum(-parts, 0)], axis=-1)  # (0, 4) to (0, 0) to (4, 0)
    summed = queries[:, None] + projected
    fig, (ax,) = panels(1, width=6.2, height=3.1)
    said = []
    for name, scores, style in (("with tanh", np.tanh(summed) @ v, "-"), ("without tanh", summed @ v, "--")):
        weights = 1 / (1 + np.exp(scores[:, 1] - scores[:, 0]))
        ax.plot(parts, weights, style, label=name)
        said.append(f"{name} it goes from {weights[0]:.2f} over {weights[80]:.2f} to {weights[-1]:.2f}")
    ax.set(xlabel="query", ylabel="weight of key 0", ylim=(0, 1))
    ax.set_xticks([-3, 0, 3], ["(0, 3)", "(0, 0)", "(3, 0)"])
    ax.set_title("Without tanh the query has no say")
    ax.legend(frameon=False, loc="lower left")
    show(fig, alt="The weight of key 0 for queries from (0, 4) over (0, 0) to (4, 0): " + "; ".join(said) + ".")


def bottleneck(shares: Mapping[str, Mapping[int, float]], longest: int) -> None:
    """Share of letters that came back right, by name and length; longest: the longest sequence of the training."""
    fig, axes = panels(2, width=9.6, height=3.6)
    groups = [{name: row for name, row in shares.items() if ("1,200" in name) == more} for more in (False, True)]
    for ax, group, title in zip(axes, groups, ("300 steps of training", "1,200 steps of training"), strict=True):
        for name, row in group.items():
            attends = name.startswith("attention")
            color = COLOURS["orange" if attends else "sky" if "wide" in name else "blue"]
            ax.plot(list(row), list(row.values()), "o-" if attends else "o--", markersize=4, color=color, label=name.partition(",")[0]
                    + (", 4 times as wide" if "wide" in name else ""))  # fmt: skip
        ax.axhline(1 / 26, color=COLOURS["grey"], linewidth=1.2, linestyle=":", label="guessing")
        lengths = list(next(iter(group.values())))
        ax.axvspan(longest + 0.5, lengths[-1] + 0.5, color="#EFEFEF", zorder=0)
        ax.text(longest + 0.7, 0.07, "longer than\nin training", va="bottom", fontsize=8.5, color="#555555")
        ax.set(xlabel="letters in the sequence", ylabel="share of letters right", ylim=(0, 1.05), xticks=lengths, title=title)
        ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 0.04))
    said = "; ".join(
        f"{name}: " + ", ".join(f"{share:.0%} at {length}" for length, share in row.items()) for name, row in shares.items()
    )
    show(fig, alt=f"Two panels: the share of letters that come back right against the length of the sequence. {said}.")


def alignments(texts: Sequence[str], written: Sequence[str], weights: np.ndarray, claim: str) -> None:
    """A map for each date: rows are the characters written, columns the characters read, padding included.

    weights: (n, characters written, characters read).
    """
    weights = np.asarray(weights)
    fig, axes = panels(len(texts), width=11.0, height=4.2)
    said = []
    for ax, text, out, rows in zip(axes, texts, written, weights, strict=True):
        names = {"rows": list(out), "columns": [*text.replace(" ", "␣"), *"·" * (rows.shape[1] - len(text))]}
        matrix(rows, f"{text} → {out}", ax=ax, limits=(0, 1), xlabel="character read (␣ space, · padding)", ylabel="character written",
               **names)  # fmt: skip
        best = ", ".join(f"{c} at {_read(text, int(i))}" for c, i in zip(out, rows.argmax(axis=1), strict=True))
        said.append(f"for '{text}' the largest weight lies, in the order of writing, for {best}")
    fig.suptitle(claim, fontsize=11.5)
    show(fig, alt=f"{claim}. Heat maps of attention weights: " + "; ".join(said) + ".")


def _read(text: str, i: int) -> str:
    return f"'{text[i]}' ({i})" if i < len(text) else "the padding"


def dictionary(w: Any, weights: Any, english: Sequence[str], vocabulary: Sequence[str], sentence: Sequence[str]) -> None:
    """Luong's w as a dictionary between two vocabularies, and the weights that follow from it."""
    weights = np.asarray(weights)
    fig, (left, right) = panels(2, width=8.6, height=3.3, ratios=[len(vocabulary), len(sentence)])
    matrix(w, "w: a dictionary written by hand", kind="scores", ax=left, rows=english, columns=vocabulary,
           xlabel="French vocabulary", ylabel="English vocabulary")  # fmt: skip
    matrix(weights, "weights: the alignment", ax=right, rows=english, columns=sentence,
           xlabel="French sentence (keys)", ylabel="English word (query)")  # fmt: skip
    said = ", ".join(f"{word} looks at {sentence[row.argmax()]} with {row.max():.2f}" for word, row in zip(english, weights, strict=True))
    show(fig, alt=f"Left: the matrix w with entries only where an English and a French word belong together. Right: the weights; {said}.")
