"""The cases of an exercise for one seed, what the reference shows on them, and what each known mistake shows."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from grader.course import references
from grader.course.readings import UNNAMED, inputs, with_readings
from grader.course.spec import Case, Exercise
from grader.judging.diagnose import Diagnosis
from grader.judging.mistake_runs import MistakeRuns
from grader.judging.verdict import Verdict
from grader.util.errors import AuthorError, LintError, author_slip
from grader.worker import probes
from grader.worker.observe import observe, same_random_state
from grader.worker.operations import GROUPS
from grader.worker.values import Observation, Part

MOST_BASELINES = 128  # more than the course has exercises; where each learner has a seed, hundreds of learners' would fill the memory


@dataclass(frozen=True, eq=False)
class Baseline:
    """The cases of an exercise for one seed, and what the reference shows on them.

    verdicts: on what workers have shown, by the digests of their messages.
    """

    cases: tuple[Case, ...]
    expected: tuple[Observation, ...]
    runs: MistakeRuns
    diagnosis: Diagnosis
    verdicts: dict[tuple[Any, ...], Verdict] = field(default_factory=dict)


@lru_cache(maxsize=MOST_BASELINES)
@same_random_state(one_thread=True)
def baseline_of(exercise: Exercise, seed: int) -> Baseline:
    """Draws the cases and runs the reference. The last ones are kept: a second check is quick."""
    probes.offer(exercise.course.probe_texts())
    reference = references.reference(exercise)
    names = _parameter_names(exercise, reference)
    watch = tuple(group for group in exercise.forbids if group in GROUPS)
    if "einsum_products" in exercise.requires:
        watch += ("einsum",)
    author_cases = list(exercise.cases(np.random.default_rng(seed)))
    by_name = _last_by_position(author_cases, names, {key for rule in exercise.properties for key in rule.cases})
    unwatched = []
    for i, case in enumerate(author_cases):
        options = dict(case.options)
        if i == by_name or case.options.get("by_name"):
            options["by_name"] = names[: len(case.args)] if i == by_name else names
        unwatched.append(replace(case, names=case.names or names, options=options))
    cases = [
        replace(case, options={**case.options, "watch": watch}) if watch and case.watched else case
        for case in unwatched
    ]
    all_inputs = tuple(map(inputs, unwatched))
    expected = tuple(_observe_reference(exercise, reference, *pair) for pair in zip(unwatched, all_inputs, strict=True))
    for case, observation in zip(cases, expected, strict=True):
        if (failure := observation.failure) is None and case.raises is not None:
            raise _slip(exercise, case, "the solution raises no exception.")
        if failure is not None and case.raises is None:
            line = f" in its line `{failure.line}`" if failure.line else ""
            raise _slip(exercise, case, f"the solution fails{line}: {failure.type or failure.kind}: {failure.message}.")
        if UNNAMED in observation.parts:
            names_text = " and ".join(exercise.result_names)
            raise _slip(exercise, case, f"`result_names` has {names_text}; the solution returns something else.")
        if exercise.result_type != "answer" and any(part.kind == "sequence" for part in observation.parts.values()):
            raise _slip(
                exercise,
                case,
                "nothing compares a tuple; `result_names` tells what is in it, or the probe marks one with `mark_result`.",
            )
    runs = MistakeRuns(exercise, unwatched, expected, all_inputs)
    return Baseline(tuple(cases), expected, runs, Diagnosis(runs))


def _observe_reference(exercise: Exercise, reference: Any, case: Case, case_inputs: Mapping[str, Part]) -> Observation:
    """What a case shows of the reference. Raises: AuthorError where there is no such probe, or its reading fails."""
    try:
        probes.find(case.probe)
    except KeyError:
        module, _, name = case.probe.rpartition(".")
        raise _slip(exercise, case, f"there is no `{name}` in solutions/{module.replace('.', '/')}.py.") from None
    response = observe(reference, case, trusted=True)
    observation = with_readings(exercise, case, case_inputs, response)
    if case.reading is not None and observation.failure and response.failure is None and case.raises is None:
        try:
            case.reading(case, response.parts)  # again, for its file and line
        except Exception as error:
            raise AuthorError([author_slip(error, _file(exercise))]) from error
    return observation


def _file(exercise: Exercise) -> str:
    return f"solutions/{exercise.lesson}/exercises/{exercise.name}.py"


def _slip(exercise: Exercise, case: Case, sentence: str) -> AuthorError:
    return AuthorError([LintError(_file(exercise), 0, f"case {case.key!r}: {sentence}")])


def _last_by_position(cases: list[Case], names: tuple[str, ...], compared_keys: Set[str]) -> int | None:
    """The case whose inputs are passed by name instead: the contract fixes the parameters' names. It is one of many, so not the first.

    compared_keys: of cases that are compared with one another; if possible it is none of them, since of two exchanged parameters
        one would show and the other not.
    """
    positions = [
        i
        for i, case in enumerate(cases)
        if case.probe in ("call", "module")
        and case.stage == "values"
        and case.raises is None
        and 0 < len(case.args) <= len(names)
    ]
    uncompared = [i for i in positions[1:] if cases[i].key not in compared_keys]
    return (uncompared or positions)[-1] if len(positions) > 1 else None


def _parameter_names(exercise: Exercise, reference: Any) -> tuple[str, ...]:
    """The names of what a case passes positionally: the parameters of the function, of a module's forward, or of a class without one."""
    if exercise.kind == "answer":
        return ()
    target = getattr(reference, "forward", reference) if exercise.kind == "class" else reference
    return tuple(name for name in inspect.signature(target).parameters if name != "self")
