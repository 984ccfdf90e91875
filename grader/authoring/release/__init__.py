"""`grader release`: what an instructor hands out, and what stays on the grading side.

Everything is made in memory, searched for solution text, and only then written, all or nothing.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.authoring import reading_time
from grader.authoring.release.leaks import earlier_answers, leaks
from grader.authoring.release.wheel import (
    build_wheel,
    installed_file,
    libraries,
    needs_torch,
    staged_files,
    wheel_of,
    write_files,
)
from grader.course.course import Course
from grader.util.errors import InputError
from grader.util.files import write_atomically
from grader.util.words import pluralize

if TYPE_CHECKING:
    from jinja2 import Environment

WHEELS = "wheels"
EPOCH = (2020, 1, 1, 0, 0, 0)  # of an archive's members: the same release gives the same bytes
UV = "uv pip install --torch-backend auto -r requirements.txt"  # finds torch's build for the computer it runs on

__all__ = ["gradescope", "handout", "release"]


def release(
    course: Course,
    place: Path,
    lessons: Sequence[str],
    *,
    without_solutions: bool = False,
    gradescope_bundle: bool = False,
    grader: str = "",
    earlier: Sequence[str] = (),
) -> str:
    """Writes the hand-out into a new or empty folder, and the Gradescope bundle beside it. Returns: what to tell the instructor.

    earlier:           lessons that come along, since learners have them from an earlier hand-out; no workflow and no bundle grades them.
    without_solutions: learners get no references: nothing is judged on their side.
    grader:            what the workflow installs, as pip takes it; '' leaves it to the variable GRADER.
    Raises:            InputError where the folder holds something, or where solution text would be handed out; nothing
                       has been written then.
    """
    bundle = place.resolve().with_name(f"{place.resolve().name}-gradescope.zip") if gradescope_bundle else None
    _require_vacant(place, bundle)
    files = handout(course, lessons, without_solutions, grader, earlier)
    _refuse_leaks(course, files, without_solutions)
    data = gradescope(course, lessons) if bundle else b""
    try:
        _write_folder(place, files)
        if bundle:
            write_atomically(bundle, data)
    except OSError as error:  # which names a scratch folder
        raise InputError(f"{place} can't be written: {error.strerror or error}.") from None
    all_lessons = sorted({*lessons, *earlier})
    values = {
        "place": place,
        "count": pluralize(len(all_lessons), "lesson"),
        "files": len(files),
        "bundle": bundle,
        "points": sum(exercise.points for name in lessons for exercise in course.lesson(name).exercises),
        "earlier": _numbers(earlier, ", "),
        "judged": not without_solutions,
        "later_answers": [
            f"{name} of lesson {course.lesson_of(name)[:2]} in {_numbers(later, ', ')}"
            for name, later in earlier_answers(course, all_lessons).items()
        ],
        "grader": grader and repr(grader),
    }
    return _render("notes.md", **values).rstrip("\n")


def handout(
    course: Course,
    lessons: Sequence[str],
    without_solutions: bool = False,
    grader: str = "",
    earlier: Sequence[str] = (),
) -> dict[str, bytes]:
    """The files of the hand-out, by path. The workflows grade `lessons`; the notebooks and the wheel are of the earlier ones, too."""
    graded, lessons = lessons, sorted({*lessons, *earlier})
    staged = staged_files(course, lessons, without_solutions)
    wheel, data = wheel_of(tuple(staged.items()))
    files = {path: content for path, content in staged.items() if path.startswith("notebooks/")}
    torch = needs_torch(course, lessons)
    files["requirements.txt"] = f"-c constraints.txt\n./{WHEELS}/{wheel}[{'lab,torch' if torch else 'lab'}]\n".encode()
    files["constraints.txt"] = installed_file("constraints.txt")
    files[f"{WHEELS}/{wheel}"] = data
    exercise = course.lesson(lessons[0]).exercises[0]
    literal = grader.replace("'", "''")  # as an expression's string
    values = {
        "title": course.title,
        "own_course": not course.own_package,
        "judged": not without_solutions,
        "torch": torch,
        "uv": UV,
        "glossary": course.glossary(lessons),
        "environment": re.sub(r"[^\w.-]+", "-", course.title).strip("-") or "course",  # as conda is to call it
        "columns": reading_time.ROW,
        "lessons": [(course.lesson(name), reading_time.row(course, name)) for name in lessons],
        "exercise": exercise.name,
        "mistake": next((mistake.id.partition("+")[0] for mistake in exercise.mistakes), "SM1"),
        "graded": _numbers(graded),
        "version": wheel.split("-")[1],
        "libraries": libraries(course, graded, torch),
        "github_grader": json.dumps(f"${{{{ vars.GRADER || '{literal}' }}}}"),
        "gitlab_grader": json.dumps(grader),
    }
    paths = ["README.md", "AGENTS.md", "environment.yml", ".gitignore"]
    paths += [] if without_solutions else [".github/workflows/grade.yml", ".gitlab-ci.yml"]
    return files | {path: _render(path.rpartition("/")[2].removeprefix("."), **values).encode() for path in paths}


def gradescope(course: Course, lessons: Sequence[str]) -> bytes:
    """The autograder's archive: its scripts, the tested versions, the grader with the references of these lessons."""
    wheel, data = build_wheel(course, lessons)
    values = {"libraries": libraries(course, lessons, needs_torch(course, lessons)), "graded": _numbers(lessons)}
    scripts = {name: _render(name, **values).encode() for name in ("setup.sh", "run_autograder")}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in {**scripts, "constraints.txt": installed_file("constraints.txt"), wheel: data}.items():
            info = zipfile.ZipInfo(name, EPOCH)
            info.external_attr = (0o755 if name in scripts else 0o644) << 16
            bundle.writestr(info, content, zipfile.ZIP_DEFLATED)
    return archive.getvalue()


