"""Answers that change what a probe of the attention course looks with; see tests/hostile/reached.py."""

from __future__ import annotations

import pytest

from grader.course.course import open_course
from grader.sandbox.sandbox import Sandbox
from tests.hostile.one_worker import ON_META
from tests.hostile.reached import Attacked, own_probes

pytestmark = pytest.mark.any_user  # what one Python process can reach in itself

# By exercise, a mistake whose numbers are right, or nearly so: what a probe of the exercise's own notices is all that tells.
WRONG: dict[str, str | tuple[str, str]] = {
    "dot_product_std": "WS8",
    "linear_from_numpy": "NT2",
    "as_numpy": "NT15",
    "CausalSelfAttention": "MA14",
    "numerical_gradient": "ND8",
    "copy_torch_weights": "MU37",
    "CausalMultiHeadAttention": "CM9",
    "TransformerBlock": "CM1",
    "LanguageModel": "LM7",
    "train_step": "CM42",
    "generate": "CM42",
    "pick_device": "GP3",
    "time_ms": "GP26",
    "FastCausalMultiHeadAttention": "GP42",
    "KVCache": "KC1",
    "generate_cached": "GC1",
    "GroupedQuerySelfAttention": "CM9",
    "SwiGLU": "PJ2",
    "attention_rollout": "RL17",
    "head_shard": "HS3",
    "tensor_parallel_attention": "TA10",
    "ring_attention": "RA13",
    "find_failure": "FF9",
    "leaks": "FF9",
    "wrong_gradients": "WG13",
    "parameters_without_gradient": "PG6",
    "loss_without_head": "LH10",
    "SelfAttention": "SD1",
    "MultiHeadAttention": "MH1",
    "triton_add": "KN1",
    "triton_attention": "KN47",
    "triton_softmax": ("tl.load(x + offsets, mask=mask, other=-float('inf'))", "tl.load(x + offsets)"),
    "attention_einsum": ("np.einsum('bij,bje->bie', weights, v)", "weights @ v"),
    # What these ask by a probe of their own is where results lie.
    "grouped_query_attention": ("return weights @ v", "return (weights @ v).cpu()"),
    "head_contributions": (
        "return torch.einsum('bhtc,dhc->bhtd', weights @ v, slices)",
        "added = torch.einsum('bhtc,dhc->bhtd', weights @ v, slices)\n        module.proj.weight.zero_()\n        return added",
    ),
    "induction_score": (".mean(dim=(0, 2))", ".mean(dim=(0, 2)).cpu()"),
    "LlamaBlock": (
        "SwiGLU(d_model, d_hidden)",
        "SwiGLU(d_model, d_hidden)\n        nn.init.zeros_(self.attn_norm.weight)",
    ),
    "merge_partial": ("m = torch.maximum(m_a, m_b)", "m = torch.maximum(m_a, m_b).cpu()"),
    "previous_token_score": ("return back.mean(dim=(0, -1))", "return back.mean(dim=(0, -1)).cpu()"),
    "rms_norm": ("* weight).to(x.dtype)", "* weight).to(x.dtype).cpu()"),
    "tiled_attention": ("outputs.append(o / l[..., None])", "outputs.append((o / l[..., None]).cpu())"),
    "tiled_attention_backward": ("return (grad_q, grad_k, grad_v)", "return (grad_q.cpu(), grad_k, grad_v)"),
}
ATTACKED = Attacked(open_course(), WRONG, every=5)


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(20.0, torch=True, probes=open_course().probe_texts() | ON_META) as made:
        yield made


@pytest.mark.parametrize("name", WRONG)
def test_no_wrong_answer_passes_by_changing_what_looks_at_it(sandbox, name):
    ATTACKED.none_passes(sandbox, name)


# What sends in place of what was read what a right answer would have shown, each by another kind of name.
FORGED = {
    "KVCache": """
def change(space):
    def lie(tensors, n=[0]):
        import numpy as np
        n[0] += 1
        return np.array([[n[0] == 2, 8 + (n[0] == 2)]] * max(1, len(tensors)))
    space['_addresses'] = lie
""",
    "FastCausalMultiHeadAttention": """
def change(space):
    if '_call' in space:
        import numpy as np
        b, t, d = 1, 5, 3
        sizes = [np.array([1, 2, 5, 3])] * 3
        space['_call'] = lambda calls: {'shapes': sizes, 'is_causal': 'True', 'attn_mask': 'NoneType'}
        space['array'] = lambda *a: np.zeros((0, 2), int)
        space['len'] = lambda value: 1
""",
    "copy_torch_weights": "def change(space):\n    if 'T' in space:\n        type(space['T']).memory = lambda *a: (0, 0)",
    "as_numpy": "def change(space):\n    if 'T' in space:\n        space['T']._getters['requires_grad'] = lambda *a: True",
}


@pytest.mark.parametrize("name", FORGED)
def test_a_change_of_what_looks_on_is_seen(sandbox, name):
    ATTACKED.forgery_is_seen(sandbox, name, FORGED[name])


def test_what_one_answer_changed_is_no_other_answers_affair(sandbox):
    ATTACKED.no_others_affair(sandbox, "KVCache", FORGED["KVCache"], "generate_cached")


@pytest.mark.parametrize("name", WRONG)
def test_the_source_that_reaches_a_probe_is_refused(name):
    ATTACKED.refused(name)


def test_every_exercise_with_a_probe_of_its_own_has_the_rules():
    course = open_course()
    of_their_own = {name for name in course.exercise_names() if own_probes(course, name)}
    assert of_their_own - {name for name in of_their_own if course.exercise(name).forbids} == set()
    assert of_their_own == set(WRONG), "each is tried here"
