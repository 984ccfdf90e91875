# %% [markdown]
# # 10 · A language model
#
# **Which parts, put together, learn to write from nothing but text?**
#
# **Before this lesson:** lesson 02 (softmax, its temperature and its logarithm), lesson 06 (the causal mask), lesson 09 (the block),
# and what an optimizer of torch does with gradients.
#
# A language model answers one question again and again: which token comes next? In this lesson you write one with
# 430,000 parameters: its loss, its layers, its training step and the loop with which it writes. It trains for about a
# minute on a laptop, on the reference manual of Python. Afterwards it imitates the tone of that manual, but the text
# means nothing.

# %% role="given"
import math
import time

import torch
from torch import nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="demo"
figures.machine.draw(lit=("tokens", "output"), title="A language model is built around this machine")

# %% [markdown]
# Token numbers come in, and a probability distribution over the next token comes out. In between, the machine of this
# course runs several times.
#
# ## What surprise costs
#
# How good is a prediction? The model gives every possible token a probability. Then the true next token arrives; call
# the probability that the model gave to it p. The **surprise** is −ln p. It is 0 if the model was certain and right,
# and it grows without limit as p goes to 0. Its unit is the *nat*, because the logarithm is the natural one.

# %% role="demo"
figures.language_model.surprise({"a coin": 1 / 2, "a die": 1 / 6, "one of 102 characters": 1 / 102})

# %% [markdown]
# Why the logarithm? Because it makes surprises add up. The probability of a whole text is the product of the
# probabilities of its tokens, each given the tokens before it, and the logarithm turns this product into a sum. The
# mean of that sum over the tokens is the loss with which language models of this kind are trained.
#
# The text is an excerpt of Python's own language reference (© Python Software Foundation; its notice and license lie beside it in
# `solutions/shared/data`). The tokens are its single characters, each with a number:

# %% role="demo"
text = figures.language_model.reference_text()
characters = sorted(set(text))
number_of = {character: number for number, character in enumerate(characters)}
ids = torch.tensor([number_of[character] for character in text])
cut = 9 * len(ids) // 10
train, held = ids[:cut], ids[cut:]  # the last tenth is held out: no model is trained on it

# %% role="demo" tags=["nbval-check-output"]
print(f"{len(text):,} characters, {len(characters)} different ones")
at = text.index("If the object")
for t in range(8, 14):
    print(f"after {text[at : at + t]!r:17} comes {text[at + t]!r}")

# %% [markdown]
# One window of 64 characters asks 63 such questions, each with a longer context than the one before. A causal model answers all of
# them in one pass, because its output at a position knows nothing of later ones (lesson 06). That makes training cheap, and it is
# why a leak in the mask would be fatal: the answers stand in the input, one place to the right.

# %% [markdown]
# @predict
#
# Somebody who knows nothing gives each of the 102 characters the same probability. How surprised are they by each character, in nats?
#
# @answer
#
# −ln(1/102) = ln 102 = 4.62 nats, whatever comes. That is the line to beat.
#
# @wrong
#
# If you said 1/102, you gave the probability; the surprise is minus its logarithm. If you said 6.67, you took the logarithm to base 2:
# that is the same surprise in *bits*.

# %% [markdown]
# ## First a model without any attention
#
# Before a network is trained, try the simplest thing that could work. Here it is a **bigram** model: for each
# character, count how often every character comes right after it, and divide each row of counts by its sum. A network
# is only worth its extra work if it predicts better than this table. Every pair starts with a count of 1, because a
# probability of 0 would make the surprise infinite.

# %% [markdown]
# @predict
#
# Knowing nothing costs 4.62 nats a character. What is the mean surprise, on the held-out text, of a model that knows only the last
# character?
#
# - **A** about 4.3: one character says little
# - **B** about 2.4
# - **C** about 0.5: most characters follow from the one before
#
# @answer
#
# **B**: {{ bigram:.2f }} nats, the same as a choice among {{ math.exp(bigram):.0f }} equally likely characters. After
# a *q* the next character is nearly certain, while after a space almost anything may come.
#
# @wrong
#
# If you said A, look at the rows of the table below: most of their weight lies on a few columns. If you said C, think of the spaces:
# more than a tenth of the text, and each begins a new word.

# %% role="demo"
counts = torch.ones(len(characters), len(characters))
counts.index_put_((train[:-1], train[1:]), torch.ones(cut - 1), accumulate=True)
follows = counts / counts.sum(dim=1, keepdim=True)  # row: a character; its entries: what comes next
bigram = -follows[held[:-1], held[1:]].log().mean().item()

