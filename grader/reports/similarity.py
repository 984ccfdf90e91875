"""similarity.html: whose code is the same but for names, comments, docstrings and spaces, among learners and with the course's solutions.

A list to look at, no accusation: short answers have hardly another way to be written, learners may work together, and the solutions are
public. So only longer answers count, and not those that a third of the class has. Nothing of a stranger's is run or parsed for it: the
tokens of equal syntax trees are equal once their names are numbered in the order in which they come.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from functools import cache
from itertools import combinations

from grader.course import references
from grader.course.course import Course
from grader.reports.class_summary import ClassSummary
from grader.reports.html import render as rendered
from grader.reports.report import SubmissionReport

SHORTEST = 30  # tokens
FEW = 3  # learners whose common code says something in a class of any size; exercises that are no chance
SHARE = 0.75  # of the longer answers
MOST = 300  # rows
REMARK = (  # the same for everybody, so that a list of learners has it once
    f"{100 * SHARE:.0f} % or more of the longer answers are those of the course's solved notebooks, but for names, comments and spaces. "
    "The solutions are public, so this proves nothing: talk about the code."
)
_NOTHING = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING, tokenize.ENDMARKER)


@cache
def normalize(code: str) -> tuple[str, ...]:
    """The tokens with numbered names; () where they are no Python, or too few."""
    numbers: dict[str, str] = {}
    tokens, last = [], ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            begins = last in ("", "\n", "INDENT")
            last = {tokenize.NEWLINE: "\n", tokenize.INDENT: "INDENT"}.get(token.type, token.string)
            if token.type in _NOTHING or token.type == tokenize.STRING and begins:  # a docstring
                continue
            if token.type in (tokenize.INDENT, tokenize.DEDENT):
                tokens.append(tokenize.tok_name[token.type])
            elif token.type == tokenize.NAME and not keyword.iskeyword(token.string) and tokens[-1:] != ["."]:
                tokens.append(numbers.setdefault(token.string, f"name {len(numbers)}"))
            else:
                tokens.append(token.string)
    except (tokenize.TokenError, SyntaxError):
        return ()
    return tuple(tokens) if len(tokens) >= SHORTEST else ()


def find_matches(course: Course, summary: ClassSummary) -> list[tuple[list[int], list[str]]]:
    """(learners, exercises in which all of them are alike), most exercises first; learner -1 is the course."""
    shared: dict[tuple[int, int], list[tuple[str, tuple[str, ...]]]] = {}
    attempts = [_attempts(submission) for submission in summary.report.submissions]
    for column in summary.columns:
        groups: dict[tuple[str, ...], list[int]] = {}
        answers = enumerate(code.get(column.exercise, "") for code in attempts)
        for learner, code in ((-1, _solution(course, column.exercise)), *answers):
            if tokens := normalize(code):
                groups.setdefault(tokens, []).append(learner)
        most = max(FEW, len(summary.labels) // 3)
        for tokens, group in groups.items():
            if sum(learner >= 0 for learner in group) <= most:
                for pair in combinations(group, 2):
                    shared.setdefault(pair, []).append((column.exercise, tokens))
    learners: dict[tuple[tuple[str, tuple[str, ...]], ...], set[int]] = {}
    for pair, matches in shared.items():
        learners.setdefault(tuple(matches), set()).update(pair)
    rows = [(sorted(group), [exercise for exercise, _ in matches]) for matches, group in learners.items()]
    return sorted(rows, key=lambda row: (-len(row[1]), row[0]))


def _attempts(submission: SubmissionReport) -> dict[str, str]:
    """A learner's cells by exercise, but for those that are as the lesson has them: they are alike by themselves."""
    begun = {verdict.exercise for verdict in submission.verdicts if verdict.status not in ("not_started", "missing")}
    return {name: code for lesson in submission.lessons for name, code in lesson.code.items() if name in begun}


@cache
def _solution(course: Course, exercise: str) -> str:
    return references.solution_text(course, exercise) if exercise in course.exercise_names() else ""


def solution_remark(course: Course, submission: SubmissionReport) -> str:
    """A sentence where most of a learner's longer answers are those of the course's solved notebooks; '' where chance may bring as much."""
    code = _attempts(submission)
    longer = [name for name in code if normalize(_solution(course, name))]
    count = sum(normalize(code[name]) == normalize(_solution(course, name)) for name in longer)
    return REMARK if count >= max(FEW, SHARE * len(longer)) else ""


def render(course: Course, summary: ClassSummary) -> str:
    rows = find_matches(course, summary)
    context = {"title": "Code that is alike", "rows": rows[:MOST], "more": len(rows[MOST:])}
    return rendered("similarity.html", summary=summary, **context) + "\n"
