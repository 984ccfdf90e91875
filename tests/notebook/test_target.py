"""What tells one attempt from another: a digest of the text that made an object, or of an answer's value."""

from __future__ import annotations

import dis
from unittest.mock import patch

import numpy as np
import pytest

from grader.notebook.reach import names_in
from grader.notebook.target import Target
from tests.live import shell_that_ran

BASE = ("def shares(x):\n    return g(x) * C", "def g(x):\n    return np.exp(x)", "C = 2", "unused = 1")
CHANGES = [
    ("* C", "* 3"),
    ("C = 2", "C = 2.0"),
    ("C = 2", ""),
    ("C = 2", "C = np.arange(3)"),
    ("np.exp(x)", "np.exp(x) + 1"),
    ("np.exp", "np.log"),
    ("def g(x):\n    return np.exp(x)", "g = np.exp"),
    ("def shares(x)", "def shares(x, y=1)"),
    ("g(x) * C", "sum(g(x) * C for _ in range(2))"),
]


def digest(*cells: str) -> str:
    names = {"__name__": "__main__", "np": np, "In": []}
    for cell in cells:
        exec(cell, names)
    with patch("grader.notebook.live_object.ipython", lambda: shell_that_ran(*cells)):
        return Target("shares", names["shares"], names).digest


def test_the_same_code_anywhere_is_the_same():
    assert (
        digest(*BASE) == digest("# moved\n\n" + BASE[0], "print()", *BASE[1:]) == digest(*BASE[:3], "unused = 2") != ""
    )
    assert digest(*BASE) == digest(BASE[0].replace("C", "3"), *BASE)  # an earlier try


@pytest.mark.parametrize("old, new", CHANGES)
def test_every_change_of_the_text_shows(old, new):
    changed = [cell.replace(old, new) for cell in BASE]
    assert "" != digest(*changed) != digest(*BASE) != ""


def test_answers_count_by_their_value():
    def value(answer) -> str:
        return Target("first_output", answer).digest

    assert value([5.0, 5.0]) == value([5.0, 5.0]) != value([5.0, 5])
    assert value(np.array([5.0, 5.0])) != value(np.array([5.0, 5.0 + 1e-12]))
    assert value(np.zeros(2)) != value(np.zeros(2, np.float32)) != value([0.0, 0.0])


class Odd:
    def __getattribute__(self, name):
        raise RuntimeError(name)

    def __repr__(self):
        raise RuntimeError


def test_what_has_no_text_has_none():
    assert Target("first_output", Odd()).digest == ""
    assert Target("first_output").digest == Target("shares").digest == ""
    assert Target("shares", len).digest == Target("shares", np.random.default_rng(0)).digest == ""


def test_global_names_of_code_are_those_that_python_s_own_reader_tells():
    many = "def f():\n" + "".join(f"    if a{i}: b{i}(c.d{i}, e{i}=lambda: g{i})\n" for i in range(500))
    code = compile(many, "<cell>", "exec")
    inner, told = [code], []
    for each in inner:
        inner += [constant for constant in each.co_consts if isinstance(constant, type(code))]
        told += [step.argval for step in dis.get_instructions(each) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    assert set(names_in(code)) == set(told) and len(told) >= 1500
