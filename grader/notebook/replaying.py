"""The inputs on which a check failed, as variables of the notebook, and the lines that run a learner's code on them."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
from collections.abc import Mapping
from typing import Any

from grader.course.spec import SEED, Case, Exercise
from grader.notebook.kernel_course import kernel_course
from grader.notebook.runs import ended_by
from grader.notebook.showing import Shown, ipython, said, sentence
from grader.notebook.target import Target
from grader.reports.text import clean
from grader.worker.observe import failure_from, materialise
from grader.worker.values import Part

_put: dict[str, Any] = {}  # what earlier replays put into the notebook, by name


def shown(wanted: Target, verdict: Any, names: dict[str, Any]) -> Shown:
    """Says what was set, and offers the lines as the next cell. names: the notebook's, where the variables go."""
    title, told, code = _prepared(wanted, verdict, names)
    if not code:
        return said(told, title)
    shell = ipython()
    if shell is not None:
        shell.set_next_input(code, replace=False)
    below = "The cell below runs" if shell is not None else "These lines run"
    return said(f"{told}\n\n{below} `{wanted.name}` on them, without the grader.\n\n```python\n{code}\n```", title)


def ran(wanted: Target, verdict: Any, names: dict[str, Any]) -> Shown:
    """The same with the lines run at once, and what they gave."""
    title, told, code = _prepared(wanted, verdict, names)
    if not code:
        return sentence(told, title)
    told += f"\n\nThese lines run `{wanted.name}` on them, without the grader; they work in any cell.\n\n```python\n{code}\n```"
    return sentence(f"{told}\n\n{_outcome(code, names)}", title)


def possible(wanted: Target, verdict: Any) -> bool:
    """Whether there is a failed input to replay."""
    return not verdict.passed and bool(verdict.case) and kernel_course().exercise(wanted.name).kind != "answer"


def _prepared(wanted: Target, verdict: Any, names: dict[str, Any]) -> tuple[str, str, str]:
    """A title, what was set, and the lines that use it; '' for lines: the text says why there are none."""
    from grader.judging.baseline import baseline_of

    name = wanted.name
    if verdict.passed:
        return "", f"The last check of {name} passed, so there is no failed input to replay.", ""
    exercise = kernel_course().exercise(name)
    if exercise.kind == "answer":
        return "", f"{name} is an answer and takes no input, so there is nothing to replay.", ""
    if not verdict.case:
        return (
            "",
            f"Nothing can be replayed: the check of {name} ended before anything was tried. {verdict.headline}",
            "",
        )
    baseline = baseline_of(exercise, SEED)
    at = next(i for i, one in enumerate(baseline.cases) if one.key == verdict.case)
    case = baseline.cases[at]
    made = _Cell(exercise, case, names)
    if any(table.role == "expected" for table in verdict.tables):  # it was told already
        made.compares_with(baseline.parts[at], any(table.role == "difference" for table in verdict.tables))
    title = f"The last check of {name} failed here: {case.title}"
    if not made.fits(wanted.obj):
        return (
            title,
            f"{made.told()}\n\nThis check does more than call `{name}` with these inputs, so no single call can show it.",
            "",
        )
    return title, made.told(), "\n".join(made.lines())


def _outcome(code: str, names: dict[str, Any]) -> str:
    """What the lines give when they run here: what they print and the value of the last one, or what was raised."""
    printed = io.StringIO()
    *first, last = ast.parse(code).body
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module(first, []), "<replay>", "exec"), names)
            shown = repr(eval(compile(ast.Expression(last.value), "<replay>", "eval"), names))
    except (Exception, KeyboardInterrupt) as error:
        failure = failure_from(error)
        message, line = ended_by(failure)
        return f"They ended here: {message}" + (
            f", in line {failure.line_number} of your cell: `{line}`" if line else ""
        )
    return f"They gave:\n\n```text\n{clean(printed.getvalue() + shown)}\n```"


