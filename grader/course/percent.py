"""The source of a lesson: a notebook in the percent format, read into cells, and what its Markdown cells may hold beyond Markdown.

    @predict … @answer … @wrong …   a prediction: its question, its answer, and what a wrong guess shows
    {{ spread:.2f }}                a number that the prose quotes from the run, written as in Python's f-strings
    {{ spread:.2f; it < 0.5 }}      the same; the build fails unless the text's reading of it holds
    @teaching                       notes for instructors, in no notebook: the last cell of a source
    ## Further: …                   what the core of no lesson needs, exercises too; up to the next '## ' heading of another kind

Numbers are evaluated while the solved notebook is built and stored in its metadata; whoever makes a learner's notebook
fills them in from there and runs nothing.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

HIDE_INPUT = "hide-input"  # the tag of a cell whose code is folded: Jupyter Book's name for it
FURTHER = "## Further: "  # begins a part that is not of the lesson's core
PREDICT, ANSWER, WRONG, TEACHING = "@predict", "@answer", "@wrong", "@teaching"  # each alone on its line
# Braces that follow a letter, a brace, ^, _ or a backslash are LaTeX's, as in \frac{{ a }}{{ b }}.
_ALONE = r"(?<![\w{}^_\\])"
_QUOTE = re.compile(_ALONE + r"\{\{ +(?P<quote>[^\n]+?) +\}\}")
_HEAD = re.compile(r"^# %%(?P<prose> \[markdown\])?(?P<about>.*)$", re.MULTILINE)
_ABOUT = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\[[^\]]*\])')

_MODULES = frozenset({"math", "np", "torch"})

# (expression, value) of every quoted number of a lesson, in the order of its source
QuotedValues = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Cell:
    """One cell of a lesson's source. role: 'prose', 'given', 'demo', 'exercise', 'check' or 'payoff'."""

    role: str
    text: str
    exercise: str = ""
    tags: tuple[str, ...] = ()
    number: int = 0  # position in the lesson, from 0
    line: int = 0  # of the source file, from 1; for messages to authors
    further: bool = False  # whether it is in a further part

    @property
    def mark(self) -> str:
        """The first line of prose that begins with @, such as '@predict' or '@exercise NAME'; '' for none."""
        first = " ".join(self.text.partition("\n")[0].split()) if self.role == "prose" else ""
        return first if first.startswith("@") else ""


def read_percent(text: str) -> tuple[Cell, ...]:
    """The cells of a source in the percent format, as jupytext reads them.

    Read here because importing jupytext takes three seconds, which every first check() would wait for;
    a test holds the two against each other.
    """
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    cells, further = [], False
    for number, (head, end) in enumerate(zip(heads, ends, strict=True)):
        about = {key: json.loads(value) for key, value in _ABOUT.findall(head["about"])}
        role = "prose" if head["prose"] else about.get("role", "")
        body = text[head.end() : end].strip("\n")
        if head["prose"]:
            body = re.sub("^# ?", "", body, flags=re.MULTILINE).strip("\n")
            further = body.startswith(FURTHER) if body.startswith("## ") else further
        line = text.count("\n", 0, head.start()) + 1
        cells.append(Cell(role, body, about.get("exercise", ""), tuple(about.get("tags", ())), number, line, further))
    return tuple(cells)


class MissingValue(Exception):
    """A quoted number has no stored value, or the stored one is of another expression. The message is the expression."""


@dataclass(frozen=True)
class Prediction:
    """Markdown: a question to be answered by thinking, the answer with its reason, and what a wrong guess shows."""

    question: str
    answer: str
    wrong: str


@dataclass(frozen=True)
class Quote:
    """A quoted number: its expression and format as they stand between the braces. line: of the cell's text, from 1."""

    text: str
    line: int


def learner_cells(cells: Iterable[Cell]) -> list[Cell]:
    """The cells of a source that stand in its notebooks: all but the notes for instructors."""
    return [cell for cell in cells if cell.mark != TEACHING]


