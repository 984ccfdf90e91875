"""Reads a lesson's source as an author wrote it and says what is wrong with it, by file and line.

Code and its solution regions, what each exercise needs, then the prose: predictions, the numbers that it quotes, its beginning
and end, its notes for instructors.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from grader.authoring import reading_time, teaching
from grader.course import percent
from grader.course.spec import Lesson
from grader.course.stubs import BEGIN, END, TASK
from grader.util.errors import LintError
from grader.util.words import did_you_mean

ROLES = ("prose", "given", "demo", "exercise", "check", "payoff")
WITH_EXERCISE = ("exercise", "check", "payoff")
MOST_FOLDED = 70  # letters of the first line of a folded cell, which Jupyter shows and does not wrap
MOST_PREDICTIONS = 5
FEWEST_MISTAKES, MOST_MISTAKES = 2, 4  # to expect, of one exercise
KEEP = "What we keep"
# Of a lesson's core; reading and exercises in minutes.
MOST_WORDS, MOST_LINES, MOST_READING, MOST_WORK = 2000, 90, 45, 50

# (line, sentence); line: of the source, or, for one cell, after its head; 0: all of it.
Problems = Iterator[tuple[int, str]]


def proofread(file: str, cells: Sequence[percent.Cell], lesson: Lesson) -> list[LintError]:
    """Everything wrong with a lesson's source, in the order of the file."""
    names = [exercise.name for exercise in lesson.exercises]
    asserted_names = _asserted_names(cells)
    problems = [(cell.line + line, text) for cell in cells for line, text in _cell(cell, names, lesson, asserted_names)]
    problems += [*_exercises(cells, names), *_prose(cells, lesson)]
    return [LintError(file, line, sentence) for line, sentence in sorted(problems, key=lambda problem: problem[0])]


def _cell(cell: percent.Cell, names: Sequence[str], lesson: Lesson, asserted: frozenset[str]) -> Problems:
    if cell.role == "prose":
        name = cell.mark.removeprefix(TASK).strip()
        if cell.mark.startswith(TASK) and name not in names:
            yield 0, f"'{cell.mark}' is not an exercise of this lesson{_nearest(name, names)}"
        yield from _quotes(cell, asserted)
        yield from _prediction(cell)
        if cell.mark == percent.TEACHING:
            yield from _notes(cell, lesson)
    elif not cell.role:
        yield 0, f'a code cell needs a role: # %% role="…" with one of {", ".join(ROLES[1:])}.'
    elif cell.role not in ROLES:
        yield 0, f"there is no role {cell.role!r}{_nearest(cell.role, ROLES[1:])}"
    elif cell.role in WITH_EXERCISE and not cell.exercise:
        yield 0, f'a cell of role {cell.role!r} needs exercise="…", the name of its exercise.'
    elif cell.exercise and cell.exercise not in names:
        yield 0, f"{cell.exercise!r} is not an exercise of this lesson{_nearest(cell.exercise, names)}"
    else:
        yield from _code(cell)


def _nearest(name: str, names: Sequence[str]) -> str:
    return did_you_mean(name, names, f"there are {', '.join(names)}.")


def _code(cell: percent.Cell) -> Problems:
    try:
        ast.parse(cell.text)
    except SyntaxError as error:
        yield error.lineno or 0, f"this cell is not Python: {error.msg}."
        return
    yield from _regions(cell)
    for number, line in enumerate(cell.text.splitlines(), 1):
        if "# fmt:" in line or "# noqa" in line:
            yield number, "this mark is for a formatter, but learners would see it: remove it."
    first = cell.text.split("\n", 1)[0]
    if percent.HIDE_INPUT in cell.tags and len(first) > MOST_FOLDED:
        sentence = f"the first line of a folded cell has {len(first)} letters, and {MOST_FOLDED} are the most: a narrow window "
        sentence += "would scroll sideways. Split it, or put a comment that says what the cell does in front."
        yield 1, sentence
    name, text = cell.exercise, cell.text.strip()
    if cell.role == "check" and text not in (f"check({name})", f'check("{name}", {name})'):
        yield 1, f'a check cell contains check({name}), or check("{name}", {name}) for an answer, and nothing else.'
    statement = next((line for line in text.splitlines() if not line.startswith("#")), "")  # below a comment
    if cell.role == "payoff" and "if passed(" not in statement:
        yield 1, f"a payoff cell begins with 'if passed({name}):', so that an unsolved lesson still runs to the end."


