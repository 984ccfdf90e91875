"""A verdict as HTML, light or dark, for JupyterLab and for the pages of a class.

Everything that a learner wrote is escaped. Headings, words and symbols carry what the colours carry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from grader.course.spec import MistakeText
from grader.judging import wording
from grader.judging.verdict import Table, Verdict
from grader.reports import text
from grader.reports.heatmap import Scale, image, legend, shared_scale, svg
from grader.reports.tables import View, views
from grader.reports.templating import LOOKS, code, escape, paragraphs, prose, render, style

__all__ = [
    "LOOKS", "block", "code", "escape", "explanation", "explanations", "feedback", "paragraphs", "pictures", "prose", "verdict",
]  # fmt: skip

Draw = Callable[[View, Scale | None], str]
STYLE = f"<style>\n{style('verdict.css')}</style>"


@dataclass(frozen=True)
class Pictured:
    """A verdict's tables: what went in and what is compared, both as HTML, and all of it as text; '' for none."""

    inputs: str = ""
    compared: str = ""
    numbers: str = ""


<<<<<<< HEAD
STYLE = """<style>
.attn {font-family: var(--jp-content-font-family, system-ui, -apple-system, "Segoe UI", sans-serif);
  font-size: var(--jp-content-font-size1, 14px); line-height: 1.5; color: var(--jp-content-font-color1, inherit);
  border-left: 3px solid var(--attn-rule); padding: 1px 0 1px 16px; margin: 6px 0 10px; max-width: 62em}
.attn div.attn-head {font-size: 1.08em; margin: 0 0 2px}
.attn .attn-sign {color: var(--attn-rule); font-weight: 700; display: inline-block; min-width: 1.1em}
.attn .attn-name {font-weight: 600}
.attn .attn-status {opacity: .75; margin-left: .25em}
.attn p {margin: 0 0 4px}
.attn .attn-lead {margin-bottom: 8px}
.attn .attn-row {display: grid; grid-template-columns: 7.6em minmax(0, 1fr); column-gap: 1em; margin: 8px 0}
.attn .attn-label {font-size: .86em; opacity: .72; padding-top: .12em}
.attn .attn-tables {display: flex; flex-wrap: wrap; gap: 10px 26px; align-items: flex-start; margin-top: 4px}
.attn figure {margin: 0}
.attn figcaption {font-size: .86em; opacity: .8; margin: 0 0 3px; text-align: left; font-style: normal}
.attn .attn-fine {font-size: .86em; opacity: .72; margin: 4px 0 0}
.attn code, .attn pre {font-family: var(--jp-code-font-family, ui-monospace, Menlo, Consolas, monospace);
  font-size: .93em; background: none; color: inherit; padding: 0; border: 0}
.attn pre {white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.4; margin: 2px 0 6px}
.attn pre.attn-code {border-left: 1px solid color-mix(in srgb, currentColor 35%, transparent); padding-left: 10px}
.attn svg, .attn img {display: block; height: auto}
.attn ul {margin: 0; padding-left: 1.1em}
.attn li {margin: 0 0 1px}
.attn details {margin: 6px 0 2px}
.attn summary {cursor: pointer; font-size: .86em; opacity: .72}
.attn.attn table {border-collapse: collapse; font-size: 1em; margin: 4px 0;
  color: inherit; border: 0}
.attn.attn th, .attn.attn td {text-align: left; padding: 2px 1.4em 2px 0; border: 0; background: none; color: inherit}
.attn.attn thead th {font-weight: 400; font-size: .86em; opacity: .72}
.attn.attn tbody th {font-weight: inherit}
.attn tr {background: none !important}
.attn.attn td.attn-number, .attn.attn th.attn-number {text-align: right; font-variant-numeric: tabular-nums}
@media (max-width: 640px) {.attn .attn-row {grid-template-columns: 1fr}}
</style>"""


def escape(said: object, limit: int = text.LIMIT) -> str:
    """Text that is safe in HTML, without control characters."""
    return html.escape(text.clean(said, limit), quote=True)


