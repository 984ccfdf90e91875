"""A name is given only where it is proven."""

from __future__ import annotations

import gc
import linecache
from dataclasses import replace
from functools import cache, lru_cache
from weakref import ref

import numpy as np

from grader.course import references
from grader.course.patches import patch
from grader.course.readings import inputs
from grader.course.spec import Mistake
from grader.judging.baseline import MOST_BASELINES, baseline_of
from grader.judging.candidate import LiveObject
from grader.judging.diagnose import Diagnosis
from grader.judging.judge import judge
from grader.judging.mistake_runs import MistakeRuns
from grader.worker.observe import observe
from grader.worker.values import Failure, Observation
from tests.mixing_course import COURSE, made

EXERCISE = COURSE.exercise("shares")
CASES = [case for case in EXERCISE.cases(np.random.default_rng(0)) if case.args]
INPUTS = [inputs(case) for case in CASES]


@cache
def expected():
    return [observe(made("shares"), case) for case in CASES]


def named(obj, at=range(len(CASES))):
    return fitting(EXERCISE, {i: observe(obj, CASES[i]) for i in at})


def fitting(exercise, seen):
    runs = MistakeRuns(exercise, CASES, expected(), INPUTS)
    return Diagnosis(runs).mistakes({i: runs.compare(i, one) for i, one in seen.items()})


def test_one_mistake_two_mistakes_and_none():
    assert named(made("shares", "MX7")) == [("MX7",)]
    assert named(made("shares", "MX9", "MX11")) == [("MX9", "MX11")]
    assert named(made("shares")) == []
    assert named(lambda scores: scores) == []


def test_two_cases_are_no_proof():
    assert named(made("shares", "MX7"), at=range(2)) == []
    assert named(made("shares", "MX7"), at=range(3)) == [("MX7",)]


def test_a_mistake_that_shows_only_in_the_extremes_is_named_by_them():
    assert named(made("shares", "MX9")) == [("MX9",)]
    assert named(made("shares", "MX9"), at=range(8)) == []


def test_a_further_slip_in_the_extremes_does_not_hide_the_mistake():
    def wrong(scores):
        return np.zeros_like(scores) if abs(scores).max() > 100 else made("shares", "MX7")(scores)

    assert named(wrong) == [("MX7",)]


def nearest(change, unlike):
    """Of what is a mistake but in the cases of these positions."""

    def wrong(scores):
        here = any(np.array_equal(scores, CASES[i].args[0]) for i in unlike)
        return change(scores) if here else made("shares", "MX7")(scores)

    runs = MistakeRuns(EXERCISE, CASES, expected(), INPUTS)
    diagnosis = Diagnosis(runs)
    seen = {i: runs.compare(i, observe(wrong, case)) for i, case in enumerate(CASES)}
    return diagnosis.nearest(seen), diagnosis.mistakes(seen)


def test_what_shows_most_of_what_is_wrong_is_like_a_mistake():
    assert nearest(np.zeros_like, [2]) == ((("MX7",), 11, 12), [])
    assert nearest(np.zeros_like, [0, 1, 4, 5])[0] == (("MX7",), 8, 12)
    assert nearest(np.zeros_like, [0, 1, 4, 5, 6])[0] is None  # seven of twelve


def test_what_is_right_where_a_mistake_is_wrong_is_not_like_it():
    assert nearest(made("shares"), [2])[0] is None


def test_exceptions_alone_are_like_no_mistake():
    assert nearest(lambda scores: scores @ scores, [1, 2, 3, 4, 6])[0] is None


def test_the_same_exception_with_the_same_words_counts_as_the_same_output():
    def wrong(scores):
        return scores @ scores

    exercise = replace(EXERCISE, mistakes=(Mistake("EX1", wrong),))
    other = {i: observe(lambda scores: scores @ scores, case) for i, case in enumerate(CASES)}
    assert fitting(exercise, other) == [("EX1",)]
    different = {i: Observation(failure=Failure("exception", "ValueError", "other words")) for i in range(len(CASES))}
    assert fitting(exercise, different) == []


def test_a_class_in_which_each_learner_has_a_seed_does_not_fill_the_memory():
    kept = lru_cache(maxsize=2)(baseline_of.__wrapped__)
    assert baseline_of.cache_info().maxsize == MOST_BASELINES
    before, texts = ref(kept(EXERCISE, 1)), []
    for seed in (2, 3):
        for number in range(len(EXERCISE.mistakes)):
            kept(EXERCISE, seed).runs.proofs(number)
        texts.append(len(linecache.cache))
    gc.collect()
    assert before() is None and texts[0] == texts[1]


def test_what_looks_like_two_mistakes_in_one_entry_is_told_with_both():
    neither = patch("scores - scores.max(axis=1, keepdims=True)", "scores", "sum(axis=1, keepdims=True)", "sum()")
    exercise = replace(EXERCISE, mistakes=(*EXERCISE.mistakes, Mistake("MX8+MX9", neither)))
    both = references.wrong(exercise, exercise.mistakes[-1])
    verdict = judge(exercise, LiveObject(lambda scores: both(scores) + (3 if len(scores) == 7 else 0)))
    assert verdict.mistakes == ("MX8+MX9",)
    assert verdict.sentences[0].startswith("It looks like this in ") and " Also: " in verdict.sentences[0]
