"""`grader release`: what is handed out works by itself, gives no solution away, and overwrites nothing."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

from grader.authoring import release as releasing
from grader.authoring.release import gradescope, handout, release
from grader.authoring.release.leaks import all_secrets, leaks, secrets_of
from grader.authoring.release.wheel import wheel_of
from grader.cli import main
from grader.course import references
from grader.course.course import COURSE_ENV, Course, open_course
from grader.grading.grade import Settings, grade_submission
from grader.sandbox.sandbox import Sandbox
from grader.util.errors import InputError
from tests import small_lesson as small, toy_course as toy
from tests.bare import environment
from tests.conftest import ROOT
from tests.mixing_course import COURSE, with_notebooks

ALL = COURSE.lessons()
CHOSEN = ("00_lookup", "01_mixing")
FIRST = sum(exercise.points for exercise in COURSE.lesson(CHOSEN[0]).exercises)  # a solved first lesson
NOT_ON_POSIX = pytest.mark.skipif(os.name == "nt", reason="the autograder's scripts are for bash")


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    """The hand-out of two lessons, and the Gradescope bundle beside it."""
    place = tmp_path_factory.mktemp("release") / "course"
    release(COURSE, place, CHOSEN, gradescope_bundle=True)
    return place


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    """The hand-out of the same lessons without anything that holds references."""
    place = tmp_path_factory.mktemp("bare") / "course"
    release(COURSE, place, CHOSEN, without_solutions=True)
    return place


def without_course() -> dict[str, str]:
    """The environment variables, less those that name a folder to import from or a course: a hand-out has its own."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", COURSE_ENV)}


def run(*command: object, **settings) -> subprocess.CompletedProcess:
    """Outside of this checkout and of its courses."""
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=240,
        env={**without_course(), **settings.pop("env", {})},
        **settings,
    )


def solved(path: Path) -> None:
    """Writes the right answers into a copy of lesson 00's notebook."""
    answers = {name: references.solution_text(COURSE, name) for name in COURSE.exercises[CHOSEN[0]]}
    toy.write(path, toy.fill(json.loads(path.read_text(encoding="utf-8")), answers))


@pytest.fixture(scope="module")
def from_release(released, tmp_path_factory) -> Path:
    """The command `grader` of the wheel that is handed out, beside what it requires: neither torch nor JupyterLab."""
    return environment(tmp_path_factory.mktemp("env"), next(released.glob("wheels/*.whl"))).with_name("grader")


# --- what is in it ---------------------------------------------------------------------------


def assert_holds_what_a_learner_needs(course: Course, lessons: Sequence[str], released: Path) -> None:
    """The notebooks of the lessons, and beside them pages whose links lead somewhere."""
    files = sorted(path.relative_to(released).as_posix() for path in released.rglob("*") if path.is_file())
    assert [name for name in files if name.endswith(".ipynb")] == [f"notebooks/{name}.ipynb" for name in lessons]
    assert {
        "README.md",
        "environment.yml",
        "requirements.txt",
        ".gitignore",
        ".github/workflows/grade.yml",
        ".gitlab-ci.yml",
        "AGENTS.md",
    } <= set(files)
    for name in lessons:
        assert json.loads(
            (released / f"notebooks/{name}.ipynb").read_text(encoding="utf-8")
        ) == course.handout_notebook(name, lessons)
    page = (released / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]*)\)", page):
        assert (released / target).is_file(), target
    assert "<" not in page and len(page.splitlines()) < 60


def test_the_hand_out_holds_what_a_learner_needs(released):
    assert_holds_what_a_learner_needs(COURSE, CHOSEN, released)


def test_requirements_and_environment_lead_to_the_wheel(released):
    lines = (released / "requirements.txt").read_text().split("\n")
    (wheel,) = [line for line in lines if line.startswith("./")]
    assert wheel.endswith(".whl[lab]") and (released / wheel.removesuffix("[lab]")).is_file()
    pip = yaml.safe_load((released / "environment.yml").read_text())["dependencies"][-1]["pip"]
    assert pip == ["-r requirements.txt"]
    assert (
        "-c constraints.txt" in lines
        and (released / "constraints.txt").read_bytes() == (ROOT / "constraints.txt").read_bytes()
    )


def assert_names_no_registry(files: Mapping[str, bytes]) -> None:
    """Nor this machine."""
    for name, data in files.items():
        if not name.endswith(".whl"):
            text = data.decode()
            assert not re.search(r"pypi|pythonhosted|pytorch\.org|anaconda\.org|index-url", text), name
            assert str(ROOT) not in text and str(Path.home()) + "/" not in text, name


def test_nothing_names_a_registry_or_this_machine(released, bare):
    for folder in (released, bare):
        assert_names_no_registry({str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()})


def test_the_same_release_has_the_same_bytes():
    first = handout(COURSE, CHOSEN), gradescope(COURSE, CHOSEN)
    wheel_of.cache_clear()
    assert first == (handout(COURSE, CHOSEN), gradescope(COURSE, CHOSEN))


