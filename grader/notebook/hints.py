"""What hint(), explain() and solution() say: hints, mistakes at length, and the course's solution once it is open."""

from __future__ import annotations

import ast
import difflib
import textwrap
from collections.abc import Sequence

from grader.course import references
from grader.course.spec import Exercise
from grader.notebook import verdicts
from grader.notebook.display import Display, code_html, sentence
from grader.notebook.kernel_course import kernel_course
from grader.notebook.record import Record
from grader.notebook.target import Target
from grader.reports import html, text
from grader.reports.html import render
from grader.source.definitions import function_name, parse
from grader.util.errors import InputError
from grader.util.words import join_names, pluralize

HINTS = 3
ATTEMPTS = 3  # different states of the code, after which the solution opens
_LOOPS = (ast.For, ast.While, ast.comprehension)
_SIGNS = {ast.MatMult: "@", ast.Pow: "**", ast.Div: "/", ast.FloorDiv: "//", ast.BitAnd: "&", ast.Invert: "~"}


def hint(target: Target, level: int, record: Record, more: tuple[str, ...] = ()) -> Display:
    """A hint, which the record notes: about the mistake that the last check proved, else the exercise's own. more: what to do next."""
    record.add_hint(target.name, level)
    words = _hint_text(target, level)
    is_code = level == HINTS and "```" not in words  # the third may be bare code, or prose with a fenced block
    title = f"Hint {level} of {HINTS} for {target.name}"
    return sentence(words, title, code=is_code, more=(*more, *record.take_notes()))


def next_level(name: str, record: Record) -> int:
    return min(record.entry(name).hints + 1, HINTS)


def _hint_text(target: Target, level: int) -> str:
    exercise, verdict = kernel_course().exercise(target.name), verdicts.last(target)
    if verdict and verdict.mistakes and level < HINTS:
        id = verdict.mistakes[0].partition("+")[0]
        mistake, lines = kernel_course().mistake_text(id), references.wrong_lines(exercise, id).strip("\n")
        if level == 1:
            return f"The check proved {id}: {mistake.sentence}\n\n{mistake.why}\n\nWhich of your lines does that?"
        if lines:
            return f"{id}: {mistake.sentence}\n\nWritten like this, it gives your result:\n\n```python\n{lines}\n```"
    return exercise.hints[level - 1].strip("\n")


# --- mistakes ---------------------------------------------------------------------------------------------------


def explain(query: str | None, current: str | None = None, call: str = "explain()") -> Display:
    """What explain() answers. Raises: InputError for an id that the course does not have.

    query: an id, two with a plus, an exercise, a lesson's number or name, None for everything. current: the lesson that is unfolded.
    call: what lists everything.
    """
    course = kernel_course()
    if query in course.exercise_names():
        return _list([(query, _ids([course.exercise(query)]))], query)
    lessons = course.lessons()
    if query is not None:
        lessons = tuple(name for name in lessons if str(query) in (name, name[:2], str(int(name[:2]))))[:1]
    if not lessons:
        return _explain_ids([id.strip() for id in str(query).split("+")], call)
    titles = {name: f"{name[:2]} · {course.lesson(name).title}" for name in lessons}
    groups = [(titles[name], _ids(course.lesson(name).exercises)) for name in lessons]
    return _list(groups, titles.get(lessons[0] if query is not None else current or "", ""))


def _ids(exercises: Sequence[Exercise]) -> tuple[str, ...]:
    """The ids of the exercises' mistakes, in the order of the exercises; of a pair both."""
    ids = (id for exercise in exercises for mistake in exercise.mistakes for id in mistake.id.split("+"))
    return tuple(dict.fromkeys(ids))


def _list(groups: Sequence[tuple[str, Sequence[str]]], unfolded: str) -> Display:
    """Mistakes in a line each, under the titles of their groups."""
    mistakes = [(title, [kernel_course().mistake_text(id) for id in ids]) for title, ids in groups]
    lines = ['Known mistakes; explain("SM1") explains one at length.']
    for title, members in mistakes:
        lines += ["", title, *(f"  {mistake.id:<5} {mistake.sentence}" for mistake in members)]
    return Display("\n".join(lines), html.explanations(mistakes, unfolded))


