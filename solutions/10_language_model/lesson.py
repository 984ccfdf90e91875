# %% [markdown]
# # 10 · A language model
#
# **Which parts, put together, learn to write from nothing but text?**
#
# **Before this lesson:** lesson 02 (softmax and temperature), lesson 05 (a training loop in PyTorch), lesson 06 (the causal mask) and
# lesson 09 (the block).
#
# A **language model** answers one question again and again: which token comes next? Nobody labels anything for it. Every
# text is full of such questions, and the answer to each comes right after it.
#
# In this lesson you write one with 430,000 parameters: its loss, its layers, its training step, and the loop with which it
# writes. It trains for about a minute on a laptop, on the reference manual of Python. It starts with noise and ends with
# something that looks like that manual, and means nothing.

# %% role="given"
import math
import time

import torch
from torch import nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution
from grader.figures import meter

# %% [markdown]
# ## What a prediction costs
#
# The model gives a probability to every token that could come next. Then the true next token arrives. How good was the
# prediction? All that counts is the probability p that the true token had received. Its cost is −ln p, which is also
# called the **surprise**. It is 0 if the model was certain and right, and it grows without limit as p goes to 0. Its
# unit is the **nat**, for the natural logarithm.

# %% role="demo"
figures.language_model.surprise({"a coin": 1 / 2, "a die": 1 / 6, "one of 102 characters": 1 / 102})

# %% [markdown]
# Why a logarithm? Because it lets us add. The probability of a whole text is the product of the probabilities of its
# tokens, each given those before it, and the logarithm turns this product into a sum.
#
# The mean of −ln p over all tokens is called **cross entropy**, and it is the loss with which language models are
# trained. Papers often print e to the power of the loss, the **perplexity**, which is easier to picture. A
# perplexity of 6 means: as unsure as before the roll of a fair die.
#
# Our text is an excerpt of Python's own language reference (© Python Software Foundation; its notice and license lie
# beside it in `solutions/shared/data`). The tokens are its single characters. Each gets a number, its *id*; all of them
# together are the **vocabulary**.

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
# @predict
#
# A model that knows nothing gives each of the 102 characters the same probability. What are its loss in nats and its
# perplexity?
#
# @answer
#
# −ln(1/102) = ln 102 = 4.62 nats, whatever comes, and a perplexity of 102. That is the line to beat.
#
# @wrong
#
# If you got 6.67: that is the logarithm to base 2, the same surprise counted in *bits*.

# %% [markdown]
# ## First a model without any attention
#
# Before a network is trained, try the simplest thing that could work. Here it is a **bigram** model: count how often
# every character comes right after every other, and divide each row of counts by its sum. A network is only worth its
# extra work if it predicts better. Every pair starts with a count of 1, because a probability of 0 would make the loss
# infinite.

# %% [markdown]
# @predict
#
# Knowing nothing costs 4.62 nats a character. What is the loss, on the held-out text, of a model that knows only the
# last character?
#
# - **A** about 4.3: one character says little
# - **B** about 2.4
# - **C** about 0.5: most characters follow from the one before
#
# @answer
#
# **B**: {{ bigram:.2f }} nats, a perplexity of {{ math.exp(bigram):.0f }}.
#
# @wrong
#
# In many rows of the table below, a few columns hold most of the probability; that speaks against A. Against C: after
# each space, almost any letter may begin a new word.

# %% role="demo"
counts = torch.ones(len(characters), len(characters))
counts.index_put_((train[:-1], train[1:]), torch.ones(cut - 1), accumulate=True)
follows = counts / counts.sum(dim=1, keepdim=True)  # row: a character; its entries: what comes next
alone = ((counts[number_of["q"], number_of["u"]] - 1) / (counts[number_of["q"]] - 1).sum()).item()
bigram, seen = (-follows[part[:-1], part[1:]].log().mean().item() for part in (held, train))

# %% role="demo"
figures.language_model.pairs(follows, characters, " etaonrisdlcuq.\n")
print(f"the bigram model: {bigram:.3f} nats a character on held-out text, {seen:.3f} on the training text")
assert 2.2 < bigram < 2.6

