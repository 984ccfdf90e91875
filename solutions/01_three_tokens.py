# %% [markdown]
# # 1 · Three tokens: attention by hand
#
# **Two published walk-throughs compute attention for the same three tokens. One prints the weights
# [0.42, 0.42, 0.16] and the output [5.3, 4.2] for the first token, the other [0.4, 0.4, 0.2] and [5, 4].
# Which one is right?**
#
# The table is small enough for pencil and paper. We compute every number by hand, then with loops, then in one line
# of NumPy, and at the end we can say what is wrong in print, and prove it.

# %% role="given"
import math

import numpy as np

from grader import check, explain, figures, hint, passed, progress, solution

Q = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # what each token asks for
K = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])  # what each token offers to be found by
V = np.array([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])  # what each token hands over
d_k = 2  # the length of a query and of a key

# %% [markdown]
# ## The whole of attention in one line
#
# Each of the three tokens has a query, a key and a value: one row each of Q, K and V. Every token asks all tokens,
# itself included. The look-up is soft, as in lesson 00 (Vaswani et al. 2017, section 3.2.1, equation 1):
#
# $$\text{Attention}(Q, K, V) = \text{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V$$
#
# We read it from the inside out, four steps, one exercise each:
#
# | step | what | shape |
# |---|---|---|
# | scores | QKᵀ: how well each key fits each query | (n_q, n_k) |
# | scaled scores | divided by √d_k | (n_q, n_k) |
# | weights | softmax of each row | (n_q, n_k) |
# | output | the values, blended by the weights | (n_q, d_v) |
#
# **Predict:** the first query is [1, 0], the keys are [1, 1], [1, 0] and [0, 1]. Which key fits it best, and which
# not at all? Write the guess down; the picture follows.

# %% role="demo"
figures.lesson_01.queries_and_keys(Q, K)

# %% [markdown]
# ## Step 1: scores
#
# By hand, for the first query [1, 0]:
#
# - key 0: 1·1 + 0·1 = **1**
# - key 1: 1·1 + 0·0 = **1**
# - key 2: 1·0 + 0·1 = **0**
#
# Keys 0 and 1 fit equally well: the longer arrow of key 0 makes up for its direction. Key 2 stands at a right angle
# and scores 0. The loop below does the same for all nine pairs.

# %% role="demo" tags=["nbval-check-output"]
for i in range(3):
    for j in range(3):
        score = sum(Q[i, feature] * K[j, feature] for feature in range(d_k))
        print(f"query {i} · key {j} = {score:g}", end="    " if j < 2 else "\n")

# %% [markdown]
# @exercise attention_scores
#
# `Q` (n_q, d_k), `K` (n_k, d_k) → scores (n_q, n_k)
#
# ```text
# for each query i, for each key j:
#     scores[i, j] = sum over the d_k features of Q[i, feature] * K[j, feature]
# ```
#
# Row i belongs to query i, column j to key j. There may be more keys than queries, or fewer. Nothing is scaled yet.
# Any style: loops, `np.einsum`, or the single product QKᵀ. Stuck? `hint(attention_scores)` in a new cell.

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
# With a passing check, the next cell draws our scores as a heat map. **Predict:** which of the nine cells is darkest?

# %% role="payoff" exercise="attention_scores"
if passed(attention_scores):
    figures.lesson_01.scores_map(attention_scores(Q, K))

# %% [markdown]
# ## Step 2: the scale
#
# A dot product of long vectors adds up many terms and tends to grow. Dividing by √d_k keeps scores in one range,
# whatever d_k is (section 3.2.1 of the paper; lesson 04 does the experiment). Here d_k = 2, so we divide by
# √2 = 1.4142:
#
# - 1 / 1.4142 = **0.7071**
# - 0 / 1.4142 = **0**
# - 2 / 1.4142 = **1.4142**
#
# **Predict:** can the scale change which key a query prefers? Can it change *how much* it prefers it?

# %% [markdown]
# @exercise scale_scores
#
# `scores` of any shape, `d_k` a whole number → the same shape
#
# `d_k` is an argument of its own, because the scores no longer show it: their shape is (n_q, n_k). Scores of a whole
# batch have more dimensions; the division is the same.

# %% role="exercise" exercise="scale_scores"
def scale_scores(scores: np.ndarray, d_k: int) -> np.ndarray:
    """Return the scores divided by the square root of d_k.

    scores: any shape. d_k: the length of a query. Returns: the shape of scores.
    """
    # region solution
    return scores / math.sqrt(d_k)  # unit-variance q and k: scores of variance 1 again
    # endregion

# %% role="check" exercise="scale_scores"
check(scale_scores)

