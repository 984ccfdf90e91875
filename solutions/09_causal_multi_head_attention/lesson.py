# %% [markdown]
# # 09 · Causal multi-head attention, and the block around it
#
# **What turns attention into a block that can be stacked many times?**
#
# **Before this lesson:** lesson 06 (the causal mask as a buffer), lesson 07 (heads as slices), `nn.Module`, and the mean and variance of
# a few numbers.
#
# Lesson 07 gave attention several heads, and lesson 06 hid the future from it. Here the two become one module, the
# form in which language models use them. Then we stack it: models have a dozen such layers, or ninety-six. But 24 of
# them, placed one after the other and with nothing else, learn nothing. You will see why, and then write the two
# repairs that nearly every Transformer has: a normalization and a residual path.

# %% role="given"
import math

import torch
from torch import nn
from torch.nn import functional as F

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="demo"
figures.machine.draw(title="One head. In this lesson several work side by side, and none sees a later token")

# %% [markdown]
# ## One projection for three
#
# Three layers `w_q`, `w_k` and `w_v` read the same x. One layer with three times as many outputs computes the same
# numbers in a single larger product, which usually runs faster. We then need a rule that says which outputs belong to
# q, which to k and which to v. The common order is all of q, then all of k, then all of v, and within each of them
# one head after another, as contiguous slices like those of lesson 07:

# %% role="demo"
figures.causal_multi_head_attention.fused()

# %% [markdown]
# A model trained with another order is just as good, since every row of the weight learns its own role. The order
# matters as soon as another program loads the weights. In vLLM, which serves models, one loader cut such a weight
# into eight equal pieces, one for each GPU. In that model q is much longer than k and v together (lesson 16 shows
# why), so seven of the eight pieces held nothing but rows of q. Those GPUs used rows of q as their k and v, and
# nothing raised an error (vllm-project/vllm#42803).

# %% [markdown]
# @predict
#
# For d_model = 4 and two heads, `qkv(x)` has twelve numbers a token, 0 to 11. Which of them are the *keys of head 1*?
#
# @answer
#
# 6 and 7. The first four are q, the next four k, the last four v; of k's four the first two are head 0's.
#
# @wrong
#
# If you said 8 and 9, you read per head, then q, k, v: that is the other order. If you said 4 and 5, those are head 0's keys.

# %% role="demo" tags=["nbval-check-output"]
numbers = torch.arange(12)
print("stored q, k, v, then heads:", numbers.view(3, 2, 2)[1, 1].tolist())
print("read per head, then q, k, v:", numbers.view(2, 3, 2)[1, 1].tolist())

# %% [markdown]
# ## Dropout on the weights
#
# *Dropout* sets each number to zero with probability p in every training step and divides the others by 1 − p, so
# that their mean stays the same (Srivastava et al. 2014, sections 4 and 10). Applied to attention weights, it now and
# then hides the very key that a head relies on, so the model learns not to depend on a single key. Once training is
# over, dropout has to be off.
#
# Take four weights of ¼ each, and p = ½. In training each of them becomes 0 or ½, so a single row may sum to anything
# from 0 to 2. Over many steps the sums average 1:

# %% role="demo" tags=["nbval-check-output"]
torch.manual_seed(0)
layer, weights = nn.Dropout(0.5), torch.full((4,), 0.25)
for _ in range(3):
    print("training  ", layer(weights).tolist())
print("mean of the sums:", round(layer(weights.repeat(10_000, 1)).sum(dim=-1).mean().item(), 1))
print("evaluation", layer.eval()(weights).tolist())

# %% [markdown]
# `nn.Dropout` is a module, so `.train()` and `.eval()` on the module that owns it switch it on and off. `F.dropout`
# is a function and drops unless it is called with `training=False`. `F.scaled_dot_product_attention` drops whenever
# its `dropout_p` is above 0, in evaluation too, which a user reported as a bug (pytorch/pytorch#124464).

