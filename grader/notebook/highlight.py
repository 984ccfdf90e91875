"""Python in the colors of the notebook's own editor, light or dark."""

from __future__ import annotations

from grader.reports import html, text

# The variables are JupyterLab's; where there are none, mid tones that stand on white and on black.
_COLORS = {
    "k": ("keyword", "#3D8B40"),
    "s": ("string", "#C0504D"),
    "c": ("comment", "#7F8C8D"),
    "m": ("number", "#4C8C6B"),
    "o": ("operator", "#A05CC5"),
    "nd": ("meta", "#8E6FC7"),
    "nf": ("def", "#3B78C9"),
    "nb": ("builtin", "#3D8B40"),
}
STYLE = (
    "<style>"
    + "".join(
        f".attn .attn-{name} {{color: var(--jp-mirror-editor-{variable}-color, {color})}}"
        for name, (variable, color) in _COLORS.items()
    )
    + "</style>"
)


def colored(code: str) -> str:
    """Lines of code as HTML, escaped; the colors carry nothing that the words do not."""
    from pygments.lexers.python import PythonLexer

    written = text.clean(code)
    tokens = PythonLexer(stripnl=False, ensurenl=False).get_tokens(written)
    body = "".join(_span(kind, part) for kind, part in tokens)
    return f'{STYLE}<pre class="attn-code">{body}</pre>'


def _span(kind: object, part: str) -> str:
    name = _name(kind)
    return f'<span class="attn-{name}">{html.escape(part)}</span>' if name else html.escape(part)


def _name(kind: object) -> str:
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    kinds = (
        (Keyword, "k"),
        (Operator.Word, "k"),
        (String, "s"),
        (Comment, "c"),
        (Number, "m"),
        (Operator, "o"),
        (Name.Decorator, "nd"),
        (Name.Function, "nf"),
        (Name.Class, "nf"),
        (Name.Builtin, "nb"),
    )
    return next((name for group, name in kinds if kind in group), "")
