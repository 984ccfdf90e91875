"""The package as a whole: imports point one way, installs work, the wheel grades alone, nothing loads too early."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from grader.course import references
from grader.course.course import GLOSSARY, open_course
from tests import own_course
from tests.bare import beside, beside_ours, closure
from tests.conftest import ROOT

COURSE = open_course()


def python(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_check_loads_neither_torch_nor_a_lesson():
    loaded = python("import sys; from grader import check; print(*sorted(sys.modules))").split()
    for name in ("torch", "matplotlib", "pygments", "jupytext", "nbformat", "course_0.05_numpy_to_pytorch"):
        assert name not in loaded


def test_checking_a_numpy_lesson_loads_no_torch():
    program = "import sys; from grader import check; check('hard_lookup', lambda *_: 0); print('torch' in sys.modules)"
    assert python(program).endswith("False")


def test_the_worker_s_modules_hold_no_answers():
    loaded = python("import sys, grader.worker.main; print(*sorted(n for n in sys.modules if n.startswith('grader')))")
    assert all(name == "grader" or name.startswith("grader.worker") for name in loaded.split())


def test_constraints_pin_every_requirement():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + [text for group in project["optional-dependencies"].values() for text in group]
    names = {re.split(r"[<>=!~\[; ]", text)[0].lower() for text in wanted} - {project["name"]}
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][\w.]*", line) for line in lines)
    assert names <= {line.partition("==")[0] for line in lines}


def test_the_wheel_carries_the_course(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert [name for name in names if name.endswith(".data/data/etc/ipython/startup/50-attention-course.py")]
    for lesson in COURSE.lessons():
        for path in (COURSE.source_path(lesson), COURSE.notebook_path(lesson), COURSE.solution_path(lesson)):
            assert f"grader/_course/{path.relative_to(ROOT).as_posix()}" in names
        for exercise in COURSE.exercises[lesson]:
            assert f"grader/_course/solutions/{lesson}/exercises/{exercise}.py" in names
    assert f"grader/_course/notebooks/{GLOSSARY}" in names
    for path in (ROOT / "grader" / "authoring" / "release" / "files").iterdir():
        assert f"grader/authoring/release/files/{path.name}" in names
    for name in ("constraints.txt", "pyproject.toml", "README.md", "LICENSE"):  # of which a hand-out's wheel is built
        assert zipfile.ZipFile(wheel).read(f"grader/_course/{name}") == (ROOT / name).read_bytes()
    assert not [name for name in names if name.startswith(("tests/", "notebooks/")) or "checkpoint" in name]
    assert [name for name in names if name.endswith("licenses/LICENSE")]


@pytest.fixture(scope="module")
def alone(wheel, tmp_path_factory) -> Path:
    """The command `grader` where only the wheel is installed, beside the libraries of this environment."""
    return installed(wheel, tmp_path_factory.mktemp("alone"))


def installed(wheel: Path, place: Path) -> Path:
    """The command `grader` of a fresh environment that has this wheel and the libraries of ours."""
    executable = beside_ours(place, wheel)
    return executable.with_name("grader" + executable.suffix)


def run(command: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run([command, *arguments], capture_output=True, text=True, timeout=240, cwd=cwd, env=environment)


def test_the_wheel_alone_grades_a_folder_of_notebooks(alone, tmp_path):
    where = subprocess.run(
        [alone.with_name("python" + alone.suffix), "-c", "import grader; print(grader.__file__)"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert str(alone.parent.parent) in where.stdout
    laid = run(alone, "reset", "00", "--folder", str(tmp_path), cwd=tmp_path)
    assert laid.returncode == 0, laid.stderr
    (tmp_path / "ada").mkdir()
    notebook = json.loads((tmp_path / "00_start_here.ipynb").read_text())
    for cell in notebook["cells"]:
        if cell["id"].startswith("exercise-"):
            cell["source"] = references.solution_text(COURSE, cell["id"].removeprefix("exercise-"))
    (tmp_path / "ada" / "00_start_here.ipynb").write_text(json.dumps(notebook))
    done = run(alone, "grade", "ada", "--json", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)["submissions"]
    assert one["name"] == "ada" and one["score"] == one["max_score"] > 0


def test_the_wheel_alone_releases_a_hand_out_with_constraints(alone, tmp_path):
    """The same, to the byte, as a checkout does."""
    done = run(alone, "release", "out", "--lessons", "00,05", "--gradescope", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = {
        path.relative_to(tmp_path / "out").as_posix(): path.read_bytes()
        for path in (tmp_path / "out").rglob("*.*")
        if path.is_file()
    }
    assert made["constraints.txt"] == (ROOT / "constraints.txt").read_bytes()
    assert made["requirements.txt"].startswith(b"-c constraints.txt\n")
    here = run(
        Path(sys.executable).with_name("grader" + alone.suffix), "release", "here", "--lessons", "00,05", cwd=tmp_path
    )
    assert here.returncode == 0, here.stderr
    assert made == {
        path.relative_to(tmp_path / "here").as_posix(): path.read_bytes()
        for path in (tmp_path / "here").rglob("*.*")
        if path.is_file()
    }


def test_contributing_s_shortest_way_to_a_course_of_one_s_own(alone, tmp_path):
    """Written, built, audited, graded and released as the text says, with the wheel alone; the hand-out then judges by itself."""
    mine = own_course.written(tmp_path)
    build, audit, grade, release = own_course.commands()
    done = run(alone, *build, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.relative_to(mine).as_posix() for path in mine.rglob("90_*.*")} == {
        "solutions/90_center.ipynb",
        "notebooks/90_center.ipynb",
        "docs/teaching/90_center.md",
    }
    assert "PASSED: center_rows" in (mine / "solutions" / "90_center.ipynb").read_text(encoding="utf-8")
    assert run(alone, *build, "--check", cwd=tmp_path).returncode == 0
    done = run(alone, *audit, cwd=tmp_path)
    assert done.returncode == 0 and "Every rule is kept." in done.stdout, done.stdout + done.stderr
    handed_in = own_course.hand_in(mine, tmp_path / grade[1], own_course.RIGHT)
    done = run(alone, *grade, cwd=tmp_path)
    assert done.returncode == 0 and "2 of 2 points" in done.stdout, done.stdout + done.stderr
    own_course.hand_in(mine, handed_in, own_course.WRONG)
    done = run(alone, *grade, cwd=tmp_path)
    assert done.returncode == 1 and "CR1: Each column was centered; rows were asked for." in done.stdout, (
        done.stdout + done.stderr
    )
    done = run(alone, *release, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    handout = tmp_path / release[1]
    for path in [path for form in ("*.md", "*.yml") for path in handout.rglob(form)]:
        said = re.sub("attention[-_]course", "", path.read_text(encoding="utf-8"))
        assert "attention" not in said.lower() and "glossary" not in said, path
    theirs = installed(next(handout.glob("wheels/*.whl")), tmp_path / "theirs")
    done = run(theirs, "grade", str(handed_in), cwd=handout)
    assert done.returncode == 1 and "CR1" in done.stdout, done.stdout + done.stderr
    program = "from grader import check; print(check('center_rows', lambda x: x - x.mean()))"
    checked = run(theirs.with_name("python" + theirs.suffix), "-c", program, cwd=handout / "notebooks")
    assert "CR2" in checked.stdout, checked.stdout + checked.stderr


def test_the_pip_section_of_environment_yml_installs_in_a_fresh_environment(tmp_path):
    """Beside the libraries that the extras ask for and no others, torch too, it takes a notebook's first line and `grader doctor`.

    That pip finds them all at these versions, make shows, which has it install the same two lines whenever they change; that uv does,
    without what is installed and with a build of its own, test_setups.py.
    """
    lines = (ROOT / "environment.yml").read_text().partition("- pip:\n")[2].splitlines()
    requirements = [line.strip().removeprefix("- ") for line in lines if line.strip()]
    assert requirements == ["-c constraints.txt", "-e .[lab,torch]"]
    assert re.search(r'^\t\$\(PIP\) -e "\.\[lab,torch\]"$', (ROOT / "Makefile").read_text(), re.MULTILINE)
    executable = beside(tmp_path / "fresh", closure(["attention-course[lab,torch]"]) - {"attention-course"})
    text = "\n".join(requirements).replace("constraints.txt", str(ROOT / "constraints.txt"))
    (tmp_path / "requirements.txt").write_text(text)
    options = ["--quiet", "--no-compile", "--no-deps", "--no-build-isolation", "-r", str(tmp_path / "requirements.txt")]
    command = [sys.executable, "-m", "pip", f"--python={executable}", "install", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    doctor = run(executable.with_name("grader" + executable.suffix), "doctor", cwd=tmp_path)
    assert doctor.returncode == 0, doctor.stdout
    program = "from grader import check; check('hard_lookup', lambda *_: 0)"
    checked = run(executable, "-c", program, cwd=tmp_path)
    assert "hard_lookup" in checked.stdout, checked.stderr
