# %% [markdown]
# # 08 · Positions
#
# **Attention does not know which token came first: how do we tell it?**
#
# **Before this lesson:** self-attention in torch (lesson 05), heads (lesson 07), sine and cosine as the coordinates of a point on a
# circle, `nn.Embedding`.
#
# "Dog bites man" is not news; "man bites dog" is. The words are the same, and only their order differs. Attention without a
# mask cannot tell the two sentences apart, and in a minute you will see why.
#
# What tells a model where each token stands is called a **positional encoding**. You build two: the sinusoidal encoding of the
# first Transformer, and RoPE, which most open language models use today. The second follows from a property of the
# first, and you prove that property by building it.

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
# We give each of the three words a random vector, take random matrices W_Q, W_K and W_V, and run attention over both orders.

# %% [markdown]
# @predict
#
# How does the output of *bites* differ between "dog bites man" and "man bites dog"?
#
# - **A** Not at all.
# - **B** The weights of *dog* and *man* are exchanged, so the output differs.
# - **C** A little, because neighbors count more.
#
# @answer
#
# **A.** *bites* compares its query with the keys of *dog*, *bites* and *man*. These three scores are the same in both sentences, and
# so is the blend of the values. Nothing in softmax(Q Kᵀ / √d_k) V says where a key stands.
#
# @wrong
#
# B gives weight to a *place*. Weights go to keys, and *dog* takes its key along wherever it stands. C describes a
# convolution or a recurrent network, in which the distance is built in.

# %% role="demo"
generator = torch.Generator().manual_seed(43)
words = {word: torch.randn(4, generator=generator) for word in ("dog", "bites", "man")}
projections = [torch.randn(4, 4, generator=generator) / 2 for _ in range(3)]
orders = ["dog bites man".split(), "man bites dog".split()]
outputs, weights = zip(*(attention(torch.stack([words[w] for w in order]), *projections) for order in orders))
print("bites in 'dog bites man':", outputs[0][1])
print("bites in 'man bites dog':", outputs[1][1])
figures.positions.two_orders(orders, weights)
assert torch.allclose(outputs[0], outputs[1].flip(0), atol=1e-5)

# %% [markdown]
# The rows keep the order of the sentence; the columns have the same order in both pictures. How much weight one word gives to
# another does not depend on where they stand. Without a mask, attention is **permutation-equivariant**: reordering its input
# only reorders its output. To such attention, a sentence is a bag of words. (A causal mask lets
# some order in, since each word sees another past: far from enough.)
#
# ## Learned: a vector for each position
#
# The simplest remedy gives every position a vector of its own, adds it to the token at that position, and lets
# training find its numbers. This is a **positional embedding**: a table of parameters with one row for each
# position, `nn.Embedding(max_len, d_model)`. BERT (Devlin et al. 2019) and GPT-2 (Radford et al. 2019) use it.
#
# Now the order counts: in one sentence *bites* reads *dog* plus the first row, in the other *dog* plus the third. But the
# table has no row for the position after its last one. Nor are its rows related: a model
# has to learn from data that 5 is next to 6.
#
# ## Computed: the sinusoidal encoding
#
# The first Transformer (Vaswani et al. 2017, section 3.5) computes the vector of position $p$ instead of learning it. Its
# **sinusoidal positional encoding** consists of pairs of a sine and a cosine. With $i$ counting *pairs* from 0:
#
# $$PE(p, 2i) = \sin(p\,\omega_i) \qquad PE(p, 2i+1) = \cos(p\,\omega_i) \qquad \omega_i = 10000^{-2i/d_{model}}$$
#
# Think of each pair as the hand of a clock. The table stores the sine first; as a point, the cosine is the horizontal number:
# (cos, sin). Drawn like this, the pair is a hand of length 1, and from each position to the next it turns by the angle $\omega_i$,
# the pair's **frequency**. The first hand turns by 1 radian per position, and each further hand turns more slowly. Together they tell
# the time: the fast hands say exactly where a token is among its neighbors, the slow ones roughly where it is in the text.
#
# The article whose table you computed in lesson 01 (Shaikh, *Unveiling the Math Behind Modern NLP Models*) prints this
# code; others double the exponent, too (jadore801120/attention-is-all-you-need-pytorch#32):

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
# @predict
#
# For d_model = 4, compute the encoding of position 1 from the equation, all four numbers. (A calculator helps for sin 1 and
# cos 1; for small x, sin x ≈ x and cos x ≈ 1 − x²/2.) Where do your numbers and the printed ones differ? What in the code is
# at fault?
#
# @answer
#
# Pair 0 turns by 1 / 10000⁰ = 1: sin 1 = **0.8415**, cos 1 = **0.5403**. Pair 1 turns by 1 / 10000^(2/4) = 0.01: sin
# 0.01 = **0.0100**, cos 0.01 = **0.99995**. The code prints 0.0001 in column 2. In `range(0, d_model, 2)` the variable
# counts columns: 0, 2, 4, … It *is* 2i already, so `2 * i` doubles the exponent, in both lines that compute an entry.
#
# @wrong
#
# The printed numbers come from taking one i for the other: the code counts columns, the equation counts pairs.

