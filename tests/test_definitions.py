"""Which names code defines and reads."""

from __future__ import annotations

import ast
import dis
import time
from pathlib import Path
from types import CodeType

import pytest

import grader
from grader.definitions import globals_named, globals_read

SOURCES = [path for path in sorted(Path(grader.__file__).parent.rglob("*.py")) if "_course" not in path.parts]
MANY = "def f():\n" + "".join(f"    if a{i}: b{i}(c.d{i}, e{i}=lambda: g{i})\n" for i in range(500))
IN_CLASS = "@k\nclass A(B):\n    x: C = D\n    def f(self, y=E): return [F for G in y if self.H], __class__"


def _codes(code: CodeType):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


@pytest.mark.parametrize("text", [MANY, IN_CLASS, *(path.read_text("utf-8") for path in SOURCES)], ids=["many", "class", *(p.name for p in SOURCES)])
def test_global_names_are_those_that_python_s_own_reader_tells(text):
    code = compile(text, "<cell>", "exec")
    told = (step.argval for each in _codes(code) for step in dis.get_instructions(each) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    assert list(dict.fromkeys(globals_named(code))) == list(dict.fromkeys(told))


def test_many_branches_take_a_time_in_proportion():
    statement = ast.parse("def f():\n" + "    if a: b\n" * 16_000).body[0]
    started = time.process_time()
    assert globals_read(statement) == ("a", "b")
    assert time.process_time() - started < 1
