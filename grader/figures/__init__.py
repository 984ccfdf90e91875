"""What figures are drawn with: panels, matrices, sliders; the lessons' own are in their folders.

A lesson's own figures live in its folder, solutions/01_three_tokens/figures.py, and are reached as
`figures.three_tokens.some_figure(...)`. They take data or functions and end in `show(fig, alt=…)`:

    fig, (left, right) = panels(2)
    matrix(scores, "Scores: every query meets every key", kind="scores", ax=left)
    matrix(weights, "Weights: each row sums to 1", ax=right)
    show(fig, alt="Two heat maps, three queries by three keys: …")

Nothing here touches pyplot, so a figure is drawn exactly once and a learner's own plots keep
their settings. matplotlib loads with the first figure: cells that draw nothing start at once.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.util.colors import RAMPS, luminance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "Picture", "follow", "matrix", "panels", "picture", "show"]

# Okabe and Ito (2008), "Color Universal Design": told apart with every common color vision.
COLOURS = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "yellow": "#F0E442",
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "purple": "#CC79A7",
    "grey": "#7A7A7A",
}
CYCLE = [COLOURS[name] for name in ("blue", "orange", "green", "vermillion", "purple", "sky", "black")]
SCREEN_DPI = 96  # CSS pixels in an inch; the picture is drawn at twice that for sharp screens
MAX_WRITTEN = 64  # cells of a matrix that still have room for their numbers
_MARGIN = 8  # CSS pixels of white around a picture, which is a card on a dark page
_INK = "#222222"
_FAINT = "#D9D9D9"
_FONT = "DejaVu Sans"  # ships with matplotlib: every machine draws the same, with nothing wider than what was looked at
_RAMPS = {
    "weights": RAMPS["weights"],
    "values": RAMPS["values"],
    "scores": RAMPS["diverging"],
    "difference": RAMPS["diverging"],
}
_SETTINGS: dict[str, Any] = {  # matplotlib's, of the shared look
    "font.family": [_FONT],
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.labelsize": 9.5,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "axes.edgecolor": "#9A9A9A",
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "axes.titlepad": 8,
    "hatch.linewidth": 0.8,
    "mathtext.default": "regular",
}


def __getattr__(name: str) -> Any:
    """The figures of a lesson, `figures.three_tokens` for 01_three_tokens, or a picture that lessons share, when first asked for."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from grader.notebook.kernel_course import kernel_course

    return kernel_course().figures(name)


def panels(
    n: int,
    *,
    width: float | None = None,
    height: float | None = None,
    columns: int | None = None,
    ratios: Sequence[float] | None = None,
) -> tuple[Figure, list[Axes]]:
    """A figure with n axes side by side, in the shared look.

    width, height: of the whole figure in inches (96 screen pixels each). columns: axes in a row,
    by default at most four. ratios: the relative width of each column, such as the numbers of columns of
    matrices that should have cells of one size. Returns: (fig, axes), axes a list of length n, also for n = 1.
    """
    import matplotlib
    from matplotlib.figure import Figure

    columns = columns or min(n, 4)
    rows = -(-n // columns)
    width = width or (4.6 if columns == 1 else min(3.1 * columns, 8.8))
    height = height or rows * min(0.25 + width / columns, 3.4)
    with matplotlib.rc_context(_SETTINGS):  # type: ignore[arg-type]
        fig = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        grid = fig.subplots(rows, columns, squeeze=False, width_ratios=ratios).ravel()
    for spare in grid[n:]:
        spare.remove()
    for ax in grid[:n]:
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_axisbelow(True)
        ax.grid(True, color="#ECECEC", linewidth=0.8)
        ax.tick_params(length=3, width=0.8)
        ax.set_prop_cycle(color=CYCLE, linewidth=[2.0] * len(CYCLE))
    return fig, list(grid[:n])


def matrix(
    array: Any,
    title: str,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    kind: str = "weights",
    limits: tuple[float, float] | None = None,
    ax: Axes | None = None,
    xlabel: str = "key position",
    ylabel: str = "query position",
    fmt: str | None = None,
) -> Axes:
    """A labeled heat map; its numbers are written into the cells where there is room.

    array:  2-D. NaN is hatched, −∞ is gray.
    kind:   'weights' (sequential, 0 to 1), 'scores' or 'difference' (diverging around 0) or
            'values' (sequential, smallest to largest).
    limits: the color range; give the same one to panels that are compared.
    fmt:    how numbers are written, such as '.3f'; by default two decimals, fewer for whole numbers.
    Returns the axes, on a new figure (`ax.figure`) where none is given.
    Raises:  ValueError for another kind or an array that is not 2-D.
    """
    from matplotlib.colors import LinearSegmentedColormap

    array = np.asarray(array, dtype=float)
    if array.ndim != 2:
        raise ValueError(f"matrix draws a 2-D array; got shape {array.shape}")
    if kind not in _RAMPS:
        raise ValueError(f"kind is one of {', '.join(_RAMPS)}; got {kind!r}")
    if ax is None:
        _, (ax,) = panels(1, width=min(max(0.62 * array.shape[1] + 1.2, 2.6), 7))
    low, high = limits or _limits(array, kind)
    ramp = LinearSegmentedColormap.from_list(kind, _RAMPS[kind])
    finite = np.ma.masked_invalid(array)
    image = ax.imshow(finite, cmap=ramp, vmin=low, vmax=high, aspect="equal", interpolation="nearest")
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    _set_ticks(ax, array.shape, rows, columns)
    _mark_missing(ax, array)
    if array.size <= MAX_WRITTEN:
        _write_numbers(ax, array, image, fmt)
    else:
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=9, colors="#555555", length=2)
    return ax