# %% role="demo"
figures.language_model.pairs(follows, characters, " etaonrisdlcuq.\n")
print(f"the bigram model on held-out text: {bigram:.3f} nats a character")
assert 2.2 < bigram < 2.6

# %% [markdown]
# A table of 102 · 102 numbers has brought the surprise down by almost half. To write with it, we draw the next
# character from the row of the last one and repeat:

# %% role="demo"
generator, at, written = torch.Generator().manual_seed(3), number_of["I"], "I"
for _ in range(100):
    at = torch.multinomial(follows[at], 1, generator=generator).item()
    written += characters[at]
print(written)

# %% [markdown]
# It has the right letters in the right amounts, and hardly a word, because it sees one character back and no further. A Transformer
# sees the whole window. Its loss will tell whether that helps. You write that loss first.

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
# The bigram table can be read as a model, too: the logarithms of its rows are logits. Then your loss has to find the same number that
# indexing found above.

# %% role="payoff" exercise="next_token_loss"
if passed(next_token_loss):
    logits = follows.log()[held][None]  # (1, N, vocabulary): what the table says after each character
    loss = next_token_loss(logits, held[None]).item()
    print(f"by indexing {bigram:.4f}, by your loss {loss:.4f}")
    assert abs(loss - bigram) < 1e-3

# %% [markdown]
# ## The model
#
# Attention and the block are those of lesson 09. Below is a version with the same names and shapes, built on torch's
# own operator, so that you can go on even if yours is unfinished. Yours works just as well: paste both classes into a
# cell below these two.

# %% role="given"
class CausalAttention(nn.Module):
    """Lesson 09's attention, on torch's fused operator."""

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
    """Lesson 09's block: attention between tokens, then a network for each token, both pre-norm and residual."""

    def __init__(self, d_model, num_heads, max_len, dropout=0.0):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = CausalAttention(d_model, num_heads, max_len, dropout)
        self.mlp = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))

# %% [markdown]
# Four things are missing around the blocks. One table turns a token's number into a vector, and a second one does the
# same for its position, because attention alone knows nothing of order (lesson 08). A last normalization follows the
# blocks, because in a pre-norm stack the output of the last block has not been normalized. And a linear layer leads
# back to the vocabulary: one logit for each token that could come next.

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
# @predict
#
# The model has just been initialized at random and has read nothing. How does its loss compare with ln 102 = 4.62,
# the loss of someone who gives every character the same probability?
#
# @answer
#
# It is a little higher. The model knows nothing, and yet it *has opinions*: its random logits differ from one
# another, and on average it costs more to be sure of the wrong thing than to be unsure. A first loss far above ln V
# means that the initial logits are too large.
#
# @wrong
#
# If you said exactly 4.62, you assumed equal logits; only then is softmax uniform. If you said less, ask where the
# model's knowledge could come from.

# %% role="payoff" exercise="LanguageModel"
if passed(LanguageModel) and passed(next_token_loss):
    torch.manual_seed(12)
    model = LanguageModel(len(characters), d_model=128, num_heads=4, num_layers=2, max_len=64)
    with torch.no_grad():
        first = next_token_loss(model(train[:640].view(10, 64)), train[:640].view(10, 64)).item()
    print(f"{sum(p.numel() for p in model.parameters()):,} numbers")
    print(f"loss before any training {first:.2f}, ln 102 = {math.log(102):.2f}")
    assert math.log(102) < first < 6

# %% [markdown]
# How far is this from a famous model? GPT-2 (Radford et al. 2019, section 2.3) has the same parts in the same order,
# with 12 to 48 blocks and a width of 768 to 1600. It differs in small things that matter when weights are exchanged:
# its attention projections have biases, its output layer shares the weight of the token table, its initialization is
# smaller (0.02, and less in deep residual paths), and its GELU is the tanh approximation. Its tokens are pieces of
# words.
#
# ## One step of training
#
# A step has four parts, and each can go wrong without an error message. The gradients of the previous step have to be
# cleared, because `backward()` adds to what is already there. The norm of all gradients together is clipped, so that
# one unusual batch with huge gradients cannot throw the model off course. The optimizer takes one step. And the loss
# comes back as a plain number: a tensor would keep its graph, and a list of a thousand such losses fills the memory.

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
# Before you train for a minute, run a test of two seconds that finds most bugs in such loops: a model that is shown *one* batch again
# and again must learn it by heart. If this loss does not fall, longer training will not help.

