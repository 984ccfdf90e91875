"""A learner's notebook without its repository, as Colab opens it: it runs, is checked, keeps progress, and is graded.

Alone in an empty folder, renamed, without metadata and cell ids, in a host's own kernel beside the wheel's core.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from grader.course import course_folder, references
from grader.course.course import open_course
from grader.grading.grade import Settings, grade_submission
from grader.notebook import record
from tests.bare import environment
from tests.conftest import ROOT, WHOLE_GRID
from tests.shorter import with_fewer_steps
from tests.test_core import LESSONS, run

SOME = LESSONS if WHOLE_GRID else ["13_attention_backward"]  # test_core.py takes all of them to the wheel alone
ADDRESS = "https://github.com/someone/attention"


def stripped(lesson: str) -> dict:
    """The solved notebook of a learner after a service took away ids, metadata and nbformat's newest version."""
    cells = []
    whole = open_course().handout_notebook(lesson)["cells"]
    texts = [
        references.solution_text(open_course(), cell["metadata"]["grader"]["exercise"])
        if cell["metadata"]["grader"]["role"] == "exercise"
        else "".join(cell["source"])
        for cell in whole
    ]
    for cell, text in zip(whole, with_fewer_steps(lesson, texts)):
        kept = {"cell_type": cell["cell_type"], "metadata": {}, "source": text}
        cells.append(kept if cell["cell_type"] == "markdown" else {**kept, "outputs": [], "execution_count": None})
    return {"cells": cells, "metadata": {"colab": {"provenance": []}}, "nbformat": 4, "nbformat_minor": 0}


@pytest.fixture(scope="module")
def host(wheel, tmp_path_factory) -> Path:
    """The interpreter of a Python that has a kernel of its own, and of ours the core."""
    return environment(tmp_path_factory.mktemp("host") / "env", wheel, "ipykernel", "nbclient")


@pytest.mark.parametrize("lesson", SOME)
def test_a_notebook_alone_runs_is_checked_and_keeps_progress_beside_it(host, lesson, tmp_path):
    (tmp_path / ".attention-course").mkdir()  # another record above, which is not this notebook's
    place = tmp_path / "alone"
    place.mkdir()
    (place / f"Copy of {lesson}.ipynb").write_text(json.dumps(stripped(lesson)), encoding="utf-8")
    done = run(host, str(ROOT / "tests" / "run_notebook.py"), f"Copy of {lesson}.ipynb", "../out.ipynb", cwd=place)
    if lesson.startswith("08"):  # its last figure compares with autograd
        assert "No module named 'torch'" in done.stderr
    else:
        assert done.returncode == 0, done.stderr[-3000:]
        ran = json.loads((tmp_path / "out.ipynb").read_text(encoding="utf-8"))
        shown = "".join(
            "".join(output.get("data", {}).get("text/plain", ""))
            for cell in ran["cells"]
            for output in cell.get("outputs", ())
        )
        for name in open_course().exercises[lesson]:
            assert f"PASSED: {name}" in shown
    kept = json.loads((place / ".attention-course" / "progress.json").read_text(encoding="utf-8"))["exercises"]
    assert {name for name, about in kept.items() if about["passed"]} == set(open_course().exercises[lesson])
    assert sorted(path.name for path in place.iterdir()) == [".attention-course", f"Copy of {lesson}.ipynb"]
    assert not list((tmp_path / ".attention-course").iterdir())
    again = run(host, "-c", "from grader import progress; progress()", cwd=place)
    core = open_course().core_exercises()
    done = sum(name in core for name in open_course().exercises[lesson])
    assert f"passed: core {done} of {len(core)}, " in again.stdout, again.stderr


def test_what_a_service_has_stripped_is_graded_in_whole(tmp_path):
    """The line that fetches the grader was run, and stands as it ran."""
    lesson = "02_softmax"
    notebook = stripped(lesson)
    (install,) = [cell for cell in notebook["cells"] if cell["source"].startswith("# %pip")]
    install["source"] = install["source"].removeprefix("# ")
    path = tmp_path / f"Copy of {lesson}.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    report = grade_submission(Settings(open_course()), path)
    assert report.score == report.max_score > 0


