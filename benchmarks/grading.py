"""How fast a class is graded, and in how much memory: `python benchmarks/grading.py`.

one:    solved notebooks; milliseconds a submission and worker after warm-up, all reports included, by the wall clock and in
        CPU seconds of all processes: on a busy machine the wall clock says little. Three classes: each learner hands in one
        notebook, lesson 01 or lesson 05 in turn, five exercises on average, for which the goal is set; both notebooks, ten
        exercises; both, and each learner in another way (right answers of the tests' zoo), since what was seen before is
        judged faster. Beside each the milliseconds of a fixed loop, before and after: on a shared machine these swing by a
        factor of two, and figures compare only where they are about the same.
batch:  200 submissions, one in ten endless, hungry or dying (time limit 5 s): wall time; memory of the whole tree
        (pages shared by several processes divided among them) at its peak, early and late in the batch.
--vs nbgrader PYTHON: the same exercises (lesson 01) as an nbgrader course, graded by `nbgrader autograde` of that
        interpreter and by `grader class`, in turn; prints the ratio. Installs nothing.
Goals are printed beside the figures.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy and torch read it
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psutil

from grader.course import references
from grader.course.course import open_course
from grader.course.spec import SEED
from grader.grading import batch, class_folder
from grader.grading.journal import from_line
from grader.reports import report_files

LESSONS = ("01_three_tokens", "05_numpy_to_pytorch")
ONE_MS, BATCH_S, TREE_MB, TIMES_NBGRADER = 150, 120, 700, 40
TROUBLE = (
    "def softmax_rows(scores):\n    while True: pass",
    "def softmax_rows(scores):\n    return np.ones(10**11)",
    "import os\ndef softmax_rows(scores): os._exit(0)",
    "def softmax_rows(scores):\n    print('x' * 10**8)\n    raise SystemExit",
)


def notebook(lesson: str, **codes: str) -> str:
    """The learner's notebook, solved but for these exercises."""
    made = copy.deepcopy(open_course().pristine(lesson))
    for cell in made["cells"]:
        about = cell["metadata"]["grader"]
        if about["role"] == "exercise":
            name = about["exercise"]
            cell["source"] = codes.get(name) or references.solution_text(open_course(), name)
    return json.dumps(made)


def zoo(lesson: str) -> dict[str, list[str]]:
    """Right answers to each exercise, in many ways."""
    return open_course().module(f"{lesson}.zoo.answers").RIGHT


