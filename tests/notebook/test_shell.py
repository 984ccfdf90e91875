"""In IPython: a check says which cell failed, names that are not known get a sentence, payoffs are quiet, checks replay."""

from __future__ import annotations

import copy
import json
import os
import re
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from grader.course.course import COURSE_ENV
from grader.grading.grade import Settings, grade_submission
from grader.notebook import cell_output, reach, verdicts, workspace
from grader.notebook.kernel_course import kernel_course
from tests import small_lesson
from tests.mixing_course import COURSE, RIGHT as ANSWERS

LESSON = "01_mixing"
LATER = "05_given"  # which gives a function that has the name of an exercise of LESSON
IMPORTS = (
    "import numpy as np\nfrom grader import check, explain, figures, hint, passed, progress, replay, reset, solution"
)
RIGHT = """def shares(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
"""
WRONG = RIGHT.replace("axis=1", "axis=0")


class Notebook:
    """Cells run in a real shell. shown: what each displayed last, as text; printed: the output of the last one."""

    def __init__(self, shell, capsys) -> None:
        self.shell, self._capsys = shell, capsys
        self._deleted: list[str] = []
        self.run(IMPORTS, "imports")

    def delete(self, *cell_ids: str) -> None:
        """As JupyterLab tells of it: with the next cells that run, until one of them has ended, and here with all of them."""
        self._deleted = list(cell_ids)
        self.shell.get_parent = lambda: {"metadata": {"deletedCells": self._deleted}}

    def run(self, code: str, cell_id: str | None = None, raises: bool = False) -> str:
        self._capsys.readouterr()
        done = self.shell.run_cell(code, store_history=True, cell_id=cell_id)
        assert done.success is not raises, done.error_in_exec or done.error_before_exec
        self.printed = self._capsys.readouterr().out
        return " ".join((repr(done.result) if done.result is not None else self.printed).split())


@pytest.fixture
def cells(capsys, monkeypatch, tmp_path):
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verdicts, "verdicts", {})
    monkeypatch.setattr(verdicts, "history", verdicts.CellHistory())
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # the shell takes its place
    made = interactive.InteractiveShell.instance()
    made.history_manager.enabled = False
    yield Notebook(made, capsys)
    interactive.InteractiveShell.clear_instance()
    for prompt in ("ps1", "ps2", "ps3"):  # the shell sets them, and they say that somebody is at a prompt
        vars(sys).pop(prompt, None)


def course_cell(lesson: str, words: str) -> str:
    """The first cell of a lesson's code that contains these words."""
    return next(cell.text for cell in COURSE.cells(lesson) if cell.role != "prose" and words in cell.text)


def test_what_goes_with_a_room_says_how_it_is_imported(cells):
    assert "from grader import join" in cells.run('join("http://x", "a-b-c", "ada")', raises=True) + cells.printed
    cells.run("print(fine)", raises=True)
    assert "goes with a room" not in cells.printed  # a variable of the learner's own


# --- a cell that failed ---------------------------------------------------------------------------

BROKEN = {
    "a bracket that is missing": (RIGHT.replace("np.exp(", "np.exp(("), "SyntaxError: ", "line 2 of its cell"),
    "a bad indent": (
        RIGHT.replace("    return", "   return"),
        "IndentationError: unindent does not match",
        "line 3 of its cell",
    ),
    "an import that fails": (
        "import no_such_module\n" + RIGHT,
        "ModuleNotFoundError: No module named 'no_such_module'.",
        "line 1 of its",
    ),
    "a definition that is none": (RIGHT.replace("def ", "df "), "SyntaxError: ", "line 1 of its cell"),
}


@pytest.mark.parametrize("why", BROKEN)
def test_a_check_after_a_failed_run_is_no_stale_pass(cells, why):
    broken, raised, line = BROKEN[why]
    cells.run(RIGHT, "s")
    assert cells.run("check(shares)").startswith("PASSED")
    cells.run(broken, "s", raises=True)
    said = cells.run("check(shares)")
    assert said.startswith("ERROR: shares") and raised in said and line in said
    assert "The earlier `shares` is still in the kernel, but it was not judged." in said
    assert "This opens once check(shares) passes." in cells.run("if passed(shares): print('open')")
    cells.run(RIGHT, "s")
    assert cells.run("check(shares)").startswith("PASSED")