def _regions(cell: percent.Cell) -> Problems:
    start, regions = 0, 0
    for number, line in enumerate(map(str.strip, cell.text.splitlines()), 1):
        if line.startswith(BEGIN):
            if start:
                yield number, "a solution region begins inside another one; close the first with '# endregion'."
            start, regions = number, regions + 1
        elif line == END:
            if not start:
                yield number, "'# endregion' closes no region."
            start = 0
        elif line.startswith(("# region", END)):
            yield number, f"regions are marked '{BEGIN}' and '{END}'; this line says {line!r}."
    if start:
        yield start, "this solution region is never closed with '# endregion'."
    if cell.role == "exercise" and not regions:
        yield 0, f"the exercise cell of {cell.exercise} has no '{BEGIN}': learners would see its solution."
    if cell.role != "exercise" and regions:
        yield 0, f"only an exercise cell has a solution region; this one's role is {cell.role!r}."


def _exercises(cells: Sequence[percent.Cell], names: Sequence[str]) -> Problems:
    """Each exercise has one task, one cell for the answer and one check, in this order."""
    for name in names:
        answers = [cell for cell in cells if cell.exercise == name and cell.role == "exercise"]
        tasks = [cell for cell in cells if cell.mark == f"{TASK} {name}"]
        checks = [cell for cell in cells if cell.exercise == name and cell.role == "check"]
        for group, label in ((answers, "exercise cell"), (tasks, f"task ('{TASK} {name}')"), (checks, "check cell")):
            if not group:
                yield 0, f"the specification has {name}, but the source has no {label} for it."
            for extra in group[1:]:
                yield extra.line, f"a second {label} for {name}; the first is in line {group[0].line}."
        if answers and tasks and not tasks[0].number < answers[0].number:
            yield tasks[0].line, f"the task of {name} comes after its exercise cell."
        if answers and checks and not answers[0].number < checks[0].number:
            yield checks[0].line, f"the check of {name} comes before its exercise cell."


def _prose(cells: Sequence[percent.Cell], lesson: Lesson) -> Problems:
    """What is wrong with a source's Markdown cells together."""
    for cell in [cell for cell in cells if cell.mark == percent.PREDICT][MOST_PREDICTIONS:]:
        yield cell.line, f"a lesson has at most {MOST_PREDICTIONS} predictions."
    pages = [cell for cell in percent.learner_cells(cells) if cell.role == "prose"]
    if pages:
        yield from _frame(pages)
        yield from _further(pages)
    yield from _budget(cells, lesson)
    notes = [cell for cell in cells if cell.mark == percent.TEACHING]
    if not notes:
        yield 0, f"the source has no notes for instructors: its last cell must begin with '{percent.TEACHING}'."
    for cell in notes:
        if cell is not cells[-1]:
            yield cell.line, f"'{percent.TEACHING}' may begin only the last cell of a source, and only one."


