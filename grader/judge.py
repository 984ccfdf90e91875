"""Judges one candidate of one exercise: the only place where a verdict is made.

The order is fixed and the first failure is the headline: attempted, allowed, runs, type, shape and dtype,
finite, properties, values, extremes, inputs left alone.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

import numpy as np

from grader import allowed, course
from grader.compare import Problem, compare, flatten, largest_difference, numbers
from grader.diagnose import Diagnosis
from grader.model import Case, Exercise, Observation, Part, Table, Tensor, Verdict
from grader.worker.observe import observe, same_random_state
from grader.worker.values import Failure
from grader.worker.watch import GROUPS

STATUS = {
    "missing": "missing", "not_started": "not_started", "exception": "error", "contract": "failed",
    "timeout": "timeout", "memory": "memory", "died": "error", "invalid": "error",
}  # fmt: skip
ENDING = ("timeout", "memory", "died", "invalid")  # after these the candidate answers no more


class Candidate(Protocol):
    """What is judged: a live object in the notebook, or one behind a worker process.

    problem: why there is nothing to exercise, else None. sources: the learner's cells, None where unknown.
    """

    name: str
    problem: Failure | None
    sources: allowed.Sources | None

    def observe(self, case: Case) -> Observation: ...


@dataclass(frozen=True, eq=False)
class Drawn:
    """The cases of an exercise for one seed, and what the reference shows on them."""

    cases: tuple[Case, ...]
    expected: tuple[Observation, ...]
    wanted: tuple[Mapping[str, Part], ...]  # the parts of `expected` by name
    diagnosis: Diagnosis


@cache
def drawn(exercise: Exercise, seed: int) -> Drawn:
    """Draws the cases and runs the reference. Kept for the process's life: a second check is quick."""
    reference = course.reference(exercise.name)
    names = _parameter_names(exercise, reference)
    watch = tuple(group for group in exercise.forbids if group in GROUPS)
    if "einsum_products" in exercise.requires:
        watch += ("einsum",)
    cases = tuple(
        replace(case, names=case.names or names, options={**case.options, "watch": watch} if watch else case.options)
        for case in exercise.cases(np.random.default_rng(seed))
    )
    unwatched = tuple(replace(case, options={k: v for k, v in case.options.items() if k != "watch"}) for case in cases)
    expected = tuple(observe(reference, case) for case in unwatched)
    for case, seen in zip(cases, expected, strict=True):
        if (seen.failure is None) != (case.raises is None):
            raise RuntimeError(f"the reference of {exercise.name} fails on {case.key!r}: {seen.failure}")
    wanted = tuple(flatten(exercise, seen) for seen in expected)
    return Drawn(cases, expected, wanted, Diagnosis(exercise, unwatched, expected))


def judge(exercise: Exercise, candidate: Candidate, seed: int = course.SEED) -> Verdict:
    """The verdict on a candidate; nothing that the candidate does makes this raise.

    seed: of the inputs. The same seed gives every candidate the same inputs.
    """
    started = time.perf_counter()
    with same_random_state():
        verdict = _Judging(exercise, candidate, seed).verdict()
    return replace(verdict, seconds=time.perf_counter() - started)


