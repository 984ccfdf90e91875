"""In IPython: a check says which cell failed, names that are not known get a sentence, payoffs are quiet, checks replay."""

from __future__ import annotations

import json
import re
import shutil
import sys

import numpy as np
import pytest

from grader.course.course import open_course
from grader.grading.grade import Settings, grade_submission
from grader.notebook import cell_output, reach, verdicts, workspace

LATER = "03_scaled_dot_product_attention"
IMPORTS = (
    "import numpy as np\nfrom grader import check, explain, figures, hint, passed, progress, replay, reset, solution"
)
RIGHT = """def softmax_rows(scores):
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
    return next(cell.text for cell in open_course().cells(lesson) if cell.role != "prose" and words in cell.text)


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
    assert cells.run("check(softmax_rows)").startswith("PASSED")
    cells.run(broken, "s", raises=True)
    said = cells.run("check(softmax_rows)")
    assert said.startswith("ERROR: softmax_rows") and raised in said and line in said
    assert "The earlier `softmax_rows` is still in the kernel, but it was not judged." in said
    assert "This opens once check(softmax_rows) passes." in cells.run("if passed(softmax_rows): print('open')")
    cells.run(RIGHT, "s")
    assert cells.run("check(softmax_rows)").startswith("PASSED")


def test_what_is_stale_is_no_attempt(cells):
    for number in range(4):
        cells.run(f"{WRONG}    # {number}\nx = (", "s", raises=True)
    cells.run(RIGHT, "t")
    cells.run("x = (", "t", raises=True)
    cells.run("check(softmax_rows)")
    assert "0 different attempts" in cells.run("solution(softmax_rows)")


def test_a_cell_that_fails_below_its_definition_is_judged_as_it_is_now(cells):
    cells.run(RIGHT, "s")
    cells.run(f"{WRONG}\n1 / 0", "s", raises=True)
    assert cells.run("check(softmax_rows)").startswith("FAILED")


def test_a_check_in_the_cell_itself_judges_what_the_cell_says(cells):
    cells.run("x = (", "s", raises=True)
    cells.run(f"{RIGHT}\n1 / 0", "s", raises=True)
    assert cells.run(f"{RIGHT}\ncheck(softmax_rows)", "s").startswith("PASSED")


def test_a_helper_whose_cell_failed_is_named(cells):
    cells.run("def largest(scores):\n    return scores.max(axis=1, keepdims=True)", "h")
    cells.run(RIGHT.replace("scores.max(axis=1, keepdims=True)", "largest(scores)"), "s")
    assert cells.run("check(softmax_rows)").startswith("PASSED")
    cells.run("def largest(scores:\n    return 0", "h", raises=True)
    said = cells.run("check(softmax_rows)")
    assert "softmax_rows calls `largest`. The last run of the cell that defines `largest` failed: SyntaxError" in said


def test_a_renamed_function_is_not_judged_by_its_old_name(cells):
    cells.run(RIGHT, "s")
    cells.run(RIGHT.replace("softmax_rows", "softmax_row"), "s")
    said = cells.run("check(softmax_rows)")
    assert "The cell that defined `softmax_rows` no longer does: it now defines `softmax_row`." in said


def test_another_cell_of_the_same_name_ends_it(cells):
    cells.run(RIGHT, "s")
    cells.run("def softmax_rows(:", "s", raises=True)
    cells.run(RIGHT, "elsewhere")
    assert cells.run("check(softmax_rows)").startswith("PASSED")


# --- helpers that are exercises -------------------------------------------------------------------


def test_a_called_exercise_whose_check_fails_comes_first(cells):
    cells.run(WRONG, "s")
    cells.run("def weighted_sum(weights, V):\n    return weights @ V", "w")
    cells.run(
        "import math\ndef three_token_attention(Q, K, V):\n"
        "    weights = softmax_rows(Q @ K.T / math.sqrt(Q.shape[1]))\n    return weighted_sum(weights, V), weights",
        "t",
    )
    said = cells.run("check(three_token_attention)")
    assert said.startswith("FAILED")
    told = "three_token_attention calls `softmax_rows`, whose check fails: start there, with check(softmax_rows)."
    assert said.partition("--- ")[2].startswith(told) and "`weighted_sum`, whose check" not in said
    cells.run(RIGHT, "s")
    assert cells.run("check(three_token_attention)").startswith("PASSED")


@pytest.mark.parametrize("softmax", [RIGHT, WRONG])
def test_a_mistake_of_the_callers_own_leads_nowhere_else(cells, softmax):
    cells.run(softmax)
    cells.run("def weighted_sum(weights, V):\n    return weights @ V")
    cells.run(
        "def three_token_attention(Q, K, V):\n"
        "    weights = softmax_rows(Q @ K.T)  # without the scale\n    return weighted_sum(weights, V), weights"
    )
    said = cells.run("check(three_token_attention)")
    assert said.startswith("FAILED") and "whose check fails" not in said


GIVEN_SOFTMAX = {
    "03_scaled_dot_product_attention": (
        "scaled_dot_product_attention",
        "def scaled_dot_product_attention(q, k, v):\n    weights = softmax(q @ k.swapaxes(-1, -2))\n    return weights @ v, weights",
    ),
    "04_why_scale": (
        "softmax_gradient_norm",
        "def softmax_gradient_norm(scores):\n    return (softmax(scores) ** 2).sum(axis=-1)",
    ),
}


@pytest.mark.parametrize("lesson", GIVEN_SOFTMAX)
def test_what_a_lesson_gives_is_no_exercise_to_begin_with(cells, lesson):
    """Its softmax has the name of another lesson's exercise, whose check asks for more."""
    name, answer = GIVEN_SOFTMAX[lesson]
    cells.run(course_cell(lesson, "def softmax("))
    cells.run(answer)
    said = cells.run(f"check({name})")
    assert said.startswith("FAILED") and "whose check fails" not in said and "`softmax`" not in said


