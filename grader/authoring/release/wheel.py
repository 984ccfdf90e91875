"""The wheel of a hand-out: the engine that is running and, of a course's folder, what is not left out.

The project's build backend makes it, from a folder that is laid out as a checkout is. A wheel carries all that this takes in
grader/_course/ (see force-include in pyproject.toml), so that the running grader may itself come from one.

Its version ends in a digest of what it holds, as in 0.2.0+c4f1a90b2: pip takes two wheels of one version for the same
and would keep the first.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from grader.course import index
from grader.course.course import GLOSSARY, Course
from grader.course.course_folder import installed_folder
from grader.course.stubs import encode, notebook

ENGINE = Path(__file__).resolve().parents[2]
PROJECT = "pyproject.toml"
ROOT_FILES = ("LICENSE", "README.md", "constraints.txt")  # what else a checkout has in its root and the build needs
LEFT_OUT = ("_course", "__pycache__", ".ipynb_checkpoints", "zoo")
_VERSION = re.compile(r'^version = "([^"+]+)[^"]*"$', re.MULTILINE)
_TORCH = re.compile(r"^\s*(?:import|from) torch\b", re.MULTILINE)


def build_wheel(course: Course, lessons: Sequence[str], without_solutions: bool = False) -> tuple[str, bytes]:
    """(file name, bytes) of the engine with these lessons and no others; the same course gives the same bytes.

    without_solutions: its course has notebooks, figures and data, and nothing that judges.
    """
    return wheel_of(tuple(staged_files(course, lessons, without_solutions).items()))


@lru_cache(maxsize=4)  # a hand-out and its Gradescope bundle hold the same one
def wheel_of(files: tuple[tuple[str, bytes], ...]) -> tuple[str, bytes]:
    """(file name, bytes) of the wheel that the build backend makes of a checkout with these files, by path."""
    from hatchling.builders.wheel import WheelBuilder

    with tempfile.TemporaryDirectory(prefix="release-") as place:
        write_files(Path(place), dict(files))
        (wheel,) = WheelBuilder(place).build(directory=str(Path(place, "dist")), versions=["standard"])
        return Path(wheel).name, Path(wheel).read_bytes()


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files below a folder, by path."""
    for parent in {(folder / name).parent for name in files}:
        parent.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


def staged_files(course: Course, lessons: Sequence[str], without_solutions: bool) -> dict[str, bytes]:
    """The files that the wheel is built from, by path; pyproject.toml with the version that they get."""
    files = {f"grader/{path}": data for path, data in _files_of(ENGINE).items()}
    files |= {name: installed_file(name) for name in ROOT_FILES}
    files |= _course_files(course, lessons, without_solutions)
    files[".gitignore"] = b""  # the build leaves out what the nearest one names
    files[PROJECT] = _VERSION.sub(r'version = "\1"', installed_file(PROJECT).decode()).encode()
    listing = "\n".join(f"{name} {hashlib.sha256(data).hexdigest()}" for name, data in sorted(files.items()))
    digest = hashlib.sha256(listing.encode()).hexdigest()[:8]  # behind a letter, since 007 would become 7
    files[PROJECT] = _VERSION.sub(rf'version = "\1+c{digest}"', files[PROJECT].decode()).encode()
    return files


def _course_files(course: Course, lessons: Sequence[str], without_solutions: bool) -> dict[str, bytes]:
    """A course's folder without what is left out. Its index keeps the names of all lessons: their notebooks are told from others."""
    files = _notebook_files(course, lessons)
    files["solutions/index.json"] = index.text(course).encode()
    about = course.solutions / "course.toml"
    # Without a title it would be called like its folder, which is another one there.
    title = "" if "title" in course.about else f"title = {json.dumps(course.title)}\n"
    files["solutions/course.toml"] = title.encode() + (about.read_bytes() if about.is_file() else b"")
    for name in ("shared", *lessons):
        files |= {f"solutions/{name}/{path}": data for path, data in _files_of(course.folder(name)).items()}
    if without_solutions:
        pattern = re.compile(r"notebooks/.*|solutions/(?:[^/]+|shared/(?:figures|data)/.*|[^/]+/figures\.py)")
        return {name: data for name, data in files.items() if pattern.fullmatch(name)}
    # Of a solved notebook only the numbers that the prose quotes: they come from a run, which nobody repeats.
    for name in lessons:
        numbers = notebook([], {"lesson": name, "quoted": [list(pair) for pair in course.quoted_values(name)]})
        files[f"solutions/{name}.ipynb"] = encode(numbers).encode()
    return files


def _notebook_files(course: Course, lessons: Sequence[str]) -> dict[str, bytes]:
    """The learner's notebooks of these lessons and the glossary, by path."""
    files = {f"notebooks/{name}.ipynb": encode(course.handout_notebook(name, lessons)).encode() for name in lessons}
    if course.glossary(lessons):
        files[f"notebooks/{GLOSSARY}"] = course.glossary(lessons).encode()
    return files


def needs_torch(course: Course, lessons: Sequence[str]) -> bool:
    """Whether a source, a specification, a figure or a probe of these lessons imports torch."""
    files = (data for name in lessons for path, data in _files_of(course.folder(name)).items() if path.endswith(".py"))
    return any(map(course.needs_torch, lessons)) or any(_TORCH.search(data.decode()) for data in files)


def libraries(course: Course, lessons: Sequence[str], torch: bool) -> str:
    """What grading these lessons takes beside the wheel's own requirements, as words of a command: ' torch triton'."""
    names = {module for name in lessons for exercise in course.lesson(name).exercises for module in exercise.libraries}
    return "".join(f" {module}" for module in [*["torch"] * torch, *sorted(names)])


def installed_file(name: str) -> bytes:
    """A file of the checkout's root, or what the wheel has of it."""
    return (installed_folder() / name).read_bytes()


def _files_of(folder: Path) -> Mapping[str, bytes]:
    """The files of a folder by path, in order."""
    paths = sorted(path.relative_to(folder) for path in folder.rglob("[!.]*") if path.is_file())
    return {path.as_posix(): (folder / path).read_bytes() for path in paths if not {*LEFT_OUT} & {*path.parts[:-1]}}