class _Judging:
    """One candidate's way through the stages."""

    def __init__(self, exercise: Exercise, candidate: Candidate, seed: int) -> None:
        self.exercise = exercise
        self.candidate = candidate
        self.seed = seed
        self.got: dict[int, Observation] = {}
        self.parts: dict[int, dict[str, Part]] = {}
        self.verified: list[str] = []

    def verdict(self) -> Verdict:
        if self.candidate.problem is not None:
            return self._without_object(self.candidate.problem)
        forbids, requires = self.exercise.forbids, self.exercise.requires
        offence = allowed.offence(self.exercise.name, forbids, requires, self.candidate.sources)
        # An untouched stub has nothing to forbid, but a forbidden call is the answer's end before it runs.
        if offence:
            return self._forbidden(offence)
        self.drawn = drawn(self.exercise, self.seed)
        self._observe_all()
        stages = (
            self._not_started, self._forbidden_while_running, lambda: self._stage("values"),
            lambda: self._stage("extremes"), self._inputs_left_alone,
        )  # fmt: skip
        for stage in stages:
            verdict = stage()
            if verdict is not None:  # a failing verdict is false, so `or` would pass it over
                return verdict
        return self._passed()

    def _observe_all(self) -> None:
        together = getattr(self.candidate, "observe_all", None)  # a worker is asked once for all
        observations = together(self.drawn.cases) if together else map(self.candidate.observe, self.drawn.cases)
        for i, observation in enumerate(observations):
            self.got[i] = observation
            failure = observation.failure
            if failure and (failure.kind in ENDING or (i == 0 and failure.kind == "not_started")):
                return

    def _not_started(self) -> Verdict | None:
        for observation in self.got.values():
            if observation.failure and observation.failure.kind == "not_started":
                return self._without_object(observation.failure)
            if self.exercise.kind == "answer" and [part.kind for part in observation.parts.values()] == ["none"]:
                return self._without_object(Failure("not_started"))  # the stub of an answer is None
        return None

    def _forbidden_while_running(self) -> Verdict | None:
        for observation in self.got.values():
            offence = allowed.ran(self.exercise.forbids, observation)
            if offence:
                return self._forbidden(offence)
        return None

    def _required_is_missing(self) -> Verdict | None:
        if "einsum_products" not in self.exercise.requires:
            return None
        for i, observation in self.got.items():
            if self.drawn.cases[i].stage == "values" and observation.failure is None:
                offence = allowed.einsum_missing(self.drawn.cases[i], observation)
                if offence:
                    return self._forbidden(offence)
        return None

    def _stage(self, stage: str) -> Verdict | None:
        """Runs, type, shape, dtype, finite, properties and values of one group of cases."""
        at = [i for i in self.got if _stage_of(self.drawn.cases[i]) == stage]
        for i in at:
            verdict = self._runs(i)
            if verdict is not None:
                return verdict
        returned = [i for i in at if self.drawn.cases[i].raises is None]
        problems = self._problems(returned)
        early = [(i, p) for i, p in problems if p.stage != "values"]
        if early:
            order = ("type", "shape", "dtype", "finite")
            return self._differs(*min(early, key=lambda item: (order.index(item[1].stage), item[0])))
        if stage == "values":
            for verdict in (self._required_is_missing(), self._properties(returned)):
                if verdict is not None:
                    return verdict
        if problems:
            return self._differs(*problems[0])
        self._note_verified(stage, at)
        return None

    def _runs(self, i: int) -> Verdict | None:
        case, failure = self.drawn.cases[i], self.got[i].failure
        if case.raises is not None:
            return self._raises(i)
        if failure is None:
            return None
        headline, details = _said_failure(self.exercise, failure)
        experiment = self._experiment(case)
        wanted = self._wanted(i)
        return self._fail(STATUS[failure.kind], "runs", headline, experiment, (*details, *wanted), self._inputs(case))

    def _raises(self, i: int) -> Verdict | None:
        case, failure = self.drawn.cases[i], self.got[i].failure
        if failure and failure.type == case.raises:
            return None
        if failure and failure.kind in ENDING:
            headline, details = _said_failure(self.exercise, failure)
            return self._fail(STATUS[failure.kind], "runs", headline, self._experiment(case), details)
        did = f"{failure.type} was raised: {failure.message}" if failure else "a value came back"
        headline = f"{self.exercise.name} was to raise {case.raises}; {did}."
        details = (f"Its line: {failure.line}",) if failure and failure.line else ()
        return self._fail("failed", "properties", headline, self._experiment(case), details, self._inputs(case))

    def _problems(self, at: Sequence[int]) -> list[tuple[int, Problem]]:
        """The first problem of each case, in the order of the cases."""
        found = []
        for i in at:
            have = flatten(self.exercise, self.got[i])
            if isinstance(have, Problem):
                found.append((i, have))
                continue
            self.parts[i] = have
            if self.exercise.compare is not None:
                sentence = self.exercise.compare(self.drawn.cases[i], self.drawn.expected[i], self.got[i])
                if sentence:
                    found.append((i, Problem("values", self.exercise.parts[0], sentence)))
                continue
            problems = compare(self.exercise, self.drawn.cases[i], self.drawn.wanted[i], have)
            found.extend((i, problem) for problem in problems[:1])
        return found

    def _properties(self, at: Sequence[int]) -> Verdict | None:
        by_key = {self.drawn.cases[i].key: i for i in at}
        for held in self.exercise.properties:
            groups = [tuple(by_key[key] for key in held.needs)] if held.needs else [(i,) for i in at]
            for group in groups:
                arguments = [item for i in group for item in (self.drawn.cases[i], self._arrays(i))]
                sentence = held.check(*arguments)
                if sentence:
                    i = group[-1]
                    headline = f"This was to hold: {held.title}. {sentence[:1].upper()}{sentence[1:]}"
                    return self._fail(
                        "failed", "properties", headline, self._experiment(self.drawn.cases[i]), (), self._tables(i)
                    )
            self.verified.append(held.title)
        return None

    def _arrays(self, i: int) -> dict[str, np.ndarray]:
        parts = {name: numbers(part) for name, part in self.parts[i].items()}
        return {
            name: part.array.astype(np.float64) if part.array.dtype.kind != "b" else part.array
            for name, part in parts.items()
            if part.array is not None
        }

    def _differs(self, i: int, problem: Problem) -> Verdict:
        case = self.drawn.cases[i]
        tables = self._tables(i, problem.part)
        if self.exercise.kind == "answer" and problem.stage == "values":
            # The expected numbers, or how far off these are, would be the answer.
            got = tuple(table for table in tables if table.role == "got")
            return self._fail("failed", "values", f"{self.exercise.name}: these are not the numbers.", "", (), got)
        return self._fail("failed", problem.stage, problem.sentence, self._experiment(case), (), tables)

    def _inputs_left_alone(self) -> Verdict | None:
        for i, observation in self.got.items():
            if observation.modified:
                names = " and ".join(observation.modified)
                headline = f"{self.exercise.name} changes its input {names} in place; inputs are to be left as they are."
                details = ("Work on a copy, or write x = x - y in place of x -= y.",)
                return self._fail("failed", "inputs", headline, self._experiment(self.drawn.cases[i]), details)
        if self.exercise.kind != "answer":
            self.verified.append("the inputs are left as they are")
        return None

    def _note_verified(self, stage: str, at: Sequence[int]) -> None:
        if stage == "values" and at:
            if self.exercise.kind == "answer":
                self.verified.append("each number is within the tolerance")
                return
            self.verified.insert(0, "type, shape and dtype are as asked")
            title = self.drawn.cases[at[0]].title
            inputs = f"{len(at)} inputs, {title} among them" if len(at) > 1 else title
            self.verified.append(f"the numbers agree on {inputs}")
        elif at:
            titles = dict.fromkeys(self.drawn.cases[i].title for i in at)
            self.verified.append("extremes hold: " + ", ".join(titles))

    def _passed(self) -> Verdict:
        largest = 0.0
        for i, have in self.parts.items():
            for name, part in self.drawn.wanted[i].items():
                got = numbers(have[name]) if name in have else None
                if got is not None and part.array is not None and got.array is not None and got.shape == part.shape:
                    if part.array.dtype.kind != "b" and part.array.size:
                        largest = max(largest, largest_difference(part.array, got.array)[0])
        following = course.next_exercise(self.exercise.name)
        look = f"Next: {following}." if following else "That was the last exercise of the course."
        return Verdict(
            self.exercise.name, "passed", f"{self.exercise.name} passed.", verified=tuple(self.verified),
            max_difference=None if self.exercise.compare else largest, look=look,
        )  # fmt: skip

    def _fail(
        self, status: str, stage: str, headline: str, experiment: str = "", details: Sequence[str] = (),
        tables: Sequence[Table] = (),
    ) -> Verdict:  # fmt: skip
        found = self.drawn.diagnosis.mistakes(self.got)
        ids = tuple("+".join(pair) for pair in found)
        sentences = tuple(" Also: ".join(course.mistake_text(id).sentence for id in pair) for pair in found)
        if found:
            calls = " or ".join(dict.fromkeys(f'explain("{id}")' for pair in found for id in pair))
            look = f"For more, {calls}; hint({self.exercise.name}) asks a question first."
        else:
            look = f"hint({self.exercise.name}) asks a question that leads on."
        return Verdict(
            self.exercise.name, status, headline, stage, experiment, tuple(details), tuple(tables), ids, sentences,
            tuple(self.verified), look=look,
        )  # fmt: skip

    def _forbidden(self, offence: allowed.Offence) -> Verdict:
        details = (f"The line: {offence.line}",) if offence.line else ()
        look = f"hint({_quoted(self.exercise)}) leads to a way of one's own."
        return Verdict(self.exercise.name, "forbidden", offence.sentence, "allowed", details=details, look=look)

    def _without_object(self, failure: Failure) -> Verdict:
        name, status = self.exercise.name, STATUS[failure.kind]
        look = f"hint({_quoted(self.exercise)}) asks a question to begin with."
        if status == "not_started":
            return Verdict(name, status, f"{name} is not started: the stub still stands.", "attempted", look=look)
        if status == "missing":
            headline = failure.message or f"No cell defines {name}."
            return Verdict(name, status, headline, "attempted", look="`grader reset` restores a lesson and keeps a backup.")
        headline, details = _said_failure(self.exercise, failure)
        return Verdict(name, status, headline, "runs", details=details, look=look)

    def _experiment(self, case: Case) -> str:
        if self.exercise.kind == "answer":
            return ""
        shapes = ", ".join(_said_input(name, value) for name, value in _named(case))
        call = f"{self.exercise.name}({shapes})" if shapes else f"{self.exercise.name}()"
        return f"{case.title[:1].upper()}{case.title[1:]}: {call}"

    def _wanted(self, i: int) -> tuple[str, ...]:
        want = flatten(self.exercise, self.drawn.expected[i])
        said = ", ".join(f"{name} {part.shape}" for name, part in want.items() if part.shape is not None)
        return (f"Wanted: {said}.",) if said else ()

    def _inputs(self, case: Case) -> tuple[Table, ...]:
        if not case.show:
            return ()
        arrays = ((name, getattr(value, "array", value)) for name, value in _named(case))
        return tuple(Table(name, array, "input") for name, array in arrays if isinstance(array, np.ndarray))

    def _tables(self, i: int, name: str = "") -> tuple[Table, ...]:
        case = self.drawn.cases[i]
        want = flatten(self.exercise, self.drawn.expected[i])
        have = self.parts.get(i, {})
        if name not in want:
            name = next((key for key in want if key in have and _unequal(want[key], have[key])), next(iter(want)))
        expected, got = want[name], numbers(have[name]) if name in have else None
        tables = [*self._inputs(case)]
        if expected.array is not None:
            tables.append(Table(name, expected.array, "expected", expected.dtype))
        if got is not None and got.array is not None:
            tables.append(Table(name, got.array, "got", got.dtype))
            if expected.array is not None and got.shape == expected.shape and got.array.dtype.kind != "b":
                with np.errstate(invalid="ignore"):
                    difference = got.array.astype(np.float64) - expected.array.astype(np.float64)
                tables.append(Table(name, difference, "difference"))
        return tuple(tables)


