"""Figures of lesson 18: maps of heads with their tokens, heads compared by score, and what becomes of a model without them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.figures import COLOURS, Picture, follow, matrix, panels, picture, show

from ..shared.data.heads import must_exist

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Maps = Mapping[str, tuple[Sequence[str], np.ndarray]]  # by sentence: its tokens and the weights (layers, heads, T, T)

_BEYOND = "#F1F1F1"  # what a causal mask hides
_INK = "#333333"


def _seen(token: str) -> str:
    """A token as an axis shows it: without the space that most begin with."""
    return {" ": "␣", "\n": "↵"}.get(token, token.strip() or token)


def _map(ax: Axes, weights: Any, tokens: Sequence[str], *, size: float = 9, numbers: bool = True) -> None:
    """One head's weights (T, T), rows looking at columns; the hidden half is pale. numbers: written where they are 0.1 or more."""
    weights = np.asarray(weights, float)
    t = len(weights)
    hidden = np.triu(np.ones((t, t), bool), 1)
    matrix(
        np.where(hidden, 0, weights),
        ax.get_title(),
        ax=ax,
        rows=[_seen(each) for each in tokens],
        columns=[_seen(each) for each in tokens],
        limits=(0, 1),
        xlabel="",
        ylabel="",
    )
    for text in list(ax.texts):
        text.remove()
    ax.tick_params(labelsize=size, rotation=0)
    ax.tick_params(axis="x", rotation=90 if t > 6 else 0)
    ax.imshow(
        np.ma.masked_where(~hidden, np.ones((t, t))), cmap=_one_colour(_BEYOND), interpolation="nearest", zorder=1
    )
    for row, column in np.argwhere(weights >= 0.095) if numbers else ():
        share = weights[row, column]
        ax.text(
            column,
            row,
            f"{share:.1f}"[-2:] if share < 0.95 else "1",
            ha="center",
            va="center",
            fontsize=size - 0.5,
            zorder=5,
            color="white" if share > 0.55 else _INK,
        )


def _one_colour(colour: str) -> Any:
    from matplotlib.colors import ListedColormap

    return ListedColormap([colour])


def _bare(fig: Figure, axes: Sequence[Axes]) -> None:
    """Takes the color scales away: numbers, or a word, say the same."""
    for ax in [ax for ax in fig.axes if ax not in axes]:
        ax.remove()


def _name(layer: int, head: int) -> str:
    return f"{layer}.{head}"


def grid(maps: Sequence[Any], letters: Sequence[str], scores: Any) -> None:
    """Each head (T, T) of each block, a row of panels for each block. maps: (H, T, T) a block; scores: (blocks, H)."""
    count = len(maps[0])
    titles = [[f"block {i}, head {h}: score {float(scores[i][h]):.2f}" for h in range(count)] for i in range(len(maps))]
    fig, axes = panels(len(maps) * count, width=8.8, height=2.65 * len(maps), columns=count)
    for number, ax in enumerate(axes):
        block, head = divmod(number, count)
        ax.set_title(titles[block][head])
        _map(ax, maps[block][head], letters, size=10.5, numbers=False)
        ax.title.set_fontsize(10)
        ax.tick_params(axis="x", rotation=0)
    _bare(fig, axes)
    show(
        fig,
        alt="Maps of all heads on a short passage, character by character. "
        + "; ".join(one for row in titles for one in row)
        + ".",
    )


