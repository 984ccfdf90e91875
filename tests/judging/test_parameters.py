"""The contract fixes the parameters' names: an answer that is right but for them is told so, whichever exercise it is."""

from __future__ import annotations

import ast

import pytest

from grader.course import references
from grader.course.course import open_course
from grader.judging.judge import judge
from tests.live import from_cells


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


def renamed(exercise: str) -> str:
    return ast.unparse(Renamed().visit(ast.parse(references.solution_text(open_course(), exercise))))


@pytest.mark.parametrize("name", [name for name in open_course().exercise_names() if "my_" in renamed(name)])
def test_other_names_for_the_parameters_are_rejected_and_told(name):
    lesson = list(open_course().exercises[open_course().lesson_of(name)])
    before = [references.solution_text(open_course(), other) for other in lesson[: lesson.index(name)]]
    verdict = judge(open_course().exercise(name), from_cells(name, *before, renamed(name)))
    assert verdict.status == "error" and "got an unexpected keyword argument" in verdict.headline, (
        verdict.status,
        verdict.headline,
    )
    told = ("by name: call the parameters", "Compare the parameters with the exercise's")
    assert verdict.mistakes or any(words in said for said in verdict.details for words in told), verdict.details
