# %% [markdown]
# # 7 · Positions
#
# **Attention does not know which token came first: how do we tell it?**
#
# Lesson 06 took the future away from a query. Among the tokens that are left, attention still cannot say which one came first:
# nothing in its equation mentions an order. In this lesson we see that, and then give it positions in three ways: as numbers that are
# added to the tokens, as a rotation of queries and keys, and as a bias on the scores.

# %% role="given"
import math

import torch
from torch import nn

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution


def attention(x, w_q, w_k, w_v):
    """Self-attention as in lesson 05, without a mask: (output, weights)."""
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights

# %% [markdown]
# ## A bag of tokens
#
# "I love AI" and "AI love I" say different things. We give each word a random vector and run attention over both orders.
#
# **Predict:** how will the output of "love" differ between the two?

# %% role="demo"
generator = torch.Generator().manual_seed(7)
words = {word: torch.randn(4, generator=generator) for word in ("I", "love", "AI")}
projections = [torch.randn(4, 4, generator=generator) / 2 for _ in range(3)]
orders = ["I love AI".split(), "AI love I".split()]
outputs, weights = zip(*(attention(torch.stack([words[w] for w in order]), *projections) for order in orders))
print("love in 'I love AI':", outputs[0][1])
print("love in 'AI love I':", outputs[1][1])
assert torch.allclose(outputs[0], outputs[1].flip(0), atol=1e-5)
figures.lesson_07.bag(orders, weights)

# %% [markdown]
# Not at all. Each word looks at each other word with the same weight wherever it stands. Reordering the tokens reorders the outputs
# and changes none: attention is *equivariant* to permutations, and a sentence is a bag of words to it.
#
# ## A row of sines and cosines for each position
#
# The first remedy (Vaswani et al. 2017, section 3.5) adds to the token at position $p$ a row that belongs to $p$. With $i$
# counting pairs of columns from 0:
#
# $$PE(p, 2i) = \sin\!\left(p\,/\,10000^{2i/d_{model}}\right) \qquad PE(p, 2i+1) = \cos\!\left(p\,/\,10000^{2i/d_{model}}\right)$$
#
# Each pair is a hand of a clock. The first turns by 1 rad a position, every further one more slowly. A published walk-through has
# this code for it:

# %% role="given"
def published_positions(n_positions, d_model):
    """The code as it was published."""
    pe = torch.zeros(n_positions, d_model)
    for pos in range(n_positions):
        for i in range(0, d_model, 2):
            pe[pos, i] = math.sin(pos / (10000 ** (2 * i / d_model)))
            pe[pos, i + 1] = math.cos(pos / (10000 ** (2 * i / d_model)))
    return pe

# %% role="demo" tags=["nbval-check-output"]
for position, row in enumerate(published_positions(3, 4)):
    print(position, " ".join(f"{number:8.4f}" for number in row))

# %% [markdown]
# **By hand:** for d_model = 4 compute row 1 from the equation, all four numbers. One power of 10000 and a table of small sines
# (sin x ≈ x) are enough. Where do our numbers and the printed row part? The line at fault is in the cell above; find it before
# going on.

# %% [markdown]
# @exercise sinusoidal_positions
#
# `n_positions` ≥ 1, `d_model`, `base` → float tensor (n_positions, d_model)
#
# ```text
# for each position p and each pair i = 0 … d_model/2 − 1:
#     angle = p / base^(2i / d_model)
#     result[p, 2i], result[p, 2i + 1] = sin(angle), cos(angle)
# ```
#
# An odd `d_model` raises ValueError. When stuck, `hint(sinusoidal_positions)` in a new cell asks a question first.

# %% role="exercise" exercise="sinusoidal_positions"
def sinusoidal_positions(n_positions: int, d_model: int, base: float = 10000.0) -> torch.Tensor:
    """A row of alternating sines and cosines for each position.

    Returns: (n_positions, d_model); row p belongs to position p, counted from 0.
    Raises:  ValueError where d_model is odd.
    Source:  Vaswani et al. 2017, section 3.5.
    """
    # region solution
    if d_model % 2:
        raise ValueError(f"sine and cosine come in pairs, so d_model must be even; got {d_model}")
    positions = torch.arange(n_positions)
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)  # float64: angles reach thousands of radians
    frequencies = base ** (-two_i / d_model)
    angles = positions[:, None] * frequencies
    sine, cosine = angles.sin(), angles.cos()
    return torch.stack((sine, cosine), dim=-1).flatten(-2).float()
    # endregion

# %% role="check" exercise="sinusoidal_positions"
check(sinusoidal_positions)

