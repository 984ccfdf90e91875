# %% [markdown]
# # 0 · Start here: looking things up
#
# **How does a machine look something up when no key fits exactly?**
#
# A dictionary answers a key that it knows and fails on every other. Attention is a look-up, too, and it
# answers every question: it compares the question with all keys and blends what belongs to them. In ten
# minutes we go from one to the other, and learn how a lesson of this course works.

# %% [markdown]
# ## How a lesson works
#
# A lesson mixes text, code to watch and exercises to write. Cells run with **Shift + Enter**. *Run All* is safe
# at any time: an exercise that is not written yet reports "not started" and nothing breaks.
#
# | type this | to get |
# |---|---|
# | `check(hard_lookup)` | a verdict: passed, or what differs and, where it is proven, why |
# | `hint(hard_lookup)` | a question first; called again, where to look; then code with a blank |
# | `explain("HL2")` | a known mistake at length, by the id that a verdict shows |
# | `solution(hard_lookup)` | our version, after a pass, after three hints or after three different attempts |
# | `progress()` | all lessons at a glance |
#
# Progress is kept in a small file on this computer and is never sent anywhere.

# %% role="given"
import numpy as np

from grader import check, explain, figures, hint, passed, progress, solution

# %% [markdown]
# ## A look-up that needs an exact match
#
# A kitchen keeps a menu. A Python dictionary finds a dish by its name. That is a **hard look-up**: a *query* (what we
# ask for) meets a *key* (what an entry is filed under) and returns its *value* (what is stored there).
#
# **Predict** before running: what comes back for a guest who asks for something "sweet"?

# %% role="demo" tags=["nbval-check-output"]
menu = {"tart": 30, "curry": 4, "chutney": 18, "bread": 2}  # grams of sugar

print("tart: ", menu.get("tart"))
print("sweet:", menu.get("sweet"))

# %% [markdown]
# Nothing comes back for "sweet": no key is spelt that way. Yet a guest who wants something sweet can be helped,
# if keys say *what a dish is like* and not what it is called.
#
# ## Keys that can be compared
#
# Now a key is a vector of two numbers, how sweet and how spicy a dish is. A query has the same two numbers: how much
# the guest cares for each. A value is what we want to know of the dish: sugar and chilli in grams, price in euros.

# %% role="given"
dishes = ["tart", "curry", "chutney", "bread"]
keys = np.array([[3.0, 0.0], [0.0, 3.0], [2.0, 2.0], [1.0, 1.0]])  # (4, 2): sweet, spicy
values = np.array([  # (4, 3): grams of sugar, grams of chilli, euros
    [30.0, 0.0, 4.0],
    [4.0, 9.0, 8.0],
    [18.0, 5.0, 3.0],
    [2.0, 0.0, 1.0],
])

# %% [markdown]
# How well does a key fit a query? We multiply them number by number and add up: the **dot product**. It is large
# where both are large in the same places. For the query (1, 0), "sweet, please", the tart scores 1·3 + 0·0 = 3.
#
# **Predict:** a guest wants as much spice as sweetness, (1, 1). The bread's key is exactly (1, 1). Which dish
# has the largest dot product?

# %% role="demo" tags=["nbval-check-output"]
query = np.array([1.0, 1.0])
for dish, key in zip(dishes, keys):
    score = sum(query[feature] * key[feature] for feature in range(len(query)))
    print(f"{dish:8} {query[0]:g}·{key[0]:g} + {query[1]:g}·{key[1]:g} = {score:g}")

# %% [markdown]
# The chutney wins with 4; the bread, whose key *equals* the query, comes last with 2. A dot product does not ask
# which key is closest: it rewards the right direction, and length as well. We meet this again in every lesson.
#
# The next figure shows the four keys as arrows. A query picks the key that reaches furthest in its direction.

# %% role="demo"
figures.lesson_00.keys_in_the_plane(keys, dishes, query)

# %% [markdown]
# @exercise hard_lookup
#
# `query` (d,), `keys` (n, d), `values` (n, d_v) → (d_v,)
#
# As a loop over the entries, in words:
#
# ```text
# for each of the n keys: score = query · key
# the answer is the value that belongs to the largest score
# where several scores are equally large, the first of them counts
# ```
#
# Any style will do; `keys @ query` gives all n dot products at once. The sizes n, d and d_v may be any, and scores
# may all be negative. Write the body in place of the `raise` line, run the cell, then run the check below it.
# `hint(hard_lookup)` in a new cell helps when we are stuck. A check keeps quiet about what a function prints: to see that,
# call the function in a cell of its own.

