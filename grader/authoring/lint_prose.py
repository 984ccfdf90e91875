"""What is wrong with a source's prose: its predictions, the numbers that it quotes, its beginning and end, its notes for instructors."""

from __future__ import annotations

import ast
import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from grader.authoring import reading, teaching
from grader.course import prose
from grader.course.percent import Cell
from grader.course.spec import Lesson
from grader.util.errors import LintError

MOST_PREDICTIONS = 5
FEWEST_MISTAKES, MOST_MISTAKES = 2, 4  # to expect, of one exercise
KEEP = "What we keep"
# Of a lesson's core; reading and exercises in minutes.
MOST_WORDS, MOST_LINES, MOST_READING, MOST_WORK = 2000, 90, 45, 50


def proofread_prose(file: str, cells: Sequence[Cell], lesson: Lesson) -> Iterator[LintError]:
    """Everything wrong with a source's Markdown cells."""
    written = [cell for cell in cells if cell.role == "prose"]
    predictions = [cell for cell in written if prose.is_prediction(cell.text)]
    notes = [cell for cell in written if prose.is_teaching(cell.text)]
    asserted = _asserted(cells)
    for cell in written:
        yield from _quotes(file, cell, asserted)
    for cell in predictions:
        yield from _prediction(file, cell)
    for cell in predictions[MOST_PREDICTIONS:]:
        yield LintError(file, cell.line, f"a lesson has at most {MOST_PREDICTIONS} predictions.")
    yield from _inline(file, [cell for cell in written if cell not in predictions])
    if written:
        yield from _frame(file, prose.learner_cells(written))
        yield from _further(file, prose.learner_cells(written))
        yield from _budget(file, cells, lesson)
    if not notes:
        yield LintError(
            file, 0, f"the source has no notes for instructors: its last cell must begin with '{prose.TEACHING}'."
        )
    for cell in notes:
        if cell is not cells[-1]:
            yield LintError(
                file, cell.line, f"'{prose.TEACHING}' may begin only the last cell of a source, and only one."
            )
        yield from _notes(file, cell, lesson)