# %% [markdown]
# In `range(0, d_model, 2)` the variable counts columns: 0, 2, 4, … It *is* 2i, and `2 * i` doubles it once more. So the published row
# shows sin(0.0001) where the equation gives sin(0.01). Nothing raises, and models train with it. **Predict** what is lost at
# d_model = 512, for 50 positions.

# %% role="payoff" exercise="sinusoidal_positions"
if passed(sinusoidal_positions):
    ours, published = sinusoidal_positions(2, 4)[1, 2], published_positions(2, 4)[1, 2]
    print(f"row 1, column 2: ours {ours:.7f}, published {published:.7f}")
    figures.lesson_07.constant_columns(published_positions(50, 512), sinusoidal_positions(50, 512))

# %% [markdown]
# We call a column nearly constant where its standard deviation over the 50 positions is below 0.01. The doubled exponent
# leaves about two thirds of the columns in that state, the right one about a third: those are kept for longer texts.
#
# Why sines? Two rows k positions apart differ by the same rotation wherever they stand, since each pair turns by a fixed angle
# a step. Their dot product is a sum of cos(k · frequency), and p is not in it.

# %% role="payoff" exercise="sinusoidal_positions"
if passed(sinusoidal_positions):
    figures.lesson_07.sinusoids(sinusoidal_positions)

# %% [markdown]
# Does it mend the bag? We add the rows to our three words and look at "love" again.

# %% role="payoff" exercise="sinusoidal_positions"
if passed(sinusoidal_positions):
    for order in orders:
        x = torch.stack([words[w] for w in order]) + sinusoidal_positions(3, 4).float()
        print(f"love in {' '.join(order)!r}:", attention(x, *projections)[0][1])

# %% [markdown]
# ## A rotation in place of a sum
#
# Added to the tokens, the positions mix with the meaning: $(x_p + PE_p)\,W_Q$ meets $(x_s + PE_s)\,W_K$, and only one of the four
# products in that score is between positions. RoPE (Su et al. 2021, section 3.2) adds nothing. It leaves the values alone and *turns*
# queries and keys, each pair of numbers by an angle in proportion to the position:
#
# $$\begin{pmatrix} a' \\ b' \end{pmatrix} = \begin{pmatrix} \cos\theta & -\sin\theta \\ \sin\theta & \cos\theta \end{pmatrix}
# \begin{pmatrix} a \\ b \end{pmatrix} \qquad \theta = p \cdot base^{-2i/d}$$
#
# **By hand:** where does (1, 0) go at position 1, in the first pair, where θ = 1? And if a query turns by 3 and a key by 1, by
# how much has the angle between them changed?

# %% [markdown]
# @exercise apply_rope
#
# `x` (..., T, d), `positions` (T,) integers, `base` → (..., T, d), each pair of neighbours (x[2i], x[2i+1]) rotated
#
# ```text
# for each token t and each pair i = 0 … d/2 − 1:
#     θ = positions[t] · base^(−2i / d)
#     a, b = x[..., t, 2i], x[..., t, 2i + 1]
#     result[..., t, 2i]     = a cos θ − b sin θ
#     result[..., t, 2i + 1] = a sin θ + b cos θ
# ```
#
# The positions may start anywhere, come in any order and repeat: a model that generates text has one token at position 37. `...` is
# any number of leading dimensions, none included. Gradients flow to x. An odd d raises ValueError.

# %% role="exercise" exercise="apply_rope"
def apply_rope(x: torch.Tensor, positions: torch.Tensor, base: float = 10000.0) -> torch.Tensor:
    """Rotate neighbouring pairs of numbers by angles in proportion to the position.

    x: (..., T, d), d even. positions: (T,) integers, the position of each token.
    Returns: (..., T, d), each vector as long as before.
    Raises:  ValueError where d is odd.
    Source:  Su et al. 2021, section 3.2.2.
    """
    # region solution
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"numbers are rotated in pairs, so d must be even; got {d}")
    two_i = torch.arange(0, d, 2, dtype=torch.float64, device=x.device)
    frequencies = base ** (-two_i / d)
    angles = positions[:, None] * frequencies  # (T, d/2), the same for every leading dimension
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    new_a = a * cos - b * sin
    new_b = a * sin + b * cos
    return torch.stack((new_a, new_b), dim=-1).flatten(-2)
    # endregion

# %% role="check" exercise="apply_rope"
check(apply_rope)

# %% [markdown]
# We watch the vector (1, 0, 1, 0) at six positions. With base = 100 and d = 4 the two frequencies are 1 and 0.1.

