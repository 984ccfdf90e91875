"""Makes wheels of the grader that is running: for learners and for the grading side.

A wheel is a zip with a list of its files (the binary distribution format of packaging.python.org). It is written here
because the running grader may itself come from a wheel, where there is no source that a build tool could take.

Its version ends in a digest of what it holds, as in 0.1.0+c4f1a90b2: pip takes two wheels of one version for the same
and would keep the first.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import os
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from grader.course.course import GLOSSARY, Course, installed_folder
from grader.course.stubs import encode, notebook

PACKAGE = Path(__file__).resolve().parents[2]
DISTRIBUTION = "attention-course"
LEARNERS = "attention-course-notebooks"  # a name of its own: it must never count as the grader
_EPOCH = (2020, 1, 1, 0, 0, 0)  # the same release gives the same bytes
_OF_LESSON = re.compile(r"(?:course/lessons/|(?:figures|worker/probes)/lesson_)(\d\d)\w*(?:/\w+)?\.py")
_TORCH = re.compile(r"torch\b(?!-)")
_FOR_LEARNERS = {"__init__.py": "learners___init__.py", "notebook/record.py": "learners_record.py"}


def grader_wheel(course: Course, lessons: Sequence[str]) -> tuple[str, bytes]:
    """(file name, bytes) of the grader with the specifications and references of these lessons and of no others."""
    package = _package(course, lessons)
    files = {f"grader/{path}": data for path, data in package.items()}
    if course.own():
        files["grader/course/lessons/index.json"] = index.built().encode()
    files["grader/_course/constraints.txt"] = constraints()
    if course.glossary(lessons):
        files[f"grader/_course/notebooks/{GLOSSARY}"] = course.glossary(lessons).encode()
    for name in lessons:
        files[f"grader/_course/solutions/{name}.py"] = course.source(name).encode()
        files[f"grader/_course/notebooks/{name}.ipynb"] = encode(course.handed_out(name, lessons)).encode()
        # Of the solved notebook only the numbers that the prose quotes: they come from a run, which nobody repeats here.
        said = notebook([], {"lesson": name, "quoted": [list(pair) for pair in course.quoted(name)]})
        files[f"grader/_course/solutions/{name}.ipynb"] = encode(said).encode()
    return _wheel(
        DISTRIBUTION, files, needs_torch(course, lessons, package), "[console_scripts]\ngrader = grader.cli:main\n"
    )


def notebooks_wheel(course: Course, lessons: Sequence[str]) -> tuple[str, bytes]:
    """(file name, bytes) of what notebooks import where nothing is judged: the figures, and a check() that says so."""
    package = _package(course, lessons)
    torch = needs_torch(course, lessons, package)
    for path, stand_in in _FOR_LEARNERS.items():  # in place of what would need the references
        package[path] = package[f"authoring/release/files/{stand_in}"]
    numbers = {name[:2] for name in lessons}
    start = [path for path in package if path.startswith(("figures/", "data/")) and _number(path) in (*numbers, "")]
    files = {f"grader/{path}": package[path] for path in _closure(["__init__.py", *start], package)}
    return _wheel(LEARNERS, files, torch)


def constraints() -> bytes:
    """constraints.txt, which a checkout and a wheel both carry."""
    return (installed_folder() / "constraints.txt").read_bytes()


def needs_torch(course: Course, lessons: Sequence[str], package: Mapping[str, bytes] | None = None) -> bool:
    """Whether a source, a specification, a figure or a probe of these lessons imports torch. package: their files, where they are read."""
    package, numbers = package or _package(course, lessons), {name[:2] for name in lessons}
    reached = _closure([path for path in package if _number(path) in numbers], package)
    texts = [course.source(name) for name in lessons] + [package[path].decode() for path in reached if _number(path)]
    return any(re.search(r"^\s*(?:import|from) torch\b", text, re.MULTILINE) for text in texts)


def _package(course: Course, lessons: Sequence[str]) -> dict[str, bytes]:
    """The package's files by path; of other lessons only what a chosen one imports.

    A course of one's own stands in the place of the package's lessons. It may name any of the package's probes and figures.
    """
    files = _below(PACKAGE)
    if course.own():
        files = {
            path: data for path, data in files.items() if not (path.startswith("course/lessons/") and _number(path))
        }
        files |= {f"course/lessons/{path}": data for path, data in _below(course.specified()).items()}
    numbers = {name[:2] for name in lessons}
    shared = ("figures/", "worker/") if course.own() else ()
    needed = _closure([path for path in files if _number(path) in (*numbers, "") or path.startswith(shared)], files)
    return {path: data for path, data in files.items() if path in needed}


def _below(top: Path) -> dict[str, bytes]:
    """The files of a folder by path, without the course that a wheel carries and what Python leaves."""
    found: dict[str, bytes] = {}
    for folder, inside, names in os.walk(top):
        inside[:] = [name for name in inside if name not in ("_course", "__pycache__")]
        here = Path(folder).relative_to(top).as_posix()
        for name in names:
            path = Path(folder, name)
            if path.is_file():
                found[name if here == "." else f"{here}/{name}"] = path.read_bytes()
    return dict(sorted(found.items()))


def _number(path: str) -> str:
    """'05' for a module that belongs to lesson 05, '' for one of the whole course."""
    found = _OF_LESSON.fullmatch(path)
    return found[1] if found else ""


def _closure(start: Iterable[str], files: Mapping[str, bytes]) -> set[str]:
    """These files and the modules of the package that they import, directly or not."""
    found, left = set(), list(start)
    while left:
        path = left.pop()
        if path in files and path not in found:
            found.add(path)
            if path.endswith(".py"):
                left += _imported(path, files[path])
    return found


@cache
def _imported(path: str, code: bytes) -> list[str]:
    """Where a module's imports of the package may lie."""
    here = ("grader/" + path).split("/")[:-1]
    names: list[str] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names += [module, *(f"{module}.{alias.name}" for alias in node.names)]
    made = []
    for name in names:
        if name.startswith("grader."):
            inner = name.removeprefix("grader.").replace(".", "/")
            made += [f"{inner}.py", f"{inner}/__init__.py"]
            made += [f"{'/'.join(inner.split('/')[:depth])}/__init__.py" for depth in range(1, inner.count("/") + 1)]
    return made


