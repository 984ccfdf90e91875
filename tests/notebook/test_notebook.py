"""The calls of a learner: check, passed, hint, solution, explain, progress; their outcomes and their words."""

from __future__ import annotations

import functools
import os
import random
import subprocess
import sys
import textwrap
import time
from unittest.mock import Mock

import numpy as np
import pytest

from grader import check, explain, hint, passed, progress, solution
from grader.notebook import verdicts
from tests.live import from_cells
from tests.mixing_course import RIGHT as ANSWERS
from tests.notebook import plain

RIGHT = """
def shares(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
"""
WRONG_AXIS = RIGHT.replace("axis=1", "axis=0")
UNKNOWN = RIGHT.replace("return e /", "return 0.25 + e /")
RAISES = "def shares(scores):\n    wide = scores @ scores\n    return wide\n"
STUB = 'def shares(scores):\n    raise NotImplementedError("shares is not written yet")\n'


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(verdicts, "verdicts", {})


def made(source: str, name: str = "shares"):
    return from_cells(name, source).obj


# --- the five outcomes --------------------------------------------------------------------------


def test_pass_says_what_was_verified_and_what_comes_next(capsys):
    shown = check(made(RIGHT))
    assert shown and shown.verdict.status == "passed"
    said = str(shown)
    assert said.startswith("PASSED: shares\n--------------\n\nVerified\n  - type, shape and dtype are as expected\n")
    assert "  - each row of weights sums to 1\n" in said
    assert "Largest difference from the reference: " in said or "The numbers equal the reference's exactly." in said
    assert said.endswith("Next: blend.")
    assert capsys.readouterr().out == said + "\n"  # a script displays no results, so the text is printed


def test_failure_with_a_proven_mistake_names_it():
    said = str(check(made(WRONG_AXIS)))
    assert said.startswith("FAILED: shares\n")
    for part in (
        "\nExperiment\n",
        "\nExpected and got\n",
        "\n  expected (",
        "\n  difference, got − expected",
        "\nLikely mistake\n  MX7: ",
    ):
        assert part in said
    assert 'explain("MX7")' in said.partition("\nWhere to look\n")[2]


def test_failure_without_one_says_so():
    shown = check(made(UNKNOWN))
    assert shown.verdict.mistakes == () and "Likely mistake" not in str(shown)
    assert not shown


def test_an_exception_shows_the_learners_line_and_no_grader_frame():
    said = str(check(made(RAISES)))
    assert said.startswith("ERROR: shares\n-------------\nshares raised ValueError: ")
    assert "Your line (line 2 of its cell):\n    wide = scores @ scores\nShapes on that line: scores (" in said
    assert "Expected shape of the result: (" in said
    assert "Traceback" not in said and "observe" not in said and ".py" not in said


def test_a_stub_is_not_started():
    assert str(check(made(STUB))).startswith("NOT STARTED: shares\n")


def test_both_forms_are_offered_to_the_front_end():
    shown = check(made(WRONG_AXIS))
    bundle = shown._repr_mimebundle_()
    assert bundle["text/plain"] == str(shown) and bundle["text/html"].count("<img alt=") >= 3


# --- which exercise is meant --------------------------------------------------------------------


def test_by_name_the_callers_names_are_searched():
    shares = made(RIGHT)
    assert check("shares") and shares
    del shares
    missing = check("shares")
    assert missing.verdict.status == "missing"
    assert "shares is not defined in this notebook yet: run the cell that defines it." in str(missing)


def test_answers_go_with_their_name():
    assert check("first_output", [5.0, 5.0])
    assert check("first_output", [5.3, 4.2]).verdict.mistakes == ("MX19",)
    first_output = None
    assert check("first_output", first_output).verdict.status == "not_started"
    first_output = (5, 5)
    assert check("first_output") and check(first_output)


