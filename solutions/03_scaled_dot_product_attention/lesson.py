# %% [markdown]
# # 03 · Scaled dot-product attention, for a whole batch
#
# **What is *it*? The last word decides. How can attention find out?**
#
# > The animal didn't cross the street because **it** was too *tired*.
# >
# > The animal didn't cross the street because **it** was too *wide*.
#
# **Before this lesson:** the matrix product, `axis` and `keepdims` in NumPy; lesson 01 (scores, weights, blend) and
# lesson 02 (softmax along an axis).
#
# In lesson 01 we were given a query, a key and a value for each token. A model has only one vector for each token, and makes all
# three from it. First you see why that takes three matrices, and design two of them. Then you write attention for many sentences
# at once, and it tells the two sentences above apart.

# %% role="given"
import math
import timeit

import numpy as np

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution


def softmax(scores: np.ndarray) -> np.ndarray:
    """Softmax along the last axis, as in lesson 02: shifted by each row's largest score, so that nothing overflows."""
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)

# %% [markdown]
# ## First half: three matrices
#
# The part of the machine in color is new.

# %% role="demo"
figures.machine.draw(lit=("tokens", "query", "key", "value"), title="Each token's vector becomes three others")

# %% [markdown]
# (Its numbers are an example, hatched below 0; only the path matters.) The vector of a token is its **embedding**. Training finds
# its numbers, and a single one of them seldom means anything to us. So we build our own, for four tokens. Each number says whether
# a **feature** applies, *noun* or *living*. We write T for the number of tokens and, with Vaswani et al. 2017, d_model for the
# length of their vectors: here T = 4 and d_model = 6. The folded cell lists the features of each word, and defines `by_feature`,
# which makes matrices.

# %% role="given" tags=["hide-input"]
features = ["noun", "living", "place", "pronoun", "tired", "wide"]
about = {
    "animal": ["noun", "living"], "street": ["noun", "place"], "it": ["pronoun"],
    "tired": ["tired"], "wide": ["wide"],
}


def by_feature(**rows: list[float]) -> np.ndarray:
    """A matrix (6, width) from the rows of the features that are named; the other rows are 0."""
    width = len(next(iter(rows.values())))
    return np.array([rows.get(name, [0.0] * width) for name in features])

# %% role="given"
def embed(words: list[str]) -> np.ndarray:
    """One row of six numbers for each word, 1 where a feature applies: (T, 6)."""
    return np.array([[float(name in about[word]) for name in features] for word in words])

# %% [markdown]
# ## Three roles for each token
#
# In **self-attention** the query, the key and the value of a token are all made from the token's vector x, each by a matrix of its
# own. Such a product is called a **projection** (Vaswani et al. 2017, section 3.2.2):
#
# - the **query** x w_q: what this token looks for;
# - the **key** x w_k: what it can be found by;
# - the **value** x w_v: what it passes on when it is found.
#
# Queries and keys are compared, so both have d_k numbers. Values are only averaged, so they may have another number, d_v. Three such
# matrices and the attention that they compute are a **head**.
#
# The numbers in the matrices are **parameters**: training finds them, too. To see what they can do, we choose them by hand. In our
# head a pronoun looks for nouns. Each matrix has a row for each feature, and rows that we do not name are 0. The 8 below could be
# any large number: the larger the scores, the sharper softmax.

# %% role="given"
words = ["animal", "street", "it", "tired"]
x = embed(words)  # (4, 6): T tokens, d_model numbers each
w_q = by_feature(pronoun=[8, 0])  # (6, 2): a pronoun asks strongly for the first number of a key, "noun"
w_k = by_feature(noun=[1, 0], pronoun=[0, 1])  # (6, 2): a key says "noun" or "pronoun"
w_v = by_feature(living=[1, 0, 0], place=[0, 1, 0], pronoun=[0, 0, 1])  # (6, 3): what is passed on

