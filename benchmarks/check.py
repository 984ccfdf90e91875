"""How fast a check and a grading are: `python benchmarks/check.py`, or `make bench`.

check():        warm, in one process, for every exercise: its reference (passes) and each of its mistakes (fails, with
                a diagnosis); the median and the worst of the medians over --runs.
first failure:  the processor time of an exercise's first check in a session, where nothing is built yet, for every wrong
                answer of the tests' zoo: with a mistake that is known, and with one that is not, for which pairs are sought.
from grader import check: in a fresh process, beyond `python -c pass`.
grader grade:   one solved notebook of each lesson, in turn with `python -c "import torch"`; what it takes beyond that, by the
                clock and, where other work disturbs the clock, of the processor.
Goals are printed beside the figures. Compare the ratios: seconds differ from machine to machine.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy and torch read it
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from grader.course import references
from grader.course.course import open_course
from grader.judging.baseline import baseline_of
from grader.judging.candidate import LiveObject
from grader.judging.judge import judge
from grader.reports import html, text
from grader.util.files import write_atomically
from tests.live import from_cells

CHECK_MEDIAN_MS, CHECK_WORST_MS, FIRST_FAILURE_S, IMPORT_S, GRADE_BEYOND_S = 50, 150, 0.5, 0.3, 1.0


def median_ms(work: Callable[[], object], runs: int) -> float:
    """The median of `runs` calls in milliseconds of the processor, which other work does not lengthen, after one that warms up."""
    work()
    seconds = []
    for _ in range(runs):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return 1000 * statistics.median(seconds)


def checks(runs: int, lessons: Sequence[str]) -> list[tuple[str, str, float]]:
    """(exercise, what was checked, median milliseconds), judged and rendered as check() does."""
    found = []
    for name in (name for lesson in lessons for name in open_course().exercises[lesson]):
        exercise = open_course().exercise(name)
        objects = {"passing": references.reference(open_course().exercise(name))}
        objects |= {
            f"failing, {mistake.id}": references.wrong(open_course().exercise(name), mistake)
            for mistake in exercise.mistakes
        }
        for what, obj in objects.items():

            def once(obj=obj, exercise=exercise, name=name) -> None:
                verdict = judge(exercise, LiveObject(obj))
                text.render_verdict(verdict)
                html.render_verdict(verdict)

            found.append((name, what, median_ms(once, runs)))
    return found


def process_s(*command: str, runs: int) -> tuple[float, float]:
    """The median seconds of a command: by the clock, and of the processor, its own children's included."""
    taken = []
    for _ in range(runs):
        started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(
            (time.perf_counter() - started, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        )
    return statistics.median(clock for clock, _ in taken), statistics.median(processor for _, processor in taken)


def solved(lesson: str, place: Path) -> Path:
    """The learner's notebook of a lesson with the course's own solutions in it."""
    notebook = copy.deepcopy(open_course().pristine(lesson))
    for cell in notebook["cells"]:
        about = cell["metadata"]["grader"]
        if about["role"] == "exercise":
            cell["source"] = references.solution_text(open_course(), about["exercise"])
    path = place / f"{lesson}.ipynb"
    write_atomically(path, json.dumps(notebook))
    return path


def line(label: str, value: float, goal: float, more: str = "") -> bool:
    """Prints one figure beside its goal. Returns whether the goal is reached."""
    print(f"{label:<36}{value:8.2f}   goal ≤ {goal:<5g} {'reached' if value <= goal else 'NOT REACHED'}   {more}")
    return value <= goal


def measure_checks(runs: int, lessons: Sequence[str]) -> list[bool]:
    found = sorted(checks(runs, lessons), key=lambda item: -item[2])
    times = [ms for _, _, ms in found]
    reached = [
        line("check() warm, median in ms", statistics.median(times), CHECK_MEDIAN_MS, f"of {len(times)} checks"),
        line("check() warm, worst in ms", times[0], CHECK_WORST_MS, ": ".join(found[0][:2])),
    ]
    for name, what, ms in found[1:6]:
        print(f"    then {ms:.1f} ms: {name}, {what}")
    return reached


def first_failures(lessons: Sequence[str]) -> list[tuple[float, str, bool]]:
    """(seconds of the processor, which answer, whether a mistake was named) of each wrong answer's first check."""
    import torch

    torch.optim.SGD(
        [torch.zeros(1)]
    )  # the first optimizer of a process imports a second's worth of torch, whoever makes it
    found = []
    wrong = (
        (name, number, cell)
        for lesson in lessons
        for name, cells in open_course().module(f"{lesson}.zoo.answers").WRONG.items()
        for number, (_, cell) in enumerate(cells)
    )
    for name, number, text_of_cell in wrong:
        candidate = from_cells(name, text_of_cell)
        baseline_of.cache_clear()
        started = time.process_time()
        verdict = judge(open_course().exercise(name), candidate)
        seconds = time.process_time() - started
        torch.set_grad_enabled(True)  # some of them switch it off
        if verdict.status in ("failed", "error"):
            found.append((seconds, f"{name} {number}", bool(verdict.mistakes)))
    return sorted(found, reverse=True)


def measure_first_failures(_: int, lessons: Sequence[str]) -> list[bool]:
    found, reached = first_failures(lessons), []
    for named, what in ((True, "known"), (False, "unknown")):
        slowest = [(seconds, answer) for seconds, answer, known in found if known == named]
        label = f"first failure, {what}, worst in s"
        reached.append(line(label, slowest[0][0], FIRST_FAILURE_S, f"of {len(slowest)}: {slowest[0][1]}"))
        for seconds, answer in slowest[1:4]:
            print(f"    then {seconds:.2f} s: {answer}")
    return reached


def measure_import(runs: int, _: Sequence[str]) -> list[bool]:
    (ours, _), (plain, _) = (process_s("-c", code, runs=runs) for code in ("from grader import check", "pass"))
    return [line("from grader import check, in s", ours - plain, IMPORT_S)]


def measure_grade(runs: int, lessons: Sequence[str]) -> list[bool]:
    reached = []
    with tempfile.TemporaryDirectory() as place:
        for lesson in lessons:
            notebook = str(solved(lesson, Path(place)))
            pairs = [
                (process_s("-m", "grader", "grade", notebook, runs=1), process_s("-c", "import torch", runs=1))
                for _ in range(runs)
            ]
            beyond, busy = (statistics.median(grade[i] - torch[i] for grade, torch in pairs) for i in (0, 1))
            ratio = statistics.median(grade[0] / torch[0] for grade, torch in pairs)
            more = f"{ratio:.1f} times `import torch`; {busy:.2f} s more of the processor"
            reached.append(line(f"grader grade {lesson[:2]}, s beyond torch", beyond, GRADE_BEYOND_S, more))
    return reached


MEASURES = {"check": measure_checks, "first": measure_first_failures, "import": measure_import, "grade": measure_grade}


def main() -> int:
    parser = argparse.ArgumentParser(description="How fast a check and a grading are.")
    parser.add_argument("--runs", type=int, default=7, help="of each measurement (default: %(default)s)")
    parser.add_argument("--only", choices=MEASURES, help="one of the measurements")
    parser.add_argument("--lessons", help="these alone, by their numbers, such as 04,19 (default: all)")
    options = parser.parse_args()
    numbers = options.lessons.split(",") if options.lessons else ()
    lessons = [name for name in open_course().lessons() if not numbers or name[:2] in numbers]
    chosen = [options.only] if options.only else list(MEASURES)
    reached = [each for name in chosen for each in MEASURES[name](options.runs, lessons)]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
