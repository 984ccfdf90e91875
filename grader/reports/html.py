"""A verdict as HTML, light or dark, for JupyterLab and for the pages of a class.

Everything that a learner wrote is escaped. Headings, words and symbols carry what the colours carry.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from grader.course.spec import MistakeText
from grader.judging import wording
from grader.judging.verdict import Table, Verdict
from grader.reports import text
from grader.reports.heatmap import Scale, image, legend, shared_scale, svg
from grader.reports.tables import View, views

# status -> (symbol, colour of the rule and the symbol, style of the rule); mid tones that stand on white and on black
LOOKS = {
    "passed": ("✓", "#009E73", "solid"), "failed": ("✗", "#D55E00", "solid"), "error": ("!", "#B0559B", "solid"),
    "timeout": ("!", "#B0559B", "dashed"), "memory": ("!", "#B0559B", "dashed"),
    "forbidden": ("⊘", "#B8860B", "solid"), "not_started": ("○", "#8A8A8A", "dotted"),
    "missing": ("?", "#8A8A8A", "dotted"), "could_not_grade": ("?", "#8A8A8A", "dashed"),
    "said": ("", "#8A8A8A", "solid"),
}  # fmt: skip
SENTENCE = 4_000  # characters of one sentence or quoted line
Draw = Callable[[View, Scale | None], str]


@dataclass(frozen=True)
class Pictured:
    """A verdict's tables as HTML: what went in, expected and got with their key, and the same as text; '' for none."""

    inputs: str = ""
    compared: str = ""
    numbers: str = ""


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


def block(status: str, head: str, body: Iterable[str]) -> str:
    """What stands alone in a notebook: its style, and the frame."""
    return STYLE + frame(status, head, body)


def frame(status: str, head: str, body: Iterable[str]) -> str:
    """The frame of everything that is shown: a narrow rule at the left, a heading, paragraphs."""
    sign, colour, line = LOOKS[status]
    mark = f'<span class="attn-sign" aria-hidden="true">{sign}</span> ' if sign else ""
    return (
        f'<div class="attn attn-{status}" style="--attn-rule: {colour}; border-left-style: {line}">'
        f'<div class="attn-head">{mark}{head}</div>{"".join(body)}</div>'
    )


def verdict(judged: Verdict, notes: Sequence[str] = ()) -> str:
    """The feedback with its style, as check() shows it in a notebook."""
    return STYLE + feedback(judged, notes, lambda tables: pictures(tables, image))


def feedback(
    judged: Verdict, notes: Sequence[str] = (), pictured: Callable[[Sequence[Table]], Pictured] | None = None
) -> str:
    """What failed; the experiment; expected and got; the likely mistake; where to look next. Needs STYLE once a page.

    pictured: what draws the tables; by default `pictures`.
    """
    # The space keeps name and status apart where a reader strips the styles.
    head = (
        f'<span class="attn-name">{escape(judged.exercise)}</span> '
        f'<span class="attn-status">{text.WORDS[judged.status]}</span>'
    )
    body = []
    if not judged.passed:
        body.append(f'<p class="attn-lead">{prose(judged.headline)}</p>')
    if judged.line:
        body.append(f"<p>{prose(wording.line_label(judged.line))}:</p>{code(text.clean(judged.line.text, SENTENCE))}")
    body += [f"<p>{prose(sentence)}</p>" for sentence in judged.details]
    shown = (pictured or pictures)(judged.tables)
    if judged.experiment or shown.inputs:
        body.append(row("Experiment", f"<p>{prose(judged.experiment)}</p>{shown.inputs}"))
    if shown.compared:
        body.append(row("Expected and got", shown.compared))
    body += _mistakes(judged)
    if judged.passed:
        body += _passed(judged)
    elif judged.look:
        body.append(row("Where to look", f"<p>{prose(judged.look)}</p>"))
    body += _holds(judged)
    body.append(shown.numbers)
    body += [f'<p class="attn-fine">{prose(note)}</p>' for note in notes]
    return frame(judged.status, head, body)


def pictures(tables: Sequence[Table], draw: Draw = svg) -> Pictured:
    """The tables of a verdict, drawn; draw: makes one picture."""
    shown = views(tables)
    if not shown:
        return Pictured()
    inputs = [view for view in shown if view.table.role == "input"]
    compared = [view for view in shown if view.table.role != "input"]
    beside = _figures(compared, draw) + _key(compared) if compared else ""
    return Pictured(_figures(inputs, draw), beside, _numbers(shown))