def test_what_is_stale_is_no_attempt(cells):
    for number in range(4):
        cells.run(f"{WRONG}    # {number}\nx = (", "s", raises=True)
    cells.run(RIGHT, "t")
    cells.run("x = (", "t", raises=True)
    cells.run("check(shares)")
    assert "0 different attempts" in cells.run("solution(shares)")


def test_a_cell_that_fails_below_its_definition_is_judged_as_it_is_now(cells):
    cells.run(RIGHT, "s")
    cells.run(f"{WRONG}\n1 / 0", "s", raises=True)
    assert cells.run("check(shares)").startswith("FAILED")


def test_a_check_in_the_cell_itself_judges_what_the_cell_says(cells):
    cells.run("x = (", "s", raises=True)
    cells.run(f"{RIGHT}\n1 / 0", "s", raises=True)
    assert cells.run(f"{RIGHT}\ncheck(shares)", "s").startswith("PASSED")


def test_a_helper_whose_cell_failed_is_named(cells):
    cells.run("def largest(scores):\n    return scores.max(axis=1, keepdims=True)", "h")
    cells.run(RIGHT.replace("scores.max(axis=1, keepdims=True)", "largest(scores)"), "s")
    assert cells.run("check(shares)").startswith("PASSED")
    cells.run("def largest(scores:\n    return 0", "h", raises=True)
    said = cells.run("check(shares)")
    assert "shares calls `largest`. The last run of the cell that defines `largest` failed: SyntaxError" in said


def test_a_renamed_function_is_not_judged_by_its_old_name(cells):
    cells.run(RIGHT, "s")
    cells.run(RIGHT.replace("shares", "share"), "s")
    said = cells.run("check(shares)")
    assert "The cell that defined `shares` no longer does: it now defines `share`." in said


def test_another_cell_of_the_same_name_ends_it(cells):
    cells.run(RIGHT, "s")
    cells.run("def shares(:", "s", raises=True)
    cells.run(RIGHT, "elsewhere")
    assert cells.run("check(shares)").startswith("PASSED")


# --- helpers that are exercises -------------------------------------------------------------------


def test_a_called_exercise_whose_check_fails_comes_first(cells):
    cells.run(WRONG, "s")
    cells.run("def blend(weights, V):\n    return weights @ V", "w")
    cells.run(
        "import math\ndef mix(Q, K, V):\n"
        "    weights = shares(Q @ K.T / math.sqrt(Q.shape[1]))\n    return blend(weights, V), weights",
        "t",
    )
    said = cells.run("check(mix)")
    assert said.startswith("FAILED")
    told = "mix calls `shares`, whose check fails: start there, with check(shares)."
    assert said.partition("--- ")[2].startswith(told) and "`blend`, whose check" not in said
    cells.run(RIGHT, "s")
    assert cells.run("check(mix)").startswith("PASSED")


@pytest.mark.parametrize("helper", [RIGHT, WRONG])
def test_a_mistake_of_the_callers_own_leads_nowhere_else(cells, helper):
    cells.run(helper)
    cells.run("def blend(weights, V):\n    return weights @ V")
    cells.run(
        "def mix(Q, K, V):\n    weights = shares(Q @ K.T)  # without the scale\n    return blend(weights, V), weights"
    )
    said = cells.run("check(mix)")
    assert said.startswith("FAILED") and "whose check fails" not in said


def test_what_a_lesson_gives_is_no_exercise_to_begin_with(cells):
    """Its function has the name of another lesson's exercise, whose check asks for more."""
    cells.run(course_cell(LATER, "def shares("))
    cells.run(
        "def agreement(scores):\n    return (shares(scores + 1000) ** 2).sum(axis=1)"
    )  # right where nothing overflows
    said = cells.run("check(agreement)")
    assert said.startswith("FAILED") and "whose check fails" not in said and "`shares`" not in said


# --- names that are not known ---------------------------------------------------------------------


def test_an_exercise_that_is_not_defined_gets_one_sentence(cells):
    for call in ("check(shares)", "hint(shares)", "if passed(shares):\n    print(shares)"):
        said = cells.run(call, raises=True)
        assert (
            said.startswith("`shares` is not defined in this kernel: run the cell that defines it.")
            and "Traceback" not in said
        )
    cells.run("def shares(:", raises=True)
    said = cells.run("check(shares)", raises=True)
    assert said.startswith(
        "`shares` is not defined: the last run of its cell failed in its line 1, `def shares(:` (SyntaxError"
    )