def _asserted_names(cells: Sequence[percent.Cell]) -> frozenset[str]:
    """The names of which a cell's assert or a claim of prose says something. What is not Python is another's to report."""
    names: set[str] = set()
    for cell in cells:
        quotes = [quote.text for quote in percent.quotes(cell.text) if not percent.syntax_error(quote.text)]
        code = "\n".join(map(percent.code_of, quotes)) if cell.role == "prose" else cell.text
        with contextlib.suppress(SyntaxError):
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.Assert):
                    names |= {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
    return frozenset(names)


def _quotes(cell: percent.Cell, asserted: frozenset[str]) -> Problems:
    for quote in percent.quotes(cell.text):
        if error := percent.syntax_error(quote.text):
            example = "{{ spread:.2f }}"
            yield quote.line, f"{{{{ {quote.text} }}}} is not an expression with a format, as in {example}: {error}."
        elif "; " not in quote.text and (names := percent.names_in(quote.text)) and not names & asserted:
            sentence = f"the text reads something into {{{{ {quote.text} }}}} that nothing asserts, so a run that gives another "
            sentence += (
                f"number would make it untrue: write {{{{ {quote.text}; 0.2 < it < 0.5 }}}}, or assert it in a cell."
            )
            yield quote.line, sentence
    for line in percent.broken_quotes(cell.text):
        yield line, "a number that prose quotes begins with '{{ ' and ends with ' }}' on the same line."


def _prediction(cell: percent.Cell) -> Problems:
    lines = [line.strip() for line in cell.text.splitlines()]
    marks = [line for line in lines if line in (percent.ANSWER, percent.WRONG)]
    if cell.mark == percent.PREDICT:
        parts = percent.prediction(cell.text)
        texts = {"question": parts.question, f"'{percent.ANSWER}'": parts.answer, f"'{percent.WRONG}'": parts.wrong}
        for label, text in texts.items():
            if not text:
                yield 0, f"this prediction has no {label}, or it is empty."
        if len(marks) > 1 and marks != [percent.ANSWER, percent.WRONG]:
            yield 0, f"a prediction has a question, then one '{percent.ANSWER}', then one '{percent.WRONG}'."
        return
    for number, line in enumerate(lines, 1):
        if re.search(r"\*\*Predict\b", line):
            yield number, f"a prediction needs a separate cell that begins with '{percent.PREDICT}'."
        elif line in marks:
            yield number, f"'{line}' belongs to a cell that begins with '{percent.PREDICT}'."


def _frame(pages: Sequence[percent.Cell]) -> Problems:
    """A lesson begins with what it needs and ends with what stays."""
    if not teaching.before(pages):
        yield pages[0].line, f"the first cell needs a paragraph that begins with '{teaching.BEFORE}'."
    headings = [(cell, line) for cell in pages for line in cell.text.splitlines() if re.match(r"##? ", line)]
    last, line = headings[-1] if headings else (pages[-1], "")
    if line.removeprefix("##").strip() != KEEP:
        yield last.line, f"the last section of a lesson is '## {KEEP}'; here it is {line!r}."


def _further(pages: Sequence[percent.Cell]) -> Problems:
    """A collapsed heading hides the cells below it, so every heading from the first further one on begins its cell."""
    below = False
    for cell in pages:
        for number, line in enumerate(cell.text.splitlines(), 1):
            further = line.startswith(percent.FURTHER)
            if line.startswith("## ") and number > 1 and (below or further):
                yield cell.line + number, f"{line!r} begins a cell of its own: what is above it collapses."
            elif line.startswith("## ") and below and not further and line.removeprefix("## ") != KEEP:
                yield cell.line + number, f"{line!r} stands below a further part; the core comes first."
            below = below or further


def _budget(cells: Sequence[percent.Cell], lesson: Lesson) -> Problems:
    """What the core asks of a learner's time, against what a course may ask."""
    core = reading_time.reading(cell for cell in cells if not cell.further)
    work = sum(exercise.minutes for exercise in lesson.exercises if not exercise.further)
    for amount, most, unit in (
        (core.words, MOST_WORDS, "words"),
        (core.lines, MOST_LINES, "lines of code that are not folded"),
        (core.minutes, MOST_READING, "minutes of reading"),
        (work, MOST_WORK, "minutes of exercises"),
    ):
        if amount > most:
            sentence = f"the core has {amount:,} {unit}, and {most:,} are the most: "
            yield 0, sentence + f"shorten it, fold cells, or move a part under '{percent.FURTHER}…'."


def _notes(cell: percent.Cell, lesson: Lesson) -> Problems:
    if percent.quotes(cell.text):
        yield 0, "notes for instructors run no code, so they cannot quote numbers with '{{ }}'."
    sections = teaching.sections(cell.text)
    if tuple(sections) != teaching.HEADINGS:
        headings = ", ".join(f"'## {heading}'" for heading in teaching.HEADINGS)
        yield 0, f"notes for instructors have these headings, in this order: {headings}."
    for heading, body in sections.items():
        if not body:
            yield 0, f"the section '## {heading}' is empty."
    expected, other_lines = teaching.expected_mistakes(cell.text)
    for line in other_lines:
        yield line, "a mistake to expect has the form '- exercise ID: a question to ask?'."
    mistake_ids = {
        exercise.name: {id for mistake in exercise.mistakes for id in mistake.id.split("+")}
        for exercise in lesson.exercises
    }
    for mistake in expected:
        if mistake.exercise not in mistake_ids:
            yield mistake.line, f"{mistake.exercise!r} is not an exercise of this lesson."
        elif mistake.id not in mistake_ids[mistake.exercise]:
            others = ", ".join(sorted(mistake_ids[mistake.exercise]))
            yield mistake.line, f"{mistake.exercise} has no mistake {mistake.id}; it has {others}."
    counts = Counter(mistake.exercise for mistake in expected)
    for name in mistake_ids:
        if not FEWEST_MISTAKES <= counts[name] <= MOST_MISTAKES:
            yield 0, f"{name} has {counts[name]} mistakes to expect; {FEWEST_MISTAKES} to {MOST_MISTAKES} are wanted."
