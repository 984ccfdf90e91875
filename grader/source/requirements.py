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

DEFAULT_VERSION = (3, 13)  # what a notebook that names no version (Colab's do not) may have been run with
NEWEST_VERSION = (3, 14)  # the last Python whose new syntax is known here
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
_REWRITES = (  # (since 3.x, newer syntax, the same in older syntax)
    (12, rf"^([ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+\w+)[ \t]*{_BRACKETS}(?=[ \t]*[(:])", r"\1"),
    (12, rf"^([ \t]*)type[ \t]+(\w+)[ \t]*(?:{_BRACKETS})?[ \t]*=(?!=)", r"\1\2 ="),
    (14, r"^([ \t]*except\*?[ \t]+)([\w.]+(?:[ \t]*,[ \t]*[\w.]+)+)[ \t]*:", r"\1(\2):"),
)
_MAX_DEPTH = 8  # f-strings within one another


def missing_requirement(text: str, version: tuple[int, ...] | None = None) -> str:
    """The first requirement of a cell that is not met here, as 'python>=3.12' or 'scipy'; '' where all are, or none explains an error.

    version: of the Python that ran the notebook, as its metadata say; None where they do not.
    """
    version = (version or DEFAULT_VERSION)[:2]
    tree = parse(without_magics(text))
    if tree is not None:
        return next(_missing_features(tree, version), "")
    syntax = _syntax_version(text)
    if syntax is None and version > max(NEWEST_VERSION, sys.version_info[:2]):
        syntax = version  # what is new there nobody knows here
    return f"python>={syntax[0]}.{syntax[1]}" if syntax and sys.version_info[:2] < syntax <= version else ""


def advice(requirement: str) -> str:
    """What to do, as a sentence for whoever grades."""
    if requirement.startswith("python>="):
        return f"Install Python {requirement.removeprefix('python>=')} or newer with the grader, and grade this notebook again with it."
    return f"Install {requirement} with `python -m pip install {requirement}`, and grade this notebook again."


def reason(requirement: str) -> str:
    """What is lacking, as the end of a sentence about a cell."""
    if requirement.startswith("python>="):
        version = ".".join(map(str, sys.version_info[:2]))
        return f"needs Python {requirement.removeprefix('python>=')} or newer, and Python {version} is running here"
    return f"imports {requirement}, which is not installed here"


def _missing_features(tree: ast.Module, version: tuple[int, ...]) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                features = [(alias.name, "") for alias in names]
            case ast.ImportFrom(module=str(module), names=names, level=0):
                features = [(module, alias.name) for alias in names]
            case ast.Attribute(value=ast.Name(id=module), attr=name) if (module, name) in NEW_NAMES:
                features = [(module, name)]
            case _:
                continue
        for module, name in features:
            top, minor = module.partition(".")[0], NEW_NAMES.get((module, name), 0)
            if top in LIBRARIES and not installed(top):
                yield LIBRARIES[top] or top
            if sys.version_info[:2] < (3, minor) <= version:
                yield f"python>=3.{minor}"


def _syntax_version(text: str) -> tuple[int, ...] | None:
    """Since which Python code parses that does not parse here; None where none is known that would take it.

    In place of each f-string, which since 3.12 may hold any expression, and of each t-string, which came with 3.14, stands a plain
    string; their expressions follow.
    """
    scanner = _Scanner(text)
    try:
        code, newest = "\n".join([scanner.code(0, ""), *scanner.expressions]), scanner.minor
    except ValueError:
        code, newest = text, 0
    for minor, pattern, replacement in _REWRITES:
        older_code = re.sub(pattern, replacement, code, flags=re.MULTILINE)
        newest, code = (max(newest, minor), older_code) if older_code != code else (newest, code)
    return (3, newest) if newest and parse(without_magics(code)) is not None else None


class _Scanner:
    """Reads code as Python 3.14 does as far as strings go; minor: of the 3.x that they need. Raises: ValueError where one is none."""

    def __init__(self, text: str) -> None:
        self.text, self.position, self.minor = text, 0, 0
        self.expressions: list[str] = []

    def code(self, depth: int, terminators: str) -> str:
        """Copies code up to one of these characters outside of brackets, which stays; '' copies all of it."""
        if depth > _MAX_DEPTH:
            raise ValueError
        parts: list[str] = []
        brackets = 0
        while self.position < len(self.text):
            character = self.text[self.position]
            if not brackets and character in terminators and not (character in "!=" and self._compares()):
                return "".join(parts)
            if match := _STRING.match(self.text, self.position):
                parts.append(self._string(match, depth))
                continue
            brackets += (character in "([{") - (character in ")]}")
            parts.append(character)
            self.position += 1
        if terminators:
            raise ValueError
        return "".join(parts)

    def _compares(self) -> bool:
        """Whether '!' or '=' here belongs to a comparison."""
        return self.text[self.position + 1 : self.position + 2] == "=" or self.text[self.position - 1] in "=!<>:"

    def _string(self, match: re.Match[str], depth: int) -> str:
        """The string or the comment that begins here, or what stands for it."""
        self.position = match.end()
        prefix, quote = (match["prefix"] or "").lower(), match["quote"]
        if not quote:
            return "" if depth else match[0]
        if not set("ft") & set(prefix):
            while not self.text.startswith(quote, self.position):
                self._literal(quote)
            self.position += len(quote)
            return self.text[match.start() : self.position]
        self.minor = max(self.minor, 14 if "t" in prefix else 12)
        self._fields(quote, depth)
        return '""'

    def _literal(self, quote: str) -> None:
        """Goes past one character of a string."""
        character = self.text[self.position : self.position + 1]
        if not character or character == "\n" and len(quote) == 1:
            raise ValueError
        self.position += 1 + (character == "\\")

    def _fields(self, quote: str, depth: int, spec: bool = False) -> None:
        """Goes to the end of an f-string; of a format to the brace that closes it."""
        while not self.text.startswith("}" if spec else quote, self.position):
            pair = self.text[self.position : self.position + 2]
            if pair in ("{{", "}}") and not spec:
                self.position += 2
            elif pair[:1] == "{":
                self._field(quote, depth)
            elif pair[:1] == "}":
                raise ValueError
            else:
                self._literal(quote)
        self.position += 1 if spec else len(quote)

    def _field(self, quote: str, depth: int) -> None:
        self.position += 1
        expression = self.code(depth + 1, "!:=}")
        if not expression.strip():
            raise ValueError
        self.expressions.append(f"({expression})")
        conversion = re.compile(r"=?\s*(![rsa])?\s*").match(self.text, self.position)
        self.position = conversion.end() if conversion else self.position
        end = self.text[self.position : self.position + 1]
        self.position += 1
        if end == ":":
            self._fields(quote, depth + 1, spec=True)
        elif end != "}":
            raise ValueError
