"""Mistakes that any exercise may hold are named by what became of a right result, and only where it proves them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from grader.course import outcome_texts
from grader.course.spec import SEED, Case
from grader.judging import symptoms
from grader.judging.baseline import baseline_of
from grader.judging.compare import Comparison
from grader.judging.judge import judge
from grader.worker.values import Observation, Part
from tests.live import from_cells
from tests.mixing_course import COURSE

SOME = ("nearest", "products", "shares", "blend", "mix", "log_shares", "surprise", "mix_torch")


def changed(observation, change):
    """An observation whose returned arrays went through change(array)."""

    def of(part):
        if part.items:
            return replace(part, items=tuple(map(of, part.items)))
        return (
            part
            if part.array is None
            else replace(part, array=np.ascontiguousarray(change(part.array)).astype(part.array.dtype))
        )

    return replace(
        observation,
        parts={name: of(part) if part.role == "returned" else part for name, part in observation.parts.items()},
    )


def compared(exercise, actual):
    specification = COURSE.exercise(exercise)
    work = baseline_of(specification, SEED)
    return {i: Comparison(specification, work.cases[i], work.expected[i], one) for i, one in actual.items()}


def found(exercise, actual):
    id = symptoms.outcome(COURSE.exercise(exercise), compared(exercise, actual).values())
    return [id] if id else []


def observed(exercise):
    return dict(enumerate(baseline_of(COURSE.exercise(exercise), SEED).expected))


@cache
def named(exercise, outcome):
    """What is found where an outcome became of a right result, in each of its ways."""
    right = observed(exercise)
    names = set()
    for change in symptoms.CHANGES[outcome]:
        actual = {
            i: one if one.failure else changed(one, lambda a, change=change: change(a.astype(float)))
            for i, one in right.items()
        }
        names |= set(found(exercise, actual))
    return names


@pytest.mark.parametrize("outcome", symptoms.CHANGES)
@pytest.mark.parametrize("exercise", SOME)
def test_each_way_of_each_is_found_where_it_shows(exercise, outcome):
    # Two ways may come to the same in some exercise: rows of one number in reverse are the rows.
    assert outcome in named(exercise, outcome) or not named(exercise, outcome), named(exercise, outcome)


def test_every_one_is_found_in_some_exercise():
    seen = set().union(*(named(exercise, outcome) for exercise in SOME for outcome in symptoms.CHANGES))
    assert seen >= set(symptoms.CHANGES)


@pytest.mark.parametrize("exercise", SOME)
def test_a_right_result_shows_none(exercise):
    assert found(exercise, observed(exercise)) == []


@pytest.mark.parametrize("exercise", SOME)
def test_what_shows_in_two_results_alone_is_not_named(exercise):
    right = observed(exercise)
    shown = [i for i, one in right.items() if not one.failure][:2]
    assert found(exercise, {i: changed(one, lambda a: -a) if i in shown else one for i, one in right.items()}) == []


def test_three_results_prove_one_and_two_do_not():
    exercise, work = COURSE.exercise("blend"), baseline_of(COURSE.exercise("blend"), SEED)

    def negative(proofs):
        """Found where all results but so many are 0, of which nobody sees the sign."""
        right = [changed(one, lambda a, at=at: a * (at < proofs)) for at, one in enumerate(work.expected)]
        pairs = zip(work.cases, right, strict=True)
        negated = (Comparison(exercise, case, one, changed(one, lambda a: -a)) for case, one in pairs)
        return symptoms.outcome(exercise, negated)

    assert (negative(2), negative(3)) == ("", "RS3")


def claiming(one, *claims):
    """An observation with claims beside its result: each the id that it proves, and whether it holds."""
    parts = {f"claim {id}": Part("bool", np.array(holds), "bool", role="flag", text=id) for id, holds in claims}
    return replace(one, parts={**one.parts, **parts})


@pytest.mark.parametrize(
    ("broken", "id"), [(["AB1"], "AB1"), ([], ""), (["AB1", "AB2"], ""), ([""], ""), (["AB1", ""], "")]
)
def test_one_claim_that_does_not_hold_proves_its_mistake_where_all_else_is_right(broken, id):
    exercise, work, ids = COURSE.exercise("blend"), baseline_of(COURSE.exercise("blend"), SEED), ("AB1", "AB2", "")

    def named(change=lambda a: a):
        pairs = zip(work.cases, work.expected, strict=True)
        shown = (
            (case, claiming(one, *((id, True) for id in ids)), claiming(one, *((id, id not in broken) for id in ids)))
            for case, one in pairs
        )
        return symptoms.outcome(
            exercise, [Comparison(exercise, case, right, changed(theirs, change)) for case, right, theirs in shown]
        )

    assert named() == id
    assert named(lambda a: -a) == ("" if broken else "RS3"), "another mistake beside it explains not all"


def test_of_true_and_false_nothing_is_called_cut():
    exercise, work = COURSE.exercise("blend"), baseline_of(COURSE.exercise("blend"), SEED)

    def compare(case, one):
        right = np.array(np.indices(one.parts["result"].shape).sum(0) % 2, bool)
        parts = [Part("ndarray", array, array.dtype.name) for array in (right, np.zeros(right.shape, int))]
        return Comparison(exercise, case, *(Observation({"result": replace(part, role="returned")}) for part in parts))

    shown = [compare(*pair) for pair in zip(work.cases, work.expected, strict=True)]
    assert symptoms.outcome(exercise, shown) != "RS17"


def test_each_has_a_text_and_each_text_can_be_found():
    assert {text.id for text in outcome_texts.TEXTS} == set(symptoms.CHANGES) | {
        "RS9",
        "RS10",
        "RS14",
        "RS15",
        "RS16",
        "RS17",
        *(f"RS{number}" for number in range(18, 26)),  # test_symptoms.py
    }
    assert all(
        COURSE.shared_texts()[text.id].wrong and COURSE.shared_texts()[text.id].right for text in outcome_texts.TEXTS
    )


def refused(rng):
    yield from COURSE.exercise("scaled").cases(rng)
    yield Case("negative", "no root", (rng.normal(size=(2, 3)), -1), raises="ValueError")


def whole(rng):
    for n in range(2, 7):
        yield Case(f"{n} rows", "whole numbers", (rng.integers(-3, 4, (n, 3)),))


# With cases that the course's own exercises lack.
OWN = {name: replace(COURSE.exercise(name), cases=cases) for name, cases in (("scaled", refused), ("shares", whole))}
MIX_TORCH = "def mix_torch(q, k, v):\n    weights = (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1)\n"
BY_CELL = (
    ("RS1", "blend", "def blend(weights, V):\n    return np.round(weights @ V, 2)"),
    ("RS2", "products", "def products(Q, K):\n    return np.array([[Q[0] @ k for k in K] for q in Q])"),
    ("RS3", "blend", "def blend(weights, V):\n    return -(weights @ V)"),
    (
        "RS4",
        "products",
        """def products(Q, K):
    scores = np.zeros((len(Q), len(K)))
    for i in range(len(Q) - 1):
        scores[i] = K @ Q[i]
    return scores""",
    ),
    ("RS5", "blend", "def blend(weights, V):\n    return np.array([weights[i - 1] @ V for i in range(len(weights))])"),
    ("RS6", "mix_torch", f"{MIX_TORCH}    return (weights @ v).flip(-2), weights.flip(-2)"),
    ("RS7", "blend", "def blend(weights, V):\n    return (weights @ V).T"),
    ("RS8", "mix_torch", f"{MIX_TORCH}    return (weights @ v).squeeze(), weights.squeeze()"),
    (
        "RS9",
        "blend",
        """kept = {}