# --- names that are not known ---------------------------------------------------------------------


def test_an_exercise_that_is_not_defined_gets_one_sentence(cells):
    for call in ("check(softmax_rows)", "hint(softmax_rows)", "if passed(softmax_rows):\n    print(softmax_rows)"):
        said = cells.run(call, raises=True)
        assert (
            said.startswith("`softmax_rows` is not defined in this kernel: run the cell that defines it.")
            and "Traceback" not in said
        )
    cells.run("def softmax_rows(:", raises=True)
    said = cells.run("check(softmax_rows)", raises=True)
    assert said.startswith(
        "`softmax_rows` is not defined: the last run of its cell failed in its line 1, `def softmax_rows(:` (SyntaxError"
    )


def test_an_exercise_that_was_never_called_by_its_name_is_told_its_name(cells):
    stub = next(
        cell
        for cell in open_course().pristine("01_three_tokens")["cells"]
        if cell["metadata"]["grader"].get("exercise") == "softmax_rows"
        and cell["metadata"]["grader"]["role"] == "exercise"
    )
    cells.run(RIGHT.replace("softmax_rows", "softmax_row"), stub["id"])
    said = cells.run("check(softmax_rows)", raises=True)
    assert said == (
        "`softmax_rows` is not defined: its cell now defines `softmax_row`. The exercise is called softmax_rows; "
        "its function must have that name."
    )


def test_ids_misspellings_and_no_argument_at_all(cells):
    assert cells.run("explain(SM1)", raises=True) == 'explain takes an id in quotes: `explain("SM1")`.'
    assert "Nearest: softmax_rows" in cells.run("check(softmax_rws)", raises=True)
    for name in ("check", "hint", "solution", "replay", "reset"):
        assert cells.run(f"{name}()").startswith(f"{name} needs an exercise, as in {name}(")


def test_what_a_restarted_kernel_does_not_import_yet(cells):
    cells.run("del check")
    said = cells.run("check(softmax_rows)", raises=True)
    assert said.startswith("`check` is not known in this kernel: run the cell near the top that imports it;")


@pytest.mark.parametrize(
    "code",
    [
        "nonsense + 1",
        "def f():\n    return nonsense\nf()",
        "print(softmax_rows)",
        "check(len(nonsense))",
        "def f():\n    return check(nonsense)\nf()",
    ],
)
def test_other_errors_stay_as_they_are(cells, code):
    said = cells.run(code, raises=True)
    assert "Traceback" in said and "NameError" in said