# --- what its opening says -------------------------------------------------------------------


def before_the_first_code(lesson: str) -> list[str]:
    texts = []
    for cell in open_course().pristine(lesson)["cells"]:
        texts.append("".join(cell["source"]))
        if cell["metadata"]["grader"]["role"] == "given":
            return texts
    raise AssertionError(lesson)


@pytest.mark.parametrize("lesson", open_course().lessons())
def test_the_opening_says_in_one_commented_line_how_to_get_the_grader(lesson):
    *_, told, line, given = before_the_first_code(lesson)
    assert (
        "`#`" in told and "Colab" in told and len(told.split()) < 50 and "](" not in told
    )  # no badge without an address
    extra = "[torch]" if open_course().needs_torch(lesson) else ""
    assert line == f'# %pip install -q "attention-course{extra}"'
    assert "from grader import" in given


def test_badges_and_the_line_take_the_repository_s_address(monkeypatch):
    monkeypatch.setattr("grader.course.course_folder.address", lambda home: ADDRESS)
    lesson = "05_numpy_to_pytorch"
    *_, told, line, _ = before_the_first_code(lesson)
    assert line == f'# %pip install -q "attention-course[torch] @ git+{ADDRESS}"'
    links = re.findall(r"\]\((https://[^)]+)\)\]\((https://[^)]+)\)", told)
    assert [link for _, link in links] == [
        f"https://colab.research.google.com/github/someone/attention/blob/main/notebooks/{lesson}.ipynb",
        f"https://mybinder.org/v2/gh/someone/attention/HEAD?labpath=notebooks/{lesson}.ipynb",
    ]
    assert "![Open in Colab]" in told and "![Open in Binder]" in told
    monkeypatch.setattr("grader.course.course_folder.address", lambda home: "https://git.example.org/attention")
    *_, told, line, _ = before_the_first_code(lesson)
    assert (
        "](" not in told and "git+https://git.example.org/attention" in line
    )  # these services open GitHub's repositories


@pytest.mark.parametrize("checkout", [True, False])
def test_the_address_is_pyproject_s_or_the_installed_metadata_s(monkeypatch, tmp_path, checkout):
    if checkout:
        (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "x"\n[project.urls]\nRepository = "{ADDRESS}"\n')
    else:

        class Metadata:
            def get_all(self, key):
                return {"Project-URL": ["Documentation, https://example.org", f"Repository, {ADDRESS}"]}[key]

        monkeypatch.setattr(course_folder.metadata, "metadata", lambda name: Metadata())
    assert course_folder.address(tmp_path) == ADDRESS


def test_the_solved_notebook_needs_no_such_line():
    solved = json.loads(open_course().solution_path("00_start_here").read_text(encoding="utf-8"))
    assert not any(cell["id"] in ("install", "opened-alone") for cell in solved["cells"])


# --- where progress is kept ------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["Copy of 01_three_tokens.ipynb", "01_three_tokens (1).ipynb", "ada_01_three_tokens.ipynb"]
)
def test_a_renamed_lesson_has_its_record_beside_it(name, tmp_path, monkeypatch):
    monkeypatch.delenv(record.PROGRESS_ENV)
    (tmp_path / record.FOLDER).mkdir()
    (tmp_path / "01_three_tokens.ipynb").write_text("{}")
    place = tmp_path / "below"
    place.mkdir()
    assert record.default_path(place) == tmp_path / record.FOLDER / "progress.json"
    (place / name).write_text("{}")
    assert record.default_path(place) == place / record.FOLDER / "progress.json"


def test_in_colab_the_record_goes_to_the_drive_once_it_is_mounted(tmp_path, monkeypatch):
    monkeypatch.delenv(record.PROGRESS_ENV)
    drive, content = tmp_path / "drive" / "Colab Notebooks", tmp_path / "content"
    content.mkdir()
    monkeypatch.setattr(record, "COLAB_FOLDER", drive)
    assert record.default_path(content) == content / record.FOLDER / "progress.json"
    drive.mkdir(parents=True)
    assert record.default_path(content) == drive / record.FOLDER / "progress.json"