# %% [markdown]
# @exercise sinusoidal_positions
#
# `n_positions` ≥ 1, `d_model`, `base` → float tensor (n_positions, d_model)
#
# Positions count from 0, and `base` takes the place of 10000. An odd `d_model` raises ValueError. If you are stuck,
# `hint(sinusoidal_positions)` in a new cell asks a question first.

# %% role="exercise" exercise="sinusoidal_positions"
def sinusoidal_positions(n_positions: int, d_model: int, base: float = 10000.0) -> torch.Tensor:
    """The encoding of each position: alternating sines and cosines.

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
# The published code raises nothing, and models train with it. What is lost? At d_model = 512 we count the columns
# that hardly change over 50 positions (a standard deviation below 0.01). Then we draw the sines of both, fast hands on the left,
# slow ones on the right.

# %% role="payoff" exercise="sinusoidal_positions"
if passed(sinusoidal_positions):
    tables = {"published code": published_positions(50, 512), "your function": sinusoidal_positions(50, 512)}
    constant = {name: int((rows.std(dim=0, correction=0) < 0.01).sum()) for name, rows in tables.items()}
    print("nearly constant columns of 512:", constant)
    rows = sinusoidal_positions(60, 64).double()
    products = rows @ rows.mT
    figures.positions.sinusoids(rows, published_positions(60, 64), products)
    rises, steps = int((products[0].diff() > 0).sum()), len(rows) - 1
    assert constant["published code"] > 1.9 * constant["your function"]

# %% [markdown]
# With the doubled exponent {{ constant["published code"] }} of 512 columns say nearly nothing. With the right one
# {{ constant["your function"] }} hardly move, too. They belong to the slow hands, which need a longer text to turn
# noticeably. The published code has far too many of these.
#
# The panel on the right shows dot products of encodings. From position 0, 15 or 30, the curve over the distance is the same.
# Why should that be?
#
# ## A step is a rotation
#
# The paper gives two reasons for its sines. That they may reach beyond the trained length is tested in the last further part. The
# other: "for any fixed offset k, $PE_{pos+k}$ can be represented as a linear function of $PE_{pos}$" (section 3.5). So there should
# be *one* matrix that moves every encoding by k positions, from 3 to 3 + k as well as from 4,000 to 4,000 + k. Here are the hands of
# three pairs (d_model = 6, base = 30), before and after a step of three positions:

# %% role="demo"
figures.positions.hands(starts=(1, 5), step=3, frequencies=[30 ** (-2 * i / 6) for i in range(3)])

# %% [markdown]
# @exercise shift_matrix
#
# `d_model` even, `offset` an integer of either sign, `base` → float tensor M (d_model, d_model) with PE(p + offset) = M @ PE(p)
# for every position p, where PE(p) is row p of `sinusoidal_positions` as a column
#
# Offsets and positions go up to 5,000, and an error of 0.001 is allowed. An odd `d_model` raises ValueError.

# %% role="exercise" exercise="shift_matrix"
def shift_matrix(d_model: int, offset: int, base: float = 10000.0) -> torch.Tensor:
    """The matrix M with PE(p + offset) = M @ PE(p) for every position p.

    Returns: (d_model, d_model).
    Raises:  ValueError where d_model is odd.
    Source:  Vaswani et al. 2017, section 3.5, says that it exists.
    """
    # region solution
    if d_model % 2:
        raise ValueError(f"sine and cosine come in pairs, so d_model must be even; got {d_model}")
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    frequencies = base ** (-two_i / d_model)
    angles = offset * frequencies
    even, shift = torch.arange(0, d_model, 2), torch.zeros(d_model, d_model).double()
    shift[even, even] = shift[even + 1, even + 1] = angles.cos()
    shift[even, even + 1] = angles.sin()
    shift[even + 1, even] = -angles.sin()
    return shift
    # endregion

# %% role="check" exercise="shift_matrix"
check(shift_matrix)

# %% role="payoff" exercise="shift_matrix" tags=["nbval-check-output"]
if passed(shift_matrix) and passed(sinusoidal_positions):
    table, five_on = sinusoidal_positions(4006, 8).double(), shift_matrix(8, 5).double()
    for p in (3, 4000):
        print(f"PE({p}) moved by 5, against PE({p + 5}): off by {(five_on @ table[p] - table[p + 5]).abs().max():.4f}")
    print("its transpose is its inverse:", torch.allclose(five_on.T @ five_on, torch.eye(8).double(), atol=1e-6))

# %% [markdown]
# A step of k positions is a **rotation**: the hand of each pair turns by its own angle kω, and no length changes.
#
# This explains the curves above. Two encodings that are turned by the same angles keep their dot product. So those of
# positions 101 and 103 have the same dot product as those of 1 and 3. Each pair adds the cosine of the angle between its two
# hands, and the sum is $\sum_i \cos\bigl((p - s)\,\omega_i\bigr)$: only the **offset** p − s is left. Since cos(−x) =
# cos x, the offsets 2 and −2 give the same sum: this product cannot tell before from after. It depends on the distance
# alone. But it does not simply fall with the distance: the curve rises again at {{ rises; it > 5 }} of {{ steps; it == 59 }} steps.
#
# ## RoPE: turn queries and keys
#
# Attention does not compare these encodings, though. It compares $(x_p + PE_p)\,W_Q$ with $(x_s + PE_s)\,W_K$. Multiplied out,
# with $A = W_Q W_K^\top$, the score is a sum of four products:
#
# $$x_p A\,x_s^\top + x_p A\,PE_s^\top + PE_p A\,x_s^\top + PE_p A\,PE_s^\top$$
#
# Only the last one has positions alone, and even there A stands between them. A model has to learn that the offset counts.
#
# If a step is a rotation, why not rotate the queries and keys themselves? This is **RoPE** (*rotary position embedding*, Su et al.
# 2021, section 3.2). It adds nothing to the tokens and leaves the values alone. In every layer and every head it takes a query's
# numbers in pairs, and turns each pair by an angle in proportion to the position. It does the same with the keys. Here is one pair
# of a query and the same pair of a key, with ω = 20° per position; the pale arrows show them before the turn:

# %% role="demo"
figures.positions.rotation(places=((0, 0), (3, 1), (5, 3)), omega=math.radians(20))

# %% [markdown]
# Both arrows turn the same way, the query by pω and the key by sω, so the angle between them changes by (p − s)ω. From the
# second panel to the third, both tokens move on by two positions, and that angle stays 80°. No arrow changes its
# length, so the dot product stays the same, too.
#
# In symbols, pair number i, seen as the point (a, b), turns counterclockwise by $\theta = p\,\omega_i$ with
# $\omega_i = base^{-2i/d}$. (Your `shift_matrix` has other signs: the table stores the vertical number first.)
#
# Let the query's pair have length r and direction α, and the key's length t and direction β. After the turn the directions
# are α + pω and β + sω, and the dot product is
#
# $$r\,t\,\cos\bigl((\alpha + p\omega) - (\beta + s\omega)\bigr) \;=\; r\,t\,\cos\bigl((\alpha - \beta) + (p - s)\,\omega\bigr)$$
#
# The score is the sum over all pairs, so positions enter it only through their offset. This holds for *any* query and
# key, whatever W_Q and W_K are. And in general the sign of the offset counts: with α − β = 40° and ω = 20°, an offset of 1
# gives cos 60° and an offset of −1 gives cos 20°. RoPE can tell before from after.

# %% [markdown]
# @exercise apply_rope
#
# `x` (..., T, d), `positions` (T,) integers, `base` → (..., T, d), each pair of neighbors (a, b) = (x[2i], x[2i+1]) turned as
# above
#
# The positions may start anywhere, come in any order and repeat: a model that generates text has one token at position 37. `...` is
# any number of leading dimensions, none included. Gradients flow to x. An odd d raises ValueError.

# %% role="exercise" exercise="apply_rope"
def apply_rope(x: torch.Tensor, positions: torch.Tensor, base: float = 10000.0) -> torch.Tensor:
    """Rotate neighboring pairs of numbers by angles in proportion to the position.

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
# Now all pairs of positions. On the left are the dot products of sinusoidal encodings. In the middle RoPE turns one
# query vector and one key vector: the entry in row p and column s is the score with the query at position p and the key at
# position s. On the right are the same two vectors a hundred positions later.

