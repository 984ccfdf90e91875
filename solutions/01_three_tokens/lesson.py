# %% [markdown]
# # 01 · Three tokens: attention by hand
#
# **An article computes attention for three tokens twice, and prints two different results for the first. Which one is right?**
#
# **Before this lesson:** lesson 00, and the product of two matrices (`@` in NumPy).
#
# The article (Shaikh, [*Transformers and Attention Mechanisms: Unveiling the Math Behind Modern NLP
# Models*](https://learn.mathnai.com/module/core/math/transformers-attention-mechanisms)) walks through a small table of
# queries, keys and values twice. The first time, the first token gets the weights [0.42, 0.42, 0.16] and the output
# [5.3, 4.2]; the second time, [0.4, 0.4, 0.2] and [5, 4].
#
# The table is small enough for pencil and paper. You turn each step into a line of NumPy, and by the end you can say which
# of the printed numbers are wrong, and prove it without a computer.

# %% role="given"
import math

import numpy as np

from grader import check, explain, figures, hint, passed, progress, replay, reset, solution

# %% role="given"
tokens = ["animal", "street", "it"]
Q = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # what each token asks for
K = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])  # what each token can be found by
V = np.array([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])  # what each token hands over
d_k = 2  # how many numbers a query or a key has

# %% [markdown]
# ## The table, with a meaning
#
# The article's table has no words, so we give it some: three tokens of *The animal didn't cross the street because it was too
# tired.* Each token has a query, a key and a value, one row each of Q, K and V. The two numbers of a query or a key
# stand for "names a thing" and "can be tired" (other features than in lesson 00).
#
# - The **keys** here depend on the word alone, whatever the sentence. *Animal* names a thing that can be tired: [1, 1]. *Street*
#   names a thing that cannot: [1, 0]. *It* names nothing, but it can stand for something that gets tired: [0, 1].
# - The **query** of *it* does depend on the sentence, which ends in *tired*. It looks for the name of a thing that can be
#   tired: [1, 1]. The other two queries have no such meaning. We keep the article's numbers for them, so that we can compare
#   our results with the printed ones.
# - The **value** of *animal* speaks only of the animal, [10, 0], and that of *street* only of the street, [0, 10]. *It* could
#   be either: [5, 5].
#
# In a trained model nobody chooses such features, and few can be read so easily.

# %% [markdown]
# ## The whole of attention in one line
#
# Every token asks all tokens, itself included, by lesson 00's soft look-up with the sharpness 1/√d_k (Vaswani et al. 2017, section
# 3.2.1, equation 1):
#
# $$\text{Attention}(Q, K, V) = \text{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V$$
#
# We read it from the inside out, in four steps. In the shapes, n_q counts the queries and n_k the keys; a query or a key has d_k
# numbers, a value d_v.
#
# | step | what | shape |
# |---|---|---|
# | scores | QKᵀ (ᵀ turns K's rows into columns), the **score matrix**: how well each key fits each query | (n_q, n_k) |
# | scaled scores | divided by √d_k | (n_q, n_k) |
# | weights | softmax of each row | (n_q, n_k) |
# | output | the values, blended by the weights | (n_q, d_v) |

# %% role="demo"
table = figures.machine.Table(tuple(tokens), "it", Q[2], K, V)
figures.machine.draw(
    lit=("query", "key", "scores"), title="Step 1: the query meets every key", scaled=False, table=table
)

# %% [markdown]
# ## Step 1: scores
#
# The picture shows the table as a machine, for the query of *it*. The part in color is this step: the query meets every key, and
# each meeting gives one score. Now let *animal* ask.

# %% [markdown]
# @predict
#
# The query of *animal* is [1, 0]. The keys are [1, 1] (animal), [1, 0] (street) and [0, 1] (it). Which key fits it best?
#
# - **A** *street*, since its key equals the query
# - **B** *animal*, since its key is the longest arrow
# - **C** *animal* and *street* fit equally well
#
# @answer
#
# **C**: both dot products are 1. The second number of the query is 0, so only the first number of a key counts, and both
# keys have a 1 there. Seen as arrows, both keys reach equally far in the direction of the query.
#
# @wrong
#
# **A** compares directions alone, but a dot product also counts how long an arrow is. **B** compares lengths alone, but only the
# part of a key that lies along the query counts.

# %% role="demo"
figures.three_tokens.queries_and_keys(Q, K, tokens)

