"""Answers that find the probe that tries them, through a frame or the garbage collector, and change what it looks with.

A probe concludes nothing: with one of its own names bound to a liar it sends other readings, and the specification still decides.
That a name was changed is seen besides, and the source that does so is refused before it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from grader.course import references
from grader.course.course import Course
from grader.course.patches import apply_edits
from grader.course.spec import SEED, Case
from grader.judging.candidate import LiveObject
from grader.judging.judge import judge
from grader.sandbox.sandbox import Sandbox
from grader.source.policy import Sources
from grader.submission.plan import Plan, RunCell
from grader.worker import probes
from grader.worker.probes import BASIC
from tests.conftest import WHOLE_GRID
from tests.hostile.one_worker import OneWorker
from tests.live import offence

LIARS = ("True", "a[0] if a else None", "0", "{}", "''")
FRAMES = """
import sys
def spaces():
    frame = sys._getframe()
    while frame is not None:
        if '.probes' in frame.f_globals.get('__name__', ''):
            yield frame.f_globals
        frame = frame.f_back
"""
REACHING = """
def reaching(inner, change):
    def outer(*args, **more):
        for space in spaces():
            change(space)
        return inner(*args, **more)
    return outer
if isinstance({name}, type):
    {name}.__init__ = reaching({name}.__init__, change)
else:
    {name} = reaching({name}, change)
"""


# `undo` gives back what a change has put into a probe's module.
NOTED = """
changed = []
def change(space, changed=changed):
    changed.append((space, {one!r}, space.get({one!r}, changed)))
    space[{one!r}] = lambda *a, **k: {liar}
def undo(changed=changed, turned=reversed):
    for space, name, old in turned(changed):
        if old is changed: del space[name]
        else: space[name] = old
