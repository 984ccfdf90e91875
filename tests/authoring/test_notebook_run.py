"""A kernel for builds: what cells show is collected in order; one that hangs or dies is told."""

from __future__ import annotations

import os
import sys
import time

import pytest

from grader.authoring.notebook_run import RunError, _stabilize, run
from grader.course.course import open_course
from grader.course.stubs import code_or_prose


def cells(*texts: str) -> list[dict]:
    return [code_or_prose(f"c{i}", text, {"grader": {"role": "demo"}}, False) for i, text in enumerate(texts)]


def said(result) -> list[str]:
    return ["".join(each.get("text") or each.get("data", {}).get("text/plain", "")) for each in result[1]]


@pytest.fixture(scope="module")
def results():
    return run(
        open_course(),
        cells(
            "import sys, os; print(sys.executable, os.getcwd(), os.environ['ATTENTION_COURSE_PROGRESS'], sep='|')",
            "print(object())\nimport warnings; warnings.warn('look')",
            "print(1)\nprint(2, flush=True)\ndisplay(3)\nprint(4)\n5",
            "import ipywidgets\ndisplay(ipywidgets.interactive(lambda x: print('moved to', x), x=(0, 1)))\nprint('beside')",
            "from IPython.display import clear_output\nprint('gone')\nclear_output()\nprint('stays')",
            "1 / 0",
            "print('not reached')",
        ),
    )


def test_it_is_this_interpreter_in_a_scratch_folder_with_a_record_of_its_own(results):
    executable, folder, record = said(results[0])[0].strip().split("|")
    assert executable == sys.executable
    assert "lesson-" in folder and folder != os.getcwd()
    assert record.startswith(folder) and record != os.environ.get("ATTENTION_COURSE_PROGRESS")
    assert not os.path.exists(folder)


def test_what_changes_from_run_to_run_is_steadied(results):
    assert said(results[1])[0] == "<object object at 0x…>\n"
    assert said(results[1])[1].startswith("<this cell>:2: UserWarning: look\n")


def test_a_large_picture_takes_no_time():
    """A pattern that begins with any number of non-blanks once took a minute on a picture's base64."""
    picture = {
        "output_type": "display_data",
        "metadata": {},
        "data": {"text/html": "<img src='" + "A" * 400_000 + "'>"},
    }
    started = time.process_time()
    assert _stabilize(picture)["data"]["text/html"] == [picture["data"]["text/html"]]
    assert time.process_time() - started < 1


def test_outputs_keep_their_order_and_streams_are_put_together(results):
    assert results[2][0] == 3
    assert said(results[2]) == ["1\n2\n", "3", "4\n", "5"]


def test_a_control_leaves_words_and_what_it_draws_is_not_the_cell_s(results):
    assert said(results[3]) == ["(A control appears here when this cell is run.)", "beside\n"]
    assert "widget-view" not in str(results[3])


def test_cleared_output_is_gone(results):
    assert said(results[4]) == ["stays\n"]


def test_nothing_runs_after_a_cell_that_raises(results):
    assert results[5][1][0]["ename"] == "ZeroDivisionError"
    assert results[6] == (None, [])


def test_waiting_threads_of_a_build_sleep_unless_told_otherwise(monkeypatch):
    for asked, seen in ((None, "PASSIVE"), ("ACTIVE", "ACTIVE")):
        monkeypatch.setenv("OMP_WAIT_POLICY", asked) if asked else monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
        assert said(run(open_course(), cells("import os; print(os.environ['OMP_WAIT_POLICY'])"))[0]) == [f"{seen}\n"]


def test_a_cell_that_never_ends_is_told():
    with pytest.raises(RunError, match="c1: this cell is still running after 2 s"):
        run(open_course(), cells("1", "while True: pass"), timeout_s=2)


def test_a_kernel_that_ends_is_told():
    with pytest.raises(RunError, match="c0: the kernel ended"):
        run(open_course(), cells("import os; os._exit(3)"), timeout_s=60)


def test_a_display_that_is_drawn_over_is_kept_as_it_was_last():
    """A progress bar is one display, updated many times; other displays of the cell keep their place."""
    shown = "bar = display('begun', display_id=True)\ndisplay('beside')\nbar.update('half')\nbar.update('done')"
    (result,) = run(open_course(), cells(shown))
    assert said(result) == ["'done'", "'beside'"]