def assert_normalized(wheel: str) -> None:
    """pip would look for 0.1.0+7 where a file is called 0.1.0+007."""
    version = wheel.split("-")[1]
    assert str(Version(version)) == version and re.fullmatch(r"\d+\.\d+\.\d+\+c[0-9a-f]{8}", version)


# --- one hand-out after another --------------------------------------------------------------


def test_the_lessons_before_come_along_and_only_those_named_are_graded(tmp_path, capsys):
    """Next week's hand-out replaces this week's without taking anything away."""
    place = tmp_path / "course"
    assert main(["release", str(place), "--lessons", "02", "--gradescope"]) == 0
    assert sorted(path.stem for path in (place / "notebooks").glob("*.ipynb")) == list(ALL[:3])
    said = capsys.readouterr().out
    assert "3 lessons in" in said and "Lessons that come before are in it, too: 00, 01; --only leaves them out." in said
    points = sum(exercise.points for exercise in COURSE.lesson(ALL[2]).exercises)
    assert f"autograder points to {points}." in said
    (job,) = yaml.safe_load((place / ".github/workflows/grade.yml").read_text())["jobs"].values()
    assert job["env"]["LESSONS"] == "02" and "02" in (place / ".gitlab-ci.yml").read_text()
    with zipfile.ZipFile(tmp_path / "course-gradescope.zip") as bundle:
        assert '--lessons "02" ' in bundle.read("run_autograder").decode()
    (wheel,) = (path for path in (place / "wheels").iterdir())
    assert all(
        f"grader/_course/solutions/{lesson}/lesson.py" in zipfile.ZipFile(wheel).namelist() for lesson in ALL[:3]
    )
    page = (place / "README.md").read_text()
    assert (
        "If you have worked in an earlier hand-out, copy the notebooks" in page and "`.venv/bin/grader update`" in page
    )


def test_only_needs_the_lessons_that_it_is_about(tmp_path, capsys):
    assert main(["release", str(tmp_path / "a"), "--only"]) == 2
    assert "so it needs --lessons" in capsys.readouterr().err and not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    "flags, said, unsaid",
    [
        (
            [],
            "contains the solutions of these lessons, and whoever unpacks it can read them",
            "No file of it holds a solution.",
        ),
        (["--without-solutions"], "No file of it holds a solution.", "contains the solutions"),
    ],
)
def test_the_command_says_what_the_hand_out_shows(tmp_path, capsys, flags, said, unsaid):
    course = with_notebooks(tmp_path / "course")
    source = course.source_path("03_torch")
    given = "from grader import check, passed\n"
    text = source.read_text(encoding="utf-8").replace(given, f"{given}\n\ndef shares(scores):\n    return scores\n")
    source.write_text(text, encoding="utf-8")
    flags = [*flags, "--course", str(course.root)]
    assert main(["release", str(tmp_path / "a"), "--lessons", "03", *flags]) == 0
    told = capsys.readouterr().out
    assert said in told and unsaid not in told
    assert (
        "Later lessons define what earlier exercises ask for, in cells of their own: shares of lesson 01 in 03." in told
    )
    assert main(["release", str(tmp_path / "b"), "--lessons", "02", *flags]) == 0
    assert "Later lessons define" not in capsys.readouterr().out
    page = (tmp_path / "a" / "README.md").read_text()
    assert ("grader update" in page) == ("--without-solutions" not in flags), (
        "without solutions there is no such command"
    )


def test_work_from_an_earlier_hand_out_is_brought_along_as_the_readme_says(released, from_release, tmp_path):
    solved(shutil.copytree(released, tmp_path / "first") / "notebooks" / f"{CHOSEN[0]}.ipynb")
    release(COURSE, tmp_path / "second", ALL[2:3], earlier=CHOSEN)
    python = environment(tmp_path / "env", next((tmp_path / "second").glob("wheels/*.whl")))
    for name in CHOSEN:
        shutil.copy(tmp_path / "first" / "notebooks" / f"{name}.ipynb", tmp_path / "second" / "notebooks")
    done = run(python.with_name("grader"), "update", cwd=tmp_path / "second")
    assert done.returncode == 0 and "backups" in done.stdout, done.stderr
    report = grade_submission(Settings(COURSE, lessons=["00"]), tmp_path / "second")
    assert report.score == report.max_score > 0
    assert "02_logs.ipynb" in (tmp_path / "second" / "notebooks" / f"{CHOSEN[1]}.ipynb").read_text(), (
        "the next lesson is linked now"
    )


OTHER = "This notebook belongs to another hand-out: it is of lesson 02_logs, and the grader installed here knows 00, 01 alone."


def test_in_another_hand_out_s_notebook_check_hint_and_figures_say_so(from_release, tmp_path):
    calls = (
        "def log_shares(x): return x\ncheck(log_shares)",
        "check('log_shares')",
        "print(passed('log_shares'))",
        "hint('log_shares')",
        "figures.logs",
    )
    program = "\n".join(
        ("from grader import check, figures, hint, passed", *(f"print('---')\n{call}" for call in calls))
    )
    done = run(from_release.with_name("python"), "-c", program, cwd=tmp_path)
    said = [" ".join(part.split()) for part in done.stdout.split("---")[1:]]
    assert [OTHER in each for each in said] == [True, True, True, True, False], done.stderr
    assert done.stderr.splitlines()[-1].startswith(
        "AttributeError: logs is not in this installation: this notebook belongs to another hand-out"
    )


