"""An error that a newer Python or a library would not raise is told from the learner's own, without taking the notebook's word."""

from __future__ import annotations

import sys

import pytest

from grader.source import requirements
from grader.source.requirements import LIBRARIES, NEW_NAMES, missing_requirement

HERE = sys.version_info[:2]
NEWER = {  # code that a newer Python takes, by the minor version that brought it
    12: [
        'f"{d["a"]}"',
        """f"{'\\n'.join(x)}\"""",
        'print(f"{x["a"]:{w["b"]}}" "s" f"{x}")',
        "f'{\nx  # it's one\n}'",
        'f"{{}} {a["b"]!r}"',
        'x = "don\'t" + f"{d["a"]}"  # don\'t',
        '%matplotlib inline\nf"{d["a"]}"',
        'def g(x):\n    return f"{f"{f"{x}"}"}"',
        'rf"{a["b"]}\\d"',
        'f"{a[":"]} {"}"} {a["b"] == b["c"]=}"',
        "type X = int",
        "type X[T] = list[T]",
        "def g[T](x: dict[str, T]) -> T:\n    return x",
        "class A[T: (int, str)]: pass",
        "async def g[*Ts](): pass",
    ],
    14: ["try:\n    pass\nexcept A, B:\n    pass", 't"{x}"'],
}
WRONG = [  # in every Python
    "def g(:",
    'f"{d["a"]"',
    'f"{}" + d["a"',
    'x = f"{a["b"]}" +',
    'f"{x!z} {d["a"]}"',
    'f"{a["b"]}',
    'f"{a["b"]}\n"',
    'f"{} {a["b"]}"',
    'f"} {a["b"]}"',
    "type X[T]",
    "def g[T](x:\n    return x",
    'print "x"',
    "class A[T:",
    'f"{a b} {a["c"]}"',
    "f\"{'" + "f'{" * 50,
]


@pytest.mark.parametrize("minor, text", [(minor, text) for minor, texts in NEWER.items() for text in texts])
def test_newer_syntax_is_recognized(minor, text):
    assert missing_requirement(text, (3, 14)) == ("" if HERE >= (3, minor) else f"python>=3.{minor}")
    assert missing_requirement(text, (3, 11, 2)) == "", "it was an error in the notebook, too"


def test_a_notebook_that_names_no_version_may_have_been_run_with_a_recent_one():
    assert (
        missing_requirement('f"{d["a"]}"', None) == ("" if HERE >= (3, 12) else "python>=3.12")
        and missing_requirement(NEWER[14][0], None) == ""
    )


@pytest.mark.parametrize("text", WRONG)
def test_what_no_python_takes_stays_the_learner_s_whatever_the_notebook_says(text):
    assert missing_requirement(text, (3, 14)) == "" == missing_requirement(text, None)


def test_of_a_python_that_is_not_known_yet_every_syntax_error_may_be_new_syntax():
    assert (
        missing_requirement("def g(:", (3, 99)) == "python>=3.99"
        and missing_requirement("def g(): pass", (3, 99)) == ""
    )


@pytest.mark.parametrize(
    "text, there",
    [
        ("import scipy.special as s", "scipy"),
        ("from sklearn import svm", "scikit-learn"),
        ("def g():\n    import cv2", "opencv-python"),
        ("import numpy, pandas", "pandas"),
        ("import nunpy", ""),
        ("import my_helpers", ""),
        ("from . import scipy", ""),
        ("import sys", ""),
    ],
)
def test_a_well_known_library_that_is_not_installed_is_named(monkeypatch, text, there):
    assert missing_requirement("import numpy") == ""
    monkeypatch.setattr(requirements, "installed", lambda name: False)
    assert missing_requirement(text) == there


@pytest.mark.parametrize("name", NEW_NAMES)
def test_a_name_that_python_s_library_got_later(name):
    module, attribute = name
    needed = "" if HERE >= (3, NEW_NAMES[name]) else f"python>=3.{NEW_NAMES[name]}"
    assert (
        missing_requirement(f"from {module} import {attribute}", (3, 13))
        == missing_requirement(f"import {module}\n{module}.{attribute}", (3, 13))
        == needed
    )
    assert hasattr(__import__(module), attribute) == (not needed)


def test_no_library_of_the_list_is_the_course_s_own():
    assert not {"numpy", "torch", "triton", "grader"} & set(LIBRARIES)


@pytest.mark.parametrize(
    "text", ['f"' + "{x} " * 40_000, 'f"{' * 30_000, "def g[" * 20_000, "except A" + ", a.b" * 40_000, "'" * 150_000]
)
def test_hostile_code_is_read_quickly(text):
    assert missing_requirement(text + "\n(", (3, 14)) == ""