# %% [markdown]
# A table of 102 · 102 numbers has cut the loss by almost half, and it sees one character back and no further.
# (Without added counts, *u* after *q* would have {{ alone:.2f; it > 0.9 }} instead of
# {{ follows[number_of["q"], number_of["u"]]:.2f; 0.5 < it < 0.8 }}.)
#
# ## Many questions in one pass
#
# A row of T characters asks T − 1 questions, each with a longer context than the one before. A causal model answers all
# of them in one pass, because its output at a position knows nothing of later positions (lesson 06).
# A leak in the mask would be fatal: each answer is in the input, one place to the right.
#
# For each position the model returns one **logit** for each token of the vocabulary: a score before softmax. The
# logits at position t are compared with the id at t + 1. This **shift** is easy to get wrong, and no error tells.

# %% [markdown]
# @exercise next_token_loss
#
# `logits` (B, T, V), `ids` (B, T) integers, T ≥ 2 → a 0-d tensor: the cross entropy of the next tokens, in nats
#
# The logits at a position speak about the token after it. Every position that has a next token in its row is asked for it, and the
# result is the mean over all B · (T − 1) questions. Any way that is right for logits of ±10,000; a library's loss is fine.

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
# The logarithms of the bigram table's rows are logits, too. Your loss has to find the number from above.

# %% role="payoff" exercise="next_token_loss"
if passed(next_token_loss):
    logits = follows.log()[held][None]  # (1, N, vocabulary): what the table says after each character
    loss = next_token_loss(logits, held[None]).item()
    print(f"by indexing {bigram:.4f}, by your loss {loss:.4f}")
    assert abs(loss - bigram) < 1e-3

# %% [markdown]
# ## The model
#
# Here is the whole model, and five characters on their way through it (with seven of the 102 logits each, drawn by hand):

# %% role="demo"
figures.language_model.model_parts("If the", [number_of[c] for c in "If th"], d_model=128, vocabulary=len(characters))

# %% [markdown]
# From bottom to top: an id is only a number, so a table turns it into a vector, the token's **embedding**. The table
# is called the **embedding matrix**, and training changes it. Attention alone knows nothing of order (lesson 08), so a
# second table has an embedding for each position, and the two are added. Then come the blocks of lesson 09. Nothing has
# normalized the output of the last block, so a last LayerNorm does. A linear layer leads back to the vocabulary.
#
# The folded cell below has a block with lesson 09's names and shapes. Yours works just as well: paste your two classes
# into a cell below this one.

# %% role="given" tags=["hide-input"]
class CausalAttention(nn.Module):
    """Lesson 09's attention, with the axes named by einsum: b item, q query, k key, h head, d feature of a head."""

    def __init__(self, d_model, num_heads, max_len, dropout=0.0):
        super().__init__()
        self.num_heads, self.max_len, self.p = num_heads, max_len, dropout
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)
        self.register_buffer("future", torch.full((max_len, max_len), -torch.inf).triu(1), persistent=False)

    def forward(self, x):
        t = x.shape[1]
        if t > self.max_len:
            raise ValueError(f"T = {t} is longer than max_len = {self.max_len}")
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).unbind(dim=2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5 + self.future[:t, :t]
        weights = F.dropout(scores.softmax(dim=-1), self.p, self.training)
        return self.proj(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))


class TransformerBlock(nn.Module):
    """Lesson 09's block: attention between tokens, then a feed-forward network for each token, both pre-norm and residual."""

    def __init__(self, d_model, num_heads, max_len, dropout=0.0):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = CausalAttention(d_model, num_heads, max_len, dropout)
        self.mlp = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))

# %% [markdown]
# @exercise LanguageModel
#
# `LanguageModel(vocabulary, d_model, num_heads, num_layers, max_len)`; forward: `ids` (B, T) → logits (B, T, vocabulary)
#
# | attribute | what it is |
# |---|---|
# | `token`, `position` | an `nn.Embedding` of width d_model each, for the ids and for the positions 0 … max_len − 1 |
# | `blocks` | an `nn.ModuleList` or `nn.Sequential` of num_layers `TransformerBlock(d_model, num_heads, max_len)` |
# | `norm` | an `nn.LayerNorm` |
# | `head` | an `nn.Linear` without bias |
#
# T > max_len raises `ValueError`.

