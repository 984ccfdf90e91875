# %% [markdown]
# # 18 · Reading heads
#
# **What does a head do in a trained model, and how do we find out?**
#
# **Before this lesson:** lesson 07 (heads), lesson 09 (the block) and lesson 10 (the language model, its loss).
#
# The course began with a sentence: "The animal didn't cross the street because it was too tired." What is *it*? A
# famous picture from 2017 answers with a head that looks from *it* to *animal*. Such pictures are easy to make and easy to
# believe. Here you make them, and ask what each shows.

# %% role="given" tags=["hide-input"]
import functools
import itertools
import math
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% [markdown]
# ## The token before
#
# The simplest thing that a head can do is to look one token back. Do trained models have such heads? A
# **score** lets us compare hundreds. Take these weights:
#
# | | token 0 | token 1 | token 2 |
# |---|---|---|---|
# | **token 0** | 1 | 0 | 0 |
# | **token 1** | 0.9 | 0.1 | 0 |
# | **token 2** | 0.2 | 0.7 | 0.1 |
#
# Token 1 gives 0.9 to the token before it, token 2 gives 0.7, and token 0 has none. The score is their mean, 0.8.

# %% [markdown]
# @exercise previous_token_score
#
# `weights` (B, H, T, T), causal, T ≥ 2 → (H,)
#
# The mean weight of each head on the token just before, over the batch and over all tokens that have one.

# %% role="exercise" exercise="previous_token_score"
def previous_token_score(weights: torch.Tensor) -> torch.Tensor:
    """The mean weight of each head on the token just before.

    weights: (B, H, T, T), causal, T ≥ 2. Returns: (H,), on the device of weights.
    """
    # region solution
    if weights.shape[-1] < 2:
        raise ValueError("a single token has none before it: T is at least 2")
    back = weights.diagonal(offset=-1, dim1=-2, dim2=-1)  # (B, H, T − 1)
    return back.mean(dim=(0, -1))
    # endregion

# %% role="check" exercise="previous_token_score"
check(previous_token_score)

# %% [markdown]
# Now the models, in three folded cells. `small` is lesson 10's, two blocks of four heads, with your checkpoint;
# `small.maps(ids)` gives the weights of each block. `real` is lesson 17's SmolLM2-135M-Instruct, 30 layers of 9 heads;
# head 0 of layer 16 we call 16.0. `read(real, ids)` runs it with a **hook**, a place where we can look at what the heads
# have found, or change it; `without=[(16, 0)]` silences 16.0. Without the real weights, `measured` returns stored
# results.

# %% role="given" tags=["hide-input"]
class CausalHeads(nn.Module):
    """Lesson 09's attention, by its names. Of its last call it keeps x and the weights (B, H, T, T)."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.proj = nn.Linear(d_model, 3 * d_model, bias=False), nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax((q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(future, -torch.inf), dim=-1)
        self.x, self.weights = x.detach(), weights.detach()
        return self.proj((weights @ v).transpose(1, 2).flatten(2))


class Small(nn.Module):
    """Lesson 10's model, by its names. maps: ids (B, T) → the weights (B, H, T, T) of each block."""

    def __init__(self, vocabulary, d=128, num_heads=4, layers=2, max_len=64):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, d), nn.Embedding(max_len, d)
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "ln1": nn.LayerNorm(d), "attn": CausalHeads(d, num_heads), "ln2": nn.LayerNorm(d),
            "mlp": nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)),
        }) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)

    def forward(self, ids):
        x = self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = x + block.attn(block.ln1(x))
            x = x + block.mlp(block.ln2(x))
        return self.head(self.norm(x))

    def maps(self, ids):
        self(ids)
        return [block.attn.weights for block in self.blocks]