def prediction(text: str) -> Prediction:
    """The three parts of a prediction's cell; '' for a part that is missing."""
    question, *others = re.split(rf"^\s*({ANSWER}|{WRONG})\s*$", text.partition("\n")[2], flags=re.MULTILINE)
    parts = dict(zip(others[::2], others[1::2]))
    return Prediction(question.strip(), parts.get(ANSWER, "").strip(), parts.get(WRONG, "").strip())


def predictions(cells: Iterable[Cell], values: QuotedValues) -> list[Prediction]:
    """Those of a source, the numbers that they quote filled in. values: of the whole source. Raises: MissingValue."""
    remaining = iter(values)
    pages = [(cell.mark, fill_values(cell.text, remaining)) for cell in learner_cells(cells) if cell.role == "prose"]
    return [prediction(text) for mark, text in pages if mark == PREDICT]


def options(question: str) -> str:
    """The letters of a question's options, 'ABC' of a list '- **A** …'; '' for an open question."""
    letters = "".join(re.findall(r"^- \*\*([A-Z])\*\* ", question, re.MULTILINE))
    return letters if len(letters) > 1 and "ABCDEFGH".startswith(letters) else ""


def prediction_markdown(prediction: Prediction) -> str:
    """A prediction as the notebooks have it. Markdown inside an HTML element needs blank lines around it."""
    return (
        f"**Predict.** {prediction.question}\n\n<details>\n<summary>Answer</summary>\n\n{prediction.answer}\n\n"
        f"{prediction.wrong}\n\n</details>"
    )


def is_folded(text: str) -> bool:
    """Whether a notebook's cell is a prediction, as `prediction_markdown` writes it."""
    return text.startswith("**Predict.** ")


def quotes(text: str) -> list[Quote]:
    """The quoted numbers of a cell, in order."""
    return [Quote(match["quote"], text.count("\n", 0, match.start()) + 1) for match in _QUOTE.finditer(text)]


def code_of(quote: str) -> str:
    """Python that prints a quoted number, and raises AssertionError where its claim does not hold. Raises: SyntaxError."""
    number, _, claim = quote.partition("; ")
    printed = f'print(f"""{{ {number}}}""", end="")'
    (statement,) = ast.parse(printed).body
    (text,) = statement.value.args  # type: ignore[attr-defined]
    parts = getattr(text, "values", [])
    if len(parts) != 1 or not isinstance(parts[0], ast.FormattedValue):
        raise SyntaxError("one expression is expected")
    if not claim:
        return printed
    sentence = f"the text relies on {claim}"
    return f"assert (lambda it: {claim})({ast.unparse(parts[0].value)}), {sentence!r}\n{printed}"


def syntax_error(quote: str) -> str:
    """What is wrong with a quoted number's expression, format or claim, '' for nothing."""
    try:
        ast.parse(code_of(quote))
    except SyntaxError as error:
        return error.msg
    return ""


def names_in(quote: str) -> frozenset[str]:
    """The names of the run from which a quoted number is computed: neither functions, modules nor CONSTANTS."""
    tree = ast.parse(code_of(quote.partition("; ")[0]))
    callees = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and id(node) not in callees and not node.id.isupper() and node.id not in _MODULES
    )


def fill_values(text: str, values: Iterator[Sequence[str]]) -> str:
    """Text with each quoted number's value in its place, taken from `values` in order. Raises: MissingValue."""

    def value(match: re.Match[str]) -> str:
        expression, value = next(values, ("", ""))
        if expression != match["quote"]:
            raise MissingValue(match["quote"])
        return value

    return _QUOTE.sub(value, text)


def broken_quotes(text: str) -> list[int]:
    """Lines, from 1, with braces that look like a quoted number and are none: no space inside, or no end on that line."""
    rest = _QUOTE.sub("", text).split("\n")
    return [number for number, line in enumerate(rest, 1) if re.search(rf"{_ALONE}\{{\{{", line)]