def test_another_hand_out_s_notebook_is_not_graded_as_a_lesson_of_this_one(from_release, tmp_path):
    """Whatever it is called, and whatever it defines."""
    names = ("02_logs.ipynb", "01_mixing.ipynb", "mine.ipynb")
    for name in names:
        (tmp_path / name[:4]).mkdir()
        (tmp_path / name[:4] / name).write_text(json.dumps(COURSE.pristine("02_logs")))
    done = run(
        from_release, "grade", *(tmp_path / name[:4] for name in names), "--lessons", "01", "--json", "-", cwd=tmp_path
    )
    assert [one["message"].count(OTHER) for one in json.loads(done.stdout)["submissions"]] == [1, 1, 1]


# --- it works --------------------------------------------------------------------------------


def test_untouched_notebooks_are_not_started_and_a_solved_one_passes(released, tmp_path):
    report = grade_submission(Settings(COURSE), released)
    assert [lesson.name for lesson in report.lessons] == list(CHOSEN) and report.score == 0
    assert {v.status for lesson in report.lessons for v in lesson.verdicts} == {"not_started"}
    mine = shutil.copytree(released, tmp_path / "mine")
    solved(mine / "notebooks" / f"{CHOSEN[0]}.ipynb")
    report = grade_submission(Settings(COURSE, lessons=["00"]), mine)
    assert report.score == report.max_score > 0


def test_the_wheel_that_is_handed_out_knows_the_chosen_lessons_alone(released, from_release, tmp_path):
    mine = shutil.copytree(released, tmp_path / "mine")
    solved(mine / "notebooks" / f"{CHOSEN[0]}.ipynb")
    done = run(from_release, "grade", mine, "--json", "-", cwd=tmp_path)
    (one,) = json.loads(done.stdout)["submissions"]
    assert [(lesson["name"], lesson["score"]) for lesson in one["lessons"]] == [(CHOSEN[0], FIRST), (CHOSEN[1], 0)]
    names = zipfile.ZipFile(next(released.glob("wheels/*.whl"))).namelist()
    assert any(name.endswith(".data/data/etc/ipython/startup/50-attention-course.py") for name in names)
    assert not [name for name in names if re.search(r"/(?:0[2-9]|1\d)_|/zoo/", name)]


def test_the_wheel_that_is_handed_out_restores_its_lessons_as_they_were_handed_out(released, from_release, tmp_path):
    """Without a cell that would install another course by the grader's own name."""
    for name in CHOSEN:
        done = run(from_release, "reset", name, "--folder", tmp_path, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / f"{name}.ipynb").read_bytes() == (released / f"notebooks/{name}.ipynb").read_bytes()


def test_a_notebook_s_first_line_works_with_either_wheel(bare, from_release, tmp_path):
    program = (
        "from grader import check, explain, figures, fine, hint, join, leave, passed, progress, replay, reset, solution, stuck; join(); "
        "check('nearest', lambda *_, **__: 0); print(passed('nearest'), callable(figures.mixing.draw_scores))"
    )
    full = run(from_release.with_name("python"), "-c", program, cwd=tmp_path)
    assert "FAILED: nearest" in full.stdout, full.stderr
    python = environment(tmp_path / "env", next(bare.glob("wheels/*.whl")))
    without = run(python, "-c", program, cwd=tmp_path)
    assert without.stdout.splitlines()[-1] == "False True", without.stderr
    assert "nearest is not judged here" in without.stdout
    graded = run(python.with_name("grader"), "grade", bare, cwd=tmp_path)
    assert graded.returncode == 2 and graded.stderr.startswith("grader: nothing is judged on this computer: "), graded
    doctor = run(python.with_name("grader"), "doctor", cwd=tmp_path)
    assert doctor.returncode == 0 and "without solutions: nothing is judged on this computer" in doctor.stdout


# --- leaks -----------------------------------------------------------------------------------


def line_of(lesson: str) -> str:
    return next(
        secret.text
        for secret in all_secrets(COURSE)
        if secret.lesson == lesson
        and len(secret.text) > 30
        and not secret.common
        and len(secret.needle) <= len(secret.text)
    )  # one line gives it away


