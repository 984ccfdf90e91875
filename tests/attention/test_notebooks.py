"""The notebooks as they lie in the repository: solved ones show everything, untouched ones raise nothing."""

from __future__ import annotations

import gc
import json
import os
import warnings
from collections.abc import Iterator

import pytest

from grader.authoring.build import torch_version
from grader.authoring.notebook_run import CELL_TIMEOUT_S, NotebookRun
from grader.course.course import open_course
from grader.submission import ipynb
from grader.submission.plan import Pristine
from tests.conftest import ROOT, WHOLE_GRID
from tests.shorter import with_fewer_steps

NAMES = open_course().lessons()

# In these kernels perf_counter() counts their own processor time, so many times over: what else runs here makes no difference. 12 trains
# for a minute and says that a slow machine learns less in it: its kernel is on one eight times as slow. 13 and 15 compare times.
CLOCKS = {"10_language_model": 8, "11_gpu": 1, "16_decoding": 1}
CLOCK = """
import time

def perf_counter(used=time.process_time):
    return {} * used()

time.perf_counter = perf_counter
"""


def stored(name: str) -> dict:
    return json.loads(open_course().solution_path(name).read_text(encoding="utf-8"))


def code_cells(notebook: dict, *roles: str) -> list[dict]:
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [cell for cell in cells if not roles or cell["metadata"]["grader"]["role"] in roles]


def shown(cell_or_outputs) -> str:
    """All that a cell's outputs say as plain text."""
    outputs = cell_or_outputs["outputs"] if isinstance(cell_or_outputs, dict) else cell_or_outputs
    parts = [output.get("text") or output.get("data", {}).get("text/plain") or [] for output in outputs]
    return "\n".join("".join(part) for part in parts)


@pytest.mark.parametrize("name", NAMES)
def test_a_solution_stores_what_it_shows(name):
    """nbval passes whatever has no stored output, so the outputs themselves are asked for."""
    notebook = stored(name)
    checks, payoffs = code_cells(notebook, "check"), code_cells(notebook, "payoff")
    assert len(checks) == len(open_course().exercises[name])
    assert all("PASSED" in shown(cell) for cell in checks), [shown(cell)[:80] for cell in checks]
    opened = {cell["metadata"]["grader"]["exercise"] for cell in payoffs}
    assert opened == {cell["metadata"]["grader"]["exercise"] for cell in payoffs if shown(cell).strip()}, (
        "some exercise opens nothing"
    )
    assert opened
    compared = [cell for cell in code_cells(notebook) if "nbval-check-output" in cell["metadata"].get("tags", ())]
    assert compared, "no cell's numbers are compared: tag those that are the lesson with nbval-check-output"
    assert all(shown(cell).strip() for cell in compared)


@pytest.mark.parametrize("name", NAMES)
def test_no_stub_is_an_attempt_and_every_solution_is(name):
    course = open_course()
    pristine = Pristine(name, course.exercises[name], tuple(ipynb.code_cells(course.pristine(name))))
    for path, attempts in ((course.notebook_path(name), 0), (course.solution_path(name), len(course.exercises[name]))):
        assert pristine.attempts(ipynb.read_notebook(path)) == attempts, path


@pytest.mark.parametrize("name", NAMES)
def test_a_solution_names_no_place_on_the_machine_that_built_it(name):
    text = json.dumps([cell["outputs"] for cell in code_cells(stored(name))])
    for place in (str(ROOT), os.path.expanduser("~"), "/tmp/", "ipykernel_"):
        assert place not in text


@pytest.mark.parametrize("name", NAMES)
def test_figures_have_alternative_text(name):
    for cell in code_cells(stored(name)):
        for output in cell["outputs"]:
            data = output.get("data", {})
            assert "image/png" not in data, f"{cell['id']} shows a picture without words: use figures.show(fig, alt=…)"
            page = "".join(data.get("text/html", ""))
            assert page.count("<img") == page.count('<img alt="')


class Reports:
    """A plugin: of every cell that nbval has run, the report."""

    def __init__(self) -> None:
        self.cells: list[pytest.TestReport] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            self.cells.append(report)


def changed_since_run() -> list[str]:
    """The lessons whose stored run is of another torch, and the first. Whose files have changed since, `grader build --check` tells."""
    return [
        name for name in NAMES if name == NAMES[0] or stored(name)["metadata"]["grader"].get("torch") != torch_version()
    ]


@pytest.mark.timeout(420)
@pytest.mark.parametrize("name", NAMES if WHOLE_GRID else changed_since_run())
def test_nbval_runs_a_solution_and_compares_its_numbers(name, monkeypatch, tmp_path):
    """By a pytest inside of this one: nbval collects notebooks, our other tests are none. To start one anew costs 3 s a lesson."""
    for key in [key for key in os.environ if key.startswith("PYTEST_")]:
        monkeypatch.delenv(key)  # meant for the surrounding one
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    if name in CLOCKS:
        monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
        startup = tmp_path / "profile_default" / "startup" / "clock.py"
        startup.parent.mkdir(parents=True)
        startup.write_text(CLOCK.format(CLOCKS[name]), encoding="utf-8")
    ran = Reports()
    options = ["-q", "-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider", "-p", "no:faulthandler"]
    nbval = ["-p", "nbval.plugin", "--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout", "180"]
    code = pytest.main([*options, *nbval, str(open_course().solution_path(name))], plugins=[ran])
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()  # nbval closes no kernel's output; a later test that lets nothing warn would be blamed for it
    assert code == 0, "\n".join(report.longreprtext[-4000:] for report in ran.cells if not report.passed)
    assert [report.outcome for report in ran.cells] == ["passed"] * len(code_cells(stored(name)))


@pytest.fixture(scope="module")
def kernel() -> Iterator[NotebookRun]:
    """One for all untouched notebooks. What they hold beside their stubs, nbval runs in a kernel of its own, which costs three
    seconds of imports a lesson."""
    with NotebookRun(open_course()) as started:
        yield started


@pytest.mark.parametrize("name", NAMES)
def test_an_untouched_notebook_runs_to_its_end_and_says_not_started(name, kernel):
    notebook = json.loads(open_course().notebook_path(name).read_text(encoding="utf-8"))
    kernel.run("get_ipython().reset()", CELL_TIMEOUT_S)  # of names and of cells that ran, which a check reads
    cells = code_cells(notebook)
    for cell, text in zip(cells, with_fewer_steps(name, ["".join(cell["source"]) for cell in cells])):
        count, said = kernel.run(text, CELL_TIMEOUT_S)
        assert count and not [output for output in said if output["output_type"] == "error"], f"{cell['id']}: {said}"
        if cell["metadata"]["grader"]["role"] == "check":
            assert "not started" in shown(said).lower(), shown(said)[:300]
