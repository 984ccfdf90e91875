"""Judges one candidate of one exercise.

What does not come so far has verdicts of its own: of a run without time in grading/grade.py, of a stale cell in notebook/verdicts.py.

Cases are judged in their order, ordinary inputs before extremes, and the first in which anything is wrong is the headline.
Within one, the order is fixed: runs, type, shape and dtype, finite, properties, values. Whether it was attempted and is
allowed comes before all; whether keys were taken in tiles and inputs were left alone, after all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeGuard

import numpy as np

from grader.course.course import IMPORT_LOCK
from grader.course.spec import SEED, Case, Exercise
from grader.judging import evidence, rules, runtime_policy, wording
from grader.judging.baseline import Baseline, baseline_of
from grader.judging.candidate import Candidate
from grader.judging.compare import NO_PART, Comparison, Finding, largest_difference, raises_as_asked
from grader.judging.facts import Facts
from grader.judging.properties import count_agreeing, first_violation, undisputed
from grader.judging.symptoms import SYMPTOM_IDS, find_symptoms
from grader.judging.verdict import FAILING, Line, Status, Table, Verdict
from grader.source import policy
from grader.source.slips import Slip
from grader.worker.values import Failure, Observation

# By a failure's kind; any other is an 'error'.
STATUS: dict[str, Status] = {
    "missing": "missing",
    "not_started": "not_started",
    "contract": "failed",
    "timeout": "timeout",
    "memory": "memory",
}
MOST_VERDICTS = 64  # kept of one exercise: in a class, many show exactly the same numbers
# After these the candidate answers no more, unless it was an exception in it.
FATAL = ("timeout", "memory", "died", "invalid")


def judge(exercise: Exercise, candidate: Candidate, seed: int = SEED) -> Verdict:
    """The verdict on a candidate; nothing that the candidate does makes this raise.

    seed: of the inputs. The same seed gives every candidate the same inputs.
    """
    start = time.perf_counter()
    with np.errstate(all="ignore"):  # a learner's numbers may overflow in whatever a property does with them
        verdict = _judge(exercise, candidate, seed)
    return replace(verdict, seconds=time.perf_counter() - start)


def blame_callee(verdict: Verdict, sources: policy.Sources | None, others: Mapping[str, Verdict]) -> Verdict:
    """The verdict, whose details begin with another exercise that this one calls, where that one's failure explains this one.

    It does where both show the same mistake, where this one ended in the other's code, or in the line that calls it where that raises
    as well, such as one that is not defined: evidence that costs nothing. A notebook has
    proof (notebook/verdicts.py), which for a worker would be a further run of each caller. others: the verdicts on the lesson's exercises.
    """
    if sources is None or verdict.status not in FAILING:
        return verdict
    callees = (others.get(slip.name) for slip in sources.slips(verdict.exercise) if slip.kind == "calls")
    for callee in callees:
        if callee and callee.status in FAILING and _shares_cause(callee, verdict):
            return replace(verdict, details=(wording.blame_callee(verdict.exercise, callee.exercise), *verdict.details))
    return verdict


def _shares_cause(callee: Verdict, verdict: Verdict) -> bool:
    callee_ids, own_ids = ("+".join(failing.mistakes).split("+") for failing in (callee, verdict))
    if set(callee_ids) & set(own_ids) - SYMPTOM_IDS - {""}:
        return True
    both_raised = callee.status == verdict.status == "error"
    line = verdict.line
    return line is not None and (line.function == callee.exercise or both_raised and callee.exercise in line.text)


def _judge(exercise: Exercise, candidate: Candidate, seed: int) -> Verdict:
    sources = candidate.sources or policy.Sources(())
    if candidate.problem is not None:
        return _judge_absence(exercise, candidate.problem, sources)
    offence = sources.offence(exercise.name, exercise.forbids, exercise.requires)
    # An untouched stub has nothing to forbid, but a forbidden call is the answer's end before it runs.
    if offence:
        return _forbidden(exercise, offence)
    with IMPORT_LOCK:
        baseline = baseline_of(exercise, seed)
    comparisons: dict[int, Comparison] = {}
    for i, observation in enumerate(candidate.observe_all(baseline.cases)):
        comparisons[i] = baseline.runs.compare(i, observation)
        failure = comparisons[i].actual.failure
        if failure and (_is_fatal(failure) or (i == 0 and _is_stub(failure))):
            break
    judgement = _Judgement(exercise, sources, baseline, comparisons)
    digests = tuple(comparison.actual.digest for comparison in comparisons.values())
    with IMPORT_LOCK:
        if not all(digests):
            return judgement.verdict()
        # Made once for what workers show in the same bytes, with the same slips in the source: it depends on nothing else.
        verdicts, key = baseline.verdicts, (judgement.slips, *digests)
        if key not in verdicts:
            if len(verdicts) >= MOST_VERDICTS:
                del verdicts[next(iter(verdicts))]  # the oldest
            verdicts[key] = judgement.verdict()
        return verdicts[key]


class _Judgement:
    """The stages that look at what was observed. comparisons: by the case's position; verified: what held in the stages so far."""

    def __init__(
        self, exercise: Exercise, sources: policy.Sources, baseline: Baseline, comparisons: Mapping[int, Comparison]
    ) -> None:
        self.exercise, self.sources, self.baseline, self.comparisons = exercise, sources, baseline, comparisons
        self.cases = baseline.cases
        self.verified: list[str] = []

    @cached_property
    def slips(self) -> tuple[Slip, ...]:
        return self.sources.slips(self.exercise.name)

    def verdict(self) -> Verdict:
        verdict = (
            self._check_started()
            or self._judge_numbers()
            # asked of right numbers alone: what drops tiles does less, too
            or self._check_operations(runtime_policy.missing_keys)
            or self._check_inputs()
            or self._pass()
        )
        if verdict.status in ("passed", "not_started", "forbidden"):
            return verdict
        return replace(verdict, cases=(count_agreeing(self.exercise, self.comparisons), len(self.cases)))

    def _judge_numbers(self) -> Verdict | None:
        """What is wrong first, where only what is allowed ran."""
        allowed = partial(runtime_policy.forbidden_operation, self.exercise.forbids)
        return self._check_operations(allowed) or self._judge_stage("values") or self._judge_stage("extremes")

    def _check_started(self) -> Verdict | None:
        observations = [comparison.actual for comparison in self.comparisons.values()]
        failures = [observation.failure for observation in observations if _is_unwritten(observation.failure)]
        for slip in self.slips if failures else ():
            if slip.kind == "left raise" and slip.name == failures[0].function:
                headline, line = wording.leftover_raise(self.exercise, slip), Line(slip.line, slip.number)
                next_step = wording.next_step(self.exercise, "error")
                return Verdict(self.exercise.name, "error", headline, "runs", line=line, next_step=next_step)
        if failures and len(failures) == len(observations) and _is_stub(failures[0]):
            return _judge_absence(self.exercise, failures[0], self.sources)
        if failures:
            return self._judge_unfinished(failures[0])
        kinds = [[part.kind for part in observation.parts.values()] for observation in observations]
        if self.exercise.kind == "answer" and ["none"] in kinds:
            return _judge_absence(self.exercise, Failure("not_started"), self.sources)  # the stub of an answer is None
        return None

    def _judge_unfinished(self, missing: Failure) -> Verdict:
        """Of what is written only in part: what fails of the part that is there; else that the rest is missing."""
        unwritten = [i for i, comparison in self.comparisons.items() if _is_unwritten(comparison.actual.failure)]
        rest = {i: comparison for i, comparison in self.comparisons.items() if i not in unwritten}
        finding = Finding("unwritten", failure=missing, claim=self.cases[unwritten[0]].title)
        judgement = _Judgement(self.exercise, self.sources, self.baseline, rest)
        if verdict := judgement._judge_numbers():
            return replace(verdict, details=(wording.headline(self.exercise, finding), *verdict.details))
        return judgement._fail(unwritten[0], finding)

    def _check_operations(self, rule: Callable[[Case, Observation], policy.Offence | None]) -> Verdict | None:
        """The verdict on the first case in which the operations that ran break a rule."""
        offences = (rule(comparison.case, comparison.actual) for comparison in self.comparisons.values())
        return next((_forbidden(self.exercise, offence) for offence in offences if offence), None)

    def _judge_stage(self, stage: str) -> Verdict | None:
        """What is wrong first of one group of cases: in the first case in which anything is, in the order of judging.

        Cases that must raise are judged with the extremes: first the ordinary way has to be right.
        """
        stages = ["extremes" if case.raises else case.stage for case in self.cases]
        positions = [i for i in self.comparisons if stages[i] == stage]
        stopped = next((i for i in positions if not self._has_run(i)), None)
        returned = [i for i in positions if self.cases[i].raises is None and (stopped is None or i < stopped)]
        findings = [(i, differences[0]) for i in returned if (differences := self.comparisons[i].differences)]
        misshapen = next((i for i, finding in findings if finding.stage != "values"), None)
        comparable = [i for i in returned if misshapen is None or i < misshapen]  # what properties may look at
        wrong = next((i for i, _ in findings if i in comparable), None)
        not_finite = [i for i, finding in findings if finding.stage == "finite"]
        if stage == "values":
            asks_einsum = "einsum_products" in self.exercise.requires and misshapen is None and stopped is None
            verdict = self._check_operations(runtime_policy.missing_einsum) if asks_einsum else None
            if verdict := verdict or self._check_properties(comparable, wrong, not_finite):
                return verdict
        if findings:
            i, finding = findings[0]
            if finding.kind == "count":
                return self._fail(i, finding, (), evidence.inputs(self.cases[i]))
            return self._fail(i, finding, (), evidence.tables(self.comparisons[i], finding.part))
        if stopped is not None:
            return self._judge_stop(stopped)
        titles = [self.cases[i].title for i in positions]
        self.verified = wording.verified(self.exercise, stage, titles, self.verified) if titles else self.verified
        return None

    def _has_run(self, i: int) -> bool:
        """Whether a case came to its end, or to the exception that it asks for."""
        case, actual = self.cases[i], self.comparisons[i].actual
        return actual.failure is None if case.raises is None else raises_as_asked(case, actual)

    def _judge_stop(self, i: int) -> Verdict:
        """The verdict on a case that did not."""
        case, failure = self.cases[i], self.comparisons[i].actual.failure
        if case.raises is not None and not (failure and _is_fatal(failure)):
            parts = self.comparisons[i].actual.parts.values()
            value = next((part for part in parts if part.role == "returned"), NO_PART)
            finding = Finding("raises", claim=case.raises, failure=failure, actual=value)
            return self._fail(i, finding, (), evidence.inputs(case))
        assert failure is not None
        finding, details = Finding("failure", failure=failure), [wording.details(failure)]
        if case.raises is not None or failure.kind == "no function":
            return self._fail(i, finding, details)
        if failure.kind == "call":  # no number has a part in it
            return self._fail(i, finding, [*details, wording.keyword_names(case)])
        if failure.kind != "contract" and failure.type not in ("AttributeError", "NameError", "UnboundLocalError"):
            details.append(wording.expected_shapes(self.exercise, self.comparisons[i].expected.parts))
        return self._fail(i, finding, details, evidence.inputs(case))

    def _check_properties(
        self, comparable: Sequence[int], wrong: int | None, not_finite: Sequence[int]
    ) -> Verdict | None:
        comparisons, unsure = {i: self.comparisons[i] for i in comparable}, [self.comparisons[i] for i in not_finite]
        verified, group, finding = first_violation(self.exercise, comparisons, wrong, unsure)
        self.verified += verified
        if finding is None:
            return None
        return self._fail(group[-1], finding, (), evidence.of_property([comparisons[i] for i in group], finding.part))

    def _check_inputs(self) -> Verdict | None:
        for i, comparison in self.comparisons.items():
            if names := comparison.actual.modified:
                return self._fail(i, Finding("modified", claim=" and ".join(names)), [wording.ON_A_COPY])
        if "table" in self.exercise.forbids and any("table" in case.options for case in self.cases):
            self.verified.append(wording.NO_LARGE_TENSOR)
        if self.exercise.kind != "answer":
            self.verified.append(wording.INPUTS_UNCHANGED)
        return None

    def _pass(self) -> Verdict:
        next_exercise = wording.next_exercise(self.exercise)
        return Verdict(
            self.exercise.name,
            "passed",
            f"{self.exercise.name} passed.",
            verified=tuple(self.verified),
            max_difference=None if self.exercise.compare else largest_difference(self.comparisons.values()),
            next_exercise=next_exercise,
            next_step="" if next_exercise else wording.LAST_EXERCISE,
            cases=(len(self.cases), len(self.cases)),
        )

    def _fail(self, i: int, finding: Finding, details: Sequence[str] = (), tables: Sequence[Table] = ()) -> Verdict:
        """The verdict on a case at fault, with the mistakes that reproduce what was observed."""
        case, failure = self.cases[i], finding.failure
        observation = self.comparisons[i].actual if i in self.comparisons else Observation()
        mistakes = self.baseline.diagnosis.mistakes(self.comparisons)

        def sentence_of(ids: Sequence[str]) -> str:
            return " Also: ".join(self.exercise.course.mistake_text(id).sentence for id in ids)

        sentences = tuple(map(sentence_of, mistakes))
        status = STATUS.get(failure.kind, "error") if finding.kind == "failure" and failure else "failed"
        facts = Facts(self.exercise, finding, self.comparisons.values(), self.slips)
        slip = "" if self.exercise.kind == "answer" else rules.slip(facts, bool(mistakes))
        if not mistakes and not slip:
            if finding.kind == "failure":  # where a mistake is proven, general advice is silent
                details = (*details, rules.advice(facts))
            symptoms = find_symptoms(self.exercise, self.comparisons.values())
            if symptoms:  # of one thing, so that nobody takes them for several that would each explain it
                mistakes, sentences = [tuple(id for id, _ in symptoms)], (" ".join(text for _, text in symptoms),)
            elif nearest := self.baseline.diagnosis.nearest(self.comparisons):
                ids, count, failing = nearest
                mistakes, sentences = [ids], (wording.resemblance(sentence_of(ids), count, failing),)
        ungraded = rules.ungraded_name(facts, case)
        return Verdict(
            self.exercise.name,
            status,
            " ".join(filter(None, (ungraded, wording.headline(self.exercise, finding)))),
            finding.stage,
            wording.experiment(self.exercise, case),
            tuple(filter(None, details)),
            tuple(tables),
            tuple("+".join(ids) for ids in mistakes),
            sentences,
            undisputed(self.exercise, self.verified, finding, self.comparisons.get(i)),
            next_step=wording.next_step(self.exercise, status, mistakes),
            case=case.key,
            line=wording.line(self.exercise.name, failure) if failure else None,
            slip=slip,
            printed=observation.printed,
            warned=observation.warned,
        )