def _asserted(cells: Sequence[Cell]) -> frozenset[str]:
    """The names of which a cell's assert or a claim of prose says something. What is not Python is another's to report."""
    names: set[str] = set()
    for cell in cells:
        claims = [
            prose.code_of(asked.text)
            for asked in prose.asked_in(cell.text)
            if "; " in asked.text and not prose.amiss(asked.text)
        ]
        with contextlib.suppress(SyntaxError):
            for node in ast.walk(ast.parse("\n".join(claims) if cell.role == "prose" else cell.text)):
                if isinstance(node, ast.If if cell.role == "prose" else ast.Assert):
                    names |= {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
    return frozenset(names)


def _quotes(file: str, cell: Cell, asserted: frozenset[str]) -> Iterator[LintError]:
    for asked in prose.asked_in(cell.text):
        wrong = prose.amiss(asked.text)
        if wrong:
            sentence = (
                f"{{{{ {asked.text} }}}} is not an expression with a format, as in {{{{ spread:.2f }}}}: {wrong}."
            )
            yield LintError(file, cell.line + asked.line, sentence)
        elif "; " not in asked.text and (names := prose.names_in(asked.text)) and not names & asserted:
            sentence = (
                f"the text reads something into {{{{ {asked.text} }}}} that nothing asserts, so a run that gives another number "
                f"would make it untrue: write {{{{ {asked.text}; 0.2 < it < 0.5 }}}}, or assert it in a cell."
            )
            yield LintError(file, cell.line + asked.line, sentence)
    for line in prose.half_open(cell.text):
        sentence = "a number that prose quotes begins with '{{ ' and ends with ' }}' on the same line."
        yield LintError(file, cell.line + line, sentence)


def _prediction(file: str, cell: Cell) -> Iterator[LintError]:
    marks = [line.strip() for line in cell.text.splitlines() if line.strip() in (prose.ANSWER, prose.WRONG)]
    asked = prose.prediction(cell.text)
    parts = {"question": asked.question, f"'{prose.ANSWER}'": asked.answer, f"'{prose.WRONG}'": asked.wrong}
    for what, text in parts.items():
        if not text:
            yield LintError(file, cell.line, f"this prediction has no {what}, or it is empty.")
    if sorted(marks) == sorted((prose.ANSWER, prose.WRONG)) and marks != [prose.ANSWER, prose.WRONG] or len(marks) > 2:
        yield LintError(
            file, cell.line, f"a prediction has a question, then one '{prose.ANSWER}', then one '{prose.WRONG}'."
        )


def _inline(file: str, cells: Sequence[Cell]) -> Iterator[LintError]:
    for cell in cells:
        for number, line in enumerate(cell.text.splitlines(), 1):
            if re.search(r"\*\*Predict\b", line):
                yield LintError(
                    file, cell.line + number, f"a prediction needs a separate cell that begins with '{prose.PREDICT}'."
                )
            elif line.strip() in (prose.ANSWER, prose.WRONG):
                yield LintError(
                    file, cell.line + number, f"'{line.strip()}' belongs to a cell that begins with '{prose.PREDICT}'."
                )


def _frame(file: str, cells: Sequence[Cell]) -> Iterator[LintError]:
    """A lesson begins with what it needs and ends with what stays."""
    if not teaching.before(cells):
        yield LintError(file, cells[0].line, f"the first cell needs a paragraph that begins with '{teaching.BEFORE}'.")
    headings = [(cell, line) for cell in cells for line in cell.text.splitlines() if re.match(r"##? ", line)]
    last, line = headings[-1] if headings else (cells[-1], "")
    if line.removeprefix("##").strip() != KEEP:
        yield LintError(file, last.line, f"the last section of a lesson is '## {KEEP}'; here it is {line!r}.")


def _further(file: str, cells: Sequence[Cell]) -> Iterator[LintError]:
    """A collapsed heading hides the cells below it, so every heading from the first further one on begins its cell."""
    begun = False
    for cell in cells:
        for number, line in enumerate(cell.text.splitlines(), 1):
            further = prose.is_further(line)
            sentence = ""
            if line.startswith("## ") and number > 1 and (begun or further):
                sentence = f"{line!r} begins a cell of its own: what is above it collapses."
            elif line.startswith("## ") and begun and not further and line.removeprefix("## ") != KEEP:
                sentence = f"{line!r} stands below a further part; the core comes first."
            if sentence:
                yield LintError(file, cell.line + number, sentence)
            begun = begun or further


def _budget(file: str, cells: Sequence[Cell], lesson: Lesson) -> Iterator[LintError]:
    """What the core asks of a learner's time, against what a course may ask."""
    core = reading.reading(reading.core(cells))
    work = sum(one.minutes for one in lesson.exercises if not one.further)
    for has, most, what in (
        (core.words, MOST_WORDS, "words"),
        (core.lines, MOST_LINES, "lines of code that are not folded"),
        (core.minutes, MOST_READING, "minutes of reading"),
        (work, MOST_WORK, "minutes of exercises"),
    ):
        if has > most:
            sentence = f"the core has {has:,} {what}, and {most:,} are the most: "
            sentence += f"shorten it, fold cells, or move a part under '{prose.FURTHER}…'."
            yield LintError(file, 0, sentence)


def _notes(file: str, cell: Cell, lesson: Lesson) -> Iterator[LintError]:
    if prose.asked_in(cell.text):
        yield LintError(
            file, cell.line, "notes for instructors run no code, so they cannot quote numbers with '{{ }}'."
        )
    own = teaching.sections(cell.text)
    if tuple(own) != teaching.HEADINGS:
        wanted = ", ".join(f"'## {heading}'" for heading in teaching.HEADINGS)
        yield LintError(file, cell.line, f"notes for instructors have these headings, in this order: {wanted}.")
    for heading, body in own.items():
        if not body:
            yield LintError(file, cell.line, f"the section '## {heading}' is empty.")
    found, strange = teaching.expected_mistakes(cell.text)
    for line in strange:
        yield LintError(file, cell.line + line, "a mistake to expect has the form '- exercise ID: a question to ask?'.")
    known = {one.name: {id for mistake in one.mistakes for id in mistake.id.split("+")} for one in lesson.exercises}
    for one in found:
        if one.exercise not in known:
            yield LintError(file, cell.line + one.line, f"{one.exercise!r} is not an exercise of this lesson.")
        elif one.id not in known[one.exercise]:
            there = ", ".join(sorted(known[one.exercise]))
            yield LintError(file, cell.line + one.line, f"{one.exercise} has no mistake {one.id}; it has {there}.")
    counts = Counter(one.exercise for one in found)
    for name in known:
        if not FEWEST_MISTAKES <= counts[name] <= MOST_MISTAKES:
            sentence = f"{name} has {counts[name]} mistakes to expect; {FEWEST_MISTAKES} to {MOST_MISTAKES} are wanted."
            yield LintError(file, cell.line, sentence)