def all_heads(score: Any, title: str, most: int) -> None:
    """A score (layers, heads) as a map of the whole model; the `most` largest are named."""
    score = np.asarray(score, float)
    fig, (ax,) = panels(1, width=8.8, height=3.3)
    image = ax.imshow(score.T, cmap=_ramp(), vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.set_xticks(np.arange(-0.5, len(score)), minor=True)
    ax.set_yticks(np.arange(-0.5, score.shape[1]), minor=True)
    ax.grid(which="minor", color="#E2E2E2", linewidth=0.8)
    ax.tick_params(which="both", length=0)
    ax.set(xlabel="layer", ylabel="head", xticks=range(len(score)), yticks=range(score.shape[1]), title=title)
    best = np.argsort(score.ravel())[::-1][:most]
    named = [(*divmod(int(place), score.shape[1]), score.flat[place]) for place in best]
    for layer, head, value in named:
        ax.text(
            layer,
            head,
            f"{value:.2f}"[1:] if value < 0.995 else "1",
            ha="center",
            va="center",
            fontsize=8.5,
            color="white" if value > 0.5 else _INK,
        )
    bar = fig.colorbar(image, ax=ax, shrink=0.8, pad=0.01)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=9, length=2)
    said = ", ".join(f"{_name(layer, head)} with {value:.2f}" for layer, head, value in named)
    show(
        fig,
        alt=f"{title}: a map of {len(score)} layers by {score.shape[1]} heads, nearly all pale. The largest: {said}.",
    )


def _ramp() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("weights", ("#FFFFFF", "#C6DDEE", "#6FAED6", "#0072B2", "#00395A"))


def explorer(maps: Maps, layer: int, head: int) -> None:
    """Any head on any sentence, chosen by controls where widgets run; elsewhere this head on the first sentence."""

    def draw(sentence: str, layer: int, head: int) -> Picture:
        tokens, weights = maps[sentence]
        fig = _one_large(tokens, weights[layer], layer, head)
        last = weights[layer, head, -1]
        return picture(
            fig,
            alt=f"Head {_name(layer, head)} on “{sentence}”. Its last token looks most at {_seen(tokens[last.argmax()])}, "
            f"with {last.max():.2f}. Beside it all heads of layer {layer}, small.",
        )

    start = next(iter(maps))
    layers, heads = maps[start][1].shape[:2]
    must_exist([(layer, head)], layers, heads)
    try:
        from ipywidgets import Dropdown, IntSlider
    except ImportError:
        print(draw(start, layer, head))
        return
    wide = {"description_width": "5em"}
    follow(
        draw,
        Dropdown(options=list(maps), description="sentence", style=wide, layout={"width": "40em"}),
        IntSlider(layer, 0, layers - 1, description="layer", style=wide, continuous_update=False),
        IntSlider(head, 0, heads - 1, description="head", style=wide, continuous_update=False),
    )