# %% role="payoff" exercise="train_step"
if passed(LanguageModel) and passed(train_step):
    torch.manual_seed(12)
    small = LanguageModel(len(characters), d_model=64, num_heads=4, num_layers=1, max_len=64)
    optimizer = torch.optim.AdamW(small.parameters(), lr=1e-2)
    losses = [train_step(small, optimizer, train[:256].view(4, 64)) for _ in range(60)]
    print("one batch of 256 characters, by heart:", "  ".join(f"{loss:.2f}" for loss in losses[::10]))
    assert losses[-1] < 1 < losses[0]

# %% [markdown]
# ## Writing
#
# To write, we ask for the token after the last one, append it, and ask again. Which token do we take? We can always
# take the likeliest one (*greedy*), or draw one from the distribution. A **temperature** τ adjusts the draw: for τ
# below 1, softmax(logits / τ) is sharper than the distribution and comes closer to greedy; for τ above 1 it is
# flatter, as in lesson 02.

# %% [markdown]
# @predict
#
# What are the weights of the logits (2, 1, 0) at τ = 0.01, and at τ = 100?
#
# @answer
#
# At 0.01 the largest takes everything: 1, 0, 0. At 100 the differences all but vanish: about ⅓ each, 0.34, 0.33, 0.33.
#
# @wrong
#
# If you exchanged the two, you multiplied by τ. Divided by a small number, differences grow.

# %% role="demo" tags=["nbval-check-output"]
logits = torch.tensor([2.0, 1.0, 0.0])
for temperature in (0.01, 0.5, 1.0, 2.0, 100.0):
    weights = torch.softmax(logits / temperature, dim=-1)
    print(f"{temperature:6}  " + "  ".join(f"{weight:.2f}" for weight in weights))

# %% [markdown]
# Three things can go wrong in such a loop. The text becomes longer than `max_len`: then the model gets the last
# `max_len` tokens only, while the text itself stays whole. The model is left in the wrong mode: writing a sample in
# the middle of training has to switch dropout off and then *back on*. And other code also draws from torch's global
# generator: a text that you want to repeat needs its own generator.

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
# `generator` is a `torch.Generator`, or None for torch's global one; all randomness comes from it, by any method.
# During the call the model is in eval mode; when the call returns, `model.training` is what it was before. No graph
# is built; `ids` is not changed.

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
# Now the loop is yours. `batch` draws 32 windows from anywhere in the training text, and `held_loss` measures on windows of the held-out
# text. Two threads are not always faster than one: on small matrices they wait for each other, and other programs need the cores, too.
# So the next cell times a few batches with each number of threads and keeps the fastest.

# %% role="payoff" exercise="train_step"
if passed(LanguageModel) and passed(train_step):
    draws = torch.Generator().manual_seed(12)
    windows = held[: len(held) // 64 * 64].view(-1, 64)

    def batch(count=32):
        starts = torch.randint(len(train) - 64, (count, 1), generator=draws)
        return train[starts + torch.arange(64)]

    def held_loss(model):
        with torch.no_grad():
            return sum(next_token_loss(model(part), part).item() * len(part) for part in windows.split(64)) / len(windows)

    def seconds(threads):
        torch.set_num_threads(threads)
        started = time.perf_counter()
        for _ in range(6):
            next_token_loss(model(batch()), batch()).backward()
        return time.perf_counter() - started

# %% role="payoff" exercise="train_step"
if passed(LanguageModel) and passed(train_step):
    tried = {threads: seconds(threads) for threads in sorted({1, 2, torch.get_num_threads()})}
    torch.set_num_threads(min(tried, key=tried.get))
    print("; ".join(f"{threads} threads: {1000 * s / 6:.0f} ms a batch" for threads, s in tried.items()))
    print(f"training runs on {torch.get_num_threads()}")

# %% [markdown]
# The learning rate rises during the first tenth of the training and then falls to 0 along half a cosine. It rises
# because AdamW scales its steps by running means of the gradients and of their squares, and at first these rest on
# only a few batches. It falls because large steps get near a minimum quickly and then keep jumping over it. Progress
# is measured by the clock and not in steps, so a slow machine also stops after a minute, but has learned less. At
# seven moments the loop notes the losses and lets the model write 60 characters, always after the same words and with
# the same draws. That costs a few seconds of the minute.

# %% role="payoff" exercise="train_step"
if passed(LanguageModel) and passed(train_step) and passed(generate):
    def write(temperature=0.7, length=240):
        start = torch.tensor([[number_of[character] for character in "If the object is "]])
        numbers = generate(model, start, length, 63, temperature, torch.Generator().manual_seed(1))  # 63 of 64: see below
        return "".join(characters[number] for number in numbers[0])

    def note(mean):
        """Keeps and prints how far the training is: the losses, and what the model writes now."""
        state["history"].append((state["step"], mean, held_loss(model)))
        sample = write(length=60)[17:].replace("\n", "↵")
        state["samples"].append(f"step {state['step']:5,d}, held-out {state['history'][-1][2]:.2f}:  {sample}")
        print(state["samples"][-1])

# %% role="payoff" exercise="train_step"
if passed(LanguageModel) and passed(train_step) and passed(generate):
    def train_on(clock, peak=4e-3):
        """Trains for `clock` seconds, takes notes at the moments below, and once more at the end."""
        meter, moments = figures.language_model.Meter("Training", clock, "second"), [0, 1 / 32, 1 / 8, 1 / 4, 1 / 2, 3 / 4]
        started, mean = time.perf_counter(), None
        try:
            while (way := (time.perf_counter() - started) / clock) < 1:
                for group in optimizer.param_groups:
                    group["lr"] = peak * min(way / 0.1 + 0.02, 0.5 + 0.5 * math.cos(math.pi * way))
                loss = train_step(model, optimizer, batch())
                mean = loss if mean is None else 0.95 * mean + 0.05 * loss
                state["step"] += 1
                if moments and way >= moments[0]:
                    moments.pop(0)
                    note(mean)
                if state["step"] % 10 == 1:
                    meter.show(int(way * clock), mean, way * clock)
            meter.show(clock, mean, clock)
        except KeyboardInterrupt:
            print("Stopped early; what was learned is kept.")
        note(mean)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), **state}, kept)