# %% [markdown]
# @exercise CausalMultiHeadAttention
#
# `CausalMultiHeadAttention(d_model, num_heads, max_len, dropout=0.0)`: bias-free `nn.Linear` layers `qkv` (d_model → 3 · d_model)
# and `proj` (d_model → d_model). forward: `x` (B, T, d_model) → (B, T, d_model)
#
# ```text
# q, k, v    the three thirds of qkv(x), each cut into num_heads contiguous slices of d_head = d_model / num_heads
# each head  weights = softmax(q kᵀ / √d_head over the keys j ≤ i), then dropout on the weights, then weights · v
# result     proj(heads side by side)
# ```
#
# T > max_len and a d_model that num_heads does not divide raise `ValueError`. `state_dict` holds `qkv.weight` and `proj.weight`
# alone, so a mask that is kept is a buffer with `persistent=False`, as in lesson 06. From scratch: without
# `F.scaled_dot_product_attention` and its like.
#
# When stuck, `hint(CausalMultiHeadAttention)` in a new cell asks a question first; called again it says where to look.

# %% role="exercise" exercise="CausalMultiHeadAttention"
class CausalMultiHeadAttention(nn.Module):
    """Multi-head self-attention in which no token sees a later one, with one projection for q, k and v.

    d_model: width of the tokens, divisible by num_heads. max_len: the longest sequence that is accepted.
    dropout: the share of attention weights that is dropped in training.
    """

    def __init__(self, d_model: int, num_heads: int, max_len: int, dropout: float = 0.0) -> None:
        # region solution
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model = {d_model} is not divisible by num_heads = {num_heads}")
        self.num_heads, self.max_len = num_heads, max_len
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)
        hidden = torch.ones(max_len, max_len, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("hidden", hidden, persistent=False)  # follows from max_len: nothing to save
        # endregion

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (B, T, d_model). Returns: (B, T, d_model). Raises ValueError for T > max_len."""
        # region solution
        b, t, d_model = x.shape
        if t > self.max_len:
            raise ValueError(f"T = {t} is longer than max_len = {self.max_len}")
        split = self.qkv(x).view(b, t, 3, self.num_heads, -1)
        q, k, v = split.permute(2, 0, 3, 1, 4)  # each (B, H, T, d_head)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(self.hidden[:t, :t], -torch.inf)  # no row is empty: a token sees itself
        weights = torch.softmax(scores, dim=-1)
        heads = self.dropout(weights) @ v
        merged = heads.transpose(1, 2).reshape(b, t, d_model)
        return self.proj(merged)
        # endregion

# %% role="check" exercise="CausalMultiHeadAttention"
check(CausalMultiHeadAttention)

# %% [markdown]
# Your module does not return its weights, but you can still see them. Let the value of token j be the j-th unit
# vector, and let `proj` be the identity: then the output for a query *is* its row of weights. The check reads your
# dropout in this way, and so does the next picture. Gray cells were hidden by the mask and never took part in
# softmax. White cells with a 0 did take part, and dropout set them to zero afterwards.

# %% role="payoff" exercise="CausalMultiHeadAttention"
if passed(CausalMultiHeadAttention):
    torch.manual_seed(11)
    layer, x = CausalMultiHeadAttention(6, 1, 6, dropout=0.5), torch.eye(6)[None]
    with torch.no_grad():
        layer.qkv.weight[:12] = 0.9 * torch.randn(12, 6)
        layer.qkv.weight[12:] = torch.eye(6)  # the value of token j is the j-th unit vector
        layer.proj.weight.copy_(torch.eye(6))
        still = layer.eval()(x)[0].numpy()
        steps = layer.train()(x.repeat(400, 1, 1)).numpy()
    figures.causal_multi_head_attention.dropped(still, steps[0], steps.mean(axis=0), 0.5)
    assert abs(steps.mean(axis=0) - still).max() < 0.15

# %% [markdown]
# ## A test that takes seconds
#
# Does it learn? We give one layer with one head a task whose solution we know. It reads ten random letters and a bar,
# and then has to write the letters backwards, as in `abc|cba`. Its loss is −ln of the probability that it gives to
# the right letter, averaged over the letters. Guessing among 16 letters costs ln 16 = 2.77; the unit is the nat
# (lesson 10). While it trains, each attention weight is dropped with probability 0.1.

# %% [markdown]
# @predict
#
# The query at the bar writes the *first* letter of the answer. At which position must it look? And the next query, which writes the
# second letter?
#
# @answer
#
# The first looks at the last letter, just before the bar; the second one place further back. Each step forward in the answer is a
# step back in the question, so the weights lie on an *anti*-diagonal.
#
# @wrong
#
# If you said the first position, you had copying in mind. The answer begins with the letter that came last.

# %% role="payoff" exercise="CausalMultiHeadAttention"
if passed(CausalMultiHeadAttention):
    class Reverser(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(17, 64), nn.Embedding(20, 64)
            self.attn, self.head = CausalMultiHeadAttention(64, 1, 20, dropout=0.1), nn.Linear(64, 17)

        def forward(self, ids):
            x = self.token(ids) + self.position(torch.arange(20))
            return self.head(x + self.attn(x))

    def sequences(count):
        """Letters, the bar (number 16), and the letters backwards."""
        front = torch.randint(16, (count, 10))
        return torch.cat([front, torch.full((count, 1), 16), front.flip(1)], dim=1)

# %% role="payoff" exercise="CausalMultiHeadAttention"
if passed(CausalMultiHeadAttention):
    torch.manual_seed(11)
    model, losses = Reverser(), []
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(250):
        ids = sequences(64)
        logits = model(ids[:, :-1])[:, 10:]  # only what comes behind the bar can be known
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 11:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 1.0

# %% [markdown]
# Where does the layer look, once it is trained? The weights are recomputed from `qkv`, and we check that they explain
# what the layer returns.

# %% role="given"
def weights_of(attention, x, num_heads):
    """(B, H, T, T): the weights of an attention of this form; raises where they do not explain its output."""
    q, k, v = (part.unflatten(-1, (num_heads, -1)).transpose(1, 2) for part in attention.qkv(x).chunk(3, dim=-1))
    future = torch.full((x.shape[1], x.shape[1]), -torch.inf).triu(1)
    weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]) + future, dim=-1)
    again = (weights @ v).transpose(1, 2).flatten(2) @ attention.proj.weight.T
    assert torch.allclose(again, attention(x), rtol=1e-3, atol=1e-4)
    return weights

# %% role="payoff" exercise="CausalMultiHeadAttention"
if passed(CausalMultiHeadAttention):
    ids = sequences(500)
    with torch.no_grad():
        x = model.eval().token(ids[:1, :-1]) + model.position(torch.arange(20))
        looked = weights_of(model.attn, x, 1)[0, 0].numpy()
    shown = "".join("abcdefghijklmnop|"[i] for i in ids[0, :-1].tolist())
    figures.causal_multi_head_attention.reverse(losses, math.log(16), looked, shown)

# %% [markdown]
# Nobody told the layer about reversing. It found the anti-diagonal because that was the way to lower the loss, and it could find it
# because positions were added to the tokens (lesson 08).

# %% [markdown]
# @predict
#
# Each of the ten letters now depends on a single key. Somebody tests the layer and forgets `.eval()`, so dropout still
# hides each key with probability 0.1. In how many of the sequences are all ten letters right?
#
# - **A** in about 90 %
# - **B** in about a third
# - **C** in hardly any: ten letters, each with 10 %, make 100 %
#
# @answer
#
# **B**: in {{ share[True]:.0% }} of them, while in evaluation it is {{ share[False]:.0% }}. A letter survives with
# probability 0.9, and a sequence is right only if all ten survive: 0.9¹⁰ = 0.35. That is the price of forgetting
# `.eval()`.
#
# @wrong
#
# If you said A, that is the share of *letters*. If you said C, you added the probabilities; what has to happen ten times in a row
# is a product.

# %% role="payoff" exercise="CausalMultiHeadAttention"
if passed(CausalMultiHeadAttention):
    with torch.no_grad():
        written = {mode: model.train(mode)(ids[:, :-1])[:, 10:].argmax(dim=-1) for mode in (False, True)}
    share = {mode: (letters == ids[:, 11:]).all(dim=1).float().mean().item() for mode, letters in written.items()}
    print(f"500 new sequences, all letters right: {share[False]:.1%} in evaluation, {share[True]:.1%} with dropout on")
    assert share[True] < 0.5 < 0.95 < share[False]

# %% [markdown]
# ## Break it on purpose: a layer that sees the future
#
# The layer solved its task. Would a falling loss alone have shown that it works? We train a small layer on *random*
# letters, once with the right mask, `tril(0)`, and once with `tril(1)`, which also lets each position see the token
# after it. Without seeing it, no model can do better than guess, because nothing that came before says anything about
# a random letter.

# %% [markdown]
# @predict
#
# With `tril(0)` the loss stays at ln 16 = 2.77 nats. What does it do with `tril(1)`, where each position also sees the next one?
#
# @answer
#
# It falls far below 2.77, toward 0: the answer is the next token, and the layer learns to copy it. A loss lower than
# any model could reach without seeing the answer is the sign of a leak.
#
# @wrong
#
# If you said it stays at 2.77 because the letters are random, you asked whether they can be *predicted*. Here they can be *read*.

# %% role="demo"
def train_guesser(diagonal):
    """The losses of 120 steps on random letters, each position asked for the next one."""
    torch.manual_seed(11)
    mask, table, place = torch.ones(12, 12).tril(diagonal) == 0, nn.Embedding(16, 48), nn.Embedding(12, 48)
    qkv, head, losses = nn.Linear(48, 144, bias=False), nn.Linear(48, 16), []
    optimizer = torch.optim.Adam([p for part in (table, place, qkv, head) for p in part.parameters()], lr=5e-3)
    for _ in range(120):
        ids = torch.randint(16, (64, 13))
        x = table(ids[:, :-1]) + place(torch.arange(12))
        q, k, v = qkv(x).chunk(3, dim=-1)
        y = x + torch.softmax((q @ k.mT / math.sqrt(48)).masked_fill(mask, -torch.inf), dim=-1) @ v
        loss = F.cross_entropy(head(y)[:, :-1].flatten(0, 1), ids[:, 1:-1].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% role="demo"
leak = {"tril(0): past and present": train_guesser(0), "tril(1): one future token": train_guesser(1)}
title = "Random letters cannot be predicted, unless they are seen"
figures.causal_multi_head_attention.curves(title, leak, math.log(16), "the best that is possible")
assert leak["tril(0): past and present"][-1] > 2.6 and leak["tril(1): one future token"][-1] < 1.5

# %% [markdown]
# Such a model can't write a single word, because when it writes there is no next token to copy. That is why the test of lesson 06, in
# which a later token is changed, belongs to every causal model, and a falling loss is no substitute for it.
#
# ## From a layer to a stack
#
# Attention moves information between tokens. What it does with that information is limited: once its weights are given,
# each output is a weighted mean of the values, and a value is linear in x. Such a mixture can bring an *a* and a *b* into one vector,
# but it can't tell whether *exactly one* of the two was there, because that is no linear function of them. So a small
# network follows, the same for every token, and works on each token separately. It widens the vector to four times
# its width, applies a nonlinear function and narrows it again (Vaswani et al. 2017, section 3.3).
#
# One attention and one such network make a *block* (`Step` below), and models stack dozens of them. Let us stack 24
# and see how much of the gradient of the loss reaches the first one. From here on, `GivenAttention` stands in for your
# class: it has the same names and shapes and calls torch's own operator.

# %% role="given"
class GivenAttention(nn.Module):
    """Stands in for CausalMultiHeadAttention; calls torch's fused operator."""

    def __init__(self, d_model, num_heads, max_len, dropout=0.0):
        super().__init__()
        self.sizes, self.max_len, self.p = (3, num_heads, d_model // num_heads), max_len, dropout
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        if x.shape[1] > self.max_len:
            raise ValueError("longer than max_len")
        q, k, v = self.qkv(x).unflatten(-1, self.sizes).unbind(2)
        p = self.p if self.training else 0.0
        heads = (part.transpose(1, 2) for part in (q, k, v))
        out = F.scaled_dot_product_attention(*heads, dropout_p=p, is_causal=True)
        return self.proj(out.transpose(1, 2).flatten(2))

# %% role="given"
WAYS = {
    "plain": lambda x, f, norm: f(x),
    "normalized": lambda x, f, norm: f(norm(x)),
    "residual": lambda x, f, norm: x + f(x),
    "pre-norm": lambda x, f, norm: x + f(norm(x)),
    "post-norm": lambda x, f, norm: norm(x + f(x)),
}


class Step(nn.Module):
    """Attention, then a small network, put together in one of five ways."""

    def __init__(self, way, d):
        super().__init__()
        self.way, self.ln1, self.ln2, self.attn = way, nn.LayerNorm(d), nn.LayerNorm(d), GivenAttention(d, 2, 16)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        for f, norm in ((self.attn, self.ln1), (self.mlp, self.ln2)):
            x = WAYS[self.way](x, f, norm)
        return x

# %% [markdown]
# The task is small: name the letter two places back. There are eight letters, so guessing costs ln 8 = 2.08 nats.
# `train_stack` returns the losses, the norm of the gradient that reached each block's attention in the first step, and
# the standard deviation of the numbers behind the last block in every step.

# %% role="given"
def new_stack(way, depth=24, d=32):
    """Untrained: a table of tokens, one of positions, what makes logits of the last vectors, and the blocks."""
    torch.manual_seed(11)
    table, place, head = nn.Embedding(8, d), nn.Embedding(12, d), nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 8))
    return table, place, head, nn.Sequential(*(Step(way, d) for _ in range(depth)))