def _one_large(tokens: Sequence[str], of_layer: np.ndarray, layer: int, head: int) -> Figure:
    """The chosen head with its tokens, and beside it all heads of its layer."""
    fig, (large, small) = panels(2, width=9.6, height=4.7, ratios=(1.35, 1))
    large.set_title(f"layer {layer}, head {head}: rows look at columns")
    _map(large, of_layer[head], tokens)
    t, gap = len(tokens), 1.6
    small.set(xlim=(-1, 3 * (t + gap)), ylim=(3 * (t + gap + 1.4), -2.4), aspect="equal")
    small.axis("off")
    small.set_title(f"all heads of layer {layer}")
    for number, weights in enumerate(of_layer):
        x, y = (number % 3) * (t + gap), (number // 3) * (t + gap + 1.4)
        small.imshow(weights, cmap=_ramp(), vmin=0, vmax=1, extent=(x, x + t, y + t, y), interpolation="nearest")
        small.plot(
            [x, x + t, x + t, x, x],
            [y, y, y + t, y + t, y],
            color=COLOURS["vermillion"] if number == head else "#CFCFCF",
            linewidth=2 if number == head else 0.8,
        )
        small.text(x + t / 2, y - 0.35, _name(layer, number), ha="center", va="bottom", fontsize=8)
    small.set(xlim=(-1, 3 * (t + gap)), ylim=(3 * (t + gap + 1.4), -2.4))
    _bare(fig, (large, small))
    return fig


def pair(
    tokens: Sequence[str],
    maps: Mapping[str, Any],
    columns_of: Sequence[Sequence[str]] | None = None,
    *,
    copies: bool = False,
    last: bool = False,
) -> None:
    """Two heads, or one head twice, side by side. columns_of: the tokens of each where they are not the same.

    copies: the text stands there twice, and a line parts the two. last: the last row is framed.
    """
    fig, axes = panels(len(maps), width=8.8, height=4.7)
    from matplotlib.patches import Rectangle

    said, t = [], len(tokens)
    for number, (ax, (title, weights)) in enumerate(zip(axes, maps.items(), strict=True)):
        ax.set_title(title)
        own = (columns_of or [tokens] * len(maps))[number]
        _map(ax, weights, own, numbers=t < 16)
        if copies:
            half, end = t / 2 - 0.5, t - 0.5
            ax.plot((-0.5, end), (half, half), color=COLOURS["vermillion"], linewidth=1, zorder=6)
            ax.plot((half, half), (half, end), color=COLOURS["vermillion"], linewidth=1, zorder=6)
        if last:
            frame = {"facecolor": "none", "edgecolor": COLOURS["vermillion"], "linewidth": 2, "clip_on": False}
            ax.add_patch(Rectangle((-0.5, t - 1.5), t, 1, zorder=6, **frame))
        row = np.asarray(weights)[-1]
        said.append(
            f"{title}: the last row, {_seen(own[-1])}, looks most at {_seen(own[int(row.argmax())])}, with {row.max():.2f}"
        )
    _bare(fig, axes)
    show(fig, alt=f"{len(maps)} maps of weights, tokens on both axes. " + "; ".join(said) + ".")


def chain() -> None:
    """The two heads of induction, drawn by hand: one notes what stood before, the other looks for that note."""
    tokens, x = ("cold", "window", "paper", "…", "cold"), (0, 1.5, 3, 4.2, 5.4)
    fig, (ax,) = panels(1, width=9.6, height=3.3)
    ax.set(xlim=(-2.3, 6.4), ylim=(-0.35, 2.95))
    ax.axis("off")
    for row, name in enumerate(("the tokens", "after layer 16", "after layer 17")):
        ax.text(-2.2, 1.25 * row, name, va="center", fontsize=9.5, color="#555555")
    for at, token in zip(x, tokens, strict=True):
        for row in range(3):
            lit = (at, row) in ((1.5, 1), (5.4, 2))
            said = {(1.5, 1): "window\n(after cold)", (5.4, 2): "cold\n(finds window)"}.get((at, row), token)
            ax.text(
                at,
                1.25 * row,
                said,
                ha="center",
                va="center",
                fontsize=9.5,
                zorder=3,
                color=_INK,
                bbox={
                    "boxstyle": "round,pad=0.35",
                    "facecolor": "#FCE8DC" if lit else "white",
                    "edgecolor": "#C9C9C9",
                    "linewidth": 1,
                },
            )
            if row:
                ax.plot((at, at), (1.25 * row - 1.25, 1.25 * row), color="#DDDDDD", linewidth=1.2, zorder=0)
    for start, end, colour, words, place in (
        ((0, 0), (1.5, 1.25), "blue", "16.0 notes the token before", (1.05, 0.55)),
        ((1.5, 1.25), (5.4, 2.5), "vermillion", "17.4 asks: who stands after cold?", (3.15, 1.62)),
    ):
        look = {
            "arrowstyle": "-|>",
            "color": COLOURS[colour],
            "linewidth": 2.2,
            "shrinkA": 24 if colour == "blue" else 42,
            "shrinkB": 42,
        }
        ax.annotate("", end, start, arrowprops=look)
        ax.text(
            *place,
            words,
            va="center",
            fontsize=9,
            color=COLOURS[colour],
            fontweight="bold",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )
    ax.set_title("Two heads, one after the other: a note, and a search for that note")
    show(
        fig,
        alt="Tokens cold, window, paper, …, cold in three rows. In layer 16 an arrow goes from cold to window: 16.0 notes the token "
        "before. In layer 17 an arrow goes from window to the second cold: 17.4 finds the token that stands after cold.",
    )


def sinks(weight: Any, length: Any) -> None:
    """By layer: the mean weight on the first token, and how long its value is beside those of the others (the median of the heads)."""
    fig, (left, right) = panels(2, width=9.6, height=3.2)
    layers = np.arange(len(weight))
    left.bar(layers, weight, color=COLOURS["blue"], width=0.75)
    left.axhline(float(np.mean(weight)), color=_INK, linewidth=1, linestyle="--")
    left.text(len(layers), float(np.mean(weight)) + 0.02, f"mean\n{np.mean(weight):.2f}", fontsize=9)
    left.set(
        xlim=(-1, 1.13 * len(layers)),
        ylim=(0, 1),
        xlabel="layer",
        ylabel="weight on the first token",
        title="Most weight goes to the first token …",
    )
    right.bar(layers, length, color=COLOURS["orange"], width=0.75)
    right.axhline(1, color=_INK, linewidth=1, linestyle="--")
    right.text(len(layers) - 0.5, 1.03, "as long as the others", ha="right", fontsize=9)
    right.set(
        xlim=left.get_xlim(), ylim=(0, 1.6), xlabel="layer", ylabel="length (others: 1)", title="… whose value is short"
    )
    show(
        fig,
        alt=f"Bars by layer. Weight on the first token: {np.mean(weight):.2f} on average, the least {np.min(weight):.2f} in layer "
        f"{int(np.argmin(weight))}. In the median layer its value is {np.median(length):.2f} times as long.",
    )


def cheat(scores: Sequence[float], maps: Mapping[int, Any], first: int = 6) -> None:
    """Scores of a layer trained at period 10, by the period of the test, from `first` on; and its map (T, T) at two periods."""
    fig, axes = panels(3, width=8.8, height=3.2, ratios=(1.25, 1, 1))
    periods = range(first, first + len(scores))
    axes[0].plot(list(periods), scores, "o-", markersize=5)
    said = ", ".join(f"{value:.2f} at {period}" for period, value in zip(periods, scores, strict=True))
    axes[0].set(
        ylim=(-0.02, 1.02),
        xlabel="period of the test",
        ylabel="induction score",
        xticks=list(periods),
        title="Trained at 10: no other period",
    )
    for ax, (period, weights) in zip(axes[1:], maps.items(), strict=True):
        weights = np.asarray(weights)
        t = len(weights)
        ax.imshow(weights, cmap=_ramp(), vmin=0, vmax=1, interpolation="nearest")
        rows = np.arange(period, t)
        ax.plot(rows - period + 1, rows, color=COLOURS["vermillion"], linewidth=1.4, alpha=0.9)
        ax.grid(False)
        ax.set(
            xlabel="key position",
            ylabel="query position",
            xticks=range(0, t, 9),
            yticks=range(0, t, 9),
            title=f"its map at period {period}",
        )
    show(
        fig,
        alt="Left: induction scores by the period of the test: " + said + ". Right: the map of the layer trained at "
        "period 10 looks the same at both periods; the line where an induction head would look is on it at 10.",
    )


def ablation(losses: Mapping[str, float], before: Any, after: Any) -> None:
    """The loss in the second copy without some heads; and induction scores (layers, heads) before and after the first of them went."""
    fig, (left, right) = panels(2, width=8.8, height=3.9)
    names = list(losses)
    dear = [losses[name] > 1.5 * losses[names[0]] for name in names[1:]]
    colours = [COLOURS["grey"], *(COLOURS["vermillion" if each else "sky"] for each in dear)]
    left.barh(range(len(names)), list(losses.values()), color=colours, height=0.62)
    left.set_yticks(
        range(len(names)),
        [textwrap.fill(f"without {name}", 22) if i else "the whole model" for i, name in enumerate(names)],
    )
    left.invert_yaxis()
    left.grid(False, axis="y")
    for row, value in enumerate(losses.values()):
        left.text(value + 0.12, row, f"{value:.1f}", va="center", fontsize=9.5)
    left.set(
        xlim=(0, 1.15 * max(losses.values())),
        xlabel="loss in the second copy (nats a token)",
        title="The loss of copying, without these heads",
    )
    before, after = np.asarray(before, float), np.asarray(after, float)
    best = {
        _name(*divmod(int(place), before.shape[1])): (before.flat[place], after.flat[place])
        for place in np.argsort(before.ravel())[::-1][: int((before > 0.5).sum())]
    }
    for values in best.values():
        right.plot((0, 1), values, "o-", color=COLOURS["blue"], linewidth=1.6, markersize=5)
    _beside(right, 0, [(values[0], name) for name, values in best.items()], "right")
    _beside(right, 1, [(values[1], name) for name, values in best.items()], "left")
    right.set_xticks((0, 1), ["the whole model", f"without {names[1]}"])
    right.set(
        xlim=(-0.45, 1.45), ylim=(-0.07, 1), ylabel="induction score", title=f"{names[1]} feeds the induction heads"
    )
    said = ", ".join(f"{name} {value:.1f}" for name, value in losses.items())
    scores = ", ".join(f"{name} from {one:.2f} to {other:.2f}" for name, (one, other) in best.items())
    show(
        fig, alt=f"Loss in the second copy without: {said} nats. Induction scores when {names[1]} is removed: {scores}."
    )


def _beside(ax: Axes, x: float, marks: Sequence[tuple[float, str]], side: str, apart: float = 0.055) -> None:
    """Names beside points at x, each with a line to its point, moved apart where they would touch. side: where the text ends."""
    heights, out = np.array([value for value, _ in sorted(marks)], float), -1 if side == "right" else 1
    for _ in range(100):  # neighbors push each other up and down, half of what is missing each
        push = np.maximum(apart - np.diff(heights), 0) / 2
        heights += np.append(0, push) - np.append(push, 0)
    for (value, name), height in zip(sorted(marks), heights, strict=True):
        ax.plot((x + 0.03 * out, x + 0.12 * out), (value, height), color=COLOURS["grey"], linewidth=0.8)
        ax.text(x + 0.14 * out, height, name, ha=side, va="center", fontsize=9)


def loss_without_each_head(
    losses: Mapping[tuple[int, int], float], with_mean: Mapping[tuple[int, int], float], whole: float
) -> None:
    """The loss with each head removed, and with its mean in its place. losses, with_mean: by (block, head)."""
    fig, (ax,) = panels(1, width=8.2, height=3.2)
    names, at, width = [_name(*head) for head in losses], np.arange(len(losses)), 0.38
    for shift, values, colour, label in (
        (-width / 2, losses, "vermillion", "the head adds nothing"),
        (width / 2, with_mean, "sky", "the head adds its mean"),
    ):
        drawn = ax.bar(at + shift, list(values.values()), width, color=COLOURS[colour], label=label)
        ax.bar_label(drawn, [f"{value:.2f}" for value in values.values()], padding=2, fontsize=8)
    ax.axhline(whole, color=_INK, linewidth=1, linestyle="--", label=f"the whole model, {whole:.2f}")
    ax.set_xticks(at, names)
    ax.grid(False, axis="x")
    ax.margins(y=0.3)
    ax.legend(frameon=False, loc="upper right", ncols=3)
    ax.set(
        xlabel="head that is taken away (block.head)",
        ylabel="held-out loss (nats)",
        title=f"Of {len(names)} heads, {names[int(np.argmax(list(losses.values())))]} is missed most",
    )
    said = ", ".join(f"{name} {a:.2f} or {b:.2f}" for name, a, b in zip(names, losses.values(), with_mean.values()))
    show(fig, alt=f"Held-out loss where a head adds nothing, or its mean: {said}; the whole model {whole:.2f}.")


def activation_patching(
    words: Sequence[str], rows: Any, asks: int, places: tuple[int, int], means: tuple[float, float]
) -> None:
    """What 17.4 gives to each word of the first copy, before and after two notes of 16.0 changed places.

    rows: (2, words), before and after. asks: the word whose second occurrence looks. places: whose notes changed places.
    means: over all exchanges, the weight on the first place before and on the second one after.
    """
    rows = np.asarray(rows, float)
    names = [_seen(word) for word in words]
    fig, axes = panels(2, width=9.6, height=3.7)
    a, b = (names[place] for place in places)
    titles = (
        f"17.4 looks at “{a}”\n(mean of 25 exchanges: {means[0]:.2f})",
        f"After the exchange: at “{b}”\n(mean: {means[1]:.2f})",
    )
    for ax, values, title in zip(axes, rows, titles, strict=True):
        colours = [COLOURS["vermillion" if at in places else "sky"] for at in range(len(names))]
        ax.bar(range(len(names)), values, color=colours, width=0.7)
        ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
        ax.grid(False, axis="x")
        ax.set(ylim=(0, 1.1), title=title)
        for at in places:
            ax.text(at, values[at] + 0.02, f"{values[at]:.2f}", ha="center", fontsize=9)
    axes[0].set_ylabel(f"weight of 17.4 from the second “{names[asks]}”")
    show(
        fig,
        alt=f"From the second {names[asks]}, 17.4 gives {rows[0, places[0]]:.2f} to {a} and {rows[0, places[1]]:.2f} to {b}. With what "
        f"16.0 found at the two exchanged, it gives {rows[1, places[0]]:.2f} and {rows[1, places[1]]:.2f}. Over all exchanges the "
        f"means of the two large ones are {means[0]:.2f} and {means[1]:.2f}.",
    )


def paris(share: Any, gap: float, tokens: Sequence[str], row: Any) -> None:
    """What each head (layers, heads) adds to the logit of Paris over that of London; and where the largest of them looks."""
    share = np.asarray(share, float)
    fig, (left, right) = panels(2, width=9.6, height=3.4, ratios=(1.5, 1))
    order = np.argsort(-np.abs(share.ravel()))[:12]
    order = order[np.argsort(-share.flat[order])]
    names = [_name(*divmod(int(place), share.shape[1])) for place in order]
    colours = [COLOURS["vermillion" if share.flat[place] == share.max() else "sky"] for place in order]
    left.bar(range(len(order)), share.flat[order], color=colours, width=0.7)
    left.axhline(0, color=_INK, linewidth=0.8)
    left.set_xticks(range(len(order)), names)
    left.tick_params(axis="x", labelsize=8.5)
    left.grid(False, axis="x")
    left.set(
        xlabel="head",
        ylabel="logits for Paris over London",
        title=f"Who says Paris? All parts together {gap:.1f}, all heads {share.sum():.1f}",
    )
    right.bar(range(len(tokens)), row, color=COLOURS["blue"], width=0.7)
    right.set_xticks(range(len(tokens)), [_seen(token) for token in tokens])
    right.grid(False, axis="x")
    first = _name(*divmod(int(share.argmax()), share.shape[1]))
    right.set(ylim=(0, 1), ylabel="weight", title=f"Where {first} looks from “{_seen(tokens[-1])}”")
    said = ", ".join(f"{name} {share.flat[place]:+.2f}" for name, place in zip(names, order, strict=True))
    show(
        fig,
        alt=f"What heads add to the logit of Paris over London: {said}. The largest looks at: "
        + ", ".join(f"{_seen(token)} {weight:.2f}" for token, weight in zip(tokens, row, strict=True))
        + ".",
    )


def capitals(cities: Mapping[str, str], whole: Any, without: Any, layer: int, chosen: int) -> None:
    """The probability of each capital: with all heads (n,), and without each head of a layer (heads, n), of which one was chosen."""
    whole, without, name = np.asarray(whole, float), np.asarray(without, float), _name(layer, chosen)
    fig, (ax,) = panels(1, width=8.6, height=3.1)
    rows = np.arange(len(cities))
    ax.barh(rows, whole, color="#E3E3E3", height=0.66, label="the whole model")
    for head, values in enumerate(without):
        if head != chosen:
            ax.plot(
                values,
                rows,
                "|",
                color=COLOURS["blue"],
                markersize=13,
                markeredgewidth=1.6,
                label="" if head else f"without another head of layer {layer}",
            )
    ax.plot(without[chosen], rows, "D", color=COLOURS["vermillion"], markersize=7, label=f"without {name}")
    for row, left in enumerate(without[chosen]):
        ax.text(left + 0.02, row, f"{left:.2f}", va="center", fontsize=9)
    chosen_on, *others = (f"{country}: {city}" for country, city in cities.items())
    ax.set_yticks(rows, [f"{chosen_on} (chosen here)", *others])
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=9)
    ax.set(
        xlim=(0, 1),
        xlabel="probability of the capital",
        title=f"Of layer {layer}, {name} is missed most on every prompt",
    )
    said = "; ".join(
        f"{city} {whole[row]:.2f}, without {name} {without[chosen, row]:.2f}, without another head of the layer "
        f"{np.delete(without[:, row], chosen).min():.2f} to {np.delete(without[:, row], chosen).max():.2f}"
        for row, city in enumerate(cities.values())
    )
    show(fig, alt=f"The probability of the capital after “The capital of … is”: {said}.")