# %% role="payoff" exercise="apply_rope"
if passed(apply_rope) and passed(sinusoidal_positions):
    q = torch.tensor([1.5, -0.5, 0.7, 0.4, 0.3, 0.6, -0.5, 0.2]).expand(8, 8)
    k = torch.tensor([0.5, 1.2, 0.8, -0.3, 0.4, 0.5, -0.3, 0.4]).expand(8, 8)
    rows = sinusoidal_positions(8, 8).double()
    near, late = (
        (apply_rope(q, at) @ apply_rope(k, at).mT).double() for at in (torch.arange(8), torch.arange(100, 108))
    )
    maps = [rows @ rows.mT, near, late]
    figures.positions.relative(maps)
    assert all((m.diagonal(n) - m.diagonal(n)[0]).abs().max() < 1e-3 for m in maps for n in range(-7, 8))
    assert torch.allclose(maps[0], maps[0].mT) and torch.allclose(near, late, atol=1e-3)

# %% [markdown]
# Every diagonal holds one number, so the offset is all that counts, and the middle map and the right one are equal. The
# left map is symmetric: its two framed diagonals agree, since it knows only the distance. Those of RoPE do not. With the
# query one place after the key the score is {{ near[1, 0]:.1f }}, and with the query one place before it −{{ -near[0, 1]:.1f; it > 0 }}.
#
# ## Three ways in one table
#
# | | learned | sinusoidal | RoPE |
# |---|---|---|---|
# | where it acts | added to the tokens | added to the tokens | turns q and k, in every layer |
# | parameters | max_len · d_model | none | none |
# | where only the offset p − s counts | nowhere | between two encodings | in every score |
# | whether its sign counts there | – | no, only the distance | in general yes |
# | beyond the trained length | no rows | can be computed | can be computed |
# | used by | BERT, GPT-2 | the first Transformer | LLaMA (Touvron et al. 2023) |
#
# "Can be computed" is not "can be used": the last further part tests what a model makes of positions that it never met.