def test_an_exercise_that_was_never_called_by_its_name_is_told_its_name(cells):
    stub = next(
        cell
        for cell in COURSE.pristine("01_mixing")["cells"]
        if cell["metadata"]["grader"].get("exercise") == "shares" and cell["metadata"]["grader"]["role"] == "exercise"
    )
    cells.run(RIGHT.replace("shares", "share"), stub["id"])
    said = cells.run("check(shares)", raises=True)
    assert said == (
        "`shares` is not defined: its cell now defines `share`. The exercise is called shares; "
        "its function must have that name."
    )


def test_ids_misspellings_and_no_argument_at_all(cells):
    assert cells.run("explain(MX7)", raises=True) == 'explain takes an id in quotes: `explain("MX7")`.'
    assert "Nearest: shares" in cells.run("check(shres)", raises=True)
    for name in ("check", "hint", "solution", "replay", "reset"):
        assert cells.run(f"{name}()").startswith(f"{name} needs an exercise, as in {name}(")


def test_what_a_restarted_kernel_does_not_import_yet(cells):
    cells.run("del check")
    said = cells.run("check(shares)", raises=True)
    assert said.startswith("`check` is not known in this kernel: run the cell near the top that imports it;")


@pytest.mark.parametrize(
    "code",
    [
        "nonsense + 1",
        "def f():\n    return nonsense\nf()",
        "print(shares)",
        "check(len(nonsense))",
        "def f():\n    return check(nonsense)\nf()",
    ],
)
def test_other_errors_stay_as_they_are(cells, code):
    said = cells.run(code, raises=True)
    assert "Traceback" in said and "NameError" in said


def test_a_notebook_of_somebody_elses_keeps_its_errors(cells):
    cells.shell.attention_course = False  # as the start-up file leaves it
    assert "NameError" in cells.run("del check\ncheck(shares)", raises=True)
    Path("01_mixing.ipynb").touch()
    assert cells.run("check(shares)", raises=True).startswith("`check` is not known in this kernel")


# --- %grader, payoffs, waiting --------------------------------------------------------------------


def test_the_command_is_a_magic(cells):
    assert cells.run("%grader explain MX7").startswith("MX7: The columns sum to 1; each row is to.")
    assert cells.run("%grader grade ada's.ipynb").startswith("This line cannot be read: No closing quotation.")


def test_the_magic_means_the_course_in_whose_folder_the_kernel_works(cells, monkeypatch, tmp_path):
    small_lesson.write(tmp_path)
    monkeypatch.delenv(COURSE_ENV)
    monkeypatch.chdir(tmp_path / "notebooks")
    kernel_course.cache_clear()
    assert kernel_course().root == tmp_path and COURSE_ENV not in os.environ
    assert cells.run("%grader --version").endswith("lessons 01") and cells.run("%grader explain TY1").startswith("TY1:")


def test_names_are_those_of_the_code_that_calls(cells):
    """A function's own among them, for each call that takes an exercise by its name."""
    cells.run(f"def call(what):\n{textwrap.indent(RIGHT, '    ')}\n    return what('shares')")
    assert cells.run("call(check)").startswith("PASSED") and cells.run("call(passed)") == "True"
    assert "passed, so there is no failed input" in cells.run("call(replay)")
    assert cells.run("'shares' in globals()") == "False"


def test_a_payoff_leaves_out_what_the_exercise_prints(cells):
    cells.run(RIGHT.replace("    e =", "    print('one'); print('two')\n    e ="), "s")
    said = cells.run("if passed(shares):\n    for _ in range(3):\n        shares(np.ones((1, 2)))\n    print('mine')")
    assert said == "mine Left out here: 6 lines that shares prints; a print() is still in it."
    assert cells.run("out = shares(np.ones((1, 2)))") == "one two"
    cells.run(RIGHT, "s")
    assert cells.run("if passed(shares):\n    print('mine', shares(np.ones((1, 1))))") == "mine [[1.]]"