def writers(looks: Any, adds: Any, named: Sequence[tuple[int, int]]) -> None:
    """What heads give to the word that really follows, and add to its logit; and to both words, before and after the exchange.

    looks: (layers, heads). adds: before and after, to the true word and the exchanged one, (2, 2, layers, heads). named: (layer, head).
    """
    looks, adds = np.asarray(looks, float), np.round(np.asarray(adds, float), 2) + 0.0  # no −0.00
    fig, (left, right) = panels(2, width=9.6, height=3.9, ratios=(1.1, 1))
    left.plot(looks.ravel(), adds[0, 0].ravel(), "o", color=COLOURS["sky"], markersize=4, markeredgewidth=0)
    for head in named:
        at, up = looks[head], adds[0, 0][head]
        left.plot(at, up, "o", color=COLOURS["vermillion"], markersize=7)
        left.text(at + 0.025, up, _name(*head), va="center", fontsize=9)
    left.axhline(0, color=_INK, linewidth=0.8)
    left.margins(y=0.12)
    left.set(
        xlim=(-0.04, 1),
        xlabel="weight on the word that follows",
        ylabel="logits added to that word",
        title=f"{looks.size} heads: looking is not writing",
    )
    bars = {
        "true word, before": (adds[0, 0], "grey"),
        "true word, after": (adds[1, 0], "blue"),
        "other word, after": (adds[1, 1], "orange"),
    }
    for number, (label, (values, colour)) in enumerate(bars.items()):
        drawn = right.bar(
            np.arange(len(named)) + 0.27 * (number - 1),
            [values[head] for head in named],
            0.25,
            color=COLOURS[colour],
            label=label,
        )
        right.bar_label(drawn, [f"{values[head]:.2f}" for head in named], padding=2, fontsize=8)
    right.set_xticks(range(len(named)), [_name(*head) for head in named])
    right.grid(False, axis="x")
    right.margins(y=0.15)
    right.legend(frameon=False, loc="upper left", fontsize=9)
    right.set(ylabel="logits added", title="After the exchange they write both words")
    said = "; ".join(
        f"{_name(*head)} gives {looks[head]:.2f} to the word that follows and adds {adds[0, 0][head]:.2f} to its logit, after the "
        f"exchange {adds[1, 0][head]:.2f}, and {adds[1, 1][head]:.2f} to the other word"
        for head in named
    )
    show(fig, alt=f"Means of 25 exchanges. {said}.")


