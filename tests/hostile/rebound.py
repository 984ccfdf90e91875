"""Every name that a probe or `observe` uses, bound to a liar by a cell: no wrong answer passes by it.

The names are read from the probes' own source, so that one used tomorrow is tried tomorrow. Each is tried with one liar, the
next name with the next one, and with the answers at which what uses the name looks: all of them, where the worker itself does, and
those of a lesson, where its probes do. A name that nothing uses which looks at them is tried with one, the next with the next one.
WHOLE_GRID=1 tries each with all liars and all answers.
"""

from __future__ import annotations

import ast
import builtins
import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from grader.course import references
from grader.course.course import Course
from grader.judging.judge import judge
from grader.sandbox.sandbox import Sandbox
from grader.submission.plan import Plan, RunCell
from tests.conftest import ROOT, WHOLE_GRID
from tests.hostile.one_worker import ON_META, OneWorker

WORKER = [
    ROOT / "grader" / "worker" / f"{name}.py"
    for name in ("observe", "values", "originals", "protocol", "probes/__init__")
]
OF_ALL = {"worker", "probes", "shared"}  # folders of what looks at the answers of every lesson
NOT_THERE = ("__future__", "grader")  # nothing that a cell could bind: a worker has no `grader`
LIARS = {"True": "True", "its first argument": "a[0] if a else None", "0": "0"}
BATCH = 24
Trial = tuple[str, str, str]  # the owner of a name, the name, a liar


def _names(path: Path) -> Iterator[tuple[str, str]]:
    """(owner, attribute): what a file imports, the built-in names it uses, and methods of tensors and modules called like its own."""
    tree, alias = ast.parse(path.read_text(encoding="utf-8")), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            alias |= {
                one.asname or one.name.partition(".")[0]: one.name if one.asname else one.name.partition(".")[0]
                for one in node.names
            }
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module.partition(".")[0] not in NOT_THERE:
            alias |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    for dotted in alias.values():
        yield dotted.rpartition(".")[::2]
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and hasattr(builtins, node.id) and not _is_exception(getattr(builtins, node.id)):
            yield "builtins", node.id
        elif isinstance(node, ast.Attribute):
            owner, _, name = ast.unparse(node).rpartition(".")
            root, _, rest = owner.partition(".")
            if root in alias:
                yield f"{alias[root]}.{rest}".rstrip("."), name
            for kind in ("torch.Tensor", "torch.nn.Module"):
                yield kind, name


