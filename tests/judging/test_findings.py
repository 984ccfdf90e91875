"""Verdicts are made of typed findings: nothing reads a sentence, a headline or a part's name to learn what it is about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

# What others' words are told by: exceptions of Python, NumPy and torch, and the operations that a worker counted.
READS_OTHERS = {"facts.py", "runtime_policy.py"}
JUDGING = sorted(path for path in (ROOT / "grader" / "judging").glob("*.py") if path.name not in READS_OTHERS)


def parsing(path: Path) -> list[str]:
    """What takes a sentence or a name apart."""
    return re.findall(
        r"\.(?:startswith|endswith|removeprefix|removesuffix)\(|^import re$|\bin (?:\w+\.)?(?:message|headline|sentence)\b",
        path.read_text(encoding="utf-8"),
        re.MULTILINE,
    )


@pytest.mark.parametrize(
    "path", [*JUDGING, ROOT / "grader/course/readings.py"], ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_nothing_parses_a_sentence_or_a_name(path):
    assert parsing(path) == []


def test_sentences_are_made_in_one_module():
    """No other module of judging asks for the words of a shape or a type."""
    for path in JUDGING:
        if path.name not in ("wording.py", "rules.py"):
            assert not re.search(r"expected \{|; expected|should raise", path.read_text(encoding="utf-8")), path.name
