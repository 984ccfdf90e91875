"""What a cell needs that this Python lacks: a newer Python for its syntax or its library, or a library that is not installed.

An error that comes of it is not the learner's. Nothing here takes a notebook's word for it: newer syntax is rewritten as older syntax,
which then has to parse, and only well-known libraries count, since a name that nobody knows may be a typo or a file left at home.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from grader.source.definitions import parse
from grader.source.magics import without_magics
from grader.util.libraries import installed

UNKNOWN = (3, 13)  # what a notebook that names no version (Colab's do not) may have been run with
KNOWN_TO = (3, 14)  # the last Python whose new syntax is known here
LIBRARIES = {  # by the name that is imported; '' where pip knows it by the same name
    **dict.fromkeys(
        """
        altair beartype bokeh cupy datasets einops gensim h5py ipywidgets jax jaxtyping joblib lightning matplotlib
        mpmath networkx nltk numba numexpr pandas plotly polars pydantic requests rich scipy seaborn sentencepiece
        spacy statsmodels sympy tabulate tensorflow termcolor tiktoken tokenizers torchaudio torchinfo torchmetrics
        torchvision tqdm transformers wandb xarray
        """.split(),
        "",
    ),
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "PIL": "pillow",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "opt_einsum": "opt-einsum",
    "more_itertools": "more-itertools",
    "typing_extensions": "typing-extensions",
}
NEW_NAMES = {  # of Python's own library: in which 3.x they came
    ("itertools", "batched"): 12,
    ("math", "sumprod"): 12,
    ("typing", "override"): 12,
    ("typing", "TypeAliasType"): 12,
    ("copy", "replace"): 13,
    ("math", "fma"): 13,
    ("warnings", "deprecated"): 13,
}
_STRING = re.compile(r"(?<!\w)(?P<prefix>[rbuftRBUFT]{0,2})(?P<quote>'''|\"\"\"|'|\")|#[^\n]*")
_BRACKETS = r"\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]"
_OLDER = (  # (since 3.x, newer syntax, the same in older syntax)
    (12, rf"^([ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+\w+)[ \t]*{_BRACKETS}(?=[ \t]*[(:])", r"\1"),
    (12, rf"^([ \t]*)type[ \t]+(\w+)[ \t]*(?:{_BRACKETS})?[ \t]*=(?!=)", r"\1\2 ="),
    (14, r"^([ \t]*except\*?[ \t]+)([\w.]+(?:[ \t]*,[ \t]*[\w.]+)+)[ \t]*:", r"\1(\2):"),
)
_DEEPEST = 8  # f-strings within one another


def unmet(text: str, version: tuple[int, ...] | None = None) -> str:
    """The first requirement of a cell that is not met here, as 'python>=3.12' or 'scipy'; '' where all are, or none explains an error.

    version: of the Python that ran the notebook, as its metadata say; None where they do not.
    """
    version = (version or UNKNOWN)[:2]
    tree = parse(without_magics(text))
    if tree is not None:
        return next(_missing_features(tree, version), "")
    since = _syntax_since(text)
    if since is None and version > max(KNOWN_TO, sys.version_info[:2]):
        since = version  # what is new there nobody knows here
    return f"python>={since[0]}.{since[1]}" if since and sys.version_info[:2] < since <= version else ""


def advice(requirement: str) -> str:
    """What to do, as a sentence for whoever grades."""
    if requirement.startswith("python>="):
        return f"Install Python {requirement.removeprefix('python>=')} or newer with the grader, and grade this notebook again with it."
    return f"Install {requirement} with `python -m pip install {requirement}`, and grade this notebook again."


def reason(requirement: str) -> str:
    """What is lacking, as the end of a sentence about a cell."""
    if requirement.startswith("python>="):
        here = ".".join(map(str, sys.version_info[:2]))
        return f"needs Python {requirement.removeprefix('python>=')} or newer, and Python {here} is running here"
    return f"imports {requirement}, which is not installed here"


def _missing_features(tree: ast.Module, version: tuple[int, ...]) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                used = [(alias.name, "") for alias in names]
            case ast.ImportFrom(module=str(module), names=names, level=0):
                used = [(module, alias.name) for alias in names]
            case ast.Attribute(value=ast.Name(id=module), attr=name) if (module, name) in NEW_NAMES:
                used = [(module, name)]
            case _:
                continue
        for module, name in used:
            top, since = module.partition(".")[0], (3, NEW_NAMES.get((module, name), 0))
            if top in LIBRARIES and not installed(top):
                yield LIBRARIES[top] or top
            if sys.version_info[:2] < since <= version:
                yield f"python>=3.{since[1]}"


def _syntax_since(text: str) -> tuple[int, ...] | None:
    """Since which Python code parses that does not parse here; None where none is known that would take it.

    In place of each f-string, which since 3.12 may hold any expression, and of each t-string, which came with 3.14, stands a plain
    string; their expressions follow.
    """
    scanner = _Scanner(text)
    try:
        older, since = "\n".join([scanner.code(0, ""), *scanner.expressions]), scanner.since
    except ValueError:
        older, since = text, 0
    for minor, newer, same in _OLDER:
        rewritten = re.sub(newer, same, older, flags=re.MULTILINE)
        since, older = (max(since, minor), rewritten) if rewritten != older else (since, older)
    return (3, since) if since and parse(without_magics(older)) is not None else None


class _Scanner:
    """Reads code as Python 3.14 does as far as strings go. Raises: ValueError where one does not end, or is no string."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.since = text, 0, 0
        self.expressions: list[str] = []

    def code(self, depth: int, ends: str) -> str:
        """Copies code up to one of these characters outside of brackets, which stays; '' copies all of it."""
        if depth > _DEEPEST:
            raise ValueError
        parts: list[str] = []
        brackets = 0
        while self.at < len(self.text):
            sign = self.text[self.at]
            if not brackets and sign in ends and not (sign in "!=" and self._compares()):
                return "".join(parts)
            match = _STRING.match(self.text, self.at)
            if match:
                parts.append(self._string(match, depth))
                continue
            brackets += (sign in "([{") - (sign in ")]}")
            parts.append(sign)
            self.at += 1
        if ends:
            raise ValueError
        return "".join(parts)

    def _compares(self) -> bool:
        """Whether '!' or '=' here belongs to a comparison."""
        return self.text[self.at + 1 : self.at + 2] == "=" or self.text[self.at - 1] in "=!<>:"

    def _string(self, match: re.Match[str], depth: int) -> str:
        """The string or the comment that begins here, or what stands for it."""
        self.at = match.end()
        prefix, quote = (match["prefix"] or "").lower(), match["quote"]
        if not quote:
            return "" if depth else match[0]
        if not set("ft") & set(prefix):
            while not self.text.startswith(quote, self.at):
                self._literal(quote)
            self.at += len(quote)
            return self.text[match.start() : self.at]
        self.since = max(self.since, 14 if "t" in prefix else 12)
        self._fields(quote, depth)
        return '""'

    def _literal(self, quote: str) -> None:
        """Goes past one character of a string."""
        sign = self.text[self.at : self.at + 1]
        if not sign or sign == "\n" and len(quote) == 1:
            raise ValueError
        self.at += 1 + (sign == "\\")

    def _fields(self, quote: str, depth: int, spec: bool = False) -> None:
        """Goes to the end of an f-string; of a format to the brace that closes it."""
        while not self.text.startswith("}" if spec else quote, self.at):
            two = self.text[self.at : self.at + 2]
            if two in ("{{", "}}") and not spec:
                self.at += 2
            elif two[:1] == "{":
                self._field(quote, depth)
            elif two[:1] == "}":
                raise ValueError
            else:
                self._literal(quote)
        self.at += 1 if spec else len(quote)

    def _field(self, quote: str, depth: int) -> None:
        self.at += 1
        expression = self.code(depth + 1, "!:=}")
        if not expression.strip():
            raise ValueError
        self.expressions.append(f"({expression})")
        rest = re.compile(r"=?\s*(![rsa])?\s*").match(self.text, self.at)
        self.at = rest.end() if rest else self.at
        end = self.text[self.at : self.at + 1]
        self.at += 1
        if end == ":":
            self._fields(quote, depth + 1, spec=True)
        elif end != "}":
            raise ValueError