def _is_exception(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


@cache
def _there(owner: str) -> Any:
    """The module or class of that name; None where there is none."""
    head, _, name = owner.rpartition(".")
    try:
        return importlib.import_module(owner)
    except ImportError:
        return getattr(_there(head), name, None) if head else None
    except ValueError:
        return None


class Rebound:
    """Names that look at the answers of a course, and what is tried with each.

    given: a cell in which the wrong answers take what they are wrong by: a liar is not to mend them.
    wrong: by exercise, the case that shows it, and an answer whose numbers are right. Each breaks one thing that numbers do not show.
    """

    def __init__(self, course: Course, given: str, wrong: Mapping[str, tuple[str, str]]) -> None:
        self.course, self.given, self.wrong = course, given, wrong
        self.exercise = cache(self._exercise)
        self.used_in: dict[tuple[str, str], set[str]] = {}  # the folders of the files that use a name
        for path in (*WORKER, *sorted(course.solutions.glob("*/probes*.py"))):
            for owner, name in _names(path):
                if name and not name.startswith("__") and hasattr(_there(owner), name):
                    self.used_in.setdefault((owner, name), set()).add(path.parent.name)
        self.names = sorted(self.used_in)
        self.tried = [
            (owner, name, liar)
            for number, (owner, name) in enumerate(self.names)
            for liar in (LIARS if WHOLE_GRID else [list(LIARS)[number % len(LIARS)]])
        ]
        batches = [self.tried[first : first + BATCH] for first in range(0, len(self.tried), BATCH)]
        self.batches = {f"{batch[0][0]}.{batch[0][1]} and on": batch for batch in batches}

    def sandbox(self) -> Sandbox:
        return Sandbox(4.0, torch=True, probes=self.course.probe_texts() | ON_META)

    def _exercise(self, name: str) -> Any:
        """The exercise with one case alone, and no mistakes to find a name for, since a status is all that is asked."""
        whole, key = self.course.exercise(name), self.wrong[name][0]
        return replace(
            whole,
            cases=lambda rng: [case for case in whole.cases(rng) if case.key == key],
            mistakes=(),
            properties=(),
            requires=(),
        )

    def tried_with(self, owner: str, name: str) -> dict[str, str]:
        """The answers with which a name is tried."""
        folders, every = self.used_in[owner, name], list(self.wrong)
        if not (WHOLE_GRID or folders & OF_ALL):
            of_lessons = [answer for answer in every if self.course.lesson_of(answer) in folders]
            every = of_lessons or [every[self.names.index((owner, name)) % len(every)]]
        return {answer: self.wrong[answer][1] for answer in every}

    def right(self) -> dict[str, str]:
        return {name: references.solution_text(self.course, name) for name in self.wrong}

    def graded(self, sandbox: Sandbox, *cells: str, answers: Mapping[str, str]) -> dict[str, str]:
        """What the answers get in a worker of their own."""
        given = RunCell("given cell", self.given, False)
        own = [RunCell(f"cell {i}", text, True) for i, text in enumerate((*cells, *answers.values()), 1)]
        owners = {name: 1 + len(cells) + i for i, name in enumerate(answers)}
        candidates = sandbox.candidates(Plan("01_toy", tuple(answers), (given, *own), owners))
        return {name: judge(self.exercise(name), candidates[name]).status for name in answers}

    def assert_seen(self, sandbox: Sandbox) -> None:
        """Without a liar each wrong answer is refused for what it breaks, and as it should be it passes."""
        for name, (_, text) in self.wrong.items():
            assert self.graded(sandbox, answers={name: text}) == {name: "failed"}
            assert self.graded(sandbox, answers={name: self.right()[name]}) == {name: "passed"}, name

    def one_after_the_other(self, sandbox: Sandbox, batch: Sequence[Trial]) -> dict[Trial, dict[str, str]]:
        """The same in one worker, in which each liar is taken away before the next comes. Empty where something of them stayed: there,
        in the end, not all right answers pass."""
        worker = OneWorker(sandbox, [self.given])

        def statuses(texts: Mapping[str, str], lie: str = "") -> dict[str, str]:
            owners = {name: number for number, name in enumerate(texts, 1)}
            found = worker.judged([lie, *texts.values()], owners, self.exercise)
            return {name: verdict.status for name, verdict in found.items()}

        try:
            found = {trial: statuses(self.tried_with(*trial[:2]), _lie(*trial)) for trial in batch}
            return found if set(statuses(self.right()).values()) == {"passed"} else {}
        finally:
            worker.close()

    def passed(self, sandbox: Sandbox, batch: Sequence[Trial]) -> list[tuple[Trial, dict[str, str]]]:
        """With which of these an answer passed, or could not be graded. One worker for many names; WHOLE_GRID=1 has one for each."""
        together = {} if WHOLE_GRID else self.one_after_the_other(sandbox, batch)
        found = [
            (one, together.get(one) or self.graded(sandbox, _lie(*one), answers=self.tried_with(*one[:2])))
            for one in batch
        ]
        return [(one, got) for one, got in found if {"passed", "could_not_grade"} & set(got.values())]


def _lie(owner: str, name: str, liar: str) -> str:
    """A cell that binds a name to a liar, and `undo`, which binds it to what it was."""
    return (
        f"import importlib\ndef made():\n    at = {owner!r}.split('.')\n    found = importlib.import_module(at[0])\n"
        "    for one in at[1:]: found = getattr(found, one)\n    return found\n"
        f"def lie(*a, **k): return {LIARS[liar]}\n"
        f"owner = made()\nold = owner.__dict__.get({name!r}, lie)\n"
        f"def undo(put=setattr, drop=delattr, owner=owner, old=old, lie=lie):\n    now = owner.__dict__.get({name!r}, lie)\n"
        f"    if old is not lie: put(owner, {name!r}, old)\n    elif now is not lie or {name!r} in owner.__dict__: drop(owner, {name!r})\n"
        f"    assert owner.__dict__.get({name!r}, lie) is old\n"
        f"try:\n    setattr(owner, {name!r}, lie if callable(getattr(owner, {name!r})) else property(lie) if isinstance(owner, type) else lie())\n"
        "except (TypeError, AttributeError):\n    def undo(): pass"
    )
