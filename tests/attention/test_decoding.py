"""Lesson 16: what its solutions refuse and in which words, and what its probes see of an object's memory."""

from __future__ import annotations

import pytest
import torch

from grader.course import references
from grader.course.course import open_course
from grader.judging.judge import judge
from tests.live import from_cells

LESSON = "16_decoding"

held_by = open_course().module("16_decoding.probes").held_by


def _cache(*sizes: int, **more):
    return references.reference(open_course().exercise("KVCache"))(*(sizes or (2, 3, 4, 5)), **more)


@pytest.mark.parametrize(
    "k, v, said",
    [
        (
            torch.zeros(1, 3, 1, 5),
            torch.zeros(1, 3, 1, 5),
            r"k has shape \(1, 3, 1, 5\); this cache takes \(2, 3, T, 5\)",
        ),
        (torch.zeros(2, 3, 1, 5), torch.zeros(2, 3, 2, 5), r"v has shape \(2, 3, 2, 5\)"),
        (
            torch.zeros(2, 3, 1, 5).double(),
            torch.zeros(2, 3, 1, 5).double(),
            "k is torch.float64 on cpu; the cache is torch.float32 on cpu",
        ),
        (torch.zeros(2, 3, 1, 5, device="meta"), torch.zeros(2, 3, 1, 5, device="meta"), "k is torch.float32 on meta"),
        (torch.zeros(2, 3, 5, 5), torch.zeros(2, 3, 5, 5), "5 tokens do not fit into a cache of 4"),
    ],
)
def test_a_cache_says_what_does_not_fit_and_stays_as_it_is(k, v, said):
    cache = _cache()
    cache.append(torch.ones(2, 3, 2, 5), torch.ones(2, 3, 2, 5))
    with pytest.raises(ValueError, match=said if "fit" not in said else "7 tokens do not fit into a cache of 4"):
        cache.append(k, v)
    assert len(cache) == 2 and cache.keys.sum() == cache.values.sum() == 2 * 3 * 2 * 5


def test_what_a_cache_holds_is_not_trained():
    cache = _cache()
    keys, _ = cache.append(torch.ones(2, 3, 1, 5, requires_grad=True), torch.ones(2, 3, 1, 5, requires_grad=True))
    assert not keys.requires_grad and not cache.keys.requires_grad


@pytest.mark.parametrize(
    "name, args, said",
    [
        (
            "grouped_query_attention",
            (torch.zeros(1, 4, 3, 2), torch.zeros(1, 2, 2, 2), torch.zeros(1, 2, 2, 2)),
            "needs T_k ≥ T_q",
        ),
        (
            "grouped_query_attention",
            (torch.zeros(1, 3, 2, 2), torch.zeros(1, 2, 2, 2), torch.zeros(1, 2, 2, 2)),
            "2 KV heads do not divide 3",
        ),
        ("window_mask", (3, 2, 1), "3 queries cannot be the last of 2 positions"),
        ("window_mask", (2, 2, 0), "window is 1 or more"),
        ("window_mask", (2, 2, 1, -1), "sinks 0 or more"),
        ("generate_cached", (None, torch.zeros(1, 2, dtype=torch.int64), -1), "it is 0 or more"),
    ],
)
def test_other_bad_input_gets_a_clear_sentence(name, args, said):
    with pytest.raises(ValueError, match=said):
        references.reference(open_course().exercise(name))(*args)


def test_the_lesson_s_model_says_that_a_text_is_too_long_for_it():
    given = references.namespace(open_course(), LESSON)
    model = given["CachedWriter"](7, d=8, heads=2, layers=1, max_len=4)
    cache = model.new_cache(1)
    model(torch.zeros(1, 3, dtype=torch.int64), cache)
    with pytest.raises(ValueError, match="5 tokens; this model has 4 positions"):
        model(torch.zeros(1, 2, dtype=torch.int64), cache)
    assert len(cache[0]) == 3


@pytest.mark.parametrize("chunks", [(9,), (1,) * 9, (4, 1, 3, 1), (2, 7)])
def test_the_lesson_s_model_gives_in_chunks_what_it_gives_at_once(chunks):
    torch.manual_seed(0)
    model = references.namespace(open_course(), LESSON)["CachedWriter"](11, d=12, heads=3, layers=2, max_len=9).eval()
    ids, cache, rows, start = torch.randint(11, (2, 9)), model.new_cache(2), [], 0
    with torch.no_grad():
        for n in chunks:
            rows.append(model(ids[:, start : start + n], cache))
            start += n
        assert torch.allclose(torch.cat(rows, dim=1), model(ids), atol=1e-5)


@pytest.mark.parametrize("window, sinks", [(1, 0), (3, 0), (3, 2), (2, 1), (20, 3)])
def test_the_lesson_s_ring_gives_in_its_model_what_the_window_s_mask_gives(window, sinks):
    torch.manual_seed(0)
    given = references.namespace(open_course(), LESSON)
    model = given["CachedWriter"](11, d=12, heads=6, layers=2, max_len=9, kv_heads=2).eval()
    ids, cache = torch.randint(11, (2, 9)), [given["RingCache"](2, 2, window, 2, sinks) for _ in model.blocks]
    with torch.no_grad():
        rows = [model(ids[:, i : i + 1], cache) for i in range(9)]
        for block in model.blocks:
            block["attn"].mask = lambda t_q, t_k: references.reference(open_course().exercise("window_mask"))(
                t_q, t_k, window, sinks
            )
        assert torch.allclose(torch.cat(rows, dim=1), model(ids), atol=1e-5)
    assert len(cache[0]) == 9 and cache[0].keys.shape[2] == window + sinks