def row(label: str, content: str) -> str:
    """A label at the left and its content."""
    return f'<div class="attn-row"><div class="attn-label">{label}</div><div>{content}</div></div>'


def code(said: str) -> str:
    """Lines of code."""
    return f'<pre class="attn-code">{escape(said)}</pre>'


def _figures(shown: Sequence[View], draw: Draw) -> str:
    """Tables side by side; expected and got share one scale, the difference has its own."""
    if not shown:
        return ""
    pair = [view for view in shown if view.table.role in ("expected", "actual")]
    scale = shared_scale(pair)
    drawn = []
    for view in shown:
        used = None if view.table.role == "input" else scale if view in pair else shared_scale([view])
        cut = f"<br>{escape(view.cut)}" if view.cut else ""
        drawn.append(f"<figure><figcaption>{escape(view.title)}{cut}</figcaption>{draw(view, used)}</figure>")
    return f'<div class="attn-tables">{"".join(drawn)}</div>'


def _key(shown: Sequence[View]) -> str:
    """What outlines and colours mean, in words."""
    said = []
    if any(view.mark for view in shown) and max(view.cells.size for view in shown) > 1:
        said.append("Outlined: the largest difference shown")
    pair = [view for view in shown if view.table.role in ("expected", "actual")]
    if pair:
        said.append(f"expected and got: {legend(shared_scale(pair))}")
    return f'<p class="attn-fine">{"; ".join(said)}.</p>' if said else ""


def _mistakes(judged: Verdict) -> list[str]:
    if not judged.mistakes:
        return [row("Likely mistake", f"<p>{text.NO_MISTAKE}</p>")] if text.sought(judged) else []
    label = "Likely mistake" if len(judged.mistakes) == 1 else "Likely mistakes"
    said = [
        f'<p><span class="attn-name">{escape(id)}</span>&ensp;{prose(sentence)}</p>'
        for id, sentence in zip(judged.mistakes, judged.sentences, strict=False)
    ]
    if len(said) > 1:
        said.append('<p class="attn-fine">Each of them gives exactly this result.</p>')
    return [row(label, "".join(said))]


def _passed(judged: Verdict) -> list[str]:
    items = "".join(f"<li>{prose(sentence)}</li>" for sentence in judged.verified)
    body = [row("Verified", f"<ul>{items}</ul>")] if items else []
    if judged.max_difference is not None:
        body.append(row("Precision", f"<p>{text.difference(judged.max_difference)}</p>"))
    following = judged.following or judged.look
    return [*body, row("Next", f"<p>{prose(following)}</p>")] if following else body


def _holds(judged: Verdict) -> list[str]:
    """What held before the failure, folded: a reader may want it and need not see it."""
    if not judged.verified or judged.passed:
        return []
    items = "".join(f"<li>{prose(sentence)}</li>" for sentence in judged.verified)
    return [f"<details><summary>What holds</summary><ul>{items}</ul></details>"]


def _numbers(shown: Sequence[View]) -> str:
    """The tables as text, folded."""
    said = (f"{view.title}{f' ({view.cut})' if view.cut else ''}\n{text.table(view)}" for view in shown)
    tables = "\n\n".join(said)
    return f"<details><summary>The numbers as text</summary><pre>{escape(tables)}</pre></details>"


def paragraphs(said: str) -> str:
    """Markdown prose in paragraphs, with its code."""
    return "".join(code(part) if kind == "code" else f"<p>{prose(part)}</p>" for kind, part in text.passages(said))


def explanation(told: MistakeText) -> str:
    """A mistake at length."""
    body = [f'<p class="attn-lead">{prose(told.sentence)}</p>', paragraphs(told.why)]
    for name, said in (("Wrong", told.wrong), ("Right", told.right)):
        if said:
            body.append(row(name, code(textwrap.dedent(said).strip("\n"))))
    if told.evidence:
        body.append(f'<p class="attn-fine">Met in public: {escape(told.evidence)}</p>')
    return block("said", f'<span class="attn-name">{escape(told.id)}</span>', body)


def mistakes(told: Sequence[MistakeText]) -> str:
    """Mistakes, one line each."""
    rows = "".join(f'<tr><th scope="row">{escape(one.id)}</th><td>{prose(one.sentence)}</td></tr>' for one in told)
    return f"<table><tbody>{rows}</tbody></table>"


def folded(summary: str, content: str, opened: bool = False) -> str:
    """Something that opens with a click, or is open."""
    return f"<details{' open' if opened else ''}><summary>{escape(summary)}</summary>{content}</details>"
