"""Lesson 14's own solutions refuse what has no meaning, in a sentence, and take what only looks odd."""

from __future__ import annotations

import pytest
import torch

from grader.course import references
from grader.course.course import open_course


def attend(t_q: int, t_k: int, block_size: int, causal: bool):
    q, k, v = torch.randn(1, 2, t_q, 3), torch.randn(1, 2, t_k, 3), torch.randn(1, 2, t_k, 4)
    output, logsumexp = references.reference(open_course().exercise("tiled_attention"))(q, k, v, block_size, causal)
    backward = references.reference(open_course().exercise("tiled_attention_backward"))
    return output, backward, (q, k, v, output, logsumexp, torch.ones_like(output))


@pytest.mark.parametrize("block_size, said", [(0, "block_size is 0"), (-3, "block_size is -3")])
def test_a_tile_of_nothing_is_refused(block_size, said):
    with pytest.raises(ValueError, match=said):
        attend(4, 4, block_size, False)
    _, backward, given = attend(4, 4, 2, False)
    with pytest.raises(ValueError, match=said):
        backward(*given, block_size)


def test_causal_queries_without_keys_are_refused():
    with pytest.raises(ValueError, match="causal attention of 5 queries needs as many keys or more, and there are 4"):
        attend(5, 4, 2, True)
    _, backward, given = attend(5, 4, 2, False)
    with pytest.raises(ValueError, match="5 queries"):
        backward(*given, 2, True)


@pytest.mark.parametrize("causal", [False, True])
def test_a_tile_larger_than_everything_is_the_whole_table(causal):
    output, backward, given = attend(4, 6, 1000, causal)
    assert torch.allclose(
        output, references.reference(open_course().exercise("tiled_attention"))(*given[:3], 2, causal)[0], atol=1e-6
    )
    for large, small in zip(backward(*given, 1000, causal), backward(*given, 2, causal), strict=True):
        assert torch.allclose(large, small, atol=1e-6)