def test_a_check_that_takes_long_shows_that_it_runs(cells, monkeypatch):
    seen = []
    monkeypatch.setattr(cell_output, "PATIENCE_S", 0.02)
    monkeypatch.setattr(cells.shell, "kernel", object(), raising=False)
    monkeypatch.setattr("IPython.display.DisplayHandle.display", lambda self, shown: seen.append(str(shown)))
    monkeypatch.setattr("IPython.display.DisplayHandle.update", lambda self, shown: seen.append(str(shown)))
    cells.run("import time\n" + RIGHT.replace("    e =", "    time.sleep(0.02)\n    e ="), "s")
    cells.run("check(shares)")
    assert seen == ["check(shares) is running; the stop button (the square) in the toolbar stops it.", ""]
    monkeypatch.setattr(cell_output, "PATIENCE_S", 60)
    cells.run(RIGHT, "s")
    cells.run("check(shares)")
    assert len(seen) == 2


# --- replay, solution, hints ----------------------------------------------------------------------


def test_replay_sets_the_inputs_and_offers_a_cell(cells):
    cells.run(WRONG, "s")
    cells.run("scores = 'mine'")
    cells.run("check(shares)")
    said = cells.run("replay(shares)")
    assert said.startswith("The last check of shares failed here: two rows of three scores")
    names = cells.shell.user_ns
    assert names["scores"] == "mine" and names["scores_failing"].tolist() == [[0, 1, 2], [3, 0, -1]]
    cells.run(cells.shell.rl_next_input)
    assert np.abs(names["got"] - names["expected"]).max() == pytest.approx(0.4863, abs=1e-4)
    cells.run("del scores, scores_failing\nreplay(shares)\nreplay(shares)\nscores = scores + 1\nreplay(shares)")
    assert names["scores"].tolist() == [[1, 2, 3], [4, 1, 0]] and names["scores_failing"].tolist() == [
        [0, 1, 2],
        [3, 0, -1],
    ]
    cells.run("first_output = [1, 2]\ncheck('first_output')")
    assert "is an answer and takes no input" in cells.run("replay('first_output')")
    cells.run(RIGHT, "s")
    assert cells.run("replay(shares)") == "The last check of shares passed, so there is no failed input to replay."


def test_replay_shows_two_shapes_beside_one_another(cells):
    cells.run("def products(Q, K):\n    return K @ Q.T", "a")
    cells.run("check(products)")
    cells.run("replay(products)")
    assert cells.shell.rl_next_input == "got = products(Q, K)\ngot, expected"
    cells.run(cells.shell.rl_next_input)


@pytest.mark.parametrize("parameters", ["numbers", "tensor, factor"])
def test_replay_offers_no_call_where_a_check_goes_its_own_way(cells, parameters):
    cells.run(f"def twice({parameters}):\n    return 3 * {parameters.split(', ')[0]}", "t")
    assert not cells.run("check(twice)").startswith("PASSED")
    cells.shell.rl_next_input = None
    said = cells.run("replay(twice)")
    assert "so no single call can show it" in said
    assert cells.shell.rl_next_input is None and "tensor" in cells.shell.user_ns


def test_replay_builds_a_module_with_the_weights_of_the_check(cells):
    unscaled = "def mix_torch(q, k, v):\n    weights = torch.softmax(q @ k.mT, dim=-1)\n    return weights @ v, weights"
    cells.run(f"import torch\nfrom torch import nn\n{unscaled}\n{ANSWERS['Mixer']}", "a")
    assert cells.run("check(Mixer)").startswith("FAILED")
    cells.run("replay(Mixer)")
    code = cells.shell.rl_next_input
    cells.run(code)
    names = cells.shell.user_ns
    assert "module.load_state_dict(weights" in code and "module.train(False)" in code
    assert torch_equal(names["module"].w_q.weight, names["weights"]["w_q.weight"]) and len(names["got"]) == 2


def torch_equal(one, other) -> bool:
    return np.array_equal(one.detach().numpy(), other.numpy())


def test_hints_follow_a_proven_mistake_and_only_of_this_code(cells):
    cells.run(WRONG, "s")
    cells.run("check(shares)")
    assert "The check proved MX7: The columns sum to 1" in cells.run("hint(shares, 1)")
    assert "exponentials.sum(axis=0, keepdims=True)" in cells.run("hint(shares, 2)")
    cells.run(RIGHT.replace("return e", "return 2 * e"), "s")
    assert "MX7" not in cells.run("hint(shares, 1)")


