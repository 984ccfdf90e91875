"""What every test shares: one thread a process, a progress record of its own, a folder for artefacts."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psutil
import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # test processes share the cores
# A thousand processes would compile the same files, and pytest write all assertions anew in each run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


from grader.course.course import COURSE_ENV, open_course
from grader.notebook.kernel_course import kernel_course
from grader.util import libraries
from tests.passed_before import PassedBefore, digest

libraries.import_nbformat()  # jupytext and nbval would import it in its whole time

ROOT = Path(__file__).resolve().parent.parent
NUMBERS = itertools.count()
# The engine's tests: a folder for each of the engine's own, and the attacks.
ENGINE = {*(path.parent.name for path in (ROOT / "grader").glob("*/__init__.py")), "hostile"}
MIXING = ROOT / "tests" / "courses" / "mixing"  # which course they judge
WHOLE_GRID = bool(
    os.environ.get("WHOLE_GRID")
)  # every combination where a part of them proves the kind; see CONTRIBUTING.md

# The files that take long begin first, the longest before the others, so that all processes end at about the same time.
LONG = (
    "test_ordinary_user.py",
    "attention/test_lab.py",
    "attention/test_notebooks.py::test_nbval",
    "attention/test_notebooks.py",
    "attention/test_audit.py",
    "sandbox/test_sandbox.py",
    "test_package.py",
    "test_types.py",
    "test_core.py",
    "test_alone.py",
    "attention/test_release.py",
    "authoring/test_release.py",
    "authoring/test_release_setup.py",
    "test_site.py",
    "test_setups.py",
    "hostile",
    "attention/test_rebound_names.py",
    "attention/test_reached_probes.py",
    "attention/test_zoo.py",
    "judging",
    "attention/test_kernel_lesson.py",
    "attention/test_smollm2.py",
    "attention/test_heads.py",
    "grading",
    "source/test_allowed.py",
    "source/test_scopes.py",
    "cli",
    "reports/test_class.py",
    "worker/test_wire.py",
    "attention/test_device_probe.py",
)
WHEEL = ("test_package.py", "test_core.py", "test_alone.py")  # for which it is built once
PACKAGING = (
    *WHEEL,
    "attention/test_release.py",
    "authoring/test_release.py",
    "authoring/test_release_setup.py",
    "test_ordinary_user.py",
    "test_setups.py",
    "test_site.py",
)
SETUP = (
    "pyproject.toml",
    "constraints.txt",
    "environment.yml",
    "Makefile",
    ".ci",
    ".github",
    ".binder",
    ".devcontainer",
)
# What these ask of a lesson's exercises begins with what the reference and each mistake show, which is found out once for all.
JUDGED = (
    "attention/test_audit.py",
    "attention/test_zoo.py",
    "attention/test_kill_matrix.py",
    "attention/test_agreement.py",
    "attention/test_hostile_numbers.py",
    "attention/test_parameters.py",
)
KEPT = contextlib.ExitStack()  # what the tests that judge one lesson leave to those of the next


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config, "cache", None) and not WHOLE_GRID:  # -p no:cacheprovider leaves no place to remember in
        config.pluginmanager.register(PassedBefore(config, decided_by, digest_of))


def decided_by(nodeid: str) -> str:
    """'packaging' for what a lesson's text hardly breaks and takes long to try; 'engine' for what no lesson decides; the lesson whose
    exercises a test judges; else ''."""
    file = nodeid.partition("::")[0].removeprefix("tests/")
    if file in PACKAGING:
        return "packaging"
    return "engine" if file.partition("/")[0] in ENGINE else judged_lesson(nodeid)


@cache
def digest_of(group: str) -> str:
    """Of the engine, the tests, and what a group of tests is about: for packaging and the engine's own tests, how the package and its
    set-ups are made, and the course that CONTRIBUTING shows; for packaging also what the site and the hand-outs show beside the lessons."""
    own = [ROOT / name for name in (*SETUP, "CONTRIBUTING.md")]
    if group == "packaging":
        own += [ROOT / name for name in ("docs", "README.md", "CHANGELOG.md", "LICENSE")]
    elif group != "engine":
        own = [open_course(ROOT).solutions / "shared", open_course(ROOT).folder(group)]
    return _of_every_test() + digest(own)


@cache
def _of_every_test() -> str:
    """What decides all groups is read once for all of them, at the start of each process."""
    return digest([ROOT / "grader", ROOT / "tests"])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not libraries.installed("triton"):
        left_out = pytest.mark.skip(reason="it judges kernels, which needs Triton: make kernel")
        for item in items:
            of = re.search(r"\[(\w+)", item.nodeid)
            if of and lessons().get(of[1]) == "15_kernel":
                item.add_marker(left_out)
    items.sort(
        key=lambda item: next(
            (at for at, name in enumerate(LONG) if item.nodeid.startswith(f"tests/{name}")), len(LONG)
        )
    )


def pytest_collection_finish() -> None:
    """Ten thousand tests stay to the end; whoever looks for garbage need not go through them again and again, nor every few hundred
    objects: judging makes thousands a second, of which few are in circles."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def shared_with(nodeid: str) -> str:
    """What a test shares with others: one process runs all of a file, nbval's of a lesson, and what judges a lesson's exercises."""
    file = nodeid.partition("::")[0].removeprefix("tests/")
    if "::test_nbval_" in nodeid:
        return nodeid
    return judged_lesson(nodeid) or ("wheel" if file in WHEEL else file)