def blend(weights, V):
    return kept.setdefault((weights.shape, V.shape), weights @ V)""",
    ),
    ("RS10", "blend", "def blend(weights, V):\n    return np.array([[5.0, 5.0]])"),
    (
        "RS11",
        "blend",
        """def blend(weights, V):
    total, rows = np.zeros(V.shape[1]), []
    for row in weights:
        for w, v in zip(row, V):
            total = total + w * v
        rows.append(total)
    return np.array(rows)""",
    ),
    ("RS14", "scaled", "def scaled(scores, d):\n    assert d > 0\n    return scores / d**0.5"),
    ("RS16", "products", "def products(Q, K):\n    Q *= 2\n    return Q @ K.T / 2"),
    (
        "RS17",
        "shares",
        """def shares(scores):
    weights = np.zeros_like(scores)
    for i, row in enumerate(scores):
        weights[i] = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
    return weights""",
    ),
    ("RS17", "products", "def products(Q, K):\n    return np.array([[int(q @ k) for k in K] for q in Q])"),
)


def test_whole_numbers_of_another_kind_are_not_called_cut():
    for wrong in ("np.ceil(Q @ K.T).astype(int)", "(Q @ K.T > 0).astype(int)", "np.trunc(Q @ K.T)"):
        verdict = judge(COURSE.exercise("products"), from_cells("products", f"def products(Q, K):\n    return {wrong}"))
        assert verdict.status == "failed" and "RS17" not in verdict.mistakes, wrong


def test_nan_in_every_case_is_not_called_the_same_numbers():
    verdict = judge(
        COURSE.exercise("blend"), from_cells("blend", "def blend(weights, V):\n    return np.array([[np.nan]])")
    )
    assert verdict.status == "failed" and "RS10" not in verdict.mistakes


@pytest.mark.parametrize("id, exercise, text", BY_CELL, ids=[f"{id}-{exercise}" for id, exercise, _ in BY_CELL])
def test_a_learner_s_cell_is_named(id, exercise, text):
    verdict = judge(OWN.get(exercise) or COURSE.exercise(exercise), from_cells(exercise, text))
    assert verdict.status == "failed", verdict.headline
    assert verdict.mistakes, verdict.headline
    assert id in verdict.mistakes, (verdict.mistakes, verdict.headline)


def test_an_integer_that_no_machine_number_holds_is_called_one():
    cell = "def surprise(scores, target):\n    return 10**40"
    assert "an integer of 41 digits" in judge(COURSE.exercise("surprise"), from_cells("surprise", cell)).headline
