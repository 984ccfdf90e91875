"""Where no mistake is proven, a symptom says what separates right from wrong, and only where enough cases show it."""

from dataclasses import replace

import numpy as np
import pytest

from grader.course.spec import SEED, UNTRIED, Case, Property
from grader.judging.baseline import baseline_of
from grader.judging.candidate import LiveObject
from grader.judging.compare import PROOF, Comparison
from grader.judging.judge import judge
from grader.judging.symptoms import find_symptoms
from grader.worker.values import Part
from tests.judging.test_outcomes import SOME, changed, compared, observed
from tests.live import from_cells
from tests.mixing_course import COURSE, made


def found(exercise, actual):
    """The sentences by their ids."""
    return dict(find_symptoms(COURSE.exercise(exercise), compared(exercise, actual).values()))


def cases_of(exercise):
    return baseline_of(COURSE.exercise(exercise), SEED).cases


def arrays(case):
    return [getattr(one, "array", one) for one in (*case.args, *case.kwargs.values())]


@pytest.mark.parametrize("exercise", SOME)
def test_a_right_result_shows_none(exercise):
    assert found(exercise, observed(exercise)) == {}


@pytest.mark.parametrize("exercise", SOME)
def test_what_two_cases_show_is_not_named(exercise):
    right = observed(exercise)
    few = [i for i, one in right.items() if not one.failure][: PROOF - 1]
    assert found(exercise, {i: changed(one, lambda a: a + 1) if i in few else one for i, one in right.items()}) == {}


def test_the_right_numbers_in_another_shape():
    shown = {i: changed(one, lambda a: a[..., None]) for i, one in observed("blend").items()}
    assert list(found("blend", shown)) == ["RS23"]


def test_the_right_numbers_in_other_places():
    def moved(array):
        return array.ravel()[np.argsort(np.sin(np.arange(array.size)))].reshape(array.shape)

    shown = {i: changed(one, moved) for i, one in observed("blend").items()}
    assert list(found("blend", shown)) == ["RS20"]
    assert found("blend", {i: changed(one, lambda a: moved(a) + 1) for i, one in observed("blend").items()}) == {}


def test_a_factor_that_is_a_size_of_an_input():
    cases = cases_of("blend")
    keys = {i: arrays(cases[i])[1].shape[0] for i in range(len(cases))}
    shown = {i: changed(one, lambda a, n=keys[i]: a * n) for i, one in observed("blend").items()}
    said = found("blend", shown)["RS21"]
    assert said == "What differs is the right result times the length of `weights` along axis 1."


def test_the_right_result_beside_others():
    def beside(part):
        return replace(part, kind="sequence", array=None, items=(Part("number", np.array(0.5)), part), text="tuple")

    shown = {
        i: replace(one, parts={name: beside(part) for name, part in one.parts.items()})
        for i, one in observed("blend").items()
    }
    said = found("blend", shown)
    assert said == {"RS22": "The right result is item 1 of what came back; it should come back alone."}


def test_which_part_is_right():
    shown = {
        i: replace(one, parts={**one.parts, "weights": replace(part, array=part.array + 1)})
        for i, one in observed("mix").items()
        for part in [one.parts["weights"]]
    }
    assert found("mix", shown)["RS18"] == "Right in every experiment: `output`. Wrong: `weights`."


def test_what_all_wrong_experiments_have_in_common():
    def cases(rng):
        for shape in ((4,), (3, 2), (2, 5), (2, 3, 4), (3, 1, 2), (2, 2, 3), (1, 2, 3, 4)):
            yield Case(f"of shape {shape}", "scores", (rng.normal(size=shape),))
        yield Case("large", "scores of 1000", (1000 * rng.normal(size=(2, 3)),), stage="extremes")

    exercise = replace(COURSE.exercise("log_shares"), cases=cases)
    work = baseline_of(exercise, SEED)
    shown = [
        Comparison(exercise, case, right, changed(right, lambda a: a + 1) if arrays(case)[0].ndim > 2 else right)
        for case, right in zip(work.cases, work.expected, strict=True)
    ]
    assert dict(find_symptoms(exercise, shown))["RS19"] == (
        "With ordinary inputs it is wrong in all 4 experiments in which `scores` has more than two axes, and right in the 3 others."
    )
    shown[0] = shown[-1]
    assert "RS19" not in dict(find_symptoms(exercise, shown)), "two are right: no proof"


def test_ordinary_inputs_alone_are_right():
    cases = cases_of("shares")
    extremes = {i for i, case in enumerate(cases) if case.stage != "values"}
    shown = {i: changed(one, lambda a: a + 1) if i in extremes else one for i, one in observed("shares").items()}
    assert len(extremes) >= PROOF and found("shares", shown)["RS19"] == (
        f"It is right in all {len(cases) - len(extremes)} experiments with ordinary inputs, and wrong in {len(extremes)} of the "
        f"{len(extremes)} others."
    )


def test_what_separates_nothing_is_not_said():
    cases, right = cases_of("blend"), observed("blend")
    some = set(np.random.default_rng(3).permutation(len(cases))[: len(cases) // 2].tolist())
    assert "RS19" not in found(
        "blend", {i: changed(one, lambda a: a + 1) if i in some else one for i, one in right.items()}
    )


def test_where_no_wrong_number_stands():
    def but_the_first(array):
        return np.concatenate([array[:, :1], array[:, 1:] + 1], axis=1)

    shown = {i: changed(one, but_the_first) for i, one in observed("blend").items()}
    said = found("blend", shown)["RS25"]
    assert said == "In every experiment the first entry along axis 1 is right; the wrong numbers stand elsewhere."


def test_what_comes_back_is_right_and_a_claim_is_not():
    def claiming(one, holds):
        claim = Part("bool", np.array(holds), "bool", role="flag")
        return replace(one, parts={**one.parts, "V is as it was": claim})

    exercise, right = COURSE.exercise("blend"), observed("blend").values()
    shown = [
        Comparison(exercise, case, claiming(one, True), claiming(one, False))
        for case, one in zip(cases_of("blend"), right, strict=True)
    ]
    (said,) = dict(find_symptoms(exercise, shown)).values()
    assert said.startswith("What comes back is right in every experiment. Expected: V is as it was.")


def test_it_is_said_with_its_experiment():
    cell = "def blend(weights, V):\n    return np.stack([np.cumsum(w) @ V if i else w @ V for i, w in enumerate(weights)])\n"
    verdict = judge(COURSE.exercise("blend"), from_cells("blend", cell))
    assert verdict.mistakes == ("RS25",) and verdict.experiment and verdict.tables
    assert verdict.sentences == (
        "In every experiment the first entry along axis 0 is right; the wrong numbers stand elsewhere.",
    )
    assert 'explain("RS25")' in verdict.next_step


def test_a_property_that_the_results_do_not_try_is_not_told():
    claims = (
        Property("one is seen", lambda case, parts: None),
        Property("the other is not", lambda case, parts: UNTRIED),
    )
    exercise = replace(COURSE.exercise("shares"), properties=claims)
    verdict = judge(exercise, LiveObject(made("shares")))
    assert verdict.passed and "one is seen" in verdict.verified and "the other is not" not in verdict.verified