# %% [markdown]
# In each panel the arrow is one query, and the dots are the tips of the keys. A dotted line drops from each key onto the query's
# line. The score is how far along the line it lands (negative behind the origin), times the arrow's length. By hand, for
# *animal*:
#
# - *animal*: 1·1 + 0·1 = **1**
# - *street*: 1·1 + 0·0 = **1**
# - *it*: 1·0 + 0·1 = **0**

# %% [markdown]
# @exercise attention_scores
#
# `Q` (n_q, d_k), `K` (n_k, d_k) → scores (n_q, n_k)
#
# Entry [i, j] is the dot product of query i and key j. There may be more keys than queries, or fewer. Nothing is scaled yet.


# %% role="exercise" exercise="attention_scores"
def attention_scores(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Return the dot product of every query with every key.

    Q: (n_q, d_k). K: (n_k, d_k). Returns: (n_q, n_k); row i belongs to query i.
    """
    # region solution
    return Q @ K.T
    # endregion


# %% role="check" exercise="attention_scores"
check(attention_scores)

# %% [markdown]
# In your scores below, the largest is where *it* asks and *animal* answers: the one token that names a thing and can be tired.

# %% role="payoff" exercise="attention_scores"
if passed(attention_scores):
    scores = attention_scores(Q, K)
    assert scores.argmax() == 6 and scores[2, 0] == 2  # row "it", column "animal"
    figures.three_tokens.scores_map(scores, tokens)

# %% [markdown]
# ## Step 2: the scale
#
# A dot product adds up d_k products, so for random vectors the scores spread more widely the larger d_k is. Dividing by
# √d_k keeps their spread about the same, whatever d_k is (section 3.2.1 of the paper; lesson 04 does the experiment).
# Here d_k = 2, so we divide by √2 = 1.4142. The scores 1, 1 and 0 become **0.7071**, **0.7071** and **0**. Their order does
# not change; the differences between them shrink.

# %% [markdown]
# @exercise scale_scores
#
# `scores` of any shape, `d_k` a whole number → the same shape
#
# `d_k` is an argument, because the function cannot tell it from the scores: their shape is (n_q, n_k).


# %% role="exercise" exercise="scale_scores"
def scale_scores(scores: np.ndarray, d_k: int) -> np.ndarray:
    """Return the scores divided by the square root of d_k.

    scores: any shape. d_k: how many numbers a query has. Returns: the shape of scores.
    """
    # region solution
    return scores / math.sqrt(d_k)
    # endregion


# %% role="check" exercise="scale_scores"
check(scale_scores)

# %% [markdown]
# ## Step 3: softmax turns scores into weights
#
# Softmax turns the scores of a row into shares of a whole. It takes the exponential of each score and divides by the sum of the row:
#
# $$w_j = \frac{e^{s_j}}{\sum_m e^{s_m}}$$

# %% [markdown]
# @predict
#
# When *animal* asked, *it* scored 0. Does *it* get the weight 0?
#
# @answer
#
# No. e⁰ is 1, not 0, and the weight is 1 divided by the sum of all three exponentials, 0.1978: about a fifth of the
# whole. The formula gives no finite score the weight 0.
#
# @wrong
#
# A yes takes the score for an amount; it is an exponent.

# %% role="demo" tags=["nbval-check-output"]
scaled_row = [1 / math.sqrt(2), 1 / math.sqrt(2), 0.0]
exponentials = [math.exp(score) for score in scaled_row]
total = sum(exponentials)
for token, score, grown in zip(tokens, scaled_row, exponentials):
    print(f"{token:6}  exp({score:.4f}) = {grown:.4f}    {grown:.4f} / {total:.4f} = {grown / total:.4f}")

# %% [markdown]
# One precaution before you write it for a whole score matrix: subtract the row's largest score from the row
# first. That divides every exponential of the row by the same number, and so also their sum; the weights stay the same. Now no
# exponential can overflow: the largest is e⁰ = 1.
#
# In NumPy, `scores.max(axis=1)` has shape (n_q,). With `keepdims=True` it has shape (n_q, 1): one column, which NumPy
# subtracts from each column of the (n_q, n_k) scores.

# %% [markdown]
# @exercise softmax_rows
#
# `scores` (n_q, n_k) → weights (n_q, n_k)
#
# Each row sums to 1, and stays finite for scores of ±1000. A ready-made softmax (from scipy or torch) is not allowed.


# %% role="exercise" exercise="softmax_rows"
def softmax_rows(scores: np.ndarray) -> np.ndarray:
    """Turn each row of scores into weights that sum to 1.

    scores: (n_q, n_k). Returns: (n_q, n_k). Finite for scores of ±1000.
    """
    # region solution
    # exp overflows beyond 709; the same shift for a whole row changes none of its weights
    shifted = scores - scores.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    return exponentials / exponentials.sum(axis=1, keepdims=True)
    # endregion


# %% role="check" exercise="softmax_rows"
check(softmax_rows)

# %% [markdown]
# @predict
#
# For *animal*, the article prints the weights [0.42, 0.42, 0.16] once and [0.4, 0.4, 0.2] the other time. By hand we found [0.4011,
# 0.4011, 0.1978]. Which step did the first walk-through leave out?
#
# @answer
#
# The scale. Softmax of [1, 1, 0], unscaled, is [0.4223, 0.4223, 0.1554], which is [0.42, 0.42, 0.16] to two
# decimals. The second set of printed weights is right to one decimal.
#
# @wrong
#
# Softmax was not left out: the printed weights are positive and sum to 1. They only lie too far apart.

# %% role="payoff" exercise="softmax_rows" tags=["nbval-check-output"]
if passed(softmax_rows):
    animal_scores = np.array([[1.0, 1.0, 0.0]])
    print("with the scale:   ", np.round(softmax_rows(animal_scores / math.sqrt(2)), 4))
    print("without the scale:", np.round(softmax_rows(animal_scores), 4))

# %% [markdown]
# So far the article's second walk-through is right.
#
# ## Step 4: the output blends the values
#
# The weights say how much of each value goes into the answer. Take *street*. Its query scores 1, 0, 1:
# the numbers of *animal* in another order, and so its weights are 0.4011, 0.1978, 0.4011. By hand:
#
# - first number (animal): 0.4011·10 + 0.1978·0 + 0.4011·5
# - second number (street): 0.4011·0 + 0.1978·10 + 0.4011·5
#
# Before you add them up:

# %% [markdown]
# @predict
#
# What do the two numbers sum to? You need neither a calculator nor the weights.
#
# @answer
#
# They sum to **10**, as each value does: [10, 0], [0, 10] and [5, 5]. The output takes a share of each, and the shares sum to 1.
#
# @wrong
#
# Adding up the six products gives 10, too. The argument says it without any product.

# %% [markdown]
# @exercise weighted_sum
#
# `weights` (n_q, n_k), `V` (n_k, d_v) → output (n_q, d_v)
#
# The weights are taken as they are, whether they sum to 1 or not.


# %% role="exercise" exercise="weighted_sum"
def weighted_sum(weights: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Blend the values: each output row is the sum of all values times that row's weights.

    weights: (n_q, n_k), taken as they are. V: (n_k, d_v). Returns: (n_q, d_v).
    """
    # region solution
    return weights @ V
    # endregion


# %% role="check" exercise="weighted_sum"
check(weighted_sum)

# %% [markdown]
# ## The four steps together
#
# The whole is known as **scaled dot-product attention**.

# %% [markdown]
# @exercise three_token_attention
#
# `Q` (n_q, d_k), `K` (n_k, d_k), `V` (n_k, d_v) → `(output (n_q, d_v), weights (n_q, n_k))`
#
# You can call your four functions or start afresh. It has to work for any sizes, with n_q ≠ n_k and d_v ≠ d_k, and for scores
# of ±10,000. Ready-made attention or softmax is not allowed.


# %% role="exercise" exercise="three_token_attention"
def three_token_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scaled dot-product attention: softmax(Q Kᵀ / √d_k) V.

    Q: (n_q, d_k). K: (n_k, d_k). V: (n_k, d_v).
    Returns: (output (n_q, d_v), weights (n_q, n_k)).
    Source:  Vaswani et al. 2017, section 3.2.1, equation 1.
    """
    # region solution
    scores = attention_scores(Q, K)
    scaled = scale_scores(scores, Q.shape[1])
    weights = softmax_rows(scaled)
    output = weighted_sum(weights, V)
    return output, weights
    # endregion


# %% role="check" exercise="three_token_attention"
check(three_token_attention)

# %% [markdown]
# Here is what your function computes. Scores, weights and output have a row for each query; the rows of V are the values of
# the tokens.

# %% role="payoff" exercise="three_token_attention"
if passed(three_token_attention):
    output, weights = three_token_attention(Q, K, V)
    assert np.allclose(output.sum(axis=1), 10) and weights[2].argmax() == 0
    figures.three_tokens.whole_step(Q, K, V, weights, output, tokens)

# %% [markdown]
# Now read the last row. *It* came in half and half. It asked for a thing that can be tired, gave *animal* the
# weight {{ weights[2, 0]:.2f }} and the other two {{ weights[2, 1]:.2f }} each, and leaves with [{{ output[2, 0]:.2f }},
# {{ output[2, 1]:.2f }}]: more animal than street.

# %% [markdown]
# ## What is wrong in print
#
# Back to the question. For *animal*, the article prints the output [5.3, 4.2] the first time and [5, 4] the second. You could
# compare both with your own result, but their sums are enough.

# %% role="demo" tags=["nbval-check-output"]
print("rows of V sum to     ", V.sum(axis=1))
for printed in ([5.3, 4.2], [5.0, 4.0]):
    print(f"printed {printed} sums to {sum(printed):g}")

# %% [markdown]
# @exercise corrected_first_row
#
# An answer, not a function: a list, tuple or array of two numbers, each within 0.01. Compute the first token's output twice, to
# four digits: as the formula says, and without the scale, as in the first walk-through. Compare the two, then give the
# right one.

# %% role="exercise" exercise="corrected_first_row"
# region solution: corrected_first_row = None  # the two numbers
corrected_first_row = three_token_attention(Q, K, V)[0][0]
# endregion

# %% role="check" exercise="corrected_first_row"
check("corrected_first_row", corrected_first_row)

# %% [markdown]
# The proof: the two numbers of an output sum to w₀·10 + w₁·10 + w₂·10, which is 10, because the weights sum to 1. Both
# printed outputs sum to less, so neither is right. And *animal* and *street* weigh the same, w, so each number is
# 10w + 5(1 − 2w) = 5. Probably the 4 is 0.4·10 without the 0.2·5 of the third token, and the 4.2 is 0.42·10 without 0.16·5.
# The 5.3 remains unexplained.

# %% role="payoff" exercise="corrected_first_row"
if passed("corrected_first_row", corrected_first_row):
    printed = [[5.3, 4.2], [5.0, 4.0]]
    figures.three_tokens.impossible_outputs(V, corrected_first_row, printed)

# %% [markdown]
# Did the missing scale do any harm, then? Here are all three rows, with and without it.

# %% role="payoff" exercise="corrected_first_row" tags=["nbval-check-output"]
if passed(three_token_attention) and passed("corrected_first_row", corrected_first_row):
    scaled, _ = three_token_attention(Q, K, V)
    unscaled, _ = three_token_attention(Q * math.sqrt(d_k), K, V)  # the function divides by √d_k again
    for token, right, without in zip(tokens, scaled, unscaled):
        print(f"{token:6}  with the scale {np.round(right, 4)}   without {np.round(without, 4)}")
    assert np.allclose(unscaled[0], scaled[0]) and not np.isclose(unscaled[1:], scaled[1:], atol=0.1).any()

# %% [markdown]
# **The first row cannot test the scale.** *Animal* and *street* get equal weights either way, and the rest goes to [5, 5]. It
# cannot even test attention: a plain average of the values gives [5, 5], too. The other two rows do show it.
# An example that comes out right proves little until you ask which mistakes it would have caught. So `check`
# tries many inputs, with n_q, n_k, d_k and d_v all different.

# %% [markdown]
# ## The other way around: design a query
#
# So far you were given the queries and computed the weights. Now you are given some keys, and one of them has to receive at
# least a certain share of the attention. What query achieves that? Before you write code, sketch three keys as equally long
# arrows. Which direction do you choose for the query? And what can you change about it without changing its direction?

# %% [markdown]
# @exercise query_for
#
# `keys` (n, d), `target` the index of a key, `share` a number → `query` (d,)
#
# The weights are softmax(keys · query / √d), and that of the target has to be at least `share`.
#
# Seen as arrows, all keys have one length, between 0.01 and 100, and no two point nearly the same way (the cosine between
# them is at most 0.9). The share is above 0 and at most 0.999. Many queries are right, and any of them passes.


# %% role="exercise" exercise="query_for"
def query_for(keys: np.ndarray, target: int, share: float) -> np.ndarray:
    """Return a query that gives the key at index target at least this share of the weights.

    keys: (n, d), n ≥ 2, arrows of one length. share: 0 < share ≤ 0.999. Returns: (d,).
    """
    # region solution
    own = keys[target]  # of equally long keys, none fits this query better than the target's own
    scores = keys @ own
    lead = scores[target] - np.delete(scores, target).max()
    needed = math.log(max((len(keys) - 1) * share / (1 - share), 1.0))  # if all were as near
    return own * (needed * math.sqrt(keys.shape[1]) / lead)
    # endregion


# %% role="check" exercise="query_for"
check(query_for)

# %% [markdown]
# The next cell takes your query for one of five keys and makes the arrow shorter and longer.

# %% role="payoff" exercise="query_for"
if passed(query_for) and passed(three_token_attention):
    angles = np.radians([10, 52, 110, 190, 290])
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)  # five arrows of length 1
    query = query_for(circle, 1, 0.9)
    factors = np.linspace(0, 2, 201)
    _, found = three_token_attention(np.outer(factors, query), circle, np.eye(5))
    assert np.allclose(found[0], 0.2) and found[100, 1] > 0.9 - 1e-6
    figures.three_tokens.longer_query(circle, query, factors, found, target=1)

# %% [markdown]
# **For given keys, the direction of a query decides which of them wins, and its length how clearly.** So one token can ask
# sharply and another vaguely, only by how long the arrow is.

# %% [markdown]
# ## What we keep
#
# - Scores QKᵀ, divided by √d_k, through softmax by rows, times V: four steps.
# - In exact arithmetic no weight is 0. Softmax first subtracts the row's maximum, so that nothing overflows.
# - An output lies between the values that it blends. Where every value sums to 10, every output does.
# - One worked example can be blind to a mistake: here the first row to the scale.
# - For given keys, the direction of a query chooses, and the length of its arrow sharpens.
#
# | what | shape |
# |---|---|
# | Q, K, V | (n_q, d_k), (n_k, d_k), (n_k, d_v) |
# | scores = QKᵀ / √d_k, and weights | (n_q, d_k) · (d_k, n_k) → (n_q, n_k) |
# | output = weights · V | (n_q, n_k) · (n_k, d_v) → (n_q, d_v) |

# %% [markdown]
# @teaching
#
# ## What the lesson is for
#
# Learners compute one attention step by hand, and write each of its four parts themselves. They learn to doubt printed
# numbers with an argument (a conserved sum), and to ask which mistakes an example would catch. `query_for` turns the
# machine around: those who solve it have understood that direction chooses and length sharpens.
#
# ## Cut for 60 minutes
#
# Do steps 1 to 4 and `three_token_attention`. Give `corrected_first_row` as a question to the room: the sum of 10 takes two
# minutes. Leave out "The other way around: design a query", and hand `query_for` out as homework.
#
# ## Cut for 90 minutes
#
# Do `corrected_first_row` at the board, the part with and without the scale in two halves of the room, and `query_for` in
# pairs, on paper first.
#
# ## Mistakes to expect
#
# - attention_scores TT3: What does a row of K stand for, and with what does `Q @ K` multiply it?
# - attention_scores SD8: Who asks in row 0 of your result?
# - scale_scores SD2: With d_k = 16, by what is a score divided?
# - scale_scores TT9: What does Python make of `2 ** 1 / 2`?
# - softmax_rows SM1: What does each row of your result sum to? And each column?
# - softmax_rows SM4: What shape has the sum along axis 1, and where does it line up when you divide?
# - softmax_rows TT47: By how much do the scores of a row differ before your division, and by how much after it?
# - softmax_rows SM6: What happens to a row whose scores are all 1000 below those of another row?
# - weighted_sum AB22: The weights of which query went into row 0 of your output?
# - weighted_sum TT48: Whose shares are in your output after the first turn of the loop, and whose after the last?
# - three_token_attention SD6: Do the rows of your weights still sum to 1?
# - three_token_attention TT8: Where do d_k and d_v differ, and which of them does the dot product add over?
# - three_token_attention NT8: What did the task ask to be returned first?
# - corrected_first_row TT34: What do the rows of V sum to, and what do [5.3, 4.2] and [5, 4] sum to?
# - corrected_first_row TT38: Which values does the first token look at, and how many of them are in your sum?
# - query_for QF1: Your query points the right way. What becomes of your scores if all keys are a hundred times shorter?
# - query_for QF4: How many other keys share what is left?
# - query_for QF10: What does your logarithm give when the share asked for is smaller than 1/n?
#
# ## To discuss
#
# - Why does a query of zeros give every key the same weight, and when might a model want that? A good answer says that all
#   scores are 0, and names a token that needs nothing from the others, or one that needs a summary of all.
# - The table's first row cannot test the scale. Which single row of numbers would you print in an article so that readers can
#   test most? A good answer has n_q, n_k, d_k and d_v all different, no two equal scores, and values without a common sum.
#
# ## On paper
#
# Two keys, (1, 0) and (0, 1), d_k = 2. Which queries give the first key exactly the weight ¾? *Solution:* the ratio of the
# weights is 3, so the scaled scores differ by ln 3, and the query (a, b) has a − b = √2 · ln 3 ≈ 1.554. All queries on this
# line are right; the shortest is (0.777, −0.777).