def splits(on_half: Any, on_other: Any) -> None:
    """For each split of the pairs: how far the head that one half chose leans on that half, and on the other."""
    fig, (ax,) = panels(1, width=8.2, height=2.8)
    both = {"on the half that chose it": (on_half, "orange"), "on the other half": (on_other, "blue")}
    edges = np.arange(0, 0.62, 0.02)
    for name, (values, colour) in both.items():
        mean = float(np.mean(values))
        ax.hist(values, edges, color=COLOURS[colour], alpha=0.55, label=name)
        ax.axvline(mean, color=COLOURS[colour], linewidth=2)
        ax.annotate(
            f"mean {mean:.2f}",
            (mean, 1),
            (4, -2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            va="top",
            fontsize=9,
        )
    ax.legend(frameon=False, loc="center right")
    ax.margins(y=0.18)
    ax.set(
        xlim=(0, 0.6),
        xlabel="how far the chosen head leans",
        ylabel="splits",
        title=f"All {len(on_half):,} splits: part of the lead was choice, most of it stays",
    )
    said = "; ".join(
        f"{name} by {np.mean(values):.2f} on average, from {np.min(values):.2f} to {np.max(values):.2f}"
        for name, (values, _) in both.items()
    )
    show(fig, alt=f"Two histograms over {len(on_half):,} splits. The chosen head leans {said}.")


def twins(lean: Any, listed: Any, pairs: Sequence[Sequence[str]]) -> None:
    """How far 13.8 and 17.0 lean in each pair. lean, listed: (pairs, layers, heads) in sentences and in lists; pairs: their words."""
    leaning = {
        "13.8, chosen most often": lean[:, 13, 8],
        "17.0, right in all sixteen": lean[:, 17, 0],
        "17.0 in a list, without an “it”": listed[:, 17, 0],
    }
    names = [f"{one}, {two}: {first}, {second}" for one, _, two, first, second in pairs]
    fig, axes = panels(len(leaning), width=9.6, height=5.6)
    rows, said, most = np.arange(len(names)), [], max(np.max(values) for values in leaning.values())
    for number, (ax, (title, values)) in enumerate(zip(axes, leaning.items(), strict=True)):
        values = np.asarray(values, float)
        ax.axvline(0, color=_INK, linewidth=0.9)
        right = values > 0
        for good, colour, mark in ((True, COLOURS["blue"], "o"), (False, COLOURS["vermillion"], "x")):
            ax.plot(values[right == good], rows[right == good], mark, color=colour, markersize=6, markeredgewidth=1.8)
        ax.hlines(rows, 0, values, color="#B9C7D3", linewidth=1.2, zorder=1)
        ax.axvline(values.mean(), color=COLOURS["green"], linewidth=2)
        ax.set_yticks(rows, names if not number else [""] * len(names))
        ax.tick_params(axis="y", labelsize=11)
        ax.set(ylim=(len(names) - 0.5, -0.5), xlim=(-0.22, most + 0.08))
        ax.set_title(title.replace(", ", ",\n"), fontsize=11)
        said.append(f"{title}: mean {values.mean():.2f}, {right.sum()} of {len(values)} positive")
    axes[len(axes) // 2].set_xlabel("more weight on the noun that fits  →   (green: the mean)")
    show(
        fig,
        alt="For sixteen pairs of sentences, how much more the last word looks at the noun that fits. "
        + "; ".join(said)
        + ".",
    )


def rollout(tokens: Sequence[str], rolled: Any, moved: Any) -> None:
    """The last row of a rollout beside how far the prediction moves where each token is replaced."""
    fig, (left, right) = panels(2, width=9.6, height=3.2)
    names = [_seen(token) for token in tokens]
    for ax, values, colour, label, title in (
        (left, rolled, "vermillion", "share of the last token", "Rollout: it all comes from the first token"),
        (right, moved, "blue", "the prediction moves by (nats)", "Experiment: each token replaced in turn"),
    ):
        ax.bar(range(len(names)), values, color=COLOURS[colour], width=0.65)
        ax.set_xticks(range(len(names)), names)
        ax.grid(False, axis="x")
        ax.margins(y=0.15)
        ax.set(ylabel=label, title=title)
        for at, value in enumerate(values):
            ax.text(at, value, f"{value:.2f}" if ax is left else f"{value:.1f}", ha="center", va="bottom", fontsize=9)
    shares, far = (
        ", ".join(f"{name} {value:.2f}" for name, value in zip(names, values, strict=True))
        for values in (rolled, moved)
    )
    show(fig, alt=f"Rollout: {shares}. How far the prediction moves where a token is replaced, in nats: {far}.")