# %% role="demo"
figures.scaled_dot_product_attention.projections(x, w_q, w_k, w_v, words, features, follow="it")

# %% [markdown]
# What pictures and formulas write in capital letters, X, W_Q and Q, is from here on x, w_q and q in code. Each number of Q is the dot
# product of a row of X and a column of W_Q; K and V are made in the same way. Follow the framed row of *it*. Its only 1 stands under
# *pronoun*, so its query is the row *pronoun* of the first matrix, [8, 0]. No other row of X has any part in it: a projection sees
# one token at a time. With the key [1, 0] of *animal*, the query of *it* scores 8.

# %% [markdown]
# @predict
#
# Two matrices for one comparison look like a waste. Suppose queries and keys shared one matrix w. What could the
# scores then no longer do?
#
# - **A** Be larger for another token than for the token itself.
# - **B** Differ between "it asks for animal" and "animal asks for it".
#
# @answer
#
# **B.** Score (i, j) is (x_i w) · (x_j w), and a dot product does not care about the order of its two vectors. No token could score
# another high without the other scoring it just as high. But a pronoun needs its noun; the noun does not need the pronoun.
#
# @wrong
#
# A is possible with one matrix, too: a longer arrow that points the same way scores more than the token itself.

# %% role="demo"
own = x @ w_k
shared = own @ own.T
separate = (x @ w_q) @ own.T
assert (shared == shared.T).all() and separate[2, 0] == 8 and separate[0, 2] == 0
both = {"One matrix for both: symmetric": shared, "w_q and w_k: 'it' asks, 'animal' does not": separate}
figures.scaled_dot_product_attention.token_scores(both, words)

# %% [markdown]
# On the left queries and keys both come from w_k, and *it* fits itself best. On the right *it* scores 8 with both nouns, and the
# nouns do not ask back. With a matrix of its own, a query can ask for something that the token itself is not.
#
# Why a third matrix, for values? *It* asked for a noun, so that *animal* is one is no news. That it is *living* is, and the value
# passes on just that.

# %% [markdown]
# @exercise project_qkv
#
# `x` (..., T, d_model), `w_q` and `w_k` (d_model, d_k), `w_v` (d_model, d_v) → `(q, k, v)` of shapes (..., T, d_k),
# (..., T, d_k) and (..., T, d_v)
#
# The three dots stand for any number of dimensions in front: none for one sentence, one for many sentences. `@` multiplies the
# matrices in the last two axes, once for each place in front (NumPy reference, `numpy.matmul`).

