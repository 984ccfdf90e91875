"""The inputs on which a check failed, as variables of the notebook, and the lines that run a learner's code on them."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
from collections.abc import Mapping
from typing import Any

from grader.course.spec import SEED
from grader.judging.baseline import baseline_of
from grader.notebook.cell_history import describe_failure
from grader.notebook.display import Display, ipython, sentence
from grader.notebook.kernel_course import kernel_course
from grader.notebook.target import Target
from grader.reports.text import clean
from grader.worker.observe import failure_from, materialise
from grader.worker.values import Part

_earlier: dict[str, Any] = {}  # what earlier replays put into the notebook, by name


def replay(target: Target, verdict: Any, names: dict[str, Any], at_once: bool = False) -> Display:
    """Says what was set, and offers the lines as the next cell, or runs them at once and says what they gave.

    names: the notebook's, where the variables go.
    """
    if why := refusal(target, verdict):
        return sentence(why)
    call = _FailedCall(target, verdict, names)
    title, words = f"The last check of {target.name} failed here: {call.case.title}", call.variables()
    if not call.is_all_of_the_check(target.obj):
        more = f"This check does more than call `{target.name}` with these inputs, so no single call can show it."
        return sentence(f"{words}\n\n{more}", title)
    shell, subject, outcome, code = ipython(), "These lines run", "", "\n".join(call.lines())
    if at_once:
        subject, outcome = "These lines, which work in any cell, run", f"\n\n{_outcome(code, names)}"
    elif shell is not None:
        shell.set_next_input(code, replace=False)
        subject = "The cell below runs"
    lines = f"`{target.name}` on them, without the grader.\n\n```python\n{code}\n```"
    return sentence(f"{words}\n\n{subject} {lines}{outcome}", title)


def refusal(target: Target, verdict: Any) -> str:
    """Why there is no failed input to replay; '' where there is one."""
    if verdict.passed:
        return f"The last check of {target.name} passed, so there is no failed input to replay."
    if target.is_answer:
        return f"{target.name} is an answer and takes no input, so there is nothing to replay."
    if not verdict.case:
        return (
            f"Nothing can be replayed: the check of {target.name} ended before anything was tried. {verdict.headline}"
        )
    return ""


def _outcome(code: str, names: dict[str, Any]) -> str:
    """What the lines give when they run here: what they print and the value of the last one, or what was raised."""
    output = io.StringIO()
    *first, last = ast.parse(code).body
    try:
        with contextlib.redirect_stdout(output):
            exec(compile(ast.Module(first, []), "<replay>", "exec"), names)
            value = repr(eval(compile(ast.unparse(last), "<replay>", "eval"), names))
    except (Exception, KeyboardInterrupt) as error:
        failure = failure_from(error)
        place = f", in line {failure.line_number} of your cell: `{failure.line}`" if failure.line else ""
        return f"They ended here: {describe_failure(failure)}{place}"
    return f"They gave:\n\n```text\n{clean(output.getvalue() + value)}\n```"


class _FailedCall:
    """The variables of the case that failed, which are set at once, and the lines that use them."""

    def __init__(self, target: Target, verdict: Any, names: dict[str, Any]) -> None:
        self._exercise, self._names = kernel_course().exercise(target.name), names
        baseline, exercise = baseline_of(self._exercise, SEED), self._exercise
        index = next(i for i, case in enumerate(baseline.cases) if case.key == verdict.case)
        self.case = case = baseline.cases[index]
        self._is_module = "init" in case.options and exercise.kind == "class"
        self._is_direct = case.probe == "call" and exercise.kind == "function"
        self._variables: list[str] = []
        self._last = "got"
        self._args = [self._set(name, value) for name, value in zip(case.names, case.args)]
        self._kwargs = {name: self._set(name, value) for name, value in case.kwargs.items()}
        roles = [table.role for table in verdict.tables]
        if "expected" in roles:  # it was told already
            self._compare_with(baseline.expected[index].parts, "difference" in roles)

    def is_all_of_the_check(self, obj: Any) -> bool:
        """Whether a plain call is what the check does: of another probe, where the inputs are the object's own parameters."""
        if self._is_module or self._is_direct:
            return True
        try:
            signature = inspect.signature(obj)
            signature.bind(*self.case.args, **self.case.kwargs)
        except (TypeError, ValueError):
            return False
        return list(signature.parameters)[: len(self.case.names)] == list(self.case.names)

    def _compare_with(self, parts: Mapping[str, Part], same_shape: bool) -> None:
        """Sets what is expected, where it is one array of numbers. same_shape: of what came and what was expected."""
        part = parts.get(self._exercise.result_names[0])
        if part is None or not self._is_direct or len(self._exercise.result_names) > 1:
            return
        array: Any = part.array
        if part.shape and array.dtype.kind != "b":
            name = self._set("expected", _tensor(array) if part.kind == "tensor" else array)
            self._last = f"got - {name}  # 0 where it is right" if same_shape else f"got, {name}"

    def lines(self) -> list[str]:
        """The cell: the learner's code on these inputs."""
        args, kwargs = self._args, self._kwargs
        if "by_name" in self.case.options and (self._is_module or self._is_direct):
            args, kwargs = [], dict(zip(self.case.options["by_name"], self._args, strict=True))
        call = ", ".join([*args, *(f"{name}={value}" for name, value in kwargs.items())])
        if self._is_module:
            return [*self._module(), f"got = module({call})", self._last]
        return [f"got = {self._exercise.name}({call})", self._last]

    def variables(self) -> str:
        return "Set: " + ", ".join(self._variables) + "." if self._variables else "It takes no input."

    def _module(self) -> list[str]:
        options = self.case.options
        kwargs = [f"{name}={value!r}" for name, value in options.get("init_kwargs", {}).items()]
        lines = [f"module = {self._exercise.name}({', '.join([*map(repr, options['init']), *kwargs])})"]
        if options.get("state"):
            weights = self._set("weights", {key: _tensor(value) for key, value in options["state"].items()})
            lines.append(f"module.load_state_dict({weights}, strict=False)  # the weights that the check uses")
        if options.get("dtype"):
            lines.append(f'module = module.to(getattr(__import__("torch"), "{options["dtype"]}"))')
        return [*lines, f"module.train({options.get('mode', 'eval') == 'train'})"]

    def _set(self, name: str, value: Any) -> str:
        """Sets a variable to a copy of its own. Returns: its name, another one where the notebook uses that already."""
        free = "".join(sign if sign.isalnum() else "_" for sign in name)
        if free in self._names and self._names[free] is not _earlier.get(free):  # the learner's own
            free += "_failing"
        self._names[free] = _earlier[free] = value = materialise(value)
        if hasattr(value, "shape"):
            self._variables.append(f"`{free}` {tuple(value.shape)}")
        else:
            self._variables.append(f"`{free}`" if isinstance(value, Mapping) else f"`{free} = {value!r}`")
        return free


def _tensor(array: Any) -> Any:
    import torch

    return torch.as_tensor(array)
