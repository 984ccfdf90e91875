"""A class of small submissions to a lesson, on disk, and what a test asks of a run over it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path

import psutil

from grader.course.course import COURSE_ENV
from grader.grading import batch
from tests import mixing_course
from tests.conftest import MIXING, ROOT

LESSON = "00_lookup"
RIGHT = "def nearest(query, keys, values):\n    return values[np.argmax(keys @ query)]"
WRONG = "def nearest(query, keys, values):\n    return values[np.argmin(keys @ query)]"
LEVEL = (
    () if sys.platform == "linux" else ("--require-isolation", "process")
)  # for `grader class`, which elsewhere refuses
ENDLESS = "def nearest(query, keys, values):\n    while True: pass"


class Here:
    """A pool of this process alone."""

    width = 1

    def submit(self, function, *arguments):
        future: Future = Future()
        future.set_result(function(*arguments))
        return future

    def close(self) -> None:
        batch.close_sandboxes()


def notebook(code: str) -> str:
    """The learner's notebook of that lesson with this in its exercise cell."""
    return json.dumps(mixing_course.notebook(LESSON, nearest=code))


def hand_in(folder: Path, **codes: str) -> Path:
    """A folder for each learner, with a notebook of this code."""
    for name, code in codes.items():
        (folder / name).mkdir(parents=True)
        (folder / name / f"{LESSON}.ipynb").write_text(notebook(code))
    return folder


def command(folder: Path, out: Path, *more: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "grader",
        "class",
        str(folder),
        "--out",
        str(out),
        "--lessons",
        "00",
        "--timeout",
        "2",
        *LEVEL,
        *more,
    ]


def environment(scratch: Path) -> dict[str, str]:
    """With the course, and a temporary folder of its own, so that what stays behind is seen."""
    scratch.mkdir(exist_ok=True)
    return {**os.environ, COURSE_ENV: str(MIXING), "TMPDIR": str(scratch), "OMP_NUM_THREADS": "1"}


def run(folder: Path, out: Path, scratch: Path, *more: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command(folder, out, *more), capture_output=True, text=True, cwd=ROOT, timeout=240, env=environment(scratch)
    )


def scores(out: Path) -> dict[str, tuple[int, str]]:
    """Each learner's score and the status of the one exercise."""
    report = json.loads((out / "report.json").read_text())
    return {one["name"]: (one["score"], one["lessons"][0]["exercises"][0]["status"]) for one in report["submissions"]}


def timeless(out: Path) -> str:
    """report.json with its times out of it."""
    report = json.loads((out / "report.json").read_text())
    for one in report["submissions"]:
        for lesson in one["lessons"]:
            for exercise in lesson["exercises"]:
                del exercise["seconds"]
    return json.dumps(report, indent=1)


def left_behind(scratch: Path, patience_s: float = 8.0) -> list[str]:
    """Processes and files of the grader's that are still there once they had time to go."""
    deadline = time.monotonic() + patience_s
    while (found := _found(scratch)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def _found(scratch: Path) -> list[str]:
    found = [entry.name for entry in scratch.iterdir() if entry.name.startswith("attention-")]
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR", "").startswith(str(scratch)) and process.status() != "zombie":
                found.append(" ".join(process.cmdline()))
        except (psutil.Error, OSError):
            continue
    return found