# %% role="exercise" exercise="project_qkv"
def project_qkv(
    x: np.ndarray, w_q: np.ndarray, w_k: np.ndarray, w_v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Project each token to its query, key and value.

    x: (..., T, d_model). w_q, w_k: (d_model, d_k). w_v: (d_model, d_v).
    Returns: q (..., T, d_k), k (..., T, d_k), v (..., T, d_v).
    """
    # region solution
    q = x @ w_q
    k = x @ w_k
    v = x @ w_v
    return q, k, v
    # endregion

# %% role="check" exercise="project_qkv"
check(project_qkv)

# %% [markdown]
# The next cell goes on to scores, softmax and blend. Only *it* asks for anything. The other queries are zero, so their weights are
# all equal.

# %% role="payoff" exercise="project_qkv"
if passed(project_qkv):
    q, k, v = project_qkv(x, w_q, w_k, w_v)
    weights = softmax(q @ k.T / math.sqrt(2))  # d_k = 2
    print("output of it (living, place, pronoun):      ", (weights @ v)[2].round(2))
    print("with keys in place of values (noun, pronoun):", (weights @ k)[2].round(2))
    assert weights[2, :2].min() > 0.49
    figures.scaled_dot_product_attention.sentence_weights({"'it' looks at both nouns, half and half": weights}, words)

# %% [markdown]
# The values say: half living, half a place. (Keys in their place would say no more than "noun".) The head found both nouns and
# cannot choose. You can, because you have read the last word. Can the head?

# %% [markdown]
# @predict
#
# We exchange *tired* for *wide* and leave the matrices as they are. What happens to the weights of *it*?
#
# - **A** They move towards *street*.
# - **B** Nothing.
# - **C** They change a little.
#
# @answer
#
# **B.** The query of *it* is made from the vector of *it* alone, and that is the same in both sentences. The keys of
# *tired* and *wide* are both zero, since neither is a noun or a pronoun.
#
# @wrong
#
# A: a projection sees one token. C would be right for trained matrices, but *animal* and *street* would keep their ratio.

# %% role="payoff" exercise="project_qkv"
if passed(project_qkv):
    q_wide, k_wide, _ = project_qkv(embed(["animal", "street", "it", "wide"]), w_q, w_k, w_v)
    weights_wide = softmax(q_wide @ k_wide.T / math.sqrt(2))
    print("it, tired:", weights[2].round(3))
    print("it, wide: ", weights_wide[2].round(3))
    assert np.allclose(weights[2], weights_wide[2], atol=1e-9)

# %% [markdown]
# Before *it* can ask for the right noun, it has to know about the last word. Only in attention does a token learn anything about
# another. So *it* needs attention twice: to read the last word, then to find the noun. The end of the lesson does that.

# %% [markdown]
# ## Projections that you design
#
# Now you design a head with which each token attends to the token before it. Trained language models have such *previous-token
# heads*; they are one half of a mechanism that continues repeated text (Olsson et al. 2022, "In-context learning and induction
# heads").

# %% [markdown]
# @exercise previous_token_projections
#
# `t` at least 2, `share` above 0 and at most 0.99 → `(w_q, w_k)`, both of shape (t, d_k), with a d_k of your choice
#
# Here x is the identity matrix (t, t): all that the vector of token i says is "I am number i". Your pair gives the attention weights
# softmax(x w_q (x w_k)ᵀ / √d_k), row by row. Two things must hold:
#
# - row i puts at least `share` of its weight on column i − 1, the token before;
# - row 0 has no token before it, and puts at least `share` on column 0, itself.
#
# Any pair of finite matrices that does it passes.

# %% role="exercise" exercise="previous_token_projections"
def previous_token_projections(t: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Projections with which each token attends to the token before it, and token 0 to itself.

    t: the number of tokens, which are the rows of the identity. share: the least weight for the chosen token.
    Returns: w_q (t, d_k), w_k (t, d_k).
    """
    # region solution
    gap = math.log((t - 1) * share / (1 - share))  # so that e^gap / (e^gap + t - 1) = share: the other scores are 0
    w_q = np.eye(t, k=-1)  # the query of token i is the key of token i - 1
    w_q[0, 0] = 1
    w_k = gap * math.sqrt(t) * np.eye(t)  # attention divides by the root of d_k = t
    return w_q, w_k
    # endregion

# %% role="check" exercise="previous_token_projections"
check(previous_token_projections)

# %% [markdown]
# Here is your head on the whole sentence. The first two rows both attend to *The*: *animal* comes right after it, and *The* has no
# token before it. Lesson 08 shows how positions get into a model's vectors.

# %% role="payoff" exercise="previous_token_projections"
if passed(previous_token_projections):
    sentence = "The animal didn't cross the street because it was too tired".split()
    designed = previous_token_projections(len(sentence), 0.9)
    products = designed[0] @ designed[1].T  # x is the identity, so x w = w
    back = softmax(products / math.sqrt(designed[0].shape[1]))
    assert back[1:].diagonal().min() > 0.9 - 1e-6
    claim = "Each token attends to the one before it, the first to itself"
    figures.scaled_dot_product_attention.sentence_weights({claim: back}, sentence)

# %% [markdown]
# *This is the middle of the lesson, and a good place for a break.*
#
# ---

# %% [markdown]
# ## Second half: many sentences at once
#
# What remains are the steps of lesson 01, in one formula:
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V$$
#
# (Vaswani et al. 2017, section 3.2.1, equation 1.)

# %% role="demo"
figures.machine.draw(lit=("scores", "weights", "blend", "output"), title="The second half: scores, weights, blend")

# %% [markdown]
# A model computes many sentences at a time, a **batch**: one array of shape (B, T, d_model), B sentences of T tokens. No query
# meets a key of another sentence. The numbers of queries and keys, n_q and n_k in lesson 01, are T_q and T_k from here on.

# %% [markdown]
# ## Why `k.T` breaks
#
# For one sentence all scores are one product, `q @ k.T`. For a batch the same line fails.

# %% role="demo" tags=["nbval-check-output"]
k = np.arange(24.0).reshape(2, 3, 4)  # (B, T_k, d_k)
print("k.T                ", k.T.shape)
print("k.swapaxes(-1, -2) ", k.swapaxes(-1, -2).shape)
try:
    k @ k.T
except ValueError as error:
    print("k @ k.T             raises", type(error).__name__)

# %% [markdown]
# `.T` reverses *all* axes, so it sends the batch axis to the end. `k.swapaxes(-1, -2)` swaps only the last two.

# %% role="demo"
figures.scaled_dot_product_attention.axis_permutation(k.shape)

# %% [markdown]
# @predict
#
# The error was the lucky case. Now let batch, tokens and features all be 4, so that every shape fits. What does
# `k @ k.T` do?
#
# - **A** It raises an error, as before.
# - **B** It runs, and the 64 numbers are right, because all axes have one size.
# - **C** It runs, and the numbers are wrong.
#
# @answer
#
# **C.** The shape of the result is right. But entry (b, i, j) is the sum over d of k[b, i, d] · k[j, d, b]: in the second factor j
# counts sentences, d counts tokens and b counts features.
#
# @wrong
#
# A: an error needs two sizes that differ. B: NumPy pairs axes by place and checks only sizes; only you know which of them is
# the batch.

# %% role="demo" tags=["nbval-check-output"]
cube = np.random.default_rng(0).normal(size=(4, 4, 4))
right, wrong = cube @ cube.swapaxes(-1, -2), cube @ cube.T
print("shapes:", right.shape, wrong.shape)
print("numbers that agree:", int(np.isclose(right, wrong).sum()), "of", right.size)

# %% [markdown]
# No error, and not one number is right. So the checks of this course try sizes that all differ, and sizes that all agree.

# %% [markdown]
# ## Shapes are the map
#
# We follow the shapes for B = 2, three queries and five keys. The two factors of each product share one axis besides the batch. The
# sum runs along it, so the result no longer has it. Scale and softmax leave the shape as it is.

# %% role="demo"
shape_rng = np.random.default_rng(2)
q, k, v = (shape_rng.normal(size=shape) for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 6)))
figures.scaled_dot_product_attention.shapes(q, k, v)

