"""Where no mistake is proven, a symptom says what separates right from wrong, and only where enough cases show it."""

from dataclasses import replace

import numpy as np
import pytest

from grader.course.course import open_course
from grader.course.spec import SEED
from grader.judging.baseline import baseline_of
from grader.judging.judge import judge
from grader.judging.symptoms import PROOF, symptoms
from grader.worker.values import Part
from tests.judging.test_outcomes import SOME, changed, compared, observed
from tests.live import from_cells


def found(exercise, actual):
    """The sentences by their ids."""
    return dict(symptoms(open_course().exercise(exercise), compared(exercise, actual).values()))


def cases_of(exercise):
    return baseline_of(open_course().exercise(exercise), SEED).cases


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
    shown = {i: changed(one, lambda a: a[..., None]) for i, one in observed("weighted_sum").items()}
    assert list(found("weighted_sum", shown)) == ["RS23"]


def test_the_right_numbers_in_other_places():
    def moved(array):
        return array.ravel()[np.argsort(np.sin(np.arange(array.size)))].reshape(array.shape)

    shown = {i: changed(one, moved) for i, one in observed("weighted_sum").items()}
    assert list(found("weighted_sum", shown)) == ["RS20"]
    assert (
        found("weighted_sum", {i: changed(one, lambda a: moved(a) + 1) for i, one in observed("weighted_sum").items()})
        == {}
    )


def test_a_factor_that_is_a_size_of_an_input():
    cases = cases_of("weighted_sum")
    keys = {i: arrays(cases[i])[1].shape[0] for i in range(len(cases))}
    shown = {i: changed(one, lambda a, n=keys[i]: a * n) for i, one in observed("weighted_sum").items()}
    said = found("weighted_sum", shown)["RS21"]
    assert said == "What differs is the right result times the length of `weights` along axis 1."


def test_the_right_result_beside_others():
    def beside(part):
        return replace(part, kind="sequence", array=None, items=(Part("number", np.array(0.5)), part), text="tuple")

    shown = {
        i: replace(one, parts={name: beside(part) for name, part in one.parts.items()})
        for i, one in observed("weighted_sum").items()
    }
    said = found("weighted_sum", shown)
    assert said == {"RS22": "The right result is item 1 of what came back; it should come back alone."}


def test_which_part_is_right():
    def second(parts):
        return parts if "k" not in parts else {**parts, "k": replace(parts["k"], array=parts["k"].array + 1)}

    shown = {i: replace(one, parts=second(one.parts)) for i, one in observed("project_qkv").items()}
    assert found("project_qkv", shown)["RS18"] == "Right in every experiment: `q` and `v`. Wrong: `k`."


def test_what_all_wrong_experiments_have_in_common():
    cases = cases_of("attention_torch")
    ordinary = [i for i, case in enumerate(cases) if case.stage == "values"]
    few = {i for i in ordinary if arrays(cases[i])[0].ndim > 2}
    assert PROOF < len(few) <= len(ordinary) - PROOF
    shown = {i: changed(one, lambda a: a + 1) if i in few else one for i, one in observed("attention_torch").items()}
    said = found("attention_torch", shown)["RS19"]
    assert said == (
        f"With ordinary inputs it is wrong in all {len(few)} experiments in which `q` has more than two axes, and right in the "
        f"{len(ordinary) - len(few)} others."
    )


def test_ordinary_inputs_alone_are_right():
    cases = cases_of("softmax")
    extremes = {i for i, case in enumerate(cases) if case.stage != "values"}
    shown = {i: changed(one, lambda a: a + 1) if i in extremes else one for i, one in observed("softmax").items()}
    assert len(extremes) >= PROOF and found("softmax", shown)["RS19"] == (
        f"It is right in all {len(cases) - len(extremes)} experiments with ordinary inputs, and wrong in {len(extremes)} of the "
        f"{len(extremes)} others."
    )


def test_what_separates_nothing_is_not_said():
    cases, right = cases_of("weighted_sum"), observed("weighted_sum")
    some = set(np.random.default_rng(3).permutation(len(cases))[: len(cases) // 2].tolist())
    assert "RS19" not in found(
        "weighted_sum", {i: changed(one, lambda a: a + 1) if i in some else one for i, one in right.items()}
    )


def test_where_no_wrong_number_stands():
    def but_the_first(array):
        return np.concatenate([array[:, :1], array[:, 1:] + 1], axis=1)

    shown = {i: changed(one, but_the_first) for i, one in observed("rnn_states").items()}
    said = found("rnn_states", shown)["RS25"]
    assert said == "In every experiment the first entry along axis 1 is right; the wrong numbers stand elsewhere."


def test_what_comes_back_is_right_and_a_claim_is_not():
    def denied(part):
        return replace(part, array=~part.array) if part.role == "flag" else part

    right = observed("attention_rollout")
    shown = {
        i: replace(one, parts={name: denied(part) for name, part in one.parts.items()}) for i, one in right.items()
    }
    (said,) = found("attention_rollout", {i: one for i, one in shown.items() if i < len(shown) - 1}).values()
    assert said.startswith(
        "What comes back is right in every experiment. Expected: the list and its weights are as they were."
    )


def test_it_is_said_with_its_experiment():
    cell = "def weighted_sum(weights, V):\n    return np.stack([np.cumsum(w) @ V if i else w @ V for i, w in enumerate(weights)])\n"
    verdict = judge(open_course().exercise("weighted_sum"), from_cells("weighted_sum", cell))
    assert verdict.mistakes == ("RS25",) and verdict.experiment and verdict.tables
    assert verdict.sentences == (
        "In every experiment the first entry along axis 0 is right; the wrong numbers stand elsewhere.",
    )
    assert 'explain("RS25")' in verdict.next_step


def test_a_property_that_the_results_do_not_try_is_not_told():
    cell = "def softmax_gradient_norm(scores):\n    return np.ones(np.shape(scores)[:-1])\n"  # wrong already where nothing is raised
    verdict = judge(open_course().exercise("softmax_gradient_norm"), from_cells("softmax_gradient_norm", cell))
    assert not verdict.passed and not any("2³⁰" in one for one in verdict.verified)