def test_a_function_under_another_name_is_known_by_what_it_is_bound_to():
    shares = plain.unnamed(made(RIGHT))
    assert check(shares)
    mine = made(RIGHT.replace("def shares", "def shares(scores): pass\ndef mine"))
    assert check("shares", mine) is not None


def renamed(scores):
    return scores


def share(scores):
    return scores


class Thing:
    pass


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("share", "No exercise is called 'share'. Nearest: shares"),
        ("zzzz", "No exercise is called 'zzzz'. The exercises are: nearest, products, "),
        (lambda x: x, "A lambda has no name, so its exercise is unknown."),
        (renamed, "'renamed' is not the name of an exercise."),
        (functools.partial(share), "An object of type partial is not the name of an exercise. Nearest: shares"),
        (
            np.zeros((2, 2)),
            "takes a function, a class or an exercise's name; this is of type ndarray. A function is passed "
            "without being called, as in",
        ),
        (None, "this is of type NoneType"),
        (5, "this is of type int"),
        (Thing(), "this is of type Thing"),
        (type("Mixer", (), {})(), "takes the class Mixer itself, not an object made from it"),
    ],
)
def test_what_names_no_exercise_gets_one_sentence(target, said):
    for function in (check, hint, solution):
        shown = function(target)
        assert said in str(shown).replace("\n", " ") and not shown


@pytest.mark.parametrize("function", [check, hint, solution])
def test_what_refuses_calls_itself_by_its_own_name(function):
    name = function.__name__
    others = {"check(", "hint(", "solution("} - {f"{name}("}
    for target in (None, 3, np.zeros(2), renamed, (lambda x: x), type("Mixer", (), {})()):
        said = str(function(target)).replace("\n", " ")
        assert not any(other in said for other in others)
        assert (f'{name}("nearest", answer)' in said or ", renamed)" in said or "the_lambda" in said) is (
            name == "check" and type(target).__name__ != "Mixer"
        )


def test_a_wrapped_function_is_judged_by_its_name():
    assert check(plain.wrapped(made(RIGHT)))


def test_hostile_objects_do_not_break_anything():
    class Odd:
        def __getattr__(self, name):
            raise RuntimeError("no")

        def __eq__(self, other):
            return True

        __hash__ = None

    assert "first_output" in str(check("first_output", Odd()))
    assert not check("shares", Odd())
    assert passed(Odd()) is False


# --- speed, state, interruption -----------------------------------------------------------------


def test_each_check_judges_and_payoffs_do_not_judge_the_same_code_again(monkeypatch):
    calls = []
    real = verdicts._judge
    monkeypatch.setattr(verdicts, "_judge", lambda *args: calls.append(1) or real(*args))
    assert check(made(RIGHT)) and passed(made(RIGHT)) and passed(made("# again\n" + RIGHT))
    assert len(calls) == 1
    assert not check(made(WRONG_AXIS)) and check(made(RIGHT)) and check(made(RIGHT))
    assert len(calls) == 4
    assert not passed(made(WRONG_AXIS)) and len(calls) == 5


def quickest(action):
    """The least processor time of nine runs: what other programs take of the processor only ever adds."""
    times = []
    for _ in range(9):
        started = time.process_time()
        action()
        times.append(time.process_time() - started)
    return min(times)


def test_a_repeated_check_returns_at_once():
    function = made(RIGHT)
    check(function)
    # no longer than Python counts to a million, on a quick machine 60 milliseconds: nobody sees such a pause
    assert quickest(lambda: check(function)) < quickest(lambda: sum(1 for _ in range(1_000_000)))


def test_code_with_a_state_is_judged_every_time(monkeypatch):
    calls = []
    real = verdicts._judge
    monkeypatch.setattr(verdicts, "_judge", lambda *args: calls.append(1) or real(*args))
    source = "rng = np.random.default_rng(0)\n" + RIGHT.replace("    return", "    rng.random()\n    return")
    function = made(source)
    assert check(function) and check(function)
    assert len(calls) == 2


