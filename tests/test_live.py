"""Which text of a notebook counts as the source of an object."""

from __future__ import annotations

import linecache
import sys
from itertools import count

import pytest

from grader.allowed import offence
from grader.live import Live, sources

_numbers = count(1)


@pytest.fixture
def shell():
    """A real IPython shell without a terminal, gone after the test."""
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    made = interactive.InteractiveShell.instance()
    made.history_manager.enabled = False
    yield made
    interactive.InteractiveShell.clear_instance()
    for prompt in ("ps1", "ps2", "ps3"):  # the shell sets them, and they say that somebody is at a prompt
        vars(sys).pop(prompt, None)


def run(shell, *cells: str):
    for cell in cells:
        done = shell.run_cell(cell, store_history=True)
        assert done.success, done.error_in_exec
    return shell.user_ns


FORBIDDEN = "def attend(q):\n    return F.scaled_dot_product_attention(q, q, q)"
ALLOWED = "def attend(q):\n    return helper(q)"
HELPER = "def helper(q):\n    return q"


def text_of(shell, *cells: str) -> str:
    names = run(shell, *cells)
    return "\n".join(sources("attend", names["attend"], names).cells)


def test_helpers_in_other_cells_belong_to_it(shell):
    assert text_of(shell, "import math as m", HELPER, "unused = 1", ALLOWED) == f"{HELPER}\n{ALLOWED}"


def test_only_the_last_definition_counts(shell):
    said = text_of(
        shell, FORBIDDEN, "class F: scaled_dot_product_attention = 1", HELPER, ALLOWED, "def helper(q):\n    return -q"
    )
    assert "F." not in said and "return -q" in said and "return q\n" not in said


def test_a_local_variable_leads_to_no_other_cell(shell):
    comparison = "out = [torch_like for torch_like in 'scaled_dot_product_attention'.split()]"
    said = text_of(shell, comparison, "def attend(q):\n    out = q\n    return out")
    assert "torch_like" not in said


def test_what_is_patched_in_later_belongs_to_it(shell):
    said = text_of(shell, "class attend:\n    pass", "def forward(self, q):\n    return q", "attend.forward = forward")
    assert said.splitlines()[-1] == "attend.forward = forward" and "def forward" in said


def test_decorators_and_aliases_belong_to_it(shell):
    said = text_of(
        shell,
        "import functools as ft",
        "def wrap(f):\n    return f",
        "@wrap\n@ft.wraps(len)\ndef inner(q):\n    return q",
        "attend = inner",
    )
    assert said.startswith("import functools as ft\ndef wrap(f):") and "@wrap\n@ft.wraps(len)\ndef inner" in said


def test_a_timed_cell_is_read(shell):
    assert text_of(shell, "%%time\n" + FORBIDDEN.replace("F.", "m.") + "\n").startswith("def attend")


def test_an_object_under_another_name_is_followed(shell):
    names = run(shell, FORBIDDEN.replace("attend", "mine"))
    found = sources("attend", names["mine"], names)
    assert offence("attend", ("attention",), (), found) is not None


def test_outside_ipython_the_file_counts():
    filename = f"<live test {next(_numbers)}>"
    text = f"{HELPER}\n\nother = 1\n\n{ALLOWED}\n"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    names: dict = {}
    exec(compile(text, filename, "exec"), names)
    assert sources("attend", names["attend"], names).cells == (HELPER, ALLOWED)
    assert sources("attend", len, {}) is None


def test_a_live_object_is_a_candidate():
    live = Live("attend", None)
    assert (live.problem, live.sources) == (None, None) and list(live.observe_all(())) == []


def test_in_a_shell_results_display_themselves_and_nothing_is_printed(shell, capsys):
    names = run(shell, "from grader import check", "shown = check('nonsense')")
    assert capsys.readouterr().out == ""
    assert "text/html" in names["shown"]._repr_mimebundle_()