def prose(said: object) -> str:
    """Escaped text in which `quoted` words and calls such as hint(softmax) are set as code."""
    made = re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(said, SENTENCE))
    calls = r"(?<![\w>])((?:check|hint|explain|solution|progress|replay|reset)\([^()\n]{0,80}\))(?!</code>)"
    return re.sub(calls, r"<code>\1</code>", made)


=======
>>>>>>> main
def block(status: str, head: str, body: Iterable[str]) -> str:
    """What stands alone in a notebook: its style, and a frame with a heading and paragraphs. head, body: HTML."""
    return STYLE + render("block.html", status=status, title=head, body=tuple(body))


def verdict(judged: Verdict, notes: Sequence[str] = ()) -> str:
    """The feedback with its style, as check() shows it in a notebook."""
    return STYLE + feedback(judged, notes, lambda tables: pictures(tables, image))


def feedback(
    judged: Verdict, notes: Sequence[str] = (), pictured: Callable[[Sequence[Table]], Pictured] | None = None
) -> str:
    """What failed; the experiment; expected and got; the likely mistake; where to look next. Needs STYLE once a page.

    pictured: what draws the tables; by default `pictures`.
    """
    return render(
        "verdict.html", judged=judged, word=text.WORDS[judged.status], notes=notes,
        line_label=wording.line_label(judged.line) if judged.line else "", pictured=(pictured or pictures)(judged.tables),
        mistakes=tuple(zip(judged.mistakes, judged.sentences, strict=False)), sought=text.sought(judged), no_mistake=text.NO_MISTAKE,
        precision="" if judged.max_difference is None else text.difference(judged.max_difference),
    )  # fmt: skip


def pictures(tables: Sequence[Table], draw: Draw = svg) -> Pictured:
    """The tables of a verdict, drawn; draw: makes one picture."""
    shown = views(tables)
    if not shown:
        return Pictured()
    inputs = [view for view in shown if view.table.role == "input"]
    compared = [view for view in shown if view.table.role != "input"]
    return Pictured(_figures(inputs, draw), _figures(compared, draw, _key(compared)), _numbers(shown))


def _figures(shown: Sequence[View], draw: Draw, key: str = "") -> str:
    """Tables side by side; expected and got share one scale, the difference has its own."""
    if not shown:
        return ""
    pair = [view for view in shown if view.table.role in ("expected", "actual")]
    scale = shared_scale(pair)

    def own_scale(view: View) -> Scale | None:
        return None if view.table.role == "input" else scale if view in pair else shared_scale([view])

    return render("tables.html", drawn=[(view, draw(view, own_scale(view))) for view in shown], key=key)


def _key(shown: Sequence[View]) -> str:
    """What outlines and colours mean, in words."""
    said = []
    if any(view.mark for view in shown) and max(view.cells.size for view in shown) > 1:
        said.append("Outlined: the largest difference shown")
    pair = [view for view in shown if view.table.role in ("expected", "actual")]
    if pair:
        said.append(f"expected and got: {legend(shared_scale(pair))}")
    return f"{'; '.join(said)}." if said else ""


def _numbers(shown: Sequence[View]) -> str:
    """The tables as text."""
    said = (f"{view.title}{f' ({view.cut})' if view.cut else ''}\n{text.table(view)}" for view in shown)
    return "\n\n".join(said)


def explanation(told: MistakeText) -> str:
    """A mistake at length."""
    return STYLE + render("explanation.html", told=told)


<<<<<<< HEAD
def mistakes(told: Sequence[MistakeText]) -> str:
    """Mistakes, one line each."""
    rows = "".join(f'<tr><th scope="row">{escape(one.id)}</th><td>{prose(one.sentence)}</td></tr>' for one in told)
    return f"<table><tbody>{rows}</tbody></table>"


def folded(summary: str, content: str, opened: bool = False) -> str:
    """Something that opens with a click, or is open."""
    return f"<details{' open' if opened else ''}><summary>{escape(summary)}</summary>{content}</details>"
=======
def explanations(told: Sequence[MistakeText]) -> str:
    """All mistakes, one line each."""
    return STYLE + render("explanations.html", told=told)
>>>>>>> main