@pytest.mark.parametrize("lesson", ["00_lookup", "02_logs"])  # one that is handed out and one that is not
@pytest.mark.parametrize(
    "how", ["as it is", "spaced out", "in a comment", "in a notebook", "in an archive", "in a string"]
)
def test_a_planted_solution_line_is_found_wherever_it_stands(lesson, how):
    line = line_of(lesson)
    code = line.split("  #")[0]
    cell = {"cells": [{"cell_type": "raw", "metadata": {"kept": [code + "\n", "x"]}, "source": []}]}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("inner.txt", line)
    planted = {
        "as it is": ("a.py", line),
        "spaced out": ("a.py", code.replace(" ", "\t  ").replace("(", "(\n")),
        "in a comment": ("a.md", f"see\n# {code}\nthere"),
        "in a notebook": ("a.ipynb", json.dumps(cell)),
        "in an archive": ("a.zip", archive.getvalue()),
        "in a string": ("a.txt", repr(f"x\n{code}\ny")),
    }[how]
    files = {
        **handout(COURSE, ["00_lookup"]),
        planted[0]: planted[1] if isinstance(planted[1], bytes) else planted[1].encode(),
    }
    files = {name: data for name, data in files.items() if not name.endswith(".whl")}
    found = leaks(COURSE, files)
    assert {(file.split(":")[0], secret.lesson) for file, secret in found} == {(planted[0], lesson)}


def in_a_file(*texts: str) -> dict[str, bytes]:
    return {"a.py": "\nanything = 1\n".join(texts).encode()}


def test_two_lines_that_anybody_writes_give_their_solution_away_together(monkeypatch, tmp_path):
    lines = ("start = time.perf_counter()", "taken = np.zeros(3, dtype=float)")
    text = small.SOURCE.replace("import numpy as np\n", "import time\nimport numpy as np\n")
    course = small.install(
        monkeypatch, tmp_path, text.replace("    total =", "".join(f"    {line}\n" for line in lines) + "    total =")
    )
    assert [
        secret.common for secret in all_secrets(course) if secret.text in lines and "total" not in secret.needle
    ] == [True, True]
    assert [leaks(course, in_a_file(line)) for line in lines] == [[], []]
    assert [secret.text for _, secret in leaks(course, in_a_file(*lines))] == [*lines]


@pytest.mark.parametrize(
    "line, common",
    [
        ("start = time.perf_counter()", True),
        ("if torch.cuda.is_available():", True),
        ("return torch.device('cuda')", True),
        ("taken = np.zeros(3, dtype=float)", True),
        ("start = time.perf_counter() - begun", False),
        ("return values[np.argmax(scores)]", False),
        ("x = x + self.attn(self.ln1(x))", False),
        ("made = np.exp(x, dtype=float)", False),
        ("a[np.argmax(np.ones(3))] = 1.0", False),
        ("taken = {'scores': np.ones(3)}  # scores", True),
        ("return f(time.perf_counter())", False),
    ],
)
def test_a_line_that_names_nothing_of_the_exercise_is_anybody_s(line, common):
    code = f"    x += 1\n    {line}\n" + "        pass\n" * line.endswith(":")
    source = f"import time\nimport numpy as np\nimport torch\ndef f(x):\n    # region solution\n{code}    # endregion\n"
    (found,) = [secret for secret in secrets_of({"01_x": source}) if secret.text == line]
    assert found.common == common


def test_what_instructors_are_told_is_no_less_a_secret():
    line = "return mass * light_speed ** 2"
    source = f"# %%\n# region solution\n{line}\n# endregion\n\n# %% [markdown]\n# {{}}\n# {line}\n"
    assert [bool(secrets_of({"01_x": source.format(mark)})) for mark in ("@teaching", "Prose.")] == [True, False]


def test_a_leaking_release_writes_nothing_and_says_where(tmp_path, monkeypatch, capsys):
    real = releasing.handout
    line = line_of("03_torch")
    monkeypatch.setattr(releasing, "handout", lambda *args: {**real(*args), "notes.txt": f"Try\n   {line}".encode()})
    place = tmp_path / "course"
    assert main(["release", str(place), "--lessons", "00", "--gradescope"]) == 2
    said = capsys.readouterr().err
    assert "notes.txt holds line" in said and "03_torch" in said and line in said
    assert list(tmp_path.iterdir()) == []


def test_a_stub_that_keeps_its_solution_is_found(monkeypatch):
    monkeypatch.setattr("grader.course.stubs.stub_text", lambda text, name: text)
    files = {name: data for name, data in handout(COURSE, ["01_mixing"]).items() if name.endswith(".ipynb")}
    assert {secret.lesson for _, secret in leaks(COURSE, files)} >= {"01_mixing"}


def test_without_solutions_means_every_file_and_every_archive(bare):
    everything = {path.name: path.read_bytes() for path in bare.rglob("*") if path.is_file()}
    assert any(name.endswith(".whl") for name in everything)
    assert leaks(COURSE, everything) == []
    wheel = {
        "grader.whl": handout(COURSE, CHOSEN)[next(name for name in handout(COURSE, CHOSEN) if name.endswith(".whl"))]
    }
    assert leaks(COURSE, wheel), "the grader's own wheel holds references: the search must find them"
    assert not (bare / ".github").exists()


def test_what_the_lesson_shows_is_no_secret():
    source = "# %%\nshown = np.exp(scores - scores.max())\n# %%\n# region solution\nshown = np.exp(scores - scores.max())\nkept_back = shown / shown.sum()\n# endregion\n"
    needles = {secret.needle for secret in secrets_of({"01_x": source})}
    assert "kept_back=shown/shown.sum()" in needles and "shown=np.exp(scores-scores.max())" not in needles