# %% role="exercise" exercise="hard_lookup"
def hard_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the value whose key has the largest dot product with the query.

    query: (d,). keys: (n, d). values: (n, d_v). Returns: (d_v,). On a tie the first key counts.
    """
    # region solution
    scores = keys @ query
    best = np.argmax(scores)  # the position of the largest; of equal ones the first
    return values[best]
    # endregion

# %% role="check" exercise="hard_lookup"
check(hard_lookup)

# %% [markdown]
# A verdict names a mistake only when that mistake reproduces what our code returned. Each has an id, and
# `explain` tells it at length. This one is easy to make in a loop:

# %% role="demo"
explain("HL2")

# %% [markdown]
# ## From hard to soft
#
# A hard look-up takes one entry and ignores the rest. A **soft look-up** blends all of them: each value counts as much
# as its key fits. The exponential makes every score positive; dividing by their sum makes the weights sum to one.
# This recipe is the softmax, and lessons 01 and 02 take it apart.

# %% role="given"
def soft_lookup(query, keys, values, sharpness=1.0):
    """All values, each weighted by how well its key fits the query."""
    fits = np.exp(sharpness * (keys @ query))
    weights = fits / fits.sum()
    return weights @ values

# %% [markdown]
# **Predict:** the query turns slowly from "sweet" (1, 0) to "spicy" (0, 1), and we ask how much sugar comes back.
# How does the answer of `hard_lookup` move along the way, and how that of `soft_lookup`? Sketch two curves first.
# The next cell draws them with our own function, once its check passes.

# %% role="payoff" exercise="hard_lookup"
if passed(hard_lookup):
    figures.lesson_00.turning_query(hard_lookup, soft_lookup, keys, values, dishes)

# %% [markdown]
# The hard answer jumps from dish to dish and stands still in between. The soft one glides. That matters for learning:
# a model improves by small changes, and where a small change of the query changes nothing, there is nothing to learn
# from. We measure it: the query turns by a thousandth, and we see how far each answer moves.

# %% role="payoff" exercise="hard_lookup"
if passed(hard_lookup):
    before, after = np.array([1.0, 0.2]), np.array([1.0, 0.201])
    for lookup in (hard_lookup, soft_lookup):
        moved = lookup(after, keys, values) - lookup(before, keys, values)
        print(f"{lookup.__name__}: sugar moves by {moved[0]:.4f} g")

# %% [markdown]
# ## Break it on purpose
#
# `sharpness` multiplies the scores before the exponential. **Predict** what happens to the soft answer at sharpness
# 0, and at 100. Then change the numbers in the cell and run it again.

# %% role="demo" tags=["nbval-check-output"]
query = np.array([1.0, 0.2])
for sharpness in (0, 0.1, 1, 10, 100):
    sugar, chilli, price = soft_lookup(query, keys, values, sharpness)
    print(f"sharpness {sharpness:5}: {sugar:5.2f} g sugar, {chilli:.2f} g chilli, {price:.2f} euros")

# %% [markdown]
# At 0 every dish counts the same: we get the average of the menu. At 100 the best key takes all, and the soft
# look-up *is* the hard one. Attention lives between the two, and the size of the scores decides where.
# That is why lesson 01 divides them by √d_k, and lesson 04 asks why.
#
# ## What we keep
#
# - A **query** is compared with every **key**; the fit is a dot product, the **score**.
# - A hard look-up returns one **value**; a soft one returns all values, blended by **weights** that sum to 1.
# - Attention is the soft one: "mapping a query and a set of key-value pairs to an output", a weighted sum of the
#   values (Vaswani et al. 2017, *Attention is all you need*, section 3.2).
#
# Where this goes on: a hard choice has no slope to learn by, a blend has. That is why models blend, and how they came to it is told
# in lesson 10 (Bahdanau et al. 2015, section 3.1). Next: **01 · Three tokens**, a whole attention step small enough for pencil and
# paper.

# %% role="demo"
progress()