# %% [markdown]
# The order of the scores in a row stays, for they are all divided by the same positive number. What shrinks are the
# *differences* between them, and these are all that the next step looks at. The payoff prints the first row before
# and after.

# %% role="payoff" exercise="scale_scores" tags=["nbval-check-output"]
if passed(scale_scores):
    first_row = np.array([1.0, 1.0, 0.0])
    for length in (1, 2, 8, 64):
        print(f"d_k = {length:2}: ", np.round(scale_scores(first_row, length), 4))

# %% [markdown]
# ## Step 3: softmax turns scores into weights
#
# The scores of a row are to become shares of a whole: positive, and 1 in sum. Softmax takes the exponential of each
# and divides by the sum of the row:
#
# $$w_j = \frac{e^{s_j}}{\sum_k e^{s_k}}$$
#
# **Predict:** the third key scored 0 for the first query. Does the third token get the weight 0?
#
# The loop below is the calculation for the first row, as we would write it on paper.

# %% role="demo" tags=["nbval-check-output"]
scaled_row = [1 / math.sqrt(2), 1 / math.sqrt(2), 0.0]
exponentials = [math.exp(score) for score in scaled_row]
total = sum(exponentials)
for score, grown in zip(scaled_row, exponentials):
    print(f"exp({score:.4f}) = {grown:.4f}    {grown:.4f} / {total:.4f} = {grown / total:.4f}")

# %% [markdown]
# The third token gets 0.1978, a fifth of the whole: e⁰ is 1, not 0. A score of 0 means "no agreement", and softmax
# never gives a weight of exactly 0 to a finite score. (Lesson 06 hides tokens for good, with a score of −∞.)
#
# Two ways to go wrong come first, so that we know them when we meet them. Dividing the scores themselves fails as
# soon as a score is negative. And the plain exponential overflows for large scores, although the weights are harmless
# numbers.

# %% role="demo" tags=["nbval-check-output"]
row = np.array([1.0, 1.0, -3.0])
print("without exp:", row / row.sum())

row = np.array([1000.0, 999.0, 998.0])
with np.errstate(over="ignore", invalid="ignore"):
    print("plain exp:  ", np.exp(row) / np.exp(row).sum())

# %% [markdown]
# "Weights" of −1 and 3 in the first line, and NaN in the second: e¹⁰⁰⁰ is infinite in floating point, and ∞/∞ is not
# a number. The remedy costs nothing. Taking the same c from every score of a row divides all its exponentials by
# exp(c), and the division by the sum removes that again. So we subtract the row's largest score first: then the largest
# exponential is e⁰ = 1.

# %% [markdown]
# @exercise softmax_rows
#
# `scores` (n_q, n_k) → weights (n_q, n_k)
#
# ```text
# for each row i:
#     m = the largest score of row i
#     weights[i, j] = exp(scores[i, j] - m) / (sum over all j of exp(scores[i, j] - m))
# ```
#
# Each row sums to 1, and stays finite for scores of ±1000. A ready-made softmax (from scipy or torch) is not allowed
# here: this is the step to know by heart. `hint(softmax_rows)` helps.

