"""Run by test_core.py in an environment of its own: the course in a Python like a browser's, without processes, threads and torch.

Its arguments are how many mistakes of each exercise are made, and the lessons' names. It solves each lesson, makes the mistakes, asks
for hints and explanations, and writes what happened to standard output as JSON.
"""

from __future__ import annotations

import _thread
import contextlib
import importlib.abc
import io
import itertools
import json
import linecache
import os
import subprocess
import sys
import sysconfig
import threading

LACKING = (
    "torch",
    "psutil",
    "fcntl",
    "resource",
    "termios",
    "multiprocessing",
    "_multiprocessing",
    "safetensors",
    "IPython",
    "ipykernel",
)


class Refusing(importlib.abc.MetaPathFinder):
    """What a browser's Python lacks cannot be imported; who tries is remembered."""

    asked: list[str] = []

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in LACKING:
            self.asked.append(name)
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def refuse(*_, **__):
    raise RuntimeError("can't start new thread, and no process")


sysconfig.get_paths()  # reads a file of the platform that this is
sys.platform = "emscripten"
for name in [name for name in sys.modules if name.partition(".")[0] in LACKING]:
    del sys.modules[name]
sys.meta_path.insert(0, Refusing())
for owner, names in (
    (_thread, ("start_new_thread", "start_new", "start_joinable_thread")),
    (threading, ("_start_new_thread", "_start_joinable_thread")),
    (threading.Thread, ("start",)),
    (os, ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "popen")),
    (subprocess, ("Popen",)),
):
    for name in names:
        if hasattr(owner, name):
            setattr(owner, name, refuse)

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from shorter import with_fewer_steps  # this file's folder is where Python looks first

import grader
from grader import check, explain, hint, progress, replay, reset, solution
from grader.course import references
from grader.course.course import open_course
from grader.notebook import verdicts

MISTAKES, LESSONS = int(sys.argv[1]), sys.argv[2:]
# To arrange a figure's panels and to draw them takes most of a lesson's time: here the first few, in test_notebooks.py all.
ARRANGED, DRAWN = itertools.count(), itertools.count()
arrange, draw = ConstrainedLayoutEngine.execute, Figure.draw
ConstrainedLayoutEngine.execute = lambda engine, fig: arrange(engine, fig) if next(ARRANGED) < MISTAKES else None
Figure.draw = lambda fig, renderer: draw(fig, renderer) if next(DRAWN) < MISTAKES else None


def solved(lesson: str) -> tuple[dict[str, str], list[str]]:
    """Runs every cell of a lesson, solutions in place. Returns: what its checks found, by exercise; the roles of cells that ask for torch."""
    verdicts.verdicts.clear()
    names: dict[str, object] = {"__name__": "__main__"}
    without: list[str] = []
    cells = [cell for cell in open_course().cells(lesson) if cell.role != "prose"]
    for number, text in enumerate(with_fewer_steps(lesson, [cell.text for cell in cells])):
        file = f"<{lesson} {number}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        try:
            exec(compile(text, file, "exec"), names)
        except ModuleNotFoundError as error:
            assert error.name == "torch", error
            without.append(cells[number].role)
    return {name: verdict.status for name, (_, verdict) in verdicts.verdicts.items()}, without


def mistaken(lesson: str) -> dict[str, list[str]]:
    """By exercise: the mistakes that a check did not reject and name; of each exercise the first few are made."""
    found = {}
    for exercise in open_course().lesson(lesson).exercises:
        found[exercise.name] = []
        for mistake in exercise.mistakes[:MISTAKES]:
            shown = check(exercise.name, references.wrong(exercise, mistake))
            if shown or mistake.id not in shown.verdict.mistakes:
                found[exercise.name].append(
                    f"{mistake.id}: {shown.verdict.status}, {shown.verdict.mistakes}, {shown.verdict.headline}"
                )
    return found


def asked(lesson: str) -> dict[str, list[str]]:
    """By exercise: what the learner's other calls answered."""
    said = {}
    for exercise in open_course().lesson(lesson).exercises:
        names = exercise.name
        shown = [hint(names), hint(names), hint(names), solution(names), replay(names), reset(names)]
        told = [explain(id) for mistake in exercise.mistakes[:MISTAKES] for id in mistake.id.split("+")]
        said[names] = [each.text for each in (*shown, *told)] + [each.html for each in (*shown, *told)]
    return said


made: dict[str, object] = {"grader": grader.__file__}
with contextlib.redirect_stdout(io.StringIO()):
    results = {lesson: solved(lesson) for lesson in LESSONS}
    made["solved"], made["without torch"] = (
        {lesson: result[at] for lesson, result in results.items()} for at in (0, 1)
    )
    Refusing.asked.clear()
    made["mistaken"] = {lesson: mistaken(lesson) for lesson in LESSONS}
    made["asked"] = {lesson: asked(lesson) for lesson in LESSONS}
    made["explained"] = explain("HL2").text
    made["of torch"] = [explain("MK1").text, explain().text, hint("masked_attention").text]
    made["progress"] = progress().text
    tried = list(Refusing.asked)
    cell = "def masked_attention(q, k, v, mask=None):\n    return v"
    linecache.cache["<mine>"], names = (len(cell), None, cell.splitlines(True), "<mine>"), {}
    exec(compile(cell, "<mine>", "exec"), names)
    made["torch"] = check(names["masked_attention"]).text
    from grader.cli import main

    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        made["commands"] = {name: main(name.split()) for name in ("progress", "explain HL2", "doctor", "grade .")}
    made["complaints"] = errors.getvalue()
print(json.dumps({**made, "tried": tried, "loaded": [name for name in LACKING if name in sys.modules]}))
