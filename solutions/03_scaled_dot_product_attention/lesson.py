# %% [markdown]
# # 03 · Scaled dot-product attention, for a whole batch
#
# **Where do queries, keys and values come from, and how does one expression compute attention for a whole batch?**
#
# **Before this lesson:** the matrix product, `axis` and `keepdims` in NumPy; lesson 01 (scores, weights, blend) and
# lesson 02 (softmax along an axis).
#
# > The animal didn't cross the street because **it** was too tired.
#
# What is *it*? To answer, a word has to look up other words. In lesson 01 we were given a table with a query, a key
# and a value for each token. A model is given no such table. It has one vector for each token and makes all three
# from that vector. The first half of this lesson is about that step, and it ends with two steps of attention that say
# what *it* is. In the second half you write attention for many sentences at once.
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V$$
#
# (Vaswani et al. 2017, section 3.2.1, equation 1.)

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
# Here is the whole machine, with the part in color that we look at first: each token's vector turns into a query, a
# key and a value.

# %% role="demo"
figures.machine.draw(lit=("tokens", "query", "key", "value"), title="Each token's vector becomes three others")

# %% [markdown]
# ## Tokens whose numbers mean something
#
# A trained model has learned a vector for each token, and nobody can say what a single number in it means. So we build
# our own. Four tokens of the sentence are enough, and each of the six numbers says one thing about a token. We write T
# for the number of tokens and d_model, the paper's name, for the length of their vectors: here T = 4 and d_model = 6.

# %% role="given"
features = ["noun", "living", "place", "pronoun", "tired", "wide"]
about = {
    "animal": ["noun", "living"], "street": ["noun", "place"], "it": ["pronoun"],
    "tired": ["tired"], "wide": ["wide"],
}


def embed(words: list[str]) -> np.ndarray:
    """One row of six numbers for each word, 1 where a feature applies: (T, 6)."""
    return np.array([[float(name in about[word]) for name in features] for word in words])


words = ["animal", "street", "it", "tired"]
x = embed(words)  # (4, 6): T tokens, d_model numbers each

# %% role="demo" tags=["nbval-check-output"]
for word, row in zip(words, x):
    print(f"{word:7}", row)

# %% [markdown]
# ## Three roles for each token
#
# In **self-attention** the query, the key and the value of a token are all made from the token's vector x, each with
# its own weight matrix (Vaswani et al. 2017, section 3.2.2, call these products *projections*):
#
# - the **query** x w_q: what this token looks for;
# - the **key** x w_k: what it can be found by;
# - the **value** x w_v: what it passes on when it is found.
#
# Queries and keys are compared, so both have length d_k. Values are only averaged, so their length d_v may differ. One
# such set of three matrices, with the attention that it leads to, is called a **head**.
#
# Training finds these matrices. To see what they can do, we write them by hand: a pronoun looks for nouns. Each matrix
# has one row for each feature. A row of zeros means that the feature has no effect. Any other row is what the feature
# adds to the query, key or value of a token that has it. So we write down only the rows that are not zero, like wires
# that lead from a feature to numbers of the result.

# %% role="given"
def wires(**leads: list[float]) -> np.ndarray:
    """A weight matrix (6, width) from the rows of the features that lead somewhere; the other rows are 0."""
    width = len(next(iter(leads.values())))
    return np.array([leads.get(name, [0.0] * width) for name in features])


w_q = wires(pronoun=[8, 0])  # (6, 2): a pronoun asks strongly for the first number of a key, "noun"
w_k = wires(noun=[1, 0], pronoun=[0, 1])  # (6, 2): a key says "noun" or "pronoun"
w_v = wires(living=[1, 0, 0], place=[0, 1, 0], pronoun=[0, 0, 1])  # (6, 3): what is passed on

# %% [markdown]
# We begin with one token. The query of "it" is a vector times a matrix, (6,) @ (6, 2), which gives two numbers.

# %% role="demo" tags=["nbval-check-output"]
print("query of it:  ", x[2] @ w_q)
print("key of animal:", x[0] @ w_k)
print("their score:  ", (x[2] @ w_q) @ (x[0] @ w_k))

