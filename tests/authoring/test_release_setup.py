"""What is handed out is set up by its own lines: pip and uv install it, later ones over earlier ones, and it grades then."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

from grader.authoring.release import gradescope, handout
from grader.authoring.release.leaks import leaks
from grader.authoring.release.wheel import _files_of, build_wheel, needs_torch, wheel_of
from grader.course import index
from grader.course.course import Course
from tests.authoring.test_release import FIRST, NOT_ON_POSIX, assert_normalized, run, solved, without_course
from tests.bare import add_required
from tests.conftest import ROOT
from tests.mixing_course import COURSE

NUMPY = COURSE.lessons()[:3]


def program(place: Path, name: str) -> Path:
    """A command of an environment."""
    return place / ("Scripts" if os.name == "nt" else "bin") / (name + (".exe" if os.name == "nt" else ""))


def packages(place: Path) -> Path:
    return next(place.glob("lib/python*/site-packages"), place / "Lib" / "site-packages")


def written(place: Path, made: tuple[str, bytes]) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    (place / made[0]).write_bytes(made[1])
    return place / made[0]


def pip(place: Path, *arguments: object) -> None:
    """Offline; --quiet keeps what was installed already from being told."""
    command = [
        sys.executable,
        "-m",
        "pip",
        f"--python={program(place, 'python')}",
        "install",
        "--no-index",
        "--no-deps",
        "--no-compile",
        "--quiet",
        "--disable-pip-version-check",
        *map(str, arguments),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


def known(place: Path) -> list[str]:
    """The lessons that the environment's grader holds."""
    return sorted(path.parent.name[:2] for path in packages(place).glob("grader/_course/solutions/*/lesson.py"))


