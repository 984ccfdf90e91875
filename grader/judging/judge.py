"""Judges one candidate of one exercise: the only place where a verdict is made.

The order is fixed and the first failure is the headline: attempted, allowed, runs, type, shape and dtype,
finite, properties, values, extremes, inputs left alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from grader.course import registry
from grader.course.readings import seen
from grader.course.spec import Case, Exercise
from grader.judging import runtime_policy, wording
from grader.judging.baseline import drawn
from grader.judging.compare import Problem, compare, flatten, largest_difference, numbers
from grader.judging.diagnose import called_otherwise
from grader.judging.verdict import Table, Verdict
from grader.source import policy
from grader.worker.values import Failure, Observation, Part

STATUS = {
    "missing": "missing", "not_started": "not_started", "exception": "error", "contract": "failed",
    "timeout": "timeout", "memory": "memory", "died": "error", "invalid": "error",
}  # fmt: skip
MOST_KEPT = 64  # verdicts of one exercise: in a class, many show exactly the same numbers
ENDING = ("timeout", "memory", "died", "invalid")  # after these the candidate answers no more, unless it was an exception in it


class Candidate(Protocol):
    """What is judged: a live object in the notebook, or one behind a worker process.

    problem: why there is nothing to exercise, else None. sources: asked about the learner's cells, None where unknown.
    """

    name: str
    problem: Failure | None
    sources: policy.Sources | None

    def observe_all(self, cases: Sequence[Case]) -> Iterable[Observation]:
        """What each case shows, in order; it may end early where one was the end of all."""
        ...


def judge(exercise: Exercise, candidate: Candidate, seed: int = registry.SEED) -> Verdict:
    """The verdict on a candidate; nothing that the candidate does makes this raise.

    seed: of the inputs. The same seed gives every candidate the same inputs.
    """
    started = time.perf_counter()
    with np.errstate(all="ignore"):  # a learner's numbers may overflow in whatever a property does with them
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
        sources = self.candidate.sources
        offence = sources.offence(self.exercise.name, forbids, requires) if sources is not None else None
        # An untouched stub has nothing to forbid, but a forbidden call is the answer's end before it runs.
        if offence:
            return self._forbidden(offence)
        with registry.ALONE:
            self.drawn = drawn(self.exercise, self.seed)
        self._observe_all()
        with registry.ALONE:
            return self._verdict_on_what_was_seen()

    def _verdict_on_what_was_seen(self) -> Verdict:
        """Made once for what workers show in the same bytes: it depends on nothing else."""
        digests = tuple(observation.digest for observation in self.got.values())
        if not all(digests):
            return self._judged()
        kept = self.drawn.verdicts
        if digests not in kept:
            if len(kept) >= MOST_KEPT:
                del kept[next(iter(kept))]  # the oldest
            kept[digests] = self._judged()
        return kept[digests]

    def _judged(self) -> Verdict:
        """The stages that look at what was observed."""
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
        for i, observation in enumerate(self.candidate.observe_all(self.drawn.cases)):
            self.got[i] = observation = seen(self.drawn.cases[i], self.drawn.inputs[i], observation)
            failure = observation.failure
            if failure and (_ended(failure) or (i == 0 and self._is_stub(failure))):
                return

    def _is_stub(self, failure: Failure) -> bool:
        """Whether it comes from the untouched stub, of a class from its __init__: where another method raises it, that one is written."""
        return failure.kind == "not_started" and not failure.line and failure.function.partition(".")[2] in ("", "__init__")

    def _not_started(self) -> Verdict | None:
        failures = [seen.failure for seen in self.got.values() if seen.failure and seen.failure.kind == "not_started"]
        if failures and len(failures) == len(self.got) and self._is_stub(failures[0]):
            return self._without_object(failures[0])
        if failures:
            return self._half_done(failures[0])
        for observation in self.got.values():
            if self.exercise.kind == "answer" and [part.kind for part in observation.parts.values()] == ["none"]:
                return self._without_object(Failure("not_started"))  # the stub of an answer is None
        return None

    def _half_done(self, missing: Failure) -> Verdict:
        """Of what is written only in part: what fails of the part that is there; else that the rest is missing."""
        name, (owner, _, method) = self.exercise.name, missing.function.partition(".")
        written = {i: one for i, one in self.got.items() if not (one.failure and one.failure.kind == "not_started")}
        unwritten = next(i for i in self.got if i not in written)
        if missing.line:
            said = f"{name} calls `{owner}`, which is not written yet: it still raises NotImplementedError. Start there."
        elif method:
            said = f"{name} is half done: `{method}` still raises NotImplementedError."
        else:
            said = f"{name} is half done: it still raises NotImplementedError for {self.drawn.cases[unwritten].title}."
        self.got = written
        verdict = self._forbidden_while_running() or self._stage("values") or self._stage("extremes")
        if verdict is not None:
            return replace(verdict, details=(said, *verdict.details))
        return self._fail("failed", "attempted", said, self.drawn.cases[unwritten])

    def _forbidden_while_running(self) -> Verdict | None:
        for observation in self.got.values():
            offence = runtime_policy.forbidden(self.exercise.forbids, observation)
            if offence:
                return self._forbidden(offence)
        return None

    def _required_is_missing(self) -> Verdict | None:
        if "einsum_products" not in self.exercise.requires:
            return None
        for i, observation in self.got.items():
            if self.drawn.cases[i].stage == "values" and observation.failure is None:
                offence = runtime_policy.einsum_missing(self.drawn.cases[i], observation)
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
        headline, details = wording.failure(self.exercise, failure)
        if called_otherwise(failure):  # no number has a part in it
            return self._fail(STATUS[failure.kind], "runs", headline, case, (*details, *wording.by_name(case)))
        wanted = wording.wanted(self.drawn.wanted[i])
        return self._fail(STATUS[failure.kind], "runs", headline, case, (*details, *wanted), wording.inputs(case))

    def _raises(self, i: int) -> Verdict | None:
        case, failure = self.drawn.cases[i], self.got[i].failure
        if failure and failure.is_a(case.raises):
            return None
        if failure and _ended(failure):
            headline, details = wording.failure(self.exercise, failure)
            return self._fail(STATUS[failure.kind], "runs", headline, case, details)
        did = f"{failure.type} was raised: {failure.message}" if failure else "a value came back"
        headline = f"{self.exercise.name} was to raise {case.raises}; {did}."
        details = (f"Its line: {failure.line}",) if failure and failure.line else ()
        return self._fail("failed", "properties", headline, case, details, wording.inputs(case))

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
            if not at or not by_key.keys() >= set(held.needs):  # of what is half done some cases show nothing
                continue
            groups = [tuple(by_key[key] for key in held.needs)] if held.needs else [(i,) for i in at]
            for group in groups:
                arguments = [item for i in group for item in (self.drawn.cases[i], self._arrays(i))]
                sentence = held.check(*arguments)
                if sentence:
                    i = group[-1]
                    headline = f"This was to hold: {held.title}. {sentence[:1].upper()}{sentence[1:]}"
                    return self._fail("failed", "properties", headline, self.drawn.cases[i], (), self._tables(i))
            self.verified.append(held.title)
        return None

    def _arrays(self, i: int) -> dict[str, np.ndarray]:
        parts = {name: numbers(part) for name, part in self.parts[i].items()}
        return {
            name: part.array.astype(np.float64) if part.array.dtype.kind != "b" else part.array
            for name, part in parts.items()
            if part.array is not None
        }

    def _tables(self, i: int, name: str = "") -> tuple[Table, ...]:
        """Where many answers are right, the reference's is one of them: it is not shown as what was expected."""
        shown = wording.tables(self.drawn.cases[i], self.drawn.wanted[i], self.parts.get(i, {}), name)
        return tuple(table for table in shown if table.role in ("input", "got")) if self.exercise.compare else shown

    def _differs(self, i: int, problem: Problem) -> Verdict:
        case = self.drawn.cases[i]
        tables = self._tables(i, problem.part)
        if self.exercise.kind == "answer":
            # The expected numbers, or how far off these are, would be the answer.
            got = tuple(table for table in tables if table.role == "got")
            headline = f"{self.exercise.name}: these are not the numbers." if problem.stage == "values" else problem.sentence
            return self._fail("failed", problem.stage, headline, case, (), got)
        return self._fail("failed", problem.stage, problem.sentence, case, (), tables)

    def _inputs_left_alone(self) -> Verdict | None:
        for i, observation in self.got.items():
            if observation.modified:
                names = " and ".join(observation.modified)
                headline = f"{self.exercise.name} changes its input {names} in place; inputs are to be left as they are."
                details = ("Work on a copy, or write x = x - y in place of x -= y.",)
                return self._fail("failed", "inputs", headline, self.drawn.cases[i], details)
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
        following = registry.next_exercise(self.exercise.name)
        look = _next(self.exercise.name, following) if following else "That was the last exercise of the course."
        return Verdict(
            self.exercise.name, "passed", f"{self.exercise.name} passed.", verified=tuple(self.verified),
            max_difference=None if self.exercise.compare else self._largest_difference(), look=look,
        )  # fmt: skip

    def _largest_difference(self) -> float:
        """Of all numbers of all cases from the reference's."""
        wanted, came = [np.zeros(1)], [np.zeros(1)]
        for i, have in self.parts.items():
            for name, part in self.drawn.wanted[i].items():
                got = numbers(have[name]) if name in have else part
                if part.array is not None and got.array is not None and got.shape == part.shape and part.array.dtype.kind != "b":
                    wanted.append(part.array.ravel())
                    came.append(got.array.ravel())
        return largest_difference(np.concatenate(wanted), np.concatenate(came))[0]  # each array by itself would take ten times as long

    def _fail(
        self, status: str, stage: str, headline: str, case: Case, details: Sequence[str] = (),
        tables: Sequence[Table] = (),
    ) -> Verdict:  # fmt: skip
        found = self.drawn.diagnosis.mistakes(self.got)
        ids = tuple("+".join(pair) for pair in found)
        sentences = tuple(" Also: ".join(registry.mistake_text(id).sentence for id in pair) for pair in found)
        if found:
            calls = " or ".join(dict.fromkeys(f'explain("{id}")' for pair in found for id in pair))
            look = f"For more, {calls}; hint({self.exercise.name}) asks a question first."
        else:
            look = f"hint({self.exercise.name}) asks a question that leads on."
        return Verdict(
            self.exercise.name, status, headline, stage, wording.experiment(self.exercise, case), tuple(details), tuple(tables),
            ids, sentences, tuple(self.verified), look=look, case=case.key,
        )  # fmt: skip

    def _forbidden(self, offence: policy.Offence) -> Verdict:
        details = (f"The line: {offence.line}",) if offence.line else ()
        look = f"hint({_quoted(self.exercise)}) leads to a way of one's own."
        return Verdict(self.exercise.name, "forbidden", offence.sentence, "allowed", details=details, look=look)

    def _without_object(self, failure: Failure) -> Verdict:
        name, status = self.exercise.name, STATUS[failure.kind]
        look = f"hint({_quoted(self.exercise)}) asks a question to begin with."
        if status == "not_started":
            still = "it is still None" if self.exercise.kind == "answer" else "it still raises NotImplementedError"
            return Verdict(name, status, f"{name} is not started: {still}.", "attempted", look=look)
        if status == "missing":
            headline = failure.message or f"No cell defines {name}."
            absent = re.search(r"No notebook of lesson (\w+) was handed in", headline)
            look = f"Hand in {absent[1]}.ipynb." if absent else "`grader reset` restores a lesson and keeps a backup."
            return Verdict(name, status, headline, "attempted", look=look)
        headline, details = wording.failure(self.exercise, failure)
        return Verdict(name, status, headline, "runs", details=details, look=look)


def _next(name: str, following: str) -> str:
    """What comes next; of another lesson, also which."""
    lesson = registry.lesson_of(following)
    return f"Next: {following}." if lesson == registry.lesson_of(name) else f"Next: {following}, in lesson {lesson}."


def _ended(failure: Failure) -> bool:
    """Whether the process was lost; a MemoryError that the learner's code raised is an exception like others."""
    return failure.kind in ENDING and not failure.type


def _stage_of(case: Case) -> str:
    """Cases that must raise are judged with the extremes: first the ordinary way has to be right."""
    return "extremes" if case.raises else case.stage


def _quoted(exercise: Exercise) -> str:
    """The exercise as an argument: an answer or an unwritten function may have no object to pass."""
    return f'"{exercise.name}"'