def _require_vacant(place: Path, bundle: Path | None) -> None:
    """Raises InputError where something would be overwritten."""
    if place.exists() and not place.is_dir():
        raise InputError(f"{place} is a file; name a new or an empty folder.")
    if place.is_dir() and any(place.iterdir()):
        raise InputError(f"{place} is not empty, so nothing was changed; name a new or an empty folder.")
    if bundle and bundle.exists():
        raise InputError(
            f"{bundle} already exists, so nothing was changed; move it away, or choose another name for the folder."
        )


def _refuse_leaks(course: Course, files: Mapping[str, bytes], without_solutions: bool) -> None:
    """Raises InputError where a file gives a solution away.

    The grader's own wheel is left out: it has to hold the references of the lessons that it judges.
    """
    contents = {name: data for name, data in files.items() if without_solutions or not name.startswith(f"{WHEELS}/")}
    if matches := leaks(course, contents):
        more = f"\n  and {len(matches) - 10} more" if len(matches) > 10 else ""
        listing = "".join(
            f"\n  {file} holds line {secret.line} of the solution of {secret.lesson}: {secret.text}"
            for file, secret in matches[:10]
        )
        raise InputError(f"this would hand out solutions, so nothing was written:{listing}{more}")


def _write_folder(place: Path, files: Mapping[str, bytes]) -> None:
    """Writes all files or none: into a folder beside the place, which then takes its name."""
    place = place.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.") as scratch:
        write_files(Path(scratch, place.name), files)
        with contextlib.suppress(FileNotFoundError):
            place.rmdir()  # empty, or this fails and nothing is lost
        os.replace(Path(scratch, place.name), place)


@cache
def _templates() -> Environment:
    """files/, with << values >> and <% statements %>: what Jinja writes by itself, shells and workflows use."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "files"),
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )


def _render(name: str, **values: Any) -> str:
    return _templates().get_template(name).render(**values)


def _numbers(lessons: Sequence[str], separator: str = ",") -> str:
    return separator.join(name[:2] for name in lessons)
