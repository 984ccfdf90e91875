"""Figures of lesson 12: the vanishing gradient, two roads through a sentence, why tanh, one step, alignment maps, the bottleneck."""

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
        ax.set(xlim=(-1.1, 2.5), ylim=(-0.45, 2.45), title=title)
        for names, y, side in ((FRENCH, 0.0, "encoder"), (ENGLISH, 2.0, "decoder")):
            ax.text(-0.62, y, side, ha="right", va="center", fontsize=9, color="#555555")
            for x, name in enumerate(names):
                ax.text(x, y, name, ha="center", va="center", fontsize=11, zorder=3, bbox=_BOX)
                if x:
                    _arrow(ax, (x - 0.62, y), (x - 0.38, y), "grey")
    _arrow(left, (2, 0.25), (1.25, 0.84), "vermillion")
    for word in range(len(ENGLISH)):
        _arrow(left, (1 + 0.25 * (word - 1), 1.16), (word, 1.75), "vermillion")
    left.text(
        1,
        1,
        "last state",
        ha="center",
        va="center",
        zorder=3,
        weight="bold",
        bbox={**_BOX, "edgecolor": COLOURS["vermillion"], "linewidth": 2},
    )
    for source in range(len(FRENCH)):  # a little of each state goes to each word
        for target in range(len(ENGLISH)):
            right.plot([source, target], [0.25, 1.75], color="#BBBBBB", linewidth=0.8, zorder=1)
    for source, target in LINKS:
        _arrow(right, (source, 0.25), (target, 1.75), "blue")
    show(
        fig,
        alt="Two diagrams. Below, an encoder reads la, voiture, bleue from left to right; above, a decoder writes the, blue, car. "
        "Left: the encoder's last state alone goes to the decoder, at every step. Right: arrows lead from la to the, from bleue to "
        "blue and from voiture to car; the last two cross. Thin lines join all other pairs. Both are drawn by hand.",
    )


def _arrow(ax: Any, start: tuple[float, float], end: tuple[float, float], color: str) -> None:
    ax.annotate(
        "",
        end,
        start,
        arrowprops={"arrowstyle": "-|>", "color": COLOURS[color], "linewidth": 2, "shrinkA": 0, "shrinkB": 0},
    )


def token_influence(curves: Mapping[str, Sequence[Any]]) -> None:
    """curves: by kind of weights, for each network (T,) by how much the last state moves with each token."""
    fig, (ax,) = panels(1, width=7.2, height=3.4)
    said = []
    for (name, networks), color in zip(curves.items(), ("blue", "orange"), strict=True):
        felt = np.stack([np.asarray(one) for one in networks])
        for one in felt:
            ax.plot(range(felt.shape[1]), one, color=COLOURS[color], linewidth=0.8, alpha=0.35)
        middle = np.exp(np.log(felt).mean(axis=0))
        ax.plot(range(felt.shape[1]), middle, "o-", markersize=4, color=COLOURS[color], label=name)
        said.append(f"with {name} it rises from {middle[0]:.1e} for token 0 to {middle[-1]:.1e} for the last")
    ax.set(
        yscale="log",
        xlabel="token",
        ylabel="how much the last state\nmoves with this token",
        xticks=range(0, felt.shape[1], 3),
    )
    ax.set_title("With torch's default weights\nthe last state hardly depends on the first tokens")
    ax.legend(frameon=False, loc="lower right")
    show(
        fig,
        alt=f"The size of the gradient of the last state against the token, on a logarithmic scale, {len(felt)} networks of each kind "
        f"and their geometric mean: {'; '.join(said)}.",
    )


_BOX = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "#9A9A9A", "linewidth": 1.2}
_CELL = {**_BOX, "boxstyle": "square,pad=0.3"}


def why_tanh(projected: np.ndarray, v: np.ndarray) -> None:
    """The weight of the first of two projected keys (2, 2) against the difference of the query's two numbers; v (2,)."""
    parts = np.linspace(-3, 3, 121)
    queries = np.stack([np.maximum(parts, 0), np.maximum(-parts, 0)], axis=-1)  # (0, 3) to (0, 0) to (3, 0)
    summed = queries[:, None] + projected
    fig, (ax,) = panels(1, width=6.2, height=3.1)
    said = []
    for name, scores, style in (("with tanh", np.tanh(summed) @ v, "-"), ("without tanh", summed @ v, "--")):
        weights = 1 / (1 + np.exp(scores[:, 1] - scores[:, 0]))
        ax.plot(parts, weights, style, label=name)
        said.append(f"{name} it goes from {weights[0]:.2f} over {weights[60]:.2f} to {weights[-1]:.2f}")
    ax.set(xlabel="the two numbers of the query, after $W_q$", ylabel="weight of key (1, ½)", ylim=(0, 1))
    ax.set_xticks([-3, 0, 3], ["(0, 3)", "(0, 0)", "(3, 0)"])
    ax.set_title("Without tanh the query has no say")
    ax.legend(frameon=False, loc="lower left")
    show(
        fig,
        alt="The weight of the key (1, ½), where the other key is (0, 0), for queries from (0, 3) over (0, 0) to (3, 0): "
        + "; ".join(said)
        + ".",
    )