"""


WAYS = {
    "sys._getframe": FRAMES + "\nnext(spaces())['T'] = None",
    "the garbage collector": "import gc\nfound = [one for one in gc.get_objects() if type(one) is dict and '_seen' in one]\nfound[0]['T'] = 0",
    "__globals__": "def change(model):\n    type(model).forward.__globals__['T'] = None",
    "a traceback": "def change():\n    try:\n        1 / 0\n    except ZeroDivisionError as error:\n"
    "        error.__traceback__.tb_frame.f_back.f_globals['T'] = None",
    "inspect": "import inspect\ninspect.stack()[1].frame.f_globals['T'] = None",
    "a name in pieces": "import sys\ngetattr(sys._getframe(1), 'f_glo' + 'bals')['T'] = None",
}


REPLACED = "While it ran, the grader's own functions were replaced by others; your own answer has no need to do that."


def own_probes(course: Course, name: str) -> list[Case]:
    cases = course.exercise(name).cases(np.random.default_rng(SEED))
    return [case for case in cases if case.probe not in BASIC]


class Attacked:
    """The exercises of a course with a probe of their own.

    wrong: by exercise, a mistake whose numbers are right, or nearly so, by its id or as an edit of the solution.
    every: of how many names of a probe's module one is tried, other ones for each exercise; WHOLE_GRID=1 tries all.
    """

    def __init__(self, course: Course, wrong: Mapping[str, str | tuple[str, str]], every: int = 1) -> None:
        self.course, self.wrong, self.every = course, wrong, 1 if WHOLE_GRID else every
        self.wrong_texts, self.narrowed = cache(self._wrong_texts), cache(self._narrowed)

    def _wrong_texts(self, name: str) -> dict[str, str]:
        """The lesson's solutions up to this one, in which the mistake is made."""
        exercise, wrong = self.course.exercise(name), self.wrong[name]
        texts = references.normal_forms(exercise)
        if isinstance(wrong, tuple):
            assert texts[name].count(wrong[0]) == 1
            return {**texts, name: texts[name].replace(*wrong)}
        made = next(one.wrong for one in exercise.mistakes if one.id == wrong)
        return {**texts, **apply_edits(references.edits_of(exercise, made), texts)}

    def _narrowed(self, name: str) -> Any:
        """The exercise with the one case of a probe of its own that tells its mistake, and nothing to name it by."""
        whole = self.course.exercise(name)
        made = dict(references.namespace(self.course, self.course.lesson_of(name)))
        exec("\n".join(self.wrong_texts(name).values()), made)
        for key in (case.key for case in own_probes(self.course, name)):
            one = replace(
                whole,
                cases=lambda rng, key=key: [case for case in whole.cases(rng) if case.key == key],
                mistakes=(),
                properties=(),
                requires=(),
            )
            if judge(one, LiveObject(made[name])).status == "failed":
                return one
        raise AssertionError(f"no probe of {name} tells {self.wrong[name]}")

    def probe_names(self, name: str) -> list[str]:
        """Those names of the probe's module that are tried."""
        probe = self.narrowed(name).cases(np.random.default_rng(0))[0].probe
        probes.find(probe)
        module = sys.modules[probes.module_of(probe)]
        names = [one for one in vars(module) if not one.startswith("__") and not isinstance(getattr(module, one), dict)]
        return names[list(self.wrong).index(name) % self.every :: self.every]

    def given(self, name: str) -> list[str]:
        return [cell.text for cell in self.course.cells(self.course.lesson_of(name)) if cell.role == "given"]

    def graded(self, sandbox: Sandbox, name: str, *cells: str) -> Any:
        given = [RunCell("given cell", text, False) for text in self.given(name)]
        others = "\n".join(text for of, text in self.wrong_texts(name).items() if of != name)
        own = "\n".join((self.wrong_texts(name)[name], *cells))
        cells = (*given, RunCell("cell 1", others, True), RunCell("cell 2", own, True))
        plan = Plan(self.course.lesson_of(name), (name,), cells, {name: len(given) + 1})
        return judge(self.narrowed(name), sandbox.candidates(plan)[name])

    def one_after_the_other(
        self, sandbox: Sandbox, name: str, tried: list[tuple[str, str]]
    ) -> dict[tuple[str, str], Any]:
        """The verdict on each change, in one worker, where each is undone before the next. Empty where something stayed: there, in the
        end, the right answer does not pass."""
        others = [text for of, text in self.wrong_texts(name).items() if of != name]
        worker = OneWorker(sandbox, [*self.given(name), "\n".join(others)])

        def verdict(*texts: str) -> Any:
            return worker.judged(["\n".join(texts)], {name: 0}, self.narrowed)[name]

        wrong = self.wrong_texts(name)[name]
        try:
            assert verdict(wrong).status == "failed"
            found = {
                (one, liar): verdict(wrong, FRAMES, NOTED.format(one=one, liar=liar), REACHING.format(name=name))
                for one, liar in tried
            }
            right = verdict(*references.normal_forms(self.course.exercise(name)).values())
            return found if right.status == "passed" else {}
        finally:
            worker.close()

    def none_passes(self, sandbox: Sandbox, name: str) -> None:
        """No change makes the wrong answer pass. One worker for all changes; WHOLE_GRID=1 has one for each, and every liar."""
        tried = [
            (one, liar)
            for number, one in enumerate(self.probe_names(name))
            for liar in (LIARS if WHOLE_GRID else LIARS[number % len(LIARS) :][:1])
        ]
        assert tried
        if WHOLE_GRID:
            assert self.graded(sandbox, name).status == "failed"
        together = {} if WHOLE_GRID else self.one_after_the_other(sandbox, name, tried)
        for one, liar in tried:
            found = together.get((one, liar)) or self.graded(
                sandbox, name, FRAMES, NOTED.format(one=one, liar=liar), REACHING.format(name=name)
            )
            assert found.status in ("failed", "error", "forbidden"), (one, liar, found.headline)

    def forgery_is_seen(self, sandbox: Sandbox, name: str, change: str) -> None:
        found = self.graded(sandbox, name, FRAMES, change, REACHING.format(name=name))
        assert (found.status, found.headline) == ("forbidden", REPLACED)

    def no_others_affair(self, sandbox: Sandbox, cheat: str, change: str, honest: str) -> None:
        """What one answer changed: the next exercise gets a fresh process."""
        given = [RunCell("given cell", text, False) for text in self.given(cheat)]
        own = "\n".join((self.wrong_texts(cheat)[cheat], FRAMES, change, REACHING.format(name=cheat)))
        solution = references.solution_text(self.course, honest)
        cells = (*given, RunCell("cell 1", own, True), RunCell("cell 2", solution, True))
        owners = {cheat: len(given), honest: len(given) + 1}
        candidates = sandbox.candidates(Plan(self.course.lesson_of(cheat), (cheat, honest), cells, owners))
        assert judge(self.narrowed(cheat), candidates[cheat]).status == "forbidden"
        assert judge(self.course.exercise(honest), candidates[honest]).status == "passed"

    def refused(self, name: str) -> None:
        """The source that reaches a probe is, in every way, and the solution is not."""
        exercise, answer = self.course.exercise(name), references.solution_text(self.course, name)
        assert offence(name, exercise.forbids, exercise.requires, Sources((answer,))) is None
        for way, cell in WAYS.items():
            found = offence(name, exercise.forbids, exercise.requires, Sources((cell, answer)))
            assert found is not None and found.sentence.startswith("A cell reaches into the running program by `"), way
            assert found.sentence.endswith(
                "so that this exercise cannot be checked; take it out, and restart the kernel where it has run."
            )