def _explain_ids(ids: Sequence[str], call: str) -> Display:
    spellings = {id.upper(): id for id in kernel_course().shared_texts()}
    if not all(id.upper() in spellings for id in ids):  # only then is every lesson imported
        present = kernel_course().mistake_ids()
        # A hand-out may lack the lesson of a mistake that a former id leads to.
        former = (old for old, now in kernel_course().former_ids.items() if now in present)
        spellings = {id.upper(): id for id in (*former, *present)}
    unknown = next((id for id in ids if id.upper() not in spellings), None)
    if unknown is not None:
        letters = unknown.upper().rstrip("0123456789")  # such as SM
        family = [id for id in spellings if id.rstrip("0123456789") == letters]
        near = ", ".join(difflib.get_close_matches(unknown.upper(), family or spellings, n=3, cutoff=0.3))
        nearest = f" Near it: {near}." if near else ""
        raise InputError(f"No mistake has the id {unknown[:60]!r}.{nearest} {call} lists all of them.")
    mistakes = [references.explain(kernel_course(), spellings[id.upper()]) for id in ids]
    return Display("\n\n".join(map(text.explanation, mistakes)), "".join(map(html.explanation, mistakes)))


# --- the solution -----------------------------------------------------------------------------------------------


def solution(target: Target, record: Record) -> Display:
    """The course's solution, after a pass beside the learner's own; while it is closed, what opens it."""
    name, entry = target.name, record.entry(target.name)
    if not (entry.passed or entry.hints >= HINTS or entry.attempts >= ATTEMPTS):
        so_far = f"{pluralize(entry.hints, 'hint')} and {pluralize(entry.attempts, 'different attempt')}"
        refusal = (
            f"The solution of {name} opens after a pass, after hint {HINTS}, or after {ATTEMPTS} different "
            f"attempts. So far: {so_far}. hint({target.argument}) gives the next hint."
        )
        return sentence(refusal, more=record.take_notes())
    course = references.solution_text(kernel_course(), name)
    verdict = verdicts.last(target)
    own = own_code(target) if verdict and verdict.passed else ""
    if own:
        return _comparison(name, own, course, record.take_notes())
    return sentence(course, f"The course's solution of {name}", code=True, more=record.take_notes())


def own_code(target: Target) -> str:
    """The statements that made the learner's object, imports aside; '' where no text of them is known."""
    statements = target.sources.cells if target.sources is not None and callable(target.obj) else ()
    own = (statement.strip("\n") for statement in statements)
    return "\n\n".join(statement for statement in own if not statement.startswith(("import ", "from ")))


def _comparison(name: str, own: str, course: str, notes: Sequence[str]) -> Display:
    title, difference, course = f"Two ways to write {name}", _difference(own, course), _without_docstrings(course)
    codes = (("Yours", own), ("The course's", course))
    plain = [f"{label}\n\n{textwrap.indent(text.clean(code), '    ')}" for label, code in codes]
    columns = [(label, code_html(code)) for label, code in codes]
    body = render("beside.html", title=title, noticed=difference, columns=columns, notes=notes)
    return Display("\n\n".join([title, difference, *plain, *notes]), html.STYLE + body)


def _difference(own: str, course: str) -> str:
    """One sentence on what tells the two apart."""
    trees = [parse(code) or ast.Module([], []) for code in (own, course)]
    loops, others = (sum(isinstance(node, _LOOPS) for node in ast.walk(tree)) for tree in trees)
    if loops and not others:
        return f"Notice: yours has {pluralize(loops, 'loop')}; the course's has none and works on whole arrays instead."
    if others and not loops:
        return f"Notice: the course's has {pluralize(others, 'loop')}; yours has none."
    own_uses, course_uses = map(_operations, trees)
    only = [
        f"only {owner} uses {join_names([f'`{operation}`' for operation in sorted(operations)], 3)}"
        for owner, operations in (("the course's", course_uses - own_uses), ("yours", own_uses - course_uses))
        if operations
    ]
    return f"Notice: {'; '.join(only) or 'both use the same operations'}."


def _operations(tree: ast.AST) -> set[str]:
    """The functions and methods that are called, and the operators that matter."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            names.add(function_name(node))
        elif isinstance(node, (ast.BinOp, ast.UnaryOp)):
            names.add(_SIGNS.get(type(node.op), ""))
    return names - {"", "range", "len", "super", "__init__"}


def _without_docstrings(code: str) -> str:
    """The lines of code without what the task has said already."""
    definitions = (ast.FunctionDef, ast.ClassDef)
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, definitions) and len(node.body) > 1]
    docstrings = [node.body[0] for node in nodes if ast.get_docstring(node)]
    left_out = {number for node in docstrings for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return "\n".join(line for number, line in enumerate(code.splitlines(), 1) if number not in left_out)