def test_a_notebook_of_somebody_elses_keeps_its_errors(cells):
    cells.shell.attention_course = False  # as the start-up file leaves it
    assert "NameError" in cells.run("del check\ncheck(softmax_rows)", raises=True)
    shutil.copy(open_course().notebook_path("01_three_tokens"), ".")
    assert cells.run("check(softmax_rows)", raises=True).startswith("`check` is not known in this kernel")


# --- %grader, payoffs, waiting --------------------------------------------------------------------


def test_the_command_is_a_magic(cells):
    assert cells.run("%grader explain SM1").startswith("SM1: Softmax ran over the queries")
    assert cells.run("%grader grade ada's.ipynb").startswith("This line cannot be read: No closing quotation.")


def test_a_payoff_leaves_out_what_the_exercise_prints(cells):
    cells.run(RIGHT.replace("    e =", "    print('one'); print('two')\n    e ="), "s")
    said = cells.run(
        "if passed(softmax_rows):\n    for _ in range(3):\n        softmax_rows(np.ones((1, 2)))\n    print('mine')"
    )
    assert said == "mine Left out here: 6 lines that softmax_rows prints; a print() is still in it."
    assert cells.run("out = softmax_rows(np.ones((1, 2)))") == "one two"
    cells.run(RIGHT, "s")
    assert cells.run("if passed(softmax_rows):\n    print('mine', softmax_rows(np.ones((1, 1))))") == "mine [[1.]]"


def test_a_check_that_takes_long_shows_that_it_runs(cells, monkeypatch):
    seen = []
    monkeypatch.setattr(cell_output, "PATIENCE_S", 0.02)
    monkeypatch.setattr(cells.shell, "kernel", object(), raising=False)
    monkeypatch.setattr("IPython.display.DisplayHandle.display", lambda self, shown: seen.append(str(shown)))
    monkeypatch.setattr("IPython.display.DisplayHandle.update", lambda self, shown: seen.append(str(shown)))
    cells.run("import time\n" + RIGHT.replace("    e =", "    time.sleep(0.02)\n    e ="), "s")
    cells.run("check(softmax_rows)")
    assert seen == ["check(softmax_rows) is running; the stop button (the square) in the toolbar stops it.", ""]
    monkeypatch.setattr(cell_output, "PATIENCE_S", 60)
    cells.run(RIGHT, "s")
    cells.run("check(softmax_rows)")
    assert len(seen) == 2


# --- replay, solution, hints ----------------------------------------------------------------------


def test_replay_sets_the_inputs_and_offers_a_cell(cells):
    cells.run(WRONG, "s")
    cells.run("scores = 'mine'")
    cells.run("check(softmax_rows)")
    said = cells.run("replay(softmax_rows)")
    assert said.startswith("The last check of softmax_rows failed here: two rows of three scores")
    names = cells.shell.user_ns
    assert names["scores"] == "mine" and names["scores_failing"].tolist() == [[0, 1, 2], [3, 0, -1]]
    cells.run(cells.shell.rl_next_input)
    assert np.abs(names["got"] - names["expected"]).max() == pytest.approx(0.4863, abs=1e-4)
    cells.run(
        "del scores, scores_failing\nreplay(softmax_rows)\nreplay(softmax_rows)\nscores = scores + 1\nreplay(softmax_rows)"
    )
    assert names["scores"].tolist() == [[1, 2, 3], [4, 1, 0]] and names["scores_failing"].tolist() == [
        [0, 1, 2],
        [3, 0, -1],
    ]
    cells.run("corrected_first_row = [1, 2]\ncheck('corrected_first_row')")
    assert "is an answer and takes no input" in cells.run("replay('corrected_first_row')")
    cells.run(RIGHT, "s")
    assert (
        cells.run("replay(softmax_rows)")
        == "The last check of softmax_rows passed, so there is no failed input to replay."
    )


