"""The shared mistakes: every id has a text, its code runs and shows the mistake, its numbers are right."""

import ast
import math
import re
from collections.abc import Callable, Iterable
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from grader.course import outcome_texts
from grader.course.course import open_course
from grader.course.references import explain

TEXTS = open_course().shared_texts()
GROUPS = (*open_course().module("shared.mistakes").GROUPS, outcome_texts.TEXTS)
OF_SEVERAL = {text.id: text for text in open_course().module("shared.mistakes.of_several_lessons").TEXTS}
IDS = (
    [f"SM{i}" for i in range(1, 7)]
    + [f"SD{i}" for i in range(1, 9)]
    + [f"PJ{i}" for i in range(1, 4)]
    + [f"MK{i}" for i in range(1, 15)]
    + [f"PE{i}" for i in range(1, 5)]
    + [f"RO{i}" for i in range(1, 4)]
    + [f"MH{i}" for i in range(1, 6)]
    + ["MU1", "MU2", "MU4", "MU25", "MU31", "CM7", "CM9", "PO2", "PO3"]
    + [f"BW{i}" for i in range(1, 4)]
    + [f"DT{i}" for i in range(1, 6)]
    + ["LG1", "LG2", "KV2", "KV3", "KV4", "GQ1", "SW1"]
    + [f"FL{i}" for i in range(1, 6)]
    + ["TP1"]
    + [f"RS{i}" for i in (*range(1, 13), *range(14, 26))]
)
UNWANTED = re.compile(
    r"\b(simpl[ey]|obvious(ly)?|just|easy|easily done|trivial(ly)?|wonderful(ly)?|please|well done|sorry|bad|"
    r"stupid|good job|cheat\w*)\b|!\s|[\U0001F300-\U0001FAFF]",
    re.IGNORECASE,
)
NUMPY = {"SM1", "SM2", "SM3", "SM4", "SM5", "SM6", "SD1", "SD2", "SD5", "SD6", "SD8", "BW1", "BW2", "DT2", "FL3", "FL5"}
REFUSED = {"MU1": {"d_model": 10}, "CM7": {"ids": torch.ones(1, 5), "max_len": 4}}  # what the right code refuses
RAISES = {"PJ1": None, "MH4": RuntimeError, "DT1": RuntimeError, "MK11": RuntimeError}  # None: raises on the next call