# %% [markdown]
# @predict
#
# Two matrices for one comparison look like a waste. Suppose queries and keys shared one matrix w. What could the
# scores then no longer do?
#
# - **A** Be negative.
# - **B** Differ between "it asks for animal" and "animal asks for it".
# - **C** Be larger for another token than for the token itself.
#
# @answer
#
# **B.** Score (i, j) is (x_i w) · (x_j w), and a dot product does not care about the order of its two vectors. So
# score (i, j) would always equal score (j, i): no token could look for another without the other looking back just as
# strongly. But a pronoun needs its noun; the noun does not need the pronoun.
#
# @wrong
#
# A: vectors that point in opposite directions have a negative product whatever matrix made them. C: a token is
# certain to fit itself best if all vectors have the same length, but in general a longer vector in the same direction
# scores more.

# %% role="demo"
own, shared = x @ w_k, (x @ w_k) @ (x @ w_k).T
separate = (x @ w_q) @ own.T
assert (shared == shared.T).all() and separate[2, 0] == 8 and separate[0, 2] == 0
both = {"One matrix for both: symmetric": shared, "w_q and w_k: 'it' asks, 'animal' does not": separate}
figures.scaled_dot_product_attention.token_scores(both, words)

# %% [markdown]
# In the left map queries and keys both come from w_k. There "it" scores 1 with itself and 0 with every other token,
# so its best match is itself. In the right map "it" scores 8 with both nouns, and the nouns do not ask back. With its
# own matrix, a query can ask for something that the token itself is not.
#
# Why do values need a third matrix? Because what a token is found by is rarely what it should pass on. "animal" is
# found because it is a noun. A token that asked for a noun knows that already. What it does not know is that this
# noun is *living*, so that is what the value says.

# %% [markdown]
# @exercise project_qkv
#
# `x` (..., T, d_model), `w_q` and `w_k` (d_model, d_k), `w_v` (d_model, d_v) → `(q, k, v)` of shapes (..., T, d_k),
# (..., T, d_k) and (..., T, d_v)
#
# The three dots stand for any number of leading dimensions: none for one sentence, one for a *batch* of B sentences
# stacked on top of one another, two or more for stacks of batches. For a batch, this slow loop says what is meant:
#
# ```python
# for b in range(B):
#     for t in range(T):
#         q[b, t] = x[b, t] @ w_q  # and likewise k with w_k, v with w_v
# ```
#
# For arrays of more than two dimensions `@` works on a *stack* of matrices that live in the last two axes (NumPy
# reference, `numpy.matmul`).

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
# The next cell takes your projections of the four tokens through scores, softmax and blend. Only "it" asks for
# anything here. The queries of the other tokens are zero, so all their scores are 0, and softmax spreads their weight
# evenly.

# %% role="payoff" exercise="project_qkv"
if passed(project_qkv):
    q, k, v = project_qkv(x, w_q, w_k, w_v)
    weights = softmax(q @ k.T / math.sqrt(2))  # d_k = 2
    print("output of it (living, place, pronoun):      ", (weights @ v)[2].round(2))
    print("with keys in place of values (noun, pronoun):", (weights @ k)[2].round(2))
    assert weights[2, :2].min() > 0.49
    figures.scaled_dot_product_attention.sentence_weights({"'it' looks at both nouns, half and half": weights}, words)

# %% [markdown]
# If the keys were also the values, "it" would learn that it found a noun, which is what it asked for. Values of their
# own tell it something new: what it found is half living and half a place. So the head found both nouns and cannot
# choose between them. You can choose, because you have read the last word. Can the head?

# %% [markdown]
# @predict
#
# We exchange "tired" for "wide" ("… because it was too wide") and leave the matrices as they are. What happens to the
# weights of "it"?
#
# - **A** They move towards "street".
# - **B** Nothing.
# - **C** They change a little, because the last word has another key.
#
# @answer
#
# **B.** The query of "it" is made from the vector of "it" alone, and that is the same in both sentences. The keys of
# "tired" and "wide" are both zero, since neither is a noun or a pronoun, so the scores do not change either.
#
# @wrong
#
# A: *you* read the sentence as a whole. A projection sees one token and no other. C would be right for trained
# matrices, where every token's key is different; even then the *query* of "it" stays as it was.