def test_after_a_pass_the_solution_stands_beside_the_own_code(cells):
    loops = "def products(Q, K):\n    return np.array([[sum(q * k) for k in K] for q in Q])"
    cells.run(loops, "a")
    assert cells.run("check(products)").startswith("PASSED")
    shown = cells.shell.run_cell("solution(products)").result
    said = str(shown)
    assert said.startswith("Two ways to write products\n\nNotice: yours has 2 loops; the course's has none")
    assert said.index("for k in K") < said.index("return Q @ K.T") and '"""' not in said
    assert 'class="attn-k">return</span>' in shown.html and "attn-beside" in shown.html


# --- reset ----------------------------------------------------------------------------------------


def test_reset_puts_one_cell_back_and_keeps_the_notebook(cells, tmp_path):
    path = tmp_path / "01_mixing.ipynb"
    notebook = COURSE.pristine("01_mixing")
    stub = workspace.stub("shares")
    for cell in notebook["cells"]:
        if "".join(cell["source"]) == stub:
            cell["source"] = RIGHT.splitlines(True)
        if "".join(cell["source"]).startswith("def blend"):
            cell["source"] = ["def blend(weights, V):\n", "    return weights @ V"]
    path.write_text(workspace.encode(notebook))
    cells.run(RIGHT, "s")
    said = cells.run('reset("shares")')
    assert said.startswith("Reset shares Nothing was changed. `%grader reset shares` asks, then restores the cell")
    assert said.endswith(" ".join(stub.split())) and path.read_text() == workspace.encode(notebook)
    said = cells.run("%grader reset shares")
    assert "Nothing was changed yet: this replaces your cell of shares" in said and "shares" in cells.shell.user_ns
    call = "%grader reset shares " + re.search(r"--confirm \w+", said)[0]
    said = cells.run(call)
    assert said.startswith("Save the notebook first") and not (tmp_path / "backups").exists()
    notebook["cells"].append(
        {"cell_type": "code", "id": "r", "metadata": {}, "outputs": [], "execution_count": None, "source": [call]}
    )
    path.write_text(workspace.encode(notebook))
    said = cells.run(call)
    assert (
        "is the course's original again; the earlier notebook is kept" in said and "Reload Notebook from Disk" in said
    )
    assert stub.splitlines()[-1].strip() in path.read_text().replace('\\"', '"')
    assert "keepdims" not in path.read_text().split("def shares")[1][:900] and "return weights @ V" in path.read_text()
    assert "e.sum(axis=1" in next((tmp_path / "backups").iterdir()).read_text()
    assert "`shares` is not defined" in cells.run("check(shares)", raises=True)
    path.write_text(
        workspace.encode(notebook)
    )  # written again, and the cell with its code is still there at the next Run All
    assert "That code was for an earlier state." in cells.run(call) and "e.sum(axis=1" in path.read_text()


def test_the_magic_resets_nothing_before_the_notebook_is_saved(cells, tmp_path):
    notebook = COURSE.pristine("01_mixing")
    (tmp_path / "01_mixing.ipynb").write_text(workspace.encode(notebook))
    ways = ("shares --confirm abc123", "01 --confirm abc123", "1 --confirm=abc123", "--conf abc123 01")
    for way in (*ways, "01_mixing.ipynb --confirm abc123"):
        assert "Save the notebook first" in cells.run(f"%grader reset {way}"), way


def test_the_magic_says_what_is_wrong_with_a_file_that_is_no_notebook(cells, tmp_path):
    (tmp_path / "01_mixing.ipynb").write_text("{")
    code = re.search(r"--confirm \w+", cells.run("%grader reset shares --confirm abc123"))[0]
    assert "can't be read as a notebook" in cells.run(f"%grader reset shares {code}")


def test_reset_without_the_file_offers_the_stub(cells):
    cells.run(WRONG, "s")
    said = cells.run("reset(shares)")
    assert "Nothing was changed. 01_mixing.ipynb is not in this folder." in said
    assert cells.shell.rl_next_input == workspace.stub("shares") and "shares" in cells.shell.user_ns


# --- what grading has not -------------------------------------------------------------------------

LOOPS = """def blend(weights, V):
    for i in range(len(weights)):
        output[i] = weights[i] @ V
    return output
"""
CREATED = LOOPS.replace("    for i", "    output = np.zeros((len(weights), V.shape[1]))\n    for i", 1)
ELSEWHERE = "comes from another cell of the notebook; grading starts without it."


