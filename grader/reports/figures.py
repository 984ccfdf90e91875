"""Pictures of tables, each drawn once: the same inputs and expected numbers come back with every learner.

In a class's page a picture that was drawn before is a reference to the first, by the identity of what it shows.
"""

from __future__ import annotations

from grader.reports.heatmap import Scale, svg
from grader.reports.tables import View


class Pictures:
    """Draws for several pages. shared: pictures go to `definitions()`, which the page must then hold once."""

    def __init__(self, shared: bool = False) -> None:
        self._drawn: dict[tuple, str] = {}
        self._inner: dict[str, str] = {}
        self._shared = shared

    def draw(self, view: View, scale: Scale | None) -> str:
        """The picture, as heatmap.svg draws it."""
        key = (
            view.title, view.cut, view.cells.tobytes(), view.cells.shape, view.cells.dtype.str, view.total, view.first,
            view.mark, scale,
        )  # fmt: skip
        if key not in self._drawn:
            self._drawn[key] = self._refer(svg(view, scale)) if self._shared else svg(view, scale)
        return self._drawn[key]

    def _refer(self, picture: str) -> str:
        """The picture with its content kept elsewhere. Its first '>' ends the opening tag: attributes are escaped."""
        if not picture.startswith("<svg"):
            return picture
        opening, inner = picture.removesuffix("</svg>").split(">", 1)
        name = self._inner.setdefault(inner, f"picture-{len(self._inner)}")
        return f'{opening}><use href="#{name}"/></svg>'

    def definitions(self) -> str:
        """What the references refer to. It takes no room; `display: none` would hide the references as well."""
        drawn = "".join(f'<g id="{name}">{inner}</g>' for inner, name in self._inner.items())
        hidden = 'width="0" height="0" aria-hidden="true" style="position: absolute"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {hidden}><defs>{drawn}</defs></svg>' if drawn else ""