def test_replay_shows_two_shapes_beside_one_another(cells):
    cells.run("def attention_scores(Q, K):\n    return K @ Q.T", "a")
    cells.run("check(attention_scores)")
    cells.run("replay(attention_scores)")
    assert cells.shell.rl_next_input == "got = attention_scores(Q, K)\ngot, expected"
    cells.run(cells.shell.rl_next_input)


def test_replay_offers_no_call_where_a_check_goes_its_own_way(cells):
    cells.run("def dot_product_std(d_k, n_samples, rng):\n    return 2.0", "d")
    assert cells.run("check(dot_product_std)").startswith("FAILED")
    cells.shell.rl_next_input = None
    said = cells.run("replay(dot_product_std)")
    assert (
        "so no single call can show it" in said and cells.shell.rl_next_input is None and "d_k" in cells.shell.user_ns
    )


def test_replay_builds_a_module_with_the_weights_of_the_check(cells):
    cells.run(
        "import torch\nfrom torch import nn\n"
        "class SelfAttention(nn.Module):\n    def __init__(self, d_model, d_k, d_v):\n        super().__init__()\n"
        "        self.w_q, self.w_k = nn.Linear(d_model, d_k, bias=False), nn.Linear(d_model, d_k, bias=False)\n"
        "        self.w_v = nn.Linear(d_model, d_v, bias=False)\n"
        "    def forward(self, x):\n        w = torch.softmax(self.w_q(x) @ self.w_k(x).mT, dim=-1)\n        return w @ self.w_v(x), w",
        "a",
    )
    assert cells.run("check(SelfAttention)").startswith("FAILED")
    cells.run("replay(SelfAttention)")
    code = cells.shell.rl_next_input
    cells.run(code)
    names = cells.shell.user_ns
    assert "module.load_state_dict(weights" in code and "module.train(False)" in code
    assert torch_equal(names["module"].w_q.weight, names["weights"]["w_q.weight"]) and len(names["got"]) == 2


def torch_equal(one, other) -> bool:
    return np.array_equal(one.detach().numpy(), other.numpy())


def test_hints_follow_a_proven_mistake_and_only_of_this_code(cells):
    cells.run(WRONG, "s")
    cells.run("check(softmax_rows)")
    assert "The check proved SM1: Softmax ran over the queries" in cells.run("hint(softmax_rows, 1)")
    assert "exponentials.sum(axis=0, keepdims=True)" in cells.run("hint(softmax_rows, 2)")
    cells.run(RIGHT.replace("return e", "return 2 * e"), "s")
    assert "SM1" not in cells.run("hint(softmax_rows, 1)")


def test_after_a_pass_the_solution_stands_beside_the_own_code(cells):
    loops = "def attention_scores(Q, K):\n    return np.array([[sum(q * k) for k in K] for q in Q])"
    cells.run(loops, "a")
    assert cells.run("check(attention_scores)").startswith("PASSED")
    shown = cells.shell.run_cell("solution(attention_scores)").result
    said = str(shown)
    assert said.startswith("Two ways to write attention_scores\n\nNotice: yours has 2 loops; the course's has none")
    assert said.index("for k in K") < said.index("return Q @ K.T") and '"""' not in said
    assert 'class="attn-k">return</span>' in shown.html and "attn-beside" in shown.html


# --- reset ----------------------------------------------------------------------------------------