def graded(path, exercise: str, *added: str):
    """The verdict of `grader grade` on an exercise, with these cells in the place of its stub's."""
    notebook = COURSE.pristine(path.stem)
    at, stub = next((at, cell) for at, cell in enumerate(notebook["cells"]) if cell["id"] == f"exercise-{exercise}")
    own = [{**stub, "id": f"own-{number}", "metadata": {}, "source": text} for number, text in enumerate(added)]
    notebook["cells"][at : at + 1] = own
    path.write_text(workspace.encode(notebook))
    return grade_submission(Settings(COURSE, exercises=[exercise]), path).lessons[0].verdicts[0]


PAYOFF = course_cell(LESSON, "output, weights = mix")
STEPS = "\n".join(["import math", *(ANSWERS[name] for name in ("products", "scaled", "shares"))])
BORROWED = {
    "a payoff's": ((PAYOFF,), LOOPS, f"`output` {ELSEWHERE}"),
    "a payoff's that was changed": ((f"{PAYOFF}\n    print(output)",), LOOPS, f"`output` {ELSEWHERE}"),
    "an own cell's that needs a payoff's": (
        (PAYOFF, "shape = output.shape"),
        CREATED.replace("(len(weights), V.shape[1])", "shape"),
        "`shape` is made in a cell that needs `output`, which comes from another cell of the notebook; grading starts without `output`.",
    ),
}


@pytest.mark.parametrize("whose", BORROWED)
def test_a_name_that_only_the_course_made_is_not_the_learners(cells, tmp_path, whose):
    others, answer, told = BORROWED[whose]
    for text in (course_cell(LESSON, "Q = np.array"), STEPS, CREATED, ANSWERS["mix"], *others):
        cells.run(text, "b" if text == CREATED else None)
    cells.run(answer, "b")
    said = cells.run("check(blend)")
    assert said.startswith("ERROR: blend") and f"--- {told} blend raised NameError:" in said
    assert "output" in cells.shell.user_ns  # what the notebook shows stays there
    verdict = graded(tmp_path / f"{LESSON}.ipynb", "blend", *others[1:], answer)
    assert verdict.status == "error" and verdict.headline in said
    cells.run(CREATED, "b")
    assert cells.run("check(blend)").startswith("PASSED")
    assert graded(tmp_path / f"{LESSON}.ipynb", "blend", *others[1:], CREATED).passed


def test_what_the_course_sets_anew_is_judged_as_the_learners_cell_made_it(cells, tmp_path):
    own, answer = "output = 0", RIGHT.replace("return e", "return output + e")
    for text in (course_cell(LESSON, "Q = np.array"), STEPS, CREATED, ANSWERS["mix"], own, PAYOFF):
        cells.run(text)
    cells.run(answer)
    assert cells.run("check(shares)").startswith("PASSED") and len(cells.shell.user_ns["output"]) == 3
    assert graded(tmp_path / f"{LESSON}.ipynb", "shares", own, answer).passed
    cells.run("output = 1")  # small numbers are the same objects everywhere
    assert cells.run("check(shares)").startswith("FAILED")


def test_a_misspelled_parameter_that_the_course_has_a_value_for(cells, tmp_path):
    for words in ("import numpy", "for score in"):
        cells.run(course_cell(LATER, words))
    answer = "def agreement(scores):\n    return (shares(score) ** 2).sum(axis=1)"
    cells.run(answer)
    said = cells.run("check(agreement)")
    told = f"`score` is no parameter (is `scores` meant?): it {ELSEWHERE} agreement raised"
    assert f"--- {told} NameError: name 'score'" in said
    headline = graded(tmp_path / f"{LATER}.ipynb", "agreement", answer).headline
    assert headline.startswith(told) and headline in said


HELPER = "def largest(scores):\n    return scores.max(axis=1, keepdims=True)"
HELPED = RIGHT.replace("scores.max(axis=1, keepdims=True)", "largest(scores)")


