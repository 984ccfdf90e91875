"""Formulas as MathML, which browsers draw and screen readers read by themselves: no script, no font, nothing from elsewhere."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

_SIZES = re.compile(r"\\(?:[bB]igg?)([lr]?)(?![a-zA-Z])")


def _mathml(latex: str, display: str) -> str:
    # A delimiter of a given size is drawn as tall as its content: MathML stretches it by itself.
    return convert(_SIZES.sub(lambda size: {"l": r"\left", "r": r"\right"}.get(size[1], ""), latex), display=display)


def inline(self: Any, node: nodes.math) -> None:
    self.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math-block">{_mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