# %% [markdown]
# The next cell trains for a minute and leaves a *checkpoint*, a file with what was learned, beside your progress record. Interrupting the
# kernel (the square in the toolbar) stops it early and keeps what was learned. Run the cell again and it reads the checkpoint instead;
# `train_on(30)` in a new cell goes on from there. `weights_only=True` reads tensors and numbers from the file and runs no code of it.
# (Before torch 2.6 a crafted file could get around that: CVE-2025-32434. Open no stranger's checkpoint with an older version.)

# %% [markdown]
# @predict
#
# After a minute, what will the held-out loss be, between 4.62 (knowing nothing) and the bigram table's {{ bigram:.2f }}, or below?
# And what will the text look like: letters in a row, words, sentences, or working Python?
#
# @answer
#
# {{ state['history'][-1][2]:.2f; it < bigram - 0.5 }} nats after the {{ state['step']:,d; it > 200 }} steps of the
# course's own run, far below the
# table: like a choice among {{ math.exp(state['history'][-1][2]):.1f; it < 7 }} equally likely characters. The text has words,
# mostly real ones, and the look of sentences and of code. It means nothing, and no line of its Python is likely to run.
#
# @wrong
#
# If you said near 0: no model can get there. Text itself has an *entropy*: a reader who knows everything about it is still surprised
# by what the author chose. The floor of this loss is that entropy, and nobody knows it exactly. If you said above 2.4, you expect
# attention to do no better than one character of context.

# %% role="payoff" exercise="generate"
if passed(LanguageModel) and passed(train_step) and passed(generate):
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.01)
    state, kept = {"step": 0, "history": [], "samples": []}, figures.language_model.checkpoint()
    if kept.is_file():
        found = torch.load(kept, weights_only=True)
        model.load_state_dict(found.pop("model"))
        optimizer.load_state_dict(found.pop("optimizer"))
        state |= found
        print(*state["samples"], sep="\n")
    else:
        train_on(60)

# %% role="payoff" exercise="generate"
if passed(LanguageModel) and passed(train_step) and passed(generate):
    figures.language_model.learned(state["history"], len(characters), bigram)
    print(write())
    if state["history"][-1][2] > 1.5:
        print("--- a slow or busy machine: train_on(60) in a new cell goes on from here")

# %% [markdown]
# Read the samples above the figure from top to bottom. Noise comes first, then spaces and the frequent letters, then
# short words. Longer words and whole phrases come last, and on a slow machine a minute may not be enough for them. The
# curves of training text and held-out text lie close together, so the model has not learned its text by heart; a
# minute is too short for that. It has no idea what an object is. What it has learned is the distribution of the next
# character.
#
# ## What attention is worth
#
# The table of pairs knows one character; the model sees up to 63. But it has more than attention: embeddings,
# normalization and a wide network for each token. Could these have done it alone? An *ablation* takes one part out
# and trains again. Here zeros stand in place of what attention returns. Width, initialization, optimizer and batches
# stay as they were; 150 steps at the highest learning rate of the minute are enough to see how it ends.

