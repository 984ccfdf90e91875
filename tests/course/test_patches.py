"""Mistakes as patches: where they fit, what they make, and which of them go together."""

from __future__ import annotations

import numpy as np
import pytest

from grader.course import references
from grader.course.course import open_course
from grader.course.patches import PatchError, apply_edits, edits, hunk_lines, join_edits, normal_form, patch
from grader.course.spec import Mistake

SOURCE = '''
def f(x, y):
    """x + y, in words that hold x + y."""
    total = (x
             + y)  # a comment
    return total * 2
'''
TEXTS = {"f": normal_form(SOURCE)}


def made(one):
    return apply_edits(edits(one, TEXTS, "f"), TEXTS)["f"]


def test_the_normal_form_knows_no_docstring_comment_or_line_break():
    assert TEXTS["f"] == "def f(x, y):\n    total = x + y\n    return total * 2\n"
    assert normal_form(SOURCE.replace("(x\n             + y)", "x + y")) == TEXTS["f"]


def test_a_patch_replaces_each_old_text_by_the_new_one():
    assert made(patch("x + y", "x - y")) == "def f(x, y):\n    total = x - y\n    return total * 2\n"
    assert made(patch("x + y", "x - y", "* 2", "* 3")) == made(patch("x + y", "x - y") + patch("* 2", "* 3"))
    assert apply_edits(edits(patch(), TEXTS, "f"), TEXTS) == {}


@pytest.mark.parametrize(
    "one, words",
    [
        (patch("x * y", "x"), "occurs 0 times"),
        (patch("total", "sum"), "occurs 2 times"),
        (patch("x + y", "x + y"), "replaced by itself"),
        (patch("x + y", "x", "+ y", "- y"), "overlap or touch"),
        (patch("x + y", "x", of="g"), "no exercise 'g'"),
    ],
)
def test_a_patch_that_does_not_fit_says_why(one, words):
    with pytest.raises(PatchError, match=words):
        edits(one, TEXTS, "f")


def test_pairs_come_in_pairs():
    with pytest.raises(PatchError, match="has none"):
        patch("x", "y", "z")


def places(*texts):
    return edits(patch(*texts), TEXTS, "f")


def test_what_both_sides_share_belongs_to_no_patch():
    (edit,) = places("total = x + y", "total = x - y")
    assert (TEXTS["f"][edit.start : edit.end], edit.new) == ("+", "-")
    assert join_edits(places("total = x + y", "total = x - y"), places("total = x", "total = 3 * x")) is not None


def test_patches_that_overlap_or_touch_do_not_combine():
    sum_edits, factor_edits = places("x + y", "x - y"), places("* 2", "* 3")
    assert join_edits(sum_edits, factor_edits) == (*sum_edits, *factor_edits)
    assert join_edits(places("x + y", "y"), places("+ y", "- y")) is None
    assert join_edits(places("total * 2", "total * y"), places("* 2", "* 2 * 2")) is None


def test_a_hunk_is_shown_in_its_lines():
    assert hunk_lines(places("x + y", "x - y"), TEXTS) == ("total = x + y", "total = x - y")
    right, wrong = hunk_lines(places("x + y", "x - y", "* 2", "* 3"), TEXTS)
    assert (right, wrong) == ("total = x + y\nreturn total * 2", "total = x - y\nreturn total * 3")
    assert hunk_lines(places("total * 2", "total * 2 * 2"), TEXTS) == ("return total * 2", "return total * 2 * 2")
    assert hunk_lines(places("return total * 2", "if y:\n        return x\n    return total * 2"), TEXTS)[1].startswith(
        "if y:"
    )


def test_a_patch_of_what_the_solution_calls_reaches_the_solution():
    """mix is patched by way of shares, and what lies between them is made anew."""
    one = patch("max(axis=1", "max(axis=0", "sum(axis=1", "sum(axis=0", of="shares")
    wrong = references.wrong(open_course().exercise("mix"), Mistake("MX7", one))
    q, k = np.eye(2), np.array([[2.0, 0.0], [1.0, 3.0]])
    assert wrong(q, k, q)[1].sum(axis=0) == pytest.approx([1, 1])
    right = references.reference(open_course().exercise("mix"))(q, k, q)[1]
    assert right.sum(axis=1) == pytest.approx([1, 1]) != right.sum(axis=0)