def requirements(wheel: bytes, tmp_path: Path) -> list[str]:
    path = written(tmp_path / "read", ("x.whl", wheel))
    with zipfile.ZipFile(path) as archive:
        (about,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        lines = archive.read(about).decode().splitlines()
    return [
        re.split(r"\W", line.removeprefix("Requires-Dist: "))[0]
        for line in lines
        if line.startswith("Requires-Dist") and "extra" not in line
    ]


# --- versions --------------------------------------------------------------------------------


def test_a_second_hand_out_is_installed_over_the_first_and_the_first_again(tmp_path):
    """By pip, into one environment, the smaller over the larger and the larger over the smaller; and what is installed says which it is."""
    place = tmp_path / "env"
    venv.create(place, with_pip=False)
    one, two = (written(tmp_path / "wheels", build_wheel(COURSE, chosen)) for chosen in (NUMPY[:1], NUMPY[:2]))
    for wheel, lessons in ((two, ["00", "01"]), (one, ["00"]), (two, ["00", "01"])):
        pip(place, wheel)
        assert known(place) == lessons
    add_required(place)
    version = two.name.split("-")[1]
    told = run(program(place, "grader"), "--version", cwd=tmp_path).stdout
    assert told == f"grader {version}, lessons 00, 01\n"
    doctor = run(program(place, "grader"), "doctor", cwd=tmp_path).stdout
    assert f"{version}, lessons 00, 01 with 7 exercises" in doctor


def test_the_version_changes_with_the_content_and_with_nothing_else(monkeypatch):
    made = {
        build_wheel(COURSE, NUMPY[:1])[0],
        build_wheel(COURSE, NUMPY[:2])[0],
        build_wheel(COURSE, NUMPY[:1], True)[0],
    }
    assert len({name.split("-")[1] for name in made}) == 3
    before = build_wheel(COURSE, NUMPY[:1])
    wheel_of.cache_clear()
    assert before == build_wheel(COURSE, NUMPY[:1])
    text = index.text(COURSE)
    monkeypatch.setattr(index, "text", lambda course: text + "\n")
    after = build_wheel(COURSE, NUMPY[:1])
    assert after[0] != before[0]


@NOT_ON_POSIX
def test_a_link_to_nothing_is_no_file_of_the_package(tmp_path):
    """Some editors leave one beside a file that is open."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "here.py").write_text("1")
    (tmp_path / "inner" / ".#here.py").symlink_to("someone@somewhere.4711")
    assert _files_of(tmp_path) == {"inner/here.py": b"1"}


# --- torch -----------------------------------------------------------------------------------


def assert_asks_for_torch(
    course: Course, lesson: str, wanted: bool, tmp_path: Path, libraries: str = "", *glossary: str
) -> None:
    """Or not, wherever it says what to install. libraries, glossary: what there is besides torch and the notebook.

    The lesson is handed out alone with its solutions: no leak, its own notebook, and a version that pip reads the same.
    """
    assert needs_torch(course, [lesson]) == wanted
    files = handout(course, [lesson])
    assert leaks(course, {name: data for name, data in files.items() if not name.endswith(".whl")}) == []
    (wheel,) = [name for name in files if name.endswith(".whl")]
    assert_normalized(wheel)
    asked = requirements(files[wheel], tmp_path)
    assert "numpy" in asked and "torch" not in asked and "jupyterlab" not in asked
    assert sorted(name for name in files if name.startswith("notebooks/")) == [f"notebooks/{lesson}.ipynb", *glossary]
    assert files["requirements.txt"].decode().endswith(".whl[lab,torch]\n" if wanted else ".whl[lab]\n")
    graded_with = f"ipywidgets torch{libraries}\n"
    for name in (".github/workflows/grade.yml", ".gitlab-ci.yml"):
        assert (f'"$GRADER" {graded_with}' in files[name].decode()) == wanted
    with zipfile.ZipFile(io.BytesIO(gradescope(course, [lesson]))) as bundle:
        assert (f"*.whl {graded_with}" in bundle.read("setup.sh").decode()) == wanted
    page, conda = files["README.md"].decode(), files["environment.yml"].decode()
    assert ("--torch-backend auto" in page) == ("--torch-backend auto" in conda) == wanted
    pip_lines = yaml.safe_load(conda)["dependencies"][-1]["pip"]
    assert pip_lines == (["-c constraints.txt", "uv"] if wanted else ["-r requirements.txt"])
    assert ("pip install -r requirements.txt" in page) == (not wanted)


@pytest.mark.parametrize("lesson", ("00_lookup", "03_torch"))
def test_only_lessons_that_import_torch_ask_for_it(lesson, tmp_path):
    assert_asks_for_torch(COURSE, lesson, lesson == "03_torch", tmp_path)


def test_no_script_installs_torch_in_another_way_than_as_the_cpu_build():
    for lessons in (NUMPY, COURSE.lessons()):
        files = handout(COURSE, lessons)
        texts = [data.decode() for name, data in files.items() if name.endswith((".md", ".yml", ".txt"))]
        texts.append((ROOT / "grader/authoring/release/files/setup.sh").read_text().replace("<< libraries >>", ""))
        for text in texts:
            for line in re.findall(r".*\bpip install\b.*", text):
                constrained = (
                    "requirements.txt" in line or re.search(r"(?:-c|--constraint) ", line) or "--no-deps" in line
                )
                assert constrained, line
                takes_all = re.search(r'requirements\.txt|\.whl\b|"\$GRADER"', line) and "--no-deps" not in line
                if takes_all and lessons != NUMPY:
                    assert "uv pip install" in line and "--torch-backend" in line, line


# --- it is set up ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def autograder(tmp_path_factory) -> Path:
    """Gradescope's folder after setup.sh, for lessons in NumPy: from the registry, and so without torch."""
    root = tmp_path_factory.mktemp("autograder")
    bundle = written(root, ("bundle.zip", gradescope(COURSE, NUMPY[:2])))
    (root / "source").mkdir()
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(root / "source")
    done = subprocess.run(
        ["bash", str(root / "source" / "setup.sh")],
        capture_output=True,
        text=True,
        timeout=560,
        env=without_course() | {"AUTOGRADER_ROOT": str(root)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "lessons 00, 01" in done.stdout
    return root


@NOT_ON_POSIX
@pytest.mark.timeout(600)
def test_the_bundle_sets_itself_up_and_grades_without_torch(autograder, tmp_path):
    installed = {
        path.name.split("-")[0].lower(): path.name for path in packages(autograder / "grader").glob("*.dist-info")
    }
    assert "torch" not in installed
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    for name in ("numpy", "uv", "safetensors", "ipywidgets"):
        assert installed[name] == f"{name}-{pins[name]}.dist-info"
    assert "jupyterlab" not in installed
    lesson = autograder / "submission" / f"{NUMPY[0]}.ipynb"
    lesson.parent.mkdir()
    lesson.write_text(json.dumps(COURSE.pristine(NUMPY[0])), encoding="utf-8")
    solved(lesson)
    notebook = json.loads(lesson.read_text())
    notebook["cells"].append(
        {
            "cell_type": "code",
            "id": "mine",
            "metadata": {},
            "source": "import torch",
            "outputs": [],
            "execution_count": None,
        }
    )  # what is not there costs that cell alone
    lesson.write_text(json.dumps(notebook))
    done = run("bash", autograder / "source" / "run_autograder", env={"AUTOGRADER_ROOT": str(autograder)})
    assert done.returncode == 0, done.stderr
    results = json.loads((autograder / "results" / "results.json").read_text())
    whole = sum(one.points for name in NUMPY[:2] for one in COURSE.lesson(name).exercises)
    assert results["score"] == FIRST and sum(test["max_score"] for test in results["tests"]) == whole
    doctor = run(program(autograder / "grader", "grader"), "doctor", cwd=tmp_path)
    assert doctor.returncode == 0 and "torch: not installed, and not needed for these lessons" in doctor.stdout, (
        doctor.stdout
    )


@NOT_ON_POSIX
@pytest.mark.timeout(600)
def test_the_workflow_s_own_lines_install_the_grader_at_the_tested_versions(tmp_path):
    files = handout(COURSE, NUMPY[:1])
    wheel = next(
        written(tmp_path / "trusted", (Path(name).name, data)) for name, data in files.items() if name.endswith(".whl")
    )
    (job,) = yaml.safe_load(files[".github/workflows/grade.yml"])["jobs"].values()
    (script,) = [step["run"] for step in job["steps"] if "trusted" in step.get("name", "")]
    environment = without_course() | {
        "RUNNER_TEMP": str(tmp_path),
        "GRADER": str(wheel),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        timeout=560,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    installed = {path.name for path in packages(tmp_path / "grader").glob("*.dist-info")}
    pins = [line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line]
    assert {f"numpy-{version}.dist-info" for name, version in pins if name == "numpy"} <= installed
    assert run(program(tmp_path / "grader", "grader"), "--version").stdout.endswith("lessons 00\n")