SCORES = np.array([-1.0, 0.5, 3.0])  # of la, voiture, bleue while "blue" is written: set by hand
HEIGHTS = (2.35, 1.65, 0.95)  # of their rows in the drawing


def one_step() -> None:
    """Draws one step of the decoder with its shapes; the scores are set by hand, weights and context follow from them."""
    weights = np.exp(SCORES) / np.exp(SCORES).sum()
    fig, (ax,) = panels(1, width=8.3, height=6.1)
    ax.set_axis_off()
    ax.set(
        xlim=(-0.05, 8.75), ylim=(0, 6.05), title='One step of the decoder: it has written "the" and now writes "blue"'
    )
    for y, name, shape in (
        (5.65, "old state", "(B, d_q)"),
        (4.7, 'last word "the"', "(B,)"),
        (3.75, "last context", "(B, d_h)"),
    ):
        _part(ax, (0.8, y), name, shape)
        _arrow(ax, (1.6 if y == 4.7 else 1.4, y), (2.3, 4.7 + 0.25 * (y - 4.7)), "grey")
    _part(ax, (3.05, 4.7), "decoder", "one GRU step")
    _arrow(ax, (3.78, 4.7), (4.3, 4.7), "grey")
    _part(ax, (5.15, 4.7), "new state", "= query (B, d_q)", "vermillion")
    _arrow(ax, (6.02, 4.7), (7.0, 4.7), "grey")
    _part(ax, (7.75, 4.7), 'choose "blue"', "(B, n_out)", "vermillion")
    for x, name in ((3.05, "scores"), (4.75, "weights")):
        ax.text(x, 2.98, f"{name} (B, T)", ha="center", va="center", fontsize=10.5, color=COLOURS["blue"])
    _arrow(ax, (4.75, 4.33), (3.35, 3.2), "grey")
    ax.text(0.8, 2.98, "keys (B, T, d_h)", ha="center", va="center", fontsize=10.5)
    for y, score, weight, key, word in zip(HEIGHTS, SCORES, weights, range(3), FRENCH, strict=True):
        ax.text(0.8, y, f"$k_{key}$ {word}", ha="center", va="center", fontsize=10.5, bbox=_CELL)
        _arrow(ax, (1.4, y), (2.55, y), "grey")
        for x, number in ((3.05, score), (4.75, weight)):
            ax.text(x, y, f"{number:.2f}".replace("-", "−"), ha="center", va="center", fontsize=11, bbox=_CELL)
        _arrow(ax, (3.5, y), (4.32, y), "grey")
        _arrow(ax, (5.2, y), (6.22, 1.65 + 0.25 * (y - 1.65)), "grey")
    ax.text(3.9, 2.48, "softmax", ha="center", va="bottom", fontsize=10, color="#555555")
    ax.plot([0.8, 0.8, 7.5], [0.68, 0.32, 0.32], color=COLOURS["grey"], linewidth=2)
    _arrow(ax, (7.5, 0.32), (7.5, 1.2), "grey")
    ax.text(4.0, 0.4, "the keys themselves are blended", ha="center", va="bottom", fontsize=10, color="#555555")
    blend = " + ".join(f"{weight:.2f} $k_{key}$" for key, weight in enumerate(weights))
    _part(ax, (7.5, 1.65), "context (B, d_h)", blend.replace(" + ", "\n+ ", 0), "vermillion")
    _arrow(ax, (7.75, 2.05), (7.75, 4.33), "grey")
    ax.text(
        7.6,
        3.2,
        "Framed in color:\nwhat goes on\ninto the next step",
        ha="right",
        va="center",
        fontsize=10,
        color=COLOURS["vermillion"],
    )
    said = ", ".join(
        f"{word} score {score:g} and weight {weight:.2f}"
        for word, score, weight in zip(FRENCH, SCORES, weights, strict=True)
    )
    show(
        fig,
        alt="One step of the decoder. Above, from left to right: the old state (B, d_q), the last word, the, and the last context "
        "(B, d_h) go into one GRU step. Out comes the new state, which is the query. Below, from left to right: the query meets "
        f"the keys, the encoder's states (B, T, d_h), and gives scores (B, T); softmax makes weights (B, T) of them: {said}. The "
        "context (B, d_h) is the sum of the keys by these weights. State and context together choose the next word, blue, and "
        "all three go into the next step.",
    )