# %% role="given"
def train_stack(way, steps, rate, warm_up=0):
    """(losses, gradient norms by block, spreads). warm_up: steps in which the learning rate grows from 0."""
    parts = table, place, head, blocks = new_stack(way)
    parameters = [p for part in parts for p in part.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=rate, fused=True)  # all 246 small tensors at once
    losses, norms, spreads = [], [], []
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / max(warm_up, 1))
        ids = torch.randint(8, (32, 12))
        x = blocks(table(ids) + place(torch.arange(12)))
        loss = F.cross_entropy(head(x)[:, 2:].flatten(0, 1), ids[:, :-2].flatten())
        optimizer.zero_grad()
        loss.backward()
        norms = norms or [block.attn.qkv.weight.grad.norm().item() for block in blocks]
        optimizer.step()
        losses.append(loss.item())
        spreads.append(x.std().item())
    return losses, norms, spreads

# %% [markdown]
# @predict
#
# 24 blocks, stacked plainly: x = attn(x), x = mlp(x), and so on. How much smaller is the gradient at the first block than at the last?
#
# - **A** about 24 times
# - **B** a million times
# - **C** so small that float32 rounds it to 0
#
# @answer
#
# **C**: {{ size["plain"][0]:.0e }} at the first block, {{ size["plain"][-1]:.2f }} at the last. Each block has two
# parts, and on the way back each part multiplies the gradient by a factor well below 1. These 48 factors are
# multiplied together, not added.
#
# @wrong
#
# If you said A, you added the factors instead of multiplying them. If you said B, you had the right idea, but there
# are more factors, or smaller ones, than you assumed.

