"""Whose code is alike: whatever its names and comments, and never short answers or what the whole class has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader.course import references
from grader.course.course import open_course
from grader.judging.verdict import Verdict
from grader.reports.class_summary import ClassSummary
from grader.reports.report import LessonReport, Report, SubmissionReport
from grader.reports.similarity import find_matches, normalize, render
from tests.reports.test_reports import Elements

LESSON = "01_mixing"
OWN = """def shares(scores):
    rows = []
    for row in scores:
        top = np.exp(row - np.max(row))
        rows.append(top / np.sum(top))
    return np.array(rows)
"""
RENAMED = """def shares(S):  # mine
    '''Mine.'''
    out = []

    for r in S:
        z = np.exp(r - np.max(r))
        out.append(z   / np.sum(z))
    return np.array(out)
"""
OTHER = OWN.replace("np.max(row)", "np.min(row)")


def room(status: str = "passed", **codes: str) -> ClassSummary:
    def one(name: str, code: str) -> SubmissionReport:
        judged = Verdict("shares", status, "x")  # type: ignore[arg-type]
        return SubmissionReport(name, name, (LessonReport(LESSON, (judged,), {"shares": 2}, code={"shares": code}),))

    return ClassSummary(Report(tuple(one(name, code) for name, code in codes.items()), 7))


def test_names_comments_docstrings_and_spaces_are_no_difference_and_what_is_computed_is():
    assert normalize(OWN) == normalize(RENAMED) != normalize(OTHER) and len(normalize(OWN)) > 30
    assert normalize(OWN.replace("np.exp", "np.log")) != normalize(OWN), (
        "what a module's function is called is no name of one's own"
    )
    assert normalize(OWN.replace("rows.append", "scores.append")) != normalize(OWN)


def test_cells_that_nobody_began_are_alike_by_themselves_and_so_are_not_told():
    assert find_matches(open_course(), room(ada=OWN, bob=RENAMED)) and not find_matches(
        open_course(), room("not_started", ada=OWN, bob=RENAMED)
    )


@pytest.mark.parametrize(
    "code", ["", "def f(:\n", "x = '''", "\0", "(" * 5_000, "    x\n  y\n z", "def f(x):\n    return x @ x"]
)
def test_what_is_no_python_or_short_is_like_nothing(code):
    assert normalize(code) == ()


def test_learners_are_compared_with_each_other_and_with_the_course():
    solution = references.solution_text(open_course(), "shares")
    made = room(ada=OWN, bob=OTHER, cyd=RENAMED, dan=solution.replace("shifted", "moved"), eve="")
    assert find_matches(open_course(), made) == [([-1, 3], ["shares"]), ([0, 2], ["shares"])]
    page = render(open_course(), made)
    assert Elements(page) and "the course's solutions" in page and "proves nothing" in page
    assert 'href="report.html#learner-3">dan</a>' in page and ">bob<" not in page
    assert "No longer answers are alike." in render(open_course(), room(ada=OWN, bob=OTHER))


def test_what_a_third_of_the_class_has_says_nothing():
    same = {f"l{at}": OWN for at in range(4)}
    assert find_matches(open_course(), room(**same)) == []
    assert find_matches(open_course(), room(**dict(list(same.items())[:3]))) == [([0, 1, 2], ["shares"])]
    others = {f"o{at}": OTHER.replace("- np", f"- {at} * np") for at in range(8)}
    assert find_matches(open_course(), room(**same, **others)) == [([0, 1, 2, 3], ["shares"])], (
        "four of twelve is a third"
    )


def test_who_is_most_alike_stands_first():
    def two(name: str, first: str, second: str) -> SubmissionReport:
        judged = tuple(Verdict(each, "passed", "x") for each in ("shares", "mix"))
        code = {"shares": first, "mix": second}
        return SubmissionReport(name, name, (LessonReport(LESSON, judged, dict.fromkeys(code, 2), code=code),))

    made = room(ada=OWN)
    report = replace(made.report, submissions=(two("a", OWN, OTHER), two("b", RENAMED, OTHER), two("c", OWN, RENAMED)))
    assert find_matches(open_course(), ClassSummary(report)) == [
        ([0, 1], ["shares", "mix"]),
        ([0, 1, 2], ["shares"]),
    ], "what all three have, and what two have beyond it"