# %% role="payoff" exercise="generate"
if passed(LanguageModel) and passed(train_step) and passed(generate):
    class Nothing(nn.Module):
        """In place of attention: adds nothing to any token."""

        def forward(self, x):
            return torch.zeros_like(x)

    torch.manual_seed(12)
    ablated, without = LanguageModel(len(characters), d_model=128, num_heads=4, num_layers=2, max_len=64), {}
    for block in ablated.blocks:
        block.attn = Nothing()
    its_optimizer = torch.optim.AdamW(ablated.parameters(), lr=4e-3, betas=(0.9, 0.95), weight_decay=0.01)
    for step in range(1, 151):
        train_step(ablated, its_optimizer, batch())
        if step in (50, 150):
            without[step] = held_loss(ablated)

# %% role="payoff" exercise="generate"
if passed(LanguageModel) and passed(train_step) and passed(generate):
    near = min(state["history"], key=lambda noted: abs(noted[0] - 150))  # of the minute's notes, the one nearest to 150 steps
    print("held-out loss  without attention: " + ", ".join(f"{loss:.2f} after {step} steps" for step, loss in without.items()))
    print(f"               with attention:    {near[2]:.2f} after {near[0]} steps, {state['history'][-1][2]:.2f} at the end")
    print(f"               counting pairs:    {bigram:.2f}")
    assert bigram - 0.02 < without[150] < bigram + 0.15

# %% [markdown]
# Without attention no character reaches another. Each position sees its own character and its place in the window, and
# the place says nothing, since windows begin anywhere in the text. So all that this model can learn is what the table
# of pairs counts. After 150 steps it is still {{ without[150] - bigram:.2f }} nats above the table; in a run of 1,000
# steps, which we made once, it ended level with it. The {{ bigram - state['history'][-1][2]:.2f }} nats by which the
# full model beats the table can't be had without attention.
#
# How sure should a writer be? The same model, at three temperatures:

# %% role="payoff" exercise="generate"
if passed(LanguageModel) and passed(train_step) and passed(generate):
    for temperature in (0, 0.7, 1.5):
        print(f"--- temperature {temperature}\n{write(temperature, 160)}\n")

# %% [markdown]
# At temperature 0 the text tends to fall into a loop, since the same characters in the window always continue in the same way. At 1.5 it
# spells badly, because a flattened softmax gives wrong letters a larger share. In between the text varies and keeps more of its words.

# %% [markdown]
# ## One position that never learned
#
# The model has 64 positions, and `write` feeds it the last 63 characters. Why not all 64? Here is the surprise about the next
# character at the last two positions, on held-out text:

# %% role="payoff" exercise="generate"
if passed(LanguageModel) and passed(train_step) and passed(generate):
    longer = held[: 256 * 65].view(256, 65)
    with torch.no_grad():
        logits = model(longer[:, :64]).transpose(1, 2)
    surprise = torch.nn.functional.cross_entropy(logits, longer[:, 1:], reduction="none").mean(dim=0)
    print(f"position 62: {surprise[62]:.2f} nats\nposition 63: {surprise[63]:.2f} nats")

# %% [markdown]
# A window of 64 characters asks 63 questions: nobody asks what follows the last one. So the gradient of the last row
# of `position` was always zero, and apart from a little weight decay the row is still the random vector it started
# as. At position 63 the surprise is {{ surprise[63]:.2f; it > surprise[62] + 0.5 }} nats instead of {{ surprise[62]:.2f }}. With 64 in
# `write`, the first 64 characters would read well, and every later one would be drawn at that untrained position. Try
# it. Published code avoids this by cutting windows that are one token longer than what the model reads.

# %% [markdown]
# ## What the heads look at
#
# The weights are recomputed from each block's `qkv`. We check that they reproduce what the block's attention returns,
# so that the picture shows the weights that the model really used. Then we ask at which distance each head looks
# most.