# %% [markdown]
# Where H heads work side by side, there is one more axis in front, (B, H, T, d). The last two axes stay what they are. So we count
# from the end: in the scores, axis −1 holds the keys and axis −2 the queries. Axis 1 is something else each time:
#
# - one sentence, (T_q, **T_k**): the keys
# - a batch, (B, **T_q**, T_k): the queries
# - a batch with heads, (B, **H**, T_q, T_k): the heads

# %% [markdown]
# @exercise scaled_dot_product_attention
#
# `q` (..., T_q, d_k), `k` (..., T_k, d_k), `v` (..., T_k, d_v) → `(output, weights)` of shapes (..., T_q, d_v) and
# (..., T_q, T_k)
#
# Any number of leading dimensions, or none, equal for q, k and v. T_q, T_k, d_k and d_v may all differ. The result is right for
# scores of ±10,000. The `softmax` at the top of this lesson may be used; a ready-made attention may not.

# %% role="exercise" exercise="scaled_dot_product_attention"
def scaled_dot_product_attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Attend with each query to all keys of its own item.

    q: (..., T_q, d_k). k: (..., T_k, d_k). v: (..., T_k, d_v).
    Returns: output (..., T_q, d_v), weights (..., T_q, T_k). Right for scores of ±10,000.
    Source: Vaswani et al. 2017, equation 1.
    """
    # region solution
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))  # the largest exponent is 0: nothing overflows
    weights = exps / exps.sum(axis=-1, keepdims=True)
    output = weights @ v
    return output, weights
    # endregion

# %% role="check" exercise="scaled_dot_product_attention"
check(scaled_dot_product_attention)

# %% [markdown]
# ## What is *it*?
#
# Back to the two sentences, with your own two functions. *it* needs two steps, each a head with matrices written by hand:
#
# 1. *Read.* A pronoun asks for the word that describes it. That word's value passes its feature on.
# 2. *Find.* A token that carries "tired" asks for something living; one that carries "wide" asks for a place.

# %% role="given"
pass_on = by_feature(tired=[0, 0, 0, 0, 1, 0], wide=[0, 0, 0, 0, 0, 1])  # (6, 6): the feature itself
read = by_feature(pronoun=[6]), by_feature(tired=[1], wide=[1]), pass_on  # w_q, w_k, w_v with d_k = 1
# d_k = 2, and w_v is that of the first half. 6 and 8 again make softmax sharp.
find = by_feature(tired=[8, 0], wide=[0, 8]), by_feature(living=[1, 0], place=[0, 1]), w_v

# %% [markdown]
# Between the steps each token keeps its own vector and *adds* what it has read. Such a sum of a layer's input and output is
# called a **residual connection**, or **skip connection**. Both sentences go through in one batch, (2, 4, 6).

# %% role="payoff" exercise="scaled_dot_product_attention"
if passed(scaled_dot_product_attention) and passed(project_qkv):
    batch = np.stack([embed(["animal", "street", "it", last]) for last in ("tired", "wide")])  # (2, 4, 6)
    news, first = scaled_dot_product_attention(*project_qkv(batch, *read))
    informed = batch + news
    _, second = scaled_dot_product_attention(*project_qkv(informed, *find))
    assert second[0, 2, 0] > 0.95 and second[1, 2, 1] > 0.95 and informed[0, 2, 4] > 0.9
    steps = {"too tired": (first[0, 2], second[0, 2]), "too wide": (first[1, 2], second[1, 2])}
    figures.scaled_dot_product_attention.two_steps(steps, ("animal", "street", "it", "tired or wide"))

# %% [markdown]
# After the first step the vector of *it* has {{ informed[0, 2, 4]:.2f }} in place of the 0 for "tired". The query of the second
# step is made from this new vector. So *it* puts {{ second[0, 2, 0]:.2f }} of its weight on *animal* when it was too tired, and
# {{ second[1, 2, 1]:.2f }} on *street* when it was too wide.
#
# Did attention understand the sentence? No. We wrote the answer into the matrices: `find` says that what is tired is living, and
# that what is wide is a place. Attention only brought together what stood in different tokens. Training has to find such matrices,
# and it can: in a trained translation model, attention from *it* moves between these two nouns in the same way (Uszkoreit 2017,
# "Transformer: A Novel Neural Network Architecture for Language Understanding"). It reads to the right, too; a model that
# writes (lesson 06) cannot.

# %% [markdown]
# ## Further: what real matrices look like
#
# For those who wonder how such readable matrices relate to the unreadable ones of a trained model. The experiment turns our
# head until nobody can read it, and sets it beside heads drawn at random.

# %% [markdown]
# Nothing in training asks that one number of a vector mean "tired", or that most entries of a matrix be 0. We can make our own head
# look as unreadable as a real one: we describe the same tokens along six new axes, turned at random, and turn the matrices with
# them. `attend` is one head on one sentence.

# %% role="demo"
def attend(x: np.ndarray, w_q: np.ndarray, w_k: np.ndarray, w_v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One head on one sentence x (T, d_model): its output (T, d_v) and its weights (T, T)."""
    weights = softmax((x @ w_q) @ (x @ w_k).T / math.sqrt(w_q.shape[1]))
    return weights @ (x @ w_v), weights