# %% role="exercise" exercise="LanguageModel"
class LanguageModel(nn.Module):
    """Logits for the token after each position, from the tokens up to it.

    vocabulary: how many different tokens there are. num_layers: how many blocks. max_len: the longest sequence that is accepted.
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
# At first the model knows nothing. Its loss should be near ln 102 = 4.62, and a little above it: its random logits favor
# some characters without reason, and false certainty costs more than doubt.

# %% role="payoff" exercise="LanguageModel"
if passed(LanguageModel) and passed(next_token_loss):
    torch.manual_seed(12)
    model = LanguageModel(len(characters), d_model=128, num_heads=4, num_layers=2, max_len=64)
    with torch.no_grad():
        first = next_token_loss(model(train[:640].view(10, 64)), train[:640].view(10, 64)).item()
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
    print(f"loss before any training {first:.2f}, ln 102 = {math.log(102):.2f}")
    assert math.log(102) < first < 6

# %% [markdown]
# ## One step of training
#
# A step moves all parameters a little, so that the loss on one batch falls. One unusual batch may have huge gradients and throw the
# model off course; **gradient clipping** guards against that: all gradients together are shrunk until their common norm is at most a
# limit. And a loss that is handed back as a tensor keeps its graph alive, so that a list of a thousand takes hundreds of megabytes.

# %% [markdown]
# @exercise train_step
#
# `model` an `nn.Module` with `model(ids)` → logits, `optimizer` one over all its parameters, `ids` (B, T), `clip` a number → a float
#
# One step on `next_token_loss` of these ids: gradients from before the call do not count, the norm of all gradients together is
# clipped to `clip`, the optimizer steps once. The loss before the step comes back as a number. The model's mode stays as it is.

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
# Before a long training, a test of two seconds finds many bugs: a model that is shown *one* batch again and again must learn
# it by heart. (It learns a leak or a wrong shift as well.)

# %% role="payoff" exercise="train_step"
if passed(next_token_loss) and passed(LanguageModel) and passed(train_step):
    torch.manual_seed(12)
    small = LanguageModel(len(characters), d_model=64, num_heads=4, num_layers=1, max_len=64)
    optimizer = torch.optim.AdamW(small.parameters(), lr=1e-2)
    losses = [train_step(small, optimizer, train[:256].view(4, 64)) for _ in range(60)]
    print("one batch of 256 characters, by heart:", "  ".join(f"{loss:.2f}" for loss in losses[::10]))
    assert losses[-1] < 1 < losses[0]

# %% [markdown]
# ## Writing
#
# A model that writes is **autoregressive**: it predicts the next token, appends it, and reads its own text to predict the
# one after that. It can always append the likeliest token (**greedy**), or draw one from the distribution. Then the **temperature** τ
# of lesson 02 comes in: logits are divided by τ before softmax. A small τ comes close to greedy, and a large one gives unlikely tokens
# more room.
#
# Three traps: the text may outgrow what the model can read; sampling during training must not change the model's mode; and a
# repeatable text needs a generator of its own, since other code draws from torch's, too.

# %% [markdown]
# @exercise generate
#
# `model(ids)` (B, T) → logits (B, T, vocabulary); `ids` (B, T) integers → (B, T + max_new_tokens), the given ids first
#
# The model sees the last `max_len` tokens at most. Temperature 0 takes the largest logit; any other draws one token for each row from
# softmax(logits / temperature). `generator` is a `torch.Generator`, or None for torch's global one; all randomness comes from it,
# by any method. During the call the model is in eval mode; when the call returns, `model.training` is what it was before. No graph
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
# The model reads 64 characters, so windows have 65: the last is only an answer. Your loss expects a row of logits for it, too, and
# ignores that row, so `Reader` appends zeros.

# %% role="payoff" exercise="train_step"
if passed(next_token_loss) and passed(LanguageModel) and passed(train_step) and passed(generate):
    draws = torch.Generator().manual_seed(12)

    def batch(count=16):
        starts = torch.randint(len(train) - 65, (count, 1), generator=draws)
        return train[starts + torch.arange(65)]

    class Reader(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, window):  # (B, 65) → (B, 65, vocabulary)
            return F.pad(self.model(window[:, :-1]), (0, 0, 0, 1))

# %% [markdown]
# In the folded cell, `held_loss` measures the loss on the held-out text, `write` lets a model go on from *If the object
# is*, at temperature 0.7 and always with the same draws, and `note` prints both. The cell also times a step, with one
# thread and with more, takes the faster way, and sets `steps` to about a minute's worth (400 to 2,500).

# %% role="payoff" exercise="train_step" tags=["hide-input"]
# Measures held-out text, lets a model write, and times a step
if passed(next_token_loss) and passed(LanguageModel) and passed(train_step) and passed(generate):
    windows = held[: len(held) // 65 * 65].view(-1, 65)

    @torch.no_grad()
    def held_loss(model):
        return sum(next_token_loss(Reader(model)(part), part).item() * len(part) for part in windows.split(64)) / len(windows)

    def write(model, temperature=0.7, length=240):
        start = torch.tensor([[number_of[character] for character in "If the object is "]])
        numbers = generate(model, start, length, 64, temperature, torch.Generator().manual_seed(1))
        return "".join(characters[number] for number in numbers[0])

    def note(model, losses):
        """(step, mean loss of the last batches, held-out loss, a line with a sample); prints the line."""
        now, sample = held_loss(model), write(model, length=60)[17:].replace("\n", "↵")
        line = f"step {len(losses):5,d}, held-out loss {now:.2f}:  {sample}"
        print(line)
        return len(losses), sum(losses[-20:]) / len(losses[-20:]), now, line

    def seconds(threads, count=6):
        """What one step takes on so many threads: forward and backward, without the optimizer's part."""
        torch.set_num_threads(threads)
        started = time.perf_counter()
        for _ in range(count):
            next_token_loss(Reader(model)(window := batch()), window).backward()
        return (time.perf_counter() - started) / count

    tried = {threads: seconds(threads) for threads in sorted({1, 2, torch.get_num_threads()})}
    torch.set_num_threads(min(tried, key=tried.get))
    steps = min(2500, max(400, round(50 / min(tried.values()))))
    model.zero_grad()
    print(f"{steps:,} steps of {1000 * min(tried.values()):.0f} ms on {torch.get_num_threads()} of the threads here")