def test_a_helper_whose_cell_was_deleted_is_defined_no_more(cells, tmp_path):
    cells.run(HELPER, "h")
    cells.run(HELPED, "s")
    assert cells.run("check(shares)").startswith("PASSED")
    cells.delete("h")
    said = cells.run("check(shares)")
    told = "`largest` is defined in no cell any more, or in one that has not run: write it into a cell, and run that. shares raised NameError:"
    assert said.startswith("ERROR: shares") and f"--- {told}" in said
    assert graded(tmp_path / "01_mixing.ipynb", "shares", HELPED).headline in said
    cells.run(
        HELPER, "h"
    )  # the same cell again, or the one that an undo brought back, while the front end repeats what it said
    assert cells.run("check(shares)").startswith("PASSED")
    cells.delete("s")
    said = cells.run("check(shares)")
    assert said.startswith("MISSING: shares") and "`shares` is defined in no cell any more" in said


def test_a_name_that_another_cell_defines_too_is_read_from_there_again(cells):
    cells.run(HELPER, "h")
    cells.run(HELPER.replace("max", "min"), "second")
    cells.run(HELPED, "s")
    cells.delete("h")
    assert "`largest` is" not in cells.run("check(shares)")
    cells.delete("second")
    cells.run(HELPER, "third")
    cells.run(HELPER, "fourth")
    cells.delete("fourth")
    assert "`largest` is defined in another cell, too, which is older: run that one." in cells.run("check(shares)")


OWN_FILE = "def largest(scores):\n    return scores.max(axis=1, keepdims=True)\n"
ALONE = "Grading reads the notebook alone: copy the code of that file into a cell."
IMPORTED = {
    "in its own cell": (["from helpers import largest\n" + HELPED], "`shares` needs `helpers.py`."),
    "in another cell": (["from helpers import largest", HELPED], "`largest` needs `helpers.py`."),
    "as a module": (["import helpers as h", HELPED.replace("largest", "h.largest")], "`h` needs `helpers.py`."),
    "while it runs": (
        [HELPED.replace("    e =", "    from helpers import largest\n    e =")],
        "shares imports `helpers.py`.",
    ),
}


@pytest.mark.parametrize("where", IMPORTED)
def test_a_file_beside_the_notebook_is_not_there_in_grading(cells, tmp_path, monkeypatch, where):
    (tmp_path / "helpers.py").write_text(OWN_FILE)
    monkeypatch.syspath_prepend(tmp_path)
    answer, told = IMPORTED[where]
    try:
        for text in answer:
            cells.run(text)
        loaded = sys.modules.get("helpers")
        said = cells.run("check(shares)")
        assert (
            said.startswith("ERROR: shares") and f"--- {told} {ALONE}" in said and sys.modules.get("helpers") is loaded
        )
    finally:
        sys.modules.pop("helpers", None)
    verdict = graded(tmp_path / "01_mixing.ipynb", "shares", *answer)
    assert verdict.status == "error" and (
        "NameError" in verdict.headline or "reads the notebook alone" in " ".join(verdict.details)
    )
    cells.run(OWN_FILE)
    cells.run(HELPED)
    assert cells.run("check(shares)").startswith("PASSED")


def test_a_file_that_a_cell_runs_is_not_there_in_grading(cells, tmp_path):
    (tmp_path / "helpers.py").write_text("import numpy as np\n" + RIGHT)
    cells.run("%run helpers.py")
    said = cells.run("check(shares)")
    assert said.startswith("ERROR: shares") and f"`shares` needs `helpers.py`. {ALONE}" in said
    cells.run(RIGHT)
    assert cells.run("check(shares)").startswith("PASSED")
    notebook = COURSE.pristine("01_mixing")
    cell = next(cell for cell in notebook["cells"] if cell["id"] == "exercise-shares")
    cell["source"] = "%run -i helpers.py"
    (tmp_path / "01_mixing.ipynb").write_text(workspace.encode(notebook))
    report = grade_submission(Settings(COURSE, exercises=["shares"]), tmp_path / "01_mixing.ipynb")
    headline = report.lessons[0].verdicts[0].headline
    assert "runs `helpers.py`. Grading reads the notebook alone: copy the code of that file into the cell." in headline


def test_an_answer_that_needs_a_file_of_ones_own_is_none_in_grading(cells, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "helpers.py").write_text(OWN_FILE)
    try:
        cells.run("from helpers import *")
        cells.run("def first_row(x):\n    return largest(x)[0]")
        cells.run("first_output = first_row(np.eye(2))")
        said = cells.run('check("first_output")')
    finally:
        sys.modules.pop("helpers", None)
    assert said.startswith("ERROR: first_output")
    assert f"is made in a cell that needs `largest`. `largest` needs `helpers.py`. {ALONE}" in said