x_read = x + attend(x, *read)[0]  # what the tokens are after the first step
by_hand = attend(x_read, *find)[1]

# %% role="demo"
draws = np.random.default_rng(0)
axes, _ = np.linalg.qr(draws.normal(size=(6, 6)))  # six directions at right angles to one another
along_axes = attend(x_read @ axes, *(axes.T @ w for w in find))[1]
print("w_q along the new axes:", *(axes.T @ find[0]).T.round(1), sep="\n")
print("weights of it by hand, and along the new axes:")
print(*np.round([by_hand[2], along_axes[2]], 2), sep="\n")
assert np.allclose(along_axes, by_hand)

# %% [markdown]
# Along the new axes no number of w_q means anything by itself (the print has its two columns as rows). Yet all weights
# are the same, because every dot product of a query and a key is what it was.
#
# Before training, w_q and w_k are drawn at random. Where does *it* look then? For 20 seeds we draw 1,000 pairs each, and count at
# which token *it* looks most.

# %% role="demo"
on_animal, on_street = [], []
for seed in range(20):
    pairs = np.random.default_rng(seed).normal(size=(1000, 2, 6, 2))
    most = np.array([attend(x_read, *pair, w_v)[1][2].argmax() for pair in pairs])
    on_animal.append(100 * np.mean(most == 0))
    on_street.append(100 * np.mean(most == 1))

