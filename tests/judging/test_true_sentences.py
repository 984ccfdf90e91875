"""What a verdict tells is so: the call that an experiment shows, the type that it asks for, the properties that hold."""

from __future__ import annotations

import numpy as np

from grader.course.course import open_course
from grader.course.spec import Case
from grader.judging.compare import Compared
from grader.judging.evidence import tables
from grader.judging.judge import judge
from grader.worker.values import Observation, Part
from tests.live import from_cells


def verdict(exercise: str, cell: str):
    return judge(open_course().exercise(exercise), from_cells(exercise, cell))


def test_arguments_that_a_probe_adds_are_shown_and_the_type_is_this_cases_own():
    cache = """class KVCache:
    def __init__(self, batch, num_kv_heads, max_len, d_head, dtype=None, device=None):
        self.keys, self.values = torch.zeros(2, batch, num_kv_heads, max_len, d_head, device=device)
        self.length = 0
    def append(self, k, v):
        end = self.length + k.shape[2]
        if end > self.keys.shape[2]:
            raise ValueError
        self.keys[:, :, self.length:end], self.values[:, :, self.length:end] = k, v
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]
    def __len__(self):
        return self.length
"""
    found = verdict("KVCache", cache)
    assert found.headline == "`keys after 2 tokens` has dtype float32; expected float64."
    assert found.experiment.endswith(", dtype=torch.float64)")


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


def test_what_the_experiment_contradicts_is_not_said_to_hold():
    """A finite number for −∞ is right for ordinary scores: the entry gets no weight there, and some in the experiment that is shown."""
    finite = """def softmax(x, axis=-1):
    x = np.where(np.isinf(x), -10_000.0, x)
    exps = np.exp(x - x.max(axis=axis, keepdims=True))
    return exps / exps.sum(axis=axis, keepdims=True)
"""
    shown = verdict("softmax", finite)
    assert "−∞" in shown.experiment
    assert shown.verified and not any("−∞" in sentence for sentence in shown.verified), shown.verified


def test_a_property_of_other_shapes_is_not_said_to_hold():
    shown = verdict("causal_mask", "def causal_mask(t, t_k=None):\n    return torch.ones(t, t).tril().bool()\n")
    assert "shape" in shown.headline
    assert not any("last query" in sentence for sentence in shown.verified), shown.verified


def test_a_difference_from_infinity_is_infinite_and_one_that_is_seen_is_not_nothing():
    expected = {"m": Part("tensor", np.array([-np.inf, -np.inf, 1.0, 2.0]), "float64", role="returned")}
    actual = {"m": Part("tensor", np.array([0.0, -np.inf, 1.001, 2.0 + 1e-9]), "float64", role="returned")}
    case = Case("key", "title", rtol=0.0, atol=0.01)
    both = Compared(open_course().exercise("merge_partial"), case, Observation(expected), Observation(actual))
    difference = tables(both, "m")[-1]
    assert difference.role == "difference"
    assert difference.array[0] == np.inf and difference.array[1] == 0 and difference.array[3] == 0
    assert 0 < difference.array[2] < 1e-300  # written ~0


def test_a_result_of_another_dtype_is_not_said_to_have_the_right_one():
    cell = """def rms_norm(x, weight, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * weight
"""
    shown = verdict("rms_norm", cell)
    assert "dtype" in shown.headline
    assert shown.verified and not any("dtype" in sentence for sentence in shown.verified), shown.verified


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


def test_two_layers_that_are_one_are_told():
    twins = """class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = self.w_k = nn.Linear(d_model, d_k, bias=False)
        self.w_v = nn.Linear(d_model, d_v, bias=False)
    def forward(self, x):
        weights = torch.softmax(self.w_q(x) @ self.w_k(x).mT / self.w_q.out_features**0.5, dim=-1)
        return weights @ self.w_v(x), weights
"""
    found = verdict("SelfAttention", twins)
    assert found.headline == "w_q.weight and w_k.weight are one and the same tensor; each needs its own."


def test_an_exception_that_is_returned_is_no_value():
    cell = """def softmax_with_temperature(x, temperature, axis=-1):
    if temperature <= 0:
        return ValueError("temperature must be positive")
    e = np.exp(x / temperature - (x / temperature).max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
"""
    assert "but it returned one: `raise` throws an exception" in verdict("softmax_with_temperature", cell).headline


def test_where_an_ordinary_input_raises_no_property_is_said_to_hold():
    cell = """def softmax_backward(grad_weights, weights):
    mean = (grad_weights * weights).sum(axis=-1)
    return weights * (grad_weights - mean.reshape(len(weights), 1))
"""
    shown = verdict("softmax_backward", cell)
    assert shown.status == "error", shown.headline
    assert not any("sums to 0" in sentence for sentence in shown.verified), shown.verified


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
