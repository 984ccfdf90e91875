"""The attention course as it is handed out: with everything a learner needs, without a solution, in every set of lessons."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import psutil
import pytest

from grader.authoring.release import gradescope, handout, release
from grader.authoring.release.leaks import all_secrets, leaks
from grader.authoring.release.wheel import build_wheel
from grader.cli import main
from grader.course.course import open_course
from tests.authoring.test_release import (
    assert_holds_what_a_learner_needs,
    assert_names_no_registry,
    assert_normalized,
    in_a_file,
    run,
)
from tests.authoring.test_release_setup import assert_asks_for_torch, program
from tests.bare import beside_ours, environment
from tests.conftest import ROOT, WHOLE_GRID

COURSE = open_course()
ALL = COURSE.lessons()
NUMPY = tuple(name for name in ALL if name < "05")
CHOSEN = NUMPY[:2]
GLOSSARY = "notebooks/glossary.md"
CONTAINER_BYTES = 768 << 20  # Gradescope's default


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    """The hand-out of two lessons, and the Gradescope bundle beside it."""
    place = tmp_path_factory.mktemp("release") / "course"
    release(COURSE, place, CHOSEN, gradescope_bundle=True)
    return place


def test_the_hand_out_holds_what_a_learner_needs(released):
    assert_holds_what_a_learner_needs(COURSE, CHOSEN, released)
    assert (released / GLOSSARY).read_text(encoding="utf-8") == COURSE.glossary(CHOSEN)


@pytest.mark.parametrize("without_solutions", [False, True], ids=["with", "without"])
def test_nothing_names_a_registry_or_this_machine(without_solutions):
    assert_names_no_registry(handout(COURSE, CHOSEN, without_solutions))


# Each lesson alone shows what its own files lack or give away; together they show what two of them do to each other.
COMBINATIONS = [(name,) for name in ALL] + list(zip(ALL, ALL[1:])) * WHOLE_GRID + [(ALL[0], ALL[-1]), ALL[:5], ALL]
# test_only_lessons_that_import_torch_ask_for_it looks into the files of each lesson alone with its solutions.
FLAGS = [
    (lessons, without)
    for lessons in COMBINATIONS
    for without in (False, True)
    if without or len(lessons) > 1 or WHOLE_GRID
]


@pytest.mark.parametrize(
    "lessons, without_solutions",
    FLAGS,
    ids=lambda value: (
        ",".join(name[:2] for name in value) if isinstance(value, tuple) else "without" if value else "with"
    ),
)
def test_every_combination_of_lessons_and_flags_is_released(lessons, without_solutions, tmp_path):
    """The course as it is shipped: no leak, no coincidence taken for one, and a version that reads the same after pip's normalization.
    Several lessons have a Gradescope archive with their solutions, one alone has none; with WHOLE_GRID=1 each set has all four."""
    numbers = ",".join(name[:2] for name in lessons)
    flags = ["--without-solutions"] * without_solutions
    ways = [(tmp_path / "plain", []), (tmp_path / "both", ["--gradescope"])]
    for place, more in ways if WHOLE_GRID else ways[len(lessons) > 1 :][:1]:
        assert main(["release", str(place), "--lessons", numbers, "--only", *flags, *more]) == 0
        assert sorted(path.name for path in (place / "notebooks").iterdir()) == sorted(
            [*(f"{name}.ipynb" for name in lessons), "glossary.md"]
        )
        assert (place / ".github").exists() != without_solutions
        (wheel,) = (place / "wheels").iterdir()
        assert_normalized(wheel.name)
        assert place.with_name(f"{place.name}-gradescope.zip").exists() == bool(more)


def test_the_wheel_that_is_handed_out_restores_the_lessons_as_they_were_handed_out(released, tmp_path):
    """Numbers that prose quotes and links to the lessons beside it included: nothing of it is computed again."""
    grader = environment(tmp_path / "env", next(released.glob("wheels/*.whl"))).with_name("grader")
    for name in CHOSEN:
        done = run(grader, "reset", name, "--folder", tmp_path, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / f"{name}.ipynb").read_bytes() == (released / f"notebooks/{name}.ipynb").read_bytes()
    assert (tmp_path / "glossary.md").read_bytes() == (released / "notebooks/glossary.md").read_bytes()


def test_an_installed_grader_releases_the_same_files(released, tmp_path):
    """With constraints, too: a wheel carries what a checkout has beside it."""
    (wheel,) = (released / "wheels").iterdir()
    beside_ours(tmp_path / "env", wheel)
    done = run(program(tmp_path / "env", "grader"), "release", "second", "--gradescope", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (released, tmp_path / "second")
    )
    assert first == second and Path("constraints.txt") in first
    assert released.with_name("course-gradescope.zip").read_bytes() == (tmp_path / "second-gradescope.zip").read_bytes()


# --- leaks -----------------------------------------------------------------------------------


OPERATORS = {
    "scaled_dot_product_attention",
    "cross_entropy",
    "log_softmax",
    "layer_norm",
    "rms_norm",
}  # torch's own, too
ENGINE_KNOWS = {"grader/cli/author.py"}  # a clock's name
EXAMPLES = {"softmax_rows", "SelfAttention", "causal_mask", "corrected_first_row"}  # of a name, in help and docstrings


def test_every_line_and_every_region_of_every_solution_is_found_in_a_file_of_its_own():
    """All but lines that anybody writes, and two of those from one solution."""
    secrets = all_secrets(COURSE)
    for secret in secrets:
        found = leaks(COURSE, in_a_file(secret.needle))
        assert (secret.lesson, secret.line) in {(one.lesson, one.line) for _, one in found} or secret.common, secret
    common = [secret for secret in secrets if secret.common]
    assert len(common) < len(secrets) / 20, "a line that names something of the exercise is taken for anybody's"
    for one in common:
        assert not leaks(COURSE, in_a_file(one.text))
        for other in common:
            if other != one and (other.lesson, other.region) == (one.lesson, one.region):
                assert len(leaks(COURSE, in_a_file(one.text, other.text))) == 2


@pytest.mark.parametrize("lesson", ALL)
def test_a_solved_notebook_and_a_solved_source_are_found(lesson):
    """What could be released by mistake, as it lies beside the notebooks; without its pictures, which take long to search."""
    for name in (f"{lesson}/lesson.py", f"{lesson}.ipynb"):
        data = re.sub(rb"(?<=;base64,)[\w+/=]+", b"", (ROOT / "solutions" / name).read_bytes())
        found = leaks(COURSE, {name: data})
        told = {secret.line for _, secret in found if secret.lesson == lesson}
        assert told >= {secret.line for secret in all_secrets(COURSE) if secret.lesson == lesson and not secret.common}


def test_every_exercise_has_a_secret():
    """A search that knew nothing of an exercise's solution would find nothing."""
    known = all_secrets(COURSE)
    for lesson in COURSE.lessons():
        assert any(secret.lesson == lesson for secret in known), lesson