# %% [markdown]
# Random pairs are just as unreadable, but they look for nothing in particular. *it* looked most at *animal* in
# {{ min(on_animal):.0f; it > 20 }}% to {{ max(on_animal):.0f; it < 32 }}% of the pairs, depending on the seed, and most at *street* in
# {{ min(on_street):.0f; it > 20 }}% to {{ max(on_street):.0f; it < 32 }}%. A guess gives 25%; *tired* gets less.
# Training begins with matrices like these and moves them in small steps until they find what helps.

# %% [markdown]
# ## Further: letters for axes, and what loops cost
#
# For those who read published code, which is full of `np.einsum`: attention with a letter for each axis, and how much time loops,
# einsum and `@` take for the same numbers.

# %% [markdown]
# `swapaxes(-1, -2)` says how to move axes. `np.einsum` lets you say what they *are*: one letter for each axis of each
# operand, an arrow, and the letters of the result. A letter that is missing right of the arrow is summed (NumPy
# reference, `numpy.einsum`, explicit mode). We call sentences b, queries i, keys j and features d. Then `bid,bjd->bij` means this
# loop:

# %% role="demo"
def scores_by_loops(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """One dot product at a time: q (B, T_q, d_k), k (B, T_k, d_k) -> (B, T_q, T_k)."""
    scores = np.empty((q.shape[0], q.shape[1], k.shape[1]))
    for b, i, j in np.ndindex(scores.shape):
        scores[b, i, j] = sum(q[b, i, d] * k[b, j, d] for d in range(q.shape[2]))
    return scores


shape_rng = np.random.default_rng(2)
q, k, v = (shape_rng.normal(size=shape) for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 6)))
assert np.allclose(np.einsum("bid,bjd->bij", q, k), scores_by_loops(q, k))
figures.scaled_dot_product_attention.letters("bid,bjd->bij", q, k)

