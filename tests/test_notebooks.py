"""The notebooks as they lie in the repository: solved ones show everything, untouched ones raise nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from grader.authoring.execute import run
from grader.course import registry
from tests.conftest import ROOT

NAMES = registry.lessons()


def stored(name: str) -> dict:
    return json.loads(registry.solution_path(name).read_text(encoding="utf-8"))


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
    assert len(checks) == len(registry.CONTRACT[name])
    assert all("PASSED" in shown(cell) for cell in checks), [shown(cell)[:80] for cell in checks]
    opened = {cell["metadata"]["grader"]["exercise"] for cell in payoffs}
    assert opened == {cell["metadata"]["grader"]["exercise"] for cell in payoffs if shown(cell).strip()}, "some exercise opens nothing"
    assert opened
    compared = [cell for cell in code_cells(notebook) if "nbval-check-output" in cell["metadata"].get("tags", ())]
    assert compared, "no cell's numbers are compared: tag those that are the lesson with nbval-check-output"
    assert all(shown(cell).strip() for cell in compared)


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


@pytest.mark.timeout(420)
@pytest.mark.parametrize("name", NAMES)
def test_nbval_runs_a_solution_and_compares_its_numbers(name):
    """In a pytest of its own: nbval collects notebooks, our other tests are none."""
    command = [sys.executable, "-m", "pytest", "-p", "nbval", "--nbval-lax", "--nbval-current-env",
               "--nbval-cell-timeout", "180", "-p", "no:xdist", "-p", "no:playwright", "-q", str(registry.solution_path(name))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=clean_environment(), timeout=400)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    count = len(code_cells(stored(name)))
    assert f"{count} passed" in done.stdout.splitlines()[-1], done.stdout[-500:]


def clean_environment() -> dict[str, str]:
    """Ours without what a surrounding pytest passes on to the pytest that we start."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}


@pytest.mark.parametrize("name", NAMES)
def test_an_untouched_notebook_runs_to_its_end_and_says_not_started(name):
    notebook = json.loads(registry.notebook_path(name).read_text(encoding="utf-8"))
    outputs = run(notebook)
    for cell, (count, said) in zip(notebook["cells"], outputs, strict=True):
        if cell["cell_type"] != "code":
            continue
        errors = [output for output in said if output["output_type"] == "error"]
        assert count and not errors, f"{cell['id']}: {errors or 'did not run'}"
        if cell["metadata"]["grader"]["role"] == "check":
            assert "not started" in shown(said).lower(), shown(said)[:300]
