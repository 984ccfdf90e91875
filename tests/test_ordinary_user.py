"""The hostile suite once more, as somebody without rights: the walls must not lean on root's, nor root on theirs.

Where root runs the tests, everything is copied to where others may read it: this checkout, and the interpreter if it
lies in a closed folder. Where an ordinary user runs them, tests/hostile has run as one already. What is marked `any_user` runs once:
no wall, no file and no right decides it, or another test, which runs as both, proves that it does not; and it has run as root, at its length.
"""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

NOBODY = 65534
AS_USER = ("tests/hostile", "tests/sandbox/test_walls.py", "tests/sandbox/test_scratch.py")
PYTEST = "import os, sys, pytest; print(os.getuid(), flush=True); sys.exit(pytest.main(sys.argv[1:]))"
LEFT_OUT = shutil.ignore_patterns(
    "test", "tests", "idlelib", "lib2to3", "tkinter", "ensurepip", "config-*", "site-packages", "*.opt-?.pyc"
)

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that everybody may read, with this checkout in it."""
    place = Path(tempfile.mkdtemp(prefix="course-for-all-"))
    place.chmod(0o755)
    ignored = shutil.ignore_patterns("artefacts", ".venv", ".git", "*_cache")
    shutil.copytree(ROOT, place / "course", ignore=ignored)
    yield place
    shutil.rmtree(place)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="tests/hostile itself has run as an ordinary user"
)
def test_the_hostile_suite_holds_as_an_ordinary_user(open_place):
    home = open_place / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    python = _interpreter(open_place)
    done = _run(
        python,
        home,
        "-c",
        PYTEST,
        "-q",
        "-p",
        "no:cacheprovider",
        f"--basetemp={home / 'tmp'}",
        "-m",
        "not any_user",
        *_files(),
    )
    print(done.stdout[-4000:])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert done.stdout.splitlines()[0] == str(NOBODY)
    assert " passed" in done.stdout and "skipped" not in done.stdout.splitlines()[-1]


def _files() -> Iterator[str]:
    """The files to collect. One that is `any_user` as a whole is left out: to import it may take seconds."""
    for name in AS_USER:
        path = ROOT / name
        for file in sorted(path.glob("test_*.py")) if path.is_dir() else [path]:
            if "\npytestmark = pytest.mark.any_user" not in file.read_text(encoding="utf-8"):
                yield file.relative_to(ROOT).as_posix()


def _interpreter(place: Path) -> Path:
    """This interpreter, or a copy of it where others can't reach it; it finds the same packages."""
    base = Path(sys.base_prefix)
    if all(folder.stat().st_mode & 0o005 == 0o005 for folder in (base, *base.parents)):
        return Path(sys.executable)
    copied = place / "python"
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (copied / "bin").mkdir(parents=True)
    shutil.copy(base / "bin" / name, copied / "bin" / name)
    shutil.copytree(base / "lib" / name, copied / "lib" / name, ignore=LEFT_OUT)
    for library in (base / "lib").glob("libpython*"):
        shutil.copy(library, copied / "lib")
    packages = copied / "lib" / name / "site-packages"
    packages.mkdir()
    (packages / "all.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return copied / "bin" / name


def _run(python: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "HOME": str(home),
        "TMPDIR": str(home),
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": str(python.parent.parent / "lib"),
    }
    return subprocess.run(
        [python, *arguments],
        cwd=home.parent / "course",
        env=environment,
        user=NOBODY,
        group=NOBODY,
        extra_groups=(),
        capture_output=True,
        text=True,
        timeout=1150,
    )