# %% [markdown]
# ## Further: two layouts of RoPE
#
# Which numbers form a pair is a convention, and libraries differ in it. For readers who will load published weights.

# %% [markdown]
# The paper turns neighbors, x[0] with x[1] and so on. Many libraries turn x[i] with x[i + d/2], halves against halves. Both
# are rotations. The function below is of the second kind.

# %% role="given"
def rope_halves(x, positions, base=10000.0):
    """RoPE with the other pairing: x[i] and x[i + d/2] turn together."""
    d = x.shape[-1]
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), dim=-1)


# %% [markdown]
# @predict
#
# Which scores depend on positions only through the offset?
#
# - **A** Only those with neighbors in both queries and keys.
# - **B** Those with neighbors in both, and those with halves in both.
# - **C** All of them, even with neighbors in the queries and halves in the keys.
#
# @answer
#
# **B.** Each convention turns a pair of the query and *the same* pair of the key at the same frequency. In a mix, a number
# of the query is turned together with one partner, and its counterpart in the key with another, in general at another
# frequency. The positions no longer cancel.
#
# @wrong
#
# A takes the pairing for a part of the mathematics, but it is only an order of columns. C expects any two rotations to
# fit together, but they do so only if they turn the same pairs.

# %% role="payoff" exercise="apply_rope"
if passed(apply_rope):
    q, k = torch.randn(2, 1, 8, generator=torch.Generator().manual_seed(3))
    pairs = {"neighbors, neighbors": (apply_rope, apply_rope), "halves, halves": (rope_halves, rope_halves),
             "neighbors, halves": (apply_rope, rope_halves)}
    for name, (turn_q, turn_k) in pairs.items():
        turned = [(turn_q(q, torch.tensor([p + 2])), turn_k(k, torch.tensor([p]))) for p in (0, 10, 20)]
        at = [(one * other).sum().item() for one, other in turned]
        print(f"{name:21} key at 0, 10, 20, query two later: " + " ".join(f"{score:6.3f}" for score in at))
        assert (max(at) - min(at) < 1e-3) == (name != "neighbors, halves")

