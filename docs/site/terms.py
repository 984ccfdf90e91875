"""Leads from a lesson's words to the glossary: the first time that a page uses a term, the word is a link."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from docutils import nodes
from pages import terms
from sphinx.application import Sphinx

GLOSSARY = "lessons/glossary"
_CLOSED = (nodes.reference, nodes.literal, nodes.title, nodes.raw, nodes.math, nodes.literal_block, nodes.pending)


def anchor(term: str) -> str:
    return "term-" + re.sub(r"\W+", "-", term.lower()).strip("-")


def mark(app: Sphinx, doctree: nodes.document) -> None:
    """Gives the glossary's terms their anchors, and each lesson its links to them."""
    page = app.env.docname
    if page == GLOSSARY:
        known = set(terms())
        for bold in doctree.findall(nodes.strong):
            if bold.astext() in known:
                bold["ids"].append(anchor(bold.astext()))
    elif page.startswith("lessons/"):
        _link(app, doctree, page)


def _link(app: Sphinx, doctree: nodes.document, page: str) -> None:
    left = {term.lower(): term for term in terms()}
    for text in list(doctree.findall(nodes.Text)):
        if not left:
            return
        if _is_open(text):
            _link_first(app, text, left, page)


def _link_first(app: Sphinx, text: nodes.Text, left: dict[str, str], page: str) -> None:
    """Links each term of one text that the page has not used before."""
    made: list[nodes.Node] = []
    rest = text.astext()
    while found := _first(rest, left):
        term = left.pop(found[1].lower())
        address = f"{app.builder.get_relative_uri(page, GLOSSARY)}#{anchor(term)}"
        link = nodes.reference("", found[0], internal=True, refuri=address, classes=["term"])
        made += [nodes.Text(rest[: found.start()]), link]
        rest = rest[found.end() :]
    if made and text.parent is not None:
        text.parent.replace(text, [*made, nodes.Text(rest)])


def _first(text: str, terms: Iterable[str]) -> re.Match[str] | None:
    """Where the first of these terms stands in a text; of two that begin there, the longer one."""
    lower = text.lower()
    found = [place for term in terms if term in lower and (place := _pattern(term).search(text))]
    return min(found, key=lambda place: (place.start(), -len(place[1])), default=None)


@cache
def _pattern(term: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])({re.escape(term)})s?(?![\w-])", re.IGNORECASE)


def _is_open(text: nodes.Text) -> bool:
    """Whether a text is prose: in a paragraph, and in nothing that is a link or code already."""
    inside, above = False, text.parent
    while above is not None:
        if isinstance(above, _CLOSED):
            return False
        inside = inside or isinstance(above, nodes.paragraph)
        above = above.parent
    return inside


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
