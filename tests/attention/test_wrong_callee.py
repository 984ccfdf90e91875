"""A step of training is judged with the learner's own loss: what is wrong with that one is told where it is checked."""

from __future__ import annotations

import pytest

from grader.course.course import open_course
from grader.judging.judge import judge
from tests.live import from_cells

STEP = """def train_step(model, optimizer, ids, clip=1.0):
    optimizer.zero_grad()
    loss = next_token_loss(model(ids), ids)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return loss.item()
"""
CLIP = "    nn.utils.clip_grad_norm_(model.parameters(), clip)\n"
LOSS = "def next_token_loss(logits, ids):\n    return {}\n"
SUM = "F.cross_entropy(logits[:, :-1].mT, ids[:, 1:], reduction='sum')"
WRONG = {
    "own token": "F.cross_entropy(logits.mT, ids)",
    "rolled": "F.cross_entropy(logits.mT, ids.roll(-1, dims=1))",
    "sum": SUM,
    "padding": "F.cross_entropy(logits[:, :-1].mT, ids[:, 1:], ignore_index=0)",
}


def verdict(loss: str, step: str = STEP):
    return judge(open_course().exercise("train_step"), from_cells("train_step", LOSS.format(loss) + step))


@pytest.mark.parametrize("loss", WRONG)
def test_a_right_step_beside_a_wrong_loss_passes(loss):
    assert verdict(WRONG[loss]).passed


@pytest.mark.parametrize(
    "old, new, id",
    [
        ("clip_grad_norm_", "clip_grad_value_", "TR5"),
        (CLIP, "    for p in model.parameters():\n        nn.utils.clip_grad_norm_(p, clip)\n", "TR5"),
        (
            CLIP,
            "    norm = sum((p.grad ** 2).sum() for p in model.parameters()) ** 0.5\n"
            "    for p in model.parameters():\n        p.grad *= clip / norm\n",
            "TR7",
        ),
        ("    nn.utils", "    for p in model.parameters():\n        p.grad = p.grad.clone()\n    nn.utils", None),
    ],
)
def test_a_mistake_in_the_step_keeps_its_name_beside_a_wrong_loss(old, new, id):
    found = verdict(WRONG["rolled"], STEP.replace(old, new))
    assert found.passed if id is None else (found.status == "failed" and found.mistakes == (id,)), found.headline


def test_a_loss_of_quite_another_size_is_told_first():
    found = verdict(f"{SUM} * 1000")
    assert found.status == "failed"
    assert found.headline.startswith("The `next_token_loss` that train_step calls has a gradient of quite another size")


@pytest.mark.parametrize("cut", [".detach()", ".item()"])
def test_a_loss_without_a_graph_is_told_as_that_ones_fault(cut):
    right = "F.cross_entropy(logits[:, :-1].mT, ids[:, 1:])"
    found = verdict(right + cut)
    assert found.headline.startswith("The `next_token_loss` that train_step calls gives a loss without a graph")
    found = verdict(right, STEP.replace("model(ids), ids)", "model(ids).detach(), ids)"))
    assert found.headline.startswith("train_step raised RuntimeError: element 0 of tensors does not require grad")


@pytest.mark.parametrize(
    "loss", [*WRONG.values(), "0 * logits.sum()", "logits.sum().detach()", "logits.nan_to_num() * ids[0, 0]"]
)
def test_no_loss_hides_that_the_step_does_not_clip(loss):
    assert not verdict(loss, STEP.replace(CLIP, "")).passed


def test_a_wrong_loss_that_the_step_does_not_call_excuses_nothing():
    own = STEP.replace("next_token_loss(model(ids), ids)", WRONG["own token"].replace("logits", "model(ids)"))
    assert not verdict(WRONG["own token"], own).passed