# %% [markdown]
# A model that was trained with one pairing and is run with the other gives wrong results, and no error is raised. The
# remedy is to reorder the numbers of each query and key, that is, the *rows* of `w_q.weight` and `w_k.weight` that
# produce them. Lesson 17 does it with the weights of a real model.

# %% [markdown]
# ## Further: ALiBi, a bias on the scores
#
# A fourth way touches neither tokens nor queries: it lowers each score in proportion to the distance. For readers who want
# to see positions without any rotation.

# %% [markdown]
# **ALiBi** (*attention with linear biases*, Press et al. 2022, section 3) subtracts from each score the distance between query and
# key times a *slope*. Each head has its own slope, so that some heads look close by and some far.
#
# Take one row by hand: the last of four queries, with a slope of ½. The distances to its keys are 3, 2, 1 and 0.
#
# | key position | 0 | 1 | 2 | 3 |
# |---|---|---|---|---|
# | score | 2 | 0 | 1 | 1 |
# | bias, −½ · distance | −1.5 | −1 | −0.5 | 0 |
# | score with bias | 0.5 | −1 | 0.5 | 1 |
# | weight without bias | 0.53 | 0.07 | 0.20 | 0.20 |
# | weight with bias | 0.26 | 0.06 | 0.26 | 0.43 |
#
# Key 0 has the best score, but it is three positions away, and with the bias it falls behind key 3. If its score led by
# more than 1.5, it would still win: ALiBi weakens far keys but does not hide them.

# %% role="demo" tags=["nbval-check-output", "hide-input"]
scores = torch.tensor([2.0, 0, 1, 1])
bias = -0.5 * torch.tensor([3.0, 2, 1, 0])
without, biased = scores.softmax(-1), (scores + bias).softmax(-1)
print("weights without bias:", [round(w, 2) for w in without.tolist()])
print("weights with bias:   ", [round(w, 2) for w in biased.tolist()])

# %% [markdown]
# @exercise alibi_bias
#
# `num_heads`, `t` → float tensor (num_heads, t, t), to be added to the scores of t queries and t keys: −slope_h · abs(i − j) for head h,
# query i and key j
#
# The slope of head h = 0 … num_heads − 1 is 2^(−8(h + 1)/num_heads), for any number of heads. The bias covers both sides of
# the diagonal; hiding the future is the mask's business.

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
    bias = alibi_bias(4, 32)[:, -1].flip(-1)  # of the last query in each head, by distance
    near = torch.softmax(bias, dim=-1)  # the weights, were all other scores equal
    figures.positions.slopes(bias, near)
    print("weight of the four nearest keys in each head:", [round(share, 2) for share in near[:, :4].sum(dim=-1).tolist()])

# %% [markdown]
# ## Further: beyond the trained length
#
# Trained on texts of 16 tokens, which encoding still works at position 100? An experiment with all of them, for readers
# who did `alibi_bias`; it runs for about a minute.

