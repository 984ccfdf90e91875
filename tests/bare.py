"""Environments with a few of the installed libraries and no others: a fresh one for each, made by links instead of downloads."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def python_of(place: Path) -> Path:
    """The interpreter of an environment."""
    return place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def environment(place: Path, wheel: Path, *more: str, platform: str = sys.platform) -> Path:
    """A new environment with the wheel, what it requires without extras, and what is asked for besides.

    more:     names of installed distributions, such as 'ipykernel'; what they require comes with them.
    platform: what sys.platform is while requirements are read: 'emscripten' for a browser's Python.
    Returns:  its interpreter.
    """
    venv.create(place, with_pip=False)
    install(wheel, python_of(place))
    add_required(place, *more, platform=platform)
    return python_of(place)


def add_required(place: Path, *more: str, platform: str = sys.platform) -> None:
    """Puts into an environment what the wheel that is installed there requires; more, platform: see `environment`."""
    packages = _packages(place)
    (about,) = packages.glob("attention_course-*.dist-info/METADATA")
    lines = [
        line.removeprefix("Requires-Dist: ")
        for line in about.read_text(encoding="utf-8").splitlines()
        if line.startswith("Requires-Dist: ")
    ]
    for name in closure([*lines, *more], platform):
        link(name, packages)


def beside_ours(place: Path, wheel: Path) -> Path:
    """A new environment with the wheel and, of this environment, the libraries. Returns: its interpreter."""
    venv.create(place, with_pip=False)
    install(wheel, python_of(place))
    _reads(place, *(path for path in sys.path if path.endswith("-packages")))
    return python_of(place)


def beside(place: Path, names: Iterable[str]) -> Path:
    """A new environment that reads these distributions from a folder beside it, where an installer sees them and leaves them alone.

    Returns: its interpreter.
    """
    venv.create(place, with_pip=False)
    libraries = place.with_name(f"{place.name}-libraries")
    libraries.mkdir()
    for name in names:
        link(name, libraries)
    _reads(place, str(libraries))
    return python_of(place)


def _packages(place: Path) -> Path:
    return next(place.glob("lib/python*/site-packages"), place / "Lib" / "site-packages")


def _reads(place: Path, *folders: str) -> None:
    """Has an environment import from these folders, too."""
    (_packages(place) / "libraries.pth").write_text("\n".join(folders) + "\n")


def install(wheel: Path, executable: Path) -> None:
    """Puts a wheel into an environment. By uv, which takes a fifth of pip's time; test_release_setup.py has pip install wheels."""
    command = [sys.executable, "-m", "uv", "pip", "install", "--python", str(executable)]
    alone = ["--no-deps", "--offline", "--no-cache", "--quiet", str(wheel)]
    done = subprocess.run([*command, *alone], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


def closure(requirements: Iterable[str], platform: str = sys.platform) -> set[str]:
    """The names of the distributions that these need, directly or not, as they are installed here."""
    found: set[tuple[str, str]] = set()
    left = [Requirement(each) for each in requirements]
    while left:
        wanted = left.pop()
        for extra in ("", *wanted.extras):
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra, "sys_platform": platform}):
                continue
            key = canonicalize_name(wanted.name), extra
            if key in found:
                continue
            found.add(key)
            for line in distribution(wanted.name).requires or ():
                one = Requirement(line)
                if one.marker is None or one.marker.evaluate({"extra": extra, "sys_platform": platform}):
                    left.append(Requirement(line.partition(";")[0]))
    return {name for name, _ in found}


def link(name: str, packages: Path) -> None:
    """Puts an installed distribution into an environment: each of its top-level files and folders as a link."""
    of = distribution(name)
    tops = {
        file.parts[0]
        for file in of.files or ()
        if file.parts[0] not in ("..", "__pycache__") and not file.is_absolute()
    }
    for top in tops:
        here = Path(str(of.locate_file(top)))
        if not (packages / top).exists():
            (packages / top).symlink_to(here, target_is_directory=here.is_dir())