def test_random_states_and_threads_are_left_as_found():
    torch = pytest.importorskip("torch")
    source = "import random\n" + RIGHT.replace("    e =", "    random.random(); np.random.rand()\n    e =")
    threads = torch.get_num_threads()
    states = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    with torch.no_grad():
        check(made(source))
        assert not torch.is_grad_enabled()
    assert states == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())
    assert torch.get_num_threads() == threads


@pytest.fixture
def other_modes():
    """As after `torch.set_default_device("cuda")`; the device here is one that every computer has, and on which nothing can be computed."""
    torch = pytest.importorskip("torch")
    torch.set_default_device("meta")
    torch.set_default_dtype(torch.float64)
    with torch.autocast("cpu"):
        yield lambda: (torch.get_default_device().type, torch.get_default_dtype(), torch.is_autocast_enabled("cpu"))
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", ["mix_torch", "Mixer", "twice"])
def test_a_learner_s_default_device_and_type_change_no_verdict(name, other_modes):
    before = other_modes()
    right = from_cells(name, ANSWERS["mix_torch"], ANSWERS[name]).obj
    assert check(right).verdict.status == "passed"
    assert other_modes() == before == ("meta", sys.modules["torch"].float64, True)


def test_an_interrupted_check_says_what_to_do_and_payoffs_do_not_start_it_again(capsys, monkeypatch):
    function = made("def shares(scores):\n    raise KeyboardInterrupt\n")
    said = str(check(function))
    assert "The check of shares was interrupted." in said
    assert "Your line (line 2 of its cell):\n    raise KeyboardInterrupt" in said
    assert "look for a loop or a recursion around it that never ends" in said.replace("\n", " ")
    assert said.endswith("To try again, run check(shares).")
    monkeypatch.setattr("builtins.input", Mock(side_effect=KeyboardInterrupt))
    waiting = str(check(made("def shares(scores):\n    return input('by what?')\n")))
    assert "`input()` waits for somebody to type" in waiting.replace("\n", " ") and "loop" not in waiting
    assert passed(function) is False
    assert capsys.readouterr().out.endswith("This opens once check(shares) passes.\n")


def test_a_fault_of_the_grader_is_never_the_learners(monkeypatch):
    def broken(*args):
        raise OSError("disk")

    monkeypatch.setattr("grader.judging.judge.judge", broken)
    shown = check(made(RIGHT))
    assert shown.verdict.status == "could_not_grade"
    assert "The check itself failed, which says nothing about shares.\nOSError: disk" in str(shown)
    assert "0 different attempts" in str(solution("shares")).replace("\n", " ")


# --- passed, hint, solution, explain, progress --------------------------------------------------


def test_passed_says_one_sentence_or_nothing(capsys):
    assert passed(made(RIGHT)) is True
    assert capsys.readouterr().out == ""
    assert passed(made(STUB)) is False
    assert capsys.readouterr().out == "This opens once check(shares) passes.\n"
    assert passed("first_output", None) is False
    assert capsys.readouterr().out == 'This opens once check("first_output", first_output) passes.\n'
    assert passed(None) is False
    assert capsys.readouterr().out.startswith(
        "passed takes a function, a class or an exercise's name; this is of type NoneType."
    )
    assert passed("share") is False
    assert capsys.readouterr().out.startswith("No exercise is called 'share'. Nearest: shares")


def test_hints_go_further_with_each_call_and_open_the_solution():
    function = made(STUB)
    assert "So far: 0 hints and 0 different attempts." in str(solution(function)).replace("\n", " ")
    said = [str(hint(function)) for _ in range(4)]
    for level, each in zip((1, 2, 3, 3), said, strict=True):
        assert each.startswith(f"Hint {level} of 3 for shares\n\n")
    assert said[0].endswith("hint(shares) gives the next hint.") and said[2].endswith("solution(shares) is open now.")
    assert "____" in said[2] and "```" not in said[2]
    assert str(hint(function, level=1)) == said[0]
    assert str(hint(function, level=4)).startswith("Hints have the levels 1 to 3; 4 is none of them.")
    opened = str(solution(function))
    assert opened.startswith("The course's solution of shares\n\ndef shares(") and "region" not in opened