# %% role="demo"
torch.set_num_threads(1)  # on tensors this small, several threads mostly wait for one another
ways = ("plain", "normalized", "residual", "pre-norm")
size = {way: train_stack(way, 1, 1e-3)[1] for way in ways}
figures.causal_multi_head_attention.gradients(size)
assert size["plain"][0] < 1e-12 and min(size[way][0] for way in ways[1:]) > 1e-3

# %% [markdown]
# Two repairs bring the gradient back. A **normalization** before each part keeps the part's input at the same scale
# in every layer, and this keeps the gradients from shrinking. A **residual path**, x + f(x), gives the gradient a way
# around f: the derivative of x + f(x) is 1 + f′, and however small f′ is, the 1 carries the gradient through any
# number of layers. Is one of the two enough?

# %% role="demo"
stacks = {way: train_stack(way, 70, 3e-3) for way in ways}
learned = {way: losses for way, (losses, _, _) in stacks.items()}
figures.causal_multi_head_attention.curves("Only one of the four stacks learns", learned, math.log(8), "guessing: ln 8")
assert min(learned[way][-1] for way in ways[:3]) > 2 and learned["pre-norm"][-1] < 0.5

# %% [markdown]
# Neither repair is enough alone, and it is not enough that a gradient arrives. What is missing differs between the
# two. Look at the tokens first: how alike are two tokens of a sequence after each block, before any training? Their
# *cosine similarity* is the dot product of their vectors, each divided by its length: 1 if they point in the same
# direction, about 0 if they have nothing in common.

