"""The one picture of the whole machine: one token asks, all tokens answer. Lessons light the parts that they are about."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from grader.figures import COLOURS, SCREEN_DPI, panels, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = ("tokens", "query", "key", "value", "scores", "weights", "blend", "output")

# One head, with numbers designed by hand so that 'it' finds the animal; no model was trained for them.
WORDS, ASKS = ("animal", "street", "it", "tired"), "it"
QUERY = np.array([2.0, 0.0, 1.0, 1.0])
KEYS = np.array([[1.0, 0.0, 1.0, 1.0], [1.0, 1.0, -1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
VALUES = np.array([[1.0, 0.15, 0.3], [0.1, 0.9, 0.2], [0.4, 0.3, 0.3], [0.2, 0.1, 1.0]])


class Table(NamedTuple):
    """The words of a machine, the one that asks, and their vectors: query (d_k,), keys (n, d_k), values (n, d_v)."""

    words: tuple[str, ...]
    asks: str
    query: np.ndarray
    keys: np.ndarray
    values: np.ndarray


_PAINT = {
    "tokens": "#444444",
    "query": COLOURS["vermillion"],
    "key": COLOURS["blue"],
    "value": COLOURS["green"],
    "scores": "#B07900",
    "weights": "#A04578",
    "blend": COLOURS["green"],
    "output": "#00664A",
}
_GHOST, _GHOST_INK = "#C8C8C8", "#868686"
_CELL = 19  # pixels of a number of a vector
_WIDE_CELL = 26  # where the number is written into it
_TOKEN, _VECTOR, _SCORE, _SOFTMAX, _WEIGHT, _BLEND, _SUM, _OUTPUT = (
    62,
    190,
    345,
    420,
    462,
    606,
    716,
    770,
)  # where columns stand
_HIGHEST, _APART = 268, 68  # the height of the first key's row, and from each to the next
_TOP = 334  # the row of the token that asks
_LANE = 17  # how far below a key its value lies


def draw(
    lit: Collection[str] | None = None, title: str = "", *, scaled: bool = True, table: Table | None = None
) -> None:
    """Draws tokens → query, keys, values → scores → weights → blend → output, for the token 'it'.

    lit: the parts in colour, names from PARTS; the others are pale. None: all of them.
    scaled: the scores are divided by √d_k; else they are plain dot products, and the division stands beside softmax.
    table: a lesson's own numbers, at most four words and vectors of two numbers, which are then written into the cells.
    Raises: ValueError for a part that there is not.
    """
    lit = set(PARTS if lit is None else lit)
    if lit - set(PARTS):
        raise ValueError(f"the machine has the parts {', '.join(PARTS)}; got {', '.join(sorted(lit - set(PARTS)))}")
    own = table is not None
    table = table or Table(WORDS, ASKS, QUERY, KEYS, VALUES)
    products, root = table.keys @ table.query, np.sqrt(len(table.query))
    weights = np.exp(products / root) / np.exp(products / root).sum()
    scores = products / root if scaled else products
    spare = _APART * (len(WORDS) - len(table.words))  # below the rows
    fig, (ax,) = panels(1, width=8.8, height=(4.5 if title else 4.15) - spare / SCREEN_DPI)
    ax.set(xlim=(0, 845), ylim=(spare, 396))
    ax.axis("off")
    if title:
        ax.set_title(title, fontsize=12, fontweight="bold")
    machine = _Machine(ax, lit, scaled, table, own)
    machine.headings()
    machine.question()
    for row in zip(machine.rows, table.words, table.keys, table.values, scores, weights, strict=True):
        machine.answer(*row)
    machine.together(weights @ table.values)
    show(fig, alt=_said(lit, scores, weights, scaled, table, own))


class _Machine:
    """What is drawn on one axes, in screen pixels; parts that are not lit are pale."""

    def __init__(self, ax: Axes, lit: set[str], scaled: bool, table: Table, written: bool) -> None:
        self.ax, self.lit, self.scaled, self.table, self.written = ax, lit, scaled, table, written
        self.cell = _WIDE_CELL if written else _CELL
        self.rows = [_HIGHEST - _APART * j for j in range(len(table.words))]
        self.middle = (self.rows[0] + self.rows[-1]) / 2

    def colour(self, *parts: str) -> str:
        """The colour of the last of these parts where all of them are lit."""
        return _PAINT[parts[-1]] if self.lit.issuperset(parts) else _GHOST

    def ink(self, *parts: str) -> str:
        return _PAINT[parts[-1]] if self.lit.issuperset(parts) else _GHOST_INK

    def headings(self) -> None:
        """The name of each column, and below the rows what is done there."""
        middle, below = _VECTOR + 2 * _CELL, self.rows[-1] - 50
        columns = (
            (_TOKEN, "tokens", "tokens", "a vector x each" if not self.written and "tokens" in self.lit else ""),
            (_SCORE, "scores", "scores", "q · k / √d$_k$" if self.scaled else "q · k"),
            (_WEIGHT + 36, "weights", "weights", "positive, sum 1"),
            (_BLEND + 29, "blend", "blend", "weight × value"),
            (_OUTPUT + 29, "output", "output", "the sum"),
        )
        for x, part, name, does in columns:
            self.text(x, 383, name, self.ink(part), size=11, bold=True)
            self.text(x, below, does, self.ink(part), size=9)
        for at, name in enumerate(("query", "key", "value")):
            x = middle + (-50, 0, 48)[at]
            self.text(x, 383, name, self.ink(name), size=11, bold=True)
            if not self.written and self.lit.issuperset(("tokens", name)):
                self.text(x, below, f"x W$_{name[0] if name != 'key' else 'k'}$", self.ink("tokens", name), size=9)
        said = "the table's numbers" if self.written else "numbers chosen by hand"
        self.text(_OUTPUT - 24, _TOP, said, _GHOST_INK, size=8.5)

    def question(self) -> None:
        """The token that asks, its query, and the line by which the query meets every key."""
        self.box(_TOKEN, _TOP, self.table.asks, bold=True)
        self.arrow((_TOKEN + 44, _TOP), (_VECTOR - 4, _TOP), "tokens", "query")
        self.vector(_VECTOR, _TOP, self.table.query, "query", "q")
        end = _VECTOR + len(self.table.query) * self.cell
        self.line([(end + 16, _TOP), (_SCORE, _TOP), (_SCORE, self.rows[-1])], "query", width=2)
        self.text((_SCORE + end) / 2 + 6, _TOP + 10, f"“{self.table.asks}” asks", self.ink("query"), size=9)

    def answer(self, y: float, word: str, key: np.ndarray, value: np.ndarray, score: float, weight: float) -> None:
        """One token that is asked: its key, score and weight, and below them its value on the way to the blend."""
        self.box(_TOKEN, y - _LANE / 2, word, bold=word == self.table.asks)
        low = y - 1.5 * _LANE
        self.arrow((_TOKEN + 44, y - _LANE / 2), (_VECTOR - 4, y), "tokens", "key")
        self.arrow((_TOKEN + 44, y - _LANE / 2), (_VECTOR - 4, low), "tokens", "value")
        self.vector(_VECTOR, y, key, "key", "k")
        self.vector(_VECTOR, low, value, "value", "v")
        self.arrow((_VECTOR + len(key) * self.cell + 16, y), (_SCORE - 19, y), "key")
        self.line([(_VECTOR + len(value) * self.cell + 16, low), (_BLEND - 12, low)], "value")
        self.arrow((_BLEND - 12, low), (_BLEND - 2, y - 0.6 * _CELL), "value")
        self.number(_SCORE, y, score)
        self.arrow((_SCORE + 19, y), (_SOFTMAX - 12, y), "scores")
        self.arrow((_SOFTMAX + 12, y), (_WEIGHT - 2, y), "weights")
        self.bar(y, weight)
        self.arrow((_WEIGHT + 114, y), (_BLEND - 2, y), "weights")
        self.vector(_BLEND, y, value, "blend", "", strength=weight)
        end = _BLEND + len(value) * self.cell
        self.arrow((end + 2, y), (_SUM - 11, self.middle + (y - self.middle) / 14), "blend")

    def together(self, output: np.ndarray) -> None:
        """Softmax over all scores, and the sum that makes the output."""
        from matplotlib.patches import FancyBboxPatch

        low, high = self.rows[-1] - 17, self.rows[0] + 17
        self.ax.add_patch(
            FancyBboxPatch(
                (_SOFTMAX - 10, low),
                20,
                high - low,
                boxstyle="round,pad=0,rounding_size=8",
                facecolor="white",
                edgecolor=self.colour("weights"),
                linewidth=1.6,
                zorder=3,
            )
        )
        steps = "softmax" if self.scaled else "÷ √d$_k$, then softmax"
        self.text(_SOFTMAX, (low + high) / 2, steps, self.ink("weights"), size=10, rotation=90)
        self.ax.plot(
            _SUM,
            self.middle,
            "o",
            markersize=21,
            markerfacecolor="white",
            markeredgecolor=self.colour("blend"),
            markeredgewidth=1.6,
            zorder=3,
        )
        self.text(_SUM, self.middle - 0.5, "+", self.ink("blend"), size=15, bold=True)
        self.arrow((_SUM + 12, self.middle), (_OUTPUT - 4, self.middle), "output")
        self.vector(_OUTPUT, self.middle, output, "output", "")
        found = f"“{self.table.asks}”, with\nwhat it found"
        self.text(_OUTPUT + 1.5 * _CELL, self.middle - 24, found, self.ink("output"), size=9, top=True)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        colour: str,
        *,
        size: float,
        bold: bool = False,
        rotation: int = 0,
        top: bool = False,
    ) -> None:
        self.ax.text(
            x,
            y,
            text,
            color=colour,
            fontsize=size,
            ha="center",
            va="top" if top else "center",
            zorder=5,
            fontweight="bold" if bold else "normal",
            rotation=rotation,
        )

    def box(self, x: float, y: float, word: str, bold: bool = False) -> None:
        from matplotlib.patches import FancyBboxPatch

        self.ax.add_patch(
            FancyBboxPatch(
                (x - 40, y - 13),
                80,
                26,
                boxstyle="round,pad=0,rounding_size=7",
                facecolor="#F4F4F4" if "tokens" in self.lit else "white",
                edgecolor=self.colour("tokens"),
                linewidth=1.4,
            )
        )
        self.text(x, y - 0.5, word, self.ink("tokens"), size=11, bold=bold)

    def vector(self, x: float, y: float, numbers: np.ndarray, part: str, name: str, strength: float = 1.0) -> None:
        """Cells beside each other: the darker, the larger; a number below 0 is hatched. strength: of the colour."""
        from matplotlib.colors import to_rgba
        from matplotlib.patches import Rectangle

        of_values = self.written and part in ("value", "blend", "output")
        shade = np.abs(numbers) / (np.abs(self.table.values).max() if of_values else max(np.abs(numbers).max(), 1.0))
        for at, (number, dark) in enumerate(zip(numbers, shade, strict=True)):
            fill = to_rgba(_PAINT[part], (0.06 + 0.84 * dark) * strength) if part in self.lit else "white"
            self.ax.add_patch(
                Rectangle(
                    (x + at * self.cell, y - _CELL / 2 + 1.5),
                    self.cell,
                    _CELL - 3,
                    facecolor=fill,
                    linewidth=1.2,
                    edgecolor=self.colour(part),
                    hatch="////" if number < 0 and part in self.lit else None,
                    zorder=2,
                )
            )
            if self.written and part in self.lit:
                said = f"{number * strength:{'.1f' if part in ('blend', 'output') else 'g'}}"
                dark_cell = part in self.lit and dark * strength > 0.55
                self.text(x + (at + 0.5) * self.cell, y - 0.5, said, "white" if dark_cell else "#222222", size=8.5)
        self.text(x + len(numbers) * self.cell + 9, y, name, self.ink(part), size=11, bold=True)

    def number(self, x: float, y: float, score: float) -> None:
        from matplotlib.patches import FancyBboxPatch

        self.ax.add_patch(
            FancyBboxPatch(
                (x - 18, y - 11),
                36,
                22,
                boxstyle="round,pad=0,rounding_size=10",
                facecolor="white",
                edgecolor=self.colour("scores"),
                linewidth=1.6,
                zorder=4,
            )
        )
        self.text(x, y - 0.5, f"{score:.1f}", self.ink("scores"), size=10.5, bold=True)

    def bar(self, y: float, weight: float) -> None:
        from matplotlib.patches import Rectangle

        lit = "weights" in self.lit
        self.ax.add_patch(Rectangle((_WEIGHT, y - 8), 74, 16, facecolor="white", edgecolor=_GHOST, linewidth=1))
        if self.written and not lit:  # what is not computed yet is not shown
            return
        self.ax.add_patch(Rectangle((_WEIGHT, y - 8), 74 * weight, 16, facecolor=self.colour("weights"), linewidth=0))
        self.text(_WEIGHT + 74 + 20, y - 0.5, f"{weight:.2f}", self.ink("weights"), size=10.5, bold=lit)

    def arrow(self, start: tuple[float, float], end: tuple[float, float], *parts: str) -> None:
        self.ax.annotate(
            "",
            end,
            start,
            zorder=1,
            arrowprops={
                "arrowstyle": "-|>,head_width=0.18,head_length=0.35",
                "color": self.colour(*parts),
                "linewidth": 1.4,
                "shrinkA": 0,
                "shrinkB": 0,
            },
        )

    def line(self, points: list[tuple[float, float]], part: str, width: float = 1.4) -> None:
        self.ax.plot(
            *zip(*points, strict=True), color=self.colour(part), linewidth=width, zorder=1, solid_capstyle="round"
        )


def _said(lit: set[str], scores: np.ndarray, weights: np.ndarray, scaled: bool, table: Table, own: bool) -> str:
    weighed = "weights" in lit or not own
    met = ", ".join(
        f"{word} {score:.1f}" + (f" and {weight:.2f}" if weighed else "")
        for word, score, weight in zip(table.words, scores, weights, strict=True)
    )
    coloured = ", ".join(part for part in PARTS if part in lit)
    turns = "softmax turns" if scaled else "which are plain dot products; the division by √d_k and softmax turn"
    pale = "" if lit == set(PARTS) else f" In color: {coloured or 'nothing'}; the other parts are pale."
    scores_alone, both = ("", f" ({met})") if weighed else (f" ({met})", "")
    return (
        f"The attention machine for one token, with {'the numbers of the table' if own else 'numbers chosen by hand'}. "
        f"The token '{table.asks}' gives a query; every token, "
        f"itself included, gives a key and a value. Query and keys give scores{scores_alone}, {turns} them into weights{both}, and "
        f"the values, each times its weight, add up to the output.{pale}"
    )
