"""An answer that displays itself, and how a learner's own notebook, a terminal or a script gets to see it."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from typing import Any

from grader.util.errors import InputError


class Display:
    """An answer that displays itself: HTML, or Markdown for its formulas, in a notebook, text elsewhere. True where it is a pass."""

    def __init__(self, text: str, html: str, verdict: Any = None, markdown: str = "") -> None:
        self.text, self.html, self.verdict, self.markdown = text, html, verdict, markdown

    def __bool__(self) -> bool:
        return self.verdict is not None and self.verdict.passed

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        if self.markdown:
            return {"text/plain": self.text, "text/markdown": self.markdown}
        html = self.html
        if self.verdict is not None and not self.verdict.passed:
            from grader.reports.html import render

            html += render("in_view.html", made=int(1000 * time.time()))
        return {"text/plain": self.text, "text/html": html}


def ipython() -> Any:
    """The running IPython shell, None elsewhere; never imports IPython."""
    module = sys.modules.get("IPython")
    try:
        return module.get_ipython() if module is not None else None
    except Exception:  # a display environment that is broken counts as none
        return None


def sentence(text: str, title: str = "", code: bool = False, more: tuple[str, ...] = ()) -> Display:
    """Markdown prose, or code, below a title; more: further paragraphs."""
    from grader.reports import html, text as plainly

    plain = "\n\n".join(part for part in (title, plainly.clean(text) if code else plainly.plain(text), *more) if part)
    body = [code_html(text) if code else html.paragraphs(text), *(f"<p>{html.prose(part)}</p>" for part in more)]
    return Display(plain, html.block("said", f'<span class="attn-name">{html.escape(title)}</span>', body))


def code_html(code: str) -> str:
    """Lines of code as HTML, escaped; the colors carry nothing that the words do not."""
    from pygments import highlight
    from pygments.formatters.html import HtmlFormatter
    from pygments.lexers.python import PythonLexer

    from grader.reports import text
    from grader.reports.html import style

    lexer = PythonLexer(stripnl=False, ensurenl=False)
    body = highlight(text.clean(code), lexer, HtmlFormatter(nowrap=True, classprefix="attn-"))
    return f'<style>\n{style("code.css")}</style><pre class="attn-code">{body}</pre>'


def learner_call(call: Callable[..., Display]) -> Callable[..., Display]:
    """What a learner calls: its answer is a sentence where an argument names nothing; a script, which displays no results, prints it."""

    @functools.wraps(call)
    def answer(*args: Any, **kwargs: Any) -> Display:
        try:
            result = call(*args, **kwargs)
        except InputError as error:
            result = sentence(str(error))
        if ipython() is None and not hasattr(sys, "ps1"):
            encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # a console may lack the minus sign or the root
            print(result.text.encode(encoding, "replace").decode(encoding))
        return result

    return answer
