"""What the course tells IPython: sentences for names that are not known, %grader, and which cells failed.

`attach` runs when a kernel starts (startup.py beside this file, which an installation puts where IPython looks), so that a
kernel that was restarted has an answer to `check(...)` before anything ran; `listen` runs when a notebook imports the course.
"""

from __future__ import annotations

import contextlib
import importlib
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from grader.notebook.display import ipython
from grader.util.errors import InputError


def attach() -> Any:
    """Gives the running IPython shell our sentences and %grader, once. Returns: the shell, None where there is none."""
    shell = ipython()
    if shell is not None and not hasattr(shell, "attention_course"):
        shell.attention_course = False
        if not shell.custom_exceptions:  # another package may have taken that place
            shell.set_custom_exc((NameError,), _name_error)
        shell.register_magic_function(_grader, "line", "grader")
    return shell


def listen() -> None:
    """From now on every cell's run is noted."""
    shell = attach()
    if shell is None or shell.attention_course:
        return
    shell.attention_course = True
    shell.events.register("pre_run_cell", lambda info: _before(shell, info))
    shell.events.register("post_run_cell", lambda result: _after(shell, result))


def _before(shell: Any, info: Any) -> None:
    from grader.notebook.verdicts import history

    # Ids of the cells that were deleted since the last run: JupyterLab and Notebook say so with each cell that they run.
    request = shell.get_parent() if hasattr(shell, "get_parent") else {}
    deleted = [id for id in (request or {}).get("metadata", {}).get("deletedCells", ()) if isinstance(id, str)]
    history.begin(info.raw_cell, getattr(info, "cell_id", None), shell.user_ns, deleted)


def _after(shell: Any, result: Any) -> None:
    from grader.notebook.cell_output import unmute
    from grader.notebook.verdicts import history

    unmute()
    info, error = result.info, result.error_before_exec or result.error_in_exec
    history.end(info.raw_cell, getattr(info, "cell_id", None), error, shell.user_ns)


def _name_error(shell: Any, kind: type, error: NameError, trace: Any, tb_offset: int | None = None) -> None:
    """Shows a sentence where a call of the course's own is at fault, else the traceback as it always is."""
    from grader.notebook import name_errors
    from grader.notebook.display import sentence
    from grader.notebook.kernel_course import kernel_course
    from grader.notebook.verdicts import history

    try:  # a notebook of somebody else's, in the environment of the course, is none of ours
        is_lesson = shell.attention_course or any(Path(f"{name}.ipynb").is_file() for name in kernel_course().exercises)
        advice = name_errors.sentence(error, trace, shell.user_ns, history) if is_lesson else None
    except Exception:  # nothing of ours stands between a learner and their traceback
        advice = None
    if advice is None:
        shell.showtraceback((kind, error, trace), running_compiled_code=True)
        return
    from IPython.display import display

    shell._last_traceback = [advice]  # what the kernel answers; it would be that of an earlier cell
    display(sentence(advice))


def _grader(line: str) -> None:
    """%grader doctor: the command `grader` of this very Python, wherever a terminal may find another one or none."""
    from grader.notebook.kernel_course import kernel_course, name_in_environment

    name_in_environment()
    try:
        words = shlex.split(line)
    except ValueError as error:
        print(f"This line cannot be read: {error}. A name with a quotation mark in it has to stand between others.")
        return
    if advice := _before_reset(words):
        print(advice)
    elif _run(words) == 0 and words[:1] == ["reset"]:
        for name in {*words}.intersection(kernel_course().exercise_names()):
            ipython().user_ns.pop(name, None)  # the old definition, so that no check judges it


def _run(words: list[str]) -> int | None:
    """Runs the command. Returns: its exit code, None where it was stopped."""
    command = [sys.executable, "-m", "grader", *words]
    try:
        running = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
    except OSError:  # a browser's Python has no processes
        return importlib.import_module("grader.cli").main(words)
    with running:
        try:
            for line in running.stdout or ():
                print(line, end="", flush=True)
        except KeyboardInterrupt:
            # The square in the toolbar reaches the command, too, where it shares the kernel's group.
            running.terminate()
            print("stopped.")
            return None
    return running.returncode


def _before_reset(words: list[str]) -> str:
    """What to do before `%grader reset`; '' for nothing. Options may be shortened, and come first."""
    from grader.notebook.kernel_course import kernel_course
    from grader.notebook.resetting import save_advice

    if words[:1] != ["reset"] or not any(word.startswith("--con") for word in words):
        return ""
    course, arguments = kernel_course(), importlib.import_module("grader.cli.arguments")
    for word in words[1:]:
        with contextlib.suppress(InputError):  # the command says it
            exercise = word in course.exercise_names()
            if advice := save_advice(course.lesson_of(word) if exercise else arguments.lesson_name(word)):
                return advice
    return ""