# %% role="demo"
@torch.no_grad()
def alike(way):
    """The mean cosine similarity of two tokens of a sequence, before the untrained blocks and after each of them."""
    table, place, _, blocks = new_stack(way)
    x, found = table(torch.randint(8, (32, 12))) + place(torch.arange(12)), []
    for block in (nn.Identity(), *blocks):
        x = block(x)
        directions = F.normalize(x, dim=-1)
        found.append((directions @ directions.mT)[:, ~torch.eye(12, dtype=torch.bool)].mean().item())
    return found

# %% role="demo"
tokens = {way: alike(way) for way in ways}
figures.causal_multi_head_attention.alike(tokens)
assert min(tokens[way][-1] for way in ("plain", "normalized")) > 0.999
assert max(tokens[way][-1] for way in ("residual", "pre-norm")) < 0.9
spread = {way: (spreads[0], spreads[5]) for way, (_, _, spreads) in stacks.items()}
assert spread["residual"][1] > 20 * spread["residual"][0] and spread["pre-norm"][1] < 3 * spread["pre-norm"][0]

# %% [markdown]
# Without the sum, each part *replaces* a token's vector, and attention replaces it by a mean over the tokens up to it.
# After 24 such blocks all tokens of a sequence are one and the same vector, up to rounding, and no layer can read from
# it which letter stood two places back. That is why "normalized" learns nothing from gradients as large as those of
# the others. Dong, Cordonnier and Loukas (2021, section 2) prove that attention alone, stacked, makes its tokens equal
# in this way. The small networks in our untrained blocks don't prevent it, residual paths do: with them, a token keeps
# its vector until a layer has something to add to it.
#
# "Residual" keeps its tokens apart, but nothing limits the size of the sums. At the first step the numbers behind its
# last block have a standard deviation of {{ spread["residual"][0]:.1f }}, and five steps later of
# {{ spread["residual"][1]:.0f }}; with pre-norm it grows from {{ spread["pre-norm"][0]:.1f }} to
# {{ spread["pre-norm"][1]:.1f }}. Four other seeds gave the same picture. With a tenth of this learning rate
# "residual" does learn, if slowly, and "normalized" still does not.
#
# ## LayerNorm by hand
#
# LayerNorm treats each token separately. For the numbers 1, 2 and 6 the mean is 3, the distances from it are −2, −1
# and 3, and the variance is (4 + 1 + 9) / 3 = 4.67. Divided by the square root of the variance, 2.16, the distances
# become −0.93, −0.46 and 1.39: mean 0, variance 1. Then each feature is multiplied by a learned scale, and a learned
# shift is added (Ba, Kiros and Hinton 2016, section 3).

