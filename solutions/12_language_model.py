# %% [markdown]
# # 12 · A language model
#
# **Which parts, put together, learn to write from nothing but text?**
#
# Two blocks of lesson 11 become a language model of 430,000 numbers. It trains in about a minute on a CPU, on the reference manual
# of the language it is written in.
#
# **Predict:** after a minute of training on single characters, what will the text it writes look like: letters in a row, words,
# sentences, or working Python?

# %% role="given"
import math

import torch
from torch import nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% [markdown]
# The block is lesson 11's, with the same names and shapes of weights, around the ready-made operator. Your own is as good: paste
# it in a cell below this one.

# %% role="given"
class CausalAttention(nn.Module):
    """Lesson 11's attention, on torch's fused operator."""

    def __init__(self, d_model, num_heads, max_len, dropout=0.0):
        super().__init__()
        self.num_heads, self.max_len, self.p = num_heads, max_len, dropout
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        if x.shape[1] > self.max_len:
            raise ValueError(f"T = {x.shape[1]} is longer than max_len = {self.max_len}")
        q, k, v = (part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        p = self.p if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        return self.proj(out.transpose(1, 2).flatten(2))

# %% role="given"
class TransformerBlock(nn.Module):
    """Lesson 11's block: attention between tokens, then a network for each token, both pre-norm and residual."""

    def __init__(self, d_model, num_heads, max_len, dropout=0.0):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = CausalAttention(d_model, num_heads, max_len, dropout)
        self.mlp = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))

# %% [markdown]
# ## A language model around it
#
# A language model turns tokens into logits over the vocabulary: for each position a score for every token that could follow. Around
# the blocks it needs a table of token vectors, one of position vectors, a last normalisation and a layer back to the vocabulary. This
# is given:

# %% [markdown]
# @exercise next_token_loss
#
# `logits` (B, T, V), `ids` (B, T) integers, T ≥ 2 → a 0-d tensor
#
# ```text
# for each row b and each position t from 0 to T − 2:
#     p         softmax(logits[b, t])[ids[b, t + 1]], the weight on the token that does follow
#     surprise  −log p
# the result is the mean of these B · (T − 1) surprises
# ```
#
# Any way that is right for logits of ±10,000; a library's loss is fine.

# %% role="exercise" exercise="next_token_loss"
def next_token_loss(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Mean surprise, in nats, about the token that follows each position.

    logits: (B, T, vocabulary). ids: (B, T) int64, T ≥ 2. Returns: a 0-d tensor.
    """
    # region solution
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    # endregion

# %% role="check" exercise="next_token_loss"
check(next_token_loss)

# %% [markdown]
# @exercise LanguageModel
#
# `LanguageModel(vocabulary, d_model, num_heads, num_layers, max_len)` with five attributes. forward: `ids` (B, T) → logits
# (B, T, vocabulary)
#
# ```text
# token     nn.Embedding(vocabulary, d_model)
# position  nn.Embedding(max_len, d_model)
# blocks    an nn.ModuleList or nn.Sequential of num_layers TransformerBlock(d_model, num_heads, max_len)
# norm      nn.LayerNorm(d_model)
# head      nn.Linear(d_model, vocabulary, bias=False)
# logits    head(norm(the blocks, one after the other, on token vectors + position vectors 0 … T − 1))
# ```
#
# T > max_len raises `ValueError`.

# %% role="exercise" exercise="LanguageModel"
class LanguageModel(nn.Module):
    """Logits for the token after each position, from the tokens up to it.

    vocabulary: how many different tokens there are. max_len: the longest sequence that is accepted.
    """

    def __init__(self, vocabulary: int, d_model: int, num_heads: int, num_layers: int, max_len: int) -> None:
        # region solution
        super().__init__()
        self.max_len = max_len
        self.token = nn.Embedding(vocabulary, d_model)
        self.position = nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList(TransformerBlock(d_model, num_heads, max_len) for _ in range(num_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocabulary, bias=False)
        # endregion

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: (B, T) integers. Returns: (B, T, vocabulary). Raises ValueError for T > max_len."""
        # region solution
        if ids.shape[1] > self.max_len:
            raise ValueError(f"T = {ids.shape[1]} is longer than max_len = {self.max_len}")
        x = self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
        # endregion

# %% role="check" exercise="LanguageModel"
check(LanguageModel)

# %% [markdown]
# @exercise train_step
#
# `model` an `nn.Module` with `model(ids)` (B, T) → logits, `optimizer` one over all its parameters, `ids` (B, T), `clip` a number → a
# float
#
# ```text
# the loss is next_token_loss(model(ids), ids)
# its gradients, and nothing that was there before
# their norm, all of them together, clipped to `clip`
# one step of the optimizer
# the result is the loss before that step, as a float
# ```
#
# `model.training` stays as it is. Your own `next_token_loss` is called; so get that one right first.

# %% role="exercise" exercise="train_step"
def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, ids: torch.Tensor, clip: float = 1.0) -> float:
    """One step of training on a batch of ids (B, T).

    clip: the largest norm that the gradients may have, all together. Returns: the loss before the step.
    """
    # region solution
    loss = next_token_loss(model(ids), ids)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return loss.item()
    # endregion

