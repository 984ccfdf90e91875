"""The inputs on which a check failed, as variables of the notebook, and the lines that run a learner's code on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grader.course import registry
from grader.course.spec import Case, Exercise
from grader.notebook.showing import Shown, ipython, said
from grader.notebook.target import Target
from grader.worker.observe import materialise
from grader.worker.values import Part

_DIRECT = ("call", "lesson_06.attend")  # probes that call the function once, with the inputs as they are
_put: set[str] = set()  # names that an earlier replay put into the notebook


def shown(wanted: Target, verdict: Any, names: dict[str, Any]) -> Shown:
    """Says what was set, and offers the lines as the next cell. names: the notebook's, where the variables go."""
    from grader.judging.baseline import drawn

    name = wanted.name
    if verdict.passed:
        return said(f"The last check of {name} passed: no input is left on which it fails.")
    exercise = registry.exercise(name)
    if not verdict.case or exercise.kind == "answer":
        return said(f"Nothing can be replayed: the check of {name} ended before anything was tried. {verdict.headline}")
    baseline = drawn(exercise, registry.SEED)
    at = next(i for i, one in enumerate(baseline.cases) if one.key == verdict.case)
    case = baseline.cases[at]
    made = _Cell(exercise, case, names)
    if any(table.role == "expected" for table in verdict.tables):  # it was told already
        made.compares_with(baseline.parts[at])
    code = "\n".join(made.lines())
    shell = ipython()
    if shell is not None:
        shell.set_next_input(code, replace=False)
    below = "The cell below runs" if shell is not None else "These lines run"
    told = f"{made.told()}\n\n{below} `{name}` on them, with nothing of the grader around it.\n\n```python\n{code}\n```"
    return said(told, f"What the last check of {name} failed on: {case.title}")


class _Cell:
    """The variables of one case, and the lines that use them."""

    def __init__(self, exercise: Exercise, case: Case, names: dict[str, Any]) -> None:
        self._exercise, self._case, self._names = exercise, case, names
        self._shapes: list[str] = []
        self._expected = ""  # the name of the variable that holds it
        called = [*case.names, *(f"argument_{i + 1}" for i in range(len(case.names), len(case.args)))]
        self._args = [self._set(key, value) for key, value in zip(called, case.args, strict=False)]
        self._kwargs = {key: self._set(key, value) for key, value in case.kwargs.items()}

    def compares_with(self, parts: Mapping[str, Part]) -> None:
        """Sets what is expected, where it is one array of numbers."""
        part = parts.get(self._exercise.parts[0])
        if part is not None and part.shape and part.array.dtype.kind != "b" and len(self._exercise.parts) == 1 and self._is_direct():
            self._expected = self._set("expected", _tensor(part.array) if part.kind == "tensor" else part.array)

    def lines(self) -> list[str]:
        """The cell: the learner's code on these inputs."""
        call = ", ".join([*self._args, *(f"{key}={value}" for key, value in self._kwargs.items())])
        if "by_name" in self._case.options:
            call = ", ".join(f"{key}={value}" for key, value in zip(self._case.options["by_name"], self._args, strict=True))
        if "init" in self._case.options and self._exercise.kind == "class":
            return [*self._module(), f"got = module({call})", "got"]
        if not self._is_direct():
            return [f"# This check calls {self._exercise.name} in more ways than one; this is the plainest.", *self._call(call)]
        return self._call(call)

    def _call(self, call: str) -> list[str]:
        last = f"got - {self._expected}  # 0 where it is right" if self._expected else "got"
        return [f"got = {self._exercise.name}({call})", last]

    def told(self) -> str:
        return "Set: " + ", ".join(self._shapes) + "." if self._shapes else "It takes no input."

    def _module(self) -> list[str]:
        options = self._case.options
        arguments = [*map(repr, options["init"]), *(f"{key}={value!r}" for key, value in options.get("init_kwargs", {}).items())]
        lines = [f"module = {self._exercise.name}({', '.join(arguments)})"]
        if options.get("state"):
            weights = self._set("weights", {key: _tensor(value) for key, value in options["state"].items()})
            lines.append(f"module.load_state_dict({weights}, strict=False)  # the weights that the check uses")
        if options.get("dtype"):
            lines.append(f'module = module.to(getattr(__import__("torch"), "{options["dtype"]}"))')
        return [*lines, f"module.train({options.get('mode', 'eval') == 'train'})"]

    def _is_direct(self) -> bool:
        return self._case.probe in _DIRECT and self._exercise.kind == "function"

    def _set(self, name: str, value: Any) -> str:
        """Sets a variable to a copy of its own. Returns its name: another one where the notebook uses that already."""
        free = name if name.isidentifier() and (name not in self._names or name in _put) else f"{_identifier(name)}_failing"
        self._names[free] = made = materialise(value)
        _put.add(free)
        if hasattr(made, "shape"):
            self._shapes.append(f"`{free}` {tuple(made.shape)}")
        else:
            self._shapes.append(f"`{free}`" if isinstance(made, Mapping) else f"`{free} = {made!r}`")
        return free


def _identifier(name: str) -> str:
    return "".join(sign if sign.isalnum() else "_" for sign in name)


def _tensor(array: Any) -> Any:
    import torch

    return torch.as_tensor(array)