# %% role="payoff" exercise="project_qkv"
if passed(project_qkv):
    q_wide, k_wide, _ = project_qkv(embed(["animal", "street", "it", "wide"]), w_q, w_k, w_v)
    weights_wide = softmax(q_wide @ k_wide.T / math.sqrt(2))
    print("it, tired:", weights[2].round(3))
    print("it, wide: ", weights_wide[2].round(3))
    assert np.allclose(weights[2], weights_wide[2], atol=1e-9)

# %% [markdown]
# A projection works on each token separately. Before "it" can ask for the right noun, it has to *know* about the last
# word, and only in attention does one token learn anything about another. (The rest of a transformer works
# "position-wise": it treats each token by itself, as projections do. Vaswani et al. 2017, section 3.3.) So we need
# attention twice: once to read the last word, once to find the noun.

# %% [markdown]
# ## What is *it*?
#
# Here are the two steps, each with hand-built wires of its own:
#
# 1. *Read.* A pronoun asks for the word that describes it. The value passes that word's feature on, and we add it to
#    the token's vector. After this step "it" carries "tired" or "wide".
# 2. *Find.* A token that carries "tired" asks for something living; one that carries "wide" asks for a place. The
#    values are those of the head above: living, place or pronoun.

# %% role="given"
def attend(x: np.ndarray, w_q: np.ndarray, w_k: np.ndarray, w_v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One head on one sentence x (T, d_model): its output (T, d_v) and its weights (T, T)."""
    weights = softmax((x @ w_q) @ (x @ w_k).T / math.sqrt(w_q.shape[1]))
    return weights @ (x @ w_v), weights


pass_on = wires(tired=[0, 0, 0, 0, 1, 0], wide=[0, 0, 0, 0, 0, 1])  # (6, 6): the feature itself
read = wires(pronoun=[6]), wires(tired=[1], wide=[1]), pass_on  # d_k = 1
find = wires(tired=[8, 0], wide=[0, 8]), wires(living=[1, 0], place=[0, 1]), w_v  # d_k = 2

# %% [markdown]
# We take the sentence that ends in "tired" and follow "it". In step 1 the other tokens ask for nothing, so each of
# them reads an even mix of all four.

# %% role="demo" tags=["nbval-check-output"]
news, first = attend(x, *read)
informed = x + news  # each token keeps its own vector and adds what it has read
print("it before:", x[2])
print("it after: ", informed[2].round(2))

# %% [markdown]
# "it" has read the last word: in place of the 0 for "tired" its vector has {{ informed[2, 4]:.2f; it > 0.9 }}. The query of step 2
# is made from this new vector, so "it" can now ask for something living.

# %% role="demo"
found, second = attend(informed, *find)
print("output of it (living, place, pronoun):", found[2].round(2))
assert first[2, 3] > 0.95 and second[2, 0] > 0.95
figures.scaled_dot_product_attention.two_steps({"too tired": (first[2], second[2])}, words)

# %% [markdown]
# Now "it" puts {{ second[2, 0]:.2f }} of its weight on "animal". One step alone brought it something half living and
# half a place. Two steps bring it something living: attention has said what *it* is. Later in this lesson your own
# functions do this for both sentences in one call.
#
# Uszkoreit (2017, "Transformer: A Novel Neural Network Architecture for Language Understanding", Google Research blog)
# shows just this pair of sentences, and a trained translation model whose attention from "it" moves in the same way.

# %% [markdown]
# ## What real matrices look like
#
# The matrices of a trained model do not look like our wires. Nothing in training asks that one number of a vector mean
# "tired", or that most entries of a matrix be 0. We can make our own head look as unreadable as a real one. We describe
# the same tokens along six new axes, turned at random, and turn the matrices with them. Beside it we put pairs of w_q
# and w_k that are drawn at random, as they are before training.

# %% role="demo"
draws = np.random.default_rng(0)
axes, _ = np.linalg.qr(draws.normal(size=(6, 6)))  # six directions at right angles to one another
along_axes = attend(informed @ axes, *(axes.T @ w for w in find))[1]
at_random = [attend(informed, *pair, w_v)[1][2] for pair in draws.normal(size=(1000, 2, 6, 2))]
print("w_q along the new axes:", *(axes.T @ find[0]).T.round(1), sep="\n")
print("weights of it by hand, along the new axes, and with three random pairs:")
print(*np.round([second[2], along_axes[2], *at_random[:3]], 2), sep="\n")
on_animal, on_street = (np.mean(np.argmax(at_random, axis=1) == token) for token in (0, 1))
assert np.allclose(along_axes, second) and at_random[1][0] > 0.9 and max(on_animal, on_street) < 0.3

# %% [markdown]
# Along the new axes no number of w_q means anything by itself (the print has its two columns as rows). Yet all weights
# are the same, because every dot product of a query and a key is what it was. Random pairs are just as unreadable, but
# they look for nothing in particular. The second of the three found "animal" by luck: in the 1,000 draws "it" looked
# most at "animal" in {{ 100 * on_animal:.0f }}% and most at "street" in {{ 100 * on_street:.0f }}%, about as often as
# if it had guessed among the four tokens. (With 20 seeds both stayed between 24% and 30%.) Training begins with
# matrices like these and moves them in small steps until they find what helps. A small head does that in lesson 04.

# %% [markdown]
# ## Projections that you design
#
# Above, the matrices were given. Now you design a pair. This head should look one token back: each token attends to the
# token before it. Heads that do this are found in trained language models, where they are one half of a mechanism that
# continues repeated text (Olsson et al. 2022, "In-context learning and induction heads", calls them *previous-token
# heads*).

# %% [markdown]
# @exercise previous_token_projections
#
# `t` at least 2, `share` above 0 and at most 0.99 → `(w_q, w_k)`, both of shape (t, d_k), with a d_k of your choice
#
# Here x is the identity matrix (t, t): row i is token i, and all that its vector says is "I am number i". Your pair gives
# the attention weights softmax(x w_q (x w_k)ᵀ / √d_k), row by row. Two things must hold:
#
# - row i puts at least `share` of its weight on column i − 1, the token before;
# - row 0 has no token before it, and puts at least `share` on column 0, itself.
#
# Any pair of finite matrices that does it passes. Where one fails, the check shows the weights that it gives.

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
# Here is your head on the whole sentence. A row of the identity says where in the sentence a token is and nothing
# about which word it is, so your head would do the same with any other eleven words. Lesson 08 shows how positions
# get into a model's vectors.

# %% role="payoff" exercise="previous_token_projections"
if passed(previous_token_projections):
    sentence = "The animal didn't cross the street because it was too tired".split()
    designed = previous_token_projections(len(sentence), 0.9)
    products = designed[0] @ designed[1].T  # x is the identity, so x w = w
    back = softmax(products / math.sqrt(designed[0].shape[1]))
    assert back[1:].diagonal().min() > 0.9 - 1e-6
    figures.scaled_dot_product_attention.sentence_weights({"Each token attends to the token before it": back}, sentence)

# %% [markdown]
# ## The rest of the machine, for many sentences
#
# We have queries, keys and values. What remains are the steps that you did by hand in lesson 01, there for one sentence
# of three tokens.

# %% role="demo"
figures.machine.draw(lit=("scores", "weights", "blend", "output"), title="The second half: scores, weights, blend")

# %% [markdown]
# ## Two sentences by hand
#
# A model reads many sentences at a time, as a batch of shape (B, T, d). We stack two. Item 0 is the three-token table
# of lesson 01, and item 1 has the same tokens in reverse order. Each item has scores of its own: no query meets a key
# of the other sentence.

# %% role="given"
Q = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
K = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
V = np.array([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])
q_pair, k_pair, v_pair = (np.stack([table, table[::-1]]) for table in (Q, K, V))  # (2, 3, 2) each


def scores_by_loops(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """One dot product at a time: q (B, T_q, d_k), k (B, T_k, d_k) -> (B, T_q, T_k)."""
    scores = np.empty((q.shape[0], q.shape[1], k.shape[1]))
    for b, i, j in np.ndindex(scores.shape):
        scores[b, i, j] = q[b, i] @ k[b, j]
    return scores

# %% role="demo" tags=["nbval-check-output"]
print(scores_by_loops(q_pair, k_pair))

# %% [markdown]
# Item 0 is what you computed by hand in lesson 01. Item 1 is item 0 with rows and columns reversed, because the same
# queries meet the same keys in another order.
#
# ## Why `k.T` breaks
#
# For one sentence the loop over i and j was `Q @ K.T`. The same line is often written for batches, and it fails.

# %% role="demo" tags=["nbval-check-output"]
k = np.arange(24.0).reshape(2, 3, 4)  # (B, T_k, d_k)
print("k.T                ", k.T.shape)
print("k.swapaxes(-1, -2) ", k.swapaxes(-1, -2).shape)
try:
    k @ k.T
except ValueError as error:
    print("k @ k.T             raises", type(error).__name__)

# %% [markdown]
# `.T` reverses *all* axes, so it sends the batch axis to the end. We want to swap the last two axes and leave
# everything in front of them alone. `k.swapaxes(-1, -2)` does that for any number of leading dimensions. Since NumPy
# 2.0 it has a short name, `k.mT`.

# %% role="demo"
figures.scaled_dot_product_attention.axes_moved(k.shape)

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
# **C.** It runs, the shape of the result is right, and the numbers are wrong. NumPy computes entry (b, i, j) as the
# sum over d of k[b, i, d] · k[j, d, b]. In the second factor j counts sentences, d counts tokens and b counts
# features. All the sizes fit, but each axis is read as a different one.
#
# @wrong
#
# A: an error needs two sizes that differ. B: NumPy matches axes by their sizes, and only you know which of them is
# the batch.

# %% role="demo" tags=["nbval-check-output"]
cube = np.random.default_rng(0).normal(size=(4, 4, 4))
right, wrong = cube @ cube.swapaxes(-1, -2), cube @ cube.T
print("shapes:", right.shape, wrong.shape)
print("numbers that agree:", int(np.isclose(right, wrong).sum()), "of", right.size)

# %% [markdown]
# No error, and not one number is right. This is why the checks of this course use two kinds of sizes. Where all sizes
# differ, a wrong axis becomes an error. Where all sizes agree, the wrong code runs, and the check can compare its
# numbers with the right ones.

# %% [markdown]
# ## Why no loops
#
# Loops and stacked product compute the same numbers, but they do not take the same time. Seconds depend on the machine,
# so we look at a ratio. We time the *scores alone*, by the loops above and by one product, for 8 sentences of 64
# tokens.

# %% role="demo"
many_q, many_k, many_v = np.random.default_rng(1).normal(size=(3, 8, 64, 32))
assert np.allclose(scores_by_loops(many_q, many_k), many_q @ many_k.swapaxes(-1, -2))


def seconds(function, *arrays) -> float:
    """The quickest of seven runs: the one that the rest of the machine disturbed least."""
    return min(timeit.repeat(lambda: function(*arrays), number=1, repeat=7))


by_loops_s = seconds(scores_by_loops, many_q, many_k)
at_once_s = seconds(lambda q, k: q @ k.swapaxes(-1, -2), many_q, many_k)
assert by_loops_s > 20 * at_once_s

# %% [markdown]
# On the machine that built this page the loops took {{ by_loops_s / at_once_s:.0f }} times as long. In the loops
# Python starts each of the 32,768 small products separately. The stacked product is a single call, and compiled code
# does the rest.

# %% [markdown]
# ## Shapes are the map
#
# We follow the shapes through equation 1 for B = 2, three queries and five keys. Besides the batch, the two factors
# of each product share one axis. The sum runs along that axis, so the result no longer has it. Softmax and the scale
# leave the shape as it is.

# %% role="demo"
shape_rng = np.random.default_rng(2)
q, k, v = (shape_rng.normal(size=shape) for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 6)))
figures.scaled_dot_product_attention.shapes(q, k, v)

# %% [markdown]
# The last two axes are the same for one sentence, (T, d), for a batch, (B, T, d), and for a batch in which H heads work
# side by side, (B, H, T, d). So we count axes from the end. In q, k and v, axis −1 holds the features and axis −2 the
# tokens. In the scores, axis −1 holds the keys and axis −2 the queries. Each query's weights must sum to 1, so softmax
# runs along the keys, axis −1. Counted from the front, a number would mean something else each time: in the scores,
# axis 1 is the keys of one sentence, the queries of a batch, and the heads of a batch with heads.

# %% [markdown]
# @exercise scaled_dot_product_attention
#
# `q` (..., T_q, d_k), `k` (..., T_k, d_k), `v` (..., T_k, d_v) → `(output, weights)` of shapes (..., T_q, d_v) and
# (..., T_q, T_k)
#
# For one sentence, as a loop:
#
# ```text
# for each query i: score[j] = q[i] · k[j] / √d_k for every key j
#                   weights[i] = softmax of these scores
#                   output[i] = sum over j of weights[i, j] · v[j]
# ```
#
# There may be none, one or more leading dimensions, equal for q, k and v. T_q, T_k, d_k and d_v may all differ. The
# result is right for scores of ±10,000. The `softmax` at the top of this lesson may be used; a ready-made attention
# may not.

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
# First the pair of sentences again. Item 0 gives the numbers of lesson 01. Item 1 gives the same rows in reverse
# order: the queries are reversed, and reversing keys and values together changes no output, as lesson 01 showed.

# %% role="payoff" exercise="scaled_dot_product_attention" tags=["nbval-check-output"]
if passed(scaled_dot_product_attention):
    pair_output, pair_weights = scaled_dot_product_attention(q_pair, k_pair, v_pair)
    print("weights of item 0:", *pair_weights[0].round(4), sep="\n")
    print("output of item 0: ", *pair_output[0].round(4), sep="\n")
    assert np.allclose(pair_output[1], pair_output[0, ::-1])

# %% [markdown]
# ## Both sentences in one call
#
# Back to *it*, with your own two functions. The batch holds both sentences, "… because it was too tired" and "… too
# wide", and goes through the same two steps, read and find, with the same wires as before.

# %% role="payoff" exercise="scaled_dot_product_attention"
if passed(scaled_dot_product_attention) and passed(project_qkv):
    batch = np.stack([embed(["animal", "street", "it", last]) for last in ("tired", "wide")])  # (2, 4, 6)
    news, first = scaled_dot_product_attention(*project_qkv(batch, *read))
    informed = batch + news
    _, second = scaled_dot_product_attention(*project_qkv(informed, *find))
    assert second[0, 2, 0] > 0.95 and second[1, 2, 1] > 0.95
    steps = {"too tired": (first[0, 2], second[0, 2]), "too wide": (first[1, 2], second[1, 2])}
    figures.scaled_dot_product_attention.two_steps(steps, ("animal", "street", "it", "tired or wide"))

# %% [markdown]
# Each row of the figure holds the weights of "it" in one step. In the second step "it" puts {{ second[0, 2, 0]:.2f }}
# of its weight on "animal" when it was too tired, and {{ second[1, 2, 1]:.2f }} on "street" when it was too wide. Both
# sentences went through the same matrices in one call. They differ in what "it" read in the first step: that changed
# the vector of "it", and with it the query of the second step. Lesson 09 stacks such steps, each of which adds to what
# is there.
#
# ## Optional: letters for axes
#
# `swapaxes(-1, -2)` says how to move axes. `np.einsum` lets you say what they *are*: one letter for each axis of each
# operand, an arrow, and the letters of the result. A letter that is missing right of the arrow is summed (NumPy
# reference, `numpy.einsum`, explicit mode). Published code is full of it, so it is worth being able to read. We call
# queries i, keys j and features d, as in the loops:
#
# ```text
# bid,bjd->bij    for every b, i, j:  scores[b, i, j] = sum over d of q[b, i, d] * k[b, j, d]
# ```

# %% role="demo"
scores = np.einsum("bid,bjd->bij", q, k)
assert np.allclose(scores, scores_by_loops(q, k))
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
# ```text
# scores[b, i, j] = sum over d of q[b, i, d] * k[b, j, d]
# output[b, i, e] = sum over j of weights[b, i, j] * v[b, j, e]
# ```
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
# Both functions give the same result. The ratio below measures something other than the one above: *all* of
# attention, once with `np.einsum` and once with `@`, where both run in compiled code.

# %% role="payoff" exercise="attention_einsum"
if passed(attention_einsum) and passed(scaled_dot_product_attention):
    many = many_q, many_k, many_v
    assert np.allclose(attention_einsum(*many), scaled_dot_product_attention(*many)[0])
    ratio = seconds(attention_einsum, *many) / seconds(scaled_dot_product_attention, *many)
    print(f"np.einsum takes {ratio:.0f} times as long as @ for the same output")

# %% [markdown]
# Plain `np.einsum` runs a loop of its own; `@` calls a matrix product that is tuned to the machine. Add
# `optimize=True` to both calls in your function and run the cells again. With the NumPy that built this page (2.4),
# einsum then hands both products to `@`; older versions may leave a product with a batch axis to einsum's own loop
# (NumPy reference, `numpy.einsum`, parameter `optimize`).
#
# ## Break it on purpose
#
# Three small edits to your `scaled_dot_product_attention`. Before each one say what the check will find. Then make the
# edit, run the check, and undo it.
#
# | edit | still right for | an error for | silently wrong for |
# |---|---|---|---|
# | `axis=1` in place of `axis=-1`, twice | one sentence: axis 1 *is* the keys | nothing | a batch: columns sum to 1, rows do not |
# | `k.T` in place of `k.swapaxes(-1, -2)` | one sentence | sizes that differ | a batch in which all sizes agree |
# | no `keepdims=True` in the sum | one sentence, T_q = 1 | most shapes | one sentence, T_q = T_k: column j ÷ row sum j |
#
# When a verdict recognizes a mistake, it gives the mistake's id, and `explain` with that id tells you more. For the
# second edit:

# %% role="demo"
explain("AB16")

# %% [markdown]
# ## What we keep
#
# - A token's query, key and value come from its own vector, through three matrices: what it looks for, what it is found
#   by, what it passes on. The comparison has two matrices, because one token may need another that does not need it.
# - Projections treat each token by itself. Attention is where tokens meet, and what a token has read changes what it can
#   ask next.
# - `@` multiplies stacks of matrices: the last two axes are the matrix, everything in front passes through.
# - Axes are counted from the end, because then one line serves a sentence, a batch and a batch of heads. `k.T` reverses
#   all of them: an error where you are lucky, wrong numbers where all sizes agree.
#
# | what | shape |
# |---|---|
# | x | (..., T, d_model) |
# | w_q, w_k; w_v | (d_model, d_k); (d_model, d_v) |
# | q; k; v | (..., T_q, d_k); (..., T_k, d_k); (..., T_k, d_v) |
# | scores, weights | (..., T_q, T_k) |
# | output | (..., T_q, d_v) |
#
# **Sources.** Vaswani et al. 2017, *Attention is all you need*, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762),
# equation 1 and sections 3.2.1, 3.2.2 and 3.3. Uszkoreit 2017, Google Research blog. Olsson et al. 2022, *In-context
# learning and induction heads*, [arXiv:2209.11895](https://arxiv.org/abs/2209.11895). NumPy reference:
# [matmul](https://numpy.org/doc/stable/reference/generated/numpy.matmul.html),
# [einsum](https://numpy.org/doc/stable/reference/generated/numpy.einsum.html),
# [swapaxes](https://numpy.org/doc/stable/reference/generated/numpy.swapaxes.html).

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Two things that are usually rushed. First, *where* queries, keys and values come from: three matrices applied to one
# vector per token, and why there are three of them. The hand-built wires make each matrix readable. The failure on
# "tired" against "wide" shows what a projection cannot see, and two steps of attention overcome it. Second, the shapes:
# one expression for a sentence, a batch and a batch of heads, and the mistakes that run without an error.
#
# ## Cut for 60 minutes
#
# Do the first half up to `previous_token_projections` together at the board, let the room write `project_qkv` and
# `scaled_dot_product_attention`, and end with "Both sentences in one call". Give `previous_token_projections` as
# homework. Leave out the loops' timing and all of einsum.
#
# ## Cut for 90 minutes
#
# All but einsum. `previous_token_projections` in pairs, fifteen minutes, then compare two different right pairs: every
# pair that gives the share passes, and the room will have found more than one.
#
# ## Mistakes to expect
#
# - project_qkv AB1: Which axis of x does the product sum over, and which axis of w has that size?
# - project_qkv AB8: What does your first line assume about the number of axes of x?
# - previous_token_projections PT2: What does softmax make of a row in which all scores are 0?
# - previous_token_projections PT1: In q kᵀ, does row i belong to the token that asks or to the token that is found?
# - previous_token_projections PT5: What happens to your dot products between the product and softmax?
# - previous_token_projections PT7: How many other tokens take part in the sum, each with how much?
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
