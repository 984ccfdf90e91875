"""An exercise declared as a class, and what becomes of it."""

from __future__ import annotations

from grader.course.declare import Case, exercise, holds, mistake, patch
from grader.course.spec import Exercise


@exercise(points=3, minutes=4, result_type="number")
class double:
    """Twice the number,
    and nothing else."""

    def cases(rng):
        yield Case("small", "a case")

    @holds("it is even", cases=("one", "two"))
    def even(case, parts):
        return None

    mistakes = {
        "AA1": patch("2", "3"),
        "AA2": (patch("2", "4"), patch("2", "5")),
        "AA3": mistake(
            lambda x: x,
            patch("2", "6"),
            says="It is not doubled.",
            why="""A first paragraph that
            goes on.

            A second one.""",
            issue="a/b#1",
        ),
    }
    hints = ("What?", "There.", "____")


def test_the_class_becomes_the_specification():
    assert isinstance(double, Exercise)
    assert (double.name, double.task) == ("double", "Twice the number, and nothing else.")
    assert (double.points, double.minutes, double.result_type, double.hints[2]) == (3, 4, "number", "____")
    assert [case.title for case in double.cases(None)] == ["a case"]
    assert [(held.title, held.cases) for held in double.properties] == [("it is even", ("one", "two"))]


def test_the_first_way_of_each_mistake_comes_before_the_others():
    assert [one.id for one in double.mistakes] == ["AA1", "AA2", "AA3", "AA2", "AA3"]
    assert double.mistakes[3].wrong == patch("2", "5")


def test_a_text_keeps_its_paragraphs_and_loses_its_line_breaks():
    (text,) = double.texts
    assert (text.id, text.sentence, text.issue) == ("AA3", "It is not doubled.", "a/b#1")
    assert text.why == "A first paragraph that goes on.\n\nA second one."
