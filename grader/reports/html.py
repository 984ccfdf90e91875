"""HTML, light or dark, for JupyterLab and for the pages of a class: a verdict, its tables as pictures, what else templates/ has.

Templates clean and escape all that they are handed, unless it is HTML that another one made. Headings, words and symbols carry what the
colors carry.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.course.spec import MistakeText
from grader.judging import wording
from grader.judging.verdict import Table, Verdict
from grader.reports import text
from grader.reports.heatmap import Scale, image, legend, shared_scale, svg
from grader.reports.tables import by_content, caption, part_of, title_of
from grader.reports.text import STATUS_STYLES, STATUS_WORDS

if TYPE_CHECKING:
    from jinja2 import Environment

PAIRS = ("expected", "actual", "run")  # roles of tables that share one scale of colors
Draw = Callable[[Table, Scale | None], str]
FOLDER = Path(__file__).parent / "templates"
MAX_SENTENCE = 4_000  # characters of one sentence or quoted line
_CALLS = re.compile(
    r"(?<![\w>])((?:check|hint|explain|solution|progress|replay|reset|join|leave|stuck|fine)\([^()\n]{0,80}\))(?!</code>)"
)


def render(name: str, **values: Any) -> str:
    """A template's HTML; values that are HTML already are marked as safe in the template."""
    return _environment().get_template(name).render(**values).rstrip("\n")


def style(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def escape(value: object, limit: int = text.MAX_TEXT) -> str:
    """Text that is safe in HTML, without control characters."""
    return html.escape(text.clean(value, limit), quote=True)


def prose(value: object) -> str:
    """Escaped text in which `quoted` words and calls such as hint(softmax) are set as code."""
    markup = re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(value, MAX_SENTENCE))
    return _CALLS.sub(r"<code>\1</code>", markup)


def code(value: object, limit: int = text.MAX_TEXT) -> str:
    return f'<pre class="attn-code">{escape(value, limit)}</pre>'


def paragraphs(markdown: str) -> str:
    """Markdown prose in paragraphs, with its code."""
    return "".join(code(part) if kind == "code" else f"<p>{prose(part)}</p>" for kind, part in text.passages(markdown))


@cache
def _environment() -> Environment:
    """Made at the first use: importing jinja2 takes longer than a check."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def finalize(value: Any) -> Any:
        return value if isinstance(value, Markup) else text.clean(value)

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for filter in (prose, code, paragraphs):
        environment.filters[filter.__name__] = lambda *arguments, filter=filter: Markup(filter(*arguments))
    environment.filters |= {"score_text": text.score_text, "points": text.points}
    environment.filters["dedent"] = lambda lines: textwrap.dedent(lines).strip("\n")
    environment.globals |= {"words": STATUS_WORDS, "looks": STATUS_STYLES, "style": Markup(STYLE)}
    return environment


STYLE = f"<style>\n{style('verdict.css')}</style>"


def block(status: str, head: str, body: Iterable[str]) -> str:
    """What stands alone in a notebook: its style, and a frame with a heading and paragraphs. head, body: HTML."""
    return STYLE + render("block.html", status=status, title=head, body=tuple(body))


def render_verdict(verdict: Verdict, notes: Sequence[str] = ()) -> str:
    """The feedback with its style, as check() shows it in a notebook."""
    return STYLE + feedback(verdict, notes, image)


def feedback(verdict: Verdict, notes: Sequence[str] = (), draw: Draw = svg, points: str = "") -> str:
    """What failed; the experiment; expected and got; the likely mistake; where to look next. Needs STYLE once a page.

    draw: makes one picture. points: as in '0 of 2'; '' where there are none.
    """
    return render(
        "verdict.html",
        verdict=verdict,
        points=points,
        notes=notes,
        line_label=wording.line_label(verdict.line) if verdict.line else "",
        pictures=pictures(verdict.tables, draw),
        mistakes=tuple(zip(verdict.mistakes, verdict.sentences, strict=False)),
        precision="" if verdict.max_difference is None else text.difference(verdict.max_difference),
    )


@by_content
def pictures(tables: Sequence[Table], draw: Draw = svg) -> dict[str, Any]:
    """The tables of a verdict as verdict.html has them; expected and got share one scale, the difference has its own.

    Returns: `inputs`, what went in, and `compared`, both as HTML, and all of it as text, `numbers`; '' for none.
    folded: whether what went in takes much room. runs: whether two runs are compared.
    """
    pair = [table for table in tables if table.role in PAIRS]
    gap = [table for table in tables if table.role == "difference"]
    scales = {"input": None, "difference": shared_scale(gap)} | dict.fromkeys(PAIRS, shared_scale(pair))

    def figures(group: Sequence[Table], key: str = "") -> str:
        images = [
            (table, title_of(table), part_of(table), draw(table, scales[table.role]) if table.cells.size else "")
            for table in group
        ]
        return render("tables.html", images=images, key=key) if images else ""

    inputs = [table for table in tables if table.role == "input"]
    compared = [table for table in tables if table.role != "input"]
    numbers = (f"{caption(table)}\n{text.grid(table)}" for table in tables)
    return {
        "inputs": figures(inputs),
        "compared": figures(compared, _key(compared, pair)),
        "numbers": "\n\n".join(numbers),
        "folded": sum(table.cells.size for table in inputs) > text.MANY_INPUTS,
        "runs": any(table.role == "run" for table in compared),
    }


def _key(tables: Sequence[Table], pair: Sequence[Table]) -> str:
    """What outlines and colors mean, in words."""
    parts = []
    if any(table.mark for table in tables) and max(table.cells.size for table in tables) > 1:
        parts.append("Outlined: the largest difference shown")
    if pair:
        names = "both runs" if pair[0].role == "run" else "expected and got"
        parts.append(f"{names}: {legend(shared_scale(pair))}")
    return f"{'; '.join(parts)}." if parts else ""


def explanation(mistake: MistakeText) -> str:
    return STYLE + render("explanation.html", mistake=mistake)


def explanations(lessons: Sequence[tuple[str, Sequence[MistakeText]]], opened: str = "") -> str:
    """Mistakes, one line each, folded by lesson. lessons: the title and the mistakes of each; opened: the title of one."""
    return STYLE + render("explanations.html", lessons=lessons, opened=opened)


class Pictures:
    """The pictures of a page that shows the same ones many times: each is drawn in `definitions()`, which the page holds once."""

    def __init__(self) -> None:
        self._inner: dict[str, str] = {}

    def draw(self, table: Table, scale: Scale | None) -> str:
        # Its first '>' ends the opening tag: attributes are escaped.
        opening, _, inner = svg(table, scale).removesuffix("</svg>").partition(">")
        return f'{opening}><use href="#{self._inner.setdefault(inner, f"picture-{len(self._inner)}")}"/></svg>'

    def definitions(self) -> str:
        """What the references refer to. It takes no room; `display: none` would hide the references as well."""
        groups = "".join(f'<g id="{name}">{inner}</g>' for inner, name in self._inner.items())
        attributes = 'width="0" height="0" aria-hidden="true" style="position: absolute"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}><defs>{groups}</defs></svg>' if groups else ""