def _limits(array: np.ndarray, kind: str) -> tuple[float, float]:
    finite = array[np.isfinite(array)]
    if kind == "weights":
        return 0.0, 1.0
    if kind == "values":
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
        return float(low), float(high) if high > low else float(low) + 1.0
    reach = float(np.abs(finite).max(initial=0.0)) or 1.0
    return -reach, reach


def _set_ticks(ax: Axes, shape: tuple[int, ...], rows: Sequence[str] | None, columns: Sequence[str] | None) -> None:
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    for axis, names, size in ((ax.xaxis, columns, shape[1]), (ax.yaxis, rows, shape[0])):
        if names is not None:
            axis.set_ticks(range(size), list(names))
        elif size <= 12:
            axis.set_ticks(range(size))
    if columns is not None and sum(map(len, columns)) > 30:
        ax.tick_params(axis="x", rotation=45)
    if max(shape) <= 24:  # white seams keep equal neighbors apart
        ax.set_xticks(np.arange(-0.5, shape[1]), minor=True)
        ax.set_yticks(np.arange(-0.5, shape[0]), minor=True)
        ax.tick_params(which="minor", length=0)
        ax.grid(which="minor", color="white", linewidth=1.5)
        ax.set_axisbelow(False)


def _mark_missing(ax: Axes, array: np.ndarray) -> None:
    """Hatches NaN, grays infinities, and draws a hairline around the matrix: white cells would otherwise vanish on white paper."""
    from matplotlib.patches import Rectangle

    for row, column in np.argwhere(~np.isfinite(array)):
        hatch = "////" if np.isnan(array[row, column]) else None
        ax.add_patch(
            Rectangle(
                (column - 0.5, row - 0.5),
                1,
                1,
                facecolor="#F2F2F2" if hatch else _FAINT,
                edgecolor="#8A8A8A" if hatch else "white",
                hatch=hatch,
                linewidth=0,
            )
        )
    rows, columns = array.shape
    ax.add_patch(
        Rectangle((-0.5, -0.5), columns, rows, fill=False, edgecolor="#BFBFBF", linewidth=1, zorder=6, clip_on=False)
    )


def _write_numbers(ax: Axes, array: np.ndarray, image: Any, fmt: str | None) -> None:
    whole = np.all(array[np.isfinite(array)] % 1 == 0)
    fmt = fmt or ("g" if whole else ".2f")
    for (row, column), number in np.ndenumerate(array):
        dark = np.isfinite(number) and luminance(image.cmap(image.norm(number))) < 0.179  # else black stands out more
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5} if np.isnan(number) else None
        ax.text(
            column,
            row,
            _format(number, fmt),
            ha="center",
            va="center",
            zorder=5,
            color="white" if dark else "black",
            fontsize=10 if array.shape[1] <= 6 else 8.5,
            bbox=box,
        )


def _format(number: float, fmt: str) -> str:
    text = format(number, fmt)
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("inf", "∞").replace("-", "−")


class Picture:
    """A drawn figure that Jupyter shows as an image with alternative text, a terminal as that text."""

    def __init__(self, png: bytes, alt: str, width: int) -> None:
        self.png, self.alt, self.width = png, alt, width

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        data = base64.b64encode(self.png).decode("ascii")
        image = (
            f'<img alt="{html.escape(self.alt)}" width="{self.width + 2 * _MARGIN}" style="max-width:100%;height:auto;'
            f'box-sizing:border-box;padding:{_MARGIN}px;background:#fff;border-radius:4px" src="data:image/png;base64,{data}">'
        )
        return {"text/html": image, "text/plain": self.alt}

    def __repr__(self) -> str:
        return self.alt


def picture(fig: Figure, *, alt: str) -> Picture:
    """Draws fig and returns it as a Picture. alt says what a reader would see, numbers included.

    Raises: ValueError where alt is empty: a figure without it is lost on readers who can't see it.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    from grader.figures.titles import fit_titles

    if not alt.strip():
        raise ValueError("a figure needs alternative text: show(fig, alt='what it shows')")
    with matplotlib.rc_context(_SETTINGS):  # type: ignore[arg-type]
        for text in fig.findobj(Text):  # written by a lesson's own code, outside these settings
            text.set_fontfamily([_FONT])
        canvas, dpi = FigureCanvasAgg(fig), fig.dpi
        if not fit_titles(fig):
            fig.set_layout_engine("none")  # it is laid out already, and drawing would do so again
        fig.dpi = 2 * SCREEN_DPI
        buffer = io.BytesIO()
        canvas.print_png(buffer, metadata={"Software": None})  # savefig would draw everything twice
        fig.dpi = dpi
    return Picture(buffer.getvalue(), " ".join(alt.split()), round(fig.get_figwidth() * SCREEN_DPI))


def follow(draw: Callable[..., Picture], *controls: Any) -> None:
    """Controls of ipywidgets, and below them a picture that follows them.

    draw: makes the picture of the controls' values, in their order. The picture is an output of the cell and no widget: a
    notebook that is opened again, where no kernel answers the controls, still shows the last one.
    """

    def render() -> Picture:
        return draw(*(control.value for control in controls))

    try:
        from IPython.display import display
    except ImportError:
        print(render())
        return
    if len(controls) > 1:
        from ipywidgets import VBox

        display(VBox(controls))
    else:
        display(*controls)
    handle = display(render(), display_id=True)
    for control in controls:
        control.observe(lambda _: handle.update(render()), names="value")


def show(fig: Figure, *, alt: str) -> None:
    """Displays fig in the notebook, also from inside an `if`; without Jupyter prints its alt text."""
    image = picture(fig, alt=alt)
    try:
        from IPython.display import display
    except ImportError:
        print(image)
    else:
        display(image)  # which prints it, too, where no shell runs
