"""The core alone: in a fresh environment, without torch, processes and threads, the lessons in NumPy are worked through.

The environment holds the built wheel and what a browser's Python would install with it, and nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from grader.course.course import open_course
from grader.notebook import cell_output, shell
from grader.util import libraries
from tests.bare import closure, environment
from tests.conftest import ROOT, WHOLE_GRID

LESSONS = [name for name in open_course().lessons() if not open_course().needs_torch(name)]
HEAVY = {
    "torch",
    "jupyterlab",
    "ipykernel",
    "ipython",
    "ipywidgets",
    "jupyter-client",
    "jupyter-server",
    "jupytext",
    "distributed",
    "tokenizers",
}
REPEATS = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


def run(python: Path, *arguments: str, cwd: Path, timeout: float = 280) -> subprocess.CompletedProcess:
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "ATTENTION_COURSE", "JUPYTER", "IPYTHON"))
    }
    return subprocess.run(
        [python, *arguments], capture_output=True, text=True, timeout=timeout, cwd=cwd, env={**kept, **REPEATS}
    )


@pytest.fixture(scope="module")
def browser(wheel, tmp_path_factory) -> Path:
    """The interpreter of an environment as a browser would set it up."""
    return environment(tmp_path_factory.mktemp("browser") / "env", wheel, platform="emscripten")


@pytest.fixture(scope="module")
def seen(browser, tmp_path_factory) -> dict:
    """What happens in it: in_a_browser.py says what was tried."""
    done = run(
        browser,
        str(ROOT / "tests" / "in_a_browser.py"),
        "1000" if WHOLE_GRID else "2",
        *LESSONS,
        cwd=tmp_path_factory.mktemp("learner"),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


# --- what is installed -----------------------------------------------------------------------


def test_the_core_asks_for_nothing_that_a_hosted_notebook_has_of_its_own():
    core = closure(line for line in requires("attention-course") if "extra ==" not in line)
    assert not core & HEAVY
    assert {"numpy", "matplotlib", "nbformat", "pygments", "psutil", "safetensors"} <= core


# What hosted notebooks had at the end of 2025, IPython 7.34 among it: the wheel's core went beside these and every cell of lesson 02 ran.
COLAB_FOLDER = {
    "numpy": "2.0.2",
    "matplotlib": "3.10.0",
    "nbformat": "5.10.4",
    "jinja2": "3.1.6",
    "pygments": "2.19.2",
    "psutil": "5.9.5",
    "safetensors": "0.6.2",
    "packaging": "25.0",
}


def test_the_core_leaves_a_hosted_notebook_s_libraries_as_they_are():
    """pip replaces what is too old."""
    asked = [Requirement(line) for line in requires("attention-course") if "extra ==" not in line]
    assert {one.name for one in asked} == set(COLAB_FOLDER)
    assert all(one.specifier.contains(COLAB_FOLDER[one.name]) for one in asked)


def test_the_page_on_setting_up_says_which_lessons_the_core_judges():
    assert [name[:2] for name in LESSONS] == ["00", "01", "02", "03", "04", "13"]
    assert "It judges lessons 00 to 04 and 13" in (ROOT / "docs" / "setup.md").read_text(encoding="utf-8")


def test_a_browser_is_asked_for_nothing_that_needs_processes(browser, seen):
    packages = {path.name.partition("-")[0].lower() for path in browser.parent.parent.rglob("*.dist-info")}
    assert {"numpy", "matplotlib", "attention_course"} <= packages
    assert not packages & {"psutil", "safetensors", "torch", "ipython", "ipykernel", "jupyterlab"}
    assert Path(seen["grader"]).is_relative_to(browser.parent.parent)


def test_all_that_make_lab_installed_before_the_split_is_in_its_extras():
    """Which are those that make installs: see test_setups.py."""
    asked = [Requirement(line) for line in requires("attention-course")]
    mine = {
        one.name
        for one in asked
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", "lab", "torch"))
    }
    assert mine >= {
        "ipykernel",
        "ipywidgets",
        "jinja2",
        "jupyter-client",
        "jupyterlab",
        "jupytext",
        "matplotlib",
        "nbformat",
        "numpy",
        "psutil",
        "pygments",
        "safetensors",
        "torch",
    }


# --- what works ------------------------------------------------------------------------------


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_cell_runs_and_every_reference_passes(seen, lesson):
    assert seen["solved"][lesson] == dict.fromkeys(open_course().exercises[lesson], "passed")
    assert seen["without torch"][lesson] == []


@pytest.mark.parametrize("lesson", LESSONS)
def test_mistakes_are_rejected_and_named(seen, lesson):
    assert seen["mistaken"][lesson] == {name: [] for name in open_course().exercises[lesson]}


@pytest.mark.parametrize("lesson", LESSONS)
def test_hints_solutions_replays_resets_and_explanations_are_given(seen, lesson):
    for name, said in seen["asked"][lesson].items():
        assert all(said)
        first, _, third, solution, *_ = said
        assert (
            first.startswith(f"Hint 1 of 3 for {name}")
            and "____" in third
            and f"The course's solution of {name}" in solution
        )


def test_nothing_asked_for_torch_or_for_a_process(seen):
    assert set(seen["tried"]) <= {"IPython", "fcntl", "resource"}  # which it does without, and asks for
    assert seen["loaded"] == []


def test_what_is_said_of_lessons_with_torch_needs_none(seen):
    assert seen["explained"].startswith("HL2: On a tie")
    mask, catalogue, hint = seen["of torch"]
    assert "Right\n    scores = scores.masked_fill(~mask, -torch.inf)" in mask
    assert "12 · " in catalogue and hint.startswith("Hint 1 of 3 for masked_attention")
    core = open_course().core_exercises()
    done = sum(name in core for lesson in LESSONS for name in open_course().exercises[lesson])
    assert seen["progress"].startswith(f"passed: core {done} of {len(core)}") and "?" not in seen["progress"]


# --- what does not, in a sentence -------------------------------------------------------------


def test_an_exercise_in_torch_says_that_torch_is_missing(seen):
    told = " ".join(seen["torch"].split())
    assert "COULD NOT BE GRADED: masked_attention" in told
    assert (
        "torch is not installed in this Python; `python -m pip install 'attention-course[torch]'` installs it."
        in told.replace("'attention- course", "'attention-course")
    )


def test_the_commands_answer_or_say_what_they_lack(seen):
    assert seen["commands"] == {"progress": 0, "explain HL2": 0, "doctor": 0, "grade .": 3}
    assert (
        seen["complaints"]
        == "grader: psutil is not installed in this Python; `python -m pip install 'psutil'` installs it.\n"
    )


@pytest.mark.parametrize(
    "module, extra",
    [
        ("torch", "torch"),
        ("jupyter_client", "lab"),
        ("IPython", "lab"),
        ("distributed", "dask"),
        ("gguf", "model"),
        ("triton", "kernel"),
    ],
)
def test_a_missing_library_is_told_with_the_extra_that_brings_it(module, extra, monkeypatch):
    monkeypatch.setattr(libraries, "installed", lambda name: False)
    lost = ModuleNotFoundError(f"No module named '{module}.inner'", name=f"{module}.inner")
    assert (
        libraries.explain_error(lost)
        == f"{module} is not installed in this Python; `python -m pip install 'attention-course[{extra}]'` installs it."
    )
    assert (
        any(
            Requirement(line).name.startswith(module.lower().split("_")[0])
            and f"extra == '{extra}'" in line.replace('"', "'")
            for line in requires("attention-course")
        )
        or module == "IPython"
    )


def test_another_error_is_not_taken_for_a_missing_library():
    assert libraries.explain_error(ModuleNotFoundError("x", name="my_helpers")) is None
    assert (
        libraries.explain_error(ImportError("cannot import name 'x' from 'numpy'", name="numpy")) is None
    )  # it is there, and broken
    assert libraries.explain_error(ValueError("torch")) is None


def test_lessons_in_torch_cost_nobody_points_where_torch_is_missing(wheel, tmp_path):
    """Who grades with the core alone learns what to install; no learner gets a zero."""
    python = environment(tmp_path / "env", wheel)
    (tmp_path / "ada").mkdir()
    for lesson in ("01_three_tokens", "05_numpy_to_pytorch"):
        (tmp_path / "ada" / f"{lesson}.ipynb").write_bytes(open_course().solution_path(lesson).read_bytes())
    done = run(python, "-m", "grader", "grade", "ada", "--lessons", "01,05", "--json", "-", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    first, second = json.loads(done.stdout)["submissions"][0]["lessons"]
    assert first["score"] == first["max_score"] > 0
    assert {one["status"] for one in second["exercises"]} == {"could_not_grade"}
    assert all("'attention-course[torch]'" in one["message"] for one in second["exercises"])
    doctor = run(python, "-m", "grader", "doctor", cwd=tmp_path)
    assert doctor.returncode == 0, doctor.stdout
    assert (
        "note     torch: not installed; lessons 05, 06, 07, 08" in doctor.stdout
        and "attention-course[lab]" in doctor.stdout
    )
    built = run(python, "-m", "grader", "build", "00", cwd=tmp_path)
    assert (
        built.returncode == 3
        and "jupyter_client is not installed" in built.stderr
        and "mistake in the grader" not in built.stderr
    )


def test_a_kernel_without_threads_checks_all_the_same(monkeypatch):
    def refused(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    monkeypatch.setattr(cell_output, "ipython", lambda: type("Shell", (), {"kernel": None})())
    with cell_output.running_sign("check(softmax)"):
        ran = True
    assert ran


def test_the_magic_answers_without_processes(monkeypatch, capsys):
    def refused(*_, **__):
        raise OSError(138, "emscripten does not support processes.")

    monkeypatch.setattr(shell.subprocess, "Popen", refused)
    shell._grader("explain HL2")
    assert capsys.readouterr().out.startswith("HL2: On a tie")
