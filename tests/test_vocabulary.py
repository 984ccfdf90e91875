"""The field's names: each standard term has an entry in the glossary and stands in bold where it is first used; home-made words are gone."""

from __future__ import annotations

import re
from functools import cache

import pytest

from grader.authoring.teaching import BEFORE
from grader.course import percent
from grader.course.course import open_course

COURSE = open_course()
STANDARD = (  # without which a reader cannot search the literature
    "activation patching",
    "all-reduce",
    "arithmetic intensity",
    "attention weights",
    "autoregressive",
    "concatenate",
    "cross-attention",
    "deadlock",
    "eager attention",
    "embedding matrix",
    "feed-forward network",
    "KV heads",
    "learning rate",
    "logit attribution",
    "logits",
    "perplexity",
    "positional embedding",
    "positional encoding",
    "residual connection",
    "residual stream",
    "sequence parallelism",
    "skip connection",
    "tensor core",
    "tensor parallelism",
    "TF32",
    "vanishing gradient",
    "world size",
)
HOME_MADE = {  # what stood for a standard term, and the term
    r"small network": "feed-forward network, MLP",
    r"residual paths?": "residual or skip connection, residual stream",
    r"explicit (way|attention)": "eager attention",
    r"tables? of scores": "score matrix",
    r"heads of keys": "KV heads",
    r"undivided": "unscaled",
    r"wires": "projection",
    r"witness(es)?": "control, test",
    r"instruments?": "measurement",
    r"∂[A-Z]\b(?!/)(?<!/∂[A-Z])": "dX",
    r"135 million numbers": "million parameters",
}


def told_in(lesson: str) -> str:
    """A lesson's prose as it is read: without code, headings, and what it says comes before it."""
    cells = [cell.text for cell in percent.learner_cells(COURSE.cells(lesson)) if cell.role == "prose"]
    text = re.sub(r"```.*?```|`[^`\n]*`|\$[^$]*\$", " ", "\n\n".join(cells), flags=re.DOTALL)
    parts = [part for part in text.split("\n\n") if not part.startswith(BEFORE)]
    return " ".join(" ".join(line for line in "\n".join(parts).splitlines() if not line.startswith("#")).split())


@cache
def pages() -> dict[str, str]:
    return {lesson: told_in(lesson) for lesson in COURSE.lessons()}


def entries() -> dict[str, str]:
    """What the glossary explains, with the lesson that each entry names; an entry may have several names, 'KV head' stands for its plural."""
    found = {}
    for line in COURSE.glossary().splitlines():
        if entry := re.fullmatch(r"(\*\*.*?): .*\(\[\d\d\]\((\w+)\.ipynb\)\)", line):
            found |= {name.lower(): entry[2] for name in re.findall(r"\*\*(.*?)\*\*", entry[1])}
    return found


def known(term: str) -> str:
    """The lesson that the glossary names for a term, in the singular or in the plural."""
    return next((entries()[name] for name in (term.lower(), term.lower().removesuffix("s")) if name in entries()), "")


@pytest.mark.parametrize("term", STANDARD)
def test_a_standard_term_is_in_the_glossary_and_in_bold_where_it_is_first_used(term):
    lesson = known(term)
    assert lesson, f"the glossary lacks {term}"
    word = re.compile(rf"(\*\*)?\b{re.escape(term.removesuffix('s'))}\w*", re.IGNORECASE)
    first = {name: found for name, page in pages().items() if (found := word.search(page))}
    assert lesson in first, f"{lesson} does not use {term}"
    earliest = next(iter(first))
    assert earliest == lesson, f"{term} is explained in {lesson}, and {earliest} uses it before"
    at = first[lesson].start()
    bold = pages()[lesson][:at].count("**") % 2 == 1 or first[lesson][1]
    assert bold, f"{lesson}: …{pages()[lesson][max(at - 60, 0) : at + 60]}… is its first use, and is not in bold"


def home_made(text: str) -> list[str]:
    plain = " ".join(text.split())
    return [
        f"…{plain[max(found.start() - 40, 0) : found.end() + 40]}… → {instead}"
        for word, instead in HOME_MADE.items()
        for found in re.finditer(rf"(?<!\w)(?:{word})(?!\w)", plain, re.IGNORECASE)
    ]


@pytest.mark.parametrize("lesson", COURSE.lessons())
def test_home_made_words_are_gone(lesson):
    """From the notebook and its notes, from tasks, hints, cases and mistakes."""
    cells = [cell.text for cell in COURSE.cells(lesson)]
    own = COURSE.lesson(lesson)
    told = [line for one in own.exercises for line in (one.task, *one.hints)]
    ids = {part for one in own.exercises for mistake in one.mistakes for part in mistake.id.split("+")}
    texts = [COURSE.mistake_text(id) for id in sorted(ids)]
    found = home_made("\n".join([*cells, *told, *(part for text in texts for part in (text.sentence, text.why))]))
    assert not found, "\n".join(found)


def test_home_made_words_are_gone_from_the_glossary():
    assert not home_made(COURSE.glossary())
