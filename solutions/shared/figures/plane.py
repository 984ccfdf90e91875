"""What lessons draw in the plane."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from grader.figures import COLOURS


def arrow(ax: Axes, end: Sequence[float], *, reach: float | None = None, gap: float = 0) -> None:
    """A vector (2,) from the origin, which ends so many points before its tip.

    reach: the axes, of equal scale, show 0 … reach, or −reach … reach where it points below zero; None: they stay as they are.
    """
    style = {"arrowstyle": "-|>,head_width=0.25,head_length=0.5", "color": COLOURS["vermillion"], "linewidth": 2.2}
    ax.annotate("", end, (0, 0), arrowprops=style | {"shrinkA": 0, "shrinkB": gap})
    if reach is not None:
        for number, limits, set_limits in ((end[0], ax.get_xlim(), ax.set_xlim), (end[1], ax.get_ylim(), ax.set_ylim)):
            set_limits(-reach if number < 0 else min(limits[0], -0.12 * reach), reach)
        ax.set_aspect("equal")