def _stage_of(case: Case) -> str:
    """Cases that must raise are judged with the extremes: first the ordinary way has to be right."""
    return "extremes" if case.raises else case.stage


def _parameter_names(exercise: Exercise, reference: Any) -> tuple[str, ...]:
    """The names of what a case passes positionally: the function's parameters, or the forward's."""
    if exercise.kind == "answer":
        return ()
    target = reference.forward if exercise.kind == "class" else reference
    return tuple(name for name in inspect.signature(target).parameters if name != "self")


def _quoted(exercise: Exercise) -> str:
    """The exercise as an argument: an answer or an unwritten function may have no object to pass."""
    return f'"{exercise.name}"'


def _named(case: Case) -> list[tuple[str, Any]]:
    names = [*case.names, *(f"argument {i + 1}" for i in range(len(case.names), len(case.args)))]
    return [*zip(names, case.args, strict=False), *case.kwargs.items()]


def _said_input(name: str, value: Any) -> str:
    array = value.array if isinstance(value, Tensor) else value
    if isinstance(array, np.ndarray):
        dtype = value.dtype if isinstance(value, Tensor) and value.dtype else array.dtype.name
        return f"{name} {array.shape} {dtype}"
    return f"{name}={value!r}" if isinstance(value, (int, float, str, bool, type(None))) else name


