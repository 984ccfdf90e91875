"""A name is given only where it is proven."""

from __future__ import annotations

import gc
import linecache
from functools import lru_cache
from weakref import ref

import numpy as np

from grader.course import references
from grader.course.course import open_course
from grader.course.readings import inputs
from grader.course.spec import SEED
from grader.judging.baseline import MOST_KEPT, baseline_of
from grader.judging.diagnose import Diagnosis
from grader.judging.judge import judge
from grader.worker.observe import observe
from grader.worker.values import Failure, Observation
from tests.live import Live
from tests.toy import EXERCISE, build, cases

CASES = list(cases(np.random.default_rng(0)))
EXPECTED = [observe(build(), case) for case in CASES]
INPUTS = [inputs(case) for case in CASES]


def named(obj, at=range(len(CASES))):
    return fitting(EXERCISE, {i: observe(obj, CASES[i]) for i in at})


def fitting(exercise, seen):
    diagnosis = Diagnosis(exercise, CASES, EXPECTED, INPUTS)
    return diagnosis.mistakes({i: diagnosis.compare(i, one) for i, one in seen.items()})


def test_one_mistake_two_mistakes_and_none():
    assert named(build("SM1")) == [("SM1",)]
    assert named(build("SM5", "TY1")) == [("SM5", "TY1")]
    assert named(build()) == []
    assert named(lambda scores: scores) == []


def test_two_cases_are_no_proof():
    assert named(build("TY1"), at=range(2)) == []
    assert named(build("TY1"), at=range(3)) == [("TY1",)]


def test_a_mistake_that_shows_only_in_the_extremes_is_named_by_them():
    assert named(build("SM5")) == [("SM5",)]
    assert named(build("SM5"), at=range(5)) == []


def test_a_further_slip_in_the_extremes_does_not_hide_the_mistake():
    def wrong(scores):
        return np.zeros_like(scores) if abs(scores).max() > 100 else build("SM1")(scores)

    assert named(wrong) == [("SM1",)]


def nearest(change, unlike):
    """Of what is a mistake but in the cases of these positions."""

    def wrong(scores):
        here = any(np.array_equal(scores, CASES[i].args[0]) for i in unlike)
        return change(scores) if here else build("SM1")(scores)

    diagnosis = Diagnosis(EXERCISE, CASES, EXPECTED, INPUTS)
    seen = {i: diagnosis.compare(i, observe(wrong, case)) for i, case in enumerate(CASES)}
    return diagnosis.nearest(seen), diagnosis.mistakes(seen)


def test_what_shows_most_of_what_is_wrong_is_like_a_mistake():
    assert nearest(np.zeros_like, [2]) == ((("SM1",), 7, 8), [])
    assert nearest(np.zeros_like, [0, 1, 4])[0] == (("SM1",), 5, 8)
    assert nearest(np.zeros_like, [0, 1, 4, 5])[0] is None  # four of eight


def test_what_is_right_where_a_mistake_is_wrong_is_not_like_it():
    assert nearest(build(), [2])[0] is None


def test_exceptions_alone_are_like_no_mistake():
    assert nearest(lambda scores: scores @ scores, [1, 2, 3, 4])[0] is None


def test_the_same_exception_with_the_same_words_counts_as_the_same_output():
    def wrong(scores):
        return scores @ scores

    exercise = EXERCISE.__class__(**{**EXERCISE.__dict__, "mistakes": (EXERCISE.mistakes[0].__class__("EX1", wrong),)})
    other = {i: observe(lambda scores: scores @ scores, case) for i, case in enumerate(CASES)}
    assert fitting(exercise, other) == [("EX1",)]
    different = {i: Observation(failure=Failure("exception", "ValueError", "other words")) for i in range(len(CASES))}
    assert fitting(exercise, different) == []


def test_a_class_in_which_each_learner_has_a_seed_does_not_fill_the_memory():
    exercise = open_course().exercise("softmax_rows")
    kept = lru_cache(maxsize=2)(baseline_of.__wrapped__)
    assert baseline_of.cache_info().maxsize == MOST_KEPT > len(open_course().exercise_names())
    before, texts = ref(kept(exercise, 1)), []
    for seed in (2, 3):
        for number in range(len(exercise.mistakes)):
            kept(exercise, seed).diagnosis.proofs(number)
        texts.append(len(linecache.cache))
    gc.collect()
    assert before() is None and texts[0] == texts[1]


def test_what_looks_like_two_mistakes_in_one_entry_is_told_with_both():
    exercise = open_course().exercise("attention_torch")
    both = references.wrong(exercise, next(one for one in exercise.mistakes if one.id == "SM3+SM5"))
    shape = next(c.args[0].array.shape for c in baseline_of(exercise, SEED).cases if c.key == "item changed")

    def wrong(q, k, v):
        output, weights = both(q, k, v)
        return (3 * output + 1 if tuple(q.shape) == shape else output), weights

    verdict = judge(exercise, Live("attention_torch", wrong))
    assert verdict.mistakes == ("SM3+SM5",)
    assert verdict.sentences[0].startswith("It looks like this in ") and " Also: " in verdict.sentences[0]
