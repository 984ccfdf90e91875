"""Answers that find the probe that tries them, through a frame or the garbage collector, and change what it looks with.

A probe concludes nothing: with one of its own names bound to a liar it sends other readings, and the specification still decides.
That a name was changed is seen besides, and the source that does so is refused before it runs.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from grader.course import references
from grader.course.course import open_course
from grader.course.patches import applied
from grader.course.spec import SEED, Case
from grader.judging.judge import judge
from grader.sandbox.sandbox import Sandbox
from grader.source.policy import Sources
from grader.submission.plan import Plan, RunCell
from grader.worker import probes
from grader.worker.probes import BASIC
from tests.conftest import WHOLE_GRID
from tests.hostile.one_worker import ON_META, OneWorker
from tests.live import Live, offence

pytestmark = pytest.mark.any_user  # what one Python process can reach in itself

# By exercise, a mistake whose numbers are right, or nearly so: what a probe of the exercise's own notices is all that tells.
MISTAKES = {
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
}
OWN = {
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
EXERCISES = (*MISTAKES, *OWN)
LIARS = ("True", "a[0] if a else None", "0", "{}", "''")
FRAMES = """
import sys
def spaces():
    frame = sys._getframe()
    while frame is not None:
        if '.probes' in frame.f_globals.get('__name__', ''):
            yield frame.f_globals
        frame = frame.f_back
"""
REACHING = """
def reaching(inner, change):
    def outer(*args, **more):
        for space in spaces():
            change(space)
        return inner(*args, **more)
    return outer
if isinstance({name}, type):
    {name}.__init__ = reaching({name}.__init__, change)
else:
    {name} = reaching({name}, change)
"""


def own_probes(name: str) -> list[Case]:
    cases = open_course().exercise(name).cases(np.random.default_rng(SEED))
    return [case for case in cases if case.probe not in BASIC]


@cache
def wrong_texts(name: str) -> dict[str, str]:
    """The lesson's solutions up to this one, in which the mistake is made."""
    texts = references.normal_forms(open_course().exercise(name))
    if name in OWN:
        old, new = OWN[name]
        assert texts[name].count(old) == 1
        return {**texts, name: texts[name].replace(old, new)}
    made = next(one.wrong for one in open_course().exercise(name).mistakes if one.id == MISTAKES[name])
    return {**texts, **applied(references.edits_of(open_course().exercise(name), made), texts)}


@cache
def narrowed(name: str) -> Any:
    """The exercise with the one case of a probe of its own that tells its mistake, and nothing to name it by."""
    whole, made = open_course().exercise(name), dict(references.namespace(open_course(), open_course().lesson_of(name)))
    exec("\n".join(wrong_texts(name).values()), made)
    for key in (case.key for case in own_probes(name)):
        one = replace(
            whole,
            cases=lambda rng, key=key: [case for case in whole.cases(rng) if case.key == key],
            mistakes=(),
            properties=(),
            requires=(),
        )
        if judge(one, Live(name, made[name])).status == "failed":
            return one
    raise AssertionError(f"no probe of {name} tells {MISTAKES.get(name)}")


def probe_names(name: str) -> list[str]:
    """The names of the probe's module; without WHOLE_GRID every fifth, other ones for each exercise of a module."""
    probe = narrowed(name).cases(np.random.default_rng(0))[0].probe
    probes.find(probe)
    module = sys.modules[probes.module_of(probe)]
    names = [one for one in vars(module) if not one.startswith("__") and not isinstance(getattr(module, one), dict)]
    return names if WHOLE_GRID else names[EXERCISES.index(name) % 5 :: 5]


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(20.0, torch=True, probes=open_course().probe_texts() | ON_META) as made:
        yield made


def graded(sandbox: Sandbox, name: str, *cells: str) -> Any:
    lesson = open_course().lesson_of(name)
    given = [RunCell("given cell", cell.text, False) for cell in open_course().cells(lesson) if cell.role == "given"]
    others = "\n".join(text for of, text in wrong_texts(name).items() if of != name)
    own = "\n".join((wrong_texts(name)[name], *cells))
    plan = Plan(
        lesson, (name,), (*given, RunCell("cell 1", others, True), RunCell("cell 2", own, True)), {name: len(given) + 1}
    )
    return judge(narrowed(name), sandbox.candidates(plan)[name])


# `undo` gives back what a change has put into a probe's module.
NOTED = """
changed = []
def change(space, changed=changed):
    changed.append((space, {one!r}, space.get({one!r}, changed)))
    space[{one!r}] = lambda *a, **k: {liar}
def undo(changed=changed, turned=reversed):
    for space, name, old in turned(changed):
        if old is changed: del space[name]
        else: space[name] = old
"""