def test_a_course_of_one_s_own_takes_the_place_of_this_one_in_its_wheel(tmp_path):
    """Also where it has neither an index nor a title."""
    mine = tmp_path / "mine"
    for name in (CHOSEN[0], "shared"):
        shutil.copytree(COURSE.folder(name), mine / "solutions" / name)
    own = open_course(mine)
    assert f"{tmp_path / 'out'}: 1 lesson in " in release(own, tmp_path / "out", own.lessons())
    assert not (mine / "solutions" / "index.json").exists(), "a course's folder stays as it is"
    with zipfile.ZipFile(next((tmp_path / "out").glob("wheels/*.whl"))) as wheel:
        index = json.loads(wheel.read("grader/_course/solutions/index.json"))
        assert list(index["lessons"]) == [CHOSEN[0]]
        assert wheel.read("grader/_course/solutions/course.toml") == b'title = "mine"\n'
        assert not [name for name in wheel.namelist() if "01_mix" in name or "glossary" in name]


# --- folders ---------------------------------------------------------------------------------


def test_a_folder_with_something_in_it_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("kept")
    assert main(["release", str(tmp_path), "--lessons", "00"]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_or_an_older_bundle_in_the_way_is_a_sentence(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(InputError, match="is a file"):
        release(COURSE, tmp_path / "a", CHOSEN)
    (tmp_path / "b-gradescope.zip").write_text("")
    with pytest.raises(InputError, match="b-gradescope.zip already exists"):
        release(COURSE, tmp_path / "b", CHOSEN, gradescope_bundle=True)
    assert not (tmp_path / "b").exists()


def test_a_full_disk_leaves_nothing_half_written(tmp_path, monkeypatch):
    def full(self, data):
        raise OSError(28, "No space left on device")

    handout(COURSE, CHOSEN)  # the wheel is built elsewhere, and only once
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match="new can't be written: No space left"):
        release(COURSE, tmp_path / "new", CHOSEN)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_taken(tmp_path, capsys):
    (tmp_path / "new").mkdir()
    assert main(["release", str(tmp_path / "new"), "--lessons", "00"]) == 0
    assert "ready to hand out" in capsys.readouterr().out
    assert (tmp_path / "new" / "README.md").is_file()


# --- the workflow ----------------------------------------------------------------------------


def workflow(*arguments: str) -> dict:
    return yaml.safe_load(handout(COURSE, CHOSEN, False, *arguments)[".github/workflows/grade.yml"])


def test_the_workflow_reads_only_and_runs_without_secrets():
    made = workflow()
    events = made[True]  # YAML 1.1 reads the key `on` so
    assert set(events) == {"push", "pull_request", "workflow_dispatch"}
    assert made["permissions"] == {"contents": "read"}
    (job,) = made["jobs"].values()
    assert "permissions" not in job and "secrets" not in json.dumps(made)
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[\w-]+@v\d+", name) for name in used)
    checkout = job["steps"][0]
    assert checkout["with"] == {"path": "submission", "persist-credentials": False}


def test_the_workflow_takes_the_grader_from_elsewhere():
    (job,) = workflow()["jobs"].values()
    scripts = "\n".join(step.get("run", "") for step in job["steps"])
    assert "submission" not in scripts.split("grader grade")[0]  # nothing is installed or started from there
    assert 'cd "$RUNNER_TEMP"' in scripts and "$GITHUB_STEP_SUMMARY" in scripts and "${{" not in scripts
    assert job["env"]["GRADER"] == "${{ vars.GRADER || '' }}" and job["env"]["LESSONS"] == "00,01"
    assert job["env"]["MIN_SCORE"] == "${{ vars.MIN_SCORE || '0' }}"  # nothing is asked for unless the variable says so
    (named,) = workflow('attention-course @ https://example.org/it\'s "a": wheel.whl#sha256=0')["jobs"].values()
    assert (
        named["env"]["GRADER"]
        == "${{ vars.GRADER || 'attention-course @ https://example.org/it''s \"a\": wheel.whl#sha256=0' }}"
    )


CURRENT = {
    "actions/checkout": 7,
    "actions/setup-python": 7,
    "actions/cache": 6,
    "actions/upload-artifact": 7,
}  # November 2026


def test_the_workflow_is_one_that_github_takes():
    """Every step runs or uses, no more; what an expression names is there; scripts parse, and read only what is set."""
    for lessons in (CHOSEN, ALL):
        files = handout(COURSE, lessons)
        text = files[".github/workflows/grade.yml"].decode()
        assert not re.findall(r"@[A-Z]+@", text)
        made = yaml.safe_load(text)
        assert set(made) == {"name", True, "permissions", "concurrency", "jobs"}
        (job,) = made["jobs"].values()
        assert set(job) == {"runs-on", "timeout-minutes", "env", "steps"}
        for expression in re.findall(r"\$\{\{(.*?)\}\}", text):
            assert re.fullmatch(r" (?:vars\.[A-Z_]+ \|\| '[^']*'|github\.ref|runner\.(?:os|temp)) ", expression), (
                expression
            )
        set_here = {*job["env"], "RUNNER_TEMP", "GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY"}
        for step in job["steps"]:
            assert len({"run", "uses"} & set(step)) == 1 and set(step) <= {"name", "run", "uses", "with", "if"}
            if "uses" in step:
                action, _, version = step["uses"].partition("@v")
                assert int(version) == CURRENT[action]
            else:
                assert run("bash", "-n", "-c", step["run"]).returncode == 0
                local = set(re.findall(r"(\w+)=", step["run"]))
                assert set(re.findall(r"\$\{?(\w+)", step["run"])) <= set_here | local
        (cached,) = [step["with"] for step in job["steps"] if step.get("uses", "").startswith("actions/cache")]
        (wheel,) = [name for name in files if name.endswith(".whl")]
        assert cached["key"].endswith(wheel.split("-")[1]) and "," not in cached["key"]


def test_the_workflow_asks_for_full_isolation_and_the_cpu_build():
    (job,) = workflow()["jobs"].values()
    scripts = "\n".join(step.get("run", "") for step in job["steps"])
    assert "--require-isolation full" in scripts and "--torch-backend cpu" in scripts
    assert "submission" not in "\n".join(line for line in scripts.splitlines() if "pip install" in line)


@NOT_ON_POSIX
def test_the_workflow_s_own_commands_grade_a_push(released, from_release, tmp_path):
    """The steps' scripts, with the installed wheel in place of the one that pip would fetch."""
    (job,) = workflow()["jobs"].values()
    scripts = {step["name"]: step["run"] for step in job["steps"] if "run" in step}
    workspace, temporary = tmp_path / "workspace", tmp_path / "temp"
    shutil.copytree(released, workspace / "submission")
    (workspace / "submission" / "grader").mkdir()  # what a submission might bring to be imported
    (workspace / "submission" / "grader" / "__init__.py").write_text("raise SystemExit('a grader of the submission')")
    temporary.mkdir()
    (temporary / "grader").symlink_to(from_release.parent.parent)
    env = {
        **{key: str(value) for key, value in job["env"].items()},
        "RUNNER_TEMP": str(temporary),
        "GITHUB_WORKSPACE": str(workspace),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }
    env["MIN_SCORE"] = "0"  # as the expression has it where no variable is set
    done = run("bash", "-e", "-c", scripts["Grade"], env=env, cwd=workspace)
    assert done.returncode == 0, done.stderr  # nothing is solved yet, and nothing was asked for
    shutil.rmtree(temporary / "results")
    done = run("bash", "-e", "-c", scripts["Grade"], env={**env, "MIN_SCORE": "100%"}, cwd=workspace)
    assert done.returncode == 1, done.stderr
    assert run("bash", "-e", "-c", scripts["Summary"], env=env, cwd=workspace).returncode == 0
    assert "nearest" in (tmp_path / "summary.md").read_text()
    assert {path.name for path in (temporary / "results").iterdir()} == {"results.json", "results.xml", "summary.md"}
    unset = run("bash", "-e", "-c", scripts["The grader, from a trusted place"], env={**env, "GRADER": ""})
    assert unset.returncode == 2 and "GRADER is not set" in unset.stdout


# --- the same on GitLab ------------------------------------------------------------------------


def pipeline(*arguments: str) -> dict:
    return yaml.safe_load(handout(COURSE, CHOSEN, False, *arguments)[".gitlab-ci.yml"])


def test_the_pipeline_is_one_that_gitlab_takes():
    made = pipeline()
    assert set(made) == {"grade"}
    assert set(made["grade"]) == {
        "image",
        "timeout",
        "interruptible",
        "variables",
        "cache",
        "before_script",
        "script",
        "artifacts",
    }
    assert all(isinstance(value, str) for value in made["grade"]["variables"].values())
    assert made["grade"]["variables"]["LESSONS"] == "00,01" and made["grade"]["variables"]["GRADER"] == ""
    (wheel,) = [name for name in handout(COURSE, CHOSEN) if name.endswith(".whl")]
    assert made["grade"]["cache"]["key"].endswith(wheel.split("-")[1])
    kept = {f"$CI_PROJECT_DIR/{path}" for path in made["grade"]["cache"]["paths"]}
    assert kept == {made["grade"]["variables"][name] for name in ("PIP_CACHE_DIR", "UV_CACHE_DIR")}
    named = 'attention-course @ https://example.org/it\'s "a": wheel.whl#sha256=0'
    assert pipeline(named)["grade"]["variables"]["GRADER"] == named
    for part in ("before_script", "script"):
        assert run("bash", "-n", "-c", "\n".join(made["grade"][part])).returncode == 0


def test_the_pipeline_installs_what_the_workflow_installs():
    def installs(script: str) -> list[str]:
        return [line.strip() for line in script.splitlines() if "pip install" in line]

    (job,) = workflow()["jobs"].values()
    (theirs,) = [step["run"] for step in job["steps"] if "trusted" in step.get("name", "")]
    assert installs("\n".join(pipeline()["grade"]["before_script"])) == installs(theirs) != []


@NOT_ON_POSIX
def test_the_pipeline_s_own_commands_grade_a_push(released, from_release, tmp_path):
    job = pipeline()["grade"]
    project, temporary = tmp_path / "project", tmp_path / "temp"
    shutil.copytree(released, project)
    solved(project / "notebooks" / f"{CHOSEN[0]}.ipynb")
    (project / "grader").mkdir()  # what a submission might bring to be imported
    (project / "grader" / "__init__.py").write_text("raise SystemExit('a grader of the submission')")
    (project / "results").mkdir()
    temporary.mkdir()
    (temporary / "grader").symlink_to(from_release.parent.parent)
    env = {**job["variables"], "CI_PROJECT_DIR": str(project), "TMPDIR": str(temporary)}
    for asked, code in (("0", 0), ("100%", 1)):
        done = run("bash", "-e", "-c", "\n".join(job["script"]), env={**env, "MIN_SCORE": asked}, cwd=project)
        assert done.returncode == code, done.stderr
    assert {path.name for path in (project / "results").iterdir()} == {"results.json", "results.xml", "summary.md"}
    assert json.loads((project / "results" / "results.json").read_text())["submissions"][0]["score"] == FIRST
    assert project.joinpath(job["artifacts"]["reports"]["junit"]).is_file() and job["artifacts"]["when"] == "always"
    unset = run("bash", "-e", "-c", "\n".join(job["before_script"]), env=env, cwd=project)
    assert unset.returncode == 2 and "GRADER is not set" in unset.stdout


# --- coding assistants -------------------------------------------------------------------------


def test_an_assistant_is_told_to_be_a_tutor(released, bare, from_release, tmp_path):
    """What it is told to run runs, and quotes the grader."""
    page = (released / "AGENTS.md").read_text(encoding="utf-8")
    assert (
        "`check(nearest)`" in page
        and "Never paste, complete or dictate a solution" in page
        and "ask one question" in page
    )
    assert "<" not in page and not leaks(COURSE, {"AGENTS.md": page.encode()})
    place = from_release.parent
    told = [command.removeprefix(".venv/bin/") for command in re.findall(r"`(\.venv/bin/[^`]+)`", page)]
    assert [command.split()[0] for command in told] == ["grader", "grader", "python", "grader"]
    env = {"ATTENTION_COURSE_PROGRESS": str(tmp_path / "progress.json")}
    answers = [run("bash", "-c", f"{place}/{command}", cwd=released, env=env) for command in told]
    assert answers[0].returncode == 1 and "nearest" in answers[0].stdout  # it is not solved yet
    assert answers[1].stdout.startswith("LU1: ") and "Hint 1 of 3 for nearest" in answers[2].stdout
    assert answers[3].returncode == 0, answers[3].stdout
    without = (bare / "AGENTS.md").read_text(encoding="utf-8")
    assert (
        "Never paste" in without
        and "can judge an answer" in without
        and ".venv/bin" not in without
        and "<" not in without
    )


# --- Gradescope ------------------------------------------------------------------------------


@pytest.fixture
def autograder(released, tmp_path) -> Path:
    """The bundle, unpacked as Gradescope does it."""
    with zipfile.ZipFile(released.with_name("course-gradescope.zip")) as bundle:
        for info in bundle.infolist():
            path = Path(bundle.extract(info, tmp_path / "source"))
            path.chmod(info.external_attr >> 16)
    return tmp_path


def test_the_bundle_stays_out_of_the_hand_out(released, autograder):
    assert not list(released.rglob("*.zip"))
    names = sorted(path.name for path in (autograder / "source").iterdir())
    (wheel,) = released.glob("wheels/*.whl")  # the same in both, version and all
    assert names == [wheel.name, "constraints.txt", "run_autograder", "setup.sh"]
    assert (autograder / "source" / "constraints.txt").read_bytes() == (ROOT / "constraints.txt").read_bytes()
    for script in ("setup.sh", "run_autograder"):
        assert os.access(autograder / "source" / script, os.X_OK)
        assert run("bash", "-n", autograder / "source" / script).returncode == 0


@NOT_ON_POSIX
def test_run_autograder_writes_results_for_a_submission(released, autograder, from_release):
    shutil.copytree(released / "notebooks", autograder / "submission")
    solved(autograder / "submission" / f"{CHOSEN[0]}.ipynb")
    env = {"AUTOGRADER_ROOT": str(autograder), "GRADER_COMMAND": str(from_release)}
    done = run(autograder / "source" / "run_autograder", env=env)
    assert done.returncode == 0, done.stderr
    results = json.loads((autograder / "results" / "results.json").read_text())
    assert sum(test["score"] for test in results["tests"]) == FIRST
    assert sum(test["max_score"] for test in results["tests"]) == sum(
        one.points for name in CHOSEN for one in COURSE.lesson(name).exercises
    )
    with Sandbox() as sandbox:
        level = sandbox.verify()
    assert f"Isolation while grading: {level}." in results["output"]
    assert ("no Landlock" in done.stdout) == (level != "full")


def recording(autograder: Path, body: str) -> Path:
    """A command in the grader's place that notes its calls."""
    command = autograder / "recording"
    command.write_text(f'#!/bin/sh\necho "$@" >>"{autograder}/calls"\n{body}\n')
    command.chmod(0o755)
    return command


@NOT_ON_POSIX
@pytest.mark.parametrize("asked", ["full", "process"])
def test_run_autograder_asks_for_what_the_container_can_and_says_so(released, autograder, from_release, asked):
    """Elsewhere than Linux with Landlock a stand-in says so; the grading that follows is real."""
    shutil.copytree(released / "notebooks", autograder / "submission")
    grade = f'[ "$1" = doctor ] && {{ echo {asked}; exit; }}\nshift\nexec "{from_release}" grade "$@"'
    if asked == "full":  # as it would be called where the kernel can: here it need not
        grade = grade.replace('"$@"', '$(echo "$@" | sed "s/--require-isolation full//")')
    env = {"AUTOGRADER_ROOT": str(autograder), "GRADER_COMMAND": str(recording(autograder, grade))}
    done = run(autograder / "source" / "run_autograder", env=env)
    assert done.returncode == 0, done.stderr
    first, second = (autograder / "calls").read_text().splitlines()
    assert first == "doctor --isolation" and f"--require-isolation {asked} " in second
    assert ("no Landlock" in done.stdout) == (asked == "process")
    assert "Isolation while grading: " in json.loads((autograder / "results" / "results.json").read_text())["output"]


@NOT_ON_POSIX
@pytest.mark.parametrize("said, asked", [("echo full", "full"), ("exit 3", "process"), ("echo x", "process")])
def test_a_run_that_fails_is_not_tried_again_with_less_isolation(released, autograder, said, asked):
    """Whether the container can do all, or says nothing of what it can."""
    shutil.copytree(released / "notebooks", autograder / "submission")
    command = recording(autograder, f'[ "$1" = doctor ] && {{ {said}; exit; }}\nexit 3')
    done = run(
        autograder / "source" / "run_autograder",
        env={"AUTOGRADER_ROOT": str(autograder), "GRADER_COMMAND": str(command)},
    )
    calls = (autograder / "calls").read_text().splitlines()
    assert done.returncode == 1 and len(calls) == 2 and f"--require-isolation {asked} " in calls[1]
    assert ("no Landlock" in done.stdout) == (asked == "process")


def test_the_bundle_s_note_names_the_points_to_set(tmp_path, capsys):
    assert main(["release", str(tmp_path / "out"), "--lessons", "00,03", "--gradescope"]) == 0
    assert "autograder points to 10." in capsys.readouterr().out


@NOT_ON_POSIX
def test_run_autograder_without_a_notebook_says_so(autograder, from_release):
    (autograder / "submission").mkdir()
    env = {"AUTOGRADER_ROOT": str(autograder), "GRADER_COMMAND": str(from_release)}
    done = run(autograder / "source" / "run_autograder", env=env)
    assert done.returncode == 0, done.stderr
    results = json.loads((autograder / "results" / "results.json").read_text())
    assert results["score"] == 0 and "No notebook was handed in" in results["output"]


@NOT_ON_POSIX
@pytest.mark.parametrize(
    "code, results, notebooks",
    [
        (2, "", True),
        (3, "", True),
        (3, '{"score": 0}', True),
        (3, "", False),
        (3, '{"score": 0}', False),
        (137, "", True),
        (137, '{"score": 4}', True),
        (2, '{"score": 4}', True),
    ],
)
def test_the_grader_s_own_failure_is_nobody_s_zero(released, autograder, code, results, notebooks):
    (autograder / "submission").mkdir()
    if notebooks:
        shutil.copytree(released / "notebooks", autograder / "submission", dirs_exist_ok=True)
    broken = autograder / "broken"
    write = f"printf '%s' '{results}' >{autograder}/results/results.json\n" if results else ""
    broken.write_text(f"#!/bin/sh\necho 'a mistake in the grader' >&2\n{write}exit {code}\n")
    broken.chmod(0o755)
    env = {"AUTOGRADER_ROOT": str(autograder), "GRADER_COMMAND": str(broken)}
    done = run(autograder / "source" / "run_autograder", env=env)
    assert done.returncode == 1 and "a mistake in the grader" in done.stderr
    assert not (autograder / "results" / "results.json").exists()


def test_without_the_build_backend_a_sentence_says_what_brings_it(tmp_path, monkeypatch, capsys):
    wheel_of.cache_clear()
    monkeypatch.setitem(sys.modules, "hatchling", None)
    for name in [name for name in sys.modules if name.startswith("hatchling.")]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["release", str(tmp_path / "new"), "--lessons", "00"]) == 3
    assert "hatchling is not installed in this Python; " in (said := capsys.readouterr().err)
    assert "attention-course[release]" in said and not list(tmp_path.iterdir())