@pytest.mark.parametrize("without_solutions", [False, True], ids=["with", "without"])
def test_the_engine_of_a_wheel_holds_no_answer_and_its_course_what_is_not_left_out(without_solutions):
    _, data = build_wheel(COURSE, ALL, without_solutions)
    wheel = zipfile.ZipFile(io.BytesIO(data))
    engine = {name: wheel.read(name) for name in wheel.namelist() if not name.startswith("grader/_course/solutions/")}
    assert leaks(COURSE, engine) == []
    for name in ENGINE_KNOWS:
        del engine[name]
    exercises = "|".join(
        name for name in COURSE.exercise_names() if re.search("_|[a-z][A-Z]", name) and name not in OPERATORS | EXAMPLES
    )
    for name in (name for name in engine if name.startswith("grader/") and not name.startswith("grader/_course/")):
        assert not re.search(rf"\b(?:{exercises})\b", engine[name].decode()), name
    here = {name.removeprefix("grader/_course/solutions/") for name in wheel.namelist()} - set(engine)
    assert not [name for name in here if "/zoo/" in name]
    judging = {name for name in here if re.search(r"/(?:lesson|probes\w*)\.py$|/exercises/|/mistakes/|\.ipynb$", name)}
    assert bool(judging) != without_solutions and {"index.json", "course.toml", "02_softmax/figures.py"} <= here


# --- what it takes ---------------------------------------------------------------------------


@pytest.mark.parametrize("lesson", ALL)
def test_only_lessons_that_import_torch_ask_for_it(lesson, tmp_path):
    wanted = lesson >= "05" and not lesson.startswith("13")  # gradients by hand, in NumPy
    assert_asks_for_torch(COURSE, lesson, wanted, tmp_path, " triton" * (lesson == "15_kernel"), GLOSSARY)


def test_lessons_without_torch_do_not_import_it():
    """Notebook, figures and grading; what needs_torch reads in the source is true of what runs."""
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from grader.course import references; from grader.course.course import open_course; import grader.judging.judge\n"
        "course = open_course()\n"
        f"for name in {NUMPY!r}:\n"
        "    course.lesson(name); references.namespace(course, name); course.figures(name[3:])\n"
    )
    done = run(sys.executable, "-c", program, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="Gradescope's containers run Linux")
def test_the_dearest_lesson_fits_into_gradescope_s_smallest_container(tmp_path):
    """By an upper bound: what each process has for itself, pages shared after a fork counted twice, and the libraries once."""
    with zipfile.ZipFile(io.BytesIO(gradescope(COURSE, ALL))) as bundle:
        bundle.extract("run_autograder", tmp_path)
    (tmp_path / "submission").mkdir()
    shutil.copy(ROOT / "solutions" / "11_gpu.ipynb", tmp_path / "submission")
    script = (tmp_path / "run_autograder").read_text().replace(",".join(name[:2] for name in ALL), "11")
    environment = {
        **os.environ,
        "AUTOGRADER_ROOT": str(tmp_path),
        "GRADER_COMMAND": str(program(Path(sys.prefix), "grader")),
    }
    grading = subprocess.Popen(["bash", "-c", script], env=environment, stdout=subprocess.DEVNULL)
    most, libraries = 0, 0
    while grading.poll() is None:
        own = 0
        for process in psutil.Process(grading.pid).children(recursive=True):
            try:
                memory = process.memory_info()
            except psutil.Error:
                continue
            own, libraries = own + memory.rss - memory.shared, max(libraries, memory.shared)
        most = max(most, own + libraries)
        time.sleep(0.05)
    assert grading.returncode == 0
    results = json.loads((tmp_path / "results" / "results.json").read_text())
    assert results["score"] == sum(test["max_score"] for test in results["tests"])
    assert 100 << 20 < most < CONTAINER_BYTES, f"{most >> 20} MB"