# %% [markdown]
# Now the loop. The **learning rate** says how far a step goes. In the first tenth of the training it rises (the **warm-up**): AdamW, a
# variant of lesson 04's Adam that also shrinks the weights, divides by running means (`betas`) that at first rest on few batches.
# Then it falls to 0 along half a cosine, so that the model can settle.

# %% role="payoff" exercise="train_step"
if passed(next_token_loss) and passed(LanguageModel) and passed(train_step) and passed(generate):
    def train_on(model, steps, peak=4e-3, warm_up=0.1, count=16):
        """Trains a model. To end early, press the square in the toolbar: what was learned is kept."""
        optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.01)
        losses, history = [], []
        for number, step in enumerate(meter.training_steps("training", steps)):
            way = number / steps
            optimizer.param_groups[0]["lr"] = peak * min((way + 0.002) / warm_up, 0.5 + 0.5 * math.cos(math.pi * way))
            step.loss = train_step(Reader(model), optimizer, batch(count))
            losses.append(step.loss)
            if number in {0, steps // 32, steps // 8, steps // 4, steps // 2, 3 * steps // 4}:
                history.append(note(model, losses))
        return [*history, note(model, losses)]

# %% [markdown]
# The next cell trains and leaves a **checkpoint**, a file with the parameters, beside your progress record; later lessons
# use it. Run the cell again and it reads the file instead. (`weights_only=True` runs no code of the file.)

# %% [markdown]
# @predict
#
# After a minute, will the held-out loss be above the bigram table's {{ bigram:.2f }} or below? And what will the text look
# like: letters in a row, words, sentences, or working Python?
#
# @answer
#
# {{ final:.2f; it < bigram - 0.2 }} nats after {{ history[-1][0]:,d; it > 100 }} steps of the course's own run: a perplexity of
# {{ math.exp(final):.1f; it < 9 }}. In 400 steps the text gets short words at best, in 2,000 many real words and the look of
# sentences and code.
#
# @wrong
#
# No model gets near 0: even a perfect reader cannot know which word the author will choose.

# %% role="payoff" exercise="generate"
if passed(next_token_loss) and passed(LanguageModel) and passed(train_step) and passed(generate):
    kept = figures.language_model.checkpoint()
    if kept.is_file():
        found = torch.load(kept, weights_only=True)
        model.load_state_dict(found["model"])
        history = found["history"]
        print(*(line for *_, line in history), sep="\n")
    else:
        history = train_on(model, steps)
        torch.save({"model": model.state_dict(), "history": history}, kept)
    final = history[-1][2]

# %% role="payoff" exercise="generate"
if passed(next_token_loss) and passed(LanguageModel) and passed(train_step) and passed(generate):
    figures.language_model.loss_curve(history, len(characters), bigram)
    print(write(model))

# %% [markdown]
# The held-out text is easier: even the bigram's loss is {{ seen - bigram:.2f; it > 0.1 }} lower there. So compare the gains over the
# bigram: {{ seen - history[-1][1]:.2f; it > 0.2 }} nats on the training text, {{ bigram - final:.2f; it > 0.2 }} on the held-out
# text. Had the model learned the training text by heart, the first gain would be far larger.
#
# What is left to learn? The folded cell asks for each character of a held-out sentence, with the 64 before it:

# %% role="payoff" exercise="generate" tags=["hide-input"]
# How likely the model finds each character of a held-out sentence
if passed(next_token_loss) and passed(LanguageModel) and passed(train_step) and passed(generate):
    begin = text.index("Some objects contain references to other objects", cut)
    sentence = ids[begin - 64 : begin + 90]
    with torch.no_grad():
        logits = model(sentence[:-1].unfold(0, 64, 1))[:, -1]  # (90, vocabulary)
        every = F.cross_entropy(model(windows[:, :-1]).transpose(1, 2), windows[:, 1:], reduction="none")  # all held-out text
    figures.language_model.each_character(text[begin : begin + 90], F.cross_entropy(logits, sentence[64:], reduction="none"))

    places = [0]  # of each held-out character in its word, the first letter's is 1; 0 where it is no letter
    for character in text[cut:]:
        places.append(places[-1] + 1 if character.isalpha() else 0)
    places = torch.tensor(places[1 : windows.numel() + 1]).view_as(windows)[:, 1:]
    of_letter = {place: every[places == place].mean().item() for place in (1, 5)}

# %% [markdown]
# In all held-out text a word's first letter costs {{ of_letter[1]:.1f; it > 2.5 }} nats on average, its fifth
# {{ of_letter[5]:.1f; it < 0.6 * of_letter[1] }}. The model has learned to spell; which word comes next is the hard question.
#
# Now change the loop, and predict first. Train `new = LanguageModel(len(characters), 128, 4, 2, 64)` by
# `train_on(new, 400, peak=4e-4)`. What happens with `peak=0.4`, without warm-up (`warm_up=0.001`), or with batches of
# `count=4` windows? A further part has answers.
#
# How sure should a writer be? The same model, at three temperatures:

# %% role="payoff" exercise="generate"
if passed(next_token_loss) and passed(LanguageModel) and passed(train_step) and passed(generate):
    for temperature in (0, 0.7, 1.5):
        print(f"--- temperature {temperature}\n{write(model, temperature, 160)}\n")

# %% [markdown]
# At temperature 0 the text tends to fall into a loop: the same context always continues in the same way. At 1.5 it spells
# badly, because wrong letters get a larger share.

# %% [markdown]
# ## Further: the loop, changed
#
# You changed the training loop in four ways. This part says what we found, for all who want to compare.

# %% [markdown]
# We trained for 400 steps, with five seeds each. As the lesson has it, the held-out loss ends at 1.91 to 1.94 nats.
#
# | change | held-out loss |
# |---|---|
# | `peak=4e-4` | 2.41 to 2.43 |
# | `peak=0.4` | 2.89 to 3.06 |
# | `warm_up=0.001` | 1.89 to 1.92 |
# | `count=4` | 2.29 to 2.32 |
#
# With a tenth of the learning rate the model learns too slowly: after 400 steps it is not even below the bigram table. With
# a hundred times as much, every step goes too far. The loss gets stuck high above the table, even though the gradients are
# clipped: AdamW divides by their size, so clipping hardly limits its steps.
#
# Without warm-up the loss is a little *lower*, with each of the five seeds. A model as small as this one does well without, and no
# step of its training is spent on a low rate.
#
# Batches of 4 windows in place of 16 make each step noisier. They also hold a quarter of the text, so the comparison is not fair:
# a step costs less, too. Try four times as many of them.

# %% [markdown]
# ## Further: top-k and top-p
#
# For those who know these names from the settings of a chat.

# %% [markdown]
# At temperature 1.5 the text was spelled badly. Each wrong character has a small share, but there are dozens of them, and together they
# are drawn often. Two cuts keep only likely ones. **Top-k sampling** (Fan et al. 2018) draws from the k largest logits, however
# sure the model is. **Top-p sampling**, or nucleus sampling (Holtzman et al. 2020), draws from the fewest tokens whose
# shares add up to p: from one where the model is sure, from many where it is not. What is cut gets the logit −∞, like a hidden
# key in lesson 06.

# %% role="demo"
def top_p(logits, p):
    """logits (B, V), with −∞ for all but the likeliest tokens, the fewest that together have the share p."""
    logits, order = logits.sort(dim=-1, descending=True)
    shares = torch.softmax(logits, dim=-1)
    enough = shares.cumsum(dim=-1) - shares >= p  # what stands before it already has the share
    return logits.masked_fill(enough, -math.inf).gather(-1, order.argsort(dim=-1))


class TopP(nn.Module):
    """A language model that knows nothing but its likeliest tokens."""

    def __init__(self, model, temperature, p):
        super().__init__()
        self.model, self.temperature, self.p = model, temperature, p

    def forward(self, ids):
        logits = self.model(ids)[:, -1] / self.temperature
        return top_p(logits, self.p)[:, None] * self.temperature

# %% role="payoff" exercise="generate"
if passed(next_token_loss) and passed(LanguageModel) and passed(train_step) and passed(generate):
    for start in ("If the objec", "If the object is "):
        with torch.no_grad():
            logits = model(torch.tensor([[number_of[character] for character in start]]))[:, -1]
        left = top_p(logits, 0.5).isfinite().sum()
        print(f"after {start!r} it draws from {left} of {len(characters)} characters")
    print(write(TopP(model, 1.5, 0.5), 1.5, 160))

# %% [markdown]
# The temperature is 1.5, as above, and yet most words look like words: this is p = 0.5. Chats use larger p, and larger models. Lesson
# 16's cache fits either cut: only what is drawn from changes, not what the model computes.
#
# Sources of this part: Fan, Lewis and Dauphin 2018, *Hierarchical neural story generation*; Holtzman et al. 2020, *The curious case of
# neural text degeneration*.

# %% [markdown]
# ## Further: what attention is worth
#
# The table of pairs knows one character; the model sees up to 64. But it has more than attention. Here we train it once
# with its attention and once without, for readers who want to know which part earned the lower loss.

# %% [markdown]
# Embeddings, normalization and a wide feed-forward network: could these have done it alone? An **ablation** takes one
# part out and trains again. Here zeros stand in place of what attention returns. Everything else stays as it was. Both
# models train for 150 steps on batches of 32 windows, at a learning rate that does not change.

# %% role="payoff" exercise="generate"
if passed(next_token_loss) and passed(LanguageModel) and passed(train_step) and passed(generate):
    class Nothing(nn.Module):
        """In place of attention: adds nothing to any token."""

        def forward(self, x):
            return torch.zeros_like(x)

    def loss_after(title, attention, steps=150):
        torch.manual_seed(12)
        other = LanguageModel(len(characters), d_model=128, num_heads=4, num_layers=2, max_len=64)
        if not attention:
            for block in other.blocks:
                block.attn = Nothing()
        optimizer = torch.optim.AdamW(other.parameters(), lr=4e-3, betas=(0.9, 0.95), weight_decay=0.01)
        for step in meter.training_steps(title, steps):
            step.loss = train_step(Reader(other), optimizer, batch(32))
        return held_loss(other)

    without = loss_after("without attention", attention=False)

# %% role="payoff" exercise="generate"
if passed(next_token_loss) and passed(LanguageModel) and passed(train_step) and passed(generate):
    same = loss_after("with attention", attention=True)
    print(f"held-out loss: with attention {same:.3f}, without {without:.3f}, counting pairs {bigram:.3f}")

# %% [markdown]
# Without attention no character reaches another. Each position sees its own character and its place in the window, and
# the place says nothing, since windows begin anywhere in the text. So all that this model can learn is what the table
# of pairs counts. Here it ends {{ without - bigram:.3f; 0 < it < 0.15 }} nats above the table, and the same model with attention
# is already {{ bigram - same:.3f; it > 0.2 }} nats below it. We trained both with five seeds: without attention the loss was 0.02
# to 0.05 above the table, with attention about 0.4 below.

# %% [markdown]
# ## Further: how far it is to GPT-2
#
# GPT-2 is built like the model that you have just trained. This part says what differs, for those who want to load its weights.

# %% [markdown]
# GPT-2 (Radford et al. 2019, section 2.3) has the same parts in the same order, only more and wider ones. If you load its
# weights, you meet small differences: biases in the attention projections, tanh-GELU, and one weight for embedding matrix and
# output layer (Press and Wolf 2017). Its tokens are pieces of words, about 50,000 of them. So its loss cannot be compared
# with ours, unless the loss of a whole text is divided by its number of characters.
#
# Our vocabulary is small, and nine tenths of the parameters are in the blocks. In the smallest GPT-2, the embedding matrix takes a
# third:

# %% role="demo"
layers, width, tokens, places = 12, 768, 50_257, 1024  # the smallest GPT-2
blocks = layers * (12 * width**2 + 13 * width)  # weights, then biases and norms
tables = tokens * width, places * width
total = blocks + sum(tables) + 2 * width
print(f"{total:,} parameters: blocks {blocks / total:.0%}, embedding matrix {tables[0] / total:.0%}, positions {tables[1] / total:.1%}")
assert total == 124_439_808

# %% [markdown]
# ## What we keep
#
# - The loss is the mean of −ln p over the next tokens. Knowing nothing costs ln V; perplexity is e to the loss.
# - Logits at position t are about token t + 1. A window of 65 tokens asks 64 questions.
# - Beat a simple baseline before you trust a network. A loop that cannot learn one batch by heart has a bug.
#
# | what | shape |
# |---|---|
# | ids | (B, T) |
# | token + position embeddings, and every block | (B, T, d_model) |
# | logits | (B, T, vocabulary) |
# | loss | a single number, the mean over B · (T − 1) questions |
#
# Lesson 11 asks where the time goes.

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
# Give `LanguageModel` and `generate` (show the solutions). Bigram, loss, step and the minute of training stay. Start the training
# cell before you explain how a model writes.
#
# ## Cut for 90 minutes
#
# All exercises; the temperatures as a look together at the end. Let each row of the room change the training loop in another way.
#
# ## Mistakes to expect
#
# - next_token_loss NL1: Which token do the logits at position 0 speak about, and where in `ids` does it stand?
# - next_token_loss NL7: After flattening, which token follows the last one of row 0?
# - next_token_loss NL5: What does `F.cross_entropy` do with its first argument before it takes a logarithm?
# - LanguageModel LM6: What does `len(list(model.parameters()))` say, and how many did you expect?
# - LanguageModel LM3: Who has normalized the numbers that `head` reads?
# - train_step TR1: What is in `.grad` when `backward()` begins?
# - train_step TR5: In which direction does the step go, if each gradient is cut off by itself?
# - generate CM42: In which mode was the model before you were called?
# - generate CM52: How many positions does the model have vectors for?
#
# ## To discuss
#
# - A colleague reports 0.9 nats a character on the same text, another one 2.1 on tokens of words. Who is better? A good answer asks
#   for the unit: nats a *token* depend on how much text a token holds, so only nats a character (or a byte) compare; and it asks what
#   was held out.
# - Why does the loss not go to 0 with more training? A good answer separates the entropy of the text, which no model can go below on
#   text it has not seen, from learning the training text by heart, where the training loss falls and the held-out loss rises. The
#   figure of single characters shows where the entropy sits: at the beginnings of words, which nobody can know.
#
# ## On paper
#
# A model with the vocabulary {a, b} reads "abba". At each position it gives the next token these probabilities of being *b*: after
# "a" 0.5, after "ab" 0.8, after "abb" 0.25. Compute the three surprises and the loss. *Solution:* b has 0.5: 0.693; b has 0.8: 0.223;
# a has 0.75: 0.288. Mean 0.401 nats, less than ln 2 = 0.693 of one who knows nothing.