# %% role="payoff" exercise="apply_rope"
if passed(apply_rope):
    figures.lesson_07.turning(apply_rope)

# %% [markdown]
# The angle between a query at p and a key at s changes by (s − p) times the frequency. So their score depends on the distance alone,
# *by construction* and for any two vectors. **Predict** the second map from the first: the same query and key, a hundred
# positions later.

# %% role="payoff" exercise="apply_rope"
if passed(apply_rope):
    figures.lesson_07.relative(apply_rope)

# %% [markdown]
# ## Break it on purpose: two layouts that do not mix
#
# Which numbers form a pair is a convention. The paper turns neighbours, (x[0], x[1]) and so on. Many libraries turn x[i] with
# x[i + d/2], halves against halves. Both are rotations. The function below is of the second kind.

# %% role="given"
def rope_halves(x, positions, base=10000.0):
    """RoPE with the other pairing: x[i] and x[i + d/2] turn together."""
    d = x.shape[-1]
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), dim=-1)

# %% [markdown]
# **Predict** which of these depend on the distance only: scores with neighbours in both, with halves in both, with neighbours in the
# queries and halves in the keys.

# %% role="payoff" exercise="apply_rope"
if passed(apply_rope):
    q, k = torch.randn(2, 1, 8, generator=torch.Generator().manual_seed(3))
    pairs = {"neighbours, neighbours": (apply_rope, apply_rope), "halves, halves": (rope_halves, rope_halves),
             "neighbours, halves": (apply_rope, rope_halves)}  # fmt: skip
    for name, (turn_q, turn_k) in pairs.items():
        at = [(turn_q(q, torch.tensor([p + 2])) * turn_k(k, torch.tensor([p]))).sum().item() for p in (0, 10, 20)]
        print(f"{name:24} key at 0, 10, 20, query two later: " + " ".join(f"{score:6.3f}" for score in at))
    order = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])
    neighbours, halves = apply_rope(q, torch.tensor([5])).float(), rope_halves(q[:, order], torch.tensor([5]))
    same = torch.allclose(neighbours[:, order], halves, atol=1e-5)
    print("one is the other with its columns in another order:", same)

# %% [markdown]
# Each is as good as the other, and a model trained with one and run with the other is wrong without an error. That is what goes wrong
# when weights move between libraries, and the remedy is in the last line: reorder the columns of w_q and w_k.
#
# ## A bias in place of either
#
# ALiBi (Press et al. 2022, section 3) touches neither tokens nor queries. It lowers each score by the distance times a *slope*. A
# model has several attentions side by side, its *heads* (lesson 09), and each head gets its own slope: some look close by, some far.

# %% [markdown]
# @exercise alibi_bias
#
# `num_heads`, `t` → float tensor (num_heads, t, t), to be added to the scores of t queries and t keys
#
# ```text
# slope_h = 2^(−8 (h + 1) / num_heads),  h = 0 … num_heads − 1
# result[h, i, j] = −slope_h · abs(i − j)
# ```
#
# One formula for any number of heads, a power of two or not. The bias is asked for on both sides of the diagonal; masks are
# another matter.

# %% role="exercise" exercise="alibi_bias"
def alibi_bias(num_heads: int, t: int) -> torch.Tensor:
    """What each head adds to its scores: a penalty in proportion to the distance.

    Returns: (num_heads, t, t), 0 on the diagonal and negative elsewhere.
    Source:  Press et al. 2022, section 3; absolute distances, for models without a causal mask, are ours.
    """
    # region solution
    slopes = 2.0 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)
    positions = torch.arange(t)
    distance = (positions[:, None] - positions).abs()
    bias = -slopes[:, None, None] * distance
    return bias
    # endregion

# %% role="check" exercise="alibi_bias"
check(alibi_bias)

# %% role="payoff" exercise="alibi_bias"
if passed(alibi_bias):
    figures.lesson_07.slopes(alibi_bias)

# %% [markdown]
# ## Beyond the trained length
#
# A model is trained on short texts and then meets a longer one. Each of our three functions can be computed for any position. Whether
# the model can *use* it there is another question, and we can measure it: a reader of one causal attention layer, trained on 16
# tokens, read at 128. The learner's functions come in as arguments.

