"""What learners and instructors read is natural American English: phrases that were found to read as translated do not come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

import pytest

from grader.course.course import open_course
from tests.conftest import ROOT
from tests.test_docstrings import prose

# What a native editor crossed out, and what stood in its place.
PHRASES = {
    r"\bis to work for\b": "It works for",
    r"\b(this|it|that) was to hold\b": "This should hold",
    r"\bwas to (raise|return|be|hold|have|give|define)\b": "should …, should have …ed",
    r"(?<!goal )(?<!idea )(?<!slip )\b(is|are) to (be|have|see|hold|allow|stay|carry|give|keep)\b": "should",
    r"\bwithout a word\b": "without any warning, silently",
    r"\bfill-?ups?\b": "<pad>",
    r"\b(?-i:Whoever)\b": "anyone who, if you",
    r"\bat hand there\b": "there you have, the computer at hand",
    r"\bmend(s|ed|ing)?\b": "fix, repair",
    r"\bour (own )?(code|function|answer|functions|module|class|check|result)\b": "your code (the learner's), the course's code",
    r"\bthe others are ours\b": "the course's",
    r"\bit is no (mistake|error)\b": "it isn't a mistake",
    r"\bin sum\b": "in total, that sum to",
    r"\bshould \S+ not be\b": "if … is not",
    r"\bnobody's idea\b": "not how anyone thinks of",
    r"(?<!goal )(?<!idea )(?<!slip )\b(is|are) to (decide|draw|lie|sharpen)\b": "should",
    r"\bbelongs? into\b": "belongs in, should go into",
    r"\bin silence\b": "silently",
    r"\bsa(y|ys|id|ying) nothing of\b": "never mentions",
    r"\bthe state before (is|was)\b": "the previous state",
    r"\bhead's finding\b": "what a head found",
    r"\bquiet tokens?\b": "a token of small numbers",
    r"\b(was|were) left standing\b": "was left in",
    r"\bneeded by nobody\b": "no longer needed",
    r"\bitems of a batch do not meet\b": "one item of a batch does not affect another",
}
BRITISH = (
    r"\b\w*(colour|behaviour|neighbour|favour|honour|labour)\w*",
    r"\b(learnt|spelt|burnt|whilst|amongst|grey|centre[sd]?|licence|programme)\b",
    r"\b\w+(optimis|normalis|initialis|generalis|recognis|realis|organis|summaris|vectoris|minimis|maximis|specialis|visualis|memoris|parametris)(e[sdr]?|ers?|ing|ations?)\b",
    r"\b(optimis|normalis|initialis|generalis|recognis|realis|organis|summaris|vectoris|minimis|maximis|specialis|visualis|memoris|parametris|analys)(e[sdr]?|ers?|ing|ations?)\b",
    r"\b(labell|modell|travell|cancell)(ed|ing)\b",
)
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "notebooks/glossary.md",
    *(path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("docs/**/*.md"))),
]
TEMPLATES = sorted(
    [
        *(ROOT / "grader" / "authoring" / "release" / "files").glob("*.md"),
        *(ROOT / "grader" / "reports" / "templates").glob("*.html"),
    ]
)
FILES = [
    path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "grader").rglob("*.py")) if "_course" not in path.parts
]


def told(where: str, text: str) -> list[str]:
    """Each phrase in a text that must not stand there, with what may stand instead."""
    plain = re.sub(r"`[^`]*`", "``", re.sub(r"```.*?```|\{#.*?#\}", "", text, flags=re.DOTALL))
    found = [
        (match, instead) for phrase, instead in PHRASES.items() for match in re.finditer(phrase, plain, re.IGNORECASE)
    ]
    found += [(match, "American spelling") for phrase in BRITISH for match in re.finditer(phrase, plain, re.IGNORECASE)]
    around = [
        (" ".join(plain[max(match.start() - 50, 0) : match.end() + 40].split()), instead) for match, instead in found
    ]
    return [f"{where}: …{text}… → {instead}" for text, instead in around]


def strings(file: str) -> Iterator[tuple[int, str]]:
    """The strings of a module that somebody may read: all but names and patterns; docstrings are prose for developers."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
            and " " in node.value
        ):
            yield node.lineno, node.value


def none_told(texts: Iterable[tuple[str, str]]) -> None:
    """texts: each with where it stands."""
    found = [line for where, text in texts for line in told(where, text)]
    assert not found, "\n".join(found)


def test_lessons():
    none_told(
        (f"{open_course().source_path(name).relative_to(ROOT)}:{cell.line}", cell.text)
        for name in open_course().lessons()
        for cell in open_course().cells(name)
        if cell.role == "prose"
    )


def test_tasks_of_exercises():
    for lesson in map(open_course().lesson, open_course().lessons()):
        none_told((one.name, one.task) for one in lesson.exercises)
        none_told([(lesson.name, f"{lesson.question} {lesson.outcome}")])


def test_hints_mistakes_verdicts_reports_and_messages():
    none_told((f"{file}:{number}", text) for file in FILES for number, text in strings(file))


def test_docstrings_and_comments():
    none_told(
        (f"{file}:{number}", text)
        for file in FILES
        for number, text in prose((ROOT / file).read_text(encoding="utf-8"))
    )


def test_pages_and_templates_of_hand_outs_and_reports():
    files = [*(ROOT / page for page in PAGES), *TEMPLATES]
    none_told((path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in files)


@pytest.mark.parametrize(
    "text",
    [
        "It is to work for any sizes.",
        "This was to hold: x.",
        "Should `double` not be finished yet",
        "the color of learnt behaviour",
        "Mend it.",
        "It belongs into it.",
        "The message says nothing of heads.",
    ],
)
def test_such_a_phrase_is_found(text):
    assert told("here", text)


def test_code_in_a_text_is_left_alone():
    assert not told("here", "`mend(x)` and\n```python\nwhoever = 1\n```\n")