def test_three_different_attempts_open_the_solution():
    for number in (2, 2, 3):
        check(made(WRONG_AXIS.replace("return e", f"return {number} * e")))
    closed = str(solution("shares")).replace("\n", " ")
    assert closed.startswith("The solution of shares opens after a pass, after hint 3, or after 3 different attempts.")
    assert "So far: 0 hints and 2 different attempts." in closed
    check(made(UNKNOWN))
    assert "def shares(" in str(solution("shares"))


def test_a_pass_opens_the_solution():
    check(made(RIGHT))
    assert "def shares(" in str(solution(made(RIGHT)))


def test_explain_tells_a_mistake_and_suggests_ids():
    told = str(explain("MX7"))
    assert told.startswith("MX7: ") and len(told) > 200
    assert str(explain("mx7")) == told
    assert "MX7: " in str(explain("MX7+MX1")) and "MX1: " in str(explain("MX7+MX1"))
    unknown = str(explain("MX99"))
    assert unknown.startswith("No mistake has the id 'MX99'. Near it: MX") and unknown.endswith(
        "explain() lists all of them."
    )
    assert "MX7" in str(explain()) and "MX19" in str(explain())
    assert str(explain(0)) == str(explain("0")) == str(explain("00")) and "LU1" in str(explain(0))
    assert "No mistake has the id ''." in str(explain(""))


def test_explain_lists_the_mistakes_of_an_exercise_and_not_which_one_applies():
    function = made(WRONG_AXIS)
    before, verdict = str(explain(function)), check(function)
    assert before.splitlines()[2] == "shares" and "  MX7 " in before and "  MX8 " in before and "MX19" not in before
    assert verdict.verdict.mistakes and str(explain(function)) == before == str(explain("shares"))
    assert str(explain(len)).startswith("'len' is not the name of an exercise.")


def test_progress_shows_the_course_and_what_is_next():
    check(made(WRONG_AXIS))
    check("first_output", [5, 5])
    shown = progress()
    said = str(shown)
    assert said.startswith("passed: core 1 of ") and said.index("\n01_mixing\n") < said.index("\n00_lookup ")
    lines = {line.split()[0]: line for line in said.splitlines() if line.startswith("  ")}
    assert "✗ failed" in lines["shares"] and lines["shares"].endswith("0/2         1")
    assert "✓ passed" in lines["first_output"] and "○ not started" in lines["scaled"]
    assert said.endswith("Next: products, in this lesson.")
    assert "02_logs" in said and "log_shares" not in said  # the other lessons are told in a line each
    assert '<td>01_mixing</td><th scope="row">shares</th>' in shown.html
    assert '<th scope="row"><a href="02_logs.ipynb">02_logs</a></th>' in shown.html


def test_a_record_that_cannot_be_kept_is_said_once(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ATTENTION_COURSE_PROGRESS", str(tmp_path / "file" / "progress.json"))
    first, second = check(made(RIGHT)), check(made(RIGHT))
    assert "it is kept only until this kernel ends." in str(first).replace("\n", " ") and "Note:" not in str(second)


# --- outside a notebook -------------------------------------------------------------------------


def test_import_is_light():
    heavy = ("torch", "matplotlib", "jupytext", "IPython", "grader.judging.judge")
    program = f"import sys; from grader import check; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_plain_script_prints_text_even_on_a_narrow_console(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(
        "import numpy as np\nfrom grader import check\n" + textwrap.dedent(WRONG_AXIS) + "\ncheck(shares)\n"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": os.getcwd()}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and done.stdout.startswith("FAILED: shares\n") and done.stderr == ""
    assert "MX7" in done.stdout
