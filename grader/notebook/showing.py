"""An answer that displays itself, and how a learner's own notebook, a terminal or a script gets to see it."""

from __future__ import annotations

import sys
import time
from typing import Any

# JupyterLab scrolls to the next cell while a check runs, and what is shown then pushes its own headline out of view. The headline
# comes back once, right after it was made: not where a notebook with a stored verdict is opened.
IN_VIEW = """<script>(() => {{
  const headline = document.currentScript.parentElement.querySelector(".attn-head");
  const again = () => Date.now() - {made} < 20000 && headline && headline.scrollIntoView({{block: "nearest"}});
  [200, 600, 1200].forEach((wait) => setTimeout(again, wait));
}})()</script>"""


class Shown:
    """An answer that displays itself: HTML in a notebook, text elsewhere. True where it is a pass."""

    def __init__(self, text: str, html: str, verdict: Any = None) -> None:
        self.text, self.html, self.verdict = text, html, verdict

    def __bool__(self) -> bool:
        return self.verdict is not None and self.verdict.passed

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        failed = self.verdict is not None and not self.verdict.passed
        return {"text/plain": self.text, "text/html": self.html + IN_VIEW.format(made=int(1000 * time.time())) * failed}


def ipython() -> Any:
    """The running IPython shell, None elsewhere; never imports IPython."""
    module = sys.modules.get("IPython")
    try:
        return module.get_ipython() if module is not None else None
    except Exception:  # a display environment that is broken counts as none
        return None


def verdict_shown(verdict: Any, notes: tuple[str, ...]) -> Shown:
    """A verdict, printed in a script."""
    from grader.reports import html, text

    return printed(Shown(text.verdict(verdict, notes), html.verdict(verdict, notes), verdict))


def said(text: str, title: str = "", code: bool = False, more: tuple[str, ...] = ()) -> Shown:
    """Markdown prose, or code, below a title; more: further paragraphs. Printed in a script."""
    return printed(sentence(text, title, code, more))


def sentence(text: str, title: str = "", code: bool = False, more: tuple[str, ...] = ()) -> Shown:
    """The same, not printed."""
    from grader.notebook.highlight import colored
    from grader.reports import html, text as plainly

    plain = "\n\n".join(part for part in (title, plainly.clean(text) if code else plainly.plain(text), *more) if part)
    body = [colored(text) if code else html.paragraphs(text), *(f"<p>{html.prose(each)}</p>" for each in more)]
    return Shown(plain, html.block("said", f'<span class="attn-name">{html.escape(title)}</span>', body))


def printed(shown: Shown) -> Shown:
    """Prints the text where nothing else would show it: in a script, which displays no results."""
    if ipython() is None and not hasattr(sys, "ps1"):
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # a console may lack the minus sign or the root
        print(shown.text.encode(encoding, "replace").decode(encoding))
    return shown