def _part(ax: Any, at: tuple[float, float], name: str, shape: str, color: str = "") -> None:
    """A box of a diagram: a name, and its shape below it in smaller letters."""
    edge = {"edgecolor": COLOURS[color], "linewidth": 2} if color else {}
    ax.text(*at, f"{name}\n{shape}", ha="center", va="center", fontsize=10.5, zorder=3, bbox={**_BOX, **edge})


def word_alignment(sentences: Sequence[tuple[Sequence[str], Sequence[str], Any]], claim: str) -> None:
    """A map for each sentence (words read, words written, weights): rows are the words written, columns the words read."""
    fig, axes = panels(len(sentences), width=8.2, height=4.6, ratios=[len(read) + 5 for read, _, _ in sentences])
    said = []
    for ax, (read, written, weights) in zip(axes, sentences, strict=True):
        rows = np.asarray(weights)
        matrix(
            rows,
            "",
            ax=ax,
            limits=(0, 1),
            rows=written,
            columns=read,
            xlabel="French word read",
            ylabel="English word written",
        )
        ax.tick_params(axis="x", rotation=45)
        best = ", ".join(f"{word} at {read[i]}" for word, i in zip(written, rows.argmax(axis=1), strict=True))
        said.append(f"for '{' '.join(read)}' the largest weight lies, in the order of writing, for {best}")
    fig.suptitle(claim, fontsize=11.5)
    show(fig, alt=f"{claim}. Heat maps of attention weights: " + "; ".join(said) + ".")


def bottleneck(shares: Mapping[str, Mapping[int, float]], longest: int) -> None:
    """Share of words that came out right, by name and number of noun phrases; longest: the longest sentences of the training."""
    fig, (ax,) = panels(1, width=7.2, height=3.6)
    for (name, row), style, color in zip(shares.items(), ("o-", "s--"), ("blue", "vermillion"), strict=True):
        ax.plot(list(row), list(row.values()), style, markersize=5, color=COLOURS[color], label=name)
    counts = list(next(iter(shares.values())))
    ax.axvspan(longest + 0.5, counts[-1] + 0.3, color="#EFEFEF", zorder=0)
    ax.text(longest + 0.6, 0.03, "longer than in training", va="bottom", fontsize=9, color="#555555")
    ax.set(
        xlabel="noun phrases in the sentence",
        ylabel="share of words right",
        ylim=(0, 1.05),
        xlim=(counts[0] - 0.3, counts[-1] + 0.3),
        xticks=counts,
        title="With attention, the same training reaches longer sentences",
    )
    ax.legend(frameon=False, loc="lower left")
    said = "; ".join(
        f"{name}: " + ", ".join(f"{share:.0%} at {count}" for count, share in row.items())
        for name, row in shares.items()
    )
    show(fig, alt=f"The share of words that come out right against the number of noun phrases in the sentence. {said}.")


def alignments(texts: Sequence[str], written: Sequence[str], weights: np.ndarray, claim: str) -> None:
    """A map for each date: rows are the characters written, columns the characters read, padding included.

    weights: (n, characters written, characters read).
    """
    weights = np.asarray(weights)
    fig, axes = panels(len(texts), columns=1, width=7.6, height=0.4 + 4.1 * len(texts))
    said = []
    for ax, text, out, rows in zip(axes, texts, written, weights, strict=True):
        names = {"rows": list(out), "columns": [*text.replace(" ", "␣"), *"·" * (rows.shape[1] - len(text))]}
        matrix(
            rows,
            f"{text} → {out}",
            ax=ax,
            limits=(0, 1),
            xlabel="character read (␣ space, · padding)",
            ylabel="character written",
            **names,
        )
        ax.images[0].colorbar.remove()  # one bar serves all maps
        best = ", ".join(f"{c} at {_read(text, int(i))}" for c, i in zip(out, rows.argmax(axis=1), strict=True))
        said.append(f"for '{text}' the largest weight lies, in the order of writing, for {best}")
    bar = fig.colorbar(axes[0].images[0], ax=axes, shrink=0.5, label="attention weight")
    bar.outline.set_visible(False)
    fig.suptitle(claim, fontsize=11.5)
    show(fig, alt=f"{claim}. Heat maps of attention weights: " + "; ".join(said) + ".")


def _read(text: str, i: int) -> str:
    return f"'{text[i]}' ({i})" if i < len(text) else "the padding"
