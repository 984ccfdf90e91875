"""The ways to set up, beside make and pip: uv, a container for VS Code, Binder, the workflow; each uses the commands of docs/setup.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from grader.course.course import open_course
from tests.bare import python_of
from tests.conftest import PACKAGING, ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
SETUP = (ROOT / "docs" / "setup.md").read_text(encoding="utf-8")
COMMANDS = {line.strip() for line in re.findall(r"^    (\S.*)$", SETUP, re.MULTILINE)}
ACTIONS = {
    "actions/checkout": 7,
    "actions/setup-python": 7,
    "actions/cache": 6,
    "actions/upload-artifact": 7,
}  # November 2026
CHECKOUT = ("pyproject.toml", "constraints.txt", "README.md", "LICENSE", "Makefile", "grader", "notebooks", "solutions")


# --- uv --------------------------------------------------------------------------------------


def as_pip_is_set() -> dict[str, str]:
    """uv's settings for where packages come from: those that pip has on this machine, and like pip the best of all places."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    said = {name: value.strip("'\"") for name, value in re.findall(r"^[\w:.-]*?\.([\w-]+)=(.*)$", listed, re.MULTILINE)}
    known = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_INDEX",
        "find-links": "UV_FIND_LINKS",
        "cert": "SSL_CERT_FILE",
    }
    made = {variable: said[name].replace("\\n", " ") for name, variable in known.items() if name in said}
    return {**made, "UV_INDEX_STRATEGY": "unsafe-best-match"}