# %% [markdown]
# @predict
#
# No axis had to be moved. But einsum computes whatever the letters say. Here b is 2, i is 3, j is 5 and d is 4. Which of
# these six run without an error, and which one of them is attention's scores?
#
# ```text
# bid,bjd->bij    bid,bjd->bji    bid,bjd->bijd    bid,bjd->ij    bid,bjd->bi    bid,bdj->bij
# ```
#
# @answer
#
# All but the last run, and only the first is right. The second has queries and keys exchanged. The third forgets to
# sum over d. The fourth also sums over b, and so mixes the two sentences. The fifth also sums over the keys, before
# softmax could choose among them. The sixth swaps the names of k's last two axes, which fails because 5 is not 4.
#
# @wrong
#
# If you expected an error for one of the first five: einsum checks only that every axis has a letter and that axes
# with the same letter fit in size. It cannot know what you meant.

# %% role="demo" tags=["nbval-check-output"]
for spelling in ("bid,bjd->bij", "bid,bjd->bji", "bid,bjd->bijd", "bid,bjd->ij", "bid,bjd->bi", "bid,bdj->bij"):
    try:
        print(spelling, np.einsum(spelling, q, k).shape)
    except ValueError as error:
        print(spelling, type(error).__name__)

# %% [markdown]
# @exercise attention_einsum
#
# `q` (B, T_q, d_k), `k` (B, T_k, d_k), `v` (B, T_k, d_v) → output (B, T_q, d_v), without the weights
#
# Both products by `np.einsum`, and none by `@`, `matmul`, `dot`, `tensordot`, `inner`, `vdot` or a broadcast
# multiplication. Scale and softmax may be written as before, and must hold for scores of ±10,000.

