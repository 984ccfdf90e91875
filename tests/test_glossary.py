"""The glossary says where a word is explained, and there the word is; its links lead somewhere, in a hand-out, too."""

from __future__ import annotations

import re
from functools import cache

import pytest

from grader.authoring.release import handout
from grader.course import percent
from grader.course.course import GLOSSARY, open_course

COURSE = open_course()
PAGE = COURSE.glossary()
ENTRY = re.compile(r"^(\*\*.*?): .* \(\[(\d\d)\]\((\w+)\.ipynb\)\)$", re.MULTILINE)
ENTRIES = [(found[1], found[2], found[3]) for found in ENTRY.finditer(PAGE)]
PROMISED = (
    "token",
    "vector",
    "embedding",
    "logits",
    "nat",
    "head",
    "query",
    "key",
    "value",
    "score",
    "weights",
    "mask",
    "causal",
    "softmax",
    "temperature",
    "residual connection",
    "layer normalization",
    "padding",
    "cross entropy",
    "gradient",
)


def words(names: str) -> list[str]:
    """The names of an entry: '**layer norm**, `nn.LayerNorm`' has two."""
    return re.findall(r"\*\*(.*?)\*\*|`(.*?)`", names)


def test_every_entry_is_read():
    terms = PAGE.partition("## Terms")[2]
    assert len(ENTRIES) == len([line for line in terms.splitlines() if line.strip()])
    names = [name.removeprefix("**").partition("**")[0] for name, _, _ in ENTRIES]
    assert names == sorted(names, key=str.lower) and len(set(names)) == len(names)
    assert set(PROMISED) <= set(names)


@cache
def said_in(lesson: str) -> str:
    cells = percent.learner_cells(COURSE.cells(lesson)) if lesson in COURSE.lessons() else ()
    return " ".join(" ".join(cell.text for cell in cells if cell.role == "prose").split()).lower()


def test_a_term_is_used_in_the_lesson_that_explains_it():
    lines = PAGE.splitlines()
    wrong = [
        f"notebooks/glossary.md:{1 + next(at for at, line in enumerate(lines) if line.startswith(names + ':'))}: {lesson} does not say {names}"
        for names, number, lesson in ENTRIES
        if not lesson.startswith(number)
        or not any((bold or code).lower() in said_in(lesson) for bold, code in words(names))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "symbol", ["d_model", "d_k", "d_v", "T_q", "T_k", "num_heads", "d_head", "∂X", "Q, q", "(..., n)"]
)
def test_the_notation_is_there(symbol):
    assert symbol in PAGE.partition("## Terms")[0]


def test_in_a_hand_out_it_leads_to_no_lesson_that_is_not_there():
    lessons = COURSE.lessons()[:2]
    page = handout(COURSE, lessons)["notebooks/glossary.md"].decode()
    assert {name for name in re.findall(r"\]\((\w+)\.ipynb\)", page)} == set(lessons)
    assert page == COURSE.glossary(lessons) and "**logits**" in page and "(12)" in page


def test_every_lesson_leads_to_it():
    for name in COURSE.lessons():
        assert f"]({GLOSSARY})" in COURSE.nav_links(name)
    assert COURSE.glossary_path.is_file()