@cache
def lessons() -> dict[str, str]:
    """The attention course's lesson of each of its exercises, and of each lesson itself."""
    course = open_course(ROOT)
    return {name: lesson for lesson in course.lessons() for name in (lesson, *course.exercises[lesson])}


def judged_lesson(nodeid: str) -> str:
    """The lesson whose exercises a test judges, '' for what is about none of them alone."""
    file, exercise = nodeid.partition("::")[0].removeprefix("tests/"), re.search(r"\[(\w+)", nodeid)
    return lessons().get(exercise[1], "") if file in JUDGED and exercise else ""


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """No process that is kept for the next lesson is found by a test that looks whether any is left."""
    if nextitem is None or not judged_lesson(nextitem.nodeid):
        KEPT.close()


@pytest.hookimpl(optionalhook=True)  # as where -p no:xdist leaves the plugin out
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """Whatever --dist says, tests that share something run in one process, which makes it once: a site, an environment, a JupyterLab.

    --dist loadgroup would be for this, but with pytest 9.2 it takes no notice of a test's group, and says nothing: see issue 1386
    of pytest-xdist.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByWhatIsShared(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return shared_with(nodeid)

    config.option.loadscopereorder = False  # by how many tests there are; LONG knows better
    return ByWhatIsShared(config, log)


@pytest.fixture(autouse=True)
def own_record(tmp_path_factory, monkeypatch):
    """No test reads or writes the record of the person who runs the tests."""
    # A folder that is numbered needs a look at all before it, which took three milliseconds a test.
    monkeypatch.setenv(
        "ATTENTION_COURSE_PROGRESS",
        str(tmp_path_factory.getbasetemp() / "records" / str(next(NUMBERS)) / "progress.json"),
    )


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from the source distribution as `python -m build` does it."""
    place = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(place), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert list(place.glob("*.tar.gz"))
    return next(place.glob("*.whl"))


@contextlib.contextmanager
def working_in(course: Path | None) -> Iterator[None]:
    """The course of this process, and of those that it starts meanwhile: the one in this folder, by default what it was before."""
    before = os.environ.get(COURSE_ENV)
    if course:
        os.environ[COURSE_ENV] = str(course)
    kernel_course.cache_clear()
    try:
        yield
    finally:
        os.environ.pop(COURSE_ENV, None)
        if before:
            os.environ[COURSE_ENV] = before
        kernel_course.cache_clear()


@pytest.fixture(autouse=True)
def its_course(request):
    """The engine's tests judge a course of their own, all others the attention course; a test that takes another leaves it behind."""
    with working_in(MIXING if request.path.relative_to(ROOT / "tests").parts[0] in ENGINE else None):
        yield


@pytest.fixture(autouse=True)
def gradients_recorded():
    """Some of the zoo's wrong answers switch gradients off for good, which the next test of the process must not inherit."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_grad_enabled(True)


@pytest.fixture
def graded(monkeypatch):
    """`grader class` without a process; see tests/classes.py."""
    from tests.classes import without_processes

    return without_processes(monkeypatch)


@pytest.fixture
def artefacts(request) -> Path:
    """A folder for what a test leaves to be looked at: artefacts/NAME-OF-TEST, or under $TEST_ARTEFACTS."""
    name = re.sub(r"\W+", "-", request.node.name).strip("-")
    place = Path(os.environ.get("TEST_ARTEFACTS", ROOT / "artefacts")) / name
    place.mkdir(parents=True, exist_ok=True)
    return place


@pytest.fixture
def scratch() -> Iterator[Path]:
    """An empty folder with a path so short that grading processes can share their memory; see batch.LocalPool."""
    place = Path(tempfile.mkdtemp(prefix="s-", dir="/tmp" if Path("/tmp").is_dir() else None))
    yield place
    shutil.rmtree(place, ignore_errors=True)


def children() -> list[psutil.Process]:
    """Every process that this one started, directly or not; multiprocessing's own, its bookkeeper and its fork server, which stay, aside."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            command, own = " ".join(process.cmdline()), process.ppid() == os.getpid()
            if "resource_tracker" not in command and not (own and "multiprocessing.forkserver" in command):
                found.append(process)
        except psutil.Error:
            pass
    return found


def heed_interrupts() -> None:
    """For a process about to start: Ctrl-C reaches it, also where a shell started the tests in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