def test_reset_puts_one_cell_back_and_keeps_the_notebook(cells, tmp_path):
    path = tmp_path / "01_three_tokens.ipynb"
    notebook = open_course().pristine("01_three_tokens")
    stub = workspace.stub("softmax_rows")
    for cell in notebook["cells"]:
        if "".join(cell["source"]) == stub:
            cell["source"] = RIGHT.splitlines(True)
        if "".join(cell["source"]).startswith("def weighted_sum"):
            cell["source"] = ["def weighted_sum(weights, V):\n", "    return weights @ V"]
    path.write_text(workspace.encode(notebook))
    cells.run(RIGHT, "s")
    said = cells.run('reset("softmax_rows")')
    assert said.startswith("Reset softmax_rows Nothing was changed yet:") and not (tmp_path / "backups").exists()
    call = re.search(r'reset\("softmax_rows", "\w+"\)', said)[0]
    said = cells.run(call)
    assert (
        said.startswith("softmax_rows was not changed Save the notebook first") and not (tmp_path / "backups").exists()
    )
    notebook["cells"].append(
        {"cell_type": "code", "id": "r", "metadata": {}, "outputs": [], "execution_count": None, "source": [call]}
    )
    path.write_text(workspace.encode(notebook))
    said = cells.run(call)
    assert said.startswith("softmax_rows is the course's original again") and "Reload Notebook from Disk" in said
    assert stub.splitlines()[-1].strip() in path.read_text().replace('\\"', '"')
    assert (
        "keepdims" not in path.read_text().split("def softmax_rows")[1][:900]
        and "return weights @ V" in path.read_text()
    )
    assert "e.sum(axis=1" in next((tmp_path / "backups").iterdir()).read_text()
    assert "`softmax_rows` is not defined" in cells.run("check(softmax_rows)", raises=True)
    path.write_text(
        workspace.encode(notebook)
    )  # written again, and the cell with its code is still there at the next Run All
    assert "That code was for an earlier state." in cells.run(call) and "e.sum(axis=1" in path.read_text()


def test_the_magic_resets_nothing_before_the_notebook_is_saved(cells, tmp_path):
    notebook = open_course().pristine("01_three_tokens")
    (tmp_path / "01_three_tokens.ipynb").write_text(workspace.encode(notebook))
    ways = ("softmax_rows --confirm abc123", "01 --confirm abc123", "1 --confirm=abc123", "--conf abc123 01")
    for way in (*ways, "01_three_tokens.ipynb --confirm abc123"):
        assert "Save the notebook first" in cells.run(f"%grader reset {way}"), way


def test_reset_without_the_file_offers_the_stub(cells):
    cells.run(WRONG, "s")
    said = cells.run("reset(softmax_rows)")
    assert "01_three_tokens.ipynb is not in this folder, so nothing was changed." in said
    assert cells.shell.rl_next_input == workspace.stub("softmax_rows") and "softmax_rows" in cells.shell.user_ns


# --- what grading has not -------------------------------------------------------------------------

LOOPS = """def attention_scores(Q, K):
    for i in range(len(Q)):
        for j in range(len(K)):
            scores[i, j] = Q[i] @ K[j]
    return scores
"""
CREATED = LOOPS.replace("    for i", "    scores = np.zeros((len(Q), len(K)))\n    for i", 1)
ELSEWHERE = "comes from another cell of the notebook; grading starts without it."


def graded(path, exercise: str, *added: str):
    """The verdict of `grader grade` on an exercise, with these cells in the place of its stub's."""
    notebook = open_course().pristine(path.stem)
    at, stub = next((at, cell) for at, cell in enumerate(notebook["cells"]) if cell["id"] == f"exercise-{exercise}")
    own = [{**stub, "id": f"own-{number}", "metadata": {}, "source": text} for number, text in enumerate(added)]
    notebook["cells"][at : at + 1] = own
    path.write_text(workspace.encode(notebook))
    return grade_submission(Settings(open_course(), exercises=[exercise]), path).lessons[0].verdicts[0]


PAYOFF = "scores = attention_scores(Q, K)"
BORROWED = {
    "a payoff's": ((course_cell("01_three_tokens", PAYOFF),), LOOPS, f"`scores` {ELSEWHERE}"),
    "a payoff's that was changed": (
        (f"{course_cell('01_three_tokens', PAYOFF)}\n    print(scores)",),
        LOOPS,
        f"`scores` {ELSEWHERE}",
    ),
    "an own cell's that needs a payoff's": (
        (course_cell("01_three_tokens", PAYOFF), "shape = scores.shape"),
        CREATED.replace("(len(Q), len(K))", "shape"),
        "`shape` is made in a cell that needs `scores`, which comes from another cell of the notebook; grading starts without `scores`.",
    ),
}


