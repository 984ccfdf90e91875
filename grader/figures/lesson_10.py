"""Figures of lesson 10: two roads through a sentence, simple weights, why tanh, the bottleneck, alignment maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from grader.figures import COLOURS, bars, matrix, panels, show

FRENCH, ENGLISH = ("la", "voiture", "bleue"), ("the", "blue", "car")
LINKS = ((0, 0), (1, 2), (2, 1))  # French word, English word: drawn by hand, not by a model


def two_roads() -> None:
    """Draws a translation through one vector, and one that looks back at each word; nothing is computed."""
    fig, (left, right) = panels(2, width=9.0, height=3.1)
    for ax, title in ((left, "One vector for the whole sentence"), (right, "Each new word looks back")):
        ax.set_axis_off()
        ax.set(xlim=(-0.6, 2.6), ylim=(-0.35, 2.4), title=title)
        for names, y in ((FRENCH, 0.0), (ENGLISH, 2.0)):
            for x, name in enumerate(names):
                ax.text(x, y, name, ha="center", va="center", fontsize=11, zorder=3, bbox=_BOX)
    for x in range(3):
        left.plot([x, 1], [0.2, 0.86], color=COLOURS["grey"], linewidth=1.6)
        left.plot([1, x], [1.14, 1.8], color=COLOURS["grey"], linewidth=1.6)
    left.text(1, 1, "one vector", ha="center", va="center", zorder=3, weight="bold",
              bbox={**_BOX, "edgecolor": COLOURS["vermillion"], "linewidth": 2})  # fmt: skip
    for source, target in LINKS:
        right.plot([source, target], [0.2, 1.8], color=COLOURS["blue"], linewidth=2.2)
    show(fig, alt="Two diagrams of 'la voiture bleue' below and 'the blue car' above. Left: all three French words lead into one "
                  "box, 'one vector', and from it to all three English words. Right: lines join la and the, bleue and blue, "
                  "voiture and car; the last two cross. Both are drawn by hand.")  # fmt: skip


_BOX = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "#9A9A9A", "linewidth": 1.2}


def word_weights(words: Sequence[str], weights: Any) -> None:
    """One bar for each word."""
    weights = np.asarray(weights)
    fig, (ax,) = panels(1, width=8.0, height=3.0)
    bars(weights, "Weights from word lengths: nobody asked, nothing is learnt", labels=words, ax=ax)
    ax.tick_params(axis="x", rotation=30)
    said = ", ".join(f"{word} {weight:.2f}" for word, weight in zip(words, weights, strict=True))
    show(fig, alt=f"A bar for each word of the sentence, as high as its weight: {said}.")


def why_tanh(score: Callable[..., Any]) -> None:
    """The first of two weights against the query's part, with tanh and without; score(c, tanh) -> two weights."""
    parts = np.linspace(-4, 4, 161)
    curves = {name: [float(score(c, tanh)[0]) for c in parts] for name, tanh in (("with tanh", True), ("without", False))}
    fig, (ax,) = panels(1, width=5.8, height=3.1)
    for (name, curve), style in zip(curves.items(), ("-", "--"), strict=True):
        ax.plot(parts, curve, style, label=name)
    ax.set(xlabel="the query's part c", ylabel="weight of the first key", ylim=(0, 1))
    ax.set_title("Without tanh the query has no say")
    ax.legend(frameon=False, loc="lower left")
    bent = curves["with tanh"]
    show(fig, alt=f"Two curves over c from −4 to 4. Without tanh the weight is {curves['without'][0]:.2f} everywhere; with tanh "
                  f"it goes from {bent[0]:.2f} up to {max(bent):.2f} and down to {bent[-1]:.2f}.")  # fmt: skip


def bottleneck(shares: Mapping[str, Mapping[int, float]], longest: int) -> None:
    """Share of letters that came back right, by name and length; longest: the longest sequence of the training."""
    fig, (ax,) = panels(1, width=6.6, height=3.5)
    for (name, share), style in zip(shares.items(), ("o--", "o-"), strict=True):
        ax.plot(list(share), list(share.values()), style, markersize=4, label=name)
    ax.axhline(1 / 26, color=COLOURS["grey"], linewidth=1.2, linestyle=":", label="chance")
    ax.axvspan(longest + 0.5, max(next(iter(shares.values()))) + 0.5, color="#EFEFEF", zorder=0)
    ax.text(longest + 0.7, 1.03, "longer than any\nin the training", va="top", fontsize=8.5, color="#555555")
    ax.set(xlabel="letters in the sequence", ylabel="share of letters right", ylim=(0, 1.05), xticks=list(next(iter(shares.values()))))
    ax.set_title("One vector forgets, attention looks back")
    ax.legend(frameon=False, loc="lower left")
    said = "; ".join(
        f"{name}: " + ", ".join(f"{share:.0%} at {length}" for length, share in row.items()) for name, row in shares.items()
    )
    show(fig, alt=f"The share of letters that come back right against the length of the sequence. {said}.")


def alignments(texts: Sequence[str], written: Sequence[str], weights: np.ndarray, claim: str) -> None:
    """A map for each date: rows are the characters written, columns the characters read (fill-up left out)."""
    fig, axes = panels(len(texts), width=9.4, height=4.2, ratios=[len(text) + 3 for text in texts])
    said = []
    for ax, text, out, rows in zip(axes, texts, written, weights, strict=True):
        shown = rows[:, : len(text)]
        names = {"rows": list(out), "columns": list(text.replace(" ", "␣"))}
        matrix(shown, f"{text} → {out}", ax=ax, xlabel="character read", ylabel="character written", **names)
        best = ", ".join(f"{c} at '{text[i]}' ({i + 1})" for c, i in zip(out, shown.argmax(axis=1), strict=True))
        said.append(f"for '{text}' the largest weight lies, in the order of writing, for {best}")
    fig.suptitle(claim, fontsize=11.5)
    show(fig, alt=f"{claim}. Heat maps of attention weights: " + "; ".join(said) + ".")


def dictionary(w: Any, weights: Any, english: Sequence[str], vocabulary: Sequence[str], sentence: Sequence[str]) -> None:
    """Luong's w as a dictionary between two vocabularies, and the weights that follow from it."""
    weights = np.asarray(weights)
    fig, (left, right) = panels(2, width=8.6, height=3.3, ratios=[len(vocabulary), len(sentence)])
    matrix(w, "w: a dictionary that we wrote", kind="scores", ax=left, rows=english, columns=vocabulary,
           xlabel="French vocabulary", ylabel="English vocabulary")  # fmt: skip
    matrix(weights, "weights: the alignment", ax=right, rows=english, columns=sentence,
           xlabel="French sentence (keys)", ylabel="English word (query)")  # fmt: skip
    said = ", ".join(f"{word} looks at {sentence[row.argmax()]} with {row.max():.2f}" for word, row in zip(english, weights, strict=True))
    show(fig, alt=f"Left: the matrix w with entries only where an English and a French word belong together. Right: the weights; {said}.")
