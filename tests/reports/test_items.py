"""Item analysis: counts and a correlation that can be checked by hand, silent where a class is too small to say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader.course.course import open_course
from grader.reports import class_page, items
from grader.reports.class_summary import ClassSummary
from grader.reports.report import Report, SubmissionReport
from tests.reports.samples import CLASS, NOT_STARTED, OURS, PASSED, PROVEN, lesson
from tests.reports.test_reports import Elements


def learner(name: str, *passed: bool) -> SubmissionReport:
    judged = [replace(PASSED if each else PROVEN, exercise=f"e{n}") for n, each in enumerate(passed)]
    return SubmissionReport(name, name, (lesson("01_x", *judged),))


def room(*learners: SubmissionReport) -> ClassSummary:
    return ClassSummary(Report(learners, 7))


# e0 goes with the rest, e1 against it, e2 with nothing, e3 everybody solves
GOOD, BAD = (True, False, True, True), (False, True, False, True)
LARGE = [learner(f"g{n}", *GOOD[:2], n % 2 == 0, True) for n in range(10)] + [
    learner(f"b{n}", *BAD[:2], n % 2 == 0, True) for n in range(10)
]


def value(of: ClassSummary, exercise: str) -> float | None:
    return next(one.discrimination for one in items.items(of) if one.column.exercise == exercise)


def test_the_correlation_is_that_of_passing_with_the_points_of_all_the_others():
    # The rest of e2 is always one of e0 and e1, and e3: no spread. Of e0 it is e1 + e2 + e3: with e1 against it.
    of = room(*LARGE)
    assert value(of, "e2") is None and value(of, "e3") is None
    x = [1.0] * 10 + [0.0] * 10
    rest = [0 + (n % 2 == 0) + 1 for n in range(10)] + [1 + (n % 2 == 0) + 1 for n in range(10)]
    mean_x, mean_r = sum(x) / 20, sum(rest) / 20
    by_hand = (
        sum((a - mean_x) * (b - mean_r) for a, b in zip(x, rest))
        / (sum((a - mean_x) ** 2 for a in x) * sum((b - mean_r) ** 2 for b in rest)) ** 0.5
    )
    assert value(of, "e0") == pytest.approx(by_hand) and by_hand < 0


def test_one_who_could_not_be_graded_is_counted_nowhere():
    ours = SubmissionReport("o", "o", (lesson("01_x", *(replace(OURS, exercise=f"e{n}") for n in range(4))),))
    assert value(room(*LARGE, ours), "e0") == value(room(*LARGE), "e0")
    found = next(one for one in items.items(room(*LARGE, ours)) if one.column.exercise == "e0")
    assert (found.passed, found.attempted, found.graded) == (
        10,
        20,
        20,
    ) and "1 could not be graded" in found.other_statuses


@pytest.mark.parametrize("message", ["", "ada.ipynb is not JSON."])  # nothing handed in; handed in, and unreadable
def test_who_did_not_hand_a_lesson_in_says_nothing_of_its_exercises(message):
    absent = tuple(replace(PASSED, exercise=f"e{n}", status="missing") for n in range(4))
    nobody = SubmissionReport("n", "n", (lesson("01_x", *absent),), message)
    assert items.items(room(*LARGE, nobody)) == items.items(room(*LARGE))
    assert items.remark(room(*LARGE, nobody)) == items.remark(room(*LARGE))
    other = lesson("02_y", *absent)  # nor does it count against them in the lessons that they did hand in
    with_other = [replace(one, lessons=(*one.lessons, other)) if n % 3 else one for n, one in enumerate(LARGE)]
    assert [one for one in items.items(room(*with_other)) if one.column.lesson == "01_x"] == items.items(room(*LARGE))
    one_missing = SubmissionReport(
        "m", "m", (lesson("01_x", absent[0], *(replace(PROVEN, exercise=f"e{n}") for n in (1, 2, 3))),)
    )
    found = next(one for one in items.items(room(one_missing)) if one.column.exercise == "e0")
    assert (found.graded, found.attempted) == (1, 0)  # a cell that was deleted from a notebook that came counts


def test_a_stub_is_no_attempt():
    idle = SubmissionReport(
        "i", "i", (lesson("01_x", replace(NOT_STARTED, exercise="e0"), replace(PROVEN, exercise="e1")),)
    )
    found = {one.column.exercise: (one.passed, one.attempted, one.graded) for one in items.items(room(idle))}
    assert found == {"e0": (0, 0, 1), "e1": (0, 1, 1)}


@pytest.mark.parametrize("count, shown", [(19, False), (20, True)])
def test_a_small_class_is_told_that_it_is_one(count, shown):
    said = class_page.exercises(room(*LARGE[20 - count :]))
    assert (">discrimination<" in said) is shown
    assert ("is not shown for 19 with a score" in said) is not shown and ("about ±0.5" in said) is shown


def test_where_everybody_did_alike_there_is_no_number_and_a_minus_is_one():
    said = Elements(class_page.exercises(room(*LARGE))).said.replace("\n", "")
    assert "e301_x20 of 2020–" in said and "e001_x10 of 2020−0." in said


def test_weights_count_in_the_rest_and_the_order_is_hardest_first():
    heavy = [
        replace(one, lessons=(replace(one.lessons[0], points={"e0": 1, "e1": 0, "e2": 5, "e3": 0}),)) for one in LARGE
    ]
    assert value(room(*heavy), "e0") == pytest.approx(0, abs=1e-9)  # e2 alone is left, and it is independent of e0
    assert [one.column.exercise for one in items.items(ClassSummary(CLASS))][-1] != "shares"


def test_the_page_has_it():
    assert "attempted" in Elements(
        class_page.render(open_course(), CLASS)
    ).said and "is not shown for 3 with a score" in class_page.render(open_course(), CLASS)
