"""Equal code has an equal fingerprint; whatever changes a result changes it, or there is none."""

from __future__ import annotations

import dis
import textwrap
from typing import Any

import numpy as np
import pytest

from grader.notebook.fingerprint import fingerprint, globals_named


def run(source: str, **names: Any) -> dict[str, Any]:
    namespace = {"__name__": "__main__", "np": np, **names}
    exec(textwrap.dedent(source), namespace)
    return namespace


BASE = "def f(x):\n    return g(x) * C\ndef g(x):\n    return np.exp(x)\nC = 2\n"
CHANGES = {
    "a constant": BASE.replace("* C", "* 3"),
    "a name's value": BASE.replace("C = 2", "C = 2.0"),
    "a function that it calls": BASE.replace("np.exp(x)", "np.exp(x) + 1"),
    "a library function": BASE.replace("np.exp", "np.log"),
    "a default": BASE.replace("def f(x)", "def f(x, y=1)"),
    "a name that is missing": BASE.replace("C = 2", ""),
    "a library function under a name": BASE.replace("def g(x):\n    return np.exp(x)", "g = np.exp"),
    "an array": BASE.replace("C = 2", "C = np.arange(3)"),
    "a comprehension": BASE.replace("g(x) * C", "sum(g(x) * C for _ in range(2))"),
}


def test_the_same_code_anywhere_is_the_same():
    assert fingerprint(run(BASE)["f"]) == fingerprint(run("\n\n# moved\n" + BASE)["f"]) is not None


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_a_result_shows(change):
    assert fingerprint(run(CHANGES[change])["f"]) != fingerprint(run(BASE)["f"])
    assert fingerprint(run(CHANGES[change])["f"]) is not None


def test_arrays_count_by_their_bytes():
    namespace = run("def f(x):\n    return x + TABLE\nTABLE = np.zeros(3)")
    before = fingerprint(namespace["f"])
    namespace["TABLE"][1] = 1
    assert fingerprint(namespace["f"]) != before


def test_closures_and_defaults_count():
    source = "def make(n, *rest):\n    def f(x, y=rest):\n        return x + n\n    return f\n"
    make = run(source)["make"]
    assert fingerprint(make(1)) == fingerprint(make(1)) != fingerprint(make(2))
    assert fingerprint(make(1)) != fingerprint(make(1, 5))


CLASS = """
class Layer:
    scale = 2
    def __init__(self, d):
        super().__init__()
        self.d = d
    @property
    def size(self):
        return self.d
    @staticmethod
    def helper(x):
        return x
    def forward(self, x):
        return self.helper(x) * self.scale
"""


CLASS_CHANGES = [
    ("scale = 2", "scale = 3"),
    ("return self.d", "return -self.d"),
    ("return x\n", "return -x\n"),
    ("@staticmethod", "@classmethod"),
    ("class Layer", "class Layer(dict)"),
]


@pytest.mark.parametrize("old_new", CLASS_CHANGES)
def test_every_part_of_a_class_counts(old_new):
    changed = CLASS.replace(*old_new)
    assert changed != CLASS
    assert fingerprint(run(CLASS)["Layer"]) == fingerprint(run(CLASS)["Layer"]) is not None
    assert fingerprint(run(changed)["Layer"]) != fingerprint(run(CLASS)["Layer"])


def test_functions_that_call_each_other_end():
    namespace = run("def f(n):\n    return g(n)\ndef g(n):\n    return f(n - 1) if n else 0")
    assert fingerprint(namespace["f"]) is not None


class Odd:
    def __getattribute__(self, name):
        raise RuntimeError(name)


STATEFUL = {
    "generator": np.random.default_rng(0),
    "object": object(),
    "raises": Odd(),
    "iterator": iter([1]),
    "objects in an array": np.array([object()]),
    "bound to an instance": Odd.__init__.__get__(object()),
}


@pytest.mark.parametrize("kind", STATEFUL)
def test_what_may_have_a_state_has_no_fingerprint(kind):
    assert fingerprint(run("def f(x):\n    return STATE", STATE=STATEFUL[kind])["f"]) is None


def test_a_module_of_the_learners_own_may_be_reloaded(tmp_path, monkeypatch):
    (tmp_path / "mine_for_test.py").write_text("def g(x):\n    return x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import mine_for_test

    assert fingerprint(run("def f(x):\n    return mine.g(x)", mine=mine_for_test)["f"]) is None
    assert fingerprint(run("def f(x):\n    return g(x)", g=mine_for_test.g)["f"]) is not None
    mine_for_test.__dict__.clear()


def test_answers_have_one_too():
    assert fingerprint([5.0, 5.0]) == fingerprint([5.0, 5.0]) != fingerprint([5.0, 5])
    assert fingerprint(np.array([5.0, 5.0])) != fingerprint(np.array([5.0, 4.0]))
    assert fingerprint({"b", "a"}) == fingerprint({"a", "b"})


def test_global_names_of_code_are_those_that_python_s_own_reader_tells():
    many = "def f():\n" + "".join(f"    if a{i}: b{i}(c.d{i}, e{i}=lambda: g{i})\n" for i in range(500))
    code = compile(many, "<cell>", "exec")
    inner, told = [code], []
    for each in inner:
        inner += [constant for constant in each.co_consts if isinstance(constant, type(code))]
        told += [step.argval for step in dis.get_instructions(each) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    assert set(globals_named(code)) == set(told) and len(told) >= 1500