# %% [markdown]
# @exercise layer_norm
#
# `x` (..., d), `weight` and `bias` (d,), `eps` a number → (..., d)
#
# ```text
# for each token, over its d numbers:
#     mean      their sum, divided by d
#     variance  the sum of their squared distances from the mean, divided by d
#     result    (number − mean) / √(variance + eps) · weight + bias, feature by feature
# ```
#
# Do not use `nn.LayerNorm`, `F.layer_norm` or any other ready-made normalization; `var` is allowed. A token whose
# numbers are all the same gives the bias.

# %% role="exercise" exercise="layer_norm"
def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Each token with mean 0 and variance 1, then scaled and shifted feature by feature.

    x: (..., d). weight, bias: (d,). Returns: (..., d). Source: Ba, Kiros and Hinton 2016, section 3.
    """
    # region solution
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias
    # endregion

# %% role="check" exercise="layer_norm"
check(layer_norm)

# %% role="payoff" exercise="layer_norm"
if passed(layer_norm):
    torch.manual_seed(0)
    x, theirs = torch.randn(2, 4, 8), nn.LayerNorm(8)
    ours = layer_norm(x, theirs.weight, theirs.bias)
    louder = layer_norm(100 * x, theirs.weight, theirs.bias)
    print(f"difference from nn.LayerNorm: {(ours - theirs(x)).abs().max():.0e}")
    print(f"difference where every token is a hundred times as large: {(ours - louder).abs().max():.0e}")
    assert torch.allclose(ours, theirs(x), atol=1e-5) and torch.allclose(ours, louder, atol=1e-3)

# %% [markdown]
# A token a hundred times as large comes out the same, so a layer that reads normalized tokens never meets numbers of a size that it
# has not seen. `nn.LayerNorm` is your function with `weight` and `bias` as parameters; the block uses it.

# %% [markdown]
# ## Before or after the sum?
#
# The original normalizes *after* the sum, x = norm(x + f(x)): **post-norm** (Vaswani et al. 2017, section 3.1). Today's models
# normalize in front of f: **pre-norm**, x + f(norm(x)). Then a path without any normalization leads from the first layer to the last.
# Xiong et al. (2020, section 3) say that post-norm needs a **warm-up**, a learning rate that grows from 0 in the first steps, and
# pre-norm does not. Our 24 blocks can test that:

# %% role="demo"
started = {
    "pre-norm": learned["pre-norm"],  # as above
    "post-norm": train_stack("post-norm", 70, 3e-3)[0],
    "post-norm, 40 steps of warm-up": train_stack("post-norm", 70, 3e-3, warm_up=40)[0],
}
figures.causal_multi_head_attention.curves("Who needs a warm-up?", started, math.log(8), "guessing: ln 8")
ends = {way: sum(curve[-5:]) / 5 for way, curve in started.items()}
assert ends["pre-norm"] < 0.5 and ends["post-norm, 40 steps of warm-up"] < 0.5 < 2 < ends["post-norm"]

# %% [markdown]
# At a learning rate of 0.003 pre-norm ends at {{ ends["pre-norm"]:.2f }} nats without a warm-up. Post-norm stays at
# {{ ends["post-norm"]:.2f }}, no better than guessing. With 40 steps of warm-up it ends at
# {{ ends["post-norm, 40 steps of warm-up"]:.2f }}. Four other seeds gave the same picture. One depth and one small
# task prove no general rule, but the paper found the same on translation. Lesson 10 also uses a warm-up, for another
# reason: its optimizer's first estimates are poor.

# %% [markdown]
# ## The block
#
# What is not linear in the small network is GELU: x · Φ(x), where Φ(x) is the probability that a standard normal number is below x
# (Hendrycks and Gimpel 2016, section 2). A popular approximation of it uses tanh:

# %% role="demo" tags=["nbval-check-output"]
x = torch.linspace(-4, 4, 8001)
gap = (nn.GELU()(x) - nn.GELU(approximate="tanh")(x)).abs().max().item()
print(f"exact against tanh: up to {gap:.4f}")

# %% [markdown]
# No loss curve would show this difference. You notice it when you load someone else's weights and compare your
# outputs with theirs.

# %% [markdown]
# @exercise TransformerBlock
#
# `TransformerBlock(d_model, num_heads, max_len, dropout=0.0)` with four attributes: `ln1` and `ln2`, each `nn.LayerNorm(d_model)`;
# `attn`, a `CausalMultiHeadAttention`; `mlp`, an `nn.Sequential` of `nn.Linear(d_model, 4 * d_model)`, `nn.GELU()` and
# `nn.Linear(4 * d_model, d_model)`. forward: `x` (B, T, d_model) → (B, T, d_model)
#
# ```text
# x = x + attn(ln1(x))
# x = x + mlp(ln2(x))
# ```
#
# The exact GELU. Dropout acts inside attention only.

# %% role="exercise" exercise="TransformerBlock"
class TransformerBlock(nn.Module):
    """Attention between tokens, then a network for each token, both pre-norm and residual.

    d_model, num_heads, max_len, dropout: as for CausalMultiHeadAttention.
    """

    def __init__(self, d_model: int, num_heads: int, max_len: int, dropout: float = 0.0) -> None:
        # region solution
        super().__init__()
        self.ln1 = nn.LayerNorm(d_model)
        self.attn = CausalMultiHeadAttention(d_model, num_heads, max_len, dropout)
        self.ln2 = nn.LayerNorm(d_model)
        self.mlp = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))
        # endregion

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (B, T, d_model). Returns: (B, T, d_model)."""
        # region solution
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))
        # endregion