def hand_in(top: Path, count: int, trouble_each: int = 0, own_ways: bool = False, alone: bool = False) -> Path:
    """That many submissions; each `trouble_each`-th has trouble in its first lesson.

    own_ways: each learner's answers are others than the neighbours'. alone: each hands in one of the lessons, in turn.
    """
    right = {lesson: notebook(lesson) for lesson in LESSONS}
    ways = {lesson: zoo(lesson) for lesson in LESSONS} if own_ways else {}
    wrong = [notebook(LESSONS[0], softmax_rows=code) for code in TROUBLE] if trouble_each else []
    for number in range(count):
        place = top / f"learner-{number:04}"
        place.mkdir(parents=True)
        trouble = trouble_each and number % trouble_each == trouble_each - 1
        for lesson, text in right.items():
            if alone and lesson != LESSONS[number % len(LESSONS)]:
                continue
            if lesson in ways:
                text = notebook(lesson, **{name: texts[number % len(texts)] for name, texts in ways[lesson].items()})
            if trouble and lesson == LESSONS[0]:
                text = wrong[number // trouble_each % len(wrong)]
            (place / f"{lesson}.ipynb").write_text(text)
    return top


class Meter:
    """Samples the memory of this process's tree, in MB; a context manager."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, float]] = []
        self._over = threading.Event()

    def __enter__(self) -> Meter:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.5):
            self.samples.append((time.monotonic(), tree_mb()))

    def about(self, part: slice) -> float:
        """The mean of a part of the samples: their median would jump with the share of submissions that loop."""
        values = [mb for _, mb in self.samples[part]]
        return sum(values) / len(values) if values else 0.0


def tree() -> list[psutil.Process]:
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def tree_mb() -> float:
    total = 0
    for process in tree():
        with contextlib.suppress(psutil.Error):
            about = process.memory_full_info()
            total += getattr(about, "pss", 0) or about.uss
    return total / 2**20


def tree_cpu_s() -> float:
    """CPU seconds of the tree, of children that have ended too."""
    total = 0.0
    for process in tree():
        with contextlib.suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])
    return total


def loop_ms() -> float:
    """CPU milliseconds of a fixed loop: how fast this machine is at the moment."""
    started, total = time.process_time(), 0
    for number in range(1_000_000):
        total += number * number % 7
    return 1000 * (time.process_time() - started)


def measured(
    count: int,
    trouble_each: int,
    jobs: int,
    timeout_s: float,
    own_ways: bool = False,
    alone: bool = False,
    memory: bool = True,
) -> dict[str, float]:
    """Grades a class and writes its reports. Milliseconds are after the first fifth.

    memory: whether to look at it, which itself takes a fifteenth of the time.
    """
    with tempfile.TemporaryDirectory() as place:
        apart = multiprocessing.get_context("spawn")  # this process stays as small as that of `grader class`
        with ProcessPoolExecutor(1, apart) as author:
            made = author.submit(hand_in, Path(place) / "class", count, trouble_each, own_ways, alone).result()
        found, _ = class_folder.entries(made)
        settings = batch.Settings(open_course(), None if alone else LESSONS, timeout_s=timeout_s)
        results, ends, pool, warm = [], [], batch.LocalPool(jobs), max(count // 5, 1)
        started, cpu, meter = time.monotonic(), 0.0, Meter()
        try:
            with meter if memory else contextlib.nullcontext():
                batch.isolation_of(pool, settings)
                for line in batch.grade_all(found, settings, pool):
                    results.append(from_line(line))
                    ends.append(time.monotonic())
                    if len(ends) == warm:
                        cpu = tree_cpu_s()
                cpu = tree_cpu_s() - cpu
                pool.close()
                before = time.monotonic()
                results.sort(key=lambda result: result.key)
                report_files.write_all(open_course(), batch.report_of(results, settings), Path(place) / "out")
                reports_s = time.monotonic() - before
        finally:
            pool.close()
        third = max(len(meter.samples) // 3, 1)
        rest = count - warm
        return {
            "wall_s": time.monotonic() - started,
            "reports_ms": 1000 * reports_s / count,
            "ms": 1000 * (jobs * (ends[-1] - ends[warm - 1]) / rest + reports_s / count),
            "cpu_ms": 1000 * (cpu / rest + reports_s / count),
            "peak_mb": max((mb for _, mb in meter.samples), default=0.0),
            "early_mb": meter.about(slice(third, 2 * third)),
            "late_mb": meter.about(slice(2 * third, None)),
            "full": sum(result.report.score == result.report.max_score for result in results),
        }


def line(label: str, value: float, goal: float | None = None, more: str = "") -> bool:
    """Prints one figure beside its goal. Returns whether the goal is reached."""
    reached = goal is None or value <= goal
    said = "" if goal is None else f"goal ≤ {goal:<5g} {'reached' if reached else 'NOT REACHED'}"
    print(f"{label:<44}{value:9.1f}   {said}   {more}".rstrip(), flush=True)
    return reached


def measure_one(options: argparse.Namespace) -> list[bool]:
    count, reached = options.count or 40, []
    for label, how, goal in (
        ("one notebook each, five exercises on average", {"alone": True}, ONE_MS),
        ("both notebooks, ten exercises", {}, None),
        ("both, each learner in another way", {"own_ways": True}, None),
    ):
        before = loop_ms()
        seen = measured(count, 0, options.jobs, 5.0, memory=False, **how)
        print(
            f"{label}: {seen['full']} of {count} with full marks; the fixed loop took {before:.0f} and {loop_ms():.0f} ms"
        )
        line(
            "  CPU ms a submission, all processes",
            seen["cpu_ms"],
            None,
            f"{seen['reports_ms']:.1f} of these for all reports",
        )
        reached.append(line("  ms a submission and worker", seen["ms"], goal))
    return reached


def measure_batch(options: argparse.Namespace) -> list[bool]:
    count = options.count or 200
    seen = measured(count, 10, options.jobs, 5.0)
    line("submissions with full marks", seen["full"], None, f"of {count}, {count - count // 10} are solved")
    return [
        line(f"{count} submissions, one in ten troubled, s", seen["wall_s"], BATCH_S),
        line("memory of the tree at its peak, MB", seen["peak_mb"], TREE_MB),
        line(
            "  in the last third beyond the middle one, MB",
            seen["late_mb"] - seen["early_mb"],
            30,
            f"{seen['early_mb']:.0f} → {seen['late_mb']:.0f}",
        ),
    ]


# --- nbgrader --------------------------------------------------------------------------------


def nbgrader_course(top: Path, count: int) -> None:
    """Lesson 01 as an nbgrader assignment: its exercises as graded cells, with the cases as assertions."""
    names = open_course().exercises[LESSONS[0]]
    solved, cells = json.loads(notebook(LESSONS[0])), []
    for cell in solved["cells"]:
        about = cell["metadata"]["grader"]
        if cell["cell_type"] == "code" and about["role"] in ("given", "exercise"):
            text = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
            kept = [row for row in text.splitlines() if not row.startswith(("from grader", "import grader"))]
            cells.append(_nb_cell("\n".join(kept), f"given-{len(cells)}"))
    for name in names:
        cells.append(_nb_cell(_assertions(name), f"test-{name}", open_course().exercise(name).points))
    made = {
        "cells": cells,
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    }
    for place in [top / "source", *(top / "submitted" / f"learner{number}" for number in range(count))]:
        (place / "ps1").mkdir(parents=True)
        (place / "ps1" / "p1.ipynb").write_text(json.dumps(made))


def _nb_cell(text: str, id: str, points: int = 0) -> dict:
    about = {
        "grade": bool(points),
        "grade_id": id,
        "locked": bool(points),
        "schema_version": 3,
        "solution": False,
        "task": False,
    } | ({"points": points} if points else {})
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": id.replace("_", "-")[:60],
        "outputs": [],
        "source": text,
        "metadata": {"nbgrader": about} if points else {},
    }


def _assertions(name: str) -> str:
    """What an instructor would write: each case's call compared with the expected array."""
    import numpy as np

    exercise, rows = open_course().exercise(name), ["import numpy as np"]
    reference = references.reference(open_course().exercise(name))
    if exercise.kind == "answer":
        return f"assert np.allclose({name}, {np.asarray(reference).tolist()!r})"
    for case in exercise.cases(np.random.default_rng(SEED)):
        if case.probe != "call" or case.raises or case.stage != "values":
            continue
        named = [("", value) for value in case.args] + [(f"{key}=", value) for key, value in case.kwargs.items()]
        arguments = ", ".join(f"{key}np.array({np.asarray(value).tolist()!r})" for key, value in named)
        expected = reference(*map(np.array, case.args), **{key: np.array(value) for key, value in case.kwargs.items()})
        if isinstance(expected, np.ndarray):
            rows.append(f"assert np.allclose({name}({arguments}), {expected.tolist()!r}, 1e-4, 1e-5)")
    return "\n".join(rows)


def measure_nbgrader(python: str, options: argparse.Namespace) -> list[bool]:
    count = options.count or 6
    asked = subprocess.run(
        [python, "-c", "import nbgrader; print(nbgrader.__version__)"], capture_output=True, text=True
    )
    if asked.returncode:
        print(
            f"{python} can't import nbgrader; install it in an environment of its own and name its python.",
            file=sys.stderr,
        )
        return [False]
    with tempfile.TemporaryDirectory() as place:
        top = Path(place)
        nbgrader_course(top / "course", count)
        theirs_s = _autograde(python, top / "course", count)
        for number in range(count):
            target = top / "class" / f"learner{number}"
            target.mkdir(parents=True)
            (target / f"{LESSONS[0]}.ipynb").write_text(notebook(LESSONS[0]))
        command = [
            sys.executable,
            "-m",
            "grader",
            "class",
            str(top / "class"),
            "--out",
            str(top / "out"),
            "--lessons",
            "01",
        ]
        started = time.monotonic()
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=open_course().root
        )
        whole_s = (time.monotonic() - started) / count
        # after warm-up: what each further submission takes, as a long batch shows it
        many = 20 * count  # so that the start-up's own unsteadiness weighs little
        for number in range(count, many):
            shutil.copytree(top / "class" / "learner0", top / "class" / f"learner{number}")
        started = time.monotonic()
        subprocess.run(
            [*command[:-4], "--out", str(top / "more"), "--lessons", "01"],
            check=True,
            cwd=open_course().root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        more_s = (time.monotonic() - started - whole_s * count) / (many - count)
    print(
        f"nbgrader {asked.stdout.strip()}: {theirs_s:.2f} s a submission; grader class: {whole_s:.2f} s with start-up, "
        f"{more_s:.3f} s for each further one."
    )
    ratio = theirs_s / max(more_s, 1e-6)
    print(f"throughput: {ratio:.0f} times nbgrader's   goal ≥ {TIMES_NBGRADER}")
    return [ratio >= TIMES_NBGRADER]


def _autograde(python: str, top: Path, count: int) -> float:
    """Seconds a submission of nbgrader's own command. Raises: CalledProcessError where it fails."""

    beside = os.pathsep.join(
        (str(Path(python).parent), os.environ.get("PATH", os.defpath))
    )  # it calls its tools by name

    def call(*arguments: str) -> None:
        done = subprocess.run(
            [python, "-m", "nbgrader", *arguments],
            cwd=top,
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": beside},
        )
        if done.returncode:
            sys.exit(f"nbgrader {arguments[0]} failed:\n{done.stderr[-2000:]}")

    call("generate_assignment", "ps1", "--force")
    started = time.monotonic()
    call("autograde", "ps1", "--force")
    return (time.monotonic() - started) / count


def main() -> int:
    parser = argparse.ArgumentParser(description="How fast a class is graded.")
    parser.add_argument("--only", choices=("one", "batch"), help="one of the measurements")
    parser.add_argument("--count", type=int, help="submissions (default: 40, 200, and 6 for nbgrader)")
    parser.add_argument("--jobs", type=int, default=2, help="workers (default: %(default)s)")
    parser.add_argument(
        "--vs", nargs=2, metavar=("nbgrader", "PYTHON"), help="compare with nbgrader of this interpreter"
    )
    options = parser.parse_args()
    if options.vs:
        if options.vs[0] != "nbgrader":
            parser.error("--vs knows nbgrader only")
        return 0 if all(measure_nbgrader(options.vs[1], options)) else 1
    reached = []
    for name, measure in (("one", measure_one), ("batch", measure_batch)):
        if options.only in (None, name):
            reached += measure(options)
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