def next_token_loss(logits, ids):
    """Lesson 10's loss: the mean surprise, in nats, about the token that follows each position."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())

# %% role="given" tags=["hide-input"]
def rms(x, weight, eps):
    return x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + eps) * weight


def turned(x, base):
    """RoPE in neighboring pairs. x: (..., T, d)."""
    places, pairs = torch.arange(x.shape[-2], device=x.device), torch.arange(0, x.shape[-1], 2, device=x.device)
    angles = places[:, None] * base ** (-pairs / x.shape[-1])
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=-1).flatten(-2)


def attend(of, y, c):
    """The weights (B, H, T, T) and values (B, H, T, d_head) of a layer whose input, normalized, is y (B, T, d_model)."""
    q, k, v = (F.linear(y, of(f"attn.w_{name}")).unflatten(-1, (-1, c.d_model // c.heads)).transpose(1, 2) for name in "qkv")
    k, v = (each.repeat_interleave(c.heads // c.kv_heads, dim=1) for each in (k, v))
    scores = turned(q, c.base) @ turned(k, c.base).mT / math.sqrt(q.shape[-1])
    future = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool, device=y.device).triu(1)
    return torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1), v


def read(model, ids, without=(), instead=None, layers=None, x=None, hook=None):
    """Reads ids (B, T). without: (layer, head) pairs to silence. instead: (L, H, d_head), what they find then, or 0.

    layers: a range of them, by default all; where it does not begin at 0, x is what stands in front of it.
    hook(layer, found): gets what the heads of a layer have found (B, H, T, d_head), before the output projection, and may change it.
    Returns weights (B, L, H, T, T), values, found = weights @ values (B, L, H, T, d_head), and x (B, T, d_model) at the end.
    """
    w, c, seen = model.weights, model.config, []
    heads.must_exist(without, c.layers, c.heads)
    x = w["token.weight"][ids] if x is None else x
    for layer in layers or range(c.layers):
        of = lambda name, layer=layer: w[f"blocks.{layer}.{name}.weight"]
        weights, values = attend(of, rms(x, of("attn_norm"), c.eps), c)
        found = weights @ values
        gone = [head for where, head in without if where == layer]
        found[:, gone] = 0 if instead is None else instead[layer, gone][:, None]
        if hook:
            hook(layer, found)
        x = x + F.linear(found.transpose(1, 2).flatten(2), of("attn.w_o"))
        y = rms(x, of("mlp_norm"), c.eps)
        x = x + F.linear(F.silu(F.linear(y, of("mlp.gate"))) * F.linear(y, of("mlp.up")), of("mlp.down"))
        seen.append((weights, values, found))
    return SimpleNamespace(x=x, **dict(zip(("weights", "values", "found"), (torch.stack(each, dim=1) for each in zip(*seen)))))


def logits_of(model, x):
    return F.linear(rms(x, model.weights["norm.weight"], model.config.eps), model.weights["token.weight"])

# %% role="demo" tags=["hide-input"]
from grader.data import heads, smollm2

text = figures.language_model.reference_text()
characters = sorted(set(text))
held = text[9 * len(text) // 10 :][: 64 * 64]  # from the last tenth, which was held out
windows = torch.tensor([characters.index(character) for character in held]).view(64, 64)
torch.manual_seed(17)
small = heads.load_checkpoint(Small(len(characters)), figures.language_model.checkpoint())

real = smollm2.load() if smollm2.available() else None
run = heads.stored_run()
measured = heads.measuring(run, fresh=real is not None)
if real is None:
    print(smollm2.how_to_get(), "Until then, all numbers and figures of this model come from the course's own run.")


def capital():
    x = read(real, torch.tensor([real.encode("The capital of France is")])).x[0, -1]
    shares, ids = logits_of(real, x).softmax(dim=-1).topk(5)
    return {"token": [real.token(i) for i in ids.tolist()], "share": shares}


answer = measured("capital", capital)
print(f"small: loss {next_token_loss(small(windows), windows):.2f} nats a character;  real: The capital of France is{answer['token'][0]}")
assert answer["token"][0] == " Paris" and answer["share"][0] > 0.5

# %% [markdown]
# First your own model, on held-out text.

# %% role="payoff" exercise="previous_token_score" tags=["hide-input"]
if passed(previous_token_score):
    back = torch.stack([previous_token_score(maps) for maps in small.maps(windows)])  # (blocks, heads)
    passage = text[(at := text.find("of the object")) : at + 13]
    maps = small.maps(torch.tensor([[characters.index(c) for c in passage]]))
    figures.reading_heads.grid([each[0].numpy() for each in maps], list(passage), back)

# %% [markdown]
# A head that looks back shows a diagonal line just below the main one. Which head does this is a matter of chance. Now
# the real model:

# %% role="demo" tags=["hide-input"]
SENTENCES = (
    "The animal didn't cross the street because it was too tired",
    "The animal didn't cross the street because it was too wide",
    "The cat sat on the mat because it was comfortable",
)


def all_maps():
    ids = [real.encode(text) for text in SENTENCES]
    tokens = {f"tokens {i}": [real.token(t) for t in each] for i, each in enumerate(ids)}
    return tokens | {f"weights {i}": read(real, torch.tensor([each])).weights[0] for i, each in enumerate(ids)}


found = measured("maps", all_maps)
maps_of = {text: (list(found[f"tokens {i}"]), found[f"weights {i}"]) for i, text in enumerate(SENTENCES)}  # (layers, heads, T, T)

# %% role="payoff" exercise="previous_token_score"
if passed(previous_token_score):
    def looking_back():
        weights = read(real, torch.tensor([real.encode(heads.PROSE)])).weights
        return {"score": previous_token_score(weights.flatten(1, 2)).view(30, 9)}

    score = measured("looking back", looking_back)["score"]  # (layers, heads)
    figures.reading_heads.all_heads(score, "A few of 270 heads look at the token before, most hardly ever", most=4)
    assert divmod(score.argmax(), 9) == (16, 0) and (score > 0.6).sum() >= 3 and np.median(score) < 0.1

# %% [markdown]
# The strongest is 16.0, with {{ score[16, 0]:.2f }}.

# %% role="payoff" exercise="previous_token_score" tags=["hide-input"]
if passed(previous_token_score):
    figures.reading_heads.explorer(maps_of, layer=16, head=0)

# %% [markdown]
# ## Where the weight goes when a head finds nothing

# %% [markdown]
# @predict
#
# On average over all heads and all later tokens of this sentence, how much of the weight lies on the first token, *The*?
#
# - **A** about 5 %
# - **B** about 20 %
# - **C** about 65 %
#
# @answer
#
# **C**: {{ sink.mean():.0% }}. With *Paris*, *seven*, *(* or *Although* in its place, it is still more than half.
#
# @wrong
#
# **B** is what evenly spread weights would give ({{ even:.0%; it < sink.mean() }}). **A** mistakes weight for importance.

# %% role="payoff" exercise="previous_token_score" tags=["hide-input"]
if passed(previous_token_score):
    def sinks():
        seen = read(real, torch.tensor([real.encode(SENTENCES[0])]))
        others = [torch.tensor([real.encode(start + SENTENCES[0][3:])]) for start in ("Paris", "seven", "(", "Although")]
        lengths = seen.values.norm(dim=-1)[0]  # (layers, heads, tokens)
        return {"weight": seen.weights[0, :, :, 1:, 0].mean(dim=(1, 2)),
                "other": [read(real, ids).weights[..., 1:, 0].mean() for ids in others],
                "length": (lengths[..., 0] / lengths[..., 1:].mean(dim=-1)).median(dim=1).values}

    found, even = measured("sinks", sinks), np.mean([1 / (i + 1) for i in range(1, 12)])
    sink, length = found["weight"], found["length"]
    figures.reading_heads.sinks(sink, length)
    assert 0.6 < sink.mean() < 0.7 and found["other"].min() > 0.5 and np.median(length) < 0.4

# %% [markdown]
# The weights of a row have to sum to 1, even where a head finds nothing that it looks for. The usual explanation: models
# put the rest on a token that every row can see, and give it a short value. This is the **attention sink**
# (Xiao et al. 2024): weight on the first token mostly says *nothing here*.
#
# ## What came next last time
#
# How can a model go on with a name that it had never met before this text? Elhage et al. (2021) found a head that looks for an
# earlier occurrence of the *current* token and takes what came **after** it: an **induction head**.
#
# To find such heads we use random tokens, written twice, so that nothing else can help. In A B C A B C, with period 3, token 3
# is an A. The previous A is token 0, and after it came the B, token 1.

# %% [markdown]
# @exercise induction_score
#
# `weights` (B, H, T, T) on a sequence that repeats with this period, `period` ≥ 1, T > period → (H,)
#
# The mean weight of each head on the token that followed the current token's previous occurrence, over the batch and over all
# tokens that have one. A score of 1 means: all the weight lies there.

# %% role="exercise" exercise="induction_score"
def induction_score(weights: torch.Tensor, period: int) -> torch.Tensor:
    """The mean weight of each head on the token that followed the current one's previous occurrence.

    weights: (B, H, T, T) on a sequence that repeats with this period, T > period ≥ 1. Returns: (H,), on their device.
    """
    # region solution
    if not 1 <= period < weights.shape[-1]:
        raise ValueError(f"period {period} with T = {weights.shape[-1]}: it is at least 1 and less than T")
    i = torch.arange(period, weights.shape[-1], device=weights.device)  # the rows that have an earlier occurrence
    return weights[:, :, i, i - period + 1].mean(dim=(0, 2))
    # endregion

# %% role="check" exercise="induction_score"
check(induction_score)

# %% [markdown]
# We test the real model at random periods, since a fixed one can be cheated (a further part).

# %% role="payoff" exercise="induction_score" tags=["hide-input"]
if passed(induction_score):
    def drawn(seed, count=3):
        """Random tokens of `count` random lengths, two rows of each."""
        draws = torch.Generator().manual_seed(seed)
        lengths = torch.randint(14, 34, (count,), generator=draws).tolist()
        return [torch.randint(1000, 40_000, (2, period), generator=draws) for period in lengths]

    halves = drawn(17)

    def copying(without=(), instead=None, halves=halves):
        """(layers, heads) induction scores; the mean loss in each copy, in nats a token."""
        each = []
        for half in halves:
            ids, period = torch.cat([half, half], dim=1), half.shape[1]
            seen = read(real, ids, without, instead)
            loss = F.cross_entropy(logits_of(real, seen.x[:, :-1]).mT, ids[:, 1:], reduction="none")
            score = induction_score(seen.weights.flatten(1, 2), period).view(30, 9)
            each.append((score, loss[:, : period - 1].mean(), loss[:, period:].mean()))
        return {name: torch.stack(of).mean(dim=0) for name, of in zip(("score", "first", "second"), zip(*each))}

    def words():
        ids = real.encode(" lamp river seven cold window paper goat north sugar bell dust ladder") * 2
        weights = read(real, torch.tensor([ids])).weights[0]
        return {"token": [real.token(i) for i in ids], "16.0": weights[16, 0], "17.4": weights[17, 4]}

    whole = measured("copying", copying)
    induction = whole["score"]
    figures.reading_heads.all_heads(induction, "Induction heads: a few, all of them in the second half", most=int((induction > 0.5).sum()))
    assert whole["first"] > 11 > 4 > whole["second"] and 5 <= (induction > 0.5).sum() <= 9 and np.median(induction) < 0.03
    assert np.argwhere(induction > 0.5)[:, 0].min() == 17, np.argwhere(induction > 0.5)
    example = measured("words", words)
    figures.reading_heads.pair(example["token"], {"16.0 looks at the token before": example["16.0"],
                                              "17.4 looks at what followed the last time": example["17.4"]}, copies=True)
    assert induction_score(torch.tensor(example["17.4"])[None, None], 12).item() > 0.5

# %% [markdown]
# The first copy costs {{ whole["first"]:.1f; it > 10.9 }} nats, more than blind guessing (ln 49,152 = 10.8): the model
# confidently expects English. The second costs {{ whole["second"]:.1f }}: it copies.
# {{ (induction > 0.5).sum() }} of 270 heads score above ½, all in layer 17 or later.
#
# How can a head know what *followed*? It finds a token by its key. If the key at *window* were made from that token alone,
# it could not say that *cold* came before it. An earlier head can bring that in: a previous-token head.

# %% role="demo" tags=["hide-input"]
figures.reading_heads.chain()

# %% [markdown]
# ## Take it away, or move it
#
# A map cannot prove such a claim. An experiment can test it: take 16.0 away (**ablation**) and see what
# becomes of the others. As controls, take away the eight *other* heads of layer 16 at once, or 11.1, the second strongest
# previous-token head.

# %% [markdown]
# @predict
#
# We set what 16.0 finds to zero. What happens to the loss in the second copy, {{ whole["second"]:.1f }} nats?
#
# - **A** nothing to speak of: one head of 270
# - **B** it rises by a nat or so
# - **C** it rises by several nats
#
# @answer
#
# **C**: {{ loss_without["16.0"]:.1f }} nats. And 17.4, which we did not touch, stops working: its score falls from
# {{ score_before:.2f }} to {{ score_after:.2f }}.
#
# @wrong
#
# **A** is right for most heads. But heads build on heads.

# %% role="payoff" exercise="induction_score" tags=["hide-input"]
if passed(induction_score):
    TAKEN = {"16.0": [(16, 0)], "the other eight of layer 16": [(16, head) for head in range(1, 9)], "11.1": [(11, 1)]}
    ablated = {name: measured(f"copying without {name}", lambda gone=gone: copying(gone)) for name, gone in TAKEN.items()}
    loss_without = {"nothing": whole["second"]} | {name: found["second"] for name, found in ablated.items()}
    without_eight = loss_without["the other eight of layer 16"]
    after, control = ablated["16.0"]["score"], ablated["the other eight of layer 16"]["score"]
    score_before, score_after = induction[17, 4], after[17, 4]
    figures.reading_heads.ablation(loss_without, induction, after)
    with_mean = measured("16.0 at its mean", lambda: copying(
        [(16, 0)], instead=read(real, halves[0]).found[:, :, :, 1:].mean(dim=(0, 3))))["second"]
    assert min(with_mean, loss_without["16.0"]) > 2 * whole["second"] and loss_without["11.1"] < whole["second"] + 0.5
    assert without_eight < whole["second"] + 1 and score_before > 0.5 > 0.1 > score_after
    assert min(induction[17, 3:6].min(), control[17, 3:6].min()) > 0.5 > 5 * after[17, 3:6].max()

    def other_draws():
        """The loss in the second copy of five more draws: with all heads, without 16.0, without the other eight."""
        draws = [drawn(seed, 1) for seed in range(5)]
        gone = ((), TAKEN["16.0"], TAKEN["the other eight of layer 16"])
        return {"second": torch.stack([torch.stack([copying(each, halves=half)["second"] for each in gone]) for half in draws])}

    draws = measured("five more draws", other_draws)["second"]  # (5, 3)
    missed, spared = draws[:, 1] - draws[:, 0], draws[:, 2] - draws[:, 0]
    assert missed.min() > 3 and spared.max() < 1

# %% [markdown]
# Without the other *eight* heads of layer 16 the loss is {{ without_eight:.1f }} nats. In five more draws of random tokens it rose by
# at least {{ missed.min():.1f }} nats without 16.0, and by at most {{ spared.max():.1f }} without the other eight.
#
# With its mean in its place the loss is {{ with_mean:.1f; it > 2 * whole["second"] }} nats, so 16.0 is needed. Does it also write what
# we think, *cold* into the vector at *window*?
# The hook below exchanges what 16.0 found at *window*, the word after *cold*, with what it found at *sugar*, the word after
# *north*: **activation patching**. If the claim is right, the second *cold* finds *sugar*.

# %% role="payoff" exercise="induction_score"
if passed(induction_score):
    def exchange(a, b):
        def hook(layer, found):  # found: (B, H, T, d_head)
            if layer == 16:
                found[:, 0, [a, b]] = found[:, 0, [b, a]]
        return hook

    def swapped(text, pairs):
        """At the second copy of the word before place a, before and after the exchange: what 17.4 gives to the first copy, and the
        probabilities of the words at a and b as the next one."""
        ids = torch.tensor([real.encode(text) * 2])
        t, plain, rows, says = ids.shape[1] // 2, read(real, ids), [], []
        for a, b in pairs:
            both = plain, read(real, ids, hook=exchange(a, b))
            rows.append(torch.stack([seen.weights[0, 17, 4, t + a - 1, :t] for seen in both]))
            says.append(torch.stack([logits_of(real, seen.x[0, t + a - 1]).softmax(dim=-1)[ids[0, [a, b]]] for seen in both]))
        return torch.stack(rows), torch.stack(says)

# %% role="payoff" exercise="induction_score" tags=["hide-input"]
if passed(induction_score):
    LISTS = (" lamp river seven cold window paper goat north sugar bell dust ladder",
             " stone milk tower green engine rope ghost apple winter coin bread mirror",
             " salt piano forest knife yellow bridge moon carpet tiger bottle road cloud",
             " hammer lemon circle snow market finger violin desert button sheep flame letter",
             " pencil ocean helmet butter castle drum rabbit silver garden needle truck smoke")
    PAIRS = [(4, 8), (3, 9), (5, 10), (6, 11), (2, 7)]
    exchanges = measured("exchanged", lambda: {name: torch.stack(each) for name, each in zip(
        ("rows", "says"), zip(*(swapped(words, PAIRS) for words in LISTS)))})
    moved_to, says = exchanges["rows"], exchanges["says"].mean(axis=(0, 1))  # (lists, pairs, 2, words); (2, the words at a and b)
    at_a, at_b = (np.stack([moved_to[:, i, :, pair[side]] for i, pair in enumerate(PAIRS)], axis=1) for side in (0, 1))
    figures.reading_heads.activation_patching(example["token"][:12], moved_to[0, 0], 3, PAIRS[0],
                                              means=(at_a[..., 0].mean(), at_b[..., 1].mean()))
    p_true, p_true_after, p_other_after = says[0, 0], *says[1]
    assert p_true > 10 * p_true_after and p_other_after < 0.05
    assert at_a[..., 0].mean() > 0.5 > 0.05 > at_a[..., 1].mean() and at_b[..., 1].mean() > 0.5 > 0.05 > at_b[..., 0].mean()

# %% [markdown]
# On average over 25 exchanges, in five lists, it does: the weight moves. But the *answer* does not follow. The probability of the
# true next word falls from {{ p_true:.2f }} to {{ p_true_after:.3f }}; the other word gets only {{ p_other_after:.3f }}. The note
# steers where 17.4 looks; what 17.4 writes comes later.
#
# ## A model without one of its heads
#
# Which of your model's eight heads does it need? Zero may be a value that later layers have never met. So in
# **mean ablation** the head adds its own mean instead.
#
# A **forward pre-hook** sees the inputs of a module, a tuple, before it runs; what it returns takes their place:

# %% role="demo"
layer = nn.Linear(2, 1)
handle = layer.register_forward_pre_hook(lambda module, args: (0 * args[0],))
hooked = layer(torch.ones(2))
handle.remove()
print("with the hook:", hooked.tolist(), "  the bias alone:", layer.bias.tolist())

# %% [markdown]
# @exercise loss_without_head
#
# `model` a language model with lesson 10's contract, `ids` (B, T), `layer` and `head` counted from 0 → a float:
# `next_token_loss(model(ids), ids)` while this one head adds nothing.
#
# - A head's part is its slice of what enters `model.blocks[layer].attn.proj`, which attention calls as a module.
#   `attn.num_heads` tells how many heads there are.
# - With `mean=True` it adds, at every token, its own mean over all rows and tokens of these ids.
# - A layer or head that does not exist, negative ones included, raises ValueError.
# - The model is left as it was: weights, hooks and mode, also where its call raises.

# %% role="exercise" exercise="loss_without_head"
def loss_without_head(model: nn.Module, ids: torch.Tensor, layer: int, head: int, mean: bool = False) -> float:
    """The loss of a language model, in nats a token, while one of its heads adds nothing.

    ids: (B, T). mean: the head adds its mean over these ids in place of nothing.
    Raises: ValueError for a layer or head that does not exist.
    """
    # region solution
    if not 0 <= layer < len(model.blocks):
        raise ValueError(f"layer {layer}: there are {len(model.blocks)}, counted from 0")
    attention = model.blocks[layer].attn
    if not 0 <= head < attention.num_heads:
        raise ValueError(f"head {head}: there are {attention.num_heads}, counted from 0")

    def without(module, args):
        found = args[0].clone().unflatten(-1, (attention.num_heads, -1))  # (B, T, H, d_head)
        part = found[:, :, head]
        found[:, :, head] = part.mean(dim=(0, 1)) if mean else 0
        return (found.flatten(-2),)

    handle = attention.proj.register_forward_pre_hook(without)
    try:
        with torch.no_grad():
            return next_token_loss(model(ids), ids).item()
    finally:
        handle.remove()
    # endregion

# %% role="check" exercise="loss_without_head"
check(loss_without_head)

# %% role="payoff" exercise="loss_without_head"
if passed(loss_without_head):
    all_there = next_token_loss(small(windows), windows).item()
    eight = list(itertools.product(range(2), range(4)))
    needed, with_its_mean = ({each: loss_without_head(small, windows, *each, mean) for each in eight} for mean in (False, True))
    figures.reading_heads.loss_without_each_head(needed, with_its_mean, all_there)
    worst = max(needed, key=needed.get)

# %% [markdown]
# The course's copy misses head {{ worst[0] }}.{{ worst[1] }} most; even with its mean in its place the loss is
# {{ with_its_mean[worst]:.2f; it > all_there }} nats, not {{ all_there:.2f; it < 2 }}. Most heads are hardly missed, as in far
# larger models (Michel et al. 2019).
#
# ## What a head adds
#
# Multi-head attention lays the heads' results side by side and multiplies by one matrix. Take two heads of one number each,
# with the results 2 and 3, and
#
# $$W_O = \begin{pmatrix} 1 & 4 \\ 2 & 5 \end{pmatrix}, \qquad
# W_O \begin{pmatrix} 2 \\ 3 \end{pmatrix}
# = \underbrace{2 \begin{pmatrix} 1 \\ 2 \end{pmatrix}}_{\text{head 0 adds}}
# + \underbrace{3 \begin{pmatrix} 4 \\ 5 \end{pmatrix}}_{\text{head 1 adds}}
# = \begin{pmatrix} 14 \\ 19 \end{pmatrix}$$
#
# So the output of attention *is* a sum over heads.

# %% [markdown]
# @exercise head_contributions
#
# `module` an attention with lesson 09's contract (`num_heads`, `qkv`, `proj`), in eval mode; `x` (B, T, d_model) → (B, num_heads, T,
# d_model)
#
# What each head adds to the result; their sum is module(x). `qkv` gives q, k and v, one after another. The module and x stay as
# they are. From scratch: without `F.scaled_dot_product_attention`.

# %% role="exercise" exercise="head_contributions"
def head_contributions(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """What each head of a causal attention adds to its result.

    module: lesson 09's attention, in eval mode. x: (B, T, d_model).
    Returns: (B, num_heads, T, d_model), on the device of x; the sum over heads is module(x).
    """
    # region solution
    heads, t = module.num_heads, x.shape[1]
    with torch.no_grad():
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in module.qkv(x).chunk(3, dim=-1))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1)
        slices = module.proj.weight.unflatten(1, (heads, -1))  # (d_model, heads, d_head): each head's columns
        return torch.einsum("bhtc,dhc->bhtd", weights @ v, slices)
    # endregion

# %% role="check" exercise="head_contributions"
check(head_contributions)

# %% [markdown]
# ## The head that writes Paris
#
# On the residual stream everything is added up, and the difference between the logits of *Paris* and *London* is a dot
# product of that sum (normalized) with one vector: the difference of their two embedding rows, scaled by the
# norm's weights. So each head has a direct share in it, in logits:
# this is **logit attribution**. We choose the head whose share is largest on *France* alone, and test it
# on four more capitals.

# %% role="payoff" exercise="head_contributions" tags=["hide-input"]
if passed(head_contributions):
    LAND = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Germany": "Berlin", "Austria": "Vienna"}

    def capitals(without=()):
        seen = read(real, torch.tensor([real.encode(f"The capital of {country} is") for country in LAND]), without)
        return seen, logits_of(real, seen.x[:, -1]), torch.tensor([real.encode(" " + city) for city in LAND.values()])

    def chances(without=()):  # the probability of each capital (5,)
        _, logits, city = capitals(without)
        return logits.softmax(dim=-1).gather(1, city)[:, 0]

# %% role="payoff" exercise="head_contributions"
if passed(head_contributions):
    def attribution(seen, direction, at=-1):
        """(B, layers, heads): what each head adds at one token along a direction (B, d_model) of the embedding rows, in logits."""
        w = real.weights
        scale = seen.x[:, at].square().mean(dim=-1, keepdim=True).sqrt()  # as the last norm does
        columns = torch.stack([w[f"blocks.{i}.attn.w_o.weight"].unflatten(1, (9, -1)) for i in range(30)])
        return torch.einsum("blhc,ldhc,bd->blh", seen.found[:, :, :, at], columns, direction * w["norm.weight"] / scale)

    def shares():
        rows, (seen, logits, city), london = real.weights["token.weight"], capitals(), real.encode(" London")
        share = attribution(seen, rows[city[:, 0]] - rows[london])
        return {"share": share, "gap": logits.gather(1, city)[:, 0] - logits[:, london[0]],
                "looks": seen.weights[:, *divmod(share[0].argmax().item(), 9), -1]}

    said = measured("capitals", shares)

# %% role="payoff" exercise="head_contributions" tags=["hide-input"]
if passed(head_contributions):
    share, looks = said["share"], said["looks"]  # (5, layers, heads), in logits; (5, tokens), of the head chosen on France
    figures.reading_heads.paris(share[0], said["gap"][0], ["The", "capital", "of", "France", "is"], looks[0])
    assert divmod(share[0].argmax(), 9) == (23, 4) and share[0].max() > 0.5 * said["gap"][0] and looks[:, 3].min() > 0.85
    assert [(each > each[23, 4]).sum() for each in share] == [0, 1, 0, 0, 0] and divmod(share[1].argmax(), 9) == (29, 1)
    kept = measured("capitals without a head of layer 23", lambda: {
        "whole": chances(), "without": torch.stack([chances([(23, head)]) for head in range(9)])})
    figures.reading_heads.capitals(LAND, kept["whole"], kept["without"], 23, 4)
    left = kept["without"] / kept["whole"]  # (9, 5): the part of the probability that is left
    on_france, on_others, without_others = kept["without"][4, 0], left[4, 1:], np.delete(left, 4, axis=0)
    assert left.argmin(axis=0).tolist() == [4] * 5 and left[4].max() < 0.6 and without_others.min() > 0.75
    assert on_france < kept["whole"][0] / 2 and 0.05 < on_others.min() < on_others.max() < 0.6

# %% [markdown]
# On *France* one head stands out: 23.4 looks from *is* to *France* with {{ looks[0, 3]:.0% }} of its weight, and adds
# {{ share[0].max():.1f }} logits to *Paris* over *London*, of {{ said["gap"][0]:.1f }} in all. On the other four it looks at the
# country with {{ looks[1:, 3].min():.0% }} or more, and its share is the largest of 270, except on *Italy*.
#
# Without 23.4 the probability of *Paris* falls from {{ kept["whole"][0]:.2f }} to
# {{ on_france:.2f }}. On the other four, {{ on_others.min():.0% }} to {{ on_others.max():.0% }} is left; without another head of the
# layer, at least {{ without_others.min():.0% }}. Map, attribution and ablation agree, on prompts that had no say in the choice.
# So we may say: in prompts of this form, 23.4 looks at the country and adds to its capital.
#
# The **logit lens** (nostalgebraist 2020) reads the residual stream after each layer, as if the model ended there. Where does
# *Paris* rank? The second number is without 23.4.

# %% role="payoff" exercise="head_contributions"
if passed(head_contributions):
    def lens(without=()):
        """The place of Paris after each layer, 1 where no token has a larger logit."""
        ids, x, places = torch.tensor([real.encode("The capital of France is")]), None, []
        for layer in range(30):
            x = read(real, ids, without, layers=[layer], x=x).x
            logits = logits_of(real, x[0, -1])
            places.append(1 + (logits > logits[real.encode(" Paris")[0]]).sum())
        return places

    place = measured("lens", lambda: {"whole": lens(), "without": lens([(23, 4)])})
    print("place of Paris   whole   without 23.4")
    for layer in (5, 22, 23, 25, 27, 28, 29):
        print(f"after layer {layer:2} {place['whole'][layer]:8,} {place['without'][layer]:14,}")
    (place_22, place_23), without_23 = place["whole"][22:24], place["without"][23]
    assert place["whole"].min() == place["whole"][29] == 1 and without_23 > 0.9 * place_22 > 1500 > 3 * place_23
    assert place["without"][29] == 1

# %% [markdown]
# Layer 23 lifts *Paris* from place {{ place_22:,d }} to {{ place_23:,d }}; without 23.4, only to {{ without_23:,d }}. In the end
# *Paris* is first all the same: the last layer lifts it from place {{ place["without"][28]:,d; it > 50 }} to 1.
#
# ## What a head writes
#
# W_Q and W_K decide where a head looks, its **QK circuit**; W_V and W_O what it then writes, its **OV circuit** (Elhage
# et al. 2021). A map shows only the first. Back to the 25 exchanges: what does each head add to the logit of the true next word,
# above the mean of all words?

# %% role="payoff" exercise="head_contributions"
if passed(head_contributions):
    def written(text, pairs):
        """At the second copy of the word before place a: what each head gives to place a, (pairs, layers, heads), and what it adds to
        the logits of the words at a and b, before and after the exchange, (pairs, 2, 2, layers, heads)."""
        ids, rows, looks, adds = torch.tensor([real.encode(text) * 2]), real.weights["token.weight"], [], []
        plain = read(real, ids)
        for a, b in pairs:
            at = ids.shape[1] // 2 + a - 1
            looks.append(plain.weights[0, :, :, at, a])
            words = rows[ids[0, [a, b]]] - rows.mean(dim=0)
            adds.append(torch.stack([attribution(seen, words, at) for seen in (plain, read(real, ids, hook=exchange(a, b)))]))
        return torch.stack(looks), torch.stack(adds)

# %% role="payoff" exercise="head_contributions" tags=["hide-input"]
if passed(head_contributions) and passed(induction_score):
    wrote = measured("written", lambda: {name: torch.cat(each).mean(dim=0) for name, each in zip(
        ("looks", "adds"), zip(*(written(words, PAIRS) for words in LISTS)))})
    looking, adds = wrote["looks"], wrote["adds"]  # (layers, heads); before and after, the words at a and b, (2, 2, layers, heads)
    some = (17, 4), (18, 6), (23, 7), (29, 1)
    to_word, favored = {f"{layer}.{head}": adds[0, 0, layer, head] for layer, head in some}, adds.sum(axis=(2, 3)) @ (1, -1)
    figures.reading_heads.writers(looking, adds, some)
    assert looking[17, 4] > 0.5 and to_word["17.4"] < 0.05 and divmod(adds[0, 0].argmax(), 9) == (29, 1) and looking[29, 1] < 0.02
    assert divmod(looking.argmax(), 9) == (18, 6) and favored[0] > 2 > 0.2 > abs(favored[1])

# %% [markdown]
# 17.4 finds the word, and adds next to nothing to it directly: {{ to_word["17.4"]:.2f }} logits. Others write it: 18.6, which finds it,
# too, adds {{ to_word["18.6"]:.2f }}, and 29.1, which hardly looks there, {{ to_word["29.1"]:.2f }}. All heads together favor the true word
# over the other by {{ favored[0]:.1f }} logits, after the exchange by {{ abs(favored[1]):.1f }}: neither wins.
#
# ## What is *it*?
#
# *Too tired* is the animal, *too wide* is the street. The head that looks most from *it* to *animal* is 13.8.

# %% [markdown]
# @predict
#
# We read both sentences and compare the maps of 13.8. In which rows do they differ? (A row is the token that looks.)
#
# - **A** in the row of *it*
# - **B** in the rows of *it*, *was*, *too* and the last word
# - **C** in the row of the last word alone
#
# @answer
#
# **C**. The mask is causal: when the model reads *it*, the word that decides has not come yet. No head of any causal model
# can resolve this *it* at its own position. The famous picture (Uszkoreit 2017) is from an encoder, which reads the whole
# sentence at once.
#
# @wrong
#
# **A** reads the sentence as someone who knows how it ends. As to **B**: which of these tokens has seen *tired*?

# %% role="payoff" exercise="head_contributions" tags=["hide-input"]
if passed(head_contributions):
    (tokens, tired), (other, wide) = maps_of[SENTENCES[0]], maps_of[SENTENCES[1]]
    it, animal, street = tokens.index(" it"), tokens.index(" animal"), tokens.index(" street")
    figures.reading_heads.pair(tokens, {"13.8, … too tired": tired[13, 8], "13.8, … too wide": wide[13, 8]}, [tokens, other], last=True)
    assert np.array_equal(tired[:, :, :-1], wide[:, :, :-1]) and np.abs(tired[13, 8, -1] - wide[13, 8, -1]).max() > 0.1
    assert divmod(tired[:, :, it, animal].argmax(), 9) == (13, 8)
    assert (on_animal := tired[13, 8, it, animal]) > 0.3

# %% [markdown]
# From *it*, head 13.8 gives {{ on_animal:.0% }} of its weight to *animal*, and exactly as much in the sentence
# where *it* is the street. It makes the famous picture, and for one of the sentences it is wrong. At the last
# word some heads do lean toward the right noun (a further part), but the model does as
# well without them. In this model we found no head that resolves *it*.

# %% [markdown]
# ## Further: a score that can be cheated
#
# For those who design tests: a small model with a high induction score that compares nothing.

# %% [markdown]
# A score is only as good as the test behind it. We train the small model with a single layer of one head, on random
# sequences that always repeat after **ten** tokens, from five seeds.

# %% role="demo" tags=["hide-input"]
def repeated(count, period, t=20):
    """ids (count, t): random tokens, the same again after `period`."""
    return torch.randint(24, (count, period)).repeat(1, -(-t // period))[:, :t]


def trained_at_ten(seed):
    torch.manual_seed(seed)
    model = Small(24, d=64, num_heads=1, layers=1, max_len=20)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for _ in range(200):
        ids = repeated(64, 10)
        loss = next_token_loss(model(ids)[:, 10:], ids[:, 10:])  # only where the text has begun to repeat
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.requires_grad_(False)


five = [trained_at_ten(seed) for seed in range(1, 6)]

# %% [markdown]
# @predict
#
# After training at period 10, such a model predicts nearly every next token of the second copy. Has it learned to look
# for the previous occurrence? What will it do with sequences that repeat after 8 or 13 tokens?
#
# @answer
#
# No, and at other periods it fails: all {{ {5: "five"}[cheats]; cheats == 5 }} models score above ½ at period 10, and below 0.2 at every
# period two or more away. They have learned "look nine places back", and for that the positions are enough;
# they need not compare any tokens.
#
# @wrong
#
# A yes takes the high score as proof of the mechanism that the score is named after. A test at one fixed period cannot tell
# the two apart.

# %% role="demo" tags=["hide-input"]
if passed(induction_score):
    torch.manual_seed(2)
    tests = {period: repeated(64, period) for period in range(6, 15)}
    all_scores = [[induction_score(model.maps(ids)[0], period).item() for period, ids in tests.items()] for model in five]
    cheats = sum(scores[4] > 0.5 and max(scores[:3] + scores[6:]) < 0.2 for scores in all_scores)
    figures.reading_heads.cheat(all_scores[0], {period: five[0].maps(tests[period])[0][0, 0].numpy() for period in (10, 13)})

# %% [markdown]
# (The rows before the first repetition, and the last row, are noise: training asked nothing of them.) In models of
# one layer Olsson et al. (2022) saw no induction heads: the second head reads what the first has written.

# %% [markdown]
# ## Further: rolling all layers into one
#
# For those who have seen heat maps made by *attention rollout*: how it is computed, and what it says where we know the answer.

# %% [markdown]
# Abnar and Zuidema (2020) multiply the layers together. Where token 5 of one layer reads token 3 of the layer below, and that
# token 3 has read token 0, token 0 has a share in token 5. They let the residual stream, on which a token stays what it is, count
# for half of each layer. By hand, with two tokens and one head: layer 0 has the rows (1, 0) and (1, 0), layer 1 has the rows
# (1, 0) and (½, ½). Half of each, plus half of the identity, gives A₀ and A₁:
#
# $$A_0 = \begin{pmatrix} 1 & 0 \\ \tfrac12 & \tfrac12 \end{pmatrix}, \quad
# A_1 = \begin{pmatrix} 1 & 0 \\ \tfrac14 & \tfrac34 \end{pmatrix}, \quad
# A_1 A_0 = \begin{pmatrix} 1 & 0 \\ \tfrac14 + \tfrac34 \cdot \tfrac12 & \tfrac34 \cdot \tfrac12 \end{pmatrix}
# = \begin{pmatrix} 1 & 0 \\ 0.625 & 0.375 \end{pmatrix}$$

# %% [markdown]
# @exercise attention_rollout
#
# `layers` a list, first layer first, of weights (B, H, T, T) whose rows sum to 1 → (B, T, T)
#
# For each layer, A is half the mean of the weights over the heads, plus half the identity; the result is their product, in the
# order in which a token's share travels. Leave the list and its tensors unchanged.

# %% role="exercise" exercise="attention_rollout"
def attention_rollout(layers: list[torch.Tensor]) -> torch.Tensor:
    """The layers' attention rolled into one table.

    layers: weights (B, H, T, T), first layer first. Returns: (B, T, T), whose rows sum to 1, on their device.
    Source: Abnar and Zuidema 2020, section 3.
    """
    # region solution
    if not layers:
        raise ValueError("there are no layers to roll up: the list is empty")
    identity = torch.eye(layers[0].shape[-1], device=layers[0].device)
    rolled = identity.expand(layers[0].shape[0], -1, -1)
    for weights in layers:
        mixed = 0.5 * weights.mean(dim=1) + 0.5 * identity
        rolled = mixed @ rolled
    return rolled
    # endregion

# %% role="check" exercise="attention_rollout"
check(attention_rollout)

# %% [markdown]
# For *Paris* our three measurements point to *France*. What does rollout say? Beside it we put one more experiment: we
# replace one token at a time by unrelated words, and measure how far the prediction moves (in nats, the
# Kullback–Leibler divergence from the old prediction to the new one).

# %% [markdown]
# @predict
#
# "The capital of France is", once more. Rolled up over all thirty layers, how much of the last token comes from
# *France*, and how much from *The*?
#
# @answer
#
# *The* gets {{ rolled[0]:.2f }}, *France* {{ rolled[3]:.0e }}. Token 0 can look only at itself, so a share that has
# reached it never leaves, and each layer adds to it. Thirty layers that spread their weight evenly over the past
# would already give it 0.999; the sink only speeds this up. In the experiment, *France* moves the prediction by
# {{ moved[3]:.1f }} nats, and *The* by {{ moved[0]:.1f }}. (*is* moves it most: the prediction is made there.)
#
# @wrong
#
# If you said *France*, you answered another question: what the prediction depends on. Rollout counts weight on a value
# that adds little as fully as any other. That 23.4 gives *France* {{ looks[0, 3]:.0% }} is, to rollout, one ninth of one
# layer of thirty.

# %% role="payoff" exercise="attention_rollout" tags=["hide-input"]
if passed(attention_rollout):
    def depends():
        ids = torch.tensor(real.encode("The capital of France is"))
        seen, others = read(real, ids[None]), [real.encode(word)[0] for word in (" table", " green", " seven", " house")]
        before, moved = logits_of(real, seen.x[0, -1]).log_softmax(dim=-1), []
        for place in range(len(ids)):
            changed = ids.repeat(4, 1)
            changed[:, place] = torch.tensor(others)
            after = logits_of(real, read(real, changed).x[:, -1]).log_softmax(dim=-1)
            moved.append((before.exp() * (before - after)).sum(dim=-1).mean())
        return {"moved": moved, "weights": seen.weights[0].mean(dim=1, keepdim=True)}

    found = measured("depends", depends)
    layers = [torch.tensor(layer)[None] for layer in found["weights"]]  # thirty times (1, 1, 5, 5): the heads' mean
    rolled, moved = attention_rollout(layers)[0, -1], found["moved"]
    figures.reading_heads.rollout(["The", "capital", "of", "France", "is"], rolled, moved)
    assert rolled[0] > 0.99 and moved[3] > 2 * moved[0] and abs(rolled.sum() - 1) < 1e-3

# %% [markdown]
# ### What weights do not explain
#
# Are attention weights an explanation? Jain and Wallace (2019), *Attention is not Explanation*, found in text
# classifiers that very different weights can give the same prediction. Wiegreffe and Pinter (2019), *Attention is not
# not Explanation*, answered that weights changed by hand for one text do not make another *model*: one would have to
# train a model that attends differently and predicts the same, and that is harder.
#
# This lesson's own numbers support both. 16.0 and 23.4 do what their maps show, on the inputs that we tried. The
# rollout, made of weights alone, gives *The* everything and *France* nothing. To know which weights to trust, we needed
# the interventions.

# %% [markdown]
# ## Further: sixteen pairs of twins
#
# For those who want to follow the question of *it* to its end: how heads are chosen on one half of the examples, tested on the
# other, and removed.

# %% [markdown]
# ### Which way a head leans
#
# Is *it* resolved at the last word? From there a head sees the whole sentence. We read off how much weight goes
# from the last word to each noun.

# %% role="demo" tags=["nbval-check-output"]
if passed(head_contributions):
    a = np.array([each[13, 8, -1, [animal, street]] for each in (tired, wide)], float).round(3)
    print("from tired:", a[0], "from wide:", a[1])

# %% [markdown]
# | 13.8, from | to *animal* | to *street* | difference |
# |---|---|---|---|
# | *tired* | {{ a[0, 0]:.3f }} | {{ a[0, 1]:.3f }} | {{ a[0, 0] - a[0, 1]:.3f }} |
# | *wide* | {{ a[1, 0]:.3f }} | {{ a[1, 1]:.3f }} | {{ a[1, 0] - a[1, 1]:.3f }} |
#
# In both sentences 13.8 looks at *animal* far more than at *street*, so a large weight tells us nothing here. What
# counts is the change: the difference should be larger for *tired*, the word that fits the first noun. By how much it
# is larger is how far the head **leans**. Here that is {{ a[0, 0] - a[0, 1]:.3f }} − {{ a[1, 0] - a[1, 1]:.3f }} =
# −{{ a[1, 0] - a[1, 1] - a[0, 0] + a[0, 1]:.3f }}: negative, the wrong way.
#
# One pair proves nothing. So we read sixteen pairs of **twins**, sentences that differ only in the last word, such as
# "The horse didn't cross the river because it was too weak", or "too deep". As a control we also read bare lists of the
# same words, without an *it*: "a horse, to cross, a river, and too weak".

# %% role="demo" tags=["hide-input"]
if passed(head_contributions):
    FORM = "The {0} didn't {1} the {2} because it was too {3}"

    def readings(form):
        """ids (32, T) of all twins, first with the adjective of the first noun; the nouns (32, 2)."""
        texts = [form.format(one, verb, two, end) for one, verb, two, *ends in heads.TWINS for end in ends]
        nouns = torch.tensor([[real.encode(" " + noun)[0] for noun in twin[0:3:2]] for twin in heads.TWINS for _ in range(2)])
        return torch.tensor([real.encode(text) for text in texts]), nouns

    def leaning(form):
        """(16, layers, heads): how far each head leans in each pair."""
        ids, nouns = readings(form)
        one, two = ((ids == noun[:, None]).int().argmax(dim=1) for noun in nouns.T)  # their places
        last, rows = read(real, ids).weights[:, :, :, -1], torch.arange(len(ids))
        difference = last[rows, :, :, one] - last[rows, :, :, two]
        return {"lean": difference[0::2] - difference[1::2]}

    lean = measured("twins", lambda: leaning(FORM))["lean"]
    listed = measured("list", lambda: leaning("a {}, to {}, a {}, and too {}"))["lean"]
    assert abs(lean[0, 13, 8] - (a[0, 0] - a[0, 1] - a[1, 0] + a[1, 1])) < 2e-3 and lean[0, 13, 8] < 0

# %% [markdown]
# ### Chosen on one half, tested on the other
#
# With 270 heads and only sixteen pairs, some head will look good by luck. So we choose the best head on eight pairs
# and test it on the other eight, for all 12,870 ways to split the sixteen.

# %% role="demo"
if passed(head_contributions):
    splits = np.array([np.isin(range(16), half) for half in itertools.combinations(range(16), 8)])
    on_half, on_other = (each @ lean.reshape(16, 270) / 8 for each in (splits, ~splits))  # (12870, 270)
    best, each = on_half.argmax(axis=1), np.arange(len(splits))
    on_half, on_other = on_half[each, best], on_other[each, best]
    figures.reading_heads.splits(on_half, on_other)
    assert np.bincount(best).argmax() == 13 * 9 + 8 and on_other.min() > 0 and 0.6 < on_other.mean() / on_half.mean() < 0.7

# %% [markdown]
# On average the chosen head leans by {{ on_half.mean():.2f }} on the half that chose it and by
# {{ on_other.mean():.2f }} on the other. So about a third of its lead came from the choosing. The rest did not: in no
# split does its mean on the other half point the wrong way. In {{ (best == 13 * 9 + 8).mean():.0% }} of the splits
# the chosen head is our 13.8, which leans the wrong way on the course's own pair.
#
# Is any head right in all sixteen pairs? If heads were coins, thrown sixteen times each, we would expect such a coin
# among 270 in about one of 240 experiments.

# %% role="demo"
if passed(head_contributions):
    always = (lean > 0).all(axis=0)
    steady, in_text, in_list = np.argwhere(always).tolist(), lean[:, always], listed[:, always]  # (16, 6)
    figures.reading_heads.twins(lean, listed, heads.TWINS)
    assert len(steady) == 6 and (in_text.mean(axis=0) <= 0.03).sum() == 3
    assert in_text.mean(axis=0).argmax() == steady.index([17, 0]) == 2
    assert (in_list > 0).sum(axis=0).min() >= 13 and 0.5 < in_list.mean() / in_text.mean() < 1

# %% [markdown]
# Six are. 17.0 leans the most; three lean by 0.03 or less. So at the last word there *are* heads that shift weight toward the noun that the
# adjective fits. But a bare list has no *it* to resolve, and there each of the six still leans the right way in at least
# {{ (in_list > 0).sum(axis=0).min() }} pairs. In the lists 17.0 leans
# {{ in_list[:, 2].mean() / in_text[:, 2].mean():.0% }} as far as in the sentences, and the six together
# {{ in_list.mean() / in_text.mean():.0% }}. That much needs no pronoun, only that being tired goes with animals.
#
# ### Does the model need them?
#
# First, what does the model itself say? We add a question, "What was too tired? The …", and compare the odds of the
# two nouns as the next word. How far do they shift from one twin to the other?

# %% role="demo" tags=["hide-input"]
if passed(head_contributions):
    first = min(steady)[0]  # below this layer nothing will be removed: one reading serves all questions

    @functools.cache
    def question():
        """The ids (32, T), the nouns (32, 2), and x in front of layer `first`."""
        ids, nouns = readings(FORM + ". What was too {3}? The")
        return ids, nouns, read(real, ids, layers=range(first)).x

    def asked(without=()):
        """(16, 2): by how many nats the answer favors the first noun, in both twins of each pair."""
        ids, nouns, below = question()
        x = read(real, ids, without, layers=range(first, 30), x=below).x
        logits = logits_of(real, x[:, -1]).gather(1, nouns)  # (32, 2)
        return {"odds": (logits[:, 0] - logits[:, 1]).view(16, 2)}

    odds = measured("asked", asked)["odds"]
    shift, both = odds[:, 0] - odds[:, 1], ((odds[:, 0] > 0) & (odds[:, 1] < 0)).sum()
    print("nats:", shift.round(1))
    assert (shift > 0).sum() >= 12 and both <= 5

# %% [markdown]
# The model knows something: the odds shift the right way in {{ (shift > 0).sum() }} of sixteen pairs, by
# {{ shift.mean():.2f }} nats on average. It does not know enough: it answers both twins correctly in only {{ both }}
# pairs. And the heads that looked so telling? We remove 17.0, then 13.8, then all six together. As a control we remove
# six *other* heads of the same layers, in eight different choices: every other head of these layers goes once.

# %% role="demo"
if passed(head_contributions):
    left = {}
    for name, gone in {"17.0": [(17, 0)], "13.8": [(13, 8)], "the six": steady}.items():
        odds = measured(f"asked without {name}", lambda gone=gone: asked(gone))["odds"]
        left[name] = (odds[:, 0] - odds[:, 1]).mean()

    groups = [[(layer, (head + step) % 9) for layer, head in steady] for step in range(1, 9)]
    odds = measured("six others", lambda: {"odds": torch.stack([asked(group)["odds"] for group in groups])})["odds"]
    others = (odds[..., 0] - odds[..., 1]).mean(axis=-1)
    print("without", {name: f"{value:.2f} nats" for name, value in left.items()}, "six others", others.round(2))
    assert min(left.values()) > 0.9 * shift.mean() > others.mean() and left["the six"] > shift.mean()

# %% [markdown]
# The shift was {{ shift.mean():.2f }} nats. It is {{ left["17.0"]:.2f }} without 17.0, {{ left["13.8"]:.2f }} without
# 13.8 and {{ left["the six"]:.2f }} without the six: the model hardly misses any of them. Without six others it is
# {{ others.mean():.2f }} on average, from {{ others.min():.2f }} to {{ others.max():.2f }}. Those it misses a little.
#
# So the honest answer to the question of the course is this. In this model we found no head that resolves *it*. At
# the position of *it* no head can, because of the mask. At the last word some heads do lean toward the right noun, but
# the model does as well without them, even without six at once. Perhaps other heads resolve it, or step in when these
# are gone. Perhaps the model only knows which words go together. This test cannot tell, and no map can.
#
# What would a yes look like? You have seen one: 23.4, chosen on one prompt and tested on others. Without it the model
# lost much of the answer, and without any other head of its layer it kept most.

# %% [markdown]
# ## What we keep
#
# - A map shows where a head looks (QK), not what it writes (OV). A score compares heads, and is as good as the test behind it.
# - Weight on the first token is usually a sink.
# - Induction takes heads of two kinds: one notes what came before, others look for that note.
# - Ablation takes a head's part away, activation patching moves it, logit attribution counts it in logits.
# - They have to agree before we say what a head does, on examples that did not choose the head, and against other heads of its layer.
#
# | what | shape |
# |---|---|
# | weights of one layer | (B, num_heads, T, T) |
# | previous-token score, induction score | (num_heads,) |

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners leave able to measure what a head does (where it looks, what it adds, what is lost without it, what moves with it) and
# with the habit of asking what else could make a score high. The opening question of the course gets its honest answer.
#
# ## Cut for 60 minutes
#
# Write `previous_token_score` and `induction_score`; show the other two solved. Keep "Take it away, or move it": it is the heart of
# the lesson. Of *it*, show the two maps of 13.8 and the honest answer.
#
# ## Cut for 90 minutes
#
# The core. Of the further parts, "A score that can be cheated" is the best to read together; the twins are a story about choosing and
# testing.
#
# ## Mistakes to expect
#
# - previous_token_score PV4: For which row is there no token before? How many rows are left?
# - previous_token_score PV1: In the table, is the token before to the left of the diagonal or to its right?
# - induction_score IN1: You look at where the token stood before. What would help to guess the *next* one?
# - induction_score PV4: Which is the first row whose token has occurred before?
# - loss_without_head LH2: Behind `proj`, which of the numbers came from head 1?
# - loss_without_head LH10: What happens to your hook when the model raises an error?
# - head_contributions HC1: `nn.Linear` computes x @ weight.T. With which axis of `proj.weight` do the heads' numbers meet?
# - head_contributions HC2: How many of the numbers of your contribution are 0, and would the residual stream see the same?
# - attention_rollout RL1: Which layer's matrix meets the input tokens first: the one on the left or the one on the right of the product?
# - attention_rollout RL2: If no head of a layer looked at a token, would its vector be gone after that layer?
#
# ## To discuss
#
# - A colleague shows a map in which *it* looks at *animal* and says that the model understands pronouns. What do you ask for? (A good
#   answer: the twin sentence; whether the model is causal; what the head does elsewhere; what is lost without it; on how many sentences
#   the head was chosen, and on how many it was tested.)
# - Why is "the loss rises without this head" not the same as "this head does that task"? (A good answer: the model has never been without
#   it; later heads build on it; other heads may step in; removing anything may hurt; compare with heads of the same layer and other
#   tasks.)
#
# ## On paper
#
# The sequence is x y z x y z x, T = 7. Which entries of a head's weights does `induction_score` average, and which would
# `previous_token_score`? A head looks two places back wherever it can, at token 0 in row 1, and at itself in row 0. Compute both
# scores. *Solution:* induction, period 3: rows 3 to 6, columns 1 to 4, each two places back, so the score is 1, and the head has
# read nothing. Previous token: rows 1 to 6; only row 1 looks one back, so 1/6.
