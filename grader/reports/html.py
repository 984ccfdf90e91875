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
    "LOOKS",
    "block",
    "code",
    "escape",
    "explanation",
    "explanations",
    "feedback",
    "paragraphs",
    "pictures",
    "prose",
    "verdict",
]

PAIRS = ("expected", "actual", "run")  # roles of tables that share one scale of colors
Draw = Callable[[View, Scale | None], str]
STYLE = f"<style>\n{style('verdict.css')}</style>"


@dataclass(frozen=True)
class Pictured:
    """A verdict's tables: what went in and what is compared, both as HTML, and all of it as text; '' for none.

    folded: whether what went in takes much room. runs: whether two runs are compared.
    """

    inputs: str = ""
    compared: str = ""
    numbers: str = ""
    folded: bool = False
    runs: bool = False


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
        "verdict.html",
        judged=judged,
        word=text.WORDS[judged.status],
        notes=notes,
        line_label=wording.line_label(judged.line) if judged.line else "",
        pictured=(pictured or pictures)(judged.tables),
        mistakes=tuple(zip(judged.mistakes, judged.sentences, strict=False)),
        precision="" if judged.max_difference is None else text.difference(judged.max_difference),
    )


def pictures(tables: Sequence[Table], draw: Draw = svg) -> Pictured:
    """The tables of a verdict, drawn; draw: makes one picture."""
    shown = views(tables)
    if not shown:
        return Pictured()
    inputs = [view for view in shown if view.table.role == "input"]
    compared = [view for view in shown if view.table.role != "input"]
    large = sum(view.cells.size for view in inputs) > text.MUCH
    runs = any(view.table.role == "run" for view in compared)
    return Pictured(_figures(inputs, draw), _figures(compared, draw, _key(compared)), _numbers(shown), large, runs)


def _figures(shown: Sequence[View], draw: Draw, key: str = "") -> str:
    """Tables side by side; expected and got share one scale, the difference has its own."""
    if not shown:
        return ""
    pair = [view for view in shown if view.table.role in PAIRS]
    scale = shared_scale(pair)

    gap = shared_scale([view for view in shown if view.table.role == "difference"])
    scales = {"input": None, "difference": gap}
    return render(
        "tables.html", drawn=[(view, draw(view, scales.get(view.table.role, scale))) for view in shown], key=key
    )


def _key(shown: Sequence[View]) -> str:
    """What outlines and colours mean, in words."""
    said = []
    if any(view.mark for view in shown) and max(view.cells.size for view in shown) > 1:
        said.append("Outlined: the largest difference shown")
    pair = [view for view in shown if view.table.role in PAIRS]
    if pair:
        said.append(
            f"{'both runs' if pair[0].table.role == 'run' else 'expected and got'}: {legend(shared_scale(pair))}"
        )
    return f"{'; '.join(said)}." if said else ""


def _numbers(shown: Sequence[View]) -> str:
    """The tables as text."""
    said = (f"{view.title}{f' ({view.cut})' if view.cut else ''}\n{text.table(view)}" for view in shown)
    return "\n\n".join(said)


def explanation(told: MistakeText) -> str:
    """A mistake at length."""
    return STYLE + render("explanation.html", told=told)


def explanations(lessons: Sequence[tuple[str, Sequence[MistakeText]]], opened: str = "") -> str:
    """Mistakes, one line each, folded by lesson. lessons: the title and the mistakes of each; opened: the title of one."""
    return STYLE + render("explanations.html", lessons=lessons, opened=opened)
