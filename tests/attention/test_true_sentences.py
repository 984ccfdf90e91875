"""What a verdict tells is so, where a lesson's own properties, probes and readings have made its words."""

from __future__ import annotations

import pytest

from grader.course.course import open_course
from grader.judging.judge import judge
from tests.judging.test_findings import parsing
from tests.live import from_cells


def verdict(exercise: str, cell: str):
    return judge(open_course().exercise(exercise), from_cells(exercise, cell))


def test_a_stopwatchs_call_shows_how_often_it_is_to_call():
    stopwatch = (
        "def time_ms(fn, device, warmup=3, repeats=10):\n    for _ in range(10):\n        fn()\n    return 1.0\n"
    )
    assert verdict("time_ms", stopwatch).experiment.endswith("time_ms(device='cpu', warmup=2, repeats=7)")


def test_a_sum_is_told_with_its_sign():
    found = verdict("softmax_backward", "def softmax_backward(grad_weights, weights):\n    return -weights\n")
    assert "A row sums to −1:" in found.headline


def test_no_property_holds_by_the_way_an_experiment_fills_what_it_leaves_open():
    rolled = "def next_token_loss(logits, ids):\n    return F.cross_entropy(logits.mT, ids.roll(-1, dims=1))\n"
    found = verdict("next_token_loss", rolled)
    assert (
        found.mistakes == ("NL7",) and "a model that knows every next token pays next to nothing" not in found.verified
    )
    diagonal = "def induction_score(weights, period):\n    return weights.diagonal(1 - period, 2, 3).mean(dim=(0, 2))\n"
    assert verdict("induction_score", diagonal).verified == ()
    fed_twice = """def generate_cached(model, ids, max_new_tokens):
    with torch.no_grad():
        cache = model.new_cache(len(ids))
        model(ids, cache)
        for _ in range(max_new_tokens):
            ids = torch.cat([ids, model(ids[:, -1:], cache)[:, -1].argmax(-1, keepdim=True)], dim=1)
    return ids
"""
    found = verdict("generate_cached", fed_twice)
    assert found.mistakes == ("GC5",) and found.verified == ()
    assert found.headline.endswith("After the prompt it saw other tokens than those that were written.")


def test_delta_from_the_weights_needs_no_output():
    answers = open_course().module("14_flash_attention.zoo.answers").BACK_RIGHT
    (right,) = (text for text in answers if "D from the weights in float64" in text)
    wrong = right.replace("gv[:, :, c:d] += p", "gv[:, :, c:d] += 1.5 * p")
    found = verdict("tiled_attention_backward", wrong)
    assert wrong != right and found.status == "failed" and not found.slip


def test_an_input_that_is_shown_otherwise_is_shown_once():
    cell = """def time_ms(fn, device, warmup=3, repeats=10):
    seconds = []
    for i in range(warmup + repeats):
        if device == "cuda":
            torch.cuda.synchronize()
        if device == "mps":
            torch.mps.synchronize()
        start = time.perf_counter()
        fn()
        if device == "cuda":
            torch.cuda.synchronize()
        if device == "mps":
            torch.mps.synchronize()
        seconds += [time.perf_counter() - start] if i >= warmup else []
    return 1000 * statistics.median(seconds)
"""
    assert verdict("time_ms", cell).experiment.endswith("time_ms(device=torch.device('cuda'), warmup=2, repeats=7)")


def test_what_a_candidate_raised_is_told_as_the_candidates():
    trusting = """def find_failure(candidate) -> np.ndarray | None:
    rng = np.random.default_rng(0)
    for shape in [(3, 3), (1, 4), (4, 1), (2, 5), (5, 2)]:
        for scale in (1, 30, 1000, 9000):
            for shift in (0, 900, -900):
                s = rng.uniform(-1, 1, size=shape) * scale + shift
                e = np.exp(s - s.max(axis=1, keepdims=True))
                w = e / e.sum(axis=1, keepdims=True)
                if not np.allclose(candidate(s), w, rtol=0, atol=1e-6):
                    return s
    return None
"""
    shown = verdict("find_failure", trusting)
    assert shown.headline == "The candidate raised ValueError, which find_failure let through: catch it."


def test_a_property_that_the_results_do_not_try_is_not_told():
    cell = "def softmax_gradient_norm(scores):\n    return np.ones(np.shape(scores)[:-1])\n"  # wrong already where nothing is raised
    found = verdict("softmax_gradient_norm", cell)
    assert not found.passed and not any("2³⁰" in one for one in found.verified)


@pytest.mark.parametrize(
    "path", sorted(open_course().solutions.glob("*/readings.py")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_no_reading_parses_a_sentence_or_a_name(path):
    assert parsing(path) == []