def _wheel(distribution: str, files: Mapping[str, bytes], torch: bool, entry_points: str = "") -> tuple[str, bytes]:
    """torch: whether it is among the requirements."""
    about = _about(torch)
    version = _version({**files, "": (about + entry_points).encode()})
    stem = f"{distribution.replace('-', '_')}-{version}"
    folder = f"{stem}.dist-info"
    head = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    members = {**files, f"{folder}/METADATA": (head + about).encode()}
    startup = files.get("grader/notebook/startup.py")
    if startup is not None:  # as pyproject.toml says: IPython runs it when a kernel starts
        members[f"{stem}.data/data/etc/ipython/startup/50-attention-course.py"] = startup
    members[f"{folder}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: grader release\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    members[f"{folder}/licenses/LICENSE"] = _license().encode()
    if entry_points:
        members[f"{folder}/entry_points.txt"] = entry_points.encode()
    record = f"{folder}/RECORD"
    rows = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in members.items()]
    members[record] = "\n".join([*rows, f"{record},,"]).encode() + b"\n"
    return f"{stem}-py3-none-any.whl", zipped(members)


def _about(torch: bool) -> str:
    """The running grader's own metadata without name and version; of its extras JupyterLab's, and torch's as a requirement."""
    own = metadata.metadata(DISTRIBUTION)
    asked = own.get_all("Requires-Dist") or []
    plain = [line for line in asked if "extra ==" not in line and not _TORCH.match(line)]
    tensors = [line.partition(";")[0].strip() for line in asked if torch and _TORCH.match(line)]
    lab = [line for line in asked if re.search(r"extra == ['\"]lab['\"]", line)]
    lines = [f"Summary: {own['Summary']}", f"Requires-Python: {own['Requires-Python']}", "Provides-Extra: lab"]
    lines += [f"Project-URL: {url}" for url in own.get_all("Project-URL") or []]
    return "\n".join([*lines, *(f"Requires-Dist: {line}" for line in [*plain, *tensors, *lab])]) + "\n"


def _version(files: Mapping[str, bytes]) -> str:
    """The running grader's version and, as its local part, a digest of these files; a letter first, since 007 becomes 7."""
    public = metadata.version(DISTRIBUTION).partition("+")[0]
    listed = "\n".join(f"{name} {_digest(data)}" for name, data in sorted(files.items()))
    return f"{public}+c{hashlib.sha256(listed.encode()).hexdigest()[:8]}"


def _license() -> str:
    checkout = installed_folder() / "LICENSE"
    if checkout.is_file():
        return checkout.read_text(encoding="utf-8")
    return metadata.distribution(DISTRIBUTION).read_text("licenses/LICENSE") or ""


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def zipped(members: Mapping[str, bytes], executable: Sequence[str] = ()) -> bytes:
    """An archive whose bytes depend on its members alone."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.external_attr = (0o755 if name in executable else 0o644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return made.getvalue()