def test_the_lesson_s_ring_refuses_a_chunk():
    with pytest.raises(RuntimeError):
        references.namespace(open_course(), LESSON)["RingCache"](1, 1, 4, 2).append(
            torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 2)
        )


@pytest.mark.parametrize("t_q, t_k", [(1, 5), (3, 5), (5, 5)])
def test_the_lesson_s_shared_heads_are_those_of_the_exercise(t_q, t_k):
    q, k, v = torch.randn(2, 6, t_q, 4), torch.randn(2, 3, t_k, 4), torch.randn(2, 3, t_k, 4)
    expected = references.reference(open_course().exercise("grouped_query_attention"))(q, k, v)
    assert torch.allclose(references.namespace(open_course(), LESSON)["attend_grouped"](q, k, v), expected, atol=1e-5)


class _Slots:
    __slots__ = ("inside",)

    def __init__(self, inside):
        self.inside = inside


def _hidden_in(tensor):
    return lambda: tensor


@pytest.mark.parametrize(
    "hide",
    [
        lambda t: t,
        lambda t: [({"a": t},)],
        _Slots,
        lambda t: _Slots(_Slots([t])),
        _hidden_in,
        lambda t: torch.nn.ParameterList([torch.nn.Parameter(t)]),
    ],
    ids=["itself", "containers", "slots", "nested", "closure", "module"],
)
def test_a_tensor_is_found_wherever_an_object_holds_it(hide):
    tensor = torch.zeros(3)
    assert [one.data_ptr() for one in held_by(hide(tensor))] == [tensor.data_ptr()]


def test_what_others_hold_is_not_found():
    assert not held_by(_hidden_in(torch)) and not held_by(_cache) and not held_by([_Slots, torch.nn])


def _judged(name: str, old: str, new: str):
    text = references.solution_text(open_course(), name)
    assert text.count(old) == 1, old
    return judge(open_course().exercise(name), from_cells(name, text.replace(old, new)))


def test_a_cache_is_judged_over_several_appends():
    verdict = _judged("KVCache", "self.length = end\n", "pass\n")
    assert verdict.headline == "`keys after 3 tokens` has shape (1, 1, 1, 2); expected (1, 1, 3, 2)."
    verdict = _judged("KVCache", "return self.keys[:, :, :end], self.values[:, :, :end]", "pass")
    assert verdict.status == "failed" and verdict.headline == "append gave None; expected two tensors: (keys, values)."


def test_a_copy_that_grows_is_told_from_memory_that_was_allocated_once():
    text = references.solution_text(open_course(), "KVCache").replace(
        "self.keys[:, :, start:end] = k.detach()", "self.keys = torch.cat([self.keys[:, :, :start], k], 2)"
    )
    text = text.replace(
        "self.values[:, :, start:end] = v.detach()", "self.values = torch.cat([self.values[:, :, :start], v], 2)"
    )
    verdict = judge(open_course().exercise("KVCache"), from_cells("KVCache", text))
    assert verdict.mistakes == ("KC1",), verdict.headline
    assert (
        verdict.headline
        == "Expected: what append returns lies in memory that was allocated when the cache was made. This is not so."
    )


def test_what_the_model_was_fed_is_told_in_numbers():
    verdict = _judged("generate_cached", "model(new, cache)", "model(ids, cache)")
    assert verdict.mistakes == ("GC1",)
    assert verdict.headline.endswith("Its 2 calls had 3, 4 tokens; expected: 3, then 1 each time, 2 or 3 calls in all.")


def test_another_number_of_calls_is_told_in_the_same_sentence():
    told = _judged(
        "generate_cached",
        "ids = torch.cat([ids, new], dim=1)",
        "ids = torch.cat([ids, new], dim=1)\n            model(new, cache)",
    )
    assert told.headline.endswith(
        "Its 4 calls had 3, 1, 1, 1 tokens; expected: 3, then 1 each time, 2 or 3 calls in all."
    )
    told = _judged("generate_cached", "logits = model(new, cache)", "logits = model(new, cache) if _ == 0 else logits")
    assert told.headline.endswith("Its only call had 3 tokens; expected: 3, then 1 each time, 2 or 3 calls in all.")
    often = "for _ in range(9):\n                model(new, cache)\n            logits = model(new, cache)"
    assert (
        "Its first 7 calls had 3, 3, 3, 3, 3, 3, … tokens;"
        in _judged("generate_cached", "logits = model(new, cache)", often).headline
    )


def test_a_whole_number_of_bytes_is_asked_for_as_an_int():
    product = "2 * num_layers * num_kv_heads * d_head * t * batch * bytes_per_number"
    assert _judged("cache_bytes", product, f"{product} / 1").headline == "The result is a float; expected an int."
    verdict = _judged("cache_bytes", product, f"{product} * (d_head * t) ** ({product} > 10**15)")
    assert verdict.headline == "The result is an integer of 26 digits; expected an int of 18 digits."