class _Cell:
    """The variables of one case, and the lines that use them."""

    def __init__(self, exercise: Exercise, case: Case, names: dict[str, Any]) -> None:
        self._exercise, self._case, self._names = exercise, case, names
        self._shapes: list[str] = []
        self._last = "got"
        called = [*case.names, *(f"argument_{i + 1}" for i in range(len(case.names), len(case.args)))]
        self._args = [self._set(key, value) for key, value in zip(called, case.args, strict=False)]
        self._kwargs = {key: self._set(key, value) for key, value in case.kwargs.items()}

    def fits(self, obj: Any) -> bool:
        """Whether a plain call is what the check does: of another probe, where the inputs are the object's own parameters."""
        if self._is_module() or self._is_direct():
            return True
        try:
            parameters = inspect.signature(obj).parameters
            inspect.signature(obj).bind(*self._case.args, **self._case.kwargs)
        except (TypeError, ValueError):
            return False
        return list(parameters)[: len(self._case.names)] == list(self._case.names)

    def compares_with(self, parts: Mapping[str, Part], same_shape: bool) -> None:
        """Sets what is expected, where it is one array of numbers. same_shape: of what came and what was expected."""
        part = parts.get(self._exercise.parts[0])
        if (
            part is not None
            and part.shape
            and part.array.dtype.kind != "b"
            and len(self._exercise.parts) == 1
            and self._is_direct()
        ):
            name = self._set("expected", _tensor(part.array) if part.kind == "tensor" else part.array)
            self._last = f"got - {name}  # 0 where it is right" if same_shape else f"got, {name}"

    def lines(self) -> list[str]:
        """The cell: the learner's code on these inputs."""
        call = ", ".join([*self._args, *(f"{key}={value}" for key, value in self._kwargs.items())])
        if "by_name" in self._case.options and (self._is_module() or self._is_direct()):
            call = ", ".join(
                f"{key}={value}" for key, value in zip(self._case.options["by_name"], self._args, strict=True)
            )
        if self._is_module():
            return [*self._module(), f"got = module({call})", self._last]
        return [f"got = {self._exercise.name}({call})", self._last]

    def told(self) -> str:
        return "Set: " + ", ".join(self._shapes) + "." if self._shapes else "It takes no input."

    def _module(self) -> list[str]:
        options = self._case.options
        arguments = [
            *map(repr, options["init"]),
            *(f"{key}={value!r}" for key, value in options.get("init_kwargs", {}).items()),
        ]
        lines = [f"module = {self._exercise.name}({', '.join(arguments)})"]
        if options.get("state"):
            weights = self._set("weights", {key: _tensor(value) for key, value in options["state"].items()})
            lines.append(f"module.load_state_dict({weights}, strict=False)  # the weights that the check uses")
        if options.get("dtype"):
            lines.append(f'module = module.to(getattr(__import__("torch"), "{options["dtype"]}"))')
        return [*lines, f"module.train({options.get('mode', 'eval') == 'train'})"]

    def _is_module(self) -> bool:
        return "init" in self._case.options and self._exercise.kind == "class"

    def _is_direct(self) -> bool:
        return self._case.probe == "call" and self._exercise.kind == "function"

    def _set(self, name: str, value: Any) -> str:
        """Sets a variable to a copy of its own. Returns its name: another one where the notebook uses that already."""
        free = "".join(sign if sign.isalnum() else "_" for sign in name)
        if free in self._names and self._names[free] is not _put.get(free):  # the learner's own
            free += "_failing"
        self._names[free] = _put[free] = made = materialise(value)
        if hasattr(made, "shape"):
            self._shapes.append(f"`{free}` {tuple(made.shape)}")
        else:
            self._shapes.append(f"`{free}`" if isinstance(made, Mapping) else f"`{free} = {made!r}`")
        return free


def _tensor(array: Any) -> Any:
    import torch

    return torch.as_tensor(array)