def one_after_the_other(sandbox: Sandbox, name: str, tried: list[tuple[str, str]]) -> dict[tuple[str, str], Any]:
    """The verdict on each change, in one worker, where each is undone before the next. Empty where something stayed: there, in the end,
    the right answer does not pass."""
    lesson = open_course().lesson_of(name)
    given = [cell.text for cell in open_course().cells(lesson) if cell.role == "given"]
    others = [text for of, text in wrong_texts(name).items() if of != name]
    worker = OneWorker(sandbox, [*given, "\n".join(others)])

    def verdict(*texts: str) -> Any:
        return worker.judged(["\n".join(texts)], {name: 0}, narrowed)[name]

    try:
        assert verdict(wrong_texts(name)[name]).status == "failed"
        found = {
            (one, liar): verdict(
                wrong_texts(name)[name], FRAMES, NOTED.format(one=one, liar=liar), REACHING.format(name=name)
            )
            for one, liar in tried
        }
        right = verdict(*references.normal_forms(open_course().exercise(name)).values())
        return found if right.status == "passed" else {}
    finally:
        worker.close()


@pytest.mark.parametrize("name", EXERCISES)
def test_no_wrong_answer_passes_by_changing_what_looks_at_it(sandbox, name):
    """One worker for all changes; WHOLE_GRID=1 has one for each."""
    tried = [
        (one, liar)
        for number, one in enumerate(probe_names(name))
        for liar in (LIARS if WHOLE_GRID else LIARS[number % len(LIARS) :][:1])
    ]
    if WHOLE_GRID:
        assert graded(sandbox, name).status == "failed"
    together = {} if WHOLE_GRID else one_after_the_other(sandbox, name, tried)
    for one, liar in tried:
        found = together.get((one, liar)) or graded(
            sandbox, name, FRAMES, NOTED.format(one=one, liar=liar), REACHING.format(name=name)
        )
        assert found.status in ("failed", "error", "forbidden"), (one, liar, found.headline)


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
    found = graded(sandbox, name, FRAMES, FORGED[name], REACHING.format(name=name))
    assert (found.status, found.headline) == (
        "forbidden",
        "While it ran, the grader's own functions were replaced by others; your own answer has no need to do that.",
    )


def test_what_one_answer_changed_is_no_other_answers_affair(sandbox):
    """The next exercise gets a fresh process."""
    lesson, cheat, honest = open_course().lesson_of("KVCache"), "KVCache", "generate_cached"
    given = [RunCell("given cell", cell.text, False) for cell in open_course().cells(lesson) if cell.role == "given"]
    own = "\n".join((wrong_texts(cheat)[cheat], FRAMES, FORGED[cheat], REACHING.format(name=cheat)))
    cells = (
        *given,
        RunCell("cell 1", own, True),
        RunCell("cell 2", references.solution_text(open_course(), honest), True),
    )
    candidates = sandbox.candidates(Plan(lesson, (cheat, honest), cells, {cheat: len(given), honest: len(given) + 1}))
    assert judge(narrowed(cheat), candidates[cheat]).status == "forbidden"
    assert judge(open_course().exercise(honest), candidates[honest]).status == "passed"


WAYS = {
    "sys._getframe": FRAMES + "\nnext(spaces())['T'] = None",
    "the garbage collector": "import gc\nfound = [one for one in gc.get_objects() if type(one) is dict and '_seen' in one]\nfound[0]['T'] = 0",
    "__globals__": "def change(model):\n    type(model).forward.__globals__['T'] = None",
    "a traceback": "def change():\n    try:\n        1 / 0\n    except ZeroDivisionError as error:\n"
    "        error.__traceback__.tb_frame.f_back.f_globals['T'] = None",
    "inspect": "import inspect\ninspect.stack()[1].frame.f_globals['T'] = None",
    "a name in pieces": "import sys\ngetattr(sys._getframe(1), 'f_glo' + 'bals')['T'] = None",
}


@pytest.mark.parametrize("name", EXERCISES)
def test_the_source_that_reaches_a_probe_is_refused(name):
    exercise, answer = open_course().exercise(name), references.solution_text(open_course(), name)
    assert offence(name, exercise.forbids, exercise.requires, Sources((answer,))) is None
    for way, cell in WAYS.items():
        found = offence(name, exercise.forbids, exercise.requires, Sources((cell, answer)))
        assert found is not None and found.sentence.startswith("A cell reaches into the running program by `"), way
        assert found.sentence.endswith(
            "so that this exercise cannot be checked; take it out, and restart the kernel where it has run."
        )


def test_every_exercise_with_a_probe_of_its_own_has_the_rules():
    of_their_own = {
        name for lesson in open_course().lessons() for name in open_course().exercises[lesson] if own_probes(name)
    }
    assert of_their_own - {name for name in of_their_own if open_course().exercise(name).forbids} == set()
    assert of_their_own == set(EXERCISES), "each is tried here"
