"""One judge: the order of its stages, and what it says."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b

import numpy as np
import pytest

from grader.course.spec import Case
from grader.judging import evidence
from grader.judging.baseline import baseline_of
from grader.judging.candidate import LiveObject
from grader.judging.compare import Comparison
from grader.judging.judge import _Judgement, judge
from grader.reports import html, text
from grader.source.policy import Sources
from grader.worker.observe import observe
from grader.worker.values import Failure, Observation, Part, describe
from tests.mixing_course import COURSE, made

EXERCISE = COURSE.exercise("shares")


@pytest.fixture(autouse=True)
def nothing_kept():
    baseline_of.cache_clear()
    yield
    baseline_of.cache_clear()


def verdict_on(obj, **kwargs):
    return judge(EXERCISE, LiveObject(obj, **kwargs))


def test_a_right_answer_passes_and_says_what_was_verified():
    verdict = verdict_on(made("shares"))
    assert verdict.passed and verdict.max_difference == 0.0
    assert verdict.verified[:2] == ("type, shape and dtype are as expected", "each row of weights sums to 1")
    extremes = "scores of 1000; more scores of 1000; scores of −1000; rows near 1000, near −400 and from −1000 to 1000"
    assert f"extremes hold: {extremes}" in verdict.verified
    assert verdict.next_exercise == "blend"


@pytest.mark.parametrize("id", ["MX7", "MX8", "MX9", "MX11"])
def test_a_known_mistake_is_named_with_its_sentence(id):
    verdict = verdict_on(made("shares", id))
    assert verdict.status == "failed"
    assert verdict.mistakes == (id,) and verdict.sentences == (EXERCISE.course.mistake_text(id).sentence,)
    assert f'explain("{id}")' in verdict.next_step


def test_two_mistakes_at_once_are_both_named():
    verdict = verdict_on(made("shares", "MX7", "MX9"))
    assert verdict.mistakes == ("MX7+MX9",)
    assert verdict.sentences == (
        "The columns sum to 1; each row is to. Also: exp overflowed: subtract each row's largest score first.",
    )


def test_an_unknown_mistake_is_not_guessed():
    verdict = verdict_on(lambda scores: made("shares")(scores) ** 2)
    assert verdict.status == "failed" and verdict.mistakes == () and verdict.stage == "properties"


def test_the_smallest_failing_case_is_shown_with_input_expected_got_and_difference():
    verdict = verdict_on(made("shares", "MX11"))
    assert [table.role for table in verdict.tables] == ["input", "expected", "actual", "difference"]
    given, expected, got, difference = (table.cells for table in verdict.tables)
    assert given.shape == (2, 3)
    np.testing.assert_allclose(got - expected, difference)
    assert verdict.experiment.startswith("Two rows of three scores: shares(scores (2, 3) float64)")


def test_of_right_numbers_in_a_list_no_difference_is_shown():
    verdict = verdict_on(
        lambda scores: list(made("shares")(scores)[0]) if scores.ndim == 1 else made("shares")(scores).tolist()
    )
    assert verdict.stage == "type" and "difference" not in {table.role for table in verdict.tables}


def test_a_result_that_is_too_large_is_told_with_its_shape():
    verdict = verdict_on(lambda scores: np.zeros((300, 300, 4)))
    assert (
        "NumPy array of float64 with shape (300, 300, 4), more than the 200,000 numbers that are read"
        in verdict.headline
    )


def test_large_tables_hold_no_more_than_is_shown():
    verdict = verdict_on(lambda scores: np.zeros((300, 300)))
    assert "(300, 300)" in verdict.headline and max(table.cells.size for table in verdict.tables) <= 64


def test_shape_comes_before_values():
    verdict = verdict_on(lambda scores: made("shares")(scores)[:, :1])
    assert verdict.stage == "shape"
    assert verdict.headline == "The result has shape (2, 1); expected (2, 3)."


def test_type_comes_before_shape():
    verdict = verdict_on(lambda scores: made("shares")(scores).tolist())
    assert verdict.stage == "type" and "a list of 2 is" not in verdict.headline
    assert verdict.headline == "The result is a list of 2; expected a NumPy array."


def test_none_is_said_plainly():
    assert verdict_on(lambda scores: None).headline == "The result is None; expected a NumPy array."


def test_nan_is_found_before_differences():
    verdict = verdict_on(lambda scores: np.full(scores.shape, np.nan))
    assert verdict.stage == "finite" and "6 of 6 entries of the result are NaN." in verdict.headline


def test_a_changed_input_is_the_last_thing_reported():
    def shares(scores):
        scores -= scores.max(axis=1, keepdims=True)
        return made("shares")(scores)

    verdict = verdict_on(shares)
    assert verdict.stage == "inputs" and "changes its input scores in place" in verdict.headline


def test_an_exception_shows_the_learners_line_and_shapes():
    def shares(scores):
        return scores @ scores

    verdict = verdict_on(shares)
    assert verdict.status == "error" and "ValueError" in verdict.headline
    assert verdict.line.text == "return scores @ scores"
    assert "Shapes on that line: scores (2, 3) float64." in verdict.details
    assert "Expected shape of the result: (2, 3)." in verdict.details


def test_a_stub_is_not_started_and_a_library_that_raises_the_same_is_an_error():
    def stub(scores):
        raise NotImplementedError("shares is not written yet")

    assert verdict_on(stub).status == "not_started"


def test_a_forbidden_call_is_refused_by_its_source_before_it_runs():
    called = []
    source = Sources(("from scipy.special import softmax\ndef shares(s):\n    return softmax(s, axis=1)",))
    verdict = verdict_on(lambda scores: called.append(1), sources=source)
    assert verdict.status == "forbidden" and called == []
    assert verdict.line.text == "return softmax(s, axis=1)"


def test_a_forbidden_call_that_the_source_hides_is_refused_while_it_runs():
    import torch

    verdict = verdict_on(lambda scores: torch.from_numpy(scores).softmax(1).numpy())
    assert verdict.status == "forbidden" and "While it ran, `softmax` was called" in verdict.headline


@pytest.mark.parametrize(
    "kind, status",
    [("missing", "missing"), ("exception", "error"), ("timeout", "timeout"), ("memory", "memory"), ("died", "error")],
)
def test_without_an_object_the_cause_is_the_status(kind, status):
    assert verdict_on(None, problem=Failure(kind)).status == status


def test_after_a_timeout_nothing_more_is_asked():
    asked = []

    class Stuck(LiveObject):
        def observe_all(self, cases):
            for case in cases:
                asked.append(case.key)
                yield Observation(failure=Failure("timeout"))

    assert judge(EXERCISE, Stuck(None)).status == "timeout"
    assert asked == ["small"]


class Came(LiveObject):
    """What came from a worker: each observation with the digest of its message."""

    def observe_all(self, cases):
        for case in cases:
            seen = observe(self.obj, case)
            numbers = [part.array.tobytes() for part in seen.parts.values() if part.array is not None]
            yield replace(seen, digest=blake2b(repr((numbers, seen.failure)).encode()).digest())


def test_what_was_shown_before_is_judged_once(monkeypatch):
    judged, kept = [], _Judgement.verdict
    monkeypatch.setattr(_Judgement, "verdict", lambda self: judged.append(self) or kept(self))

    def on(obj, kind=Came, seed=1):
        return judge(EXERCISE, kind(obj), seed)

    first, again = on(made("shares")), on(made("shares"))
    assert first.passed and again.passed and again.verified == first.verified and len(judged) == 1
    wrong, wrong_again = on(made("shares", "MX7")), on(made("shares", "MX7"))
    assert wrong.mistakes == wrong_again.mistakes == ("MX7",) and len(judged) == 2
    assert on(made("shares"), seed=2).passed and len(judged) == 3  # other inputs, other numbers
    assert (
        on(made("shares"), LiveObject).passed and on(made("shares"), LiveObject).passed and len(judged) == 5
    )  # in the notebook nothing is kept
    source = Sources(("from scipy.special import softmax\ndef shares(s):\n    return softmax(s, axis=1)",))
    assert judge(EXERCISE, Came(made("shares"), sources=source), 1).status == "forbidden"


def test_only_so_many_verdicts_are_kept(monkeypatch):
    monkeypatch.setattr("grader.judging.judge.MOST_VERDICTS", 3)
    for factor in range(2, 8):
        judge(EXERCISE, Came(lambda scores, factor=factor: scores * factor), 1)
    assert len(baseline_of(EXERCISE, 1).verdicts) == 3


def test_a_class_with_hostile_methods_is_only_a_wrong_type():
    class Everything:
        shape = (2, 3)

        def __eq__(self, other):
            return True

        def __array__(self, *args, **kwargs):
            raise SystemExit

    verdict = verdict_on(lambda scores: Everything())
    assert verdict.status == "failed" and "Everything" in verdict.headline


def test_the_same_seed_gives_the_same_inputs_and_another_seed_others():
    one, two = baseline_of(EXERCISE, 1), baseline_of(EXERCISE, 2)
    baseline_of.cache_clear()
    again = baseline_of(EXERCISE, 1)
    assert np.array_equal(one.cases[3].args[0], again.cases[3].args[0])
    assert not np.array_equal(one.cases[3].args[0], two.cases[3].args[0])


def test_global_random_state_is_left_as_found():
    np.random.seed(3)
    expected = np.random.RandomState(3).rand()
    verdict_on(lambda scores: np.random.rand(*scores.shape))
    assert np.random.rand() == expected


def test_where_many_answers_are_right_no_other_one_is_shown_as_expected():
    exercise = replace(EXERCISE, compare=lambda case, expected, got: "the rows do not fall.", properties=())
    verdict = judge(exercise, LiveObject(made("shares")))
    assert verdict.headline == "the rows do not fall."
    assert {table.role for table in verdict.tables} == {"input", "actual"}


def compared(case, right, theirs):
    return Comparison(EXERCISE, case, Observation(right), Observation(theirs))


def test_right_numbers_in_a_flat_list_leave_the_tables_out():
    want = {"result": describe(np.array([1.0, 2.0, 3.0]))}
    case = Case("vector", "a vector", (np.arange(3.0),), names=("x",))
    roles = ["input", "expected", "actual", "difference"]
    for result, shown in (([1.0, 2.0, 3.0], ["input"]), ([1.0, 2.0, 4.0], roles)):
        assert [table.role for table in evidence.tables(compared(case, want, {"result": describe(result)}))] == shown


def test_a_call_that_fails_before_a_line_ran_is_told_by_the_parameters():
    verdict = verdict_on(lambda: None)
    assert verdict.status == "error" and verdict.line is None and verdict.tables == ()
    observation = observe(lambda: None, baseline_of(EXERCISE, 1).cases[0])
    assert observation.failure.kind == "call"

    def shares(scores):
        return (lambda a, b: a)(scores)  # a call of the learner's own, which fails in a line of theirs

    assert observe(shares, baseline_of(EXERCISE, 1).cases[0]).failure.kind == "exception"


def test_a_missing_notebook_is_told_by_its_lesson_and_not_by_the_sentence():
    sentence = "No notebook of lesson 09_nine was handed in."
    assert verdict_on(None, problem=Failure("missing", message=sentence)).next_step.startswith("`grader reset`")
    assert (
        verdict_on(None, problem=Failure("missing", message="Nothing.", lesson="09_nine")).next_step
        == "Hand in 09_nine.ipynb."
    )


def test_a_property_draws_the_part_that_it_read():
    def reads_weights(case, parts):
        return None if np.allclose(parts["weights"].sum(axis=1), 1) else "row 0 does not."

    parts = {"output": describe(np.zeros((2, 2))), "weights": describe(np.full((2, 3), 0.5))}
    arrays = evidence.TrackedArrays({name: part.array for name, part in parts.items()})
    assert reads_weights(None, arrays) and arrays.last == "weights"
    other = {**parts, "weights": describe(np.full((2, 3), 0.25))}
    shown = evidence.tables(compared(Case("c", "c"), parts, other), arrays.last)
    assert {table.name for table in shown} == {"weights"}


def test_two_runs_that_are_compared_stand_side_by_side():
    def run(key, last, out):
        case = Case(key, key, (np.array([[1.0, 2.0], [3.0, last]]),), names=("x",))
        parts = {"result": replace(describe(np.array([1.0, out])), role="returned")}
        return compared(case, parts, parts)

    shown = evidence.runs(run("a", 4.0, 0.0), run("b", 9.0, 5.0), "result")
    assert [(table.name, table.role, table.mark) for table in shown] == [
        ("x, first run", "input", (1, 1)),
        ("x, second run", "input", (1, 1)),
        ("result, first run", "run", (0, 1)),
        ("result, second run", "run", (0, 1)),
    ]
    assert "Two runs" in text.render_verdict(replace(verdict_on(made("shares", "MX7")), tables=shown))


def test_a_claim_is_told_in_words_and_never_drawn():
    claim = {"the mask is a buffer": Part("bool", np.array(True), "bool", role="flag")}
    came = {"the mask is a buffer": Part("bool", np.array(False), "bool", role="flag")}
    assert evidence.tables(compared(Case("c", "c"), claim, came), "the mask is a buffer") == ()


def test_a_difference_within_the_tolerance_is_white():
    one, other = {"result": describe(np.array([1.0, 2.0]))}, {"result": describe(np.array([1.0 + 1e-9, np.nan]))}
    difference = evidence.tables(compared(Case("c", "c"), one, other), "result")[-1].cells[0]
    assert difference[0] == 0 and np.isnan(difference[1])


def test_a_module_s_few_weights_stand_beside_its_inputs():
    case = Case("c", "c", (np.ones((1, 2)),), names=("x",), options={"state": {"w_q.weight": np.eye(2)}})
    assert [table.name for table in evidence.inputs(case)] == ["x", "w_q.weight"]
    wide = replace(case, options={"state": {"w_q.weight": np.eye(20)}})
    assert [table.name for table in evidence.inputs(wide)] == ["x"]


def test_what_underflows_warns_nobody_as_in_numpy():
    def shares(scores):
        return np.exp(scores - 1e6)

    assert not verdict_on(shares).passed and verdict_on(shares).warned == ()


def test_what_was_printed_and_warned_is_shown_folded():
    def shares(scores):
        print("before the sum:", scores.shape)
        return np.log(scores * 0)

    verdict = verdict_on(shares)
    assert verdict.printed == "before the sum: (2, 3)\n"
    assert len(verdict.warned) == 1 and verdict.warned[0].startswith(
        "RuntimeWarning: divide by zero encountered in log (line "
    )
    said, page = text.render_verdict(verdict), html.render_verdict(verdict)
    assert (
        "What it printed\n    before the sum: (2, 3)" in said
        and "Warnings that your code raised\n  - RuntimeWarning" in said
    )
    assert (
        "<details><summary>What it printed</summary>" in page
        and "<summary>Warnings that your code raised</summary>" in page
    )
    quiet = verdict_on(lambda scores: np.zeros(scores.shape))
    assert (quiet.printed, quiet.warned) == ("", ()) and "printed" not in text.render_verdict(quiet)


def test_of_two_runs_the_item_is_shown_whose_inputs_did_not_change():
    x = np.zeros((2, 2, 2))
    other = x + np.array([1.0, 0.0])[:, None, None]
    outputs = x, x + np.array([9.0, 0.5])[:, None, None]
    cases = (Case(key, key, (array,), names=("x",)) for key, array in (("a", x), ("b", other)))
    parts = [{"output": describe(array)} for array in outputs]
    runs = (compared(case, parts[0], out) for case, out in zip(cases, parts, strict=True))
    shown = evidence.runs(*runs, "output")
    assert [(table.role, table.index, table.mark) for table in shown] == [
        *[("input", (0,), (0, 0))] * 2,
        *[("run", (0,), None)] * 2,
        *[("run", (1,), (0, 0))] * 2,
    ]


def test_few_numbers_of_an_input_stand_slice_by_slice_where_the_result_has_other_axes():
    x = np.arange(8.0).reshape(1, 2, 2, 2)
    merged, wrong = (
        {"result": describe(array)} for array in (x.transpose(0, 2, 1, 3).reshape(1, 2, 4), x.reshape(1, 2, 4))
    )
    shown = evidence.tables(compared(Case("a", "a", (x,), names=("x",)), merged, wrong))
    assert [table.name for table in shown][:2] == ["x[0, 0]", "x[0, 1]"] and shown[1].cells.tolist() == [[4, 5], [6, 7]]
    same_axes = evidence.tables(
        compared(Case("a", "a", (x,), names=("x",)), {"result": describe(x)}, {"result": describe(x + 1)})
    )
    assert [table.shape for table in same_axes if table.role == "input"] == [x.shape]