# %% role="given"
class Reader(nn.Module):
    """One causal attention layer with four heads; positions come in as a table, a rotation or a bias."""

    def __init__(self, table=None, rotate=None, bias=None):
        super().__init__()
        self.table, self.rotate, self.bias = table, rotate, bias
        self.embed, self.qkv, self.out = nn.Embedding(8, 32), nn.Linear(32, 96, bias=False), nn.Linear(32, 8)

    def forward(self, ids):
        (batch, t), x = ids.shape, self.embed(ids)
        x = x + self.table(t, 32).float() if self.table else x
        q, k, v = self.qkv(x).view(batch, t, 3, 4, 8).permute(2, 0, 3, 1, 4)  # (B, head, T, 8) each; lesson 09
        if self.rotate:
            q, k = (self.rotate(vectors, torch.arange(t)).float() for vectors in (q, k))
        scores = q @ k.mT / math.sqrt(8)
        scores = scores + self.bias(4, t).float() if self.bias else scores
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        output = torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1) @ v
        return self.out(output.transpose(1, 2).reshape(batch, t, 32))

# %% [markdown]
# Two tasks on random symbols 0 to 7. *Two back*: say which symbol stood two positions ago. *Last small one*: say which was the most
# recent symbol below 4. The first asks for an exact distance, the second for the nearest of a kind.

# %% role="given"
def symbols(task, t, batch, generator):
    """Random symbols and what to answer at each position; −100 where there is no answer yet."""
    ids = torch.randint(0, 8, (batch, t), generator=generator)
    places = torch.arange(t).expand(batch, t)
    source = places - 2 if task == "Two back" else torch.where(ids < 4, places, -1).cummax(dim=1).values
    return ids, torch.where(source >= 0, ids.gather(1, source.clamp(min=0)), -100)


def read(task, reader, trained=16, tested=128, steps=150):
    """Train a reader on short sequences; its share of right answers at each position of longer ones."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(reader.parameters(), lr=0.015)
    for _ in range(steps):
        ids, target = symbols(task, trained, 32, generator)
        loss = nn.functional.cross_entropy(reader(ids).flatten(0, 1), target.flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        ids, target = symbols(task, tested, 128, generator)
        return ((reader(ids).argmax(-1) == target).sum(0) / (target >= 0).sum(0)).numpy()

# %% [markdown]
# **Predict** for each task: who answers well inside the trained length, and who still does at position 100? The eight trainings take
# some seconds.

# %% role="payoff" exercise="alibi_bias"
if passed(alibi_bias) and passed(apply_rope) and passed(sinusoidal_positions):
    ways = {"no positions": {}, "sinusoidal": {"table": sinusoidal_positions}}
    ways |= {"RoPE": {"rotate": apply_rope}, "ALiBi": {"bias": alibi_bias}}
    accuracy = {"Two back": {}, "Last small one": {}}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # on tensors this small several threads mostly wait for one another
    for task, curves in accuracy.items():
        for name, way in ways.items():
            torch.manual_seed(0)
            curves[name] = read(task, Reader(**way))
            inside, beyond = curves[name][2:16].mean(), curves[name][64:].mean()
            print(f"{task}, {name}: {inside:.2f} inside, {beyond:.2f} beyond 64")
    torch.set_num_threads(threads)
    figures.lesson_07.beyond(accuracy, trained=16)

# %% [markdown]
# Inside the trained length a table and a rotation answer both questions. Beyond it they meet angles that never occurred in training,
# and what the layer made of them does not carry over: "can be computed" is not "can be used". ALiBi can't point at *exactly* two
# back, since its bias is largest at the query itself. But the little that it says, nearer is likelier, is true at every length, and
# so is what was learned with it. And no positions at all? That reader knows which symbols came before, not in which order. Early on
# they are few, so that naming the commonest of them is often right, and in *Last small one* a small symbol answers for itself; with
# each further token the guess gets worse. Several layers could count by the causal mask (Kazemnejad et al. 2023, section 5); of
# that nothing shows here.
#
# ## What we keep
#
# - Attention without positions is a bag of tokens: reordering the tokens reorders the outputs and changes none.
# - In a sinusoidal row the exponent is 2i/d_model with i counting *pairs*. A doubled exponent trains, and wastes columns.
# - A rotation of queries and keys makes scores depend on distances alone. Which numbers form a pair is a convention that weights depend on.
# - A bias on the scores needs no vectors at all, and extrapolates where "near" is what matters.
#
# ## Where this goes on
#
# Models for long texts stretch RoPE: positions are squeezed into the trained range (Chen et al. 2023, section 2.3), or fast and slow
# pairs are treated differently (Peng et al. 2023, section 3). Relative positions began with learned vectors for each distance (Shaw
# et al. 2018, section 3.1). Our reader above had four heads side by side, and we took them on trust; lesson 08 first shows what
# gradients flow through one, and lesson 09 builds them.

# %% role="demo"
explain("PE1")