@pytest.mark.parametrize("whose", BORROWED)
def test_a_name_that_only_the_course_made_is_not_the_learners(cells, tmp_path, whose):
    others, answer, told = BORROWED[whose]
    for text in (course_cell("01_three_tokens", "Q = np.array"), CREATED, *others):
        cells.run(text, "a" if text == CREATED else None)
    cells.run(answer, "a")
    said = cells.run("check(attention_scores)")
    assert said.startswith("ERROR: attention_scores") and f"--- {told} attention_scores raised NameError:" in said
    assert "scores" in cells.shell.user_ns  # what the notebook shows stays there
    verdict = graded(tmp_path / "01_three_tokens.ipynb", "attention_scores", *others[1:], answer)
    assert verdict.status == "error" and verdict.headline in said
    cells.run(CREATED, "a")
    assert cells.run("check(attention_scores)").startswith("PASSED")
    assert graded(tmp_path / "01_three_tokens.ipynb", "attention_scores", *others[1:], CREATED).passed


def test_what_the_course_sets_anew_is_judged_as_the_learners_cell_made_it(cells, tmp_path):
    own, answer = "scaled_row = 0", RIGHT.replace("return e", "return scaled_row + e")
    cells.run(course_cell("01_three_tokens", "Q = np.array"))
    cells.run("import math\ndef scale_scores(scores, d_k):\n    return scores / math.sqrt(d_k)")
    cells.run(own)
    cells.run(course_cell("01_three_tokens", "scaled_row = "))
    cells.run(answer)
    assert cells.run("check(softmax_rows)").startswith("PASSED") and len(cells.shell.user_ns["scaled_row"]) == 3
    assert graded(tmp_path / "01_three_tokens.ipynb", "softmax_rows", own, answer).passed
    cells.run("scaled_row = 1")  # small numbers are the same objects everywhere
    assert cells.run("check(softmax_rows)").startswith("FAILED")


def test_a_misspelled_parameter_that_the_course_has_a_value_for(cells, tmp_path):
    for words in ("import numpy", "keys = np.array", "for word, key in"):
        cells.run(course_cell("00_start_here", words))
    answer = "def hard_lookup(query, keys, values):\n    return values[(key @ query).argmax()]"
    cells.run(answer)
    said = cells.run("check(hard_lookup)")
    assert (
        f"--- `key` is no parameter (is `keys` meant?): it {ELSEWHERE} hard_lookup raised NameError: name 'key'" in said
    )
    headline = graded(tmp_path / "00_start_here.ipynb", "hard_lookup", answer).headline
    assert (
        headline.startswith(f"`key` is no parameter (is `keys` meant?): it {ELSEWHERE} hard_lookup raised")
        and headline in said
    )


HELPER = "def largest(scores):\n    return scores.max(axis=1, keepdims=True)"
HELPED = RIGHT.replace("scores.max(axis=1, keepdims=True)", "largest(scores)")


def test_a_helper_whose_cell_was_deleted_is_defined_no_more(cells, tmp_path):
    cells.run(HELPER, "h")
    cells.run(HELPED, "s")
    assert cells.run("check(softmax_rows)").startswith("PASSED")
    cells.delete("h")
    said = cells.run("check(softmax_rows)")
    told = "`largest` is defined in no cell any more, or in one that has not run: write it into a cell, and run that. softmax_rows raised NameError:"
    assert said.startswith("ERROR: softmax_rows") and f"--- {told}" in said
    assert graded(tmp_path / "01_three_tokens.ipynb", "softmax_rows", HELPED).headline in said
    cells.run(
        HELPER, "h"
    )  # the same cell again, or the one that an undo brought back, while the front end repeats what it said
    assert cells.run("check(softmax_rows)").startswith("PASSED")
    cells.delete("s")
    said = cells.run("check(softmax_rows)")
    assert said.startswith("MISSING: softmax_rows") and "`softmax_rows` is defined in no cell any more" in said


def test_a_name_that_another_cell_defines_too_is_read_from_there_again(cells):
    cells.run(HELPER, "h")
    cells.run(HELPER.replace("max", "min"), "second")
    cells.run(HELPED, "s")
    cells.delete("h")
    assert "`largest` is" not in cells.run("check(softmax_rows)")
    cells.delete("second")
    cells.run(HELPER, "third")
    cells.run(HELPER, "fourth")
    cells.delete("fourth")
    assert "`largest` is defined in another cell, too, which is older: run that one." in cells.run(
        "check(softmax_rows)"
    )