# %% role="check" exercise="TransformerBlock"
check(TransformerBlock)

# %% [markdown]
# If `CausalMultiHeadAttention` is not finished yet, `GivenAttention` stands in for it. Where do a block's parameters sit?

# %% role="payoff" exercise="TransformerBlock"
if passed(TransformerBlock):
    block = TransformerBlock(128, 4, 64)
    held = {name: sum(p.numel() for p in part.parameters()) for name, part in block.named_children()}
    print("  ".join(f"{name} {count:,}" for name, count in held.items()))
    assert 1.9 < held["mlp"] / held["attn"] < 2.1

# %% [markdown]
# Two thirds are in the network and one third in attention: the four matrices of attention hold 4 · 128² numbers, the two of the network
# 8 · 128². And the promise of the residual path can be tested on your own block: switch both parts off, and it must pass x on unchanged.

# %% role="payoff" exercise="TransformerBlock"
if passed(TransformerBlock):
    with torch.no_grad():
        block.attn.proj.weight.zero_()
        block.mlp[2].weight.zero_()
        block.mlp[2].bias.zero_()
        x = torch.randn(2, 10, 128)
        print("passes x on unchanged:", torch.equal(block.eval()(x), x))
        assert torch.equal(block(x), x)

# %% [markdown]
# ## What we keep
#
# - One projection computes q, k and v; the order of its rows is part of what a checkpoint means.
# - Dropout acts on the weights, in training only, and divides what stays by 1 − p.
# - A loss lower than any model could reach without seeing the answer means a leak. A falling loss alone proves
#   little.
# - LayerNorm treats each token separately: mean 0, variance 1 (dividing by d, not d − 1), then a scale and a shift
#   for each feature.
# - The residual path carries a token and its gradient past each part; normalization before each part keeps the scale
#   of its input constant. With both, a deep stack learns at learning rates at which neither alone does.
#
# | what | shape |
# |---|---|
# | x, before and after attention, network and block | (B, T, d_model) |
# | qkv(x) | (B, T, 3 · d_model) |
# | q, k, v of all heads | (B, num_heads, T, d_head) |
# | scores and weights | (B, num_heads, T, T) |
# | inside the small network | (B, T, 4 · d_model) |
#
# Lesson 10 puts two of these blocks between an embedding and a vocabulary and lets them learn to write.

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# The module that language models use, and the two repairs without which it can't be stacked. Learners should leave with the
# experiment in mind in which gradients arrive and nothing is learned.
#
# ## Cut for 60 minutes
#
# `CausalMultiHeadAttention`, the stack experiment and `TransformerBlock`. Show the reversal instead of running it; `layer_norm` is
# homework.
#
# ## Cut for 90 minutes
#
# All three exercises; leave out pre-norm against post-norm, or show its figure alone.
#
# ## Mistakes to expect
#
# - CausalMultiHeadAttention MH1: What are the numbers of one token after your `view`, and do they all belong to it?
# - CausalMultiHeadAttention PJ3: Which of the 3 · d_model numbers are the keys of head 1?
# - CausalMultiHeadAttention MH5: What does your module return if you call it twice in evaluation?
# - CausalMultiHeadAttention MH2: In which order do heads and tokens stand when you merge them?
# - layer_norm LN1: By what does your variance divide, and how many numbers are there?
# - layer_norm LN6: If I change another token, may this one's result change?
# - layer_norm LN2: What is the denominator for a token whose numbers are all 3?
# - TransformerBlock CM21: On which path does a number travel from the first block to the last without being rescaled?
# - TransformerBlock CM29: What does the network read: the block's input, or what attention has added to?
# - TransformerBlock CM22: If attention returned zeros, what would be left of the token?
#
# ## To discuss
#
# - "Normalized" has healthy gradients and learns nothing. Why? A good answer says that a gradient tells how to change the weights,
#   not that the input still says something: 24 untrained blocks without a residual path have made one vector of all tokens.
# - Why is the mask a buffer and not a parameter, and why not saved? A good answer: there is nothing to learn about it, it has to move
#   with the module to a GPU, and it follows from max_len.
#
# ## On paper
#
# Normalize the token (2, 4, 4, 6) by hand, with weight (1, 1, 2, 1), bias (0, 0, 0, 1) and eps = 0. *Solution:* mean 4, distances −2,
# 0, 0, 2, variance 8/4 = 2, root 1.414: −1.414, 0, 0, 1.414. With weight and bias: −1.414, 0, 0, 2.414.
