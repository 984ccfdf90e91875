"""The templates in templates/: everything that they are handed is cleaned and escaped, unless it is HTML that another one made."""

from __future__ import annotations

import html
import re
import textwrap
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.reports import text

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent / "templates"
# status -> (symbol, colour of the rule and the symbol, style of the rule); mid tones that stand on white and on black
LOOKS = {
    "passed": ("✓", "#009E73", "solid"),
    "failed": ("✗", "#D55E00", "solid"),
    "error": ("!", "#B0559B", "solid"),
    "timeout": ("!", "#B0559B", "dashed"),
    "memory": ("!", "#B0559B", "dashed"),
    "forbidden": ("⊘", "#B8860B", "solid"),
    "not_started": ("○", "#8A8A8A", "dotted"),
    "missing": ("?", "#8A8A8A", "dotted"),
    "could_not_grade": ("?", "#8A8A8A", "dashed"),
    "said": ("", "#8A8A8A", "solid"),
}
SENTENCE = 4_000  # characters of one sentence or quoted line
_CALLS = re.compile(
    r"(?<![\w>])((?:check|hint|explain|solution|progress|replay|reset|join|leave|stuck|fine)\([^()\n]{0,80}\))(?!</code>)"
)


def render(name: str, **values: Any) -> str:
    """A template's HTML; values that are HTML already are marked as safe in the template."""
    return _environment().get_template(name).render(**values).rstrip("\n")


def style(name: str) -> str:
    """The text of a style sheet."""
    return (FOLDER / name).read_text(encoding="utf-8")


def escape(said: object, limit: int = text.LIMIT) -> str:
    """Text that is safe in HTML, without control characters."""
    return html.escape(text.clean(said, limit), quote=True)


def prose(said: object) -> str:
    """Escaped text in which `quoted` words and calls such as hint(softmax) are set as code."""
    made = re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(said, SENTENCE))
    return _CALLS.sub(r"<code>\1</code>", made)


def code(said: object, limit: int = text.LIMIT) -> str:
    """Lines of code."""
    return f'<pre class="attn-code">{escape(said, limit)}</pre>'


def paragraphs(said: str) -> str:
    """Markdown prose in paragraphs, with its code."""
    return "".join(code(part) if kind == "code" else f"<p>{prose(part)}</p>" for kind, part in text.passages(said))


@cache
def _environment() -> Environment:
    """Made at the first use: importing jinja2 takes longer than a check."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def cleaned(value: Any) -> Any:
        return value if isinstance(value, Markup) else text.clean(value)

    made = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        finalize=cleaned,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for filter in (prose, code, paragraphs):
        made.filters[filter.__name__] = lambda *given, filter=filter: Markup(filter(*given))
    made.filters["dedent"] = lambda lines: textwrap.dedent(lines).strip("\n")
    made.filters |= {"had": text.had}
    made.filters |= {"points": text.points}
    made.globals |= {"words": text.WORDS, "looks": LOOKS}
    return made