def _said_failure(exercise: Exercise, failure: Failure) -> tuple[str, tuple[str, ...]]:
    """(headline, details) of a failure, in the learner's terms: their line, the shapes at hand there."""
    name = exercise.name
    if failure.kind == "timeout":
        headline = failure.message or f"{name} did not finish in the time an exercise has."
        return headline, ("Look for a loop that never ends, or for work that grows with every call.",)
    if failure.kind == "memory":
        return failure.message or f"{name} asked for more memory than an exercise has.", (
            "Look for an array that is far larger than the inputs, or a list that keeps growing.",
        )
    if failure.kind == "died":
        return failure.message or f"The process ended while {name} ran.", ()
    if failure.kind == "invalid":
        return f"{name} gave no valid answer: {failure.message or 'what came back cannot be read'}", ()
    if failure.kind == "contract":
        return failure.message, ()
    details = []
    if failure.line:
        at = f" (line {failure.line_number} of its cell)" if failure.line_number else ""
        details.append(f"Your line{at}: {failure.line}")
    if failure.shapes:
        details.append("At hand there: " + ", ".join(f"{name} {said}" for name, said in failure.shapes) + ".")
    message = f": {failure.message}" if failure.message else ""
    return f"{name} raised {failure.type}{message}", tuple(details)


def _unequal(want: Part, have: Part) -> bool:
    have = numbers(have)
    if want.array is None or have.array is None or want.shape != have.shape:
        return True
    return not np.allclose(want.array, have.array, rtol=1e-4, atol=1e-5, equal_nan=True)