# %% role="check" exercise="train_step"
check(train_step)

# %% [markdown]
# The text is an excerpt of Python's own language reference (© Python Software Foundation; its notice and licence lie beside it in
# `grader/data`). Our tokens are its single characters. What the model is asked, is the text itself, moved on by one:

# %% role="given"
text = figures.lesson_12.reference_text()
characters = sorted(set(text))
number_of = {character: number for number, character in enumerate(characters)}
ids = torch.tensor([number_of[character] for character in text])

# %% role="demo" tags=["nbval-check-output"]
print(f"{len(text):,} characters, {len(characters)} different ones")
window = ids[2000:2010]
for seen, asked in zip(window[:4], window[1:5]):
    print(f"after {characters[seen]!r} comes {characters[asked]!r}")
print(f"knowing nothing costs ln {len(characters)} = {math.log(len(characters)):.2f} nats a character")

# %% [markdown]
# With a causal mask one window of 64 characters asks 64 questions at once, each with a context of its own length. That is what makes
# such training cheap, and what makes a leak fatal.
#
# ## Writing
#
# To write, we ask for the token after the last one, append it, and ask again. Which token do we take? Always the likeliest
# (*greedy*), or one drawn from the distribution. A **temperature** τ lies between: softmax(logits / τ) sharpens below 1 and flattens
# above, as in lesson 02.
#
# **Predict** the weights of the logits (2, 1, 0) at τ = 0.01 and at τ = 100.

# %% role="demo" tags=["nbval-check-output"]
logits = torch.tensor([2.0, 1.0, 0.0])
for temperature in (0.01, 0.5, 1.0, 2.0, 100.0):
    weights = torch.softmax(logits / temperature, dim=-1)
    print(f"{temperature:6}  " + "  ".join(f"{weight:.2f}" for weight in weights))

# %% [markdown]
# Three things go wrong around such a loop. The text outgrows `max_len`: then the model is fed the last `max_len` tokens, and the text
# itself stays whole. The model is left in the wrong mode: a sample in the middle of training must switch dropout off and *back on*.
# And randomness comes from somewhere else: a text that can be repeated needs a generator of its own.

# %% [markdown]
# @exercise generate
#
# `model(ids)` (B, T) → logits (B, T, vocabulary); `ids` (B, T) integers → (B, T + max_new_tokens), the given ids first
#
# ```text
# repeat max_new_tokens times:
#     logits of the last position of model(the last min(T, max_len) tokens)
#     temperature 0: the largest;  else: one draw for each row from softmax(logits / temperature), by `generator`
#     append it
# ```
#
# `generator` is a `torch.Generator`, or None for torch's global one; all randomness comes from it, by any method. The model is in eval
# mode meanwhile and has its own flag, `model.training`, back when the call returns. No graph is built; `ids` is not changed.

