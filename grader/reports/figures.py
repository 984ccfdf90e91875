"""Tables drawn for many readers, each once: the same inputs and expected numbers come back with every learner.

In a class's page a picture that was drawn before is a reference to the first.
"""

from __future__ import annotations

from collections.abc import Sequence

from grader.judging.verdict import Table
from grader.reports import html
from grader.reports.heatmap import Scale, svg
from grader.reports.tables import View, content


class Pictures:
    """Draws for several learners. shared: pictures go to `definitions()`, which the page must then hold once."""

    def __init__(self, shared: bool = False) -> None:
        self._made: dict[tuple, html.Pictured] = {}
        self._drawn: dict[tuple, str] = {}
        self._inner: dict[str, str] = {}
        self._shared = shared

    def __call__(self, tables: Sequence[Table]) -> html.Pictured:
        """The tables as html.pictures makes them, known again by what they hold."""
        key = content(tables)
        if key not in self._made:
            self._made[key] = html.pictures(tables, self._draw)
        return self._made[key]

    def _draw(self, view: View, scale: Scale | None) -> str:
        key = (
            view.title,
            view.cut,
            view.cells.tobytes(),
            view.cells.shape,
            view.cells.dtype.str,
            view.total,
            view.mark,
            scale,
        )
        if key not in self._drawn:
            picture = svg(view, scale)
            self._drawn[key] = self._refer(picture) if self._shared and picture.startswith("<svg") else picture
        return self._drawn[key]

    def _refer(self, picture: str) -> str:
        """The picture with its content kept elsewhere. Its first '>' ends the opening tag: attributes are escaped."""
        opening, inner = picture.removesuffix("</svg>").split(">", 1)
        name = self._inner.setdefault(inner, f"picture-{len(self._inner)}")
        return f'{opening}><use href="#{name}"/></svg>'

    def definitions(self) -> str:
        """What the references refer to. It takes no room; `display: none` would hide the references as well."""
        drawn = "".join(f'<g id="{name}">{inner}</g>' for inner, name in self._inner.items())
        hidden = 'width="0" height="0" aria-hidden="true" style="position: absolute"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {hidden}><defs>{drawn}</defs></svg>' if drawn else ""
