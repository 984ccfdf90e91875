"""The contract fixes the parameters' names: an answer that is right but for them is told so."""

from __future__ import annotations

import ast

import pytest

from grader.course import references
from grader.course.course import Course
from grader.judging.judge import judge
from tests.live import from_cells
from tests.mixing_course import COURSE


class Renamed(ast.NodeTransformer):
    """Every parameter but `self` and a kernel's gets another name, and whatever reads it follows."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if "triton.jit" in map(ast.unparse, node.decorator_list):  # its parameters are no contract's
            return node
        outside, own = (
            self.names,
            [one for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs) if one.arg != "self"],
        )
        self.names |= {one.arg for one in own}
        for one in own:
            one.arg = f"my_{one.arg}"
        self.generic_visit(node)
        self.names = outside
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self.names:
            node.id = f"my_{node.id}"
        return node


def renamed(course: Course, exercise: str) -> str:
    return ast.unparse(Renamed().visit(ast.parse(references.solution_text(course, exercise))))


def with_parameters(course: Course) -> list[str]:
    return [name for name in course.exercise_names() if "my_" in renamed(course, name)]


def assert_rejected_and_told(course: Course, name: str) -> None:
    lesson = list(course.exercises[course.lesson_of(name)])
    before = [references.solution_text(course, other) for other in lesson[: lesson.index(name)]]
    verdict = judge(course.exercise(name), from_cells(name, *before, renamed(course, name)))
    assert verdict.status == "error" and "got an unexpected keyword argument" in verdict.headline, (
        verdict.status,
        verdict.headline,
    )
    told = ("by name: call the parameters", "Compare the parameters with the exercise's")
    assert verdict.mistakes or any(words in said for said in verdict.details for words in told), verdict.details


@pytest.mark.parametrize("name", with_parameters(COURSE))
def test_other_names_for_the_parameters_are_rejected_and_told(name):
    assert_rejected_and_told(COURSE, name)