OWN_FILE = "def largest(scores):\n    return scores.max(axis=1, keepdims=True)\n"
ALONE = "Grading reads the notebook alone: copy the code of that file into a cell."
IMPORTED = {
    "in its own cell": (["from helpers import largest\n" + HELPED], "`softmax_rows` needs `helpers.py`."),
    "in another cell": (["from helpers import largest", HELPED], "`largest` needs `helpers.py`."),
    "as a module": (["import helpers as h", HELPED.replace("largest", "h.largest")], "`h` needs `helpers.py`."),
    "while it runs": (
        [HELPED.replace("    e =", "    from helpers import largest\n    e =")],
        "softmax_rows imports `helpers.py`.",
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
        said = cells.run("check(softmax_rows)")
        assert (
            said.startswith("ERROR: softmax_rows")
            and f"--- {told} {ALONE}" in said
            and sys.modules.get("helpers") is loaded
        )
    finally:
        sys.modules.pop("helpers", None)
    verdict = graded(tmp_path / "01_three_tokens.ipynb", "softmax_rows", *answer)
    assert verdict.status == "error" and (
        "NameError" in verdict.headline or "reads the notebook alone" in " ".join(verdict.details)
    )
    cells.run(OWN_FILE)
    cells.run(HELPED)
    assert cells.run("check(softmax_rows)").startswith("PASSED")


def test_a_file_that_a_cell_runs_is_not_there_in_grading(cells, tmp_path):
    (tmp_path / "helpers.py").write_text("import numpy as np\n" + RIGHT)
    cells.run("%run helpers.py")
    said = cells.run("check(softmax_rows)")
    assert said.startswith("ERROR: softmax_rows") and f"`softmax_rows` needs `helpers.py`. {ALONE}" in said
    cells.run(RIGHT)
    assert cells.run("check(softmax_rows)").startswith("PASSED")
    notebook = open_course().pristine("01_three_tokens")
    cell = next(cell for cell in notebook["cells"] if cell["id"] == "exercise-softmax_rows")
    cell["source"] = "%run -i helpers.py"
    (tmp_path / "01_three_tokens.ipynb").write_text(workspace.encode(notebook))
    report = grade_submission(Settings(open_course(), exercises=["softmax_rows"]), tmp_path / "01_three_tokens.ipynb")
    headline = report.lessons[0].verdicts[0].headline
    assert "runs `helpers.py`. Grading reads the notebook alone: copy the code of that file into the cell." in headline


def test_an_answer_that_needs_a_file_of_ones_own_is_none_in_grading(cells, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "helpers.py").write_text(OWN_FILE)
    try:
        cells.run("from helpers import *")
        cells.run("def first_row(x):\n    return largest(x)[0]")
        cells.run("corrected_first_row = first_row(np.eye(2))")
        said = cells.run('check("corrected_first_row")')
    finally:
        sys.modules.pop("helpers", None)
    assert said.startswith("ERROR: corrected_first_row")
    assert f"is made in a cell that needs `largest`. `largest` needs `helpers.py`. {ALONE}" in said


def test_a_shell_cell_defines_nothing(cells):
    cells.run(RIGHT)
    cells.run("%%bash\ncat <<'X'\ndef softmax_rows(x): pass\nX\nexit 3", raises=True)
    assert cells.run("check(softmax_rows)").startswith("PASSED")


def test_the_code_of_a_library_s_decorator_is_not_the_learner_s(cells):
    torch = pytest.importorskip("torch")
    cells.run("import torch\n@torch.no_grad()\n" + RIGHT)
    assert cells.run("check(softmax_rows)").startswith("PASSED")
    assert reach.code_files(torch.no_grad()(lambda x: x)) == []


def test_a_cell_that_fails_before_it_imports_numpy_again_leaves_numpy_as_it_was(cells):
    cells.run(RIGHT)
    cells.run("import no_such_module\nimport numpy as np", raises=True)
    assert cells.run("check(softmax_rows)").startswith("PASSED")


def test_a_library_in_the_notebooks_folder_is_no_file_of_the_learners(cells, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path.parent)
    cells.run("import math, json, numpy.linalg\n" + RIGHT)
    assert cells.run("check(softmax_rows)").startswith("PASSED")


def test_a_check_in_the_cell_that_defines_a_name_again_finds_it(cells):
    cells.run(HELPER, "h")
    cells.run(HELPED, "s")
    cells.delete("h")
    cells.run("1")
    assert "PASSED" in cells.run(f"{HELPER}\ncheck(softmax_rows)", "new")


def test_an_answer_that_needs_the_courses_numbers_is_none_in_grading(cells, tmp_path):
    lesson, own = "01_three_tokens", "corrected_first_row = weights[0] @ V"
    cells.run(course_cell(lesson, "Q = np.array"))
    cells.run(
        "def three_token_attention(Q, K, V):\n    s = Q @ K.T / np.sqrt(Q.shape[1])\n    e = np.exp(s - s.max(axis=1, keepdims=True))\n"
        "    weights = e / e.sum(axis=1, keepdims=True)\n    return weights @ V, weights"
    )
    cells.run(course_cell(lesson, "output, weights = three_token_attention"))
    cells.run(own)
    said = cells.run('check("corrected_first_row")')
    told = (
        f"`corrected_first_row` is made in a cell that needs `weights`, which {ELSEWHERE.replace('it.', '`weights`.')}"
    )
    assert said.startswith("ERROR: corrected_first_row") and told in said
    assert graded(tmp_path / f"{lesson}.ipynb", "corrected_first_row", own).status == "error"


def test_what_the_code_reads_and_did_not_need_is_no_headline(cells):
    cells.run(HELPER, "h")
    cells.run(WRONG.replace("    e =", "    if scores is None:\n        return largest(scores)\n    e ="), "s")
    cells.delete("h")
    said = cells.run("check(softmax_rows)")
    assert "--- Expected: each row of weights sums to 1." in said and "`largest` is defined in no cell any more" in said


def test_a_changed_definition_of_the_lessons_own_is_not_judged_and_told(cells, tmp_path):
    """Grading lays the course's cell there again: so does a check, and says why the learner's own version made no difference."""
    notebook = json.loads(json.dumps(open_course().pristine(LATER)))
    given = next(cell for cell in notebook["cells"] if "def softmax(" in "".join(cell["source"]))
    exercise = next(cell for cell in notebook["cells"] if cell["id"] == "exercise-scaled_dot_product_attention")
    changed = "".join(given["source"]).replace("exps / exps.sum(axis=-1, keepdims=True)", "exps / exps.sum()")
    answer = (
        "def scaled_dot_product_attention(q, k, v):\n"
        "    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))\n    return weights @ v, weights\n"
    )
    cells.run(changed, given["id"])
    cells.run(answer, exercise["id"])
    assert cells.run("check(scaled_dot_product_attention)").startswith("PASSED")
    answer = answer.replace("np.sqrt(q.shape[-1])", "q.shape[-1]")
    cells.run(answer, exercise["id"])
    told = cells.run("check(scaled_dot_product_attention)")
    assert "`softmax` was changed in a cell of the lesson's own" in told and "SD2" in told
    given["source"], exercise["source"] = changed, answer
    path = tmp_path / f"{LATER}.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    graded = {v.exercise: v for v in grade_submission(Settings(open_course()), path).lessons[0].verdicts}
    assert graded["scaled_dot_product_attention"].mistakes == ("SD2",)
    cells.run(
        "".join(given["source"]).replace("exps / exps.sum()", "exps / exps.sum(axis=-1, keepdims=True)"), given["id"]
    )
    assert "was changed" not in cells.run("check(scaled_dot_product_attention)")


def test_a_version_of_ones_own_in_a_cell_of_its_own_is_judged(cells):
    cells.run(course_cell(LATER, "def softmax("), "given-1")
    cells.run("def softmax(scores):\n    return np.exp(scores) / np.exp(scores).sum()", "mine")
    cells.run(
        "def scaled_dot_product_attention(q, k, v):\n    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))\n    return weights @ v, weights"
    )
    assert "PASSED" not in cells.run("check(scaled_dot_product_attention)")
