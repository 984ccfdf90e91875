"""Lesson 14: the table of all scores is seen and told, keys that were taken at once are, and what works in tiles is neither."""

from __future__ import annotations

import re

import numpy as np
import pytest

from grader.course import references
from grader.course.course import open_course
from grader.judging import wording
from grader.judging.candidate import LiveObject
from grader.judging.judge import judge
from tests.live import from_cells

answers = open_course().module("14_flash_attention.zoo.answers")
AT_ONCE, TABLES, TILED_RIGHT = answers.AT_ONCE, answers.TABLES, answers.TILED_RIGHT


@pytest.mark.parametrize("name", [name for name in TABLES if name != "traced"])
def test_the_verdict_names_the_shape_and_the_line_that_made_the_table(name):
    verdict = judge(open_course().exercise("tiled_attention"), from_cells("tiled_attention", TABLES[name]))
    assert verdict.status == "forbidden" and "The T × T table stands in memory" in verdict.headline, verdict.headline
    assert "a tensor of shape (" in verdict.headline and verdict.line.text in TABLES[name], verdict.line


@pytest.mark.parametrize("exercise, way", AT_ONCE)
def test_the_verdict_says_that_keys_are_to_be_taken_tile_by_tile(exercise, way):
    verdict = judge(open_course().exercise(exercise), from_cells(exercise, AT_ONCE[exercise, way]))
    assert verdict.status == "forbidden"
    assert re.fullmatch(
        r"The keys were not taken tile by tile: 160 keys and a block_size of 2 make 80 tiles of keys for each tile of queries, too many "
        r"for the \d{2} operations of PyTorch that ran\. Let block_size keys at a time meet the queries, in a loop over the tiles\.",
        verdict.headline,
    ), verdict.headline


@pytest.mark.parametrize("exercise", ["tiled_attention", "tiled_attention_backward"])
def test_what_works_in_tiles_stays_far_below_the_table(exercise):
    """Right answers are not judged by a hair's breadth."""
    sizes = []

    class Watched(LiveObject):
        def observe_all(self, cases):
            for case, shown in zip(cases, super().observe_all(cases), strict=True):
                if "table" in case.options:
                    sizes.append(shown.largest.elements / np.prod(case.options["table"]))
                yield shown

    assert judge(
        open_course().exercise(exercise), Watched(references.reference(open_course().exercise(exercise)))
    ).passed
    assert len(sizes) == 3 and max(sizes) < 0.3, sizes


@pytest.mark.parametrize(
    "exercise, looked_at",
    [
        ("tiled_attention", True),
        ("merge_partial", False),
        ("train_step", False),
        ("generate", False),
        ("generate_cached", False),
    ],
)
def test_only_where_sizes_were_looked_at_is_it_said(exercise, looked_at):
    """Probes of language models have a table, too: of their own logits."""
    verdict = judge(
        open_course().exercise(exercise), LiveObject(references.reference(open_course().exercise(exercise)))
    )
    assert verdict.passed and (wording.NO_LARGE_TENSOR in verdict.verified) == looked_at, verdict.verified


def test_an_expanded_mask_is_allowed():
    assert any(".expand(" in text for text in TILED_RIGHT)