# %% [markdown]
# The reader is one layer of causal attention with four heads. It takes one of the encodings as an argument, and three of them are
# your functions. There are two tasks on random symbols 0 to 7. *Two back*: say which symbol stood two positions ago. *Last small one*:
# say which was the most recent symbol below 4. The first asks for an exact distance, the second for the nearest of a kind.
#
# What does guessing achieve? In *Two back* it is ⅛ = 0.125. In *Last small one*, a symbol below 4 is its own answer, and half
# of all symbols are below 4. For the other half there are four answers to choose from. Together that is ½ + ½ · ¼ = 0.625.
#
# The folded cells hold the reader, the tasks and a usual training loop. After training, the reader gets texts of 128 tokens, and
# we count right answers at every position.

# %% role="given" tags=["hide-input"]
class LearnedRows(nn.Module):
    """A positional embedding with more rows than training will ever use."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(128, 32)

    def forward(self, t, d_model):
        return self.rows.weight[:t]

# %% role="given" tags=["hide-input"]
class Reader(nn.Module):
    """One causal attention layer with four heads; positions come in as a table, a rotation or a bias."""

    def __init__(self, table=None, rotate=None, bias=None):
        super().__init__()
        self.table, self.rotate, self.bias = table, rotate, bias
        self.embed, self.qkv, self.out = nn.Embedding(8, 32), nn.Linear(32, 96, bias=False), nn.Linear(32, 8)

    def forward(self, ids):
        (batch, t), x = ids.shape, self.embed(ids)
        x = x + self.table(t, 32).float() if self.table else x
        q, k, v = self.qkv(x).view(batch, t, 3, 4, 8).permute(2, 0, 3, 1, 4)  # (B, head, T, 8) each
        if self.rotate:
            q, k = (self.rotate(vectors, torch.arange(t)).float() for vectors in (q, k))
        scores = q @ k.mT / math.sqrt(8)
        scores = scores + self.bias(4, t).float() if self.bias else scores
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        output = torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1) @ v
        return self.out(output.transpose(1, 2).reshape(batch, t, 32))

# %% role="given" tags=["hide-input"]
def symbols(task, t, batch):
    """Random symbols and what to answer at each position; −100 where there is no answer yet."""
    ids = torch.randint(0, 8, (batch, t))
    places = torch.arange(t).expand(batch, t)
    source = places - 2 if task == "Two back" else torch.where(ids < 4, places, -1).cummax(dim=1).values
    return ids, torch.where(source >= 0, ids.gather(1, source.clamp(min=0)), -100)

# %% role="given" tags=["hide-input"]
def read(task, way, seed, trained=16, tested=128, steps=150):
    """Train a reader on short sequences; its share of right answers at each position of longer ones."""
    torch.manual_seed(seed)
    reader = Reader(**way())
    optimizer = torch.optim.Adam(reader.parameters(), lr=0.015, fused=True)  # all tensors at once
    for _ in range(steps):
        ids, target = symbols(task, trained, 32)
        loss = nn.functional.cross_entropy(reader(ids).flatten(0, 1), target.flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        ids, target = symbols(task, tested, 128)
        answers = torch.cat([reader(part).argmax(-1) for part in ids.split(16)])  # scores that fit into a processor's cache
        return (answers == target).sum(0) / (target >= 0).sum(0)

# %% [markdown]
# @predict
#
# All readers are trained on 16 tokens. In *Last small one*, who still answers well at position 100?
#
# - **A** All but the learned embedding, since the others can be computed for any position.
# - **B** RoPE and ALiBi, since positions enter their scores only as offsets.
# - **C** ALiBi alone.
#
# @answer
#
# **C.** From position 64 on, ALiBi gives the right answer {{ at_end["Last small one"]["ALiBi"]:.2f; it > 0.85 }} of the time.
# The sinusoidal encoding and RoPE are *below* guessing there, at
# {{ at_end["Last small one"]["sinusoidal"]:.2f; it < 0.625 }} and {{ at_end["Last small one"]["RoPE"]:.2f; it < 0.625 }}. Their
# slow pairs meet angles that never occurred in training, and what the layer makes of them is worse than a guess.
#
# @wrong
#
# A takes "can be computed" for "can be used". B is right that RoPE's scores depend on positions only through offsets. But
# *offsets* of 16 and more are new as well, and nothing has taught the reader to ignore them.

# %% role="payoff" exercise="alibi_bias" tags=["hide-input"]
# Trains readers with each way of positions, and reads on beyond
if passed(alibi_bias) and passed(apply_rope) and passed(sinusoidal_positions):
    ways = {
        "no positions": dict,
        "learned": lambda: {"table": LearnedRows()},
        "sinusoidal": lambda: {"table": sinusoidal_positions},
        "RoPE": lambda: {"rotate": apply_rope},
        "ALiBi": lambda: {"bias": alibi_bias},
    }
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # on tensors this small, several threads mostly wait for one another
    accuracy = {
        task: {name: torch.stack([read(task, way, seed) for seed in range(5)]) for name, way in ways.items()}
        for task in ("Two back", "Last small one")
    }
    torch.set_num_threads(threads)
    at_end = {task: {name: curve[:, 64:].mean().item() for name, curve in of.items()} for task, of in accuracy.items()}

# %% role="payoff" exercise="alibi_bias"
if passed(alibi_bias) and passed(apply_rope) and passed(sinusoidal_positions):
    figures.positions.extrapolation(accuracy, trained=16, guessing={"Two back": 0.125, "Last small one": 0.625})
    two, small = accuracy.values()
    for name in ("learned", "sinusoidal", "RoPE"):  # what follows holds for each of the five seeds
        assert all(of[name][:, 2:16].nanmean(dim=1).min() > 0.95 for of in (two, small))
    assert two["RoPE"][:, 16:32].mean(dim=1).min() > 0.9 and small["RoPE"][:, 16:32].mean(dim=1).min() > 0.9
    assert two["RoPE"][:, 64:].mean(dim=1).max() < 0.2 and small["RoPE"][:, 64:].mean(dim=1).max() < 0.625
    assert two["sinusoidal"][:, 16:24].mean(dim=1).max() < 0.75 and small["sinusoidal"][:, 64:].mean(dim=1).max() < 0.625
    assert two["learned"][:, 16:24].mean(dim=1).max() < 0.2 and small["learned"][:, 16:24].mean(dim=1).max() < 0.7
    assert small["ALiBi"][:, 64:].mean(dim=1).min() > 0.85 and 0.3 < two["ALiBi"].nanmean() < 0.45

# %% [markdown]
# Each point is the mean over a range of positions and over five trainings with different seeds. The positions double from mark
# to mark, so that short and long texts both have room. All that follows holds for each of the five.
#
# - **Learned, sinusoidal and RoPE** answer both questions within the trained length. The learned embedding fails right after
#   it, because its rows from 16 on were never trained. The sinusoidal encoding gets worse at once.
# - **RoPE** keeps working up to twice the trained length and then fails. In *Two back* it falls to pure guessing. We did
#   not look into why it lasts as long as it does.
# - **ALiBi** hardly points at *exactly* two back, since the bias of each head is largest at the query itself. But in *Last small
#   one* the nearest small symbol is the answer at every length, so a bias toward near keys helps, however long the text.
# - **No positions at all** is not hopeless at the start. The causal mask leaves few symbols to choose from there, so
#   naming a common one is often right. Several layers could use the mask to count positions (Kazemnejad et al. 2023,
#   section 5). This one layer does not.
#
# Many models for long texts therefore change RoPE's angles. Positions are squeezed into the trained range (Chen et al. 2023,
# section 2.3), or fast and slow pairs are treated differently (Peng et al. 2023, *YaRN*, section 3).
#
# **Sources of the further parts.** Press et al. 2022, *Train short, test long*, [arXiv:2108.12409](https://arxiv.org/abs/2108.12409).
# Kazemnejad et al. 2023,
# [arXiv:2305.19466](https://arxiv.org/abs/2305.19466). Chen et al. 2023, [arXiv:2306.15595](https://arxiv.org/abs/2306.15595).
# Peng et al. 2023, [arXiv:2309.00071](https://arxiv.org/abs/2309.00071).

# %% [markdown]
# ## What we keep
#
# - Without positions and without a mask, attention sees a bag of tokens: it is permutation-equivariant.
# - A positional encoding is learned (a table of embeddings), computed and added (sinusoidal), or computed and built into the
#   score (RoPE).
# - In the sinusoidal encoding a step of k positions is a rotation, the same for every position. So the dot product of two encodings
#   depends on their distance alone.
# - RoPE rotates queries and keys. Positions enter its scores only through their offset p − s, whose sign counts.
#
# | built | shape |
# |---|---|
# | `sinusoidal_positions` | (n_positions, d_model), added to the tokens |
# | `shift_matrix` | (d_model, d_model), a rotation of each pair of columns |
# | `apply_rope` | (…, T, d) → (…, T, d), on queries and keys |
#
# **Sources.** Vaswani et al. 2017, *Attention is all you need*, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762),
# section 3.5. Devlin et al. 2019, *BERT*, [arXiv:1810.04805](https://arxiv.org/abs/1810.04805). Radford et al. 2019,
# *Language models are unsupervised multitask learners* (GPT-2). Su et al. 2021, *RoFormer*,
# [arXiv:2104.09864](https://arxiv.org/abs/2104.09864). Touvron et al. 2023, *LLaMA*,
# [arXiv:2302.13971](https://arxiv.org/abs/2302.13971). Shaikh, undated, *Transformers and Attention Mechanisms: Unveiling
# the Math Behind Modern NLP Models*,
# [learn.mathnai.com](https://learn.mathnai.com/module/core/math/transformers-attention-mechanisms).

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners see that order is not in attention and has to be put in. They find that a step of the sinusoidal encoding is a rotation, and
# understand RoPE as the same rotation put into the score, not as a formula. The further parts add two layouts, ALiBi and a sober
# comparison beyond the trained length.
#
# ## Cut for 60 minutes
#
# Keep "A bag of tokens", the published code with its prediction and `sinusoidal_positions`, the picture of the hands, the picture of q and
# k, and `apply_rope`. Do `shift_matrix` for one pair at the board.
#
# ## Cut for 90 minutes
#
# All three exercises of the core. Tell "Three ways in one table" at the board, and show the figure of "Further: beyond the trained length"
# from the solved notebook.
#
# ## Mistakes to expect
#
# - sinusoidal_positions PE1: In your loop, does i count columns or pairs?
# - sinusoidal_positions PE4: Which number stands beside sin of the first angle?
# - sinusoidal_positions PE2: Which frequency does the cosine in column 1 have?
# - shift_matrix SH1: Where does the hand stand after a step, further on or further back?
# - shift_matrix SH2: How long is (sin p, cos p), and how long is what your block makes of it?
# - apply_rope RO1: Which number is turned together with x[0]?
# - apply_rope RO3: How long is (1, 1), and how long is it after your rotation?
# - alibi_bias PO21: With 8 heads, which slope has head 0, and which has head 7?
# - alibi_bias PO23: How far away is the key one place to the right?
#
# ## To discuss
#
# 1. *Why should a model treat positions 1 and 3 like 101 and 103 at all?* A good answer gives grammar as a reason (an adjective stands
#    before its noun anywhere in a text) and finds exceptions: the first line of a letter, line numbers, poems.
# 2. *A paper reports that its positions "extrapolate", with one seed and a falling perplexity. What is missing?* A good answer asks for a
#    baseline that uses only near tokens, for several seeds, for a task that needs far ones, and for results per position.
#
# ## On paper
#
# d_model = 2, so there is one pair with frequency 1. Write the encodings of positions 0, 1 and 2 with the letters s = sin 1,
# c = cos 1. Compute all dot products between them, and say which are equal and why.
#
# *Solution.* PE(0) = (0, 1), PE(1) = (s, c), PE(2) = (sin 2, cos 2). PE(0) · PE(1) = c. PE(1) · PE(2) = s sin 2 + c cos 2 = cos(2 − 1) = c.
# PE(0) · PE(2) = cos 2. Each with itself gives 1. Equal distances give equal products: both encodings are turned by one angle.
