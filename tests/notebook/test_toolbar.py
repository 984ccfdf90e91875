"""The buttons below a verdict: which are there, what each press shows, and to whom they are offered. tests/attention/test_lab.py presses them in a browser."""

from __future__ import annotations

import re
from html import unescape

import pytest

from grader.authoring.notebook_run import WIDGET, NotebookRun
from grader.course import references
from grader.notebook import api, toolbar
from grader.notebook.record import Record
from tests.mixing_course import COURSE
from tests.notebook.test_shell import RIGHT, WRONG, cells  # noqa: F401

pytest.importorskip("ipywidgets")
BROKEN = "def shares(scores):\n    return np.no_such_thing(scores)"
STUB = 'def shares(scores):\n    raise NotImplementedError("shares is not written yet")'


@pytest.fixture
def notebook(cells, monkeypatch, tmp_path):  # noqa: F811
    monkeypatch.setattr(toolbar, "can_show_buttons", lambda: True)
    monkeypatch.setattr(toolbar, "_bars", {})
    record = Record(tmp_path / "progress.json")
    monkeypatch.setattr(api, "_record", lambda: record)
    return cells


def bar_of(notebook, code: str) -> toolbar.DisplayWithButtons:
    notebook.run(code, "s")
    shown = notebook.shell.run_cell("check(shares)").result
    assert isinstance(shown, toolbar.DisplayWithButtons)
    return shown


def labels(bar) -> list[str]:
    return [child.description for child in bar._row.children[:-1]]


def press(bar, label: str, row=None) -> str:
    button = next(child for child in (row or bar._row).children if getattr(child, "description", "").startswith(label))
    button.click()
    return plain(bar._result.value)


def plain(html: str) -> str:
    return " ".join(
        unescape(re.sub(r"<style>.*?</style>|<(?!/?code)[^>]+>", " ", html, flags=re.S))
        .replace("<code>", "")
        .replace("</code>", "")
        .split()
    )


@pytest.mark.parametrize(
    "code, offered",
    [
        (STUB, ["Hint 1 of 3", "Solution"]),
        (WRONG, ["Hint 1 of 3", "Replay", "Explain MX7", "Solution", "Reset"]),
        (BROKEN, ["Hint 1 of 3", "Replay", "Solution", "Reset"]),
        (RIGHT, ["Solution", "Reset"]),
    ],
)
def test_a_button_is_there_only_where_it_does_something(notebook, code, offered):
    bar = bar_of(notebook, code)
    assert labels(bar) == offered
    assert all(child.tooltip for child in bar._row.children[:-1])
    assert "explain(" not in plain(
        notebook.shell.run_cell("shown = check(shares)") and notebook.shell.user_ns["shown"].html
    )


def test_each_press_shows_its_result_below_the_verdict_and_adds_no_cell(notebook):
    bar = bar_of(notebook, WRONG)
    assert "1 attempt lesson 01: 0 of 6 passed" in plain(bar._progress.value)
    first = press(bar, "Hint")
    assert first.startswith("Hint 1 of 3: the result is below the buttons. Hint 1 of 3 for shares The check proved MX7")
    assert "1 attempt, 1 hint" in plain(bar._progress.value) and labels(bar)[0] == "Hint 2 of 3"
    assert "The columns sum to 1" in press(bar, "Explain")
    said = press(bar, "Replay")
    assert "got = shares(scores)" in said and "They gave: array([[" in said
    assert {"scores", "expected", "got"} <= notebook.shell.user_ns.keys() and not hasattr(
        notebook.shell, "rl_next_input"
    )
    assert "opens after a pass" in press(bar, "Solution")
    press(bar, "Hint"), press(bar, "Hint")
    assert labels(bar)[0] == "Hint 1 of 3"  # from the start again
    assert references.solution_text(COURSE, "shares").splitlines()[-1].split()[0] in press(bar, "Solution")
    assert "attention-course" not in bar._result.value and 'role="alert"' in bar._result.value


def test_a_replay_that_raises_names_the_line(notebook):
    bar = bar_of(notebook, BROKEN)
    said = press(bar, "Replay")
    assert (
        "They ended here: AttributeError" in said and "in line 2 of your cell: return np.no_such_thing(scores)" in said
    )


def test_what_a_button_raises_is_said_where_it_was_pressed(notebook, monkeypatch):
    bar = bar_of(notebook, WRONG)
    monkeypatch.setattr(toolbar.replaying, "replay", lambda *_, **__: 1 / 0)
    bar._row.children[1].click()
    assert plain(bar._result.value).endswith("Replay failed: ZeroDivisionError: division by zero")


def test_after_a_pass_solution_compares_and_the_lesson_counts_it(notebook):
    bar = bar_of(notebook, RIGHT)
    assert "passed lesson 01: 1 of 6 passed" in plain(bar._progress.value)
    assert "Two ways to write shares" in press(bar, "Solution")
    assert "2 attempts, passed before lesson 01: 1 of 6 passed" in plain(bar_of(notebook, WRONG)._progress.value)


def test_a_reset_asks_first_and_keeps_the_code(notebook, tmp_path):
    bar = bar_of(notebook, RIGHT)
    assert "This exercise has passed" in press(bar, "Reset")
    press(bar, "Keep", bar._further.children[0])
    assert "shares" in notebook.shell.user_ns and not (tmp_path / "backups").exists() and bar._further.children == ()
    press(bar, "Reset")
    press(bar, "Restore", bar._further.children[0])
    (copy,) = (tmp_path / "backups").iterdir()
    assert copy.suffix == ".py" and copy.read_text().strip() == RIGHT.strip() and "shares" not in notebook.shell.user_ns
    (shown,) = bar._further.children[0].outputs
    assert copy.name in shown["data"]["text/html"] and "is not written yet" in shown["data"]["text/html"]
    assert "Replace your cell by the original" in shown["data"]["text/plain"]


def test_a_front_end_without_widgets_gets_the_line_of_words(notebook, monkeypatch):
    bar, shown = bar_of(notebook, WRONG), []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw: shown.append(bundle))
    notebook.shell.run_cell("check(shares)")
    assert "".join(each["text/plain"] for each in shown).count('explain("MX7")') == 1  # as in a terminal's client
    shown.clear()
    slider = pytest.importorskip("ipywidgets").IntSlider()
    bar._show_bar()
    first, further = bar._row, bar_of(notebook, WRONG)
    further._show_bar()
    assert (
        first.comm is None and further._row.comm is not None and slider.comm is not None
    )  # a new check takes only its own buttons away
    assert (
        shown[0]["text/plain"] == bar.verdict.next_step
        and 'explain("MX7")' in plain(shown[0]["text/html"])
        and WIDGET in shown[0]
    )


def test_only_a_client_that_can_be_asked_gets_buttons():
    """nbval and `grader build` can't; what they store has no widget."""
    code = f"import numpy as np\nfrom grader import check\n{WRONG}\ncheck(shares)"
    with NotebookRun(COURSE) as kernel:
        assert [set(output["data"]) for output in kernel.run(code, 60)[1]] == [{"text/plain", "text/html"}]
        execute = kernel._client.execute
        kernel._client.execute = lambda code, allow_stdin, **options: execute(code, allow_stdin=True, **options)
        outputs = kernel.run(code, 60)[1]
    assert [WIDGET in output["data"] for output in outputs] == [False, True]
