"""Exercises with many right answers: what a verdict on `query_for` shows, and what it does not."""

from __future__ import annotations

import pytest

from grader.course.course import open_course
from grader.judging.judge import judge
from grader.reports import text
from tests.live import from_cells


def verdict_on(body: str):
    cell = f"def query_for(keys, target, share):\n    return {body}\n"
    return judge(open_course().exercise("query_for"), from_cells("query_for", cell))


def test_the_verdict_shows_the_weights_that_the_answer_gives_and_the_share_asked_for():
    verdict = verdict_on("keys[target] * 1.0")
    assert verdict.headline.startswith("Your query gives key 1 the weight 0.5035; at least 0.9 was asked for.")
    assert "[0.2483, 0.5035, 0.2483]" in verdict.headline


def test_the_course_s_own_answer_is_one_of_many_and_is_not_shown():
    roles = {table.role for table in verdict_on("keys[target] * 1.0").tables}
    assert roles == {"input", "actual"}


@pytest.mark.parametrize(
    "body, said",
    [
        (
            "keys[target][None]",
            "An array of shape (1, 2) came back; a query, a NumPy array of shape (2,), was asked for.",
        ),
        ("keys[target] * np.nan", "is not finite"),
        ("list(keys[target])", "What came back is no array of numbers"),
        ("keys[target] > 0", "What came back is no array of numbers"),
    ],
)
def test_what_is_no_query_is_told_by_what_came_back(body, said):
    verdict = verdict_on(body)
    assert said in verdict.headline
    assert "(3,)" not in text.render_verdict(verdict)  # the shape of the weights, which nobody asked the learner for


@pytest.mark.parametrize("body", ["keys[target] * 1e30", "(keys[target] * 1e12).astype(np.float32)"])
def test_a_very_long_query_is_right(body):
    assert verdict_on(body).passed