# %% role="exercise" exercise="softmax_rows"
def softmax_rows(scores: np.ndarray) -> np.ndarray:
    """Turn each row of scores into positive weights that sum to 1.

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
# Now we can look at the printed weights. **Predict:** one walk-through has [0.42, 0.42, 0.16], the other
# [0.4, 0.4, 0.2]. Our hand calculation gave [0.4011, 0.4011, 0.1978]. Which step did the first one leave out?

# %% role="payoff" exercise="softmax_rows" tags=["nbval-check-output"]
if passed(softmax_rows):
    scores = np.array([[1.0, 1.0, 0.0]])
    print("with the scale:   ", np.round(softmax_rows(scores / math.sqrt(2)), 4))
    print("without the scale:", np.round(softmax_rows(scores), 4))

# %% [markdown]
# [0.42, 0.42, 0.16] is the row *without* the scale, to two decimals. [0.4, 0.4, 0.2] is the right row, to one
# decimal. So far the second walk-through is ahead. Its output is still to be examined.
#
# ## Step 4: the output blends the values
#
# The weights say how much of each value goes into the answer. We take the *second* token: its scores are 1, 0, 1, the
# numbers of the first row in another order, and so are its weights: 0.4011, 0.1978, 0.4011. By hand:
#
# - first number: 0.4011·10 + 0.1978·0 + 0.4011·5
# - second number: 0.4011·0 + 0.1978·10 + 0.4011·5
#
# **Predict** which of the two is larger, and what they sum to. Then run the loop.

# %% role="demo" tags=["nbval-check-output"]
weights_row = [0.4011, 0.1978, 0.4011]
for feature in range(2):
    shares = [weights_row[j] * V[j, feature] for j in range(3)]
    print(" + ".join(f"{share:.3f}" for share in shares), f"= {sum(shares):.3f}")

# %% [markdown]
# @exercise weighted_sum
#
# `weights` (n_q, n_k), `V` (n_k, d_v) → output (n_q, d_v)
#
# ```text
# for each query i, for each feature f of a value:
#     output[i, f] = sum over the n_k keys of weights[i, key] * V[key, f]
# ```
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
# What if a query puts all its weight on one key? Then the blend has one ingredient, and we are back at the hard
# look-up of lesson 00. What if all weights are equal? Then we get the plain average of the values. The payoff shows
# both.

# %% role="payoff" exercise="weighted_sum" tags=["nbval-check-output"]
if passed(weighted_sum):
    print("all on token 1:", weighted_sum(np.array([[0.0, 1.0, 0.0]]), V))
    print("shared equally:", weighted_sum(np.full((1, 3), 1 / 3), V))

# %% [markdown]
# @exercise three_token_attention
#
# `Q` (n_q, d_k), `K` (n_k, d_k), `V` (n_k, d_v) → `(output (n_q, d_v), weights (n_q, n_k))`
#
# The four steps, put together. We may call our four functions or start afresh. It is to work for any sizes, with
# n_q ≠ n_k and d_v ≠ d_k, and for scores of ±10,000; d_k is read from the shape of Q. Ready-made attention or
# softmax is not allowed.

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
# Here is one attention step in full, computed by our own function. We read it from left to right: each row is one
# query on its way to an output. A row of weights sums to 1, and so the colours of a row share out one unit.

# %% role="payoff" exercise="three_token_attention"
if passed(three_token_attention):
    output, weights = three_token_attention(Q, K, V)
    figures.lesson_01.whole_step(Q, K, weights, output)

# %% [markdown]
# ## What is wrong in print
#
# Back to the question. For the first token one walk-through prints the output [5.3, 4.2], the other [5, 4]. We could
# compare with our own number. But there is a proof that needs no softmax at all. Look at V: what does each row sum
# to?

# %% role="demo" tags=["nbval-check-output"]
print("rows of V sum to     ", V.sum(axis=1))
for printed in ([5.3, 4.2], [5.0, 4.0]):
    print(f"printed {printed} sums to {sum(printed):g}")

# %% [markdown]
# @exercise corrected_first_row
#
# An answer, not a function: a list, tuple or array of two numbers, each within 0.01. We can work it out by hand, or
# take it from our `three_token_attention`. Before that, one line on paper: why must the two numbers of *every* output
# sum to 10, whatever the weights are? (Use that the weights of a row sum to 1.)

# %% role="exercise" exercise="corrected_first_row"
# region solution: corrected_first_row = None  # the two numbers
corrected_first_row = three_token_attention(Q, K, V)[0][0]
# endregion

# %% role="check" exercise="corrected_first_row"
check("corrected_first_row", corrected_first_row)

# %% [markdown]
# The proof: an output is w₀·V₀ + w₁·V₁ + w₂·V₂. Its two numbers sum to w₀·10 + w₁·10 + w₂·10 = 10·(w₀ + w₁ + w₂), and
# that is 10. Every output of this table lies on the line "first + second = 10". [5.3, 4.2] sums to 9.5 and [5, 4] to 9:
# no weights can make them. The 4 looks like 0.4·10 with the third token's 0.2·5 = 1 left out, the 4.2 like 0.42·10
# without 0.16·5.

# %% role="payoff" exercise="corrected_first_row"
if passed("corrected_first_row", corrected_first_row):
    printed = [[5.3, 4.2], [5.0, 4.0]]
    figures.lesson_01.impossible_outputs(V, [corrected_first_row], printed)

# %% [markdown]
# ## What one row cannot show
#
# There is a twist. One walk-through forgot the scale: does its first output change if we mend that? **Predict:** what
# is the first output with the weights [0.4223, 0.4223, 0.1554] of the row without scale? And are the second and third
# row affected?

# %% role="payoff" exercise="three_token_attention" tags=["nbval-check-output"]
if passed(three_token_attention):
    with_scale, _ = three_token_attention(Q, K, V)
    without_scale, _ = three_token_attention(Q * math.sqrt(d_k), K, V)  # undoes the division
    for token, (right, wrong) in enumerate(zip(with_scale, without_scale)):
        print(f"token {token}: with scale {np.round(right, 4)}, without {np.round(wrong, 4)}")

# %% [markdown]
# The first output is the same either way: its first two weights are equal, so the blend is symmetric. **The first row
# cannot test the scale.** It cannot even test attention: a plain average of the values comes to the same. Rows 1 and 2
# can. The next figure divides the scores by anything from far too little to far too much.

# %% role="payoff" exercise="three_token_attention"
if passed(three_token_attention):
    figures.lesson_01.scale_sweep(three_token_attention, Q, K, V)

# %% [markdown]
# An example that comes out right proves little until we ask which mistakes it would have caught. The whole table is
# blind to some: d_v and d_k are both 2, so a scale taken from the wrong one goes unnoticed. We repeat the first
# column of V as a third and compare: √d_k, as it should be, against √d_v.

# %% role="payoff" exercise="three_token_attention" tags=["nbval-check-output"]
if passed(three_token_attention):
    for values in (V, np.hstack([V, V[:, :1]])):
        d_v = values.shape[1]
        right, _ = three_token_attention(Q, K, values)
        wrong, _ = three_token_attention(Q * math.sqrt(d_k / d_v), K, values)  # scaled by √d_v
        print(f"d_v = {d_v}: the outputs differ by up to {np.abs(right - wrong).max():.4f}")

# %% [markdown]
# This is why `check` tries many inputs whose sizes all differ, and why it never trusts a single table. We can borrow
# the habit: whenever a result looks right, try one more input, of another shape.

# %% [markdown]
# ## Break it on purpose
#
# Now a run of experiments on our own function. **Predict** each line before running: what happens to the first
# token's weights if all keys are 100 times longer? If keys *and* values are reversed together? If keys alone are?
# Then change the cell and try other ideas.

# %% role="payoff" exercise="three_token_attention" tags=["nbval-check-output"]
if passed(three_token_attention):
    experiments = {
        "as it is": (K, V), "keys 100 times longer": (100 * K, V),
        "keys and values reversed": (K[::-1], V[::-1]), "keys alone reversed": (K[::-1], V),
    }
    for name, (keys, values) in experiments.items():
        output, weights = three_token_attention(Q, keys, values)
        print(f"{name:25} weights {np.round(weights[0], 2)}  output {np.round(output[0], 2)}")

# %% [markdown]
# @exercise query_for
#
# `keys` (n, d), `target` an index, `share` a number → `query` (d,)
#
# ```text
# softmax(keys · query / √d)[target] is at least share
# ```
#
# All keys have one common length, and no two of them point nearly the same way (their cosine is at most 0.9). The share is above 0
# and at most 0.999. Any query that does it is right.

# %% role="exercise" exercise="query_for"
def query_for(keys: np.ndarray, target: int, share: float) -> np.ndarray:
    """Return a query that gives the key at index target at least this share of the weights.

    keys: (n, d), n ≥ 2, rows of one length. share: 0 < share ≤ 0.999. Returns: (d,).
    """
    # region solution
    own = keys[target]  # of keys of one length, none fits this query better than the target's own
    scores = keys @ own
    lead = scores[target] - np.delete(scores, target).max()
    needed = math.log(max((len(keys) - 1) * share / (1 - share), 1.0))  # as if all others were as near as the nearest
    return own * (needed * math.sqrt(keys.shape[1]) / lead)
    # endregion

# %% role="check" exercise="query_for"
check(query_for)

# %% [markdown]
# Long keys make the soft look-up nearly hard; the tie between keys 0 and 1 remains a tie. Reversing keys and values
# together leaves the output as it was: attention sees a *set* of pairs and knows no order. (Lesson 07 gives it one.)
# Reversing the keys alone hands the weights to the wrong values.
#
# ## What we keep
#
# - Scores QKᵀ, divided by √d_k, through softmax by rows, times V: four steps, each a line of NumPy.
# - Shapes: (n_q, d_k)·(d_k, n_k) → (n_q, n_k), then (n_q, n_k)·(n_k, d_v) → (n_q, d_v).
# - Softmax never gives a finite score the weight 0, and needs the row's maximum subtracted.
# - A blend stays within what it blends: a conserved sum is a proof that needs no calculator.
# - One worked example can be blind to a mistake: here the first row to the scale, the whole
#   table to a scale taken from the wrong size.
#
# Where this goes on: the same four steps, run for thousands of tokens in many layers, are what a Transformer consists of, besides a small
# network for each token (lesson 11). Next: **02 · Softmax**, the one non-linear step, for any axis and any size of numbers.
#
# *Source of the method:* A. Vaswani and others, "Attention is all you need", 2017, section 3.2.1.