def softmax(x: np.ndarray) -> np.ndarray:
    exps = np.exp(x - x.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


# --- the texts ----------------------------------------------------------------------------------


def test_every_mistake_of_the_table_has_one_text():
    assert sorted(TEXTS) == sorted([*IDS, *OF_SEVERAL])
    assert sum(map(len, GROUPS)) == len(TEXTS), "an id is used twice"
    assert all(id == text.id for id, text in TEXTS.items())


def each(claim: Callable[[str], None], ids: Iterable[str] = IDS) -> None:
    """Makes the claim of every id, and tells all of which it does not hold."""
    wrong = []
    for id in ids:
        try:
            claim(id)
        except (AssertionError, SyntaxError) as error:
            wrong.append(f"{id}: {error}")
    assert not wrong, "\n".join(wrong)


def test_each_text_is_complete_and_of_a_readable_length():
    each(complete_and_readable)


def complete_and_readable(id: str) -> None:
    told = TEXTS[id]
    assert 6 <= len(told.sentence.split()) <= 30 and told.sentence.endswith((".", "`")), told.sentence
    assert 40 <= len(told.why.split()) <= 120, len(told.why.split())
    assert told.issue == "" or re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", told.issue)
    for code in (told.wrong, told.right):
        ast.parse(code)
        assert 1 <= len(code.splitlines()) <= 5
        assert max(map(len, code.splitlines())) <= 110
    assert told.wrong != told.right


def test_a_text_of_several_lessons_is_complete_and_has_the_code_of_a_patch():
    each(complete_without_code, OF_SEVERAL)


def complete_without_code(id: str) -> None:
    told = OF_SEVERAL[id]
    assert 6 <= len(told.sentence.split()) <= 30 and told.sentence.endswith((".", "`")), told.sentence
    assert 10 <= len(told.why.split()) <= 120, len(told.why.split())
    assert not told.wrong and explain(open_course(), id).wrong, "an exercise's patch shows its code"


def test_a_text_of_several_lessons_is_of_several_lessons():
    lessons: dict[str, set[str]] = {}
    for name in open_course().exercise_names():
        for mistake in open_course().exercise(name).mistakes:
            for id in mistake.id.split("+"):
                lessons.setdefault(id, set()).add(open_course().lesson_of(name))
    assert not [id for id in OF_SEVERAL if len(lessons[id]) < 2]


def test_no_text_judges_or_breaks_the_markdown():
    each(neither_judges_nor_breaks_markdown, TEXTS)


def neither_judges_nor_breaks_markdown(id: str) -> None:
    told = TEXTS[id]
    for said in (told.sentence, told.why):
        assert not UNWANTED.search(said), UNWANTED.search(said)[0]
        assert said.count("`") % 2 == 0 and "  " not in said
        assert "\n" not in said.replace("\n\n", ""), "a line break within a paragraph is kept where it is shown"
        assert not re.search(r"^\s*([-+*]|\d+\.)\s", said, re.MULTILINE), "Markdown takes this for a list"


# --- the code of the texts ----------------------------------------------------------------------


def given(id: str) -> dict:
    """The names that the code of a text may use. All sizes differ, except where a mistake needs equal ones."""
    rng = np.random.default_rng(7)
    made = torch.Generator().manual_seed(7)

    def tensor(*shape):
        return torch.randn(*shape, generator=made, dtype=torch.float64)

    names = {"np": np, "torch": torch, "math": math, "nn": nn, "F": F, "softmax": softmax}
    if id in NUMPY:
        scores, weights = rng.normal(size=(2, 3, 5)), softmax(rng.normal(size=(2, 3, 5)))
        own = {
            "SM4": {"exps": np.exp(rng.normal(size=(3, 3)))},
            "SM5": {"scores": 1000 * scores},
            "SM6": {"scores": np.array([[0, 1], [-200, -201]], np.float32)},
        }
        return (
            names
            | {
                "q": rng.normal(size=(3, 4)),
                "k": rng.normal(size=(5, 4)),
                "v": rng.normal(size=(5, 6)),
                "scores": scores,
                "exps": np.exp(scores),
                "weights": weights,
                "grad_weights": rng.normal(size=(2, 3, 5)),
                "grad_scores": rng.normal(size=(3, 5)),
                "scores32": scores.astype(np.float32),
                "tile": np.array([0.0, -1.0]),
                "m_old": 2.0,
                "hidden": np.full(2, -np.inf),
            }
            | own.get(id, {})
        )
    B, H, T, d = 2, 3, 5, 4
    names |= {"B": B, "T": T, "num_heads": H, "d_head": d, "d_model": H * d, "d_k": 4, "t_q": 2, "t_k": 4, "t_new": 1}
    names |= {
        "q": tensor(3, 4),
        "k": tensor(5, 4),
        "v": tensor(5, 6),
        "bias": tensor(3, 5),
        "scores": tensor(2, 3, 3),
        "mask": torch.ones(3, 3, dtype=torch.bool).tril(),
        "real": torch.tensor([[True, True, False], [True] * 3]),
        "w": tensor(3, 2),
        "layer": nn.Linear(3, 2, bias=False),
        "qkv": tensor(B, T, 3 * H * d),
        "x": tensor(B, T, H * d),
        "heads": tensor(B, H, T, d),
        "has_cache": True,
        "causal": torch.ones(3, 3, dtype=torch.bool).tril(),
        "padding": torch.tensor([True, True, False]),
        "position": 1,
        "base": 10000.0,
        "weights": torch.rand(50),
        "angles": tensor(5, 6),
        "cache_k": tensor(1, 2, 1, 4),
        "new_k": tensor(1, 2, 1, 4),
        "window": 2,
        "distance": torch.arange(4)[:, None] - torch.arange(4),
        "energy": tensor(2, 3, 5),
        "query": tensor(2, 3),
        "keys": tensor(2, 4, 5),
        "w_query": tensor(3, 6),
        "w_key": tensor(5, 6),
        "m_old": 0.0,
        "m_new": math.log(2),
        "l": 1.0,
        "acc": 3.0,
        "p": 1.0,
        "value": 0.0,
        "a": tensor(3),
    }
    names |= {
        "w_q": lambda x: x,
        "w_k": lambda x: 2 * x,
        "w_v": lambda x: 3 * x,
        "self": SimpleNamespace(training=False),
    }
    names |= {"b": tensor(3), "cos": math.cos(1), "sin": math.sin(1)}
    own = {
        "MK4": {"scores": tensor(2, 3, 3) - 10001},
        "MK9": {"mask": torch.zeros(3, 3, dtype=torch.bool)},
        "PE1": {"d_model": 4},
        "PE2": {"d_model": 4},
        "PE3": {"d_model": 4},
        "GQ1": {"k": tensor(1, 2, 5, 4)},
        "LG1": {"v": tensor(5)},
        "LG2": {"v": tensor(6)},
        "KV2": {"cache_k": tensor(1, 2, 3, 4)},
        "BW3": {"scores": tensor(2, 3).requires_grad_()},
        "MU2": {"w_o": lambda x: 4 * x},
        "MU25": {"weights": tensor(3, 5)},
        "PO3": {"base": 100.0},
        "DT3": {"self": nn.Module()},
        "DT4": {"x": torch.ones(2, 3, 4, device="meta")},
        "DT5": {"self": nn.Module(), "table": tensor(3)},
        "TP1": {"shards": [(tensor(2, 3), tensor(3, 4)), (tensor(2, 5), tensor(5, 4))], "bias": torch.ones(4)},
    }
    return names | own.get(id, {}) | REFUSED.get(id, {})


def outcome(id: str, code: str):
    """What the last statement of the code makes; an error is raised."""
    names = given(id)
    with np.errstate(all="ignore"):
        exec(code, names)
    target = ast.parse(code).body[-1]
    if id in ("DT3", "DT5"):
        moved = names["self"].to("meta")
        return getattr(moved, "mask" if id == "DT3" else "table").device.type
    if id == "DT4":
        return names["positions"].device.type
    last = target.targets[0]
    if isinstance(last, ast.Attribute):  # of a layer, which must still be callable
        return names["layer"](torch.ones(1, 3, dtype=torch.float64))
    return [names[name.id] for name in ast.walk(last) if isinstance(name, ast.Name)]


def comparable(value):
    """Something whose equality means: the same kind, the same shape, the same numbers, the same graph."""
    if isinstance(value, list):
        return [comparable(each) for each in value]
    if isinstance(value, torch.Tensor):
        return "tensor", value.dtype, value.requires_grad, value.shape, value.detach().numpy().tobytes()
    if isinstance(value, np.ndarray):
        return "array", value.dtype, value.shape, value.tobytes()
    if isinstance(value, nn.Module):
        return sorted(name for name, _ in value.named_parameters())
    return [comparable(each) for each in value] if hasattr(value, "__next__") else value


OF_ANY_EXERCISE = [
    id for id in IDS if id.startswith("RS")
]  # their code is of any f and x; tests/judging/test_outcomes.py shows each in a cell


@pytest.mark.parametrize("id", [id for id in IDS if id not in OF_ANY_EXERCISE and id not in (*RAISES, *REFUSED)])
def test_wrong_and_right_code_run_and_disagree(id):
    if id == "DT2" and np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("NumPy 1 keeps float32 here")
    torch.manual_seed(7)
    assert comparable(outcome(id, TEXTS[id].wrong)) != comparable(outcome(id, TEXTS[id].right))


@pytest.mark.parametrize("id", list(RAISES))
def test_wrong_code_that_raises_does_so_and_the_right_code_runs(id):
    with pytest.raises(RAISES[id] or RuntimeError):
        outcome(id, TEXTS[id].wrong)
    outcome(id, TEXTS[id].right)


@pytest.mark.parametrize("id", list(REFUSED))
def test_right_code_that_refuses_does_so_and_the_wrong_code_runs(id):
    outcome(id, TEXTS[id].wrong)
    with pytest.raises(ValueError):
        outcome(id, TEXTS[id].right)


RIGHT_WEIGHTS = [
    id for id in IDS if TEXTS[id].right.splitlines()[-1].startswith("weights = ") and id not in ("MK9", "MH5")
]


@pytest.mark.parametrize("id", RIGHT_WEIGHTS)
def test_right_weights_sum_to_1_in_every_row(id):
    (weights,) = outcome(id, TEXTS[id].right)
    np.testing.assert_allclose(np.asarray(weights.detach() if id not in NUMPY else weights).sum(axis=-1), 1, rtol=1e-6)