def _forbidden(exercise: Exercise, offence: policy.Offence) -> Verdict:
    line = Line(offence.line) if offence.line else None
    next_step = wording.next_step(exercise, "forbidden")
    return Verdict(exercise.name, "forbidden", offence.sentence, "allowed", line=line, next_step=next_step)


def _judge_absence(exercise: Exercise, failure: Failure, sources: policy.Sources) -> Verdict:
    name, status = exercise.name, STATUS.get(failure.kind, "error")
    next_step = wording.next_step(exercise, status, failure=failure)
    if status == "not_started":
        return Verdict(name, status, wording.not_started(exercise), "attempted", next_step=next_step)
    if status == "missing":
        headline = failure.message or f"No cell defines {name}."
        return Verdict(name, status, headline, "attempted", next_step=next_step)
    facts = Facts(exercise, Finding("failure", failure=failure), (), sources.slips(name))
    details = tuple(filter(None, (wording.details(failure), rules.advice(facts))))
    headline, line = wording.failure_headline(name, failure), wording.line(name, failure)
    return Verdict(name, status, headline, "runs", details=details, line=line, next_step=next_step)


def _is_stub(failure: Failure) -> bool:
    """Whether it comes from the untouched stub, of a class from its __init__: where another method raises it, that one is written."""
    method = failure.function.partition(".")[2]
    return failure.kind == "not_started" and not failure.line and method in ("", "__init__")


def _is_unwritten(failure: Failure | None) -> TypeGuard[Failure]:
    return failure is not None and failure.kind == "not_started"


def _is_fatal(failure: Failure) -> bool:
    """Whether the process was lost; a MemoryError that the learner's code raised is an exception like others."""
    return failure.kind in FATAL and not failure.type