def test_a_shell_cell_defines_nothing(cells):
    cells.run(RIGHT)
    cells.run("%%bash\ncat <<'X'\ndef shares(x): pass\nX\nexit 3", raises=True)
    assert cells.run("check(shares)").startswith("PASSED")


def test_the_code_of_a_library_s_decorator_is_not_the_learner_s(cells):
    torch = pytest.importorskip("torch")
    cells.run("import torch\n@torch.no_grad()\n" + RIGHT)
    assert cells.run("check(shares)").startswith("PASSED")
    assert reach.code_files(torch.no_grad()(lambda x: x)) == []


def test_a_cell_that_fails_before_it_imports_numpy_again_leaves_numpy_as_it_was(cells):
    cells.run(RIGHT)
    cells.run("import no_such_module\nimport numpy as np", raises=True)
    assert cells.run("check(shares)").startswith("PASSED")


def test_a_library_in_the_notebooks_folder_is_no_file_of_the_learners(cells, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path.parent)
    cells.run("import math, json, numpy.linalg\n" + RIGHT)
    assert cells.run("check(shares)").startswith("PASSED")


def test_a_check_in_the_cell_that_defines_a_name_again_finds_it(cells):
    cells.run(HELPER, "h")
    cells.run(HELPED, "s")
    cells.delete("h")
    cells.run("1")
    assert "PASSED" in cells.run(f"{HELPER}\ncheck(shares)", "new")


def test_an_answer_that_needs_the_courses_numbers_is_none_in_grading(cells, tmp_path):
    own = "first_output = weights[0] @ V"
    for text in (course_cell(LESSON, "Q = np.array"), STEPS, CREATED, ANSWERS["mix"], PAYOFF, own):
        cells.run(text)
    said = cells.run('check("first_output")')
    told = f"`first_output` is made in a cell that needs `weights`, which {ELSEWHERE.replace('it.', '`weights`.')}"
    assert said.startswith("ERROR: first_output") and told in said
    assert graded(tmp_path / f"{LESSON}.ipynb", "first_output", own).status == "error"


def test_what_the_code_reads_and_did_not_need_is_no_headline(cells):
    cells.run(HELPER, "h")
    cells.run(WRONG.replace("    e =", "    if scores is None:\n        return largest(scores)\n    e ="), "s")
    cells.delete("h")
    said = cells.run("check(shares)")
    assert "--- Expected: each row of weights sums to 1." in said and "`largest` is defined in no cell any more" in said


def test_a_changed_definition_of_the_lessons_own_is_not_judged_and_told(cells, tmp_path):
    """Grading lays the course's cell there again: so does a check, and says why the learner's own version made no difference."""
    notebook = copy.deepcopy(COURSE.pristine(LATER))
    given = next(cell for cell in notebook["cells"] if "def shares(" in "".join(cell["source"]))
    exercise = next(cell for cell in notebook["cells"] if cell["id"] == "exercise-agreement")
    original = "".join(given["source"])
    changed = original.replace("exponentials.sum(axis=1, keepdims=True)", "exponentials.sum()")
    cells.run(changed, given["id"])
    cells.run(ANSWERS["agreement"], exercise["id"])
    assert cells.run("check(agreement)").startswith("PASSED")
    answer = "def agreement(scores):\n    return (shares(scores) ** 2).mean(axis=1)"
    cells.run(answer, exercise["id"])
    told = cells.run("check(agreement)")
    assert "`shares` was changed in a cell of the lesson's own" in told and "MX52" in told
    given["source"], exercise["source"] = changed, answer
    path = tmp_path / f"{LATER}.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    (verdict,) = grade_submission(Settings(COURSE), path).lessons[0].verdicts
    assert verdict.mistakes == ("MX52",)
    cells.run(original, given["id"])
    assert "was changed" not in cells.run("check(agreement)")


def test_a_version_of_ones_own_in_a_cell_of_its_own_is_judged(cells):
    cells.run(course_cell(LATER, "def shares("), "given-1")
    cells.run("def shares(scores):\n    return np.exp(scores) / np.exp(scores).sum()", "mine")
    cells.run(ANSWERS["agreement"])
    assert "PASSED" not in cells.run("check(agreement)")