# %% role="exercise" exercise="attention_einsum"
def attention_einsum(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attention with both products spelled in letters.

    q: (B, T_q, d_k). k: (B, T_k, d_k). v: (B, T_k, d_v). Returns: output (B, T_q, d_v).
    """
    # region solution
    scores = np.einsum("bid,bjd->bij", q, k) / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exps / exps.sum(axis=-1, keepdims=True)
    return np.einsum("bij,bje->bie", weights, v)
    # endregion

# %% role="check" exercise="attention_einsum"
check(attention_einsum)

# %% [markdown]
# Loops, einsum and `@` give the same numbers. What does each of them cost? Seconds depend on the machine, so we look at ratios. We
# time the scores alone, for 8 sentences of 64 tokens.

# %% role="demo"
many_q, many_k = np.random.default_rng(1).normal(size=(2, 8, 64, 32))


def seconds(function) -> float:
    """The quickest of seven runs: the one that the rest of the machine disturbed least."""
    return min(timeit.repeat(lambda: function(many_q, many_k), number=1, repeat=7))


by_loops_s = min(timeit.repeat(lambda: scores_by_loops(many_q, many_k), number=1, repeat=2))
by_einsum_s = seconds(lambda q, k: np.einsum("bid,bjd->bij", q, k))
by_product_s = seconds(lambda q, k: q @ k.swapaxes(-1, -2))
assert by_loops_s > 100 * by_product_s and by_einsum_s > by_product_s

# %% [markdown]
# On the machine that built this page the loops took about {{ round(by_loops_s / by_product_s, -3):,.0f; it > 1000 }} times as long
# as `@`, and einsum {{ by_einsum_s / by_product_s:.0f }} times. In the loops Python starts each multiplication separately. Plain
# `np.einsum` runs a loop of its own in compiled code. `@` calls a matrix product that is tuned to the machine. With `optimize=True`,
# the einsum of NumPy 2.4 hands such a product to `@`; older versions may not (NumPy reference, `numpy.einsum`, parameter `optimize`).

# %% [markdown]
# ## What we keep
#
# - A token's query, key and value come from its own vector, through three matrices. The comparison takes two of them, because one
#   token may need another that does not need it.
# - A projection sees one token. Attention is where tokens meet.
# - `@` multiplies stacks of matrices: the last two axes are the matrix, everything in front passes through.
# - Count axes from the end. `k.T` reverses all of them: an error where you are lucky, wrong numbers where all sizes agree.
#
# | what | shape |
# |---|---|
# | x | (..., T, d_model) |
# | w_q, w_k; w_v | (d_model, d_k); (d_model, d_v) |
# | q; k; v | (..., T_q, d_k); (..., T_k, d_k); (..., T_k, d_v) |
# | scores, weights | (..., T_q, T_k) |
# | output | (..., T_q, d_v) |

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Two things that are usually rushed. First, *where* queries, keys and values come from: three matrices applied to one
# vector per token, and why there are three of them. The matrices written by hand can be read, and learners design a pair
# themselves. Second, the shapes: one expression for a sentence, a batch and a batch of heads, and the mistakes that run without an
# error. The sentence about *it* joins both: a projection sees one token, so the right noun takes two steps of attention.
#
# ## Cut for 60 minutes
#
# Do the first half at the board up to the second prediction, let the room write `project_qkv` and
# `scaled_dot_product_attention`, and end with "What is *it*?". Give "Projections that you design" as homework.
#
# ## Cut for 90 minutes
#
# Nothing of the core. `previous_token_projections` in pairs, twenty minutes, then compare two different right pairs: every
# pair that gives the share passes, and the room will have found more than one. The break is at "Second half".
#
# ## Mistakes to expect
#
# - project_qkv AB1: Which axis of x does the product sum over, and which axis of w has that size?
# - project_qkv AB8: What does your first line assume about the number of axes of x?
# - previous_token_projections PT2: What does softmax make of a row in which all scores are 0?
# - previous_token_projections PT1: In q kᵀ, does row i belong to the token that asks or to the token that is found?
# - previous_token_projections QF2: What happens to your dot products between the product and softmax?
# - previous_token_projections QF4: How many other tokens take part in the sum, each with how much?
# - scaled_dot_product_attention AB16: What is the shape of k.T when k has three axes?
# - scaled_dot_product_attention SM1: Which numbers of your weights should sum to 1, those of a row or of a column?
# - scaled_dot_product_attention SM4: What shape has the sum, and how does NumPy line it up with the exponentials?
# - attention_einsum SD8: Read your result's letters aloud: which of them is the query?
# - attention_einsum AB24: Which letter is missing right of the arrow, and what does einsum do with a missing letter?
#
# ## To discuss
#
# **Could a single attention step resolve "it", with other matrices?** A good answer separates what depends on one token
# from what depends on two. The query of "it" never knows the last word, so its scores for "animal" and "street" are the same
# in both sentences. Only a step that changes the vector of "it" first, or a query made from several tokens, can help.
#
# **Who solved the sentence about "it"?** A good answer says that whoever wrote the matrices did, that attention only moved what
# was there, and asks what a model would need to find such matrices by training: many sentences in which the right noun helps to
# predict something.
#
# **Why are values not compared with anything?** A good answer says that keys decide *where* to look and values decide
# *what arrives*, gives an example in which the two should differ (found as a noun, passed on as living), and notes that
# d_v may therefore differ from d_k.
#
# ## On paper
#
# Three tokens with x the identity, d_k = 1, w_q = (0, 2, 2)ᵀ and w_k = (1, 0, −1)ᵀ. Write down the scores, say where each
# token looks, and say why no pair with d_k = 1 makes a previous-token head of four tokens.
#
# *Solution.* Scores q_i k_j: row 0 is (0, 0, 0) and rows 1 and 2 are (2, 0, −2). Token 0 looks everywhere alike; tokens 1
# and 2 prefer token 0. With d_k = 1 a row is a multiple of (k_0, …, k_3), so its largest entry is at the largest or the
# smallest key, whatever the query. Tokens 1, 2 and 3 would need their largest scores in three different columns, and only
# two are ever possible.