# %% role="given"
def weights_of(attention, x, num_heads):
    """(H, T, T): the weights of a lesson 09 attention on x (1, T, d); raises where they do not explain its output."""
    t = x.shape[1]
    q, k, v = (part.unflatten(-1, (num_heads, -1)).transpose(1, 2) for part in attention.qkv(x).chunk(3, dim=-1))
    scores = q @ k.mT / math.sqrt(q.shape[-1]) + torch.full((t, t), -torch.inf).triu(1)
    weights = torch.softmax(scores, dim=-1)
    again = (weights @ v).transpose(1, 2).flatten(2) @ attention.proj.weight.T
    assert torch.allclose(again, attention(x), rtol=1e-3, atol=1e-4)
    return weights[0]

# %% role="payoff" exercise="generate"
if passed(LanguageModel) and passed(train_step) and passed(generate):
    passage = text[(at := text.find("must be an iterable")) : at + 24]
    x, maps = model.token(torch.tensor([[number_of[c] for c in passage]])) + model.position(torch.arange(24)), []
    with torch.no_grad():
        for part in model.blocks:
            maps.append(weights_of(part.attn, part.ln1(x), num_heads=4))
            x = part(x)
    means = [[[head.diagonal(-back).mean().item() for back in range(12)] for head in block] for block in maps]
    favourites = [[(row.index(max(row)), max(row)) for row in block] for block in means]
    figures.language_model.heads([block.numpy() for block in maps], passage, favourites)

# %% [markdown]
# Some heads often look at the character just before, which would help with spelling; others spread over the word or
# look for its beginning. Nobody assigned these roles, and they differ from run to run. A picture of weights shows
# where information may come from, not what is done with it (Jain and Wallace 2019).
#
# ## What we keep
#
# - The loss of a language model is its mean surprise −ln p about the next token. Knowing nothing costs ln V.
# - Logits at position t are about token t + 1: the shift is where most wrong losses come from.
# - A baseline first: a table of pairs costs a second. Without attention the same network gets no further than that table.
# - A step: clear, backward, clip all gradients together, step once, return a float.
# - One batch, learned by heart, tests the loop before an hour is spent on it.
#
# | what | shape |
# |---|---|
# | ids | (B, T) |
# | token + position vectors, and every block | (B, T, d_model) |
# | logits | (B, T, vocabulary) |
# | loss | a single number, the mean over B · (T − 1) questions |
#
# Lesson 11 takes the checkpoint that you have just trained and asks where the time goes while the model writes.

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Everything before it becomes one working thing, and the learner owns each part of it: loss, model, step, loop, writing. The lesson
# also sets a habit: a baseline and an overfitted batch before a training.
#
# ## Cut for 60 minutes
#
# Give `LanguageModel` (show the solution) and leave out the ablation and the heads. Bigram, loss, step and the minute of
# training stay. Start the training cell before you explain `generate`.
#
# ## Cut for 90 minutes
#
# All exercises; the heads and the temperatures as a look together at the end.
#
# ## Mistakes to expect
#
# - next_token_loss NL1: Which token do the logits at position 0 speak about, and where in `ids` does it stand?
# - next_token_loss NL7: After flattening, which token follows the last one of row 0?
# - next_token_loss NL5: What does `F.cross_entropy` do with its first argument before it takes a logarithm?
# - LanguageModel LM6: What does `len(list(model.parameters()))` say, and how many did you expect?
# - LanguageModel LM3: Who has normalized the numbers that `head` reads?
# - LanguageModel LM1: If you shuffle the characters of a context, what changes for your model?
# - train_step TR1: What is in `.grad` when `backward()` begins?
# - train_step TR3: When does somebody read the gradients that you have clipped?
# - train_step TR11: What does the list of losses keep alive after a thousand steps?
# - generate CM53: In which mode was the model before you were called?
# - generate CM51: How many positions does the model have vectors for?
#
# ## To discuss
#
# - A colleague reports 0.9 nats a character on the same text, another one 2.1 on tokens of words. Who is better? A good answer asks
#   for the unit: nats a *token* depend on how much text a token holds, so only nats a character (or a byte) compare; and it asks what
#   was held out.
# - Why does the loss not go to 0 with more training? A good answer separates the entropy of the text, which no model can go below on
#   text it has not seen, from learning the training text by heart, where the training loss falls and the held-out loss rises.
#
# ## On paper
#
# A model with the vocabulary {a, b} reads "abba". At each position it gives the next token these probabilities of being *b*: after
# "a" 0.5, after "ab" 0.8, after "abb" 0.25. Compute the three surprises and the loss. *Solution:* b has 0.5: 0.693; b has 0.8: 0.223;
# a has 0.75: 0.288. Mean 0.401 nats, less than ln 2 = 0.693 of one who knows nothing.
