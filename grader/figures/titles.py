"""Titles that stay clear of their neighbors: they are measured as they will be drawn, and wrapped where they are too wide."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

GAP = 6  # pixels between two titles, and between a title and the edge
_MATH = re.compile(r"\$[^$]*\$")  # is not broken


def fit_titles(fig: Figure) -> bool:
    """Lays the figure out and wraps each title to the room that it has: halfway to the next panel's in its row, and to the edge of the
    figure. Returns: whether a title was wrapped, so that the layout no longer holds."""
    if layout := fig.get_layout_engine():
        layout.execute(fig)
    for ax in fig.axes:
        ax.apply_aspect()
    titled = [ax for ax in fig.axes if ax.get_title()]
    rooms = {ax.title: 2 * min(_room(ax, other) for other in (None, *titled) if other is not ax) for ax in titled}
    rooms |= {text: fig.bbox.width - 2 * GAP for text in fig.texts if text.get_text() == fig.get_suptitle()}
    return any([_wrap(title, room) for title, room in rooms.items()])


def _room(ax: Axes, other: Axes | None) -> float:
    """Half the width that a title may have beside another panel's, None: within the figure."""
    box = ax.get_window_extent()
    middle = (box.x0 + box.x1) / 2
    if other is None:
        return min(middle, ax.figure.bbox.width - middle) - GAP
    other_box = other.get_window_extent()
    if abs(other_box.y1 - box.y1) > box.height / 2:  # of another row
        return float("inf")
    return abs((other_box.x0 + other_box.x1) / 2 - middle) / 2 - GAP


def _wrap(title: Text, room: float) -> bool:
    if title.get_window_extent().width <= room:
        return False
    whole = _MATH.sub(lambda match: match[0].replace(" ", "\u00a0"), " ".join(title.get_text().split()))
    letters = len(whole)
    while letters > 6:
        title.set_text(textwrap.fill(whole, letters, break_long_words=False))
        width = title.get_window_extent().width
        if width <= room:
            break
        letters = min(letters - 1, int(letters * room / width) + 2)
    return True