# %% role="exercise" exercise="generate"
def generate(
    model: nn.Module, ids: torch.Tensor, max_new_tokens: int, max_len: int, temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Continue each row of ids by max_new_tokens tokens.

    ids: (B, T) integers. max_len: how many of the last tokens the model sees.
    temperature: 0 takes the likeliest token. generator: the only source of randomness. Returns: (B, T + max_new_tokens) integers.
    """
    # region solution
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for _ in range(max_new_tokens):
                logits = model(ids[:, -max_len:])[:, -1]
                if temperature == 0:
                    following = logits.argmax(dim=-1, keepdim=True)
                else:
                    weights = torch.softmax(logits / temperature, dim=-1)
                    following = torch.multinomial(weights, 1, generator=generator)
                ids = torch.cat([ids, following], dim=1)  # a new tensor: the caller's ids stay as they are
    finally:
        model.train(was_training)  # also when the model raises
    return ids
    # endregion

# %% role="check" exercise="generate"
check(generate)

# %% [markdown]
# ## A minute of training
#
# Everything is in place: two blocks of four heads, width 128, a context of 64 characters. `write` continues the same four words at
# any moment with the same random numbers, so that only the model's knowledge changes. A tenth of the text is held out, to see what
# was learned beyond what was read.
#
# While the next cell runs, a bar and the curve move. Interrupting the kernel (the square in the tool bar) stops early and keeps what
# was learned. A finished run leaves a checkpoint beside the progress record, and the next run reads it. A checkpoint is data: it is
# written with `torch.save` of tensors and numbers and read with `weights_only=True`, so a file from a stranger can't run code.
#
# **Predict** what the held-out loss will be, between 4.62 nats (knowing nothing) and 0 (knowing the text by heart).

# %% role="payoff" exercise="generate"
if passed(generate):
    torch.manual_seed(11)
    sizes = {"d_model": 128, "num_heads": 4, "num_layers": 2, "max_len": 64}
    model = LanguageModel(len(characters), **sizes)
    model.num_heads = 4

    def write(temperature=0.7, length=240):
        start = torch.tensor([[number_of[character] for character in "If the object is "]])
        numbers = generate(model, start, length, 64, temperature, torch.Generator().manual_seed(1))
        return "".join(characters[number] for number in numbers[0])

    history = figures.lesson_12.learn_to_write(model, ids, max_len=64, sample=write)

# %% role="payoff" exercise="generate"
if passed(generate):
    figures.lesson_12.learned(history, len(characters))

# %% [markdown]
# First noise, then the alphabet's frequencies, then words, and in the end the tone of a manual, with quotes, indents and
# cross-references, about nothing at all. It has no idea what an object is. What it has learned is the distribution of the next
# character, and a minute of it looks like this.
#
# How sure should it be? **Predict** what the same model writes at temperature 0, and at 1.5.

# %% role="payoff" exercise="generate"
if passed(generate):
    for temperature in (0, 0.7, 1.5):
        print(f"--- temperature {temperature}\n{write(temperature, 160)}\n")

# %% [markdown]
# ## What the heads look at
#
# The weights are recomputed from the trained `qkv`, and compared with the layer's own output before they are drawn. Each title names
# the distance at which the head looks most.

# %% role="payoff" exercise="generate"
if passed(generate):
    passage = text[(at := text.find("must be an iterable")) : at + 24]
    figures.lesson_12.heads(model, torch.tensor([number_of[c] for c in passage]), characters)

# %% [markdown]
# ## Where this goes on
#
# GPT-2 is this model with 12 to 48 blocks, a width of 768 to 1600 and tokens longer than a character (Radford et al. 2019, section
# 2.3). Larger models keep keys and values while they write, so that each new token costs one row and not a whole square. In lesson 13
# the same module runs on whatever device is there, and the square, T², meets its match.