def uv(*arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    command = [str(Path(sys.executable).with_name("uv" + (".exe" if os.name == "nt" else ""))), *arguments]
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "VIRTUAL_ENV", "UV_", "ATTENTION_COURSE"))
    }
    return subprocess.run(
        command, capture_output=True, text=True, timeout=280, cwd=cwd, env={**kept, **as_pip_is_set()}
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the checkout after `uv venv` and `uv pip install -e . -c constraints.txt`."""
    place = tmp_path_factory.mktemp("uv") / "attention"
    place.mkdir()
    for name in CHECKOUT:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, place / name)
    for command in (("venv", "--python", sys.executable), ("pip", "install", "-e", ".", "-c", "constraints.txt")):
        done = uv(*command, cwd=place)
        assert done.returncode == 0, done.stderr[-3000:]
    return place


def test_uv_installs_the_core_at_the_tested_versions(checkout):
    assert {"uv venv", 'uv pip install -e ".[lab,torch]" -c constraints.txt --torch-backend auto'} <= COMMANDS
    listed = uv("pip", "list", "--format", "json", cwd=checkout)
    installed = {one["name"]: one["version"] for one in json.loads(listed.stdout)}
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    assert {"numpy", "matplotlib", "nbformat", "psutil"} <= set(installed) and not {
        "torch",
        "jupyterlab",
        "ipykernel",
    } & set(installed)
    assert {name: found for name, found in installed.items() if name != "attention-course"} == {
        name: pins[name] for name in installed if name != "attention-course"
    }


def test_uv_run_takes_that_environment_and_changes_nothing(checkout):
    before = uv("pip", "list", cwd=checkout).stdout
    done = uv("run", "grader", "progress", cwd=checkout)
    assert done.returncode == 0 and "passed: core " in done.stdout, done.stderr
    program = "import sys; from grader import check; check('hard_lookup', lambda *_: 0); print(sys.prefix)"
    done = uv("run", "python", "-c", program, cwd=checkout / "notebooks")
    assert done.returncode == 0 and "hard_lookup" in done.stdout, done.stderr
    assert Path(done.stdout.splitlines()[-1]).resolve() == (checkout / ".venv").resolve()
    assert uv("pip", "list", cwd=checkout).stdout == before
    assert not (checkout / "uv.lock").exists()


def test_uv_takes_the_same_torch_and_the_same_jupyterlab_as_pip(checkout):
    """Asked what it would install: nothing that is not installed here, so no build of torch for another computer."""
    build = (
        ("--torch-backend", os.environ["TORCH"]) if os.environ.get("TORCH", "pip") != "pip" else ()
    )  # by which make has installed ours
    done = uv(
        "pip",
        "install",
        "--dry-run",
        "--reinstall",
        "-e",
        ".[lab,torch]",
        "-c",
        "constraints.txt",
        *build,
        cwd=checkout,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    wanted = dict(re.findall(r"^ [+~] ([\w.-]+)==([^\s]+)", done.stderr, re.MULTILINE))
    wanted.pop("attention-course", None)
    assert {"torch", "jupyterlab", "numpy"} <= set(wanted)
    different = {name: (found, here(name)) for name, found in wanted.items() if here(name) != found}
    assert not different


def here(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


# --- make, for another build of torch ---------------------------------------------------------


@pytest.mark.skipif(
    shutil.which("make") is None, reason="Windows has no make; docs/setup.md has commands of its own for it"
)
@pytest.mark.parametrize("torch", ["pip", "cpu", "auto"])
def test_make_takes_the_build_of_torch_that_it_is_told(torch, tmp_path):
    place = tmp_path / "env"
    python_of(place).parent.mkdir(parents=True)
    python_of(place).write_text("")
    done = subprocess.run(
        ["make", "-n", f"VENV={place}", f"TORCH={torch}", f"{place}/.lab"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    installs = [" ".join(line.split(" -m ")[1].split()) for line in done.stdout.splitlines() if " install " in line]
    plain = "pip install --disable-pip-version-check -c constraints.txt"
    before = (
        []
        if torch == "pip"
        else [f"{plain} --quiet uv", f"uv pip install --torch-backend {torch} -c constraints.txt torch"]
    )
    assert [line.partition(" || ")[0] for line in installs] == [*before, f'{plain} -e ".[lab,torch]"']
    assert ("PyTorch's own package index cannot be reached" in done.stdout) == (
        torch == "auto"
    )  # what was asked for by name must be had


# --- a container, Binder, a citation ----------------------------------------------------------


def test_the_container_is_set_up_by_make():
    made = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    assert set(made) <= {"name", "image", "postCreateCommand", "customizations", "forwardPorts", "features"}
    assert made["image"] == "python:3.12"  # it brings git and make
    assert f"`{made['postCreateCommand']}`" in SETUP
    make, target, *_ = made["postCreateCommand"].split()
    assert make == "make" and re.search(rf"^{target}: \$\(VENV\)/\.lab$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert made["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"].endswith("/.venv/bin/python")


def test_binder_adds_to_a_python_that_has_its_own_jupyterlab():
    place = ROOT / ".binder"
    assert re.fullmatch(r"python-3\.1[1-9]\n", (place / "runtime.txt").read_text())
    script = (place / "postBuild").read_text()
    assert os.name == "nt" or os.access(place / "postBuild", os.X_OK)
    *_, last = script.splitlines()
    assert last.replace("python -m ", "").replace(" --no-cache", "") in COMMANDS
    assert ".[torch]" in last and "lab" not in last.replace("--torch-backend", "")
    assert subprocess.run(["bash", "-n", "-c", script], capture_output=True).returncode == 0


CITED = {  # the Citation File Format 1.2.0: each key and what it holds; the first four are required
    "cff-version": str,
    "message": str,
    "title": str,
    "authors": list,
    "type": str,
    "abstract": str,
    "license": str,
    "keywords": list,
    "repository-code": str,
    "url": str,
    "version": str,
    "date-released": object,
    "doi": str,
    "contact": list,
    "identifiers": list,
    "preferred-citation": dict,
    "references": list,
    "repository": str,
    "repository-artifact": str,
    "commit": str,
    "license-url": str,
}
ENTITY = {
    "name",
    "address",
    "alias",
    "city",
    "country",
    "email",
    "fax",
    "location",
    "orcid",
    "post-code",
    "region",
    "tel",
    "website",
}
PERSON = {
    "family-names",
    "given-names",
    "name-particle",
    "name-suffix",
    "affiliation",
    "address",
    "alias",
    "city",
    "country",
    "email",
    "fax",
    "orcid",
    "post-code",
    "region",
    "tel",
    "website",
}


def test_the_citation_is_one_that_readers_of_the_format_take():
    made = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(made) <= set(CITED)
    assert all(isinstance(value, CITED[key]) for key, value in made.items())
    assert made["cff-version"] == "1.2.0" and made["type"] in ("software", "dataset")
    assert made["authors"] and all(
        set(one) <= (ENTITY if "name" in one else PERSON) and all(map(str.strip, one.values()))
        for one in made["authors"]
    )
    assert all(isinstance(word, str) and word for word in made["keywords"])
    assert f'license = "{made["license"]}"' in (ROOT / "pyproject.toml").read_text() and made[
        "title"
    ] == README.partition("\n")[0].strip("# ")


# --- the workflow ------------------------------------------------------------------------------


def workflow(name: str) -> dict:
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))


def test_the_workflow_runs_the_test_command_on_three_systems():
    made = workflow("test.yml")
    (job,) = made["jobs"].values()
    assert [name.partition("-")[0] for name in job["strategy"]["matrix"]["os"]] == ["ubuntu", "macos", "windows"]
    assert made["permissions"] == {"contents": "read"} and "secrets" not in json.dumps(made)
    steps = {step["if"].split("'")[1]: step for step in job["steps"] if "if" in step}
    assert set(steps) == {"Linux", "macOS", "Windows"}
    assert ".ci/run" in steps["Linux"]["run"]
    assert steps["Linux"]["env"] == {"TORCH": "cpu", "PYTEST_ADDOPTS": "-p tests.no_skips"}
    assert all(f'{name}="${name}"' in steps["Linux"]["run"] for name in steps["Linux"]["env"])
    assert steps["macOS"]["run"] == "make test" and "make test" in (ROOT / ".ci" / "run").read_text()


def test_where_there_is_no_make_the_same_is_run():
    """On Windows: what `make test` runs, and what it installs first."""
    (job,) = workflow("test.yml")["jobs"].values()
    (step,) = [step for step in job["steps"] if "Windows" in step.get("if", "")]
    recipe = re.search(r"^test: .*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    words = [re.sub(r"^\t@?\$\(BIN\)/(python -m |python )?", "", line) for line in recipe.splitlines()]
    theirs = [re.sub(r"^python (-m )?", "", line) for line in step["run"].splitlines()]
    assert theirs[-len(words) :] == words and step["shell"] == "bash"
    assert all("-c constraints.txt" in line for line in theirs[: -len(words)])


def test_make_test_packaging_runs_all_tests_of_packaging():
    recipe = re.search(r"^test-packaging: .*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    assert re.findall(r"tests/(\S+)", recipe) == list(PACKAGING)


def test_every_action_is_of_the_current_major_version():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        used = re.findall(r"uses: (\S+)@v(\d+)", path.read_text(encoding="utf-8"))
        assert used and all(ACTIONS.get(name, int(major)) == int(major) for name, major in used), used


@pytest.mark.parametrize("body, code", [("assert True", 0), ("pytest.skip('no reason')", 1)])
@pytest.mark.parametrize("processes", [(), ("-n", "1")], ids=["one process", "two"])
def test_on_linux_a_skip_is_a_failure(body, code, processes, tmp_path):
    (tmp_path / "test_it.py").write_text(f"import pytest\n\n\ndef test_it():\n    {body}\n")
    base = f"--basetemp={tmp_path / 'base'}"  # in the folder that all share, it would delete what earlier runs left: up to a minute
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:nbval",
        "-p",
        "tests.no_skips",
        base,
        *processes,
    ]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(tmp_path)], capture_output=True, text=True, timeout=120, cwd=ROOT
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert ("SKIPPED, where nothing may be" in done.stdout) == bool(code)


class Process:
    """As the scheduler of pytest-xdist sees one of two processes: it remembers which tests it was given."""

    gateway, shutting_down = SimpleNamespace(id="popen"), False

    def __init__(self) -> None:
        self.given: list[int] = []

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.given += numbers

    def shutdown(self) -> None:
        pass


def test_one_process_runs_all_of_a_file_and_the_files_that_share_a_wheel(request):
    named = [
        f"tests/{file}.py::test_{number}"
        for number in range(3)
        for file in ("test_core", "test_site", "util/test_files", "test_alone", "test_notebooks")
    ]
    two = SimpleNamespace(option=SimpleNamespace(), getvalue=lambda name: ["2*popen"])
    scheduler = request.config.hook.pytest_xdist_make_scheduler(config=two, log=None)
    processes = Process(), Process()
    for process in processes:
        scheduler.add_node(process)
        scheduler.add_node_collection(process, named)
    scheduler.schedule()
    first, second = ([named[number] for number in process.given] for process in processes)
    assert sorted(first) == sorted(name for name in named if "test_core" in name or "test_alone" in name)
    assert sorted(second) == sorted(name for name in named if "test_site" in name)


WITHOUT_UNIX = """
import sys
sys.modules["rfc3987_syntax"] = None  # see import_nbformat in grader/util/libraries.py
import nbval.plugin, jupyterlab, tornado.ioloop, jupyter_client, distributed, psutil, pytest, multiprocessing, asyncio, xdist, playwright, os
for name in ("fcntl", "resource", "termios", "pty", "tty", "grp", "pwd"):
    sys.modules[name] = None
for name in ("uname", "fork", "mkfifo", "killpg"):
    if hasattr(os, name):
        delattr(os, name)
sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "--assert=plain", "tests"]))
"""


def test_every_test_can_be_collected_without_unix():
    """What needs Unix is skipped with its reason and breaks no other test: Windows lacks these modules and functions."""
    plain = {
        name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"
    }  # which may change what is printed
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_UNIX], capture_output=True, text=True, timeout=280, cwd=ROOT, env=plain
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert len(open_course().exercise_names()) < done.stdout.count("::")
